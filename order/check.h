/* SPDX-License-Identifier: MIT */
/* Findings while they are collected. */
#ifndef ZO_CHECK_H
#define ZO_CHECK_H

#include <stdio.h>

#include "read.h"

/* @return a new finding of that rule, or NULL: memory is out, or there are too many. */
zo_finding *zo_found(zo_graph *g, const char *rule, enum zo_class class, enum zo_severity severity);
/* The same with its call and object. */
zo_finding *zo_found_call(zo_graph *g, const char *rule, uint32_t call, uint32_t object, enum zo_severity severity);
void zo_finding_node(const zo_graph *g, zo_finding *f, uint32_t node);
void zo_finding_object(zo_graph *g, zo_finding *f, uint32_t object);
/* By its number; 0 and no finding are passed over. */
void zo_finding_call(zo_finding *f, uint64_t number);

#define ZO_SAY(f, ...)                                                                                                 \
    do {                                                                                                               \
        if (f)                                                                                                         \
            snprintf((f)->what, sizeof((f)->what), __VA_ARGS__);                                                       \
    } while (0)
#define ZO_MISSING(f, ...)                                                                                             \
    do {                                                                                                               \
        if (f)                                                                                                         \
            snprintf((f)->missing, sizeof((f)->missing), __VA_ARGS__);                                                 \
    } while (0)
#define ZO_REPAIR(f, ...)                                                                                              \
    do {                                                                                                               \
        if (f)                                                                                                         \
            snprintf((f)->repair, sizeof((f)->repair), __VA_ARGS__);                                                   \
    } while (0)

static inline unsigned long long zo_number(const zo_graph *g, uint32_t call)
{
    return call < g->n_calls ? (unsigned long long)g->calls[call].number : 0;
}
/* What a result means that drivers give for more than one reason, "" if there is no more to say. */
const char *zo_cause(int64_t result, int kind);

/* rules.c: what a call alone, and the state of what it names, say. Called before the call takes effect. */
void zo_rules_enter(zo_graph *g, uint32_t index, const zt_call *call);
/* Before its success counts; of a creation, behind it: `created`, else ZO_NONE. */
void zo_rules_leave(zo_graph *g, uint32_t index, const zt_call *call, uint32_t created);
void zo_rules_start(zo_graph *g, uint32_t instance); /* of a command */
void zo_rules_finish(zo_graph *g);
void zo_rules_free(zo_graph *g);

/* rules_memory.c */
void zo_memory_enter(zo_reading *r, uint32_t index);
void zo_memory_leave(zo_reading *r, uint32_t index);
void zo_memory_start(zo_graph *g, uint32_t instance);
/* rules_objects.c */
void zo_objects_enter(zo_reading *r, uint32_t index);
void zo_objects_leave(zo_reading *r, uint32_t index, uint32_t created);
/* rules_arguments.c: handles and structures of a call's arguments */
void zo_arguments_enter(zo_reading *r, uint32_t index);
void zo_arguments_leave(zo_reading *r, uint32_t index);
/* rules_waits.c */
void zo_waits_enter(zo_reading *r, uint32_t index);
void zo_waits_leave(zo_graph *g, uint32_t index);
void zo_waits_start(zo_graph *g, uint32_t instance);
void zo_waits_finish(zo_graph *g);
/* rules_results.c: from the conflicts, once all is read */
void zo_results_find(zo_graph *g);
/* rules_threads.c */
void zo_threads_enter(zo_graph *g, uint32_t index);
void zo_process_enter(zo_graph *g, uint32_t index);

/* The policy that a free asks for: bits of ze_driver_memory_free_policy_ext_flags_t. */
uint32_t zo_free_policy(const zo_reading *r);

#endif

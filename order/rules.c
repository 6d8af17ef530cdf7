/* SPDX-License-Identifier: MIT */
/* What is wrong with a call by itself, given the state of what it names: which rules look at it, and when. */
#include <stdlib.h>

#include "check.h"

zo_finding *zo_found_call(zo_graph *g, const char *rule, uint32_t call, uint32_t object, enum zo_severity severity)
{
    zo_finding *const f = zo_found(g, rule, ZO_SPEC, severity);
    if (f == NULL)
        return NULL;
    zo_finding_node(g, f, call | ZO_CALL_BIT);
    zo_finding_object(g, f, object);
    return f;
}

void zo_finding_call(zo_finding *f, uint64_t number)
{
    if (f != NULL && number != 0 && f->n_points < ZO_FINDING_POINTS)
        f->points[f->n_points++] = (zo_point){number, 0};
}

void zo_rules_enter(zo_graph *g, uint32_t index, const zt_call *call)
{
    zo_reading r;
    zo_read_begin(&r, g, call);
    zo_process_enter(g, index);
    zo_arguments_enter(&r, index);
    zo_memory_enter(&r, index);
    zo_objects_enter(&r, index);
    zo_waits_enter(&r, index);
    zo_threads_enter(g, index);
}

void zo_rules_leave(zo_graph *g, uint32_t index, const zt_call *call, uint32_t created)
{
    zo_reading r;
    zo_read_begin(&r, g, call);
    zo_arguments_leave(&r, index);
    zo_memory_leave(&r, index);
    zo_objects_leave(&r, index, created);
    zo_waits_leave(g, index);
}

void zo_rules_start(zo_graph *g, uint32_t instance)
{
    zo_memory_start(g, instance);
    zo_waits_start(g, instance);
}

void zo_rules_finish(zo_graph *g)
{
    zo_waits_finish(g);
}

void zo_rules_free(zo_graph *g)
{
    free(g->rules.failed);
    free(g->rules.queried);
    free(g->rules.deferred);
}

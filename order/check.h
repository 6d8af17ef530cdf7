/* SPDX-License-Identifier: MIT */
/* Findings while they are collected. */
#ifndef ZO_CHECK_H
#define ZO_CHECK_H

#include "graph.h"

/* @return a new finding of that rule, or NULL: memory is out, or there are too many. */
zo_finding *zo_found(zo_graph *g, const char *rule, enum zo_class class, enum zo_severity severity);
void zo_finding_node(const zo_graph *g, zo_finding *f, uint32_t node);
void zo_finding_object(zo_graph *g, zo_finding *f, uint32_t object);
/* rules.c: what a call alone, and the state of what it names, say. Called before the call takes effect. */
void zo_rules_enter(zo_graph *g, uint32_t index, const zt_call *call);
void zo_rules_leave(zo_graph *g, uint32_t index);
void zo_rules_finish(zo_graph *g);

#endif

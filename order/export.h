/* SPDX-License-Identifier: MIT */
/* A graph as a picture: the calls that matter, the executions of commands, and direct edges between them. */
#ifndef ZO_EXPORT_H
#define ZO_EXPORT_H

#include "order.h"

typedef struct zo_export_node {
    uint32_t node;       /* as in conflicts and edges */
    zo_point point;
    const zt_func *func; /* for an execution the one that appended it */
    uint32_t chain;      /* nodes of one thread, or of one carrier, have the same */
    char chain_name[48]; /* "thread 1", "queue#1" */
    char object[48];     /* what the call is about, the list of a command; "" */
    bool device;
    bool over;           /* returned; ran in the simulation */
    int64_t result;      /* of calls */
} zo_export_node;

/* Both may be left out; a result other than 0 ends the export. `kind` is one of enum zo_edge_kind. */
typedef struct zo_exporter {
    int (*node)(void *ctx, const zo_export_node *node);
    int (*edge)(void *ctx, uint32_t from, uint32_t to, int kind);
    int (*conflict)(void *ctx, const zo_conflict *conflict, const char *object);
    void *ctx;
} zo_exporter;

/*
 * The calls of an ascending list (NULL: all) and the executions that they submit: nodes chain by chain, then edges, then conflicts. Edges and conflicts to
 * nodes outside are left out, as are edges that follow from others of the same thread or carrier.
 * @return what the exporter returned, or ZT_E_MEMORY.
 */
int zo_export(zo_graph *graph, const uint64_t *calls, size_t n, const zo_exporter *exporter);

const char *zo_edge_name(int kind); /* "in-order" */
const char *zo_conflict_name(int kind); /* "evict" */

#endif

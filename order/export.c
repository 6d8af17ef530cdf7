/* SPDX-License-Identifier: MIT */
/* The edges of the graph, taken apart again into what each of them was. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "graph.h"

typedef struct export {
    zo_graph *g;
    const zo_exporter *out;
    uint8_t *shown;  /* calls, then instances */
    uint32_t *names; /* of threads, by chain */
    int status;
} export;

const char *zo_edge_name(int kind)
{
    static const char *const names[] = {"program",     "submit", "start", "in-order",   "barrier",     "barrier-waits", "wait", "event",
                                        "host-signal", "fence",  "sync",  "event-sync", "synchronous", "counter",       "free"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (kind == 1 << i)
            return names[i];
    return "?";
}

const char *zo_conflict_name(int kind)
{
    static const char *const names[] = {
        [ZO_X_RACE] = "race", [ZO_X_EVICT] = "evict", [ZO_X_FREE] = "free", [ZO_X_HOST_WRITE] = "host write",
        [ZO_X_EVICT_REACHED] = "evict of what is reached", [ZO_X_FREE_REACHED] = "free of what is reached", [ZO_X_KERNEL_GONE] = "kernel destroyed",
        [ZO_X_LIST_RESET] = "list reset", [ZO_X_LIST_AGAIN] = "list again", [ZO_X_CARRIER_GONE] = "queue destroyed",
        [ZO_X_FENCE_GONE] = "fence gone", [ZO_X_EVENT_RESET] = "event reset", [ZO_X_EVENT_GONE] = "event destroyed",
        [ZO_X_STALE] = "old signal"};
    return kind >= 0 && (size_t)kind < sizeof(names) / sizeof(names[0]) && names[kind] ? names[kind] : "?";
}

static bool is_shown(const export *e, uint32_t node)
{
    return e->shown[node & ZO_CALL_BIT ? node & ~ZO_CALL_BIT : e->g->n_calls + node];
}

/* ------------------------------------------------------------------------------------------------------------- nodes */

static bool matters(zo_graph *g, const zo_call *c)
{
    const zo_object *const o = zo_object_at(g, c->object);
    if (c->flags & ZO_IGNORED)
        return false;
    switch (c->func->kind) {
    case ZT_K_EXECUTE:
    case ZT_K_SYNC:
    case ZT_K_HOST_SIGNAL:
    case ZT_K_HOST_RESET:
    case ZT_K_RESET:
    case ZT_K_EVICT:
    case ZT_K_FREE:
        return true;
    case ZT_K_QUERY:
        return c->n_preds > 0;
    case ZT_K_DESTROY:
        return o != NULL && (o->is_queue || o->is_list || o->is_fence || o->is_event);
    default:
        return c->n > 0;
    }
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static bool is_among(const uint64_t *calls, size_t n, uint64_t number)
{
    return calls == NULL || (n > 0 && bsearch(&number, calls, n, sizeof(*calls), by_number) != NULL);
}

static void choose(export *e, const uint64_t *calls, size_t n)
{
    zo_graph *const g = e->g;
    for (size_t i = 0; i < g->n_calls; i++)
        e->shown[i] = matters(g, &g->calls[i]) && is_among(calls, n, g->calls[i].number);
    for (size_t i = 0; i < g->n_instances; i++)
        e->shown[g->n_calls + i] = is_among(calls, n, g->calls[g->instances[i].submit].number);
    for (size_t i = 0; i < g->n_conflicts; i++) {
        const uint32_t ends[] = {g->conflicts[i].a, g->conflicts[i].b};
        for (unsigned k = 0; k < 2; k++) {
            const uint32_t call = ends[k] & ~ZO_CALL_BIT;
            if ((ends[k] & ZO_CALL_BIT) && is_among(calls, n, g->calls[call].number))
                e->shown[call] = 1;
        }
    }
}

/* The graph knows chains; people know threads by their numbers in the trace. */
static void name_threads(export *e)
{
    zo_graph *const g = e->g;
    zt_events *events;
    zt_event event;
    size_t unknown = 0;
    for (size_t i = 0; i < g->n_chains; i++)
        unknown += !g->chains[i].device;
    zt_trace_seek(g->trace, 1);
    if (zt_events_open(&events, g->trace) != ZT_OK)
        return;
    while (unknown > 0 && zt_events_next(events, &event) == ZT_OK) {
        const uint32_t node = zo_graph_node(g, (zo_point){event.call->number, 0});
        if (node == ZO_NONE || e->names[g->calls[node & ~ZO_CALL_BIT].chain] != 0)
            continue;
        e->names[g->calls[node & ~ZO_CALL_BIT].chain] = event.call->thread;
        unknown--;
    }
    zt_events_close(events);
}

static void object_name(zo_graph *g, uint32_t object, char *out, size_t size)
{
    const zo_object *const o = zo_object_at(g, object);
    if (object == ZO_PAGEABLE)
        snprintf(out, size, "host memory");
    else if (o != NULL && o->base != NULL)
        snprintf(out, size, "%s#%u", o->base->kind, o->base->generation);
}

static void tell_node(export *e, uint32_t chain, uint32_t index)
{
    zo_graph *const g = e->g;
    const bool device = g->chains[chain].device;
    zo_export_node n = {.node = device ? index : index | ZO_CALL_BIT, .chain = chain, .device = device};
    if (!is_shown(e, n.node) || e->status != 0)
        return;
    n.point = zo_graph_point(g, n.node);
    if (device) {
        const zo_instance *const x = &g->instances[index];
        n.func = g->calls[g->commands[x->command].call].func;
        n.over = x->order != 0;
        object_name(g, g->chains[chain].object, n.chain_name, sizeof(n.chain_name));
        object_name(g, g->commands[x->command].list, n.object, sizeof(n.object));
    } else {
        const zo_call *const c = &g->calls[index];
        n.func = c->func;
        n.over = (c->flags & ZO_RETURNED) != 0;
        n.result = c->result;
        snprintf(n.chain_name, sizeof(n.chain_name), "thread %u", e->names[chain]);
        object_name(g, c->object, n.object, sizeof(n.object));
    }
    e->status = e->out->node(e->out->ctx, &n);
}

/* ------------------------------------------------------------------------------------------------------------- edges */

static void tell_edge(export *e, uint32_t from, uint32_t to, int kind)
{
    if (e->status == 0 && is_shown(e, from) && is_shown(e, to))
        e->status = e->out->edge(e->out->ctx, from, to, kind);
}

/* What a range with a host call as its source stands for: what precedes that call. */
static uint32_t host_source(const zo_graph *g, const zo_range *r)
{
    const zo_chain *const thread = &g->chains[r->chain];
    return r->hi < thread->n ? thread->nodes[r->hi] | ZO_CALL_BIT : ZO_NONE;
}

static void signals(export *e, uint32_t index, uint32_t first)
{
    zo_graph *const g = e->g;
    const zo_instance *const x = &g->instances[index];
    for (uint32_t i = first; i < x->n_preds; i++) {
        const zo_range *const r = &g->ranges[x->preds + i];
        if (!g->chains[r->chain].device) {
            const uint32_t from = host_source(g, r);
            if (from != ZO_NONE)
                tell_edge(e, from, index, ZO_E_HOST_SIGNAL);
            continue;
        }
        const uint32_t from = g->chains[r->chain].nodes[r->hi - 1];
        const zo_object *const event = zo_object_at(g, g->commands[g->instances[from].command].signal);
        tell_edge(e, from, index, event != NULL && event->counter_based ? ZO_E_COUNTER : ZO_E_EVENT);
    }
}

/* In the order in which the simulation has noted what comes before a command. */
static void into_command(export *e, uint32_t index)
{
    zo_graph *const g = e->g;
    const zo_instance *const x = &g->instances[index];
    const zo_command *const c = &g->commands[x->command];
    const zo_chain *const chain = &g->chains[x->chain];
    const uint32_t previous = x->position > 1 ? chain->nodes[x->position - 2] : ZO_NONE;
    const unsigned without = g->options.without;
    uint32_t used = 0;
    if (g->calls[x->submit].first == index) /* those behind it start behind it */
        tell_edge(e, x->submit | ZO_CALL_BIT, index, ZO_E_SUBMIT);
    if (previous != ZO_NONE) {
        const zo_command *const other = &g->commands[g->instances[previous].command];
        int kind = ZO_E_START;
        const int holds = other->flags & ZO_WAIT_ONLY ? ZO_E_WAIT : other->n_waits > 0 ? ZO_E_BARRIER_WAITS : ZO_E_BARRIER;
        if ((other->flags & ZO_HOLDS_BACK) && !(without & (unsigned)holds)) {
            kind = holds;
            used++;
        }
        if (other->list == c->list && zo_object_at(g, c->list)->in_order && !(without & ZO_E_IN_ORDER)) {
            kind = ZO_E_IN_ORDER;
            used++;
        }
        const bool barrier = (c->flags & ZO_BARRIER) && c->n_waits == 0 && !(without & ZO_E_BARRIER);
        used += barrier;
        tell_edge(e, previous, index, barrier ? ZO_E_BARRIER : kind);
        for (uint32_t p = x->position - 1; barrier && p > 1; p--) {
            const zo_command *const before = &g->commands[g->instances[chain->nodes[p - 1]].command];
            if ((before->flags & ZO_BARRIER) && before->n_waits == 0)
                break;
            tell_edge(e, chain->nodes[p - 2], index, ZO_E_BARRIER);
        }
    }
    if (x->order != 0)
        signals(e, index, used);
}

static int told_by(zo_graph *g, const zo_call *c)
{
    const zo_object *const o = zo_object_at(g, c->object);
    if (c->flags & ZO_WAITS_FOR_USERS)
        return ZO_E_FREE;
    if (c->func->kind == ZT_K_EXECUTE || c->func->kind == ZT_K_APPEND)
        return ZO_E_SYNCHRONOUS;
    return o != NULL && o->is_event ? ZO_E_EVENT_SYNC : o != NULL && o->is_fence ? ZO_E_FENCE : ZO_E_SYNC;
}

static void into_call(export *e, uint32_t index)
{
    zo_graph *const g = e->g;
    const zo_call *const c = &g->calls[index];
    const int kind = told_by(g, c);
    for (uint32_t i = 0; i < c->n_preds; i++) {
        const zo_range *const r = &g->ranges[c->preds + i];
        const zo_chain *const chain = &g->chains[r->chain];
        if (!chain->device) {
            const uint32_t from = host_source(g, r);
            if (from != ZO_NONE)
                tell_edge(e, from, index | ZO_CALL_BIT, kind);
            continue;
        }
        /* what the thread knew already, and what is over before a later one of them, needs no line of its own */
        const uint32_t known = zo_clock_at(c->clock, r->chain);
        uint32_t later = ZO_NONE;
        for (uint32_t p = r->hi; p >= r->lo && p > known; p--) {
            const uint32_t node = chain->nodes[p - 1];
            if (!is_shown(e, node) || (later != ZO_NONE && zo_before(g, node, later)))
                continue;
            tell_edge(e, node, index | ZO_CALL_BIT, kind);
            later = node;
        }
    }
}

static void tell_chain(export *e, const zo_chain *chain)
{
    uint32_t previous = ZO_NONE;
    for (size_t i = 0; i < chain->n && e->status == 0; i++) {
        const uint32_t index = chain->nodes[i];
        if (chain->device) {
            into_command(e, index);
            continue;
        }
        if (!is_shown(e, index | ZO_CALL_BIT))
            continue;
        if (previous != ZO_NONE && !(e->g->options.without & ZO_E_PROGRAM))
            tell_edge(e, previous, index | ZO_CALL_BIT, ZO_E_PROGRAM);
        into_call(e, index);
        previous = index | ZO_CALL_BIT;
    }
}

int zo_export(zo_graph *g, const uint64_t *calls, size_t n, const zo_exporter *out)
{
    export e = {.g = g, .out = out, .shown = calloc(g->n_calls + g->n_instances + 1, 1), .names = calloc(g->n_chains + 1, sizeof(*e.names))};
    if (e.shown == NULL || e.names == NULL) {
        free(e.shown);
        free(e.names);
        return ZT_E_MEMORY;
    }
    choose(&e, calls, n);
    name_threads(&e);
    for (uint32_t k = 0; out->node != NULL && k < g->n_chains; k++)
        for (size_t i = 0; i < g->chains[k].n; i++)
            tell_node(&e, k, g->chains[k].nodes[i]);
    for (uint32_t k = 0; out->edge != NULL && k < g->n_chains; k++)
        tell_chain(&e, &g->chains[k]);
    for (size_t i = 0; out->conflict != NULL && i < g->n_conflicts && e.status == 0; i++) {
        const zo_conflict *const c = &g->conflicts[i];
        char object[48] = "";
        object_name(g, c->object, object, sizeof(object));
        if (is_shown(&e, c->a) && is_shown(&e, c->b))
            e.status = out->conflict(out->ctx, c, object);
    }
    free(e.shown);
    free(e.names);
    return e.status;
}

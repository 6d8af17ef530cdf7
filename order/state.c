/* SPDX-License-Identifier: MIT */
#include "state.h"

#include <stdlib.h>

#include "graph.h"

typedef struct knowledge {
    zo_graph *g;
    uint8_t *ended;    /* by instance: some call was told that it is over, or that one is which comes behind it */
    uint32_t *prefix;  /* by chain: so many are */
    uint32_t *todo;
    size_t n_todo;
} knowledge;

static void range_ended(knowledge *k, const zo_range *r)
{
    const zo_chain *const chain = &k->g->chains[r->chain];
    if (!chain->device || r->hi == 0)
        return;
    uint32_t *const prefix = &k->prefix[r->chain];
    const bool joins = r->lo <= *prefix + 1;
    for (uint32_t p = joins ? *prefix + 1 : r->lo; p <= r->hi && p <= chain->n; p++)
        if (!k->ended[chain->nodes[p - 1]]) {
            k->ended[chain->nodes[p - 1]] = 1;
            k->todo[k->n_todo++] = chain->nodes[p - 1];
        }
    if (joins && r->hi > *prefix)
        *prefix = r->hi;
}

static void find_ended(knowledge *k)
{
    const zo_graph *const g = k->g;
    for (size_t i = 0; i < g->n_calls; i++)
        for (uint32_t p = 0; p < g->calls[i].n_preds; p++) {
            range_ended(k, &g->ranges[g->calls[i].preds + p]);
            while (k->n_todo > 0) {
                const zo_instance *const x = &g->instances[k->todo[--k->n_todo]];
                for (uint32_t q = 0; q < x->n_preds; q++)
                    range_ended(k, &g->ranges[x->preds + q]);
            }
        }
}

static bool is_alive(const zo_object *o)
{
    return o->base != NULL && !o->gone && o->base->destroyed == 0;
}

static bool is_open(const knowledge *k, uint32_t node)
{
    return node != ZO_NONE && !(node & ZO_CALL_BIT) && !k->ended[node];
}

static zo_signal event_state(const knowledge *k, const zo_object *o, uint32_t open_signal)
{
    zo_graph *const g = k->g;
    zo_signal s = {.object = o->base, .state = ZO_S_RESET};
    uint32_t by = o->counter_based ? o->assigned : o->signalled ? o->signaller : o->last_reset;
    s.resets = !o->counter_based && !o->signalled;
    if (by != ZO_NONE && !s.resets)
        s.state = ZO_S_SIGNALLED;
    if (open_signal != ZO_NONE) { /* nobody knows yet */
        by = open_signal;
        s.state = ZO_S_PENDING;
        s.resets = g->commands[g->instances[by].command].signal != o->base->index;
    }
    if (by != ZO_NONE)
        s.by = zo_graph_point(g, by);
    return s;
}

static zo_signal fence_state(const knowledge *k, const zo_object *o)
{
    zo_graph *const g = k->g;
    zo_signal s = {.object = o->base, .state = o->n_submits > 0 ? ZO_S_SIGNALLED : ZO_S_RESET};
    for (size_t i = 0; i < o->n_submits; i++) {
        const zo_chain *const chain = &g->chains[o->submits[i].chain];
        for (uint32_t p = o->submits[i].hi; chain->device && p >= o->submits[i].lo && p > 0 && p <= chain->n; p--) {
            const uint32_t node = chain->nodes[p - 1];
            const bool open = is_open(k, node);
            if (s.by.call == 0 || (open && s.state != ZO_S_PENDING))
                s.by = (zo_point){g->calls[g->instances[node].submit].number, 0};
            if (open)
                s.state = ZO_S_PENDING;
        }
    }
    return s;
}

static void tell_list(const zo_state_teller *t, const zo_graph *g, const zo_object *o, uint64_t *calls)
{
    const size_t n = o->immediate ? 0 : o->n_commands;
    const zo_list_state s = {.object = o->base, .immediate = o->immediate, .in_order = o->in_order, .closed = o->closed, .commands = calls,
                             .n_commands = n};
    for (size_t i = 0; i < n; i++)
        calls[i] = g->calls[g->commands[o->commands[i]].call].number;
    t->list(t->ctx, &s);
}

static void tell_in_flight(const zo_state_teller *t, const knowledge *k)
{
    zo_graph *const g = k->g;
    for (uint32_t i = 0; i < g->n_instances; i++) {
        const zo_instance *const x = &g->instances[i];
        const zo_command *const c = &g->commands[x->command];
        if (k->ended[i])
            continue;
        const zo_object *const list = zo_object_at(g, c->list), *const carrier = zo_object_at(g, g->chains[x->chain].object);
        const zo_in_flight f = {.point = zo_graph_point(g, i), .submit = g->calls[x->submit].number, .func = g->calls[c->call].func,
                                .list = list ? list->base : NULL, .carrier = carrier ? carrier->base : NULL, .held = x->order == 0};
        t->in_flight(t->ctx, &f);
    }
}

/* By object: the newest execution in flight that signals or resets it. */
static void find_open_signals(const knowledge *k, uint32_t *open)
{
    const zo_graph *const g = k->g;
    for (size_t i = 0; i < g->n_objects; i++)
        open[i] = ZO_NONE;
    for (uint32_t i = 0; i < g->n_instances; i++) {
        const zo_command *const c = &g->commands[g->instances[i].command];
        if (is_open(k, i) && c->reset < g->n_objects)
            open[c->reset] = i;
        if (is_open(k, i) && c->signal < g->n_objects)
            open[c->signal] = i;
    }
}

int zo_state(zo_graph *g, const zo_state_teller *t)
{
    size_t most = 0;
    for (size_t i = 0; i < g->n_objects; i++)
        most = g->objects[i].n_commands > most ? g->objects[i].n_commands : most;
    knowledge k = {.g = g, .ended = calloc(g->n_instances + 1, 1), .prefix = calloc(g->n_chains + 1, sizeof(*k.prefix)),
                   .todo = malloc((g->n_instances + 1) * sizeof(*k.todo))};
    uint64_t *const calls = malloc((most + 1) * sizeof(*calls));
    uint32_t *const open = malloc((g->n_objects + 1) * sizeof(*open));
    const bool ok = k.ended && k.prefix && k.todo && calls && open;
    if (ok) {
        find_ended(&k);
        find_open_signals(&k, open);
        for (size_t i = 0; t->list != NULL && i < g->n_objects; i++)
            if (is_alive(&g->objects[i]) && g->objects[i].is_list)
                tell_list(t, g, &g->objects[i], calls);
        for (size_t i = 0; t->signal != NULL && i < g->n_objects; i++) {
            const zo_object *const o = &g->objects[i];
            if (!is_alive(o) || (!o->is_event && !o->is_fence))
                continue;
            const zo_signal s = o->is_event ? event_state(&k, o, open[i]) : fence_state(&k, o);
            t->signal(t->ctx, &s);
        }
        if (t->in_flight != NULL)
            tell_in_flight(t, &k);
    }
    free(k.ended);
    free(k.prefix);
    free(k.todo);
    free(calls);
    free(open);
    return ok ? ZT_OK : ZT_E_MEMORY;
}

const char *zo_signal_state_name(int state)
{
    return state == ZO_S_SIGNALLED ? "signalled" : state == ZO_S_PENDING ? "pending" : "reset";
}

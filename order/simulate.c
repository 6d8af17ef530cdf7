/* SPDX-License-Identifier: MIT */
/* Runs the commands as early as the specification allows, and learns on the way what must be over before each of them. */
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

static bool with(const zo_graph *g, unsigned edge)
{
    return (g->options.without & edge) == 0;
}

/* ------------------------------------------------------------------------------------------------------------- edges */

static void at_least(uint32_t *value, uint32_t other)
{
    if (*value < other)
        *value = other;
}

static void learn_loosely(const zo_graph *g, const zo_clock *clock, uint32_t *loose, const zo_range *r)
{
    const zo_chain *const chain = &g->chains[r->chain];
    if (r->hi == 0)
        return;
    if (chain->device) {
        const zo_instance *const last = &g->instances[chain->nodes[r->hi - 1]];
        at_least(loose, zo_clock_at(clock, r->chain) < r->hi ? last->order : last->loose);
        return;
    }
    /* what its last call was told before it returned is no part of that call's clock */
    const zo_call *const call = &g->calls[chain->nodes[r->hi - 1]];
    at_least(loose, call->loose);
    if (call->n_preds > 0)
        at_least(loose, call->end_order);
}

/* What begins learns that the range is over. `clock` takes what a prefix can say. */
static void learn(zo_graph *g, const zo_clock **clock, uint32_t *loose, const zo_range *r)
{
    const zo_chain *const chain = &g->chains[r->chain];
    if (zo_clock_at(*clock, r->chain) + 1 >= r->lo)
        *clock = zo_clock_set(g, *clock, r->chain, r->hi);
    if (!chain->device && r->hi > 0) {
        *clock = zo_clock_join(g, *clock, g->calls[chain->nodes[r->hi - 1]].clock);
    } else if (chain->device && r->hi > 0) {
        const zo_instance *const last = &g->instances[chain->nodes[r->hi - 1]];
        *clock = zo_clock_join(g, *clock, last->clock);
        if (zo_clock_at(*clock, r->chain) + 1 >= r->lo)
            *clock = zo_clock_set(g, *clock, r->chain, r->hi);
    }
    learn_loosely(g, *clock, loose, r);
}

static zo_range ended(const zo_graph *g, uint32_t instance)
{
    const zo_instance *const x = &g->instances[instance];
    return (zo_range){x->chain, x->position, x->position};
}

static zo_range node_range(const zo_graph *g, uint32_t node)
{
    if (!(node & ZO_CALL_BIT))
        return ended(g, node);
    const zo_call *const call = &g->calls[node & ~ZO_CALL_BIT];
    /* the call is under way when what it does takes effect: what was before it has returned */
    return (zo_range){call->chain, 1, call->position - 1};
}

static void add_pred(zo_graph *g, zo_instance *x, zo_range r)
{
    if (r.hi == 0 && g->chains[r.chain].device)
        return;
    if (ZO_PUSH(g, g->ranges, g->n_ranges, g->room_ranges, r))
        x->n_preds++;
    learn(g, &x->clock, &x->loose, &r);
}

/* ------------------------------------------------------------------------------------------------------------ events */

static bool satisfied(zo_graph *g, const zo_instance *x, uint32_t i)
{
    const zo_object *const e = zo_object_at(g, g->waits[g->commands[x->command].waits + i]);
    if (!e->counter_based)
        return e->signalled;
    const uint32_t signal = x->captured == ZO_NONE ? ZO_NONE : g->captured[x->captured + i];
    return signal == ZO_NONE || g->instances[signal].order != 0;
}

static void signal_event(zo_graph *g, uint32_t event, uint32_t node)
{
    zo_object *const e = zo_object_at(g, event);
    if (e->pending > 0 && !(node & ZO_CALL_BIT))
        e->pending--;
    if (e->counter_based)
        return;
    zo_saw_event_use(g, event, node, ZO_SIGNALS);
    if (e->signalled) {
        e->attempt = node;
        return;
    }
    e->signalled = true;
    e->signaller = node;
    e->attempt = ZO_NONE;
}

static void reset_event(zo_graph *g, uint32_t event, uint32_t node)
{
    zo_object *const e = zo_object_at(g, event);
    zo_saw_event_use(g, event, node, ZO_RESETS);
    e->signalled = false;
    e->signaller = e->attempt = ZO_NONE;
    e->last_reset = node;
}

void zo_host_signal(zo_graph *g, uint32_t call, uint32_t event)
{
    signal_event(g, event, call | ZO_CALL_BIT);
}

void zo_host_reset(zo_graph *g, uint32_t call, uint32_t event)
{
    reset_event(g, event, call | ZO_CALL_BIT);
}

/* ------------------------------------------------------------------------------------------------------------ submit */

void zo_submit(zo_graph *g, uint32_t call, uint32_t carrier, uint32_t command)
{
    const uint32_t chain_index = zo_object_at(g, carrier)->chain;
    zo_chain *const chain = &g->chains[chain_index];
    zo_command *const c = &g->commands[command];
    zo_instance x = {.command = command, .submit = call, .chain = chain_index, .position = (uint32_t)chain->n + 1,
                     .execution = ++c->executions, .again = ZO_NONE, .captured = ZO_NONE};
    const uint32_t index = (uint32_t)g->n_instances;
    for (uint32_t i = 0; i < c->n_waits; i++) {
        const zo_object *const e = zo_object_at(g, g->waits[c->waits + i]);
        if (e->counter_based && x.captured == ZO_NONE) {
            x.captured = (uint32_t)g->n_captured;
            for (uint32_t k = 0; k < c->n_waits; k++)
                ZO_PUSH(g, g->captured, g->n_captured, g->room_captured, zo_object_at(g, g->waits[c->waits + k])->assigned);
        }
    }
    if (!ZO_PUSH(g, g->instances, g->n_instances, g->room_instances, x) || !ZO_PUSH(g, chain->nodes, chain->n, chain->room, index))
        return;
    if (c->executions == 1)
        c->first = index;
    else
        g->instances[c->last].again = index;
    c->last = index;
    if (c->signal != ZO_NONE) {
        zo_object *const e = zo_object_at(g, c->signal);
        e->pending++;
        if (e->counter_based)
            e->assigned = index;
    }
    zo_call *const submit = &g->calls[call];
    if (submit->n++ > 0)
        return;
    submit->first = index;
    if (with(g, ZO_E_PROGRAM))
        submit->clock = zo_clock_set(g, submit->clock, submit->chain, submit->position - 1);
}

/* --------------------------------------------------------------------------------------------------------------- run */

static bool can_start(zo_graph *g, const zo_instance *x)
{
    for (uint32_t i = 0; i < g->commands[x->command].n_waits; i++)
        if (!satisfied(g, x, i))
            return false;
    return true;
}

static void observe(zo_graph *g, zo_instance *x, uint32_t index, uint32_t i)
{
    const uint32_t event = g->waits[g->commands[x->command].waits + i];
    zo_object *const e = zo_object_at(g, event);
    if (e->counter_based) {
        const uint32_t signal = x->captured == ZO_NONE ? ZO_NONE : g->captured[x->captured + i];
        if (signal != ZO_NONE && with(g, ZO_E_COUNTER))
            add_pred(g, x, ended(g, signal));
        return;
    }
    if (e->signaller != ZO_NONE && with(g, e->signaller & ZO_CALL_BIT ? ZO_E_HOST_SIGNAL : ZO_E_EVENT))
        add_pred(g, x, node_range(g, e->signaller));
    zo_saw_event_use(g, event, index, ZO_WAITS);
}

static void start(zo_graph *g, uint32_t index)
{
    zo_instance *const x = &g->instances[index];
    zo_chain *const chain = &g->chains[x->chain];
    const zo_command *const c = &g->commands[x->command];
    const zo_call *const submit = &g->calls[x->submit];
    x->order = ++g->tick;
    x->preds = (uint32_t)g->n_ranges;
    x->loose = submit->loose;
    if (with(g, ZO_E_SUBMIT))
        x->clock = submit->clock;
    const uint32_t previous = x->position > 1 ? chain->nodes[x->position - 2] : ZO_NONE;
    if (previous != ZO_NONE) {
        const zo_instance *const before = &g->instances[previous];
        const zo_command *const other = &g->commands[before->command];
        const zo_call *const others = &g->calls[before->submit];
        const bool more = before->n_preds > 0 || (others->previous_sync != 0 && others->chain != submit->chain);
        x->landmark = more ? before->position : before->landmark;
        at_least(&x->loose, before->loose);
        if (with(g, ZO_E_START))
            x->clock = zo_clock_join(g, x->clock, before->clock);
        const unsigned kind = other->flags & ZO_WAIT_ONLY ? ZO_E_WAIT : other->n_waits > 0 ? ZO_E_BARRIER_WAITS : ZO_E_BARRIER;
        if ((other->flags & ZO_HOLDS_BACK) && with(g, kind))
            add_pred(g, x, ended(g, previous));
        if (other->list == c->list && zo_object_at(g, c->list)->in_order && with(g, ZO_E_IN_ORDER))
            add_pred(g, x, ended(g, previous));
        if ((c->flags & ZO_BARRIER) && c->n_waits == 0 && with(g, ZO_E_BARRIER))
            add_pred(g, x, (zo_range){x->chain, 1, x->position - 1});
    }
    for (uint32_t i = 0; i < c->n_waits; i++)
        observe(g, x, index, i);
    chain->started++;
    zo_saw_start(g, index);
    if (c->reset != ZO_NONE)
        reset_event(g, c->reset, index);
    if (c->signal != ZO_NONE)
        signal_event(g, c->signal, index);
}

void zo_run(zo_graph *g)
{
    for (bool moved = true; moved && !g->out_of_memory;) {
        moved = false;
        for (size_t i = 0; i < g->n_chains; i++) {
            zo_chain *const chain = &g->chains[i];
            while (chain->device && chain->started < chain->n) {
                const uint32_t index = chain->nodes[chain->started];
                if (!can_start(g, &g->instances[index]))
                    break;
                start(g, index);
                moved = true;
            }
        }
    }
}

/* -------------------------------------------------------------------------------------------------------------- told */

void zo_told(zo_graph *g, uint32_t index, const zo_range *ranges, size_t n)
{
    zo_call *const call = &g->calls[index];
    zo_chain *const thread = &g->chains[call->chain];
    call->end_order = ++g->tick;
    for (size_t i = 0; i < n; i++) {
        zo_range r = ranges[i];
        const zo_chain *const chain = &g->chains[r.chain];
        if (chain->device && r.hi > chain->started)
            r.hi = (uint32_t)chain->started; /* not even here: what the trace says is believed, what came of it is not known */
        if (r.hi < r.lo)
            continue;
        if (call->n_preds == 0)
            call->preds = (uint32_t)g->n_ranges;
        if (ZO_PUSH(g, g->ranges, g->n_ranges, g->room_ranges, r))
            call->n_preds++;
        learn(g, &thread->clock, &thread->loose, &r);
        learn(g, &g->observed, &(uint32_t){0}, &r);
    }
    if (call->n_preds > 0)
        thread->last_sync = index + 1;
}

/* What had been submitted there before the wait began. */
static void told_of_chain(zo_graph *g, uint32_t call, uint32_t chain)
{
    uint32_t n = (uint32_t)g->chains[chain].n;
    while (n > 0 && g->instances[g->chains[chain].nodes[n - 1]].submit > call)
        n--;
    const zo_range r = {chain, 1, n};
    if (r.hi > 0)
        zo_told(g, call, &r, 1);
}

void zo_sync_done(zo_graph *g, uint32_t index)
{
    const zo_call *const call = &g->calls[index];
    if (call->func->kind == ZT_K_EXECUTE || call->func->kind == ZT_K_APPEND) {
        if (call->n > 0 && with(g, ZO_E_SYNCHRONOUS)) {
            const zo_instance *const last = &g->instances[call->first + call->n - 1];
            zo_told(g, index, &(zo_range){last->chain, g->instances[call->first].position, last->position}, 1);
        }
        return;
    }
    zo_object *const o = zo_object_at(g, call->object);
    if (o == NULL) { /* a device: all that was submitted before */
        for (uint32_t i = 0; i < g->n_chains && with(g, ZO_E_SYNC); i++)
            if (g->chains[i].device)
                told_of_chain(g, index, i);
    } else if (o->is_event) {
        const uint32_t node = o->counter_based ? o->assigned : o->signaller;
        if (node != ZO_NONE && with(g, ZO_E_EVENT_SYNC)) {
            const zo_range r = node_range(g, node);
            zo_told(g, index, &r, 1);
        }
    } else if (o->is_fence) {
        if (with(g, ZO_E_FENCE))
            zo_told(g, index, o->submits, o->n_submits);
    } else if (o->chain != ZO_NONE && with(g, ZO_E_SYNC)) {
        told_of_chain(g, index, o->chain);
    }
}

static bool see_done(void *call, zo_graph *g, uint32_t x, const zo_access *access)
{
    const zo_range r = ended(g, x);
    (void)access;
    if (g->instances[x].order != 0)
        zo_told(g, *(uint32_t *)call, &r, 1);
    return false;
}

void zo_users_done(zo_graph *g, uint32_t index)
{
    const zo_object *const mem = zo_object_at(g, g->calls[index].object);
    for (size_t i = 0; mem != NULL && with(g, ZO_E_FREE) && i < mem->n_history; i++) {
        if (mem->history[i].node & ZO_CALL_BIT)
            continue;
        const zo_range r = ended(g, mem->history[i].node);
        zo_told(g, index, &r, 1);
    }
    if (with(g, ZO_E_FREE))
        zo_each_reacher(g, g->calls[index].object, false, see_done, &index);
}

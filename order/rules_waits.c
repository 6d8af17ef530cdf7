/* SPDX-License-Identifier: MIT */
/* D1b, D5, E4, F: waits that hope in vain, and waits that say less than they seem to. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "l0_api.h"

static bool is_wait(const zo_call *c)
{
    return c->func->kind == ZT_K_SYNC;
}

/* ------------------------------------------------------------------------------------------------------ time stamps */

static void no_timestamps(zo_graph *g, uint32_t index, uint32_t event)
{
    const zo_object *const e = zo_object_at(g, event);
    if (e == NULL || !e->is_event || e->facts.timestamps || e->base->created == 0)
        return;
    zo_finding *const f = zo_found_call(g, "D5", index, event, ZO_ERROR);
    ZO_SAY(f, "asks for time stamps of event#%u, whose pool was made without them", e->base->generation);
    zo_finding_call(f, e->base->created);
    ZO_REPAIR(f, "ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP");
}

/* An event whose time stamps the call itself hands out. */
static bool hands_out_timestamps(const zt_func *f)
{
    for (unsigned i = 0; i < f->n_params; i++)
        if ((f->params[i].dir & ZT_OUT) && strstr(zt_types[f->params[i].type].name, "kernel_timestamp") != NULL)
            return true;
    return false;
}

void zo_waits_enter(zo_reading *r, uint32_t index)
{
    zo_graph *const g = r->g;
    const zt_func *const func = r->call->func;
    if (func->kind == ZT_K_GET && hands_out_timestamps(func))
        no_timestamps(g, index, g->calls[index].object);
    const zt_field *const p = func->kind == ZT_K_APPEND ? zt_param_by_role(func, ZT_R_EVENT) : NULL;
    const int64_t n = p && p->shape == ZT_ARRAY ? zt_eval_param(&r->walk, &p->count) : 0;
    const void *const events =
        n > 0 && n < 65536 ? r->memory.at(r->memory.ctx, r->call->words[p->offset], (uint64_t)n * 8) : NULL;
    for (int64_t i = 0; events != NULL && i < n; i++) {
        const zo_queried q = {index, zo_object_index(g, zt_object_of_handle(g->names, &zt_types[p->type], zt_element(events, (uint64_t)i)))};
        no_timestamps(g, index, q.event);
        if (q.event != ZO_NONE)
            ZO_PUSH(g, g->rules.queried, g->rules.n_queried, g->rules.room_queried, q);
    }
}

/* "undefined if any timestamp event has not been signaled prior" */
void zo_waits_start(zo_graph *g, uint32_t instance)
{
    const uint32_t call = g->commands[g->instances[instance].command].call;
    size_t low = 0, high = g->rules.n_queried;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (g->rules.queried[mid].call < call)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < g->rules.n_queried && g->rules.queried[low].call == call; low++) {
        const zo_object *const e = zo_object_at(g, g->rules.queried[low].event);
        const uint32_t by = e->counter_based ? e->assigned : e->signaller;
        if (e->counter_based ? by != ZO_NONE && zo_before(g, by, instance)
                             : e->signalled && ((by & ZO_CALL_BIT) || zo_before(g, by, instance)))
            continue;
        zo_finding *const f = zo_found(g, "D5", ZO_SPEC, ZO_ERROR);
        if (f == NULL)
            return;
        zo_finding_node(g, f, instance);
        if (by != ZO_NONE)
            zo_finding_node(g, f, by);
        zo_finding_object(g, f, g->rules.queried[low].event);
        ZO_SAY(f, "reads the time stamps of event#%u, and nothing orders that behind its signal", e->base->generation);
        ZO_MISSING(f, "the signal of event#%u before #%llu", e->base->generation, zo_number(g, call));
        ZO_REPAIR(f, "let #%llu wait for event#%u", zo_number(g, call), e->base->generation);
        return;
    }
}

/* ----------------------------------------------------------------------------------------------------------- leave */

/* D1b: the event was signalled twice, and the wait may have come back at the first. */
static void second_signal(zo_graph *g, uint32_t index)
{
    const zo_object *const e = zo_object_at(g, g->calls[index].object);
    uint32_t second = e->attempt;
    if (e->counter_based || !e->signalled)
        return;
    for (size_t k = 0; second == ZO_NONE && e->pending > 0 && k < g->n_chains; k++) {
        const zo_chain *const chain = &g->chains[k];
        for (size_t i = chain->started; chain->device && i < chain->n; i++) {
            const zo_instance *const x = &g->instances[chain->nodes[i]];
            if (g->commands[x->command].signal == g->calls[index].object && x->submit < index)
                second = chain->nodes[i];
        }
    }
    if (second == ZO_NONE || (second & ZO_CALL_BIT) || second == e->signaller ||
        zo_before(g, second, index | ZO_CALL_BIT))
        return;
    zo_finding *const f = zo_found_call(g, "D1b", index, g->calls[index].object, ZO_WARNING);
    if (f == NULL)
        return;
    zo_finding_node(g, f, second);
    if (e->signaller != ZO_NONE)
        zo_finding_node(g, f, e->signaller);
    const unsigned long long of = (unsigned long long)zo_graph_point(g, second).call;
    ZO_SAY(f, "comes back at the event's first signal; the second, by #%llu, has no effect, and is not waited for", of);
    ZO_MISSING(f, "end of #%llu before the return", of);
    ZO_REPAIR(f, "an event of its own for #%llu, or a reset between the signals", of);
}

void zo_waits_leave(zo_graph *g, uint32_t index)
{
    const zo_call *const c = &g->calls[index];
    const zo_object *const o = zo_object_at(g, c->object);
    if ((c->flags & ZO_FAILED) && zt_is_fault(c->result) && g->rules.fault == 0)
        g->rules.fault = index + 1;
    if ((!is_wait(c) && c->func->kind != ZT_K_QUERY) || o == NULL)
        return;
    if (c->result == ZE_RESULT_NOT_READY)
        ZO_PUSH(g, g->unmet, g->n_unmet, g->room_unmet, index);
    else if (c->result == 0 && o->is_event)
        second_signal(g, index);
}

/* ----------------------------------------------------------------------------------------------------- without hope */

/* Why the event was never signalled. @return false if it was. */
static bool hopeless(zo_graph *g, uint32_t event, zo_finding *f)
{
    const zo_object *const e = zo_object_at(g, event);
    const zo_command *in_list = NULL, *submitted = NULL;
    if (e->signalled)
        return false;
    for (size_t i = 0; i < g->n_commands; i++) {
        if (g->commands[i].signal != event)
            continue;
        if (g->commands[i].executions == 0)
            in_list = &g->commands[i];
        else
            submitted = &g->commands[i];
    }
    const char *const name = e->base->kind;
    if (submitted != NULL) {
        ZO_SAY(f, "waits for %s#%u, whose signal by #%llu %s", name, e->base->generation, zo_number(g, submitted->call),
               e->last_reset != ZO_NONE ? "was reset or never came"
                                        : "never came: what it waits for itself never happens");
        zo_finding_call(f, zo_number(g, submitted->call));
        ZO_MISSING(f, "what lets #%llu run", zo_number(g, submitted->call));
    } else if (in_list != NULL) {
        const zo_object *const l = zo_object_at(g, in_list->list);
        ZO_SAY(f, "waits for %s#%u, whose only signal is #%llu in list#%u, which is never executed", name,
               e->base->generation, zo_number(g, in_list->call), l->base->generation);
        zo_finding_call(f, zo_number(g, in_list->call));
        ZO_MISSING(f, "the execution of list#%u", l->base->generation);
        ZO_REPAIR(f, "close and execute list#%u before this wait", l->base->generation);
    } else {
        ZO_SAY(f, "waits for %s#%u, which nothing signals", name, e->base->generation);
        ZO_MISSING(f, "a signal");
        ZO_REPAIR(f, "give the event to the command that is meant");
    }
    return true;
}

static void covers_nothing(zo_graph *g, uint32_t index, uint64_t command)
{
    /* the last wait for a queue before that one: it had nothing to wait for */
    for (uint32_t i = index; i-- > 0 && g->calls[i].number > command;) {
        const zo_call *const c = &g->calls[i];
        if (!is_wait(c) || c->result != 0)
            continue;
        zo_finding *const f = zo_found_call(g, "E4", i, c->object, ZO_WARNING);
        ZO_SAY(f, "covers nothing of #%llu, which stands in a list that was not executed", (unsigned long long)command);
        zo_finding_call(f, command);
        ZO_REPAIR(f, "execute the list first");
        return;
    }
}

/* F5: the device was lost before, and what the wait is for never comes. */
static bool after_fault(zo_graph *g, uint32_t index)
{
    const zo_call *const c = &g->calls[index];
    const uint32_t fault = g->rules.fault;
    const zt_ending *const ending = zt_trace_ending(g->trace);
    const bool died = !(c->flags & ZO_RETURNED) && ending != NULL && ending->signalled; /* in it: that was no wait */
    if (!is_wait(c) || died || fault == 0 || fault - 1 >= index)
        return false;
    zo_finding *const f = zo_found_call(g, "F5", index, c->object, ZO_WARNING);
    ZO_SAY(f, "waits, in vain, though #%llu had said %s: what was submitted is lost", zo_number(g, fault - 1),
           zt_result_name(g->calls[fault - 1].result));
    zo_finding_call(f, zo_number(g, fault - 1));
    ZO_REPAIR(f, "heed the result of #%llu; after a fault the context has to be made anew", zo_number(g, fault - 1));
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- circles */

typedef struct circling {
    zo_graph *g;
    uint32_t *signals; /* by object: a submitted signal of the event that has not run */
    uint32_t *next;    /* by chain: the carrier whose signal the command at its head waits for */
    uint8_t *seen;     /* by chain: 1 on the way, 2 done */
} circling;

static uint32_t head(const zo_graph *g, uint32_t chain)
{
    const zo_chain *const c = &g->chains[chain];
    return c->device && c->started < c->n ? c->nodes[c->started] : ZO_NONE;
}

/* A signal that the command at the carrier's head waits for and that has not run, ZO_NONE. */
static uint32_t awaited(const circling *c, uint32_t chain)
{
    const uint32_t x = head(c->g, chain);
    const zo_command *const command = x == ZO_NONE ? NULL : &c->g->commands[c->g->instances[x].command];
    for (uint32_t i = 0; command != NULL && i < command->n_waits; i++) {
        const uint32_t event = c->g->waits[command->waits + i];
        if (event < c->g->n_objects && !zo_object_at(c->g, event)->signalled && c->signals[event] != ZO_NONE)
            return c->signals[event];
    }
    return ZO_NONE;
}

static void circle(const circling *c, uint32_t start)
{
    zo_graph *const g = c->g;
    zo_finding *const f = zo_found(g, "F2", ZO_SPEC, ZO_ERROR);
    if (f == NULL)
        return;
    uint32_t at = start;
    do {
        zo_finding_node(g, f, head(g, at));
        zo_finding_node(g, f, awaited(c, at));
        at = c->next[at];
    } while (at != start);
    const unsigned long long first = (unsigned long long)f->points[0].call,
                             second = (unsigned long long)f->points[1].call;
    ZO_SAY(f, "a circle: it waits for the signal of #%llu, which cannot come before #%llu itself has ended", second,
           first);
    ZO_MISSING(f, "a signal that does not wait for #%llu", first);
    ZO_REPAIR(f, "on one of the carriers, signal before the wait");
    zo_finding_object(g, f, g->commands[g->instances[awaited(c, start)].command].signal);
}

/* F2: from carrier to carrier, until one comes again. */
static void find_circles(const circling *c)
{
    zo_graph *const g = c->g;
    for (uint32_t k = 0; k < g->n_chains; k++) {
        for (size_t n = g->chains[k].started; g->chains[k].device && n < g->chains[k].n; n++) {
            const uint32_t event = g->commands[g->instances[g->chains[k].nodes[n]].command].signal;
            if (event < g->n_objects && c->signals[event] == ZO_NONE)
                c->signals[event] = g->chains[k].nodes[n];
        }
    }
    for (uint32_t k = 0; k < g->n_chains; k++) {
        const uint32_t signal = awaited(c, k);
        c->next[k] = signal == ZO_NONE ? ZO_NONE : g->instances[signal].chain;
    }
    for (uint32_t k = 0; k < g->n_chains; k++) {
        uint32_t at = k;
        for (; at != ZO_NONE && c->seen[at] == 0; at = c->next[at])
            c->seen[at] = 1;
        if (at != ZO_NONE && c->seen[at] == 1)
            circle(c, at);
        for (at = k; at != ZO_NONE && c->seen[at] == 1; at = c->next[at])
            c->seen[at] = 2;
    }
}

static void circles(zo_graph *g)
{
    bool any = false;
    for (uint32_t k = 0; k < g->n_chains; k++)
        any |= head(g, k) != ZO_NONE;
    if (!any)
        return;
    const circling c = {g, malloc((g->n_objects + 1) * sizeof(uint32_t)), malloc(g->n_chains * sizeof(uint32_t)),
                        calloc(g->n_chains, 1)};
    if (c.signals != NULL && c.next != NULL && c.seen != NULL) {
        memset(c.signals, 0xff, (g->n_objects + 1) * sizeof(uint32_t));
        find_circles(&c);
    } else {
        g->out_of_memory = true;
    }
    free(c.signals);
    free(c.next);
    free(c.seen);
}

/* Waits that ended without success, with what became of them. */
void zo_waits_finish(zo_graph *g)
{
    for (size_t i = 0; i < g->n_calls; i++)
        if (!(g->calls[i].flags & (ZO_RETURNED | ZO_IGNORED)) && is_wait(&g->calls[i]) && g->calls[i].object != ZO_NONE)
            ZO_PUSH(g, g->unmet, g->n_unmet, g->room_unmet, (uint32_t)i);
    bool told = false;
    for (size_t i = 0; i < g->n_unmet; i++) {
        const uint32_t index = g->unmet[i];
        const zo_call *const c = &g->calls[index];
        const zo_object *const o = zo_object_at(g, c->object);
        told = told || after_fault(g, index);
        if (!is_wait(c) || !o->is_event || o->signalled || o->counter_based || o->gone)
            continue;
        zo_finding *const f = zo_found_call(g, "F1", index, c->object, ZO_ERROR);
        if (f == NULL || !hopeless(g, c->object, f))
            continue;
        const uint64_t signaller = f->n_points > 1 ? f->points[1].call : 0;
        if (f->repair[0] != 0 && signaller != 0)
            covers_nothing(g, index, signaller);
    }
    circles(g);
}

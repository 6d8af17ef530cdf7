/* SPDX-License-Identifier: MIT */
/* Submits: whose signal each waits for, whose bytes it reads, and which wait tells the program that it is over. */
#include "internal.h"

#define BLOCK 64u

zm_object *zm_object_at(zm_needs *n, uint32_t index)
{
    return index == ZM_PAGEABLE ? &n->pageable : index < n->objects.n ? &n->objects.at[index] : NULL;
}

void zm_list_begins(zm_needs *n, zm_object *list)
{
    list->contents = zm_node(n, ZM_NONE);
    list->submits = zm_node(n, ZM_NONE);
    list->commands.n = 0;
}

/* --------------------------------------------------------------------------------------------------------------- bytes */

static void reads(zm_needs *n, uint32_t node, const zm_access *a)
{
    const zm_object *const o = zm_object_at(n, a->object);
    for (size_t i = o->writes.n; i > 0; i--) {
        const zm_write *const w = &o->writes.at[i - 1];
        if (i % BLOCK == 0 && o->writes.n - i > 2 * BLOCK) { /* far back: all of them */
            zm_edge_add(n, node, o->blocks.at[i / BLOCK - 1], ZM_E_DATA);
            return;
        }
        if (w->hi <= a->lo || w->lo >= a->hi)
            continue;
        if (w->node != node)
            zm_edge_add(n, node, w->node, ZM_E_DATA);
        if (w->exact && w->lo <= a->lo && w->hi >= a->hi)
            return;
    }
}

static void writes(zm_needs *n, uint32_t node, const zm_access *a)
{
    zm_object *const o = zm_object_at(n, a->object);
    const zm_write *const last = o->writes.n ? &o->writes.at[o->writes.n - 1] : NULL;
    if (last != NULL && last->node == node && last->lo == a->lo && last->hi == a->hi && last->exact == a->exact)
        return;
    const zm_write w = {a->lo, a->hi, node, a->exact};
    if (!ZM_PUSH(n, o->writes, w) || o->writes.n % BLOCK != 0)
        return;
    const uint32_t block = zm_node(n, ZM_NONE);
    for (size_t i = o->writes.n - BLOCK; i < o->writes.n; i++)
        zm_edge_add(n, block, o->writes.at[i].node, ZM_E_DATA);
    if (o->blocks.n > 0)
        zm_edge_add(n, block, o->blocks.at[o->blocks.n - 1], ZM_E_DATA);
    ZM_PUSH(n, o->blocks, block);
}

/* ------------------------------------------------------------------------------------------------------------- signals */

static void comes_before(zm_needs *n, uint32_t call, uint32_t submit)
{
    const zm_before b = {submit, n->calls.at[call].before};
    if (call != submit && ZM_PUSH(n, n->before, b))
        n->calls.at[call].before = (uint32_t)n->before.n - 1;
}

void zm_signalled(zm_needs *n, uint32_t call, uint32_t object, uint32_t node)
{
    zm_object *const o = zm_object_at(n, object);
    if (o == NULL)
        return;
    const uint32_t all = zm_node(n, ZM_NONE);
    zm_edge_add(n, all, node, ZM_E_HARD);
    if (o->signalled != ZM_NONE)
        zm_edge_add(n, all, o->signalled, ZM_E_HARD);
    o->signalled = all;
    ZM_PUSH(n, o->signallers, call);
    for (size_t i = 0; i < o->waiting.n; i++) {
        zm_edge_add(n, n->calls.at[o->waiting.at[i]].node, node, ZM_E_HARD);
        comes_before(n, o->waiting.at[i], call);
    }
    o->waiting.n = 0;
}

void zm_unsignalled(zm_needs *n, uint32_t object, uint32_t node)
{
    zm_object *const o = zm_object_at(n, object);
    if (o == NULL)
        return;
    o->signalled = ZM_NONE;
    o->signallers.n = 0;
    o->base = o->state = node;
}

/* What a command finds is not as it was when it was appended, but as it is at this submit: reset, evicted, ... */
static void needs_state(zm_needs *n, uint32_t node, const zm_command *c)
{
    for (uint32_t i = 0; i < c->n_accesses; i++)
        if (n->accesses.at[c->accesses + i].object != ZM_PAGEABLE)
            zm_edge_add(n, node, zm_state_of(n, n->accesses.at[c->accesses + i].object), ZM_E_HARD);
    for (uint32_t i = 0; i < c->n_waits; i++)
        zm_edge_add(n, node, zm_state_of(n, n->waits.at[c->waits + i]), ZM_E_HARD);
    if (c->signal != ZM_NONE)
        zm_edge_add(n, node, zm_state_of(n, c->signal), ZM_E_HARD);
}

void zm_submitted(zm_needs *n, uint32_t call, uint32_t carrier, const zm_command *c)
{
    const uint32_t node = n->calls.at[call].node;
    zm_object *const o = zm_object_at(n, carrier);
    if (n->calls.at[call].carrier == ZM_NONE) {
        n->calls.at[call].carrier = carrier;
        ZM_PUSH(n, o->open, call);
    }
    if (c == NULL)
        return;
    n->calls.at[call].n_commands++;
    n->calls.at[call].last_signal = c->signal;
    if (c->barrier && c->n_waits == 0)
        n->calls.at[call].barrier_signal = c->signal;
    needs_state(n, node, c);
    for (uint32_t i = 0; i < c->n_waits; i++) {
        zm_object *const event = zm_object_at(n, n->waits.at[c->waits + i]);
        if (event->signalled == ZM_NONE) {
            ZM_PUSH(n, event->waiting, call);
            continue;
        }
        zm_edge_add(n, node, event->signalled, ZM_E_HARD);
        for (size_t k = 0; k < event->signallers.n; k++)
            comes_before(n, call, event->signallers.at[k]);
    }
    for (uint32_t i = 0; i < c->n_accesses; i++)
        if (n->accesses.at[c->accesses + i].read)
            reads(n, node, &n->accesses.at[c->accesses + i]);
    for (uint32_t i = 0; i < c->n_accesses; i++)
        if (n->accesses.at[c->accesses + i].write)
            writes(n, node, &n->accesses.at[c->accesses + i]);
    if (c->reset != ZM_NONE)
        zm_unsignalled(n, c->reset, node);
    if (c->signal != ZM_NONE)
        zm_signalled(n, call, c->signal, node);
}

/* --------------------------------------------------------------------------------------------------------------- waits */

static void told(zm_needs *n, uint32_t call, uint32_t submit, bool all_of_it)
{
    zm_call *const x = &n->calls.at[submit];
    if (x->carrier == ZM_NONE || (x->flags & ZM_C_COVERED) || call == submit)
        return;
    if (all_of_it)
        x->flags |= ZM_C_COVERED;
    if (x->told_by == call) /* lists may wait for parts of each other */
        return;
    x->told_by = call;
    zm_edge_add(n, x->node, n->calls.at[call].node, ZM_E_SYNC);
    zm_edge_add(n, n->calls.at[call].node, x->node, ZM_E_WORK);
    ZM_PUSH(n, n->stack, submit);
}

/* What those on the stack waited for is over as well; without them nobody would know. */
static void told_of_those_before(zm_needs *n, uint32_t call)
{
    while (n->stack.n > 0) {
        const uint32_t via = n->stack.at[--n->stack.n];
        for (uint32_t b = n->calls.at[via].before; b != ZM_NONE; b = n->before.at[b].next) {
            const uint32_t submit = n->before.at[b].call;
            if (n->calls.at[submit].carrier == ZM_NONE || (n->calls.at[submit].flags & ZM_C_COVERED) || n->calls.at[submit].told_by == call)
                continue;
            zm_edge_add(n, n->calls.at[submit].node, n->calls.at[via].node, ZM_E_SYNC);
            told(n, call, submit, n->calls.at[submit].n_commands < 2);
        }
    }
}

void zm_told_of_carrier(zm_needs *n, uint32_t call, uint32_t carrier)
{
    zm_object *const o = zm_object_at(n, carrier);
    for (size_t i = 0; i < o->open.n; i++)
        told(n, call, o->open.at[i], true);
    o->open.n = 0;
    told_of_those_before(n, call);
}

/* Whether the event says that all is over which the submit's carrier had before the command that signals it. */
static bool orders_all(zm_needs *n, uint32_t submit, uint32_t event)
{
    const zm_object *const carrier = zm_object_at(n, n->calls.at[submit].carrier);
    return carrier != NULL && (carrier->in_order || n->calls.at[submit].barrier_signal == event);
}

static void told_of_earlier(zm_needs *n, uint32_t call, uint32_t submit)
{
    zm_object *const o = zm_object_at(n, n->calls.at[submit].carrier);
    size_t left = 0;
    for (size_t i = 0; i < o->open.n; i++) {
        const uint32_t earlier = o->open.at[i];
        if (earlier >= submit) {
            o->open.at[left++] = earlier;
            continue;
        }
        if (!(n->calls.at[earlier].flags & ZM_C_COVERED))
            zm_edge_add(n, n->calls.at[earlier].node, n->calls.at[submit].node, ZM_E_SYNC);
        told(n, call, earlier, true);
    }
    o->open.n = left;
}

void zm_told_of_signal(zm_needs *n, uint32_t call, uint32_t object, bool fence)
{
    zm_object *const o = zm_object_at(n, object);
    if (o->signalled == ZM_NONE)
        return;
    zm_edge_add(n, n->calls.at[call].node, o->signalled, ZM_E_HARD);
    for (size_t i = 0; i < o->signallers.n; i++) {
        const uint32_t submit = o->signallers.at[i];
        const bool all = !fence && orders_all(n, submit, object), last = n->calls.at[submit].last_signal == object;
        told(n, call, submit, fence || n->calls.at[submit].n_commands < 2 || (all && last));
        if (all)
            told_of_earlier(n, call, submit);
    }
    told_of_those_before(n, call);
}

void zm_told_at_once(zm_needs *n, uint32_t call)
{
    n->calls.at[call].flags |= ZM_C_COVERED;
    ZM_PUSH(n, n->stack, call);
    told_of_those_before(n, call);
}

/* ----------------------------------------------------------------------------------------------------------- read-backs */

uint8_t *zm_unfounded(const zm_needs *n, const zm_keep *keep)
{
    uint8_t *const bad = calloc(n->nodes.n + 1, 1);
    if (bad == NULL)
        return NULL;
    for (uint32_t node = 0; node < n->nodes.n; node++) /* lists: their appends come later */
        for (uint32_t e = n->first[node]; e < n->first[node + 1]; e++) {
            const uint32_t call = n->nodes.at[n->edges.at[e].to];
            bad[node] |= n->edges.at[e].kind == ZM_E_COMMAND && call != ZM_NONE && !zm_in(keep, call);
        }
    for (uint32_t node = 0; node < n->nodes.n; node++) /* bytes: their writers come before */
        for (uint32_t e = n->first[node]; e < n->first[node + 1]; e++) {
            const zm_edge *const edge = &n->edges.at[e];
            const uint32_t call = n->nodes.at[edge->to];
            if (edge->kind == ZM_E_DATA || edge->kind == ZM_E_LIST)
                bad[node] |= bad[edge->to] || (call != ZM_NONE && !zm_in(keep, call));
        }
    return bad;
}

bool zm_founded(const zm_needs *n, const zm_keep *keep, const uint8_t *unfounded, uint32_t call, const zm_stretch *where)
{
    enum { MOST = 65536 };
    const zm_object *const o = where->object == ZM_PAGEABLE ? &n->pageable : &n->objects.at[where->object];
    const uint64_t lo = where->addr, hi = where->len > UINT64_MAX - lo ? UINT64_MAX : lo + where->len;
    size_t low = 0, high = o->writes.n;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (n->nodes.at[o->writes.at[mid].node] <= call)
            low = mid + 1;
        else
            high = mid;
    }
    const size_t end = low > MOST ? low - MOST : 0;
    for (size_t i = low; i > end; i--) {
        const zm_write *const w = &o->writes.at[i - 1];
        if (w->hi <= lo || w->lo >= hi)
            continue;
        if (!zm_in(keep, n->nodes.at[w->node]) || unfounded[w->node])
            return false;
        if (w->exact && w->lo <= lo && w->hi >= hi)
            return true;
    }
    return end == 0;
}

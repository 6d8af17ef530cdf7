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
        if (i % BLOCK == 0 && o->writes.n - i > 2 * BLOCK && i / BLOCK <= o->blocks.n) { /* far back: all of them */
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

static void comes_before(zm_needs *n, uint32_t call, uint32_t submit, uint32_t event)
{
    const zm_before b = {submit, n->calls.at[call].before, event};
    if (call != submit && ZM_PUSH(n, n->before, b))
        n->calls.at[call].before = (uint32_t)n->before.n - 1;
}

/*
 * Those that an event without a reset has had: of whom somebody has been told nothing is left to tell, and of the others the newest are
 * enough, lest each wait looks at all.
 */
static void forget_signallers(zm_needs *n, zm_object *o)
{
    enum { MOST = 16 };
    size_t left = 0;
    if (o->signallers.n < 2 * MOST)
        return;
    for (size_t i = 0; i < o->signallers.n; i++)
        if (!(n->calls.at[o->signallers.at[i]].flags & ZM_C_COVERED))
            o->signallers.at[left++] = o->signallers.at[i];
    if (left > MOST)
        memmove(o->signallers.at, o->signallers.at + (left - MOST), MOST * sizeof(*o->signallers.at));
    o->signallers.n = left < MOST ? left : MOST;
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
    forget_signallers(n, o);
    ZM_PUSH(n, o->signallers, call);
    for (size_t i = 0; i < o->waiting.n; i++) {
        zm_edge_add(n, n->calls.at[o->waiting.at[i]].node, node, ZM_E_HARD);
        comes_before(n, o->waiting.at[i], call, object);
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

/*
 * Barriers and waits that stand for themselves order the submits around them. A submit needs the next barrier behind it, unless the
 * program knows by then that it is over, and what holds it back.
 */
static void on_carrier(zm_needs *n, uint32_t call, zm_object *carrier, const zm_command *c)
{
    zm_call *const x = &n->calls.at[call];
    const bool orders = c->barrier && c->n_waits == 0;
    if (carrier->hold != ZM_NONE && carrier->hold != call && !(n->calls.at[carrier->hold].flags & ZM_C_COVERED))
        zm_edge_add(n, x->node, n->calls.at[carrier->hold].node, ZM_E_SYNC);
    for (size_t i = 0; orders && i < carrier->loose.n; i++) {
        const uint8_t flags = n->calls.at[carrier->loose.at[i]].flags;
        if (!(flags & (ZM_C_COVERED | ZM_C_ENDS_ORDERED)))
            zm_edge_add(n, n->calls.at[carrier->loose.at[i]].node, x->node, ZM_E_SYNC);
    }
    if (orders) {
        carrier->loose.n = 0;
        x->flags |= ZM_C_ENDS_ORDERED;
    } else {
        x->flags &= (uint8_t)~ZM_C_ENDS_ORDERED;
    }
    if (!carrier->in_order && (carrier->loose.n == 0 || carrier->loose.at[carrier->loose.n - 1] != call))
        ZM_PUSH(n, carrier->loose, call);
    if (c->holds)
        carrier->hold = call;
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
    on_carrier(n, call, o, c);
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
            comes_before(n, call, event->signallers.at[k], n->waits.at[c->waits + i]);
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
    if (all_of_it) {
        x->flags |= ZM_C_COVERED;
        x->over = call;
    }
    if (x->told_by == call) /* lists may wait for parts of each other */
        return;
    x->told_by = call;
    zm_edge_add(n, x->node, n->calls.at[call].node, ZM_E_SYNC);
    zm_edge_add(n, n->calls.at[call].node, x->node, ZM_E_WORK);
    ZM_PUSH(n, n->stack, submit);
}

/* Whether the event says that all is over which the submit's carrier had before the command that signals it. */
static bool orders_all(zm_needs *n, uint32_t submit, uint32_t event)
{
    const zm_object *const carrier = zm_object_at(n, n->calls.at[submit].carrier);
    return carrier != NULL && (carrier->in_order || n->calls.at[submit].barrier_signal == event);
}

/* `sure`: not only a part of the submit may be what is over. */
static void told_of_earlier(zm_needs *n, uint32_t call, uint32_t submit, bool sure)
{
    enum { MOST = 256 }; /* of those that stay open, lest each wait looks at all */
    zm_object *const o = zm_object_at(n, n->calls.at[submit].carrier);
    const size_t first = sure || o->open.n < MOST ? 0 : o->open.n - MOST;
    size_t left = first;
    for (size_t i = first; i < o->open.n; i++) {
        const uint32_t earlier = o->open.at[i];
        if (earlier >= submit || !sure)
            o->open.at[left++] = earlier;
        if (earlier >= submit || (n->calls.at[earlier].flags & ZM_C_COVERED) || n->calls.at[earlier].told_by == call)
            continue;
        zm_edge_add(n, n->calls.at[earlier].node, n->calls.at[submit].node, ZM_E_SYNC);
        told(n, call, earlier, sure);
    }
    o->open.n = left;
}

/* What the submit's event says, and what is known only since it is over. */
static void told_by_event(zm_needs *n, uint32_t call, uint32_t submit, uint32_t event, bool sure)
{
    const bool all = orders_all(n, submit, event), last = n->calls.at[submit].last_signal == event;
    told(n, call, submit, sure && (n->calls.at[submit].n_commands < 2 || (all && last)));
    if (all)
        told_of_earlier(n, call, submit, sure);
}

/* What those on the stack waited for is over as well; without them nobody would know. */
static void told_of_those_before(zm_needs *n, uint32_t call)
{
    while (n->stack.n > 0) {
        const uint32_t via = n->stack.at[--n->stack.n];
        for (uint32_t b = n->calls.at[via].before; b != ZM_NONE; b = n->before.at[b].next) {
            const zm_before *const before = &n->before.at[b];
            const zm_call *const x = &n->calls.at[before->call];
            if (x->carrier == ZM_NONE || (x->flags & ZM_C_COVERED) || x->told_by == call)
                continue;
            zm_edge_add(n, x->node, n->calls.at[via].node, ZM_E_SYNC);
            told_by_event(n, call, before->call, before->event, (n->calls.at[via].flags & ZM_C_COVERED) != 0);
        }
    }
}

void zm_told_of_carrier(zm_needs *n, uint32_t call, uint32_t carrier)
{
    zm_object *const o = zm_object_at(n, carrier);
    for (size_t i = 0; i < o->open.n; i++)
        told(n, call, o->open.at[i], true);
    o->open.n = o->loose.n = 0;
    told_of_those_before(n, call);
}

void zm_told_of_signal(zm_needs *n, uint32_t call, uint32_t object, bool fence)
{
    zm_object *const o = zm_object_at(n, object);
    if (o->signalled == ZM_NONE)
        return;
    zm_edge_add(n, n->calls.at[call].node, o->signalled, ZM_E_HARD);
    for (size_t i = 0; i < o->signallers.n; i++) {
        const uint32_t submit = o->signallers.at[i];
        if (fence)
            told(n, call, submit, true);
        else
            told_by_event(n, call, submit, object, true);
    }
    told_of_those_before(n, call);
}

void zm_told_at_once(zm_needs *n, uint32_t call)
{
    n->calls.at[call].flags |= ZM_C_COVERED;
    n->calls.at[call].over = call;
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

/* @return how many of the object's writes were submitted by that call. */
static size_t writes_until(const zm_needs *n, const zm_object *o, uint32_t call)
{
    size_t low = 0, high = o->writes.n;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (n->nodes.at[o->writes.at[mid].node] <= call)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static const zm_object *memory_of(const zm_needs *n, const zm_stretch *where)
{
    return where->object == ZM_PAGEABLE ? &n->pageable : &n->objects.at[where->object];
}

bool zm_left_out_writes(const zm_needs *n, const zm_keep *keep, uint32_t call, const zm_stretch *where)
{
    enum { MOST = 4096 };
    const zm_object *const o = memory_of(n, where);
    const uint64_t lo = where->addr, hi = where->len > UINT64_MAX - lo ? UINT64_MAX : lo + where->len;
    const size_t until = writes_until(n, o, call);
    for (size_t i = until; i > 0 && i + MOST > until; i--) {
        const zm_write *const w = &o->writes.at[i - 1];
        const uint32_t submit = n->nodes.at[w->node];
        if (w->hi > lo && w->lo < hi && !zm_in(keep, submit) && (n->calls.at[submit].over == ZM_NONE || n->calls.at[submit].over >= call))
            return true;
    }
    return false;
}

bool zm_founded(const zm_needs *n, const zm_keep *keep, const uint8_t *unfounded, uint32_t call, const zm_stretch *where)
{
    enum { MOST = 65536 };
    const zm_object *const o = memory_of(n, where);
    const uint64_t lo = where->addr, hi = where->len > UINT64_MAX - lo ? UINT64_MAX : lo + where->len;
    const size_t low = writes_until(n, o, call);
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

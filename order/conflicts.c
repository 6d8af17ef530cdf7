/* SPDX-License-Identifier: MIT */
/* Pairs that must not be unordered, found as the simulation meets the second of them. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "kernels.h"

#define HISTORY_MAX 2048u   /* accesses of one allocation that are remembered */
#define GIVEN_MAX 256u      /* of them, those of kernels */
#define GIVEN_NEAR 8u       /* launches that a launch with the same memory is compared with */
#define GIVEN_PAIRS 64u     /* unordered ones for one allocation */
#define CONFLICTS_MAX (1u << 20)
#define USES_MAX 256u       /* of an event in one round */

static bool told_before(const zo_graph *g, uint32_t a, uint32_t b)
{
    if ((a & ZO_CALL_BIT) || !(b & ZO_CALL_BIT))
        return false;
    const zo_instance *const x = &g->instances[a];
    return zo_clock_at(g->calls[b & ~ZO_CALL_BIT].observed, x->chain) >= x->position;
}

void zo_conflict_add(zo_graph *g, zo_conflict c)
{
    if (c.kind == ZO_X_HOST_WRITE && c.object == ZO_PAGEABLE && (g->habits & ZO_H_HOST_COPIED))
        return;
    for (size_t i = g->n_conflicts, seen = 0; i > 0 && seen < 64; i--, seen++) {
        const zo_conflict *const o = &g->conflicts[i - 1];
        if (o->kind == c.kind && o->a == c.a && o->b == c.b && o->object == c.object)
            return;
    }
    if (g->n_conflicts >= zo_limit(g, CONFLICTS_MAX)) {
        g->doubts.conflicts++;
        return;
    }
    c.possible = told_before(g, c.a, c.b);
    if (!c.possible && !(c.b & ZO_CALL_BIT) && !(c.a & ZO_CALL_BIT)) { /* told of the first before the second was submitted */
        const zo_call *const submit = &g->calls[g->instances[c.b].submit];
        c.possible = zo_clock_at(submit->observed, g->instances[c.a].chain) >= g->instances[c.a].position;
    }
    ZO_PUSH(g, g->conflicts, g->n_conflicts, g->room_conflicts, c);
}

static bool overlap(const zo_access *a, const zo_access *b)
{
    return a->mem == b->mem && a->lo < b->hi && b->lo < a->hi;
}

/* ------------------------------------------------------------------------------------------------------------ memory */

static void race(zo_graph *g, zo_object *mem, const zo_history *old, const zo_access *access, uint32_t node)
{
    mem->facts.given_pairs += old->access.given && access->given && mem->facts.given_pairs < GIVEN_PAIRS;
    zo_conflict_add(g, (zo_conflict){.kind = ZO_X_RACE, .a = old->node, .b = node, .object = access->mem,
                         .lo = old->access.lo > access->lo ? old->access.lo : access->lo,
                         .hi = old->access.hi < access->hi ? old->access.hi : access->hi,
                         .coarse = old->access.given || access->given ? 2 : old->access.coarse || access->coarse});
}

static bool over_by_clock(const zo_graph *g, uint32_t x, uint32_t y)
{
    return zo_clock_at(g->instances[y].clock, g->instances[x].chain) >= g->instances[x].position;
}

/* Place of the oldest of the newest entries that launches left. */
static size_t near_given(zo_graph *g, const zo_object *mem)
{
    size_t i = mem->n_history;
    if (mem->facts.given_pairs >= GIVEN_PAIRS && i > 0) { /* more of the same would be told without end */
        g->doubts.conflicts++;
        return i;
    }
    for (unsigned n = 0; i > 0 && n < GIVEN_NEAR; i--)
        n += mem->history[i - 1].access.given;
    return i;
}

static void forget_given(zo_graph *g, zo_object *mem, size_t n)
{
    size_t kept = 0;
    g->doubts.accesses += n;
    for (size_t i = 0; i < mem->n_history; i++) {
        const bool drop = n > 0 && mem->history[i].access.given;
        n -= drop;
        if (!drop)
            mem->history[kept++] = mem->history[i];
    }
    mem->n_history = kept;
}

static void access_memory(zo_graph *g, const zo_access *access, uint32_t node)
{
    zo_object *const mem = zo_object_at(g, access->mem);
    if (mem == NULL)
        return;
    const size_t room = zo_limit(g, HISTORY_MAX);
    const bool full = mem->n_history >= room;
    const size_t near = access->given && access->write ? near_given(g, mem) : 0;
    size_t kept = 0, n_given = 0;
    for (size_t i = 0; i < mem->n_history; i++) {
        const zo_history h = mem->history[i];
        bool drop = false;
        if (h.node != node && overlap(&h.access, access)) {
            const bool given = h.access.given && access->given;
            const bool clash = (h.access.write || access->write) && (!given || i >= near);
            const bool covered = access->lo <= h.access.lo && access->hi >= h.access.hi && !access->coarse &&
                                 (access->write || !h.access.write) && (given || !access->given);
            if ((clash || covered)) {
                /* what two reads drop of one another is worth no search while there is room for both */
                const bool ordered = clash || (full && !given) ? zo_before(g, h.node, node) : over_by_clock(g, h.node, node);
                if (clash && !ordered && !zo_before(g, node, h.node))
                    race(g, mem, &h, access, node);
                drop = covered && ordered;
            }
        }
        if (!drop) {
            n_given += h.access.given;
            mem->history[kept++] = h;
        }
    }
    mem->n_history = kept;
    if (access->given && n_given >= zo_limit(g, GIVEN_MAX))
        forget_given(g, mem, n_given / 4 + 1);
    if (mem->n_history >= room) {
        const size_t old = room / 4 + 1;
        memmove(mem->history, mem->history + old, (mem->n_history - old) * sizeof(*mem->history));
        mem->n_history -= old;
        g->doubts.accesses += old;
    }
    const zo_history h = {*access, node};
    ZO_PUSH(g, mem->history, mem->n_history, mem->room_history, h);
}

void zo_saw_start(zo_graph *g, uint32_t index)
{
    const zo_command *const c = &g->commands[g->instances[index].command];
    for (uint32_t i = 0; i < c->n_accesses; i++) {
        const zo_access access = g->accesses[c->accesses + i];
        access_memory(g, &access, index);
    }
    zo_rules_start(g, index);
}

bool zo_each_user(zo_graph *g, const zo_access *what, zo_seen_fn seen, void *ctx)
{
    zo_object *const mem = zo_object_at(g, what->mem);
    for (size_t i = 0; mem != NULL && i < mem->n_history; i++) {
        const zo_history h = mem->history[i];
        if (!(h.node & ZO_CALL_BIT) && overlap(&h.access, what) && seen(ctx, g, h.node, &h.access))
            return true;
    }
    for (size_t k = 0; k < g->n_chains; k++) {
        const zo_chain *const chain = &g->chains[k];
        for (size_t i = chain->started; chain->device && i < chain->n; i++) {
            const zo_command *const c = &g->commands[g->instances[chain->nodes[i]].command];
            for (uint32_t j = 0; j < c->n_accesses; j++) {
                const zo_access access = g->accesses[c->accesses + j];
                if (overlap(&access, what) && seen(ctx, g, chain->nodes[i], &access))
                    return true;
            }
        }
    }
    return false;
}

typedef struct visit {
    const zo_access *what;
    uint32_t node; /* the host call */
    int kind;
} visit;

static bool see_in_flight(void *ctx, zo_graph *g, uint32_t x, const zo_access *access)
{
    visit *const v = ctx;
    if (!zo_before(g, x, v->node))
        zo_conflict_add(g, (zo_conflict){.kind = v->kind, .a = x, .b = v->node, .object = v->what->mem, .lo = v->what->lo,
                                         .hi = v->what->hi, .coarse = access->coarse});
    return false;
}

static bool see_reaching(void *ctx, zo_graph *g, uint32_t x, const zo_access *access)
{
    const visit *const v = ctx;
    const zo_command *const c = &g->commands[g->instances[x].command];
    (void)access;
    for (uint32_t i = 0; i < c->n_accesses; i++)
        if (g->accesses[c->accesses + i].mem == v->what->mem)
            return false; /* it names it */
    if (zo_before(g, x, v->node))
        return false;
    const uint32_t through = zo_pointer_seen(g, v->what->mem, c);
    zo_conflict_add(g, (zo_conflict){.kind = v->kind, .a = x, .b = v->node, .object = v->what->mem, .lo = v->what->lo, .hi = v->what->hi,
                                     .through = through == ZO_NONE ? 0 : through + 1, .coarse = through == ZO_NONE ? 2 : 0});
    return false;
}

void zo_saw_memory_gone(zo_graph *g, uint32_t call, int kind)
{
    const zo_call *const c = &g->calls[call];
    const zo_access all = {.lo = c->lo, .hi = c->hi, .mem = c->object, .write = 1};
    visit v = {.what = &all, .node = call | ZO_CALL_BIT, .kind = kind};
    zo_each_user(g, &all, see_in_flight, &v);
    v.kind = kind == ZO_X_EVICT ? ZO_X_EVICT_REACHED : ZO_X_FREE_REACHED;
    zo_each_reacher(g, c->object, false, see_reaching, &v);
}

/* ----------------------------------------------------------------------------------------------------------- objects */

static void in_range(zo_graph *g, uint32_t call, uint32_t object, const zo_range *r, int kind)
{
    const uint32_t node = call | ZO_CALL_BIT;
    const zo_chain *const chain = &g->chains[r->chain];
    /* the last one first: if it and all before it are over there is no more to look at */
    if (zo_clock_at(g->calls[call].clock, r->chain) >= r->hi)
        return;
    unsigned found = 0;
    for (uint32_t i = r->hi; i >= r->lo && i > 0 && found < 8; i--) {
        const uint32_t x = chain->nodes[i - 1];
        if (zo_clock_at(g->calls[call].clock, r->chain) >= i)
            break;
        if (g->instances[x].submit != call && !zo_before(g, x, node)) {
            zo_conflict_add(g, (zo_conflict){.kind = kind, .a = x, .b = node, .object = object});
            found++;
        }
    }
}

void zo_saw_object_gone(zo_graph *g, uint32_t call, uint32_t index, int kind)
{
    zo_object *const o = zo_object_at(g, index);
    if (o == NULL)
        return;
    if (kind == ZO_X_CARRIER_GONE) {
        const zo_range all = {o->chain, 1, (uint32_t)(o->chain == ZO_NONE ? 0 : g->chains[o->chain].n)};
        if (all.hi > 0)
            in_range(g, call, index, &all, kind);
        return;
    }
    if (kind == ZO_X_KERNEL_GONE) {
        const zo_access whole = {.mem = index, .hi = 1};
        visit v = {.what = &whole, .node = call | ZO_CALL_BIT, .kind = kind};
        zo_each_user(g, &whole, see_in_flight, &v);
        return;
    }
    if (kind == ZO_X_EVENT_GONE) {
        for (size_t i = 0; i < o->n_uses; i++)
            if (!(o->uses[i].node & ZO_CALL_BIT) && !zo_before(g, o->uses[i].node, call | ZO_CALL_BIT))
                zo_conflict_add(g, (zo_conflict){.kind = kind, .a = o->uses[i].node, .b = call | ZO_CALL_BIT, .object = index});
        return;
    }
    size_t kept = 0;
    for (size_t i = 0; i < o->n_submits; i++) {
        const zo_range r = o->submits[i];
        in_range(g, call, index, &r, kind);
        if (zo_clock_at(g->calls[call].clock, r.chain) < r.hi)
            o->submits[kept++] = r;
    }
    o->n_submits = kept;
}

/* ------------------------------------------------------------------------------------------------------------ events */

static void event_conflict(zo_graph *g, uint32_t event, uint32_t a, uint32_t b)
{
    if (a != b && !zo_before(g, a, b) && !zo_before(g, b, a))
        zo_conflict_add(g, (zo_conflict){.kind = ZO_X_EVENT_RESET, .a = a, .b = b, .object = event});
}

/* Submitted signals and waits that have not run yet. */
static void pending_uses(zo_graph *g, uint32_t event, uint32_t reset)
{
    for (size_t k = 0; k < g->n_chains; k++) {
        const zo_chain *const chain = &g->chains[k];
        for (size_t i = chain->started; chain->device && i < chain->n; i++) {
            const uint32_t x = chain->nodes[i];
            const zo_command *const c = &g->commands[g->instances[x].command];
            bool uses = c->signal == event;
            for (uint32_t j = 0; j < c->n_waits; j++)
                uses |= g->waits[c->waits + j] == event;
            if (uses && x != reset)
                zo_conflict_add(g, (zo_conflict){.kind = ZO_X_EVENT_RESET, .a = x, .b = reset, .object = event});
        }
    }
}

void zo_saw_event_use(zo_graph *g, uint32_t event, uint32_t node, int how)
{
    zo_object *const e = zo_object_at(g, event);
    if (how == ZO_RESETS) {
        for (size_t i = 0; i < e->n_uses; i++)
            if (!((e->uses[i].node & ZO_CALL_BIT) && (node & ZO_CALL_BIT)))
                event_conflict(g, event, e->uses[i].node, node);
        if (node & ZO_CALL_BIT)
            pending_uses(g, event, node);
        e->n_uses = 0;
        return;
    }
    if (e->last_reset != ZO_NONE && !(e->last_reset & ZO_CALL_BIT && node & ZO_CALL_BIT))
        event_conflict(g, event, e->last_reset, node);
    if (how == ZO_WAITS) {
        /* another signal of this event was to come, and this wait did not wait for it */
        if (e->attempt != ZO_NONE && e->attempt != e->signaller && !(e->attempt & ZO_CALL_BIT) && !zo_before(g, e->attempt, node))
            zo_saw_stale(g, event, node, e->attempt);
        for (size_t k = 0; e->pending > 0 && k < g->n_chains; k++) {
            const zo_chain *const chain = &g->chains[k];
            for (size_t i = chain->started; chain->device && i < chain->n; i++) {
                const zo_instance *const s = &g->instances[chain->nodes[i]];
                if (g->commands[s->command].signal == event && s->submit < g->instances[node].submit)
                    zo_saw_stale(g, event, node, chain->nodes[i]);
            }
        }
    }
    for (size_t i = 0; i < e->n_uses; i++)
        if (e->uses[i].node == node && e->uses[i].how == how)
            return;
    const size_t room = zo_limit(g, USES_MAX);
    if (e->n_uses >= room) { /* a round that never ends: the newest matter */
        const size_t old = room / 2 + 1;
        memmove(e->uses, e->uses + old, (e->n_uses - old) * sizeof(*e->uses));
        e->n_uses -= old;
        g->doubts.uses += old;
    }
    const zo_use use = {node, (uint8_t)how};
    ZO_PUSH(g, e->uses, e->n_uses, e->room_uses, use);
}

void zo_saw_stale(zo_graph *g, uint32_t event, uint32_t waiter, uint32_t signaller)
{
    zo_conflict_add(g, (zo_conflict){.kind = ZO_X_STALE, .a = signaller, .b = waiter, .object = event});
}

/* ------------------------------------------------------------------------------------------------------------ finish */

void zo_finish_conflicts(zo_graph *g)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->n_conflicts; i++) {
        zo_conflict c = g->conflicts[i];
        /* a was still to come when b did: if b is needed for it, no order can have it the other way round */
        c.forced = !(c.a & ZO_CALL_BIT) && g->instances[c.a].order != 0 && zo_before(g, c.b, c.a);
        if (c.kind == ZO_X_HOST_WRITE && !(c.a & ZO_CALL_BIT) && g->instances[c.a].order != 0) {
            /* the write was over when the call began that found it, even if that call lets the command run */
            const zo_call *const seen = &g->calls[c.b & ~ZO_CALL_BIT];
            c.forced = zo_clock_at(g->instances[c.a].clock, seen->chain) + 1 >= seen->position && seen->number > g->calls[g->instances[c.a].submit].number;
        }
        const bool two_commands = !(c.a & ZO_CALL_BIT) && !(c.b & ZO_CALL_BIT);
        if (c.forced && two_commands && c.kind != ZO_X_STALE)
            continue; /* pending at the time, and ordered in the end */
        g->conflicts[kept++] = c;
    }
    g->n_conflicts = kept;
}

size_t zo_graph_conflicts(const zo_graph *g, const zo_conflict **conflicts)
{
    *conflicts = g->conflicts;
    return g->n_conflicts;
}

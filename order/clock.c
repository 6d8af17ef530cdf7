/* SPDX-License-Identifier: MIT */
/* Clocks never change once made: many nodes share one. And the search for what no clock can say. */
#include <stdlib.h>
#include <string.h>

#include "graph.h"

struct zo_block {
    struct zo_block *next;
    size_t used, room;
};
#define BLOCK (1u << 20)

static zo_clock *new_clock(zo_graph *g, uint32_t n)
{
    const size_t size = (sizeof(zo_clock) + n * sizeof(uint32_t) + 7) & ~(size_t)7;
    struct zo_block *b = g->blocks;
    if (b == NULL || b->used + size > b->room) {
        const size_t room = size > BLOCK ? size : BLOCK;
        b = calloc(1, sizeof(*b) + room);
        if (b == NULL) {
            g->out_of_memory = true;
            return NULL;
        }
        b->room = room;
        b->next = g->blocks;
        g->blocks = b;
        g->clock_bytes += room;
    }
    zo_clock *const c = (zo_clock *)((char *)(b + 1) + b->used);
    b->used += size;
    c->n = n;
    return c;
}

void zo_clocks_free(zo_graph *g)
{
    while (g->blocks != NULL) {
        struct zo_block *const b = g->blocks;
        g->blocks = b->next;
        free(b);
    }
}

static bool covers(const zo_clock *a, const zo_clock *b)
{
    for (uint32_t i = 0; i < b->n; i++)
        if (b->at[i] > zo_clock_at(a, i))
            return false;
    return true;
}

const zo_clock *zo_clock_join(zo_graph *g, const zo_clock *a, const zo_clock *b)
{
    if (a == b || b == NULL || (a != NULL && covers(a, b)))
        return a;
    if (a == NULL || covers(b, a))
        return b;
    const uint32_t n = a->n > b->n ? a->n : b->n;
    zo_clock *const c = new_clock(g, n);
    for (uint32_t i = 0; c != NULL && i < n; i++)
        c->at[i] = zo_clock_at(a, i) > zo_clock_at(b, i) ? zo_clock_at(a, i) : zo_clock_at(b, i);
    return c ? c : a;
}

const zo_clock *zo_clock_set(zo_graph *g, const zo_clock *a, uint32_t chain, uint32_t value)
{
    if (zo_clock_at(a, chain) >= value)
        return a;
    const uint32_t old = a ? a->n : 0, n = old > chain ? old : chain + 1;
    zo_clock *const c = new_clock(g, n);
    if (c == NULL)
        return a;
    memset(c->at, 0, n * sizeof(*c->at));
    if (a != NULL)
        memcpy(c->at, a->at, old * sizeof(*c->at));
    c->at[chain] = value;
    return c;
}

/* ------------------------------------------------------------------------------------------------------------ search */

typedef struct search {
    zo_graph *g;
    uint32_t chain, position, order; /* what is looked for: that command has ended */
    uint32_t *stack;
    size_t n, room;
    uint64_t steps;
    bool found;
} search;

/* Instances are visited for their start; whether one has ended is decided where the edge is followed. */
static void push(search *s, uint32_t node)
{
    zo_graph *const g = s->g;
    const size_t mark = node & ZO_CALL_BIT ? g->n_instances + (node & ~ZO_CALL_BIT) : node;
    const uint32_t order = node & ZO_CALL_BIT ? g->calls[node & ~ZO_CALL_BIT].end_order : g->instances[node].order;
    if (mark >= g->n_marks || g->marks[mark] == g->stamp || (order != 0 && order < s->order))
        return;
    g->marks[mark] = g->stamp;
    ZO_PUSH(g, s->stack, s->n, s->room, node);
}

static void follow(search *s, const zo_range *r)
{
    const zo_chain *const chain = &s->g->chains[r->chain];
    if (r->chain == s->chain && r->lo <= s->position && s->position <= r->hi)
        s->found = true;
    /* starts are in order: the last one knows what all before it know */
    if (r->hi > 0 && r->hi <= chain->n)
        push(s, chain->device ? chain->nodes[r->hi - 1] : chain->nodes[r->hi - 1] | ZO_CALL_BIT);
}

static void visit(search *s, uint32_t node)
{
    zo_graph *const g = s->g;
    if (node & ZO_CALL_BIT) {
        const zo_call *const call = &g->calls[node & ~ZO_CALL_BIT];
        for (uint32_t i = 0; i < call->n_preds; i++)
            follow(s, &g->ranges[call->preds + i]);
        if (call->previous_sync != 0)
            push(s, (call->previous_sync - 1) | ZO_CALL_BIT);
        return;
    }
    const zo_instance *const x = &g->instances[node];
    if (zo_clock_at(x->clock, s->chain) >= s->position)
        s->found = true;
    for (uint32_t i = 0; i < x->n_preds; i++)
        follow(s, &g->ranges[x->preds + i]);
    if (x->position > 1)
        push(s, g->chains[x->chain].nodes[x->position - 2]);
    const zo_call *const submit = &g->calls[x->submit];
    if (submit->previous_sync != 0)
        push(s, (submit->previous_sync - 1) | ZO_CALL_BIT);
}

static bool prepare_marks(zo_graph *g)
{
    const size_t wanted = g->n_instances + g->n_calls;
    if (wanted > g->n_marks) {
        const size_t room = wanted + wanted / 2 + 1024;
        uint32_t *const grown = calloc(room, sizeof(*grown));
        if (grown == NULL) {
            g->out_of_memory = true;
            return false;
        }
        free(g->marks);
        g->marks = grown;
        g->n_marks = room;
        g->stamp = 0;
    }
    if (++g->stamp == 0) {
        memset(g->marks, 0, g->n_marks * sizeof(*g->marks));
        g->stamp = 1;
    }
    return true;
}

/* Whether the command has ended before y begins. */
static bool ended_before(zo_graph *g, uint32_t x, uint32_t y)
{
    const zo_instance *const c = &g->instances[x];
    const zo_clock *const clock = y & ZO_CALL_BIT ? g->calls[y & ~ZO_CALL_BIT].clock : g->instances[y].clock;
    if (zo_clock_at(clock, c->chain) >= c->position)
        return true;
    if (c->order == 0 || (!(y & ZO_CALL_BIT) && g->instances[y].order == 0) || !prepare_marks(g))
        return false;
    search s = {.g = g, .chain = c->chain, .position = c->position, .order = c->order};
    if (y & ZO_CALL_BIT) { /* its own success comes behind its beginning */
        const zo_call *const call = &g->calls[y & ~ZO_CALL_BIT];
        if (call->previous_sync != 0)
            push(&s, (call->previous_sync - 1) | ZO_CALL_BIT);
    } else {
        visit(&s, y);
    }
    while (s.n > 0 && !s.found && s.steps++ < g->budget)
        visit(&s, s.stack[--s.n]);
    g->doubtful += !s.found && s.n > 0;
    free(s.stack);
    return s.found || s.n > 0; /* given up: no finding is made of what was not looked through */
}

bool zo_before(zo_graph *g, uint32_t x, uint32_t y)
{
    if (x == y || x == ZO_NONE || y == ZO_NONE)
        return false;
    if (!(x & ZO_CALL_BIT))
        return ended_before(g, x, y);
    const zo_call *const h = &g->calls[x & ~ZO_CALL_BIT];
    const zo_clock *const clock = y & ZO_CALL_BIT ? g->calls[y & ~ZO_CALL_BIT].clock : g->instances[y].clock;
    return zo_clock_at(clock, h->chain) >= h->position;
}

/* SPDX-License-Identifier: MIT */
/* Clocks never change once made: many nodes share one. */
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

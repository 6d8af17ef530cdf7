/* SPDX-License-Identifier: MIT */
/*
 * Whether x is over before y begins: by y's clock, else by a search back from y. What a search came to is remembered, since a chain never
 * unlearns: if x was over when one command of a carrier started, it is over for all behind it, and if it was not, it was not for those before.
 */
#include <stdlib.h>
#include <string.h>

#include "graph.h"

#define ROWS        4096u /* commands of which it is remembered */
#define MOST_CHAINS 1024u
#define ENOUGH      (1ull << 30) /* steps of all searches; then each is kept short */
#define SHORT       1024u

/* Of a chain: from which position on x is known to be over, and up to which it is known not to be. A thread's position: the return of that call. */
typedef struct known {
    uint32_t from, not_to;
} known;

struct zo_memo {
    uint32_t width;
    uint32_t of[ROWS]; /* command + 1 */
    known rows[];
};

typedef struct search {
    zo_graph *g;
    known *row; /* NULL: nothing is remembered */
    uint32_t chain, position, order; /* what is looked for: that command has ended */
    size_t n, at; /* of g->stack: seen, looked through */
    bool found;
} search;

static known *row_of(zo_graph *g, uint32_t x)
{
    if (g->options.without != 0 || g->n_chains > MOST_CHAINS)
        return NULL;
    if (g->memo == NULL || g->memo->width < g->n_chains) {
        const uint32_t width = (uint32_t)g->n_chains + 8;
        free(g->memo);
        g->memo = calloc(1, sizeof(*g->memo) + (size_t)ROWS * width * sizeof(known));
        if (g->memo == NULL)
            return NULL; /* slower */
        g->memo->width = width;
    }
    known *const row = g->memo->rows + (size_t)(x % ROWS) * g->memo->width;
    if (g->memo->of[x % ROWS] != x + 1) {
        g->memo->of[x % ROWS] = x + 1;
        memset(row, 0, g->memo->width * sizeof(*row));
    }
    return row;
}

static known *place_of(const search *s, uint32_t node, uint32_t *position)
{
    const zo_graph *const g = s->g;
    if (s->row == NULL)
        return NULL;
    if (node & ZO_CALL_BIT) {
        *position = g->calls[node & ~ZO_CALL_BIT].position;
        return &s->row[g->calls[node & ~ZO_CALL_BIT].chain];
    }
    *position = g->instances[node].position;
    return &s->row[g->instances[node].chain];
}

static void remember(const search *s, uint32_t node, bool over)
{
    uint32_t position;
    known *const k = place_of(s, node, &position);
    if (k == NULL)
        return;
    if (over && (k->from == 0 || position < k->from))
        k->from = position;
    else if (!over && position > k->not_to)
        k->not_to = position;
}

/* A command counts from its start, a call from its return; whether a command has ended is decided where the edge is followed. */
static void push(search *s, uint32_t node)
{
    zo_graph *const g = s->g;
    const size_t mark = node & ZO_CALL_BIT ? g->n_instances + (node & ~ZO_CALL_BIT) : node;
    const uint32_t order = node & ZO_CALL_BIT ? g->calls[node & ~ZO_CALL_BIT].end_order : g->instances[node].order;
    if (mark >= g->n_marks || g->marks[mark] == g->stamp || (order != 0 && order < s->order))
        return;
    g->marks[mark] = g->stamp;
    uint32_t position;
    const known *const k = place_of(s, node, &position);
    if (k != NULL && k->from != 0 && position >= k->from)
        s->found = true;
    else if (k == NULL || position > k->not_to)
        ZO_PUSH(g, g->stack, s->n, g->room_stack, node);
}

static void push_sync(search *s, const zo_call *call)
{
    if (call->previous_sync != 0)
        push(s, (call->previous_sync - 1) | ZO_CALL_BIT);
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
        push_sync(s, call);
        return;
    }
    const zo_instance *const x = &g->instances[node];
    if (zo_clock_at(x->clock, s->chain) >= s->position)
        s->found = true;
    for (uint32_t i = 0; i < x->n_preds; i++)
        follow(s, &g->ranges[x->preds + i]);
    if (x->landmark > 0 && !(g->options.without & ZO_E_START))
        push(s, g->chains[x->chain].nodes[x->landmark - 1]);
    if (!(g->options.without & ZO_E_SUBMIT))
        push_sync(s, &g->calls[x->submit]);
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

/* returned: y is a call, and its own success counts. */
static bool search_back(zo_graph *g, uint32_t x, uint32_t y, bool returned)
{
    const zo_instance *const c = &g->instances[x];
    const size_t budget = g->steps > ENOUGH && g->budget > SHORT ? SHORT : g->budget;
    search s = {.g = g, .row = row_of(g, x), .chain = c->chain, .position = c->position, .order = c->order};
    if (!prepare_marks(g))
        return false;
    if ((y & ZO_CALL_BIT) && !returned) /* its own success comes behind its beginning */
        push_sync(&s, &g->calls[y & ~ZO_CALL_BIT]);
    else
        push(&s, y);
    while (s.at < s.n && !s.found && s.at < budget)
        visit(&s, g->stack[s.at++]);
    g->steps += s.at + 1;
    const bool gave_up = !s.found && s.at < s.n;
    g->doubtful += gave_up;
    if (s.found || gave_up) { /* given up: no finding is made of what was not looked through */
        const uint32_t sync = y & ZO_CALL_BIT ? g->calls[y & ~ZO_CALL_BIT].previous_sync : 0;
        if (!(y & ZO_CALL_BIT) || returned)
            remember(&s, y, true);
        else if (sync != 0)
            remember(&s, (sync - 1) | ZO_CALL_BIT, true);
        return true;
    }
    for (size_t i = 0; i < s.n; i++)
        remember(&s, g->stack[i], false);
    return false;
}

/* Whether the command has ended before y begins. */
static bool ended_before(zo_graph *g, uint32_t x, uint32_t y)
{
    const zo_instance *const c = &g->instances[x];
    const zo_call *const call = y & ZO_CALL_BIT ? &g->calls[y & ~ZO_CALL_BIT] : NULL;
    const zo_clock *const clock = call ? call->clock : g->instances[y].clock;
    const uint32_t loose = call ? call->loose : g->instances[y].loose;
    if (zo_clock_at(clock, c->chain) >= c->position)
        return true;
    return c->order != 0 && c->order <= loose && (call != NULL || g->instances[y].order != 0) && search_back(g, x, y, false);
}

bool zo_ended_by_return(zo_graph *g, uint32_t x, uint32_t call)
{
    const uint32_t node = call | ZO_CALL_BIT;
    return ended_before(g, x, node) || (g->instances[x].order != 0 && search_back(g, x, node, true));
}

bool zo_before(zo_graph *g, uint32_t x, uint32_t y)
{
    if (x == y || x == ZO_NONE || y == ZO_NONE)
        return false;
    if (!(x & ZO_CALL_BIT))
        return ended_before(g, x, y);
    const zo_call *const h = &g->calls[x & ~ZO_CALL_BIT];
    const zo_call *const other = y & ZO_CALL_BIT ? &g->calls[y & ~ZO_CALL_BIT] : NULL;
    if (other != NULL && other->chain == h->chain && !(g->options.without & ZO_E_PROGRAM))
        return h->position < other->position;
    return zo_clock_at(other ? other->clock : g->instances[y].clock, h->chain) >= h->position;
}

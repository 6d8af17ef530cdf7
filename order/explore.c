/* SPDX-License-Identifier: MIT */
/*
 * All orders that differ. Two lines are the same if they have every conflicting pair the same way round: so an order is one choice
 * for each pair that nothing orders, and every choice that can be had is run once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/* One order takes as many schedules, and as deep a recursion; two to the power of it are never run. */
#define MOST_PAIRS 4096u
#define MOST_LOOKS (1ull << 28) /* at two executions each */

typedef struct explorer {
    zo_graph *g;
    zo_edge *pairs;  /* as in the earliest line */
    size_t n, room;
    zo_edge *chosen;
    uint8_t *turned;
    bool too_many;
    const zo_explore_options *o;
    zo_explored *out;
} explorer;

static bool clash(const zo_graph *g, uint32_t x, uint32_t y)
{
    const zo_command *const a = &g->commands[g->instances[x].command], *const b = &g->commands[g->instances[y].command];
    for (uint32_t i = 0; i < a->n_accesses; i++)
        for (uint32_t k = 0; k < b->n_accesses; k++) {
            const zo_access *const p = &g->accesses[a->accesses + i], *const q = &g->accesses[b->accesses + k];
            if (p->mem == q->mem && p->lo < q->hi && q->lo < p->hi && (p->write || q->write))
                return true;
        }
    return (a->reset != ZO_NONE && a->reset == b->signal) || (b->reset != ZO_NONE && b->reset == a->signal);
}

static bool add_pair(explorer *e, uint32_t first, uint32_t second)
{
    const zo_edge pair = {first, second};
    if (e->n >= MOST_PAIRS) {
        e->too_many = true;
        return false;
    }
    return ZO_PUSH(e->g, e->pairs, e->n, e->room, pair);
}

/* Every pair that conflicts and that nothing orders, in the order in which the earliest line has it. */
static bool find_pairs(explorer *e)
{
    zo_graph *const g = e->g;
    e->too_many = (uint64_t)g->n_instances * g->n_instances / 2 > MOST_LOOKS;
    if (e->too_many)
        return false;
    for (uint32_t i = 0; i < g->n_instances; i++)
        for (uint32_t k = i + 1; k < g->n_instances; k++) {
            if (g->instances[i].order == 0 || g->instances[k].order == 0 || !clash(g, i, k) || zo_before(g, i, k) || zo_before(g, k, i))
                continue;
            const bool earlier = g->instances[i].order < g->instances[k].order;
            if (!add_pair(e, earlier ? i : k, earlier ? k : i))
                return false;
        }
    for (size_t i = 0; i < g->n_conflicts; i++) {
        const zo_conflict *const c = &g->conflicts[i];
        if (c->forced || !(c->b & ZO_CALL_BIT) || (c->a & ZO_CALL_BIT) || g->instances[c->a].order == 0)
            continue;
        const uint32_t late = c->kind == ZO_X_HOST_WRITE ? (c->b & ~ZO_CALL_BIT) | ZO_WRITE_BIT : c->b;
        if (!add_pair(e, c->a, late))
            return false;
    }
    return true;
}

static bool possible(explorer *e, size_t n, uint32_t **line, size_t *length)
{
    uint32_t stuck;
    *length = zo_schedule(e->g, ZO_P_EARLY, 0, NULL, 0, e->chosen, n, line, &stuck);
    return *length > 0;
}

static void run_one(explorer *e, const uint32_t *line, size_t length)
{
    zo_explored *const out = e->out;
    size_t turned = 0, which = 0;
    for (size_t i = 0; i < e->n; i++) {
        turned += e->turned[i];
        which = e->turned[i] ? i : which;
    }
    out->orders++;
    if (e->o->run == NULL || !e->o->run(e->o->ctx, line, length))
        return;
    out->failing++;
    out->earliest_fails |= turned == 0;
    if (out->earliest_fails) { /* no turn makes the difference */
        out->unexplained++;
        return;
    }
    /* the order that differs from the earliest one by a single pair comes before all that have more: it is to blame for those */
    for (size_t i = 0; i < out->n_blamed; i++)
        for (size_t k = 0; k < e->n; k++)
            if (e->turned[k] && e->pairs[k].before == out->blamed[i].late && e->pairs[k].after == out->blamed[i].early) {
                out->blamed[i].orders++;
                return;
            }
    if (turned == 1 && out->n_blamed < ZO_BLAMED_MAX)
        out->blamed[out->n_blamed++] = (zo_blamed){.early = e->pairs[which].after, .late = e->pairs[which].before, .orders = 1};
    else
        out->unexplained++;
}

/* Chooses for the pairs from `at` on, with at most `left` turned round; exactly `left` in all. */
static void choose(explorer *e, size_t at, size_t left)
{
    uint32_t *line;
    size_t length;
    if (e->out->stopped || (e->o->budget && e->out->orders >= e->o->budget)) {
        e->out->stopped = true;
        return;
    }
    if (e->n - at < left)
        return;
    if (!possible(e, at, &line, &length)) {
        e->out->pruned++;
        return;
    }
    if (at == e->n) {
        run_one(e, line, length);
        free(line);
        return;
    }
    free(line);
    e->chosen[at] = e->pairs[at];
    e->turned[at] = 0;
    choose(e, at + 1, left);
    if (left > 0) {
        e->chosen[at] = (zo_edge){e->pairs[at].after, e->pairs[at].before};
        e->turned[at] = 1;
        choose(e, at + 1, left - 1);
    }
    e->turned[at] = 0;
}

int zo_explore(zo_graph *g, const zo_explore_options *o, zo_explored *out)
{
    explorer e = {.g = g, .o = o, .out = out};
    *out = (zo_explored){0};
    if (find_pairs(&e)) {
        e.chosen = calloc(e.n + 1, sizeof(*e.chosen));
        e.turned = calloc(e.n + 1, 1);
        out->pairs = e.n;
        /* fewest turns first: what a single turn explains needs no other */
        for (size_t turns = 0; e.chosen && e.turned && turns <= e.n && !out->stopped; turns++)
            choose(&e, 0, turns);
    }
    const bool ok = e.chosen && e.turned && !g->out_of_memory;
    free(e.pairs);
    free(e.chosen);
    free(e.turned);
    return e.too_many ? ZT_E_LIMIT : ok ? ZT_OK : ZT_E_MEMORY;
}

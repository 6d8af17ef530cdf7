/* SPDX-License-Identifier: MIT */
/*
 * From one line to a pair: candidates that the graph gives are turned round one by one from the earliest line; then come lines far from
 * it, and a bisection between one that passes and one that fails.
 */
#include <stdlib.h>
#include <string.h>

#include "find.h"

/* -------------------------------------------------------------------------------------------------------- candidates */

/* Host calls first: what they take away is what programs die of. */
static int rank(const zo_conflict *c)
{
    return (c->possible ? 8 : 0) + (c->coarse ? 4 : 0) + (c->b & ZO_CALL_BIT ? 0 : 1) + (c->kind == ZO_X_EVENT_RESET ? 1 : 0);
}

static int by_rank(const void *a, const void *b)
{
    const zo_ranked *const x = a, *const y = b;
    if (rank(x->conflict) != rank(y->conflict))
        return rank(x->conflict) < rank(y->conflict) ? -1 : 1;
    if (x->conflict->b != y->conflict->b)
        return x->conflict->b < y->conflict->b ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

static size_t place_in(const line *l, uint32_t node)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->nodes[i] == node)
            return i;
    return SIZE_MAX;
}

typedef struct turn {
    uint32_t first, second; /* as in the base line */
    size_t number;          /* of the conflict */
    line turned;
} turn;

/* The line with that pair the other way round. @return false if there is none. */
static bool turn_round(finder *f, const line *base, const zo_conflict *c, turn *t)
{
    const uint32_t x = zo_node_in_line(c, c->a), y = zo_node_in_line(c, c->b);
    const size_t px = place_in(base, x), py = place_in(base, y);
    if (px == SIZE_MAX || py == SIZE_MAX)
        return false;
    t->first = px < py ? x : y;
    t->second = px < py ? y : x;
    return zo_line(f, ZO_P_LIKE, 0, base, &(zo_edge){t->second, t->first}, 1, &t->turned);
}

static bool room_for_tried(finder *f)
{
    if (f->n_tried >= f->g->n_conflicts && f->tried != NULL)
        return true;
    uint8_t *const grown = realloc(f->tried, f->g->n_conflicts + 1);
    if (grown == NULL)
        return false;
    memset(grown + f->n_tried, 0, f->g->n_conflicts + 1 - f->n_tried);
    f->tried = grown;
    f->n_tried = f->g->n_conflicts;
    return true;
}

zo_ranked *zo_candidates(finder *f, size_t first, size_t *n)
{
    zo_ranked *const list = room_for_tried(f) ? malloc((f->g->n_conflicts + 1) * sizeof(*list)) : NULL;
    *n = 0;
    for (size_t i = first; list != NULL && i < f->g->n_conflicts; i++)
        if (!f->g->conflicts[i].forced && !f->tried[i])
            list[(*n)++] = (zo_ranked){&f->g->conflicts[i], i};
    if (*n > 0)
        qsort(list, *n, sizeof(*list), by_rank);
    for (size_t i = 0; f->n_repairs == 0 && i < *n; i++) {
        const bool host = (list[i].conflict->a | list[i].conflict->b) & ZO_CALL_BIT;
        f->a->host_device += host;
        f->a->device_device += !host;
    }
    return list;
}

/* Turns conflicts round one by one. */
bool zo_try_candidates(finder *f, const line *base, enum outcome of_base, size_t first, unsigned most)
{
    enum { SIDE_BY_SIDE = 64 };
    turn turns[SIDE_BY_SIDE];
    line lines[SIDE_BY_SIDE];
    enum outcome outcomes[SIDE_BY_SIDE];
    const size_t jobs = f->o->jobs < 1 ? 1 : f->o->jobs > SIDE_BY_SIDE ? SIDE_BY_SIDE : f->o->jobs;
    size_t n = 0;
    zr_report *const reports = malloc(SIDE_BY_SIDE * sizeof(*reports));
    zo_ranked *const list = reports != NULL ? zo_candidates(f, first, &n) : NULL;
    bool found = false;
    for (size_t i = 0; i < n && i < most && !found && !zo_spent(f);) {
        size_t k = 0;
        for (; i < n && i < most && k < jobs; i++) {
            f->tried[list[i].number] = 1;
            if (turn_round(f, base, list[i].conflict, &turns[k])) {
                turns[k].number = list[i].number;
                lines[k] = turns[k].turned;
                k++;
            }
        }
        f->a->orders += (unsigned)k;
        zo_trials(f, lines, k, "turning a pair round", outcomes, reports);
        for (size_t t = 0; t < k; t++) {
            const turn *const u = &turns[t];
            if (!found && outcomes[t] != of_base && outcomes[t] != CANNOT)
                found = of_base == PASSES ? zo_confirm(f, base, &u->turned, u->second, u->first)
                                          : zo_confirm(f, &u->turned, base, u->first, u->second);
            else if (found && outcomes[t] != of_base)
                f->tried[u->number] = 0; /* perhaps for another reason: once more with the repair */
            free(u->turned.nodes);
        }
    }
    free(list);
    free(reports);
    return found;
}

/*
 * The recording was good, and the earliest order is not: perhaps the host wrote into what a command was still to write. Then an order
 * in which the host's bytes come last passes, and one in which they come first fails.
 */
bool zo_try_host_writes(finder *f)
{
    const size_t first = f->g->n_conflicts;
    const zr_options o = zo_trial_options(f);
    line base;
    if (zo_spent(f))
        return false;
    f->a->replays++;
    if (zo_learn_reads(f->g, f->plan, &o) == 0 || !zo_line(f, ZO_P_EARLY, 0, NULL, NULL, 0, &base))
        return false;
    const bool found = zo_trial(f, &base, "with the host's writes") == PASSES && zo_try_candidates(f, &base, PASSES, first, 4);
    free(base.nodes);
    return found;
}

typedef struct ranked {
    uint32_t node;
    size_t place;
} ranked;

/* The line on the way from `from` to `to` after the first `moved` nodes of `from` have been sorted as in `to`. */
static int by_place(const void *a, const void *b)
{
    const ranked *const x = a, *const y = b;
    return x->place < y->place ? -1 : x->place > y->place;
}

static bool between(finder *f, const line *from, const line *to, size_t sorted, size_t shift, line *out)
{
    size_t *const place = calloc(f->g->n_instances + 2 * f->g->n_calls + 1, sizeof(*place));
    ranked *const head = malloc((from->n + 1) * sizeof(*head));
    out->nodes = malloc((from->n + 1) * sizeof(*out->nodes));
    out->n = from->n;
    const size_t n_i = f->g->n_instances, n_c = f->g->n_calls;
#define SLOT(node) ((node) & ZO_CALL_BIT ? n_i + ((node) & ~ZO_CALL_BIT) : (node) & ZO_WRITE_BIT ? n_i + n_c + ((node) & ~ZO_WRITE_BIT) : (node))
    const bool ok = place && head && out->nodes;
    for (size_t i = 0; ok && i < to->n; i++)
        place[SLOT(to->nodes[i])] = i;
    for (size_t i = 0; ok && i < from->n; i++)
        head[i] = (ranked){from->nodes[i], place[SLOT(from->nodes[i])]};
    if (ok) {
        qsort(head, sorted, sizeof(*head), by_place);
        /* the next one has moved `shift` places towards where it belongs */
        if (sorted < from->n && shift > 0) {
            const ranked mover = head[sorted];
            memmove(head + sorted - shift + 1, head + sorted - shift, shift * sizeof(*head));
            head[sorted - shift] = mover;
        }
        for (size_t i = 0; i < from->n; i++)
            out->nodes[i] = head[i].node;
    }
    free(place);
    free(head);
    return ok;
}

/* How many places the node at `index` moves when it is inserted among the sorted ones before it. */
static size_t moves(finder *f, const line *from, const line *to, size_t index)
{
    line l;
    size_t n = 0;
    const size_t target = place_in(to, from->nodes[index]);
    if (!between(f, from, to, index, 0, &l))
        return 0;
    for (size_t i = index; i-- > 0 && place_in(to, l.nodes[i]) > target;)
        n++;
    free(l.nodes);
    return n;
}

/* From a line with one outcome to a line with another: the swap of neighbours that changes it. */
static bool bisect(finder *f, const line *from, const line *to, enum outcome of_from, uint32_t *first, uint32_t *second)
{
    size_t low = 0, high = from->n; /* nodes that are sorted: low as `from`, high as `to` */
    while (high - low > 1) {
        const size_t mid = (low + high) / 2;
        line l;
        if (zo_spent(f) || !between(f, from, to, mid, 0, &l))
            return false;
        const enum outcome got = zo_trial(f, &l, "bisecting");
        free(l.nodes);
        if (got == CANNOT)
            return false;
        if (got == of_from)
            low = mid;
        else
            high = mid;
    }
    size_t less = 0, more = moves(f, from, to, low);
    while (more - less > 1) {
        const size_t mid = (less + more) / 2;
        line l;
        if (zo_spent(f) || !between(f, from, to, low, mid, &l))
            return false;
        const enum outcome got = zo_trial(f, &l, "bisecting");
        free(l.nodes);
        if (got == CANNOT)
            return false;
        if (got == of_from)
            less = mid;
        else
            more = mid;
    }
    line l;
    if (more == 0 || !between(f, from, to, low, less, &l))
        return false;
    *second = l.nodes[low - less];
    *first = l.nodes[low - less - 1];
    free(l.nodes);
    return true;
}

/* Lines far from the earliest one. @return whether the pair was found. */
bool zo_try_family(finder *f, const line *base, enum outcome of_base, bool *other_seen)
{
    const unsigned randoms = 8;
    bool found = false;
    *other_seen = false;
    for (unsigned i = 0; !found && !zo_spent(f); i++) {
        const unsigned n = (unsigned)f->g->n_chains;
        line l;
        bool made;
        if (i == 0)
            made = zo_line(f, ZO_P_LATE, 0, NULL, NULL, 0, &l);
        else if (i <= 2 * n) {
            const unsigned chain = (i - 1) / 2;
            if (!f->g->chains[chain].device)
                continue;
            made = zo_line(f, i % 2 ? ZO_P_CARRIER_FIRST : ZO_P_CARRIER_LAST, chain, NULL, NULL, 0, &l);
        } else if (i <= 2 * n + randoms) {
            made = zo_line(f, ZO_P_PCT, (f->o->seed + i) * 8 + 2 + i % 2, NULL, NULL, 0, &l);
        } else {
            break;
        }
        if (!made)
            continue;
        f->a->orders++;
        const enum outcome got = zo_trial(f, &l, "trying orders");
        uint32_t first, second;
        if (got != of_base && got != CANNOT) {
            *other_seen = true;
            if (bisect(f, base, &l, of_base, &first, &second))
                found = of_base == PASSES ? zo_confirm(f, base, &l, second, first) : zo_confirm(f, &l, base, first, second);
        }
        free(l.nodes);
    }
    return found;
}


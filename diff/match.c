/* SPDX-License-Identifier: MIT */
/*
 * Which objects of two traces are the same. Generations would not do: one object more at the beginning, and all later ones have other
 * numbers. So calls are aligned first with no more of their objects than the kind; then each object goes with the one that stands in its
 * place in most of the calls that both have.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

typedef struct votes { /* of one side: the majority, if there is one (Boyer and Moore) */
    uint32_t *candidate, *count;
} votes;

static void vote_for(votes *v, uint32_t object, uint32_t other, uint32_t weight)
{
    if (v->candidate[object] == other)
        v->count[object] += weight;
    else if (v->count[object] > weight)
        v->count[object] -= weight;
    else {
        v->count[object] = weight - v->count[object];
        if (v->count[object] > 0)
            v->candidate[object] = other;
    }
}

typedef struct matching {
    zd_diff *diff;
    zd_cursor cursor[2];
    votes votes[2];
    uint32_t *partner; /* by object of A */
    uint32_t *back;    /* by object of B */
    bool *gives[2];    /* by function: has outs */
} matching;

static bool same_kind(const matching *m, uint32_t a, uint32_t b)
{
    return a != ZD_NONE && b != ZD_NONE && m->diff->side[0].objects[a].kind == m->diff->side[1].objects[b].kind;
}

static void vote(matching *m, uint32_t a, uint32_t b, uint32_t weight)
{
    if (!same_kind(m, a, b))
        return;
    vote_for(&m->votes[0], a, b, weight);
    vote_for(&m->votes[1], b, a, weight);
}

static void join(matching *m, uint32_t a, uint32_t b)
{
    if (!same_kind(m, a, b) || m->partner[a] != ZD_NONE || m->back[b] != ZD_NONE)
        return;
    m->partner[a] = b;
    m->back[b] = a;
}

/* What both calls give: votes, or what has no partner yet becomes one. */
static void outs_of(matching *m, uint32_t a, uint32_t b, bool last)
{
    const zd_side *const s = m->diff->side;
    const zd_extra *x, *y;
    if (!m->gives[0][s[0].func[a]] || !m->gives[1][s[1].func[b]])
        return;
    const size_t n = zd_extras_of(&s[0].outs, a, &x);
    if (zd_extras_of(&s[1].outs, b, &y) != n)
        return;
    for (size_t i = 0; i < n; i++) {
        if (last)
            join(m, x[i].object, y[i].object);
        else
            vote(m, x[i].object, y[i].object, 1);
    }
}

static void operands_of(matching *m, uint32_t a, uint32_t b)
{
    const uint32_t *x, *y;
    const size_t n = zd_operands_get(&m->cursor[0], a, &x);
    if (zd_operands_get(&m->cursor[1], b, &y) != n)
        return;
    for (size_t i = 0; i < n; i++)
        vote(m, x[i], y[i], 2); /* more than where it came from */
}

static void go_through(matching *m, uint32_t thread, const zd_blocks *blocks, bool last)
{
    const zd_sequence a = zd_thread_line(&m->diff->side[0], thread), b = zd_thread_line(&m->diff->side[1], m->diff->pair[thread]);
    for (size_t i = 0; i < blocks->n; i++)
        for (uint32_t k = 0; k < blocks->at[i].n; k++) {
            const uint32_t x = zd_index(&a, blocks->at[i].a + k), y = zd_index(&b, blocks->at[i].b + k);
            if (!last)
                operands_of(m, x, y);
            outs_of(m, x, y, last);
        }
}

static uint64_t *names_by_kind(const zd_side *s)
{
    uint64_t *const names = malloc(((size_t)s->n_objects + 1) * sizeof(*names));
    for (uint32_t i = 0; i < s->n_objects && names != NULL; i++)
        names[i] = zd_mix(s->objects[i].kind, 3);
    return names;
}

/* Where they have a partner the same on both sides, else the kind, or at the end a name that nothing else has. */
static bool rename_all(matching *m, bool final)
{
    for (int side = 0; side < 2; side++) {
        zd_side *const s = &m->diff->side[side];
        uint64_t *const names = names_by_kind(s);
        const uint32_t *const partner = side ? m->back : m->partner;
        if (names == NULL)
            return false;
        for (uint32_t i = 0; i < s->n_objects; i++) {
            if (partner[i] != ZD_NONE)
                names[i] = zd_mix(side ? partner[i] : i, 4);
            else if (final)
                names[i] = zd_mix(i, 5 + (uint64_t)side);
        }
        zd_rehash(s, names);
    }
    return true;
}

static bool prepare(matching *m)
{
    bool ok = true;
    for (int side = 0; side < 2; side++) {
        const zd_side *const s = &m->diff->side[side];
        const size_t n = (size_t)s->n_objects + 1;
        m->cursor[side].side = s;
        m->votes[side].candidate = malloc(n * sizeof(uint32_t));
        m->votes[side].count = calloc(n, sizeof(uint32_t));
        uint32_t *const partner = malloc(n * sizeof(*partner));
        *(side ? &m->back : &m->partner) = partner;
        m->gives[side] = calloc(s->n_funcs + 1, 1);
        ok = ok && m->votes[side].candidate && m->votes[side].count && partner && m->gives[side];
        if (!ok)
            break;
        memset(partner, 0xff, n * sizeof(*partner));
        memset(m->votes[side].candidate, 0xff, n * sizeof(uint32_t));
        for (size_t i = 0; i < s->outs.n; i++)
            m->gives[side][s->func[s->outs.at[i].call]] = true;
    }
    return ok;
}

static bool threads_are_left(const zd_diff *d)
{
    bool left[2] = {false, false};
    for (uint32_t t = 1; t <= d->side[0].n_threads; t++)
        left[0] |= d->pair[t] == 0 && zd_thread_line(&d->side[0], t).n > 0;
    for (uint32_t t = 1; t <= d->side[1].n_threads; t++)
        left[1] |= !d->paired[t] && zd_thread_line(&d->side[1], t).n > 0;
    return left[0] && left[1];
}

/* @return false when memory is out. *all: it was the last round. */
static bool round_of(matching *m, bool *all)
{
    zd_diff *const d = m->diff;
    zd_blocks *const blocks = calloc((size_t)d->side[0].n_threads + 1, sizeof(*blocks));
    bool ok = blocks != NULL;
    ok = ok && zd_pair_threads(d, *all);
    *all = *all || !threads_are_left(d);
    for (uint32_t t = 1; ok && t <= d->side[0].n_threads; t++) {
        if (d->pair[t] != 0)
            ok = zd_align_pair(d, t, d->pair[t], &blocks[t]);
        if (ok)
            go_through(m, t, &blocks[t], false);
    }
    for (uint32_t i = 0; ok && i < d->side[0].n_objects; i++) {
        const uint32_t other = m->votes[0].candidate[i];
        if (other != ZD_NONE && m->votes[1].candidate[other] == i)
            join(m, i, other);
    }
    for (uint32_t t = 1; ok && *all && t <= d->side[0].n_threads; t++)
        go_through(m, t, &blocks[t], true);
    for (uint32_t t = 1; blocks != NULL && t <= d->side[0].n_threads; t++)
        free(blocks[t].at);
    free(blocks);
    return ok;
}

bool zd_match_objects(zd_diff *d)
{
    matching m = {.diff = d};
    bool ok = prepare(&m);
    for (int side = 0; side < 2 && ok; side++) {
        uint64_t *const names = names_by_kind(&d->side[side]);
        ok = names != NULL;
        if (ok)
            zd_rehash(&d->side[side], names);
    }
    /* threads that do the same are told apart by objects that others have made */
    bool last = d->side[0].n_threads <= 1;
    ok = ok && round_of(&m, &last);
    if (ok && !last) {
        last = true;
        ok = rename_all(&m, false) && round_of(&m, &last);
    }
    ok = ok && rename_all(&m, true);
    for (int side = 0; side < 2; side++) {
        free(m.cursor[side].list);
        free(m.votes[side].candidate);
        free(m.votes[side].count);
        free(m.gives[side]);
    }
    free(m.partner);
    free(m.back);
    return ok;
}

/* SPDX-License-Identifier: MIT */
/* Which threads of two traces do the same. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define BINS 64
#define COMPARED 256 /* threads of a side that are compared one by one */

zd_sequence zd_thread_line(const zd_side *s, uint32_t thread)
{
    if (thread == 0 || thread > s->n_threads)
        return (zd_sequence){s->hash, s->index, 0};
    const uint32_t first = s->first[thread], n = s->first[thread + 1] - first;
    return (zd_sequence){s->hash, s->index ? s->index + first : NULL, n};
}

typedef struct whole { /* a thread as one number: equal if it does the same */
    uint64_t hash;
    uint32_t thread;
    uint8_t side;
} whole;

static int by_hash(const void *x, const void *y)
{
    const whole *const p = x, *const q = y;
    if (p->hash != q->hash)
        return p->hash < q->hash ? -1 : 1;
    return p->side != q->side ? p->side - q->side : p->thread < q->thread ? -1 : p->thread > q->thread;
}

static bool is_paired(const zd_diff *d, int side, uint32_t thread)
{
    return side ? d->paired[thread] : d->pair[thread] != 0;
}

static void make_pair(zd_diff *d, uint32_t a, uint32_t b)
{
    d->pair[a] = b;
    d->paired[b] = 1;
}

/* Pairs those that are equal; where more than one is, only if `all`. @return those left over, in *left, the doubtful ones first. */
static size_t pair_equal(zd_diff *d, bool all, whole **left, size_t *doubtful)
{
    size_t n = 0, kept = 0, room = (size_t)d->side[0].n_threads + d->side[1].n_threads;
    whole *const list = calloc(room + 1, sizeof(*list));
    *left = list;
    *doubtful = 0;
    for (int side = 0; side < 2 && list != NULL; side++)
        for (uint32_t t = 1; t <= d->side[side].n_threads; t++) {
            const zd_sequence line = zd_thread_line(&d->side[side], t);
            if (line.n == 0 || is_paired(d, side, t))
                continue;
            uint64_t hash = line.n;
            for (uint32_t i = 0; i < line.n; i++)
                hash = zd_mix(hash, zd_at(&line, i));
            list[n++] = (whole){hash, t, (uint8_t)side};
        }
    if (n > 0)
        qsort(list, n, sizeof(*list), by_hash);
    whole *const rest = calloc(n + 1, sizeof(*rest));
    size_t n_rest = 0;
    for (size_t i = 0; i < n && rest != NULL;) {
        size_t end = i, of_a = 0;
        for (; end < n && list[end].hash == list[i].hash; end++)
            of_a += list[end].side == 0;
        const size_t of_b = end - i - of_a, sure = of_a < of_b ? of_a : of_b;
        const bool pairs = sure > 0 && (all || (of_a == 1 && of_b == 1));
        for (size_t k = 0; k < of_a + of_b; k++) {
            const bool in_a = k < of_a;
            if (pairs && in_a && k < sure)
                make_pair(d, list[i + k].thread, list[i + of_a + k].thread);
            else if (!pairs && sure > 0)
                list[kept++] = list[i + k]; /* writes only what has been read */
            else if ((in_a ? k : k - of_a) >= (pairs ? sure : 0))
                rest[n_rest++] = list[i + k];
        }
        i = end;
    }
    *doubtful = kept;
    for (size_t i = 0; i < n_rest; i++)
        list[kept + i] = rest[i];
    free(rest);
    return kept + n_rest;
}

static void sketch(const zd_diff *d, const whole *w, uint64_t *bins)
{
    const zd_sequence line = zd_thread_line(&d->side[w->side], w->thread);
    memset(bins, 0xff, BINS * sizeof(*bins));
    for (uint32_t i = 0; i < line.n; i++) {
        const uint64_t h = zd_mix(zd_at(&line, i), 1);
        if (h < bins[h % BINS])
            bins[h % BINS] = h;
    }
}

static unsigned alike(const uint64_t *a, const uint64_t *b)
{
    unsigned n = 0;
    for (unsigned i = 0; i < BINS; i++)
        n += a[i] == b[i] && a[i] != UINT64_MAX;
    return n;
}

typedef struct likeness {
    const whole *list;
    size_t n;
    uint8_t *value; /* n by n; 0 within one side */
} likeness;

static bool measure(const zd_diff *d, likeness *l)
{
    uint64_t(*const bins)[BINS] = malloc((l->n + 1) * sizeof(*bins));
    l->value = calloc(l->n * l->n + 1, 1);
    for (size_t i = 0; i < l->n && bins != NULL; i++)
        sketch(d, &l->list[i], bins[i]);
    for (size_t i = 0; i < l->n && bins != NULL && l->value != NULL; i++)
        for (size_t k = 0; k < l->n; k++)
            if (l->list[i].side != l->list[k].side)
                l->value[i * l->n + k] = (uint8_t)alike(bins[i], bins[k]);
    free(bins);
    return bins != NULL && l->value != NULL;
}

/* Whether one of the two is as much like another. */
static bool is_doubtful(const zd_diff *d, const likeness *l, size_t x, size_t y)
{
    const unsigned value = l->value[x * l->n + y];
    for (size_t i = 0; i < l->n; i++)
        if (i != x && i != y && !is_paired(d, l->list[i].side, l->list[i].thread) && (l->value[x * l->n + i] >= value || l->value[y * l->n + i] >= value))
            return true;
    return false;
}

/* The most alike first; unless `all`, no more once that is doubtful: when more objects are known, it may not be. */
static bool pair_alike(zd_diff *d, bool all, const whole *list, size_t n)
{
    likeness l = {list, n, NULL};
    const bool ok = measure(d, &l);
    while (ok) {
        unsigned best = 0;
        size_t x = 0, y = 0;
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < n; k++) {
                if (list[i].side != 0 || list[k].side != 1 || is_paired(d, 0, list[i].thread) || is_paired(d, 1, list[k].thread))
                    continue;
                const unsigned value = 2u * l.value[i * n + k] + (list[i].thread == list[k].thread); /* one number, rather */
                if (value > best) {
                    best = value;
                    x = i;
                    y = k;
                }
            }
        if (best < 2 || (!all && is_doubtful(d, &l, x, y)))
            break;
        make_pair(d, list[x].thread, list[y].thread);
    }
    free(l.value);
    return ok;
}

bool zd_pair_threads(zd_diff *d, bool all)
{
    whole *list;
    size_t doubtful;
    const size_t n = pair_equal(d, all, &list, &doubtful);
    size_t of[2] = {0, 0};
    bool ok = list != NULL;
    for (size_t i = doubtful; i < n; i++)
        of[list[i].side]++;
    if (ok && of[0] > 0 && of[1] > 0 && of[0] <= COMPARED && of[1] <= COMPARED)
        ok = pair_alike(d, all, list + doubtful, n - doubtful);
    for (uint32_t t = 1; all && ok && t <= d->side[0].n_threads && t <= d->side[1].n_threads; t++) /* nothing better is known */
        if (d->pair[t] == 0 && !d->paired[t] && zd_thread_line(&d->side[0], t).n > 0 && zd_thread_line(&d->side[1], t).n > 0 &&
            (t == 1 || of[0] > COMPARED || of[1] > COMPARED))
            make_pair(d, t, t);
    free(list);
    return ok;
}

bool zd_align_pair(zd_diff *d, uint32_t thread_a, uint32_t thread_b, zd_blocks *blocks)
{
    const zd_sequence a = zd_thread_line(&d->side[0], thread_a), b = zd_thread_line(&d->side[1], thread_b);
    return zd_align(&a, 0, a.n, &b, 0, b.n, NULL, blocks);
}

/* SPDX-License-Identifier: MIT */
/*
 * Windows that each side has once (Bram Cohen's patience, on windows of several elements). In long sequences only those count whose hash
 * is a multiple of some number: both sides then choose the same ones, and the table stays small.
 */
#include "align.h"

#include <stdlib.h>
#include <string.h>

#define WINDOWS (1u << 20) /* that are looked at on each side, about */

typedef struct entry {
    uint64_t key;
    uint32_t a, b;             /* where */
    uint8_t in_a, in_b;        /* 0, 1, 2: more often */
} entry;

typedef struct table {
    entry *at;
    size_t room, n;
} table;

static uint64_t spread(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 29;
    return x;
}

static entry *entry_of(table *t, uint64_t key)
{
    size_t at = (size_t)(key >> 7) & (t->room - 1);
    while (t->at[at].key != key && t->at[at].in_a + t->at[at].in_b > 0)
        at = (at + 1) & (t->room - 1);
    t->at[at].key = key;
    return &t->at[at];
}

/* Notes the windows of one side. The table takes no more than it has room for. */
static void note(table *t, const zd_sequence *s, uint32_t from, uint32_t to, uint32_t length, uint64_t every, bool is_b)
{
    const uint64_t factor = 0x9e3779b97f4a7c15u;
    uint64_t out = 1, sum = 0;
    for (uint32_t i = 0; i < length; i++)
        out *= factor;
    for (uint32_t i = from; i < to && t->n + 1 < t->room; i++) {
        sum = sum * factor + zd_at(s, i);
        if (i - from >= length)
            sum -= out * zd_at(s, i - length);
        if (i - from + 1 < length)
            continue;
        const uint64_t key = spread(sum);
        if (key % every != 0)
            continue;
        entry *const e = entry_of(t, key);
        t->n += e->in_a + e->in_b == 0;
        uint8_t *const times = is_b ? &e->in_b : &e->in_a;
        *times += *times < 2;
        *(is_b ? &e->b : &e->a) = i + 1 - length;
    }
}

static int by_a(const void *x, const void *y)
{
    const zd_block *const p = x, *const q = y;
    return p->a < q->a ? -1 : p->a > q->a;
}

/* Leaves the longest chain that ascends in b as well. */
static size_t longest(zd_block *at, size_t n)
{
    uint32_t *const ends = malloc((n + 1) * 2 * sizeof(*ends)), *const before = ends + n + 1;
    size_t length = 0;
    if (ends == NULL)
        return 0;
    for (size_t i = 0; i < n; i++) {
        size_t low = 0, high = length;
        while (low < high) {
            const size_t middle = (low + high) / 2;
            if (at[ends[middle]].b < at[i].b)
                low = middle + 1;
            else
                high = middle;
        }
        before[i] = low > 0 ? ends[low - 1] : UINT32_MAX;
        ends[low] = (uint32_t)i;
        length += low == length;
    }
    uint32_t i = length > 0 ? ends[length - 1] : UINT32_MAX;
    for (size_t k = length; k-- > 0; i = before[i])
        ends[k] = i;
    for (size_t k = 0; k < length; k++)
        at[k] = at[ends[k]];
    free(ends);
    return length;
}

size_t zd_anchors(zd_aligner *w, const zd_box *box, uint32_t length, zd_block **anchors)
{
    const uint32_t n = box->a1 - box->a0, m = box->b1 - box->b0, larger = n > m ? n : m;
    size_t found = 0;
    *anchors = NULL;
    if (n < length || m < length)
        return 0;
    table t = {.room = 64};
    const uint64_t every = larger / WINDOWS + 1;
    while (t.room < 4 * ((size_t)larger / every + 1))
        t.room *= 2;
    t.at = calloc(t.room, sizeof(*t.at));
    if (t.at == NULL) {
        w->failed = true;
        return 0;
    }
    note(&t, w->a, box->a0, box->a1, length, every, false);
    note(&t, w->b, box->b0, box->b1, length, every, true);
    for (size_t i = 0; i < t.room; i++)
        found += t.at[i].in_a == 1 && t.at[i].in_b == 1;
    zd_block *const list = found ? malloc(found * sizeof(*list)) : NULL;
    w->failed |= found && list == NULL;
    size_t k = 0;
    for (size_t i = 0; i < t.room && list != NULL; i++) {
        const entry *const e = &t.at[i];
        if (e->in_a != 1 || e->in_b != 1)
            continue;
        bool equal = true; /* hashes of windows may collide: what is emitted must be the same */
        for (uint32_t x = 0; x < length && equal; x++)
            equal = zd_same(w, e->a + x, e->b + x);
        if (equal)
            list[k++] = (zd_block){e->a, e->b, length};
    }
    free(t.at);
    if (list != NULL)
        qsort(list, k, sizeof(*list), by_a);
    *anchors = list;
    return list ? longest(list, k) : 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Aligns two long sequences of hashes. Exact where that can be had: Myers' shortest edit script in linear space, within a budget of
 * steps. Beyond it, in time linear in the lengths: matches that are long enough are believed at once, and stretches that have nothing
 * near in common are cut at windows that each side has once, in the longest order that both have (patience). What is between is exact
 * again.
 */
#ifndef ZD_ALIGN_H
#define ZD_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Element i is hash[index[i]], or hash[i] without an index. Less than 2^31 of them. */
typedef struct zd_sequence {
    const uint64_t *hash;
    const uint32_t *index;
    uint32_t n;
} zd_sequence;

/* n elements from a and from b on are equal. */
typedef struct zd_block {
    uint32_t a, b, n;
} zd_block;
typedef struct zd_blocks { /* ascending in a and b; none touches the next in both */
    zd_block *at;
    size_t n, room;
} zd_blocks;

typedef struct zd_align_options {
    uint32_t exact;  /* so many elements of both together are aligned exactly at once; 0: 32,768 */
    uint32_t match;  /* equal elements in a row that are believed at once; 0: 64 */
    uint32_t reach;  /* edits that are tried before anchors are looked for; 0: 1,024 */
    uint64_t budget; /* steps of exact alignment; 0: by the lengths */
} zd_align_options;

/*
 * Appends the equal blocks of a[a_from..a_to) and b[b_from..b_to) to *blocks, which the caller frees (blocks->at).
 * @return false when memory is out. `options` may be NULL.
 */
bool zd_align(const zd_sequence *a, uint32_t a_from, uint32_t a_to, const zd_sequence *b, uint32_t b_from, uint32_t b_to,
              const zd_align_options *options, zd_blocks *blocks);

/* ----------------------------------------------------------------------------------------------- inside align*.c, myers.c */

typedef struct zd_box { /* [a0, a1) of one, [b0, b1) of the other */
    uint32_t a0, a1, b0, b1;
} zd_box;

typedef struct zd_aligner {
    const zd_sequence *a, *b;
    zd_align_options options;
    zd_blocks *out;
    size_t first;           /* block of `out` with which this alignment begins */
    uint64_t steps;         /* left of the budget */
    int64_t *forward, *backward; /* furthest points by diagonal */
    size_t diagonals;
    bool failed;            /* memory is out */
} zd_aligner;

static inline uint64_t zd_at(const zd_sequence *s, uint32_t i)
{
    return s->hash[s->index != NULL ? s->index[i] : i];
}
static inline bool zd_same(const zd_aligner *w, uint32_t i, uint32_t j)
{
    return zd_at(w->a, i) == zd_at(w->b, j);
}
/* A block behind all others. */
void zd_emit(zd_aligner *w, uint32_t a, uint32_t b, uint32_t n);
/* Emits what is equal at the beginning; takes what is equal at the end off the box. @return how many those are. */
uint32_t zd_trim(zd_aligner *w, zd_box *box);
/* Exact within the budget, and near it beyond. */
void zd_myers(zd_aligner *w, zd_box box);
/*
 * Believes long matches. @return true once the box is done; false, if `give_up`, where there was none within reach: *box is what is
 * left.
 */
bool zd_greedy(zd_aligner *w, zd_box *box, bool give_up);
/* Windows of `length` elements that each side has once, in the longest common order. @return how many, in *anchors, to be freed. */
size_t zd_anchors(zd_aligner *w, const zd_box *box, uint32_t length, zd_block **anchors);
bool zd_room_for_diagonals(zd_aligner *w, size_t n);

#endif

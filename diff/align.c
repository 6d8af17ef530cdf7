/* SPDX-License-Identifier: MIT */
/* Which way of aligning is taken for which part. */
#include "align.h"

#include <stdlib.h>

#define DEPTH 24

void zd_emit(zd_aligner *w, uint32_t a, uint32_t b, uint32_t n)
{
    zd_blocks *const o = w->out;
    if (n == 0 || w->failed)
        return;
    if (o->n > w->first && o->at[o->n - 1].a + o->at[o->n - 1].n == a && o->at[o->n - 1].b + o->at[o->n - 1].n == b) {
        o->at[o->n - 1].n += n;
        return;
    }
    if (o->n == o->room) {
        const size_t room = o->room ? o->room * 2 : 64;
        zd_block *const grown = realloc(o->at, room * sizeof(*grown));
        if (grown == NULL) {
            w->failed = true;
            return;
        }
        o->at = grown;
        o->room = room;
    }
    o->at[o->n++] = (zd_block){a, b, n};
}

uint32_t zd_trim(zd_aligner *w, zd_box *box)
{
    const uint32_t a = box->a0, b = box->b0;
    uint32_t tail = 0;
    while (box->a0 < box->a1 && box->b0 < box->b1 && zd_same(w, box->a0, box->b0)) {
        box->a0++;
        box->b0++;
    }
    zd_emit(w, a, b, box->a0 - a);
    while (box->a0 < box->a1 && box->b0 < box->b1 && zd_same(w, box->a1 - 1, box->b1 - 1)) {
        box->a1--;
        box->b1--;
        tail++;
    }
    return tail;
}

bool zd_room_for_diagonals(zd_aligner *w, size_t n)
{
    if (n <= w->diagonals)
        return true;
    free(w->forward);
    free(w->backward);
    w->forward = malloc(n * sizeof(*w->forward));
    w->backward = malloc(n * sizeof(*w->backward));
    w->diagonals = w->forward != NULL && w->backward != NULL ? n : 0;
    w->failed |= w->diagonals == 0;
    return w->diagonals != 0;
}

static void align(zd_aligner *w, zd_box box, unsigned depth);

/* Cuts a box at what each side has once. @return whether there was anything. */
static bool cut_at_anchors(zd_aligner *w, zd_box box, unsigned depth)
{
    zd_block *anchors;
    const size_t n = zd_anchors(w, &box, 16, &anchors);
    for (size_t i = 0; i < n && !w->failed; i++) {
        if (anchors[i].a < box.a0 || anchors[i].b < box.b0)
            continue; /* they overlap */
        align(w, (zd_box){box.a0, anchors[i].a, box.b0, anchors[i].b}, depth + 1);
        zd_emit(w, anchors[i].a, anchors[i].b, anchors[i].n);
        box.a0 = anchors[i].a + anchors[i].n;
        box.b0 = anchors[i].b + anchors[i].n;
    }
    if (n > 0)
        align(w, box, depth + 1);
    free(anchors);
    return n > 0;
}

static uint64_t matched(const zd_blocks *blocks, size_t from)
{
    uint64_t n = 0;
    for (size_t i = from; i < blocks->n; i++)
        n += blocks->at[i].n;
    return n;
}

/*
 * Anchors are few where a program does the same again and again, and one that has moved would then decide over all of it: there the
 * better of two ways is taken.
 */
static void far_apart(zd_aligner *w, zd_box box, unsigned depth)
{
    if (depth > 0) {
        if (!cut_at_anchors(w, box, depth))
            zd_greedy(w, &box, false);
        return;
    }
    zd_blocks other = {0}, *const out = w->out;
    const size_t first = w->first, from = out->n;
    const uint32_t before = from > 0 ? out->at[from - 1].n : 0;
    zd_box copy = box;
    w->out = &other;
    w->first = 0;
    const bool any = cut_at_anchors(w, box, depth);
    w->out = out;
    w->first = first;
    if (!any || 4 * matched(&other, 0) < 3 * (uint64_t)(box.a1 - box.a0 < box.b1 - box.b0 ? box.a1 - box.a0 : box.b1 - box.b0))
        zd_greedy(w, &copy, false);
    const uint64_t grown = from > 0 ? out->at[from - 1].n - before : 0;
    const bool better = any && matched(&other, 0) > matched(out, from) + grown;
    if (better) { /* takes it back */
        out->n = from;
        if (from > 0)
            out->at[from - 1].n = before;
    }
    for (size_t i = 0; better && i < other.n; i++)
        zd_emit(w, other.at[i].a, other.at[i].b, other.at[i].n);
    free(other.at);
}

static void align(zd_aligner *w, zd_box box, unsigned depth)
{
    const uint32_t tail = zd_trim(w, &box), a_end = box.a1, b_end = box.b1;
    if (box.a0 == box.a1 || box.b0 == box.b1 || w->failed) {
        zd_emit(w, a_end, b_end, tail);
        return;
    }
    if ((uint64_t)(box.a1 - box.a0) + (box.b1 - box.b0) <= w->options.exact) {
        zd_myers(w, box);
    } else if (depth >= DEPTH) {
        zd_greedy(w, &box, false);
    } else if (!zd_greedy(w, &box, true)) {
        far_apart(w, box, depth);
    }
    zd_emit(w, a_end, b_end, tail);
}

bool zd_align(const zd_sequence *a, uint32_t a_from, uint32_t a_to, const zd_sequence *b, uint32_t b_from, uint32_t b_to,
              const zd_align_options *options, zd_blocks *blocks)
{
    zd_aligner w = {.a = a, .b = b, .out = blocks, .first = blocks->n};
    if (options != NULL)
        w.options = *options;
    if (w.options.exact == 0)
        w.options.exact = 32768;
    if (w.options.match == 0)
        w.options.match = 64;
    if (w.options.reach == 0)
        w.options.reach = 1024;
    w.steps = w.options.budget != 0 ? w.options.budget : 100000000u + 16u * ((uint64_t)(a_to - a_from) + (b_to - b_from));
    align(&w, (zd_box){a_from, a_to, b_from, b_to}, 0);
    free(w.forward);
    free(w.backward);
    return !w.failed;
}

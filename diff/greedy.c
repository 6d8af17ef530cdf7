/* SPDX-License-Identifier: MIT */
/*
 * Edits that are scattered over long sequences: from one mismatch the furthest points by diagonal are followed until one of them has
 * found enough equal elements in a row. What lies between matches that are longer still is aligned exactly.
 */
#include "align.h"

#define WHOLE 16384 /* elements between two long matches that are still aligned as one */

typedef struct point {
    uint32_t a, b, n; /* a match of n elements begins there */
} point;

enum outcome { FOUND, ENDED, LOST };

/*
 * The nearest match from (x->a0, x->b0) on. LOST: none within reach; *at is then the furthest point, n 0. ENDED: both ends were reached.
 */
static enum outcome next_match(zd_aligner *w, const zd_box *x, int64_t reach, point *at)
{
    const int64_t n = x->a1 - x->a0, m = x->b1 - x->b0, wanted = w->options.match;
    if (!zd_room_for_diagonals(w, 2 * (size_t)reach + 5))
        return LOST;
    int64_t *const f = w->forward + reach + 2;
    int64_t fmin = 0, fmax = 0, furthest = -1;
    f[0] = 0;
    f[-1] = f[1] = -1;
    for (int64_t d = 1; d <= reach; d++) {
        if (fmin > -m)
            f[--fmin - 1] = -1;
        else
            ++fmin;
        if (fmax < n)
            f[++fmax + 1] = -1;
        else
            --fmax;
        for (int64_t k = fmax; k >= fmin; k -= 2) {
            int64_t i = f[k - 1] >= f[k + 1] ? f[k - 1] + 1 : f[k + 1], j = i - k;
            const int64_t from = i;
            while (i < n && j < m && i - from < wanted && zd_same(w, x->a0 + (uint32_t)i, x->b0 + (uint32_t)j)) {
                i++;
                j++;
            }
            f[k] = i;
            if (i > n || j > m)
                continue;
            if (i - from >= wanted || (i == n && j == m)) {
                *at = (point){x->a0 + (uint32_t)from, x->b0 + (uint32_t)(from - k), (uint32_t)(i - from)};
                return i - from >= wanted ? FOUND : ENDED;
            }
            if (i + j > furthest) {
                furthest = i + j;
                *at = (point){x->a0 + (uint32_t)i, x->b0 + (uint32_t)j, 0};
            }
        }
    }
    return LOST;
}

bool zd_greedy(zd_aligner *w, zd_box *box, bool give_up)
{
    /* where it goes on whatever comes, a mismatch must not cost more than it gets on */
    const int64_t reach = give_up || w->options.reach < 64 ? w->options.reach : 64;
    const uint32_t enough = 8 * w->options.match;
    zd_box rest = *box; /* behind what has been looked at; between the corners of both lies what is still to be aligned */
    while (!w->failed) {
        point p = {0};
        const enum outcome outcome = next_match(w, &rest, reach, &p);
        if (outcome == ENDED || w->failed)
            break;
        const bool large = (uint64_t)(p.a - box->a0) + (p.b - box->b0) > WHOLE;
        if (outcome == LOST) {
            if (give_up)
                return false;
            rest.a0 = p.a;
            rest.b0 = p.b;
            if (large) { /* nowhere better to cut */
                zd_myers(w, (zd_box){box->a0, p.a, box->b0, p.b});
                *box = rest;
            }
            continue;
        }
        while (p.a + p.n < box->a1 && p.b + p.n < box->b1 && zd_same(w, p.a + p.n, p.b + p.n))
            p.n++;
        rest.a0 = p.a + p.n;
        rest.b0 = p.b + p.n;
        if (p.n >= enough || large) { /* half of it stays on either side, for edits that are better placed there */
            const uint32_t half = p.n / 2 < enough / 2 ? p.n / 2 : enough / 2;
            zd_myers(w, (zd_box){box->a0, p.a + half, box->b0, p.b + half});
            zd_emit(w, p.a + half, p.b + half, p.n - 2 * half);
            box->a0 = rest.a0 - half;
            box->b0 = rest.b0 - half;
        }
        if (rest.a0 == rest.a1 || rest.b0 == rest.b1)
            break;
    }
    zd_myers(w, *box);
    return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * The shortest edit script in linear space (Myers 1986): searched from both ends at once, cut where they meet. A search that costs more
 * than the budget has is cut at the furthest point that it came to. Points beyond an edge of the box come up on diagonals that end
 * there; they cost nothing, since who has reached the edge one diagonal before is as far.
 */
#include "align.h"

#include <stdint.h>

#define POOR 128 /* edits that are tried once the budget is spent */

typedef struct cut {
    uint32_t a, b;
} cut;

/* A box without equal elements at its ends. Diagonal k holds points (i, j) with i - j = k, counted from the box's corners. */
static cut find_cut(zd_aligner *w, const zd_box *x)
{
    const int64_t n = x->a1 - x->a0, m = x->b1 - x->b0, middle = n - m, never = INT64_MAX / 2;
    const bool odd = middle & 1;
    const uint64_t most = w->steps > 0 ? (uint64_t)n + (uint64_t)m : POOR;
    const int64_t limit = (int64_t)(most < (uint64_t)(n + m) ? most : (uint64_t)(n + m)) + 2;
    if (!zd_room_for_diagonals(w, 2 * (size_t)limit + 3))
        return (cut){x->a1, x->b0};
    /* forward[k] is kept at k + limit, backward[k] at k - middle + limit */
    int64_t *const f = w->forward + limit, *const g = w->backward + limit - middle;
    int64_t fmin = 0, fmax = 0, gmin = middle, gmax = middle;
    int64_t best = 0, best_a = 0, best_b = 0; /* by how far it is from its corner */
    f[0] = 0;
    g[middle] = n;
    for (int64_t d = 1; d < limit; d++) {
        uint64_t steps = 0;
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
            while (i < n && j < m && zd_same(w, x->a0 + (uint32_t)i, x->b0 + (uint32_t)j)) {
                i++;
                j++;
            }
            f[k] = i;
            steps += (uint64_t)(i - from) + 1;
            if (odd && gmin <= k && k <= gmax && g[k] <= i && i <= n && j <= m)
                return (cut){x->a0 + (uint32_t)i, x->b0 + (uint32_t)j};
            if (i <= n && j <= m && i + j > best) {
                best = i + j;
                best_a = i;
                best_b = j;
            }
        }
        if (gmin > -m)
            g[--gmin - 1] = never;
        else
            ++gmin;
        if (gmax < n)
            g[++gmax + 1] = never;
        else
            --gmax;
        for (int64_t k = gmax; k >= gmin; k -= 2) {
            int64_t i = g[k - 1] < g[k + 1] ? g[k - 1] : g[k + 1] - 1, j = i - k;
            const int64_t from = i;
            while (i > 0 && j > 0 && zd_same(w, x->a0 + (uint32_t)i - 1, x->b0 + (uint32_t)j - 1)) {
                i--;
                j--;
            }
            g[k] = i;
            steps += (uint64_t)(from - i) + 1;
            if (!odd && fmin <= k && k <= fmax && i <= f[k] && i >= 0 && j >= 0)
                return (cut){x->a0 + (uint32_t)i, x->b0 + (uint32_t)j};
            if (i >= 0 && j >= 0 && n + m - i - j > best) {
                best = n + m - i - j;
                best_a = i;
                best_b = j;
            }
        }
        w->steps -= steps < w->steps ? steps : w->steps;
        if (w->steps == 0 && d >= POOR)
            break;
    }
    return (cut){x->a0 + (uint32_t)best_a, x->b0 + (uint32_t)best_b};
}

void zd_myers(zd_aligner *w, zd_box box)
{
    const uint32_t tail = zd_trim(w, &box);
    if (box.a0 < box.a1 && box.b0 < box.b1 && !w->failed) {
        const cut c = find_cut(w, &box);
        const bool corner = (c.a == box.a0 && c.b == box.b0) || (c.a == box.a1 && c.b == box.b1);
        if (!corner && !w->failed) {
            zd_myers(w, (zd_box){box.a0, c.a, box.b0, c.b});
            zd_myers(w, (zd_box){c.a, box.a1, c.b, box.b1});
        }
    }
    zd_emit(w, box.a1, box.b1, tail);
}

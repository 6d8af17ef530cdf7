/* SPDX-License-Identifier: MIT */
/* Alignment of hashes: the script is one, and no more costly than the best by a tenth, however it was found. */
#include <CUnit/Basic.h>
#include <CUnit/Automated.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "align.h"

#define MOST 4096

static uint64_t state;
static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

typedef struct pair {
    uint64_t *a, *b;
    uint32_t n, m;
} pair;

/* A program's calls: loops of a few, some calls of a kind of their own. */
static uint32_t program(uint64_t *out, uint32_t n, unsigned shape)
{
    uint32_t i = 0;
    while (i < n) {
        const uint32_t period = 1 + below(12), rounds = 1 + below(40), base = below(shape < 2 ? 20 : 2000);
        for (uint32_t r = 0; r < rounds; r++)
            for (uint32_t k = 0; k < period && i < n; k++)
                out[i++] = shape == 1 && k == 0 ? 1000000 + below(1000000) : base + k;
        if (shape == 3 && i < n) {
            out[i] = 5000000 + i;
            i++;
        }
    }
    return n;
}

/* Removes, inserts, moves and changes calls, one at a time or some in a row. */
static pair make(uint32_t n, uint32_t edits, unsigned shape)
{
    pair p = {calloc(n + 1, 8), calloc(n + edits * 40 + 1, 8), n, n};
    program(p.a, n, shape);
    memcpy(p.b, p.a, n * 8u);
    for (uint32_t e = 0; e < edits && p.m > 0; e++) {
        const uint32_t at = below(p.m), room = p.m - at, length = below(4) ? 1 : 1 + below(room < 30 ? room : 30);
        uint64_t kept[32];
        memcpy(kept, p.b + at, length * 8u);
        switch (below(4)) {
        case 0:
            memmove(p.b + at, p.b + at + length, (p.m - at - length) * 8u);
            p.m -= length;
            break;
        case 1:
            memmove(p.b + at + length, p.b + at, (p.m - at) * 8u);
            for (uint32_t i = 0; i < length; i++)
                p.b[at + i] = below(2) ? p.a[below(n)] : 9000000 + below(1000000);
            p.m += length;
            break;
        case 2: {
            memmove(p.b + at, p.b + at + length, (p.m - at - length) * 8u);
            const uint32_t to = below(p.m - length + 1);
            memmove(p.b + to + length, p.b + to, (p.m - length - to) * 8u);
            memcpy(p.b + to, kept, length * 8u);
            break;
        }
        default:
            p.b[at] = below(2) ? p.a[below(n)] : 9000000 + below(1000000);
        }
    }
    return p;
}

static uint32_t lcs(const pair *p)
{
    static uint16_t row[MOST + 2];
    memset(row, 0, sizeof(row));
    for (uint32_t i = 0; i < p->n; i++) {
        uint16_t diagonal = 0;
        for (uint32_t j = 1; j <= p->m; j++) {
            const uint16_t above = row[j];
            row[j] = p->a[i] == p->b[j - 1] ? (uint16_t)(diagonal + 1) : above > row[j - 1] ? above : row[j - 1];
            diagonal = above;
        }
    }
    return row[p->m];
}

/* Removals and insertions; UINT32_MAX if the blocks are none. */
static uint32_t cost(const pair *p, const zd_align_options *options)
{
    const zd_sequence a = {p->a, NULL, p->n}, b = {p->b, NULL, p->m};
    zd_blocks blocks = {0};
    uint32_t equal = 0, at_a = 0, at_b = 0;
    bool right = zd_align(&a, 0, a.n, &b, 0, b.n, options, &blocks);
    for (size_t i = 0; i < blocks.n; i++) {
        const zd_block x = blocks.at[i];
        right &= x.n > 0 && x.a >= at_a && x.b >= at_b && x.a + x.n <= p->n && x.b + x.n <= p->m;
        right = right && memcmp(p->a + x.a, p->b + x.b, x.n * 8u) == 0;
        at_a = x.a + x.n;
        at_b = x.b + x.n;
        equal += x.n;
    }
    free(blocks.at);
    return right ? p->n + p->m - 2 * equal : UINT32_MAX;
}

static void against_exact(uint32_t pairs, uint32_t largest, const zd_align_options *options, const char *what, double allowed, double in_all)
{
    double worst = 0;
    uint64_t all = 0, best = 0;
    for (uint32_t i = 0; i < pairs; i++) {
        state = i * 77 + 5;
        const uint32_t n = 2 + below(largest);
        pair p = make(n, below(4) ? 1 + below(12) : 1 + n / 8, i % 4);
        if (p.m <= MOST) {
            const uint32_t mine = cost(&p, options), exact = p.n + p.m - 2 * lcs(&p);
            CU_ASSERT(mine != UINT32_MAX);
            const double ratio = exact ? (double)mine / exact : mine ? 9 : 1;
            CU_ASSERT(ratio <= allowed);
            if (ratio > allowed)
                printf("  pair %u: %u and %u elements, cost %u, exact %u\n", i, p.n, p.m, mine, exact);
            worst = ratio > worst ? ratio : worst;
            all += mine;
            best += exact;
        }
        free(p.a);
        free(p.b);
    }
    CU_ASSERT((double)all <= in_all * (double)best);
    printf("  %s: cost %.4f of the exact one in all, %.4f at the worst\n", what, (double)all / (double)best, worst);
}

static void test_exact(void)
{
    against_exact(1000, 2000, NULL, "as it comes", 1.0, 1.0);
}

/* What serves long sequences, made to serve short ones: everything is 30 times as tight as it comes. */
static void test_long_ways(void)
{
    const zd_align_options greedy = {.exact = 1, .reach = 1024}, anchors = {.exact = 256, .reach = 32},
                           poor = {.exact = 256, .reach = 32, .budget = 1};
    against_exact(200, 2000, &greedy, "matches that are believed", 1.1, 1.01);
    against_exact(200, 2000, &anchors, "anchors", 3, 1.1);
    against_exact(100, 1000, &poor, "without a budget", 3, 1.1);
}

static void test_edges(void)
{
    uint64_t some[] = {1, 2, 3, 4}, other[] = {9, 8};
    const pair cases[] = {{some, some, 0, 0}, {some, some, 4, 0}, {some, some, 0, 4}, {some, other, 4, 2}, {some, some, 4, 4}, {some, some + 1, 4, 3}};
    const uint32_t costs[] = {0, 4, 4, 6, 0, 1};
    for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++)
        CU_ASSERT_EQUAL(cost(&cases[i], NULL), costs[i]);
}

/* Blocks that go missing, all of one kind, nothing in common: in time, and not far off. */
static void test_large(void)
{
    enum { N = 600000 };
    pair p = {malloc(N * 8u), malloc(N * 8u), N, N};
    state = 3;
    program(p.a, N, 3);
    memcpy(p.b, p.a, N * 8u);
    const uint32_t hole = 90000; /* moved out of the midst to the end: it costs twice its length */
    memcpy(p.b + 200000, p.a + 200000 + hole, (N - 200000 - hole) * 8u);
    memcpy(p.b + N - hole, p.a + 200000, hole * 8u);
    CU_ASSERT(cost(&p, NULL) <= 2 * hole + hole / 10);
    for (uint32_t i = 0; i < N; i++) {
        p.a[i] = 7;
        p.b[i] = i % 1000 == 999 ? 8 : 7;
    }
    CU_ASSERT(cost(&p, NULL) <= 2 * (N / 1000) + N / 5000);
    for (uint32_t i = 0; i < N; i++) {
        p.a[i] = i;
        p.b[i] = N + i;
    }
    CU_ASSERT_EQUAL(cost(&p, NULL), 2 * N);
    for (uint32_t i = 0; i < N; i++) {
        p.a[i] = below(3);
        p.b[i] = below(3);
    }
    CU_ASSERT(cost(&p, NULL) < N + N / 2); /* about 1.1 N at the best */
    free(p.a);
    free(p.b);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    CU_pSuite s = CU_add_suite("align", NULL, NULL);
    CU_add_test(s, "edges", test_edges);
    CU_add_test(s, "exact", test_exact);
    CU_add_test(s, "long ways", test_long_ways);
    CU_add_test(s, "large", test_large);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    return CU_get_number_of_failures() != 0;
}

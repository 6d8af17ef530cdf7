/* SPDX-License-Identifier: MIT */
/* Traces with random edits: the script makes one of the other, and costs hardly more than the best one, or than the edits themselves. */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diff.h"
#include "edit.h"
#include "programs.h"

static uint64_t state;
static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* Objects come and go; lists of copies are executed, waited for, used again. */
static void busy(hand *h)
{
    basics b;
    uint64_t events[6], memory[5], lists[3];
    start(h, &b);
    for (unsigned i = 0; i < 6; i++)
        events[i] = new_event(h, &b, i);
    for (unsigned i = 0; i < 5; i++)
        memory[i] = new_memory(h, &b, "zeMemAllocDevice", 65536);
    for (unsigned i = 0; i < 3; i++)
        lists[i] = new_list(h, &b);
    for (unsigned round = 0; round < 40; round++) {
        const unsigned l = below(3), e = below(6);
        for (unsigned i = below(8) + 1; i > 0; i--)
            CALL(h, "zeCommandListAppendMemoryCopy", lists[l], memory[below(5)] + below(8) * 64, memory[below(5)] + below(8) * 64, 64u << below(4),
                 i == 1 ? events[e] : 0, 0, 0);
        CALL(h, "zeCommandListClose", lists[l]);
        execute(h, &b, lists[l]);
        if (below(2))
            CALL(h, "zeEventHostSynchronize", events[e], 1000000000u);
        sync_queue(h, &b);
        CALL(h, "zeEventHostReset", events[e]);
        CALL(h, "zeCommandListReset", lists[l]);
        if (below(4) == 0) {
            const unsigned m = below(5);
            CALL(h, "zeMemFree", W(b.context), memory[m]);
            memory[m] = new_memory(h, &b, "zeMemAllocDevice", 65536);
        }
        if (below(4) == 0) {
            const unsigned k = below(3);
            CALL(h, "zeCommandListDestroy", lists[k]);
            lists[k] = new_list(h, &b);
        }
    }
}

static char folder[64], whole[128], edited[128];

static uint32_t lcs(const zd_sequence *a, const zd_sequence *b)
{
    uint32_t *const row = calloc((size_t)b->n + 1, sizeof(*row));
    for (uint32_t i = 0; i < a->n; i++) {
        uint32_t diagonal = 0;
        for (uint32_t j = 1; j <= b->n; j++) {
            const uint32_t above = row[j];
            row[j] = zd_at(a, i) == zd_at(b, j - 1) ? diagonal + 1 : above > row[j - 1] ? above : row[j - 1];
            diagonal = above;
        }
    }
    const uint32_t n = row[b->n];
    free(row);
    return n;
}

/* @return removals and insertions, a change being one of each; UINT64_MAX if the script does not make B of A. */
static uint64_t cost_of(const zd_diff *d, uint64_t *exact)
{
    const zd_section *s;
    zd_op *ops;
    const size_t n = zd_sections(d, &s);
    uint64_t cost = 0;
    zd_script(d, &ops);
    *exact = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t a = 0, b = 0;
        for (size_t k = 0; k < s[i].n; k++) {
            const zd_op o = ops[s[i].first + k];
            if (o.a != a || o.b != b)
                return UINT64_MAX;
            for (uint32_t x = 0; o.kind == ZD_EQUAL && x < o.n; x++)
                if (strcmp(zd_function(d, 0, zd_index(&s[i].a, a + x)), zd_function(d, 1, zd_index(&s[i].b, b + x))) != 0)
                    return UINT64_MAX;
            a += o.kind != ZD_ADDED ? o.n : 0;
            b += o.kind != ZD_REMOVED ? o.n : 0;
            cost += o.kind == ZD_EQUAL ? 0 : o.kind == ZD_CHANGED ? 2 * o.n : o.n;
        }
        if (a != s[i].a.n || b != s[i].b.n)
            return UINT64_MAX;
        *exact += s[i].a.n + s[i].b.n - 2 * lcs(&s[i].a, &s[i].b);
    }
    return cost;
}

/* Nothing is said of calls that are equal, something of those that have changed. */
static void details_agree(const zd_section *s, const zd_op *o, zd_reader *x, zd_reader *y)
{
    const zt_objects *names;
    const zd_tolerance none = {0};
    for (uint32_t k = 0; k < o->n && k < 20 && (o->kind == ZD_CHANGED || o->kind == ZD_EQUAL); k++) {
        CU_ASSERT_FATAL(zd_fetch(x, zd_index(&s->a, o->a + k), &names) != NULL && zd_fetch(y, zd_index(&s->b, o->b + k), &names) != NULL);
        CU_ASSERT_EQUAL(zd_details(x, y, ZD_BYTES, &none, NULL, NULL) == 0, o->kind == ZD_EQUAL);
    }
}

static void compare(uint64_t seed, unsigned edits, bool by_order, uint64_t *sum, uint64_t *edits_sum)
{
    zt_trace *a = NULL, *b = NULL;
    zt_error error = {0};
    zd_diff *d = NULL;
    uint64_t bound, exact;
    const zd_options options = {.by_order = by_order};
    CU_ASSERT_FATAL(edit_trace(whole, edited, seed, edits, &bound, &error));
    CU_ASSERT_FATAL(zt_trace_open(&a, whole, &error) == ZT_OK && zt_trace_open(&b, edited, &error) == ZT_OK);
    CU_ASSERT_FATAL(zd_compare(&d, a, b, &options, &error) == ZT_OK);
    const uint64_t cost = cost_of(d, &exact);
    CU_ASSERT(cost != UINT64_MAX);
    CU_ASSERT(10 * cost <= 11 * exact);
    if (10 * cost > 11 * exact || (seed % 2 == 0 && cost > bound + bound / 2))
        printf("  seed %llu: %u edits that cost %llu, script %llu, exact %llu\n", (unsigned long long)seed, edits, (unsigned long long)bound,
               (unsigned long long)cost, (unsigned long long)exact);
    if (seed % 2 == 0) {
        *sum += cost;
        *edits_sum += bound;
    }
    zd_reader *const x = zd_reader_new(d, 0), *const y = zd_reader_new(d, 1);
    const zd_section *s;
    zd_op *ops;
    zd_script(d, &ops);
    const size_t n = seed % 16 == 0 ? zd_sections(d, &s) : 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < s[i].n; k++)
            details_agree(&s[i], &ops[s[i].first + k], x, y);
    zd_reader_free(x);
    zd_reader_free(y);
    zd_free(d);
    zt_trace_close(a);
    zt_trace_close(b);
}

static void record(uint64_t seed, void (*program)(hand *h))
{
    state = seed;
    CU_ASSERT_FATAL(hand_record(whole, "eager", program));
}

static void test_edits(void)
{
    uint64_t sum = 0, bound = 0;
    for (unsigned i = 0; i < 100; i++) {
        if (i % 30 == 0)
            record(i + 1, busy);
        compare(i, 1 + i % 13, false, &sum, &bound);
    }
    printf("  100 pairs: scripts cost %llu, their edits %llu\n", (unsigned long long)sum, (unsigned long long)bound);
    CU_ASSERT(10 * sum <= 11 * bound);
}

static void test_by_order(void)
{
    uint64_t sum = 0, bound = 0;
    record(5, eight_threads);
    for (unsigned i = 0; i < 20; i++)
        compare(i, 1 + i % 7, i % 2, &sum, &bound); /* an end that moves behind another thread's beginning ends what that one made */
    record(6, many_queries);
    compare(0, 0, false, &sum, &bound);
}

static void test_same(void)
{
    uint64_t sum = 0, bound = 0;
    record(7, busy);
    compare(0, 0, false, &sum, &bound);
    CU_ASSERT_EQUAL(sum, 0);
}

static void test_contents(void)
{
    const float p[] = {1, 2, 3, 4}, q[] = {1, 2.0000002f, 3.5f, 4};
    const zd_tolerance none = {0}, steps = {.ulp = 2}, relative = {.relative = 0.2};
    char a[96], b[96], count[80];
    CU_ASSERT(zd_contents_differ(p, q, sizeof(p), ZD_F32, &none, a, b, sizeof(a), count, sizeof(count)));
    CU_ASSERT_STRING_EQUAL(a, "[1] 2");
    CU_ASSERT_STRING_EQUAL(b, "[1] 2.00000024");
    CU_ASSERT_STRING_EQUAL(count, "2 of 4 f32 differ");
    CU_ASSERT(zd_contents_differ(p, q, sizeof(p), ZD_F32, &steps, a, b, sizeof(a), count, sizeof(count)));
    CU_ASSERT_STRING_EQUAL(a, "[2] 3");
    CU_ASSERT(!zd_contents_differ(p, q, sizeof(p), ZD_F32, &relative, a, b, sizeof(a), count, sizeof(count)));
    CU_ASSERT(zd_contents_differ(p, q, sizeof(p), ZD_BYTES, &relative, a, b, sizeof(a), count, sizeof(count)));
    const uint16_t half[] = {0x3c00, 0x7c00, 0x8000}, other[] = {0xc000, 0x7bff, 0};
    CU_ASSERT(zd_contents_differ(half, other, sizeof(half), ZD_F16, &none, a, b, sizeof(a), count, sizeof(count)));
    CU_ASSERT_STRING_EQUAL(a, "[0] 1");
    CU_ASSERT_STRING_EQUAL(b, "[0] -2");
    CU_ASSERT_STRING_EQUAL(count, "3 of 3 f16 differ");
    CU_ASSERT(zd_contents_differ(half, other, sizeof(half), ZD_F16, &steps, a, b, sizeof(a), count, sizeof(count)));
    CU_ASSERT_STRING_EQUAL(count, "2 of 3 f16 differ"); /* infinity has no neighbour, -0 is 0 */
    const int8_t small[] = {-1, 5}, large[] = {-1, -5};
    CU_ASSERT(zd_contents_differ(small, large, 2, ZD_I8, &none, a, b, sizeof(a), count, sizeof(count)));
    CU_ASSERT_STRING_EQUAL(b, "[1] -5");
    CU_ASSERT(zd_contents_differ("abcde", "abcdf", 5, ZD_U32, &none, a, b, sizeof(a), count, sizeof(count)));
}

int main(void)
{
    snprintf(folder, sizeof(folder), "/tmp/zetrace-diff.XXXXXX");
    if (mkdtemp(folder) == NULL || CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    snprintf(whole, sizeof(whole), "%s/a.zetrace", folder);
    snprintf(edited, sizeof(edited), "%s/b.zetrace", folder);
    CU_pSuite s = CU_add_suite("diff", NULL, NULL);
    CU_add_test(s, "contents", test_contents);
    CU_add_test(s, "same", test_same);
    CU_add_test(s, "edits", test_edits);
    CU_add_test(s, "by order", test_by_order);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unlink(whole);
    unlink(edited);
    rmdir(folder);
    return CU_get_number_of_failures() != 0;
}

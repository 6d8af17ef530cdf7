/* SPDX-License-Identifier: MIT */
/*
 * Comparing a trace with a damaged copy of itself, whose checksums are right: the script makes one of the other, what is said of calls that
 * are equal is nothing, and nothing crashes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "diff.h"
#include "trace_tools.h"

static char whole[64], damaged[64];
static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

static void fail(uint64_t seed, const char *what)
{
    fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, what);
    exit(1);
}

static bool damage(void)
{
    bytes file = read_file(whole);
    const unsigned n = 1 + below(3);
    for (unsigned i = 0; i < n; i++) {
        const size_t at = find_chunk(&file, below(8) ? 3 : 2 + below(4), below(3)); /* calls, mostly */
        if (at == 0)
            continue;
        zt_chunk_header h;
        memcpy(&h, file.at + at, sizeof(h));
        bytes raw = chunk_contents(&file, at);
        for (unsigned k = 1 + below(8); k > 0 && raw.n > 0; k--)
            raw.at[below((uint32_t)raw.n)] ^= (uint8_t)(1u << below(8));
        bytes other = with_contents(&file, at, raw.at, raw.n, h.calls, h.late);
        free(raw.at);
        free(file.at);
        file = other;
    }
    const bool ok = write_file(damaged, file.at, below(16) ? file.n : file.n / 2);
    free(file.at);
    return ok;
}

static void look(uint64_t seed, zd_diff *d)
{
    const zd_section *s;
    zd_op *ops;
    const zt_objects *names;
    const zd_tolerance none = {0};
    zd_reader *const x = zd_reader_new(d, 0), *const y = zd_reader_new(d, 1);
    const size_t n = zd_sections(d, &s);
    zd_script(d, &ops);
    for (size_t i = 0; i < n; i++) {
        uint32_t a = 0, b = 0;
        for (size_t k = 0; k < s[i].n; k++) {
            const zd_op o = ops[s[i].first + k];
            if (o.a != a || o.b != b)
                fail(seed, "the script has a gap");
            for (uint32_t c = 0; c < o.n && c < 8; c++) {
                if (o.kind != ZD_ADDED)
                    zd_line(x, zd_index(&s[i].a, a + c), below(2));
                if (o.kind != ZD_REMOVED)
                    zd_line(y, zd_index(&s[i].b, b + c), below(2));
                if (o.kind != ZD_EQUAL && o.kind != ZD_CHANGED)
                    continue;
                if (zd_fetch(x, zd_index(&s[i].a, a + c), &names) == NULL || zd_fetch(y, zd_index(&s[i].b, b + c), &names) == NULL)
                    continue;
                const uint32_t details = zd_details(x, y, ZD_F32, &none, NULL, NULL);
                if (o.kind == ZD_EQUAL && details != 0)
                    fail(seed, "details of a call that is equal");
            }
            a += o.kind != ZD_ADDED ? o.n : 0;
            b += o.kind != ZD_REMOVED ? o.n : 0;
        }
        if (a != s[i].a.n || b != s[i].b.n)
            fail(seed, "the script ends too early");
    }
    zd_reader_free(x);
    zd_reader_free(y);
}

static unsigned long compared;

static void one(uint64_t seed)
{
    zt_trace *a, *b;
    zt_error error = {0};
    zd_diff *d;
    const zd_options options = {.by_order = below(2)};
    if (!damage() || zt_trace_open(&a, whole, &error) != ZT_OK)
        fail(seed, "the trace can't be written or read");
    if (zt_trace_open(&b, damaged, &error) == ZT_OK) {
        if (zd_compare(&d, a, b, &options, &error) == ZT_OK) {
            look(seed, d);
            compared++;
        }
        zd_free(d);
        zt_trace_close(b);
    }
    zt_trace_close(a);
}

int main(int argc, char **argv)
{
    const double seconds = argc >= 3 && strcmp(argv[1], "--seconds") == 0 ? atof(argv[2]) : 2;
    const time_t start = time(NULL);
    uint64_t seed = argc >= 5 && strcmp(argv[3], "--seed") == 0 ? strtoull(argv[4], NULL, 0) : 1;
    unsigned long rounds = 0;
    snprintf(whole, sizeof(whole), "/tmp/zetrace-diff-fuzz-%d-a", (int)getpid());
    snprintf(damaged, sizeof(damaged), "/tmp/zetrace-diff-fuzz-%d-b", (int)getpid());
    if (!make_trace(whole, 120, 50))
        return 2;
    for (; rounds == 0 || difftime(time(NULL), start) < seconds + 0.5; rounds++, seed++) {
        state = seed * 0x9e3779b97f4a7c15u;
        one(seed);
    }
    unlink(whole);
    unlink(damaged);
    printf("%lu rounds, %lu compared\n", rounds, compared);
    return compared == 0;
}

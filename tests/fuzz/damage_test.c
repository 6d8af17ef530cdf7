/* SPDX-License-Identifier: MIT */
/* Damage: cut at every byte, every byte flipped. What is shown is right, what was not hit is kept, nothing crashes. */
#include "refile.h"
#include "trace_tools.h"

#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <signal.h>
#include <unistd.h>

enum { CALLS = 120, PER_CHUNK = 20 };

static char folder[] = "/tmp/zetrace-damage.XXXXXX", path[80], hit[80];
static bytes good;
static uint64_t digests[CALLS + 1];

typedef struct seen {
    unsigned calls, wrong;
    uint64_t last;
    uint8_t there[CALLS + 1];
    uint64_t open[CALLS + 1]; /* digest of a call whose late LEAVE is not there */
} seen;

static void remember(void *ctx, uint64_t number, uint64_t digest)
{
    (void)ctx;
    if (number >= 1 && number <= CALLS)
        digests[number] = digest;
}

static void compare(void *ctx, uint64_t number, uint64_t digest)
{
    seen *const s = ctx;
    s->calls++;
    if (number < 1 || number > CALLS || number <= s->last) {
        s->wrong++;
        return;
    }
    s->last = number;
    s->there[number] = 1;
    if (digest != digests[number])
        s->wrong += s->open[number] == 0 || s->open[number] != digest;
}

static uint64_t open_digests[CALLS + 1];

static void remember_open(void *ctx, uint64_t number, uint64_t digest)
{
    (void)ctx;
    if (number >= 1 && number <= CALLS)
        open_digests[number] = digest;
}

static int set_up(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(path, sizeof(path), "%s/good", folder);
    snprintf(hit, sizeof(hit), "%s/hit", folder);
    if (!make_trace(path, CALLS, PER_CHUNK))
        return 1;
    good = read_file(path);
    read_everything(path, remember, NULL, NULL);
    /* the same calls as they look when no late LEAVE can be read: each chunk alone */
    for (unsigned n = 0;; n++) {
        const size_t at = find_chunk(&good, ZT_CHUNK_CALLS, n);
        if (at == 0)
            break;
        bytes alone = {malloc(good.n), 0};
        size_t first = find_chunk(&good, ZT_CHUNK_CALLS, 0);
        memcpy(alone.at, good.at, first);
        alone.n = first;
        for (unsigned k = 0; k < 6; k++) { /* tables that came later are needed as well */
            const size_t api = find_chunk(&good, ZT_CHUNK_API, k);
            zt_chunk_header h;
            if (api == 0 || api < first || api > at)
                continue;
            memcpy(&h, good.at + api, sizeof(h));
            memcpy(alone.at + alone.n, good.at + api, sizeof(h) + h.stored_size);
            alone.n += sizeof(h) + h.stored_size;
        }
        zt_chunk_header h;
        memcpy(&h, good.at + at, sizeof(h));
        memcpy(alone.at + alone.n, good.at + at, sizeof(h) + h.stored_size);
        alone.n += sizeof(h) + h.stored_size;
        if (write_file(hit, alone.at, alone.n))
            read_everything(hit, remember_open, NULL, NULL);
        free(alone.at);
    }
    return good.n == 0;
}

static int tear_down(void)
{
    unlink(path);
    unlink(hit);
    free(good.at);
    return rmdir(folder);
}

static void fresh(seen *s)
{
    memset(s, 0, sizeof(*s));
    memcpy(s->open, open_digests, sizeof(s->open));
}

static void undamaged(void)
{
    seen s;
    zt_health h;
    fresh(&s);
    CU_ASSERT_EQUAL(read_everything(path, compare, &s, &h), ZT_OK);
    CU_ASSERT_EQUAL(s.calls, CALLS);
    CU_ASSERT_EQUAL(s.wrong, 0);
    CU_ASSERT(h.complete && h.damaged_chunks == 0 && h.first_problem[0] == '\0');
}

static void cut_everywhere(void)
{
    unsigned wrong = 0, claims_whole = 0, lost = 0;
    for (size_t n = 0; n < good.n; n++) {
        seen s;
        zt_health h = {0};
        fresh(&s);
        if (!write_file(hit, good.at, n))
            break;
        const int status = read_everything(hit, compare, &s, &h);
        wrong += s.wrong;
        claims_whole += status == ZT_OK && h.complete;
        /* all chunks before the cut are there */
        unsigned must = 0;
        for (unsigned k = 0;; k++) {
            const size_t at = find_chunk(&good, ZT_CHUNK_CALLS, k);
            zt_chunk_header c;
            if (at == 0)
                break;
            memcpy(&c, good.at + at, sizeof(c));
            if (at + sizeof(c) + c.stored_size <= n)
                must += c.calls;
        }
        lost += s.calls < must;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(claims_whole, 0);
    CU_ASSERT_EQUAL(lost, 0);
}

static void flip_every_byte(void)
{
    unsigned wrong = 0, lost = 0, unnoticed = 0;
    uint8_t *const data = malloc(good.n);
    memcpy(data, good.at, good.n);
    for (size_t i = 0; i < good.n; i++) {
        seen s;
        zt_health h = {0};
        fresh(&s);
        data[i] ^= (uint8_t)(1u << (i % 8));
        write_file(hit, data, good.n);
        const int status = read_everything(hit, compare, &s, &h);
        data[i] ^= (uint8_t)(1u << (i % 8));
        if (i < sizeof(zt_file_header))
            continue; /* says what the file is: it may be refused as a whole */
        wrong += s.wrong;
        const size_t first = find_chunk(&good, ZT_CHUNK_CALLS, 0);
        if (i < first || status != ZT_OK)
            continue; /* session and table: calls may need them */
        for (unsigned k = 0;; k++) {
            const size_t at = find_chunk(&good, ZT_CHUNK_CALLS, k);
            zt_chunk_header c;
            if (at == 0)
                break;
            memcpy(&c, good.at + at, sizeof(c));
            const bool touched = i >= at && i < at + sizeof(c) + c.stored_size;
            for (uint32_t n = 0; n < c.calls && !touched; n++) {
                bool table_hit = false; /* a table in between that was hit takes its functions with it */
                for (unsigned a = 0; a < 8; a++) {
                    const size_t api = find_chunk(&good, ZT_CHUNK_API, a);
                    zt_chunk_header t;
                    if (api == 0 || api > at)
                        continue;
                    memcpy(&t, good.at + api, sizeof(t));
                    table_hit |= i >= api && i < api + sizeof(t) + t.stored_size;
                }
                lost += !table_hit && !s.there[c.first + n];
            }
        }
        unnoticed += h.complete && h.damaged_chunks == 0 && s.calls != CALLS;
    }
    free(data);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(lost, 0);
    CU_ASSERT_EQUAL(unnoticed, 0);
}

static void count(void *ctx, uint64_t number, uint64_t digest)
{
    (void)number;
    (void)digest;
    ++*(unsigned long *)ctx;
}

/* One byte at a time, in the file header, in the headers and the contents of chunks of each kind, in the index. */
static void hit_everywhere(const char *many, uint64_t calls)
{
    bytes all = read_file(many);
    zt_verdict v;
    zt_error error;
    for (unsigned kind = ZT_CHUNK_SESSION; kind <= ZT_CHUNK_FRAMES + 2; kind++) {
        const size_t chunk = kind <= ZT_CHUNK_FRAMES ? find_chunk(&all, kind, 0) : 0;
        if (kind <= ZT_CHUNK_FRAMES && chunk == 0)
            continue;
        const size_t at = kind == ZT_CHUNK_FRAMES + 1 ? 3 : kind == ZT_CHUNK_FRAMES + 2 ? all.n - 20 : chunk + (kind % 2 ? 30 : 85);
        FILE *const f = fopen(many, "r+b");
        fseek(f, (long)at, SEEK_SET);
        fputc(all.at[at] ^ 0x20, f);
        fclose(f);
        CU_ASSERT_EQUAL(zt_verify(many, NULL, NULL, NULL, NULL, &v, &error), ZT_OK);
        CU_ASSERT(!v.whole && v.calls >= calls / 100 * 99 && v.calls + v.calls_lost == calls);
        write_file(many, all.at, all.n);
    }
    free(all.at);
}

static void one_byte_of_many_calls(void)
{
    const unsigned calls = 1000000;
    unsigned long kept = 0;
    char many[96], mended[112];
    snprintf(many, sizeof(many), "%s/many", folder);
    CU_ASSERT(make_trace(many, calls, 0));
    FILE *const f = fopen(many, "r+b");
    fseek(f, 0, SEEK_END);
    fseek(f, ftell(f) / 2, SEEK_SET);
    const int c = fgetc(f);
    fseek(f, -1, SEEK_CUR);
    fputc(c ^ 0x10, f);
    fclose(f);
    zt_health h;
    CU_ASSERT_EQUAL(read_everything(many, count, &kept, &h), ZT_OK);
    CU_ASSERT(kept >= calls / 100 * 99);
    printf("%lu of %u calls kept ... ", kept, calls);
    strcpy(mended, many);
    strcat(mended, ".mended");
    const zt_refile_options plain = {.overwrite = true};
    zt_refiled done;
    zt_verdict told, after;
    zt_error error;
    CU_ASSERT_EQUAL(zt_repair(many, mended, &plain, &done, &told, &error), ZT_OK);
    CU_ASSERT_EQUAL(zt_verify(mended, NULL, NULL, NULL, NULL, &after, &error), ZT_OK);
    CU_ASSERT(after.calls == kept && after.calls_lost == calls - kept && after.damaged_chunks == 0 && after.index && !after.damaged);
    unlink(mended);
    hit_everywhere(many, calls);
    unlink(many);
}

static void full_disk(void)
{
    const struct rlimit small = {20000, RLIM_INFINITY};
    struct rlimit old;
    char full[96];
    snprintf(full, sizeof(full), "%s/full", folder);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    setrlimit(RLIMIT_FSIZE, &small);
    CU_ASSERT_FALSE(make_trace(full, 5000, 20));
    setrlimit(RLIMIT_FSIZE, &old);
    strcat(full, ".partial");
    unsigned long kept = 0;
    zt_health h;
    CU_ASSERT_EQUAL(read_everything(full, count, &kept, &h), ZT_OK); /* what was written before is there */
    CU_ASSERT(kept > 0 && !h.complete);
    unlink(full);
}

/* A newer writer's fields are skipped. Field 900, a varint, and field 901, bytes, behind the packet's own. */
static void unknown_fields(void)
{
    static const uint8_t more[] = {0xa0, 0x38, 0x05, 0xaa, 0x38, 0x02, 'h', 'i'};
    const size_t at = find_chunk(&good, ZT_CHUNK_CALLS, 0);
    bytes raw = chunk_contents(&good, at);
    uint8_t *const grown = malloc(raw.n + 16);
    size_t length = 0, used = 0;
    do
        length |= (size_t)(raw.at[used] & 0x7f) << (7 * used);
    while (raw.at[used++] & 0x80);
    length += sizeof(more);
    size_t n = 0;
    for (size_t rest = length; rest > 0 || n == 0; rest >>= 7)
        grown[n++] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
    memcpy(grown + n, raw.at + used, raw.n - used);
    n += raw.n - used;
    memcpy(grown + n, more, sizeof(more));
    n += sizeof(more);
    zt_chunk_header h;
    memcpy(&h, good.at + at, sizeof(h));
    bytes file = with_contents(&good, at, grown, n, h.calls, h.late);
    seen s;
    zt_health health;
    fresh(&s);
    CU_ASSERT(write_file(hit, file.at, file.n));
    CU_ASSERT_EQUAL(read_everything(hit, compare, &s, &health), ZT_OK);
    CU_ASSERT_EQUAL(s.calls, CALLS);
    CU_ASSERT_EQUAL(s.wrong, 0);
    free(raw.at);
    free(grown);
    free(file.at);
}

int main(void)
{
    CU_initialize_registry();
    const CU_pSuite suite = CU_add_suite("damage", set_up, tear_down);
    CU_add_test(suite, "undamaged", undamaged);
    CU_add_test(suite, "cut at every byte", cut_everywhere);
    CU_add_test(suite, "every byte flipped", flip_every_byte);
    CU_add_test(suite, "one byte of a million calls", one_byte_of_many_calls);
    CU_add_test(suite, "full disk", full_disk);
    CU_add_test(suite, "unknown fields", unknown_fields);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    const unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}

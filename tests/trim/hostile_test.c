/* SPDX-License-Identifier: MIT */
/*
 * Property: whatever stands in a trace, finding out what its calls need, closing any set over it, writing it and minimising it end without
 * a crash, and what was written can be read.  trim_hostile_test [ROUNDS [SEED]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs.h"
#include "trace_tools.h"
#include "trim.h"

static char folder[] = "/tmp/zetrace-trim.XXXXXX", path[80], hit[80], out[80];
static uint64_t state, trimmed;

static uint64_t below(uint64_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return n ? state % n : 0;
}

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "trim_hostile_test: %s\n", what);
    exit(1);
}

static bool sometimes(void *ctx, const char *candidate)
{
    (void)ctx;
    check(access(candidate, R_OK) == 0, "a candidate is not there");
    return below(3) > 0;
}

static void trim_it(void)
{
    zt_trace *trace;
    zt_error error;
    zm_needs *needs;
    if (zt_trace_open(&trace, hit, &error) != ZT_OK)
        return;
    if (zm_needs_make(&needs, trace, &error) == ZT_OK) {
        zm_keep *const keep = zm_keep_new(needs);
        check(keep != NULL, "no memory");
        const zm_trim_options o = {.overwrite = true, .level = 1};
        const uint64_t from = below(500);
        zm_keep_add_range(keep, from, from + below(300));
        zm_keep_add_object(keep, below(2) ? "mem#1" : "list#1");
        const uint64_t before = zm_keep_count(keep);
        check(zm_close_over_needs(keep, (unsigned)below(16), below(2) ? 0 : below(500)) == ZT_OK, "closing failed");
        check(zm_keep_count(keep) >= before, "closing takes calls away");
        const int status = zm_trim(keep, out, &o, &error);
        check(status == ZT_OK || error.text[0] != 0, "no reason given");
        if (status == ZT_OK) {
            zt_health health;
            check(read_everything(out, NULL, NULL, &health) == ZT_OK, "what was written can't be read");
            check(health.damaged_chunks == 0 && health.calls == zm_keep_count(keep), "calls were lost on the way");
            trimmed++;
        }
        if (below(8) == 0) {
            zm_minimised result;
            const zm_minimise_options how = {.still = sometimes, .budget = 10, .overwrite = true};
            zm_minimise(keep, out, &how, &result, &error);
        }
        zm_keep_free(keep);
        zm_needs_free(needs);
    }
    zt_trace_close(trace);
}

static void spoil(uint8_t *data, size_t *size, size_t room)
{
    for (uint64_t k = 1 + below(5); k > 0; k--) {
        const size_t at = *size ? below(*size) : 0;
        switch (below(5)) {
        case 0:
            data[at] ^= (uint8_t)(1u << below(8));
            break;
        case 1:
            data[at] = (uint8_t)below(256);
            break;
        case 2:
            for (size_t i = at; i < *size && i < at + 9; i++)
                data[i] = 0xff;
            break;
        case 3:
            if (*size + 8 < room) {
                memmove(data + at + 4, data + at, *size - at);
                *size += 4;
            }
            break;
        default:
            data[at] = (uint8_t)(below(2) ? 0 : 0x80);
        }
    }
}

static void cut_and_spoil(uint64_t rounds)
{
    static const unsigned kinds[] = {ZT_CHUNK_CALLS, ZT_CHUNK_CALLS, ZT_CHUNK_CALLS, ZT_CHUNK_API, ZT_CHUNK_BLOB, ZT_CHUNK_SESSION};
    const bytes whole = read_file(path);
    check(whole.n > 0, "no trace to spoil");
    for (size_t n = 0; n <= whole.n; n += 1 + whole.n / (rounds / 2 + 1)) {
        check(write_file(hit, whole.at, n), "disk");
        trim_it();
    }
    for (uint64_t r = 0; r < rounds; r++) {
        const size_t at = find_chunk(&whole, kinds[r % 6], (unsigned)below(2));
        if (at == 0)
            continue;
        zt_chunk_header h;
        memcpy(&h, whole.at + at, sizeof(h));
        const bytes raw = chunk_contents(&whole, at);
        uint8_t *const data = malloc(raw.n + 64);
        check(data != NULL, "no memory");
        size_t size = raw.n;
        memcpy(data, raw.at, raw.n);
        spoil(data, &size, raw.n + 64);
        size_t rest = size - (raw.n > 16383 + 3 ? 3u : raw.n > 128 ? 2u : 1u); /* the length in front fits */
        for (size_t i = 0; rest > 0; i++, rest >>= 7)
            data[i] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
        const bytes file = with_contents(&whole, at, data, size, h.calls, h.late);
        check(write_file(hit, file.at, file.n), "disk");
        trim_it();
        free(data);
        free(raw.at);
        free(file.at);
    }
    free(whole.at);
}

/* Two functions of one name that no table knows, of which one has more arguments. */
static void strange_functions(void)
{
    static const zt_field none[1];
    static const zt_func small = {.name = "zeNew", .n_words = 1, .params = none}, big = {.name = "zeNew", .n_words = 60, .params = none};
    const zt_session session = {.pid = 1};
    const zt_writer_options o = {.overwrite = true};
    uint64_t words[64] = {0};
    zt_error error;
    zt_writer *w;
    check(zt_writer_open(&w, hit, &session, &o, &error) == ZT_OK, "no writer");
    for (uint64_t n = 1; n <= 40; n++) {
        words[n % 60] = n;
        const zt_call call = {.number = n * 1000000007u, .func = n % 2 ? &small : &big, .thread = 1, .returned = 1, .words = words};
        zt_writer_call(w, &call);
    }
    check(zt_writer_close(w, NULL, &error) == ZT_OK, "no trace");
    zt_trace *trace;
    zm_needs *needs;
    check(zt_trace_open(&trace, hit, &error) == ZT_OK && zm_needs_make(&needs, trace, &error) == ZT_OK, "not read");
    zm_keep *const keep = zm_keep_new(needs);
    check(keep != NULL && zm_keep_add_range(keep, 0, UINT64_MAX) == 40, "calls are missing");
    const zm_trim_options all = {.overwrite = true};
    check(zm_trim(keep, out, &all, &error) == ZT_OK, "not written");
    zm_keep_free(keep);
    zm_needs_free(needs);
    zt_trace_close(trace);
    check(zt_trace_open(&trace, out, &error) == ZT_OK, "not read again");
    const zt_call *call;
    uint64_t n = 0;
    while (zt_trace_next(trace, &call) == ZT_OK) {
        n++;
        check(call->number == n * 1000000007u && call->func->n_words == (n % 2 ? 1 : 60) && (n % 2 || call->words[n % 60] == n), "another call");
    }
    check(n == 40, "calls were lost");
    zt_trace_close(trace);
}

int main(int argc, char **argv)
{
    const uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 0) : 120;
    static void (*const programs[])(hand *) = {host_memory, gate, two_threads, evict_bad};
    state = argc > 2 ? strtoull(argv[2], NULL, 0) : 0x5eed;
    check(mkdtemp(folder) != NULL, "no folder");
    snprintf(path, sizeof(path), "%s/good", folder);
    snprintf(hit, sizeof(hit), "%s/hit", folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    strange_functions();
    check(make_trace(path, 400, 100), "no trace");
    cut_and_spoil(rounds);
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        check(hand_record(path, "eager", programs[i]), "no recording");
        cut_and_spoil(rounds);
    }
    check(trimmed > rounds, "hardly any trace was read");
    unlink(path);
    unlink(hit);
    unlink(out);
    check(rmdir(folder) == 0, "something was left behind");
    printf("%llu traces trimmed\n", (unsigned long long)trimmed);
    return 0;
}

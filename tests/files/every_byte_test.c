/* SPDX-License-Identifier: MIT */
/*
 * every_byte_test [--all] TRACE...: each byte of a small trace flipped in turn, and the trace cut at each byte. Every library ends in good order,
 * nothing is shown that was not recorded, every chunk that was not hit is kept, through repair and repack too. Without --all: some of them.
 */
#include "order.h"
#include "refile.h"
#include "replay.h"
#include "trace_tools.h"
#include "trim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { MOST = 4096, SAMPLES = 100 };

static char folder[64], hit[80], out[80];
static bytes good, packed_good;
static const char *name;
static size_t position;  /* of the damage */
static bool cut;
static struct {
    uint64_t enter, leave;
    bool there;
} calls[MOST + 1];
static uint64_t n_calls;
static unsigned long failures, tried, refused;

static void expect(bool ok, const char *what)
{
    if (ok)
        return;
    if (failures++ < 20)
        fprintf(stderr, "%s, %s at %zu: %s\n", name, cut ? "cut" : "flipped", position, what);
}

/* ------------------------------------------------------------------------------------------------------- what is shown */

static uint64_t mix(uint64_t hash, const void *data, size_t n)
{
    return XXH3_64bits_withSeed(data, n, hash);
}

static uint64_t mix_pieces(uint64_t hash, const zt_piece *pieces, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t facts[] = {pieces[i].addr, pieces[i].len, pieces[i].lost, pieces[i].hash.lo, pieces[i].hash.hi};
        hash = mix(hash, facts, sizeof(facts));
        hash = pieces[i].data ? mix(hash, pieces[i].data, pieces[i].len) : hash;
    }
    return hash;
}

static uint64_t mix_contents(uint64_t hash, const zt_call *c, bool leave)
{
    for (uint32_t i = 0; i < c->n_contents; i++) {
        const zt_content *const k = &c->contents[i];
        const uint64_t facts[] = {k->kind, k->changed, k->hash_only, k->addr, k->len, k->hash.lo, k->hash.hi};
        if ((k->kind == ZT_C_READBACK) != leave)
            continue;
        hash = mix(hash, facts, sizeof(facts));
        hash = k->data ? mix(hash, k->data, k->len) : hash;
    }
    return hash;
}

static uint64_t enter_of(const zt_call *c)
{
    const uint64_t facts[] = {c->number, c->thread, c->internal, c->nested, c->enter_ns};
    const uint64_t hash = mix(mix(1, c->func->name, strlen(c->func->name)), facts, sizeof(facts));
    return mix_contents(mix_pieces(mix(hash, c->words, c->func->n_words * 8u), c->in, c->n_in), c, false);
}

static uint64_t leave_of(const zt_call *c)
{
    const uint64_t facts[] = {c->leave_ns, (uint64_t)c->result};
    return mix_contents(mix_pieces(mix(2, facts, sizeof(facts)), c->out, c->n_out), c, true);
}

static bool learn(const char *path)
{
    zt_trace *trace;
    zt_error error;
    const zt_call *c;
    memset(calls, 0, sizeof(calls));
    if (zt_trace_open(&trace, path, &error) != ZT_OK)
        return false;
    for (n_calls = 0; zt_trace_next(trace, &c) == ZT_OK && c->number <= MOST; n_calls++) {
        calls[c->number].enter = enter_of(c);
        calls[c->number].leave = c->returned ? leave_of(c) : 0;
    }
    zt_trace_close(trace);
    return n_calls > 0;
}

/* @return calls that are shown; each as it was recorded, or without its end if that is known to be missing. */
static uint64_t shown(const char *path, const char *what)
{
    zt_trace *trace;
    zt_error error;
    const zt_call *c;
    uint64_t n = 0, last = 0;
    for (uint64_t i = 0; i <= MOST; i++)
        calls[i].there = false;
    if (zt_trace_open(&trace, path, &error) != ZT_OK)
        return 0;
    zt_text *const text = zt_text_new();
    for (; zt_trace_next(trace, &c) == ZT_OK; n++) {
        expect(c->number > last && c->number <= MOST && calls[c->number].enter == enter_of(c), what);
        expect(c->number > MOST || !c->returned || calls[c->number].leave == leave_of(c), what);
        zt_text_clear(text);
        zt_print_call(text, trace, NULL, c, 0);
        last = c->number;
        calls[last <= MOST ? last : 0].there = true;
    }
    const zt_health *const h = zt_trace_health(trace);
    expect(n == n_calls || h->damaged_chunks > 0 || !h->complete, "calls are missing, and nothing says so");
    zt_text_free(text);
    zt_trace_close(trace);
    return n;
}

/* Every call of a chunk that was not hit. */
static void expect_the_rest(void)
{
    for (unsigned k = 0;; k++) {
        const size_t at = find_chunk(&good, ZT_CHUNK_CALLS, k);
        zt_chunk_header h;
        if (at == 0)
            return;
        memcpy(&h, good.at + at, sizeof(h));
        const size_t end = at + sizeof(h) + h.stored_size;
        if (cut ? end > position : position >= at && position < end)
            continue;
        for (uint64_t i = 0; i < h.calls; i++)
            expect(calls[h.first + i].there, "a call is gone whose chunk was not hit");
    }
}

/* ------------------------------------------------------------------------------------------------------------ libraries */

static void order_and_plan(void)
{
    zt_trace *trace;
    zt_error error;
    zo_graph *graph = NULL;
    zr_plan *plan = NULL;
    zm_needs *needs = NULL;
    if (zt_trace_open(&trace, hit, &error) != ZT_OK)
        return;
    if (zo_graph_make(&graph, trace, NULL, &error) == ZT_OK)
        zo_check(graph);
    zo_graph_free(graph);
    zt_trace_seek(trace, 1);
    if (zr_plan_make(&plan, trace, &error) == ZT_OK)
        zr_plan_free(plan);
    zt_trace_seek(trace, 1);
    if (zm_needs_make(&needs, trace, &error) == ZT_OK) {
        const zm_trim_options all = {.overwrite = true};
        zm_keep *const keep = zm_keep_new(needs);
        if (keep != NULL && zm_keep_add_range(keep, 1, UINT64_MAX) > 0 && zm_trim(keep, out, &all, &error) == ZT_OK)
            expect(read_everything(out, NULL, NULL, NULL) == ZT_OK, "what trim writes is not readable");
        zm_keep_free(keep);
        zm_needs_free(needs);
    }
    zt_trace_close(trace);
}

/* A frame has a few bits that say nothing: without them the bytes are the same. */
static bool says_the_same(void)
{
    const zt_refile_options plain = {.overwrite = true};
    zt_refiled done;
    zt_error error;
    const bool packed = zt_repack(hit, out, &plain, &done, &error) == ZT_OK;
    const bytes now = read_file(out);
    const bool same = packed && now.n == packed_good.n && memcmp(now.at, packed_good.at, now.n) == 0;
    free(now.at);
    return same;
}

static void refile(uint64_t n)
{
    zt_verdict before, after, told;
    zt_refiled done;
    zt_error error;
    const zt_refile_options plain = {.overwrite = true}, drop = {.overwrite = true, .drop = ZT_DROP_MEMORY | ZT_DROP_MODULES | ZT_DROP_ENVIRONMENT};
    const bool version = !cut && position >= 18 && position < 24; /* minor version and flags: then it is a newer one */
    expect(zt_verify(hit, NULL, NULL, NULL, NULL, &before, &error) == ZT_OK, "verify does not read what others read");
    expect(version ? before.newer : !before.whole || says_the_same(), "verify calls it whole");
    expect(before.calls == n, "verify counts other calls than there are");
    expect(before.calls + before.calls_lost <= n_calls, "verify counts more calls than there were");
    expect(cut || before.calls + before.calls_lost == n_calls, "verify does not say that calls are lost");
    expect(zt_repair(hit, out, &plain, &done, &told, &error) == ZT_OK, "repair fails");
    expect(zt_verify(out, NULL, NULL, NULL, NULL, &after, &error) == ZT_OK, "what is repaired is not readable");
    expect(after.calls == n && shown(out, "repair changes a call") == n, "repair loses calls");
    expect(after.damaged_chunks == 0 && after.index && (!after.damaged || !after.session), "what is repaired is damaged");
    expect(after.calls_lost == before.calls_lost && after.whole == told.whole, "after repair, other calls are lost than before");
    expect(zt_repack(hit, out, &plain, &done, &error) == ZT_OK, "repack fails");
    expect(shown(out, "repack changes a call") == n, "repack loses calls");
    expect(zt_repack(hit, out, &drop, &done, &error) == ZT_OK, "repack --drop fails");
    expect(zt_verify(out, NULL, NULL, NULL, NULL, &after, &error) == ZT_OK && after.calls == n && after.damaged_chunks == 0,
           "repack --drop loses calls");
}

static void look(const uint8_t *data, size_t n)
{
    zt_trace *trace;
    zt_error error;
    tried++;
    expect(write_file(hit, data, n), "the disk is full");
    read_everything(hit, NULL, NULL, NULL);
    const uint64_t there = shown(hit, "another call is shown than was recorded");
    if (!cut || position > sizeof(zt_file_header) + sizeof(zt_chunk_header))
        expect_the_rest();
    if (zt_trace_open(&trace, hit, &error) != ZT_OK) {
        expect(cut, "one byte makes it unreadable");
        expect(error.text[0] != '\0' && strlen(error.text) < sizeof(error.text), "no sentence says what is wrong");
        refused++;
        return;
    }
    zt_trace_close(trace);
    refile(there);
    order_and_plan();
}

static void damage(size_t step)
{
    uint8_t *const data = malloc(good.n);
    memcpy(data, good.at, good.n);
    cut = false;
    for (position = step / 2; position < good.n; position += position < sizeof(zt_file_header) ? 1 : step) {
        const uint8_t bit = (uint8_t)(1u << (position * 7 % 8));
        data[position] ^= bit;
        look(data, good.n);
        data[position] ^= bit;
    }
    cut = true;
    for (position = 0; position < good.n; position += step)
        look(good.at, position);
    free(data);
}

int main(int argc, char **argv)
{
    bool all = false;
    snprintf(folder, sizeof(folder), "%s/zetrace-every-byte.XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(folder) == NULL)
        return 2;
    snprintf(hit, sizeof(hit), "%s/hit", folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--all") == 0) {
            all = true;
            continue;
        }
        name = argv[i];
        good = read_file(name);
        if (good.n == 0 || !learn(name)) {
            fprintf(stderr, "%s cannot be read\n", name);
            return 2;
        }
        zt_refiled done;
        zt_error error;
        const zt_refile_options plain = {.overwrite = true};
        expect(zt_repack(name, out, &plain, &done, &error) == ZT_OK, "repack fails");
        packed_good = read_file(out);
        damage(all ? 1 : good.n / SAMPLES | 1);
        free(good.at);
        free(packed_good.at);
    }
    unlink(hit);
    unlink(out);
    rmdir(folder);
    printf("%lu damaged traces, %lu of them refused, %lu failures\n", tried, refused, failures);
    return failures > 0 || tried == 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Property: whatever a trace says, making a plan of it touches no memory but its own, ends, and gives a plan or an
 * error; and a replay of it gives a verdict. Right traces are taken and spoilt at random.  hostile_test [ROUNDS [SEED]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs.h"

static uint64_t state;

static uint64_t dice(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t below(uint64_t n)
{
    return n ? dice() % n : 0;
}

typedef struct copy {
    zt_call call;
    uint64_t words[64];
    zt_piece in[128], out[128];
    zt_content contents[8];
} copy;

static copy *calls;
static size_t n_calls;

static void *dup_bytes(const void *data, uint64_t len)
{
    uint8_t *const p = malloc(len + 1); /* exact but for the one byte that makes 0 possible */
    memcpy(p, data, len);
    return p;
}

static void copy_pieces(zt_trace *trace, zt_piece *to, const zt_piece *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        to[i] = from[i];
        uint64_t len = from[i].len;
        const void *const bytes = from[i].data ? from[i].data : zt_trace_blob(trace, &from[i].hash, &len);
        to[i].data = bytes ? dup_bytes(bytes, len) : NULL;
    }
}

static void free_calls(void)
{
    for (size_t i = 0; i < n_calls; i++) {
        for (uint32_t k = 0; k < 128; k++) {
            free((void *)(uintptr_t)calls[i].in[k].data);
            free((void *)(uintptr_t)calls[i].out[k].data);
        }
        for (uint32_t k = 0; k < 8; k++)
            free((void *)(uintptr_t)calls[i].contents[k].data);
    }
    free(calls);
    calls = NULL;
    n_calls = 0;
}

static bool read_calls(const char *path)
{
    zt_trace *trace;
    zt_error error = {0};
    const zt_call *from;
    if (zt_trace_open(&trace, path, &error) != ZT_OK)
        return false;
    while (zt_trace_next(trace, &from) == ZT_OK && from->n_in <= 128 && from->n_out <= 128 && from->n_contents <= 8) {
        calls = realloc(calls, (n_calls + 1) * sizeof(*calls));
        copy *const to = &calls[n_calls++];
        memset(to, 0, sizeof(*to));
        to->call = *from;
        memcpy(to->words, from->words, from->func->n_words * 8u);
        copy_pieces(trace, to->in, from->in, from->n_in);
        copy_pieces(trace, to->out, from->out, from->n_out);
        for (uint32_t i = 0; i < from->n_contents; i++) {
            to->contents[i] = from->contents[i];
            uint64_t len = from->contents[i].len;
            const void *const bytes =
                from->contents[i].data ? from->contents[i].data : zt_trace_blob(trace, &from->contents[i].hash, &len);
            to->contents[i].data = bytes ? dup_bytes(bytes, len) : NULL;
        }
    }
    zt_trace_close(trace);
    return n_calls > 0;
}

static uint64_t odd_value(void)
{
    static const uint64_t values[] = {0,     1,        8,          24,        64,         4096,
                                      65536, 1u << 30, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 4096};
    const copy *const other = &calls[below(n_calls)];
    switch (below(4)) {
    case 0:
        return values[below(sizeof(values) / sizeof(values[0]))];
    case 1:
        return other->words[below(other->call.func->n_words)];
    case 2:
        return other->call.n_in ? other->in[below(other->call.n_in)].addr + 8 * below(3)
                                : 0; /* a driver may count on alignment */
    default:
        return dice();
    }
}

static void spoil_piece(zt_piece *p)
{
    if (p->data == NULL)
        return;
    uint8_t *const bytes = (uint8_t *)(uintptr_t)p->data;
    const uint64_t value = odd_value();
    switch (below(6)) {
    case 0:
        p->len = below(p->len + 1);
        break;
    case 1:
        if (p->len)
            bytes[below(p->len)] ^= (uint8_t)(1u << below(8));
        break;
    case 2:
        if (p->len >= 8)
            memcpy(bytes + below(p->len / 8) * 8, &value, 8);
        break;
    case 3:
        if (p->len >= 16)
            memcpy(bytes + 8, &p->addr, 8);
        break; /* a chain that is its own next */
    case 4:
        p->addr = value;
        break;
    default:
        if (p->len >= 4)
            memcpy(bytes, &value, 4);
        break;
    }
}

static void spoil(copy *c)
{
    switch (below(12)) {
    case 0:
    case 1:
        c->words[below(c->call.func->n_words)] = odd_value();
        break;
    case 2:
    case 3:
        if (c->call.n_in)
            spoil_piece(&c->in[below(c->call.n_in)]);
        break;
    case 4:
    case 5:
        if (c->call.n_out)
            spoil_piece(&c->out[below(c->call.n_out)]);
        break;
    case 6:
        c->call.result = (int64_t)(uint32_t)odd_value();
        break;
    case 7:
        c->call.thread = (uint32_t)below(5);
        break;
    case 8:
        c->call.returned = (uint8_t)below(2);
        c->call.nested = (uint8_t)below(2);
        break;
    case 9:
        c->call.func = &zt_funcs[below(zt_n_funcs)];
        break;
    case 10:
        if (c->call.n_in)
            c->call.n_in--;
        else
            c->call.leave_ns = odd_value();
        break;
    default:
        if (c->call.n_contents) {
            zt_content *const content = &c->contents[below(c->call.n_contents)];
            content->addr = odd_value();
        } else {
            c->contents[0] =
                (zt_content){.kind = (uint8_t)(1 + below(3)), .addr = odd_value(), .len = odd_value(), .hash_only = 1};
            c->call.n_contents = 1;
        }
    }
}

static bool write_spoilt(const char *path)
{
    zt_writer *writer;
    zt_error error;
    char *const none = (char[]){""};
    zt_library library = {.path = getenv("TEST_SOFT"), .build_id = none};
    const zt_session session = {.program = none,
                                .hostname = none,
                                .rank = none,
                                .version = none,
                                .order = none,
                                .attach = none,
                                .memory = none,
                                .libraries = &library,
                                .n_libraries = 1};
    const zt_writer_options overwrite = {.overwrite = true};
    if (zt_writer_open(&writer, path, &session, &overwrite, &error) != ZT_OK)
        return false;
    copy *const spoilt = malloc(n_calls * sizeof(*spoilt));
    memcpy(spoilt, calls, n_calls * sizeof(*spoilt));
    for (size_t i = 0; i < n_calls; i++) { /* bytes of their own, so that the originals stay */
        for (uint32_t k = 0; k < 128; k++) {
            zt_piece *const in = &spoilt[i].in[k], *const out = &spoilt[i].out[k];
            in->data = in->data ? dup_bytes(in->data, in->len) : NULL;
            out->data = out->data ? dup_bytes(out->data, out->len) : NULL;
        }
    }
    for (uint64_t n = 1 + below(4); n > 0; n--)
        spoil(&spoilt[below(n_calls)]);
    for (size_t i = 0; i < n_calls; i++) {
        copy *const c = &spoilt[i];
        zt_call call = c->call;
        call.words = c->words;
        call.in = c->in;
        call.out = c->out;
        call.contents = c->contents;
        zt_writer_call(writer, &call);
        for (uint32_t k = 0; k < 128; k++) {
            free((void *)(uintptr_t)c->in[k].data);
            free((void *)(uintptr_t)c->out[k].data);
        }
    }
    free(spoilt);
    const zt_ending ending = {.complete = 1, .exited = 1};
    return zt_writer_close(writer, &ending, &error) == ZT_OK;
}

int main(int argc, char **argv)
{
    static void (*const programs[])(hand * h) = {evict_good, host_memory, gate, two_threads, many_queries};
    const uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 0) : 800,
                   seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    char folder[] = "/tmp/zetrace-hostile-XXXXXX", path[256];
    uint64_t planned = 0, same = 0, differs = 0, cannot = 0, ended = 0;
    if (getenv("TEST_SOFT") == NULL || mkdtemp(folder) == NULL)
        return 2;
    snprintf(path, sizeof(path), "%s/t.zetrace", folder);
    int status = 0;
    for (size_t p = 0; p < sizeof(programs) / sizeof(programs[0]) && status == 0; p++) {
        if (!hand_record(path, "eager", programs[p]) || !read_calls(path))
            return 2;
        for (uint64_t round = 0; round < rounds && status == 0; round++) {
            zt_trace *trace;
            zt_error error = {0};
            zr_plan *plan;
            zr_report report;
            zr_options options;
            state = (seed * 1000003 + p * 7919 + round + 1) * 0x9e3779b97f4a7c15ull;
            if (!write_spoilt(path) || zt_trace_open(&trace, path, &error) != ZT_OK) {
                printf("round %llu: %s\n", (unsigned long long)round, error.text);
                status = 1;
                break;
            }
            zr_options_default(&options);
            options.soft_library = getenv("TEST_SOFT");
            options.timeout_ns = 5000000;
            options.dry_run = round % 10 != 0;
            const int made = zr_plan_make(&plan, trace, &error);
            if (made != ZT_OK && error.text[0] == 0) {
                printf("program %zu, round %llu: an error without a sentence\n", p, (unsigned long long)round);
                status = 1;
            }
            if (made == ZT_OK) {
                planned++;
                const int verdict = zr_replay(plan, &options, &report);
                same += verdict == ZR_SAME;
                differs += verdict == ZR_DIFFERS;
                cannot += verdict == ZR_CANNOT;
                if (strstr(report.message, "the driver ended") != NULL) {
                    ended++;
                    printf("program %zu, round %llu: %s\n", p, (unsigned long long)round, report.message);
                }
                zr_plan_free(plan);
            }
            zt_trace_close(trace);
        }
        free_calls();
    }
    printf("%llu plans: %llu same, %llu differ, %llu cannot be replayed; %llu ended by a signal\n",
           (unsigned long long)planned, (unsigned long long)same, (unsigned long long)differs,
           (unsigned long long)cannot, (unsigned long long)ended);
    unlink(path);
    rmdir(folder);
    return status || ended > 0 || planned == 0 || cannot == 0 || same == 0;
}

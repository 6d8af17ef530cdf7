/* SPDX-License-Identifier: MIT */
/*
 * Every wrapper of the table, called with random arguments, in as many rounds as asked for (1,000): what the reader gives back of
 * the trace equals what was passed and what the driver had written.
 *
 *     wrappers_test [ROUNDS [FIRST_ROUND [FUNCTION]]]    with FUNCTION: the text of both sides of its calls
 *
 * The test records itself: the child is a program with the layer compiled in and a driver that writes random outputs; it keeps the
 * digest of what each call was given and gave. The parent is the recorder, reads the trace and compares. A digest that differs
 * is explained by running its round again with the text of both sides.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arguments.h"
#include "capture.h"
#include "l0_api.h"
#include "replay_thunks.h"

typedef struct outcome {
    uint32_t func;
    uint32_t pad;
    int64_t result;
    uint64_t enter, leave;
} outcome;

static arguments now;
static outcome expected;
static FILE *words_of_child;
static struct { /* memory as of ENTER, for the counts that outputs are bounded by */
    uint64_t addr, len;
    uint8_t bytes[4096];
} kept[ARGUMENTS_REGIONS];
static unsigned n_kept;

static int keep(void *ctx, const zt_node *node)
{
    (void)ctx;
    if (node->kind == ZT_N_TARGET && n_kept < ARGUMENTS_REGIONS && node->size <= sizeof(kept[0].bytes)) {
        kept[n_kept].addr = node->addr;
        kept[n_kept].len = node->size;
        memcpy(kept[n_kept++].bytes, node->data, node->size);
    }
    return 0;
}

static const void *kept_at(void *ctx, uint64_t addr, uint64_t len)
{
    (void)ctx;
    for (unsigned i = 0; i < n_kept; i++)
        if (addr >= kept[i].addr && addr + len <= kept[i].addr + kept[i].len)
            return kept[i].bytes + (addr - kept[i].addr);
    return NULL;
}

/* The driver: one function stands for all; the caller cleans up behind its arguments. */
static uint64_t driver(void)
{
    static const zt_memory before = {kept_at, NULL, NULL};
    arguments_write_outputs(&now, expected.result);
    expected.leave = arguments_digest(now.func, now.words, ZT_LEAVE, expected.result, &zt_live_memory, &before, words_of_child);
    errno = 4711;
    return (uint64_t)expected.result;
}

typedef ze_result_t (*getter)(ze_api_version_t version, void *table);

/* What the layer puts into a table that the loader has filled with the driver's functions. */
static void **wrapped_tables(void)
{
    void **const wrappers = calloc(zt_n_funcs, sizeof(*wrappers));
    static const struct {
        const char *name;
        getter get;
    } getters[] = {
#include "getters.inc"
    };
    for (unsigned t = 0; wrappers != NULL && t < zt_n_tables; t++) {
        void **const slots = calloc(zt_tables[t].n_slots + 1u, sizeof(*slots));
        for (unsigned i = 0; slots != NULL && i < zt_tables[t].n_slots; i++)
            slots[i] = (void *)(uintptr_t)driver;
        for (unsigned g = 0; g < sizeof(getters) / sizeof(getters[0]); g++)
            if (strcmp(getters[g].name, zt_tables[t].getter) == 0 && getters[g].get(ZE_API_VERSION_CURRENT_M, slots) != 0)
                return NULL;
        for (unsigned f = 0; slots != NULL && f < zt_n_funcs; f++)
            if (zt_funcs[f].table == t)
                wrappers[f] = slots[zt_funcs[f].slot];
        free(slots);
    }
    return wrappers;
}

static int64_t some_result(const zt_func *func)
{
    static const int64_t results[] = {0, 0, 0, 0, 0, 1, 0x70000001, 0x78000004, 0x7ffffffe, 0};
    if (strcmp(zt_types[func->return_type].name, "ze_result_t") != 0)
        return (int64_t)(arguments_random(&now, 0) & 0xffffffff);
    return results[arguments_random(&now, sizeof(results) / sizeof(results[0]))];
}

static int child(unsigned from, unsigned to, const char *file, int only)
{
    FILE *const out = fopen(file, "w");
    void **const wrappers = wrapped_tables();
    if (out == NULL || wrappers == NULL || !arguments_open())
        return 2;
    now.seed = 0x9e3779b97f4a7c15ull;
    for (unsigned round = from; round < to; round++) {
        now.seed = 0x9e3779b97f4a7c15ull * (round + 1);
        for (unsigned f = 0; f < zt_n_funcs; f++) {
            arguments_make(&now, &zt_funcs[f]);
            expected = (outcome){.func = f, .result = some_result(&zt_funcs[f])};
            words_of_child = (int)f == only ? stdout : NULL;
            if (words_of_child)
                printf("passed: %s\n", zt_funcs[f].name);
            expected.enter = arguments_digest(now.func, now.words, ZT_ENTER, 0, &zt_live_memory, NULL, words_of_child);
            n_kept = 0;
            const zt_walk walk = {.func = now.func, .words = now.words, .phase = ZT_ENTER, .memory = &zt_live_memory,
                                  .targets_only = true, .visit = keep};
            zt_walk_call(&walk);
            errno = 0;
            const int64_t got = zr_thunks[f](wrappers[f], now.words);
            if (errno != 4711 || (uint32_t)got != (uint32_t)expected.result) {
                printf("%s: errno %d, result %#llx instead of %#llx\n", now.func->name, errno, (unsigned long long)got,
                       (unsigned long long)expected.result);
                return 3;
            }
            if (fwrite(&expected, sizeof(expected), 1, out) != 1)
                return 2;
        }
    }
    free(wrappers);
    return fclose(out) != 0 ? 2 : 0;
}

/* @return calls that differ; with `text` the reader's side of function `only` is printed. */
static unsigned long compare(const char *trace_file, const char *file, uint32_t only, bool text, unsigned long *n)
{
    zt_trace *trace;
    zt_error error = {0};
    const zt_call *call;
    unsigned long wrong = 0;
    FILE *const in = fopen(file, "r");
    if (in == NULL || zt_trace_open(&trace, trace_file, &error) != ZT_OK) {
        printf("%s\n", error.text);
        return 1;
    }
    outcome want;
    for (*n = 0; fread(&want, sizeof(want), 1, in) == 1; ++*n) {
        if (zt_trace_next(trace, &call) != ZT_OK) {
            printf("the trace ends after %lu calls\n", *n);
            wrong++;
            break;
        }
        zt_call_memory in_memory = {.call = call, .phase = ZT_ENTER, .trace = trace}, out_memory = {.call = call, .phase = ZT_LEAVE, .trace = trace};
        const zt_memory before = zt_memory_of(&in_memory), after = zt_memory_of(&out_memory);
        FILE *const show = text && want.func == only ? stdout : NULL;
        if (show)
            printf("read: %s\n", call->func->name);
        const uint64_t enter = arguments_digest(call->func, call->words, ZT_ENTER, 0, &before, NULL, show);
        const uint64_t leave = arguments_digest(call->func, call->words, ZT_LEAVE, call->result, &after, &before, show);
        const bool same = call->func == &zt_funcs[want.func] && call->returned && (uint32_t)call->result == (uint32_t)want.result &&
                          enter == want.enter && leave == want.leave;
        if (!same && wrong++ < 10)
            printf("call %lu, %s: %s\n", *n, zt_funcs[want.func].name,
                   call->func != &zt_funcs[want.func] ? "another function"
                   : enter != want.enter              ? "the arguments differ"
                   : leave != want.leave              ? "the outputs differ"
                                                      : "the result differs");
    }
    if (zt_trace_next(trace, &call) == ZT_OK) {
        printf("the trace holds more calls than were made\n");
        wrong++;
    }
    zt_trace_close(trace);
    fclose(in);
    return wrong;
}

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "--child") == 0)
        return child((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]), argv[4], zt_func_find(argv[5]));
    const unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
    char folder[] = "/tmp/zetrace-wrappers.XXXXXX", trace[64], file[64], self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (mkdtemp(folder) == NULL || length <= 0)
        return 2;
    self[length] = '\0';
    snprintf(trace, sizeof(trace), "%s/t.zetrace", folder);
    snprintf(file, sizeof(file), "%s/expected", folder);
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 0);
    const int only = argc > 3 ? zt_func_find(argv[3]) : -1;
    char from[16], last[16];
    snprintf(from, sizeof(from), "%s", argc > 2 ? argv[2] : "0");
    snprintf(last, sizeof(last), "%u", rounds + (unsigned)atoi(from));
    char *const command[] = {self, (char *)"--child", from, last, file, (char *)(uintptr_t)(only >= 0 ? argv[3] : ""), NULL};
    const zc_record_options options = {.argv = (char **)(uintptr_t)command, .output = trace, .driver = "auto", .memory = "none",
                                       .attach = "layer", .library_folder = TEST_LIBRARY_FOLDER, .overwrite = true};
    zc_record_summary summary;
    zt_error error;
    if (zc_record_program(&options, &summary, &error) != ZT_OK || summary.status != 0) {
        printf("recording failed: status %d %s\n", summary.status, error.text);
        return 1;
    }
    zc_summary_free(&summary);
    unsigned long n = 0;
    const unsigned long wrong = compare(trace, file, (uint32_t)only, only >= 0, &n);
    printf("%lu calls of %u functions in %u rounds: %lu differ, %llu dropped\n", n, zt_n_funcs, rounds, wrong,
           (unsigned long long)summary.dropped);
    const bool whole = n == (unsigned long)rounds * zt_n_funcs && summary.dropped == 0;
    if (wrong == 0) {
        unlink(trace);
        unlink(file);
        rmdir(folder);
    } else {
        printf("kept: %s\n", folder);
    }
    return wrong != 0 || !whole;
}

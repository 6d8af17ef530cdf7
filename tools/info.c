/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { JSON = 1 };

static const zt_option options[] = {{JSON, 0, "json", NULL, "machine-readable"}, {0}};

typedef struct tally {
    const char *name;
    uint64_t count;
} tally;

typedef struct totals {
    uint64_t calls, internal, first_ns, last_ns, added_ns, contents, content_bytes, hashed_bytes;
    tally *functions, *results;
    size_t n_functions, n_results;
    uint64_t *pending;
    size_t n_pending;
    uint32_t threads;
    uint64_t unknown_pnext;
} totals;

static bool count(tally **list, size_t *n, const char *name)
{
    for (size_t i = 0; i < *n; i++)
        if (strcmp((*list)[i].name, name) == 0) {
            (*list)[i].count++;
            return true;
        }
    tally *const grown = realloc(*list, (*n + 1) * sizeof(**list));
    char *const copy = strdup(name);
    if (grown != NULL)
        *list = grown;
    if (grown == NULL || copy == NULL)
        return false;
    grown[(*n)++] = (tally){copy, 1};
    return true;
}

static int see_unknown(void *ctx, const zt_node *node)
{
    ((totals *)ctx)->unknown_pnext += node->kind == ZT_N_UNKNOWN;
    return 0;
}

static int collect(zt_trace *trace, totals *t)
{
    const zt_call *call;
    int status;
    zt_progress progress;
    uint64_t *by_function = calloc(zt_n_funcs, sizeof(*by_function));
    if (by_function == NULL)
        return ZT_E_MEMORY;
    zt_progress_start(&progress, "info", zt_trace_health(trace)->calls);
    while ((status = zt_trace_next(trace, &call)) == ZT_OK) {
        if (t->calls++ == 0)
            t->first_ns = call->enter_ns;
        const uint64_t last = call->returned ? call->leave_ns : call->enter_ns;
        t->last_ns = last > t->last_ns ? last : t->last_ns;
        t->threads = call->thread > t->threads ? call->thread : t->threads;
        t->internal += call->internal;
        t->added_ns += call->added_ns;
        t->contents += call->n_contents;
        for (uint32_t i = 0; i < call->n_contents; i++) {
            t->content_bytes += call->contents[i].len;
            t->hashed_bytes += call->contents[i].hash_only ? call->contents[i].len : 0;
        }
        if (call->func >= zt_funcs && call->func < zt_funcs + zt_n_funcs)
            by_function[call->func - zt_funcs]++;
        else
            count(&t->functions, &t->n_functions, call->func->name);
        if (call->returned && strcmp(zt_types[call->func->return_type].name, "ze_result_t") == 0)
            count(&t->results, &t->n_results, zt_result_name(call->result));
        if (!call->returned) {
            uint64_t *const grown = realloc(t->pending, (t->n_pending + 1) * sizeof(*grown));
            if (grown != NULL) {
                t->pending = grown;
                t->pending[t->n_pending++] = call->number;
            }
        }
        if (call->n_in > 1) {
            zt_call_memory of = {.call = call, .phase = ZT_ENTER, .trace = NULL};
            const zt_memory memory = zt_memory_of(&of);
            const zt_walk walk = {.func = call->func, .words = call->words, .phase = ZT_ENTER, .memory = &memory,
                                  .visit = see_unknown, .ctx = t};
            zt_walk_call(&walk);
        }
        zt_progress_step(&progress, t->calls);
    }
    zt_progress_end(&progress);
    for (unsigned i = 0; i < zt_n_funcs; i++)
        if (by_function[i] != 0 && count(&t->functions, &t->n_functions, zt_funcs[i].name))
            t->functions[t->n_functions - 1].count = by_function[i];
    free(by_function);
    return status == ZT_END ? ZT_OK : status;
}

static int by_count(const void *a, const void *b)
{
    const tally *const x = a, *const y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : strcmp(x->name, y->name);
}

static void json_tally(const char *key, const tally *list, size_t n)
{
    printf(",\"%s\":{", key);
    for (size_t i = 0; i < n; i++) {
        printf("%s", i ? "," : "");
        zt_json_string(stdout, list[i].name);
        printf(":%" PRIu64, list[i].count);
    }
    putchar('}');
}

static void json_text(const char *key, const char *value)
{
    printf(",\"%s\":", key);
    zt_json_string(stdout, value ? value : "");
}

/* @return false: all zero, which is none. */
static bool uuid_text(const uint8_t *uuid, char out[33])
{
    bool any = false;
    for (int i = 0; i < 16; i++) {
        snprintf(out + (size_t)i * 2, 3, "%02x", uuid[i]);
        any |= uuid[i] != 0;
    }
    return any;
}

static void json_uuid(const char *key, const uint8_t *uuid)
{
    char text[33];
    const bool any = uuid_text(uuid, text);
    printf(",\"%s\":%s%s%s", key, any ? "\"" : "", any ? text : "null", any ? "\"" : "");
}

static void json_pairs(const char *key, const zt_pair *pairs, uint32_t n)
{
    printf(",\"%s\":{", key);
    for (uint32_t i = 0; i < n; i++) {
        printf("%s", i ? "," : "");
        zt_json_string(stdout, pairs[i].name);
        putchar(':');
        zt_json_string(stdout, pairs[i].value);
    }
    putchar('}');
}

static void print_json(const zt_trace *trace, const totals *t)
{
    const zt_session *const s = zt_trace_session(trace);
    const zt_ending *const e = zt_trace_ending(trace);
    const zt_health *const h = zt_trace_health(trace);
    printf("{\"calls\":%" PRIu64 ",\"threads\":%u,\"bytes\":%" PRIu64 ",\"dropped\":%" PRIu64 ",\"never_returned\":[", t->calls,
           t->threads, zt_trace_bytes(trace), e->dropped);
    for (size_t i = 0; i < t->n_pending; i++)
        printf("%s%" PRIu64, i ? "," : "", t->pending[i]);
    printf("],\"complete\":%s", h->complete && e->complete && h->damaged_chunks == 0 ? "true" : "false");
    json_tally("functions", t->functions, t->n_functions);
    json_tally("results", t->results, t->n_results);
    json_text("program", s->program);
    printf(",\"arguments\":[");
    for (uint32_t i = 0; i < s->argc; i++) {
        printf("%s", i ? "," : "");
        zt_json_string(stdout, s->argv[i]);
    }
    printf("],\"pid\":%" PRId64 ",\"parent_pid\":%" PRId64, s->pid, s->parent_pid);
    json_text("host", s->hostname);
    json_uuid("uuid", s->uuid);
    json_uuid("parent_uuid", s->parent_uuid);
    json_text("rank", s->rank);
    json_text("order", s->order);
    json_text("attach", s->attach);
    json_text("memory", s->memory);
    json_pairs("settings", s->settings, s->n_settings);
    json_pairs("environment", s->environment, s->n_environment);
    printf(",\"libraries\":[");
    for (uint32_t i = 0; i < s->n_libraries; i++) {
        printf("%s{\"path\":", i ? "," : "");
        zt_json_string(stdout, s->libraries[i].path);
        json_text("build_id", s->libraries[i].build_id);
        putchar('}');
    }
    printf("],\"start_ns\":%" PRIu64 ",\"first_ns\":%" PRIu64 ",\"last_ns\":%" PRIu64 ",\"added_ns\":%" PRIu64
           ",\"internal_calls\":%" PRIu64 ",\"contents\":%" PRIu64 ",\"content_bytes\":%" PRIu64 ",\"hashed_bytes\":%" PRIu64,
           s->start_wall_ns, t->first_ns, t->last_ns, t->added_ns, t->internal, t->contents, t->content_bytes, t->hashed_bytes);
    if (e->exited)
        printf(",\"exit_status\":%d", e->status);
    else if (e->signalled)
        printf(",\"signal\":%d", e->status);
    printf(",\"bytes_per_call\":%.2f,\"unknown_functions\":%u,\"unknown_slots\":%" PRIu64 ",\"unknown_pnext\":%" PRIu64
           ",\"unwrapped_extensions\":%" PRIu64 ",\"calls_lost\":%" PRIu64 ",\"damaged_chunks\":%" PRIu64 "}\n",
           t->calls ? (double)zt_trace_bytes(trace) / (double)t->calls : 0, zt_trace_unknown_functions(trace), e->unknown_slots,
           e->unknown_pnext > t->unknown_pnext ? e->unknown_pnext : t->unknown_pnext, e->unwrapped_extensions, h->calls_lost,
           h->damaged_chunks);
}

/* Texts of the trace, and our own between them; NULL at the end. A line ends where "\n" stands alone. */
static void put(const char *text, ...)
{
    va_list more;
    va_start(more, text);
    for (; text != NULL; text = va_arg(more, const char *))
        if (strcmp(text, "\n") == 0)
            putchar('\n');
        else
            zt_put_text(stdout, text);
    va_end(more);
}

static void print_text(const zt_trace *trace, const totals *t)
{
    const zt_session *const s = zt_trace_session(trace);
    const zt_ending *const e = zt_trace_ending(trace);
    const zt_health *const h = zt_trace_health(trace);
    const time_t start = (time_t)(s->start_wall_ns / 1000000000u);
    struct tm tm;
    char when[64] = "";
    if (localtime_r(&start, &tm) != NULL)
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S %z", &tm);
    printf("program      ");
    for (uint32_t i = 0; i < s->argc; i++)
        put(i ? " " : "", s->argv[i], NULL);
    put("\n", "             ", s->program, NULL);
    printf(", process %" PRId64 " (parent %" PRId64 ") on ", s->pid, s->parent_pid);
    put(s->hostname, strcmp(s->rank, "0") ? ", rank " : "", strcmp(s->rank, "0") ? s->rank : "", "\n", NULL);
    if (e->exited)
        printf("ended        with status %d\n", e->status);
    else if (e->signalled)
        printf("ended        by signal %d (%s)\n", e->status, strsignal(e->status));
    else
        printf("ended        not known how\n");
    put("recorded     ", when, ", by zetrace ", s->version, ", attach=", s->attach, " memory=", s->memory, " order=", s->order, "\n", NULL);
    char uuid[33];
    uuid_text(s->uuid, uuid);
    printf("trace        %s", uuid);
    if (uuid_text(s->parent_uuid, uuid))
        printf(", a part of %s", uuid);
    putchar('\n');
    bool any = false;
    for (uint32_t i = 0; i < s->n_settings; i++) {
        if (s->settings[i].value[0] == '\0')
            continue;
        put(any ? " " : "settings     ", s->settings[i].name, "=", s->settings[i].value, NULL);
        any = true;
    }
    if (any)
        put("\n", NULL);
    for (uint32_t i = 0; i < s->n_libraries; i++)
        put(i ? "             " : "libraries    ", s->libraries[i].path, s->libraries[i].build_id[0] ? "  " : "", s->libraries[i].build_id,
            "\n", NULL);
    for (uint32_t i = 0; i < s->n_environment; i++)
        put(i ? "             " : "environment  ", s->environment[i].name, "=", s->environment[i].value, "\n", NULL);
    printf("calls        %" PRIu64 " by %s, from %.6f s to %.6f s", t->calls, zt_count(t->threads, "thread").text, (double)t->first_ns / 1e9,
           (double)t->last_ns / 1e9);
    if (t->internal)
        printf(" (%" PRIu64 " of them by the loader itself)", t->internal);
    printf("\nbytes        %" PRIu64 ", %.2f a call\n", zt_trace_bytes(trace),
           t->calls ? (double)zt_trace_bytes(trace) / (double)t->calls : 0);
    printf("contents     %s, %s, of %" PRIu64 " of them the hash only; reading them added %.3f ms to the program\n",
           zt_count(t->contents, "piece").text, zt_count(t->content_bytes, "byte").text, t->hashed_bytes, (double)t->added_ns / 1e6);
    printf("results      ");
    for (size_t i = 0; i < t->n_results; i++)
        printf("%s%s %" PRIu64, i ? ", " : "", t->results[i].name, t->results[i].count);
    printf("\nfunctions\n");
    for (size_t i = 0; i < t->n_functions; i++)
        printf("  %10" PRIu64 "  %s\n", t->functions[i].count, t->functions[i].name);
    printf("completeness %s\n",
           h->complete && e->complete && h->damaged_chunks == 0 ? "whole" : "the recording was not finished, or is damaged");
    printf("  dropped calls         %" PRIu64 "\n", e->dropped);
    printf("  lost to damage        %" PRIu64 "\n", h->calls_lost);
    printf("  never returned        %zu", t->n_pending);
    for (size_t i = 0; i < t->n_pending && i < 16; i++)
        printf("%s#%" PRIu64, i ? " " : ": ", t->pending[i]);
    printf("\n  unknown functions     %u in the trace's table, %" PRIu64 " passed through unseen\n", zt_trace_unknown_functions(trace),
           e->unknown_slots);
    printf("  unknown pNext structs %" PRIu64 "\n", e->unknown_pnext > t->unknown_pnext ? e->unknown_pnext : t->unknown_pnext);
    printf("  unwrapped extensions  %" PRIu64 "\n", e->unwrapped_extensions);
}

static int run_info(int argc, char **argv)
{
    zt_parser parser;
    zt_trace *trace;
    totals t = {0};
    bool json = false;
    zt_parser_init(&parser, &zt_command_info, argc, argv);
    for (int option; (option = zt_option_next(&parser)) != 0;) {
        if (option != JSON)
            return option == ZT_OPTION_HELP ? zt_finish_output(ZT_EXIT_OK) : ZT_EXIT_USAGE;
        json = true;
    }
    int status = zt_open_operand(&parser, &trace);
    if (status != ZT_EXIT_OK)
        return status;
    if (collect(trace, &t) != ZT_OK)
        status = ZT_EXIT_DAMAGED;
    if (t.n_functions > 0)
        qsort(t.functions, t.n_functions, sizeof(tally), by_count);
    if (t.n_results > 0)
        qsort(t.results, t.n_results, sizeof(tally), by_count);
    if (json)
        print_json(trace, &t);
    else
        print_text(trace, &t);
    zt_tell_health(trace, argv[parser.at]);
    for (size_t i = 0; i < t.n_functions; i++)
        free((void *)(uintptr_t)t.functions[i].name);
    for (size_t i = 0; i < t.n_results; i++)
        free((void *)(uintptr_t)t.results[i].name);
    free(t.functions);
    free(t.results);
    free(t.pending);
    zt_trace_close(trace);
    return zt_finish_output(status);
}

const zt_command zt_command_info = {"info",  "tell who, when, where, what, and how complete a trace is", "TRACE", options, NULL,
                                    ZT_EXIT_USAGE, run_info};

/* SPDX-License-Identifier: MIT */
/* zetrace verify: is a trace as it was written? If not, what of it is readable, and what is lost. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "refile.h"

enum { JSON = 1, QUIET, MOST = 20, MOST_JSON = 1000 };

static const zt_option options[] = {
    {QUIET, 'q', "quiet", NULL, "say nothing of traces that are whole"},
    {JSON, 0, "json", NULL, "machine-readable: one object a trace"},
    {0, 0, NULL, NULL, NULL},
};

static int run(int argc, char **argv);
const zt_command zt_command_verify = {
    .name = "verify",
    .summary = "tell whether traces are whole, and what of them is readable",
    .synopsis = "TRACE...",
    .options = options,
    .more = "Exit status: 0 all are whole; 1 one is incomplete or damaged; 2 usage, or a file cannot be opened.\n",
    .usage_status = ZT_EXIT_USAGE,
    .run = run,
};

typedef struct findings {
    zt_finding *at;
    size_t n, most;
} findings;

static void keep(void *ctx, const zt_finding *finding)
{
    findings *const f = ctx;
    if (f->n < f->most)
        f->at[f->n++] = *finding;
}

static const char *in_a_word(const zt_verdict *v)
{
    if (v->whole)
        return "whole";
    return v->damaged || v->blobs_lost > 0 ? "damaged" : v->calls_lost > 0 || v->missing_chunks > 0 ? "incomplete" : "not finished";
}

static void print_finding(const zt_finding *f)
{
    printf("  at 0x%-8" PRIx64 " ", f->offset);
    if (f->chunk != UINT64_MAX)
        printf("chunk %" PRIu64 ": ", f->chunk);
    fputs(f->text, stdout);
    if (f->calls == 1 && f->first != 0)
        printf("; call #%" PRIu64 " is lost", f->first);
    else if (f->calls > 0 && f->first != 0)
        printf("; %" PRIu64 " calls, #%" PRIu64 "..#%" PRIu64 ", are lost", f->calls, f->first, f->last);
    else if (f->calls > 0)
        printf("; %s %s lost", zt_count(f->calls, "call").text, zt_is(f->calls));
    if (f->calls > 0 && f->to_ns > f->from_ns)
        printf(", %.6f s to %.6f s", (double)f->from_ns / 1e9, (double)f->to_ns / 1e9);
    putchar('\n');
}

static void print_text(const char *path, const zt_verdict *v, const findings *f, bool quiet)
{
    if (v->whole && quiet)
        return;
    printf("%s: %s: %s", path, in_a_word(v), zt_count(v->calls, "call").text);
    if (v->calls > 0)
        printf(" (#%" PRIu64 "..#%" PRIu64 ") by %s, %.6f s to %.6f s,", v->first_call, v->last_call, zt_count(v->threads, "thread").text,
               (double)v->first_ns / 1e9, (double)v->last_ns / 1e9);
    printf(" in %s %s readable", zt_count(v->chunks > v->damaged_chunks ? v->chunks - v->damaged_chunks : 0, "chunk").text, zt_is(v->calls));
    if (v->calls_lost > 0)
        printf("; %s (%.6f s) %s lost", zt_count(v->calls_lost, "call").text, (double)v->lost_ns / 1e9, zt_is(v->calls_lost));
    putchar('\n');
    for (size_t i = 0; i < f->n; i++)
        print_finding(&f->at[i]);
    if (v->findings > f->n)
        printf("  and %" PRIu64 " more; --json tells %d of them\n", v->findings - f->n, (int)MOST_JSON);
    if (!v->ending)
        puts("  the recording was not finished, or its end is lost: how the program ended is not known");
    else if (!v->finished)
        puts("  the recorder did not see the program end");
    if (!v->index && !v->damaged)
        puts("  there is no index; 'zetrace repair' makes one");
    if (v->newer)
        printf("  it is of format %u.%u, newer than this zetrace: what that has added was not looked at\n", v->major, v->minor);
    if (v->damaged)
        puts("  'zetrace repair' keeps what is readable");
}

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

static void print_json(const char *path, const zt_verdict *v, const findings *f)
{
    fputs("{\"file\":", stdout);
    zt_json_string(stdout, path);
    printf(",\"whole\":%s,\"state\":\"%s\",\"damaged\":%s,\"finished\":%s,\"session\":%s,\"index\":%s,\"ending\":%s,\"format\":\"%u.%u\",\"newer\":%s",
           truth(v->whole), in_a_word(v), truth(v->damaged), truth(v->finished), truth(v->session), truth(v->index), truth(v->ending), v->major,
           v->minor, truth(v->newer));
    printf(",\"bytes\":%" PRIu64 ",\"chunks\":%" PRIu64 ",\"damaged_chunks\":%" PRIu64 ",\"missing_chunks\":%" PRIu64 ",\"unknown_chunks\":%" PRIu64,
           v->bytes, v->chunks, v->damaged_chunks, v->missing_chunks, v->other_chunks);
    printf(",\"calls\":%" PRIu64 ",\"first_call\":%" PRIu64 ",\"last_call\":%" PRIu64 ",\"threads\":%" PRIu64 ",\"never_returned\":%" PRIu64
           ",\"first_ns\":%" PRIu64 ",\"last_ns\":%" PRIu64 ",\"calls_lost\":%" PRIu64 ",\"lost_ns\":%" PRIu64 ",\"blobs\":%" PRIu64
           ",\"blobs_lost\":%" PRIu64 ",\"problems\":%" PRIu64 ",\"findings\":[",
           v->calls, v->first_call, v->last_call, v->threads, v->never_returned, v->first_ns, v->last_ns, v->calls_lost, v->lost_ns, v->blobs,
           v->blobs_lost, v->findings);
    for (size_t i = 0; i < f->n; i++) {
        const zt_finding *const x = &f->at[i];
        printf("%s{\"offset\":%" PRIu64 ",\"end\":%" PRIu64, i ? "," : "", x->offset, x->end);
        if (x->chunk != UINT64_MAX)
            printf(",\"chunk\":%" PRIu64, x->chunk);
        fputs(",\"what\":", stdout);
        zt_json_string(stdout, x->text);
        printf(",\"calls_lost\":%" PRIu64, x->calls);
        if (x->calls > 0 && x->first != 0)
            printf(",\"calls\":[%" PRIu64 ",%" PRIu64 "]", x->first, x->last);
        if (x->calls > 0 && x->to_ns > x->from_ns)
            printf(",\"time_ns\":[%" PRIu64 ",%" PRIu64 "]", x->from_ns, x->to_ns);
        putchar('}');
    }
    puts("]}");
}

static void step(void *progress, uint64_t done, uint64_t total)
{
    ((zt_progress *)progress)->total = total;
    zt_progress_step(progress, done);
}

static int verify(const char *path, bool json, bool quiet)
{
    zt_verdict verdict;
    zt_error error = {0};
    zt_progress progress;
    findings f = {.most = json ? MOST_JSON : MOST};
    f.at = calloc(f.most, sizeof(*f.at));
    if (f.at == NULL) {
        zt_complain("%s: not enough memory", path);
        return ZT_EXIT_DIFFERS;
    }
    zt_progress_start(&progress, "verify", 0);
    const int status = zt_verify(path, keep, &f, step, &progress, &verdict, &error);
    zt_progress_end(&progress);
    if (status != ZT_OK)
        zt_complain("%s", error.text);
    if (status != ZT_OK && json) {
        fputs("{\"file\":", stdout);
        zt_json_string(stdout, path);
        fputs(",\"whole\":false,\"state\":\"unreadable\",\"calls\":0,\"error\":", stdout);
        zt_json_string(stdout, error.text);
        puts("}");
    } else if (status == ZT_OK && json) {
        print_json(path, &verdict, &f);
    } else if (status == ZT_OK) {
        print_text(path, &verdict, &f, quiet);
    }
    free(f.at);
    if (status == ZT_E_IO || status == ZT_E_USAGE)
        return ZT_EXIT_USAGE;
    return status == ZT_OK && verdict.whole ? ZT_EXIT_OK : ZT_EXIT_DIFFERS;
}

static int run(int argc, char **argv)
{
    zt_parser parser;
    bool json = false, quiet = false;
    zt_parser_init(&parser, &zt_command_verify, argc, argv);
    for (int id; (id = zt_option_next(&parser)) != 0;) {
        if (id != JSON && id != QUIET)
            return id == ZT_OPTION_HELP ? zt_finish_output(ZT_EXIT_OK) : ZT_EXIT_USAGE;
        json |= id == JSON;
        quiet |= id == QUIET;
    }
    if (parser.at == argc)
        return zt_usage_error(&zt_command_verify, "verify wants traces to look at, but was given none; 'zetrace help verify' tells more");
    int worst = ZT_EXIT_OK;
    for (int i = parser.at; i < argc; i++) {
        const int status = verify(argv[i], json, quiet);
        worst = status > worst ? status : worst;
    }
    return zt_finish_output(worst);
}

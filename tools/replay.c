/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "report.h"
#include "replay_line.h"
#include "replay_replace.h"

enum { DRIVER = 1, DEVICE, SCHEDULE, THREADS, SERIALIZE, VERIFY, FROM, TO, LOOP, TIMEOUT, INJECT, ORDER, REPLACE, DRY_RUN, JSON, QUIET };

#define MOST_INJECTIONS 64

static const zt_option options[] = {
    {DRIVER, 0, "driver", "auto|soft|PATH",
     "what to replay on: the recorded driver if it is here, else any GPU, else libze_soft (auto); "
     "libze_soft; or a driver's file"},
    {DEVICE, 0, "device", "N", "use the driver's N-th device, from 0, for every device of the recording"},
    {SCHEDULE, 0, "schedule", "S",
     "libze_soft's schedule: async, eager, lazy, seed:N, script:FILE, null; the recorded one if not given"},
    {THREADS, 0, "threads", "recorded|one", "each call on its own thread, as recorded, or all on one in a line"},
    {SERIALIZE, 0, "serialize", "none|submit|list|command",
     "wait on the host behind each submit, each list, or each command"},
    {ORDER, 0, "order", "recorded|latest|queue:N|seed:N|file:FILE",
     "run the commands one by one in a given order: of submission, as late as possible, those of queue N (from 1) first,\n"
     "random ones, or that of a file"},
    {INJECT, 0, "inject", "POINT",
     "sync@before:SEL, sync@after:SEL, sync(OBJECT)@..., gate@#A..#B, hold@#A..#B, delay@SEL:TIME, delay(device)@SEL:TIME; may be given often"},
    {REPLACE, 0, "replace", "N:FILE",
     "give module#N the bytes of a file; #CALL:FILE for the module of a call, #CALL.K:FILE for its K-th binary; may be given often"},
    {VERIFY, 0, "verify", "all|results|none",
     "compare results, outputs and what the host reads back; results only; nothing"},
    {FROM, 0, "from", "#A", "compare from call A on; those before it are made all the same"},
    {TO, 0, "to", "#B", "end behind call B"},
    {LOOP, 0, "loop", "N", "replay N times, each in a fresh process, until one differs"},
    {TIMEOUT, 0, "timeout", "T", "how long one wait may take (10s)"},
    {DRY_RUN, 0, "dry-run", NULL, "say what would be done, call nothing"},
    {JSON, 0, "json", NULL, "the report as one JSON object"},
    {QUIET, 'q', "quiet", NULL, "no report, the exit status only"},
    {0, 0, NULL, NULL, NULL},
};

static int run(int argc, char **argv);
const zt_command zt_command_replay = {
    .name = "replay",
    .summary = "make the calls of a trace again and compare",
    .synopsis = "TRACE",
    .options = options,
    .more =
        "Exit status: 0 the same as recorded, 1 something differs, 2 usage, 3 damaged trace, 125 it can't be replayed "
        "here.\n\n"
        "A recorded failure that comes back is the same; one that does not come back differs. Waits and queries that "
        "succeeded in the recording are waited for.",
    .usage_status = ZT_EXIT_USAGE,
    .run = run,
};

static int choice(const char *value, const char *const *names)
{
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], value) == 0)
            return i;
    return -1;
}

/* @return -1, or the status of a usage error. */
static int option_value(const zt_parser *parser, zr_options *o, int id)
{
    static const char *const threads[] = {"recorded", "one", NULL};
    static const char *const serialize[] = {"none", "submit", "list", "command", NULL};
    static const char *const verify[] = {"all", "results", "none", NULL};
    const char *const value = parser->value;
    uint64_t number = 0;
    switch (id) {
    case DRIVER:
        o->driver = value;
        break;
    case SCHEDULE:
        o->schedule = value;
        break;
    case THREADS:
        o->threads = (enum zr_threads)choice(value, threads);
        break;
    case SERIALIZE:
        o->serialize = (enum zr_serialize)choice(value, serialize);
        break;
    case VERIFY:
        o->verify = (enum zr_verify)choice(value, verify);
        break;
    case DRY_RUN:
        o->dry_run = true;
        break;
    case DEVICE:
        if (!zt_parse_number(value, &number) || number > 1000)
            return zt_usage_error(&zt_command_replay, "--device wants a number from 0 on, not '%s'", value);
        o->device = (int)number;
        break;
    case FROM:
        if (!zt_parse_call(value, &o->from))
            return zt_usage_error(&zt_command_replay, "--from wants a call as #12, not '%s'", value);
        break;
    case TO:
        if (!zt_parse_call(value, &o->to))
            return zt_usage_error(&zt_command_replay, "--to wants a call as #12, not '%s'", value);
        break;
    case LOOP:
        if (!zt_parse_number(value, &o->loop) || o->loop == 0)
            return zt_usage_error(&zt_command_replay, "--loop wants a number above 0, not '%s'", value);
        break;
    case TIMEOUT:
        if (!zt_parse_time(value, &o->timeout_ns) || o->timeout_ns == 0)
            return zt_usage_error(&zt_command_replay, "--timeout wants a time as 500ms or 10s, not '%s'", value);
        break;
    default:
        break;
    }
    return -1;
}

/* --from and --to name calls of the trace, and some lie between them. @return an exit status */
static int check_range(const zr_plan *plan, const zr_options *o, const char *path)
{
    const uint64_t last = zr_plan_last(plan), beyond = o->from > last ? o->from : o->to > last ? o->to : 0;
    if (zr_plan_calls(plan) == 0)
        return ZT_EXIT_OK;
    if (beyond != 0)
        return zt_usage_error(&zt_command_replay, "--%s: %s has no call #%llu; its last is #%llu", beyond == o->from ? "from" : "to", path,
                              (unsigned long long)beyond, (unsigned long long)last);
    if (o->to != 0 && o->from > o->to)
        return zt_usage_error(&zt_command_replay, "--from=#%llu comes behind --to=#%llu, so nothing would be compared", (unsigned long long)o->from,
                              (unsigned long long)o->to);
    if (zr_plan_calls_between(plan, o->from, o->to) == 0)
        return zt_usage_error(&zt_command_replay, "%s has no call from #%llu to #%llu, so nothing would be compared", path,
                              (unsigned long long)(o->from ? o->from : 1), (unsigned long long)o->to);
    return ZT_EXIT_OK;
}

static void print_text(const zr_report *r, const zr_options *o)
{
    if (o->dry_run) {
        printf("%s: %s would be made, %llu not\n",
               r->verdict == ZR_SAME ? "can be replayed" : "can't be replayed", zt_count(r->calls, "call").text,
               (unsigned long long)r->not_made);
        return;
    }
    if (r->verdict == ZR_SAME) {
        printf("same: %s", zt_count(r->calls, "call").text);
        if (r->rounds > 1)
            printf(" in each of %llu rounds", (unsigned long long)r->rounds);
        if (r->failed_call != 0)
            printf("; the recorded failure came back: #%llu %s = %s", (unsigned long long)r->failed_call,
                   r->failed_function, r->failed_result);
        printf("\n");
    } else if (r->mismatches > 0) {
        printf("differs: ");
        if (r->first.call != 0)
            printf("#%llu %s: ", (unsigned long long)r->first.call, r->first.function);
        printf("%s", zr_what_name(r->first.what));
        if (r->first.detail[0] != 0)
            printf(" (%s)", r->first.detail);
        printf(" recorded %s, replayed %s\n", r->first.recorded, r->first.replayed);
        if (r->mismatches > 1)
            printf("%s in all, in %s\n", zt_count(r->mismatches, "difference").text, zt_count(r->calls, "call").text);
    }
    if (r->pending_call != 0 && r->pending_call != r->failed_call) {
        printf("#%llu %s never returned in the recording ", (unsigned long long)r->pending_call, r->pending_function);
        if (r->pending_result[0] != 0)
            printf("and returned %s here, made last\n", r->pending_result);
        else
            printf("and was not made\n");
    }
    if (r->replaced != 0)
        printf("%llu module%s other than in the recording\n", (unsigned long long)r->replaced, r->replaced == 1 ? " was" : "s were");
    if (r->injected != 0)
        printf("%s %s injected%s\n", zt_count(r->injected, "call").text, zt_was(r->injected),
               o->items != NULL ? ", gates and marks of commands among them" : "");
    if (o->items != NULL && r->not_made != 0)
        printf("%s %s not made: the loader's own, or never returned\n", zt_count(r->not_made, "call").text, zt_was(r->not_made));
    if (r->late > r->stuck)
        printf("%s did not end in %s turn, #%llu the first; what came behind went on\n", zt_count(r->late, "command").text,
               r->late == 1 ? "its" : "their", (unsigned long long)r->first_late);
    if (r->stuck != 0)
        printf("%s did not end when %s turn had come, #%llu the first\n", zt_count(r->stuck, "command").text, r->stuck == 1 ? "its" : "their",
               (unsigned long long)r->first_stuck);
    if (r->callbacks != 0)
        printf("%s had a callback, for which one stood that does nothing\n", zt_count(r->callbacks, "call").text);
    if (r->taken != 0)
        printf("%s differ%s where the host may have written before that was read back; that does not count\n", zt_count(r->taken, "byte").text,
               r->taken == 1 ? "s" : "");
    if (r->mapped != 0)
        printf("%s %s this driver's own and %s not compared\n", zt_count(r->mapped, "value").text, zt_is(r->mapped), zt_was(r->mapped));
}

static int make(zt_trace *trace, zr_plan *plan, const char *path, const zr_options *o, bool json, bool quiet)
{
    zr_report report;
    zr_replay(plan, o, &report);
    int status = zt_replay_taken(trace, plan, o, &report);
    if (status == ZR_SAME && report.late > 0) /* nothing differs only because what came behind did not wait */
        report.verdict = status = ZR_DIFFERS;
    if (!quiet && report.driver[0] != 0 && !json)
        zt_complain("replay on %s, %s%s%s", report.driver, report.driver_why, o->schedule ? ", schedule " : "", o->schedule ? o->schedule : "");
    if (report.message[0] != 0)
        zt_complain("%s: %s", path, report.message);
    if (json)
        zt_print_report_json(stdout, &report);
    else if (!quiet)
        print_text(&report, o);
    return status;
}

static int run(int argc, char **argv)
{
    zt_parser parser;
    const char *injections[MOST_INJECTIONS], *replacements[MOST_INJECTIONS], *order = NULL;
    size_t n_injections = 0, n_replacements = 0;
    zr_points points = {0};
    zr_item *items = NULL;
    uint8_t *learned = NULL;
    zr_options o;
    bool json = false, quiet = false;
    char soft[4096];
    zr_options_default(&o);
    zt_parser_init(&parser, &zt_command_replay, argc, argv);
    for (int id; (id = zt_option_next(&parser)) != 0;) {
        if (id == ZT_OPTION_HELP)
            return 0;
        if (id == ZT_OPTION_ERROR)
            return ZT_EXIT_USAGE;
        json |= id == JSON;
        quiet |= id == QUIET;
        if (id == ORDER)
            order = parser.value;
        if (id == INJECT && n_injections == MOST_INJECTIONS)
            return zt_usage_error(&zt_command_replay, "--inject may be given %d times", MOST_INJECTIONS);
        if (id == INJECT)
            injections[n_injections++] = parser.value;
        if (id == REPLACE && n_replacements == MOST_INJECTIONS)
            return zt_usage_error(&zt_command_replay, "--replace may be given %d times", MOST_INJECTIONS);
        if (id == REPLACE)
            replacements[n_replacements++] = parser.value;
        const int status = option_value(&parser, &o, id);
        if (status >= 0)
            return status;
    }
    zt_trace *trace;
    int status = zt_open_calls(&parser, &trace);
    if (status != ZT_EXIT_OK)
        return status;
    const char *const path = argv[parser.at];
    zt_error error;
    zr_plan *plan;
    snprintf(soft, sizeof(soft), "%s/libze_soft.so.1", zt_library_folder());
    o.soft_library = soft;
    if (zr_plan_make(&plan, trace, &error) != ZT_OK) {
        zt_complain("%s: %s", path, error.text);
        zt_trace_close(trace);
        return error.status == ZT_E_MEMORY || error.status == ZT_E_LIMIT ? ZT_EXIT_CANNOT : ZT_EXIT_DAMAGED;
    }
    zt_tell_health(trace, path);
    char why[512];
    status = check_range(plan, &o, path);
    for (size_t i = 0; i < n_replacements && status == ZT_EXIT_OK; i++) {
        const int wrong = zt_replay_replace(plan, replacements[i], quiet);
        status = wrong < 0 ? ZT_EXIT_OK : wrong;
    }
    for (size_t i = 0; i < n_injections && status == ZT_EXIT_OK; i++)
        if (!zr_inject_parse(plan, injections[i], &points, why, sizeof(why)))
            status = zt_usage_error(&zt_command_replay, "%s", why);
    o.points = points.list;
    o.n_points = points.n;
    if (status == ZT_EXIT_OK) {
        status = points.n > 0 || order != NULL ? zt_replay_line(trace, plan, order, &o, &items, &learned) : -1;
        if (status < 0)
            status = make(trace, plan, path, &o, json, quiet);
    }
    zr_points_free(&points);
    free(items);
    free(learned);
    zr_plan_free(plan);
    zt_trace_close(trace);
    return zt_finish_output(status);
}

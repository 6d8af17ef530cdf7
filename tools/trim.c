/* SPDX-License-Identifier: MIT */
/* zetrace trim: a smaller trace that replays by itself. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "commands.h"
#include "replay.h"
#include "trim.h"

enum { OUTPUT = 1, FORCE, CALLS, OBJECT, QUEUE, KERNEL, NEEDS, MINIMISE, BUDGET, DRIVER, TIMEOUT, NO_DATA, NO_VERIFY, QUIET };

static const zt_option options[] = {
    {OUTPUT, 'o', "output", "OUT", "the trace to write"},
    {FORCE, 'f', "force", NULL, "overwrite it"},
    {CALLS, 0, "calls", "SET", "keep these calls (10..20, 10.., /submit, @FILE, ...; see 'zetrace help dump') and what they need; may be given often, as the next ones"},
    {OBJECT, 0, "object", "KIND#N", "keep the calls that have the object, such as mem#2, as an argument, and what they need"},
    {QUEUE, 0, "queue", "queue#N", "keep what was submitted to a queue, or to an immediate list (list#N), its waits, and what they need"},
    {KERNEL, 0, "kernel", "NAME", "keep the launches of kernels whose name matches the pattern, and what they need"},
    {NEEDS, 0, "needs", "#N[,#M]...", "keep call N and what it needs; of a command also what submits it and what waits for it"},
    {NO_DATA, 0, "no-data", NULL, "leave out what only wrote the bytes that commands read: they read others then, which are not compared"},
    {MINIMISE, 0, "minimise", NULL, "leave out whatever the recorded failure comes back without: the smallest program that still fails"},
    {BUDGET, 0, "budget", "N", "replays at the most while minimising (2000)"},
    {DRIVER, 0, "driver", "auto|soft|PATH", "what to replay on, as in 'zetrace replay'"},
    {TIMEOUT, 0, "timeout", "T", "how long one wait of a replay may take (10s; 2s while minimising)"},
    {NO_VERIFY, 0, "no-verify", NULL, "do not replay what was written"},
    {QUIET, 'q', "quiet", NULL, "say nothing of what was kept"},
    {0, 0, NULL, NULL, NULL},
};

static int run(int argc, char **argv);
const zt_command zt_command_trim = {
    .name = "trim",
    .summary = "cut a trace down to what a few calls need",
    .synopsis = "IN -o OUT",
    .options = options,
    .more = "Exit status: 0 written, and its replay is that of IN; 1 it is not, the file is kept; 2 usage; 3 damaged trace; 125 it can't be "
            "done, or verified, here.\n\n"
            "Calls keep their numbers; objects are counted anew. Options may stand behind IN as well.\n",
    .usage_status = ZT_EXIT_USAGE,
    .run = run,
};

#define MOST 64 /* of one option */

typedef struct wishes {
    const char *out, *needs[MOST], *objects[MOST], *kernels[MOST];
    uint64_t budget, timeout_ns;
    size_t n_needs, n_objects, n_kernels;
    zt_calls *calls;
    const char *driver;
    bool force, minimise, no_data, no_verify, quiet;
} wishes;

/* ------------------------------------------------------------------------------------------------------------ replays */

static char soft[4096];

static void replay_options(const wishes *w, zr_options *o)
{
    zr_options_default(o);
    snprintf(soft, sizeof(soft), "%s/libze_soft.so.1", zt_library_folder());
    o->soft_library = soft;
    o->driver = w->driver;
    if (w->timeout_ns != 0)
        o->timeout_ns = w->timeout_ns;
    else if (w->minimise)
        o->timeout_ns = 2000000000u;
}

/* @return false with a sentence in `error` if it could not even be read. */
static bool replay(const wishes *w, zt_trace *trace, zr_report *report, zt_error *error)
{
    zr_options o;
    zr_plan *plan;
    replay_options(w, &o);
    zt_trace_seek(trace, 1);
    if (zr_plan_make(&plan, trace, error) != ZT_OK)
        return false;
    zr_replay(plan, &o, report);
    zr_plan_free(plan);
    return true;
}

static bool replay_file(const wishes *w, const char *path, zr_report *report, zt_error *error)
{
    zt_trace *trace;
    if (zt_trace_open(&trace, path, error) != ZT_OK)
        return false;
    const bool ok = replay(w, trace, report, error);
    zt_trace_close(trace);
    return ok;
}

static void tell_mismatch(const zr_mismatch *m, char *text, size_t size)
{
    char call[96] = "the final wait for all queues";
    if (m->call != 0)
        snprintf(call, sizeof(call), "#%llu %s", (unsigned long long)m->call, m->function);
    snprintf(text, size, "%s: %s%s%s%s recorded %s, replayed %s", call, zr_what_name(m->what), m->detail[0] ? " (" : "", m->detail,
             m->detail[0] ? ")" : "", m->recorded, m->replayed);
}

/* Replays OUT, and IN where that differs. @return the exit status. */
static int verify(const wishes *w, zt_trace *in, const char *path)
{
    zr_report of_out, of_in;
    zt_error error = {0};
    char text[1024], other[1024] = "";
    if (!replay_file(w, w->out, &of_out, &error)) {
        zt_complain("%s: %s", w->out, error.text);
        return ZT_EXIT_CANNOT;
    }
    if (of_out.verdict == ZR_SAME) {
        if (!w->quiet && of_out.failed_call != 0)
            printf("its replay is the same; the recorded failure comes back: #%llu %s = %s\n", (unsigned long long)of_out.failed_call,
                   of_out.failed_function, of_out.failed_result);
        else if (!w->quiet)
            printf("its replay is the same\n");
        return ZT_EXIT_OK;
    }
    if (of_out.mismatches == 0) {
        zt_complain("%s: written, but it can't be verified here: %s", w->out, of_out.message[0] ? of_out.message : "the replay did not end");
        return ZT_EXIT_CANNOT;
    }
    tell_mismatch(&of_out.first, text, sizeof(text));
    if (!replay(w, in, &of_in, &error))
        snprintf(other, sizeof(other), "%s can't be replayed: %s", path, error.text);
    else if (of_in.mismatches > 0 && of_in.first.call == of_out.first.call && strcmp(of_in.first.replayed, of_out.first.replayed) == 0) {
        if (!w->quiet)
            printf("its replay is that of %s, which differs from the recording: %s\n", path, text);
        return ZT_EXIT_OK;
    } else if (of_in.verdict == ZR_SAME && of_in.failed_call != 0 && of_out.mismatches == 1 && of_out.first.call == 0) {
        if (!w->quiet)
            printf("its replay is the same; the fault that #%llu of %s told of shows when it is over: the calls that fail were left out\n",
                   (unsigned long long)of_in.failed_call, path);
        return ZT_EXIT_OK;
    } else if (of_in.mismatches > 0) {
        char first[900];
        tell_mismatch(&of_in.first, first, sizeof(first));
        snprintf(other, sizeof(other), "%s differs elsewhere: %s", path, first);
    } else {
        snprintf(other, sizeof(other), "in %s it does not differ, so that call depends on one that was left out; keep more, with --calls",
                 path);
    }
    zt_complain("%s: written, but its replay differs: %s; %s", w->out, text, other);
    return ZT_EXIT_DIFFERS;
}

/* ---------------------------------------------------------------------------------------------------------- minimising */

static volatile int interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

typedef struct target {
    const wishes *w;
    zr_report wanted;
    zt_progress progress;
    uint64_t done;
} target;

/* The same failure at the same call, and everything else that is left as recorded. */
static bool still_fails(void *ctx, const char *path)
{
    target *const t = ctx;
    zr_report got;
    zt_error error = {0};
    zt_progress_step(&t->progress, ++t->done);
    return replay_file(t->w, path, &got, &error) && got.verdict == ZR_SAME && got.failed_call == t->wanted.failed_call &&
           strcmp(got.failed_result, t->wanted.failed_result) == 0;
}

/* Finds out what is to come back. @return -1, or the status to exit with. */
static int find_failure(const wishes *w, zt_trace *in, const char *path, zr_report *report)
{
    zt_error error = {0};
    char text[1024];
    if (!replay(w, in, report, &error)) {
        zt_complain("%s: %s", path, error.text);
        return error.status == ZT_E_MEMORY || error.status == ZT_E_LIMIT ? ZT_EXIT_CANNOT : ZT_EXIT_DAMAGED;
    }
    if (report->verdict == ZR_SAME && report->failed_call == 0)
        return zt_usage_error(&zt_command_trim, "%s: no call of it failed, so there is nothing that --minimise could hold on to; "
                                                "--needs=#N keeps what a call needs", path);
    if (report->verdict == ZR_SAME)
        return -1;
    if (report->mismatches > 0)
        tell_mismatch(&report->first, text, sizeof(text));
    zt_complain("%s: can't be minimised, its replay is not what was recorded: %s", path, report->mismatches > 0 ? text : report->message);
    return report->verdict == ZR_DIFFERS ? ZT_EXIT_DIFFERS : ZT_EXIT_CANNOT;
}

static int minimise(const wishes *w, const char *path, const zm_needs *needs, const zm_keep *keep, const zr_report *wanted)
{
    target t = {.w = w, .wanted = *wanted};
    const zm_minimise_options o = {.still = still_fails, .ctx = &t, .budget = w->budget, .overwrite = w->force, .stop = &interrupted};
    zm_minimised result;
    zt_error error = {0};
    const struct sigaction catch = {.sa_handler = interrupt};
    struct sigaction old_int, old_term;
    sigaction(SIGINT, &catch, &old_int);
    sigaction(SIGTERM, &catch, &old_term);
    zt_progress_start(&t.progress, "minimise", 0);
    const int status = zm_minimise(keep, w->out, &o, &result, &error);
    sigaction(SIGINT, &old_int, NULL); /* what comes behind can be ended as ever */
    sigaction(SIGTERM, &old_term, NULL);
    zt_progress_end(&t.progress);
    if (status == ZT_END) {
        zt_complain("%s: with these calls alone #%llu %s does not fail as recorded; keep more", path, (unsigned long long)wanted->failed_call,
                    wanted->failed_function);
        return ZT_EXIT_DIFFERS;
    }
    if (status != ZT_OK) {
        zt_complain("%s", error.text);
        return status == ZT_E_EXISTS ? ZT_EXIT_USAGE : ZT_EXIT_CANNOT;
    }
    if (!w->quiet)
        printf("%s: %llu of %s, after %s%s\n", w->out, (unsigned long long)result.after, zt_count(zm_needs_calls(needs), "call").text,
               zt_count(result.tests, "replay").text,
               result.spent ? "; it was ended early, fewer may do" : "");
    return ZT_EXIT_OK;
}

/* ------------------------------------------------------------------------------------------------------------- choosing */

/* @return -1, or the status of a usage error. */
static int add_needs(const char *list, zm_keep *keep, const char *path)
{
    char text[1024];
    uint64_t call;
    snprintf(text, sizeof(text), "%s", list);
    for (char *rest = NULL, *word = strtok_r(text, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest))
        if (!zt_parse_call(word, &call))
            return zt_usage_error(&zt_command_trim, "--needs wants calls as #12,#14, not '%s'", list);
        else if (!zm_keep_add(keep, call))
            return zt_usage_error(&zt_command_trim, "--needs: %s has no call #%llu", path, (unsigned long long)call);
    return strlen(list) < sizeof(text) ? -1 : zt_usage_error(&zt_command_trim, "--needs may be given several times; this list is too long");
}

static bool keep_call(void *ctx, uint64_t number)
{
    zm_keep_add(ctx, number);
    return true;
}

/* @return -1, -2 when memory is out, or the status of a usage error. */
static int choose(const wishes *w, zm_keep *keep, zt_trace *in, const char *path, uint64_t failed)
{
    uint64_t until = 0;
    if (zt_calls_given(w->calls)) {
        until = zt_calls_end(w->calls);
        if (zt_calls_each(w->calls, in, keep_call, keep) == ZT_E_MEMORY)
            return -2;
        if (zt_calls_unmet(w->calls) != NULL)
            return zt_usage_error(&zt_command_trim, "--calls: %s has no call that '%s' names", path, zt_calls_unmet(w->calls));
    }
    for (size_t i = 0; i < w->n_objects; i++)
        if (zm_keep_add_object(keep, w->objects[i]) == 0)
            return zt_usage_error(&zt_command_trim, "no call of %s has %s as an argument; 'zetrace dump' names objects", path,
                                  w->objects[i]);
    for (size_t i = 0; i < w->n_kernels; i++)
        if (zm_keep_add_kernel(keep, w->kernels[i]) == 0)
            return zt_usage_error(&zt_command_trim, "--kernel: no call of %s has a kernel whose name matches '%s'; 'zetrace dump' shows names as "
                                                    "kernel#1(NAME)", path, w->kernels[i]);
    for (size_t i = 0; i < w->n_needs; i++) {
        const int status = add_needs(w->needs[i], keep, path);
        if (status >= 0)
            return status;
    }
    if (failed != 0 && zm_keep_count(keep) == 0)
        zm_keep_add_range(keep, 1, until = failed);
    if (failed != 0)
        zm_keep_add(keep, failed);
    const bool parts = w->n_objects + w->n_kernels + w->n_needs > 0;
    const unsigned flags = (parts ? ZM_WITH_ALL : ZM_WITH_SYNCS | ZM_WITH_ENDS) | (w->no_data ? ZM_NO_DATA : 0);
    return zm_close_over_needs(keep, flags, parts ? 0 : until) == ZT_OK ? -1 : -2;
}

static int trim(const wishes *w, zt_trace *in, const char *path)
{
    zm_needs *needs = NULL;
    zt_error error = {0};
    zr_report wanted = {0};
    int status = w->minimise ? find_failure(w, in, path, &wanted) : -1;
    if (status >= 0)
        return status;
    if (zm_needs_make(&needs, in, &error) != ZT_OK) {
        zt_complain("%s: %s", path, error.text);
        return error.status == ZT_E_MEMORY ? ZT_EXIT_CANNOT : ZT_EXIT_DAMAGED;
    }
    zt_tell_health(in, path);
    zm_keep *const keep = zm_keep_new(needs);
    status = keep ? choose(w, keep, in, path, wanted.failed_call) : -2;
    if (status == -2) {
        zt_complain("%s: not enough memory", path);
        status = ZT_EXIT_CANNOT;
    } else if (status < 0 && w->minimise) {
        status = minimise(w, path, needs, keep, &wanted);
    } else if (status < 0) {
        const zm_trim_options how = {.overwrite = w->force, .level = ZM_LEVEL_TO_KEEP};
        status = zm_trim(keep, w->out, &how, &error);
        if (status != ZT_OK) {
            zt_complain("%s", error.text);
            status = status == ZT_E_EXISTS ? ZT_EXIT_USAGE : ZT_EXIT_CANNOT;
        } else if (!w->quiet) {
            printf("%s: %llu of %s\n", w->out, (unsigned long long)zm_keep_count(keep), zt_count(zm_needs_calls(needs), "call").text);
        }
    }
    zm_keep_free(keep);
    zm_needs_free(needs);
    return status == ZT_EXIT_OK && !w->no_verify ? verify(w, in, path) : status;
}

/* @return -1, or the status of a usage error. */
static int take_option(const zt_parser *parser, wishes *w, int id)
{
    const size_t have = id == OBJECT || id == QUEUE ? w->n_objects : id == KERNEL ? w->n_kernels : id == NEEDS ? w->n_needs : 0;
    char why[512];
    if (have == MOST)
        return zt_usage_error(&zt_command_trim, "--object with --queue, --kernel, and --needs may be given %d times each", MOST);
    switch (id) {
    case OUTPUT:
        w->out = parser->value;
        break;
    case FORCE:
        w->force = true;
        break;
    case CALLS:
        if (!zt_calls_add(w->calls, parser->value, why, sizeof(why)))
            return zt_usage_error(&zt_command_trim, "trim: --calls %s", why);
        break;
    case OBJECT:
        w->objects[w->n_objects++] = parser->value;
        break;
    case QUEUE:
        if (strncmp(parser->value, "queue#", 6) != 0 && strncmp(parser->value, "list#", 5) != 0)
            return zt_usage_error(&zt_command_trim, "--queue wants a queue as queue#1, or an immediate list as list#3, not '%s'", parser->value);
        w->objects[w->n_objects++] = parser->value;
        break;
    case KERNEL:
        w->kernels[w->n_kernels++] = parser->value;
        break;
    case NEEDS:
        w->needs[w->n_needs++] = parser->value;
        break;
    case MINIMISE:
        w->minimise = true;
        break;
    case BUDGET:
        if (!zt_parse_number(parser->value, &w->budget) || w->budget == 0)
            return zt_usage_error(&zt_command_trim, "--budget wants a number above 0, not '%s'", parser->value);
        break;
    case DRIVER:
        w->driver = parser->value;
        break;
    case TIMEOUT:
        if (!zt_parse_time(parser->value, &w->timeout_ns) || w->timeout_ns == 0)
            return zt_usage_error(&zt_command_trim, "--timeout wants a time as 500ms or 10s, not '%s'", parser->value);
        break;
    case NO_DATA:
        w->no_data = true;
        break;
    case NO_VERIFY:
        w->no_verify = true;
        break;
    default:
        w->quiet = true;
        break;
    }
    return -1;
}

static int run_with(int argc, char **argv, wishes *w)
{
    char *operand[2] = {argv[0], NULL};
    int operands = 0;
    zt_parser parser;
    zt_parser_init(&parser, &zt_command_trim, argc, argv);
    for (;;) {
        const int id = zt_option_next(&parser);
        if (id == 0 && parser.at >= argc)
            break;
        if (id == ZT_OPTION_HELP)
            return 0;
        if (id == ZT_OPTION_ERROR)
            return ZT_EXIT_USAGE;
        if (id == 0) {
            operand[1] = argv[parser.at++];
            operands++;
            continue;
        }
        const int status = take_option(&parser, w, id);
        if (status >= 0)
            return status;
    }
    if (operands != 1)
        return zt_usage_error(&zt_command_trim, "trim wants one trace, but was given %s; 'zetrace help trim' tells more", zt_count((unsigned)operands, "operand").text);
    if (w->out == NULL)
        return zt_usage_error(&zt_command_trim, "trim wants -o OUT, the trace to write");
    if (!zt_calls_given(w->calls) && w->n_objects + w->n_kernels + w->n_needs == 0 && !w->minimise)
        return zt_usage_error(&zt_command_trim, "trim wants to know what to keep: --calls, --object, --queue, --kernel, --needs, or --minimise");
    zt_trace *trace;
    const zt_parser one = {.command = &zt_command_trim, .argc = 2, .argv = operand, .at = 1};
    int status = zt_open_calls(&one, &trace);
    if (status != ZT_EXIT_OK)
        return status;
    status = zt_check_output(&zt_command_trim, operand[1], w->out, w->force);
    if (status == ZT_EXIT_OK)
        status = trim(w, trace, operand[1]);
    zt_trace_close(trace);
    return zt_finish_output(status);
}

static int run(int argc, char **argv)
{
    wishes w = {.budget = 2000, .calls = zt_calls_new()};
    const int status = w.calls ? run_with(argc, argv, &w) : ZT_EXIT_CANNOT;
    zt_calls_free(w.calls);
    return status;
}

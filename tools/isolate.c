/* SPDX-License-Identifier: MIT */
/* zetrace isolate: the two operations whose order fails, proved both ways. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "isolate.h"

enum { DRIVER = 1, RECORDING, FAIL_IF, TOLERANCE, CONFIRM, BUDGET, SEED, TIMEOUT, TIMING, JOBS, LAUNCHER, TRIAL, OUTPUT, FORCE, JSON, QUIET };

static const zt_option options[] = {
    {DRIVER, 0, "driver", "auto|soft|PATH", "what to replay on, as in 'zetrace replay'"},
    {RECORDING, 0, "recording", "good|bad", "take the recorded run for a good or a bad one; guessed, and said, if not given"},
    {FAIL_IF, 0, "fail-if", "CONDITION",
     "what makes a trial a failing one: result:FUNCTION-GLOB=RESULT, memory (what the host reads back differs), or exit:COMMAND, which is "
     "run after each trial with its report in $ZETRACE_REPORT: 0 good, 125 can't be told, else bad"},
    {TOLERANCE, 0, "tolerance", "f32|f64:EPS", "memory that differs counts as the same if it is of such numbers and each is within EPS of its size"},
    {CONFIRM, 0, "confirm", "K", "replays that must agree on each claim (3)"},
    {BUDGET, 0, "budget", "N", "replays in all (200)"},
    {SEED, 0, "seed", "N", "of the random orders (1)"},
    {TIMEOUT, 0, "timeout", "T", "how long one wait of a replay may take (2s)"},
    {TIMING, 0, "timing", "N", "in place of orders of whole commands: replays in real time, N with one of a pair delayed and N with the other, by 1 ms to 64 ms"},
    {JOBS, 0, "jobs", "N", "replays side by side (1); the answer is the same, for some replays more"},
    {LAUNCHER, 0, "launcher", "COMMAND", "run each trial with this in front, as 'srun -n1'; the trace's folder must be seen there, too"},
    {TRIAL, 0, "trial", "FILE", "replay one order that --launcher has written, and leave the report beside it"},
    {OUTPUT, 'o', "output", "SMALL", "write the smallest trace that still shows what was found"},
    {FORCE, 'f', "force", NULL, "overwrite it"},
    {JSON, 0, "json", NULL, "the answer as one JSON object"},
    {QUIET, 'q', "quiet", NULL, "the exit status only"},
    {0, 0, NULL, NULL, NULL},
};

static int run(int argc, char **argv);
const zt_command zt_command_isolate = {
    .name = "isolate",
    .summary = "find the two operations whose order makes a program fail",
    .synopsis = "TRACE",
    .options = options,
    .more = "Exit status: 0 searched and none found, 1 found, 2 usage, 3 damaged trace, 4 undecided, 125 it can't be done here.\n\n"
            "Every claim is a replay: run in this order it fails, in the other it passes, each several times. A trace of a run that "
            "went well does as well.\n",
    .usage_status = ZT_EXIT_USAGE,
    .run = run,
};

static void show_progress(void *ctx, const char *what, unsigned replays, unsigned budget)
{
    (void)ctx;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%s: replay %u of at most %u\033[K", what, replays, budget);
}

static bool read_tolerance(const char *text, zr_options *o)
{
    char *end;
    if (strncmp(text, "f32:", 4) != 0 && strncmp(text, "f64:", 4) != 0)
        return false;
    o->tolerance_size = text[1] == '3' ? 4 : 8;
    o->tolerance = strtod(text + 4, &end);
    return end != text + 4 && *end == '\0' && o->tolerance >= 0 && o->tolerance < 1e300;
}

static int take_number(int id, const char *value, zo_isolate_options *o)
{
    const char *const name = id == CONFIRM ? "confirm" : id == BUDGET ? "budget" : id == TIMING ? "timing" : id == JOBS ? "jobs" : "seed";
    uint64_t number = 0;
    if (!zt_parse_number(value, &number) || (id != SEED && (number == 0 || number > 1000000)))
        return zt_usage_error(&zt_command_isolate, "--%s wants a number above 0, not '%s'", name, value);
    if (id == CONFIRM)
        o->confirm = (unsigned)number;
    else if (id == BUDGET)
        o->budget = (unsigned)number;
    else if (id == TIMING)
        o->timing = (unsigned)number;
    else if (id == JOBS)
        o->jobs = (unsigned)number;
    else
        o->seed = number;
    return ZT_EXIT_OK;
}

static int take(isolate *r, int id, const char *value)
{
    switch (id) {
    case DRIVER:
        r->replay.driver = value;
        break;
    case RECORDING:
        r->options.recording = value[0] == 'g' ? ZO_REC_GOOD : ZO_REC_BAD;
        break;
    case FAIL_IF: {
        isolate_fail_if_free(r);
        const char *const wrong = isolate_fail_if(r, value);
        if (wrong != NULL)
            return zt_usage_error(&zt_command_isolate, "--fail-if %s, not '%s'", wrong, value);
        break;
    }
    case TOLERANCE:
        if (!read_tolerance(value, &r->replay))
            return zt_usage_error(&zt_command_isolate, "--tolerance wants f32:EPS or f64:EPS, as f32:1e-5, not '%s'", value);
        break;
    case TIMEOUT:
        if (!zt_parse_time(value, &r->replay.timeout_ns) || r->replay.timeout_ns == 0)
            return zt_usage_error(&zt_command_isolate, "--timeout wants a time as 500ms or 10s, not '%s'", value);
        break;
    case LAUNCHER:
        r->launcher = value;
        break;
    case TRIAL:
        r->trial = value;
        break;
    case OUTPUT:
        r->small = value;
        break;
    case FORCE:
        r->force = true;
        break;
    case JSON:
        r->json = true;
        break;
    case QUIET:
        r->quiet = true;
        break;
    default:
        return take_number(id, value, &r->options);
    }
    return ZT_EXIT_OK;
}

int isolate_open(zt_trace *trace, zo_graph **graph, zr_plan **plan, zt_error *error)
{
    *error = (zt_error){0};
    int status = zo_graph_make(graph, trace, NULL, error);
    if (status == ZT_OK)
        status = zo_check(*graph);
    if (status == ZT_OK)
        status = zo_check_hidden(*graph, error);
    if (status == ZT_OK) {
        zt_trace_seek(trace, 1);
        status = zr_plan_make(plan, trace, error);
    }
    if (status != ZT_OK && error->text[0] == '\0')
        snprintf(error->text, sizeof(error->text), "not enough memory");
    return status;
}

/* A failure that is not among the calls says nothing of their order. @return whether that decides what the recording is taken for. */
static bool cut_from_a_failure(isolate *r, const zt_trace *trace)
{
    if (r->options.recording != ZO_REC_AUTO || !zt_failures_left_out(trace))
        return false;
    r->options.recording = ZO_REC_GOOD;
    return true;
}

static void doubt_good(const isolate *r, zt_trace *trace)
{
    const zt_call *call;
    zt_trace_seek(trace, 1);
    while (zt_trace_next(trace, &call) == ZT_OK)
        if (call->returned && strcmp(zt_types[call->func->return_type].name, "ze_result_t") == 0 && zt_is_fault(call->result)) {
            zt_complain("%s: #%llu %s gave %s, but it is taken for a good recording, as told: what does not fail so counts as failing", r->path,
                        (unsigned long long)call->number, call->func->name, zt_result_name(call->result));
            return;
        }
}

static int search(isolate *r, zt_trace *trace, zo_graph *graph, zr_plan *plan)
{
    zo_answer answer = {.verdict = ZO_V_NONE_FOUND, .seed = r->options.seed, .why_taken = "it has no calls", .driver = "no driver"};
    if (r->options.recording == ZO_REC_GOOD && r->options.judge == NULL)
        doubt_good(r, trace);
    const bool cut = cut_from_a_failure(r, trace);
    const int status = zt_trace_health(trace)->calls > 0 ? zo_isolate(graph, plan, zt_trace_ending(trace), &r->options, &answer) : ZT_OK;
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    if (status != ZT_OK) {
        zt_complain("%s: %s", r->path, r->cannot[0] ? r->cannot : answer.text[0] ? answer.text : "not enough memory");
        return ZT_EXIT_CANNOT;
    }
    if (cut)
        snprintf(answer.why_taken, sizeof(answer.why_taken), "it was cut from a bad one without the calls that failed");
    if (!r->quiet)
        isolate_print(trace, r->path, &answer, r->json);
    const bool found = answer.verdict == ZO_V_ORDER || answer.verdict == ZO_V_HOST_ORDER;
    if (found && r->small != NULL) {
        fflush(stdout);
        const int written = isolate_small(r, trace, &answer);
        if (written != ZT_EXIT_OK)
            return written;
    }
    return found ? ZT_EXIT_DIFFERS : answer.verdict == ZO_V_NONE_FOUND ? ZT_EXIT_OK : 4;
}

static int run(int argc, char **argv)
{
    zt_parser parser;
    char soft[4096];
    isolate r = {.argc = argc, .argv = argv, .options = {.seed = 1, .progress = show_progress}};
    zr_options_default(&r.replay);
    r.replay.timeout_ns = 2000000000u;
    r.options.replay = &r.replay;
    r.options.ctx = &r;
    zt_parser_init(&parser, &zt_command_isolate, argc, argv);
    for (int id; (id = zt_option_next(&parser)) != 0;) {
        if (id == ZT_OPTION_HELP)
            return 0;
        const int wrong = id == ZT_OPTION_ERROR ? ZT_EXIT_USAGE : take(&r, id, parser.value);
        if (wrong != ZT_EXIT_OK)
            return wrong;
    }
    if (r.options.timing > 0 && (r.launcher != NULL || r.small != NULL))
        return zt_usage_error(&zt_command_isolate, "--timing makes its replays here and proves no order: leave out %s", r.launcher ? "--launcher" : "-o");
    zt_trace *trace;
    int status = zt_open_calls(&parser, &trace);
    if (status != ZT_EXIT_OK)
        return status;
    r.path = argv[parser.at];
    if (r.small != NULL && r.trial == NULL && (status = zt_check_output(&zt_command_isolate, r.path, r.small, r.force)) != ZT_EXIT_OK) {
        zt_trace_close(trace);
        return status;
    }
    if ((status = isolate_fail_if_fits(&r, trace)) != ZT_EXIT_OK) {
        isolate_fail_if_free(&r);
        zt_trace_close(trace);
        return status;
    }
    zt_trace_seek(trace, 1);
    zo_graph *graph = NULL;
    zr_plan *plan = NULL;
    zt_error error;
    snprintf(soft, sizeof(soft), "%s/libze_soft.so.1", zt_library_folder());
    r.replay.soft_library = soft;
    if (r.launcher != NULL && r.trial == NULL)
        r.options.run = isolate_launch;
    status = isolate_open(trace, &graph, &plan, &error);
    if (status != ZT_OK) {
        zt_complain("%s: %s", r.path, error.text);
        status = error.status == ZT_E_MEMORY || error.status == ZT_E_LIMIT ? ZT_EXIT_CANNOT : ZT_EXIT_DAMAGED;
    } else {
        zt_tell_health(trace, r.path);
        zt_tell_dropped(trace, r.path);
        if (r.trial != NULL)
            cut_from_a_failure(&r, trace);
        status = r.trial != NULL ? isolate_trial(&r, graph, plan, zt_trace_ending(trace)) : search(&r, trace, graph, plan);
    }
    isolate_fail_if_free(&r);
    zr_plan_free(plan);
    zo_graph_free(graph);
    zt_trace_close(trace);
    return zt_finish_output(status);
}

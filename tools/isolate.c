/* SPDX-License-Identifier: MIT */
/* zetrace isolate: the two operations whose order fails, proved both ways. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "order.h"

enum { DRIVER = 1, RECORDING, CONFIRM, BUDGET, SEED, TIMEOUT, JSON, QUIET };

static const zt_option options[] = {
    {DRIVER, 0, "driver", "auto|soft|PATH", "what to replay on, as in 'zetrace replay'"},
    {RECORDING, 0, "recording", "good|bad", "take the recorded run for a good or a bad one; guessed, and said, if not given"},
    {CONFIRM, 0, "confirm", "K", "replays that must agree on each claim (3)"},
    {BUDGET, 0, "budget", "N", "replays in all (200)"},
    {SEED, 0, "seed", "N", "of the random orders (1)"},
    {TIMEOUT, 0, "timeout", "T", "how long one wait of a replay may take (2s)"},
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

/* ------------------------------------------------------------------------------------------------------- call's line */

static char *text_of(zt_trace *trace, uint64_t call)
{
    zt_objects *const objects = zt_objects_new();
    zt_text *const text = zt_text_new();
    zt_events *events = NULL;
    zt_event event;
    char *out = NULL;
    zt_trace_seek(trace, 1);
    if (objects != NULL && text != NULL && zt_events_open(&events, trace) == ZT_OK) {
        while (out == NULL && zt_events_next(events, &event) == ZT_OK) {
            if (event.phase == ZT_LEAVE)
                zt_objects_event(objects, trace, &event);
            if (event.call->number == call && (event.phase == ZT_LEAVE || !event.call->returned)) {
                zt_print_call(text, trace, objects, event.call, ZT_P_NO_TIME);
                out = zt_with_backtrace(trace, event.call, zt_text_get(text, NULL), false);
                if (out == NULL)
                    out = strdup(zt_text_get(text, NULL));
            }
            if (event.phase == ZT_ENTER)
                zt_objects_event(objects, trace, &event);
        }
    }
    zt_events_close(events);
    zt_text_free(text);
    zt_objects_free(objects);
    return out;
}

/* The call, and up to three frames of where it was made. */
static void print_call(zt_trace *trace, uint64_t call)
{
    char *const all = text_of(trace, call);
    const char *text = all ? all : "";
    bool in_main = false;
    for (unsigned i = 0; *text != '\0' && i < 4 && !in_main; i++) {
        const size_t n = strcspn(text, "\n");
        printf("      %.*s\n", (int)n, text);
        in_main = i > 0 && strncmp(text + strspn(text, " "), "at main ", 8) == 0;
        text += n + (text[n] == '\n');
    }
    free(all);
}

static void print_text(zt_trace *trace, const zo_answer *a)
{
    char early[32], late[32];
    snprintf(early, sizeof(early), a->early.execution > 1 ? "#%llu@%u" : "#%llu", (unsigned long long)a->early.call, a->early.execution);
    snprintf(late, sizeof(late), a->late.execution > 1 ? "#%llu@%u" : "#%llu", (unsigned long long)a->late.call, a->late.execution);
    printf("The recording is taken for a %s one: %s.\n", a->taken_for_bad ? "bad" : "good", a->why_taken);
    switch (a->verdict) {
    case ZO_V_ORDER:
        printf("It fails when %s%s comes before %s%s%s.\n\n", a->early_is_write ? "what the host has written by " : "", early,
               a->late_submit ? "the end of " : "", late, a->object[0] ? "" : "");
        printf("  too early:\n");
        print_call(trace, a->early.call);
        printf("  must be over by then%s:\n", a->late_submit ? "" : " (or have been made)");
        print_call(trace, a->late.call);
        if (a->late_submit != 0 && a->late_submit != a->late.call)
            printf("      submitted by #%llu\n", (unsigned long long)a->late_submit);
        printf("\n");
        if (a->object[0] != 0)
            printf("  both use      %s\n", a->object);
        printf("  this order    %s first: fails %u of %u\n", early, a->fails[0], a->fails[1]);
        printf("  the other     %s first: passes %u of %u\n", late, a->passes[0], a->passes[1]);
        if (a->shows_at != 0)
            printf("  it shows at   #%llu %s: %s%s\n", (unsigned long long)a->shows_at, a->shows_function, a->shows,
                   a->shows_at != a->early.call && a->shows_at != a->late.call ? "; that call is innocent" : "");
        else if (a->shows[0] != 0)
            printf("  it shows as   %s\n", a->shows);
        printf("  repair        %s; verified %u of %u\n", a->repair, a->verified[0], a->verified[1]);
        if (a->inject[0] != 0)
            printf("  try it        zetrace replay --inject='%s'\n", a->inject);
        break;
    case ZO_V_HOST_ORDER:
        printf("It fails in every order: the program itself makes %s come too early.\n\n", early);
        print_call(trace, a->early.call);
        if (a->late.call != 0 && a->late.call != a->early.call) {
            printf("  before\n");
            print_call(trace, a->late.call);
        }
        printf("\n  %s\n  repair        %s\n", a->text, a->repair);
        break;
    case ZO_V_NONE_FOUND:
        printf("No order that was tried changes anything.\n");
        break;
    case ZO_V_NOT_ORDER:
        printf("It fails in every order that was tried, and nothing in the calls explains it: not a question of order.\n");
        break;
    default:
        printf("Undecided (%s)%s%s.\n", zo_verdict_name(a->verdict), a->text[0] ? ": " : "", a->text);
        break;
    }
    printf("\n%u replays, %u orders, %u pairs that nothing orders, %u queues and immediate lists; commands whole; order of host calls as "
           "recorded; on %s, seed %llu.\n",
           a->replays, a->orders, a->candidates, a->carriers, a->driver, (unsigned long long)a->seed);
}

static void json_point(zt_trace *trace, const char *name, const zo_point *p)
{
    char *const text = text_of(trace, p->call);
    char function[96] = "";
    const char *const start = text ? strstr(text, "ze") : NULL;
    if (start != NULL)
        snprintf(function, sizeof(function), "%.*s", (int)strcspn(start, "("), start);
    printf("\"%s\":{\"call\":%llu,\"execution\":%u,\"function\":", name, (unsigned long long)p->call, p->execution);
    zt_json_string(stdout, function);
    printf("}");
    free(text);
}

static void print_json(zt_trace *trace, const zo_answer *a)
{
    printf("{\"verdict\":\"%s\",\"recording\":\"%s\",", zo_verdict_name(a->verdict), a->taken_for_bad ? "bad" : "good");
    json_point(trace, "early", &a->early);
    printf(",");
    json_point(trace, "late", &a->late);
    printf(",\"object\":");
    zt_json_string(stdout, a->object);
    printf(",\"fails\":[%u,%u],\"passes\":[%u,%u],\"shows_at\":%llu,\"shows\":", a->fails[0], a->fails[1], a->passes[0], a->passes[1],
           (unsigned long long)a->shows_at);
    zt_json_string(stdout, a->shows);
    printf(",\"repair\":{\"inject\":");
    zt_json_string(stdout, a->inject);
    printf(",\"text\":");
    zt_json_string(stdout, a->repair);
    printf(",\"verified\":[%u,%u]},\"replays\":%u,\"orders_searched\":%u,\"candidates\":%u,\"carriers\":%u,\"inversions\":%llu,\"driver\":",
           a->verified[0], a->verified[1], a->replays, a->orders, a->candidates, a->carriers, (unsigned long long)a->inversions);
    zt_json_string(stdout, a->driver);
    printf(",\"text\":");
    zt_json_string(stdout, a->text);
    printf(",\"hidden_by\":[],\"seed\":%llu,\"more\":[]}\n", (unsigned long long)a->seed);
}

static void show_progress(void *ctx, const char *what, unsigned replays, unsigned budget)
{
    (void)ctx;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%s: replay %u of at most %u\033[K", what, replays, budget);
}

static int run(int argc, char **argv)
{
    zt_parser parser;
    zr_options replay;
    char soft[4096];
    bool json = false, quiet = false;
    zr_options_default(&replay);
    replay.timeout_ns = 2000000000u;
    zo_isolate_options o = {.replay = &replay, .seed = 1, .progress = show_progress};
    zt_parser_init(&parser, &zt_command_isolate, argc, argv);
    for (int id; (id = zt_option_next(&parser)) != 0;) {
        uint64_t number = 0;
        if (id == ZT_OPTION_HELP)
            return 0;
        if (id == ZT_OPTION_ERROR)
            return ZT_EXIT_USAGE;
        json |= id == JSON;
        quiet |= id == QUIET;
        if (id == DRIVER)
            replay.driver = parser.value;
        if (id == RECORDING)
            o.recording = parser.value[0] == 'g' ? ZO_REC_GOOD : ZO_REC_BAD;
        if (id == TIMEOUT && (!zt_parse_time(parser.value, &replay.timeout_ns) || replay.timeout_ns == 0))
            return zt_usage_error(&zt_command_isolate, "--timeout wants a time as 500ms or 10s, not '%s'", parser.value);
        if ((id == CONFIRM || id == BUDGET || id == SEED) &&
            (!zt_parse_number(parser.value, &number) || (id != SEED && (number == 0 || number > 1000000))))
            return zt_usage_error(&zt_command_isolate, "--%s wants a number above 0, not '%s'",
                                  id == CONFIRM ? "confirm" : id == BUDGET ? "budget" : "seed", parser.value);
        if (id == CONFIRM)
            o.confirm = (unsigned)number;
        if (id == BUDGET)
            o.budget = (unsigned)number;
        if (id == SEED)
            o.seed = number;
    }
    zt_trace *trace;
    int status = zt_open_operand(&parser, &trace);
    if (status != ZT_EXIT_OK)
        return status;
    const char *const path = argv[parser.at];
    zo_graph *graph = NULL;
    zr_plan *plan = NULL;
    zt_error error = {0};
    zo_answer answer;
    snprintf(soft, sizeof(soft), "%s/libze_soft.so.1", zt_library_folder());
    replay.soft_library = soft;
    status = zo_graph_make(&graph, trace, NULL, &error);
    if (status == ZT_OK)
        status = zo_check(graph);
    if (status == ZT_OK) {
        zt_trace_seek(trace, 1);
        status = zr_plan_make(&plan, trace, &error);
    }
    if (status != ZT_OK) {
        zt_complain("%s: %s", path, error.text);
        status = error.status == ZT_E_MEMORY || error.status == ZT_E_LIMIT ? ZT_EXIT_CANNOT : ZT_EXIT_DAMAGED;
    } else {
        zt_tell_health(trace, path);
        status = zo_isolate(graph, plan, zt_trace_ending(trace), &o, &answer);
        if (isatty(STDERR_FILENO))
            fputs("\r\033[K", stderr);
        if (status != ZT_OK) {
            zt_complain("%s: %s", path, answer.text);
            status = ZT_EXIT_CANNOT;
        } else {
            if (json)
                print_json(trace, &answer);
            else if (!quiet)
                print_text(trace, &answer);
            status = answer.verdict == ZO_V_ORDER || answer.verdict == ZO_V_HOST_ORDER ? 1 : answer.verdict == ZO_V_NONE_FOUND ? 0 : 4;
        }
    }
    zr_plan_free(plan);
    zo_graph_free(graph);
    zt_trace_close(trace);
    return zt_finish_output(status);
}

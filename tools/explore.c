/* SPDX-License-Identifier: MIT */
/* zetrace explore: every order that differs, run once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "order.h"

enum { DRIVER = 1, BUDGET, RECORDING, COUNT, TIMEOUT, JSON };

static const zt_option options[] = {
    {DRIVER, 0, "driver", "auto|soft|PATH", "what to replay on, as in 'zetrace replay'"},
    {BUDGET, 0, "budget", "N", "orders at the most (10000)"},
    {RECORDING, 0, "recording", "good|bad", "take the recorded run for a good or a bad one; guessed, and said, if not given"},
    {COUNT, 0, "count", NULL, "count the orders, run none"},
    {TIMEOUT, 0, "timeout", "T", "how long one wait of a replay may take (2s)"},
    {JSON, 0, "json", NULL, "the answer as one JSON object"},
    {0, 0, NULL, NULL, NULL},
};

static int run(int argc, char **argv);
const zt_command zt_command_explore = {
    .name = "explore",
    .summary = "run a trace in every order that differs",
    .synopsis = "TRACE",
    .options = options,
    .more = "Exit status: 0 all orders pass, 1 some fail, 2 usage, 3 damaged trace, 4 the budget was spent before one failed, 125 it can't be "
            "done here.\n\n"
            "Two orders are the same if they have every conflicting pair the same way round. For small traces: the number doubles with "
            "each pair that nothing orders.\n",
    .usage_status = ZT_EXIT_USAGE,
    .run = run,
};

typedef struct work {
    zo_graph *graph;
    zr_plan *plan;
    const zt_ending *ending;
    zo_isolate_options o;
    zo_answer answer; /* of the last order */
    char cannot[512], why_taken[128];
    bool bad, cut; /* cut: from a bad one, without the calls that failed */
    zt_progress progress;
    uint64_t done;
} work;

static bool try_order(void *ctx, const uint32_t *line, size_t n)
{
    work *const w = ctx;
    const int got = zo_order_fails(w->graph, w->plan, w->ending, &w->o, line, n, &w->answer);
    zt_progress_step(&w->progress, ++w->done);
    w->bad = w->answer.taken_for_bad;
    snprintf(w->why_taken, sizeof(w->why_taken), "%s", w->answer.why_taken);
    if (got < 0)
        snprintf(w->cannot, sizeof(w->cannot), "%s", w->answer.text);
    return got == 1;
}

static void print_point(const zo_graph *graph, uint32_t node)
{
    const zo_point p = zo_graph_point(graph, node);
    printf(p.execution > 1 ? "#%llu@%u" : "#%llu", (unsigned long long)p.call, p.execution);
}

static void print_answer(const work *w, const zo_explored *e, bool count, bool json)
{
    if (json) {
        printf("{\"pairs\":%llu,\"orders\":%llu,\"pruned\":%llu,\"complete\":%s", (unsigned long long)e->pairs, (unsigned long long)e->orders,
               (unsigned long long)e->pruned, e->stopped ? "false" : "true");
        if (count) {
            printf("}\n");
            return;
        }
        printf(",\"failing\":%llu,\"unexplained\":%llu,\"earliest_fails\":%s,\"blamed\":[", (unsigned long long)e->failing, (unsigned long long)e->unexplained,
               e->earliest_fails ? "true" : "false");
        for (size_t i = 0; i < e->n_blamed; i++) {
            const zo_point early = zo_graph_point(w->graph, e->blamed[i].early), late = zo_graph_point(w->graph, e->blamed[i].late);
            printf("%s{\"early\":{\"call\":%llu,\"execution\":%u},\"late\":{\"call\":%llu,\"execution\":%u},\"orders\":%llu}", i ? "," : "",
                   (unsigned long long)early.call, early.execution, (unsigned long long)late.call, late.execution,
                   (unsigned long long)e->blamed[i].orders);
        }
        printf("]}\n");
        return;
    }
    if (!count && e->orders > 0)
        printf("The recording is taken for a %s one: %s.\n", w->bad ? "bad" : "good",
               w->cut ? "it was cut from a bad one without the calls that failed" : w->why_taken);
    for (size_t i = 0; i < e->n_blamed; i++) {
        printf("fails when ");
        print_point(w->graph, e->blamed[i].early);
        printf(" comes before ");
        print_point(w->graph, e->blamed[i].late);
        printf(": %s\n", zt_count(e->blamed[i].orders, "order").text);
    }
    if (e->earliest_fails)
        printf("the earliest order fails as well, so that no pair is to blame; 'zetrace isolate' tells more\n");
    else if (e->unexplained > 0)
        printf("%s fail%s by more than one pair\n", zt_count(e->unexplained, "order").text, e->unexplained == 1 ? "s" : "");
    printf("%s %s%s, each once, of %s that nothing orders", zt_count(e->orders, "order").text, count ? "counted, none run" : "run",
           e->stopped ? ", which is not all: the budget is spent" : ", which is all of them", zt_count(e->pairs, "pair").text);
    if (!count)
        printf("; %llu fail%s", (unsigned long long)e->failing, e->failing == 1 ? "s" : "");
    if (e->pruned > 0 && e->orders > 0)
        printf("; %s of sides for pairs %s dropped half-way, for no order has them all", zt_count(e->pruned, "choice").text, zt_was(e->pruned));
    printf("\n");
}

static int run(int argc, char **argv)
{
    zt_parser parser;
    zr_options replay;
    char soft[4096];
    bool json = false, count = false;
    uint64_t budget = 10000;
    work w = {0};
    zr_options_default(&replay);
    replay.timeout_ns = 2000000000u;
    w.o = (zo_isolate_options){.replay = &replay, .budget = 1u << 30, .seed = 1};
    zt_parser_init(&parser, &zt_command_explore, argc, argv);
    for (int id; (id = zt_option_next(&parser)) != 0;) {
        if (id == ZT_OPTION_HELP)
            return 0;
        if (id == ZT_OPTION_ERROR)
            return ZT_EXIT_USAGE;
        json |= id == JSON;
        count |= id == COUNT;
        if (id == DRIVER)
            replay.driver = parser.value;
        if (id == RECORDING)
            w.o.recording = parser.value[0] == 'g' ? ZO_REC_GOOD : ZO_REC_BAD;
        if (id == BUDGET && (!zt_parse_number(parser.value, &budget) || budget == 0))
            return zt_usage_error(&zt_command_explore, "--budget wants a number above 0, not '%s'", parser.value);
        if (id == TIMEOUT && (!zt_parse_time(parser.value, &replay.timeout_ns) || replay.timeout_ns == 0))
            return zt_usage_error(&zt_command_explore, "--timeout wants a time as 500ms or 10s, not '%s'", parser.value);
    }
    zt_trace *trace;
    int status = zt_open_calls(&parser, &trace);
    if (status != ZT_EXIT_OK)
        return status;
    const char *const path = argv[parser.at];
    zt_error error = {0};
    zo_explored explored = {0};
    snprintf(soft, sizeof(soft), "%s/libze_soft.so.1", zt_library_folder());
    replay.soft_library = soft;
    status = zo_graph_make(&w.graph, trace, NULL, &error);
    if (status == ZT_OK) {
        zt_trace_seek(trace, 1);
        status = zr_plan_make(&w.plan, trace, &error);
    }
    if (status != ZT_OK) {
        zt_complain("%s: %s", path, error.text);
        status = error.status == ZT_E_MEMORY || error.status == ZT_E_LIMIT ? ZT_EXIT_CANNOT : ZT_EXIT_DAMAGED;
    } else {
        zt_tell_health(trace, path);
        w.ending = zt_trace_ending(trace);
        w.cut = w.o.recording == ZO_REC_AUTO && zt_failures_left_out(trace);
        if (w.cut)
            w.o.recording = ZO_REC_GOOD;
        const zo_explore_options o = {.run = count ? NULL : try_order, .ctx = &w, .budget = budget};
        zt_progress_start(&w.progress, "orders", 0);
        status = zo_explore(w.graph, &o, &explored);
        zt_progress_end(&w.progress);
        if (status != ZT_OK || w.cannot[0] != 0) {
            zt_complain("%s: %s", path,
                        w.cannot[0]             ? w.cannot
                        : status == ZT_E_LIMIT ? "has too many commands, or pairs of them that nothing orders, for every order to be run; make a smaller trace with 'zetrace trim', "
                                                 "or try 'zetrace isolate', which needs not all of them"
                                               : "not enough memory");
            status = ZT_EXIT_CANNOT;
        } else {
            print_answer(&w, &explored, count, json);
            status = explored.failing > 0 ? 1 : explored.stopped ? 4 : 0;
        }
    }
    zr_plan_free(w.plan);
    zo_graph_free(w.graph);
    zt_trace_close(trace);
    return zt_finish_output(status);
}

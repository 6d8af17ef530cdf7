/* SPDX-License-Identifier: MIT */
/* -o: the smallest trace in which the pair that was found still makes the difference. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "commands.h"
#include "isolate.h"
#include "leftovers.h"
#include "trim.h"

typedef struct small {
    const isolate *run;
    const zo_answer *answer;
    unsigned tests;
} small;

static uint32_t node_of(const zo_graph *graph, const zo_point *p, bool is_write)
{
    const uint32_t node = zo_graph_node(graph, *p);
    return node != ZO_NONE && is_write ? (uint32_t)zo_graph_write(graph, p->call) : node;
}

/* A run of isolate on the trace to be tried: --launcher hands its path and arguments on. @return false if there is no memory */
static bool run_of(const small *s, const char *path, isolate *run)
{
    *run = *s->run;
    run->path = path;
    run->argv = calloc((size_t)run->argc + 2, sizeof(*run->argv));
    if (run->argv == NULL)
        return false;
    run->argv[0] = s->run->argv[0];
    run->argv[1] = (char *)(s->answer->taken_for_bad ? "--recording=bad" : "--recording=good");
    for (int i = 1; i < run->argc; i++)
        run->argv[i + 1] = s->run->argv[i] == s->run->path ? (char *)path : s->run->argv[i];
    run->argc++;
    run->options.ctx = run;
    run->options.recording = s->answer->taken_for_bad ? ZO_REC_BAD : ZO_REC_GOOD;
    run->options.progress = NULL;
    return true;
}

/* 1 fails, 0 passes, -1 neither. */
static int outcome_of(isolate *run, zo_graph *graph, zr_plan *plan, const zt_ending *ending, const zo_edge *edge, uint32_t floating)
{
    uint32_t *line = NULL, stuck;
    zo_answer said;
    const size_t n = zo_schedule_floating(graph, floating, edge, edge != NULL, &line, &stuck);
    const int outcome = n > 0 ? zo_order_fails(graph, plan, ending, &run->options, line, n, &said) : -1;
    free(line);
    return outcome;
}

static bool still(void *ctx, const char *path)
{
    small *const s = ctx;
    const zo_answer *const a = s->answer;
    zt_trace *trace = NULL;
    zo_graph *graph = NULL;
    zr_plan *plan = NULL;
    zt_error error;
    isolate run;
    bool shows = false;
    s->tests++;
    if (!run_of(s, path, &run))
        return false;
    zt_leftover_add(path);
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\rmaking the trace smaller: test %u\033[K", s->tests);
    if (zt_trace_open(&trace, path, &error) == ZT_OK && isolate_open(trace, &graph, &plan, &error) == ZT_OK) {
        const uint32_t early = node_of(graph, &a->early, a->early_is_write), late = node_of(graph, &a->late, false);
        const zo_edge bad = {early, late}, good = {late, early};
        const zt_ending *const ending = zt_trace_ending(trace);
        if (early != ZO_NONE && late != ZO_NONE && a->verdict == ZO_V_ORDER)
            shows = outcome_of(&run, graph, plan, ending, &bad, ZO_NONE) == 1 && outcome_of(&run, graph, plan, ending, &good, ZO_NONE) == 0;
        else if (early != ZO_NONE && a->verdict == ZO_V_HOST_ORDER)
            shows = outcome_of(&run, graph, plan, ending, NULL, ZO_NONE) == 1 &&
                    (a->verified[1] == 0 || (late != ZO_NONE && outcome_of(&run, graph, plan, ending, &good, early) == 0));
    }
    zr_plan_free(plan);
    zo_graph_free(graph);
    if (trace != NULL)
        zt_trace_close(trace);
    zt_leftover_forget(path);
    free(run.argv);
    return shows;
}

int isolate_small(const isolate *run, zt_trace *trace, const zo_answer *a)
{
    small s = {.run = run, .answer = a};
    zm_needs *needs = NULL;
    zt_error error = {0};
    zm_minimised result = {0};
    const zm_minimise_options o = {.still = still, .ctx = &s, .budget = 400, .overwrite = run->force};
    int status = zm_needs_make(&needs, trace, &error);
    for (int all = 0; status == ZT_OK && all < 2; all++) {
        zm_keep *const keep = zm_keep_new(needs);
        if (keep == NULL) {
            status = ZT_E_MEMORY;
            break;
        }
        if (all) {
            zm_keep_add_range(keep, 1, UINT64_MAX);
        } else {
            zm_keep_add(keep, a->early.call);
            zm_keep_add(keep, a->late.call);
            if (a->shows_at != 0)
                zm_keep_add(keep, a->shows_at);
        }
        status = zm_close_over_needs(keep, ZM_WITH_SUBMITS | ZM_WITH_SYNCS, 0);
        if (status == ZT_OK)
            status = zm_minimise(keep, run->small, &o, &result, &error);
        zm_keep_free(keep);
        if (status != ZT_END)
            break;
        status = all ? ZT_END : ZT_OK; /* once more, from all that there is */
    }
    zm_needs_free(needs);
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    if (status == ZT_OK) {
        zt_complain("%s: %s of %llu still show%s it%s", run->small, zt_count(result.after, "call").text, (unsigned long long)result.before, result.after == 1 ? "s" : "",
                    result.spent ? "; there may be less" : "");
        return ZT_EXIT_OK;
    }
    if (status == ZT_END)
        zt_complain("%s: not written, for the trace written anew does not show it", run->small);
    else
        zt_complain("%s: %s", run->small, error.text[0] ? error.text : "it can't be written");
    return ZT_EXIT_CANNOT;
}

/* SPDX-License-Identifier: MIT */
/* Which two operations, and the lines that show them: the bad one of the trace as it is, the good one where they are turned round. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

void zx_force(zr_options *o, const zr_options *base, const zr_item *items, size_t n)
{
    /* gates of one engine would block each other, and a fault that nobody is told of is no outcome */
    static const zt_pair knobs[] = {{(char *)"ZE_SOFT_ENGINES", (char *)"independent"}, {(char *)"ZE_SOFT_FAULT", (char *)"ban"}};
    *o = *base;
    o->schedule = "eager";
    o->items = items;
    o->n_items = n;
    o->environment = knobs;
    o->n_environment = sizeof(knobs) / sizeof(knobs[0]);
    o->loop = 1;
}

uint32_t zx_node(const zo_graph *graph, zo_point point, bool is_write)
{
    const uint32_t node = zo_graph_node(graph, point);
    return is_write && node != ZO_NONE ? (node & 0x3fffffffu) | ZO_WRITE_BIT : node;
}

static zo_isolate_options isolate_options(const zx_export *x)
{
    return (zo_isolate_options){.replay = x->options->replay, .seed = 1, .progress = x->options->progress, .ctx = x->options->ctx};
}

/* ------------------------------------------------------------------------------------------------------ bad line */

static int take_bad(zx_export *x, zo_graph *graph, const uint32_t *line, size_t n)
{
    x->bad_items = zo_graph_items(graph, line, n, &x->n_bad_items);
    return x->bad_items != NULL ? ZT_OK : zx_no_memory(x);
}

/* The earliest line with the early one first; if that is not enough, others. */
static int bad_line(zx_export *x, zo_graph *graph, zr_plan *plan, const zo_edge *edge)
{
    const zo_isolate_options o = isolate_options(x);
    const struct {
        int policy;
        uint64_t seed;
    } tries[] = {{ZO_P_EARLY, 0}, {ZO_P_LATE, 0}, {ZO_P_RANDOM, 1}, {ZO_P_RANDOM, 2}, {ZO_P_RANDOM, 3}};
    bool had = false;
    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        uint32_t *line, stuck;
        const size_t n = zo_schedule(graph, tries[i].policy, tries[i].seed, NULL, 0, edge, 1, &line, &stuck);
        if (n == 0)
            continue;
        had = true;
        zo_answer answer;
        const int fails = zo_order_fails(graph, plan, zt_trace_ending(x->trace), &o, line, n, &answer);
        const int status = fails > 0 ? take_bad(x, graph, line, n) : ZT_OK;
        free(line);
        if (fails < 0)
            return zx_refuse(x, "it can't be replayed, which an export has to: %.400s", answer.text);
        x->answer.taken_for_bad = answer.taken_for_bad;
        if (fails > 0)
            return status;
    }
    return had ? zx_refuse(x, "running #%llu before #%llu does not make it fail", (unsigned long long)x->answer.early.call,
                           (unsigned long long)x->answer.late.call)
               : zx_refuse(x, "#%llu can't come before the end of #%llu: something orders them", (unsigned long long)x->answer.early.call,
                           (unsigned long long)x->answer.late.call);
}

/* -------------------------------------------------------------------------------------------------------------- pair */

static int turned(zx_export *x, zo_graph *graph, zr_plan *plan)
{
    zo_answer *const a = &x->answer;
    const zo_edge edge = {zx_node(graph, a->early, a->early_is_write), zx_node(graph, a->late, false)};
    if (edge.before == ZO_NONE || edge.after == ZO_NONE)
        return zx_refuse(x, "there is no #%llu that could be turned round with anything",
                         (unsigned long long)(edge.before == ZO_NONE ? a->early.call : a->late.call));
    int status = bad_line(x, graph, plan, &edge);
    if (status != ZT_OK)
        return status;
    const zx_try t = {.early = a->early, .late = a->late, .early_is_write = a->early_is_write};
    status = zx_try_good(x, &t);
    return status == ZT_END ? zx_refuse(x, "it fails also when #%llu is over before #%llu", (unsigned long long)a->late.call,
                                        (unsigned long long)a->early.call)
                            : status;
}

static int forced(zx_export *x, zo_graph *graph)
{
    const zo_point late = {x->answer.late.call, x->answer.late.execution ? x->answer.late.execution : 1};
    const zo_edge edge = {zx_node(graph, x->answer.early, false), zx_node(graph, late, false)};
    uint32_t *line, stuck;
    size_t n = 0;
    if (edge.before != ZO_NONE && edge.after != ZO_NONE)
        n = zo_schedule(graph, ZO_P_EARLY, 0, NULL, 0, &edge, 1, &line, &stuck);
    if (n == 0)
        n = zo_schedule(graph, ZO_P_EARLY, 0, NULL, 0, NULL, 0, &line, &stuck);
    if (n == 0)
        return zx_refuse(x, "no order can be made of this trace");
    const int status = take_bad(x, graph, line, n);
    free(line);
    return status == ZT_OK ? zx_repair(x) : status;
}

int zx_find_pair(zx_export *x, zo_graph *graph, zr_plan *plan)
{
    zo_answer *const a = &x->answer;
    const zo_isolate_options o = isolate_options(x);
    if (x->options->early.call != 0) {
        a->verdict = ZO_V_ORDER;
        a->early = x->options->early;
        a->late = x->options->late;
        zo_point *const points[] = {&a->early, &a->late};
        for (unsigned i = 0; i < 2; i++) {
            const zx_call *const c = zx_call_of(x, points[i]->call);
            if (c == NULL)
                return zx_refuse(x, "it holds no call #%llu", (unsigned long long)points[i]->call);
            if (points[i]->execution == 0 && c->func->kind == ZT_K_APPEND)
                points[i]->execution = 1;
        }
        return turned(x, graph, plan);
    }
    if (zo_isolate(graph, plan, zt_trace_ending(x->trace), &o, a) != ZT_OK)
        return zx_refuse(x, "it can't be replayed, which an export has to: %.400s", a->text);
    switch (a->verdict) {
    case ZO_V_ORDER:
        return turned(x, graph, plan);
    case ZO_V_HOST_ORDER:
        return forced(x, graph);
    case ZO_V_NONE_FOUND:
        return zx_refuse(x, "no order of its calls and commands makes a difference, so there is nothing to show; --early and --late name a pair");
    default:
        return zx_refuse(x, "isolate finds no pair (%s%s%.300s), so there is nothing to show", zo_verdict_name(a->verdict),
                         a->text[0] ? ": " : "", a->text);
    }
}

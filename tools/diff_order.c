/* SPDX-License-Identifier: MIT */
/*
 * Two traces in which each thread does the same by itself, and the threads' calls lie otherwise among each other: whether that changes
 * what must come before what. Calls and executions of commands correspond, so the graphs of both are asked the same questions.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "diff_report.h"
#include "order.h"

#define MOST_CALLS 100000u
#define MOST_THREADS 64u
#define MOST_QUESTIONS 4000000u
#define MOST_PAIRS 400u     /* executions that are all held against each other */
#define NEAR 16u            /* or each against so many that come next */
#define MOST_EXECUTIONS 16u /* of a command */

typedef struct asked {
    zo_graph *graph[2];
    uint32_t **nodes[2]; /* of each thread's calls; B's by the number of A's thread */
    uint32_t *n;         /* by thread of A */
    uint32_t threads;
    uint32_t *commands[2];
    size_t n_commands, room;
    uint64_t questions;
    uint32_t found[2]; /* nodes of A of the first pair that differs */
    bool in_a;         /* ordered in A, not in B */
    uint64_t changed;
} asked;

static bool before(asked *q, int side, uint32_t x, uint32_t y)
{
    q->questions++;
    return x != ZO_NONE && y != ZO_NONE && zo_before(q->graph[side], x, y);
}

static void differs(asked *q, uint32_t x, uint32_t y, bool in_a)
{
    if (q->changed++ > 0)
        return;
    q->found[0] = x;
    q->found[1] = y;
    q->in_a = in_a;
}

static bool enough(const asked *q)
{
    return q->questions > MOST_QUESTIONS;
}

/* How many calls of a thread are over before the node begins: they are its first ones. */
static uint32_t over_before(asked *q, int side, uint32_t thread, uint32_t node)
{
    uint32_t low = 0, high = q->n[thread];
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (before(q, side, q->nodes[side][thread][middle], node))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* How many calls of a thread begin before the node is known to be over: likewise. */
static uint32_t begun_before(asked *q, int side, uint32_t thread, uint32_t node)
{
    uint32_t low = 0, high = q->n[thread];
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (before(q, side, node, q->nodes[side][thread][middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void compare_calls(asked *q)
{
    for (uint32_t t = 1; t <= q->threads; t++)
        for (uint32_t u = 1; u <= q->threads; u++) {
            uint32_t last[2] = {0, 0};
            for (uint32_t i = 0; t != u && i < q->n[t] && q->n[u] > 0 && !enough(q); i++) {
                for (int side = 0; side < 2; side++)
                    while (last[side] < q->n[u] && before(q, side, q->nodes[side][u][last[side]], q->nodes[side][t][i]))
                        last[side]++;
                if (last[0] != last[1])
                    differs(q, q->nodes[0][u][last[0] > last[1] ? last[1] : last[0]], q->nodes[0][t][i], last[0] > last[1]);
            }
        }
}

static void compare_pairs(asked *q)
{
    for (size_t i = 0; i < q->n_commands && !enough(q); i++) {
        const bool all = q->n_commands <= MOST_PAIRS;
        const size_t end = all || i + NEAR > q->n_commands ? q->n_commands : i + NEAR;
        for (size_t k = all ? 0 : i + 1; k < end && !enough(q); k++) {
            const bool in_a = before(q, 0, q->commands[0][i], q->commands[0][k]), in_b = before(q, 1, q->commands[1][i], q->commands[1][k]);
            if (in_a != in_b)
                differs(q, q->commands[0][i], q->commands[0][k], in_a);
        }
    }
}

static void compare_commands(asked *q, bool ends)
{
    for (size_t i = 0; i < q->n_commands && !enough(q); i++)
        for (uint32_t t = 1; t <= q->threads; t++) {
            const uint32_t a = q->commands[0][i], b = q->commands[1][i];
            const uint32_t x = ends ? begun_before(q, 0, t, a) : over_before(q, 0, t, a), y = ends ? begun_before(q, 1, t, b) : over_before(q, 1, t, b);
            const uint32_t call = x != y ? q->nodes[0][t][x < y ? x : y] : 0;
            if (x != y)
                differs(q, ends ? a : call, ends ? call : a, ends ? x < y : x > y);
        }
}

/* The calls of both sides by A's threads, and the executions of what they append. */
static bool collect(asked *q, const zd_diff *d)
{
    uint32_t *filled = calloc(q->threads + 1, sizeof(*filled)), *partner = calloc(MOST_CALLS, sizeof(*partner));
    bool ok = filled != NULL && partner != NULL;
    for (uint32_t t = 1; ok && t <= q->threads; t++)
        if (zd_thread_of(d, t) != 0 && zd_thread_of(d, t) < MOST_CALLS)
            partner[zd_thread_of(d, t)] = t;
    for (int side = 0; side < 2 && ok; side++) {
        for (uint32_t t = 0; t <= q->threads; t++)
            filled[t] = 0;
        for (uint32_t i = 0; i < zd_calls(d, side); i++) {
            const uint32_t thread = zd_thread(d, side, i), t = side ? partner[thread] : thread;
            if (t != 0 && filled[t] < q->n[t])
                q->nodes[side][t][filled[t]++] = zo_graph_node(q->graph[side], (zo_point){zd_number(d, side, i), 0});
        }
    }
    for (uint32_t t = 1; ok && t <= q->threads; t++)
        for (uint32_t i = 0; ok && i < q->n[t]; i++) {
            const uint64_t a = zo_graph_point(q->graph[0], q->nodes[0][t][i]).call, b = zo_graph_point(q->graph[1], q->nodes[1][t][i]).call;
            for (uint32_t e = 1; e <= MOST_EXECUTIONS; e++) {
                const uint32_t x = zo_graph_node(q->graph[0], (zo_point){a, e}), y = zo_graph_node(q->graph[1], (zo_point){b, e});
                if (x == ZO_NONE || y == ZO_NONE)
                    break;
                if (q->n_commands == q->room) {
                    q->room = q->room ? q->room * 2 : 64;
                    for (int side = 0; side < 2 && ok; side++) {
                        uint32_t *const grown = realloc(q->commands[side], q->room * sizeof(*grown));
                        ok = grown != NULL;
                        q->commands[side] = ok ? grown : q->commands[side];
                    }
                    if (!ok)
                        break;
                }
                q->commands[0][q->n_commands] = x;
                q->commands[1][q->n_commands++] = y;
            }
        }
    free(filled);
    free(partner);
    return ok;
}

static bool prepare(asked *q, const zd_diff *d, zt_trace *const *traces)
{
    const zo_graph_options options = {0};
    zt_error error;
    for (uint32_t i = 0; i < zd_calls(d, 0); i++)
        if (zd_thread(d, 0, i) > q->threads)
            q->threads = zd_thread(d, 0, i);
    if (q->threads > MOST_THREADS || (q->n = calloc(q->threads + 1, sizeof(*q->n))) == NULL)
        return false;
    for (uint32_t i = 0; i < zd_calls(d, 0); i++)
        q->n[zd_thread(d, 0, i)]++;
    for (int side = 0; side < 2; side++) {
        q->nodes[side] = calloc(q->threads + 1, sizeof(*q->nodes[side]));
        if (q->nodes[side] == NULL)
            return false;
        for (uint32_t t = 1; t <= q->threads; t++)
            if ((q->nodes[side][t] = calloc(q->n[t] + 1, sizeof(uint32_t))) == NULL)
                return false;
        zt_trace_seek(traces[side], 1);
        if (zo_graph_make(&q->graph[side], traces[side], &options, &error) != ZT_OK)
            return false;
    }
    return true;
}

static void name(const asked *q, uint32_t node, char *text, size_t size)
{
    const zo_point p = zo_graph_point(q->graph[0], node);
    if (p.execution == 0)
        snprintf(text, size, "call #%" PRIu64, p.call);
    else
        snprintf(text, size, "command #%" PRIu64 "@%u", p.call, p.execution);
}

void zt_diff_edges(zt_diff_report *r, zt_trace *const *traces, char *text, size_t size)
{
    asked q = {0};
    char x[48], y[48];
    const bool small = zd_calls(r->diff, 0) < MOST_CALLS && zd_calls(r->diff, 0) == zd_calls(r->diff, 1);
    if (small && prepare(&q, r->diff, traces) && collect(&q, r->diff)) {
        compare_pairs(&q); /* the most telling first */
        compare_commands(&q, true);
        compare_commands(&q, false);
        compare_calls(&q);
        r->edges_known = q.changed > 0 || !enough(&q);
        r->edges_changed = q.changed > 0;
    }
    if (q.changed > 0) {
        name(&q, q.found[0], x, sizeof(x));
        name(&q, q.found[1], y, sizeof(y));
        snprintf(text, size, "each thread does the same, and it changes what comes before what: %s is over before %s begins in every order of %s, not of %s", x, y,
                 r->names[!q.in_a], r->names[q.in_a]);
    } else if (r->edges_known) {
        snprintf(text, size, "each thread does the same, and what must come before what is the same too");
    } else {
        snprintf(text, size, "each thread does the same; whether it changes what must come before what was not looked at, for there are too many calls or threads");
    }
    for (int side = 0; side < 2; side++) {
        for (uint32_t t = 1; q.nodes[side] != NULL && t <= q.threads; t++)
            free(q.nodes[side][t]);
        free(q.nodes[side]);
        free(q.commands[side]);
        zo_graph_free(q.graph[side]);
    }
    free(q.n);
}

/* SPDX-License-Identifier: MIT */
/*
 * The good line and what is expected of it. Where the recording went well that is what was recorded. Where it failed, the results of
 * failing calls are taken for success, the trace is written with them, and a replay of the line says what they really are, until both
 * agree. Memory that the failing run read, and the passing line does not, is known for wrong only.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MOST_ROUNDS  6
#define MOST_REPLAYS 48u

const zx_wanted *zx_wanted_of(const zx_export *x, uint64_t call)
{
    for (size_t i = 0; i < x->n_wanted; i++)
        if (x->wanted[i].call == call)
            return &x->wanted[i];
    return NULL;
}

static zx_wanted *want(zx_export *x, uint64_t call)
{
    const zx_wanted *const known = zx_wanted_of(x, call);
    const zx_wanted new = {.call = call};
    if (known != NULL)
        return &x->wanted[known - x->wanted];
    return ZX_PUSH(x->wanted, x->n_wanted, x->room_wanted, new) ? &x->wanted[x->n_wanted - 1] : NULL;
}

static bool gives_nothing(const zx_call *c)
{
    const int kind = c->func->kind;
    return kind != ZT_K_CREATE && kind != ZT_K_ALLOC && kind != ZT_K_GET && kind != ZT_K_INIT &&
           strcmp(zt_types[c->func->return_type].name, "ze_result_t") == 0;
}

/* What might have been: faults would not show, and waits behind the early one would be over in time. */
static bool hope(zx_export *x, const zx_try *t, bool waits)
{
    bool behind = false;
    x->n_wanted = 0;
    x->unchecked_from = 0;
    for (size_t i = 0; i < x->n_calls; i++) {
        const zx_call *const c = &x->calls[i];
        behind |= c->number == t->early.call;
        if (!c->made || !c->returned || !gives_nothing(c) || c->result == 0)
            continue;
        const bool unmet = waits && behind && c->result == 1 && (c->func->kind == ZT_K_SYNC || c->func->kind == ZT_K_QUERY);
        zx_wanted *const w = zt_is_fault(c->result) || unmet ? want(x, c->number) : NULL;
        if ((zt_is_fault(c->result) || unmet) && w == NULL)
            return false;
        if (w != NULL)
            w->has_result = true;
    }
    return true;
}

static int64_t parse_result(const char *name)
{
    const zt_type *const type = zt_type_find("ze_result_t");
    for (unsigned i = 0; type != NULL && i < type->n_values; i++)
        if (strcmp(type->values[i].name, name) == 0)
            return type->values[i].value;
    return (int64_t)strtoull(name, NULL, 0);
}

static uint64_t old_number(const zx_try *t, uint64_t number)
{
    return t->order == NULL ? number : number >= 1 && number <= t->n ? t->order[number - 1] : 0;
}

static uint64_t new_number(const zx_try *t, uint64_t number)
{
    for (size_t i = 0; t->order != NULL && i < t->n; i++)
        if (t->order[i] == number)
            return i + 1;
    return number;
}

/* -------------------------------------------------------------------------------------------------------------- line */

/* The host's write that came too early stands behind the command that reads. */
static bool move_write(zr_item *items, size_t n, zo_point early, zo_point late)
{
    zr_item *const moved = malloc((n + 1) * sizeof(*moved));
    size_t n_moved = 0, kept = 0;
    if (moved == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        if (items[i].kind == ZR_I_WRITE && items[i].call == early.call)
            moved[n_moved++] = items[i];
        else
            items[kept++] = items[i];
    bool placed = false;
    for (size_t i = 0; i < kept && !placed && n_moved > 0; i++)
        if (items[i].kind == ZR_I_COMMAND && items[i].call == late.call && items[i].execution == late.execution) {
            memmove(items + i + 1 + n_moved, items + i + 1, (kept - i - 1) * sizeof(*items));
            memcpy(items + i + 1, moved, n_moved * sizeof(*items));
            placed = true;
        }
    free(moved);
    return placed;
}

static bool comes_first(const zr_item *items, size_t n, zo_point first, zo_point second)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t execution = items[i].kind == ZR_I_COMMAND ? items[i].execution : 0;
        if (items[i].kind != ZR_I_COMMAND && items[i].kind != ZR_I_CALL)
            continue;
        if (items[i].call == first.call && execution == first.execution)
            return true;
        if (items[i].call == second.call && execution == second.execution)
            return false;
    }
    return false;
}

/* @return ZT_END: it cannot be had. */
static int good_items(zo_graph *graph, const zx_try *t, zr_item **items, size_t *n_items)
{
    const zo_point early = {new_number(t, t->early.call), t->early.execution}, late = {new_number(t, t->late.call), t->late.execution};
    const zo_edge edge = {zx_node(graph, late, false), zx_node(graph, early, t->early_is_write)};
    uint32_t *line = NULL, stuck;
    size_t n = 0;
    if (edge.before == ZO_NONE || edge.after == ZO_NONE)
        return ZT_END;
    if (!t->move_write)
        n = zo_schedule(graph, ZO_P_EARLY, 0, NULL, 0, &edge, 1, &line, &stuck);
    if (n == 0)
        n = zo_schedule(graph, ZO_P_EARLY, 0, NULL, 0, NULL, 0, &line, &stuck);
    if (n == 0)
        return ZT_END;
    *items = zo_graph_items(graph, line, n, n_items);
    free(line);
    if (*items == NULL)
        return ZT_E_MEMORY;
    if (t->move_write)
        return move_write(*items, *n_items, early, late) ? ZT_OK : ZT_END;
    return t->early_is_write || comes_first(*items, *n_items, late, early) ? ZT_OK : ZT_END;
}

/* ------------------------------------------------------------------------------------------------------------ replay */

/* One difference between the line and what is taken for granted. @return ZT_OK: noted; ZT_END: it does not pass. */
static int note_difference(zx_export *x, const zx_try *t, const zr_mismatch *m, bool *changed)
{
    const uint64_t call = old_number(t, m->call);
    if (call == 0 || m->what == ZR_W_FAULT || !x->answer.taken_for_bad)
        return ZT_END;
    if (m->what == ZR_W_OUTPUT || call >= ZX_ADDED_CLOSE)
        return m->what == ZR_W_OUTPUT ? ZT_OK : ZT_END;
    zx_wanted *const w = want(x, call);
    if (w == NULL)
        return ZT_E_MEMORY;
    if (m->what == ZR_W_MEMORY) {
        w->memory = true;
        return ZT_OK;
    }
    w->result = parse_result(m->replayed);
    w->has_result = true;
    *changed = true;
    return zt_is_fault(w->result) ? ZT_END : ZT_OK;
}

static int compare(zx_export *x, const zx_try *t, zr_plan *plan, const zr_item *items, size_t n, bool *changed)
{
    zr_options o;
    zr_report report;
    zx_force(&o, x->options->replay, items, n);
    for (size_t i = 0; i < x->n_wanted; i++)
        x->wanted[i].memory = false;
    for (unsigned i = 0; i < MOST_REPLAYS; i++) {
        if (x->options->progress != NULL)
            x->options->progress(x->options->ctx, "what the good order gives", i + 1, MOST_REPLAYS);
        zr_replay(plan, &o, &report);
        if (report.verdict == ZR_CANNOT)
            return zx_refuse(x, "it can't be replayed, which an export has to: %.400s", report.message);
        if (report.message[0] != 0 || report.stuck > 0 || report.lost)
            return ZT_END;
        if (report.mismatches == 0)
            return ZT_OK;
        const int status = note_difference(x, t, &report.first, changed);
        if (status != ZT_OK)
            return status;
        o.from = report.first.call + 1;
    }
    x->unchecked_from = old_number(t, o.from);
    return ZT_OK;
}

static int one_round(zx_export *x, const zx_try *t, bool *changed)
{
    zt_trace *trace = NULL;
    zo_graph *graph = NULL;
    zr_plan *plan = NULL;
    zr_item *items = NULL;
    size_t n = 0;
    zt_error error = {0};
    int status = zx_rewrite(x, t, &trace);
    if (status == ZT_OK)
        status = zo_graph_make(&graph, trace, NULL, &error);
    if (status == ZT_OK) {
        zt_trace_seek(trace, 1);
        status = zr_plan_make(&plan, trace, &error);
    }
    if (status == ZT_OK)
        status = good_items(graph, t, &items, &n);
    if (status == ZT_OK)
        status = compare(x, t, plan, items, n, changed);
    for (size_t i = 0; i < n && status == ZT_OK; i++)
        items[i].call = old_number(t, items[i].call);
    zr_plan_free(plan);
    zo_graph_free(graph);
    if (trace != NULL)
        zt_trace_close(trace);
    if (status != ZT_OK) {
        free(items);
        if (status != ZT_END && x->error->status == 0)
            *x->error = error;
        return status;
    }
    free(x->good_items);
    x->good_items = items;
    x->n_good_items = n;
    return ZT_OK;
}

int zx_try_good(zx_export *x, const zx_try *t)
{
    const bool bad = x->answer.taken_for_bad;
    int status = ZT_END;
    for (int waits = bad; waits >= 0 && status == ZT_END; waits--) {
        x->n_wanted = 0;
        if (bad && !hope(x, t, waits))
            return zx_no_memory(x);
        for (unsigned round = 0; round < MOST_ROUNDS; round++) {
            bool changed = false;
            status = one_round(x, t, &changed);
            if (status != ZT_OK || !changed)
                break;
            status = ZT_END;
        }
    }
    return status;
}

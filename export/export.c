/* SPDX-License-Identifier: MIT */
#include "internal.h"

#include <stdlib.h>

static void free_calls(zx_call *calls, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (unsigned k = 0; calls[i].args != NULL && k < calls[i].func->n_params; k++)
            free(calls[i].args[k]);
        free(calls[i].args);
        free(calls[i].uses);
        free(calls[i].lists);
        free(calls[i].contents);
    }
}

static void free_all(zx_export *x)
{
    free_calls(x->calls, x->n_calls);
    free_calls(x->added, 2);
    free(x->calls);
    free(x->objects);
    free(x->submits);
    free(x->spans);
    free(x->bad_items);
    free(x->good_items);
    free(x->bad.steps);
    free(x->good.steps);
    free(x->both.steps);
    free(x->wanted);
    zx_free_parts(x);
    free(x->literals);
    free(x->declared);
    free(x->looked_up);
    free(x->types.at);
    free(x->functions.at);
    zt_objects_free(x->names);
    if (x->all != x->names)
        zt_objects_free(x->all);
}

static int find_pair(zx_export *x)
{
    zo_graph *graph = NULL;
    zr_plan *plan = NULL;
    zt_trace_seek(x->trace, 1);
    int status = zo_graph_make(&graph, x->trace, NULL, x->error);
    if (status == ZT_OK)
        status = zo_check(graph);
    if (status == ZT_OK) {
        zt_trace_seek(x->trace, 1);
        status = zr_plan_make(&plan, x->trace, x->error);
    }
    if (status == ZT_OK)
        status = zx_find_pair(x, graph, plan);
    zr_plan_free(plan);
    zo_graph_free(graph);
    return status;
}

static int write_program(zx_export *x, zx_text *text)
{
    zx_gates gates = {0};
    int status = zx_find_submits(x);
    if (status == ZT_OK)
        status = zx_line_of(x, x->bad_items, x->n_bad_items, &x->bad);
    if (status == ZT_OK)
        status = zx_line_of(x, x->good_items, x->n_good_items, &x->good);
    if (status == ZT_OK)
        status = zx_merge(x);
    if (status == ZT_OK)
        status = zx_choose_gates(x, &gates);
    if (status == ZT_OK)
        status = zx_program_text(x, &gates, text);
    free(gates.list_kept);
    free(gates.call_kept);
    return status;
}

int zx_export_c(zx_program *out, zt_trace *trace, const zx_options *options, zt_error *error)
{
    zx_text text = {0};
    zx_export x = {.trace = trace, .options = options, .error = error};
    *out = (zx_program){0};
    *error = (zt_error){0};
    int status = zx_collect(&x);
    if (status == ZT_OK)
        status = find_pair(&x);
    if (status == ZT_OK)
        status = write_program(&x, &text);
    if (status == ZT_OK) {
        *out = (zx_program){text.at, text.n, (unsigned char *)x.side.at, x.side.n};
        x.side = (zx_text){0};
    } else {
        free(text.at);
        free(x.side.at);
        if (error->status == 0)
            *error = (zt_error){.status = status, .text = "it can't be exported"};
    }
    free_all(&x);
    return status;
}

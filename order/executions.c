/* SPDX-License-Identifier: MIT */
#include "executions.h"

#include <stdio.h>
#include <stdlib.h>

#include "graph.h"

/* Calls in the order of their returns: the first that says so counts. */
static int by_return(const void *a, const void *b)
{
    const zo_call *const x = *(const zo_call *const *)a, *const y = *(const zo_call *const *)b;
    return x->leave_ns < y->leave_ns ? -1 : x->leave_ns > y->leave_ns ? 1 : x->number < y->number ? -1 : x->number > y->number;
}

static void told(const zo_graph *g, const zo_call *c, uint32_t *known, uint32_t *sync)
{
    for (uint32_t i = 0; i < c->n_preds; i++) {
        const zo_range *const r = &g->ranges[c->preds + i];
        if (!g->chains[r->chain].device)
            continue;
        const bool joins = r->lo <= known[r->chain] + 1; /* what is told as a prefix is not gone through again */
        for (uint32_t p = joins ? known[r->chain] + 1 : r->lo; p <= r->hi; p++) {
            const uint32_t x = g->chains[r->chain].nodes[p - 1];
            if (sync[x] == ZO_NONE)
                sync[x] = (uint32_t)(c - g->calls);
        }
        if (joins && r->hi > known[r->chain])
            known[r->chain] = r->hi;
    }
}

static int by_order_descending(const void *a, const void *b, void *ctx)
{
    const zo_graph *const g = ctx;
    const uint32_t x = g->instances[*(const uint32_t *)a].order, y = g->instances[*(const uint32_t *)b].order;
    return x > y ? -1 : x < y;
}

/* What is over before another command begins is over when that one is. */
static void follow(zo_graph *g, uint32_t *order, uint32_t *later, uint32_t *sync)
{
    for (uint32_t i = 0; i < g->n_instances; i++)
        order[i] = i;
    for (uint32_t i = 0; i < g->n_chains; i++)
        later[i] = ZO_NONE;
    qsort_r(order, g->n_instances, sizeof(*order), by_order_descending, g);
    for (size_t i = 0; i < g->n_instances; i++) {
        const uint32_t x = order[i];
        const zo_instance *const instance = &g->instances[x];
        if (instance->order == 0)
            break;
        const uint32_t next = later[instance->chain];
        if (sync[x] == ZO_NONE && next != ZO_NONE && zo_before(g, x, next))
            sync[x] = sync[next];
        if (sync[x] == ZO_NONE)
            continue;
        later[instance->chain] = x;
        for (uint32_t k = 0; k < instance->n_preds; k++) {
            const zo_range *const r = &g->ranges[instance->preds + k];
            const uint32_t before = g->chains[r->chain].device ? g->chains[r->chain].nodes[r->hi - 1] : ZO_NONE;
            if (before != ZO_NONE && sync[before] == ZO_NONE)
                sync[before] = sync[x];
        }
    }
}

static bool find_syncs(zo_graph *g, uint32_t *sync)
{
    const zo_call **const calls = malloc((g->n_calls + 1) * sizeof(*calls));
    uint32_t *const known = calloc(g->n_chains + 1, sizeof(*known)), *const order = malloc((g->n_instances + 1) * sizeof(*order));
    size_t n = 0;
    const bool ok = calls != NULL && known != NULL && order != NULL;
    for (size_t i = 0; ok && i < g->n_calls; i++)
        if (g->calls[i].n_preds > 0)
            calls[n++] = &g->calls[i];
    for (size_t i = 0; ok && i < g->n_instances; i++)
        sync[i] = ZO_NONE;
    if (ok && n > 0)
        qsort(calls, n, sizeof(*calls), by_return);
    for (size_t i = 0; ok && i < n; i++)
        told(g, calls[i], known, sync);
    if (ok)
        follow(g, order, known, sync);
    free(calls);
    free(known);
    free(order);
    return ok;
}

static zo_execution execution(zo_graph *g, uint32_t chain, uint32_t index, uint32_t sync)
{
    const zo_instance *const x = &g->instances[index];
    const zo_command *const c = &g->commands[x->command];
    const zo_object *const event = zo_object_at(g, c->signal), *const carrier = zo_object_at(g, g->chains[chain].object);
    zo_execution e = {.func = g->calls[c->call].func, .append = g->calls[c->call].number, .submit = g->calls[x->submit].number,
                      .submit_ns = g->calls[x->submit].enter_ns, .execution = x->execution, .carrier = g->chains[chain].object,
                      .event = event != NULL && event->base != NULL ? event->base->index : ZO_NONE, .ran = x->order != 0};
    if (sync != ZO_NONE) {
        e.sync = g->calls[sync].number;
        e.sync_ns = g->calls[sync].leave_ns;
    }
    if (carrier != NULL && carrier->base != NULL)
        snprintf(e.carrier_name, sizeof(e.carrier_name), "%s#%u", carrier->base->kind, carrier->base->generation);
    return e;
}

size_t zo_executions(zo_graph *g, zo_execution **out)
{
    uint32_t *const sync = malloc((g->n_instances + 1) * sizeof(*sync));
    size_t n = 0;
    *out = malloc((g->n_instances + 1) * sizeof(**out));
    if (sync == NULL || *out == NULL || !find_syncs(g, sync)) {
        free(sync);
        free(*out);
        *out = NULL;
        return SIZE_MAX;
    }
    for (uint32_t k = 0; k < g->n_chains; k++)
        for (size_t i = 0; g->chains[k].device && i < g->chains[k].n; i++)
            (*out)[n++] = execution(g, k, g->chains[k].nodes[i], sync[g->chains[k].nodes[i]]);
    free(sync);
    return n;
}

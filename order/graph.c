/* SPDX-License-Identifier: MIT */
/* What a graph is made of, and what it is asked for: nodes, points, numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "kernels.h"
#include "read.h"

bool zo_grow(zo_graph *g, void *array, size_t n, size_t *room, size_t element)
{
    if (n < *room)
        return true;
    const size_t more = *room ? *room * 2 : 16;
    void *const grown = n >= ZO_CALL_BIT - 2 ? NULL : realloc(*(void **)array, more * element);
    if (grown == NULL) {
        g->out_of_memory = true;
        return false;
    }
    *(void **)array = grown;
    *room = more;
    return true;
}

zo_object *zo_object_at(zo_graph *g, uint32_t index)
{
    return index == ZO_PAGEABLE ? &g->pageable : index < g->n_objects ? &g->objects[index] : NULL;
}

static bool is_kind(const zt_object *o, const char *kind)
{
    return strcmp(o->kind, kind) == 0;
}

uint32_t zo_object_index(zo_graph *g, const zt_object *base)
{
    if (base == NULL)
        return ZO_NONE;
    while (g->n_objects <= base->index) {
        const zt_object *const *list;
        zt_objects_list(g->names, &list);
        const zt_object *const next = list[g->n_objects];
        const zo_object o = {.base = next, .chain = ZO_NONE, .parent = ZO_NONE, .signaller = ZO_NONE, .attempt = ZO_NONE,
                             .assigned = ZO_NONE, .last_reset = ZO_NONE, .is_event = is_kind(next, "event"),
                             .is_fence = is_kind(next, "fence"), .is_queue = is_kind(next, "queue"), .is_list = is_kind(next, "list"),
                             .is_memory = is_kind(next, "mem"), .is_kernel = is_kind(next, "kernel"), .is_module = is_kind(next, "module")};
        if (!ZO_PUSH(g, g->objects, g->n_objects, g->room_objects, o))
            return ZO_NONE;
        if (o.is_memory)
            zo_memory_seen(g, next);
    }
    return base->index;
}

uint32_t zo_chain_new(zo_graph *g, bool device, uint32_t object)
{
    const zo_chain chain = {.device = device, .object = object};
    return ZO_PUSH(g, g->chains, g->n_chains, g->room_chains, chain) ? (uint32_t)g->n_chains - 1 : ZO_NONE;
}

uint32_t zo_chain_of_carrier(zo_graph *g, uint32_t object)
{
    zo_object *const o = zo_object_at(g, object);
    if (o->chain == ZO_NONE)
        o->chain = zo_chain_new(g, true, object);
    return o->chain;
}

uint32_t zo_find_call(const zo_graph *g, uint64_t number)
{
    size_t low = 0, high = g->n_calls;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (g->calls[mid].number < number)
            low = mid + 1;
        else
            high = mid;
    }
    return low < g->n_calls && g->calls[low].number == number ? (uint32_t)low : ZO_NONE;
}

static void free_object(zo_object *o)
{
    free(o->uses);
    free(o->commands);
    free(o->submits);
    free(o->history);
    zo_kernel_free(o->kernel);
}

void zo_graph_free(zo_graph *g)
{
    if (g == NULL)
        return;
    for (size_t i = 0; i < g->n_objects; i++)
        free_object(&g->objects[i]);
    free_object(&g->pageable);
    for (size_t i = 0; i < g->n_chains; i++)
        free(g->chains[i].nodes);
    zo_clocks_free(g);
    zt_objects_free(g->names);
    free(g->objects);
    free(g->calls);
    free(g->commands);
    free(g->instances);
    free(g->chains);
    free(g->accesses);
    free(g->waits);
    free(g->writes);
    free(g->unread);
    free(g->reads);
    zo_learn_free(g);
    zo_sightings_free(g);
    free(g->captured);
    free(g->ranges);
    free(g->conflicts);
    free(g->marks);
    free(g->stack);
    free(g->memo);
    free(g->open);
    free(g->unmet);
    free(g->findings);
    zo_rules_free(g);
    free(g->consequences);
    free(g);
}

zo_point zo_graph_point(const zo_graph *g, uint32_t node)
{
    if (node & (ZO_CALL_BIT | ZO_WRITE_BIT))
        return (zo_point){g->calls[node & ~(ZO_CALL_BIT | ZO_WRITE_BIT)].number, 0};
    const zo_instance *const x = &g->instances[node];
    return (zo_point){g->calls[g->commands[x->command].call].number, x->execution};
}

uint32_t zo_graph_node(const zo_graph *g, zo_point point)
{
    const uint32_t call = zo_find_call(g, point.call);
    if (call == ZO_NONE || point.execution == 0)
        return call == ZO_NONE ? ZO_NONE : call | ZO_CALL_BIT;
    const uint32_t command = g->calls[call].command;
    if (command == ZO_NONE || g->commands[command].executions < point.execution)
        return ZO_NONE;
    uint32_t i = g->commands[command].first;
    while (i != ZO_NONE && g->instances[i].execution != point.execution)
        i = g->instances[i].again;
    return i;
}

void zo_graph_doubts(const zo_graph *g, zo_doubts *doubts)
{
    *doubts = g->doubts;
    doubts->searches = g->doubtful;
}

void zo_graph_count(const zo_graph *g, zo_graph_numbers *n)
{
    *n = (zo_graph_numbers){.calls = g->n_calls, .commands = g->n_commands, .executions = g->n_instances, .edges = g->n_ranges,
                            .doubtful = g->doubtful};
    for (size_t i = 0; i < g->n_chains; i++) {
        n->carriers += g->chains[i].device;
        n->threads += !g->chains[i].device;
        n->bytes += g->chains[i].room * 4;
    }
    for (size_t i = 0; i < g->n_instances; i++)
        n->never_ran += g->instances[i].order == 0;
    n->bytes += g->clock_bytes + g->room_calls * sizeof(*g->calls) + g->room_commands * sizeof(*g->commands) +
                g->room_instances * sizeof(*g->instances) + g->room_accesses * sizeof(*g->accesses) +
                g->room_ranges * sizeof(*g->ranges) + g->room_waits * 4 + g->room_objects * sizeof(*g->objects) + g->n_marks * 4;
}

/* SPDX-License-Identifier: MIT */
/* What the words of one call name, and the commands that it appends or submits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "read.h"

/* --------------------------------------------------------------------------------------------------- one call's words */

void zo_read_begin(zo_reading *r, zo_graph *g, const zt_call *call)
{
    *r = (zo_reading){.g = g, .call = call, .in = {call, ZT_ENTER, g->trace}};
    r->memory = zt_memory_of(&r->in);
    r->walk = (zt_walk){.func = call->func, .words = call->words, .phase = ZT_ENTER, .memory = &r->memory};
}

uint32_t zo_read_handle(zo_reading *r, const zt_field *f, uint64_t handle)
{
    return zo_object_index(r->g, zt_object_of_handle(r->g->names, &zt_types[f->type], handle));
}

uint32_t zo_read_object(zo_reading *r, enum zt_role role)
{
    const zt_field *const f = zt_param_by_role(r->call->func, role);
    return f != NULL && f->shape == ZT_VALUE && zt_types[f->type].cls == ZT_HANDLE ? zo_read_handle(r, f, r->call->words[f->offset])
                                                                                    : ZO_NONE;
}

const void *zo_read_array(zo_reading *r, enum zt_role role, const zt_field **f, uint32_t *n)
{
    *f = zt_param_by_role(r->call->func, role);
    const int64_t count = *f && (*f)->shape == ZT_ARRAY ? zt_eval_param(&r->walk, &(*f)->count) : 0;
    *n = 0;
    if (count <= 0 || count > 1 << 20 || r->call->words[(*f)->offset] == 0)
        return NULL;
    const void *const list = r->memory.at(r->memory.ctx, r->call->words[(*f)->offset], (uint64_t)count * 8);
    *n = list ? (uint32_t)count : 0;
    return list;
}

uint32_t zo_read_subject(zo_reading *r)
{
    static const enum zt_role roles[] = {ZT_R_DESTROY, ZT_R_EVENT, ZT_R_FENCE, ZT_R_QUEUE, ZT_R_LIST, ZT_R_SELF, ZT_R_KERNEL, ZT_R_MODULE};
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        const uint32_t found = zo_read_object(r, roles[i]);
        if (found != ZO_NONE)
            return found;
    }
    return ZO_NONE;
}

bool zo_locate(zo_graph *g, uint64_t address, uint64_t length, zo_access *out)
{
    const zt_object *const a = zt_object_of_address(g->names, address);
    if (length > UINT64_MAX - address)
        length = UINT64_MAX - address;
    if (a == NULL) {
        out->mem = ZO_PAGEABLE;
        out->lo = address;
    } else {
        out->mem = zo_object_index(g, a);
        out->lo = address - a->value;
    }
    out->hi = out->lo + length;
    return out->mem != ZO_NONE;
}

/* ---------------------------------------------------------------------------------------------------------- commands */

static void add_access(zo_reading *r, zo_command *c, const zt_field *f)
{
    zo_graph *const g = r->g;
    const int64_t n = zt_eval_param(&r->walk, &f->count);
    const uint64_t address = r->call->words[f->offset];
    zo_access access = {.write = (f->access & ZT_OUT) != 0, .coarse = n < 0 || f->count.op == ZT_X_REGION};
    if (address == 0 || n == 0 || !zo_locate(g, address, n < 0 ? 1 : (uint64_t)n, &access))
        return;
    if (n < 0 && access.mem != ZO_PAGEABLE)
        access.hi = zo_object_at(g, access.mem)->base->size;
    if (ZO_PUSH(g, g->accesses, g->n_accesses, g->room_accesses, access))
        c->n_accesses++;
}

static uint32_t append(zo_reading *r, uint32_t index)
{
    zo_graph *const g = r->g;
    const zt_func *const f = r->call->func;
    zo_command c = {.call = index, .list = zo_read_object(r, ZT_R_LIST), .signal = zo_read_object(r, ZT_R_SIGNAL),
                    .reset = zo_read_object(r, ZT_R_EVENT), .waits = (uint32_t)g->n_waits, .accesses = (uint32_t)g->n_accesses};
    if (c.list == ZO_NONE)
        return ZO_NONE;
    const zt_field *field;
    uint32_t n;
    const void *const waits = zo_read_array(r, ZT_R_WAITS, &field, &n);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t event = zo_read_handle(r, field, zt_element(waits, i));
        if (event != ZO_NONE && ZO_PUSH(g, g->waits, g->n_waits, g->room_waits, event))
            c.n_waits++;
    }
    for (unsigned i = 0; i < f->n_params; i++)
        if (f->params[i].shape == ZT_ADDRESS && f->params[i].access != 0)
            add_access(r, &c, &f->params[i]);
    if (zt_param_by_role(f, ZT_R_KERNEL) != NULL)
        zo_launch(r, index, &c);
    if (f->flags & ZT_F_BARRIER)
        c.flags |= ZO_BARRIER | ZO_HOLDS_BACK;
    else if (zt_param_by_role(f, ZT_R_WAITS) != NULL && zt_param_by_role(f, ZT_R_SIGNAL) == NULL)
        c.flags |= ZO_WAIT_ONLY | ZO_HOLDS_BACK;
    if (!ZO_PUSH(g, g->commands, g->n_commands, g->room_commands, c))
        return ZO_NONE;
    return (uint32_t)g->n_commands - 1;
}

static void add_submit(zo_graph *g, uint32_t object, zo_range r)
{
    zo_object *const o = zo_object_at(g, object);
    if (o != NULL && r.hi >= r.lo)
        ZO_PUSH(g, o->submits, o->n_submits, o->room_submits, r);
}

uint32_t zo_read_carrier(zo_reading *r)
{
    const uint32_t queue = zo_read_object(r, ZT_R_QUEUE);
    return queue != ZO_NONE ? queue : zo_read_object(r, ZT_R_LIST);
}

void zo_read_execute(zo_reading *r, uint32_t index)
{
    zo_graph *const g = r->g;
    const zt_field *field;
    uint32_t n;
    const uint32_t carrier = zo_read_carrier(r);
    const void *const lists = zo_read_array(r, ZT_R_LISTS, &field, &n);
    if (carrier == ZO_NONE)
        return;
    const uint32_t chain = zo_chain_of_carrier(g, carrier), first = (uint32_t)g->chains[chain].n + 1;
    if (zt_param_by_role(r->call->func, ZT_R_WAITS) != NULL) { /* to an immediate list, with events of its own */
        const uint32_t own = append(r, index);
        if (own != ZO_NONE) {
            g->commands[own].flags |= ZO_HOLDS_BACK;
            g->commands[own].signal = ZO_NONE;
            if (g->commands[own].n_waits > 0)
                zo_submit(g, index, carrier, own);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t list = zo_read_handle(r, field, zt_element(lists, i));
        zo_object *const l = zo_object_at(g, list);
        if (l == NULL)
            continue;
        if (!(g->habits & ZO_H_LIST_KEEPS))
            zo_saw_object_gone(g, index, list, ZO_X_LIST_AGAIN);
        const uint32_t from = (uint32_t)g->chains[chain].n + 1;
        for (size_t k = 0; k < l->n_commands; k++)
            zo_submit(g, index, carrier, l->commands[k]);
        add_submit(g, list, (zo_range){chain, from, (uint32_t)g->chains[chain].n});
    }
    if (zo_read_object(r, ZT_R_SIGNAL) != ZO_NONE) {
        const uint32_t own = append(r, index);
        if (own != ZO_NONE) {
            g->commands[own].n_waits = 0;
            g->commands[own].flags = ZO_BARRIER;
            zo_submit(g, index, carrier, own);
            g->instances[g->n_instances - 1].execution = 2; /* of the call: its waits are the first */
        }
    }
    const uint32_t fence = zo_read_object(r, ZT_R_FENCE);
    if (fence != ZO_NONE)
        add_submit(g, fence, (zo_range){chain, first, (uint32_t)g->chains[chain].n});
}

void zo_read_append(zo_reading *r, uint32_t index)
{
    zo_graph *const g = r->g;
    const uint32_t command = append(r, index);
    if (command == ZO_NONE)
        return;
    g->calls[index].command = command;
    const uint32_t list = g->commands[command].list;
    zo_object *const l = zo_object_at(g, list);
    if (l->immediate) {
        zo_chain_of_carrier(g, list);
        zo_submit(g, index, list, command);
    } else {
        ZO_PUSH(g, l->commands, l->n_commands, l->room_commands, command);
    }
}

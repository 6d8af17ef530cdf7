/* SPDX-License-Identifier: MIT */
/* Reads the calls of a trace, by kind and role, and hands what they mean to the simulation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "kernels.h"
#include "l0_api.h"
#include "read.h"

/* ---------------------------------------------------------------------------------------------------- what a call does */

static void gone(zo_graph *g, uint32_t index, uint32_t object)
{
    const zo_object *const o = zo_object_at(g, object);
    if (o == NULL)
        return;
    if ((o->is_queue && (g->habits & ZO_H_QUEUE_KEEPS)) || (o->immediate && (g->habits & ZO_H_IMMEDIATE_WAITS)) ||
        (o->is_list && !o->immediate && (g->habits & ZO_H_LIST_KEEPS)) || (o->is_event && (g->habits & ZO_H_EVENT_KEEPS)))
        return;
    if (o->is_queue || o->immediate)
        zo_saw_object_gone(g, index, object, ZO_X_CARRIER_GONE);
    else if (o->is_list)
        zo_saw_object_gone(g, index, object, ZO_X_LIST_RESET);
    else if (o->is_fence)
        zo_saw_object_gone(g, index, object, ZO_X_FENCE_GONE);
    else if (o->is_event)
        zo_saw_object_gone(g, index, object, ZO_X_EVENT_GONE);
    else if (o->is_kernel || o->is_module)
        zo_saw_object_gone(g, index, object, ZO_X_KERNEL_GONE);
}

static void freed(zo_reading *r, uint32_t index)
{
    zo_graph *const g = r->g;
    zo_call *const c = &g->calls[index];
    const zt_field *const address = zt_param_by_role(r->call->func, ZT_R_FREE);
    const uint32_t policy = zo_free_policy(r);
    c->object = address ? zo_object_index(g, zt_object_of_address(g->names, r->call->words[address->offset])) : ZO_NONE;
    if (c->object == ZO_NONE)
        return;
    c->hi = zo_object_at(g, c->object)->base->size;
    if ((policy & ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE) || (policy == 0 && (g->habits & ZO_H_FREE_WAITS)))
        c->flags |= ZO_WAITS_FOR_USERS;
    else if (policy == 0)
        zo_saw_memory_gone(g, index, ZO_X_FREE);
}

static void act(zo_reading *r, uint32_t index)
{
    zo_graph *const g = r->g;
    zo_call *const c = &g->calls[index];
    const zt_func *const f = r->call->func;
    const zt_field *address;
    zo_object *const o = zo_object_at(g, c->object);
    switch (f->kind) {
    case ZT_K_APPEND:
        zo_read_append(r, index);
        break;
    case ZT_K_EXECUTE:
        zo_read_execute(r, index);
        break;
    case ZT_K_HOST_SIGNAL:
        if (o != NULL && o->is_event)
            zo_host_signal(g, index, c->object);
        break;
    case ZT_K_HOST_RESET:
        if (o != NULL && o->is_event)
            zo_host_reset(g, index, c->object);
        else if (o != NULL && o->is_fence) {
            gone(g, index, c->object);
            o->n_submits = 0;
        }
        break;
    case ZT_K_CLOSE:
        if (o != NULL)
            o->closed = true;
        break;
    case ZT_K_RESET:
        if (o != NULL && o->is_list) {
            gone(g, index, c->object);
            o->closed = false;
            o->n_commands = 0;
        }
        break;
    case ZT_K_DESTROY:
        gone(g, index, c->object);
        if (o != NULL) {
            o->gone = true;
            if (zo_object_at(g, o->parent) != NULL && zo_object_at(g, o->parent)->children > 0)
                zo_object_at(g, o->parent)->children--;
        }
        break;
    case ZT_K_FREE:
        g->memory_epoch++;
        freed(r, index);
        break;
    case ZT_K_SET:
        if (zt_param_by_role(f, ZT_R_KERNEL) != NULL)
            zo_kernel_set(r, index);
        break;
    case ZT_K_EVICT:
        address = zt_param_by_role(f, ZT_R_PTR);
        if (address != NULL) {
            const zt_field *const size = zt_param_by_role(f, ZT_R_SIZE);
            zo_access access = {.write = 1};
            if (zo_locate(g, r->call->words[address->offset], size ? r->call->words[size->offset] : 1, &access)) {
                c->object = access.mem;
                c->lo = 0; /* whatever granule the driver takes, this much is certain to be meant */
                c->hi = access.mem == ZO_PAGEABLE ? access.hi : zo_object_at(g, access.mem)->base->size;
                if (access.mem != ZO_PAGEABLE)
                    zo_saw_memory_gone(g, index, ZO_X_EVICT);
            }
        }
        break;
    default:
        break;
    }
}

/* A submit that waits for its commands, and says that they failed: it had submitted them. */
static bool lost_at_work(zo_reading *r)
{
    const int kind = r->call->func->kind;
    const zo_object *const carrier = zo_object_at(r->g, zo_read_carrier(r));
    return (kind == ZT_K_APPEND || kind == ZT_K_EXECUTE) && r->call->result == ZE_RESULT_ERROR_DEVICE_LOST && carrier != NULL &&
           carrier->synchronous;
}

static void enter(zo_graph *g, const zt_call *call, uint32_t *threads, size_t n_threads)
{
    if (call->thread >= n_threads)
        return;
    if (threads[call->thread] == ZO_NONE)
        threads[call->thread] = zo_chain_new(g, false, ZO_NONE);
    const uint32_t index = (uint32_t)g->n_calls, chain = threads[call->thread];
    if (chain == ZO_NONE)
        return;
    zo_call c = {.number = call->number, .enter_ns = call->enter_ns, .leave_ns = call->leave_ns, .func = call->func,
                 .result = call->result, .chain = chain, .position = (uint32_t)g->chains[chain].n + 1, .object = ZO_NONE,
                 .command = ZO_NONE, .order = ++g->tick, .previous_sync = (uint32_t)g->chains[chain].last_sync};
    const bool is_result = strcmp(zt_types[call->func->return_type].name, "ze_result_t") == 0;
    c.end_order = c.order;
    c.flags = (uint8_t)((call->returned ? ZO_RETURNED : 0) |
                        (is_result && call->returned && call->result != 0 && call->result != 1 ? ZO_FAILED : 0) |
                        (call->nested || call->internal ? ZO_IGNORED : 0));
    if (g->options.without & ZO_E_PROGRAM)
        c.previous_sync = 0;
    c.clock = g->chains[chain].clock;
    c.loose = g->chains[chain].loose;
    c.observed = g->observed;
    zo_reading r;
    zo_read_begin(&r, g, call);
    if (!(c.flags & ZO_IGNORED))
        c.object = zo_read_subject(&r);
    const zt_field *const timeout = zt_param_by_role(call->func, ZT_R_TIMEOUT);
    c.timeout = timeout ? call->words[timeout->offset] : 0;
    if (!ZO_PUSH(g, g->calls, g->n_calls, g->room_calls, c) ||
        !ZO_PUSH(g, g->chains[chain].nodes, g->chains[chain].n, g->chains[chain].room, index))
        return;
    if (c.flags & ZO_IGNORED)
        return;
    zo_host_writes(g, index, call);
    zo_rules_enter(g, index, call);
    if (!(c.flags & ZO_FAILED) || lost_at_work(&r))
        act(&r, index);
    zo_run(g);
}

/* ------------------------------------------------------------------------------------------------------------- leave */

typedef struct modes {
    unsigned modes; /* enum zt_mode */
    bool counter_based;
} modes;

static int see_mode(void *ctx, const zt_node *node)
{
    modes *const m = ctx;
    uint32_t value;
    if (node->kind == ZT_N_STRUCT && strstr(node->type->name, "counter_based") != NULL)
        m->counter_based = true;
    if (node->kind != ZT_N_VALUE || node->type == NULL || node->size != 4)
        return 0;
    memcpy(&value, node->data, 4);
    m->modes |= zt_modes(node->type, value);
    return 0;
}

/* The executions of a command are those of all lists that hold it. */
static void cloned(zo_graph *g, const zo_object *from, zo_object *to)
{
    to->in_order = from->in_order;
    to->closed = from->closed;
    for (size_t i = 0; i < from->n_commands; i++)
        ZO_PUSH(g, to->commands, to->n_commands, to->room_commands, from->commands[i]);
}

/* @return the new object, ZO_NONE. */
static uint32_t created(zo_graph *g, const zt_call *call)
{
    const zt_field *const out = zt_param_by_role(call->func, ZT_R_CREATE), *const desc = zt_param_by_role(call->func, ZT_R_DESC);
    uint64_t handle;
    const bool known = out && out->shape == ZT_ONE && zt_word_left(call, out, g->trace, &handle);
    const uint32_t index = known ? zo_object_index(g, zt_object_of_handle(g->names, &zt_types[out->type], handle)) : ZO_NONE;
    zo_object *const o = zo_object_at(g, index);
    if (o == NULL)
        return ZO_NONE;
    modes m = {0};
    if (desc != NULL) {
        zo_reading r;
        zo_read_begin(&r, g, call);
        r.walk.visit = see_mode;
        r.walk.ctx = &m;
        zt_walk_param(&r.walk, (unsigned)(desc - call->func->params));
    }
    zo_reading r;
    zo_read_begin(&r, g, call);
    const uint32_t parent = zo_read_subject(&r);
    o->parent = parent;
    if (zo_object_at(g, parent) != NULL)
        zo_object_at(g, parent)->children++;
    o->in_order = m.modes & ZT_M_IN_ORDER;
    o->synchronous = m.modes & ZT_M_SYNCHRONOUS;
    o->facts.timestamps = m.modes & ZT_M_TIMESTAMPS;
    o->immediate = (call->func->flags & ZT_F_IMMEDIATE) != 0;
    o->counter_based = m.counter_based || (o->is_event && zo_object_at(g, parent) && zo_object_at(g, parent)->counter_based);
    if (o->is_queue || o->immediate)
        zo_chain_of_carrier(g, index);
    if (o->is_list && zo_object_at(g, parent) != NULL && zo_object_at(g, parent)->is_list)
        cloned(g, zo_object_at(g, parent), o);
    return index;
}

/* Some of a driver's habits are those of one device. */
static void see_device(zo_graph *g, const zt_call *call)
{
    for (unsigned i = 0; i < call->func->n_params; i++) {
        const zt_field *const f = &call->func->params[i];
        if (f->shape != ZT_ONE || zt_types[f->type].stype != ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES)
            continue;
        zt_call_memory left = {.call = call, .phase = ZT_LEAVE, .trace = g->trace};
        const zt_memory memory = zt_memory_of(&left);
        ze_device_properties_t p;
        const void *const at = memory.at(memory.ctx, call->words[f->offset], sizeof(p));
        if (at != NULL)
            memcpy(&p, at, sizeof(p));
        if (at != NULL && g->device != p.deviceId)
            g->device = g->device == 0 ? p.deviceId : UINT32_MAX; /* several: none */
        g->known_habits = zo_driver_habits(zt_trace_session(g->trace), g->device);
        g->habits = g->options.vendor ? g->known_habits : 0;
    }
}

static void leave_kind(zo_graph *g, const zt_call *call, uint32_t index, int kind)
{
    if (kind == ZT_K_GET && call->result == 0)
        see_device(g, call);
    else if ((kind == ZT_K_SYNC || kind == ZT_K_QUERY) && call->result == 0)
        zo_sync_done(g, index);
    else if (g->calls[index].flags & ZO_WAITS_FOR_USERS)
        zo_users_done(g, index);
    else if (kind == ZT_K_APPEND || kind == ZT_K_EXECUTE) {
        const zo_call *const c = &g->calls[index];
        const uint32_t carrier = c->n > 0 ? g->chains[g->instances[c->first].chain].object : ZO_NONE;
        if (carrier != ZO_NONE && zo_object_at(g, carrier)->synchronous)
            zo_sync_done(g, index);
    }
}

static void leave(zo_graph *g, const zt_call *call)
{
    const uint32_t index = zo_find_call(g, call->number);
    if (index == ZO_NONE || (g->calls[index].flags & ZO_IGNORED) || !call->returned)
        return;
    const int kind = call->func->kind;
    zo_rules_leave(g, index, call, kind == ZT_K_CREATE && call->result == 0 ? created(g, call) : ZO_NONE);
    if (g->calls[index].flags & ZO_FAILED)
        return;
    leave_kind(g, call, index, kind);
    zo_host_reads(g, index, call);
}

/* --------------------------------------------------------------------------------------------------------------- make */

int zo_graph_make(zo_graph **out, zt_trace *trace, const zo_graph_options *options, zt_error *error)
{
    enum { THREADS = 65536 };
    *out = NULL;
    error->text[0] = 0;
    zo_graph *const g = calloc(1, sizeof(*g));
    uint32_t *const threads = malloc(THREADS * sizeof(*threads));
    zt_events *events = NULL;
    if (g != NULL) {
        *g = (zo_graph){.floating = ZO_NONE, .patient = ZO_NONE, .trace = trace, .names = zt_objects_new(), .budget = 1u << 16};
        g->pageable = (zo_object){.chain = ZO_NONE, .parent = ZO_NONE};
        if (options != NULL)
            g->options = *options;
        g->budget = zo_limit(g, g->budget);
        g->known_habits = zo_driver_habits(zt_trace_session(trace), 0);
        g->habits = g->options.vendor ? g->known_habits : 0;
    }
    if (g == NULL || threads == NULL || g->names == NULL || zt_events_open(&events, trace) != ZT_OK) {
        error->status = ZT_E_MEMORY;
        snprintf(error->text, sizeof(error->text), "not enough memory for the graph");
        free(threads);
        zo_graph_free(g);
        return ZT_E_MEMORY;
    }
    memset(threads, 0xff, THREADS * sizeof(*threads));
    zt_event event;
    int status = ZT_OK;
    while (!g->out_of_memory && (status = zt_events_next(events, &event)) == ZT_OK) {
        if (event.phase == ZT_ENTER) { /* what it destroys is still there for it */
            enter(g, event.call, threads, THREADS);
            zt_objects_event(g->names, trace, &event);
        } else {
            zt_objects_event(g->names, trace, &event);
            leave(g, event.call);
        }
        if (event.call->number == g->options.until && (event.phase == ZT_LEAVE || !event.call->returned)) {
            status = ZT_END;
            break;
        }
    }
    zt_events_close(events);
    free(threads);
    if (!g->out_of_memory) {
        zo_rules_finish(g);
        zo_finish_conflicts(g);
    }
    if (g->out_of_memory || (status != ZT_END && g->n_calls == 0)) {
        error->status = g->out_of_memory ? ZT_E_MEMORY : status;
        snprintf(error->text, sizeof(error->text),
                 g->out_of_memory ? "not enough memory for the graph" : "no call of the trace can be read");
        zo_graph_free(g);
        return error->status;
    }
    *out = g;
    return ZT_OK;
}

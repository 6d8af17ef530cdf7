/* SPDX-License-Identifier: MIT */
/* Reads the calls of a trace, by kind and role, and hands what they mean to the simulation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

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
                             .is_fence = is_kind(next, "fence"), .is_queue = is_kind(next, "queue"), .is_list = is_kind(next, "list")};
        if (!ZO_PUSH(g, g->objects, g->n_objects, g->room_objects, o))
            return ZO_NONE;
    }
    return base->index;
}

static uint32_t new_chain(zo_graph *g, bool device, uint32_t object)
{
    const zo_chain chain = {.device = device, .object = object};
    return ZO_PUSH(g, g->chains, g->n_chains, g->room_chains, chain) ? (uint32_t)g->n_chains - 1 : ZO_NONE;
}

static uint32_t carrier_chain(zo_graph *g, uint32_t object)
{
    zo_object *const o = zo_object_at(g, object);
    if (o->chain == ZO_NONE)
        o->chain = new_chain(g, true, object);
    return o->chain;
}

/* --------------------------------------------------------------------------------------------------- one call's words */

typedef struct reading {
    zo_graph *g;
    const zt_call *call;
    zt_call_memory in;
    zt_memory memory;
    zt_walk walk;
} reading;

static void begin(reading *r, zo_graph *g, const zt_call *call)
{
    *r = (reading){.g = g, .call = call, .in = {call, ZT_ENTER, g->trace}};
    r->memory = zt_memory_of(&r->in);
    r->walk = (zt_walk){.func = call->func, .words = call->words, .phase = ZT_ENTER, .memory = &r->memory};
}

static uint32_t handle_index(reading *r, const zt_field *f, uint64_t handle)
{
    return zo_object_index(r->g, zt_object_of_handle(r->g->names, &zt_types[f->type], handle));
}

static uint32_t object_by_role(reading *r, enum zt_role role)
{
    const zt_field *const f = zt_param_by_role(r->call->func, role);
    return f != NULL && f->shape == ZT_VALUE && zt_types[f->type].cls == ZT_HANDLE ? handle_index(r, f, r->call->words[f->offset])
                                                                                    : ZO_NONE;
}

static const uint64_t *array_by_role(reading *r, enum zt_role role, const zt_field **f, uint32_t *n)
{
    *f = zt_param_by_role(r->call->func, role);
    const int64_t count = *f && (*f)->shape == ZT_ARRAY ? zt_eval_param(&r->walk, &(*f)->count) : 0;
    *n = 0;
    if (count <= 0 || count > 1 << 20 || r->call->words[(*f)->offset] == 0)
        return NULL;
    const uint64_t *const list = r->memory.at(r->memory.ctx, r->call->words[(*f)->offset], (uint64_t)count * 8);
    *n = list ? (uint32_t)count : 0;
    return list;
}

/* The object that a call is about: where waits, resets and destructions look. */
static uint32_t subject(reading *r)
{
    static const enum zt_role roles[] = {ZT_R_DESTROY, ZT_R_EVENT, ZT_R_FENCE, ZT_R_QUEUE, ZT_R_LIST, ZT_R_SELF, ZT_R_KERNEL};
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        const uint32_t found = object_by_role(r, roles[i]);
        if (found != ZO_NONE)
            return found;
    }
    return ZO_NONE;
}

static bool locate(zo_graph *g, uint64_t address, uint64_t length, zo_access *out)
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

static void add_access(reading *r, zo_command *c, const zt_field *f)
{
    zo_graph *const g = r->g;
    const int64_t n = zt_eval_param(&r->walk, &f->count);
    const uint64_t address = r->call->words[f->offset];
    zo_access access = {.write = (f->access & ZT_OUT) != 0, .coarse = n < 0 || f->count.op == ZT_X_REGION};
    if (address == 0 || n == 0 || !locate(g, address, n < 0 ? 1 : (uint64_t)n, &access))
        return;
    if (n < 0 && access.mem != ZO_PAGEABLE)
        access.hi = zo_object_at(g, access.mem)->base->size;
    if (ZO_PUSH(g, g->accesses, g->n_accesses, g->room_accesses, access))
        c->n_accesses++;
}

static uint32_t append(reading *r, uint32_t index)
{
    zo_graph *const g = r->g;
    const zt_func *const f = r->call->func;
    zo_command c = {.call = index, .list = object_by_role(r, ZT_R_LIST), .signal = object_by_role(r, ZT_R_SIGNAL),
                    .reset = object_by_role(r, ZT_R_EVENT), .waits = (uint32_t)g->n_waits, .accesses = (uint32_t)g->n_accesses};
    if (c.list == ZO_NONE)
        return ZO_NONE;
    const zt_field *field;
    uint32_t n;
    const uint64_t *const waits = array_by_role(r, ZT_R_WAITS, &field, &n);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t event = handle_index(r, field, waits[i]);
        if (event != ZO_NONE && ZO_PUSH(g, g->waits, g->n_waits, g->room_waits, event))
            c.n_waits++;
    }
    for (unsigned i = 0; i < f->n_params; i++)
        if (f->params[i].shape == ZT_ADDRESS && f->params[i].access != 0)
            add_access(r, &c, &f->params[i]);
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

static void execute(reading *r, uint32_t index)
{
    zo_graph *const g = r->g;
    const zt_field *field;
    uint32_t n, carrier = object_by_role(r, ZT_R_QUEUE);
    if (carrier == ZO_NONE)
        carrier = object_by_role(r, ZT_R_LIST);
    const uint64_t *const lists = array_by_role(r, ZT_R_LISTS, &field, &n);
    if (carrier == ZO_NONE)
        return;
    const uint32_t chain = carrier_chain(g, carrier), first = (uint32_t)g->chains[chain].n + 1;
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
        const uint32_t list = handle_index(r, field, lists[i]);
        zo_object *const l = zo_object_at(g, list);
        if (l == NULL)
            continue;
        zo_saw_object_gone(g, index, list, ZO_X_LIST_AGAIN);
        const uint32_t from = (uint32_t)g->chains[chain].n + 1;
        for (size_t k = 0; k < l->n_commands; k++)
            zo_submit(g, index, carrier, l->commands[k]);
        add_submit(g, list, (zo_range){chain, from, (uint32_t)g->chains[chain].n});
    }
    if (object_by_role(r, ZT_R_SIGNAL) != ZO_NONE) {
        const uint32_t own = append(r, index);
        if (own != ZO_NONE) {
            g->commands[own].n_waits = 0;
            g->commands[own].flags = ZO_BARRIER;
            zo_submit(g, index, carrier, own);
            g->instances[g->n_instances - 1].execution = 2; /* of the call: its waits are the first */
        }
    }
    const uint32_t fence = object_by_role(r, ZT_R_FENCE);
    if (fence != ZO_NONE)
        add_submit(g, fence, (zo_range){chain, first, (uint32_t)g->chains[chain].n});
}

static void appended(reading *r, uint32_t index)
{
    zo_graph *const g = r->g;
    const uint32_t command = append(r, index);
    if (command == ZO_NONE)
        return;
    g->calls[index].command = command;
    const uint32_t list = g->commands[command].list;
    zo_object *const l = zo_object_at(g, list);
    if (l->immediate) {
        carrier_chain(g, list);
        zo_submit(g, index, list, command);
    } else {
        ZO_PUSH(g, l->commands, l->n_commands, l->room_commands, command);
    }
}

/* ---------------------------------------------------------------------------------------------------- what a call does */

static void host_writes(zo_graph *g, uint32_t index, const zt_call *call)
{
    g->calls[index].writes = (uint32_t)g->n_writes;
    g->calls[index].silent = (uint32_t)g->n_silent;
    for (uint32_t i = 0; i < call->n_contents; i++) {
        const zt_content *const content = &call->contents[i];
        zo_write write = {.access = {.write = 1}, .content = i + 1};
        if (content->kind == ZT_C_READBACK || !locate(g, content->addr, content->len, &write.access))
            continue;
        if (content->changed && zo_saw_host_write(g, index, &write.access)) {
            if (ZO_PUSH(g, g->writes, g->n_writes, g->room_writes, write))
                g->calls[index].n_writes++;
        } else if (zo_device_writes(g, index, &write.access) && ZO_PUSH(g, g->silent, g->n_silent, g->room_silent, write.content)) {
            g->calls[index].n_silent++;
        }
    }
}

static void gone(zo_graph *g, uint32_t index, uint32_t object)
{
    const zo_object *const o = zo_object_at(g, object);
    if (o == NULL)
        return;
    if (o->is_queue || o->immediate)
        zo_saw_object_gone(g, index, object, ZO_X_CARRIER_GONE);
    else if (o->is_list)
        zo_saw_object_gone(g, index, object, ZO_X_LIST_RESET);
    else if (o->is_fence)
        zo_saw_object_gone(g, index, object, ZO_X_FENCE_GONE);
    else if (o->is_event)
        zo_saw_object_gone(g, index, object, ZO_X_EVENT_GONE);
}

static uint32_t free_policy(const reading *r)
{
    /* a policy that waits for the users, or leaves the memory to them */
    uint32_t policy = 0;
    for (unsigned i = 0; i < r->call->func->n_params; i++) {
        const zt_field *const f = &r->call->func->params[i];
        if (f->shape != ZT_ONE || strstr(zt_types[f->type].name, "_free_ext_desc") == NULL)
            continue;
        const uint8_t *const desc = r->memory.at(r->memory.ctx, r->call->words[f->offset], zt_types[f->type].size);
        for (unsigned k = 0; desc != NULL && k < zt_types[f->type].n_fields; k++)
            if (strcmp(zt_types[f->type].fields[k].name, "freePolicy") == 0)
                memcpy(&policy, desc + zt_types[f->type].fields[k].offset, 4);
    }
    return policy;
}

static void act(reading *r, uint32_t index)
{
    zo_graph *const g = r->g;
    zo_call *const c = &g->calls[index];
    const zt_func *const f = r->call->func;
    const zt_field *address;
    zo_object *const o = zo_object_at(g, c->object);
    switch (f->kind) {
    case ZT_K_APPEND:
        appended(r, index);
        break;
    case ZT_K_EXECUTE:
        execute(r, index);
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
        address = zt_param_by_role(f, ZT_R_FREE);
        c->object = address ? zo_object_index(g, zt_object_of_address(g->names, r->call->words[address->offset])) : ZO_NONE;
        c->hi = c->object != ZO_NONE ? zo_object_at(g, c->object)->base->size : 0;
        if (c->object != ZO_NONE && free_policy(r) == 0)
            zo_saw_memory_gone(g, index, ZO_X_FREE);
        else if (c->object != ZO_NONE && (free_policy(r) & 1)) /* ..._BLOCKING_FREE */
            c->flags |= ZO_WAITS_FOR_USERS;
        break;
    case ZT_K_EVICT:
        address = zt_param_by_role(f, ZT_R_PTR);
        if (address != NULL) {
            const zt_field *const size = zt_param_by_role(f, ZT_R_SIZE);
            zo_access access = {.write = 1};
            if (locate(g, r->call->words[address->offset], size ? r->call->words[size->offset] : 1, &access)) {
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

static void enter(zo_graph *g, const zt_call *call, uint32_t *threads, size_t n_threads)
{
    if (call->thread >= n_threads)
        return;
    if (threads[call->thread] == ZO_NONE)
        threads[call->thread] = new_chain(g, false, ZO_NONE);
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
    if (!(g->options.without & ZO_E_PROGRAM))
        g->chains[chain].clock = zo_clock_set(g, g->chains[chain].clock, chain, c.position - 1);
    else
        c.previous_sync = 0;
    c.clock = g->chains[chain].clock;
    c.observed = g->observed;
    reading r;
    begin(&r, g, call);
    if (!(c.flags & ZO_IGNORED))
        c.object = subject(&r);
    const zt_field *const timeout = zt_param_by_role(call->func, ZT_R_TIMEOUT);
    c.timeout = timeout ? call->words[timeout->offset] : 0;
    if (!ZO_PUSH(g, g->calls, g->n_calls, g->room_calls, c) ||
        !ZO_PUSH(g, g->chains[chain].nodes, g->chains[chain].n, g->chains[chain].room, index))
        return;
    if (c.flags & ZO_IGNORED)
        return;
    host_writes(g, index, call);
    zo_rules_enter(g, index, call);
    if (!(c.flags & ZO_FAILED))
        act(&r, index);
    zo_run(g);
}

/* ------------------------------------------------------------------------------------------------------------- leave */

typedef struct flags {
    bool in_order, synchronous, counter_based;
} flags;

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static int see_flag(void *ctx, const zt_node *node)
{
    flags *const f = ctx;
    if (node->kind == ZT_N_STRUCT && strstr(node->type->name, "counter_based") != NULL)
        f->counter_based = true;
    if (node->kind != ZT_N_VALUE || node->type == NULL || node->size != 4)
        return 0;
    uint32_t value;
    memcpy(&value, node->data, 4);
    for (unsigned i = 0; i < node->type->n_values; i++) {
        const zt_enum_value *const v = &node->type->values[i];
        if (node->type->cls == ZT_FLAGS && (value & v->value) && ends_with(v->name, "_FLAG_IN_ORDER"))
            f->in_order = true;
        if (node->type->cls == ZT_ENUM && value == v->value && ends_with(v->name, "_MODE_SYNCHRONOUS"))
            f->synchronous = true;
    }
    return 0;
}

static void created(zo_graph *g, const zt_call *call)
{
    const zt_field *const out = zt_param_by_role(call->func, ZT_R_CREATE), *const desc = zt_param_by_role(call->func, ZT_R_DESC);
    zt_call_memory left = {call, ZT_LEAVE, g->trace};
    const zt_memory memory = zt_memory_of(&left);
    const uint64_t *const handle = out && out->shape == ZT_ONE ? memory.at(memory.ctx, call->words[out->offset], 8) : NULL;
    const uint32_t index =
        handle ? zo_object_index(g, zt_object_of_handle(g->names, &zt_types[out->type], *handle)) : ZO_NONE;
    zo_object *const o = zo_object_at(g, index);
    if (o == NULL)
        return;
    flags f = {0};
    if (desc != NULL) {
        reading r;
        begin(&r, g, call);
        r.walk.visit = see_flag;
        r.walk.ctx = &f;
        zt_walk_param(&r.walk, (unsigned)(desc - call->func->params));
    }
    reading r;
    begin(&r, g, call);
    const uint32_t parent = subject(&r);
    o->parent = parent;
    if (zo_object_at(g, parent) != NULL)
        zo_object_at(g, parent)->children++;
    o->in_order = f.in_order;
    o->synchronous = f.synchronous;
    o->immediate = (call->func->flags & ZT_F_IMMEDIATE) != 0;
    o->counter_based = f.counter_based || (o->is_event && zo_object_at(g, parent) && zo_object_at(g, parent)->counter_based);
    if (o->is_queue || o->immediate)
        carrier_chain(g, index);
}

static uint32_t find_call(const zo_graph *g, uint64_t number)
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

static void leave(zo_graph *g, const zt_call *call)
{
    const uint32_t index = find_call(g, call->number);
    if (index == ZO_NONE || (g->calls[index].flags & ZO_IGNORED) || !call->returned)
        return;
    zo_rules_leave(g, index);
    if (g->calls[index].flags & ZO_FAILED)
        return;
    const int kind = call->func->kind;
    if (kind == ZT_K_CREATE && call->result == 0)
        created(g, call);
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
        *g = (zo_graph){.trace = trace, .names = zt_objects_new(), .budget = 1u << 16};
        g->pageable = (zo_object){.chain = ZO_NONE, .parent = ZO_NONE};
        if (options != NULL)
            g->options = *options;
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

static void free_object(zo_object *o)
{
    free(o->uses);
    free(o->commands);
    free(o->submits);
    free(o->history);
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
    free(g->silent);
    free(g->captured);
    free(g->ranges);
    free(g->conflicts);
    free(g->marks);
    free(g->open);
    free(g->unmet);
    free(g->findings);
    free(g->consequences);
    free(g);
}

zo_point zo_graph_point(const zo_graph *g, uint32_t node)
{
    if (node & ZO_CALL_BIT)
        return (zo_point){g->calls[node & ~ZO_CALL_BIT].number, 0};
    const zo_instance *const x = &g->instances[node];
    return (zo_point){g->calls[g->commands[x->command].call].number, x->execution};
}

uint32_t zo_graph_node(const zo_graph *g, zo_point point)
{
    const uint32_t call = find_call(g, point.call);
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

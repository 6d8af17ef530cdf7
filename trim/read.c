/* SPDX-License-Identifier: MIT */
/* Reads the calls of a trace, by kind and role, and notes what each needs. */
#include <stdio.h>

#include "internal.h"

/* Calls that only need that the object is there, not how it is. */
static bool needs_giver_only(const zt_func *f, const zt_field *field)
{
    return field->role == ZT_R_DESTROY || field->role == ZT_R_FREE || f->kind == ZT_K_RESET || f->kind == ZT_K_HOST_RESET;
}

static void note_contents(zm_needs *n, zm_call *c, const zt_call *call)
{
    for (uint32_t i = 0; i < call->n_contents; i++) {
        const zt_object *const memory = zt_object_of_address(n->names, call->contents[i].addr);
        const zm_stretch s = {memory ? call->contents[i].addr - memory->value : call->contents[i].addr, call->contents[i].len,
                              memory ? zm_object_index(n, memory) : ZM_PAGEABLE};
        c->n_contents += ZM_PUSH(n, n->contents, s);
    }
}

static bool is_fault(const zt_call *call)
{
    return call->returned && strcmp(zt_types[call->func->return_type].name, "ze_result_t") == 0 && zt_is_fault(call->result);
}

static void use(zm_reading *r, zm_call *c, uint32_t object)
{
    zm_needs *const n = r->n;
    for (uint32_t u = 0; u < c->n_uses && u < 64; u++)
        if (n->uses.at[c->uses + c->n_uses - 1 - u] == object)
            return;
    c->n_uses += ZM_PUSH(n, n->uses, object);
}

static bool is_made(const zt_call *call)
{
    const int kind = call->func->kind;
    return !call->nested && (!call->internal || kind == ZT_K_INIT || kind == ZT_K_GET);
}

static void enter(zm_needs *n, const zt_call *call)
{
    const uint32_t index = (uint32_t)n->calls.n;
    const int kind = call->func->kind;
    const bool quiet = kind == ZT_K_CREATE || kind == ZT_K_ALLOC || kind == ZT_K_GET || kind == ZT_K_INIT || kind == ZT_K_EXT_LOOKUP;
    zm_call c = {.number = call->number, .node = zm_node(n, index), .uses = (uint32_t)n->uses.n, .kind = (uint8_t)kind,
                 .contents = (uint32_t)n->contents.n, .carrier = ZM_NONE, .before = ZM_NONE, .last_signal = ZM_NONE,
                 .barrier_signal = ZM_NONE, .told_by = ZM_NONE, .over = ZM_NONE};
    c.flags = (uint8_t)((is_made(call) ? ZM_C_MADE : 0) | (is_fault(call) ? ZM_C_FAULT : 0) | (kind == ZT_K_INIT ? ZM_C_INIT : 0) |
                        (quiet ? ZM_C_QUIET : 0));
    zm_reading r;
    zm_read_begin(&r, n, call);
    zm_read_operands(&r);
    note_contents(n, &c, call);
    for (size_t i = 0; i < r.operands.n; i++) {
        const zm_operand *const o = &r.operands.at[i];
        if (o->inside != ZM_NONE)
            zm_edge_add(n, c.node, o->inside, ZM_E_HARD);
        if (o->object == ZM_NONE)
            continue;
        const bool giver_only = needs_giver_only(call->func, o->field);
        zm_edge_add(n, c.node, giver_only ? n->objects.at[o->object].giver : zm_state_of(n, o->object), ZM_E_HARD);
        if (i < 4096)
            use(&r, &c, o->object);
    }
    if (ZM_PUSH(n, n->calls, c) && (c.flags & ZM_C_MADE))
        zm_act(&r, index, c.node);

    const zt_event event = {ZT_ENTER, call};
    zt_objects_event(n->names, n->trace, &event);
    /* used once more after its end, or under another type, an object gets a new name: it is the same */
    for (size_t i = 0; i < r.operands.n; i++) {
        const zm_operand *const o = &r.operands.at[i];
        const uint32_t now = o->type ? zm_object_index(n, zt_object_of_handle(n->names, o->type, o->value)) : ZM_NONE;
        const zm_object *const old = zm_object_at(n, o->object);
        if (now == ZM_NONE || old == NULL || now == o->object || n->objects.at[now].giver != ZM_NONE)
            continue;
        n->objects.at[now].giver = old->giver;
        n->objects.at[now].base = old->base;
    }
    free(r.operands.at);
}

/* ---------------------------------------------------------------------------------------------------------------- leave */

typedef struct giving {
    zm_needs *n;
    const zt_call *call;
    zm_call *c;
} giving;

static void give(zm_needs *n, zm_call *c, uint32_t index, uint64_t handle)
{
    zm_object *const o = zm_object_at(n, index);
    if (o == NULL || (o->giver != ZM_NONE && !(o->provisional && (c->flags & ZM_C_MADE))))
        return;
    o->giver = o->base = c->node;
    o->provisional = !(c->flags & ZM_C_MADE);
    if (handle != 0)
        zm_remember_handle(n, handle, index);
}

static int see_output(void *ctx, const zt_node *node)
{
    const giving *const g = ctx;
    zm_needs *const n = g->n;
    const zt_field *const f = node->field;
    uint64_t value;
    if (node->kind != ZT_N_VALUE || f == NULL || node->size != 8)
        return 0;
    memcpy(&value, node->data, sizeof(value));
    if (value == 0 || f->role == ZT_R_EXT_ADDRESS)
        return 0;
    uint32_t object = ZM_NONE;
    if (node->type->cls == ZT_HANDLE) {
        object = zm_object_index(n, zt_object_of_handle(n->names, node->type, value));
        give(n, g->c, object, value);
    } else if (f->role == ZT_R_ALLOC && g->call->result == 0) {
        object = zm_object_index(n, zt_object_of_address(n->names, value));
        give(n, g->c, object, 0);
    } else if (f->shape == ZT_ADDRESS || f->inner == ZT_ADDRESS) {
        const zm_inside inside = {value, value + 65536 > value ? value + 65536 : UINT64_MAX, g->c->node};
        if (zt_object_of_address(n->names, value) == NULL)
            ZM_PUSH(n, n->insides, inside);
    }
    if (object != ZM_NONE && (f->role == ZT_R_CREATE || f->role == ZT_R_ALLOC) && g->c->uses + g->c->n_uses == n->uses.n)
        g->c->n_uses += ZM_PUSH(n, n->uses, object);
    return 0;
}

static int see_mode(void *ctx, const zt_node *node)
{
    zm_object *const o = ctx;
    uint32_t value;
    if (node->kind != ZT_N_VALUE || node->type == NULL || node->size != 4)
        return 0;
    memcpy(&value, node->data, 4);
    const unsigned modes = zt_modes(node->type, value);
    o->in_order |= (modes & ZT_M_IN_ORDER) != 0;
    o->synchronous |= (modes & ZT_M_SYNCHRONOUS) != 0;
    return 0;
}

static void created(zm_needs *n, const zt_call *call)
{
    const zt_field *const out = zt_param_by_role(call->func, ZT_R_CREATE), *const desc = zt_param_by_role(call->func, ZT_R_DESC);
    uint64_t value;
    const uint32_t index = out && out->shape == ZT_ONE && zt_word_left(call, out, n->trace, &value) ? zm_object_index(n, zt_object_of_handle(n->names, &zt_types[out->type], value)) : ZM_NONE;
    zm_object *const o = zm_object_at(n, index);
    if (o == NULL)
        return;
    o->immediate = (call->func->flags & ZT_F_IMMEDIATE) != 0;
    if (o->immediate)
        ZM_PUSH(n, n->carriers, index);
    if (desc == NULL)
        return;
    zm_reading r;
    zm_read_begin(&r, n, call);
    r.walk.visit = see_mode;
    r.walk.ctx = o;
    zt_walk_param(&r.walk, (unsigned)(desc - call->func->params));
}

/* A wait or a query that said yes. */
static void told(zm_needs *n, uint32_t index, const zt_call *call)
{
    const zm_call *const c = &n->calls.at[index];
    bool device = true;
    for (uint32_t u = c->uses; u < c->uses + c->n_uses; u++) {
        const zm_object *const o = &n->objects.at[n->uses.at[u]];
        if (o->is_event || o->is_fence)
            zm_told_of_signal(n, index, n->uses.at[u], o->is_fence);
        else if (o->is_queue || o->is_list)
            zm_told_of_carrier(n, index, n->uses.at[u]);
        device &= o->common;
    }
    for (size_t i = 0; device && call->func->kind == ZT_K_SYNC && i < n->carriers.n; i++)
        zm_told_of_carrier(n, index, n->carriers.at[i]);
}

static void leave(zm_needs *n, const zt_call *call)
{
    const uint32_t index = zm_find_call(n, call->number);
    if (index == ZM_NONE || !call->returned)
        return;
    zm_call *const c = &n->calls.at[index];
    const zt_type *const returns = &zt_types[call->func->return_type];
    if (returns->cls == ZT_HANDLE && call->result != 0)
        give(n, c, zm_object_index(n, zt_object_of_handle(n->names, returns, (uint64_t)call->result)), (uint64_t)call->result);
    zt_call_memory in = {.call = call, .phase = ZT_ENTER, .trace = n->trace}, out = {.call = call, .phase = ZT_LEAVE, .trace = n->trace};
    const zt_memory before = zt_memory_of(&in), after = zt_memory_of(&out);
    giving g = {.n = n, .call = call, .c = c};
    const zt_walk walk = {.func = call->func, .words = call->words, .phase = ZT_LEAVE, .result = call->result, .memory = &after,
                          .before = &before, .visit = see_output, .ctx = &g};
    zt_walk_call(&walk);
    if (!(c->flags & ZM_C_MADE) || call->result != 0)
        return;
    if (call->func->kind == ZT_K_CREATE)
        created(n, call);
    else if (call->func->kind == ZT_K_SYNC || call->func->kind == ZT_K_QUERY)
        told(n, index, call);
    else if (c->carrier != ZM_NONE && n->objects.at[c->carrier].synchronous && !(c->flags & ZM_C_COVERED))
        zm_told_at_once(n, index);
}

/* ----------------------------------------------------------------------------------------------------------------- make */

/* Edges by node, and calls by object. */
static void sort_out(zm_needs *n)
{
    n->first = calloc(n->nodes.n + 2, sizeof(*n->first));
    n->first_use = calloc(n->objects.n + 2, sizeof(*n->first_use));
    n->users = malloc((n->uses.n + 1) * sizeof(*n->users));
    zm_edge *const sorted = malloc((n->edges.n + 1) * sizeof(*sorted));
    if (n->first == NULL || n->first_use == NULL || n->users == NULL || sorted == NULL) {
        free(sorted);
        n->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < n->edges.n; i++)
        n->first[n->edges.at[i].from + 2]++;
    for (size_t i = 2; i < n->nodes.n + 2; i++)
        n->first[i] += n->first[i - 1];
    for (size_t i = 0; i < n->edges.n; i++)
        sorted[n->first[n->edges.at[i].from + 1]++] = n->edges.at[i];
    free(n->edges.at);
    n->edges.at = sorted;
    for (size_t i = 0; i < n->uses.n; i++)
        n->first_use[n->uses.at[i] + 2]++;
    for (size_t i = 2; i < n->objects.n + 2; i++)
        n->first_use[i] += n->first_use[i - 1];
    for (size_t c = 0; c < n->calls.n; c++)
        for (uint32_t u = 0; u < n->calls.at[c].n_uses; u++)
            n->users[n->first_use[n->uses.at[n->calls.at[c].uses + u] + 1]++] = (uint32_t)c;
}

static int read_all(zm_needs *n)
{
    zt_events *events = NULL;
    zt_event event;
    int status = zt_events_open(&events, n->trace);
    while (status == ZT_OK && !n->out_of_memory && (status = zt_events_next(events, &event)) == ZT_OK) {
        const uint64_t last = n->calls.n ? n->calls.at[n->calls.n - 1].number : 0;
        if (event.phase == ZT_ENTER) { /* a number that does not go up is damage: zm_trim passes over it as well */
            if (event.call->number > last)
                enter(n, event.call);
        } else {
            zt_objects_event(n->names, n->trace, &event);
            leave(n, event.call);
        }
    }
    zt_events_close(events);
    return status;
}

int zm_needs_make(zm_needs **out, zt_trace *trace, zt_error *error)
{
    *out = NULL;
    error->text[0] = 0;
    zm_needs *const n = calloc(1, sizeof(*n));
    int status = ZT_E_MEMORY;
    zt_trace_seek(trace, 1);
    if (n != NULL) {
        *n = (zm_needs){.trace = trace, .names = zt_objects_new()};
        n->pageable = (zm_object){.giver = ZM_NONE, .base = ZM_NONE, .state = ZM_NONE, .signalled = ZM_NONE};
        zm_node(n, ZM_NONE); /* node 0 stands in for those that there was no memory for */
        status = n->names != NULL ? read_all(n) : ZT_E_MEMORY;
        if (status != ZT_E_MEMORY && !n->out_of_memory)
            sort_out(n);
        if (n->out_of_memory)
            status = ZT_E_MEMORY;
    }
    if (status == ZT_E_MEMORY || (status != ZT_END && n->calls.n == 0)) {
        error->status = status;
        snprintf(error->text, sizeof(error->text), status == ZT_E_MEMORY ? "not enough memory for what its calls need" : "no call of the trace can be read");
        zm_needs_free(n);
        return status;
    }
    *out = n;
    return ZT_OK;
}

static void free_object(zm_object *o)
{
    free(o->settings.at);
    free(o->commands.at);
    free(o->open.at);
    free(o->loose.at);
    free(o->signallers.at);
    free(o->waiting.at);
    free(o->writes.at);
    free(o->blocks.at);
}

void zm_needs_free(zm_needs *n)
{
    if (n == NULL)
        return;
    for (size_t i = 0; i < n->objects.n; i++)
        free_object(&n->objects.at[i]);
    free_object(&n->pageable);
    zt_objects_free(n->names);
    free(n->objects.at);
    free(n->calls.at);
    free(n->nodes.at);
    free(n->edges.at);
    free(n->uses.at);
    free(n->contents.at);
    free(n->accesses.at);
    free(n->waits.at);
    free(n->before.at);
    free(n->insides.at);
    free(n->carriers.at);
    free(n->stack.at);
    free(n->by_handle);
    free(n->first);
    free(n->first_use);
    free(n->users);
    free(n);
}

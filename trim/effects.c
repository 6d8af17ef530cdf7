/* SPDX-License-Identifier: MIT */
/* What a call does to its objects, by its kind and the roles of its parameters. */
#include "internal.h"

/* ----------------------------------------------------------------------------------------------------- what objects are */

uint32_t zm_state_of(zm_needs *n, uint32_t object)
{
    zm_object *const o = &n->objects.at[object];
    if (o->state == ZM_NONE && o->settings.n > 0) {
        o->state = zm_node(n, ZM_NONE);
        zm_edge_add(n, o->state, o->base, ZM_E_HARD);
        for (size_t i = 0; i < o->settings.n; i++)
            zm_edge_add(n, o->state, o->settings.at[i].node, ZM_E_HARD);
    }
    return o->state != ZM_NONE ? o->state : o->base;
}

/*
 * Which earlier setting a new one replaces: one of the same function for the same memory; of the same argument, where the value is a
 * blob; any of a kernel's properties. Else only one with the same arguments altogether.
 */
static uint64_t setting_key(const zm_reading *r, bool of_kernel)
{
    const zt_func *const f = r->call->func;
    const zt_field *blob = NULL;
    for (unsigned i = 0; i < f->n_params; i++)
        if (f->params[i].shape == ZT_BLOB)
            blob = &f->params[i];
    uint64_t key = (uint64_t)(uintptr_t)f;
    for (unsigned i = 0; i < f->n_params; i++) {
        const zt_field *const p = &f->params[i];
        const bool scalar = p->shape == ZT_VALUE && zt_types[p->type].cls != ZT_HANDLE;
        const bool counts = blob != NULL && blob->count.op == ZT_X_FIELD && blob->count.a == (int)i;
        if (p->shape == ZT_ADDRESS || p->role == ZT_R_SIZE || (scalar && !counts && (blob != NULL || !of_kernel)))
            key = (key ^ r->call->words[p->offset]) * 0x9e3779b97f4a7c15ull + i;
    }
    return key;
}

static void set(zm_reading *r, uint32_t node)
{
    zm_needs *const n = r->n;
    const uint32_t about = zm_subject(r);
    if (about == ZM_NONE)
        return;
    zm_object *const o = &n->objects.at[about];
    zm_setting s = {setting_key(r, zm_object_by_role(r, ZT_R_KERNEL) != ZM_NONE), node, ZM_NONE};
    for (size_t k = 0; k < r->operands.n; k++) /* what a kernel's argument points to */
        if (r->operands.at[k].type == NULL && r->operands.at[k].field->shape == ZT_BLOB)
            s.refers = r->operands.at[k].object;
    size_t i = 0;
    while (i < o->settings.n && o->settings.at[i].key != s.key)
        i++;
    if (i < o->settings.n)
        o->settings.at[i] = s;
    else
        ZM_PUSH(n, o->settings, s);
    o->state = ZM_NONE;
}

/* -------------------------------------------------------------------------------------------------------------- commands */

static void add_access(zm_reading *r, zm_command *c, const zt_field *f)
{
    zm_needs *const n = r->n;
    const int64_t bytes = zt_eval_param(&r->walk, &f->count);
    const uint64_t address = r->call->words[f->offset];
    const zt_object *const memory = zt_object_of_address(n->names, address);
    zm_access a = {.object = memory ? zm_object_index(n, memory) : ZM_PAGEABLE, .call = c->call, .read = (f->access & ZT_IN) != 0,
                   .write = (f->access & ZT_OUT) != 0, .exact = bytes > 0 && f->count.op != ZT_X_REGION};
    if (address == 0 || bytes == 0 || a.object == ZM_NONE)
        return;
    a.lo = memory ? address - memory->value : address;
    a.hi = bytes > 0 && (uint64_t)bytes < UINT64_MAX - a.lo ? a.lo + (uint64_t)bytes : UINT64_MAX;
    c->n_accesses += ZM_PUSH(n, n->accesses, a);
}

static void add_whole(zm_needs *n, zm_command *c, uint32_t object)
{
    const zm_access a = {.hi = UINT64_MAX, .object = object, .call = c->call, .read = 1, .write = 1};
    c->n_accesses += ZM_PUSH(n, n->accesses, a);
}

static zm_command command_of(zm_reading *r, uint32_t call)
{
    zm_needs *const n = r->n;
    const zt_func *const f = r->call->func;
    zm_command c = {.call = call, .accesses = (uint32_t)n->accesses.n, .waits = (uint32_t)n->waits.n,
                    .signal = zm_object_by_role(r, ZT_R_SIGNAL), .reset = zm_object_by_role(r, ZT_R_EVENT),
                    .barrier = (f->flags & ZT_F_BARRIER) != 0};
    for (unsigned i = 0; i < f->n_params; i++)
        if (f->params[i].shape == ZT_ADDRESS && f->params[i].access != 0)
            add_access(r, &c, &f->params[i]);
    for (size_t i = 0; i < r->operands.n; i++) {
        const zm_operand *const o = &r->operands.at[i];
        const zm_object *const object = zm_object_at(n, o->object);
        if (object == NULL || o->type == NULL || o->field->role == ZT_R_SIGNAL || o->field->role == ZT_R_EVENT)
            continue;
        if (object->is_event)
            c.n_waits += ZM_PUSH(n, n->waits, o->object);
        else if (o->field->role == ZT_R_NONE && !object->common && !object->is_list)
            add_whole(n, &c, o->object); /* an image */
        for (size_t k = 0; k < object->settings.n; k++) /* a kernel */
            if (object->settings.at[k].refers != ZM_NONE)
                add_whole(n, &c, object->settings.at[k].refers);
    }
    c.holds = c.n_waits > 0 && (c.barrier || (zt_param_by_role(f, ZT_R_WAITS) != NULL && zt_param_by_role(f, ZT_R_SIGNAL) == NULL));
    return c;
}

static void appended(zm_reading *r, uint32_t call, uint32_t node)
{
    zm_needs *const n = r->n;
    const uint32_t index = zm_object_by_role(r, ZT_R_LIST);
    zm_object *const list = zm_object_at(n, index);
    if (list == NULL)
        return;
    if (list->immediate) {
        const zm_command c = command_of(r, call);
        zm_submitted(n, call, index, &c);
        return;
    }
    if (list->contents == ZM_NONE)
        zm_list_begins(n, list);
    if (r->call->result != 0) { /* it may have failed since the list was closed */
        zm_edge_add(n, node, list->contents, ZM_E_LIST);
        return;
    }
    zm_edge_add(n, list->contents, node, ZM_E_COMMAND);
    zm_edge_add(n, node, list->submits, ZM_E_SUBMIT);
    const zm_command c = command_of(r, call);
    ZM_PUSH(n, zm_object_at(n, index)->commands, c);
}

static void executed(zm_reading *r, uint32_t call, uint32_t node)
{
    zm_needs *const n = r->n;
    uint32_t carrier = zm_object_by_role(r, ZT_R_QUEUE);
    if (carrier == ZM_NONE)
        carrier = zm_object_by_role(r, ZT_R_LIST);
    if (carrier == ZM_NONE)
        return;
    const bool made = r->call->result == 0 || !r->call->returned;
    zm_command own = command_of(r, call);
    const uint32_t signal = own.signal;
    own.signal = own.reset = ZM_NONE;
    if (made)
        zm_submitted(n, call, carrier, own.n_waits > 0 ? &own : NULL);
    for (size_t i = 0; i < r->operands.n; i++) {
        zm_object *const list = zm_object_at(n, r->operands.at[i].field->role == ZT_R_LISTS ? r->operands.at[i].object : ZM_NONE);
        if (list == NULL || list->contents == ZM_NONE)
            continue;
        zm_edge_add(n, node, list->contents, ZM_E_LIST);
        zm_edge_add(n, list->submits, node, ZM_E_HARD);
        for (size_t k = 0; made && k < list->commands.n; k++)
            zm_submitted(n, call, carrier, &list->commands.at[k]);
    }
    if (made && signal != ZM_NONE)
        zm_signalled(n, call, signal, node);
    if (made && zm_object_by_role(r, ZT_R_FENCE) != ZM_NONE)
        zm_signalled(n, call, zm_object_by_role(r, ZT_R_FENCE), node);
}

/* ---------------------------------------------------------------------------------------------------------------- enter */

void zm_act(zm_reading *r, uint32_t call, uint32_t node)
{
    zm_needs *const n = r->n;
    const bool made = r->call->result == 0 || !r->call->returned;
    zm_object *o;
    uint32_t about;
    switch (r->call->func->kind) {
    case ZT_K_APPEND:
        appended(r, call, node);
        break;
    case ZT_K_EXECUTE:
        executed(r, call, node);
        break;
    case ZT_K_CLOSE:
        o = zm_object_at(n, zm_object_by_role(r, ZT_R_LIST));
        if (o != NULL && !o->immediate) {
            if (o->contents == ZM_NONE)
                zm_list_begins(n, o);
            zm_edge_add(n, made ? o->contents : node, made ? node : o->contents, made ? ZM_E_HARD : ZM_E_LIST);
        }
        break;
    case ZT_K_RESET:
        o = zm_object_at(n, zm_object_by_role(r, ZT_R_LIST));
        if (o != NULL && made) {
            zm_list_begins(n, o);
            o->base = o->state = node;
            o->settings.n = 0;
        }
        break;
    case ZT_K_HOST_SIGNAL:
        if (made)
            zm_signalled(n, call, zm_object_by_role(r, ZT_R_EVENT), node);
        break;
    case ZT_K_HOST_RESET:
        about = zm_object_by_role(r, ZT_R_EVENT);
        if (made)
            zm_unsignalled(n, about != ZM_NONE ? about : zm_object_by_role(r, ZT_R_FENCE), node);
        break;
    case ZT_K_DESTROY:
    case ZT_K_FREE:
        o = zm_object_at(n, zm_ended(r));
        if (o != NULL && o->giver != ZM_NONE)
            zm_edge_add(n, o->giver, node, ZM_E_END);
        break;
    case ZT_K_MAP:
    case ZT_K_UNMAP:
    case ZT_K_SET:
    case ZT_K_RESIDENT:
    case ZT_K_EVICT:
    case ZT_K_OTHER:
        if (made)
            set(r, node);
        break;
    default:
        break;
    }
}


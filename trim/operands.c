/* SPDX-License-Identifier: MIT */
/* The handles and addresses among a call's arguments, and the objects that they name at that moment. */
#include "internal.h"

void zm_read_begin(zm_reading *r, zm_needs *n, const zt_call *call)
{
    *r = (zm_reading){.n = n, .call = call, .in = {call, ZT_ENTER, n->trace}};
    r->memory = zt_memory_of(&r->in);
    r->walk = (zt_walk){.func = call->func, .words = call->words, .phase = ZT_ENTER, .memory = &r->memory};
}

static bool is_kind(const zt_object *o, const char *kind)
{
    return strcmp(o->kind, kind) == 0;
}

uint32_t zm_object_index(zm_needs *n, const zt_object *base)
{
    if (base == NULL)
        return ZM_NONE;
    while (n->objects.n <= base->index) {
        const zt_object *const *list;
        zt_objects_list(n->names, &list);
        const zt_object *const next = list[n->objects.n];
        const zm_object o = {.giver = ZM_NONE, .base = ZM_NONE, .state = ZM_NONE, .contents = ZM_NONE, .submits = ZM_NONE,
                             .signalled = ZM_NONE, .hold = ZM_NONE, .is_event = is_kind(next, "event"), .is_fence = is_kind(next, "fence"),
                             .is_list = is_kind(next, "list"), .is_queue = is_kind(next, "queue"),
                             .common = is_kind(next, "driver") || is_kind(next, "device") || is_kind(next, "context")};
        if (!ZM_PUSH(n, n->objects, o))
            return ZM_NONE;
        if (o.is_queue && !ZM_PUSH(n, n->carriers, (uint32_t)n->objects.n - 1))
            return ZM_NONE;
    }
    return base->index;
}

/* ------------------------------------------------------------------------------------- handles whatever their type is */

static size_t slot_of(const zm_needs *n, uint64_t handle)
{
    const zt_object *const *list;
    size_t at = (size_t)(handle * 0x9e3779b97f4a7c15ull >> 20) & (n->n_by_handle - 1);
    zt_objects_list(n->names, &list);
    while (n->by_handle[at] != ZM_NONE && list[n->by_handle[at]]->value != handle)
        at = (at + 1) & (n->n_by_handle - 1);
    return at;
}

void zm_remember_handle(zm_needs *n, uint64_t handle, uint32_t object)
{
    if (n->used_by_handle * 2 >= n->n_by_handle) {
        const zt_object *const *list;
        uint32_t *const old = n->by_handle;
        const size_t room = n->n_by_handle, more = room ? room * 2 : 256;
        uint32_t *const bigger = malloc(more * sizeof(*bigger));
        if (bigger == NULL) {
            n->out_of_memory = true;
            return;
        }
        memset(bigger, 0xff, more * sizeof(*bigger));
        n->by_handle = bigger;
        n->n_by_handle = more;
        zt_objects_list(n->names, &list);
        for (size_t i = 0; i < room; i++)
            if (old[i] != ZM_NONE)
                bigger[slot_of(n, list[old[i]]->value)] = old[i];
        free(old);
    }
    uint32_t *const slot = &n->by_handle[slot_of(n, handle)];
    n->used_by_handle += *slot == ZM_NONE;
    *slot = object;
}

/* sysman takes a core device's handle as its own, for one. */
static uint32_t find_handle(zm_needs *n, const zt_type *type, uint64_t handle)
{
    const uint32_t found = zm_object_index(n, zt_object_of_handle(n->names, type, handle));
    if (found != ZM_NONE && n->objects.at[found].giver != ZM_NONE)
        return found;
    const uint32_t other = n->n_by_handle ? n->by_handle[slot_of(n, handle)] : ZM_NONE;
    return other != ZM_NONE ? other : found;
}

/* ------------------------------------------------------------------------------------------------------------ operands */

static void add_operand(zm_reading *r, const zt_field *field, const zt_type *type, uint64_t value)
{
    zm_operand o = {field, type, value, ZM_NONE, ZM_NONE};
    zm_needs *const n = r->n;
    if (type != NULL)
        o.object = find_handle(n, type, value);
    if (o.object == ZM_NONE)
        o.object = zm_object_index(n, zt_object_of_address(n->names, value));
    for (size_t i = n->insides.n; o.object == ZM_NONE && o.inside == ZM_NONE && i > 0 && i + 1024 > n->insides.n; i--)
        if (value >= n->insides.at[i - 1].lo && value < n->insides.at[i - 1].hi)
            o.inside = n->insides.at[i - 1].node;
    if (type != NULL || o.object != ZM_NONE || o.inside != ZM_NONE)
        ZM_PUSH(n, r->operands, o);
}

static int see_operand(void *ctx, const zt_node *node)
{
    zm_reading *const r = ctx;
    const zt_field *const f = node->field;
    uint64_t value = 0;
    if (node->kind == ZT_N_POINTER) {
        if (r->depth >= sizeof(r->through) / sizeof(r->through[0]))
            return -ZT_E_LIMIT;
        r->through[r->depth++] = f;
        r->outputs += f != NULL && (f->dir & ZT_OUT);
    } else if (node->kind == ZT_N_POINTER_END && r->depth > 0) {
        const zt_field *const behind = r->through[--r->depth];
        r->outputs -= behind != NULL && (behind->dir & ZT_OUT);
    }
    if (f == NULL || node->size != 8 || node->data == NULL || r->outputs > 0)
        return 0;
    const bool is_element = r->depth > 0 && r->through[r->depth - 1] == f;
    const int shape = is_element ? f->inner : f->shape;
    memcpy(&value, node->data, sizeof(value));
    if (value == 0)
        return 0;
    if (node->kind == ZT_N_VALUE && shape == ZT_VALUE && node->type != NULL && node->type->cls == ZT_HANDLE)
        add_operand(r, f, node->type, value);
    else if (node->kind == ZT_N_VALUE && shape == ZT_ADDRESS)
        add_operand(r, f, NULL, value);
    else if (node->kind == ZT_N_BYTES && f->shape == ZT_BLOB) { /* arguments of kernels hold handles and addresses */
        const uint32_t other = r->n->n_by_handle ? r->n->by_handle[slot_of(r->n, value)] : ZM_NONE;
        const zm_operand o = {f, NULL, value, other, ZM_NONE};
        if (other != ZM_NONE)
            ZM_PUSH(r->n, r->operands, o);
        else
            add_operand(r, f, NULL, value);
    }
    return 0;
}

static const zm_operand *by_role(const zm_reading *r, enum zt_role role)
{
    for (size_t i = 0; i < r->operands.n; i++)
        if (r->operands.at[i].field->role == role && r->operands.at[i].object != ZM_NONE)
            return &r->operands.at[i];
    return NULL;
}

uint32_t zm_object_by_role(const zm_reading *r, enum zt_role role)
{
    const zm_operand *const o = by_role(r, role);
    return o ? o->object : ZM_NONE;
}

/* A table of a function may give two parameters this role: the object is the last. */
uint32_t zm_ended(const zm_reading *r)
{
    uint32_t found = ZM_NONE;
    for (size_t i = 0; i < r->operands.n; i++)
        if (r->operands.at[i].field->role == ZT_R_DESTROY || r->operands.at[i].field->role == ZT_R_FREE)
            found = r->operands.at[i].object;
    return found;
}

/* What a call that sets something is about. */
uint32_t zm_subject(const zm_reading *r)
{
    uint32_t common = ZM_NONE;
    const zm_operand *const memory = by_role(r, ZT_R_PTR);
    if (memory != NULL)
        return memory->object;
    for (size_t i = 0; i < r->operands.n; i++) {
        const uint32_t object = r->operands.at[i].object;
        if (object != ZM_NONE && !r->n->objects.at[object].common)
            return object;
        if (object != ZM_NONE)
            common = object;
    }
    return common;
}

void zm_read_operands(zm_reading *r)
{
    r->walk.visit = see_operand;
    r->walk.ctx = r;
    zt_walk_call(&r->walk); /* stops where arguments are beyond all limits */
}

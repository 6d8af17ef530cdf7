/* SPDX-License-Identifier: MIT */
/* What of a call is compared, by kind: values as they are, handles and addresses as objects, host pointers only for being there. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "internal.h"

#define HOST 0x686f7374u /* an address that is in no allocation: where it lies means nothing */

static uint64_t load(const void *p, uint64_t size)
{
    uint64_t value = 0;
    memcpy(&value, p, size > 8 ? 8 : size);
    return value;
}

static bool varies(zd_arguments *a, const zt_node *node)
{
    const size_t at = ((uintptr_t)node->field / 8 * 31 + (uintptr_t)node->func / 8 * 7 + (uintptr_t)node->type / 8) % 256;
    if (a->known[at].func != node->func || a->known[at].field != node->field || a->known[at].type != node->type) {
        a->known[at].func = node->func;
        a->known[at].field = node->field;
        a->known[at].type = node->type;
        a->known[at].varies = zt_varies(node);
    }
    return a->known[at].varies;
}

static void take(zd_arguments *a, uint64_t x)
{
    a->hash = zd_mix(a->hash, x);
}

/* An operand of ENTER is kept in its place; what LEAVE gives is kept apart, since calls return in another order. */
static void object(zd_arguments *a, uint32_t index)
{
    if (a->phase == ZT_LEAVE) {
        if (a->index != ZD_NONE && !zd_add_extra(&a->into->outs, (zd_extra){a->index, index, zd_mix(a->hash, ++a->outs)}))
            a->failed = true;
        return;
    }
    if (!zd_room(&a->operands, a->n_operands, &a->operands_room, sizeof(*a->operands))) {
        a->failed = true;
        return;
    }
    a->operands[a->n_operands++] = index;
}

static void candidate(zd_arguments *a, const zt_type *type, uint64_t value)
{
    if (!zd_room(&a->candidates.at, a->candidates.n, &a->candidates.room, sizeof(*a->candidates.at)))
        a->failed = true;
    else
        a->candidates.at[a->candidates.n++] = (zd_candidate){type, value};
}

static void see_address(zd_arguments *a, const zt_node *node, uint64_t value)
{
    const zt_field *const f = node->field;
    uint64_t offset = HOST;
    if (value == 0) {
        take(a, 0);
        return;
    }
    if (a->names == NULL) {
        candidate(a, NULL, value);
        return;
    }
    const uint32_t index = zd_names_address(a->names, value, &offset);
    if (index != ZD_NONE && f != NULL && (f->access & ZT_OUT) && a->call->func->kind == ZT_K_APPEND && varies(a, node))
        zd_names_holds_times(a->names, index);
    take(a, offset);
    object(a, index);
}

static void see_handle(zd_arguments *a, const zt_node *node, uint64_t value, bool parameter)
{
    if (value == 0) {
        take(a, 0);
        return;
    }
    if (a->names == NULL) {
        candidate(a, node->type, value);
        return;
    }
    const bool out = a->phase == ZT_LEAVE;
    const uint32_t index = out || parameter ? zd_names_set(a->names, node->type, value, out ? a->index : ZD_NONE,
                                                           out && node->field != NULL && node->field->role == ZT_R_CREATE)
                                            : zd_names_handle(a->names, node->type, value);
    take(a, node->type->base);
    object(a, index);
}

static bool is_output(const zd_arguments *a)
{
    return a->phase == ZT_LEAVE || (a->depth > 0 && a->depth <= 48 && a->through[a->depth - 1].written);
}

static void see_value(zd_arguments *a, const zt_node *node)
{
    const zt_field *const f = node->field;
    const bool inner = a->depth > 0 && a->depth <= 48 && a->through[a->depth - 1].field == f && f != NULL;
    const uint8_t shape = f == NULL ? ZT_VALUE : inner ? f->inner : f->shape;
    const uint64_t value = load(node->data, node->size);
    if (shape == ZT_ADDRESS) {
        if (f->role == ZT_R_EXT_ADDRESS)
            take(a, value != 0);
        else if (f->role == ZT_R_ALLOC && value != 0 && a->phase == ZT_LEAVE && a->names != NULL && a->call->result == 0) {
            const zt_field *const size = zt_param_by_role(a->call->func, ZT_R_SIZE);
            object(a, zd_names_allocated(a->names, value, size ? load(a->call->words + size->offset, size->size) : 0, a->index));
        } else {
            see_address(a, node, value);
        }
    } else if (shape != ZT_VALUE) {
        take(a, value != 0); /* a pointer that is not followed */
    } else if (node->type->cls == ZT_HANDLE && node->size == 8) {
        see_handle(a, node, value, a->depth == 0 && node->addr == 0);
    } else if (node->type->cls == ZT_POINTER) {
        see_address(a, node, value);
    } else if (f != NULL && f->role == ZT_R_TIMEOUT && a->side->options->is_replay) {
        take(a, 1);
    } else if (node->type->cls == ZT_FUNCTION || (is_output(a) && varies(a, node)) ||
               (f != NULL && f->note != NULL && strstr(f->note, "file_descriptor") != NULL)) {
        take(a, 1);
    } else {
        take(a, value);
    }
}

static void see_bytes(zd_arguments *a, const zt_node *node)
{
    if (is_output(a) && node->field != NULL && node->type != NULL && varies(a, node)) {
        take(a, 1);
        return;
    }
    uint64_t offset;
    const uint64_t value = node->size == 8 ? load(node->data, 8) : 0;
    if (value != 0 && a->phase == ZT_ENTER) { /* a kernel's argument, perhaps a pointer */
        if (a->names == NULL) {
            candidate(a, NULL, value);
            take(a, value);
        } else {
            const uint32_t index = zd_names_address(a->names, value, &offset);
            object(a, index);
            take(a, index == ZD_NONE ? value : offset);
        }
        return;
    }
    take(a, node->size);
    if (a->names != NULL || a->leaf != NULL)
        take(a, XXH3_64bits(node->data, node->size));
}

static int see_leaf(zd_arguments *a, const zt_node *node)
{
    const size_t n = a->candidates.n;
    if (a->leaf != NULL)
        a->hash = 0;
    if (node->kind == ZT_N_VALUE)
        see_value(a, node);
    else
        see_bytes(a, node);
    if (a->leaf != NULL)
        a->leaf(a->ctx, node, a->candidates.n > n);
    return a->failed ? -ZT_E_MEMORY : 0;
}

static int see(void *ctx, const zt_node *node)
{
    zd_arguments *const a = ctx;
    const bool filled = a->depth > 0 && a->through[(a->depth < 48 ? a->depth : 48) - 1].filled;
    switch (node->kind) {
    case ZT_N_TARGET:
    case ZT_N_STRUCT_END:
    case ZT_N_ARRAY_END:
    case ZT_N_CHAIN_END:
        break;
    case ZT_N_POINTER:
        if (a->depth < 48) {
            const bool follows = node->field != NULL && node->field->shape != ZT_PNEXT;
            a->through[a->depth].field = node->field;
            a->through[a->depth].filled = filled || (follows && a->phase == ZT_ENTER && !(node->field->dir & ZT_IN));
            a->through[a->depth].written = follows && (node->field->dir & ZT_OUT);
        }
        a->depth++;
        take(a, node->count);
        if (node->count > 0)
            break;
        a->depth--;
        return 1; /* nothing inside, and no end */
    case ZT_N_POINTER_END:
        a->depth -= a->depth > 0;
        break;
    case ZT_N_STRUCT:
        take(a, (uint64_t)node->type->stype);
        break;
    case ZT_N_ARRAY:
        take(a, node->count);
        break;
    case ZT_N_UNKNOWN:
        take(a, load(node->data, 4));
        break;
    case ZT_N_VALUE:
    case ZT_N_TEXT:
    case ZT_N_BYTES:
        return filled ? 0 : see_leaf(a, node);
    default:
        take(a, node->kind);
        break;
    }
    if (a->shape != NULL)
        a->shape(a->ctx, node);
    return a->failed ? -ZT_E_MEMORY : 0;
}

void zd_walk(zd_arguments *a, const zt_call *call, uint32_t index, int phase)
{
    zt_call_memory in = {.call = call, .phase = ZT_ENTER, .trace = a->side->trace}, out = {.call = call, .phase = ZT_LEAVE, .trace = a->side->trace};
    const zt_memory before = zt_memory_of(&in), after = zt_memory_of(&out);
    a->call = call;
    a->index = index;
    a->phase = phase;
    a->depth = a->outs = 0;
    a->n_operands = a->candidates.n = 0;
    const zt_walk walk = {.func = call->func, .words = call->words, .phase = phase, .result = call->result,
                          .memory = phase == ZT_LEAVE ? &after : &before, .before = phase == ZT_LEAVE ? &before : NULL, .visit = see, .ctx = a};
    if (zt_walk_call(&walk) < 0)
        take(a, ZT_E_LIMIT); /* hostile arguments: compared as far as they go */
}

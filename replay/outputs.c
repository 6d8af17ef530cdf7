/* SPDX-License-Identifier: MIT */
/* What a call has written: new objects and memory, and values to compare, in the order of the walk. */
#include "program.h"

#include <stdlib.h>

/* A loader counts the drivers of a machine, a replay has one. */
static bool counts_drivers(const zt_func *func)
{
    for (unsigned i = 0; i < func->n_params; i++) {
        const char *const object = zt_types[func->params[i].type].object;
        if (func->params[i].role == ZT_R_GET && object != NULL && strcmp(object, "driver") == 0)
            return true;
    }
    return false;
}

static bool varies(const zt_node *node)
{
    return zt_varies(node) || (node->field != NULL && node->field->role == ZT_R_COUNT && counts_drivers(node->func));
}

static bool add_out(builder *b, const zt_node *node, zr_out out)
{
    out.live = zr_place_of(b, node->data);
    if (out.live == NULL)
        return true; /* the driver's own memory */
    if (!zr_grow((void **)&b->list, b->n_list, &b->room_list, sizeof(*b->list)))
        return false;
    const uint8_t *const shared = b->call->thread < b->plan->n_scratch ? b->plan->scratch[b->call->thread] : NULL;
    out.clear = out.kind <= ZR_OUT_MEM && shared != NULL && (uint8_t *)out.live >= shared &&
                (uint8_t *)out.live < shared + ZR_SCRATCH;
    out.field = node->field;
    out.type = node->type;
    out.recorded = node->data;
    out.size = node->size;
    out.element = (uint32_t)node->index;
    b->list[b->n_list++] = out;
    return true;
}

static uint64_t size_of_new_memory(const builder *b)
{
    const zt_field *const size = zt_param_by_role(b->call->func, ZT_R_SIZE);
    if (size != NULL && size->shape == ZT_VALUE)
        return b->walk->words[size->offset];
    for (unsigned i = 0; i < b->call->func->n_params; i++) {
        const zt_field *const p = &b->call->func->params[i];
        if (strcmp(p->name, "pSize") == 0 && p->shape == ZT_ONE) {
            const zt_expr e = {.op = ZT_X_DEREF, .a = (int16_t)i};
            const int64_t n = zt_eval_param(b->walk, &e);
            return n > 0 ? (uint64_t)n : 1;
        }
    }
    return 1;
}

static bool leave_value(builder *b, const zt_node *node)
{
    zr_objects *const o = &b->plan->objects;
    const zt_field *const f = node->field;
    const bool outer = zr_is_outer(b, node);
    const uint8_t shape = outer ? f->shape : f->inner;
    const uint64_t value = zr_load(node->data, node->size), number = b->call->number;
    if (zr_in_words(b, node->data) || (outer && shape != ZT_VALUE && shape != ZT_ADDRESS) || shape == ZT_OPAQUE)
        return true;
    if (shape == ZT_ADDRESS) {
        if (value == 0 || f->role == ZT_R_EXT_ADDRESS)
            return true;
        uint32_t index = f->role == ZT_R_ALLOC ? ZR_NONE : zr_mem_find(o, value);
        const bool created = index == ZR_NONE;
        if (created)
            index = zr_mem_add(o, value, size_of_new_memory(b), number, f->role != ZT_R_ALLOC);
        return index != ZR_NONE && add_out(b, node, (zr_out){.kind = ZR_OUT_MEM, .index = index, .created = created});
    }
    if (node->type->cls == ZT_HANDLE && node->size == 8) {
        if (value == 0)
            return true;
        uint32_t index = f->role == ZT_R_CREATE ? ZR_NONE : zr_object_find(o, node->type->base, value);
        if (index != ZR_NONE && (o->objects[index].dead || o->objects[index].type != node->type->base))
            index = ZR_NONE;
        const bool created = index == ZR_NONE;
        if (created)
            index = zr_object_add(o, node->type->base, value, number);
        if (index != ZR_NONE && created && (b->call->func->flags & ZT_F_IMMEDIATE))
            o->objects[index].immediate = 1;
        return index != ZR_NONE &&
               add_out(b, node, (zr_out){.kind = ZR_OUT_OBJECT, .index = index, .created = created});
    }
    if (node->type->cls == ZT_POINTER || node->type->cls == ZT_FUNCTION)
        return true;
    return add_out(b, node, (zr_out){.kind = ZR_OUT_VALUE, .vary = varies(node)});
}

static int leave_visit(void *ctx, const zt_node *node)
{
    builder *const b = ctx;
    bool ok = true;
    const int status = zr_follow(b, node);
    if (status != 0)
        return status;
    switch (node->kind) {
    case ZT_N_VALUE:
        if (node->field != NULL && node->type != NULL)
            ok = leave_value(b, node);
        break;
    case ZT_N_TEXT:
    case ZT_N_BYTES:
        if (!zr_in_words(b, node->data) && node->field != NULL)
            ok = add_out(b, node,
                         (zr_out){.kind = node->kind == ZT_N_TEXT ? ZR_OUT_TEXT : ZR_OUT_BYTES, .vary = varies(node)});
        break;
    default:
        break;
    }
    return ok ? 0 : -ZT_E_MEMORY;
}

int zr_program_leave(zr_plan *plan, zr_raw *raw)
{
    zr_call *const call = &plan->calls[raw->index];
    if (call->id == ZR_NONE || (call->flags & ZR_SKIP))
        return 0;
    const zt_memory memory = zr_memory_leave(raw), before = zr_memory_enter(raw);
    builder b = {.plan = plan, .raw = raw, .call = call};
    const zt_walk walk = {.func = call->func,
                          .words = raw->words,
                          .phase = ZT_LEAVE,
                          .result = call->result,
                          .memory = &memory,
                          .before = &before,
                          .visit = leave_visit,
                          .ctx = &b};
    b.walk = &walk;
    if ((call->flags & ZR_HANDLE_RESULT) && call->result != 0) {
        const uint16_t type = zt_types[call->func->return_type].base;
        call->result_object = zr_object_find(&plan->objects, type, (uint64_t)call->result);
        if (call->result_object == ZR_NONE)
            call->result_object = zr_object_add(&plan->objects, type, (uint64_t)call->result, call->number);
    }
    int status = zt_walk_call(&walk);
    if (status == 0 && b.n_list > 0) {
        call->outs = zr_alloc(&plan->arena, b.n_list * sizeof(*call->outs));
        if (call->outs == NULL)
            status = -ZT_E_MEMORY;
        else
            memcpy(call->outs, b.list, b.n_list * sizeof(*call->outs));
        call->n_outs = call->outs ? (uint32_t)b.n_list : 0;
    }
    free(b.list);
    free(b.targets);
    return status;
}

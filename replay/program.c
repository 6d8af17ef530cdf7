/* SPDX-License-Identifier: MIT */
/*
 * Turns a recorded call into one that can be made: its argument memory rebuilt with pointers in place, and a list of
 * the values that only the replay knows (fixes).
 */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OUTPUT (1ull << 30) /* of one pointer: more is no argument but a damaged trace */

static void store(void *p, uint64_t value)
{
    memcpy(p, &value, 8);
}

/* ------------------------------------------------------------------------------------------------------ while walking
 */

/* The number of elements or bytes that the field's pointer has room for; -1 if that cannot be known. */
static int64_t count_of(const builder *b, const zt_node *node, const zt_expr *e)
{
    if (zr_in_words(b, node->data) || e->op == ZT_X_CONST || e->op == ZT_X_FUNC_DEREF) {
        zt_expr at_function = *e;
        if (e->op == ZT_X_FUNC_DEREF)
            at_function.op = ZT_X_DEREF;
        return zt_eval_param(b->walk, &at_function);
    }
    if (b->depth == 0)
        return -1;
    const zt_type *const type = b->types[b->depth - 1];
    if (e->a < 0 || e->a >= type->n_fields)
        return -1;
    const zt_field *const sibling = &type->fields[e->a];
    uint64_t value = zr_load(b->structs[b->depth - 1] + sibling->offset, sibling->size);
    if (e->op == ZT_X_DEREF) {
        const uint32_t size = zt_types[sibling->type].size;
        const void *const at = value ? b->walk->memory->at(b->raw, value, size) : NULL;
        if (at == NULL)
            return -1;
        value = zr_load(at, size);
    } else if (e->op != ZT_X_FIELD) {
        return -1;
    }
    const uint64_t factor = e->b > 0 ? (uint64_t)e->b : 1;
    return value > INT64_MAX / factor ? -1 : (int64_t)(value * factor);
}

/* What the program had behind an output pointer, as far as the call wrote there. */
static uint64_t written_at(const zr_raw *raw, uint64_t addr)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < raw->n_out; i++) {
        const zt_piece *const p = &raw->out[i];
        if (addr >= p->addr && addr - p->addr < p->len && p->len - (addr - p->addr) > most)
            most = p->len - (addr - p->addr);
    }
    return most;
}

static uint64_t room_behind(const builder *b, const zt_node *node)
{
    const zt_field *const f = node->field;
    const bool outer = zr_is_outer(b, node);
    const uint8_t shape = outer ? f->shape : f->inner;
    const uint64_t element = outer && f->inner != ZT_VALUE ? 8 : zt_types[f->type].size ? zt_types[f->type].size : 1;
    const uint64_t written = written_at(b->raw, zr_load(node->data, 8));
    uint64_t room = element;
    if (shape == ZT_ARRAY || shape == ZT_BLOB) {
        const int64_t n = count_of(b, node, outer ? &f->count : &f->inner_count);
        if (n < 0)
            room = written > 4096 ? written : 4096;
        else if (__builtin_mul_overflow((uint64_t)n, shape == ZT_BLOB ? 1 : element, &room))
            return UINT64_MAX;
    }
    return room > written ? room : written;
}

static bool add_slot(builder *b, slot s)
{
    if (!zr_grow((void **)&b->slots, b->n_slots, &b->room_slots, sizeof(*b->slots)))
        return false;
    b->slots[b->n_slots++] = s;
    return true;
}

static bool enter_value(builder *b, const zt_node *node)
{
    const zt_field *const f = node->field;
    const bool outer = zr_is_outer(b, node), tolerant = b->n_outs > 0 && b->outs[b->n_outs - 1];
    const uint8_t shape = outer ? f->shape : f->inner;
    const uint64_t value = zr_load(node->data, node->size);
    if (value == 0)
        return true;
    switch (shape) {
    case ZT_VALUE:
        if (node->type->cls == ZT_HANDLE)
            return add_slot(b, (slot){node->data, value, 0, node->type->base, SLOT_HANDLE, tolerant});
        if (node->type->cls == ZT_FUNCTION)
            return add_slot(b, (slot){node->data, value, 0, 0, SLOT_CALLBACK, tolerant});
        return true;
    case ZT_ADDRESS: {
        const int64_t n = outer ? count_of(b, node, &f->count) : -1;
        const bool touched = f->access != 0 || b->call->func->kind == ZT_K_APPEND;
        return add_slot(b, (slot){node->data, value,
                                  !touched ? 0
                                  : n > 0  ? (uint64_t)n
                                           : 1,
                                  0, SLOT_ADDRESS, tolerant});
    }
    case ZT_OPAQUE:
        return add_slot(b, (slot){node->data, value, 0, 1,
                                  b->call->func->flags & ZT_F_CALLBACK ? SLOT_CALLBACK : SLOT_ADDRESS, tolerant});
    case ZT_PNEXT:
        return add_slot(b, (slot){node->data, value, 16, 0, SLOT_OUTPUT, true});
    default: /* an output that the walk does not follow before the call */
        return add_slot(b, (slot){node->data, value, room_behind(b, node), 0, SLOT_OUTPUT, true});
    }
}

static int enter_visit(void *ctx, const zt_node *node)
{
    builder *const b = ctx;
    bool ok = true;
    const int status = zr_follow(b, node);
    if (status != 0)
        return status;
    switch (node->kind) {
    case ZT_N_STRUCT:
        if (strstr(node->type->name, "_import_") != NULL || strstr(node->type->name, "semaphore_fd") != NULL)
            zr_why(b, "it takes over a resource of another process or of the system");
        break;
    case ZT_N_POINTER:
        if (b->n_outs >= ZR_MAX_STACK)
            return -ZT_E_LIMIT;
        b->outs[b->n_outs] = node->field != NULL && (node->field->dir & ZT_OUT) != 0;
        b->n_outs++;
        ok = add_slot(b, (slot){node->data, node->addr, 0, 0, SLOT_POINTER, false});
        break;
    case ZT_N_POINTER_END:
        b->n_outs--;
        break;
    case ZT_N_LOST:
        if (node->field != NULL && (node->field->dir & ZT_OUT) && node->field->shape != ZT_PNEXT)
            ok = add_slot(b, (slot){node->data, zr_load(node->data, 8), room_behind(b, node), 0, SLOT_OUTPUT, true});
        else
            zr_why(b, "what its argument %s points to is not in the trace", node->field ? node->field->name : "pNext");
        break;
    case ZT_N_UNKNOWN:
        zr_why(b, "it has a struct of unknown type 0x%x on a pNext chain", (unsigned)zr_load(node->data, 4));
        break;
    case ZT_N_VALUE:
        if (node->field != NULL && node->type != NULL && node->size == 8)
            ok = enter_value(b, node);
        break;
    case ZT_N_BYTES: /* kernel arguments hold addresses and handles */
        if (node->size == 8 && node->field != NULL && node->field->shape == ZT_BLOB && !zr_in_words(b, node->data) &&
            zr_load(node->data, 8) != 0)
            ok = add_slot(b, (slot){node->data, zr_load(node->data, 8), 0, 0, SLOT_ARGUMENT, true});
        break;
    default:
        break;
    }
    return ok ? 0 : -ZT_E_MEMORY;
}

/* -------------------------------------------------------------------------------------------------- memory of
 * arguments */

static int by_start(const void *a, const void *b)
{
    const zr_seg *const x = a, *const y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/*
 * Room for what a call only writes, and what nobody reads once it has been compared: the same for all calls of a
 * thread, since fresh memory costs a page fault every few calls. @return NULL if it has to have its own.
 */
static uint8_t *scratch(builder *b, size_t *used, uint64_t size)
{
    zr_plan *const plan = b->plan;
    const int kind = b->call->func->kind;
    const uint32_t thread = b->call->thread;
    if (size > ZR_SCRATCH || *used + size + 80 > ZR_SCRATCH ||
        (kind != ZT_K_GET && kind != ZT_K_CREATE && kind != ZT_K_ALLOC))
        return NULL;
    while (plan->n_scratch <= thread) {
        if (!zr_grow((void **)&plan->scratch, plan->n_scratch, &plan->room_scratch, sizeof(*plan->scratch)))
            return NULL;
        plan->scratch[plan->n_scratch++] = zr_alloc(&plan->arena, ZR_SCRATCH + 64);
    }
    uint8_t *const at = plan->scratch[thread];
    if (at == NULL)
        return NULL;
    const size_t offset = *used;
    *used += (size + 80) & ~63ull;
    return at + offset;
}

static int make_memory(builder *b)
{
    size_t n = 0;
    zr_raw *const raw = b->raw;
    raw->segs = malloc((b->n_targets + b->n_slots + 1) * sizeof(*raw->segs));
    if (raw->segs == NULL)
        return -ZT_E_MEMORY;
    for (size_t i = 0; i < b->n_targets; i++)
        raw->segs[n++] = (zr_seg){b->targets[i].addr, b->targets[i].addr + b->targets[i].size, NULL, false, true};
    for (size_t i = 0; i < b->n_slots; i++) {
        const slot *const s = &b->slots[i];
        if (s->kind != SLOT_OUTPUT)
            continue;
        if (s->size > MAX_OUTPUT || s->size > UINT64_MAX - s->value) {
            zr_why(b, "it has an output of %llu bytes", (unsigned long long)s->size);
            continue;
        }
        raw->segs[n++] = (zr_seg){s->value, s->value + (s->size ? s->size : 1), NULL, false, false};
    }
    if (n > 1)
        qsort(raw->segs, n, sizeof(*raw->segs), by_start);
    for (size_t i = 0; i < n; i++) {
        zr_seg *const last = raw->n_segs ? &raw->segs[raw->n_segs - 1] : NULL;
        if (last != NULL && raw->segs[i].start < last->end) {
            last->merged |= raw->segs[i].start != last->start;
            last->read |= raw->segs[i].read;
            if (raw->segs[i].end > last->end)
                last->end = raw->segs[i].end;
        } else {
            raw->segs[raw->n_segs++] = raw->segs[i];
        }
    }
    size_t used = 0;
    for (size_t i = 0; i < raw->n_segs; i++) {
        zr_seg *const seg = &raw->segs[i];
        const uint64_t size = seg->end - seg->start;
        if (size > MAX_OUTPUT * 4)
            return -ZT_E_LIMIT;
        uint8_t *room = seg->read ? NULL : scratch(b, &used, size);
        if (room == NULL)
            room = zr_alloc(&b->plan->arena, size + 80); /* a gap behind: a driver may write a little too much */
        if (room == NULL)
            return -ZT_E_MEMORY;
        seg->live = room + (seg->merged ? seg->start & 7 : 0);
    }
    for (size_t i = 0; i < b->n_targets; i++)
        memcpy(zr_seg_live(raw, b->targets[i].addr), b->targets[i].data, b->targets[i].size);
    return 0;
}

static void no_callback(void *data)
{
    (void)data;
}

static bool is_wild(const zr_plan *plan, uint64_t address)
{
    return plan->recorded_soft && address >= 0x200000000000ull && address < 0x300000000000ull;
}

/* What goes into a slot. @return whether *fix has to fill it in at run time. */
static int fill_slot(builder *b, const slot *s, void *where, zr_fix *fix)
{
    static uint64_t nothing[16];
    zr_plan *const plan = b->plan;
    *fix = (zr_fix){.where = where, .kind = ZR_FIX_OBJECT};
    switch (s->kind) {
    case SLOT_POINTER:
    case SLOT_OUTPUT: {
        void *const live = zr_seg_live(b->raw, s->value);
        store(where, (uint64_t)(uintptr_t)(live ? live : nothing));
        return 0;
    }
    case SLOT_CALLBACK: /* `type` 1: the user's data, which nobody looks at any more */
        store(where, s->type ? 0 : (uint64_t)(uintptr_t)no_callback);
        b->call->flags |= ZR_CALLBACKS;
        return 0;
    case SLOT_HANDLE:
        fix->index = zr_object_find(&plan->objects, s->type, s->value);
        if (fix->index != ZR_NONE)
            return 1;
        if (s->tolerant)
            store(where, 0);
        else if (!(plan->recorded_soft && (b->call->flags & ZR_FAILED)))
            zr_why(b, "no call before it gave the handle 0x%llx", (unsigned long long)s->value);
        return 0;
    case SLOT_ARGUMENT:
        fix->index = zr_object_find(&plan->objects, 0, s->value);
        if (fix->index != ZR_NONE)
            return 1;
        break;
    default:
        break;
    }
    fix->kind = ZR_FIX_MEM;
    fix->index = zr_mem_find(&plan->objects, s->value);
    if (fix->index != ZR_NONE) {
        fix->offset = s->value - plan->objects.mems[fix->index].recorded;
        return 1;
    }
    if (s->kind == SLOT_ARGUMENT || is_wild(plan, s->value))
        return 0;
    if (s->size > 0 && !zr_span_add(&plan->objects, s->value, s->size))
        return -ZT_E_MEMORY;
    if (s->type == 1) {
        zr_why(b, "an argument points to memory that is not in the trace");
        return 0;
    }
    fix->offset = s->value; /* zr_program_finish looks whether a span holds it */
    return 1;
}

static int make_fixes(builder *b)
{
    zr_call *const call = b->call;
    call->fixes = zr_alloc(&b->plan->arena, b->n_slots * sizeof(*call->fixes) + 8);
    if (call->fixes == NULL)
        return -ZT_E_MEMORY;
    for (size_t i = 0; i < b->n_slots; i++) {
        void *const where = zr_place_of(b, b->slots[i].data);
        if (where == NULL) {
            zr_why(b, "its arguments contradict each other");
            continue;
        }
        const int status = fill_slot(b, &b->slots[i], where, &call->fixes[call->n_fixes]);
        if (status < 0)
            return status;
        call->n_fixes += (uint32_t)status;
    }
    return 0;
}

static void note_roles(builder *b)
{
    zr_call *const call = b->call;
    zr_objects *const o = &b->plan->objects;
    const bool takes_effect = call->result == 0 || !(call->flags & ZR_RETURNED);
    for (unsigned i = 0; i < call->func->n_params; i++) {
        const zt_field *const p = &call->func->params[i];
        const zt_type *const type = &zt_types[p->type];
        const uint64_t value = b->walk->words[p->offset];
        if (p->role == ZT_R_TIMEOUT && p->shape == ZT_VALUE && p->offset < 127)
            call->timeout_word = (int8_t)p->offset;
        if (type->cls == ZT_HANDLE && p->shape == ZT_VALUE && value != 0) {
            const uint32_t index = zr_object_find(o, type->base, value);
            if (call->self == ZR_NONE)
                call->self = index;
            if (p->role == ZT_R_DESTROY && index != ZR_NONE && takes_effect) {
                o->objects[index].dead = 1;
                o->objects[index].destroyed = call->number;
            }
        }
        if (p->role == ZT_R_FREE && takes_effect) {
            const uint32_t index = zr_mem_find(o, value);
            if (index != ZR_NONE)
                o->mems[index].dead = 1;
        }
    }
}

int zr_program_enter(zr_plan *plan, zr_raw *raw)
{
    zr_call *const call = &plan->calls[raw->index];
    const zt_memory memory = zr_memory_enter(raw);
    builder b = {.plan = plan, .raw = raw, .call = call};
    const zt_walk walk = {
        .func = call->func, .words = raw->words, .phase = ZT_ENTER, .memory = &memory, .visit = enter_visit, .ctx = &b};
    b.walk = &walk;
    if (zt_types[call->func->return_type].cls == ZT_HANDLE)
        call->flags |= ZR_HANDLE_RESULT;
    else if (call->result != 0 && strcmp(zt_types[call->func->return_type].name, "ze_result_t") == 0)
        call->flags |= ZR_FAILED;
    if ((call->func->flags & ZT_F_OS_RESOURCE) && call->func->kind != ZT_K_GET && !(call->flags & ZR_FAILED))
        zr_why(&b, "it is about a handle that another process or the system gave");
    int status = zt_walk_call(&walk);
    if (status == 0)
        status = make_memory(&b);
    if (status == 0)
        status = make_fixes(&b);
    if (status == 0)
        note_roles(&b);
    if (call->flags & ZR_CALLBACKS)
        plan->callbacks++;
    free(b.slots);
    free(b.targets);
    return status;
}

void zr_program_finish(zr_plan *plan)
{
    for (size_t i = 0; i < plan->n_calls; i++) {
        zr_call *const call = &plan->calls[i];
        uint32_t n = 0;
        for (uint32_t k = 0; k < call->n_fixes; k++) {
            const zr_fix fix = call->fixes[k];
            if (fix.kind == ZR_FIX_MEM && fix.index == ZR_NONE) {
                void *const live = zr_span_live(&plan->objects, fix.offset);
                if (live != NULL)
                    store(fix.where, (uint64_t)(uintptr_t)live);
            } else {
                call->fixes[n++] = fix;
            }
        }
        call->n_fixes = n;
        for (uint32_t k = 0; k < call->n_data; k++)
            if (call->data[k].mem == ZR_NONE)
                call->data[k].live = zr_span_live(&plan->objects, call->data[k].addr);
        if (zt_is_fault(call->result) && (call->flags & ZR_FAILED))
            plan->recorded_failed = true;
    }
}

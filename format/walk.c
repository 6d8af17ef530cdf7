/* SPDX-License-Identifier: MIT */
/*
 * Follows a call's arguments as the API table describes them. Runs inside the recorded application and on hostile traces
 * alike: no allocation, no recursion without a bound, no read that the zt_memory did not grant.
 */
#include "format.h"

#include <string.h>

#define MAX_DEPTH 16
#define MAX_CHAIN 64
#define MAX_NODES (1u << 20)

typedef struct scope { /* where sibling fields are found */
    const zt_field *fields;
    unsigned n_fields;
    const uint8_t *base; /* parameters: the words; members: the struct */
    bool words;
} scope;

typedef struct walker {
    const zt_walk *walk;
    unsigned depth, nodes;
    int stopped;
} walker;

static int follow(walker *w, const scope *s, const zt_field *field, uint8_t shape, const zt_expr *count, const void *slot,
                  uint64_t index, bool is_inner);
static int visit_struct(walker *w, const zt_type *type, const zt_field *field, const void *data, uint64_t addr, bool chained);

static const void *live_at(void *ctx, uint64_t addr, uint64_t len)
{
    (void)ctx;
    (void)len;
    return (const void *)(uintptr_t)addr;
}

static const char *live_string(void *ctx, uint64_t addr, uint64_t *len)
{
    (void)ctx;
    const char *const text = (const char *)(uintptr_t)addr;
    *len = strlen(text);
    return text;
}

const zt_memory zt_live_memory = {live_at, live_string, NULL};

/* @return 0 go on, 1 skip the inside, <0 stop */
static int emit(walker *w, zt_node *node)
{
    if (++w->nodes > MAX_NODES)
        return -ZT_E_LIMIT;
    if (w->walk->targets_only && node->kind != ZT_N_TARGET)
        return 0;
    node->depth = (uint8_t)w->depth;
    node->func = w->walk->func;
    return w->walk->visit(w->walk->ctx, node);
}

static int emit_simple(walker *w, int kind, const zt_field *field, const zt_type *type, uint64_t addr, const void *data,
                       uint64_t size)
{
    zt_node node = {.kind = (uint8_t)kind, .field = field, .type = type, .addr = addr, .data = data, .size = size};
    return emit(w, &node);
}

static uint64_t load(const void *p, unsigned size)
{
    uint64_t value = 0;
    memcpy(&value, p, size > 8 ? 8 : size);
    return value;
}

static const void *field_at(const scope *s, unsigned index)
{
    return s->base + (s->words ? s->fields[index].offset * 8u : s->fields[index].offset);
}

static uint64_t field_value(const scope *s, unsigned index)
{
    return load(field_at(s, index), s->fields[index].size);
}

/* *pointer for a sibling that points to an integer: min(as of ENTER, as of LEAVE) once the call has returned. */
static int64_t deref(const walker *w, const scope *s, int index)
{
    if (index < 0 || (unsigned)index >= s->n_fields || s->fields[index].shape != ZT_ONE ||
        zt_types[s->fields[index].type].cls != ZT_UINT)
        return -1;
    const uint64_t addr = field_value(s, (unsigned)index);
    const unsigned size = zt_types[s->fields[index].type].size;
    if (addr == 0)
        return -1;
    const void *const now = w->walk->memory->at(w->walk->memory->ctx, addr, size);
    if (now == NULL)
        return -1;
    uint64_t value = load(now, size);
    if (w->walk->phase == ZT_LEAVE && w->walk->before != NULL) {
        const void *const then = w->walk->before->at(w->walk->before->ctx, addr, size);
        if (then != NULL && load(then, size) < value)
            value = load(then, size);
    }
    return value > INT64_MAX ? -1 : (int64_t)value;
}

static int64_t times(int64_t value, int factor)
{
    if (value < 0 || factor == 0)
        return value;
    return value > INT64_MAX / factor ? -1 : value * factor;
}

/* Bytes from the pointer to the end of what a copy region covers. */
static int64_t region_extent(const walker *w, const scope *s, const zt_expr *e)
{
    uint32_t r[6]; /* originX, originY, originZ, width, height, depth */
    const uint64_t addr = field_value(s, (unsigned)e->a);
    const void *const at = addr ? w->walk->memory->at(w->walk->memory->ctx, addr, sizeof(r)) : NULL;
    if (at == NULL)
        return -1;
    memcpy(r, at, sizeof(r));
    uint64_t pitch = field_value(s, (unsigned)e->b), slice = field_value(s, (unsigned)e->c);
    const uint64_t row = (uint64_t)r[0] + r[3], rows = (uint64_t)r[1] + (r[4] ? r[4] : 1);
    if (pitch == 0)
        pitch = row;
    if (slice == 0)
        slice = pitch * rows;
    const uint64_t slices = (uint64_t)r[2] + (r[5] ? r[5] : 1);
    const unsigned __int128 total = (unsigned __int128)(slices - 1) * slice + (unsigned __int128)(rows - 1) * pitch + row;
    return total > INT64_MAX ? -1 : (int64_t)total;
}

static int64_t evaluate(const walker *w, const scope *s, const zt_expr *e, uint64_t index)
{
    const zt_memory *const m = w->walk->memory;
    switch (e->op) {
    case ZT_X_CONST:
        return e->a;
    case ZT_X_FIELD: {
        const uint64_t value = field_value(s, (unsigned)e->a);
        return value > INT64_MAX ? -1 : times((int64_t)value, e->b);
    }
    case ZT_X_DEREF:
        return times(deref(w, s, e->a), e->b);
    case ZT_X_FUNC_DEREF: {
        const scope params = {w->walk->func->params, w->walk->func->n_params, (const uint8_t *)w->walk->words, true};
        /* the struct may hang on a call whose parameters are not those that its count speaks of */
        return (unsigned)e->a < params.n_fields && params.fields[e->a].role == ZT_R_COUNT ? deref(w, &params, e->a) : -1;
    }
    case ZT_X_PATH: {
        const zt_type *const type = &zt_types[s->fields[e->a].type];
        const uint64_t addr = field_value(s, (unsigned)e->a);
        const uint8_t *const data = addr ? m->at(m->ctx, addr, type->size) : NULL;
        if (data == NULL || e->b >= type->n_fields)
            return -1;
        return (int64_t)load(data + type->fields[e->b].offset, type->fields[e->b].size);
    }
    case ZT_X_ELEMENT: {
        const unsigned size = zt_types[s->fields[e->a].type].size;
        const uint64_t addr = field_value(s, (unsigned)e->a);
        const void *const data = addr && index < MAX_NODES ? m->at(m->ctx, addr + index * size, size) : NULL;
        if (data == NULL)
            return -1;
        const uint64_t value = load(data, size);
        return value > INT64_MAX ? -1 : (int64_t)value;
    }
    case ZT_X_REGION:
        return region_extent(w, s, e);
    default:
        return -1;
    }
}

/* Whether a value of the type can lead to further memory. */
static bool has_pointers(const zt_type *type, unsigned depth)
{
    if (type->cls != ZT_STRUCT || depth > MAX_DEPTH)
        return false;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const zt_field *const f = &type->fields[i];
        if (f->shape != ZT_VALUE && f->shape != ZT_ADDRESS && f->shape != ZT_OPAQUE)
            return true;
        if (f->shape == ZT_VALUE && has_pointers(&zt_types[f->type], depth + 1))
            return true;
    }
    return false;
}

/* `count` elements of `type` that lie one behind the other at `data`. */
static int visit_elements(walker *w, const zt_field *field, const zt_type *type, const uint8_t *data, uint64_t addr,
                          uint64_t count)
{
    if (type->cls == ZT_CHAR)
        return emit_simple(w, ZT_N_TEXT, field, type, addr, data, strnlen((const char *)data, count));
    if (type->cls == ZT_VOID || (type->cls == ZT_UINT && type->size == 1))
        return emit_simple(w, ZT_N_BYTES, field, type, addr, data, count * type->size);
    if (w->walk->targets_only && !has_pointers(type, 0))
        return 0;
    zt_node node = {.kind = ZT_N_ARRAY, .field = field, .type = type, .addr = addr, .data = data, .count = count,
                    .size = count * type->size};
    int status = emit(w, &node);
    for (uint64_t i = 0; status == 0 && i < count; i++) {
        const uint8_t *const element = data + i * type->size;
        if (type->cls == ZT_STRUCT) {
            status = visit_struct(w, type, field, element, addr ? addr + i * type->size : 0, false);
        } else {
            zt_node value = {.kind = type->cls == ZT_UNION ? ZT_N_BYTES : ZT_N_VALUE, .field = field, .type = type, .index = i,
                             .addr = addr ? addr + i * type->size : 0, .data = element, .size = type->size};
            status = emit(w, &value);
        }
        if (status > 0)
            status = 0;
    }
    if (status < 0)
        return status;
    return emit_simple(w, ZT_N_ARRAY_END, field, type, 0, NULL, 0);
}

static int visit_value(walker *w, const zt_field *field, const void *data, uint64_t addr)
{
    const zt_type *const type = &zt_types[field->type];
    if (field->array_len)
        return visit_elements(w, field, type, data, addr, field->array_len);
    if (type->cls == ZT_STRUCT)
        return visit_struct(w, type, field, data, addr, false);
    if (type->cls == ZT_UNION)
        return emit_simple(w, ZT_N_BYTES, field, type, addr, data, type->size);
    return emit_simple(w, ZT_N_VALUE, field, type, addr, data, field->size);
}

static int visit_field(walker *w, const scope *s, unsigned index, uint64_t struct_addr)
{
    const zt_field *const field = &s->fields[index];
    const void *const slot = field_at(s, index);
    if (field->shape == ZT_VALUE)
        return visit_value(w, field, slot, struct_addr ? struct_addr + field->offset : 0);
    return follow(w, s, field, field->shape, &field->count, slot, 0, false);
}

static int visit_struct(walker *w, const zt_type *type, const zt_field *field, const void *data, uint64_t addr, bool chained)
{
    if (w->depth >= MAX_DEPTH)
        return -ZT_E_LIMIT;
    int status = emit_simple(w, ZT_N_STRUCT, field, type, addr, data, type->size);
    if (status)
        return status < 0 ? status : 0;
    const scope s = {type->fields, type->n_fields, data, false};
    w->depth++;
    for (unsigned i = 0; i < type->n_fields; i++) {
        if (chained && type->fields[i].shape == ZT_PNEXT)
            continue; /* the chain's own loop goes there */
        status = visit_field(w, &s, i, addr);
        if (status < 0)
            return status;
    }
    w->depth--;
    return emit_simple(w, ZT_N_STRUCT_END, field, type, 0, NULL, 0);
}

static int visit_chain(walker *w, const zt_field *field, const void *slot)
{
    const zt_memory *const m = w->walk->memory;
    if (w->depth >= MAX_DEPTH)
        return -ZT_E_LIMIT;
    if (load(slot, 8) == 0)
        return emit_simple(w, ZT_N_NULL, field, NULL, 0, slot, 8);
    int status = emit_simple(w, ZT_N_CHAIN, field, NULL, 0, slot, 8);
    if (status)
        return status < 0 ? status : 0;
    w->depth++;
    for (unsigned link = 0; load(slot, 8) != 0 && link < MAX_CHAIN; link++) {
        const uint64_t addr = load(slot, 8);
        const uint8_t *data = m->at(m->ctx, addr, 16);
        const zt_type *type = data ? zt_struct_by_stype(w->walk->func->ns, (uint32_t)load(data, 4)) : NULL;
        if (type != NULL)
            data = m->at(m->ctx, addr, type->size);
        if (data == NULL) {
            status = emit_simple(w, ZT_N_LOST, field, NULL, addr, slot, 8);
            break;
        }
        const uint64_t size = type ? type->size : 16;
        status = emit_simple(w, ZT_N_POINTER, field, type, addr, slot, 8);
        if (status >= 0)
            status = emit_simple(w, ZT_N_TARGET, field, type, addr, data, size);
        if (status >= 0)
            status = type ? visit_struct(w, type, NULL, data, addr, true)
                          : emit_simple(w, ZT_N_UNKNOWN, NULL, NULL, addr, data, size);
        if (status >= 0)
            status = emit_simple(w, ZT_N_POINTER_END, field, type, 0, NULL, 0);
        if (status < 0)
            return status;
        slot = data + 8;
    }
    if (status < 0)
        return status;
    w->depth--;
    return emit_simple(w, ZT_N_CHAIN_END, field, NULL, 0, NULL, 0);
}

/* Elements that are pointers themselves. */
static int visit_pointers(walker *w, const scope *s, const zt_field *field, const uint8_t *data, uint64_t count, bool single)
{
    int status = 0;
    if (!single) {
        zt_node node = {.kind = ZT_N_ARRAY, .field = field, .type = &zt_types[field->type], .data = data, .count = count,
                        .size = count * 8};
        status = emit(w, &node);
        if (status)
            return status < 0 ? status : 0;
    }
    for (uint64_t i = 0; i < count; i++) {
        status = follow(w, s, field, field->inner, &field->inner_count, data + i * 8, i, true);
        if (status < 0)
            return status;
    }
    return single ? 0 : emit_simple(w, ZT_N_ARRAY_END, field, NULL, 0, NULL, 0);
}

static bool is_followed(const walker *w, const zt_field *field)
{
    const zt_type *const type = &zt_types[field->type];
    if (w->walk->phase == ZT_LEAVE) {
        const bool ok = w->walk->result == 0 || strcmp(zt_types[w->walk->func->return_type].name, "ze_result_t") != 0;
        return (field->dir & ZT_OUT) && (ok || (field->dir & ZT_ON_ERROR) || field->role == ZT_R_COUNT);
    }
    return (field->dir & ZT_IN) || (type->cls == ZT_STRUCT && type->stype >= 0 && field->inner == ZT_VALUE);
}

/* The pointer at `slot`, which `field` describes. */
static int follow(walker *w, const scope *s, const zt_field *field, uint8_t shape, const zt_expr *count, const void *slot,
                  uint64_t index, bool is_inner)
{
    const zt_memory *const m = w->walk->memory;
    const zt_type *const type = &zt_types[field->type];
    const uint64_t addr = load(slot, 8);
    if (shape == ZT_PNEXT && (is_followed(w, field) || w->walk->phase == ZT_ENTER))
        return visit_chain(w, field, slot);
    if (shape == ZT_VALUE || shape == ZT_ADDRESS || shape == ZT_OPAQUE || shape == ZT_PNEXT)
        return emit_simple(w, ZT_N_VALUE, field, type, 0, slot, 8);
    if (addr == 0)
        return emit_simple(w, ZT_N_NULL, field, type, 0, slot, 8);
    if (!is_followed(w, field))
        return emit_simple(w, ZT_N_VALUE, field, type, 0, slot, 8);

    const bool elements_point = !is_inner && field->inner != ZT_VALUE;
    const uint64_t element = elements_point ? 8 : type->size;
    int64_t n = 1;
    const void *data = NULL;
    uint64_t size = 0;
    if (shape == ZT_STRING || (count->op == ZT_X_STRLEN)) {
        data = m->string(m->ctx, addr, &size);
        size += data != NULL;
        n = (int64_t)size;
    } else {
        if (shape == ZT_ARRAY || shape == ZT_BLOB)
            n = evaluate(w, s, count, index);
        if (n >= 0 && !__builtin_mul_overflow((uint64_t)n, element, &size))
            data = n == 0 ? slot : m->at(m->ctx, addr, size);
    }
    if (data == NULL)
        return emit_simple(w, ZT_N_LOST, field, type, addr, slot, 8);
    if (w->depth >= MAX_DEPTH)
        return -ZT_E_LIMIT;
    zt_node node = {.kind = ZT_N_POINTER, .field = field, .type = type, .index = index, .count = (uint64_t)n, .addr = addr,
                    .data = slot, .size = 8};
    int status = emit(w, &node);
    if (status)
        return status < 0 ? status : 0;
    w->depth++;
    if (size > 0) {
        status = emit_simple(w, ZT_N_TARGET, field, type, addr, data, size);
        if (status < 0)
            return status;
    }
    if (status == 0) {
        if (elements_point)
            status = visit_pointers(w, s, field, data, (uint64_t)n, shape == ZT_ONE);
        else if (shape == ZT_STRING)
            status = emit_simple(w, ZT_N_TEXT, field, type, addr, data, size - 1);
        else if (shape == ZT_BLOB)
            status = emit_simple(w, ZT_N_BYTES, field, type, addr, data, size);
        else if (shape == ZT_ARRAY)
            status = visit_elements(w, field, type, data, addr, (uint64_t)n);
        else if (type->cls == ZT_STRUCT)
            status = visit_struct(w, type, field, data, addr, false);
        else
            status = emit_simple(w, type->cls == ZT_UNION || type->cls == ZT_VOID ? ZT_N_BYTES : ZT_N_VALUE, field, type, addr,
                                 data, type->size);
    }
    if (status < 0)
        return status;
    w->depth--;
    return emit_simple(w, ZT_N_POINTER_END, field, type, 0, NULL, 0);
}

int zt_walk_param(const zt_walk *walk, unsigned param)
{
    walker w = {.walk = walk};
    const scope s = {walk->func->params, walk->func->n_params, (const uint8_t *)walk->words, true};
    const zt_field *const field = &s.fields[param];
    if (walk->phase == ZT_LEAVE && (field->shape == ZT_VALUE || field->shape == ZT_ADDRESS || field->shape == ZT_OPAQUE ||
                                    !is_followed(&w, field)))
        return 0;
    const int status = visit_field(&w, &s, param, 0);
    return status < 0 ? status : 0;
}

int zt_walk_call(const zt_walk *walk)
{
    for (unsigned i = 0; i < walk->func->n_params; i++) {
        const int status = zt_walk_param(walk, i);
        if (status < 0)
            return status;
    }
    return 0;
}

int64_t zt_eval_param(const zt_walk *walk, const zt_expr *expr)
{
    const walker w = {.walk = walk};
    const scope s = {walk->func->params, walk->func->n_params, (const uint8_t *)walk->words, true};
    return evaluate(&w, &s, expr, 0);
}

/* SPDX-License-Identifier: MIT */
#include "modules.h"

#include <string.h>

#define DEPTH 40u

typedef struct reading {
    zt_binaries *out;
    const zt_type *types[DEPTH];
    const uint8_t *bases[DEPTH];
    unsigned depth;
    const void *pointer;      /* the last that was followed */
    const zt_field *of;       /* its field, */
    const uint8_t *owner;     /* struct */
    uint64_t index;           /* and element */
    const uint8_t *array;     /* of pointers, the last */
    uint64_t array_size;
} reading;

static bool is_object(const zt_field *f, const char *kind)
{
    const char *const object = zt_types[f->type].object;
    return object != NULL && strcmp(object, kind) == 0;
}

/* Constants, arguments and the like are declared as blobs of void. */
static bool is_binary(const zt_field *f)
{
    return f != NULL && (f->shape == ZT_BLOB || f->inner == ZT_BLOB) && strstr(f->decl, "uint8_t") != NULL;
}

int zt_binaries_of(const zt_func *func)
{
    const zt_field *const first = func->n_params ? &func->params[0] : NULL;
    for (unsigned i = 0; i < func->n_params; i++) {
        const zt_field *const f = &func->params[i];
        if (func->kind == ZT_K_CREATE && f->role == ZT_R_CREATE && is_object(f, "module"))
            return ZT_B_MODULE;
        if (func->kind == ZT_K_GET && (f->dir & ZT_OUT) && is_binary(f) && (is_object(first, "module") || is_object(first, "kernel")))
            return ZT_B_NATIVE;
    }
    return ZT_B_NONE;
}

static zt_binary *find(const reading *r, const void *owner, uint64_t index)
{
    for (unsigned i = 0; i < r->out->n; i++)
        if (r->out->list[i].owner == owner && r->out->list[i].index == index)
            return &r->out->list[i];
    return NULL;
}

static void add(reading *r, const zt_node *node, const void *data)
{
    const zt_field *const f = node->field;
    zt_binary b = {.data = data, .size = data ? node->size : 0, .pointer = r->pointer, .owner = r->owner, .index = r->index};
    if (r->depth > 0) {
        const zt_type *const type = r->types[r->depth - 1];
        const zt_expr *const e = f->inner == ZT_BLOB ? &f->inner_count : &f->count;
        if ((e->op == ZT_X_FIELD || e->op == ZT_X_ELEMENT) && e->a >= 0 && e->a < type->n_fields) {
            const zt_field *const sibling = &type->fields[e->a];
            const uint8_t *const at = r->bases[r->depth - 1] + sibling->offset;
            uint64_t array;
            if (e->op == ZT_X_FIELD && sibling->size == 8) {
                b.length = at;
            } else if (e->op == ZT_X_ELEMENT && sibling->size == 8 && zt_types[sibling->type].size == 8) {
                memcpy(&array, at, 8);
                b.length = (const uint8_t *)(uintptr_t)array + r->index * 8; /* as the walk's memory has it: see modules.h */
            }
        }
    }
    if (r->out->n < ZT_BINARIES)
        r->out->list[r->out->n++] = b;
    else
        r->out->left_out++;
}

static void see_pointer(reading *r, const zt_node *node)
{
    const uint8_t *const at = node->data;
    r->owner = r->depth ? r->bases[r->depth - 1] : NULL;
    r->pointer = node->data;
    r->of = node->field;
    r->index = at >= r->array && at < r->array + r->array_size ? (uint64_t)(at - r->array) / 8 : 0;
}

static int see(void *ctx, const zt_node *node)
{
    reading *const r = ctx;
    uint32_t value;
    switch (node->kind) {
    case ZT_N_STRUCT:
        if (r->depth >= DEPTH)
            return -ZT_E_LIMIT;
        r->types[r->depth] = node->type;
        r->bases[r->depth++] = node->data;
        break;
    case ZT_N_STRUCT_END:
        r->depth--;
        break;
    case ZT_N_ARRAY:
        r->array = node->data;
        r->array_size = node->size;
        break;
    case ZT_N_POINTER:
        if (node->field != NULL && node->field->shape != ZT_PNEXT)
            see_pointer(r, node);
        break;
    case ZT_N_LOST:
        if (is_binary(node->field)) {
            see_pointer(r, node);
            add(r, node, NULL);
        }
        break;
    case ZT_N_BYTES:
        if (is_binary(node->field))
            add(r, node, node->data);
        break;
    case ZT_N_TEXT:
        if (node->field != NULL && node->field == r->of) {
            zt_binary *const b = find(r, r->owner, r->index);
            if (b != NULL) {
                b->flags = node->data;
                b->flags_length = node->size;
            }
        }
        break;
    case ZT_N_VALUE:
        if (node->type == NULL || node->type->cls != ZT_ENUM || node->size != 4)
            break;
        memcpy(&value, node->data, 4);
        const char *const name = zt_enum_name(node->type, value);
        if (name != NULL && strncmp(name, "ZE_MODULE_FORMAT_", 17) == 0)
            r->out->format = name;
        break;
    default:
        break;
    }
    return 0;
}

int zt_binaries_read(const zt_walk *walk, zt_binaries *out)
{
    reading r = {.out = out};
    zt_walk w = *walk;
    *out = (zt_binaries){.n = 0};
    w.visit = see;
    w.ctx = &r;
    return -zt_walk_call(&w);
}

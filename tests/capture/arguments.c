/* SPDX-License-Identifier: MIT */
#include "arguments.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define REGION (4u * 4096u)

static uint8_t *regions[ARGUMENTS_REGIONS];

bool arguments_open(void)
{
    for (unsigned i = 0; i < ARGUMENTS_REGIONS; i++) {
        uint8_t *const p = mmap(NULL, REGION + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED || mprotect(p + REGION, 4096, PROT_NONE) != 0)
            return false;
        regions[i] = p;
    }
    return true;
}

uint64_t arguments_random(arguments *a, uint64_t below)
{
    a->seed ^= a->seed << 13;
    a->seed ^= a->seed >> 7;
    a->seed ^= a->seed << 17;
    return below ? a->seed % below : a->seed;
}

static bool chance(arguments *a, unsigned percent)
{
    return arguments_random(a, 100) < percent;
}

/* `size` bytes that end where nothing can be read. @return NULL when the call has taken all regions: it gets a NULL pointer. */
static void *take(arguments *a, size_t size)
{
    if (a->used == ARGUMENTS_REGIONS || size > REGION || size == 0)
        return NULL;
    uint8_t *const p = regions[a->used++] + REGION - size;
    for (size_t i = 0; i < size; i++)
        p[i] = (uint8_t)arguments_random(a, 256);
    return p;
}

typedef struct level { /* where sibling fields are */
    const zt_field *fields;
    unsigned n;
    uint8_t *base;
    bool words;
} level;

static void *slot(const level *l, unsigned i)
{
    return l->base + (l->words ? l->fields[i].offset * 8u : l->fields[i].offset);
}

static uint64_t load(const void *p, unsigned size)
{
    uint64_t v = 0;
    memcpy(&v, p, size > 8 ? 8 : size);
    return v;
}

static int64_t count_of(arguments *a, const level *l, const zt_expr *e, uint64_t index)
{
    if (e->op == ZT_X_FUNC_DEREF && (e->a >= a->func->n_params || a->func->params[e->a].role != ZT_R_COUNT))
        return -1;
    const zt_field *const f = e->op == ZT_X_FUNC_DEREF ? &a->func->params[e->a] : &l->fields[e->a];
    const void *const at = e->op == ZT_X_CONST ? NULL : e->op == ZT_X_FUNC_DEREF ? (void *)&a->words[f->offset] : slot(l, (unsigned)e->a);
    const int64_t times = e->b ? e->b : 1;
    switch (e->op) {
    case ZT_X_CONST:
        return e->a;
    case ZT_X_FIELD:
        return (int64_t)load(at, f->size) * times;
    case ZT_X_DEREF:
    case ZT_X_FUNC_DEREF: {
        const void *const p = (const void *)(uintptr_t)load(at, 8);
        return p ? (int64_t)load(p, zt_types[f->type].size) * times : -1;
    }
    case ZT_X_ELEMENT: {
        const uint8_t *const p = (const uint8_t *)(uintptr_t)load(at, 8);
        return p ? (int64_t)load(p + index * zt_types[f->type].size, zt_types[f->type].size) : -1;
    }
    case ZT_X_STRLEN:
        return 0;
    default:
        return -1;
    }
}

static void fill_struct(arguments *a, const zt_type *type, void *at, unsigned depth);

static void set(void *at, uint64_t value, unsigned size)
{
    memcpy(at, &value, size > 8 ? 8 : size);
}

static uint64_t chain(arguments *a, unsigned depth)
{
    static const unsigned tries = 8;
    if (depth > 3 || chance(a, 60))
        return 0;
    for (unsigned i = 0; i < tries; i++) {
        const zt_type *const type = &zt_types[arguments_random(a, zt_n_types)];
        if (chance(a, 10)) { /* one that the table does not know */
            uint8_t *const p = take(a, 16);
            if (p == NULL)
                return 0;
            set(p, 0x7eadbeef, 4);
            set(p + 8, 0, 8);
            return (uint64_t)(uintptr_t)p;
        }
        if (type->cls != ZT_STRUCT || type->stype < 0 || zt_struct_by_stype(a->func->ns, (uint32_t)type->stype) != type)
            continue;
        void *const p = take(a, type->size);
        if (p == NULL)
            return 0;
        fill_struct(a, type, p, depth + 1);
        return (uint64_t)(uintptr_t)p;
    }
    return 0;
}

static uint64_t text(arguments *a)
{
    const size_t n = arguments_random(a, 40);
    char *const p = take(a, n + 1);
    if (p == NULL)
        return 0;
    for (size_t i = 0; i < n; i++)
        p[i] = (char)('!' + arguments_random(a, 90));
    p[n] = '\0';
    return (uint64_t)(uintptr_t)p;
}

static bool counts_something(const zt_type *type)
{
    return (type->cls == ZT_UINT || type->cls == ZT_INT) && type->size >= 4;
}

static void fill_value(arguments *a, const zt_field *f, void *at, unsigned depth)
{
    const zt_type *const type = &zt_types[f->type];
    if (type->cls == ZT_STRUCT) {
        for (unsigned i = 0; i < (f->array_len ? f->array_len : 1u); i++)
            fill_struct(a, type, (uint8_t *)at + i * type->size, depth + 1);
        return;
    }
    for (unsigned i = 0; i < f->size; i++)
        ((uint8_t *)at)[i] = (uint8_t)arguments_random(a, 256);
    if (f->array_len == 0 && counts_something(type))
        set(at, arguments_random(a, chance(a, 5) ? 300 : 5), f->size);
    if (f->array_len != 0 && type->cls == ZT_CHAR)
        ((char *)at)[arguments_random(a, f->array_len)] = '\0';
}

static uint64_t pointed_to(arguments *a, const level *l, const zt_field *f, uint8_t shape, const zt_expr *count, uint64_t index,
                           bool inner, unsigned depth);

static void fill_elements(arguments *a, const level *l, const zt_field *f, uint8_t *at, uint64_t n, bool inner, unsigned depth)
{
    const zt_type *const type = &zt_types[f->type];
    for (uint64_t i = 0; i < n; i++) {
        if (!inner && f->inner != ZT_VALUE)
            set(at + i * 8, pointed_to(a, l, f, f->inner, &f->inner_count, i, true, depth), 8);
        else if (type->cls == ZT_STRUCT)
            fill_struct(a, type, at + i * type->size, depth + 1);
        else if (counts_something(type))
            set(at + i * type->size, arguments_random(a, 5), type->size);
    }
}

/* The value of a pointer, with what it points to. */
static uint64_t pointed_to(arguments *a, const level *l, const zt_field *f, uint8_t shape, const zt_expr *count, uint64_t index,
                           bool inner, unsigned depth)
{
    const uint64_t element = !inner && f->inner != ZT_VALUE ? 8 : zt_types[f->type].size;
    if (shape == ZT_PNEXT)
        return chain(a, depth);
    if (shape == ZT_ADDRESS || shape == ZT_OPAQUE || shape == ZT_VALUE)
        return arguments_random(a, 0);
    if (chance(a, 15) || depth > 4)
        return 0;
    if (shape == ZT_STRING || count->op == ZT_X_STRLEN)
        return text(a);
    int64_t n = shape == ZT_ONE ? 1 : count_of(a, l, count, index);
    if (count->op == ZT_X_NONE && shape != ZT_ONE)
        n = -1;
    if (n < 0)
        return (uint64_t)(uintptr_t)take(a, 64); /* a size nobody knows: the pointer is kept, its target is not */
    if (n == 0)
        return (uint64_t)(uintptr_t)take(a, 8);
    uint8_t *const p = take(a, (size_t)n * element);
    if (p != NULL)
        fill_elements(a, l, f, p, (uint64_t)n, inner, depth);
    return (uint64_t)(uintptr_t)p;
}

/* Plain values first, then pointers to counts, then what they count. */
static void fill_level(arguments *a, const level *l, unsigned depth, bool keep_head)
{
    for (int pass = 0; pass < 3; pass++) {
        for (unsigned i = 0; i < l->n; i++) {
            const zt_field *const f = &l->fields[i];
            const bool value = f->shape == ZT_VALUE, one = f->shape == ZT_ONE && counts_something(&zt_types[f->type]);
            if (pass != (value ? 0 : one ? 1 : 2))
                continue;
            if (keep_head && (strcmp(f->name, "stype") == 0 || (f->shape == ZT_PNEXT && strcmp(f->name, "pNext") != 0)))
                continue;
            if (value)
                fill_value(a, f, slot(l, i), depth);
            else
                set(slot(l, i), pointed_to(a, l, f, f->shape, &f->count, 0, false, depth), 8);
        }
    }
}

static void fill_struct(arguments *a, const zt_type *type, void *at, unsigned depth)
{
    const level l = {type->fields, type->n_fields, at, false};
    if (depth > 5) {
        memset(at, 0, type->size);
        return;
    }
    fill_level(a, &l, depth, type->stype >= 0);
    for (unsigned i = 0; i < type->n_fields; i++)
        if (type->stype >= 0 && strcmp(type->fields[i].name, "stype") == 0)
            set(slot(&l, i), (uint64_t)type->stype, 4);
}

void arguments_make(arguments *a, const zt_func *func)
{
    const level l = {func->params, func->n_params, (uint8_t *)a->words, true};
    a->func = func;
    a->used = 0;
    memset(a->words, 0, sizeof(a->words));
    fill_level(a, &l, 0, false);
}

/* ----------------------------------------------------------------------------------------------------------- outputs */

static const char *const driver_text = "a text that belongs to the driver";

static void overwrite(arguments *a, const zt_field *f, uint8_t *at, uint64_t n, unsigned depth)
{
    const zt_type *const type = &zt_types[f->type];
    for (uint64_t i = 0; i < n; i++) {
        if (f->inner == ZT_STRING) {
            set(at + i * 8, (uint64_t)(uintptr_t)driver_text, 8);
        } else if (f->inner == ZT_ADDRESS || f->inner == ZT_OPAQUE) {
            set(at + i * 8, arguments_random(a, 0), 8);
        } else if (f->inner != ZT_VALUE) {
            continue;
        } else if (type->cls == ZT_STRUCT) {
            for (unsigned m = 0; m < type->n_fields; m++) {
                const zt_field *const member = &type->fields[m];
                if (member->shape != ZT_VALUE || strcmp(member->name, "stype") == 0 || zt_types[member->type].cls == ZT_STRUCT ||
                    counts_something(&zt_types[member->type]))
                    continue;
                for (unsigned b = 0; b < member->size; b++)
                    at[i * type->size + member->offset + b] = (uint8_t)arguments_random(a, 256);
            }
        } else if (counts_something(type) && f->shape == ZT_ONE) {
            set(at, arguments_random(a, 9), type->size); /* a count may grow beyond the room there was */
        } else {
            for (unsigned b = 0; b < type->size; b++)
                at[i * type->size + b] = (uint8_t)arguments_random(a, 256);
        }
    }
    (void)depth;
}

void arguments_write_outputs(arguments *a, int64_t result)
{
    const zt_func *const func = a->func;
    const level l = {func->params, func->n_params, (uint8_t *)a->words, true};
    for (int pass = 0; pass < 2; pass++) { /* arrays first: their room is what the counts were */
        for (unsigned i = 0; i < func->n_params; i++) {
            const zt_field *const f = &func->params[i];
            uint8_t *const p = (uint8_t *)(uintptr_t)a->words[f->offset];
            if (!(f->dir & ZT_OUT) || p == NULL || (f->shape == ZT_ONE) != pass || f->count.op == ZT_X_STRLEN)
                continue;
            if (f->shape == ZT_ONE)
                overwrite(a, f, p, 1, 0);
            else if ((f->shape == ZT_ARRAY || f->shape == ZT_BLOB) && result == 0 && count_of(a, &l, &f->count, 0) > 0)
                overwrite(a, f, p, (uint64_t)count_of(a, &l, &f->count, 0), 0);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------ digest */

typedef struct digest {
    uint64_t hash;
    FILE *text;
} digest;

static void mix(digest *d, const void *data, uint64_t size)
{
    const uint8_t *const p = data;
    for (uint64_t i = 0; i < size; i++)
        d->hash = (d->hash ^ p[i]) * 0x100000001b3ull;
}

static int digest_node(void *ctx, const zt_node *node)
{
    digest *const d = ctx;
    const uint64_t facts[] = {node->kind, node->depth, node->index, node->count, node->size,
                              (uint64_t)(node->field ? node->field->offset : 0), (uint64_t)(node->type ? node->type - zt_types : 0),
                              node->kind == ZT_N_TARGET || node->kind == ZT_N_LOST ? node->addr : 0};
    mix(d, facts, sizeof(facts));
    if (node->kind <= ZT_N_LOST || node->kind == ZT_N_UNKNOWN || node->kind == ZT_N_TARGET)
        if (node->kind != ZT_N_POINTER_END && node->data != NULL)
            mix(d, node->data, node->size);
    if (d->text != NULL) {
        fprintf(d->text, "    %u depth %u %s %s index %llu size %llu addr %#llx:", node->kind, node->depth,
                node->field ? node->field->name : "-", node->type ? node->type->name : "-", (unsigned long long)node->index,
                (unsigned long long)node->size, (unsigned long long)node->addr);
        for (uint64_t i = 0; node->data != NULL && i < node->size && i < 32; i++)
            fprintf(d->text, " %02x", ((const uint8_t *)node->data)[i]);
        fputc('\n', d->text);
    }
    return 0;
}

uint64_t arguments_digest(const zt_func *func, const uint64_t *words, int phase, int64_t result, const zt_memory *memory,
                          const zt_memory *before, void *text_file)
{
    digest d = {0xcbf29ce484222325ull, text_file};
    const zt_walk walk = {.func = func, .words = words, .phase = phase, .result = result, .memory = memory, .before = before,
                          .visit = digest_node, .ctx = &d};
    mix(&d, words, func->n_words * 8u);
    const int status = zt_walk_call(&walk);
    mix(&d, &status, sizeof(status));
    return d.hash;
}

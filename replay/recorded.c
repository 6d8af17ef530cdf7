/* SPDX-License-Identifier: MIT */
/* The recorded memory of a call, and where the replay has what lies there. */
#include "program.h"

#include <stdarg.h>
#include <stdio.h>

static const void *find(const zt_piece *pieces, uint32_t n, uint64_t addr, uint64_t len, uint64_t *rest)
{
    for (uint32_t i = 0; i < n; i++) {
        const zt_piece *const p = &pieces[i];
        if (p->data != NULL && addr >= p->addr && addr - p->addr <= p->len && len <= p->len - (addr - p->addr)) {
            *rest = p->len - (addr - p->addr);
            if (*rest > 0 || len == 0)
                return (const uint8_t *)p->data + (addr - p->addr);
        }
    }
    return NULL;
}

static const void *in_at(void *ctx, uint64_t addr, uint64_t len)
{
    const zr_raw *const raw = ctx;
    uint64_t rest;
    return find(raw->in, raw->n_in, addr, len, &rest);
}

static const void *out_at(void *ctx, uint64_t addr, uint64_t len)
{
    const zr_raw *const raw = ctx;
    uint64_t rest;
    const void *const at = find(raw->out, raw->n_out, addr, len, &rest);
    return at ? at : find(raw->in, raw->n_in, addr, len, &rest);
}

static const char *text_in(const zt_piece *pieces, uint32_t n, uint64_t addr, uint64_t *len)
{
    uint64_t rest;
    const char *const text = find(pieces, n, addr, 1, &rest);
    if (text == NULL)
        return NULL;
    *len = strnlen(text, rest);
    return *len < rest ? text : NULL;
}

static const char *in_string(void *ctx, uint64_t addr, uint64_t *len)
{
    const zr_raw *const raw = ctx;
    return text_in(raw->in, raw->n_in, addr, len);
}

static const char *out_string(void *ctx, uint64_t addr, uint64_t *len)
{
    const zr_raw *const raw = ctx;
    const char *const text = text_in(raw->out, raw->n_out, addr, len);
    return text ? text : text_in(raw->in, raw->n_in, addr, len);
}

zt_memory zr_memory_enter(zr_raw *raw)
{
    return (zt_memory){in_at, in_string, raw};
}

zt_memory zr_memory_leave(zr_raw *raw)
{
    return (zt_memory){out_at, out_string, raw};
}

void zr_why(builder *b, const char *format, ...)
{
    char text[256];
    if (b->call->why_not != NULL)
        return;
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    char *const copy = zr_alloc(&b->plan->arena, (size_t)n + 1);
    if (copy != NULL)
        snprintf(copy, (size_t)n + 1, "%s", text);
    b->call->why_not = copy ? copy : "its arguments cannot be rebuilt";
}

bool zr_in_words(const builder *b, const void *data)
{
    const uint8_t *const words = (const uint8_t *)b->walk->words;
    return (const uint8_t *)data >= words && (const uint8_t *)data < words + b->call->func->n_words * 8u;
}

/* Whether `data` is the field itself and not an element that it points to. */
bool zr_is_outer(const builder *b, const zt_node *node)
{
    if (zr_in_words(b, node->data))
        return true;
    if (b->depth == 0 || node->field == NULL)
        return false;
    const zt_type *const type = b->types[b->depth - 1];
    const uint8_t *const at = node->data, *const base = b->structs[b->depth - 1];
    return node->field >= type->fields && node->field < type->fields + type->n_fields &&
           at >= base + node->field->offset && at < base + node->field->offset + node->field->size;
}

void *zr_seg_live(const zr_raw *raw, uint64_t addr)
{
    for (size_t i = 0; i < raw->n_segs; i++)
        if (addr >= raw->segs[i].start && addr < raw->segs[i].end)
            return raw->segs[i].live + (addr - raw->segs[i].start);
    return NULL;
}

/* The replay's place of a value that lies at `data` in the recorded memory. */
void *zr_place_of(const builder *b, const void *data)
{
    const uint8_t *const at = data, *const words = (const uint8_t *)b->walk->words;
    if (zr_in_words(b, data))
        return (uint8_t *)b->call->words + (at - words);
    for (size_t i = b->n_targets; i-- > 0;) {
        const target *const t = &b->targets[i];
        if (at >= t->data && at < t->data + t->size)
            return zr_seg_live(b->raw, t->addr + (uint64_t)(at - t->data));
    }
    return NULL;
}

int zr_follow(builder *b, const zt_node *node)
{
    if (node->kind == ZT_N_STRUCT) {
        if (b->depth >= ZR_MAX_STACK)
            return -ZT_E_LIMIT;
        b->structs[b->depth] = node->data;
        b->types[b->depth++] = node->type;
    } else if (node->kind == ZT_N_STRUCT_END) {
        b->depth--;
    } else if (node->kind == ZT_N_TARGET) {
        if (!zr_grow((void **)&b->targets, b->n_targets, &b->room_targets, sizeof(*b->targets)))
            return -ZT_E_MEMORY;
        b->targets[b->n_targets++] = (target){node->data, node->size, node->addr};
    }
    return 0;
}

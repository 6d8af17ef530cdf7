/* SPDX-License-Identifier: MIT */
/* The memory of a recorded call, made of the pieces that were kept of it. */
#include <string.h>

#include "reader.h"

static const void *piece_data(const zt_piece *p, const zt_call_memory *m)
{
    uint64_t len;
    if (p->data != NULL || p->lost)
        return p->data;
    const void *const blob = m->trace ? zt__blob_of_call(m->trace, m->call->number, &p->hash, &len) : NULL;
    return blob != NULL && len == p->len ? blob : NULL;
}

static bool holds(const zt_piece *p, uint64_t addr, uint64_t len)
{
    return addr >= p->addr && addr - p->addr <= p->len && len <= p->len - (addr - p->addr) && !(p->len == 0 && len == 0 && addr != p->addr);
}

/* Pieces lie in the order in which the arguments are walked: the next one asked for is mostly the last one or that behind it. */
static const zt_piece *find(const zt_piece *pieces, uint32_t n, uint32_t *last, uint64_t addr, uint64_t len)
{
    for (uint32_t i = 0, k = *last < n ? *last : 0; i < n; i++, k = k + 1 < n ? k + 1 : 0)
        if (holds(&pieces[k], addr, len)) {
            *last = k;
            return &pieces[k];
        }
    return NULL;
}

/* As of LEAVE what the call wrote, and behind it what it had been given. */
static const uint8_t *bytes_at(zt_call_memory *m, uint64_t addr, uint64_t len, uint64_t *rest)
{
    const zt_piece *p = NULL;
    if (m->phase == ZT_LEAVE)
        p = find(m->call->out, m->call->n_out, &m->last_out, addr, len);
    const bool inputs_serve = p == NULL;
    if (inputs_serve)
        p = find(m->call->in, m->call->n_in, &m->last_in, addr, len);
    const uint8_t *const data = p ? piece_data(p, m) : NULL;
    if (data == NULL)
        return NULL;
    *rest = p->len - (addr - p->addr);
    return data + (addr - p->addr);
}

static const void *trace_at(void *ctx, uint64_t addr, uint64_t len)
{
    uint64_t rest;
    return bytes_at(ctx, addr, len, &rest);
}

static const char *trace_string(void *ctx, uint64_t addr, uint64_t *len)
{
    uint64_t rest;
    const char *const text = (const char *)bytes_at(ctx, addr, 1, &rest);
    if (text == NULL)
        return NULL;
    *len = strnlen(text, rest);
    return *len < rest ? text : NULL;
}

zt_memory zt_memory_of(zt_call_memory *memory)
{
    return (zt_memory){trace_at, trace_string, memory};
}

/* ------------------------------------------------------------------------------------------------------------- words */

uint64_t zt_word(const zt_call *call, const zt_field *param)
{
    uint64_t value = 0;
    memcpy(&value, call->words + param->offset, param->size > 8 ? 8 : param->size);
    return value;
}

uint64_t zt_element(const void *array, uint64_t i)
{
    uint64_t value;
    memcpy(&value, (const uint8_t *)array + i * 8, sizeof(value));
    return value;
}

bool zt_word_left(const zt_call *call, const zt_field *param, zt_trace *trace, uint64_t *value)
{
    zt_call_memory left = {.call = call, .phase = ZT_LEAVE, .trace = trace};
    const void *const at = call->words[param->offset] != 0 ? trace_at(&left, call->words[param->offset], sizeof(*value)) : NULL;
    *value = at != NULL ? zt_element(at, 0) : 0;
    return at != NULL;
}

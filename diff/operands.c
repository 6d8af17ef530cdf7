/* SPDX-License-Identifier: MIT */
/*
 * The objects that calls name: differences to the call before, mostly one byte each, with a mark every ZD_MARK calls from which they can
 * be read. Hashes of calls hold them by XOR, so that an object's name can be taken out and another put in.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

bool zd_room(void *array, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return true;
    const size_t more = *room ? *room + *room / 2 : 64;
    void *const grown = realloc(*(void **)array, more * size);
    if (grown == NULL)
        return false;
    *(void **)array = grown;
    *room = more;
    return true;
}

bool zd_add_extra(zd_extras *e, zd_extra extra)
{
    if (!zd_room(&e->at, e->n, &e->room, sizeof(*e->at)))
        return false;
    e->at[e->n++] = extra;
    return true;
}

size_t zd_extras_of(const zd_extras *e, uint32_t call, const zd_extra **first)
{
    size_t low = 0, high = e->n, n = 0;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (e->at[middle].call < call)
            low = middle + 1;
        else
            high = middle;
    }
    *first = e->at + low;
    while (low + n < e->n && e->at[low + n].call == call)
        n++;
    return n;
}

static bool put(zd_side *s, uint64_t x)
{
    do {
        if (!zd_room(&s->operands, s->n_operands, &s->operands_room, 1))
            return false;
        s->operands[s->n_operands++] = (uint8_t)((x & 0x7f) | (x > 0x7f ? 0x80 : 0));
    } while (x >>= 7);
    return true;
}

static uint64_t get(const uint8_t **at)
{
    uint64_t x = 0;
    for (unsigned shift = 0;; shift += 7) {
        const uint8_t byte = *(*at)++;
        x |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return x;
    }
}

bool zd_operands_put(zd_side *s, uint32_t call, uint32_t *before, const uint32_t *objects, size_t n)
{
    if (call % ZD_MARK == 0) {
        if (!zd_room(&s->marks, call / ZD_MARK, &s->marks_room, sizeof(*s->marks)))
            return false;
        s->marks[call / ZD_MARK] = s->n_operands;
        memset(before, 0, 16 * sizeof(*before));
    }
    bool ok = put(s, n);
    for (size_t i = 0; ok && i < n; i++) {
        const int64_t step = (int64_t)(objects[i] + 1) - (int64_t)before[i & 15]; /* 0: none */
        before[i & 15] = objects[i] + 1;
        ok = put(s, (uint64_t)step << 1 ^ (uint64_t)(step >> 63));
    }
    return ok;
}

size_t zd_operands_get(zd_cursor *c, uint32_t call, const uint32_t **objects)
{
    const zd_side *const s = c->side;
    if (call < c->next || call / ZD_MARK != c->next / ZD_MARK || c->next % ZD_MARK == 0) {
        c->next = call / ZD_MARK * ZD_MARK;
        c->at = s->marks[call / ZD_MARK];
        memset(c->before, 0, sizeof(c->before));
    }
    const uint8_t *at = s->operands + c->at;
    size_t n = 0;
    for (; c->next <= call; c->next++) {
        n = get(&at);
        while (n > c->room)
            if (!zd_room(&c->list, c->room, &c->room, sizeof(*c->list)))
                return 0;
        for (size_t i = 0; i < n; i++) {
            const uint64_t x = get(&at);
            c->before[i & 15] += (uint32_t)(int64_t)(x >> 1 ^ -(x & 1));
            c->list[i] = c->before[i & 15] - 1;
        }
    }
    c->at = (size_t)(at - s->operands);
    *objects = c->list;
    return n;
}

static uint64_t name(const uint64_t *names, uint32_t object)
{
    return object == ZD_NONE || names == NULL ? 0 : names[object];
}

static void rehash_extras(zd_side *s, const zd_extras *extras, const uint64_t *names)
{
    for (size_t i = 0; i < extras->n; i++) {
        const zd_extra *const x = &extras->at[i];
        s->hash[x->call] ^= zd_mix(x->hash, name(s->names, x->object)) * (s->names != NULL) ^ zd_mix(x->hash, name(names, x->object));
    }
}

void zd_rehash(zd_side *s, uint64_t *names)
{
    zd_cursor cursor = {.side = s};
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t *objects;
        const size_t n = zd_operands_get(&cursor, i, &objects);
        uint64_t old = 0x6f626a, new = 0x6f626a;
        for (size_t k = 0; k < n; k++) {
            old = zd_mix(old, name(s->names, objects[k]));
            new = zd_mix(new, name(names, objects[k]));
        }
        if (!(s->options->ignore & ZD_ARGS))
            s->hash[i] ^= (s->names != NULL ? old : 0) ^ new;
    }
    free(cursor.list);
    if (!(s->options->ignore & ZD_RESULTS))
        rehash_extras(s, &s->outs, names);
    if (!s->options->contents_apart)
        rehash_extras(s, &s->contents, names);
    free(s->names);
    s->names = names;
}

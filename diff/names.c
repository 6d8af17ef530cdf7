/* SPDX-License-Identifier: MIT */
#include "names.h"

#include <stdlib.h>
#include <string.h>

#define SHELF 512  /* allocations side by side in memory */
#define FREED 64   /* that are remembered: each address that is in no allocation is looked for in them */

typedef struct slot {
    uint64_t value;
    uint32_t object;
    uint16_t kind;
} slot;

typedef struct alloc {
    uint64_t base, size;
    uint32_t object;
} alloc;

typedef struct shelf { /* ascending, in ascending shelves: one more costs no more with millions of them */
    uint32_t n;
    alloc at[SHELF];
} shelf;

struct zd_names {
    zd_object *objects;
    uint32_t n, room;
    slot *table; /* open addressing by kind and handle */
    size_t used, table_room;
    shelf **shelves;
    size_t n_shelves, shelves_room;
    alloc freed[FREED]; /* a ring */
    size_t n_freed;
    uint32_t *generations;
};

zd_names *zd_names_new(void)
{
    zd_names *const o = calloc(1, sizeof(*o));
    if (o != NULL && (o->generations = calloc(zt_n_types + 1, sizeof(*o->generations))) == NULL) {
        free(o);
        return NULL;
    }
    return o;
}

void zd_names_free(zd_names *o)
{
    if (o == NULL)
        return;
    for (size_t i = 0; i < o->n_shelves; i++)
        free(o->shelves[i]);
    free(o->shelves);
    free(o->objects);
    free(o->table);
    free(o->generations);
    free(o);
}

uint32_t zd_names_take(zd_names *o, zd_object **objects)
{
    const uint32_t n = o->n;
    *objects = o->objects;
    o->objects = NULL;
    o->n = o->room = 0;
    return n;
}

static size_t place_of(const slot *table, size_t room, uint16_t kind, uint64_t value)
{
    size_t at = (size_t)((value ^ ((uint64_t)kind << 48)) * 0x9e3779b97f4a7c15u >> 20) & (room - 1);
    while (table[at].object != ZD_NONE && (table[at].kind != kind || table[at].value != value))
        at = (at + 1) & (room - 1);
    return at;
}

static slot *slot_for(zd_names *o, uint16_t kind, uint64_t value)
{
    if (o->used * 2 >= o->table_room) {
        const size_t room = o->table_room ? o->table_room * 2 : 256;
        slot *const table = malloc(room * sizeof(*table));
        if (table == NULL)
            return NULL;
        for (size_t i = 0; i < room; i++)
            table[i].object = ZD_NONE;
        for (size_t i = 0; i < o->table_room; i++)
            if (o->table[i].object != ZD_NONE)
                table[place_of(table, room, o->table[i].kind, o->table[i].value)] = o->table[i];
        free(o->table);
        o->table = table;
        o->table_room = room;
    }
    slot *const s = &o->table[place_of(o->table, o->table_room, kind, value)];
    s->kind = kind;
    s->value = value;
    return s;
}

static uint32_t add(zd_names *o, unsigned kind, uint64_t value, uint32_t creator)
{
    if (o->n == o->room) {
        const uint32_t room = o->room ? o->room * 2 : 64;
        zd_object *const grown = room > o->room ? realloc(o->objects, room * sizeof(*grown)) : NULL;
        if (grown == NULL)
            return ZD_NONE;
        o->objects = grown;
        o->room = room;
    }
    o->objects[o->n] = (zd_object){.value = value, .creator = creator, .generation = ++o->generations[kind], .kind = (uint16_t)kind};
    return o->n++;
}

uint32_t zd_names_handle(const zd_names *o, const zt_type *type, uint64_t handle)
{
    return o->table_room == 0 || handle == 0 ? ZD_NONE : o->table[place_of(o->table, o->table_room, type->base, handle)].object;
}

uint32_t zd_names_set(zd_names *o, const zt_type *type, uint64_t handle, uint32_t creator, bool fresh)
{
    if (handle == 0 || type->object == NULL)
        return ZD_NONE;
    slot *const s = slot_for(o, type->base, handle);
    if (s == NULL || (s->object != ZD_NONE && !o->objects[s->object].dead && !fresh))
        return s ? s->object : ZD_NONE;
    const uint32_t object = add(o, type->base, handle, creator);
    if (object != ZD_NONE) {
        o->used += s->object == ZD_NONE;
        s->object = object;
    }
    return object;
}

void zd_names_holds_times(zd_names *o, uint32_t object)
{
    if (object < o->n)
        o->objects[object].times = 1;
}

bool zd_names_has_times(const zd_names *o, uint32_t object)
{
    return object < o->n && o->objects[object].times;
}

void zd_names_end(zd_names *o, uint32_t object)
{
    if (object < o->n)
        o->objects[object].dead = 1;
}

/* -------------------------------------------------------------------------------------------------------- allocations */

/* The shelf that holds the last base <= address, and where in it; 0 of the first one if there is none. */
static size_t shelf_of(const zd_names *o, uint64_t address, uint32_t *at)
{
    size_t low = 0, high = o->n_shelves;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (o->shelves[middle]->at[0].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const size_t index = low > 0 ? low - 1 : 0;
    uint32_t first = 0, last = o->n_shelves ? o->shelves[index]->n : 0;
    while (first < last) {
        const uint32_t middle = (first + last) / 2;
        if (o->shelves[index]->at[middle].base <= address)
            first = middle + 1;
        else
            last = middle;
    }
    *at = first;
    return index;
}

static bool insert_shelf(zd_names *o, size_t index, shelf *s)
{
    if (s == NULL)
        return false;
    if (o->n_shelves == o->shelves_room) {
        const size_t room = o->shelves_room ? o->shelves_room * 2 : 16;
        shelf **const grown = realloc(o->shelves, room * sizeof(*grown));
        if (grown == NULL) {
            free(s);
            return false;
        }
        o->shelves = grown;
        o->shelves_room = room;
    }
    memmove(o->shelves + index + 1, o->shelves + index, (o->n_shelves - index) * sizeof(*o->shelves));
    o->shelves[index] = s;
    o->n_shelves++;
    return true;
}

static void end_at(zd_names *o, size_t index, uint32_t at)
{
    shelf *const s = o->shelves[index];
    zd_names_end(o, s->at[at].object);
    o->freed[o->n_freed++ % FREED] = s->at[at];
    memmove(s->at + at, s->at + at + 1, (s->n - at - 1) * sizeof(*s->at));
    if (--s->n > 0)
        return;
    free(s);
    memmove(o->shelves + index, o->shelves + index + 1, (o->n_shelves - index - 1) * sizeof(*o->shelves));
    o->n_shelves--;
}

void zd_names_freed(zd_names *o, uint64_t base)
{
    uint32_t at;
    const size_t index = shelf_of(o, base, &at);
    if (at > 0 && o->shelves[index]->at[at - 1].base == base)
        end_at(o, index, at - 1);
}

uint32_t zd_names_allocated(zd_names *o, uint64_t base, uint64_t size, uint32_t creator)
{
    zd_names_freed(o, base); /* its free was not seen */
    uint32_t at;
    size_t index = shelf_of(o, base, &at);
    if (o->n_shelves == 0 && !insert_shelf(o, 0, calloc(1, sizeof(shelf))))
        return ZD_NONE;
    if (o->shelves[index]->n == SHELF) {
        shelf *const full = o->shelves[index], *const half = calloc(1, sizeof(*half));
        if (!insert_shelf(o, index + 1, half))
            return ZD_NONE;
        half->n = SHELF / 2;
        full->n = SHELF - SHELF / 2;
        memcpy(half->at, full->at + full->n, half->n * sizeof(*half->at));
        index = shelf_of(o, base, &at);
    }
    shelf *const s = o->shelves[index];
    const uint32_t object = add(o, zt_n_types, base, creator);
    if (object == ZD_NONE)
        return ZD_NONE;
    memmove(s->at + at + 1, s->at + at, (s->n - at) * sizeof(*s->at));
    s->at[at] = (alloc){base, size, object};
    s->n++;
    return object;
}

static bool holds(const alloc *a, uint64_t address)
{
    return address == a->base || (address > a->base && address - a->base < a->size);
}

uint32_t zd_names_address(const zd_names *o, uint64_t address, uint64_t *offset)
{
    uint32_t at;
    const size_t index = shelf_of(o, address, &at);
    const alloc *found = at > 0 && holds(&o->shelves[index]->at[at - 1], address) ? &o->shelves[index]->at[at - 1] : NULL;
    for (size_t i = o->n_freed; found == NULL && i > 0 && i + FREED > o->n_freed; i--)
        if (holds(&o->freed[(i - 1) % FREED], address))
            found = &o->freed[(i - 1) % FREED];
    if (found == NULL)
        return ZD_NONE;
    *offset = address - found->base;
    return found->object;
}

/* SPDX-License-Identifier: MIT */
/* Which object a recorded handle or address names. Everything is decided while the plan is made. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct zr_block {
    struct zr_block *next;
    size_t size;
};
#define BLOCK (1u << 20)

#ifdef __SANITIZE_ADDRESS__
/* A block for each, so that the sanitizer sees where one ends. */
void *zr_alloc(zr_arena *arena, size_t size)
{
    struct zr_block *const block = size > (1ull << 33) ? NULL : calloc(1, 64 + size);
    if (block == NULL)
        return NULL;
    block->size = 64 + size;
    block->next = arena->blocks;
    arena->blocks = block;
    return (uint8_t *)block + 64;
}

void zr_arena_free(zr_arena *arena)
{
    while (arena->blocks != NULL) {
        struct zr_block *const block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
}
#else
void *zr_alloc(zr_arena *arena, size_t size)
{
    const size_t align = size >= 64 ? 64 : 8;
    size_t at = (arena->used + align - 1) & ~(align - 1);
    if (size > SIZE_MAX / 2)
        return NULL;
    if (arena->blocks == NULL || at + size > arena->room) {
        const size_t room = size + 64 > BLOCK ? size + 64 : BLOCK;
        struct zr_block *const block =
            mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (block == MAP_FAILED)
            return NULL;
        block->size = room;
        if (room > BLOCK && arena->blocks != NULL) { /* a block of its own; the current one stays current */
            block->next = arena->blocks->next;
            arena->blocks->next = block;
            return (uint8_t *)block + 64;
        }
        block->next = arena->blocks;
        arena->blocks = block;
        arena->room = room;
        at = 64;
    }
    arena->used = at + size;
    return (uint8_t *)arena->blocks + at;
}

void zr_arena_free(zr_arena *arena)
{
    while (arena->blocks != NULL) {
        struct zr_block *const block = arena->blocks;
        arena->blocks = block->next;
        munmap(block, block->size);
    }
}
#endif

bool zr_arena_has(const zr_arena *arena, uint64_t address, uint64_t size)
{
    for (const struct zr_block *b = arena->blocks; b != NULL; b = b->next)
        if (address >= (uint64_t)(uintptr_t)b + 64 && size <= b->size && address - (uint64_t)(uintptr_t)b <= b->size - size)
            return true;
    return false;
}

bool zr_grow(void **array, size_t count, size_t *room, size_t element)
{
    if (count < *room)
        return true;
    const size_t wanted = *room ? *room * 2 : 64;
    void *const grown = realloc(*array, wanted * element);
    if (grown == NULL)
        return false;
    *array = grown;
    *room = wanted;
    return true;
}

bool zr_objects_init(zr_objects *o)
{
    o->n_slots = 1024;
    o->slots = malloc(o->n_slots * sizeof(*o->slots));
    o->generations = calloc(zt_n_types + 1, sizeof(*o->generations));
    if (o->slots == NULL || o->generations == NULL)
        return false;
    memset(o->slots, 0xff, o->n_slots * sizeof(*o->slots));
    return true;
}

void zr_objects_destroy(zr_objects *o)
{
    for (size_t i = 0; i < o->n_spans; i++)
        if (o->spans[i].live != NULL)
            munmap(o->spans[i].live - (o->spans[i].start & 4095) - 4096,
                   (((o->spans[i].start & 4095) + (o->spans[i].end - o->spans[i].start) + 4095) & ~4095ull) + 8192);
    free(o->objects);
    free(o->slots);
    free(o->generations);
    free(o->mems);
    free(o->by_address);
    free(o->spans);
}

static size_t hash(uint64_t handle)
{
    return (size_t)((handle * 0x9e3779b97f4a7c15ull) >> 20);
}

uint32_t zr_object_find(const zr_objects *o, uint16_t type, uint64_t handle)
{
    uint32_t other = ZR_NONE;
    for (size_t i = hash(handle);; i++) {
        const uint32_t index = o->slots[i & (o->n_slots - 1)];
        if (index == ZR_NONE)
            return other;
        if (o->objects[index].recorded != handle)
            continue;
        if (o->objects[index].type == type)
            return index;
        if (other == ZR_NONE || o->objects[other].dead)
            other = index;
    }
}

static void put(zr_objects *o, uint32_t index)
{
    const zr_object *const object = &o->objects[index];
    for (size_t i = hash(object->recorded);; i++) {
        uint32_t *const slot = &o->slots[i & (o->n_slots - 1)];
        const bool same = *slot != ZR_NONE && o->objects[*slot].recorded == object->recorded &&
                          o->objects[*slot].type == object->type;
        if (*slot != ZR_NONE && !same)
            continue;
        o->used_slots += *slot == ZR_NONE;
        *slot = index;
        return;
    }
}

uint32_t zr_object_add(zr_objects *o, uint16_t type, uint64_t handle, uint64_t call)
{
    if (o->n_objects >= ZR_NONE - 1 ||
        !zr_grow((void **)&o->objects, o->n_objects, &o->room_objects, sizeof(*o->objects)))
        return ZR_NONE;
    if (o->used_slots * 2 >= o->n_slots) {
        uint32_t *const old = o->slots, *const bigger = malloc(o->n_slots * 2 * sizeof(*bigger));
        if (bigger == NULL)
            return ZR_NONE;
        const size_t n = o->n_slots;
        memset(bigger, 0xff, n * 2 * sizeof(*bigger));
        o->slots = bigger;
        o->n_slots = n * 2;
        o->used_slots = 0;
        for (size_t i = 0; i < n; i++)
            if (old[i] != ZR_NONE)
                put(o, old[i]);
        free(old);
    }
    const uint32_t index = (uint32_t)o->n_objects++;
    o->objects[index] =
        (zr_object){.recorded = handle, .type = type, .generation = ++o->generations[type], .created = call};
    put(o, index);
    return index;
}

/* First entry of by_address whose end lies above the address. */
static size_t lower(const zr_objects *o, uint64_t address)
{
    size_t low = 0, high = o->n_by_address;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        const zr_mem *const mem = &o->mems[o->by_address[mid]];
        if (mem->recorded + mem->size <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

uint32_t zr_mem_find(const zr_objects *o, uint64_t address)
{
    const size_t at = lower(o, address);
    if (at < o->n_by_address && o->mems[o->by_address[at]].recorded <= address)
        return o->by_address[at];
    return ZR_NONE;
}

uint32_t zr_mem_add(zr_objects *o, uint64_t address, uint64_t size, uint64_t call, bool inside)
{
    if (size == 0)
        size = 1;
    if (size > UINT64_MAX - address)
        size = UINT64_MAX - address;
    if (!zr_grow((void **)&o->mems, o->n_mems, &o->room_mems, sizeof(*o->mems)) ||
        !zr_grow((void **)&o->by_address, o->n_by_address, &o->room_by_address, sizeof(*o->by_address)))
        return ZR_NONE;
    const size_t at = lower(o, address);
    size_t end = at;
    while (end < o->n_by_address && o->mems[o->by_address[end]].recorded < address + size)
        end++;
    memmove(o->by_address + at + 1, o->by_address + end, (o->n_by_address - end) * sizeof(*o->by_address));
    o->n_by_address = o->n_by_address - (end - at) + 1;
    const uint32_t index = (uint32_t)o->n_mems++;
    o->by_address[at] = index;
    o->mems[index] = (zr_mem){.recorded = address,
                              .size = size,
                              .created = call,
                              .inside = inside,
                              .generation = inside ? 0 : ++o->generations[zt_n_types]};
    return index;
}

void zr_object_name(const zr_objects *o, uint32_t index, char *out, size_t size)
{
    if (index >= o->n_objects) {
        snprintf(out, size, "?");
        return;
    }
    const zr_object *const object = &o->objects[index];
    const char *const word = zt_types[object->type].object;
    snprintf(out, size, "%s#%u", word ? word : zt_types[object->type].name, object->generation);
}

void zr_address_name(const zr_objects *o, uint64_t address, uint32_t mem, char *out, size_t size)
{
    if (mem < o->n_mems && !o->mems[mem].inside)
        snprintf(out, size, "mem#%u+%llu", o->mems[mem].generation,
                 (unsigned long long)(address - o->mems[mem].recorded));
    else
        snprintf(out, size, "host memory 0x%llx", (unsigned long long)address);
}

size_t zr_find_call(const zr_plan *plan, uint64_t number)
{
    size_t low = 0, high = plan->n_calls;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (plan->calls[mid].number < number)
            low = mid + 1;
        else
            high = mid;
    }
    return low < plan->n_calls && plan->calls[low].number == number ? low : SIZE_MAX;
}

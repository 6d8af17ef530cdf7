/* SPDX-License-Identifier: MIT */
#include "contents.h"

#define MAX_FLIGHTS 65536u /* beyond: the oldest are forgotten, which costs evidence and nothing else */
#define GONE (~0ull)

_Atomic uint32_t zc_in_flight, zc_lists;
uint64_t zc_alloc_generation = 1, zc_submit, zc_round;
zc_flight *zc_flights;
size_t zc_n_flights;

static zc_lock state_lock;
static zc_alloc *allocs; /* sorted by base */
static size_t n_allocs, allocs_room;
static uint64_t next_alloc_id;
static zc_list *lists; /* open addressing by handle */
static size_t n_lists, lists_room;
static uint64_t next_generation;
static size_t flights_room;

void zc_state_lock(void)
{
    zc_lock_take(&state_lock);
}

void zc_state_unlock(void)
{
    zc_lock_give(&state_lock);
}

void zc_contents_lock_all(void)
{
    zc_lock_take(&state_lock);
}

void zc_contents_unlock_all(void)
{
    zc_lock_give(&state_lock);
}

bool zc_grow_map(void *list, size_t n, size_t *room, size_t size, size_t first)
{
    if (n < *room)
        return true;
    const size_t more = *room ? *room * 2 : first;
    void *const grown = zc_map(more * size);
    if (grown == NULL)
        return false;
    if (*room) {
        memcpy(grown, *(void **)list, n * size);
        zc_unmap(*(void **)list, *room * size);
    }
    *(void **)list = grown;
    *room = more;
    return true;
}

/* -------------------------------------------------------------------------------------------------------- allocations */

static size_t above(uint64_t addr)
{
    size_t low = 0, high = n_allocs;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (allocs[mid].base <= addr)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

zc_alloc *zc_alloc_find(uint64_t addr)
{
    const size_t at = above(addr);
    return at > 0 && addr - allocs[at - 1].base < allocs[at - 1].size ? &allocs[at - 1] : NULL;
}

zc_alloc *zc_alloc_at(size_t index)
{
    return index < n_allocs ? &allocs[index] : NULL;
}

size_t zc_n_allocs(void)
{
    return n_allocs;
}

struct zc_blocks *zc_alloc_remove(uint64_t base)
{
    const size_t at = above(base);
    if (at == 0 || allocs[at - 1].base != base)
        return NULL;
    struct zc_blocks *const blocks = allocs[at - 1].blocks;
    memmove(allocs + at - 1, allocs + at, (n_allocs - at) * sizeof(*allocs));
    n_allocs--;
    zc_alloc_generation++;
    return blocks;
}

bool zc_alloc_add(uint64_t base, uint64_t size, uint32_t kind, struct zc_blocks *blocks)
{
    if (!zc_grow_map(&allocs, n_allocs, &allocs_room, sizeof(*allocs), 256))
        return false;
    const size_t at = above(base);
    memmove(allocs + at + 1, allocs + at, (n_allocs - at) * sizeof(*allocs));
    allocs[at] = (zc_alloc){.base = base, .size = size, .id = ++next_alloc_id, .kind = kind, .blocks = blocks};
    n_allocs++;
    zc_alloc_generation++;
    return true;
}

/* -------------------------------------------------------------------------------------------------------------- lists */

static size_t place(const zc_list *table, size_t room, uint64_t handle)
{
    size_t at = (size_t)(handle * 0x9e3779b97f4a7c15ull >> 32) & (room - 1);
    while (table[at].handle != 0 && table[at].handle != handle)
        at = (at + 1) & (room - 1);
    return at;
}

zc_list *zc_list_find(uint64_t handle)
{
    if (lists_room == 0 || handle == 0 || handle == GONE)
        return NULL;
    zc_list *const list = &lists[place(lists, lists_room, handle)];
    return list->handle == handle ? list : NULL;
}

void zc_list_clear(zc_list *list)
{
    if (list->n > 0)
        atomic_fetch_sub_explicit(&zc_lists, 1, memory_order_relaxed);
    list->n = 0;
}

zc_list *zc_list_add(uint64_t handle)
{
    zc_list *list = zc_list_find(handle);
    if (list == NULL) {
        if (n_lists * 2 >= lists_room) { /* places of lists that are gone are left out of the bigger table */
            const size_t room = lists_room ? lists_room * 2 : 256;
            zc_list *const table = zc_map(room * sizeof(*table));
            if (table == NULL)
                return NULL;
            n_lists = 0;
            for (size_t i = 0; i < lists_room; i++) {
                if (lists[i].handle == 0 || lists[i].handle == GONE)
                    continue;
                table[place(table, room, lists[i].handle)] = lists[i];
                n_lists++;
            }
            if (lists_room)
                zc_unmap(lists, lists_room * sizeof(*lists));
            lists = table;
            lists_room = room;
        }
        list = &lists[place(lists, lists_room, handle)];
        n_lists++;
    } else {
        zc_list_clear(list);
    }
    zc_operand *const operands = list->operands;
    const uint32_t room = list->room;
    *list = (zc_list){.handle = handle, .generation = ++next_generation, .operands = operands, .room = room};
    return list;
}

void zc_list_remove(uint64_t handle)
{
    zc_list *const list = zc_list_find(handle);
    if (list == NULL)
        return;
    zc_list_clear(list);
    if (list->room)
        zc_unmap(list->operands, list->room * sizeof(*list->operands));
    *list = (zc_list){.handle = GONE};
}

bool zc_list_append(zc_list *list, const zc_operand *operand)
{
    size_t room = list->room;
    if (!zc_grow_map(&list->operands, list->n, &room, sizeof(*list->operands), 64))
        return false;
    list->room = (uint32_t)room;
    if (list->n == 0)
        atomic_fetch_add_explicit(&zc_lists, 1, memory_order_relaxed);
    list->operands[list->n++] = *operand;
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- in flight */

static void count_flights(void)
{
    atomic_store_explicit(&zc_in_flight, (uint32_t)zc_n_flights, memory_order_relaxed);
}

/* The allocation that a launch in flight may write because an argument points there; NULL. */
static zc_alloc *pointed_to(const zc_flight *f)
{
    zc_alloc *const a = f->operand.argument ? zc_alloc_find(f->operand.addr) : NULL;
    return a != NULL && a->id == f->operand.alloc ? a : NULL;
}

static void landed(const zc_flight *f)
{
    zc_alloc *const a = pointed_to(f);
    if (a != NULL && a->launches > 0)
        a->launches--;
}

bool zc_flight_add(zc_flight *flight)
{
    if (zc_n_flights >= MAX_FLIGHTS) {
        for (size_t i = 0; i < MAX_FLIGHTS / 2; i++)
            landed(&zc_flights[i]);
        memmove(zc_flights, zc_flights + MAX_FLIGHTS / 2, (MAX_FLIGHTS / 2) * sizeof(*zc_flights));
        zc_n_flights = MAX_FLIGHTS / 2;
    }
    if (!zc_grow_map(&zc_flights, zc_n_flights, &flights_room, sizeof(*zc_flights), 256))
        return false;
    zc_alloc *const a = pointed_to(flight);
    if (a != NULL) {
        if (a->newest != flight->submit)
            a->busy = a->launches > 0;
        a->newest = flight->submit;
        a->launches++;
        flight->busy = a->busy;
    }
    zc_flights[zc_n_flights++] = *flight;
    count_flights();
    return true;
}

void zc_flight_drop(bool (*which)(const zc_flight *flight, void *ctx), void *ctx)
{
    size_t kept = 0;
    for (size_t i = 0; i < zc_n_flights; i++) {
        if (which(&zc_flights[i], ctx))
            landed(&zc_flights[i]);
        else
            zc_flights[kept++] = zc_flights[i];
    }
    zc_n_flights = kept;
    count_flights();
}

void zc_state_reset(void)
{
    for (size_t i = 0; i < n_allocs; i++)
        zc_blocks_release(allocs[i].blocks);
    n_allocs = zc_n_flights = 0;
    zc_kernels_reset();
    for (size_t i = 0; i < lists_room; i++)
        lists[i].n = 0;
    for (size_t i = 0; i < lists_room; i++)
        if (lists[i].handle != 0)
            lists[i].handle = GONE;
    zc_alloc_generation++;
    atomic_store(&zc_lists, 0);
    count_flights();
}

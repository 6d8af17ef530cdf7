/* SPDX-License-Identifier: MIT */
/*
 * All memory lies in one file, mapped piece by piece into one window of addresses that is reserved when the library is
 * loaded: the same calls give the same addresses in every process. Here are the window, the table of what lies in it, and
 * the device's view of it.
 */
#include "memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef SOFT_WINDOW_BASE /* the thread sanitizer's shadow lies there: its builds give another, smaller place */
#define SOFT_WINDOW_BASE 0x200000000000ull
#define SOFT_WINDOW_SIZE 0x10000000000ull /* 1 TiB */
#endif
#define WINDOW_STEP 0x20000000000ull /* 2 TiB from one copy of the library to the next */
#define WINDOW_SIZE SOFT_WINDOW_SIZE
#define FILE_SIZE (1ull << 60)       /* places in it are used once; what is freed takes no room */

uint64_t soft_clock;

static uint64_t window, next_address, next_offset, next_id;
static int file = -1;
static soft_alloc **allocs; /* sorted by base */
static size_t n_allocs, room;
typedef struct hole {
    uint64_t base, span;
} hole;
static hole *holes; /* freed ranges, newest last */
static size_t n_holes, holes_room;

/* ------------------------------------------------------------------------------------------------------------ window */

__attribute__((constructor)) static void reserve_window(void)
{
    for (unsigned copy = 0; copy < 16 && window == 0; copy++) {
        const uint64_t base = SOFT_WINDOW_BASE + copy * WINDOW_STEP;
        void *const p = mmap((void *)base, WINDOW_SIZE, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (p == (void *)base)
            window = base;
        else if (p != MAP_FAILED)
            munmap(p, WINDOW_SIZE);
    }
    next_address = window;
}

bool soft_window_open(void)
{
    if (window == 0)
        return false;
    if (file >= 0)
        return true;
    file = memfd_create("libze_soft", MFD_CLOEXEC);
    return file >= 0 && ftruncate(file, (off_t)FILE_SIZE) == 0;
}

void soft_memory_reset(void)
{
    if (file >= 0)
        close(file);
    file = -1;
    for (size_t i = 0; i < n_allocs; i++) {
        free(allocs[i]->evicted);
        free(allocs[i]);
    }
    n_allocs = n_holes = 0;
    next_address = window;
    next_offset = 0;
    if (window != 0)
        soft_window_unmap(window, WINDOW_SIZE);
}

bool soft_in_window(uint64_t address)
{
    return window != 0 && address >= window && address < window + WINDOW_SIZE;
}

void soft_range_give_back(uint64_t base, uint64_t span)
{
    if (n_holes == holes_room) {
        const size_t more = holes_room ? holes_room * 2 : 64;
        hole *const grown = realloc(holes, more * sizeof(*holes));
        if (grown == NULL)
            return; /* the range is not used again, that is all */
        holes = grown;
        holes_room = more;
    }
    holes[n_holes++] = (hole){base, span};
}

uint64_t soft_range_take(uint64_t span, uint64_t alignment)
{
    const bool lifo = soft.va == SOFT_VA_REUSE || soft.free == SOFT_FREE_REUSE;
    for (size_t i = n_holes; lifo && i > 0; i--) {
        if (holes[i - 1].span == span && holes[i - 1].base % alignment == 0) {
            const uint64_t base = holes[i - 1].base;
            memmove(holes + i - 1, holes + i, (n_holes - i) * sizeof(*holes));
            n_holes--;
            return base;
        }
    }
    const uint64_t base = (next_address + alignment - 1) / alignment * alignment;
    if (base + span + SOFT_GRAIN <= window + WINDOW_SIZE) {
        next_address = base + span + SOFT_GRAIN;
        return base;
    }
    for (size_t i = 0; soft.va != SOFT_VA_QUARANTINE && i < n_holes; i++) {
        if (holes[i].span >= span && holes[i].base % alignment == 0) {
            const uint64_t found = holes[i].base;
            holes[i].base += span;
            holes[i].span -= span;
            return found;
        }
    }
    return 0;
}

uint64_t soft_file_take(uint64_t span)
{
    const uint64_t offset = next_offset;
    next_offset += span;
    return offset;
}

void soft_file_punch(uint64_t offset, uint64_t span)
{
    fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)span);
}

bool soft_window_map(uint64_t base, uint64_t span, uint64_t offset, ze_memory_access_attribute_t access)
{
    const int protection = access == ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE  ? PROT_READ | PROT_WRITE
                           : access == ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY ? PROT_READ
                                                                           : PROT_NONE;
    return mmap((void *)base, span, protection, MAP_SHARED | MAP_FIXED, file, (off_t)offset) != MAP_FAILED;
}

void soft_window_unmap(uint64_t base, uint64_t span)
{
    mmap((void *)base, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* ------------------------------------------------------------------------------------------------------------- table */

size_t soft_alloc_above(uint64_t address)
{
    size_t low = 0, high = n_allocs;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (allocs[mid]->base <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

soft_alloc *soft_alloc_at(size_t index)
{
    return index < n_allocs ? allocs[index] : NULL;
}

soft_alloc *soft_alloc_find_locked(uint64_t address)
{
    for (size_t i = soft_alloc_above(address); i > 0; i--) {
        soft_alloc *const a = allocs[i - 1];
        if (address < a->base + a->span && !a->reserved)
            return address < a->base + a->size ? a : NULL;
        if (!a->reserved)
            return NULL; /* a mapping may lie inside a reservation that begins before it */
    }
    return NULL;
}

soft_alloc *soft_alloc_by_id_locked(uint64_t id)
{
    for (size_t i = 0; i < n_allocs; i++)
        if (allocs[i]->id == id)
            return allocs[i];
    return NULL;
}

soft_alloc *soft_alloc_insert(uint64_t base, uint64_t size, uint64_t span)
{
    if (n_allocs == room) {
        const size_t more = room ? room * 2 : 64;
        soft_alloc **const grown = realloc(allocs, more * sizeof(*allocs));
        if (grown == NULL)
            return NULL;
        allocs = grown;
        room = more;
    }
    soft_alloc *const a = calloc(1, sizeof(*a));
    if (a == NULL)
        return NULL;
    a->base = base;
    a->size = size;
    a->span = span;
    a->id = ++next_id;
    a->access = ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE;
    const size_t at = soft_alloc_above(base);
    memmove(allocs + at + 1, allocs + at, (n_allocs - at) * sizeof(*allocs));
    allocs[at] = a;
    n_allocs++;
    return a;
}

void soft_alloc_forget(soft_alloc *a)
{
    size_t i = soft_alloc_above(a->base);
    while (i > 0 && allocs[i - 1] != a) /* a reservation and its first mapping have one base */
        i--;
    memmove(allocs + i - 1, allocs + i, (n_allocs - i) * sizeof(*allocs));
    n_allocs--;
    free(a->evicted);
    free(a);
}

/* --------------------------------------------------------------------------------------------------------- residency */

/* What an evict of [begin, end) takes away. */
static void widen(const soft_alloc *a, uint64_t *begin, uint64_t *end)
{
    if (soft.residency == SOFT_RES_64K) {
        *begin = *begin / SOFT_GRAIN * SOFT_GRAIN;
        *end = (*end + SOFT_GRAIN - 1) / SOFT_GRAIN * SOFT_GRAIN;
    }
    if (soft.residency == SOFT_RES_ALLOCATION || *begin < a->base)
        *begin = a->base;
    if (soft.residency == SOFT_RES_ALLOCATION || *end > a->base + a->span || *end < *begin)
        *end = a->base + a->span;
}

static bool keep_evicted(soft_alloc *a, uint64_t begin, uint64_t end, uint64_t clock)
{
    soft_evicted *const grown = realloc(a->evicted, (a->n_evicted + 1) * sizeof(*grown));
    if (grown == NULL)
        return false;
    a->evicted = grown;
    a->evicted[a->n_evicted++] = (soft_evicted){begin, end, clock};
    return true;
}

/* Takes [begin, end) out of what is evicted. */
static void cut(soft_alloc *a, uint64_t begin, uint64_t end)
{
    for (size_t i = 0; i < a->n_evicted;) {
        const soft_evicted e = a->evicted[i];
        if (e.end <= begin || e.begin >= end) {
            i++;
            continue;
        }
        a->evicted[i] = a->evicted[--a->n_evicted];
        if (e.begin < begin)
            keep_evicted(a, e.begin, begin, e.clock);
        if (e.end > end)
            keep_evicted(a, end, e.end, e.clock);
    }
}

bool soft_evict_locked(soft_alloc *a, uint64_t begin, uint64_t size)
{
    uint64_t end = begin + size;
    widen(a, &begin, &end);
    cut(a, begin, end);
    return keep_evicted(a, begin, end, ++soft_clock);
}

void soft_make_resident_locked(uint64_t address, uint64_t size)
{
    soft_alloc *const a = soft.rebind == SOFT_REBIND_SUBMIT && address != 0 ? soft_alloc_find_locked(address) : NULL;
    if (a == NULL || a->n_evicted == 0)
        return; /* strict: what was submitted before the evict has lost the memory, what comes later never missed it */
    uint64_t begin = address, end = size ? address + size : UINT64_MAX;
    widen(a, &begin, &end);
    cut(a, begin, end);
}

static bool evicted(const soft_alloc *a, uint64_t begin, uint64_t end, uint64_t since)
{
    for (size_t i = 0; i < a->n_evicted; i++)
        if (a->evicted[i].begin < end && a->evicted[i].end > begin &&
            (soft.rebind == SOFT_REBIND_SUBMIT || a->evicted[i].clock > since))
            return true;
    return false;
}

/* ------------------------------------------------------------------------------------------------- the device's access */

void *soft_device_map_locked(uint64_t address, size_t size, int access, uint64_t since, bool *fault)
{
    *fault = false;
    if (!soft_in_window(address) || size == 0)
        return NULL;
    const soft_alloc *const a = soft_alloc_find_locked(address);
    *fault = true;
    if (a == NULL || size > a->base + a->size - address || evicted(a, address, address + size, since))
        return NULL;
    if (a->physical != NULL && a->physical->number != a->physical_number)
        return NULL; /* destroyed under its mapping, and something else has its place */
    if (a->physical != NULL && soft_object_get(a->physical, SOFT_PHYSICAL) == NULL)
        return NULL;
    if (a->access == ZE_MEMORY_ACCESS_ATTRIBUTE_NONE ||
        ((access & SOFT_WRITE) && a->access == ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY))
        return NULL;
    *fault = false;
    return (void *)address;
}

/* Pageable memory: the kernel copies, so that an unmapped page is a fault of the device and not of the process. */
static bool host_transfer(uint64_t address, void *local, size_t size, bool write)
{
    const struct iovec here = {local, size}, there = {(void *)address, size};
    const ssize_t n = write ? process_vm_writev(getpid(), &here, 1, &there, 1, 0)
                            : process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    return n == (ssize_t)size;
}

bool soft_device_read_locked(uint64_t address, void *host, size_t size, uint64_t since)
{
    bool fault;
    const void *const at = soft_device_map_locked(address, size, SOFT_READ, since, &fault);
    if (fault)
        return false;
    if (at == NULL)
        return size == 0 || host_transfer(address, host, size, false);
    memcpy(host, at, size);
    return true;
}

bool soft_device_write_locked(uint64_t address, const void *host, size_t size, uint64_t since)
{
    bool fault;
    void *const at = soft_device_map_locked(address, size, SOFT_WRITE, since, &fault);
    if (fault)
        return false;
    if (at == NULL)
        return size == 0 || host_transfer(address, (void *)(uintptr_t)host, size, true);
    memmove(at, host, size);
    return true;
}

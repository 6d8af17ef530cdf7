/* SPDX-License-Identifier: MIT */
/*
 * Device, host and shared memory. All of it lies in one file in memory, mapped piece by piece into one window of addresses
 * that is reserved when the library is loaded: the same calls give the same addresses in every process.
 */
#include "soft.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define WINDOW_BASE 0x200000000000ull
#define WINDOW_STEP 0x20000000000ull /* 2 TiB from one copy of the library to the next */
#define WINDOW_SIZE 0x10000000000ull /* 1 TiB */
#define GRAIN 0x10000ull             /* the device's page */
#define MAX_SIZE (64ull << 30)

uint64_t soft_clock;

static uint64_t window, next_address, next_offset, next_id;
static int file = -1;
static soft_alloc **allocs; /* sorted by base */
static size_t n_allocs, room, n_deferred;
typedef struct hole {
    uint64_t base, span;
} hole;
static hole *holes; /* freed ranges, newest last */
static size_t n_holes, holes_room;

__attribute__((constructor)) static void reserve_window(void)
{
    for (unsigned copy = 0; copy < 16 && window == 0; copy++) {
        const uint64_t base = WINDOW_BASE + copy * WINDOW_STEP;
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
    return file >= 0 && ftruncate(file, (off_t)WINDOW_SIZE) == 0;
}

void soft_memory_reset(void)
{
    if (file >= 0)
        close(file);
    file = -1;
    for (size_t i = 0; i < n_allocs; i++)
        free(allocs[i]);
    n_allocs = n_holes = n_deferred = 0;
    next_address = window;
    next_offset = 0;
    if (window != 0)
        mmap((void *)window, WINDOW_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

bool soft_in_window(uint64_t address)
{
    return window != 0 && address >= window && address < window + WINDOW_SIZE;
}

/* Index of the first allocation whose base is above the address. */
static size_t above(uint64_t address)
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

soft_alloc *soft_alloc_find_locked(uint64_t address)
{
    for (size_t i = above(address); i > 0; i--) {
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

static soft_alloc *insert(uint64_t base, uint64_t size, uint64_t span)
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
    a->resident = true;
    a->access = ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE;
    a->page_size = GRAIN;
    const size_t at = above(base);
    memmove(allocs + at + 1, allocs + at, (n_allocs - at) * sizeof(*allocs));
    allocs[at] = a;
    n_allocs++;
    return a;
}

static void forget(soft_alloc *a)
{
    for (size_t i = 0; i < n_allocs; i++) {
        if (allocs[i] == a) {
            memmove(allocs + i, allocs + i + 1, (n_allocs - i - 1) * sizeof(*allocs));
            n_allocs--;
            break;
        }
    }
    free(a);
}

static void remember_hole(uint64_t base, uint64_t span)
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

/* An address range of `span` bytes, or 0. One page of nothing lies behind each. */
static uint64_t take_range(uint64_t span, uint64_t alignment)
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
    if (base + span + GRAIN <= window + WINDOW_SIZE) {
        next_address = base + span + GRAIN;
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

static bool map(uint64_t base, uint64_t span, uint64_t offset, int protection)
{
    return mmap((void *)base, span, protection, MAP_SHARED | MAP_FIXED, file, (off_t)offset) != MAP_FAILED;
}

static void unmap(uint64_t base, uint64_t span)
{
    mmap((void *)base, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static ze_result_t allocate(ze_context_handle_t hContext, ze_device_handle_t hDevice, ze_memory_type_t type, size_t size,
                            size_t alignment, void **pptr)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    if (size == 0)
        return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    if (alignment & (alignment - 1))
        return ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT;
    soft_enter();
    soft_object *const context = soft_object_get(hContext, SOFT_CONTEXT);
    soft_object *const device = hDevice ? soft_object_get(hDevice, SOFT_DEVICE) : NULL;
    const uint64_t align = alignment > GRAIN ? alignment : GRAIN, span = (size + GRAIN - 1) / GRAIN * GRAIN;
    uint64_t base = 0;
    soft_alloc *a = NULL;
    if (context == NULL || (hDevice != NULL && device == NULL))
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if (size > MAX_SIZE)
        result = ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    else if (next_offset + span > WINDOW_SIZE || (base = take_range(span, align)) == 0)
        result = type == ZE_MEMORY_TYPE_HOST ? ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY : ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    else if (!map(base, span, next_offset, PROT_READ | PROT_WRITE) || (a = insert(base, size, span)) == NULL)
        result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    if (a != NULL) {
        a->offset = next_offset;
        next_offset += span;
        a->context = context;
        a->device = device;
        a->type = type;
        *pptr = (void *)base;
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeMemAllocDevice(ze_context_handle_t hContext, const ze_device_mem_alloc_desc_t *device_desc, size_t size,
                                  size_t alignment, ze_device_handle_t hDevice, void **pptr)
{
    (void)device_desc;
    return allocate(hContext, hDevice, ZE_MEMORY_TYPE_DEVICE, size, alignment, pptr);
}

ze_result_t soft_zeMemAllocHost(ze_context_handle_t hContext, const ze_host_mem_alloc_desc_t *host_desc, size_t size,
                                size_t alignment, void **pptr)
{
    (void)host_desc;
    return allocate(hContext, NULL, ZE_MEMORY_TYPE_HOST, size, alignment, pptr);
}

ze_result_t soft_zeMemAllocShared(ze_context_handle_t hContext, const ze_device_mem_alloc_desc_t *device_desc,
                                  const ze_host_mem_alloc_desc_t *host_desc, size_t size, size_t alignment,
                                  ze_device_handle_t hDevice, void **pptr)
{
    (void)device_desc;
    (void)host_desc;
    return allocate(hContext, hDevice, ZE_MEMORY_TYPE_SHARED, size, alignment, pptr);
}

static void release(soft_alloc *a)
{
    unmap(a->base, a->span);
    fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)a->offset, (off_t)a->span);
    remember_hole(a->base, a->span);
    forget(a);
}

void soft_memory_reap_locked(void)
{
    for (size_t i = 0; n_deferred > 0 && i < n_allocs;) {
        if (allocs[i]->deferred && !soft_alloc_busy_locked(allocs[i])) {
            release(allocs[i]);
            n_deferred--;
        } else {
            i++;
        }
    }
}

static bool alloc_idle(void *ctx)
{
    const soft_alloc *const a = soft_alloc_by_id_locked(*(uint64_t *)ctx);
    return a == NULL || !soft_alloc_busy_locked(a);
}

static ze_result_t free_memory(ze_context_handle_t hContext, void *ptr, bool wait)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const context = soft_object_get(hContext, SOFT_CONTEXT);
    soft_alloc *a = soft_alloc_find_locked((uint64_t)ptr);
    if (context == NULL || a == NULL || a->base != (uint64_t)ptr || a->context != context || a->deferred ||
        a->type == 0) {
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    } else {
        const uint64_t id = a->id;
        if (wait) {
            soft_wait_locked(NULL, alloc_idle, NULL, (void *)&id, UINT64_MAX);
            a = soft_alloc_by_id_locked(id);
        }
        if (a != NULL)
            release(a);
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeMemFree(ze_context_handle_t hContext, void *ptr)
{
    return free_memory(hContext, ptr, soft.free == SOFT_FREE_BLOCK);
}

ze_result_t soft_zeMemFreeExt(ze_context_handle_t hContext, const ze_memory_free_ext_desc_t *pMemFreeDesc, void *ptr)
{
    if (pMemFreeDesc->freePolicy & ~(uint32_t)(ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE |
                                               ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_DEFER_FREE))
        return ZE_RESULT_ERROR_INVALID_ENUMERATION;
    if (pMemFreeDesc->freePolicy & ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_DEFER_FREE) {
        soft_enter();
        soft_alloc *const a = soft_alloc_find_locked((uint64_t)ptr);
        const bool busy = a != NULL && a->base == (uint64_t)ptr && soft_alloc_busy_locked(a);
        if (busy) {
            a->deferred = true; /* no longer the program's; goes once its last user has ended */
            n_deferred++;
        }
        soft_leave();
        if (busy)
            return ZE_RESULT_SUCCESS;
    }
    return free_memory(hContext, ptr,
                       soft.free == SOFT_FREE_BLOCK || (pMemFreeDesc->freePolicy & ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE));
}

ze_result_t soft_zeMemGetAllocProperties(ze_context_handle_t hContext, const void *ptr,
                                         ze_memory_allocation_properties_t *pMemAllocProperties, ze_device_handle_t *phDevice)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const context = soft_object_get(hContext, SOFT_CONTEXT);
    const soft_alloc *const a = soft_alloc_find_locked((uint64_t)ptr);
    if (context == NULL) {
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    } else if (a == NULL || a->context != context) {
        pMemAllocProperties->type = ZE_MEMORY_TYPE_UNKNOWN;
        pMemAllocProperties->id = pMemAllocProperties->pageSize = 0;
        if (phDevice)
            *phDevice = NULL;
    } else {
        pMemAllocProperties->type = a->type;
        pMemAllocProperties->id = a->id;
        pMemAllocProperties->pageSize = a->page_size;
        if (phDevice)
            *phDevice = (ze_device_handle_t)a->device;
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeMemGetAddressRange(ze_context_handle_t hContext, const void *ptr, void **pBase, size_t *pSize)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const context = soft_object_get(hContext, SOFT_CONTEXT);
    const soft_alloc *const a = soft_alloc_find_locked((uint64_t)ptr);
    if (context == NULL || a == NULL || a->context != context)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else {
        if (pBase)
            *pBase = (void *)a->base;
        if (pSize)
            *pSize = a->size;
    }
    soft_leave();
    return result;
}

static ze_result_t residency(ze_context_handle_t hContext, ze_device_handle_t hDevice, void *ptr, size_t size, bool resident)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_alloc *const a = soft_alloc_find_locked((uint64_t)ptr);
    if (soft_object_get(hContext, SOFT_CONTEXT) == NULL || soft_object_get(hDevice, SOFT_DEVICE) == NULL || a == NULL ||
        size == 0) {
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    } else if (resident) {
        a->resident = true;
        if (soft.rebind == SOFT_REBIND_SUBMIT)
            a->evicted = 0;
        soft_clock++;
    } else {
        a->resident = false;
        a->evicted = ++soft_clock;
        soft_log("evict %#llx size %zu", (unsigned long long)a->base, size);
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeContextMakeMemoryResident(ze_context_handle_t hContext, ze_device_handle_t hDevice, void *ptr, size_t size)
{
    return residency(hContext, hDevice, ptr, size, true);
}

ze_result_t soft_zeContextEvictMemory(ze_context_handle_t hContext, ze_device_handle_t hDevice, void *ptr, size_t size)
{
    return residency(hContext, hDevice, ptr, size, false);
}

void *soft_device_map_locked(uint64_t address, size_t size, int access, uint64_t since, bool *fault)
{
    *fault = false;
    if (!soft_in_window(address))
        return NULL;
    const soft_alloc *const a = soft_alloc_find_locked(address);
    *fault = true;
    if (a == NULL || size > a->base + a->size - address)
        return NULL;
    /* strict: work that was submitted before the evict has lost the memory; submit: a later submit brings it back for all */
    if (soft.rebind == SOFT_REBIND_STRICT ? a->evicted > since : !a->resident)
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

/* -------------------------------------------------------------------------------------- virtual and physical memory */

ze_result_t soft_zeVirtualMemReserve(ze_context_handle_t hContext, const void *pStart, size_t size, void **pptr)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    (void)pStart; /* a hint */
    if (size == 0 || size % GRAIN)
        return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    soft_enter();
    uint64_t base = 0;
    soft_alloc *a = NULL;
    soft_object *const context = soft_object_get(hContext, SOFT_CONTEXT);
    if (context == NULL)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if (size > WINDOW_SIZE / 2 || (base = take_range(size, GRAIN)) == 0 || (a = insert(base, size, size)) == NULL)
        result = ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    else {
        a->reserved = true;
        a->context = context;
        *pptr = (void *)base;
    }
    soft_leave();
    return result;
}

static soft_alloc *reservation(uint64_t base)
{
    for (size_t i = above(base); i > 0; i--)
        if (allocs[i - 1]->reserved && base < allocs[i - 1]->base + allocs[i - 1]->span)
            return allocs[i - 1];
    return NULL;
}

ze_result_t soft_zeVirtualMemFree(ze_context_handle_t hContext, const void *ptr, size_t size)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_alloc *const a = reservation((uint64_t)ptr);
    if (soft_object_get(hContext, SOFT_CONTEXT) == NULL || a == NULL || a->base != (uint64_t)ptr || a->size != size)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else {
        remember_hole(a->base, a->span);
        forget(a);
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeVirtualMemQueryPageSize(ze_context_handle_t hContext, ze_device_handle_t hDevice, size_t size, size_t *pagesize)
{
    (void)size;
    if (soft_object_get(hContext, SOFT_CONTEXT) == NULL || soft_object_get(hDevice, SOFT_DEVICE) == NULL)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *pagesize = GRAIN;
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zePhysicalMemCreate(ze_context_handle_t hContext, ze_device_handle_t hDevice, ze_physical_mem_desc_t *desc,
                                     ze_physical_mem_handle_t *phPhysicalMemory)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    if (desc->size == 0 || desc->size % GRAIN)
        return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    soft_enter();
    soft_object *object = NULL;
    if (soft_object_get(hContext, SOFT_CONTEXT) == NULL || soft_object_get(hDevice, SOFT_DEVICE) == NULL)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if (next_offset + desc->size > WINDOW_SIZE || (object = soft_object_new_locked(SOFT_PHYSICAL)) == NULL)
        result = ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    else {
        object->physical = (soft_physical){next_offset, desc->size};
        next_offset += desc->size;
        *phPhysicalMemory = (ze_physical_mem_handle_t)object;
    }
    soft_leave();
    return result;
}

ze_result_t soft_zePhysicalMemDestroy(ze_context_handle_t hContext, ze_physical_mem_handle_t hPhysicalMemory)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const object = soft_object_get(hPhysicalMemory, SOFT_PHYSICAL);
    if (soft_object_get(hContext, SOFT_CONTEXT) == NULL || object == NULL)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else {
        fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)object->physical.offset, (off_t)object->physical.size);
        soft_object_kill_locked(object);
    }
    soft_leave();
    return result;
}

static int protection(ze_memory_access_attribute_t access)
{
    return access == ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE  ? PROT_READ | PROT_WRITE
           : access == ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY ? PROT_READ
                                                           : PROT_NONE;
}

ze_result_t soft_zeVirtualMemMap(ze_context_handle_t hContext, const void *ptr, size_t size, ze_physical_mem_handle_t hPhysicalMemory,
                                 size_t offset, ze_memory_access_attribute_t access)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    const uint64_t base = (uint64_t)ptr;
    if (size == 0 || size % GRAIN)
        return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    if (base % GRAIN || offset % GRAIN)
        return ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT;
    soft_enter();
    soft_object *const physical = soft_object_get(hPhysicalMemory, SOFT_PHYSICAL), *const context = soft_object_get(hContext, SOFT_CONTEXT);
    soft_alloc *const outer = reservation(base);
    soft_alloc *a = NULL;
    if (context == NULL || physical == NULL || outer == NULL || size > outer->base + outer->span - base ||
        offset > physical->physical.size || size > physical->physical.size - offset || soft_alloc_find_locked(base) != NULL)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if (!map(base, size, physical->physical.offset + offset, protection(access)) || (a = insert(base, size, size)) == NULL)
        result = ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    else {
        a->context = context;
        a->type = 0;
        a->access = access;
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeVirtualMemUnmap(ze_context_handle_t hContext, const void *ptr, size_t size)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_alloc *const a = soft_alloc_find_locked((uint64_t)ptr);
    if (soft_object_get(hContext, SOFT_CONTEXT) == NULL || a == NULL || a->base != (uint64_t)ptr || a->size != size || a->type != 0)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else {
        unmap(a->base, a->span);
        forget(a);
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeVirtualMemSetAccessAttribute(ze_context_handle_t hContext, const void *ptr, size_t size,
                                                ze_memory_access_attribute_t access)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_alloc *const a = soft_alloc_find_locked((uint64_t)ptr);
    if (soft_object_get(hContext, SOFT_CONTEXT) == NULL || a == NULL || a->base != (uint64_t)ptr || a->size != size)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else {
        mprotect((void *)a->base, a->span, protection(access));
        a->access = access;
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeVirtualMemGetAccessAttribute(ze_context_handle_t hContext, const void *ptr, size_t size,
                                                ze_memory_access_attribute_t *access, size_t *outSize)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    (void)size;
    soft_enter();
    const soft_alloc *const a = soft_alloc_find_locked((uint64_t)ptr);
    if (soft_object_get(hContext, SOFT_CONTEXT) == NULL || a == NULL)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else {
        *access = a->access;
        *outSize = a->size;
    }
    soft_leave();
    return result;
}

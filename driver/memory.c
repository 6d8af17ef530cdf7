/* SPDX-License-Identifier: MIT */
/* Device, host and shared memory: allocating, freeing, asking, residency. */
#include "memory.h"

#define MAX_SIZE (64ull << 30)

static size_t n_deferred;

bool soft_budget_take(soft_object *device, uint64_t size)
{
    if (device == NULL)
        return true;
    if (size > soft.memory || device->device.used > soft.memory - size)
        return false;
    device->device.used += size;
    return true;
}

void soft_budget_give_back(soft_object *device, uint64_t size)
{
    if (device != NULL)
        device->device.used -= size;
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
    const uint64_t align = alignment > SOFT_GRAIN ? alignment : SOFT_GRAIN, span = (size + SOFT_GRAIN - 1) / SOFT_GRAIN * SOFT_GRAIN;
    uint64_t base = 0;
    bool counted = false;
    soft_alloc *a = NULL;
    if (context == NULL || (hDevice != NULL && device == NULL))
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if (size > MAX_SIZE)
        result = ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    else if (!(counted = soft_budget_take(device, span)))
        result = ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    else if ((base = soft_range_take(span, align)) == 0)
        result = type == ZE_MEMORY_TYPE_HOST ? ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY : ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    else if ((a = soft_alloc_insert(base, size, span)) == NULL)
        result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    else if (!soft_window_map(base, span, a->offset = soft_file_take(span), a->access)) {
        soft_alloc_forget(a); /* the kernel's limit of mappings in a process */
        soft_range_give_back(base, span);
        a = NULL;
        result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    if (a != NULL) {
        a->context = context;
        a->device = device;
        a->type = type;
        *pptr = (void *)base;
    } else if (counted) {
        soft_budget_give_back(device, span);
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
    soft_window_unmap(a->base, a->span);
    soft_file_punch(a->offset, a->span);
    soft_range_give_back(a->base, a->span);
    soft_budget_give_back(a->device, a->span);
    if (a->deferred)
        n_deferred--;
    soft_alloc_forget(a);
}

void soft_memory_reap_locked(void)
{
    soft_alloc *a;
    size_t found = 0;
    for (size_t i = 0; n_deferred > 0 && (a = soft_alloc_at(i)) != NULL;) {
        found += a->deferred;
        if (a->deferred && !soft_alloc_busy_locked(a))
            release(a);
        else
            i++;
    }
    if (found == 0)
        n_deferred = 0; /* a forked child has none of its parent's */
}

static bool alloc_idle(void *ctx)
{
    const soft_alloc *const a = soft_alloc_by_id_locked(*(uint64_t *)ctx);
    return a == NULL || !soft_alloc_busy_locked(a);
}

/* The allocation of that context that begins there and is still the program's, or NULL. */
static soft_alloc *own_alloc(ze_context_handle_t hContext, const void *ptr)
{
    const soft_object *const context = soft_object_get(hContext, SOFT_CONTEXT);
    soft_alloc *const a = soft_alloc_find_locked((uint64_t)ptr);
    const bool own = context != NULL && a != NULL && a->base == (uint64_t)ptr && a->context == context && !a->deferred &&
                     a->type != ZE_MEMORY_TYPE_UNKNOWN;
    return own ? a : NULL;
}

static ze_result_t free_memory(ze_context_handle_t hContext, void *ptr, bool wait)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_alloc *a = own_alloc(hContext, ptr);
    if (a == NULL) {
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    } else {
        uint64_t id = a->id;
        if (wait) {
            const soft_target target = {.alloc = id};
            soft_wait_locked(&target, alloc_idle, NULL, &id, UINT64_MAX);
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
        soft_alloc *const a = own_alloc(hContext, ptr);
        const bool busy = a != NULL && soft_alloc_busy_locked(a);
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
        pMemAllocProperties->pageSize = SOFT_GRAIN;
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
    if (context == NULL)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if (a == NULL || a->context != context)
        result = ZE_RESULT_ERROR_ADDRESS_NOT_FOUND;
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
        soft_make_resident_locked((uint64_t)ptr, size);
    } else if (!soft_evict_locked(a, (uint64_t)ptr, size)) {
        result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    } else {
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

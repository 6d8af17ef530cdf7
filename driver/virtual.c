/* SPDX-License-Identifier: MIT */
/* Virtual and physical memory: reservations of addresses, pieces of the file, and what maps one to the other. */
#include "memory.h"

static bool context_ok(ze_context_handle_t hContext)
{
    return soft_object_get(hContext, SOFT_CONTEXT) != NULL;
}

ze_result_t soft_zeVirtualMemQueryPageSize(ze_context_handle_t hContext, ze_device_handle_t hDevice, size_t size, size_t *pagesize)
{
    (void)size;
    if (!context_ok(hContext) || soft_object_get(hDevice, SOFT_DEVICE) == NULL)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *pagesize = SOFT_GRAIN;
    return ZE_RESULT_SUCCESS;
}

/* ------------------------------------------------------------------------------------------------------ physical memory */

ze_result_t soft_zePhysicalMemCreate(ze_context_handle_t hContext, ze_device_handle_t hDevice, ze_physical_mem_desc_t *desc,
                                     ze_physical_mem_handle_t *phPhysicalMemory)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    if (desc->size == 0 || desc->size % SOFT_GRAIN)
        return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    soft_enter();
    soft_object *object = NULL, *const device = hDevice ? soft_object_get(hDevice, SOFT_DEVICE) : NULL;
    if (!context_ok(hContext) || (hDevice != NULL && device == NULL))
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if (!soft_budget_take(device, desc->size))
        result = ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    else if ((object = soft_object_new_locked(SOFT_PHYSICAL)) == NULL) {
        soft_budget_give_back(device, desc->size);
        result = ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    } else {
        object->physical = (soft_physical){soft_file_take(desc->size), desc->size, device};
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
    if (!context_ok(hContext) || object == NULL)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else {
        soft_file_punch(object->physical.offset, object->physical.size);
        soft_budget_give_back(object->physical.device, object->physical.size);
        soft_object_kill_locked(object);
    }
    soft_leave();
    return result;
}

ze_result_t soft_zePhysicalMemGetProperties(ze_context_handle_t hContext, ze_physical_mem_handle_t hPhysicalMem,
                                            ze_physical_mem_properties_t *pMemProperties)
{
    const soft_object *const object = soft_object_get(hPhysicalMem, SOFT_PHYSICAL);
    if (!context_ok(hContext) || object == NULL)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    pMemProperties->id = object->number;
    pMemProperties->size = object->physical.size;
    return ZE_RESULT_SUCCESS;
}

/* -------------------------------------------------------------------------------------------------------- reservations */

ze_result_t soft_zeVirtualMemReserve(ze_context_handle_t hContext, const void *pStart, size_t size, void **pptr)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    (void)pStart; /* a hint */
    if (size == 0 || size % SOFT_GRAIN)
        return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    soft_enter();
    uint64_t base = 0;
    soft_alloc *a = NULL;
    soft_object *const context = soft_object_get(hContext, SOFT_CONTEXT);
    if (context == NULL)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if (size > 1ull << 39 || (base = soft_range_take(size, SOFT_GRAIN)) == 0 ||
             (a = soft_alloc_insert(base, size, size)) == NULL)
        result = ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    else {
        a->reserved = true;
        a->context = context;
        *pptr = (void *)base;
    }
    soft_leave();
    return result;
}

/* The reservation that holds the range, or NULL. */
static soft_alloc *reservation(uint64_t base, uint64_t size)
{
    for (size_t i = soft_alloc_above(base); i > 0; i--) {
        soft_alloc *const a = soft_alloc_at(i - 1);
        if (a->reserved && base < a->base + a->span)
            return size <= a->base + a->span - base ? a : NULL;
    }
    return NULL;
}

/* Makes mappings end and begin at the address, so that a call on part of one takes only that part. */
static bool split(uint64_t address)
{
    soft_alloc *const a = soft_alloc_find_locked(address);
    if (a == NULL || a->base == address)
        return true;
    soft_alloc *const rest = soft_alloc_insert(address, a->base + a->size - address, a->base + a->span - address);
    if (rest == NULL)
        return false;
    rest->context = a->context;
    rest->access = a->access;
    rest->physical = a->physical;
    rest->physical_number = a->physical_number;
    rest->offset = a->offset + (address - a->base);
    a->size = a->span = address - a->base;
    return true;
}

static void unmap_inside(uint64_t base, uint64_t end)
{
    soft_alloc *a;
    for (size_t i = base ? soft_alloc_above(base - 1) : 0; (a = soft_alloc_at(i)) != NULL && a->base < end;) {
        if (a->reserved) {
            i++;
            continue;
        }
        soft_window_unmap(a->base, a->span);
        soft_alloc_forget(a);
    }
}

ze_result_t soft_zeVirtualMemFree(ze_context_handle_t hContext, const void *ptr, size_t size)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_alloc *const a = reservation((uint64_t)ptr, size);
    if (!context_ok(hContext) || a == NULL || a->base != (uint64_t)ptr || a->size != size)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else {
        unmap_inside(a->base, a->base + a->span);
        soft_range_give_back(a->base, a->span);
        soft_alloc_forget(a);
    }
    soft_leave();
    return result;
}

/* ------------------------------------------------------------------------------------------------------------ mappings */

static ze_result_t check_range(const void *ptr, size_t size)
{
    if ((uint64_t)ptr % SOFT_GRAIN)
        return ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT;
    return size == 0 || size % SOFT_GRAIN ? ZE_RESULT_ERROR_UNSUPPORTED_SIZE : ZE_RESULT_SUCCESS;
}

/* Whether nothing is mapped in the range. */
static bool empty(uint64_t base, uint64_t size)
{
    if (soft_alloc_find_locked(base) != NULL)
        return false;
    for (size_t i = soft_alloc_above(base); soft_alloc_at(i) != NULL && soft_alloc_at(i)->base < base + size; i++)
        if (!soft_alloc_at(i)->reserved)
            return false;
    return true;
}

ze_result_t soft_zeVirtualMemMap(ze_context_handle_t hContext, const void *ptr, size_t size, ze_physical_mem_handle_t hPhysicalMemory,
                                 size_t offset, ze_memory_access_attribute_t access)
{
    const uint64_t base = (uint64_t)ptr;
    ze_result_t result = offset % SOFT_GRAIN ? ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT : check_range(ptr, size);
    if (result != ZE_RESULT_SUCCESS)
        return result;
    soft_enter();
    soft_object *const physical = soft_object_get(hPhysicalMemory, SOFT_PHYSICAL), *const context = soft_object_get(hContext, SOFT_CONTEXT);
    soft_alloc *a = NULL;
    if (context == NULL || physical == NULL || reservation(base, size) == NULL || offset > physical->physical.size ||
        size > physical->physical.size - offset || !empty(base, size))
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if ((a = soft_alloc_insert(base, size, size)) == NULL)
        result = ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    else if (!soft_window_map(base, size, physical->physical.offset + offset, access)) {
        soft_alloc_forget(a);
        result = ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    } else {
        a->context = context;
        a->access = access;
        a->physical = physical;
        a->physical_number = physical->number;
        a->offset = physical->physical.offset + offset;
    }
    soft_leave();
    return result;
}

/* Whether a virtual reservation holds the range and something is mapped there; if so, mappings begin and end with it. */
static bool cut_out(ze_context_handle_t hContext, const void *ptr, size_t size)
{
    const uint64_t base = (uint64_t)ptr;
    return context_ok(hContext) && reservation(base, size) != NULL && !empty(base, size) && split(base) && split(base + size);
}

ze_result_t soft_zeVirtualMemUnmap(ze_context_handle_t hContext, const void *ptr, size_t size)
{
    ze_result_t result = check_range(ptr, size);
    if (result != ZE_RESULT_SUCCESS)
        return result;
    soft_enter();
    if (cut_out(hContext, ptr, size))
        unmap_inside((uint64_t)ptr, (uint64_t)ptr + size);
    else
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    soft_leave();
    return result;
}

ze_result_t soft_zeVirtualMemSetAccessAttribute(ze_context_handle_t hContext, const void *ptr, size_t size,
                                                ze_memory_access_attribute_t access)
{
    ze_result_t result = check_range(ptr, size);
    if (result != ZE_RESULT_SUCCESS)
        return result;
    const uint64_t base = (uint64_t)ptr;
    soft_enter();
    if (!cut_out(hContext, ptr, size))
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    soft_alloc *a;
    for (size_t i = soft_alloc_above(base - 1); result == ZE_RESULT_SUCCESS && (a = soft_alloc_at(i)) != NULL && a->base < base + size; i++) {
        if (a->reserved)
            continue;
        if (!soft_window_map(a->base, a->span, a->offset, access))
            result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
        a->access = access;
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeVirtualMemGetAccessAttribute(ze_context_handle_t hContext, const void *ptr, size_t size,
                                                ze_memory_access_attribute_t *access, size_t *outSize)
{
    ze_result_t result = check_range(ptr, size);
    if (result != ZE_RESULT_SUCCESS)
        return result;
    const uint64_t base = (uint64_t)ptr;
    soft_enter();
    if (!context_ok(hContext) || reservation(base, size) == NULL)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else {
        uint64_t at = base;
        for (; at < base + size; at += SOFT_GRAIN) { /* what is reserved and not mapped has no access */
            const soft_alloc *const a = soft_alloc_find_locked(at);
            const ze_memory_access_attribute_t here = a ? a->access : ZE_MEMORY_ACCESS_ATTRIBUTE_NONE;
            if (at == base)
                *access = here;
            else if (here != *access)
                break;
        }
        *outSize = at - base;
    }
    soft_leave();
    return result;
}

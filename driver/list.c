/* SPDX-License-Identifier: MIT */
/* Command lists and what is appended to them. */
#include "soft.h"

#include <stdlib.h>
#include <string.h>

static ze_result_t create(ze_context_handle_t hContext, ze_device_handle_t hDevice, unsigned ordinal, unsigned index,
                          const soft_list *wanted, ze_command_list_handle_t *handle)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const context = soft_object_get(hContext, SOFT_CONTEXT), *const device = soft_object_get(hDevice, SOFT_DEVICE);
    soft_object *object = NULL;
    if (context == NULL || device == NULL || ordinal > 2 || (wanted->immediate && index >= soft_queues_of_group[ordinal]))
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if ((object = soft_object_new_locked(SOFT_LIST)) == NULL)
        result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    else {
        object->list = *wanted;
        object->list.context = context;
        object->list.device = device;
        object->list.ordinal = ordinal;
        object->list.index = index;
        if (wanted->immediate && (object->list.ring = soft_ring_acquire_locked(device, ordinal, index)) == NULL) {
            soft_object_kill_locked(object);
            result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
        } else {
            *handle = (ze_command_list_handle_t)object;
        }
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeCommandListCreate(ze_context_handle_t hContext, ze_device_handle_t hDevice, const ze_command_list_desc_t *desc,
                                     ze_command_list_handle_t *phCommandList)
{
    const soft_list list = {.flags = desc->flags, .in_order = desc->flags & ZE_COMMAND_LIST_FLAG_IN_ORDER};
    return create(hContext, hDevice, desc->commandQueueGroupOrdinal, 0, &list, phCommandList);
}

ze_result_t soft_zeCommandListCreateImmediate(ze_context_handle_t hContext, ze_device_handle_t hDevice,
                                              const ze_command_queue_desc_t *altdesc, ze_command_list_handle_t *phCommandList)
{
    const soft_list list = {.immediate = true, .flags = altdesc->flags,
                            .in_order = altdesc->flags & ZE_COMMAND_QUEUE_FLAG_IN_ORDER,
                            .mode = altdesc->mode, .priority = altdesc->priority};
    return create(hContext, hDevice, altdesc->ordinal, altdesc->index, &list, phCommandList);
}

static void drop_commands(soft_list *list)
{
    for (size_t i = 0; i < list->n_commands; i++)
        soft_command_unref_locked(list->commands[i]);
    list->n_commands = 0;
}

ze_result_t soft_zeCommandListDestroy(ze_command_list_handle_t hCommandList)
{
    soft_enter();
    soft_object *const object = soft_object_get(hCommandList, SOFT_LIST);
    if (object != NULL) {
        soft_lose_list_locked(object);
        drop_commands(&object->list);
        free(object->list.commands);
        object->list.commands = NULL;
        if (object->list.ring != NULL)
            soft_ring_release_locked(object->list.ring);
        soft_object_kill_locked(object);
    }
    soft_leave();
    return object ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

ze_result_t soft_zeCommandListClose(ze_command_list_handle_t hCommandList)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const object = soft_object_get(hCommandList, SOFT_LIST);
    ze_result_t result = ZE_RESULT_SUCCESS;
    if (object == NULL || object->list.immediate || object->list.closed)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else
        object->list.closed = true;
    soft_leave();
    return result;
}

ze_result_t soft_zeCommandListReset(ze_command_list_handle_t hCommandList)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const object = soft_object_get(hCommandList, SOFT_LIST);
    ze_result_t result = ZE_RESULT_SUCCESS;
    if (object == NULL || object->list.immediate)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else {
        soft_lose_list_locked(object);
        drop_commands(&object->list);
        object->list.closed = false;
    }
    soft_leave();
    return result;
}

/* --------------------------------------------------------------------------------------------------------- appending */

static bool is_signalled(void *ctx)
{
    return soft_event_is_signalled_locked(&((const soft_object *)ctx)->event);
}

/* On an immediate list: straight to the ring. */
static ze_result_t submit_immediate(soft_object *object, soft_command *command)
{
    soft_list *const list = &object->list;
    soft_ring *const ring = list->ring;
    soft_before_submit_locked(ring);
    const soft_csr *const csr = soft_ring_csr(ring);
    if (csr->banned && (soft.errors == SOFT_AT_SUBMIT || csr->noticed))
        return ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    if (csr->banned) {
        soft_command_lose_locked(command);
        return ZE_RESULT_SUCCESS;
    }
    for (uint32_t i = 0; soft.append == SOFT_APPEND_BLOCK && i < command->n_waits; i++)
        soft_wait_locked(&(soft_target){.event = command->waits[i]}, is_signalled, NULL, command->waits[i], UINT64_MAX);
    const soft_submit submit = {.queue = object, .list = object, .in_order = list->in_order, .submit = ++soft_clock};
    const uint64_t number = soft_ring_submit_locked(ring, command, &submit);
    if (number == 0)
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    soft_kick_locked();
    if (list->mode != ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS)
        return ZE_RESULT_SUCCESS;
    return soft_wait_work_locked(ring, object, number, UINT64_MAX);
}

static ze_result_t keep(soft_list *list, soft_command *command)
{
    if (list->n_commands == list->room) {
        const size_t more = list->room ? list->room * 2 : 16;
        soft_command **const grown = realloc(list->commands, more * sizeof(*list->commands));
        if (grown == NULL)
            return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
        list->commands = grown;
        list->room = more;
    }
    command->refs++;
    list->commands[list->n_commands++] = command;
    return ZE_RESULT_SUCCESS;
}

static bool event_ok(ze_event_handle_t event)
{
    return soft_object_get(event, SOFT_EVENT) != NULL;
}

/* Checks what all appends have in common and puts the command on the list. Takes over `command`. */
static ze_result_t append(ze_command_list_handle_t hCommandList, soft_command *command, ze_event_handle_t hSignalEvent,
                          uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents)
{
    if (command == NULL)
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const object = soft_object_get(hCommandList, SOFT_LIST);
    bool events_ok = hSignalEvent == NULL || event_ok(hSignalEvent);
    for (uint32_t i = 0; i < numWaitEvents; i++)
        events_ok &= event_ok(phWaitEvents[i]);
    if (object == NULL || (!object->list.immediate && object->list.closed))
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if (!events_ok)
        result = ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT;
    else if (hSignalEvent && ((soft_object *)hSignalEvent)->event.counter_based && !object->list.in_order)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if (!soft_command_events_locked(command, hSignalEvent, numWaitEvents, phWaitEvents))
        result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    else
        result = object->list.immediate ? submit_immediate(object, command) : keep(&object->list, command);
    soft_command_unref_locked(command);
    soft_leave();
    return result;
}

/* ZE_SOFT_HOSTPTR=append: pageable operands are read now. */
static void stage(soft_command *c)
{
    if (c == NULL || soft.hostptr != SOFT_HOST_APPEND || soft_in_window(c->src) || c->size == 0)
        return;
    c->staged = malloc(c->size);
    if (c->staged != NULL && !soft_device_read_locked(c->src, c->staged, c->size, UINT64_MAX)) {
        free(c->staged);
        c->staged = NULL;
    }
}

ze_result_t soft_zeCommandListAppendMemoryCopy(ze_command_list_handle_t hCommandList, void *dstptr, const void *srcptr, size_t size,
                                               ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                               ze_event_handle_t *phWaitEvents)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    soft_command *const c = soft_command_new(SOFT_C_COPY);
    if (c != NULL) {
        c->dst = (uint64_t)dstptr;
        c->src = (uint64_t)srcptr;
        c->size = size;
        stage(c);
    }
    return append(hCommandList, c, hSignalEvent, numWaitEvents, phWaitEvents);
}

ze_result_t soft_zeCommandListAppendMemoryCopyWithParameters(ze_command_list_handle_t hCommandList, void *dstptr,
                                                             const void *srcptr, size_t size, const void *pNext,
                                                             ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                                             ze_event_handle_t *phWaitEvents)
{
    (void)pNext;
    return soft_zeCommandListAppendMemoryCopy(hCommandList, dstptr, srcptr, size, hSignalEvent, numWaitEvents, phWaitEvents);
}

ze_result_t soft_zeCommandListAppendMemoryCopyFromContext(ze_command_list_handle_t hCommandList, void *dstptr,
                                                          ze_context_handle_t hContextSrc, const void *srcptr, size_t size,
                                                          ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                                          ze_event_handle_t *phWaitEvents)
{
    if (hContextSrc != NULL && soft_object_get(hContextSrc, SOFT_CONTEXT) == NULL)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    return soft_zeCommandListAppendMemoryCopy(hCommandList, dstptr, srcptr, size, hSignalEvent, numWaitEvents, phWaitEvents);
}

ze_result_t soft_zeCommandListAppendMemoryCopyRegion(ze_command_list_handle_t hCommandList, void *dstptr,
                                                     const ze_copy_region_t *dstRegion, uint32_t dstPitch, uint32_t dstSlicePitch,
                                                     const void *srcptr, const ze_copy_region_t *srcRegion, uint32_t srcPitch,
                                                     uint32_t srcSlicePitch, ze_event_handle_t hSignalEvent,
                                                     uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    if (dstRegion->width != srcRegion->width || dstRegion->height != srcRegion->height || dstRegion->depth != srcRegion->depth)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    soft_command *const c = soft_command_new(SOFT_C_REGION);
    if (c != NULL) {
        c->dst = (uint64_t)dstptr;
        c->src = (uint64_t)srcptr;
        c->dst_region = *dstRegion;
        c->src_region = *srcRegion;
        c->dst_pitch = dstPitch ? dstPitch : dstRegion->originX + dstRegion->width;
        c->src_pitch = srcPitch ? srcPitch : srcRegion->originX + srcRegion->width;
        c->dst_slice = dstSlicePitch ? dstSlicePitch : c->dst_pitch * (dstRegion->originY + dstRegion->height);
        c->src_slice = srcSlicePitch ? srcSlicePitch : c->src_pitch * (srcRegion->originY + srcRegion->height);
    }
    return append(hCommandList, c, hSignalEvent, numWaitEvents, phWaitEvents);
}

ze_result_t soft_zeCommandListAppendMemoryFill(ze_command_list_handle_t hCommandList, void *ptr, const void *pattern,
                                               size_t pattern_size, size_t size, ze_event_handle_t hSignalEvent,
                                               uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    soft_enter();
    const soft_object *const list = soft_object_get(hCommandList, SOFT_LIST);
    const size_t longest = list != NULL ? soft_longest_pattern[list->list.ordinal] : 0;
    soft_leave();
    if (list == NULL)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (pattern_size == 0 || pattern_size > longest || (pattern_size & (pattern_size - 1)))
        return ZE_RESULT_ERROR_INVALID_SIZE;
    soft_command *const c = soft_command_new(SOFT_C_FILL);
    if (c != NULL) {
        c->dst = (uint64_t)ptr;
        c->size = size;
        c->pattern_size = pattern_size;
        memcpy(c->pattern, pattern, pattern_size);
    }
    return append(hCommandList, c, hSignalEvent, numWaitEvents, phWaitEvents);
}

ze_result_t soft_zeCommandListAppendMemoryFillWithParameters(ze_command_list_handle_t hCommandList, void *ptr, const void *pattern,
                                                             size_t pattern_size, size_t size, const void *pNext,
                                                             ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                                             ze_event_handle_t *phWaitEvents)
{
    (void)pNext;
    return soft_zeCommandListAppendMemoryFill(hCommandList, ptr, pattern, pattern_size, size, hSignalEvent, numWaitEvents,
                                              phWaitEvents);
}

static ze_result_t append_simple(ze_command_list_handle_t hCommandList, int type, ze_event_handle_t hSignalEvent,
                                 uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    return append(hCommandList, soft_command_new(type), hSignalEvent, numWaitEvents, phWaitEvents);
}

ze_result_t soft_zeCommandListAppendBarrier(ze_command_list_handle_t hCommandList, ze_event_handle_t hSignalEvent,
                                            uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents)
{
    return append_simple(hCommandList, SOFT_C_BARRIER, hSignalEvent, numWaitEvents, phWaitEvents);
}

ze_result_t soft_zeCommandListAppendMemoryRangesBarrier(ze_command_list_handle_t hCommandList, uint32_t numRanges,
                                                        const size_t *pRangeSizes, const void **pRanges,
                                                        ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                                        ze_event_handle_t *phWaitEvents)
{
    (void)numRanges;
    (void)pRangeSizes;
    (void)pRanges;
    return append_simple(hCommandList, SOFT_C_BARRIER, hSignalEvent, numWaitEvents, phWaitEvents);
}

ze_result_t soft_zeCommandListAppendWaitOnEvents(ze_command_list_handle_t hCommandList, uint32_t numEvents,
                                                 ze_event_handle_t *phEvents)
{
    return append_simple(hCommandList, SOFT_C_WAIT, NULL, numEvents, phEvents);
}

ze_result_t soft_zeCommandListAppendSignalEvent(ze_command_list_handle_t hCommandList, ze_event_handle_t hEvent)
{
    return append_simple(hCommandList, SOFT_C_SIGNAL, hEvent, 0, NULL);
}

ze_result_t soft_zeCommandListAppendEventReset(ze_command_list_handle_t hCommandList, ze_event_handle_t hEvent)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    soft_object *const event = soft_object_get(hEvent, SOFT_EVENT);
    if (event == NULL)
        return ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT;
    if (event->event.counter_based)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    soft_command *const c = soft_command_new(SOFT_C_RESET);
    if (c != NULL) {
        pthread_mutex_lock(&soft_mutex);
        c->reset = event;
        soft_object_ref_locked(event);
        pthread_mutex_unlock(&soft_mutex);
    }
    return append(hCommandList, c, NULL, 0, NULL);
}

ze_result_t soft_zeCommandListAppendMemoryPrefetch(ze_command_list_handle_t hCommandList, const void *ptr, size_t size)
{
    (void)ptr;
    (void)size;
    return append_simple(hCommandList, SOFT_C_NOP, NULL, 0, NULL);
}

ze_result_t soft_zeCommandListAppendMemAdvise(ze_command_list_handle_t hCommandList, ze_device_handle_t hDevice, const void *ptr,
                                              size_t size, ze_memory_advice_t advice)
{
    (void)ptr;
    (void)size;
    (void)advice;
    if (soft_object_get(hDevice, SOFT_DEVICE) == NULL)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    return append_simple(hCommandList, SOFT_C_NOP, NULL, 0, NULL);
}

ze_result_t soft_zeCommandListAppendWriteGlobalTimestamp(ze_command_list_handle_t hCommandList, uint64_t *dstptr,
                                                         ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                                         ze_event_handle_t *phWaitEvents)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    soft_command *const c = soft_command_new(SOFT_C_TIMESTAMP);
    if (c != NULL) {
        c->dst = (uint64_t)dstptr;
        c->size = sizeof(uint64_t);
    }
    return append(hCommandList, c, hSignalEvent, numWaitEvents, phWaitEvents);
}

ze_result_t soft_zeCommandListAppendQueryKernelTimestamps(ze_command_list_handle_t hCommandList, uint32_t numEvents,
                                                          ze_event_handle_t *phEvents, void *dstptr, const size_t *pOffsets,
                                                          ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                                          ze_event_handle_t *phWaitEvents)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    for (uint32_t i = 0; i < numEvents; i++)
        if (!event_ok(phEvents[i]))
            return ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT;
    soft_command *const c = soft_command_new(SOFT_C_QUERY_TIMESTAMPS);
    if (c != NULL) {
        c->dst = (uint64_t)dstptr;
        c->query = calloc(numEvents ? numEvents : 1, sizeof(*c->query));
        c->query_offsets = pOffsets ? calloc(numEvents ? numEvents : 1, sizeof(*c->query_offsets)) : NULL;
        pthread_mutex_lock(&soft_mutex);
        for (uint32_t i = 0; c->query && i < numEvents; i++) {
            c->query[i] = (soft_object *)phEvents[i];
            soft_object_ref_locked(c->query[i]);
            c->n_query++;
            if (c->query_offsets)
                c->query_offsets[i] = pOffsets[i];
        }
        pthread_mutex_unlock(&soft_mutex);
    }
    return append(hCommandList, c, hSignalEvent, numWaitEvents, phWaitEvents);
}

ze_result_t soft_zeCommandListAppendHostFunction(ze_command_list_handle_t hCommandList, ze_host_function_callback_t pfnHostFunction,
                                                 void *pUserData, const void *pNext, ze_event_handle_t hSignalEvent,
                                                 uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents)
{
    (void)pNext;
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    soft_command *const c = soft_command_new(SOFT_C_HOST_FUNCTION);
    if (c != NULL) {
        c->function = pfnHostFunction;
        c->user_data = pUserData;
    }
    return append(hCommandList, c, hSignalEvent, numWaitEvents, phWaitEvents);
}

/* ----------------------------------------------------------------------------------------------------------- getters */

SOFT_GETTER(soft_zeCommandListGetDeviceHandle, ze_command_list_handle_t, SOFT_LIST, ze_device_handle_t,
       (ze_device_handle_t)o->list.device)
SOFT_GETTER(soft_zeCommandListGetContextHandle, ze_command_list_handle_t, SOFT_LIST, ze_context_handle_t,
       (ze_context_handle_t)o->list.context)
SOFT_GETTER(soft_zeCommandListGetOrdinal, ze_command_list_handle_t, SOFT_LIST, uint32_t, o->list.ordinal)
SOFT_GETTER(soft_zeCommandListIsImmediate, ze_command_list_handle_t, SOFT_LIST, ze_bool_t, o->list.immediate)

/* What the header asks only of immediate lists, or only of others. */
#define LIST_GETTER(function, out_type, is_immediate, expression)                                                              \
    ze_result_t function(ze_command_list_handle_t handle, out_type *out)                                                       \
    {                                                                                                                          \
        const soft_object *const o = soft_object_get(handle, SOFT_LIST);                                                       \
        if (o == NULL || o->list.immediate != (is_immediate))                                                                  \
            return ZE_RESULT_ERROR_INVALID_ARGUMENT;                                                                           \
        *out = expression;                                                                                                     \
        return ZE_RESULT_SUCCESS;                                                                                              \
    }

LIST_GETTER(soft_zeCommandListGetFlags, ze_command_list_flags_t, false, o->list.flags)
LIST_GETTER(soft_zeCommandListImmediateGetFlags, ze_command_queue_flags_t, true, o->list.flags)
LIST_GETTER(soft_zeCommandListImmediateGetMode, ze_command_queue_mode_t, true, o->list.mode)
LIST_GETTER(soft_zeCommandListImmediateGetPriority, ze_command_queue_priority_t, true, o->list.priority)
LIST_GETTER(soft_zeCommandListImmediateGetIndex, uint32_t, true, o->list.index)
SOFT_GETTER(soft_zeCommandListIsMutableExp, ze_command_list_handle_t, SOFT_LIST, ze_bool_t, o == NULL) /* none is */

/* SPDX-License-Identifier: MIT */
/* Queues, what is executed on them, and waiting for it. */
#include "soft.h"

const unsigned soft_queues_of_group[3] = {1, 1, 8};
const size_t soft_longest_pattern[] = {sizeof(((soft_command *)NULL)->pattern), 1, 1}; /* copy engines fill with bytes */

typedef struct work {
    soft_ring *ring;
    uint64_t number;
    soft_object *queue;
} work;

static bool work_done(void *ctx)
{
    const work *const w = ctx;
    return !soft_ring_busy_locked(w->ring, w->queue, w->number);
}

static ze_result_t work_lost(void *ctx)
{
    const work *const w = ctx;
    soft_csr *const csr = soft_ring_csr(w->ring);
    if (!csr->banned && !w->queue->lost && !soft_ring_hopeless_locked(w->ring, w->queue, NULL, w->number))
        return ZE_RESULT_SUCCESS;
    csr->noticed |= csr->banned;
    w->queue->lost = false;
    return ZE_RESULT_ERROR_DEVICE_LOST;
}

ze_result_t soft_wait_work_locked(soft_ring *ring, soft_object *carrier, uint64_t number, uint64_t timeout)
{
    work w = {ring, number, carrier};
    soft_object_ref_locked(carrier); /* the program may destroy it meanwhile */
    const ze_result_t result = soft_wait_locked(&(soft_target){.ring = ring}, work_done, work_lost, &w, timeout);
    soft_object_unref_locked(carrier);
    return result;
}

ze_result_t soft_zeCommandQueueCreate(ze_context_handle_t hContext, ze_device_handle_t hDevice, const ze_command_queue_desc_t *desc,
                                      ze_command_queue_handle_t *phCommandQueue)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const context = soft_object_get(hContext, SOFT_CONTEXT), *const device = soft_object_get(hDevice, SOFT_DEVICE);
    soft_object *queue = NULL;
    if (context == NULL || device == NULL || desc->ordinal > 2 || desc->index >= soft_queues_of_group[desc->ordinal])
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if ((queue = soft_object_new_locked(SOFT_QUEUE)) == NULL)
        result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    else {
        queue->queue = (soft_queue){.context = context, .device = device, .ordinal = desc->ordinal, .index = desc->index,
                                    .flags = desc->flags, .mode = desc->mode, .priority = desc->priority,
                                    .ring = soft_ring_acquire_locked(device, desc->ordinal, desc->index)};
        if (queue->queue.ring == NULL) {
            soft_object_kill_locked(queue);
            result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
        } else {
            *phCommandQueue = (ze_command_queue_handle_t)queue;
        }
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeCommandQueueDestroy(ze_command_queue_handle_t hCommandQueue)
{
    soft_enter();
    soft_object *const queue = soft_object_get(hCommandQueue, SOFT_QUEUE);
    if (queue != NULL) {
        soft_lose_queue_locked(queue);
        soft_ring_release_locked(queue->queue.ring);
        soft_object_kill_locked(queue);
    }
    soft_leave();
    return queue ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

/* Puts the commands of closed lists on a ring, `head` before them if there is one, and a mark behind them that carries the fence. */
static ze_result_t submit_lists(soft_object *carrier, soft_ring *ring, uint32_t n, ze_command_list_handle_t *lists,
                                soft_object *fence, soft_command *head, soft_command *mark, uint64_t *last)
{
    soft_submit submit = {.queue = carrier, .submit = ++soft_clock};
    if (head != NULL && soft_ring_submit_locked(ring, head, &submit) == 0)
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    for (uint32_t l = 0; l < n; l++) {
        soft_object *const object = (soft_object *)lists[l];
        soft_replace_run_locked(object);
        submit.list = object;
        submit.in_order = object->list.in_order;
        for (size_t i = 0; i < object->list.n_commands; i++)
            if (soft_ring_submit_locked(ring, object->list.commands[i], &submit) == 0)
                return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    submit.list = NULL;
    submit.in_order = false;
    submit.fence = fence;
    *last = soft_ring_submit_locked(ring, mark, &submit);
    return *last ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
}

/* They are taken, and never run. */
static void lose_lists(uint32_t n, ze_command_list_handle_t *lists)
{
    for (uint32_t l = 0; l < n; l++) {
        const soft_list *const list = &((soft_object *)lists[l])->list;
        for (size_t i = 0; i < list->n_commands; i++)
            soft_command_lose_locked(list->commands[i]);
    }
}

static ze_result_t check_lists(unsigned ordinal, const soft_object *device, uint32_t n, ze_command_list_handle_t *lists)
{
    for (uint32_t i = 0; i < n; i++) {
        const soft_object *const list = soft_object_get(lists[i], SOFT_LIST);
        if (list == NULL || list->list.immediate || !list->list.closed || list->list.device != device)
            return ZE_RESULT_ERROR_INVALID_ARGUMENT;
        if (list->list.ordinal != ordinal)
            return ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE;
    }
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeCommandQueueExecuteCommandLists(ze_command_queue_handle_t hCommandQueue, uint32_t numCommandLists,
                                                   ze_command_list_handle_t *phCommandLists, ze_fence_handle_t hFence)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    if (numCommandLists == 0)
        return ZE_RESULT_ERROR_INVALID_SIZE;
    soft_enter();
    soft_object *const object = soft_object_get(hCommandQueue, SOFT_QUEUE);
    soft_object *const fence = hFence ? soft_object_get(hFence, SOFT_FENCE) : NULL;
    ze_result_t result = ZE_RESULT_SUCCESS;
    if (object == NULL)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if (hFence && (fence == NULL || fence->fence.queue != object))
        result = ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT;
    else
        result = check_lists(object->queue.ordinal, object->queue.device, numCommandLists, phCommandLists);
    if (result == ZE_RESULT_SUCCESS) {
        soft_ring *const ring = object->queue.ring;
        soft_before_submit_locked(ring);
        const soft_csr *const csr = soft_ring_csr(ring);
        soft_command *const mark = soft_command_new(SOFT_C_SUBMIT_END);
        uint64_t last = 0;
        if (csr->banned) {
            if (soft.errors == SOFT_AT_SUBMIT || csr->noticed)
                result = ZE_RESULT_ERROR_UNKNOWN;
            else
                lose_lists(numCommandLists, phCommandLists);
            if (fence)
                fence->fence.lost = true;
        } else if (mark == NULL) {
            result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
        } else {
            result = submit_lists(object, ring, numCommandLists, phCommandLists, fence, NULL, mark, &last);
            soft_kick_locked();
        }
        if (mark)
            soft_command_unref_locked(mark);
        if (result == ZE_RESULT_SUCCESS && object->queue.mode == ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS && last) {
            result = soft_wait_work_locked(ring, object, last, UINT64_MAX);
        }
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeCommandListImmediateAppendCommandListsExp(ze_command_list_handle_t hCommandListImmediate,
                                                             uint32_t numCommandLists, ze_command_list_handle_t *phCommandLists,
                                                             ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                                             ze_event_handle_t *phWaitEvents)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const object = soft_object_get(hCommandListImmediate, SOFT_LIST);
    bool events_ok = hSignalEvent == NULL || soft_object_get(hSignalEvent, SOFT_EVENT) != NULL;
    for (uint32_t i = 0; i < numWaitEvents; i++)
        events_ok &= soft_object_get(phWaitEvents[i], SOFT_EVENT) != NULL;
    soft_command *const head = soft_command_new(SOFT_C_WAIT), *const mark = soft_command_new(SOFT_C_SUBMIT_END);
    if (object == NULL || !object->list.immediate)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if (!events_ok)
        result = ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT;
    else
        result = check_lists(object->list.ordinal, object->list.device, numCommandLists, phCommandLists);
    if (result == ZE_RESULT_SUCCESS &&
        (head == NULL || mark == NULL || !soft_command_events_locked(head, NULL, numWaitEvents, phWaitEvents) ||
         !soft_command_events_locked(mark, hSignalEvent, 0, NULL)))
        result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    if (result == ZE_RESULT_SUCCESS) {
        soft_ring *const ring = object->list.ring;
        soft_before_submit_locked(ring);
        const soft_csr *const csr = soft_ring_csr(ring);
        uint64_t last = 0;
        if (csr->banned && (soft.errors == SOFT_AT_SUBMIT || csr->noticed)) {
            result = ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
        } else if (csr->banned) {
            lose_lists(numCommandLists, phCommandLists);
            soft_command_lose_locked(mark);
        } else {
            result = submit_lists(object, ring, numCommandLists, phCommandLists, NULL, numWaitEvents ? head : NULL, mark, &last);
            soft_kick_locked();
        }
        if (result == ZE_RESULT_SUCCESS && object->list.mode == ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS && last)
            result = soft_wait_work_locked(ring, object, last, UINT64_MAX);
    }
    if (head)
        soft_command_unref_locked(head);
    if (mark)
        soft_command_unref_locked(mark);
    soft_leave();
    return result;
}

ze_result_t soft_zeCommandListImmediateAppendCommandListsWithParameters(ze_command_list_handle_t hCommandListImmediate,
                                                                        uint32_t numCommandLists,
                                                                        ze_command_list_handle_t *phCommandLists,
                                                                        const void *pNext, ze_event_handle_t hSignalEvent,
                                                                        uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents)
{
    (void)pNext;
    return soft_zeCommandListImmediateAppendCommandListsExp(hCommandListImmediate, numCommandLists, phCommandLists, hSignalEvent,
                                                            numWaitEvents, phWaitEvents);
}

ze_result_t soft_zeCommandQueueSynchronize(ze_command_queue_handle_t hCommandQueue, uint64_t timeout)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const object = soft_object_get(hCommandQueue, SOFT_QUEUE);
    const ze_result_t result = object ? soft_wait_work_locked(object->queue.ring, object, soft_last_number_locked(), timeout)
                                      : ZE_RESULT_ERROR_INVALID_ARGUMENT;
    soft_leave();
    return result;
}

ze_result_t soft_zeCommandListHostSynchronize(ze_command_list_handle_t hCommandList, uint64_t timeout)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const object = soft_object_get(hCommandList, SOFT_LIST);
    const ze_result_t result = object && object->list.immediate
                                   ? soft_wait_work_locked(object->list.ring, object, soft_last_number_locked(), timeout)
                                   : ZE_RESULT_ERROR_INVALID_ARGUMENT;
    soft_leave();
    return result;
}

typedef struct device_work {
    soft_object *device;
    uint64_t number;
} device_work;

static bool on_device(soft_ring *ring, const soft_object *device)
{
    return &device->device.csr[0][0] <= soft_ring_csr(ring) && soft_ring_csr(ring) <= &device->device.csr[2][7];
}

static bool device_done(void *ctx)
{
    const device_work *const w = ctx;
    for (soft_ring *r = soft_ring_next_locked(NULL); r != NULL; r = soft_ring_next_locked(r))
        if (on_device(r, w->device) && soft_ring_busy_locked(r, NULL, w->number))
            return false;
    return true;
}

static ze_result_t device_failed(void *ctx)
{
    const device_work *const w = ctx;
    bool lost = soft_any_banned_locked(w->device) || w->device->lost;
    for (soft_ring *r = soft_ring_next_locked(NULL); r != NULL && !lost; r = soft_ring_next_locked(r))
        lost = on_device(r, w->device) && soft_ring_hopeless_locked(r, NULL, NULL, w->number);
    w->device->lost = false;
    return lost ? ZE_RESULT_ERROR_DEVICE_LOST : ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceSynchronize(ze_device_handle_t hDevice)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const device = soft_object_get(hDevice, SOFT_DEVICE);
    ze_result_t result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (device != NULL) {
        device_work w = {device, soft_last_number_locked()};
        result = soft_wait_locked(&soft_everything, device_done, device_failed, &w, UINT64_MAX);
    }
    soft_leave();
    return result;
}

/* ----------------------------------------------------------------------------------------------------------- getters */

SOFT_GETTER(soft_zeCommandQueueGetOrdinal, ze_command_queue_handle_t, SOFT_QUEUE, uint32_t, o->queue.ordinal)
SOFT_GETTER(soft_zeCommandQueueGetIndex, ze_command_queue_handle_t, SOFT_QUEUE, uint32_t, o->queue.index)
SOFT_GETTER(soft_zeCommandQueueGetFlags, ze_command_queue_handle_t, SOFT_QUEUE, ze_command_queue_flags_t, o->queue.flags)
SOFT_GETTER(soft_zeCommandQueueGetMode, ze_command_queue_handle_t, SOFT_QUEUE, ze_command_queue_mode_t, o->queue.mode)
SOFT_GETTER(soft_zeCommandQueueGetPriority, ze_command_queue_handle_t, SOFT_QUEUE, ze_command_queue_priority_t, o->queue.priority)

/* SPDX-License-Identifier: MIT */
/* Event pools, events, fences. */
#include "soft.h"

#include <stdlib.h>
#include <string.h>

uint64_t soft_device_ticks(void)
{
    return soft_now_ns() / SOFT_NS_PER_TICK;
}

void soft_event_timestamp_locked(const soft_event *e, ze_kernel_timestamp_result_t *t)
{
    t->global.kernelStart = t->context.kernelStart = e->start;
    t->global.kernelEnd = t->context.kernelEnd = e->end;
}

bool soft_event_is_signalled_locked(const soft_event *e)
{
    return e->counter_based ? e->done >= e->assigned : e->signalled;
}

void soft_event_signal_locked(soft_event *e, uint64_t counter, uint64_t start, uint64_t end)
{
    if (e->counter_based && counter > e->done)
        e->done = counter;
    e->signalled = true;
    e->lost = false;
    e->start = start;
    e->end = end;
}

static const void *chained(const void *pNext, uint32_t stype)
{
    unsigned left = 64; /* a chain may lead to itself */
    for (const ze_base_desc_t *d = pNext; d != NULL && left-- > 0; d = d->pNext)
        if ((uint32_t)d->stype == stype)
            return d;
    return NULL;
}

ze_result_t soft_zeEventPoolCreate(ze_context_handle_t hContext, const ze_event_pool_desc_t *desc, uint32_t numDevices,
                                   ze_device_handle_t *phDevices, ze_event_pool_handle_t *phEventPool)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    if (desc->count == 0)
        return ZE_RESULT_ERROR_INVALID_SIZE;
    soft_enter();
    soft_object *const context = soft_object_get(hContext, SOFT_CONTEXT);
    bool devices_ok = true;
    for (uint32_t i = 0; i < numDevices; i++)
        devices_ok &= soft_object_get(phDevices[i], SOFT_DEVICE) != NULL;
    soft_object *pool = NULL;
    soft_object **events = NULL;
    if (context == NULL || !devices_ok)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if ((events = calloc(desc->count, sizeof(*events))) == NULL || (pool = soft_object_new_locked(SOFT_POOL)) == NULL)
        result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    if (pool != NULL) {
        const ze_event_pool_counter_based_exp_desc_t *const counter =
            chained(desc->pNext, ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC);
        pool->pool = (soft_pool){.context = context, .count = desc->count, .flags = desc->flags, .events = events,
                                 .counter_based = counter != NULL, .counter_flags = counter ? counter->flags : 0};
        *phEventPool = (ze_event_pool_handle_t)pool;
    } else {
        free(events);
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeEventPoolDestroy(ze_event_pool_handle_t hEventPool)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const pool = soft_object_get(hEventPool, SOFT_POOL);
    if (pool == NULL)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if (pool->pool.alive > 0)
        result = ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE;
    else {
        free(pool->pool.events);
        soft_object_kill_locked(pool);
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeEventCreate(ze_event_pool_handle_t hEventPool, const ze_event_desc_t *desc, ze_event_handle_t *phEvent)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const pool = soft_object_get(hEventPool, SOFT_POOL);
    soft_object *event = NULL;
    if (pool == NULL || (pool && desc->index >= pool->pool.count) || (pool && pool->pool.events[desc->index] != NULL))
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if ((event = soft_object_new_locked(SOFT_EVENT)) == NULL)
        result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    else {
        event->event = (soft_event){.pool = pool, .context = pool->pool.context, .index = desc->index,
                                    .signal_scope = desc->signal, .wait_scope = desc->wait, .flags = pool->pool.flags,
                                    .counter_based = pool->pool.counter_based, .counter_flags = pool->pool.counter_flags,
                                    .timestamps = pool->pool.flags & (ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP |
                                                                      ZE_EVENT_POOL_FLAG_KERNEL_MAPPED_TIMESTAMP)};
        pool->pool.events[desc->index] = event;
        pool->pool.alive++;
        *phEvent = (ze_event_handle_t)event;
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeEventCounterBasedCreate(ze_context_handle_t hContext, ze_device_handle_t hDevice,
                                           const ze_event_counter_based_desc_t *desc, ze_event_handle_t *phEvent)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const context = soft_object_get(hContext, SOFT_CONTEXT);
    soft_object *event = NULL;
    if (context == NULL || soft_object_get(hDevice, SOFT_DEVICE) == NULL)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if ((event = soft_object_new_locked(SOFT_EVENT)) == NULL)
        result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    else {
        event->event = (soft_event){.context = context, .counter_based = true,
                                    .signal_scope = desc ? desc->signal : 0, .wait_scope = desc ? desc->wait : 0,
                                    .counter_flags = desc ? desc->flags : 0,
                                    .timestamps = desc && (desc->flags & (ZE_EVENT_COUNTER_BASED_FLAG_DEVICE_TIMESTAMP |
                                                                          ZE_EVENT_COUNTER_BASED_FLAG_HOST_TIMESTAMP))};
        *phEvent = (ze_event_handle_t)event;
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeEventDestroy(ze_event_handle_t hEvent)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const event = soft_object_get(hEvent, SOFT_EVENT);
    if (event == NULL)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else {
        soft_lose_waiters_locked(event);
        if (event->event.pool) {
            event->event.pool->pool.events[event->event.index] = NULL;
            event->event.pool->pool.alive--;
        }
        soft_object_kill_locked(event);
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeEventHostSignal(ze_event_handle_t hEvent)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    if (soft.schedule == SOFT_NULL)
        return result;
    soft_enter();
    soft_object *const event = soft_object_get(hEvent, SOFT_EVENT);
    if (event == NULL)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if (event->event.counter_based)
        result = ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    else {
        const uint64_t now = soft_device_ticks();
        soft_event_signal_locked(&event->event, 0, now, now);
        soft_kick_locked();
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeEventHostReset(ze_event_handle_t hEvent)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    if (soft.schedule == SOFT_NULL)
        return result;
    soft_enter();
    soft_object *const event = soft_object_get(hEvent, SOFT_EVENT);
    if (event == NULL)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if (event->event.counter_based)
        result = ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    else
        event->event.signalled = event->event.lost = false;
    soft_leave();
    return result;
}

static bool event_done(void *ctx)
{
    return soft_event_is_signalled_locked(&((soft_object *)ctx)->event);
}

static ze_result_t event_failed(void *ctx)
{
    const soft_event *const e = &((soft_object *)ctx)->event;
    if (soft_event_is_signalled_locked(e))
        return ZE_RESULT_SUCCESS;
    bool first_engine = false; /* the one whose hang the real driver looks for in waits for events */
    for (unsigned i = 0; i < soft.devices; i++)
        first_engine |= soft_devices[i]->device.csr[0][0].banned;
    if (!e->lost && !first_engine && !soft_hopeless_locked(ctx))
        return ZE_RESULT_SUCCESS;
    for (unsigned i = 0; i < soft.devices; i++)
        for (unsigned o = 0; o < 3; o++)
            for (unsigned k = 0; k < 8; k++)
                soft_devices[i]->device.csr[o][k].noticed |= soft_devices[i]->device.csr[o][k].banned;
    return ZE_RESULT_ERROR_DEVICE_LOST;
}

ze_result_t soft_zeEventHostSynchronize(ze_event_handle_t hEvent, uint64_t timeout)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const event = soft_object_get(hEvent, SOFT_EVENT);
    ze_result_t result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (event != NULL) {
        soft_object_ref_locked(event);
        result = soft_wait_locked(&(soft_target){.event = event}, event_done, event_failed, event, timeout);
        soft_object_unref_locked(event);
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeEventQueryStatus(ze_event_handle_t hEvent)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const event = soft_object_get(hEvent, SOFT_EVENT);
    ze_result_t result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (event != NULL) {
        if (!event_done(event))
            soft_look_locked(&(soft_target){.event = event});
        result = event_done(event) ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeEventQueryKernelTimestamp(ze_event_handle_t hEvent, ze_kernel_timestamp_result_t *dstptr)
{
    soft_enter();
    soft_object *const event = soft_object_get(hEvent, SOFT_EVENT);
    ze_result_t result = ZE_RESULT_SUCCESS;
    if (event == NULL || !event->event.timestamps)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if (!event_done(event))
        result = ZE_RESULT_NOT_READY;
    else
        soft_event_timestamp_locked(&event->event, dstptr);
    soft_leave();
    return result;
}

/* The two-call idiom for the one time stamp there is. @return whether to write it. */
static bool one_result(uint32_t *pCount, const void *out)
{
    const bool write = *pCount > 0 && out != NULL;
    *pCount = 1;
    return write;
}

static ze_result_t timestamp_event(ze_event_handle_t hEvent, ze_device_handle_t hDevice, const soft_event **event)
{
    const soft_object *const object = soft_object_get(hEvent, SOFT_EVENT);
    if (object == NULL || !object->event.timestamps || soft_object_get(hDevice, SOFT_DEVICE) == NULL)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *event = &object->event;
    return soft_event_is_signalled_locked(*event) ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}

ze_result_t soft_zeEventQueryTimestampsExp(ze_event_handle_t hEvent, ze_device_handle_t hDevice, uint32_t *pCount,
                                           ze_kernel_timestamp_result_t *pTimestamps)
{
    const soft_event *event;
    soft_enter();
    const ze_result_t result = timestamp_event(hEvent, hDevice, &event);
    if (result == ZE_RESULT_SUCCESS && one_result(pCount, pTimestamps))
        soft_event_timestamp_locked(event, pTimestamps);
    soft_leave();
    return result;
}

ze_result_t soft_zeEventQueryKernelTimestampsExt(ze_event_handle_t hEvent, ze_device_handle_t hDevice, uint32_t *pCount,
                                                 ze_event_query_kernel_timestamps_results_ext_properties_t *pResults)
{
    const soft_event *event;
    soft_enter();
    const ze_result_t result = timestamp_event(hEvent, hDevice, &event);
    if (result == ZE_RESULT_SUCCESS && one_result(pCount, pResults)) {
        if (pResults->pKernelTimestampsBuffer != NULL)
            soft_event_timestamp_locked(event, pResults->pKernelTimestampsBuffer);
        if (pResults->pSynchronizedTimestampsBuffer != NULL && (event->flags & ZE_EVENT_POOL_FLAG_KERNEL_MAPPED_TIMESTAMP)) {
            ze_synchronized_timestamp_result_ext_t *const t = pResults->pSynchronizedTimestampsBuffer;
            t->global.kernelStart = t->context.kernelStart = event->start * SOFT_NS_PER_TICK;
            t->global.kernelEnd = t->context.kernelEnd = event->end * SOFT_NS_PER_TICK;
        }
    }
    soft_leave();
    return result;
}

SOFT_GETTER(soft_zeEventGetSignalScope, ze_event_handle_t, SOFT_EVENT, ze_event_scope_flags_t, o->event.signal_scope)
SOFT_GETTER(soft_zeEventGetWaitScope, ze_event_handle_t, SOFT_EVENT, ze_event_scope_flags_t, o->event.wait_scope)
SOFT_GETTER(soft_zeEventPoolGetContextHandle, ze_event_pool_handle_t, SOFT_POOL, ze_context_handle_t,
            (ze_context_handle_t)o->pool.context)
SOFT_GETTER(soft_zeEventPoolGetFlags, ze_event_pool_handle_t, SOFT_POOL, ze_event_pool_flags_t, o->pool.flags)

ze_result_t soft_zeEventGetEventPool(ze_event_handle_t hEvent, ze_event_pool_handle_t *phEventPool)
{
    const soft_object *const event = soft_object_get(hEvent, SOFT_EVENT);
    if (event == NULL || event->event.pool == NULL)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *phEventPool = (ze_event_pool_handle_t)event->event.pool;
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeEventGetCounterBasedFlags(ze_event_handle_t hEvent, ze_event_counter_based_flags_t *pFlags)
{
    const soft_object *const event = soft_object_get(hEvent, SOFT_EVENT);
    if (event == NULL || !event->event.counter_based)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *pFlags = event->event.counter_flags;
    return ZE_RESULT_SUCCESS;
}

/* ------------------------------------------------------------------------------------------------------------ fences */

ze_result_t soft_zeFenceCreate(ze_command_queue_handle_t hCommandQueue, const ze_fence_desc_t *desc, ze_fence_handle_t *phFence)
{
    ze_result_t result = ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const queue = soft_object_get(hCommandQueue, SOFT_QUEUE);
    soft_object *fence = NULL;
    if (queue == NULL)
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    else if ((fence = soft_object_new_locked(SOFT_FENCE)) == NULL)
        result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    else {
        soft_object_ref_locked(queue); /* a program may destroy the queue first, which is wrong and no crash */
        fence->fence = (soft_fence){.queue = queue, .signalled = desc->flags & ZE_FENCE_FLAG_SIGNALED};
        *phFence = (ze_fence_handle_t)fence;
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeFenceDestroy(ze_fence_handle_t hFence)
{
    soft_enter();
    soft_object *const fence = soft_object_get(hFence, SOFT_FENCE);
    if (fence != NULL) {
        soft_object_unref_locked(fence->fence.queue);
        soft_object_kill_locked(fence);
    }
    soft_leave();
    return fence ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

ze_result_t soft_zeFenceReset(ze_fence_handle_t hFence)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const fence = soft_object_get(hFence, SOFT_FENCE);
    if (fence != NULL) {
        fence->fence.signalled = fence->fence.lost = false;
        fence->fence.generation++;
    }
    soft_leave();
    return fence ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

static bool fence_done(void *ctx)
{
    return ((soft_object *)ctx)->fence.signalled;
}

static ze_result_t fence_failed(void *ctx)
{
    const soft_fence *const f = &((soft_object *)ctx)->fence;
    soft_csr *const csr = soft_ring_csr(f->queue->queue.ring);
    if (f->signalled || (!f->lost && !csr->banned && !soft_ring_hopeless_locked(f->queue->queue.ring, NULL, ctx, UINT64_MAX)))
        return ZE_RESULT_SUCCESS;
    csr->noticed |= csr->banned;
    return ZE_RESULT_ERROR_DEVICE_LOST;
}

ze_result_t soft_zeFenceHostSynchronize(ze_fence_handle_t hFence, uint64_t timeout)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const fence = soft_object_get(hFence, SOFT_FENCE);
    ze_result_t result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (fence != NULL) {
        soft_object *const queue = fence->fence.queue;
        soft_object_ref_locked(fence);
        soft_object_ref_locked(queue);
        result = soft_wait_locked(&(soft_target){.ring = queue->queue.ring}, fence_done, fence_failed, fence, timeout);
        soft_object_unref_locked(queue);
        soft_object_unref_locked(fence);
    }
    soft_leave();
    return result;
}

ze_result_t soft_zeFenceQueryStatus(ze_fence_handle_t hFence)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const fence = soft_object_get(hFence, SOFT_FENCE);
    ze_result_t result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (fence != NULL) {
        if (!fence->fence.signalled)
            soft_look_locked(&(soft_target){.ring = fence->fence.queue->queue.ring});
        /* the real driver says NOT_READY for ever after a fault: a query does not look for hangs */
        result = fence->fence.signalled ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
    }
    soft_leave();
    return result;
}

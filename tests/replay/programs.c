/* SPDX-License-Identifier: MIT */
#include "programs.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SIZE 4096

void start(hand *h, basics *b)
{
    static ze_context_desc_t context = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    static ze_command_queue_desc_t queue = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
    static ze_event_pool_desc_t pool = {
        .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE, .count = 8};
    uint32_t n = 0;
    CALL(h, "zeInit", 0);
    CALL(h, "zeDriverGet", W(&n), 0);
    n = 1;
    CALL(h, "zeDriverGet", W(&n), W(&b->driver));
    n = 1;
    CALL(h, "zeDeviceGet", W(b->driver), W(&n), W(&b->device));
    CALL(h, "zeContextCreate", W(b->driver), W(&context), W(&b->context));
    CALL(h, "zeCommandQueueCreate", W(b->context), W(b->device), W(&queue), W(&b->queue));
    CALL(h, "zeEventPoolCreate", W(b->context), W(&pool), 1, W(&b->device), W(&b->pool));
}

uint64_t new_list(hand *h, const basics *b)
{
    ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
    ze_command_list_handle_t list = NULL;
    CALL(h, "zeCommandListCreate", W(b->context), W(b->device), W(&desc), W(&list));
    return W(list);
}

uint64_t new_event(hand *h, const basics *b, uint32_t index)
{
    ze_event_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC,
                            .index = index,
                            .signal = ZE_EVENT_SCOPE_FLAG_HOST,
                            .wait = ZE_EVENT_SCOPE_FLAG_HOST};
    ze_event_handle_t event = NULL;
    CALL(h, "zeEventCreate", W(b->pool), W(&desc), W(&event));
    return W(event);
}

uint64_t new_memory(hand *h, const basics *b, const char *function, size_t size)
{
    ze_device_mem_alloc_desc_t device = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    ze_host_mem_alloc_desc_t host = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    void *p = NULL;
    if (strcmp(function, "zeMemAllocHost") == 0)
        CALL(h, function, W(b->context), W(&host), size, 64, W(&p));
    else if (strcmp(function, "zeMemAllocShared") == 0)
        CALL(h, function, W(b->context), W(&device), W(&host), size, 64, W(b->device), W(&p));
    else
        CALL(h, function, W(b->context), W(&device), size, 64, W(b->device), W(&p));
    return W(p);
}

int64_t execute(hand *h, const basics *b, uint64_t list)
{
    return CALL(h, "zeCommandQueueExecuteCommandLists", W(b->queue), 1, W(&list), 0);
}

int64_t sync_queue(hand *h, const basics *b)
{
    return CALL(h, "zeCommandQueueSynchronize", W(b->queue), UINT64_MAX);
}

static void evict(hand *h, bool good)
{
    basics b;
    start(h, &b);
    const uint64_t from = new_memory(h, &b, "zeMemAllocDevice", SIZE), to = new_memory(h, &b, "zeMemAllocDevice", SIZE);
    CALL(h, "zeContextMakeMemoryResident", W(b.context), W(b.device), from, SIZE);
    CALL(h, "zeContextMakeMemoryResident", W(b.context), W(b.device), to, SIZE);
    const uint64_t list = new_list(h, &b), empty = new_list(h, &b);
    CALL(h, "zeCommandListAppendMemoryCopy", list, to, from, SIZE, 0, 0, 0);
    CALL(h, "zeCommandListClose", list);
    CALL(h, "zeCommandListClose", empty);
    execute(h, &b, list);
    if (good)
        sync_queue(h, &b);
    CALL(h, "zeContextEvictMemory", W(b.context), W(b.device), to, SIZE);
    CALL(h, "zeMemFree", W(b.context), to);
    for (int i = 0; i < 10; i++)
        execute(h, &b, empty);
    sync_queue(h, &b);
    CALL(h, "zeCommandListDestroy", list);
    CALL(h, "zeCommandListDestroy", empty);
    CALL(h, "zeMemFree", W(b.context), from);
    CALL(h, "zeEventPoolDestroy", W(b.pool));
    CALL(h, "zeCommandQueueDestroy", W(b.queue));
    CALL(h, "zeContextDestroy", W(b.context));
}

void evict_bad(hand *h)
{
    evict(h, false);
}

void evict_good(hand *h)
{
    evict(h, true);
}

void host_memory(hand *h)
{
    static uint8_t source[SIZE], back[SIZE];
    basics b;
    start(h, &b);
    const uint64_t device = new_memory(h, &b, "zeMemAllocDevice", SIZE),
                   usm = new_memory(h, &b, "zeMemAllocHost", SIZE);
    const uint64_t list = new_list(h, &b);
    CALL(h, "zeCommandListAppendMemoryCopy", list, device, W(source), SIZE, 0, 0, 0);
    CALL(h, "zeCommandListAppendBarrier", list, 0, 0, 0);
    CALL(h, "zeCommandListAppendMemoryCopy", list, W(back), device, SIZE, 0, 0, 0);
    CALL(h, "zeCommandListAppendMemoryCopy", list, usm, device, SIZE, 0, 0, 0);
    CALL(h, "zeCommandListClose", list);
    for (unsigned round = 1; round < 4; round++) {
        for (unsigned i = 0; i < SIZE; i++)
            source[i] = (uint8_t)(i * round + i / 251);
        hand_contents(h, ZT_C_OPERAND, source, SIZE);
        execute(h, &b, list);
        hand_contents(h, ZT_C_READBACK, back, SIZE);
        hand_contents(h, ZT_C_READBACK, (void *)(uintptr_t)usm, SIZE);
        sync_queue(h, &b);
    }
    CALL(h, "zeMemFree", W(b.context), usm);
}

void gate(hand *h)
{
    basics b;
    start(h, &b);
    uint64_t event = new_event(h, &b, 0);
    const uint64_t done = new_event(h, &b, 1), list = new_list(h, &b),
                   memory = new_memory(h, &b, "zeMemAllocDevice", SIZE);
    const uint32_t pattern = 0x01020304;
    CALL(h, "zeCommandListAppendWaitOnEvents", list, 1, W(&event));
    CALL(h, "zeCommandListAppendMemoryFill", list, memory, W(&pattern), 4, SIZE, done, 0, 0);
    CALL(h, "zeCommandListClose", list);
    execute(h, &b, list);
    CALL(h, "zeEventQueryStatus", done);
    CALL(h, "zeCommandQueueSynchronize", W(b.queue), 1000000);
    CALL(h, "zeEventHostSignal", event);
    while (CALL(h, "zeEventQueryStatus", done) == ZE_RESULT_NOT_READY)
        usleep(1000);
    CALL(h, "zeEventHostSynchronize", done, UINT64_MAX);
    sync_queue(h, &b);
}

void one_event(hand *h)
{
    enum { APPENDS = 100 };
    basics b;
    start(h, &b);
    uint64_t event = new_event(h, &b, 0);
    const uint64_t memory = new_memory(h, &b, "zeMemAllocDevice", SIZE);
    const uint32_t pattern = 0x01020304;
    const ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
    ze_command_list_handle_t immediate = NULL;
    CALL(h, "zeCommandListCreateImmediate", W(b.context), W(b.device), W(&desc), W(&immediate));
    const uint64_t list = W(immediate);
    CALL(h, "zeEventHostSignal", event);
    for (int i = 0; i < APPENDS; i++)
        CALL(h, "zeCommandListAppendMemoryFill", list, memory, W(&pattern), 4, SIZE, event, 1, W(&event));
    CALL(h, "zeEventHostSynchronize", event, UINT64_MAX);
    CALL(h, "zeCommandListHostSynchronize", list, UINT64_MAX);
}

struct shared {
    hand *h;
    uint64_t event, answer;
};

static void *other(void *arg)
{
    struct shared *const s = arg;
    hand_thread(2);
    usleep(50000);
    for (int i = 0; i < 100; i++)
        CALL(s->h, "zeEventQueryStatus", s->answer);
    CALL(s->h, "zeEventHostSignal", s->event);
    CALL(s->h, "zeEventHostSynchronize", s->answer, UINT64_MAX);
    return NULL;
}

void two_threads(hand *h)
{
    basics b;
    start(h, &b);
    struct shared s = {h, new_event(h, &b, 0), new_event(h, &b, 1)};
    pthread_t thread;
    pthread_create(&thread, NULL, other, &s);
    CALL(h, "zeEventHostSynchronize", s.event, UINT64_MAX);
    CALL(h, "zeEventHostSignal", s.answer);
    pthread_join(thread, NULL);
    CALL(h, "zeEventDestroy", s.event);
    CALL(h, "zeEventDestroy", s.answer);
}

void early_waiter(hand *h)
{
    basics b;
    start(h, &b);
    const uint64_t event = new_event(h, &b, 0);
    hand_pretend(h, "zeEventHostSynchronize", (const uint64_t[]){event, UINT64_MAX}, ZE_RESULT_SUCCESS);
    zt_call *const wait = hand_last(h);
    hand_thread(2);
    CALL(h, "zeEventHostSignal", event);
    zt_call *const signal = hand_last(h);
    hand_thread(1);
    wait->leave_ns = signal->enter_ns + 1;
    signal->leave_ns += 2;
    usleep(10);
    CALL(h, "zeEventDestroy", event);
}

struct worker {
    hand *h;
    const basics *b;
    unsigned number;
    pthread_t thread;
};

static void *work(void *arg)
{
    const struct worker *const w = arg;
    hand_thread(w->number + 2);
    for (int i = 0; i < 300; i++) {
        const uint64_t event = new_event(w->h, w->b, w->number), memory = new_memory(w->h, w->b, "zeMemAllocHost", 256);
        CALL(w->h, "zeEventHostSignal", event);
        CALL(w->h, "zeEventQueryStatus", event);
        CALL(w->h, "zeEventHostReset", event);
        CALL(w->h, "zeEventQueryStatus", event);
        CALL(w->h, "zeMemFree", W(w->b->context), memory);
        CALL(w->h, "zeEventDestroy", event);
    }
    return NULL;
}

void eight_threads(hand *h)
{
    struct worker workers[8];
    basics b;
    start(h, &b);
    for (unsigned i = 0; i < 8; i++) {
        workers[i] = (struct worker){h, &b, i, 0};
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (unsigned i = 0; i < 8; i++)
        pthread_join(workers[i].thread, NULL);
    CALL(h, "zeEventPoolDestroy", W(b.pool));
}

void many_queries(hand *h)
{
    basics b;
    start(h, &b);
    for (int round = 0; round < 2; round++) {
        uint32_t n = 0;
        ze_driver_properties_t driver = {.stype = ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES};
        ze_device_properties_t device = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
        ze_device_compute_properties_t compute = {.stype = ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES};
        ze_command_queue_group_properties_t groups[8] = {{.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES}};
        ze_driver_extension_properties_t extensions[64];
        for (int i = 0; i < 8; i++)
            groups[i] = groups[0];
        CALL(h, "zeDriverGetProperties", W(b.driver), W(&driver));
        CALL(h, "zeDeviceGetProperties", W(b.device), W(&device));
        CALL(h, "zeDeviceGetComputeProperties", W(b.device), W(&compute));
        CALL(h, "zeDeviceGetCommandQueueGroupProperties", W(b.device), W(&n), 0);
        n = 8; /* more room than there is */
        CALL(h, "zeDeviceGetCommandQueueGroupProperties", W(b.device), W(&n), W(groups));
        n = 64;
        CALL(h, "zeDriverGetExtensionProperties", W(b.driver), W(&n), W(extensions));
        CALL(h, "zeDeviceGetSubDevices", W(b.device), W(&n), 0);
        uint64_t host = 0, ticks = 0;
        CALL(h, "zeDeviceGetGlobalTimestamps", W(b.device), W(&host), W(&ticks));
    }
    const uint64_t memory = new_memory(h, &b, "zeMemAllocShared", 100);
    ze_memory_allocation_properties_t props = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
    ze_device_handle_t of = NULL;
    CALL(h, "zeMemGetAllocProperties", W(b.context), memory + 10, W(&props), W(&of));
    void *base = NULL;
    size_t size = 0;
    CALL(h, "zeMemGetAddressRange", W(b.context), memory + 10, W(&base), W(&size));
    CALL(h, "zeContextDestroy", 0); /* wrong use */
    CALL(h, "zeMemFree", W(b.context), memory);
    CALL(h, "zeMemFree", W(b.context), memory); /* again */
}

static void one_goes(hand *h, bool original)
{
    basics b;
    start(h, &b);
    uint64_t event = new_event(h, &b, 0), clone = 0xc10e0;
    const uint64_t from = new_memory(h, &b, "zeMemAllocHost", SIZE), to = new_memory(h, &b, "zeMemAllocHost", SIZE), list = new_list(h, &b);
    CALL(h, "zeCommandListAppendMemoryCopy", list, to, from, SIZE, 0, 1, W(&event));
    CALL(h, "zeCommandListClose", list);
    hand_pretend(h, "zeCommandListCreateCloneExp", (const uint64_t[]){list, W(&clone)}, 0);
    hand_pretend(h, "zeCommandQueueExecuteCommandLists", (const uint64_t[]){W(b.queue), 1, W(&clone), 0}, 0);
    if (original)
        CALL(h, "zeCommandListDestroy", list);
    else
        hand_pretend(h, "zeCommandListDestroy", (const uint64_t[]){clone}, 0);
    CALL(h, "zeEventHostSignal", event);
    hand_pretend(h, "zeCommandQueueSynchronize", (const uint64_t[]){W(b.queue), UINT64_MAX},
                 original ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_DEVICE_LOST);
}

void original_goes(hand *h)
{
    one_goes(h, true);
}

void clone_goes(hand *h)
{
    one_goes(h, false);
}

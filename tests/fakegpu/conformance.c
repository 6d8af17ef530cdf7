/* SPDX-License-Identifier: MIT */
/*
 * conformance [CASE...]: what a driver answers where the specification leaves room, or where programs rely on the answer. A line a
 * case, `case: value...`; results are the last names of ze_result_t. Without a CASE their names are listed. Each case wants a process
 * of its own: some leave a banned queue behind.
 */
#include "../apps/common.h"

#include <pthread.h>

static app a;
static const char *separator;

static void say(const char *text)
{
    printf("%s%s", separator, text);
    separator = " ";
}

static void say_number(unsigned long long n)
{
    char text[32];
    snprintf(text, sizeof(text), "%llu", n);
    say(text);
}

static void say_result(ze_result_t r)
{
    static const struct {
        unsigned value;
        const char *name;
    } names[] = {{0, "SUCCESS"},
                 {1, "NOT_READY"},
                 {0x70000001, "DEVICE_LOST"},
                 {0x70000002, "OUT_OF_HOST_MEMORY"},
                 {0x70000003, "OUT_OF_DEVICE_MEMORY"},
                 {0x78000001, "UNINITIALIZED"},
                 {0x78000002, "UNSUPPORTED_VERSION"},
                 {0x78000003, "UNSUPPORTED_FEATURE"},
                 {0x78000004, "INVALID_ARGUMENT"},
                 {0x78000005, "INVALID_NULL_HANDLE"},
                 {0x78000006, "HANDLE_OBJECT_IN_USE"},
                 {0x78000007, "INVALID_NULL_POINTER"},
                 {0x78000008, "INVALID_SIZE"},
                 {0x78000009, "UNSUPPORTED_SIZE"},
                 {0x7800000a, "UNSUPPORTED_ALIGNMENT"},
                 {0x7800000b, "INVALID_SYNCHRONIZATION_OBJECT"},
                 {0x7800000c, "INVALID_ENUMERATION"},
                 {0x78000019, "INVALID_COMMAND_LIST_TYPE"},
                 {0x78000021, "ADDRESS_NOT_FOUND"},
                 {0x7ffffffe, "UNKNOWN"}};
    char hex[16];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].value == (unsigned)r) {
            say(names[i].name);
            return;
        }
    snprintf(hex, sizeof(hex), "0x%x", (unsigned)r);
    say(hex);
}

/* ------------------------------------------------------------------------------------------------------------ events */

static void event_host(void)
{
    const ze_event_handle_t e = event_new(&a);
    say_result(zeEventQueryStatus(e));
    say_result(zeEventHostSynchronize(e, 0));
    say_result(zeEventHostSynchronize(e, 1000000));
    say_result(zeEventHostSignal(e));
    say_result(zeEventQueryStatus(e));
    say_result(zeEventHostSynchronize(e, 0));
    say_result(zeEventHostSignal(e));
    say_result(zeEventHostReset(e));
    say_result(zeEventQueryStatus(e));
    say_result(zeEventDestroy(e));
}

static void event_device(void)
{
    const ze_event_handle_t e = event_new(&a), done = event_new(&a);
    const ze_command_queue_handle_t q = queue_new(&a, 0, 0);
    const ze_command_list_handle_t list = list_new(&a, 0);
    MUST(zeCommandListAppendSignalEvent(list, e));
    MUST(zeCommandListAppendEventReset(list, done));
    MUST(zeCommandListClose(list));
    MUST(zeEventHostSignal(done));
    MUST(run(q, list, NULL));
    MUST(zeCommandQueueSynchronize(q, UINT64_MAX));
    say_result(zeEventQueryStatus(e));
    say_result(zeEventQueryStatus(done));
}

static void event_create(void)
{
    ze_event_handle_t e;
    ze_event_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .index = 32};
    ze_event_pool_handle_t pool;
    const ze_event_pool_desc_t one = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE, .count = 1};
    say_result(zeEventCreate(a.pool, &desc, &e));
    say_result(zeEventPoolCreate(a.context, &one, 0, NULL, &pool));
}

static void event_pool_empty(void)
{
    ze_event_pool_handle_t pool;
    const ze_event_pool_desc_t none = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE, .count = 0};
    say_result(zeEventPoolCreate(a.context, &none, 1, &a.device, &pool));
}

static ze_event_handle_t timed_event(uint32_t flags)
{
    ze_event_pool_handle_t pool;
    ze_event_handle_t e;
    const ze_event_pool_desc_t pd = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = flags | ZE_EVENT_POOL_FLAG_HOST_VISIBLE, .count = 1};
    const ze_event_desc_t ed = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .signal = ZE_EVENT_SCOPE_FLAG_HOST};
    MUST(zeEventPoolCreate(a.context, &pd, 1, &a.device, &pool));
    MUST(zeEventCreate(pool, &ed, &e));
    return e;
}

static void copy_with(ze_event_handle_t e)
{
    const ze_command_queue_handle_t q = queue_new(&a, 0, 0);
    const ze_command_list_handle_t list = list_new(&a, 0);
    MUST(zeCommandListAppendMemoryCopy(list, device_new(&a, 4096), device_new(&a, 4096), 4096, e, 0, NULL));
    MUST(zeCommandListClose(list));
    MUST(run(q, list, NULL));
    MUST(zeCommandQueueSynchronize(q, UINT64_MAX));
}

static void event_timestamps(void)
{
    const ze_event_handle_t e = timed_event(ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP);
    ze_kernel_timestamp_result_t t = {0};
    say_result(zeEventQueryKernelTimestamp(e, &t));
    copy_with(e);
    say_result(zeEventQueryKernelTimestamp(e, &t));
    say(t.context.kernelEnd >= t.context.kernelStart && t.global.kernelStart != 0 ? "present" : "absent");
}

static void event_without_timestamps(void)
{
    const ze_event_handle_t e = timed_event(0);
    ze_kernel_timestamp_result_t t = {0};
    copy_with(e);
    say_result(zeEventQueryKernelTimestamp(e, &t));
}

/* ------------------------------------------------------------------------------------------------------------ fences */

static void fence(void)
{
    const ze_command_queue_handle_t q = queue_new(&a, 0, 0);
    const ze_command_list_handle_t list = list_new(&a, 0);
    const ze_fence_handle_t f = fence_new(q);
    const ze_fence_desc_t signalled = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC, .flags = ZE_FENCE_FLAG_SIGNALED};
    ze_fence_handle_t s;
    MUST(zeCommandListClose(list));
    say_result(zeFenceQueryStatus(f));
    say_result(zeFenceHostSynchronize(f, 0));
    say_result(run(q, list, f));
    say_result(zeFenceHostSynchronize(f, UINT64_MAX));
    say_result(zeFenceQueryStatus(f));
    say_result(zeFenceReset(f));
    say_result(zeFenceQueryStatus(f));
    say_result(zeFenceDestroy(f));
    say_result(zeFenceCreate(q, &signalled, &s));
    say_result(zeFenceQueryStatus(s));
}

/* ------------------------------------------------------------------------------------------------------- lists and queues */

static void list_states(void)
{
    const ze_command_queue_handle_t q = queue_new(&a, 0, 0);
    const ze_command_list_handle_t list = list_new(&a, 0);
    void *const to = device_new(&a, 4096), *const from = device_new(&a, 4096);
    say_result(zeCommandListClose(list));
    say_result(zeCommandListClose(list));
    say_result(run(q, list, NULL));
    say_result(zeCommandQueueSynchronize(q, UINT64_MAX));
    say_result(zeCommandListReset(list));
    say_result(zeCommandListAppendMemoryCopy(list, to, from, 4096, NULL, 0, NULL));
    say_result(zeCommandListClose(list));
    say_result(run(q, list, NULL));
    say_result(zeCommandQueueSynchronize(q, UINT64_MAX));
    say_result(zeCommandListDestroy(list));
    say_result(zeCommandQueueDestroy(q));
}

static void list_append_closed(void)
{
    const ze_command_list_handle_t list = list_new(&a, 0);
    MUST(zeCommandListClose(list));
    say_result(zeCommandListAppendMemoryCopy(list, device_new(&a, 64), device_new(&a, 64), 64, NULL, 0, NULL));
}

static void list_execute_open(void)
{
    say_result(run(queue_new(&a, 0, 0), list_new(&a, 0), NULL));
}

static void list_execute_none(void)
{
    const ze_command_queue_handle_t q = queue_new(&a, 0, 0);
    ze_command_list_handle_t list = NULL;
    say_result(zeCommandQueueExecuteCommandLists(q, 0, &list, NULL));
}

static void list_execute_null(void)
{
    say_result(zeCommandQueueExecuteCommandLists(queue_new(&a, 0, 0), 1, NULL, NULL));
}

static void list_of_another_group(void)
{
    const ze_command_list_handle_t list = list_new(&a, 1);
    MUST(zeCommandListClose(list));
    say_result(run(queue_new(&a, 0, 0), list, NULL));
}

static void append_arguments(void)
{
    const ze_command_list_handle_t list = list_new(&a, 0);
    void *const to = device_new(&a, 4096), *const from = device_new(&a, 4096);
    const uint64_t pattern = 0;
    say_result(zeCommandListAppendMemoryCopy(list, to, from, 0, NULL, 0, NULL));
    say_result(zeCommandListAppendMemoryFill(list, to, &pattern, 8, 0, NULL, 0, NULL));
}

static void append_null(void)
{
    const ze_command_list_handle_t list = list_new(&a, 0);
    say_result(zeCommandListAppendMemoryCopy(list, NULL, device_new(&a, 64), 64, NULL, 0, NULL));
}

static void fill_pattern(void)
{
    const ze_command_list_handle_t list = list_new(&a, 0);
    void *const to = device_new(&a, 4096);
    uint8_t pattern[256] = {0};
    for (size_t size = 1; size <= 256; size *= 2)
        say_result(zeCommandListAppendMemoryFill(list, to, pattern, size, 256, NULL, 0, NULL));
}

static void fill_pattern_copy(void)
{
    const ze_command_list_handle_t list = list_new(&a, 1);
    uint8_t pattern[16] = {0};
    for (size_t size = 1; size <= 16; size *= 2)
        say_result(zeCommandListAppendMemoryFill(list, device_new(&a, 4096), pattern, size, 256, NULL, 0, NULL));
}

static void fill_pattern_odd(void)
{
    const ze_command_list_handle_t list = list_new(&a, 0);
    uint8_t pattern[3] = {0};
    say_result(zeCommandListAppendMemoryFill(list, device_new(&a, 4096), pattern, 3, 768, NULL, 0, NULL));
}

static void wait_without_list(void)
{
    const ze_command_list_handle_t list = list_new(&a, 0);
    say_result(zeCommandListAppendBarrier(list, NULL, 1, NULL));
}

static void queue_create(void)
{
    ze_command_queue_handle_t q;
    ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .ordinal = 99};
    say_result(zeCommandQueueCreate(a.context, a.device, &desc, &q));
    desc.ordinal = 0;
    desc.index = 99;
    say_result(zeCommandQueueCreate(a.context, a.device, &desc, &q));
}

static void queue_idle(void)
{
    const ze_command_queue_handle_t q = queue_new(&a, 0, 0);
    say_result(zeCommandQueueSynchronize(q, 0));
    say_result(zeCommandQueueSynchronize(q, UINT64_MAX));
}

static void queue_busy(void)
{
    const ze_command_queue_handle_t q = queue_new(&a, 0, 0);
    const ze_command_list_handle_t list = list_new(&a, 0);
    const ze_fence_handle_t f = fence_new(q);
    ze_event_handle_t gate = event_new(&a), done = event_new(&a);
    MUST(zeCommandListAppendWaitOnEvents(list, 1, &gate));
    MUST(zeCommandListAppendSignalEvent(list, done));
    MUST(zeCommandListClose(list));
    say_result(run(q, list, f));
    say_result(zeCommandQueueSynchronize(q, 0));
    say_result(zeCommandQueueSynchronize(q, 20000000));
    say_result(zeFenceQueryStatus(f));
    say_result(zeFenceHostSynchronize(f, 1000000));
    say_result(zeEventQueryStatus(done));
    MUST(zeEventHostSignal(gate));
    say_result(zeCommandQueueSynchronize(q, UINT64_MAX));
    say_result(zeFenceQueryStatus(f));
    say_result(zeEventQueryStatus(done));
}

static void immediate_create(void)
{
    ze_command_list_handle_t list;
    ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .ordinal = 99};
    say_result(zeCommandListCreateImmediate(a.context, a.device, &desc, &list));
    desc.ordinal = 0;
    say_result(zeCommandListCreateImmediate(a.context, a.device, &desc, &list));
}

/* ------------------------------------------------------------------------------------------------------------ memory */

static void allocate(void)
{
    const ze_device_mem_alloc_desc_t d = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    const ze_host_mem_alloc_desc_t h = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    void *p = NULL;
    say_result(zeMemAllocDevice(a.context, &d, 0, 64, a.device, &p));
    say_result(zeMemAllocHost(a.context, &h, 0, 64, &p));
    say_result(zeMemAllocShared(a.context, &d, &h, 0, 64, a.device, &p));
}

static void allocate_alignment(void)
{
    const ze_device_mem_alloc_desc_t d = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    void *p = NULL;
    say_result(zeMemAllocDevice(a.context, &d, 4096, 3, a.device, &p));
    say_result(zeMemAllocDevice(a.context, &d, 4096, 0, a.device, &p));
    say_result(zeMemAllocDevice(a.context, &d, 4096, 2u << 20, a.device, &p));
    say((uintptr_t)p % (2u << 20) == 0 ? "aligned" : "not aligned");
}

static void allocate_too_much(void)
{
    const ze_device_mem_alloc_desc_t d = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    void *p = NULL;
    say_result(zeMemAllocDevice(a.context, &d, (size_t)1 << 50, 64, a.device, &p));
}

static void free_unknown(void)
{
    int here;
    say_result(zeMemFree(a.context, &here));
}

static void free_twice(void)
{
    void *const p = device_new(&a, 1 << 20);
    say_result(zeMemFree(a.context, p));
    say_result(zeMemFree(a.context, p));
}

static void free_null(void)
{
    say_result(zeMemFree(a.context, NULL));
}

static void properties_of(const void *p)
{
    ze_memory_allocation_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
    ze_device_handle_t device = NULL;
    say_result(zeMemGetAllocProperties(a.context, p, &properties, &device));
    say(properties.type == ZE_MEMORY_TYPE_DEVICE   ? "device"
        : properties.type == ZE_MEMORY_TYPE_HOST   ? "host"
        : properties.type == ZE_MEMORY_TYPE_SHARED ? "shared"
                                                   : "unknown");
    say(device == a.device ? "its" : device == NULL ? "none" : "another");
}

static void memory_properties(void)
{
    const ze_device_mem_alloc_desc_t d = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    const ze_host_mem_alloc_desc_t h = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    void *shared;
    int here;
    MUST(zeMemAllocShared(a.context, &d, &h, 4096, 64, a.device, &shared));
    properties_of((char *)device_new(&a, 4096) + 100);
    properties_of(host_new(&a, 4096));
    properties_of(shared);
    properties_of(&here);
}

static void memory_range(void)
{
    char *const p = device_new(&a, 3 << 20);
    void *base = NULL;
    size_t size = 0;
    int here;
    say_result(zeMemGetAddressRange(a.context, p + 4097, &base, &size));
    say(base == p ? "its base" : "another base");
    say(size >= 3 << 20 ? "its size" : "less");
    say_result(zeMemGetAddressRange(a.context, &here, &base, &size));
}

static void residency(void)
{
    void *const p = device_new(&a, 1 << 20);
    int here;
    say_result(zeContextMakeMemoryResident(a.context, a.device, p, 1 << 20));
    say_result(zeContextMakeMemoryResident(a.context, a.device, p, 1 << 20));
    say_result(zeContextEvictMemory(a.context, a.device, p, 1 << 20));
    say_result(zeContextEvictMemory(a.context, a.device, p, 1 << 20));
    say_result(zeContextEvictMemory(a.context, a.device, &here, 4));
    say_result(zeContextMakeMemoryResident(a.context, a.device, &here, 4));
}

/* Evicted, then submitted anew: what the submit names is there again. */
static void evicted_then_submitted(void)
{
    const ze_command_queue_handle_t q = queue_new(&a, 0, 0);
    const ze_command_list_handle_t list = list_new(&a, 0);
    void *const to = device_new(&a, 1 << 20);
    MUST(zeCommandListAppendMemoryCopy(list, to, device_new(&a, 1 << 20), 1 << 20, NULL, 0, NULL));
    MUST(zeCommandListClose(list));
    say_result(zeContextEvictMemory(a.context, a.device, to, 1 << 20));
    say_result(run(q, list, NULL));
    say_result(zeCommandQueueSynchronize(q, UINT64_MAX));
}

/* ---------------------------------------------------------------------------------------------------------- properties */

static void counts(void)
{
    uint32_t n = 0;
    ze_driver_handle_t drivers[4];
    ze_device_handle_t devices[4];
    say_result(zeDriverGet(&n, NULL));
    say_number(n);
    n = 4;
    say_result(zeDriverGet(&n, drivers));
    say_number(n);
    n = 4;
    say_result(zeDeviceGet(a.driver, &n, devices));
    say_number(n);
}

static void sub_devices(void)
{
    uint32_t n = 0;
    say_result(zeDeviceGetSubDevices(a.device, &n, NULL));
    say_number(n);
}

static void device_properties(void)
{
    ze_device_properties_t p = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
    say_result(zeDeviceGetProperties(a.device, &p));
    say_number(p.type);
    say_number(p.vendorId);
    say_number(p.flags);
    say(p.timerResolution ? "timer" : "no timer");
    say_number(p.timestampValidBits);
    say_number(p.kernelTimestampValidBits);
}

static void queue_groups(void)
{
    ze_command_queue_group_properties_t p[8];
    uint32_t n = 8;
    for (int i = 0; i < 8; i++)
        p[i] = (ze_command_queue_group_properties_t){.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES};
    say_result(zeDeviceGetCommandQueueGroupProperties(a.device, &n, p));
    say_number(n);
    for (uint32_t i = 0; i < n && i < 8; i++) {
        say_number(p[i].flags);
        say_number(p[i].numQueues);
        say_number(p[i].maxMemoryFillPatternSize);
    }
}

static void memory_access(void)
{
    ze_device_memory_access_properties_t p = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_ACCESS_PROPERTIES};
    say_result(zeDeviceGetMemoryAccessProperties(a.device, &p));
    say_number(p.hostAllocCapabilities);
    say_number(p.deviceAllocCapabilities);
    say_number(p.sharedSingleDeviceAllocCapabilities);
    say_number(p.sharedCrossDeviceAllocCapabilities);
    say_number(p.sharedSystemAllocCapabilities);
}

static void peers(void)
{
    ze_bool_t can = 2;
    say_result(zeDeviceCanAccessPeer(a.device, a.device, &can));
    say_number(can);
}

static void global_timestamps(void)
{
    uint64_t host = 0, device = 0, later = 0;
    say_result(zeDeviceGetGlobalTimestamps(a.device, &host, &device));
    nap(2);
    say_result(zeDeviceGetGlobalTimestamps(a.device, &host, &later));
    say(host != 0 && later > device ? "count up" : "stand still");
}

static void status(void)
{
    say_result(zeDeviceGetStatus(a.device));
    say_result(zeContextGetStatus(a.context));
    say_result(zeContextSystemBarrier(a.context, a.device));
}

/* ----------------------------------------------------------------------------------------------------- what drivers order */

static ze_event_handle_t gate;

static void *open_later(void *unused)
{
    (void)unused;
    nap(300);
    MUST(zeEventHostSignal(gate));
    return NULL;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Work that waits for `gate`, and then copies a 7 to `*to`. */
static ze_command_queue_handle_t gated_copy(ze_command_list_handle_t *list, void **to, ze_event_handle_t done)
{
    const ze_command_queue_handle_t q = queue_new(&a, 0, 0);
    void *const from = host_new(&a, 1 << 20);
    *to = host_new(&a, 1 << 20);
    memset(from, 7, 1 << 20);
    memset(*to, 0, 1 << 20);
    gate = event_new(&a);
    *list = list_new(&a, 0);
    MUST(zeCommandListAppendWaitOnEvents(*list, 1, &gate));
    MUST(zeCommandListAppendMemoryCopy(*list, *to, from, 1 << 20, done, 0, NULL));
    MUST(zeCommandListClose(*list));
    MUST(run(q, *list, NULL));
    return q;
}

static void ran(const void *to)
{
    for (int i = 0; i < 100 && *(const volatile char *)to != 7; i++)
        nap(10);
    say(*(const volatile char *)to == 7 ? "runs" : "lost");
}

static void free_in_flight(void)
{
    ze_command_list_handle_t list;
    void *to;
    pthread_t opener;
    const ze_command_queue_handle_t q = gated_copy(&list, &to, NULL);
    const double begin = seconds();
    pthread_create(&opener, NULL, open_later, NULL);
    say_result(zeMemFree(a.context, to));
    say(seconds() - begin > 0.2 ? "waits" : "returns");
    pthread_join(opener, NULL);
    say_result(zeCommandQueueSynchronize(q, UINT64_MAX));
}

static void queue_destroyed_in_flight(void)
{
    ze_command_list_handle_t list;
    void *to;
    const ze_command_queue_handle_t q = gated_copy(&list, &to, NULL);
    say_result(zeCommandQueueDestroy(q));
    MUST(zeEventHostSignal(gate));
    ran(to);
}

static void event_destroyed_in_flight(void)
{
    ze_command_list_handle_t list;
    void *to;
    const ze_event_handle_t done = event_new(&a);
    gated_copy(&list, &to, done);
    say_result(zeEventDestroy(done));
    MUST(zeEventHostSignal(gate));
    ran(to);
}

static void list_destroyed_in_flight(void)
{
    ze_command_list_handle_t list;
    void *to;
    gated_copy(&list, &to, NULL);
    say_result(zeCommandListDestroy(list));
    MUST(zeEventHostSignal(gate));
    ran(to);
}

static void immediate_destroyed_in_flight(void)
{
    const ze_command_list_handle_t list = immediate_new(&a, 0);
    pthread_t opener;
    gate = event_new(&a);
    MUST(zeCommandListAppendWaitOnEvents(list, 1, &gate));
    MUST(zeCommandListAppendMemoryCopy(list, device_new(&a, 1 << 20), device_new(&a, 1 << 20), 1 << 20, NULL, 0, NULL));
    const double begin = seconds();
    pthread_create(&opener, NULL, open_later, NULL);
    say_result(zeCommandListDestroy(list));
    say(seconds() - begin > 0.2 ? "waits" : "returns");
    pthread_join(opener, NULL);
}

/* ------------------------------------------------------------------------------------------------------- after a fault */

/* The copy's target is evicted while a gate holds the copy back. The engine is banned; then, in this order: */
static void after_fault(void)
{
    const ze_command_queue_handle_t q = queue_new(&a, 0, 0);
    const ze_command_list_handle_t list = list_new(&a, 0), empty = list_new(&a, 0), immediate = immediate_new(&a, 0);
    const ze_fence_handle_t f = fence_new(q);
    const ze_event_handle_t done = event_new(&a), other = event_new(&a);
    void *const to = device_new(&a, 1 << 20), *const from = device_new(&a, 1 << 20);
    gate = event_new(&a);
    MUST(zeCommandListAppendWaitOnEvents(list, 1, &gate));
    MUST(zeCommandListAppendMemoryCopy(list, to, from, 1 << 20, done, 0, NULL));
    MUST(zeCommandListClose(list));
    MUST(zeCommandListClose(empty));
    MUST(run(q, list, f));
    MUST(zeContextEvictMemory(a.context, a.device, to, 1 << 20));
    MUST(zeEventHostSignal(gate));
    nap(1500); /* the fault comes to pass */
    say_result(zeFenceQueryStatus(f));
    say_result(zeEventQueryStatus(done));
    say_result(run(q, empty, NULL));
    say_result(zeFenceHostSynchronize(f, UINT64_MAX));
    say_result(zeCommandQueueSynchronize(q, UINT64_MAX));
    say_result(zeEventHostSynchronize(done, 3000000000));
    say_result(zeEventHostSynchronize(other, 3000000000));
    say_result(run(q, empty, NULL));
    say_result(run(queue_new(&a, 0, 0), empty, NULL));
    say_result(zeCommandListAppendMemoryCopy(immediate, from, device_new(&a, 1 << 20), 1 << 20, NULL, 0, NULL));
    say_result(zeDeviceGetStatus(a.device));
    say_result(zeContextGetStatus(a.context));
    say_result(zeContextSystemBarrier(a.context, a.device));
    say_result(zeFenceReset(f));
    say_result(zeEventHostReset(done));
    say_result(zeCommandListReset(list));
    say_result(zeMemFree(a.context, from));
    say_result(zeCommandListDestroy(list));
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"event-host", event_host}, {"event-device", event_device}, {"event-create", event_create}, {"event-pool-empty", event_pool_empty}, {"event-timestamps", event_timestamps},
    {"event-without-timestamps", event_without_timestamps}, {"fence", fence}, {"list-states", list_states},
    {"list-append-closed", list_append_closed}, {"list-execute-open", list_execute_open}, {"list-execute-none", list_execute_none},
    {"list-execute-null", list_execute_null}, {"list-of-another-group", list_of_another_group}, {"append-arguments", append_arguments},
    {"append-null", append_null}, {"fill-pattern", fill_pattern}, {"fill-pattern-copy", fill_pattern_copy}, {"fill-pattern-odd", fill_pattern_odd},
    {"wait-without-list", wait_without_list}, {"queue-create", queue_create}, {"queue-idle", queue_idle}, {"queue-busy", queue_busy},
    {"immediate-create", immediate_create}, {"allocate", allocate}, {"allocate-alignment", allocate_alignment},
    {"allocate-too-much", allocate_too_much}, {"free-unknown", free_unknown}, {"free-twice", free_twice}, {"free-null", free_null},
    {"memory-properties", memory_properties}, {"memory-range", memory_range}, {"residency", residency},
    {"evicted-then-submitted", evicted_then_submitted}, {"counts", counts}, {"sub-devices", sub_devices},
    {"device-properties", device_properties}, {"queue-groups", queue_groups}, {"memory-access", memory_access}, {"peers", peers},
    {"global-timestamps", global_timestamps}, {"status", status}, {"free-in-flight", free_in_flight},
    {"queue-destroyed-in-flight", queue_destroyed_in_flight}, {"event-destroyed-in-flight", event_destroyed_in_flight},
    {"list-destroyed-in-flight", list_destroyed_in_flight}, {"immediate-destroyed-in-flight", immediate_destroyed_in_flight},
    {"after-fault", after_fault},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (argc < 2) {
            puts(cases[i].name);
        } else if (wanted(argc, argv, cases[i].name)) {
            if (a.driver == NULL)
                a = app_open();
            printf("%s:", cases[i].name);
            separator = " ";
            cases[i].run();
            puts("");
            fflush(stdout);
        }
    }
    return 0;
}

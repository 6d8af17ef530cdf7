/* SPDX-License-Identifier: MIT */
/* What commands, lists, events, fences and memory do, whatever the schedule. */
#include "soft_test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 4096 };

static void copies_and_fills(void)
{
    open_all();
    unsigned char stack[SIZE], *const h = new_host(65536);
    void *const d = new_device(65536), *shared;
    const ze_device_mem_alloc_desc_t dd = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    const ze_host_mem_alloc_desc_t hd = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    OK(ze.mem.pfnAllocShared(the_context, &dd, &hd, SIZE, 0, the_device, &shared));
    ze_command_list_handle_t list = new_immediate(ZE_COMMAND_QUEUE_FLAG_IN_ORDER, true);
    for (unsigned i = 0; i < SIZE; i++)
        stack[i] = (unsigned char)(i * 3);
    const uint16_t pattern = 0xabcd;
    OK(ze.list.pfnAppendMemoryFill(list, d, &pattern, 2, 65536, NULL, 0, NULL));
    copy(list, (char *)d + 1000, stack, SIZE);
    copy(list, h, d, 65536);
    CHECK(h[0] == 0xcd && h[1] == 0xab && h[65535] == 0xab && memcmp(h + 1000, stack, SIZE) == 0 && h[1000 + SIZE] == 0xcd);
    OK(ze.list.pfnAppendMemoryCopyFromContext(list, shared, the_context, h + 1000, SIZE, NULL, 0, NULL));
    CHECK(memcmp(shared, stack, SIZE) == 0);
    IS(ze.list.pfnAppendMemoryFill(list, d, &pattern, 3, 9, NULL, 0, NULL), ZE_RESULT_ERROR_INVALID_SIZE);
}

static void regions(void)
{
    open_all();
    unsigned char *const from = new_host(64 * 64 * 4), *const to = new_host(64 * 64 * 4);
    for (unsigned i = 0; i < 64 * 64 * 4; i++)
        from[i] = (unsigned char)(i % 251);
    ze_command_list_handle_t list = new_immediate(0, true);
    const ze_copy_region_t source = {4, 2, 1, 10, 5, 2}, target = {1, 3, 0, 10, 5, 2};
    OK(ze.list.pfnAppendMemoryCopyRegion(list, to, &target, 64, 64 * 64, from, &source, 64, 64 * 64, NULL, 0, NULL));
    for (unsigned z = 0; z < 2; z++)
        for (unsigned y = 0; y < 5; y++)
            CHECK(memcmp(to + z * 4096 + (3 + y) * 64 + 1, from + (1 + z) * 4096 + (2 + y) * 64 + 4, 10) == 0);
    CHECK(to[3 * 64] == 0 && to[3 * 64 + 11] == 0);
    const ze_copy_region_t other = {0, 0, 0, 9, 5, 2};
    IS(ze.list.pfnAppendMemoryCopyRegion(list, to, &other, 64, 0, from, &source, 64, 0, NULL, 0, NULL), ZE_RESULT_ERROR_INVALID_ARGUMENT);
}

static void events(void)
{
    open_all();
    ze_event_handle_t a = new_event(), b = new_event(), done = new_event();
    ze_command_queue_handle_t queue = new_queue(0, 0);
    unsigned char *const from = new_host(8), *const to = new_host(8);
    ze_command_list_handle_t list = new_list(0, 0);
    ze_event_handle_t both[2] = {a, b};
    from[0] = 4;
    OK(ze.list.pfnAppendMemoryCopy(list, to, from, 8, done, 2, both));
    OK(ze.list.pfnAppendEventReset(list, a));
    close_list(list);
    OK(run(queue, list));
    IS(ze.event.pfnQueryStatus(done), ZE_RESULT_NOT_READY);
    OK(ze.event.pfnHostSignal(a));
    IS(ze.event.pfnHostSynchronize(done, 10000000), ZE_RESULT_NOT_READY); /* b is missing */
    OK(ze.event.pfnHostSignal(b));
    OK(ze.event.pfnHostSynchronize(done, UINT64_MAX));
    CHECK(to[0] == 4);
    OK(ze.queue.pfnSynchronize(queue, UINT64_MAX));
    IS(ze.event.pfnQueryStatus(a), ZE_RESULT_NOT_READY); /* reset by the device */
    OK(ze.event.pfnQueryStatus(b));
    OK(ze.event.pfnHostReset(b));
    IS(ze.event.pfnQueryStatus(b), ZE_RESULT_NOT_READY);
    ze_kernel_timestamp_result_t t;
    OK(ze.event.pfnQueryKernelTimestamp(done, &t));
    CHECK(t.global.kernelStart <= t.global.kernelEnd && t.global.kernelEnd != 0);
    IS(ze.event.pfnQueryKernelTimestamp(a, &t), ZE_RESULT_NOT_READY);
}

static void barrier_orders(void)
{
    open_all();
    unsigned char *const big = new_host(8u << 20), *const small = new_host(SIZE), *const back = new_host(SIZE);
    memset(big, 1, 8u << 20);
    memset(small, 2, SIZE);
    void *const d = new_device(8u << 20);
    for (int round = 0; round < 10; round++) {
        ze_command_list_handle_t list = new_immediate(round % 2 ? ZE_COMMAND_QUEUE_FLAG_IN_ORDER : 0, false);
        copy(list, d, big, 8u << 20);
        if (round % 2 == 0)
            OK(ze.list.pfnAppendBarrier(list, NULL, 0, NULL));
        copy(list, d, small, SIZE);
        if (round % 2 == 0)
            OK(ze.list.pfnAppendBarrier(list, NULL, 0, NULL));
        copy(list, back, d, SIZE);
        OK(ze.list.pfnHostSynchronize(list, UINT64_MAX));
        CHECK(back[0] == 2);
        OK(ze.list.pfnDestroy(list));
    }
}

static void counter_based(void)
{
    open_all();
    ze_event_handle_t event;
    const ze_event_counter_based_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC,
                                                .flags = ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE};
    OK(ze.event.pfnCounterBasedCreate(the_context, the_device, &desc, &event));
    OK(ze.event.pfnQueryStatus(event)); /* a fresh one counts as done */
    IS(ze.event.pfnHostSignal(event), ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
    IS(ze.event.pfnHostReset(event), ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
    ze_event_handle_t gate = new_event();
    ze_command_list_handle_t ordered = new_immediate(ZE_COMMAND_QUEUE_FLAG_IN_ORDER, false), other = new_immediate(ZE_COMMAND_QUEUE_FLAG_IN_ORDER, false);
    unsigned char *const a = new_host(8), *const b = new_host(8), *const c = new_host(8);
    a[0] = 6;
    OK(ze.list.pfnAppendMemoryCopy(ordered, b, a, 8, event, 1, &gate));
    IS(ze.event.pfnQueryStatus(event), ZE_RESULT_NOT_READY);
    OK(ze.list.pfnAppendMemoryCopy(other, c, b, 8, NULL, 1, &event));
    IS(ze.list.pfnHostSynchronize(other, 10000000), ZE_RESULT_NOT_READY);
    OK(ze.event.pfnHostSignal(gate));
    OK(ze.list.pfnHostSynchronize(other, UINT64_MAX));
    CHECK(c[0] == 6);
    OK(ze.event.pfnQueryStatus(event));
    IS(ze.list.pfnAppendSignalEvent(new_immediate(0, false), event), ZE_RESULT_ERROR_INVALID_ARGUMENT); /* not in order */
    OK(ze.event.pfnDestroy(event));
}

static void fences(void)
{
    open_all();
    ze_event_handle_t gate = new_event();
    ze_command_queue_handle_t queue = new_queue(0, 0), other = new_queue(0, 0);
    ze_fence_handle_t fence, signalled;
    ze_fence_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC};
    OK(ze.fence.pfnCreate(queue, &desc, &fence));
    desc.flags = ZE_FENCE_FLAG_SIGNALED;
    OK(ze.fence.pfnCreate(queue, &desc, &signalled));
    OK(ze.fence.pfnQueryStatus(signalled));
    ze_command_list_handle_t list = new_list(0, 0);
    OK(ze.list.pfnAppendWaitOnEvents(list, 1, &gate));
    close_list(list);
    IS(ze.queue.pfnExecuteCommandLists(other, 1, &list, fence), ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT);
    OK(ze.queue.pfnExecuteCommandLists(queue, 1, &list, fence));
    IS(ze.fence.pfnQueryStatus(fence), ZE_RESULT_NOT_READY);
    IS(ze.fence.pfnHostSynchronize(fence, 1000000), ZE_RESULT_NOT_READY);
    OK(ze.event.pfnHostSignal(gate));
    OK(ze.fence.pfnHostSynchronize(fence, UINT64_MAX));
    OK(ze.fence.pfnReset(fence));
    IS(ze.fence.pfnQueryStatus(fence), ZE_RESULT_NOT_READY);
    OK(ze.fence.pfnDestroy(fence));
}

static void init_drivers(void)
{
    uint32_t n = 0;
    ze_driver_handle_t driver;
    ze_init_driver_type_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_INIT_DRIVER_TYPE_DESC, .flags = ZE_INIT_DRIVER_TYPE_FLAG_GPU};
    IS(ze.driver.pfnGet(&n, NULL), ZE_RESULT_ERROR_UNINITIALIZED);
    OK(ze.global.pfnInitDrivers(&n, NULL, &desc));
    CHECK(n == 1);
    OK(ze.global.pfnInitDrivers(&n, &driver, &desc));
    ze_api_version_t version;
    OK(ze.driver.pfnGetApiVersion(driver, &version));
    CHECK(version == ZE_API_VERSION_CURRENT_M);
    desc.flags = ZE_INIT_DRIVER_TYPE_FLAG_NPU;
    IS(ze.global.pfnInitDrivers(&n, NULL, &desc), ZE_RESULT_ERROR_UNINITIALIZED);
}

static void memory(void)
{
    open_all();
    char *const p = new_device(100000);
    ze_memory_allocation_properties_t props = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
    ze_device_handle_t device;
    void *base;
    size_t size;
    OK(ze.mem.pfnGetAllocProperties(the_context, p + 99999, &props, &device));
    CHECK(props.type == ZE_MEMORY_TYPE_DEVICE && device == the_device && props.id != 0);
    OK(ze.mem.pfnGetAllocProperties(the_context, &size, &props, &device));
    CHECK(props.type == ZE_MEMORY_TYPE_UNKNOWN && device == NULL);
    OK(ze.mem.pfnGetAddressRange(the_context, p + 5000, &base, &size));
    CHECK(base == p && size == 100000);
    IS(ze.mem.pfnGetAddressRange(the_context, p + 100000, &base, &size), ZE_RESULT_ERROR_ADDRESS_NOT_FOUND);
    IS(ze.mem.pfnFree(the_context, p + 8), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    OK(ze.mem.pfnFree(the_context, p));
    IS(ze.mem.pfnFree(the_context, p), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    const ze_device_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    IS(ze.mem.pfnAllocDevice(the_context, &desc, 0, 64, the_device, &base), ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
    IS(ze.mem.pfnAllocDevice(the_context, &desc, 8, 3, the_device, &base), ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT);
    IS(ze.mem.pfnAllocDevice(the_context, &desc, 1ull << 50, 0, the_device, &base), ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
    OK(ze.mem.pfnAllocDevice(the_context, &desc, 8, 1u << 21, the_device, &base));
    CHECK((uintptr_t)base % (1u << 21) == 0);
    /* out of the allocation: a fault, not a stray write */
    ze_command_list_handle_t list = new_immediate(0, false);
    copy(list, base, new_host(64), 64);
    IS(ze.list.pfnHostSynchronize(list, UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
}

static void host_operand_gone(void)
{
    open_all();
    void *const p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ze_event_handle_t gate = new_event();
    ze_command_list_handle_t list = new_immediate(0, false);
    OK(ze.list.pfnAppendMemoryCopy(list, new_device(4096), p, 4096, NULL, 1, &gate));
    munmap(p, 4096);
    OK(ze.event.pfnHostSignal(gate));
    IS(ze.list.pfnHostSynchronize(list, UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST); /* the device's fault, not the process's death */
}

static void virtual_memory(void)
{
    open_all();
    size_t page, size;
    void *range;
    ze_physical_mem_handle_t physical;
    OK(ze.virt.pfnQueryPageSize(the_context, the_device, 4096, &page));
    OK(ze.virt.pfnReserve(the_context, NULL, 4 * page, &range));
    ze_physical_mem_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC, .size = 2 * page};
    OK(ze.physical.pfnCreate(the_context, the_device, &desc, &physical));
    char *const second = (char *)range + page;
    OK(ze.virt.pfnMap(the_context, second, 2 * page, physical, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
    unsigned char *const h = new_host(16);
    ze_command_list_handle_t list = new_immediate(0, true);
    const uint8_t five = 5;
    OK(ze.list.pfnAppendMemoryFill(list, second, &five, 1, 16, NULL, 0, NULL));
    copy(list, h, second, 16);
    CHECK(h[15] == 5);
    ze_memory_access_attribute_t access;
    OK(ze.virt.pfnGetAccessAttribute(the_context, second, 2 * page, &access, &size));
    CHECK(access == ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE && size == 2 * page);
    OK(ze.virt.pfnGetAccessAttribute(the_context, second, 3 * page, &access, &size));
    CHECK(size == 2 * page); /* then comes what is only reserved */
    OK(ze.virt.pfnGetAccessAttribute(the_context, range, 4 * page, &access, &size));
    CHECK(access == ZE_MEMORY_ACCESS_ATTRIBUTE_NONE && size == page);
    IS(ze.virt.pfnMap(the_context, range, 2 * page, physical, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    /* part of a mapping */
    OK(ze.virt.pfnSetAccessAttribute(the_context, second + page, page, ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY));
    OK(ze.virt.pfnGetAccessAttribute(the_context, second, 2 * page, &access, &size));
    CHECK(access == ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE && size == page);
    copy(list, h, second + page, 16);
    CHECK(h[15] == 0);
    /* the same memory seen at another place */
    OK(ze.virt.pfnUnmap(the_context, second, 2 * page));
    OK(ze.virt.pfnMap(the_context, range, 2 * page, physical, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY));
    h[15] = 0;
    copy(list, h, range, 16);
    CHECK(h[15] == 5);
    IS(ze.list.pfnAppendMemoryFill(list, range, &five, 1, 16, NULL, 0, NULL), ZE_RESULT_ERROR_DEVICE_LOST); /* read only */
    OK(ze.virt.pfnUnmap(the_context, range, page)); /* half of it */
    IS(ze.virt.pfnUnmap(the_context, range, page), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    OK(ze.physical.pfnDestroy(the_context, physical));
    OK(ze.virt.pfnFree(the_context, range, 4 * page)); /* and the other half with it */
    IS(ze.virt.pfnFree(the_context, range, 4 * page), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    IS(ze.virt.pfnReserve(the_context, NULL, 3, &range), ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
}

static int called;

static void callback(void *user)
{
    called = *(int *)user;
}

static void host_function(void)
{
    int seven = 7;
    open_all();
    ze_command_list_handle_t list = new_immediate(ZE_COMMAND_QUEUE_FLAG_IN_ORDER, false);
    OK(ze.list.pfnAppendHostFunction(list, callback, &seven, NULL, NULL, 0, NULL));
    OK(ze.list.pfnHostSynchronize(list, UINT64_MAX));
    CHECK(called == 7);
}

static void timestamps(void)
{
    open_all();
    uint64_t *const at = (uint64_t *)(void *)new_host(8), host, device;
    ze_kernel_timestamp_result_t *const t = (ze_kernel_timestamp_result_t *)(void *)new_host(2 * sizeof(*t));
    ze_command_list_handle_t list = new_immediate(ZE_COMMAND_QUEUE_FLAG_IN_ORDER, true);
    ze_event_handle_t event = new_event();
    OK(ze.list.pfnAppendWriteGlobalTimestamp(list, at, event, 0, NULL));
    OK(ze.device.pfnGetGlobalTimestamps(the_device, &host, &device));
    CHECK(*at != 0 && *at <= device);
    const size_t offset = sizeof(*t);
    OK(ze.list.pfnAppendQueryKernelTimestamps(list, 1, &event, t, &offset, NULL, 0, NULL));
    CHECK(t[0].global.kernelEnd == 0 && t[1].global.kernelEnd != 0 && t[1].global.kernelEnd <= device);
}

static void immediate_of_lists(void)
{
    open_all();
    unsigned char *const a = new_host(8), *const b = new_host(8);
    ze_command_list_handle_t regular = new_list(0, 0), list = new_immediate(0, false);
    ze_event_handle_t done = new_event();
    a[0] = 3;
    copy(regular, b, a, 8);
    close_list(regular);
    OK(ze.list_exp.pfnImmediateAppendCommandListsExp(list, 1, &regular, done, 0, NULL));
    OK(ze.event.pfnHostSynchronize(done, UINT64_MAX));
    CHECK(b[0] == 3);
}

static void two_runs_of_a_list(void)
{
    open_all();
    unsigned char *const a = new_host(8), *const b = new_host(8);
    ze_command_queue_handle_t queue = new_queue(0, 0);
    ze_command_list_handle_t list = new_list(0, 0);
    copy(list, b, a, 8);
    close_list(list);
    for (int i = 1; i < 4; i++) {
        a[0] = (unsigned char)i;
        OK(run(queue, list));
        OK(ze.queue.pfnSynchronize(queue, UINT64_MAX));
        CHECK(b[0] == i);
    }
    OK(ze.list.pfnReset(list));
    close_list(list);
    a[0] = 9;
    OK(run(queue, list));
    OK(ze.queue.pfnSynchronize(queue, UINT64_MAX));
    CHECK(b[0] == 3); /* the list is empty now */
}

static void *wait_for(void *event)
{
    return (void *)(uintptr_t)ze.event.pfnHostSynchronize(event, UINT64_MAX);
}

static void threads_wait(void)
{
    pthread_t waiters[4];
    open_all();
    ze_event_handle_t event = new_event();
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&waiters[i], NULL, wait_for, event) == 0);
    const struct timespec t = {0, 20000000};
    nanosleep(&t, NULL);
    OK(ze.event.pfnHostSignal(event));
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(waiters[i], &result);
        CHECK(result == NULL);
    }
}

static void child_starts_anew(void)
{
    open_all();
    unsigned char *const mine = new_host(SIZE);
    mine[0] = 1;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        ze_device_properties_t props = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
        IS(ze.device.pfnGetProperties(the_device, &props), ZE_RESULT_ERROR_INVALID_ARGUMENT); /* the parent's objects mean nothing */
        uint32_t n = 1;
        OK(ze.global.pfnInit(0));
        OK(ze.driver.pfnGet(&n, &the_driver));
        n = 1;
        OK(ze.device.pfnGet(the_driver, &n, &the_device));
        const ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
        OK(ze.context.pfnCreate(the_driver, &desc, &the_context));
        unsigned char *const its = new_host(SIZE);
        memset(its, 2, SIZE);
        ze_command_list_handle_t list = new_immediate(0, true);
        copy(list, new_host(SIZE), its, SIZE);
        _exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    CHECK(status == 0 && mine[0] == 1);
}

#define ON(schedule, name, function) {name " on " schedule, "ZE_SOFT_SCHEDULE=" schedule, function, 0}
#define ON_ALL(name, function)                                                                                                 \
    ON("async", name, function), ON("eager", name, function), ON("lazy", name, function), ON("seed:5", name, function)

const test_case model_cases[] = {ON_ALL("copies and fills", copies_and_fills),
                                 ON_ALL("regions", regions),
                                 ON_ALL("events", events),
                                 ON_ALL("barriers and in-order lists", barrier_orders),
                                 ON_ALL("counter-based events", counter_based),
                                 ON_ALL("fences", fences),
                                 ON_ALL("memory", memory),
                                 ON_ALL("a host operand is gone", host_operand_gone),
                                 ON_ALL("virtual memory", virtual_memory),
                                 ON_ALL("host function", host_function),
                                 ON_ALL("timestamps", timestamps),
                                 ON_ALL("lists on an immediate list", immediate_of_lists),
                                 ON_ALL("two runs of a list", two_runs_of_a_list),
                                 ON_ALL("threads wait", threads_wait),
                                 ON_ALL("a child starts anew", child_starts_anew),
                                 ON("async", "zeInitDrivers", init_drivers),
                                 {NULL, NULL, NULL, 0}};

/* SPDX-License-Identifier: MIT */
/*
 * One mistake each, for a checker to name: MODE says which, and without one they are listed. `fixed` as a second
 * argument does the same right. Whether anything shows depends on the driver; nothing of it is looked at.
 */
#include "common.h"

#include <pthread.h>

enum { SIZE = 4096 };

static app a;
static bool fixed;
static unsigned char *from, *to;
static ze_command_queue_handle_t queue;

static void submit(ze_command_list_handle_t list)
{
    zeCommandListClose(list);
    run(queue, list, NULL);
}

static void copy(ze_command_list_handle_t list, void *dst, const void *src, ze_event_handle_t signal)
{
    zeCommandListAppendMemoryCopy(list, dst, src, SIZE, signal, 0, NULL);
}

static void wait_queue(void)
{
    zeCommandQueueSynchronize(queue, UINT64_MAX);
}

static void needless_evict(void)
{
    void *const memory = device_new(&a, SIZE);
    ze_command_list_handle_t list = list_new(&a, 0);
    copy(list, memory, from, NULL);
    submit(list);
    wait_queue();
    if (!fixed)
        zeContextEvictMemory(a.context, a.device, memory, SIZE);
    zeMemFree(a.context, memory);
}

static void evicted_operand(void)
{
    void *const memory = device_new(&a, SIZE);
    ze_command_list_handle_t list = list_new(&a, 0);
    copy(list, memory, from, NULL);
    zeContextMakeMemoryResident(a.context, a.device, memory, SIZE);
    zeContextEvictMemory(a.context, a.device, memory, SIZE);
    if (fixed)
        zeContextMakeMemoryResident(a.context, a.device, memory, SIZE);
    submit(list);
    wait_queue();
}

static app other_context(void)
{
    app other = a;
    const ze_context_desc_t context = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    const ze_event_pool_desc_t pool = {
        .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE, .count = 4};
    MUST(zeContextCreate(a.driver, &context, &other.context));
    MUST(zeEventPoolCreate(other.context, &pool, 1, &other.device, &other.pool));
    other.next_event = 0;
    return other;
}

static void contexts_mixed(void)
{
    app other = other_context();
    ze_command_list_handle_t list = list_new(&a, 0);
    copy(list, to, from, event_new(fixed ? &a : &other));
    submit(list);
    wait_queue();
}

static void memory_of_another_context(void)
{
    app other = other_context();
    ze_command_list_handle_t list = list_new(&a, 0);
    copy(list, to, host_new(fixed ? &a : &other, SIZE), NULL);
    submit(list);
    wait_queue();
}

static void context_with_children(void)
{
    app other = other_context();
    void *const memory = device_new(&other, SIZE);
    if (fixed) {
        zeMemFree(other.context, memory);
        zeEventPoolDestroy(other.pool);
    }
    zeContextDestroy(other.context);
}

static void context_in_flight(void)
{
    app other = other_context();
    void *const memory = device_new(&other, SIZE), *const source = host_new(&other, SIZE);
    ze_event_handle_t done = event_new(&other);
    ze_command_list_handle_t list = immediate_new(&other, 0);
    copy(list, memory, source, done);
    if (fixed) {
        zeEventHostSynchronize(done, UINT64_MAX);
        zeCommandListDestroy(list);
        zeEventDestroy(done);
        zeEventPoolDestroy(other.pool);
        zeMemFree(other.context, memory);
        zeMemFree(other.context, source);
    }
    zeContextDestroy(other.context);
}

static void wrong_stype(void)
{
    ze_event_pool_handle_t pool;
    const ze_event_pool_desc_t desc = {
        .stype = fixed ? ZE_STRUCTURE_TYPE_EVENT_POOL_DESC : ZE_STRUCTURE_TYPE_EVENT_DESC, .count = 1};
    zeEventPoolCreate(a.context, &desc, 1, &a.device, &pool);
}

/* S5: what happened to be on the stack is taken for an extension. */
static void garbage_pnext(void)
{
    ze_event_pool_handle_t pool;
    const struct {
        uint32_t stype;
        const void *next;
    } garbage = {.stype = 0x5a5a0001};
    const ze_event_pool_desc_t desc = {
        .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .pNext = fixed ? NULL : &garbage, .count = 1};
    zeEventPoolCreate(a.context, &desc, 1, &a.device, &pool);
}

static void second_signal(void)
{
    ze_event_handle_t done = event_new(&a), also = event_new(&a);
    ze_command_list_handle_t list = list_new(&a, 0);
    copy(list, to, from, done);
    copy(list, device_new(&a, SIZE), from, fixed ? also : done);
    submit(list);
    zeEventHostSynchronize(done, UINT64_MAX);
    wait_queue();
}

static app with_timestamps(void)
{
    app other = a;
    const ze_event_pool_desc_t pool = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
                                       .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE | ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP,
                                       .count = 4};
    MUST(zeEventPoolCreate(a.context, &pool, 1, &other.device, &other.pool));
    other.next_event = 0;
    return other;
}

static void timestamps_too_early(void)
{
    app other = with_timestamps();
    ze_event_handle_t done = event_new(&other);
    ze_command_list_handle_t list = list_new(&a, 0);
    copy(list, to, from, done);
    zeCommandListAppendQueryKernelTimestamps(list, 1, &done, host_new(&a, 64), NULL, NULL, fixed, fixed ? &done : NULL);
    submit(list);
    wait_queue();
}

static void timestamps_of_none(void)
{
    app other = with_timestamps();
    ze_event_handle_t done = event_new(fixed ? &other : &a);
    ze_command_list_handle_t list = list_new(&a, 0);
    ze_kernel_timestamp_result_t result;
    copy(list, to, from, done);
    submit(list);
    zeEventHostSynchronize(done, UINT64_MAX);
    zeEventQueryKernelTimestamp(done, &result);
    wait_queue();
}

/* The event says that the second copy is done; the memory is the first one's. */
static void proxy_completion(void)
{
    void *const memory = device_new(&a, SIZE);
    ze_event_handle_t second = event_new(&a);
    ze_command_list_handle_t list = list_new(&a, 0);
    copy(list, memory, from, NULL);
    copy(list, to, from, second);
    submit(list);
    zeEventHostSynchronize(second, UINT64_MAX);
    if (fixed)
        wait_queue();
    zeMemFree(a.context, memory);
    wait_queue();
}

static void barrier_with_waits(void)
{
    void *const memory = device_new(&a, SIZE);
    ze_event_handle_t go = event_new(&a);
    ze_command_list_handle_t list = list_new(&a, 0);
    zeEventHostSignal(go);
    copy(list, memory, from, NULL);
    zeCommandListAppendBarrier(list, NULL, !fixed, fixed ? NULL : &go);
    copy(list, to, memory, NULL);
    submit(list);
    wait_queue();
}

static void wait_for_no_event(void)
{
    void *const memory = device_new(&a, SIZE);
    ze_event_handle_t done = event_new(&a);
    ze_command_list_handle_t list = list_new(&a, 0);
    copy(list, memory, from, done);
    zeCommandListAppendWaitOnEvents(list, fixed, &done);
    copy(list, to, memory, NULL);
    submit(list);
    wait_queue();
}

static void circle(void)
{
    ze_event_handle_t one = event_new(&a), two = event_new(&a);
    ze_command_queue_handle_t other = queue_new(&a, 1, 0);
    ze_command_list_handle_t first = list_new(&a, 0), second = list_new(&a, 1);
    if (!fixed)
        zeCommandListAppendWaitOnEvents(first, 1, &two);
    zeCommandListAppendSignalEvent(first, one);
    zeCommandListAppendWaitOnEvents(second, 1, &one);
    zeCommandListAppendSignalEvent(second, two);
    zeCommandListClose(second);
    submit(first);
    run(other, second, NULL);
    zeCommandQueueSynchronize(other, fixed ? UINT64_MAX : SECOND / 20);
}

/* The list that signals was refused, because of the fault before it. */
static void wait_after_fault(void)
{
    void *const memory = device_new(&a, SIZE);
    ze_event_handle_t gate = event_new(&a), done = event_new(&a);
    ze_command_queue_handle_t copier = queue_new(&a, 1, 0);
    ze_command_list_handle_t gated = list_new(&a, 1), later = list_new(&a, 1);
    zeCommandListAppendWaitOnEvents(gated, 1, &gate);
    copy(gated, memory, from, NULL);
    zeCommandListClose(gated);
    zeCommandListAppendSignalEvent(later, done);
    zeCommandListClose(later);
    run(copier, gated, NULL);
    if (!fixed)
        zeContextEvictMemory(a.context, a.device, memory, SIZE);
    zeEventHostSignal(gate);
    zeCommandQueueSynchronize(copier, SECOND);
    run(copier, later, NULL);
    zeEventHostSynchronize(done, fixed ? UINT64_MAX : SECOND / 20);
}

static void failed_create(void)
{
    const ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC,
                                         .commandQueueGroupOrdinal = fixed ? 0 : 77};
    ze_command_list_handle_t list = NULL;
    zeCommandListCreate(a.context, a.device, &desc, &list);
    zeCommandListClose(list);
}

static void failed_submit(void)
{
    ze_fence_handle_t fence = fence_new(queue);
    ze_command_list_handle_t list = list_new(&a, 0);
    copy(list, to, from, NULL);
    if (fixed)
        zeCommandListClose(list);
    run(queue, list, fence); /* an open list: refused */
    zeFenceHostSynchronize(fence, SECOND / 20);
    if (!fixed) {
        zeCommandListClose(list);
        run(queue, list, NULL);
    }
    wait_queue();
}

static ze_command_list_handle_t shared_list;

static void *append_once(void *list)
{
    copy(list, to, from, NULL);
    return NULL;
}

/* A join orders the threads; a trace of calls does not show it. */
static void list_of_two_threads(void)
{
    pthread_t thread;
    shared_list = list_new(&a, 0);
    ze_command_list_handle_t own = fixed ? list_new(&a, 0) : shared_list;
    copy(shared_list, device_new(&a, SIZE), from, NULL);
    if (pthread_create(&thread, NULL, append_once, own) != 0)
        exit(CANNOT);
    pthread_join(thread, NULL);
    submit(shared_list);
    wait_queue();
}

static void two_ways_to_drivers(void)
{
    typedef ze_result_t (*init_drivers)(uint32_t * count, ze_driver_handle_t * drivers, void *desc);
    struct {
        uint32_t stype;
        const void *next;
        uint32_t flags;
    } desc = {.stype = 0x00020021 /* INIT_DRIVER_TYPE_DESC */, .flags = 1};
    void *address;
    uint32_t n = 0;
    MUST(zeDriverGetExtensionFunctionAddress(a.driver, "zeInitDrivers", &address));
    if (!fixed)
        ((init_drivers)address)(&n, NULL, &desc);
}

static const struct mode {
    const char *name;
    void (*run)(void);
} modes[] = {{"needless-evict", needless_evict},
             {"evicted-operand", evicted_operand},
             {"contexts-mixed", contexts_mixed},
             {"memory-of-another-context", memory_of_another_context},
             {"context-with-children", context_with_children},
             {"context-in-flight", context_in_flight},
             {"wrong-stype", wrong_stype},
             {"garbage-pnext", garbage_pnext},
             {"second-signal", second_signal},
             {"timestamps-too-early", timestamps_too_early},
             {"timestamps-of-none", timestamps_of_none},
             {"proxy-completion", proxy_completion},
             {"barrier-with-waits", barrier_with_waits},
             {"wait-for-no-event", wait_for_no_event},
             {"circle", circle},
             {"wait-after-fault", wait_after_fault},
             {"failed-create", failed_create},
             {"failed-submit", failed_submit},
             {"list-of-two-threads", list_of_two_threads},
             {"two-ways-to-drivers", two_ways_to_drivers}};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (argc < 2) {
            puts(modes[i].name);
        } else if (strcmp(argv[1], modes[i].name) == 0) {
            fixed = fixed_wanted(argc, argv);
            a = app_open();
            from = host_new(&a, SIZE);
            to = host_new(&a, SIZE);
            queue = queue_new(&a, 0, 0);
            modes[i].run();
            return GOOD;
        }
    }
    return argc < 2 ? GOOD : CANNOT;
}

/* SPDX-License-Identifier: MIT */
/* Wrong use gives the code the header names; garbage is told from handles; what is not there says so; two copies live together. */
#include "soft_test.h"

#include <dlfcn.h>
#include <unistd.h>

static void null_arguments(void)
{
    open_all();
    ze_command_list_handle_t list = new_list(0, 0);
    void *p;
    IS(ze.list.pfnClose(NULL), ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    IS(ze.list.pfnAppendMemoryCopy(list, NULL, &p, 8, NULL, 0, NULL), ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    IS(ze.list.pfnAppendMemoryCopy(list, &p, &p, 8, NULL, 1, NULL), ZE_RESULT_ERROR_INVALID_SIZE);
    IS(ze.mem.pfnAllocHost(the_context, NULL, 8, 0, &p), ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    IS(ze.context.pfnCreate(NULL, NULL, NULL), ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    IS(ze.device.pfnGetProperties(the_device, NULL), ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    const ze_command_queue_desc_t mode = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .mode = 77};
    ze_command_queue_handle_t queue;
    IS(ze.queue.pfnCreate(the_context, the_device, &mode, &queue), ZE_RESULT_ERROR_INVALID_ENUMERATION);
    IS(ze.global.pfnInit(0x100), ZE_RESULT_ERROR_INVALID_ENUMERATION);
}

static void garbage_handles(void)
{
    open_all();
    ze_command_list_handle_t list = new_list(0, 0);
    OK(ze.list.pfnDestroy(list));
    IS(ze.list.pfnClose(list), ZE_RESULT_ERROR_INVALID_ARGUMENT);                                       /* destroyed */
    IS(ze.list.pfnClose((ze_command_list_handle_t)0x1234), ZE_RESULT_ERROR_INVALID_ARGUMENT);           /* never one */
    IS(ze.list.pfnClose((ze_command_list_handle_t)((char *)the_device + 8)), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    IS(ze.list.pfnClose((ze_command_list_handle_t)the_device), ZE_RESULT_ERROR_INVALID_ARGUMENT);       /* of another kind */
    IS(ze.event.pfnHostSignal((ze_event_handle_t)the_context), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    ze_event_handle_t event = new_event();
    OK(ze.event.pfnDestroy(event));
    list = new_list(0, 0);
    IS(ze.list.pfnAppendSignalEvent(list, event), ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT);
}

static void lists(void)
{
    open_all();
    ze_command_queue_handle_t queue = new_queue(0, 0);
    ze_command_list_handle_t open = new_list(0, 0), closed = new_list(0, 0), copy_group = new_list(1, 0), immediate = new_immediate(0, false);
    close_list(closed);
    close_list(copy_group);
    IS(run(queue, open), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    IS(run(queue, immediate), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    IS(run(queue, copy_group), ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE);
    IS(ze.list.pfnClose(closed), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    IS(ze.list.pfnAppendBarrier(closed, NULL, 0, NULL), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    IS(ze.queue.pfnExecuteCommandLists(queue, 0, &closed, NULL), ZE_RESULT_ERROR_INVALID_SIZE);
    IS(ze.list.pfnHostSynchronize(closed, 0), ZE_RESULT_ERROR_INVALID_ARGUMENT); /* not immediate */
    ze_bool_t yes;
    uint32_t ordinal;
    OK(ze.list.pfnIsImmediate(immediate, &yes));
    CHECK(yes);
    OK(ze.list.pfnGetOrdinal(copy_group, &ordinal));
    CHECK(ordinal == 1);
}

/* Every call here is wrong, by one argument. */
static void table(void)
{
    open_all();
    char none[256] = {0};
    void *p = none, *out;
    size_t size;
    ze_context_handle_t no_context = (ze_context_handle_t)(void *)none, context;
    ze_device_handle_t no_device = (ze_device_handle_t)(void *)none;
    ze_event_handle_t no_event = (ze_event_handle_t)(void *)none, event = new_event();
    ze_command_list_handle_t no_list = (ze_command_list_handle_t)(void *)none, list = new_list(0, 0), closed = new_list(0, 0), made;
    ze_command_queue_handle_t no_queue = (ze_command_queue_handle_t)(void *)none, queue = new_queue(0, 0), new_one;
    ze_fence_handle_t no_fence = (ze_fence_handle_t)(void *)none, fence;
    ze_event_pool_handle_t pool;
    ze_memory_allocation_properties_t props = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
    const ze_context_desc_t cd = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    const ze_host_mem_alloc_desc_t hd = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    const ze_device_mem_alloc_desc_t dd = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    const ze_command_list_desc_t ld = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC}, third = {.commandQueueGroupOrdinal = 3};
    const ze_command_queue_desc_t qd = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC}, ninth = {.ordinal = 2, .index = 8};
    const ze_event_pool_desc_t pd = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .count = 1};
    const ze_fence_desc_t fd = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC};
    ze_memory_free_ext_desc_t policy = {.stype = ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC, .freePolicy = 8};
    close_list(closed);
    const ze_result_t argument = ZE_RESULT_ERROR_INVALID_ARGUMENT, sync = ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT;
    IS(ze.context.pfnCreateEx(the_driver, &cd, 1, &no_device, &context), argument);
    IS(ze.context.pfnDestroy(no_context), argument);
    IS(ze.context.pfnGetStatus(no_context), argument);
    IS(ze.context.pfnEvictMemory(the_context, the_device, none, 8), argument); /* not USM */
    IS(ze.context.pfnMakeMemoryResident(the_context, no_device, new_host(8), 8), argument);
    IS(ze.context.pfnEvictImage(the_context, the_device, (ze_image_handle_t)(void *)none), ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
    IS(ze.mem.pfnAllocHost(no_context, &hd, 8, 0, &out), argument);
    IS(ze.mem.pfnAllocDevice(the_context, &dd, 8, 0, no_device, &out), argument);
    IS(ze.mem.pfnFree(the_context, none), argument);
    IS(ze.mem.pfnFree(no_context, new_host(8)), argument);
    IS(ze.mem.pfnFreeExt(the_context, &policy, new_host(8)), ZE_RESULT_ERROR_INVALID_ENUMERATION);
    OK(ze.context.pfnCreate(the_driver, &cd, &context));
    IS(ze.mem.pfnFree(context, new_host(8)), argument); /* of another context */
    IS(ze.mem.pfnGetAllocProperties(no_context, none, &props, NULL), argument);
    IS(ze.mem.pfnGetAddressRange(the_context, none, &p, &size), ZE_RESULT_ERROR_ADDRESS_NOT_FOUND);
    IS(ze.list.pfnCreate(no_context, the_device, &ld, &made), argument);
    IS(ze.list.pfnCreate(the_context, no_device, &ld, &made), argument);
    IS(ze.list.pfnCreate(the_context, the_device, &third, &made), argument);
    IS(ze.list.pfnCreateImmediate(the_context, the_device, &ninth, &made), argument);
    IS(ze.list.pfnReset(new_immediate(0, false)), argument);
    IS(ze.list.pfnClose(new_immediate(0, false)), argument);
    IS(ze.list.pfnReset(no_list), argument);
    IS(ze.list.pfnDestroy(no_list), argument);
    IS(ze.list.pfnAppendMemoryCopy(no_list, none, none, 8, NULL, 0, NULL), argument);
    IS(ze.list.pfnAppendMemoryCopy(closed, none, none, 8, NULL, 0, NULL), argument);
    IS(ze.list.pfnAppendMemoryCopy(list, none, none, 8, no_event, 0, NULL), sync);
    IS(ze.list.pfnAppendMemoryCopy(list, none, none, 8, NULL, 1, &no_event), sync);
    IS(ze.list.pfnAppendWaitOnEvents(list, 1, &no_event), sync);
    IS(ze.list.pfnAppendEventReset(list, no_event), sync);
    IS(ze.list.pfnAppendQueryKernelTimestamps(list, 1, &no_event, none, NULL, NULL, 0, NULL), sync);
    IS(ze.list.pfnAppendMemAdvise(list, no_device, none, 8, ZE_MEMORY_ADVICE_SET_READ_MOSTLY), argument);
    IS(ze.list.pfnAppendMemoryCopyFromContext(list, none, no_context, none, 8, NULL, 0, NULL), argument);
    IS(ze.list_exp.pfnImmediateAppendCommandListsExp(list, 1, &closed, NULL, 0, NULL), argument);
    IS(ze.list_exp.pfnImmediateAppendCommandListsExp(new_immediate(0, false), 1, &list, NULL, 0, NULL), argument);
    IS(ze.list_exp.pfnImmediateAppendCommandListsExp(new_immediate(0, false), 1, &closed, NULL, 1, &no_event), sync);
    IS(ze.queue.pfnCreate(no_context, the_device, &qd, &new_one), argument);
    IS(ze.queue.pfnCreate(the_context, the_device, &ninth, &new_one), argument);
    IS(ze.queue.pfnDestroy(no_queue), argument);
    IS(ze.queue.pfnSynchronize(no_queue, 0), argument);
    IS(ze.queue.pfnExecuteCommandLists(no_queue, 1, &closed, NULL), argument);
    IS(ze.queue.pfnExecuteCommandLists(queue, 1, &no_list, NULL), argument);
    IS(ze.queue.pfnExecuteCommandLists(queue, 1, &closed, no_fence), sync);
    IS(ze.pool.pfnCreate(no_context, &pd, 0, NULL, &pool), argument);
    IS(ze.pool.pfnCreate(the_context, &pd, 1, &no_device, &pool), argument);
    IS(ze.pool.pfnDestroy((ze_event_pool_handle_t)(void *)none), argument);
    IS(ze.event.pfnDestroy(no_event), argument);
    IS(ze.event.pfnHostSynchronize(no_event, 0), argument);
    IS(ze.event.pfnHostReset(no_event), argument);
    IS(ze.event.pfnQueryStatus(no_event), argument);
    IS(ze.fence.pfnCreate(no_queue, &fd, &fence), argument);
    IS(ze.fence.pfnHostSynchronize(no_fence, 0), argument);
    IS(ze.fence.pfnReset(no_fence), argument);
    IS(ze.fence.pfnDestroy(no_fence), argument);
    IS(ze.device.pfnSynchronize(no_device), argument);
    IS(ze.device.pfnGetStatus(no_device), argument);
    /* and none of them has left anything behind */
    OK(ze.list.pfnAppendSignalEvent(list, event));
    close_list(list);
    OK(run(queue, list));
    OK(ze.queue.pfnSynchronize(queue, UINT64_MAX));
    OK(ze.event.pfnQueryStatus(event));
}

static void getters(void)
{
    open_all();
    const ze_command_queue_desc_t qd = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .ordinal = 2, .index = 4,
                                        .flags = ZE_COMMAND_QUEUE_FLAG_IN_ORDER, .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
                                        .priority = ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW};
    ze_command_list_handle_t regular = new_list(1, ZE_COMMAND_LIST_FLAG_IN_ORDER), immediate;
    ze_command_queue_handle_t queue;
    OK(ze.list.pfnCreateImmediate(the_context, the_device, &qd, &immediate));
    OK(ze.queue.pfnCreate(the_context, the_device, &qd, &queue));
    ze_command_list_flags_t lf;
    ze_command_queue_flags_t qf;
    ze_command_queue_mode_t mode;
    ze_command_queue_priority_t priority;
    uint32_t n, m;
    ze_device_handle_t device;
    ze_context_handle_t context;
    OK(ze.list.pfnGetFlags(regular, &lf));
    CHECK(lf == ZE_COMMAND_LIST_FLAG_IN_ORDER);
    IS(ze.list.pfnGetFlags(immediate, &lf), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    OK(ze.list.pfnImmediateGetFlags(immediate, &qf));
    OK(ze.list.pfnImmediateGetMode(immediate, &mode));
    OK(ze.list.pfnImmediateGetPriority(immediate, &priority));
    OK(ze.list.pfnImmediateGetIndex(immediate, &n));
    CHECK(qf == qd.flags && mode == qd.mode && priority == qd.priority && n == 4);
    IS(ze.list.pfnImmediateGetIndex(regular, &n), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    OK(ze.list.pfnGetDeviceHandle(regular, &device));
    OK(ze.list.pfnGetContextHandle(regular, &context));
    CHECK(device == the_device && context == the_context);
    qf = 0;
    mode = ZE_COMMAND_QUEUE_MODE_DEFAULT;
    priority = ZE_COMMAND_QUEUE_PRIORITY_NORMAL;
    OK(ze.queue.pfnGetFlags(queue, &qf));
    OK(ze.queue.pfnGetMode(queue, &mode));
    OK(ze.queue.pfnGetPriority(queue, &priority));
    OK(ze.queue.pfnGetOrdinal(queue, &n));
    OK(ze.queue.pfnGetIndex(queue, &m));
    CHECK(qf == qd.flags && mode == qd.mode && priority == qd.priority && n == 2 && m == 4);
    ze_event_handle_t event = new_event(), counter;
    ze_event_pool_handle_t pool;
    ze_event_pool_flags_t pf;
    ze_event_scope_flags_t signal, wait;
    OK(ze.event.pfnGetEventPool(event, &pool));
    OK(ze.pool.pfnGetFlags(pool, &pf));
    OK(ze.pool.pfnGetContextHandle(pool, &context));
    OK(ze.event.pfnGetSignalScope(event, &signal));
    OK(ze.event.pfnGetWaitScope(event, &wait));
    CHECK((pf & ZE_EVENT_POOL_FLAG_HOST_VISIBLE) && context == the_context && signal == ZE_EVENT_SCOPE_FLAG_HOST && wait == 0);
    ze_event_counter_based_desc_t cb = {.stype = ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC,
                                        .flags = ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE | ZE_EVENT_COUNTER_BASED_FLAG_HOST_VISIBLE};
    ze_event_counter_based_flags_t cf;
    OK(ze.event.pfnCounterBasedCreate(the_context, the_device, &cb, &counter));
    OK(ze.event.pfnGetCounterBasedFlags(counter, &cf));
    CHECK(cf == cb.flags);
    IS(ze.event.pfnGetCounterBasedFlags(event, &cf), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    IS(ze.event.pfnGetEventPool(counter, &pool), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    OK(ze.list.pfnAppendSignalEvent(new_immediate(0, true), event));
    ze_kernel_timestamp_result_t stamp = {{0, 0}, {0, 0}}, again = {{0, 0}, {0, 0}};
    n = 0;
    OK(ze.event_exp.pfnQueryTimestampsExp(event, the_device, &n, NULL));
    CHECK(n == 1);
    n = 7;
    OK(ze.event_exp.pfnQueryTimestampsExp(event, the_device, &n, &stamp));
    ze_event_query_kernel_timestamps_results_ext_properties_t results = {
        .stype = ZE_STRUCTURE_TYPE_EVENT_QUERY_KERNEL_TIMESTAMPS_RESULTS_EXT_PROPERTIES, .pKernelTimestampsBuffer = &again};
    OK(ze.event.pfnQueryKernelTimestampsExt(event, the_device, &n, &results));
    CHECK(n == 1 && stamp.global.kernelEnd != 0 && memcmp(&stamp, &again, sizeof(stamp)) == 0);
    ze_driver_memory_free_ext_properties_t policies = {.stype = ZE_STRUCTURE_TYPE_DRIVER_MEMORY_FREE_EXT_PROPERTIES};
    ze_driver_properties_t driver = {.stype = ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES, .pNext = &policies};
    OK(ze.driver.pfnGetProperties(the_driver, &driver));
    CHECK(policies.freePolicies == 3);
    context = ze.driver.pfnGetDefaultContext(the_driver);
    CHECK(context != NULL && context == ze.driver.pfnGetDefaultContext(the_driver) && context != the_context);
    OK(ze.context.pfnGetStatus(context));
}

static void pools(void)
{
    open_all();
    ze_event_pool_handle_t pool;
    ze_event_handle_t event, again;
    ze_event_pool_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .count = 0};
    IS(ze.pool.pfnCreate(the_context, &desc, 0, NULL, &pool), ZE_RESULT_ERROR_INVALID_SIZE);
    desc.count = 2;
    OK(ze.pool.pfnCreate(the_context, &desc, 0, NULL, &pool));
    ze_event_desc_t ed = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .index = 2};
    IS(ze.event.pfnCreate(pool, &ed, &event), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    ed.index = 1;
    OK(ze.event.pfnCreate(pool, &ed, &event));
    IS(ze.event.pfnCreate(pool, &ed, &again), ZE_RESULT_ERROR_INVALID_ARGUMENT); /* the place is taken */
    IS(ze.pool.pfnDestroy(pool), ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
    OK(ze.event.pfnDestroy(event));
    OK(ze.pool.pfnDestroy(pool));
}

static void not_there(void)
{
    open_all();
    ze_module_handle_t module;
    const ze_module_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MODULE_DESC, .inputSize = 4, .pInputModule = (const uint8_t *)"abcd"};
    IS(ze.module.pfnCreate(the_context, the_device, &desc, &module, NULL), ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
    void *address = NULL;
    OK(ze.driver.pfnGetExtensionFunctionAddress(the_driver, "zeCommandListHostSynchronize", &address));
    CHECK(address == (void *)ze.list.pfnHostSynchronize);
    IS(ze.driver.pfnGetExtensionFunctionAddress(the_driver, "zeModuleCreate", &address), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    IS(ze.driver.pfnGetExtensionFunctionAddress(the_driver, "zexNothing", &address), ZE_RESULT_ERROR_INVALID_ARGUMENT);
}

/* docs/driver.md lists what answers UNSUPPORTED_FEATURE: the list is compared with the library. */
static void documented(void)
{
    void *const library = dlopen(getenv("TEST_SOFT"), RTLD_NOW | RTLD_NOLOAD);
    CHECK(library != NULL);
    FILE *const page = fopen(getenv("TEST_DRIVER_PAGE"), "r");
    CHECK(page != NULL);
    char line[1024], *text = calloc(1, 1 << 20);
    size_t n = 0;
    while (fgets(line, sizeof(line), page) != NULL && n + strlen(line) < (1 << 20)) {
        strcpy(text + n, line);
        n += strlen(line);
    }
    fclose(page);
    const char *const begin = strstr(text, "<!-- implemented -->"), *const end = strstr(text, "<!-- end -->");
    CHECK(begin != NULL && end != NULL);
    open_all();
    unsigned wrong = 0;
    FILE *const names = fopen(getenv("TEST_NAMES"), "r");
    CHECK(names != NULL);
    while (fgets(line, sizeof(line), names) != NULL) {
        void *address = NULL;
        line[strcspn(line, "\n")] = '\0';
        const bool there = ze.driver.pfnGetExtensionFunctionAddress(the_driver, line, &address) == ZE_RESULT_SUCCESS;
        char quoted[128];
        snprintf(quoted, sizeof(quoted), "`%s`", line);
        const char *const at = strstr(begin, quoted);
        if (there != (at != NULL && at < end)) {
            fprintf(stderr, "%s is %s, but the page says otherwise\n", line, there ? "implemented" : "not implemented");
            wrong++;
        }
    }
    fclose(names);
    free(text);
    CHECK(wrong == 0);
}

static void two_copies(void)
{
    tables other;
    char copy_path[] = "/tmp/libze_soft-copy.XXXXXX", command[4096];
    const int fd = mkstemp(copy_path);
    CHECK(fd >= 0);
    snprintf(command, sizeof(command), "cp '%s' '%s'", getenv("TEST_SOFT"), copy_path);
    CHECK(system(command) == 0 && load_driver(copy_path, &other));
    unlink(copy_path);
    open_all();
    void *const mine = new_device(64);
    OK(other.global.pfnInit(0));
    const tables first = ze;
    ze = other;
    open_all();
    void *const its = new_device(64);
    CHECK(mine != its && (uint64_t)its - (uint64_t)mine == 0x20000000000ull); /* each its own window */
    IS(first.mem.pfnFree(the_context, its), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    OK(ze.mem.pfnFree(the_context, its));
}

static void properties(void)
{
    uint32_t n = 0;
    open_all();
    ze_device_properties_t device = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
    OK(ze.device.pfnGetProperties(the_device, &device));
    CHECK(device.type == ZE_DEVICE_TYPE_GPU && device.vendorId == 0x8086 && strstr(device.name, "libze_soft") != NULL);
    OK(ze.device.pfnGetCommandQueueGroupProperties(the_device, &n, NULL));
    CHECK(n == 3);
    ze_command_queue_group_properties_t groups[5] = {{0}};
    n = 5; /* more room than there is */
    OK(ze.device.pfnGetCommandQueueGroupProperties(the_device, &n, groups));
    CHECK(n == 3 && groups[0].numQueues == 1 && groups[2].numQueues == 8);
    n = 1; /* less */
    groups[1].numQueues = 77;
    OK(ze.device.pfnGetCommandQueueGroupProperties(the_device, &n, groups));
    CHECK(n == 1 && groups[1].numQueues == 77);
    n = 0;
    OK(ze.driver.pfnGetExtensionProperties(the_driver, &n, NULL));
    CHECK(n > 0);
}

const test_case use_cases[] = {{"null arguments", "ZE_SOFT_SCHEDULE=lazy", null_arguments, 0},
                               {"garbage handles", "ZE_SOFT_SCHEDULE=lazy", garbage_handles, 0},
                               {"lists", "ZE_SOFT_SCHEDULE=lazy", lists, 0},
                               {"one wrong argument", "ZE_SOFT_SCHEDULE=lazy", table, 0},
                               {"one wrong argument, async", "ZE_SOFT_SCHEDULE=async", table, 0},
                               {"getters", "ZE_SOFT_SCHEDULE=lazy", getters, 0},
                               {"event pools", "ZE_SOFT_SCHEDULE=lazy", pools, 0},
                               {"what is not there", "ZE_SOFT_SCHEDULE=lazy", not_there, 0},
                               {"the page says what is there", "ZE_SOFT_SCHEDULE=lazy", documented, 0},
                               {"two copies", "ZE_SOFT_SCHEDULE=lazy", two_copies, 0},
                               {"properties", "ZE_SOFT_SCHEDULE=lazy", properties, 0},
                               {NULL, NULL, NULL, 0}};

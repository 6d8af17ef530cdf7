/* SPDX-License-Identifier: MIT */
/*
 * One mixed sequence of calls, for clients that reach Level Zero in different ways. The client defines ZE(name), which
 * gives a callable of that name; every call goes through CALL, which counts it.
 */
#ifndef APPS_SEQUENCE_H
#define APPS_SEQUENCE_H

#include <level_zero/ze_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long long sequence_calls;
static struct {
    const char *name;
    unsigned long long count;
} sequence_names[128];

static inline void sequence_count(const char *name)
{
    sequence_calls++;
    for (unsigned i = 0; i < 128; i++) {
        if (sequence_names[i].name == NULL)
            sequence_names[i].name = name;
        if (strcmp(sequence_names[i].name, name) == 0) {
            sequence_names[i].count++;
            return;
        }
    }
}

#define CALL(name, ...) (sequence_count(#name), ZE(name)(__VA_ARGS__))
#define WORKS(name, ...)                                                                                               \
    do {                                                                                                               \
        const ze_result_t r_ = CALL(name, __VA_ARGS__);                                                                \
        if (r_ != ZE_RESULT_SUCCESS) {                                                                                 \
            printf("%s = 0x%x\n", #name, (unsigned)r_);                                                                \
            return 2;                                                                                                  \
        }                                                                                                              \
    } while (0)

/* Prints "calls=N", and with `by_name` a line "NAME N" for each function. */
static inline void sequence_report(int by_name)
{
    printf("calls=%llu\n", sequence_calls);
    for (unsigned i = 0; by_name && i < 128 && sequence_names[i].name != NULL; i++)
        printf("%s %llu\n", sequence_names[i].name, sequence_names[i].count);
    fflush(stdout);
}

static inline int sequence_on_driver(ze_driver_handle_t driver)
{
    uint32_t n = 0;
    ze_api_version_t version;
    WORKS(zeDriverGetApiVersion, driver, &version);
    ze_driver_properties_t dp = {.stype = ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES};
    WORKS(zeDriverGetProperties, driver, &dp);
    WORKS(zeDriverGetExtensionProperties, driver, &n, NULL);
    ze_driver_extension_properties_t *const ext = calloc(n ? n : 1, sizeof(*ext));
    WORKS(zeDriverGetExtensionProperties, driver, &n, ext);
    free(ext);
    n = 0;
    WORKS(zeDeviceGet, driver, &n, NULL);
    ze_device_handle_t devices[8];
    if (n > 8)
        n = 8;
    WORKS(zeDeviceGet, driver, &n, devices);
    const ze_device_handle_t device = devices[0];
    ze_device_properties_t props = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
    WORKS(zeDeviceGetProperties, device, &props);
    ze_device_compute_properties_t compute = {.stype = ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES};
    WORKS(zeDeviceGetComputeProperties, device, &compute);
    n = 0;
    WORKS(zeDeviceGetCommandQueueGroupProperties, device, &n, NULL);
    if (n > 8)
        n = 8;
    ze_command_queue_group_properties_t groups[8] = {{0}};
    for (unsigned i = 0; i < 8; i++)
        groups[i].stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES;
    WORKS(zeDeviceGetCommandQueueGroupProperties, device, &n, groups);

    ze_context_handle_t context;
    const ze_context_desc_t cd = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    WORKS(zeContextCreate, driver, &cd, &context);
    void *d, *h, *s;
    const ze_device_mem_alloc_desc_t dd = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    const ze_host_mem_alloc_desc_t hd = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    WORKS(zeMemAllocDevice, context, &dd, 65536, 64, device, &d);
    WORKS(zeMemAllocHost, context, &hd, 65536, 64, &h);
    WORKS(zeMemAllocShared, context, &dd, &hd, 65536, 64, device, &s);
    ze_memory_allocation_properties_t mp = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
    ze_device_handle_t owner;
    WORKS(zeMemGetAllocProperties, context, (char *)d + 100, &mp, &owner);
    void *base;
    size_t size;
    WORKS(zeMemGetAddressRange, context, (char *)h + 5, &base, &size);
    WORKS(zeContextMakeMemoryResident, context, device, d, 65536);

    ze_command_queue_handle_t queue;
    const ze_command_queue_desc_t qd = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
    WORKS(zeCommandQueueCreate, context, device, &qd, &queue);
    ze_fence_handle_t fence;
    const ze_fence_desc_t fd = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC};
    WORKS(zeFenceCreate, queue, &fd, &fence);
    ze_event_pool_handle_t pool;
    const ze_event_pool_desc_t pd = {
        .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE, .count = 4};
    WORKS(zeEventPoolCreate, context, &pd, 1, devices, &pool);
    ze_event_handle_t events[4];
    for (uint32_t i = 0; i < 4; i++) {
        const ze_event_desc_t ed = {
            .stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .index = i, .signal = ZE_EVENT_SCOPE_FLAG_HOST};
        WORKS(zeEventCreate, pool, &ed, &events[i]);
    }
    ze_command_list_handle_t list, immediate;
    const ze_command_list_desc_t ld = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
    WORKS(zeCommandListCreate, context, device, &ld, &list);
    WORKS(zeCommandListCreateImmediate, context, device, &qd, &immediate);

    unsigned char pageable[4096];
    for (unsigned i = 0; i < sizeof(pageable); i++)
        pageable[i] = (unsigned char)(i * 7);
    const uint32_t pattern = 0x01020304;
    WORKS(zeCommandListAppendMemoryFill, list, d, &pattern, sizeof(pattern), 65536, events[0], 0, NULL);
    WORKS(zeCommandListAppendMemoryCopy, list, d, pageable, sizeof(pageable), events[1], 1, &events[0]);
    WORKS(zeCommandListAppendBarrier, list, NULL, 2, events);
    const ze_copy_region_t region = {.width = 64, .height = 8, .depth = 1};
    WORKS(zeCommandListAppendMemoryCopyRegion, list, s, &region, 64, 0, d, &region, 128, 0, NULL, 0, NULL);
    WORKS(zeCommandListAppendBarrier, list, NULL, 0, NULL);
    WORKS(zeCommandListAppendMemoryCopy, list, h, d, 65536, events[2], 0, NULL);
    WORKS(zeCommandListClose, list);
    WORKS(zeCommandQueueExecuteCommandLists, queue, 1, &list, fence);
    WORKS(zeFenceHostSynchronize, fence, UINT64_MAX);
    WORKS(zeCommandQueueSynchronize, queue, UINT64_MAX);
    WORKS(zeEventQueryStatus, events[2]);
    if (memcmp(h, pageable, sizeof(pageable)) != 0 || ((uint32_t *)h)[4096] != pattern) {
        printf("the copies did not arrive\n");
        return 1;
    }
    WORKS(zeFenceReset, fence);
    WORKS(zeCommandListAppendMemoryCopy, immediate, s, h, 4096, events[3], 0, NULL);
    WORKS(zeEventHostSynchronize, events[3], UINT64_MAX);
    if (memcmp(s, h, 4096) != 0)
        return 1;

    ze_module_handle_t module;
    /* as SPIR-V, Intel's compiler would end the process over it */
    const uint8_t garbage[20] = {3, 2, 0x23, 7};
    const ze_module_desc_t md = {.stype = ZE_STRUCTURE_TYPE_MODULE_DESC,
                                 .format = ZE_MODULE_FORMAT_NATIVE,
                                 .inputSize = sizeof(garbage),
                                 .pInputModule = garbage,
                                 .pBuildFlags = "-O2"};
    if (CALL(zeModuleCreate, context, device, &md, &module, NULL) == ZE_RESULT_SUCCESS)
        printf("garbage was taken for a module\n");
    WORKS(zeContextEvictMemory, context, device, d, 65536);
    for (uint32_t i = 0; i < 4; i++)
        WORKS(zeEventDestroy, events[i]);
    WORKS(zeEventPoolDestroy, pool);
    WORKS(zeFenceDestroy, fence);
    WORKS(zeCommandListDestroy, immediate);
    WORKS(zeCommandListDestroy, list);
    WORKS(zeCommandQueueDestroy, queue);
    WORKS(zeMemFree, context, s);
    WORKS(zeMemFree, context, h);
    WORKS(zeMemFree, context, d);
    WORKS(zeContextDestroy, context);
    return 0;
}

/* On every driver there is. */
static inline int sequence_run(void)
{
    uint32_t n = 0;
    ze_driver_handle_t drivers[8];
    WORKS(zeInit, 0);
    WORKS(zeDriverGet, &n, NULL);
    if (n > 8)
        n = 8;
    WORKS(zeDriverGet, &n, drivers);
    for (uint32_t i = 0; i < n; i++) {
        const int status = sequence_on_driver(drivers[i]);
        if (status != 0)
            return status;
    }
    return 0;
}

#endif

/* SPDX-License-Identifier: MIT */
/* What the small Level Zero programs of this folder share. Everything goes through the installed loader and headers. */
#ifndef APPS_COMMON_H
#define APPS_COMMON_H

#include <level_zero/ze_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GOOD = 0, BAD = 1, CANNOT = 2 }; /* exit: effect did not show, showed, could not be tried */

/* For calls that must work: anything else means that the program cannot say anything. */
#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        const ze_result_t r_ = (call);                                                                                 \
        if (r_ != ZE_RESULT_SUCCESS) {                                                                                 \
            printf("%s = %s, cannot go on\n", #call, result_name(r_));                                                 \
            exit(CANNOT);                                                                                              \
        }                                                                                                              \
    } while (0)

/* For calls whose failure is the effect. @return whether it failed. */
#define SHOWS(call) shows(#call, call)

static inline const char *result_name(ze_result_t r)
{
    static char hex[32];
    switch ((unsigned)r) {
    case ZE_RESULT_SUCCESS:
        return "ZE_RESULT_SUCCESS";
    case ZE_RESULT_NOT_READY:
        return "ZE_RESULT_NOT_READY";
    case ZE_RESULT_ERROR_DEVICE_LOST:
        return "ZE_RESULT_ERROR_DEVICE_LOST";
    case ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY:
        return "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY";
    case ZE_RESULT_ERROR_UNSUPPORTED_FEATURE:
        return "ZE_RESULT_ERROR_UNSUPPORTED_FEATURE";
    case ZE_RESULT_ERROR_INVALID_ARGUMENT:
        return "ZE_RESULT_ERROR_INVALID_ARGUMENT";
    case ZE_RESULT_ERROR_UNINITIALIZED:
        return "ZE_RESULT_ERROR_UNINITIALIZED";
    case ZE_RESULT_ERROR_UNKNOWN:
        return "ZE_RESULT_ERROR_UNKNOWN";
    default:
        snprintf(hex, sizeof(hex), "0x%x", (unsigned)r);
        return hex;
    }
}

static inline bool shows(const char *what, ze_result_t r)
{
    if (r != ZE_RESULT_SUCCESS)
        printf("%s = %s\n", what, result_name(r));
    return r != ZE_RESULT_SUCCESS;
}

typedef struct app {
    ze_driver_handle_t driver;
    ze_device_handle_t device;
    ze_context_handle_t context;
    ze_event_pool_handle_t pool;
    uint32_t next_event;
} app;

static inline app app_open(void)
{
    app a = {0};
    uint32_t n = 1;
    MUST(zeInit(ZE_INIT_FLAG_GPU_ONLY));
    MUST(zeDriverGet(&n, &a.driver));
    n = 1;
    MUST(zeDeviceGet(a.driver, &n, &a.device));
    const ze_context_desc_t context = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    MUST(zeContextCreate(a.driver, &context, &a.context));
    const ze_event_pool_desc_t pool = {
        .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE, .count = 32};
    MUST(zeEventPoolCreate(a.context, &pool, 1, &a.device, &a.pool));
    return a;
}

static inline ze_event_handle_t event_new(app *a)
{
    ze_event_handle_t event;
    const ze_event_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC,
                                  .index = a->next_event++,
                                  .signal = ZE_EVENT_SCOPE_FLAG_HOST,
                                  .wait = ZE_EVENT_SCOPE_FLAG_HOST};
    MUST(zeEventCreate(a->pool, &desc, &event));
    return event;
}

/* A counter-based event, of a pool of its own; the descriptor is younger than the headers this is built with. */
static inline ze_event_handle_t counter_event_new(const app *a)
{
    const struct {
        uint32_t stype;
        const void *pNext;
        uint32_t flags;
    } counter = {.stype = 0x20014 /* COUNTER_BASED_EVENT_POOL_EXP_DESC */, .flags = 1 /* IMMEDIATE */};
    const ze_event_pool_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
                                       .pNext = &counter,
                                       .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE,
                                       .count = 1};
    const ze_event_desc_t event_desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .signal = ZE_EVENT_SCOPE_FLAG_HOST};
    ze_event_pool_handle_t pool;
    ze_event_handle_t event;
    ze_device_handle_t device = a->device;
    MUST(zeEventPoolCreate(a->context, &desc, 1, &device, &pool));
    MUST(zeEventCreate(pool, &event_desc, &event));
    return event;
}

static inline ze_command_queue_handle_t queue_new(const app *a, uint32_t ordinal, uint32_t index)
{
    ze_command_queue_handle_t queue;
    const ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                          .ordinal = ordinal,
                                          .index = index,
                                          .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS};
    MUST(zeCommandQueueCreate(a->context, a->device, &desc, &queue));
    return queue;
}

static inline ze_command_list_handle_t list_new(const app *a, uint32_t ordinal)
{
    ze_command_list_handle_t list;
    const ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC,
                                         .commandQueueGroupOrdinal = ordinal};
    MUST(zeCommandListCreate(a->context, a->device, &desc, &list));
    return list;
}

static inline ze_command_list_handle_t immediate_new(const app *a, uint32_t flags)
{
    ze_command_list_handle_t list;
    const ze_command_queue_desc_t desc = {
        .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .flags = flags, .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS};
    MUST(zeCommandListCreateImmediate(a->context, a->device, &desc, &list));
    return list;
}

static inline ze_fence_handle_t fence_new(ze_command_queue_handle_t queue)
{
    ze_fence_handle_t fence;
    const ze_fence_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC};
    MUST(zeFenceCreate(queue, &desc, &fence));
    return fence;
}

static inline void *device_new(const app *a, size_t size)
{
    void *p;
    const ze_device_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    MUST(zeMemAllocDevice(a->context, &desc, size, 64, a->device, &p));
    return p;
}

static inline void *host_new(const app *a, size_t size)
{
    void *p;
    const ze_host_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    MUST(zeMemAllocHost(a->context, &desc, size, 64, &p));
    return p;
}

/* Executes one closed list. @return the submit's result. */
static inline ze_result_t run(ze_command_queue_handle_t queue, ze_command_list_handle_t list, ze_fence_handle_t fence)
{
    return zeCommandQueueExecuteCommandLists(queue, 1, &list, fence);
}

static inline bool wanted(int argc, char **argv, const char *what)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], what) == 0)
            return true;
    return false;
}

static inline bool fixed_wanted(int argc, char **argv)
{
    return wanted(argc, argv, "fixed") || wanted(argc, argv, "good");
}

/* Whether a gate, an event that only the host signals, is to hold the work back. If not, the bug is a race. */
static inline bool gated_wanted(int argc, char **argv)
{
    return !wanted(argc, argv, "ungated");
}

static inline void nap(unsigned milliseconds)
{
    const struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&t, NULL);
}

static inline int verdict(bool shown, const char *what)
{
    printf("%s: %s\n", what, shown ? "the bug shows" : "all is well");
    return shown ? BAD : GOOD;
}

#define SECOND 1000000000ull
#define IN_ORDER 2u /* ZE_COMMAND_QUEUE_FLAG_IN_ORDER, younger than the headers this is built with */

#endif

/* SPDX-License-Identifier: MIT */
/* Leaves things behind: see leaks_test.py. `fixed` leaves none; `parents` only what goes with its parent. */
#include "common.h"

static ze_context_handle_t context_new(const app *a)
{
    ze_context_handle_t context;
    const ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    MUST(zeContextCreate(a->driver, &desc, &context));
    return context;
}

int main(int argc, char **argv)
{
    const bool fixed = fixed_wanted(argc, argv), parents = wanted(argc, argv, "parents");
    app a = app_open(), b = a;
    ze_command_list_handle_t lists[12];
    for (int i = 0; i < 12; i++)
        lists[i] = list_new(&a, 0);
    for (int i = 0; i < (fixed || parents ? 12 : 1); i++)
        MUST(zeCommandListDestroy(lists[i]));
    void *const first = device_new(&a, 4096), *const second = device_new(&a, 8192);
    MUST(zeMemFree(a.context, first));
    b.context = context_new(&a);
    if (zeMemFree(b.context, second) != ZE_RESULT_ERROR_INVALID_ARGUMENT) /* it is of another one */
        return 2;
    if (fixed || parents)
        MUST(zeMemFree(a.context, second));
    void *const third = host_new(&b, 100);
    const ze_event_handle_t event = event_new(&a);
    const ze_command_queue_handle_t queue = queue_new(&b, 0, 0);
    const ze_fence_handle_t fence = fence_new(queue);
    if (fixed) {
        MUST(zeMemFree(b.context, third));
        MUST(zeEventDestroy(event));
        MUST(zeFenceDestroy(fence));
        MUST(zeCommandQueueDestroy(queue));
    }
    if ((zeEventPoolDestroy(a.pool) == ZE_RESULT_SUCCESS) != fixed) /* its event is alive */
        return 2;
    if (parents) {
        MUST(zeEventDestroy(event));
        MUST(zeEventPoolDestroy(a.pool));
    }
    MUST(zeContextDestroy(b.context));
    MUST(zeContextDestroy(a.context));
    return 0;
}

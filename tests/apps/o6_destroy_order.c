/* SPDX-License-Identifier: MIT */
/*
 * O6: a queue is destroyed while its work is in flight and its fence alive: the work is lost, and the wait for the fence
 * says so. That wait is bounded, for drivers on which it would never end. `ungated`: the work is a copy that may have ended.
 */
#include "common.h"

int main(int argc, char **argv)
{
    const bool fixed = fixed_wanted(argc, argv), gated = gated_wanted(argc, argv);
    app a = app_open();
    ze_event_handle_t gate = event_new(&a);
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    ze_fence_handle_t fence = fence_new(queue);
    ze_command_list_handle_t list = list_new(&a, 0);
    if (gated)
        MUST(zeCommandListAppendWaitOnEvents(list, 1, &gate));
    else
        MUST(zeCommandListAppendMemoryCopy(list, device_new(&a, 4096), host_new(&a, 4096), 4096, NULL, 0, NULL));
    MUST(zeCommandListClose(list));
    MUST(run(queue, list, fence));
    bool shown = false;
    if (!fixed)
        shown |= SHOWS(zeCommandQueueDestroy(queue));
    if (gated)
        MUST(zeEventHostSignal(gate));
    shown |= SHOWS(zeFenceHostSynchronize(fence, SECOND));
    shown |= SHOWS(zeFenceDestroy(fence));
    if (fixed)
        MUST(zeCommandQueueDestroy(queue));
    return verdict(shown, "O6");
}

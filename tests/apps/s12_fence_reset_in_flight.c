/* SPDX-License-Identifier: MIT */
/* S12: a fence is reset while the submit that is to signal it is in flight. `fixed` waits for it first, and uses it again. */
#include "common.h"

int main(int argc, char **argv)
{
    const bool fixed = fixed_wanted(argc, argv);
    app a = app_open();
    ze_event_handle_t gate = event_new(&a);
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    ze_fence_handle_t fence = fence_new(queue);
    ze_command_list_handle_t list = list_new(&a, 0);
    MUST(zeCommandListAppendWaitOnEvents(list, 1, &gate));
    MUST(zeCommandListClose(list));
    MUST(run(queue, list, fence));
    if (fixed) {
        MUST(zeEventHostSignal(gate));
        MUST(zeFenceHostSynchronize(fence, UINT64_MAX));
    }
    MUST(zeFenceReset(fence));
    if (fixed)
        MUST(run(queue, list, fence));
    else
        MUST(zeEventHostSignal(gate));
    const bool shown = SHOWS(zeFenceHostSynchronize(fence, fixed ? UINT64_MAX : SECOND / 20));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    return verdict(shown, "S12");
}

/* SPDX-License-Identifier: MIT */
/*
 * S14: a query says NOT_READY, is not heeded, and a copy on another queue takes what has not been written yet. `ungated`: it
 * may have been. `fixed` waits for the event.
 */
#include "common.h"

int main(int argc, char **argv)
{
    const bool fixed = fixed_wanted(argc, argv), gated = gated_wanted(argc, argv);
    app a = app_open();
    unsigned char *const from = host_new(&a, 64), *const back = host_new(&a, 64);
    void *const D = device_new(&a, 64);
    ze_event_handle_t gate = event_new(&a), done = event_new(&a);
    ze_command_queue_handle_t writer = queue_new(&a, 0, 0), reader = queue_new(&a, 1, 0);
    ze_command_list_handle_t write = list_new(&a, 0), read = list_new(&a, 1);
    from[0] = 14;
    if (gated)
        MUST(zeCommandListAppendWaitOnEvents(write, 1, &gate));
    MUST(zeCommandListAppendMemoryCopy(write, D, from, 64, done, 0, NULL));
    MUST(zeCommandListClose(write));
    MUST(zeCommandListAppendMemoryCopy(read, back, D, 64, NULL, 0, NULL));
    MUST(zeCommandListClose(read));
    MUST(run(writer, write, NULL));
    if (fixed) {
        if (gated)
            MUST(zeEventHostSignal(gate));
        MUST(zeEventHostSynchronize(done, UINT64_MAX));
    } else {
        printf("zeEventQueryStatus(done) = %s\n", result_name(zeEventQueryStatus(done)));
    }
    MUST(run(reader, read, NULL));
    MUST(zeCommandQueueSynchronize(reader, UINT64_MAX));
    if (gated && !fixed)
        MUST(zeEventHostSignal(gate));
    MUST(zeCommandQueueSynchronize(writer, UINT64_MAX));
    if (back[0] != 14)
        printf("%d came back, 14 was sent\n", back[0]);
    return verdict(back[0] != 14, "S14");
}

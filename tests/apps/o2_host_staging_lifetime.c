/* SPDX-License-Identifier: MIT */
/* O2: the host memory that a gated copy reads is overwritten and freed before the copy runs. `ungated`: a race. */
#include "common.h"

int main(int argc, char **argv)
{
    const size_t size = 4096;
    const bool fixed = fixed_wanted(argc, argv), gated = gated_wanted(argc, argv);
    app a = app_open();
    void *const D = device_new(&a, size);
    unsigned char *const back = host_new(&a, size);
    unsigned char *P = malloc(size);
    memset(P, 1, size);
    ze_event_handle_t gate = event_new(&a);
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    ze_command_list_handle_t list = list_new(&a, 0), read = list_new(&a, 0);
    if (gated)
        MUST(zeCommandListAppendWaitOnEvents(list, 1, &gate));
    MUST(zeCommandListAppendMemoryCopy(list, D, P, size, NULL, 0, NULL));
    MUST(zeCommandListClose(list));
    MUST(zeCommandListAppendMemoryCopy(read, back, D, size, NULL, 0, NULL));
    MUST(zeCommandListClose(read));
    MUST(run(queue, list, NULL));
    if (fixed) {
        if (gated)
            MUST(zeEventHostSignal(gate));
        MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    }
    memset(P, 2, size);
    free(P);
    P = malloc(size);
    memset(P, 3, size);
    if (!fixed) {
        if (gated)
            MUST(zeEventHostSignal(gate));
        MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    }
    MUST(run(queue, read, NULL));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    if (back[0] != 1)
        printf("D holds %d, 1 was copied\n", back[0]);
    free(P);
    return verdict(back[0] != 1, "O2");
}

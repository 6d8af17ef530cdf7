/* SPDX-License-Identifier: MIT */
/*
 * O4: a pair of lists is run twice without resetting the event between them: the second run's reader does not wait. Without
 * the gate (`ungated`) it reads what is old only if it overtakes the writer.
 */
#include "common.h"

int main(int argc, char **argv)
{
    const bool fixed = fixed_wanted(argc, argv), gated = gated_wanted(argc, argv);
    app a = app_open();
    uint64_t *const W = host_new(&a, 64), *const R = host_new(&a, 64);
    void *const A = device_new(&a, 64);
    ze_event_handle_t E = event_new(&a), gate = event_new(&a);
    ze_command_queue_handle_t Q1 = queue_new(&a, 0, 0), Q2 = queue_new(&a, 1, 0);
    ze_command_list_handle_t L = list_new(&a, 0), M = list_new(&a, 1);
    if (gated)
        MUST(zeCommandListAppendWaitOnEvents(L, 1, &gate));
    MUST(zeCommandListAppendMemoryCopy(L, A, W, 8, E, 0, NULL));
    MUST(zeCommandListClose(L));
    MUST(zeCommandListAppendWaitOnEvents(M, 1, &E));
    MUST(zeCommandListAppendMemoryCopy(M, R, A, 8, NULL, 0, NULL));
    if (fixed) {
        MUST(zeCommandListAppendBarrier(M, NULL, 0, NULL));
        MUST(zeCommandListAppendEventReset(M, E));
    }
    MUST(zeCommandListClose(M));
    *W = 1;
    if (gated)
        MUST(zeEventHostSignal(gate));
    MUST(run(Q1, L, NULL));
    MUST(run(Q2, M, NULL));
    MUST(zeCommandQueueSynchronize(Q1, UINT64_MAX));
    MUST(zeCommandQueueSynchronize(Q2, UINT64_MAX));
    if (*R != 1)
        return CANNOT;
    if (gated)
        MUST(zeEventHostReset(gate));
    *W = 2;
    MUST(run(Q1, L, NULL));
    MUST(run(Q2, M, NULL));
    if (fixed) {
        if (gated)
            MUST(zeEventHostSignal(gate));
        MUST(zeCommandQueueSynchronize(Q2, UINT64_MAX));
        MUST(zeCommandQueueSynchronize(Q1, UINT64_MAX));
    } else {
        MUST(zeCommandQueueSynchronize(Q2, UINT64_MAX));
        if (gated)
            MUST(zeEventHostSignal(gate));
        MUST(zeCommandQueueSynchronize(Q1, UINT64_MAX));
    }
    if (*R != 2)
        printf("the second run read %llu, 2 was written\n", (unsigned long long)*R);
    return verdict(*R != 2, "O4");
}

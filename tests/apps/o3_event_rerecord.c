/* SPDX-License-Identifier: MIT */
/*
 * O3: an event is recorded anew (reset by the host, signalled by a further list) while a command on the other queue has
 * yet to wait for its first record. That waiter never wakes: the new signal stands in line behind it. `ungated`: the reset
 * races with the waiter.
 */
#include "common.h"

int main(int argc, char **argv)
{
    const bool fixed = fixed_wanted(argc, argv), gated = gated_wanted(argc, argv);
    app a = app_open();
    ze_event_handle_t E1 = event_new(&a), E2 = event_new(&a), E3 = event_new(&a), gate = event_new(&a);
    ze_command_queue_handle_t Q1 = queue_new(&a, 0, 0), Q2 = queue_new(&a, 1, 0);
    ze_command_list_handle_t L1 = list_new(&a, 0), L2 = list_new(&a, 1), L3 = list_new(&a, 0), L4 = list_new(&a, 0);
    MUST(zeCommandListAppendSignalEvent(L1, E1));
    if (gated)
        MUST(zeCommandListAppendWaitOnEvents(L1, 1, &gate));
    MUST(zeCommandListClose(L1));
    if (gated)
        MUST(zeCommandListAppendWaitOnEvents(L2, 1, &gate));
    MUST(zeCommandListAppendBarrier(L2, NULL, 1, &E1));
    MUST(zeCommandListAppendBarrier(L2, E2, 0, NULL));
    MUST(zeCommandListClose(L2));
    MUST(zeCommandListAppendBarrier(L3, NULL, 1, &E2));
    MUST(zeCommandListClose(L3));
    MUST(run(Q1, L1, NULL));
    MUST(zeEventHostSynchronize(E1, SECOND)); /* the signal has come: the waiter on Q2 sits behind its gate */
    MUST(run(Q2, L2, NULL));
    MUST(run(Q1, L3, NULL));
    ze_event_handle_t again = E1;
    if (fixed)
        again = E3;
    else
        MUST(zeEventHostReset(E1));
    /* the new record of the event waits behind L3, which waits for E2, which waits for the signal that was reset */
    MUST(zeCommandListAppendSignalEvent(L4, again));
    MUST(zeCommandListClose(L4));
    MUST(run(Q1, L4, NULL));
    if (gated)
        MUST(zeEventHostSignal(gate));
    const bool shown = SHOWS(zeEventHostSynchronize(E2, SECOND / 2));
    if (shown)
        MUST(zeEventHostSignal(E1)); /* lets the device go */
    zeCommandQueueSynchronize(Q1, SECOND);
    zeCommandQueueSynchronize(Q2, SECOND);
    return verdict(shown, "O3");
}

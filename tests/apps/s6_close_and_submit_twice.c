/* SPDX-License-Identifier: MIT */
/*
 * S6: a list is closed twice, and executed again while its first run is in flight. Each run moves the words up by one.
 * `fixed` closes once and waits in between.
 */
#include "common.h"

int main(int argc, char **argv)
{
    const bool fixed = fixed_wanted(argc, argv);
    app a = app_open();
    uint64_t *const words = host_new(&a, 64), *const copy = host_new(&a, 64);
    for (uint64_t i = 0; i < 8; i++)
        words[i] = i;
    ze_event_handle_t gate = event_new(&a);
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    ze_command_list_handle_t list = list_new(&a, 0);
    MUST(zeCommandListAppendWaitOnEvents(list, 1, &gate));
    MUST(zeCommandListAppendMemoryCopy(list, copy, words, 56, NULL, 0, NULL));
    MUST(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    MUST(zeCommandListAppendMemoryCopy(list, words + 1, copy, 56, NULL, 0, NULL));
    MUST(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    MUST(zeCommandListClose(list));
    bool shown = false;
    if (!fixed)
        shown |= SHOWS(zeCommandListClose(list));
    MUST(run(queue, list, NULL));
    if (fixed) {
        MUST(zeEventHostSignal(gate));
        MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    }
    shown |= SHOWS(run(queue, list, NULL));
    if (!fixed)
        MUST(zeEventHostSignal(gate));
    shown |= SHOWS(zeCommandQueueSynchronize(queue, UINT64_MAX));
    if (words[7] != 5)
        printf("the last word is %llu after two runs, 5 was to come\n", (unsigned long long)words[7]);
    return verdict(shown || words[7] != 5, "S6");
}

/* SPDX-License-Identifier: MIT */
/* O7: the list that would signal the event is never executed; the synchronise before covers nothing. */
#include "common.h"

int main(int argc, char **argv)
{
    const bool fixed = fixed_wanted(argc, argv);
    app a = app_open();
    uint64_t *const H = host_new(&a, 64), *const back = host_new(&a, 64);
    void *const D = device_new(&a, 64);
    ze_event_handle_t E = event_new(&a);
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    ze_command_list_handle_t list = list_new(&a, 0), read = list_new(&a, 0);
    *H = 7;
    MUST(zeCommandListAppendMemoryCopy(list, D, H, 8, E, 0, NULL));
    MUST(zeCommandListAppendMemoryCopy(read, back, D, 8, NULL, 0, NULL));
    MUST(zeCommandListClose(read));
    if (fixed) {
        MUST(zeCommandListClose(list));
        MUST(run(queue, list, NULL));
    }
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    MUST(run(queue, read, NULL));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    bool shown = *back != 7;
    if (shown)
        printf("D holds %llu after the synchronise, 7 was to be copied\n", (unsigned long long)*back);
    shown |= SHOWS(zeEventHostSynchronize(E, SECOND / 4));
    return verdict(shown, "O7");
}

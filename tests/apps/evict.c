/* SPDX-License-Identifier: MIT */
/*
 * The case that zetrace was made for. A list copies A to B; at once after its execution B is evicted and freed. If the
 * copy has not run by then it faults, and a later, innocent call fails. `evict good` (or the program evict_good) waits
 * in between. `brief`: one later call instead of ten. `late`: it takes 0.4 s until B is evicted; `later`: 4 s.
 */
#include "common.h"

#ifndef ALWAYS_GOOD
#define ALWAYS_GOOD 0
#endif

int main(int argc, char **argv)
{
    const size_t size = 4096;
    const bool good = ALWAYS_GOOD || fixed_wanted(argc, argv);
    bool failed = false;
    app a = app_open();
    void *const A = device_new(&a, size), *const B = device_new(&a, size);
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    ze_command_list_handle_t copy = list_new(&a, 0);
    MUST(zeCommandListAppendMemoryCopy(copy, B, A, size, NULL, 0, NULL));
    MUST(zeCommandListClose(copy));
    failed |= SHOWS(zeCommandQueueExecuteCommandLists(queue, 1, &copy, NULL));
    if (good)
        failed |= SHOWS(zeCommandQueueSynchronize(queue, UINT64_MAX));
    nap(wanted(argc, argv, "later") ? 4000 : wanted(argc, argv, "late") ? 400 : 0);
    failed |= SHOWS(zeContextEvictMemory(a.context, a.device, B, size));
    failed |= SHOWS(zeMemFree(a.context, B));

    for (int i = 0; i < (wanted(argc, argv, "brief") ? 1 : 10); i++) {
        ze_command_list_handle_t empty = list_new(&a, 0);
        MUST(zeCommandListClose(empty));
        failed |= SHOWS(zeCommandQueueExecuteCommandLists(queue, 1, &empty, NULL));
    }
    failed |= SHOWS(zeCommandQueueSynchronize(queue, UINT64_MAX));
    return verdict(failed, "evict");
}

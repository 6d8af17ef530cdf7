/* SPDX-License-Identifier: MIT */
/* S10: memory is freed that a closed list names, and then the list is executed. `fixed` frees after its run. */
#include "common.h"

int main(int argc, char **argv)
{
    const bool fixed = fixed_wanted(argc, argv);
    app a = app_open();
    void *const D = device_new(&a, 4096), *const from = host_new(&a, 4096);
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    ze_command_list_handle_t list = list_new(&a, 0);
    MUST(zeCommandListAppendMemoryCopy(list, D, from, 4096, NULL, 0, NULL));
    MUST(zeCommandListClose(list));
    if (!fixed)
        MUST(zeMemFree(a.context, D));
    bool shown = SHOWS(run(queue, list, NULL));
    shown |= SHOWS(zeCommandQueueSynchronize(queue, UINT64_MAX));
    if (fixed)
        MUST(zeMemFree(a.context, D));
    return verdict(shown, "S10");
}

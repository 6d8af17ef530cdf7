/* SPDX-License-Identifier: MIT */
/* S11: a copy goes beyond the end of the memory it writes to. `fixed` copies what there is room for. */
#include "common.h"

int main(int argc, char **argv)
{
    const size_t room = 4096, size = fixed_wanted(argc, argv) ? room : room + 64;
    app a = app_open();
    void *const D = device_new(&a, room), *const from = host_new(&a, 2 * room);
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    ze_command_list_handle_t list = list_new(&a, 0);
    MUST(zeCommandListAppendMemoryCopy(list, D, from, size, NULL, 0, NULL));
    MUST(zeCommandListClose(list));
    bool shown = SHOWS(run(queue, list, NULL));
    shown |= SHOWS(zeCommandQueueSynchronize(queue, UINT64_MAX));
    return verdict(shown, "S11");
}

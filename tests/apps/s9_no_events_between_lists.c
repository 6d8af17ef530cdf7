/* SPDX-License-Identifier: MIT */
/*
 * S9: three copies, each of what the one before it wrote, on three in-order immediate lists: order within a list is none
 * between lists. `fixed` puts events between them.
 */
#include "common.h"

int main(int argc, char **argv)
{
    const bool fixed = fixed_wanted(argc, argv);
    app a = app_open();
    unsigned char *const from = host_new(&a, 64), *const back = host_new(&a, 64);
    void *const A = device_new(&a, 64), *const B = device_new(&a, 64);
    ze_event_handle_t first = event_new(&a), second = event_new(&a);
    ze_command_list_handle_t lists[3];
    for (int i = 0; i < 3; i++)
        lists[i] = immediate_new(&a, IN_ORDER);
    ze_event_handle_t done = event_new(&a), ends[2] = {event_new(&a), event_new(&a)};
    from[0] = 9;
    back[0] = 0;
    MUST(zeCommandListAppendMemoryCopy(lists[0], A, from, 64, fixed ? first : NULL, 0, NULL));
    MUST(zeCommandListAppendMemoryCopy(lists[1], B, A, 64, fixed ? second : NULL, fixed, fixed ? &first : NULL));
    MUST(zeCommandListAppendMemoryCopy(lists[2], back, B, 64, done, fixed, fixed ? &second : NULL));
    MUST(zeEventHostSynchronize(done, UINT64_MAX));
    for (int i = 0; i < 2; i++) {
        MUST(zeCommandListAppendBarrier(lists[i], ends[i], 0, NULL));
        MUST(zeEventHostSynchronize(ends[i], UINT64_MAX));
    }
    if (back[0] != 9)
        printf("%d came back, 9 was sent\n", back[0]);
    return verdict(back[0] != 9, "S9");
}

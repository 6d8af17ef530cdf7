/* SPDX-License-Identifier: MIT */
/*
 * O5: two copies to overlapping memory on an immediate list that is not in-order: either may end last. `fixed` puts a
 * barrier between them, `fixed2` makes the list in-order.
 */
#include "common.h"

int main(int argc, char **argv)
{
    const size_t big = 64u << 20, small = 4096;
    const bool fixed = fixed_wanted(argc, argv);
    app a = app_open();
    unsigned char *const from = host_new(&a, big), *const patch = host_new(&a, small),
                         *const back = host_new(&a, small);
    void *const D = device_new(&a, big);
    memset(from, 1, big);
    memset(patch, 2, small);
    ze_command_list_handle_t list = immediate_new(&a, wanted(argc, argv, "fixed2") ? IN_ORDER : 0);
    ze_event_handle_t done = event_new(&a);
    MUST(zeCommandListAppendMemoryCopy(list, D, from, big, NULL, 0, NULL));
    if (fixed)
        MUST(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    MUST(zeCommandListAppendMemoryCopy(list, D, patch, small, NULL, 0, NULL));
    MUST(zeCommandListAppendBarrier(list, done, 0, NULL));
    MUST(zeEventHostSynchronize(done, UINT64_MAX));
    MUST(zeEventHostReset(done));
    MUST(zeCommandListAppendMemoryCopy(list, back, D, small, done, 0, NULL));
    MUST(zeEventHostSynchronize(done, UINT64_MAX));
    if (back[0] != 2)
        printf("the first page holds the big copy's bytes\n");
    return verdict(back[0] != 2, "O5");
}

/* SPDX-License-Identifier: MIT */
/* S7: a counter-based event is reset by the host; it counts, and is never reset. `fixed` lets it count. */
#include "common.h"

int main(int argc, char **argv)
{
    const bool fixed = fixed_wanted(argc, argv);
    app a = app_open();
    unsigned char *const from = host_new(&a, 64), *const to = host_new(&a, 64);
    ze_event_handle_t done = counter_event_new(&a);
    ze_command_list_handle_t list = immediate_new(&a, IN_ORDER);
    bool shown = false;
    for (unsigned char i = 1; i <= 3; i++) {
        from[0] = i;
        MUST(zeCommandListAppendMemoryCopy(list, to, from, 64, done, 0, NULL));
        shown |= SHOWS(zeEventHostSynchronize(done, UINT64_MAX));
        shown |= to[0] != i;
        if (!fixed)
            shown |= SHOWS(zeEventHostReset(done));
    }
    return verdict(shown, "S7");
}

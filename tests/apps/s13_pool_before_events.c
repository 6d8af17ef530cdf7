/* SPDX-License-Identifier: MIT */
/* S13: an event pool is destroyed before its events. `fixed`: the events first. */
#include "common.h"

int main(int argc, char **argv)
{
    const bool fixed = fixed_wanted(argc, argv);
    app a = app_open();
    ze_event_handle_t event = event_new(&a);
    bool shown = false;
    if (!fixed)
        shown |= SHOWS(zeEventPoolDestroy(a.pool));
    shown |= SHOWS(zeEventDestroy(event));
    if (fixed)
        shown |= SHOWS(zeEventPoolDestroy(a.pool));
    return verdict(shown, "S13");
}

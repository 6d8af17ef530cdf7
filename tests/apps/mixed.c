/* SPDX-License-Identifier: MIT */
/* mixed [ROUNDS]: what a runtime does for a stream of small tasks: reset, copies, fills, barriers, events, execute,
 * wait. */
#include "common.h"

int main(int argc, char **argv)
{
    const unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 10000;
    app a = app_open();
    enum { LISTS = 4, EVENTS = 8, BUFFERS = 16 };
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    ze_command_list_handle_t lists[LISTS];
    ze_event_handle_t events[EVENTS];
    char *buffers[BUFFERS];
    for (int i = 0; i < LISTS; i++)
        lists[i] = list_new(&a, 0);
    for (int i = 0; i < EVENTS; i++)
        events[i] = event_new(&a);
    for (int i = 0; i < BUFFERS; i++)
        buffers[i] = device_new(&a, 65536);
    unsigned state = 1;
    unsigned long calls = 5 + 1 + LISTS + EVENTS + BUFFERS;
    for (unsigned long r = 0; r < rounds; r++) {
        ze_command_list_handle_t list = lists[r % LISTS];
        MUST(zeCommandListReset(list));
        for (int i = 0; i < 4; i++, calls++) {
            state = state * 1103515245 + 12345;
            char *const to = buffers[(state >> 8) % BUFFERS], *const from = buffers[(state >> 16) % BUFFERS];
            const size_t size = 64u << ((state >> 24) % 8);
            if (to == from)
                MUST(zeCommandListAppendMemoryFill(list, to, &state, 4, size, NULL, 0, NULL));
            else
                MUST(zeCommandListAppendMemoryCopy(list, to, from, size, NULL, 0, NULL));
        }
        ze_event_handle_t event = events[r % EVENTS];
        MUST(zeCommandListAppendBarrier(list, event, 0, NULL));
        MUST(zeCommandListClose(list));
        MUST(run(queue, list, NULL));
        MUST(zeEventHostSynchronize(event, UINT64_MAX));
        MUST(zeEventHostReset(event));
        calls += 6;
    }
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    printf("calls=%lu\n", calls + 1);
    return GOOD;
}

/* SPDX-License-Identifier: MIT */
/*
 * hostmem: pageable host memory is changed between append and execute, between execute and the gate's opening, and right after the
 * append on an immediate list. Prints what the device read each time: the trace must hold the same.
 */
#include "common.h"

static unsigned char source[8192];

int main(void)
{
    app a = app_open();
    unsigned char *const back = host_new(&a, sizeof(source));
    void *const D = device_new(&a, sizeof(source));
    ze_event_handle_t gate = event_new(&a), done = event_new(&a);
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    ze_command_list_handle_t list = list_new(&a, 0), read = list_new(&a, 0), immediate = immediate_new(&a, 0);
    MUST(zeCommandListAppendMemoryCopy(read, back, D, sizeof(source), NULL, 0, NULL));
    MUST(zeCommandListClose(read));

    memset(source, 1, sizeof(source));
    MUST(zeCommandListAppendMemoryCopy(list, D, source, sizeof(source), NULL, 0, NULL));
    MUST(zeCommandListClose(list));
    memset(source, 2, sizeof(source)); /* between append and execute */
    MUST(run(queue, list, NULL));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    MUST(run(queue, read, NULL));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    printf("changed between append and execute: the device read %d\n", back[0]);

    MUST(zeCommandListReset(list));
    MUST(zeCommandListAppendWaitOnEvents(list, 1, &gate));
    MUST(zeCommandListAppendMemoryCopy(list, D, source, sizeof(source), NULL, 0, NULL));
    MUST(zeCommandListClose(list));
    MUST(run(queue, list, NULL));
    memset(source + 4096, 3, 4096); /* between execute and the gate's opening: the second block only */
    MUST(zeEventHostSignal(gate));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    MUST(run(queue, read, NULL));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    printf("changed before the gate opened: the device read %d %d\n", back[0], back[4096]);

    memset(source, 4, sizeof(source));
    MUST(zeEventHostReset(gate));
    MUST(zeCommandListAppendMemoryCopy(immediate, D, source, sizeof(source), done, 1, &gate));
    memset(source, 5, sizeof(source)); /* right after the append: legal only once the copy has run */
    MUST(zeEventHostSignal(gate));
    MUST(zeEventHostSynchronize(done, UINT64_MAX));
    MUST(run(queue, read, NULL));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    printf("changed right after an immediate append: the device read %d\n", back[0]);
    return GOOD;
}

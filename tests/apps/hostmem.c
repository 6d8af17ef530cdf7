/* SPDX-License-Identifier: MIT */
/*
 * hostmem [host|shared] [ungated]: host memory (pageable, or USM) is changed between append and execute, between
 * execute and the gate's opening, and right after the append on an immediate list. Prints what the device read each
 * time: the trace must hold the same. `ungated` ends with an immediate append that nothing holds back: what it reads is
 * for the schedule to say.
 */
#include "common.h"

enum { SIZE = 8192 };

static unsigned char pageable[SIZE];

static unsigned char *source_new(const app *a, int argc, char **argv)
{
    void *p = pageable;
    const ze_device_mem_alloc_desc_t device = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    const ze_host_mem_alloc_desc_t host = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    if (wanted(argc, argv, "host"))
        p = host_new(a, SIZE);
    else if (wanted(argc, argv, "shared"))
        MUST(zeMemAllocShared(a->context, &device, &host, SIZE, 64, a->device, &p));
    return p;
}

int main(int argc, char **argv)
{
    app a = app_open();
    unsigned char *const source = source_new(&a, argc, argv), *const back = host_new(&a, SIZE);
    void *const D = device_new(&a, SIZE);
    ze_event_handle_t gate = event_new(&a), done = event_new(&a);
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    ze_command_list_handle_t list = list_new(&a, 0), read = list_new(&a, 0), immediate = immediate_new(&a, 0);
    MUST(zeCommandListAppendMemoryCopy(read, back, D, SIZE, NULL, 0, NULL));
    MUST(zeCommandListClose(read));

    memset(source, 1, SIZE);
    MUST(zeCommandListAppendMemoryCopy(list, D, source, SIZE, NULL, 0, NULL));
    MUST(zeCommandListClose(list));
    memset(source, 2, SIZE); /* between append and execute */
    MUST(run(queue, list, NULL));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    MUST(run(queue, read, NULL));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    printf("changed between append and execute: the device read %d\n", back[0]);

    MUST(zeCommandListReset(list));
    MUST(zeCommandListAppendWaitOnEvents(list, 1, &gate));
    MUST(zeCommandListAppendMemoryCopy(list, D, source, SIZE, NULL, 0, NULL));
    MUST(zeCommandListClose(list));
    MUST(run(queue, list, NULL));
    memset(source + SIZE / 2, 3, SIZE / 2); /* between execute and the gate's opening: the second block only */
    MUST(zeEventHostSignal(gate));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    MUST(run(queue, read, NULL));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    printf("changed before the gate opened: the device read %d %d\n", back[0], back[SIZE / 2]);

    memset(source, 4, SIZE);
    MUST(zeEventHostReset(gate));
    MUST(zeCommandListAppendMemoryCopy(immediate, D, source, SIZE, done, 1, &gate));
    memset(source, 5, SIZE); /* right after the append: legal only once the copy has run */
    MUST(zeEventHostSignal(gate));
    MUST(zeEventHostSynchronize(done, UINT64_MAX));
    MUST(run(queue, read, NULL));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    printf("changed right after an immediate append: the device read %d\n", back[0]);

    if (wanted(argc, argv, "ungated")) {
        memset(source, 6, SIZE);
        MUST(zeEventHostReset(done));
        MUST(zeCommandListAppendMemoryCopy(immediate, D, source, SIZE, done, 0, NULL));
        memset(source, 7, SIZE);
        MUST(zeEventHostSynchronize(done, UINT64_MAX));
        MUST(run(queue, read, NULL));
        MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
        printf("changed right after an ungated immediate append: the device read %d\n", back[0]);
    }
    return GOOD;
}

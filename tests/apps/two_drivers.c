/* SPDX-License-Identifier: MIT */
/*
 * two_drivers [ROUNDS]: the first two drivers are used in turn, call by call, with objects of each alive all the time.
 * Prints calls=N and the calls by name.
 */
#define ZE(name) name
#include "sequence.h"

typedef struct side {
    ze_driver_handle_t driver;
    ze_device_handle_t device;
    ze_context_handle_t context;
    ze_command_queue_handle_t queue;
    ze_command_list_handle_t list;
    unsigned *from, *to;
} side;

static int work(unsigned rounds)
{
    ze_driver_handle_t drivers[2];
    side sides[2];
    uint32_t n = 2;
    WORKS(zeInit, 0);
    WORKS(zeDriverGet, &n, drivers);
    if (n < 2) {
        printf("there is one driver only\n");
        return 2;
    }
    for (int i = 0; i < 2; i++) {
        side *const s = &sides[i];
        s->driver = drivers[i];
        n = 1;
        WORKS(zeDeviceGet, s->driver, &n, &s->device);
        const ze_context_desc_t context = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
        WORKS(zeContextCreate, s->driver, &context, &s->context);
        const ze_command_queue_desc_t queue = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
        WORKS(zeCommandQueueCreate, s->context, s->device, &queue, &s->queue);
        const ze_command_list_desc_t list = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
        WORKS(zeCommandListCreate, s->context, s->device, &list, &s->list);
        const ze_host_mem_alloc_desc_t host = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
        WORKS(zeMemAllocHost, s->context, &host, 4096, 64, (void **)&s->from);
        WORKS(zeMemAllocHost, s->context, &host, 4096, 64, (void **)&s->to);
    }
    for (unsigned r = 0; r < rounds; r++) {
        for (int i = 0; i < 2; i++) {
            sides[i].from[0] = 2 * r + (unsigned)i;
            WORKS(zeCommandListReset, sides[i].list);
        }
        for (int i = 0; i < 2; i++)
            WORKS(zeCommandListAppendMemoryCopy, sides[i].list, sides[i].to, sides[i].from, 4096, NULL, 0, NULL);
        for (int i = 0; i < 2; i++)
            WORKS(zeCommandListClose, sides[i].list);
        for (int i = 0; i < 2; i++)
            WORKS(zeCommandQueueExecuteCommandLists, sides[i].queue, 1, &sides[i].list, NULL);
        for (int i = 1; i >= 0; i--) {
            WORKS(zeCommandQueueSynchronize, sides[i].queue, UINT64_MAX);
            if (sides[i].to[0] != 2 * r + (unsigned)i) {
                printf("driver %d: round %u's copy did not arrive\n", i, r);
                return 1;
            }
        }
    }
    for (int i = 0; i < 2; i++) {
        WORKS(zeMemFree, sides[i].context, sides[i].from);
        WORKS(zeMemFree, sides[i].context, sides[i].to);
        WORKS(zeCommandListDestroy, sides[i].list);
        WORKS(zeCommandQueueDestroy, sides[i].queue);
        WORKS(zeContextDestroy, sides[i].context);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const int status = work(argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 100);
    sequence_report(1);
    return status;
}

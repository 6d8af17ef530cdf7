/* SPDX-License-Identifier: MIT */
/*
 * uploads BYTES CHANGED ROUNDS: what a program does that hands host memory to the device: changes CHANGED blocks of 4
 * KiB of a pageable buffer of BYTES, executes a list that copies it to the device, waits. Prints ns per round.
 */
#include <level_zero/ze_api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != ZE_RESULT_SUCCESS) {                                                                             \
            fprintf(stderr, "%s failed\n", #call);                                                                     \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    const size_t bytes = strtoul(argv[1], NULL, 0), changed = strtoul(argv[2], NULL, 0);
    const unsigned long rounds = strtoul(argv[3], NULL, 0), warm = rounds / 10 + 1;
    ze_driver_handle_t driver;
    ze_device_handle_t device;
    ze_context_handle_t context;
    ze_command_queue_handle_t queue;
    ze_command_list_handle_t list;
    uint32_t n = 1;
    MUST(zeInit(0));
    MUST(zeDriverGet(&n, &driver));
    n = 1;
    MUST(zeDeviceGet(driver, &n, &device));
    const ze_context_desc_t cd = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    MUST(zeContextCreate(driver, &cd, &context));
    const ze_command_queue_desc_t qd = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
    MUST(zeCommandQueueCreate(context, device, &qd, &queue));
    const ze_command_list_desc_t ld = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
    MUST(zeCommandListCreate(context, device, &ld, &list));
    const ze_device_mem_alloc_desc_t md = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    void *to;
    MUST(zeMemAllocDevice(context, &md, bytes, 64, device, &to));
    char *const from = malloc(bytes);
    if (from == NULL)
        return 2;
    memset(from, 1, bytes);
    MUST(zeCommandListAppendMemoryCopy(list, to, from, bytes, NULL, 0, NULL));
    MUST(zeCommandListClose(list));
    unsigned x = 1;
    double begin = 0;
    for (unsigned long r = 0; r < rounds + warm; r++) {
        if (r == warm)
            begin = now();
        for (size_t b = 0; b < changed && (b + 1) * 4096 <= bytes; b++)
            for (size_t i = 0; i < 4096; i += 4) {
                x = x * 1103515245 + 12345;
                memcpy(from + b * 4096 + i, &x, 4);
            }
        MUST(zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
        MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    }
    printf("%.2f\n", (now() - begin) / (double)rounds);
    free(from);
    return 0;
}

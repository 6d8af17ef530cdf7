/* SPDX-License-Identifier: MIT */
/*
 * orders events|inorder|lists|unordered COMMANDS [QUEUES]: a correct program with COMMANDS copies on QUEUES (8) carriers that hand buffers to their
 * neighbours. In step s carrier k copies from what its left neighbour wrote in step s - 1, and waits for both neighbours, so that nobody
 * overwrites what is still read. `events`: immediate lists, ordered by events alone. `inorder`: in-order immediate lists. `lists`: queues
 * that execute one closed list each again and again. After STEPS steps the host waits for all and resets the events. `unordered`: immediate
 * lists whose commands all read one buffer and end in any order, with a barrier after STEPS of them; every fifth command signals an event
 * that the next carrier waits for.
 */
#include <level_zero/ze_api.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != ZE_RESULT_SUCCESS) {                                                                             \
            fprintf(stderr, "%s failed\n", #call);                                                                     \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { STEPS = 64, MOST = 64, SLOT = 4096 };

static ze_context_handle_t context;
static ze_device_handle_t device;
static ze_command_list_handle_t lists[MOST];
static ze_command_queue_handle_t queues[MOST];
static ze_event_handle_t events[MOST][STEPS];
static char *buffers[MOST];
static unsigned n_carriers = 8;
static bool in_order, regular, unordered;

static void open_device(void)
{
    ze_driver_handle_t driver;
    const ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    uint32_t n = 1;
    MUST(zeInit(0));
    MUST(zeDriverGet(&n, &driver));
    n = 1;
    MUST(zeDeviceGet(driver, &n, &device));
    MUST(zeContextCreate(driver, &desc, &context));
}

static void make_carrier(unsigned k)
{
    const ze_command_queue_desc_t qd = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .flags = in_order ? 2 /* IN_ORDER */ : 0};
    const ze_command_list_desc_t ld = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
    const ze_device_mem_alloc_desc_t md = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    const ze_event_pool_desc_t pd = {
        .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE, .count = STEPS};
    ze_event_pool_handle_t pool;
    if (regular) {
        MUST(zeCommandQueueCreate(context, device, &qd, &queues[k]));
        MUST(zeCommandListCreate(context, device, &ld, &lists[k]));
    } else {
        MUST(zeCommandListCreateImmediate(context, device, &qd, &lists[k]));
    }
    MUST(zeMemAllocDevice(context, &md, 2 * SLOT, SLOT, device, (void **)&buffers[k]));
    MUST(zeEventPoolCreate(context, &pd, 0, NULL, &pool));
    for (uint32_t s = 0; s < STEPS; s++) {
        const ze_event_desc_t ed = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .index = s, .signal = ZE_EVENT_SCOPE_FLAG_HOST};
        MUST(zeEventCreate(pool, &ed, &events[k][s]));
    }
}

static void append_unordered(unsigned k, unsigned s)
{
    const unsigned left = (k + n_carriers - 1) % n_carriers;
    const bool waits = k > 0 && s % 5 == 0;
    MUST(zeCommandListAppendMemoryCopy(lists[k], buffers[k] + s * 64, buffers[0] + SLOT, 64, s % 5 == 0 ? events[k][s] : NULL, waits,
                                       waits ? &events[left][s] : NULL));
    if (s + 1 == STEPS)
        MUST(zeCommandListAppendBarrier(lists[k], events[k][s], 0, NULL));
}

static void append_step(unsigned k, unsigned s)
{
    if (unordered) {
        append_unordered(k, s);
        return;
    }
    const unsigned left = (k + n_carriers - 1) % n_carriers, right = (k + 1) % n_carriers;
    ze_event_handle_t waits[3] = {0};
    if (s > 0) {
        waits[0] = events[left][s - 1];
        waits[1] = events[right][s - 1];
        waits[2] = events[k][s - 1];
    }
    MUST(zeCommandListAppendMemoryCopy(lists[k], buffers[k] + (s & 1) * SLOT, buffers[left] + (~s & 1) * SLOT, SLOT, events[k][s],
                                       s == 0 ? 0 : in_order ? 2 : 3, s == 0 ? NULL : waits));
}

static void wait_and_reset(void)
{
    for (unsigned k = 0; k < n_carriers; k++)
        if (regular)
            MUST(zeCommandQueueSynchronize(queues[k], UINT64_MAX));
        else
            /* zeCommandListHostSynchronize is younger than the headers this is built with */
            for (unsigned s = unordered ? STEPS - 1 : 0; s < STEPS; s++)
                MUST(zeEventHostSynchronize(events[k][s], UINT64_MAX));
    for (unsigned k = 0; k < n_carriers; k++)
        for (unsigned s = 0; s < STEPS; s++)
            MUST(zeEventHostReset(events[k][s]));
}

int main(int argc, char **argv)
{
    const unsigned long commands = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;
    in_order = argc > 1 && strcmp(argv[1], "inorder") == 0;
    regular = argc > 1 && strcmp(argv[1], "lists") == 0;
    unordered = argc > 1 && strcmp(argv[1], "unordered") == 0;
    if (argc > 3)
        n_carriers = (unsigned)strtoul(argv[3], NULL, 0);
    if (commands == 0 || n_carriers < 3 || n_carriers > MOST || (!in_order && !regular && !unordered && strcmp(argv[1], "events") != 0)) {
        fprintf(stderr, "usage: orders events|inorder|lists|unordered COMMANDS [QUEUES]\n");
        return 2;
    }
    open_device();
    for (unsigned k = 0; k < n_carriers; k++)
        make_carrier(k);
    for (unsigned k = 0; regular && k < n_carriers; k++) {
        for (unsigned s = 0; s < STEPS; s++)
            append_step(k, s);
        MUST(zeCommandListClose(lists[k]));
    }
    for (unsigned long done = 0; done < commands; done += (unsigned long)STEPS * n_carriers) {
        for (unsigned s = 0; !regular && s < STEPS; s++)
            for (unsigned k = 0; k < n_carriers; k++)
                append_step(k, s);
        for (unsigned k = 0; regular && k < n_carriers; k++)
            MUST(zeCommandQueueExecuteCommandLists(queues[k], 1, &lists[k], NULL));
        wait_and_reset();
    }
    return 0;
}

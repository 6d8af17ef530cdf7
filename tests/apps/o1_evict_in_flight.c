/* SPDX-License-Identifier: MIT */
/*
 * O1: A is evicted while a gated copy from it is in flight; the copy faults when the gate opens, a later submit says
 * so. `fixed` waits for the copy first; `fixed2` frees A with the policy that blocks until its users have ended. `ungated`: the
 * evict races with the copy.
 */
#include "common.h"

#include <pthread.h>

static void *open_gate(void *event)
{
    nap(50);
    zeEventHostSignal(event);
    return NULL;
}

int main(int argc, char **argv)
{
    const size_t size = 4096;
    const bool fixed = fixed_wanted(argc, argv), gated = gated_wanted(argc, argv);
    app a = app_open();
    void *const A = device_new(&a, size), *const B = device_new(&a, size);
    unsigned char *const H = host_new(&a, size);
    MUST(zeContextMakeMemoryResident(a.context, a.device, A, size));
    MUST(zeContextMakeMemoryResident(a.context, a.device, B, size));
    ze_event_handle_t gate = event_new(&a);
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    ze_command_list_handle_t first = list_new(&a, 0), second = list_new(&a, 0);
    if (gated)
        MUST(zeCommandListAppendWaitOnEvents(first, 1, &gate));
    MUST(zeCommandListAppendMemoryCopy(first, B, A, size, NULL, 0, NULL));
    MUST(zeCommandListClose(first));
    MUST(zeCommandListAppendMemoryCopy(second, H, B, size, NULL, 0, NULL));
    MUST(zeCommandListClose(second));
    MUST(run(queue, first, NULL));
    bool shown = false;
    if (fixed) {
        if (gated)
            MUST(zeEventHostSignal(gate));
        MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
        MUST(zeContextEvictMemory(a.context, a.device, A, size));
    } else if (wanted(argc, argv, "fixed2")) {
        const ze_memory_free_ext_desc_t blocking = {.stype = ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC,
                                                    .freePolicy = ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE};
        pthread_t helper;
        if (pthread_create(&helper, NULL, open_gate, gate) != 0)
            return CANNOT;
        MUST(zeMemFreeExt(a.context, &blocking, A));
        pthread_join(helper, NULL);
    } else {
        MUST(zeContextEvictMemory(a.context, a.device, A, size));
        if (gated)
            MUST(zeEventHostSignal(gate));
    }
    shown |= SHOWS(run(queue, second, NULL));
    shown |= SHOWS(zeCommandQueueSynchronize(queue, UINT64_MAX));
    return verdict(shown, "O1");
}

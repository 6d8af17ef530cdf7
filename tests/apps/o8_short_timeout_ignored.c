/* SPDX-License-Identifier: MIT */
/*
 * O8: a synchronise with a short timeout comes back NOT_READY; the program takes it for done, reads and frees. `ungated`: the
 * timeout is 0, and the work may be done by then.
 */
#include "common.h"

#include <pthread.h>

static void *open_gate(void *event)
{
    nap(300);
    zeEventHostSignal(event);
    return NULL;
}

int main(int argc, char **argv)
{
    const bool fixed = fixed_wanted(argc, argv), gated = gated_wanted(argc, argv);
    app a = app_open();
    uint64_t *const R = host_new(&a, 64), *const source = host_new(&a, 64);
    ze_event_handle_t gate = event_new(&a);
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    ze_command_list_handle_t list = list_new(&a, 0), later = list_new(&a, 0);
    *source = 8;
    *R = 0;
    if (gated)
        MUST(zeCommandListAppendWaitOnEvents(list, 1, &gate));
    MUST(zeCommandListAppendMemoryCopy(list, R, source, 8, NULL, 0, NULL));
    MUST(zeCommandListClose(list));
    MUST(zeCommandListClose(later));
    MUST(run(queue, list, NULL));
    pthread_t helper;
    if (gated && pthread_create(&helper, NULL, open_gate, gate) != 0)
        return CANNOT;
    const ze_result_t ignored = zeCommandQueueSynchronize(queue, fixed ? UINT64_MAX : gated ? SECOND / 20 : 0);
    bool shown = *R != 8;
    if (shown)
        printf("R holds %llu after a synchronise that said %s\n", (unsigned long long)*R, result_name(ignored));
    MUST(zeMemFree(a.context, R));
    if (gated)
        pthread_join(helper, NULL);
    shown |= SHOWS(zeCommandQueueSynchronize(queue, SECOND));
    shown |= SHOWS(run(queue, later, NULL));
    return verdict(shown, "O8");
}

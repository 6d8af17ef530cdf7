/* SPDX-License-Identifier: MIT */
/*
 * Asks when its commands ran: a list executed twice with an event of time stamps, which is read after each; then a command that no event
 * times, which a command of another queue waits for, which in turn the host waits for.
 */
#include "common.h"

enum { SIZE = 1 << 16 };

static ze_event_handle_t timed_event(app *a)
{
    const ze_event_pool_desc_t pool = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
                                       .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE | ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP,
                                       .count = 1};
    app timed = *a;
    timed.next_event = 0;
    MUST(zeEventPoolCreate(a->context, &pool, 1, &a->device, &timed.pool));
    return event_new(&timed);
}

int main(void)
{
    app a = app_open();
    ze_device_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
    ze_kernel_timestamp_result_t result;
    uint64_t host, device;
    MUST(zeDeviceGetProperties(a.device, &properties));
    MUST(zeDeviceGetGlobalTimestamps(a.device, &host, &device));
    void *const from = host_new(&a, SIZE), *const to = device_new(&a, SIZE);
    memset(from, 1, SIZE);
    ze_event_handle_t done = timed_event(&a), ready = event_new(&a), last = event_new(&a);
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0), other = queue_new(&a, 1, 0);

    ze_command_list_handle_t list = list_new(&a, 0);
    MUST(zeCommandListAppendMemoryCopy(list, to, from, SIZE, done, 0, NULL));
    MUST(zeCommandListClose(list));
    for (unsigned i = 0; i < 2; i++) {
        MUST(run(queue, list, NULL));
        MUST(zeEventHostSynchronize(done, UINT64_MAX));
        MUST(zeEventQueryKernelTimestamp(done, &result));
        MUST(zeEventHostReset(done));
    }
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));

    ze_command_list_handle_t first = list_new(&a, 0), second = list_new(&a, 1);
    MUST(zeCommandListAppendMemoryCopy(first, to, from, SIZE, ready, 0, NULL));
    MUST(zeCommandListClose(first));
    MUST(zeCommandListAppendMemoryCopy(second, from, to, SIZE, last, 1, &ready));
    MUST(zeCommandListClose(second));
    MUST(run(other, second, NULL));
    MUST(run(queue, first, NULL));
    MUST(zeEventHostSynchronize(last, UINT64_MAX));

    ze_command_list_handle_t immediate = immediate_new(&a, 0);
    MUST(zeCommandListAppendMemoryCopy(immediate, to, from, 64, NULL, 0, NULL));
    MUST(zeCommandListAppendMemoryCopy(immediate, (char *)to + 64, from, 64, NULL, 0, NULL)); /* nobody waits for these */
    nap(5);
    printf("%u bits, %llu ns a tick\n", properties.kernelTimestampValidBits, (unsigned long long)properties.timerResolution);
    return 0;
}

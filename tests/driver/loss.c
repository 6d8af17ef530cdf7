/* SPDX-License-Identifier: MIT */
/* ZE_SOFT_DESTROY: an object goes while work in flight needs it. */
#include "soft_test.h"

#include <stdatomic.h>

enum { SIZE = 64 };

static ze_command_queue_handle_t queue;
static ze_command_list_handle_t list;
static ze_event_handle_t gate, done;
static ze_fence_handle_t fence;
static unsigned char *from, *to;

/* A gated copy 3 -> to that signals `done`, recorded; its queue has a fence. */
static void prepare(void)
{
    const ze_fence_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC};
    open_all();
    gate = new_event();
    done = new_event();
    from = new_host(SIZE);
    to = new_host(SIZE);
    from[0] = 3;
    queue = new_queue(0, 0);
    OK(ze.fence.pfnCreate(queue, &desc, &fence));
    list = new_list(0, 0);
    OK(ze.list.pfnAppendWaitOnEvents(list, 1, &gate));
    OK(ze.list.pfnAppendMemoryCopy(list, to, from, SIZE, done, 0, NULL));
    close_list(list);
}

static void in_flight(void)
{
    prepare();
    OK(ze.queue.pfnExecuteCommandLists(queue, 1, &list, fence));
}

/* What was in flight will never act, and whoever waits for it is told; the engine goes on. */
static void all_is_lost(void)
{
    OK(ze.event.pfnHostSignal(gate));
    IS(ze.event.pfnQueryStatus(done), ZE_RESULT_NOT_READY);
    IS(ze.fence.pfnQueryStatus(fence), ZE_RESULT_NOT_READY);
    IS(ze.event.pfnHostSynchronize(done, UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
    IS(ze.fence.pfnHostSynchronize(fence, UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
    OK(ze.device.pfnGetStatus(the_device));
    CHECK(to[0] == 0);
    OK(ze.fence.pfnReset(fence));
    OK(ze.event.pfnHostReset(done));
    ze_command_list_handle_t again = new_list(0, 0);
    ze_command_queue_handle_t other = new_queue(0, 0);
    OK(ze.list.pfnAppendMemoryCopy(again, to, from, SIZE, done, 0, NULL));
    close_list(again);
    OK(run(other, again));
    OK(ze.event.pfnHostSynchronize(done, UINT64_MAX));
    OK(ze.queue.pfnSynchronize(other, UINT64_MAX));
    CHECK(to[0] == 3);
}

/* The queue tells the first wait for it. */
static void queue_tells(void)
{
    IS(ze.queue.pfnSynchronize(queue, UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
    OK(ze.queue.pfnSynchronize(queue, UINT64_MAX));
    IS(ze.device.pfnSynchronize(the_device), ZE_RESULT_ERROR_DEVICE_LOST);
    OK(ze.device.pfnSynchronize(the_device));
}

static void list_reset(void)
{
    in_flight();
    OK(ze.list.pfnReset(list));
    queue_tells();
    all_is_lost();
}

static void list_destroyed(void)
{
    in_flight();
    OK(ze.list.pfnDestroy(list));
    queue_tells();
    all_is_lost();
}

static void queue_destroyed(void)
{
    in_flight();
    OK(ze.queue.pfnDestroy(queue));
    all_is_lost();
    OK(ze.fence.pfnDestroy(fence));
}

static void immediate_destroyed(void)
{
    prepare();
    ze_command_list_handle_t immediate = new_immediate(0, false), other = new_immediate(0, false);
    OK(ze.list.pfnAppendMemoryCopy(immediate, to, from, SIZE, done, 1, &gate));
    OK(ze.list.pfnDestroy(immediate));
    OK(ze.list.pfnHostSynchronize(other, UINT64_MAX));
    OK(ze.event.pfnHostSignal(gate));
    IS(ze.event.pfnHostSynchronize(done, UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
    CHECK(to[0] == 0);
    OK(ze.list.pfnAppendMemoryCopy(other, to, from, SIZE, done, 0, NULL)); /* another signal of the event is to come */
    OK(ze.event.pfnHostSynchronize(done, UINT64_MAX));
    CHECK(to[0] == 3);
}

/* A command in flight waits for the event: it is lost, those beside it are not. */
static void waited_event_destroyed(void)
{
    prepare();
    unsigned char *const beside = new_host(SIZE);
    ze_command_list_handle_t two = new_list(0, 0);
    OK(ze.list.pfnAppendMemoryCopy(two, to, from, SIZE, done, 1, &gate));
    copy(two, beside, from, SIZE);
    close_list(two);
    OK(ze.queue.pfnExecuteCommandLists(queue, 1, &two, fence));
    OK(ze.event.pfnDestroy(gate));
    IS(ze.event.pfnHostSynchronize(done, UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
    IS(ze.fence.pfnHostSynchronize(fence, UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
    queue_tells();
    CHECK(to[0] == 0 && beside[0] == 3);
}

/* A command in flight signals the event: it acts all the same. */
static void signalled_event_destroyed(void)
{
    in_flight();
    OK(ze.event.pfnDestroy(done));
    OK(ze.event.pfnHostSignal(gate));
    OK(ze.queue.pfnSynchronize(queue, UINT64_MAX));
    OK(ze.fence.pfnHostSynchronize(fence, UINT64_MAX));
    CHECK(to[0] == 3);
}

/* Whoever waits for work that waits for what was lost is told too, over any number of queues. */
static void told_along_a_chain(void)
{
    enum { LINKS = 4 };
    in_flight();
    ze_event_handle_t before = done;
    ze_command_queue_handle_t queues[LINKS];
    ze_fence_handle_t last;
    const ze_fence_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC};
    for (uint32_t i = 0; i < LINKS; i++) {
        ze_event_handle_t next = new_event();
        ze_command_list_handle_t link = new_list(2, 0);
        OK(ze.list.pfnAppendWaitOnEvents(link, 1, &before));
        OK(ze.list.pfnAppendSignalEvent(link, next));
        close_list(link);
        queues[i] = new_queue(2, i);
        OK(ze.fence.pfnCreate(queues[i], &desc, &last));
        OK(ze.queue.pfnExecuteCommandLists(queues[i], 1, &link, last));
        before = next;
    }
    IS(ze.event.pfnHostSynchronize(before, 1000), ZE_RESULT_NOT_READY); /* nothing is lost yet */
    OK(ze.queue.pfnDestroy(queue));
    IS(ze.queue.pfnSynchronize(queues[LINKS - 1], UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
    IS(ze.fence.pfnHostSynchronize(last, UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
    IS(ze.event.pfnHostSynchronize(before, UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
    IS(ze.device.pfnSynchronize(the_device), ZE_RESULT_ERROR_DEVICE_LOST);
    IS(ze.device.pfnSynchronize(the_device), ZE_RESULT_ERROR_DEVICE_LOST); /* it is still so */
    OK(ze.event.pfnHostSignal(done)); /* the host makes up for it */
    OK(ze.queue.pfnSynchronize(queues[LINKS - 1], UINT64_MAX));
    OK(ze.event.pfnHostSynchronize(before, UINT64_MAX));
    OK(ze.device.pfnSynchronize(the_device));
}

static atomic_int runs;

static void count(void *unused)
{
    (void)unused;
    runs++;
}

/* Three Executes behind one closed gate. @return how often the list has run. */
static int executed_again(void)
{
    prepare();
    ze_command_list_handle_t counted = new_list(0, 0);
    OK(ze.list.pfnAppendWaitOnEvents(counted, 1, &gate));
    OK(ze.list.pfnAppendHostFunction(counted, count, NULL, NULL, done, 0, NULL));
    close_list(counted);
    OK(ze.queue.pfnExecuteCommandLists(queue, 1, &counted, fence));
    OK(run(queue, counted));
    OK(run(queue, counted));
    OK(ze.event.pfnHostSignal(gate));
    OK(ze.queue.pfnSynchronize(queue, UINT64_MAX));
    OK(ze.event.pfnHostSynchronize(done, UINT64_MAX));
    return runs;
}

static void replaced(void)
{
    CHECK(executed_again() == 1);
    IS(ze.fence.pfnHostSynchronize(fence, UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST); /* that run never was */
}

static void not_replaced(void)
{
    CHECK(executed_again() == 3);
    OK(ze.fence.pfnHostSynchronize(fence, UINT64_MAX));
}

/* The right order loses nothing, not even where only the last command's event is waited for. */
static void right_order(void)
{
    in_flight();
    OK(ze.event.pfnHostSignal(gate));
    OK(ze.event.pfnHostSynchronize(done, UINT64_MAX));
    OK(ze.list.pfnReset(list));
    OK(ze.list.pfnAppendMemoryCopy(list, to + 1, from, 1, NULL, 1, &gate));
    close_list(list);
    OK(ze.fence.pfnHostSynchronize(fence, UINT64_MAX));
    OK(ze.fence.pfnReset(fence));
    for (int i = 0; i < 3; i++) {
        OK(ze.queue.pfnExecuteCommandLists(queue, 1, &list, fence));
        OK(ze.fence.pfnHostSynchronize(fence, UINT64_MAX));
        OK(ze.fence.pfnReset(fence));
    }
    OK(ze.event.pfnDestroy(gate));
    OK(ze.event.pfnHostReset(done));
    ze_command_list_handle_t last = new_list(0, 0);
    OK(ze.list.pfnAppendMemoryCopy(last, to + 2, from, 1, done, 0, NULL));
    close_list(last);
    OK(run(queue, last));
    OK(ze.event.pfnHostSynchronize(done, UINT64_MAX));
    OK(ze.list.pfnDestroy(last));
    OK(ze.list.pfnDestroy(list));
    OK(ze.queue.pfnDestroy(queue));
    OK(ze.device.pfnSynchronize(the_device));
    CHECK(to[0] == 3 && to[1] == 3 && to[2] == 3);
}

/* On `keep` a list that is reset in flight runs as recorded. */
static void kept(void)
{
    in_flight();
    OK(ze.list.pfnReset(list));
    OK(ze.queue.pfnDestroy(queue));
    OK(ze.event.pfnHostSignal(gate));
    OK(ze.fence.pfnHostSynchronize(fence, UINT64_MAX));
    OK(ze.event.pfnHostSynchronize(done, UINT64_MAX));
    CHECK(to[0] == 3);
}

#define ON(schedule, name, function) {name " on " schedule, "ZE_SOFT_SCHEDULE=" schedule, function, 0}
#define ON_ALL(name, function)                                                                                                 \
    ON("async", name, function), ON("eager", name, function), ON("lazy", name, function), ON("seed:5", name, function)

const test_case loss_cases[] = {ON_ALL("a list is reset in flight", list_reset),
                                ON_ALL("a list is destroyed in flight", list_destroyed),
                                ON_ALL("a queue is destroyed in flight", queue_destroyed),
                                ON_ALL("an immediate list is destroyed in flight", immediate_destroyed),
                                ON_ALL("an event is destroyed that a command waits for", waited_event_destroyed),
                                ON_ALL("an event is destroyed that a command signals", signalled_event_destroyed),
                                ON_ALL("a loss is told along a chain", told_along_a_chain),
                                ON_ALL("a list is executed again in flight", replaced),
                                ON_ALL("the right order loses nothing", right_order),
                                {"executed again, kept", "ZE_SOFT_DESTROY=keep", not_replaced, 0},
                                {"reset in flight, kept", "ZE_SOFT_DESTROY=keep ZE_SOFT_SCHEDULE=lazy", kept, 0},
                                {NULL, NULL, NULL, 0}};

/* SPDX-License-Identifier: MIT */
/* What shows only with many calls, many threads, or after wrong use. */
#include "soft_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* -------------------------------------------------------------------------------------------------------- wrong order */

/* The queue goes before its fence, and other objects take its place. */
static void fence_outlives_queue(void)
{
    open_all();
    ze_event_handle_t gate = new_event();
    ze_command_queue_handle_t queue = new_queue(0, 0);
    ze_command_list_handle_t list = new_list(0, 0);
    ze_fence_handle_t fence;
    const ze_fence_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC};
    OK(ze.list.pfnAppendWaitOnEvents(list, 1, &gate));
    close_list(list);
    OK(ze.fence.pfnCreate(queue, &desc, &fence));
    OK(ze.queue.pfnExecuteCommandLists(queue, 1, &list, fence));
    OK(ze.queue.pfnDestroy(queue));
    for (int i = 0; i < 5000; i++)
        OK(ze.list.pfnDestroy(new_list(0, 0)));
    for (int i = 0; i < 40; i++)
        new_event();
    OK(ze.list.pfnDestroy(list));
    IS(ze.fence.pfnQueryStatus(fence), ZE_RESULT_NOT_READY);
    OK(ze.event.pfnHostSignal(gate));
    OK(ze.fence.pfnHostSynchronize(fence, UINT64_MAX));
    OK(ze.fence.pfnDestroy(fence));
    IS(ze.fence.pfnQueryStatus(fence), ZE_RESULT_ERROR_INVALID_ARGUMENT);
}

/* Objects are destroyed while commands that name them are in flight: what was submitted runs as recorded. */
static void destroyed_in_flight(void)
{
    open_all();
    ze_event_handle_t gate = new_event(), done = new_event(), lost_gate = new_event();
    ze_command_queue_handle_t queue = new_queue(0, 0);
    ze_command_list_handle_t list = new_list(0, 0), immediate = new_immediate(0, false), closed_for_ever = new_immediate(0, false);
    unsigned char *const from = new_host(8), *const to = new_host(8), *const too = new_host(8);
    from[0] = 3;
    OK(ze.list.pfnAppendMemoryCopy(list, to, from, 8, done, 1, &gate));
    close_list(list);
    OK(run(queue, list));
    OK(ze.list.pfnAppendMemoryCopy(immediate, too, from, 8, NULL, 1, &gate));
    OK(ze.list.pfnDestroy(list));
    OK(ze.list.pfnDestroy(immediate));
    OK(ze.queue.pfnDestroy(queue));
    OK(ze.event.pfnDestroy(done));
    IS(ze.event.pfnQueryStatus(done), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    OK(ze.event.pfnHostSignal(gate));
    OK(ze.device.pfnSynchronize(the_device));
    CHECK(to[0] == 3 && too[0] == 3);
    OK(ze.list.pfnAppendWaitOnEvents(closed_for_ever, 1, &lost_gate));
    OK(ze.event.pfnDestroy(lost_gate)); /* nobody can open it any more */
    IS(ze.list.pfnHostSynchronize(closed_for_ever, 10000000), ZE_RESULT_NOT_READY);
}

/* A handle of something destroyed is told from those created since. */
static void stale_handles(void)
{
    open_all();
    ze_command_list_handle_t first = new_list(0, 0);
    OK(ze.list.pfnDestroy(first));
    for (int i = 0; i < 1000; i++) {
        ze_command_list_handle_t other = new_list(0, 0);
        CHECK(other != first);
        IS(ze.list.pfnClose(first), ZE_RESULT_ERROR_INVALID_ARGUMENT);
        OK(ze.list.pfnDestroy(other));
    }
}

/* ----------------------------------------------------------------------------------------------------------- many calls */

/* Addresses and places in the file are no store that empties: 4 TiB are allocated, 32 GiB at a time. */
static void allocates_for_ever(void)
{
    open_all();
    for (int i = 0; i < 128; i++) {
        unsigned char *const p = new_device((size_t)32 << 30);
        CHECK(p[0] == 0 && p[((size_t)32 << 30) - 1] == 0);
        p[0] = p[((size_t)32 << 30) - 1] = 1;
        OK(ze.mem.pfnFree(the_context, p));
    }
}

static void many_allocations(void)
{
    enum { N = 10000 };
    static unsigned char *all[N];
    open_all();
    const double start = seconds();
    for (int i = 0; i < N; i++)
        (all[i] = new_device(100))[99] = (unsigned char)i;
    for (int i = 0; i < N; i += 2)
        OK(ze.mem.pfnFree(the_context, all[i]));
    for (int i = 1; i < N; i += 2)
        CHECK(all[i][99] == (unsigned char)i);
    for (int i = 1; i < N; i += 2)
        OK(ze.mem.pfnFree(the_context, all[i]));
    CHECK(seconds() - start < 20);
}

/* Queues and immediate lists come and go: each gets an engine, and gives it back. */
static void many_queues(void)
{
    open_all();
    unsigned char *const from = new_host(8), *const to = new_host(8);
    const double start = seconds();
    for (int i = 0; i < 20000; i++) {
        ze_command_list_handle_t list = new_immediate(0, true);
        from[0] = (unsigned char)i;
        if (i % 16 == 0) {
            copy(list, to, from, 8);
            CHECK(to[0] == (unsigned char)i);
        }
        OK(ze.list.pfnDestroy(list));
        OK(ze.queue.pfnDestroy(new_queue(2, 5)));
    }
    CHECK(seconds() - start < 20); /* a search through 40,000 engines at each step would take minutes */
}

/* 20,000 commands in flight at once. */
static void long_list(void)
{
    enum { N = 20000 };
    open_all();
    unsigned char *const from = new_host(8), *const to = new_host(N);
    ze_command_queue_handle_t queue = new_queue(0, 0);
    ze_command_list_handle_t list = new_list(0, 0), ordered = new_list(0, ZE_COMMAND_LIST_FLAG_IN_ORDER);
    from[0] = 1;
    for (int i = 0; i < N; i++)
        copy(list, to + i, from, 1);
    for (int i = 0; i < N / 10; i++)
        OK(ze.list.pfnAppendMemoryCopy(ordered, to + i, i ? to + i - 1 : to + N - 1, 1, NULL, 0, NULL));
    close_list(list);
    close_list(ordered);
    const double start = seconds();
    OK(run(queue, list));
    OK(ze.queue.pfnSynchronize(queue, UINT64_MAX));
    for (int i = 0; i < N; i++)
        CHECK(to[i] == 1);
    to[N - 1] = 2;
    OK(run(queue, ordered));
    OK(ze.queue.pfnSynchronize(queue, UINT64_MAX));
    for (int i = 0; i < N / 10; i++)
        CHECK(to[i] == 2);
    CHECK(seconds() - start < 30);
}

/* --------------------------------------------------------------------------------------------------------------- threads */

static ze_event_handle_t handed_on;

static void *submits_late(void *unused)
{
    nap(50);
    OK(ze.list.pfnAppendSignalEvent(new_immediate(0, false), handed_on));
    nap(5000000);
    return unused;
}

/* A thread that waits already is the one that moves what another submits: nobody else will. */
static void waits_for_what_comes(void)
{
    pthread_t helper;
    open_all();
    handed_on = new_event();
    CHECK(pthread_create(&helper, NULL, submits_late, NULL) == 0);
    OK(ze.event.pfnHostSynchronize(handed_on, UINT64_MAX));
    _exit(0);
}

static ze_event_handle_t ring_events[8];

typedef struct worker {
    unsigned number;
    ze_event_handle_t own;
    unsigned char *from, *to, *pageable;
} worker;

static void *works(void *arg)
{
    enum { ROUNDS = 200 };
    worker *const w = arg;
    ze_command_queue_handle_t queue = new_queue(2, w->number);
    ze_command_list_handle_t immediate = new_immediate(ZE_COMMAND_QUEUE_FLAG_IN_ORDER, false), list = new_list(2, 0);
    ze_fence_handle_t fence;
    const ze_fence_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC};
    OK(ze.fence.pfnCreate(queue, &desc, &fence));
    for (unsigned i = 1; i <= ROUNDS; i++) {
        void *const d = new_device(4096);
        memset(w->pageable, (int)i, 4096);
        copy(immediate, d, w->pageable, 4096);
        OK(ze.list.pfnAppendMemoryCopy(immediate, w->from, d, 4096, w->own, 0, NULL));
        OK(ze.list.pfnReset(list));
        OK(ze.list.pfnAppendMemoryCopy(list, w->to, w->from, 4096, NULL, 1, &w->own));
        OK(ze.list.pfnAppendBarrier(list, NULL, 0, NULL));
        OK(ze.list.pfnAppendEventReset(list, w->own));
        close_list(list);
        OK(ze.queue.pfnExecuteCommandLists(queue, 1, &list, fence));
        if (i % 3 == 0)
            ze.fence.pfnQueryStatus(fence);
        OK(ze.fence.pfnHostSynchronize(fence, UINT64_MAX));
        OK(ze.fence.pfnReset(fence));
        CHECK(w->to[0] == (unsigned char)i && w->to[4095] == (unsigned char)i);
        IS(ze.event.pfnQueryStatus(w->own), ZE_RESULT_NOT_READY);
        OK(ze.mem.pfnFree(the_context, d));
        /* from one to the next, round and round */
        if (w->number != 0 || i > 1)
            OK(ze.event.pfnHostSynchronize(ring_events[w->number], UINT64_MAX));
        OK(ze.event.pfnHostReset(ring_events[w->number]));
        OK(ze.event.pfnHostSignal(ring_events[(w->number + 1) % 4]));
    }
    OK(ze.list.pfnHostSynchronize(immediate, UINT64_MAX));
    return NULL;
}

static void threads_work(void)
{
    pthread_t threads[4];
    static worker workers[4];
    static unsigned char pageable[4][4096];
    open_all();
    for (unsigned i = 0; i < 4; i++) {
        ring_events[i] = new_event();
        workers[i] = (worker){i, new_event(), new_host(4096), new_host(4096), pageable[i]};
    }
    for (unsigned i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, works, &workers[i]) == 0);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static atomic_int in_callback, may_go;

static void slow_callback(void *unused)
{
    (void)unused;
    in_callback = 1;
    while (!may_go)
        nap(1);
}

/* A program that ends while its host function is still running ends. */
static void exits_in_host_function(void)
{
    open_all();
    OK(ze.list.pfnAppendHostFunction(new_immediate(0, false), slow_callback, NULL, NULL, NULL, 0, NULL));
    while (!in_callback)
        nap(1);
    void *const p = new_host(64); /* and calls go on meanwhile */
    OK(ze.mem.pfnFree(the_context, p));
}

#define ON(schedule, name, function) {name " on " schedule, "ZE_SOFT_SCHEDULE=" schedule, function, 0}
#define KEEPS(schedule, name, function) {name " on " schedule, "ZE_SOFT_DESTROY=keep ZE_SOFT_SCHEDULE=" schedule, function, 0}
#define KEEPS_ON_ALL(name, function)                                                                                           \
    KEEPS("async", name, function), KEEPS("eager", name, function), KEEPS("lazy", name, function), KEEPS("seed:5", name, function)
#define ON_ALL(name, function)                                                                                                 \
    ON("async", name, function), ON("eager", name, function), ON("lazy", name, function), ON("seed:5", name, function)

const test_case lasting_cases[] = {KEEPS_ON_ALL("a fence outlives its queue", fence_outlives_queue),
                                   KEEPS_ON_ALL("destroyed in flight", destroyed_in_flight),
                                   ON("lazy", "stale handles", stale_handles),
                                   ON("lazy", "allocates for ever", allocates_for_ever),
                                   {"allocates for ever, addresses reused", "ZE_SOFT_VA=reuse", allocates_for_ever, 0},
                                   ON("lazy", "many allocations", many_allocations),
                                   ON_ALL("many queues", many_queues),
                                   {"many queues, shared", "ZE_SOFT_ENGINES=shared", many_queues, 0},
                                   ON("async", "a long list", long_list),
                                   ON("eager", "a long list", long_list),
                                   ON("lazy", "a long list", long_list),
                                   ON_ALL("a thread waits for what comes", waits_for_what_comes),
                                   ON("script:two-then-one.script", "a thread waits for what comes", waits_for_what_comes),
                                   ON_ALL("threads work", threads_work),
                                   {"threads work, on shared engines", "ZE_SOFT_ENGINES=intel", threads_work, 0},
                                   ON("async", "exits in a host function", exits_in_host_function),
                                   {NULL, NULL, NULL, 0}};

/* SPDX-License-Identifier: MIT */
/* Each knob with a case that shows the difference its values make. */
#include "soft_test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 4096 };

/* A copy 5 -> target is executed. @return what the target holds right after, without any wait. */
static int after_execute(unsigned char **target, ze_command_queue_handle_t *queue)
{
    open_all();
    unsigned char *const from = new_host(SIZE);
    *target = new_host(SIZE);
    *queue = new_queue(0, 0);
    memset(from, 5, SIZE);
    (*target)[0] = 1;
    ze_command_list_handle_t list = new_list(0, 0);
    copy(list, *target, from, SIZE);
    close_list(list);
    OK(run(*queue, list));
    return *(volatile unsigned char *)*target;
}

static void eager(void)
{
    unsigned char *target;
    ze_command_queue_handle_t queue;
    CHECK(after_execute(&target, &queue) == 5);
}

static void lazy(void)
{
    unsigned char *target;
    ze_command_queue_handle_t queue;
    CHECK(after_execute(&target, &queue) == 1);
    nap(30);
    CHECK(target[0] == 1); /* nothing moves by itself */
    IS(ze.queue.pfnSynchronize(queue, 0), ZE_RESULT_SUCCESS);
    CHECK(target[0] == 5);
}

static void lazy_submit_moves(void)
{
    unsigned char *target;
    ze_command_queue_handle_t queue;
    CHECK(after_execute(&target, &queue) == 1);
    ze_command_list_handle_t empty = new_list(0, 0);
    close_list(empty);
    OK(run(queue, empty));
    CHECK(target[0] == 5);
}

static void async(void)
{
    unsigned char *target;
    ze_command_queue_handle_t queue;
    after_execute(&target, &queue);
    for (int i = 0; i < 2000 && *(volatile unsigned char *)target != 5; i++)
        nap(1);
    CHECK(target[0] == 5); /* by itself, nobody having looked */
}

static void null_schedule(void)
{
    unsigned char *target;
    ze_command_queue_handle_t queue;
    CHECK(after_execute(&target, &queue) == 1);
    OK(ze.queue.pfnSynchronize(queue, UINT64_MAX));
    CHECK(target[0] == 1);
}

/* Two overlapping copies on an immediate list that is not in order. @return the last one's number, 1 or 2. */
static int last_of_two(size_t first_size)
{
    open_all();
    unsigned char *const one = new_host(first_size), *const two = new_host(SIZE), *const back = new_host(SIZE);
    memset(one, 1, first_size);
    memset(two, 2, SIZE);
    void *const d = new_device(first_size);
    ze_command_list_handle_t list = new_immediate(0, false);
    copy(list, d, one, first_size);
    copy(list, d, two, SIZE);
    ze_event_handle_t done = new_event();
    OK(ze.list.pfnAppendBarrier(list, done, 0, NULL));
    OK(ze.event.pfnHostSynchronize(done, UINT64_MAX));
    copy(list, back, d, SIZE);
    OK(ze.list.pfnHostSynchronize(list, UINT64_MAX));
    return back[0];
}

static void eager_keeps_order(void)
{
    CHECK(last_of_two(16u << 20) == 2);
}

static void async_small_overtakes_big(void)
{
    CHECK(last_of_two(16u << 20) == 1);
}

/* The exit status tells the outcome: see the cases below. */
static void seed_outcome(void)
{
    _exit(last_of_two(SIZE));
}

static void script_order(void)
{
    /* commands are numbered as they are submitted: 2 before 1 */
    CHECK(last_of_two(SIZE) == 1);
}

/* ------------------------------------------------------------------------------------------------------------- faults */

static ze_command_queue_handle_t queue;
static ze_command_list_handle_t empty;

/* A gated copy from memory that is evicted before the gate opens; `later` copies it on. @return the later list. */
static ze_command_list_handle_t fault(unsigned char **host)
{
    open_all();
    ze_event_handle_t gate = new_event();
    unsigned char *const a = new_device(SIZE), *const b = new_device(SIZE);
    *host = new_host(SIZE);
    (*host)[0] = 9;
    queue = new_queue(0, 0);
    ze_command_list_handle_t first = new_list(0, 0), later = new_list(0, 0);
    empty = new_list(0, 0);
    close_list(empty);
    OK(ze.list.pfnAppendWaitOnEvents(first, 1, &gate));
    copy(first, b, a, SIZE);
    close_list(first);
    copy(later, *host, b, SIZE);
    close_list(later);
    OK(run(queue, first));
    OK(ze.context.pfnEvictMemory(the_context, the_device, a, SIZE));
    OK(ze.event.pfnHostSignal(gate));
    return later;
}

static void fault_ban(void)
{
    unsigned char *host;
    ze_command_list_handle_t later = fault(&host);
    IS(run(queue, later), ZE_RESULT_ERROR_UNKNOWN);
    IS(ze.queue.pfnSynchronize(queue, UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
    CHECK(host[0] == 9);
}

static void fault_scratch(void)
{
    unsigned char *host;
    ze_command_list_handle_t later = fault(&host);
    OK(run(queue, later));
    OK(ze.queue.pfnSynchronize(queue, UINT64_MAX));
    CHECK(host[0] == 0); /* what is not there reads as zeros */
}

static void fault_abort(void)
{
    unsigned char *host;
    ze_command_list_handle_t later = fault(&host);
    run(queue, later);
    ze.queue.pfnSynchronize(queue, UINT64_MAX);
}

static void errors_sync(void)
{
    unsigned char *host;
    ze_command_list_handle_t later = fault(&host);
    OK(run(queue, later)); /* nobody has noticed yet */
    OK(run(queue, empty));
    IS(ze.queue.pfnSynchronize(queue, UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
    IS(run(queue, empty), ZE_RESULT_ERROR_UNKNOWN);
}

/* The sequence that the real driver gives after a fault. */
static void fault_sequence(void)
{
    open_all();
    ze_event_handle_t gate = new_event();
    void *const a = new_device(SIZE), *const b = new_device(SIZE);
    queue = new_queue(0, 0);
    ze_fence_handle_t fence;
    const ze_fence_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC};
    OK(ze.fence.pfnCreate(queue, &desc, &fence));
    ze_command_list_handle_t first = new_list(0, 0);
    empty = new_list(0, 0);
    close_list(empty);
    OK(ze.list.pfnAppendWaitOnEvents(first, 1, &gate));
    copy(first, b, a, SIZE);
    close_list(first);
    OK(ze.queue.pfnExecuteCommandLists(queue, 1, &first, fence));
    OK(ze.context.pfnEvictMemory(the_context, the_device, b, SIZE));
    OK(run(queue, empty)); /* unrelated, before the fault */
    OK(ze.event.pfnHostSignal(gate));
    IS(ze.fence.pfnQueryStatus(fence), ZE_RESULT_NOT_READY);
    IS(run(queue, empty), ZE_RESULT_ERROR_UNKNOWN);
    IS(ze.fence.pfnQueryStatus(fence), ZE_RESULT_NOT_READY);
    IS(ze.fence.pfnHostSynchronize(fence, UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
    IS(ze.queue.pfnSynchronize(queue, 1000000), ZE_RESULT_ERROR_DEVICE_LOST);
    IS(run(queue, empty), ZE_RESULT_ERROR_UNKNOWN);
    IS(ze.device.pfnGetStatus(the_device), ZE_RESULT_ERROR_DEVICE_LOST);
    OK(ze.context.pfnSystemBarrier(the_context, the_device));
    IS(ze.list.pfnAppendMemoryCopy(new_immediate(0, false), a, a, 8, NULL, 0, NULL), ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
    IS(run(new_queue(0, 0), empty), ZE_RESULT_ERROR_UNKNOWN); /* a new queue on the same engine context */
    ze_command_list_handle_t elsewhere = new_list(1, 0);
    close_list(elsewhere);
    OK(run(new_queue(1, 0), elsewhere)); /* another engine goes on */
    OK(ze.mem.pfnFree(the_context, new_device(SIZE)));
    OK(ze.list.pfnReset(first));
    OK(ze.list.pfnDestroy(first));
    OK(ze.queue.pfnDestroy(queue));
    OK(ze.context.pfnDestroy(the_context));
}

/* --------------------------------------------------------------------------------------------------- memory in flight */

static ze_event_handle_t gate;

/* A gated copy into `target` is in flight. */
static void in_flight(void **target)
{
    open_all();
    gate = new_event();
    unsigned char *const from = new_host(SIZE);
    memset(from, 7, SIZE);
    *target = new_device(SIZE);
    queue = new_queue(0, 0);
    ze_command_list_handle_t list = new_list(0, 0);
    OK(ze.list.pfnAppendWaitOnEvents(list, 1, &gate));
    copy(list, *target, from, SIZE);
    close_list(list);
    OK(run(queue, list));
}

static void *open_gate(void *unused)
{
    nap(100);
    OK(ze.event.pfnHostSignal(gate));
    return unused;
}

static void free_faults(void)
{
    void *target;
    in_flight(&target);
    OK(ze.mem.pfnFree(the_context, target));
    OK(ze.event.pfnHostSignal(gate));
    IS(ze.queue.pfnSynchronize(queue, UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
}

static void free_blocks(void)
{
    void *target;
    pthread_t helper;
    struct timespec before, after;
    in_flight(&target);
    CHECK(pthread_create(&helper, NULL, open_gate, NULL) == 0);
    clock_gettime(CLOCK_MONOTONIC, &before);
    OK(ze.mem.pfnFree(the_context, target));
    clock_gettime(CLOCK_MONOTONIC, &after);
    CHECK((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 >= 50);
    pthread_join(helper, NULL);
    OK(ze.queue.pfnSynchronize(queue, UINT64_MAX));
}

static void free_hands_on(void)
{
    void *target, *next;
    in_flight(&target);
    OK(ze.mem.pfnFree(the_context, target));
    next = new_device(SIZE);
    CHECK(next == target); /* the new owner gets the address, and the late copy's bytes */
    OK(ze.event.pfnHostSignal(gate));
    OK(ze.queue.pfnSynchronize(queue, UINT64_MAX));
    CHECK(*(unsigned char *)next == 7);
}

static void free_policies(void)
{
    void *target;
    pthread_t helper;
    in_flight(&target);
    ze_memory_free_ext_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC,
                                      .freePolicy = ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_DEFER_FREE};
    OK(ze.mem.pfnFreeExt(the_context, &desc, target));
    IS(ze.mem.pfnFree(the_context, target), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    CHECK(new_device(SIZE) != target);
    CHECK(pthread_create(&helper, NULL, open_gate, NULL) == 0);
    OK(ze.queue.pfnSynchronize(queue, UINT64_MAX)); /* the copy found its memory */
    pthread_join(helper, NULL);
    void *const again = new_device(SIZE);
    desc.freePolicy = ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE;
    OK(ze.mem.pfnFreeExt(the_context, &desc, again));
}

/* Evicted, then named by a later submit on another engine, then the gate opens. */
static ze_result_t rebind(void)
{
    void *target;
    in_flight(&target);
    OK(ze.context.pfnEvictMemory(the_context, the_device, target, SIZE));
    ze_command_list_handle_t other = new_list(1, 0);
    copy(other, target, new_host(SIZE), SIZE);
    close_list(other);
    ze_command_queue_handle_t copier = new_queue(1, 0);
    OK(run(copier, other));
    OK(ze.queue.pfnSynchronize(copier, UINT64_MAX));
    OK(ze.event.pfnHostSignal(gate));
    return ze.queue.pfnSynchronize(queue, UINT64_MAX);
}

static void rebind_strict(void)
{
    IS(rebind(), ZE_RESULT_ERROR_DEVICE_LOST);
}

static void rebind_submit(void)
{
    OK(rebind());
}

/* ------------------------------------------------------------------------------------------------------------- engines */

/* A gate on queue (0,0); a copy on another queue of the same ordinal and index. @return whether it gets through. */
static bool passes_gate(uint32_t ordinal, uint32_t index_a, uint32_t index_b)
{
    open_all();
    gate = new_event();
    unsigned char *const from = new_host(SIZE), *const to = new_host(SIZE);
    ze_command_queue_handle_t a = new_queue(ordinal, index_a), b = new_queue(ordinal, index_b);
    ze_command_list_handle_t closed = new_list(ordinal, 0), other = new_list(ordinal, 0);
    OK(ze.list.pfnAppendWaitOnEvents(closed, 1, &gate));
    close_list(closed);
    copy(other, to, from, SIZE);
    close_list(other);
    OK(run(a, closed));
    OK(run(b, other));
    const ze_result_t r = ze.queue.pfnSynchronize(b, 100000000);
    OK(ze.event.pfnHostSignal(gate));
    OK(ze.queue.pfnSynchronize(a, UINT64_MAX));
    OK(ze.queue.pfnSynchronize(b, UINT64_MAX));
    return r == ZE_RESULT_SUCCESS;
}

static void engines_independent(void)
{
    CHECK(passes_gate(0, 0, 0));
}

static void engines_shared(void)
{
    CHECK(!passes_gate(2, 0, 1)); /* the whole group is one engine */
}

static void engines_intel_same(void)
{
    CHECK(!passes_gate(0, 0, 0)); /* one ring for an index */
}

static void engines_intel_other(void)
{
    CHECK(passes_gate(2, 0, 1));
}

static void append_returns(void)
{
    open_all();
    gate = new_event();
    OK(ze.list.pfnAppendMemoryCopy(new_immediate(0, false), new_host(8), new_host(8), 8, NULL, 1, &gate));
}

static void append_blocks(void)
{
    struct timespec before, after;
    pthread_t helper;
    open_all();
    gate = new_event();
    CHECK(pthread_create(&helper, NULL, open_gate, NULL) == 0);
    clock_gettime(CLOCK_MONOTONIC, &before);
    OK(ze.list.pfnAppendMemoryCopy(new_immediate(0, false), new_host(8), new_host(8), 8, NULL, 1, &gate));
    clock_gettime(CLOCK_MONOTONIC, &after);
    CHECK((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 >= 50);
    pthread_join(helper, NULL);
}

static unsigned char pageable[SIZE];

static int what_was_read(void)
{
    open_all();
    unsigned char *const back = new_host(SIZE);
    queue = new_queue(0, 0);
    ze_command_list_handle_t list = new_list(0, 0);
    memset(pageable, 1, SIZE);
    copy(list, back, pageable, SIZE);
    close_list(list);
    memset(pageable, 2, SIZE);
    OK(run(queue, list));
    OK(ze.queue.pfnSynchronize(queue, UINT64_MAX));
    return back[0];
}

static void hostptr_start(void)
{
    CHECK(what_was_read() == 2);
}

static void hostptr_append(void)
{
    CHECK(what_was_read() == 1);
}

static void devices(void)
{
    uint32_t n = 0;
    open_all();
    OK(ze.device.pfnGet(the_driver, &n, NULL));
    CHECK(n == 3);
}

/* Discarded work: a wait for its event ends too. */
static void errors_sync_events(void)
{
    unsigned char *host;
    ze_event_handle_t done[2];
    ze_fence_handle_t fence;
    const ze_fence_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC};
    ze_command_list_handle_t list = fault(&host);
    (void)list;
    for (int i = 0; i < 2; i++)
        done[i] = new_event();
    ze_command_list_handle_t signals = new_list(0, 0), other = new_list(2, 0);
    OK(ze.list.pfnAppendSignalEvent(signals, done[0]));
    close_list(signals);
    close_list(other);
    OK(ze.fence.pfnCreate(queue, &desc, &fence));
    OK(ze.queue.pfnExecuteCommandLists(queue, 1, &signals, fence));
    OK(ze.list.pfnAppendSignalEvent(new_immediate(0, false), done[1]));
    IS(ze.event.pfnQueryStatus(done[0]), ZE_RESULT_NOT_READY);
    IS(ze.event.pfnHostSynchronize(done[1], UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
    IS(ze.event.pfnHostSynchronize(done[0], UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
    IS(ze.fence.pfnHostSynchronize(fence, UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
    OK(run(new_queue(2, 3), other));
}

/* On `lazy` a query moves the engine that it looks at, and those which that one waits for. */
static void lazy_looks_only_there(void)
{
    open_all();
    ze_event_handle_t handed = new_event(), done = new_event(), unrelated = new_event();
    unsigned char *const from = new_host(8), *const a = new_host(8), *const b = new_host(8), *const c = new_host(8);
    from[0] = 6;
    ze_command_list_handle_t one = new_immediate(0, false), two = new_immediate(0, false), three = new_immediate(0, false);
    OK(ze.list.pfnAppendMemoryCopy(one, a, from, 8, handed, 0, NULL));
    OK(ze.list.pfnAppendMemoryCopy(two, b, a, 8, done, 1, &handed));
    copy(three, c, from, 8);
    IS(ze.event.pfnQueryStatus(unrelated), ZE_RESULT_NOT_READY);
    CHECK(a[0] == 0 && b[0] == 0 && c[0] == 0);
    OK(ze.event.pfnQueryStatus(done));
    CHECK(a[0] == 6 && b[0] == 6 && c[0] == 0);
    OK(ze.list.pfnHostSynchronize(three, 0));
    CHECK(c[0] == 6);
}

/* Numbers that have ended already or come later do not stop a script; what it does not name ends in waits. */
static void script_details(void)
{
    open_all();
    unsigned char *const from = new_host(8), *const to = new_host(64);
    ze_event_handle_t gate_3 = new_event();
    ze_command_list_handle_t list = new_immediate(0, false);
    from[0] = 1;
    copy(list, to, from, 8);                                                      /* 1: not named */
    copy(list, to + 8, from, 8);                                                  /* 2: first */
    CHECK(to[0] == 0 && to[8] == 1);
    OK(ze.list.pfnAppendMemoryCopy(list, to + 16, from, 8, NULL, 1, &gate_3));    /* 3: cannot yet */
    CHECK(to[16] == 0);
    IS(ze.list.pfnHostSynchronize(list, 10000000), ZE_RESULT_NOT_READY);
    CHECK(to[0] == 1 && to[16] == 0); /* the wait has ended 1 */
    OK(ze.event.pfnHostSignal(gate_3));
    CHECK(to[16] == 1);
    copy(list, to + 24, from, 8); /* 4: named before it comes */
    CHECK(to[24] == 1);
    OK(ze.list.pfnHostSynchronize(list, UINT64_MAX));
}

static void refused(void)
{
    IS(ze.global.pfnInit(0), ZE_RESULT_ERROR_INVALID_ARGUMENT);
}

const test_case knob_cases[] = {
    {"schedule eager", "ZE_SOFT_SCHEDULE=eager", eager, 0},
    {"schedule lazy", "ZE_SOFT_SCHEDULE=lazy", lazy, 0},
    {"schedule lazy, a submit moves", "ZE_SOFT_SCHEDULE=lazy", lazy_submit_moves, 0},
    {"schedule async", "ZE_SOFT_SCHEDULE=async", async, 0},
    {"schedule null", "ZE_SOFT_SCHEDULE=null", null_schedule, 0},
    {"eager keeps order", "ZE_SOFT_SCHEDULE=eager", eager_keeps_order, 0},
    {"async: small overtakes big", "ZE_SOFT_SCHEDULE=async", async_small_overtakes_big, 0},
    {"schedule script", "ZE_SOFT_SCHEDULE=script:two-then-one.script", script_order, 0},
    /* one seed gives one order, and there are seeds for both orders */
    {"schedule seed, the first ends last", "ZE_SOFT_SCHEDULE=seed:9", seed_outcome, 1},
    {"schedule seed, again", "ZE_SOFT_SCHEDULE=seed:9", seed_outcome, 1},
    {"schedule seed, the second ends last", "ZE_SOFT_SCHEDULE=seed:8", seed_outcome, 2},
    {"fault ban", "ZE_SOFT_SCHEDULE=lazy", fault_ban, 0},
    {"fault ban, eager", "ZE_SOFT_SCHEDULE=eager", fault_ban, 0},
    {"fault scratch", "ZE_SOFT_SCHEDULE=lazy ZE_SOFT_FAULT=scratch", fault_scratch, 0},
    {"fault abort", "ZE_SOFT_SCHEDULE=lazy ZE_SOFT_FAULT=abort", fault_abort, -6},
    {"errors at sync", "ZE_SOFT_SCHEDULE=lazy ZE_SOFT_ERRORS=sync", errors_sync, 0},
    {"the sequence after a fault", "ZE_SOFT_SCHEDULE=eager", fault_sequence, 0},
    {"the sequence after a fault, lazy", "ZE_SOFT_SCHEDULE=lazy", fault_sequence, 0},
    {"free faults", "ZE_SOFT_SCHEDULE=lazy", free_faults, 0},
    {"free blocks", "ZE_SOFT_SCHEDULE=async ZE_SOFT_FREE=block", free_blocks, 0},
    {"free blocks, lazy", "ZE_SOFT_SCHEDULE=lazy ZE_SOFT_FREE=block", free_blocks, 0},
    {"free hands the address on", "ZE_SOFT_SCHEDULE=lazy ZE_SOFT_FREE=reuse", free_hands_on, 0},
    {"free policies", "ZE_SOFT_SCHEDULE=async", free_policies, 0},
    {"rebind strict", "ZE_SOFT_SCHEDULE=lazy", rebind_strict, 0},
    {"rebind submit", "ZE_SOFT_SCHEDULE=lazy ZE_SOFT_REBIND=submit", rebind_submit, 0},
    {"engines independent", "ZE_SOFT_SCHEDULE=lazy", engines_independent, 0},
    {"engines shared", "ZE_SOFT_SCHEDULE=lazy ZE_SOFT_ENGINES=shared", engines_shared, 0},
    {"engines intel, same index", "ZE_SOFT_SCHEDULE=async ZE_SOFT_ENGINES=intel", engines_intel_same, 0},
    {"engines intel, other index", "ZE_SOFT_SCHEDULE=async ZE_SOFT_ENGINES=intel", engines_intel_other, 0},
    {"append returns", "ZE_SOFT_SCHEDULE=lazy", append_returns, 0},
    {"append blocks", "ZE_SOFT_SCHEDULE=lazy ZE_SOFT_APPEND=block", append_blocks, 0},
    {"host pointer at start", "ZE_SOFT_SCHEDULE=lazy", hostptr_start, 0},
    {"host pointer at append", "ZE_SOFT_SCHEDULE=lazy ZE_SOFT_HOSTPTR=append", hostptr_append, 0},
    {"errors at sync, events", "ZE_SOFT_SCHEDULE=lazy ZE_SOFT_ERRORS=sync", errors_sync_events, 0},
    {"lazy looks only there", "ZE_SOFT_SCHEDULE=lazy", lazy_looks_only_there, 0},
    {"script details", "ZE_SOFT_SCHEDULE=script:details.script", script_details, 0},
    {"devices", "ZE_SOFT_DEVICES=3", devices, 0},
    {"a budget that is none", "ZE_SOFT_MEMORY=1G", refused, 0},
    {"a value that is none", "ZE_SOFT_FREE=never", refused, 0},
    {"a schedule that is none", "ZE_SOFT_SCHEDULE=seed:", refused, 0},
    {"a script that is not there", "ZE_SOFT_SCHEDULE=script:/nowhere", refused, 0},
    {"a script that is none", "ZE_SOFT_SCHEDULE=script:no.script", refused, 0},
    {"devices that are none", "ZE_SOFT_DEVICES=9", refused, 0},
    {NULL, NULL, NULL, 0}};

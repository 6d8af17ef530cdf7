/* SPDX-License-Identifier: MIT */
/* Replays in a given order: the order of submission is the recorded run, others do what they must. */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs.h"

#define SIZE 4096u

static char folder[] = "/tmp/zetrace-forced-XXXXXX";
static zr_report report;

/* ----------------------------------------------------------------------------------------------------------- harness */

typedef struct line {
    zr_item items[4096];
    size_t n;
} line;

static line given;

static void put(int kind, uint64_t call, uint32_t execution)
{
    given.items[given.n++] = (zr_item){.call = call, .execution = execution, .kind = (uint8_t)kind};
}

static uint32_t handle_of(const zr_call *call, enum zt_role role)
{
    return zr_object_of_role(call, role);
}

/* Every call, and behind each submit the commands it brings, as a program of its own would count them. */
static void as_submitted(const zr_plan *plan)
{
    static struct {
        size_t appends[64];
        size_t n;
    } lists[256];
    static uint32_t executed[4096];
    memset(lists, 0, sizeof(lists));
    memset(executed, 0, sizeof(executed));
    given.n = 0;
    for (size_t at = 0; at < plan->n_calls; at++) {
        const size_t i = plan->order[at];
        const zr_call *const call = &plan->calls[i];
        const uint32_t list = handle_of(call, ZT_R_LIST);
        put(ZR_I_CALL, call->number, 0);
        if (call->result != 0)
            continue;
        if (call->func->kind == ZT_K_APPEND && plan->objects.objects[list].immediate)
            put(ZR_I_COMMAND, call->number, 1);
        else if (call->func->kind == ZT_K_APPEND)
            lists[list].appends[lists[list].n++] = i;
        else if (call->func->kind == ZT_K_RESET)
            lists[call->self].n = 0;
        else if (strcmp(call->func->name, "zeCommandListCreateCloneExp") == 0)
            lists[call->outs[0].index] = lists[call->self];
        if (call->func->kind != ZT_K_EXECUTE)
            continue;
        if (list != ZR_NONE)
            put(ZR_I_COMMAND, call->number, 1);
        for (uint32_t k = 0; k < call->n_fixes; k++) {
            const uint32_t object = call->fixes[k].kind == ZR_FIX_OBJECT ? call->fixes[k].index : ZR_NONE;
            if (object == ZR_NONE || object == list)
                continue;
            for (size_t c = 0; c < lists[object].n; c++)
                put(ZR_I_COMMAND, plan->calls[lists[object].appends[c]].number, ++executed[lists[object].appends[c]]);
        }
        if (list != ZR_NONE)
            put(ZR_I_COMMAND, call->number, 2);
    }
}

static uint64_t nth(const zr_plan *plan, const char *function, unsigned n)
{
    for (size_t i = 0; i < plan->n_calls; i++)
        if (strcmp(plan->calls[i].func->name, function) == 0 && --n == 0)
            return plan->calls[i].number;
    CU_FAIL_FATAL("no such call");
    return 0;
}

static size_t place(int kind, uint64_t call, uint32_t execution)
{
    for (size_t i = 0; i < given.n; i++)
        if (given.items[i].kind == kind && given.items[i].call == call && (kind != ZR_I_COMMAND || given.items[i].execution == execution))
            return i;
    CU_FAIL_FATAL("no such item");
    return 0;
}

static void cut(size_t at)
{
    memmove(&given.items[at], &given.items[at + 1], (given.n - at - 1) * sizeof(*given.items));
    given.n--;
}

/* Moves a command right behind a call. */
static void defer(uint64_t append, uint32_t execution, uint64_t call)
{
    const zr_item item = given.items[place(ZR_I_COMMAND, append, execution)];
    cut(place(ZR_I_COMMAND, append, execution));
    const size_t at = place(ZR_I_CALL, call, 0) + 1;
    memmove(&given.items[at + 1], &given.items[at], (given.n - at) * sizeof(*given.items));
    given.items[at] = item;
    given.n++;
}

static const char *record(const char *name, const char *schedule, void (*program)(hand *h))
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s.zetrace", folder, name);
    CU_ASSERT_TRUE_FATAL(hand_record(path, schedule, program));
    return path;
}

static int forced(const char *path, void (*change)(const zr_plan *plan), const zt_pair *knob)
{
    zt_trace *trace;
    zt_error error = {0};
    zr_plan *plan;
    zr_options options;
    memset(&report, 0, sizeof(report));
    CU_ASSERT_EQUAL_FATAL(zt_trace_open(&trace, path, &error), ZT_OK);
    CU_ASSERT_EQUAL_FATAL(zr_plan_make(&plan, trace, &error), ZT_OK);
    zr_options_default(&options);
    options.soft_library = getenv("TEST_SOFT");
    options.schedule = "eager";
    options.timeout_ns = 1000000000;
    as_submitted(plan);
    if (change != NULL)
        change(plan);
    options.items = given.items;
    options.n_items = given.n;
    options.environment = knob;
    options.n_environment = knob ? 1 : 0;
    const int verdict = zr_replay(plan, &options, &report);
    if (getenv("TEST_VERBOSE"))
        printf("  [%d] %llu made, %llu not, %llu added; %llu mismatches: #%llu %s %s (%s) %s / %s; failed #%llu; stuck %llu #%llu, never %llu; "
               "error #%llu %s; %s\n",
               verdict, (unsigned long long)report.calls, (unsigned long long)report.not_made, (unsigned long long)report.injected,
               (unsigned long long)report.mismatches, (unsigned long long)report.first.call, report.first.function,
               zr_what_name(report.first.what), report.first.detail, report.first.recorded, report.first.replayed,
               (unsigned long long)report.failed_call, (unsigned long long)report.stuck, (unsigned long long)report.first_stuck,
               (unsigned long long)report.never_ran, (unsigned long long)report.error_call, report.error_result, report.message);
    zr_plan_free(plan);
    zt_trace_close(trace);
    return verdict;
}

/* ---------------------------------------------------------------------------------------------------------- programs */

static uint64_t new_immediate(hand *h, const basics *b, uint32_t flags, uint32_t mode)
{
    const ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .flags = flags, .mode = (ze_command_queue_mode_t)mode};
    ze_command_list_handle_t list = NULL;
    CALL(h, "zeCommandListCreateImmediate", W(b->context), W(b->device), W(&desc), W(&list));
    return W(list);
}

static uint64_t filled(hand *h, const basics *b, uint8_t byte)
{
    const uint64_t memory = new_memory(h, b, "zeMemAllocHost", SIZE);
    memset((void *)(uintptr_t)memory, byte, SIZE);
    hand_contents(h, ZT_C_USM, (void *)(uintptr_t)memory, SIZE); /* goes with the next call */
    return memory;
}

/* Two lists in one submit, twice, with a fence; the lists are reset and made anew between. */
static void fences(hand *h)
{
    basics b;
    start(h, &b);
    const uint64_t device = new_memory(h, &b, "zeMemAllocDevice", SIZE), back = new_memory(h, &b, "zeMemAllocHost", SIZE);
    uint64_t lists[2] = {new_list(h, &b), new_list(h, &b)};
    const ze_fence_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC};
    ze_fence_handle_t fence = NULL;
    CALL(h, "zeFenceCreate", W(b.queue), W(&desc), W(&fence));
    for (unsigned round = 0; round < 2; round++) {
        const uint32_t pattern = 0x11111111u * (round + 1);
        CALL(h, "zeCommandListAppendMemoryFill", lists[0], device, W(&pattern), 4, SIZE, 0, 0, 0);
        CALL(h, "zeCommandListAppendBarrier", lists[0], 0, 0, 0);
        CALL(h, "zeCommandListClose", lists[0]);
        CALL(h, "zeCommandListAppendBarrier", lists[1], 0, 0, 0);
        CALL(h, "zeCommandListAppendMemoryCopy", lists[1], back, device, SIZE, 0, 0, 0);
        CALL(h, "zeCommandListClose", lists[1]);
        CALL(h, "zeFenceQueryStatus", W(fence));
        CALL(h, "zeCommandQueueExecuteCommandLists", W(b.queue), 2, W(lists), W(fence));
        hand_contents(h, ZT_C_READBACK, (void *)(uintptr_t)back, SIZE);
        CALL(h, "zeFenceHostSynchronize", W(fence), UINT64_MAX);
        CALL(h, "zeFenceReset", W(fence));
        CALL(h, "zeCommandListReset", lists[0]);
        CALL(h, "zeCommandListReset", lists[1]);
    }
    CALL(h, "zeFenceDestroy", W(fence));
    CALL(h, "zeCommandListDestroy", lists[0]);
    CALL(h, "zeCommandListDestroy", lists[1]);
    CALL(h, "zeCommandQueueDestroy", W(b.queue));
}

/* An in-order immediate list, another that waits for its counter-based event, and a synchronous one. */
static void in_order(hand *h)
{
    basics b;
    start(h, &b);
    const ze_event_counter_based_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC,
                                                .flags = ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE | ZE_EVENT_COUNTER_BASED_FLAG_HOST_VISIBLE,
                                                .signal = ZE_EVENT_SCOPE_FLAG_HOST};
    ze_event_handle_t counter = NULL;
    CALL(h, "zeEventCounterBasedCreate", W(b.context), W(b.device), W(&desc), W(&counter));
    const uint64_t from = filled(h, &b, 5), device = new_memory(h, &b, "zeMemAllocDevice", SIZE),
                   back = new_memory(h, &b, "zeMemAllocHost", SIZE);
    const uint64_t one = new_immediate(h, &b, ZE_COMMAND_QUEUE_FLAG_IN_ORDER, 0),
                   two = new_immediate(h, &b, ZE_COMMAND_QUEUE_FLAG_IN_ORDER, 0),
                   blocking = new_immediate(h, &b, 0, ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS);
    for (unsigned round = 0; round < 3; round++) {
        CALL(h, "zeCommandListAppendMemoryCopy", one, device, from, SIZE, W(counter), 0, 0);
        CALL(h, "zeCommandListAppendMemoryCopy", two, back, device, SIZE, W(counter), 1, W(&counter));
        hand_contents(h, ZT_C_READBACK, (void *)(uintptr_t)back, SIZE);
        CALL(h, "zeEventHostSynchronize", W(counter), UINT64_MAX);
        CALL(h, "zeCommandListHostSynchronize", two, UINT64_MAX);
    }
    const uint8_t pattern = 9;
    hand_contents(h, ZT_C_READBACK, (void *)(uintptr_t)back, SIZE);
    CALL(h, "zeCommandListAppendMemoryFill", blocking, back, W(&pattern), 1, SIZE, 0, 0, 0);
    CALL(h, "zeCommandListDestroy", one);
    CALL(h, "zeCommandListDestroy", two);
    CALL(h, "zeCommandListDestroy", blocking);
}

/* A regular list on an immediate one, between a wait and a signal, twice. */
static void lists_on_immediate(hand *h)
{
    basics b;
    start(h, &b);
    uint64_t before = new_event(h, &b, 0);
    const uint64_t after = new_event(h, &b, 1), immediate = new_immediate(h, &b, 0, 0);
    uint64_t list = new_list(h, &b);
    const uint64_t from = filled(h, &b, 6), back = new_memory(h, &b, "zeMemAllocHost", SIZE);
    CALL(h, "zeCommandListAppendMemoryCopy", list, back, from, SIZE, 0, 0, 0);
    CALL(h, "zeCommandListClose", list);
    CALL(h, "zeEventHostSignal", before);
    CALL(h, "zeCommandListImmediateAppendCommandListsExp", immediate, 1, W(&list), after, 1, W(&before));
    hand_contents(h, ZT_C_READBACK, (void *)(uintptr_t)back, SIZE);
    CALL(h, "zeEventHostSynchronize", after, UINT64_MAX);
    CALL(h, "zeEventHostReset", after);
    CALL(h, "zeCommandListImmediateAppendCommandListsExp", immediate, 1, W(&list), after, 0, 0);
    CALL(h, "zeEventHostSynchronize", after, UINT64_MAX);
    CALL(h, "zeCommandListHostSynchronize", immediate, UINT64_MAX);
}

/* libze_soft cannot clone: what a clone would have done is done by hand. */
static void clone_list(hand *h)
{
    basics b;
    start(h, &b);
    const uint64_t source = filled(h, &b, 3), back = new_memory(h, &b, "zeMemAllocHost", SIZE), list = new_list(h, &b);
    uint64_t clone = 0xc10e0;
    uint8_t *const from = (uint8_t *)(uintptr_t)source, *const to = (uint8_t *)(uintptr_t)back;
    CALL(h, "zeCommandListAppendMemoryCopy", list, back, source, SIZE, 0, 0, 0);
    CALL(h, "zeCommandListClose", list);
    hand_pretend(h, "zeCommandListCreateCloneExp", (const uint64_t[]){list, W(&clone)}, 0);
    for (unsigned round = 0; round < 3; round++) {
        memset(from, (int)round + 7, SIZE);
        hand_contents(h, ZT_C_OPERAND, from, SIZE);
        if (round == 1)
            execute(h, &b, list);
        else
            hand_pretend(h, "zeCommandQueueExecuteCommandLists", (const uint64_t[]){W(b.queue), 1, W(&clone), 0}, 0);
        if (round != 1)
            memcpy(to, from, SIZE);
        hand_contents(h, ZT_C_READBACK, to, SIZE);
        sync_queue(h, &b);
    }
    CALL(h, "zeCommandListDestroy", list);
    hand_pretend(h, "zeCommandListDestroy", (const uint64_t[]){clone}, 0);
}

/* Two copies to the same place that nothing orders: the second ends last here. */
static void overlap(hand *h)
{
    basics b;
    start(h, &b);
    const uint64_t big = filled(h, &b, 1), list = new_immediate(h, &b, 0, 0), small = filled(h, &b, 2),
                   to = new_memory(h, &b, "zeMemAllocHost", SIZE);
    CALL(h, "zeCommandListAppendMemoryCopy", list, to, big, SIZE, 0, 0, 0);
    CALL(h, "zeCommandListAppendMemoryCopy", list, to, small, 64, 0, 0, 0);
    hand_contents(h, ZT_C_READBACK, (void *)(uintptr_t)to, SIZE);
    CALL(h, "zeCommandListHostSynchronize", list, UINT64_MAX);
}

/* Writes an operand again while the copy that reads it may be in flight. */
static void overwrite(hand *h)
{
    static uint8_t source[SIZE];
    basics b;
    start(h, &b);
    uint64_t event = new_event(h, &b, 0);
    const uint64_t to = new_memory(h, &b, "zeMemAllocHost", SIZE), list = new_list(h, &b);
    CALL(h, "zeCommandListAppendMemoryCopy", list, to, W(source), SIZE, 0, 0, 0);
    CALL(h, "zeCommandListClose", list);
    memset(source, 1, SIZE);
    hand_contents(h, ZT_C_OPERAND, source, SIZE);
    execute(h, &b, list);
    memset(source, 2, SIZE);
    hand_contents(h, ZT_C_OPERAND, source, SIZE);
    CALL(h, "zeEventHostSignal", event);
    hand_contents(h, ZT_C_READBACK, (void *)(uintptr_t)to, SIZE);
    sync_queue(h, &b);
}

/* The list goes while its copy waits for an event: the copy is lost, and waits for it say so. */
static void lost_with_its_list(hand *h)
{
    basics b;
    start(h, &b);
    uint64_t event = new_event(h, &b, 0);
    const uint64_t from = filled(h, &b, 3), list = new_list(h, &b), to = new_memory(h, &b, "zeMemAllocHost", SIZE);
    CALL(h, "zeCommandListAppendMemoryCopy", list, to, from, SIZE, 0, 1, W(&event));
    CALL(h, "zeCommandListClose", list);
    execute(h, &b, list);
    CALL(h, "zeCommandListDestroy", list);
    CALL(h, "zeEventHostSignal", event);
    sync_queue(h, &b);
    CALL(h, "zeCommandQueueDestroy", W(b.queue));
}

/* What is never signalled is waited for. */
static void never(hand *h)
{
    basics b;
    start(h, &b);
    uint64_t event = new_event(h, &b, 0);
    const uint64_t list = new_list(h, &b);
    CALL(h, "zeCommandListAppendWaitOnEvents", list, 1, W(&event));
    CALL(h, "zeCommandListAppendBarrier", list, 0, 0, 0);
    CALL(h, "zeCommandListClose", list);
    execute(h, &b, list);
    CALL(h, "zeCommandQueueSynchronize", W(b.queue), 1000000);
}

/* The evict program on an immediate list. */
static void evict_immediate(hand *h)
{
    basics b;
    start(h, &b);
    const uint64_t from = new_memory(h, &b, "zeMemAllocDevice", SIZE), to = new_memory(h, &b, "zeMemAllocDevice", SIZE),
                   list = new_immediate(h, &b, 0, 0);
    CALL(h, "zeCommandListAppendMemoryCopy", list, to, from, SIZE, 0, 0, 0);
    CALL(h, "zeContextEvictMemory", W(b.context), W(b.device), to, SIZE);
    CALL(h, "zeMemFree", W(b.context), to);
    for (unsigned i = 0; i < 3; i++)
        CALL(h, "zeCommandListAppendBarrier", list, 0, 0, 0);
    CALL(h, "zeCommandListHostSynchronize", list, UINT64_MAX);
}

/* More commands than a pool has events, on two contexts. */
static void many(hand *h)
{
    basics b;
    start(h, &b);
    for (unsigned round = 0; round < 2; round++) {
        const ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
        const ze_command_queue_desc_t queue = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS};
        CALL(h, "zeContextCreate", W(b.driver), W(&desc), W(&b.context));
        CALL(h, "zeCommandQueueCreate", W(b.context), W(b.device), W(&queue), W(&b.queue));
        const uint64_t back = new_memory(h, &b, "zeMemAllocHost", SIZE), list = new_list(h, &b);
        for (unsigned i = 0; i < 50; i++) {
            const uint8_t pattern = (uint8_t)(i + round);
            CALL(h, "zeCommandListAppendMemoryFill", list, back + i * 64, W(&pattern), 1, 64, 0, 0, 0);
        }
        CALL(h, "zeCommandListClose", list);
        for (unsigned i = 0; i < 6; i++)
            execute(h, &b, list);
        hand_contents(h, ZT_C_READBACK, (void *)(uintptr_t)back, SIZE);
        sync_queue(h, &b);
        CALL(h, "zeCommandListDestroy", list);
        CALL(h, "zeMemFree", W(b.context), back);
        CALL(h, "zeCommandQueueDestroy", W(b.queue));
        CALL(h, "zeContextDestroy", W(b.context));
    }
}

/* ------------------------------------------------------------------------------------------------------------- tests */

static void test_as_submitted(void)
{
    static const struct {
        const char *name;
        void (*program)(hand *h);
        bool compares;
    } programs[] = {{"evict_good", evict_good, false}, {"host_memory", host_memory, true}, {"gate", gate, false},
                    {"fences", fences, true},          {"in_order", in_order, true},       {"lists_on_immediate", lists_on_immediate, true},
                    {"overlap", overlap, true},        {"clone", clone_list, true},          {"many", many, true},               {"two_threads", two_threads, false}};
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        const char *const trace = record(programs[i].name, "eager", programs[i].program);
        const int verdict = forced(trace, NULL, NULL);
        if (verdict != ZR_SAME || report.stuck != 0 || report.not_made != 0 || report.error_call != 0)
            printf("%s: verdict %d, %llu stuck, #%llu %s; %s\n", programs[i].name, verdict, (unsigned long long)report.stuck,
                   (unsigned long long)report.first.call, report.first.function, report.message);
        CU_ASSERT_EQUAL(verdict, ZR_SAME);
        CU_ASSERT_EQUAL(report.mismatches, 0);
        CU_ASSERT_EQUAL(report.not_made, 0);
        CU_ASSERT_EQUAL(report.error_call, 0);
        CU_ASSERT_EQUAL(report.compared > 0, programs[i].compares);
        CU_ASSERT_EQUAL(report.stuck, i == 2 ? report.stuck : 0); /* gate: the wait comes before the signal in this order */
        CU_ASSERT_EQUAL(report.never_ran, 0);
        CU_ASSERT_TRUE(report.injected > 0 || programs[i].program == two_threads);
    }
}

static void evict_first(const zr_plan *plan)
{
    defer(nth(plan, "zeCommandListAppendMemoryCopy", 1), 1, nth(plan, "zeContextEvictMemory", 1));
}

static void test_evict(void)
{
    char good[256], bad[256];
    snprintf(bad, sizeof(bad), "%s", record("bad", "lazy", evict_bad));
    snprintf(good, sizeof(good), "%s", record("good", "eager", evict_bad));
    for (unsigned i = 0; i < 20; i++) {
        CU_ASSERT_EQUAL(forced(good, NULL, NULL), ZR_SAME);
        CU_ASSERT_EQUAL(report.error_call, 0);
        CU_ASSERT_EQUAL(forced(good, evict_first, NULL), ZR_DIFFERS);
        CU_ASSERT_STRING_EQUAL(report.first.function, "zeCommandQueueExecuteCommandLists");
        CU_ASSERT_STRING_EQUAL(report.first.replayed, "ZE_RESULT_ERROR_UNKNOWN");
        CU_ASSERT_EQUAL(report.error_call, report.first.call);
        CU_ASSERT_STRING_EQUAL(report.error_function, "zeCommandQueueExecuteCommandLists");
        CU_ASSERT_STRING_EQUAL(report.error_result, "ZE_RESULT_ERROR_UNKNOWN");
        CU_ASSERT_EQUAL(report.stuck, 0);
        CU_ASSERT_EQUAL(forced(bad, evict_first, NULL), ZR_SAME);
        CU_ASSERT_STRING_EQUAL(report.failed_function, "zeCommandQueueExecuteCommandLists");
        CU_ASSERT_EQUAL(forced(bad, NULL, NULL), ZR_DIFFERS);
        CU_ASSERT_STRING_EQUAL(report.first.replayed, "ZE_RESULT_SUCCESS");
        CU_ASSERT_EQUAL(report.error_call, 0);
    }
    const zt_pair shared = {(char[]){"ZE_SOFT_ENGINES"}, (char[]){"shared"}}; /* one submit at a time: no gate is in the way */
    CU_ASSERT_EQUAL(forced(good, evict_first, &shared), ZR_DIFFERS);
}

static void test_evict_immediate(void)
{
    CU_ASSERT_EQUAL(forced(record("immediate", "eager", evict_immediate), evict_first, NULL), ZR_DIFFERS);
    CU_ASSERT_EQUAL(report.mismatches, 6); /* three appends, the wait, and what is drained: the list and the queue */
    CU_ASSERT_STRING_EQUAL(report.first.function, "zeCommandListAppendBarrier");
    CU_ASSERT_STRING_EQUAL(report.first.replayed, "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY");
    CU_ASSERT_EQUAL(forced(record("immediate", "lazy", evict_immediate), evict_first, NULL), ZR_SAME);
    CU_ASSERT_STRING_EQUAL(report.failed_result, "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY");
    CU_ASSERT_EQUAL(report.stuck, 0);
}

static void big_last(const zr_plan *plan)
{
    defer(nth(plan, "zeCommandListAppendMemoryCopy", 1), 1, nth(plan, "zeCommandListAppendMemoryCopy", 2));
    const size_t first = place(ZR_I_COMMAND, nth(plan, "zeCommandListAppendMemoryCopy", 1), 1);
    const zr_item item = given.items[first]; /* now behind the small one's call, and before its command */
    given.items[first] = given.items[first + 1];
    given.items[first + 1] = item;
}

static void test_overlap(void)
{
    CU_ASSERT_EQUAL(forced(record("overlap", "eager", overlap), big_last, NULL), ZR_DIFFERS);
    CU_ASSERT_EQUAL(report.first.what, ZR_W_MEMORY);
    CU_ASSERT_STRING_EQUAL(report.first.detail, "mem#3+0, 64 of 4096 bytes differ");
    CU_ASSERT_STRING_EQUAL(report.first.recorded, "0x02");
    CU_ASSERT_STRING_EQUAL(report.first.replayed, "0x01");
}

static void write_early(const zr_plan *plan)
{
    const size_t at = place(ZR_I_COMMAND, nth(plan, "zeCommandListAppendMemoryCopy", 1), 1);
    memmove(&given.items[at + 1], &given.items[at], (given.n++ - at) * sizeof(*given.items));
    given.items[at] = (zr_item){.call = nth(plan, "zeEventHostSignal", 1), .kind = ZR_I_WRITE};
}

/* The copy runs behind the call, but before what the program had written by then. */
static void write_late(const zr_plan *plan)
{
    defer(nth(plan, "zeCommandListAppendMemoryCopy", 1), 1, nth(plan, "zeEventHostSignal", 1));
    const size_t at = place(ZR_I_COMMAND, nth(plan, "zeCommandListAppendMemoryCopy", 1), 1) + 1;
    memmove(&given.items[at + 1], &given.items[at], (given.n++ - at) * sizeof(*given.items));
    given.items[at] = (zr_item){.call = nth(plan, "zeEventHostSignal", 1), .kind = ZR_I_WRITE};
}

static void copy_late(const zr_plan *plan)
{
    defer(nth(plan, "zeCommandListAppendMemoryCopy", 1), 1, nth(plan, "zeEventHostSignal", 1));
}

static void test_writes(void)
{
    const char *const trace = record("overwrite", "eager", overwrite);
    CU_ASSERT_EQUAL(forced(trace, NULL, NULL), ZR_SAME);
    CU_ASSERT_EQUAL(forced(trace, write_late, NULL), ZR_SAME);
    CU_ASSERT_EQUAL(forced(trace, write_early, NULL), ZR_DIFFERS);
    CU_ASSERT_STRING_EQUAL(report.first.replayed, "0x02");
    CU_ASSERT_EQUAL(forced(trace, copy_late, NULL), ZR_DIFFERS);
    CU_ASSERT_STRING_EQUAL(report.first.replayed, "0x02");
}

static void behind_destroy(const zr_plan *plan)
{
    defer(nth(plan, "zeCommandListAppendMemoryCopy", 1), 1, nth(plan, "zeEventHostSignal", 1));
}

static void test_lost_with_its_list(void)
{
    const char *const trace = record("lost", "eager", lost_with_its_list);
    CU_ASSERT_EQUAL(forced(trace, behind_destroy, NULL), ZR_SAME);
    CU_ASSERT_STRING_EQUAL(report.failed_function, "zeCommandQueueSynchronize");
    CU_ASSERT_STRING_EQUAL(report.failed_result, "ZE_RESULT_ERROR_DEVICE_LOST");
    CU_ASSERT_EQUAL(report.stuck, 1);
    const zt_pair keep = {(char[]){"ZE_SOFT_DESTROY"}, (char[]){"keep"}};
    CU_ASSERT_EQUAL(forced(trace, behind_destroy, &keep), ZR_DIFFERS);
    CU_ASSERT_STRING_EQUAL(report.first.replayed, "ZE_RESULT_SUCCESS");
    CU_ASSERT_EQUAL(report.stuck, 0);
}

static void test_lost_with_its_clone(void)
{
    CU_ASSERT_EQUAL(forced(record("clone-goes", "eager", clone_goes), behind_destroy, NULL), ZR_SAME);
    CU_ASSERT_STRING_EQUAL(report.failed_result, "ZE_RESULT_ERROR_DEVICE_LOST");
    CU_ASSERT_EQUAL(report.stuck, 1);
    CU_ASSERT_EQUAL(forced(record("original-goes", "eager", original_goes), behind_destroy, NULL), ZR_SAME);
    CU_ASSERT_EQUAL(report.stuck, 0);
}

static void nothing_named(const zr_plan *plan)
{
    (void)plan;
    for (size_t i = given.n; i-- > 0;)
        if (given.items[i].kind == ZR_I_COMMAND)
            cut(i);
}

static void half(const zr_plan *plan)
{
    (void)plan;
    given.n /= 2;
}

static void unknown_call(const zr_plan *plan)
{
    (void)plan;
    put(ZR_I_CALL, 100000, 0);
}

static void test_counts(void)
{
    char trace[256];
    snprintf(trace, sizeof(trace), "%s", record("never", "eager", never));
    CU_ASSERT_EQUAL(forced(trace, NULL, NULL), ZR_SAME);
    CU_ASSERT_EQUAL(report.stuck, 1); /* the barrier has a carrier of its own */
    CU_ASSERT_EQUAL(report.never_ran, 1);
    CU_ASSERT_EQUAL(report.first_stuck + 3, report.calls - 1);
    snprintf(trace, sizeof(trace), "%s", record("good", "eager", evict_good));
    CU_ASSERT_EQUAL(forced(trace, half, NULL), ZR_SAME);
    CU_ASSERT_TRUE(report.not_made > 0);
    CU_ASSERT_EQUAL(forced(trace, unknown_call, NULL), ZR_CANNOT);
    CU_ASSERT_STRING_EQUAL(report.message, "the order names call #100000, which the trace does not hold");
    snprintf(trace, sizeof(trace), "%s", record("overlap", "eager", overlap));
    CU_ASSERT_EQUAL(forced(trace, nothing_named, NULL), ZR_DIFFERS); /* the read-back came before all commands */
    CU_ASSERT_EQUAL(report.never_ran, 2);
    CU_ASSERT_EQUAL(report.stuck, 0);
    /* eager: waiting does not help */
    CU_ASSERT_EQUAL(forced(record("lists", "eager", lists_on_immediate), nothing_named, NULL), ZR_DIFFERS);
    CU_ASSERT_PTR_NOT_NULL(strstr(report.message, "not within 0.02 s"));
}

int main(void)
{
    if (mkdtemp(folder) == NULL || CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("forced", NULL, NULL);
    CU_ADD_TEST(suite, test_as_submitted);
    CU_ADD_TEST(suite, test_evict);
    CU_ADD_TEST(suite, test_evict_immediate);
    CU_ADD_TEST(suite, test_overlap);
    CU_ADD_TEST(suite, test_writes);
    CU_ADD_TEST(suite, test_lost_with_its_list);
    CU_ADD_TEST(suite, test_lost_with_its_clone);
    CU_ADD_TEST(suite, test_counts);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    const unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return failed != 0 || system(command) != 0;
}

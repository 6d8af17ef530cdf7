/* SPDX-License-Identifier: MIT */
/* The replayer against traces recorded by hand on libze_soft, right ones and wrong ones. */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs.h"

static char folder[] = "/tmp/zetrace-replay-XXXXXX";
static char path[256];
static zr_report report;

static int replay(const char *file, const char *schedule, void (*set)(zr_options *o))
{
    zt_trace *trace;
    zt_error error = {0};
    zr_plan *plan;
    zr_options options;
    memset(&report, 0, sizeof(report));
    report.verdict = -1;
    if (zt_trace_open(&trace, file, &error) != ZT_OK) {
        printf("%s\n", error.text);
        return -1;
    }
    zr_options_default(&options);
    options.soft_library = getenv("TEST_SOFT");
    options.schedule = schedule;
    if (set != NULL)
        set(&options);
    if (zr_plan_make(&plan, trace, &error) == ZT_OK) {
        zr_replay(plan, &options, &report);
        zr_plan_free(plan);
    } else {
        printf("%s\n", error.text);
    }
    zt_trace_close(trace);
    if (getenv("TEST_VERBOSE"))
        printf("  [%d] %llu made, %llu not; %llu mismatches: #%llu %s %s (%s) %s / %s; failed #%llu %s; %s\n",
               report.verdict, (unsigned long long)report.calls, (unsigned long long)report.not_made,
               (unsigned long long)report.mismatches, (unsigned long long)report.first.call, report.first.function,
               zr_what_name(report.first.what), report.first.detail, report.first.recorded, report.first.replayed,
               (unsigned long long)report.failed_call, report.failed_function, report.message);
    return report.verdict;
}

static const char *record(const char *name, const char *schedule, void (*program)(hand *h))
{
    snprintf(path, sizeof(path), "%s/%s.zetrace", folder, name);
    CU_ASSERT_TRUE_FATAL(hand_record(path, schedule, program));
    return path;
}

static void one_thread(zr_options *o)
{
    o->threads = ZR_THREADS_ONE;
}

static void test_evict(void)
{
    const char *const bad = record("bad", "lazy", evict_bad);
    for (int i = 0; i < 100; i++) {
        CU_ASSERT_EQUAL_FATAL(replay(bad, NULL, i & 1 ? one_thread : NULL), ZR_SAME);
        CU_ASSERT_STRING_EQUAL(report.failed_function, "zeCommandQueueExecuteCommandLists");
        CU_ASSERT_STRING_EQUAL(report.failed_result, "ZE_RESULT_ERROR_UNKNOWN");
    }
    const uint64_t failed = report.failed_call;
    CU_ASSERT_EQUAL(replay(bad, "eager", NULL), ZR_DIFFERS);
    CU_ASSERT_EQUAL(report.first.call, failed);
    CU_ASSERT_EQUAL(report.first.what, ZR_W_RESULT);
    CU_ASSERT_STRING_EQUAL(report.first.function, "zeCommandQueueExecuteCommandLists");
    CU_ASSERT_STRING_EQUAL(report.first.recorded, "ZE_RESULT_ERROR_UNKNOWN");
    CU_ASSERT_STRING_EQUAL(report.first.replayed, "ZE_RESULT_SUCCESS");
}

static void test_twin(void)
{
    static const char *const schedules[] = {NULL, "async", "eager", "lazy", "seed:1", "seed:2", "seed:99"};
    const char *const good = record("good", "lazy", evict_good);
    for (size_t i = 0; i < sizeof(schedules) / sizeof(schedules[0]); i++)
        CU_ASSERT_EQUAL(replay(good, schedules[i], NULL), ZR_SAME);
    CU_ASSERT_EQUAL(report.failed_call, 0);
}

static void test_queries(void)
{
    CU_ASSERT_EQUAL(replay(record("queries", "", many_queries), NULL, NULL), ZR_SAME);
    CU_ASSERT_EQUAL(report.mapped, 0);
}

static void test_memory(void)
{
    static const char *const schedules[] = {"lazy", "eager", "async"};
    const char *const trace = record("memory", "lazy", host_memory);
    for (size_t i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(replay(trace, schedules[i], NULL), ZR_SAME);
        CU_ASSERT_EQUAL(report.compared, 3 * 2 * 4096);
    }
}

static void wrong_byte(hand *h)
{
    static uint8_t source[64], back[64];
    basics b;
    start(h, &b);
    const uint64_t device = new_memory(h, &b, "zeMemAllocHost", 64), list = new_list(h, &b);
    memset(source, 7, sizeof(source));
    CALL(h, "zeCommandListAppendMemoryCopy", list, device, W(source), 64, 0, 0, 0);
    CALL(h, "zeCommandListClose", list);
    hand_contents(h, ZT_C_OPERAND, source, sizeof(source));
    execute(h, &b, list);
    hand_contents(h, ZT_C_READBACK, (void *)(uintptr_t)device, 64);
    sync_queue(h, &b);
    uint8_t *const bytes = (uint8_t *)(uintptr_t)hand_last(h)->contents[0].data;
    bytes[13] = 8;
    bytes[40] = 9;
    (void)back;
}

static void test_wrong_byte(void)
{
    CU_ASSERT_EQUAL(replay(record("byte", "lazy", wrong_byte), NULL, NULL), ZR_DIFFERS);
    CU_ASSERT_EQUAL(report.mismatches, 1);
    CU_ASSERT_EQUAL(report.first.what, ZR_W_MEMORY);
    CU_ASSERT_STRING_EQUAL(report.first.function, "zeCommandQueueSynchronize");
    CU_ASSERT_STRING_EQUAL(report.first.detail, "mem#1+13, 2 of 64 bytes differ");
    CU_ASSERT_STRING_EQUAL(report.first.recorded, "0x08");
    CU_ASSERT_STRING_EQUAL(report.first.replayed, "0x07");
}

static zr_item taken[2];
static size_t n_taken;

static void take(zr_options *o)
{
    o->taken = taken;
    o->n_taken = n_taken;
}

static void test_taken(void)
{
    const char *const trace = record("taken", "lazy", wrong_byte);
    replay(trace, NULL, NULL);
    taken[0] = (zr_item){.call = report.first.call, .execution = 1, .kind = ZR_I_WRITE, .from = 10, .size = 8};
    taken[1] = (zr_item){.call = report.first.call, .execution = 1, .kind = ZR_I_WRITE, .from = 40, .size = UINT64_MAX};
    n_taken = 1;
    CU_ASSERT_EQUAL(replay(trace, NULL, take), ZR_DIFFERS);
    CU_ASSERT_STRING_EQUAL(report.first.detail, "mem#1+40, 1 of 64 bytes differ");
    CU_ASSERT_EQUAL(report.taken, 1);
    n_taken = 2;
    CU_ASSERT_EQUAL(replay(trace, NULL, take), ZR_SAME);
    CU_ASSERT_EQUAL(report.taken, 2);
    taken[0].execution = 2; /* there is none */
    CU_ASSERT_EQUAL(replay(trace, NULL, take), ZR_DIFFERS);
    taken[0].call = 1000;
    CU_ASSERT_EQUAL(replay(trace, NULL, take), ZR_DIFFERS);
}

static void test_gate(void)
{
    const char *const trace = record("gate", "async", gate);
    CU_ASSERT_EQUAL(replay(trace, NULL, NULL), ZR_SAME);
    CU_ASSERT_EQUAL(replay(trace, "lazy", NULL), ZR_SAME);
    CU_ASSERT_EQUAL(replay(trace, "eager", NULL), ZR_SAME);
}

static void test_threads(void)
{
    const char *const trace = record("threads", "", two_threads);
    for (int i = 0; i < 20; i++) {
        CU_ASSERT_EQUAL(replay(trace, NULL, NULL), ZR_SAME);
        CU_ASSERT_EQUAL(replay(trace, NULL, one_thread), ZR_SAME);
    }
    const char *const early = record("early", "", early_waiter);
    CU_ASSERT_EQUAL(replay(early, NULL, NULL), ZR_SAME);
    CU_ASSERT_EQUAL(replay(early, NULL, one_thread), ZR_SAME);
}

static void test_many_threads(void)
{
    const char *const trace = record("eight", "", eight_threads);
    for (int i = 0; i < 5; i++) {
        CU_ASSERT_EQUAL(replay(trace, NULL, NULL), ZR_SAME);
        CU_ASSERT_EQUAL(report.calls, 8 + 8 * 300 * 8);
        CU_ASSERT_EQUAL(replay(trace, NULL, one_thread), ZR_SAME);
        CU_ASSERT_EQUAL(report.calls, 8 + 8 * 300 * 8);
    }
}

static void short_timeout(zr_options *o)
{
    o->timeout_ns = 200000000;
}

/* A wait that had its answer, in a trace whose signal comes only behind it. */
static void never_signalled(hand *h)
{
    basics b;
    start(h, &b);
    const uint64_t event = new_event(h, &b, 0);
    hand_pretend(h, "zeEventHostSynchronize", (const uint64_t[]){event, UINT64_MAX}, 0);
    CALL(h, "zeEventHostSignal", event);
}

static void test_blocked(void)
{
    CU_ASSERT_EQUAL(replay(record("blocked", "", never_signalled), NULL, short_timeout), ZR_DIFFERS);
    CU_ASSERT_PTR_NOT_NULL(strstr(report.message, "zeEventHostSynchronize(event#1)"));
    CU_ASSERT_PTR_NOT_NULL(strstr(report.message, "signals event#1 only at call #10"));
}

static void no_such_handle(hand *h)
{
    basics b;
    start(h, &b);
    hand_pretend(h, "zeEventHostSignal", (const uint64_t[]){0x12345678}, 0);
}

static void test_missing_handle(void)
{
    CU_ASSERT_EQUAL(replay(record("handle", "", no_such_handle), NULL, NULL), ZR_CANNOT);
    CU_ASSERT_PTR_NOT_NULL(strstr(report.message, "0x12345678"));
    CU_ASSERT_PTR_NOT_NULL(strstr(report.message, "#8 zeEventHostSignal"));
}

/* A function of a later version of the API. */
static void future(hand *h)
{
    static const zt_func later = {.name = "zeContextFoldSpaceExp", .kind = ZT_K_OTHER, .n_words = 1};
    basics b;
    start(h, &b);
    hand_pretend(h, "zeContextDestroy", (const uint64_t[]){0}, 0);
    hand_last(h)->func = &later;
}

static void test_unknown_function(void)
{
    CU_ASSERT_EQUAL(replay(record("future", "", future), NULL, NULL), ZR_CANNOT);
    CU_ASSERT_PTR_NOT_NULL(strstr(report.message, "call #8 zeContextFoldSpaceExp cannot be made again"));
}

static void wrong_output(hand *h)
{
    basics b;
    start(h, &b);
    uint32_t n = 0;
    CALL(h, "zeDeviceGetCommandQueueGroupProperties", W(b.device), W(&n), 0);
    zt_call *const call = hand_last(h);
    *(uint32_t *)(uintptr_t)call->out[0].data = 77;
}

static void test_wrong_output(void)
{
    CU_ASSERT_EQUAL(replay(record("output", "", wrong_output), NULL, NULL), ZR_DIFFERS);
    CU_ASSERT_EQUAL(report.first.what, ZR_W_OUTPUT);
    CU_ASSERT_STRING_EQUAL(report.first.recorded, "77");
    CU_ASSERT_STRING_EQUAL(report.first.detail, "pCount");
}

static void no_driver(zr_options *o)
{
    o->driver = "/nowhere/libze.so";
}

static void no_library(zr_options *o)
{
    o->driver = "/etc/passwd";
}

static void device_nine(zr_options *o)
{
    o->device = 9;
}

static void test_cannot(void)
{
    const char *const trace = record("cannot", "lazy", evict_good);
    CU_ASSERT_EQUAL(replay(trace, NULL, no_driver), ZR_CANNOT);
    CU_ASSERT_PTR_NOT_NULL(strstr(report.message, "/nowhere/libze.so"));
    CU_ASSERT_EQUAL(replay(trace, NULL, no_library), ZR_CANNOT);
    CU_ASSERT_PTR_NOT_NULL(strstr(report.message, "cannot be loaded"));
    CU_ASSERT_EQUAL(replay(trace, NULL, device_nine), ZR_CANNOT);
    CU_ASSERT_PTR_NOT_NULL(strstr(report.message, "device 9"));
    CU_ASSERT_EQUAL(replay(trace, "sideways", NULL), ZR_CANNOT);
    CU_ASSERT_PTR_NOT_NULL(strstr(report.message, "zeInit"));
}

static void to_twelve(zr_options *o)
{
    o->to = 12;
}

static void from_end(zr_options *o)
{
    o->from = 1000;
}

static void dry(zr_options *o)
{
    o->dry_run = true;
}

static void thrice(zr_options *o)
{
    o->loop = 3;
}

static void none(zr_options *o)
{
    o->verify = ZR_VERIFY_NONE;
}

static void test_range(void)
{
    const char *const bad = record("range", "lazy", evict_bad);
    CU_ASSERT_EQUAL(replay(bad, "eager", to_twelve), ZR_SAME);
    CU_ASSERT_EQUAL(report.calls, 12);
    CU_ASSERT_EQUAL(replay(bad, "eager", from_end), ZR_SAME);
    CU_ASSERT(report.calls > 30);
    CU_ASSERT_EQUAL(replay(bad, "eager", none), ZR_SAME);
    CU_ASSERT_EQUAL(replay(bad, NULL, dry), ZR_SAME);
    CU_ASSERT(report.calls > 30);
    CU_ASSERT_EQUAL(replay(bad, NULL, thrice), ZR_SAME);
    CU_ASSERT_EQUAL(report.rounds, 3);
    CU_ASSERT_EQUAL(replay(bad, "eager", thrice), ZR_DIFFERS);
    CU_ASSERT_EQUAL(report.rounds, 1);
}

static void serialize_submit(zr_options *o)
{
    o->serialize = ZR_SERIALIZE_SUBMIT;
    o->timeout_ns = 300000000;
}

static void serialize_list(zr_options *o)
{
    o->serialize = ZR_SERIALIZE_LIST;
}

static void serialize_command(zr_options *o)
{
    o->serialize = ZR_SERIALIZE_COMMAND;
}

static void test_serialize(void)
{
    const char *const memory = record("serial", "lazy", host_memory);
    CU_ASSERT_EQUAL(replay(memory, NULL, serialize_submit), ZR_SAME);
    CU_ASSERT_EQUAL(replay(memory, NULL, serialize_list), ZR_SAME);
    CU_ASSERT_EQUAL(replay(memory, NULL, serialize_command), ZR_SAME);
    const char *const bad = record("serial-bad", "lazy", evict_bad);
    CU_ASSERT_EQUAL(replay(bad, NULL, serialize_submit), ZR_DIFFERS); /* cured */
    CU_ASSERT_STRING_EQUAL(report.first.recorded, "ZE_RESULT_ERROR_UNKNOWN");
    CU_ASSERT_EQUAL(replay(bad, NULL, serialize_command), ZR_DIFFERS);
    const char *const gated = record("serial-gate", "async", gate);
    CU_ASSERT_EQUAL(replay(gated, NULL, serialize_submit), ZR_DIFFERS);
    CU_ASSERT_PTR_NOT_NULL(strstr(report.message, "the device waits for the host"));
}

/* The last submit faults, and nobody looks. */
static void unseen_fault(hand *h)
{
    basics b;
    start(h, &b);
    const uint64_t from = new_memory(h, &b, "zeMemAllocDevice", 4096), to = new_memory(h, &b, "zeMemAllocDevice", 4096);
    const uint64_t list = new_list(h, &b);
    CALL(h, "zeCommandListAppendMemoryCopy", list, to, from, 4096, 0, 0, 0);
    CALL(h, "zeCommandListClose", list);
    execute(h, &b, list);
    CALL(h, "zeMemFree", W(b.context), to);
}

static void test_drain(void)
{
    const char *const trace = record("drain", "lazy", unseen_fault);
    CU_ASSERT_EQUAL(replay(trace, NULL, NULL), ZR_DIFFERS);
    CU_ASSERT_EQUAL(report.first.what, ZR_W_FAULT);
    CU_ASSERT_PTR_NOT_NULL(strstr(report.first.detail, "queue#1"));
    CU_ASSERT_EQUAL(replay(trace, "eager", NULL), ZR_SAME);
}

static void pending(hand *h)
{
    basics b;
    start(h, &b);
    const uint64_t event = new_event(h, &b, 0);
    hand_pretend(h, "zeEventHostSynchronize", (const uint64_t[]){event, UINT64_MAX}, 0);
    hand_last(h)->returned = 0;
    hand_ending(h, true, 9);
}

static void test_pending(void)
{
    CU_ASSERT_EQUAL(replay(record("pending", "", pending), NULL, NULL), ZR_SAME);
    CU_ASSERT_EQUAL(report.pending_call, 9);
    CU_ASSERT_EQUAL(report.not_made, 1);
    CU_ASSERT_STRING_EQUAL(report.pending_function, "zeEventHostSynchronize");
}

static void crashing(zr_options *o)
{
    o->driver = getenv("TEST_CRASH_DRIVER");
    o->timeout_ns = 100000000;
}

static void context_only(hand *h)
{
    basics b;
    uint32_t n = 1;
    CALL(h, "zeInit", 0);
    CALL(h, "zeDriverGet", W(&n), W(&b.driver));
    ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    CALL(h, "zeContextCreate", W(b.driver), W(&desc), W(&b.context));
}

static void context_crash(hand *h)
{
    context_only(h);
    zt_call *const call = hand_last(h);
    call->returned = 0;
    call->n_out = 0;
    hand_ending(h, true, 11);
}

static void test_crash(void)
{
    setenv("TEST_CRASH", "crash", 1);
    CU_ASSERT_EQUAL(replay(record("crash", "", context_only), NULL, crashing), ZR_DIFFERS);
    CU_ASSERT_PTR_NOT_NULL(strstr(report.message, "call #3 zeContextCreate did not return"));
    CU_ASSERT_EQUAL(report.first.what, ZR_W_FAULT);
    CU_ASSERT_EQUAL(replay(record("crashed", "", context_crash), NULL, crashing),
                    ZR_SAME); /* it died of it then, too */
    CU_ASSERT_EQUAL(report.failed_call, 3);
    CU_ASSERT_STRING_EQUAL(report.failed_result, "(never returned)");
    CU_ASSERT_EQUAL(replay(path, NULL, NULL), ZR_SAME); /* libze_soft does not die, and says so */
    CU_ASSERT_EQUAL(report.failed_call, 0);
    CU_ASSERT_EQUAL(report.pending_call, 3);
    CU_ASSERT_STRING_EQUAL(report.pending_result, "ZE_RESULT_SUCCESS");
}

static void test_hang(void)
{
    setenv("TEST_CRASH", "hang", 1);
    CU_ASSERT_EQUAL(replay(record("hang", "", context_only), NULL, crashing), ZR_DIFFERS);
    CU_ASSERT_PTR_NOT_NULL(strstr(report.message, "call #3 zeContextCreate did not return within"));
}

int main(int argc, char **argv)
{
    if (getenv("TEST_SOFT") == NULL || mkdtemp(folder) == NULL)
        return 2;
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    CU_pSuite suite = CU_add_suite("replay", NULL, NULL);
    const struct {
        const char *name;
        void (*test)(void);
    } tests[] = {
        {"evict: same 100 times on lazy, differs on eager", test_evict},
        {"evict's twin is the same on every schedule", test_twin},
        {"enumerations, properties, wrong use", test_queries},
        {"pageable memory and host USM, read back", test_memory},
        {"a wrong byte is named", test_wrong_byte},
        {"what the host may have written is taken over", test_taken},
        {"gate and queries", test_gate},
        {"two threads, on two and on one", test_threads},
        {"eight threads", test_many_threads},
        {"a wait that cannot end says so", test_blocked},
        {"a handle nobody made", test_missing_handle},
        {"a function that nobody knows", test_unknown_function},
        {"a wrong output is named", test_wrong_output},
        {"no driver, no library, no device, no schedule", test_cannot},
        {"--from --to --loop --verify --dry-run", test_range},
        {"--serialize", test_serialize},
        {"a fault that the final drain finds", test_drain},
        {"a call that never returned", test_pending},
        {"a driver that crashes", test_crash},
        {"a driver that hangs", test_hang},
    };
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        if (argc < 2 || strstr(tests[i].name, argv[1]) != NULL)
            CU_add_test(suite, tests[i].name, tests[i].test);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    const unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    char command[300];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return failed || system(command) != 0;
}

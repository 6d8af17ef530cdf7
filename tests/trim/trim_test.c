/* SPDX-License-Identifier: MIT */
/* What a call brings along, and what minimising leaves, on small programs recorded by hand. */
#include <CUnit/Basic.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs.h"
#include "trim.h"

static char folder[] = "/tmp/zetrace-trim.XXXXXX", path[80], out[80];
static zt_trace *trace;
static zm_needs *needs;
static zm_keep *keep;

static void open_program(const char *schedule, void (*program)(hand *))
{
    zt_error error;
    CU_ASSERT_TRUE_FATAL(hand_record(path, schedule, program));
    CU_ASSERT_EQUAL_FATAL(zt_trace_open(&trace, path, &error), ZT_OK);
    CU_ASSERT_EQUAL_FATAL(zm_needs_make(&needs, trace, &error), ZT_OK);
    keep = zm_keep_new(needs);
    CU_ASSERT_PTR_NOT_NULL_FATAL(keep);
}

static void close_program(void)
{
    zm_keep_free(keep);
    zm_needs_free(needs);
    zt_trace_close(trace);
    unlink(out);
}

/* The n-th call of the function, from 1. */
static uint64_t find(const char *function, unsigned n)
{
    const zt_call *call;
    uint64_t found = 0;
    zt_trace_seek(trace, 1);
    while (found == 0 && zt_trace_next(trace, &call) == ZT_OK)
        if (strcmp(call->func->name, function) == 0 && --n == 0)
            found = call->number;
    CU_ASSERT_NOT_EQUAL(found, 0);
    return found;
}

static bool has(const char *function, unsigned n)
{
    return zm_keep_has(keep, find(function, n));
}

static void close_over(const char *function, unsigned n, unsigned flags)
{
    CU_ASSERT_TRUE(zm_keep_add(keep, find(function, n)));
    CU_ASSERT_EQUAL(zm_close_over_needs(keep, flags, 0), ZT_OK);
}

static int verdict_of(const char *file)
{
    zt_trace *t;
    zt_error error;
    zr_plan *plan;
    zr_options o;
    zr_report report = {.verdict = ZR_DAMAGED};
    zr_options_default(&o);
    o.soft_library = getenv("TEST_SOFT");
    o.driver = "soft";
    if (zt_trace_open(&t, file, &error) != ZT_OK)
        return ZR_DAMAGED;
    if (zr_plan_make(&plan, t, &error) == ZT_OK) {
        zr_replay(plan, &o, &report);
        zr_plan_free(plan);
    }
    zt_trace_close(t);
    return report.verdict;
}

static void write_and_replay(void)
{
    zt_error error;
    const zm_trim_options o = {.overwrite = true};
    CU_ASSERT_EQUAL(zm_trim(keep, out, &o, &error), ZT_OK);
    CU_ASSERT_EQUAL(verdict_of(out), ZR_SAME);
}

/* ------------------------------------------------------------------------------------------------------------- needs */

static void an_append(void)
{
    open_program("eager", evict_good);
    close_over("zeCommandListAppendMemoryCopy", 1, 0);
    CU_ASSERT_TRUE(has("zeInit", 1));
    CU_ASSERT_TRUE(has("zeDriverGet", 2));
    CU_ASSERT_FALSE(has("zeDriverGet", 1));
    CU_ASSERT_TRUE(has("zeContextMakeMemoryResident", 1));
    CU_ASSERT_FALSE(has("zeCommandQueueCreate", 1));
    CU_ASSERT_FALSE(has("zeCommandListClose", 1));
    CU_ASSERT_FALSE(has("zeCommandListCreate", 2));
    write_and_replay();
    close_over("zeCommandListAppendMemoryCopy", 1, ZM_WITH_ALL);
    CU_ASSERT_TRUE(has("zeCommandListClose", 1));
    CU_ASSERT_TRUE(has("zeCommandQueueExecuteCommandLists", 1));
    CU_ASSERT_FALSE(has("zeCommandQueueExecuteCommandLists", 2));
    CU_ASSERT_TRUE(has("zeCommandQueueSynchronize", 1));
    CU_ASSERT_FALSE(has("zeCommandQueueSynchronize", 2));
    CU_ASSERT_FALSE(has("zeMemFree", 1));
    write_and_replay();
    close_program();
}

static void a_bound_for_waits(void)
{
    open_program("eager", evict_good);
    const uint64_t submit = find("zeCommandQueueExecuteCommandLists", 1);
    zm_keep_add(keep, submit);
    CU_ASSERT_EQUAL(zm_close_over_needs(keep, ZM_WITH_SYNCS, submit), ZT_OK);
    CU_ASSERT_FALSE(has("zeCommandQueueSynchronize", 1));
    CU_ASSERT_EQUAL(zm_close_over_needs(keep, ZM_WITH_SYNCS, submit + 1), ZT_OK);
    CU_ASSERT_TRUE(has("zeCommandQueueSynchronize", 1));
    close_program();
}

static void ends(void)
{
    open_program("eager", evict_good);
    close_over("zeContextDestroy", 1, ZM_WITH_ENDS);
    CU_ASSERT_EQUAL(zm_keep_count(keep), 4); /* beginning, driver, context, end */
    CU_ASSERT_FALSE(has("zeMemFree", 1));
    write_and_replay();
    close_over("zeCommandListAppendMemoryCopy", 1, ZM_WITH_ENDS);
    CU_ASSERT_TRUE(has("zeMemFree", 1));
    CU_ASSERT_TRUE(has("zeMemFree", 2));
    CU_ASSERT_TRUE(has("zeCommandListDestroy", 1));
    CU_ASSERT_FALSE(has("zeCommandListDestroy", 2));
    write_and_replay();
    close_program();
}

static void signals(void)
{
    open_program("eager", gate);
    close_over("zeCommandQueueExecuteCommandLists", 1, ZM_WITH_ALL);
    CU_ASSERT_TRUE(has("zeEventHostSignal", 1));
    write_and_replay();
    close_program();
}

static void one_event_without_a_reset(void)
{
    open_program("eager", one_event);
    close_over("zeCommandListAppendMemoryFill", 90, ZM_WITH_ALL);
    CU_ASSERT_TRUE(has("zeEventHostSignal", 1));
    CU_ASSERT_TRUE(has("zeEventHostSynchronize", 1));
    write_and_replay();
    close_program();
}

static void an_innocent_failure(void)
{
    open_program("lazy", evict_bad);
    close_over("zeCommandQueueExecuteCommandLists", 2, 0);
    CU_ASSERT_TRUE(has("zeCommandListAppendMemoryCopy", 1));
    CU_ASSERT_TRUE(has("zeContextEvictMemory", 1));
    CU_ASSERT_TRUE(has("zeMemFree", 1));
    CU_ASSERT_FALSE(has("zeCommandQueueExecuteCommandLists", 3));
    write_and_replay();
    close_program();
}

static void host_contents(void)
{
    open_program("eager", host_memory);
    for (unsigned n = 1; n <= 3; n++) {
        zm_keep_free(keep);
        keep = zm_keep_new(needs);
        close_over("zeCommandQueueSynchronize", n, ZM_WITH_ALL);
        CU_ASSERT_TRUE(has("zeCommandQueueExecuteCommandLists", n));
        write_and_replay();
    }
    close_program();
}

/* Each call for itself, with what it needs, on every program there is. */
static void every_call(void)
{
    static void (*const programs[])(hand *) = {host_memory, gate, two_threads, evict_good, early_waiter};
    for (size_t p = 0; p < sizeof(programs) / sizeof(programs[0]); p++) {
        open_program("eager", programs[p]);
        for (uint64_t n = 1; n <= zm_needs_calls(needs); n++) {
            zm_keep_free(keep);
            keep = zm_keep_new(needs);
            zm_keep_add(keep, n);
            CU_ASSERT_EQUAL(zm_close_over_needs(keep, n % 2 ? ZM_WITH_ALL : ZM_WITH_SYNCS | ZM_WITH_ENDS, n % 2 ? 0 : n), ZT_OK);
            write_and_replay();
        }
        close_program();
    }
}

static void sets(void)
{
    open_program("eager", evict_good);
    CU_ASSERT_EQUAL(zm_keep_count(keep), 0);
    CU_ASSERT_EQUAL(zm_close_over_needs(keep, ZM_WITH_ALL, 0), ZT_OK);
    CU_ASSERT_EQUAL(zm_keep_count(keep), 0);
    CU_ASSERT_FALSE(zm_keep_add(keep, 0));
    CU_ASSERT_FALSE(zm_keep_add(keep, 100000));
    CU_ASSERT_EQUAL(zm_keep_add_range(keep, 2, 4), 3);
    CU_ASSERT_EQUAL(zm_keep_add_range(keep, 3, 5), 3);
    CU_ASSERT_EQUAL(zm_keep_count(keep), 4);
    CU_ASSERT_EQUAL(zm_keep_add_object(keep, "mem#9"), 0);
    CU_ASSERT_EQUAL(zm_keep_add_object(keep, "mem#2"), 5); /* allocation, residency, copy, evict, free */
    close_program();
}

/* --------------------------------------------------------------------------------------------------------- minimising */

typedef struct wish {
    uint64_t calls[4];
    unsigned asked, modes;
    bool refuse;
} wish;

static bool holds(void *ctx, const char *file)
{
    wish *const w = ctx;
    zt_trace *t;
    zt_error error;
    const zt_call *call;
    unsigned found = 0, wanted = 0;
    struct stat st;
    w->asked++;
    w->modes += stat(file, &st) == 0 && (st.st_mode & 0777) == 0600 && strncmp(file, folder, strlen(folder)) == 0;
    if (w->refuse || zt_trace_open(&t, file, &error) != ZT_OK)
        return false;
    while (zt_trace_next(t, &call) == ZT_OK)
        for (unsigned i = 0; i < 4; i++)
            found += w->calls[i] == call->number;
    for (unsigned i = 0; i < 4; i++)
        wanted += w->calls[i] != 0;
    zt_trace_close(t);
    return found == wanted;
}

static unsigned files_in_folder(void)
{
    unsigned n = 0;
    DIR *const d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    if (d != NULL)
        closedir(d);
    return n;
}

static void all_of_it(void)
{
    zm_keep_add_range(keep, 0, UINT64_MAX);
    CU_ASSERT_EQUAL(zm_close_over_needs(keep, ZM_WITH_SYNCS, 0), ZT_OK);
}

static void minimise_to_given_calls(void)
{
    open_program("eager", evict_good);
    all_of_it();
    wish w = {.calls = {find("zeCommandListAppendMemoryCopy", 1), find("zeCommandQueueExecuteCommandLists", 3)}};
    const zm_minimise_options o = {.still = holds, .ctx = &w};
    zm_minimised result;
    zt_error error;
    CU_ASSERT_EQUAL(zm_minimise(keep, out, &o, &result, &error), ZT_OK);
    CU_ASSERT_EQUAL(result.tests, w.asked);
    CU_ASSERT_EQUAL(w.modes, w.asked);
    CU_ASSERT_EQUAL(result.before, zm_needs_calls(needs));
    CU_ASSERT_FALSE(result.spent);
    CU_ASSERT_EQUAL(files_in_folder(), 2);
    CU_ASSERT_TRUE(holds(&w, out));
    CU_ASSERT_EQUAL(verdict_of(out), ZR_SAME);
    /* what the two need, and nothing else */
    zm_keep_free(keep);
    keep = zm_keep_new(needs);
    zm_keep_add(keep, w.calls[0]);
    zm_keep_add(keep, w.calls[1]);
    CU_ASSERT_EQUAL(zm_close_over_needs(keep, ZM_FEW | ZM_WITH_SYNCS, 0), ZT_OK);
    CU_ASSERT_EQUAL(result.after, zm_keep_count(keep));
    close_program();
}

static void minimise_commands_of_a_list(void)
{
    open_program("eager", host_memory);
    all_of_it();
    wish w = {.calls = {find("zeCommandListAppendMemoryCopy", 3), find("zeCommandQueueExecuteCommandLists", 1)}};
    const zm_minimise_options o = {.still = holds, .ctx = &w};
    zm_minimised result;
    zt_error error;
    CU_ASSERT_EQUAL(zm_minimise(keep, out, &o, &result, &error), ZT_OK);
    w.calls[2] = find("zeCommandListAppendMemoryCopy", 1);
    CU_ASSERT_FALSE(holds(&w, out));
    w.calls[2] = find("zeCommandListClose", 1);
    w.calls[3] = find("zeCommandQueueSynchronize", 1); /* what waits for the work stays with it */
    CU_ASSERT_TRUE(holds(&w, out));
    CU_ASSERT_EQUAL(verdict_of(out), ZR_SAME);
    close_program();
}

static void minimise_refused(void)
{
    open_program("eager", evict_good);
    all_of_it();
    wish w = {.calls = {find("zeCommandListAppendMemoryCopy", 1)}, .refuse = true};
    zm_minimise_options o = {.still = holds, .ctx = &w};
    zm_minimised result;
    zt_error error;
    CU_ASSERT_EQUAL(zm_minimise(keep, out, &o, &result, &error), ZT_END);
    CU_ASSERT_EQUAL(w.asked, 1);
    CU_ASSERT_EQUAL(files_in_folder(), 1);
    w.refuse = false;
    o.budget = 4;
    CU_ASSERT_EQUAL(zm_minimise(keep, out, &o, &result, &error), ZT_OK);
    CU_ASSERT_EQUAL(result.tests, 4);
    CU_ASSERT_TRUE(result.spent);
    CU_ASSERT_EQUAL(files_in_folder(), 2);
    CU_ASSERT_EQUAL(zm_minimise(keep, out, &o, &result, &error), ZT_E_EXISTS);
    CU_ASSERT_EQUAL(files_in_folder(), 2);
    const volatile int stop = 1;
    o = (zm_minimise_options){.still = holds, .ctx = &w, .overwrite = true, .stop = &stop};
    CU_ASSERT_EQUAL(zm_minimise(keep, out, &o, &result, &error), ZT_OK);
    CU_ASSERT_EQUAL(result.tests, 1);
    CU_ASSERT_EQUAL(zm_minimise(keep, "/nonexistent/out", &o, &result, &error), ZT_E_IO);
    CU_ASSERT_NOT_EQUAL(strlen(error.text), 0);
    close_program();
}

static int set_up(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(path, sizeof(path), "%s/whole", folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    return 0;
}

static int tear_down(void)
{
    unlink(path);
    unlink(out);
    return rmdir(folder) != 0;
}

int main(void)
{
    CU_initialize_registry();
    const CU_pSuite suite = CU_add_suite("trim", set_up, tear_down);
    CU_add_test(suite, "sets", sets);
    CU_add_test(suite, "an append", an_append);
    CU_add_test(suite, "a bound for waits", a_bound_for_waits);
    CU_add_test(suite, "ends", ends);
    CU_add_test(suite, "signals", signals);
    CU_add_test(suite, "one event without a reset", one_event_without_a_reset);
    CU_add_test(suite, "an innocent failure", an_innocent_failure);
    CU_add_test(suite, "host contents", host_contents);
    CU_add_test(suite, "every call", every_call);
    CU_add_test(suite, "minimise to given calls", minimise_to_given_calls);
    CU_add_test(suite, "minimise commands of a list", minimise_commands_of_a_list);
    CU_add_test(suite, "minimise: refused, spent, stopped", minimise_refused);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    const unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}

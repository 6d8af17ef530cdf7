/* SPDX-License-Identifier: MIT */
/* The software driver's generated entries, with nothing behind them: argument checks and what the getters write. */
#include <CUnit/Basic.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "driver_entry.h"

#include "api.h"

typedef ze_result_t (*getter)(uint32_t version, void *table);
/* More words than any function takes; the callee ignores what it has no parameter for. */
typedef int64_t (*any)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                       uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static uint32_t call(const zt_func *func, const uint64_t *w)
{
    void *const entry = soft_entry_find(func->name);
    if (entry == NULL)
        return ~0u;
    const any f = (any)entry;
    return (uint32_t)f(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13], w[14],
                       w[15]);
}

static bool is_handle(const zt_field *p)
{
    return p->shape == ZT_VALUE && zt_types[p->type].cls == ZT_HANDLE;
}

static bool by_value_struct(const zt_func *func)
{
    for (unsigned i = 0; i < func->n_params; i++)
        if (func->params[i].shape == ZT_VALUE && zt_types[func->params[i].type].cls == ZT_STRUCT)
            return true;
    return false;
}

static bool required(const zt_func *func, bool handles)
{
    for (unsigned i = 0; i < func->n_params; i++) {
        const zt_field *const p = &func->params[i];
        if (!p->optional && (handles ? is_handle(p) : p->shape != ZT_VALUE))
            return true;
    }
    return false;
}

static void test_null_handles_come_first(void)
{
    const uint64_t zero[16] = {0};
    unsigned refused = 0, pointers = 0, plain = 0;
    for (unsigned i = 0; i < zt_n_funcs; i++) {
        const zt_func *const f = &zt_funcs[i];
        const uint32_t got = call(f, zero);
        if (strcmp(zt_types[f->return_type].name, "ze_result_t") != 0) {
            CU_ASSERT_EQUAL(got, 0);
            continue;
        }
        const uint32_t want = required(f, true)    ? ZE_RESULT_ERROR_INVALID_NULL_HANDLE
                              : required(f, false) ? ZE_RESULT_ERROR_INVALID_NULL_POINTER
                                                   : ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
        refused += want == ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
        pointers += want == ZE_RESULT_ERROR_INVALID_NULL_POINTER;
        plain += want == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
        if (got != want)
            printf("\n    %s with nothing: %#x, expected %#x", f->name, got, want);
        CU_ASSERT_EQUAL(got, want);
    }
    printf("\n    nothing passed: %u want a handle, %u a pointer, %u neither", refused, pointers, plain);
    CU_ASSERT(refused > 400 && pointers > 5 && plain >= 2);
}

static void test_null_pointers_come_second(void)
{
    /* the headers name no result for their null pointers */
    static const char *const unsaid[] = {"zeMemGetPitchFor2dImage", "zetCommandListAppendMetricQueryEnd",
                                         "zetDeviceCreateMetricGroupsFromMetricsExp",
                                         "zetDeviceGetConcurrentMetricGroupsExp"};
    unsigned refused = 0;
    for (unsigned i = 0; i < zt_n_funcs; i++) {
        const zt_func *const f = &zt_funcs[i];
        uint64_t w[16] = {0};
        if (by_value_struct(f) || strcmp(zt_types[f->return_type].name, "ze_result_t") != 0)
            continue; /* structs by value take other registers: their words would be out of place here */
        for (unsigned p = 0; p < f->n_params; p++)
            if (is_handle(&f->params[p]))
                w[f->params[p].offset] = 0x1000;
        const uint32_t got = call(f, w);
        bool wants = required(f, false);
        for (unsigned k = 0; k < sizeof(unsaid) / sizeof(unsaid[0]); k++)
            wants = wants && strcmp(f->name, unsaid[k]) != 0;
        refused += wants;
        if ((got == ZE_RESULT_ERROR_INVALID_NULL_POINTER) != wants)
            printf("\n    %s with handles only: %#x", f->name, got);
        CU_ASSERT((got == ZE_RESULT_ERROR_INVALID_NULL_POINTER) == wants);
    }
    printf("\n    handles only: %u want a pointer", refused);
    CU_ASSERT(refused > 250);
}

/* What the headers say besides: ranges of enumerations and flags, sizes. One example of each form of condition. */
static void test_other_conditions(void)
{
    char some[256] = {0};
    const uint64_t at = (uint64_t)(uintptr_t)some, h = 0x1000;
    static const char sentinel[] = "zeCommandListAppendBarrier";
    const uint64_t waits[16] = {h, 0, 1, 0}; /* one wait event, no array */
    CU_ASSERT_EQUAL(call(&zt_funcs[zt_func_find(sentinel)], waits), ZE_RESULT_ERROR_INVALID_SIZE);
    const uint64_t none[16] = {h, 0, 0, 0};
    CU_ASSERT_EQUAL(call(&zt_funcs[zt_func_find(sentinel)], none), ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);

    const uint64_t flags[16] = {0x80};
    CU_ASSERT_EQUAL(call(&zt_funcs[zt_func_find("zeInit")], flags), ZE_RESULT_ERROR_INVALID_ENUMERATION);

    ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .mode = (ze_command_queue_mode_t)99};
    uint64_t create[16] = {h, h, (uint64_t)(uintptr_t)&desc, at};
    CU_ASSERT_EQUAL(call(&zt_funcs[zt_func_find("zeCommandQueueCreate")], create), ZE_RESULT_ERROR_INVALID_ENUMERATION);
    desc.mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS;
    CU_ASSERT_EQUAL(call(&zt_funcs[zt_func_find("zeCommandQueueCreate")], create), ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
    desc.flags = 0x80;
    CU_ASSERT_EQUAL(call(&zt_funcs[zt_func_find("zeCommandQueueCreate")], create), ZE_RESULT_ERROR_INVALID_ENUMERATION);

    ze_device_mem_alloc_desc_t mem = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    const uint64_t empty[16] = {h, (uint64_t)(uintptr_t)&mem, 0, 8, h, at};
    CU_ASSERT_EQUAL(call(&zt_funcs[zt_func_find("zeMemAllocDevice")], empty), ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
    const uint64_t crooked[16] = {h, (uint64_t)(uintptr_t)&mem, 64, 6, h, at};
    CU_ASSERT_EQUAL(call(&zt_funcs[zt_func_find("zeMemAllocDevice")], crooked), ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT);

    CU_ASSERT_PTR_NULL(soft_entry_find("zeNoSuchFunction"));
    CU_ASSERT_PTR_NULL(soft_entry_find(""));
    CU_ASSERT_EQUAL(soft_entry_implemented("zeInit"), 0);
    CU_ASSERT_EQUAL(soft_n_entries, 478);
}

/*
 * Slots an old loader's table has: functions of its version and before. The page behind it must not be written.
 * Before 1.3 five functions of the zes device table stood one slot earlier: those stay empty. A caller that asks
 * for 1.8 may still have the tables of 1.7.
 */
static void test_getters_stay_inside(void)
{
    static const struct {
        unsigned minor, filled;
    } versions[] = {{0, 256 - 5}, {4, 289}, {5, 310}, {7, 335}, {8, 340}, {9, 382}, {16, 452}, {17, 478}, {99, 478}};
    const size_t page = 4096;
    char *const room = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(room, MAP_FAILED);
    CU_ASSERT_EQUAL_FATAL(mprotect(room + page, page, PROT_NONE), 0);
    for (unsigned v = 0; v < sizeof(versions) / sizeof(versions[0]); v++) {
        unsigned filled = 0;
        for (unsigned t = 0; t < zt_n_tables; t++) {
            const getter get = (getter)dlsym(RTLD_DEFAULT, zt_tables[t].getter);
            CU_ASSERT_PTR_NOT_NULL_FATAL(get);
            unsigned slots = 0;
            for (unsigned i = 0; i < zt_n_funcs; i++)
                slots += zt_funcs[i].table == t && (zt_funcs[i].since & 0xff) <= versions[v].minor;
            void **const table = (void **)(void *)(room + page) - slots;
            memset(room, 0, page);
            CU_ASSERT_EQUAL(get(1u << 16 | versions[v].minor, table), ZE_RESULT_SUCCESS);
            for (unsigned i = 0; i < zt_n_funcs; i++) {
                const zt_func *const f = &zt_funcs[i];
                if (f->table != t || f->slot >= slots || table[f->slot] == NULL)
                    continue;
                filled++;
                CU_ASSERT_PTR_EQUAL(table[f->slot], soft_entry_find(f->name));
            }
            CU_ASSERT_EQUAL(get(1u << 16, NULL), ZE_RESULT_ERROR_INVALID_NULL_POINTER);
            CU_ASSERT_EQUAL(get(2u << 16, table), ZE_RESULT_ERROR_UNSUPPORTED_VERSION);
            CU_ASSERT_EQUAL(get(0u << 16 | 9, table), ZE_RESULT_ERROR_UNSUPPORTED_VERSION);
        }
        if (filled != versions[v].filled)
            printf("\n    version 1.%u: %u slots filled, expected %u", versions[v].minor, filled, versions[v].filled);
        CU_ASSERT_EQUAL(filled, versions[v].filled);
    }
    munmap(room, 2 * page);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    CU_pSuite suite = CU_add_suite("driver entries", NULL, NULL);
    CU_ADD_TEST(suite, test_null_handles_come_first);
    CU_ADD_TEST(suite, test_null_pointers_come_second);
    CU_ADD_TEST(suite, test_other_conditions);
    CU_ADD_TEST(suite, test_getters_stay_inside);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    const unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed != 0;
}

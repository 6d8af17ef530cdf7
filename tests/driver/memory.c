/* SPDX-License-Identifier: MIT */
/* The knobs of memory: addresses, what an evict takes away, how much there is. */
#include "soft_test.h"

enum { SIZE = 4096 };

static ze_command_queue_handle_t queue;
static ze_event_handle_t gate;

static void va_reuse(void)
{
    open_all();
    void *const p = new_device(SIZE);
    OK(ze.mem.pfnFree(the_context, p));
    CHECK(new_device(SIZE) == p);
}

static void va_window(void)
{
    open_all();
    void *const p = new_device(SIZE);
    CHECK((uint64_t)p == 0x200000000000ull); /* the same calls give the same addresses */
    OK(ze.mem.pfnFree(the_context, p));
    CHECK(new_device(SIZE) != p);
}

/* A gated copy to the second of four pages, of which the first is evicted. */
static ze_result_t part_evicted(size_t ptr, size_t size)
{
    open_all();
    gate = new_event();
    queue = new_queue(0, 0);
    unsigned char *const target = new_device(4 << 16);
    ze_command_list_handle_t list = new_list(0, 0);
    OK(ze.list.pfnAppendWaitOnEvents(list, 1, &gate));
    copy(list, target + 65536 + 4096, new_host(SIZE), SIZE);
    close_list(list);
    OK(run(queue, list));
    OK(ze.context.pfnEvictMemory(the_context, the_device, target + ptr, size));
    OK(ze.event.pfnHostSignal(gate));
    return ze.queue.pfnSynchronize(queue, UINT64_MAX);
}

static void evicts_allocation(void)
{
    IS(part_evicted(0, SIZE), ZE_RESULT_ERROR_DEVICE_LOST);
}

static void evicts_exactly(void)
{
    OK(part_evicted(65536, SIZE)); /* up to the byte before */
}

static void evicts_exactly_hit(void)
{
    IS(part_evicted(65536, SIZE + 1), ZE_RESULT_ERROR_DEVICE_LOST);
}

static void evicts_pages(void)
{
    OK(part_evicted(0, 65536));
}

static void evicts_pages_hit(void)
{
    IS(part_evicted(0, 65537), ZE_RESULT_ERROR_DEVICE_LOST);
}

/* On `submit` a later submit that names one part brings back that part only. */
static void brings_back_part(void)
{
    open_all();
    gate = new_event();
    queue = new_queue(0, 0);
    unsigned char *const target = new_device(4 << 16), *const from = new_host(4 << 16);
    ze_command_list_handle_t list = new_list(0, 0), other = new_list(1, 0);
    OK(ze.list.pfnAppendWaitOnEvents(list, 1, &gate));
    copy(list, target + 65536, from, SIZE);
    OK(ze.list.pfnAppendBarrier(list, NULL, 0, NULL));
    copy(list, target, from, SIZE);
    close_list(list);
    OK(run(queue, list));
    OK(ze.context.pfnEvictMemory(the_context, the_device, target, 4 << 16));
    copy(other, target + 65536, from, 65536);
    close_list(other);
    ze_command_queue_handle_t copier = new_queue(1, 0);
    OK(run(copier, other));
    OK(ze.queue.pfnSynchronize(copier, UINT64_MAX));
    from[0] = 8;
    OK(ze.event.pfnHostSignal(gate));
    IS(ze.queue.pfnSynchronize(queue, UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
    CHECK(target[65536] == 8 && target[0] == 0);
}

/* Three pages of 64 KiB: what is freed may be allocated again, host memory is not counted. */
static void memory_budget(void)
{
    const ze_device_mem_alloc_desc_t dd = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    const ze_host_mem_alloc_desc_t hd = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    ze_physical_mem_desc_t pd = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC, .size = 1 << 16};
    ze_device_memory_properties_t props = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES};
    ze_physical_mem_handle_t physical;
    uint32_t n = 1;
    void *p;
    open_all();
    OK(ze.device.pfnGetMemoryProperties(the_device, &n, &props));
    CHECK(props.totalSize == 200000);
    void *const two = new_device(65537);
    new_host(1 << 20);
    OK(ze.physical.pfnCreate(the_context, the_device, &pd, &physical));
    IS(ze.mem.pfnAllocDevice(the_context, &dd, 1, 0, the_device, &p), ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
    IS(ze.physical.pfnCreate(the_context, the_device, &pd, &physical), ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
    OK(ze.mem.pfnFree(the_context, two));
    IS(ze.mem.pfnAllocDevice(the_context, &dd, 1 << 20, 0, the_device, &p), ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
    OK(ze.mem.pfnAllocShared(the_context, &dd, &hd, 65536, 0, the_device, &p));
    OK(ze.physical.pfnDestroy(the_context, physical));
    new_device(65537);
    IS(ze.mem.pfnAllocShared(the_context, &dd, &hd, 1, 0, the_device, &p), ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
}

const test_case memory_cases[] = {
    {"an evict takes the allocation", "ZE_SOFT_SCHEDULE=lazy", evicts_allocation, 0},
    {"an evict takes what it names", "ZE_SOFT_SCHEDULE=lazy ZE_SOFT_RESIDENCY=exact", evicts_exactly, 0},
    {"an evict takes what it names, hit", "ZE_SOFT_SCHEDULE=lazy ZE_SOFT_RESIDENCY=exact", evicts_exactly_hit, 0},
    {"an evict takes pages", "ZE_SOFT_SCHEDULE=lazy ZE_SOFT_RESIDENCY=64k", evicts_pages, 0},
    {"an evict takes pages, hit", "ZE_SOFT_SCHEDULE=lazy ZE_SOFT_RESIDENCY=64k", evicts_pages_hit, 0},
    {"a submit brings part back", "ZE_SOFT_SCHEDULE=async ZE_SOFT_RESIDENCY=64k ZE_SOFT_REBIND=submit", brings_back_part, 0},
    {"a budget of memory", "ZE_SOFT_MEMORY=200000", memory_budget, 0},
    {"addresses reused", "ZE_SOFT_VA=reuse", va_reuse, 0},
    {"addresses in the window", "ZE_SOFT_VA=window", va_window, 0},
    {NULL, NULL, NULL, 0}};

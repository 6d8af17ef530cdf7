/* SPDX-License-Identifier: MIT */
/*
 * One mistake with a kernel each, for a checker to name: MODE says which, and without one they are listed. `fixed` as a second argument
 * does the same right. A gate holds the launch back. What comes of it is looked at for results alone.
 */
#include "kernels.h"

static app a;
static bool fixed, shown;
static ze_command_queue_handle_t queue;
static ze_command_list_handle_t list;
static ze_event_handle_t gate;
static ze_module_handle_t module;
static ze_kernel_handle_t kernel;

static void submit(void)
{
    MUST(zeCommandListClose(list));
    run(queue, list, NULL);
}

static void wait_queue(void)
{
    zeEventHostSignal(gate);
    zeCommandQueueSynchronize(queue, UINT64_MAX);
}

/* `mistake` while a launch is in flight, or behind it. */
static void around(void (*mistake)(void *), void *memory)
{
    launch(list, kernel, gate);
    submit();
    if (!fixed)
        mistake(memory);
    wait_queue();
    if (fixed)
        mistake(memory);
}

static void free_it(void *memory)
{
    zeMemFree(a.context, memory);
}

static void evict_it(void *memory)
{
    zeContextEvictMemory(a.context, a.device, memory, SIZE);
}

static void destroy_kernel(void *memory)
{
    (void)memory;
    zeKernelDestroy(kernel);
}

static void destroy_module(void *memory)
{
    (void)memory;
    if (fixed)
        zeKernelDestroy(kernel);
    zeModuleDestroy(module);
}

/* It is reached by the flag, too: one finding is enough. */
static void argument_freed(void)
{
    void *const memory = device_new(&a, SIZE);
    MUST(zeKernelSetIndirectAccess(kernel, ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE));
    set_pointer(kernel, 0, memory);
    around(free_it, memory);
}

static void argument_evicted(void)
{
    unsigned char *const memory = device_new(&a, SIZE);
    set_pointer(kernel, 0, memory + 64);
    around(evict_it, memory);
}

/* A pointer within a structure that is passed by value. */
static void member_freed(void)
{
    const struct {
        uint64_t n;
        void *pointer;
    } value = {1, device_new(&a, SIZE)};
    MUST(zeKernelSetArgumentValue(kernel, 0, sizeof(value), &value));
    around(free_it, value.pointer);
}

static void indirect_freed(void)
{
    MUST(zeKernelSetIndirectAccess(kernel, ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE));
    around(free_it, device_new(&a, SIZE));
}

static void indirect_evicted(void)
{
    MUST(zeKernelSetIndirectAccess(kernel, ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED));
    around(evict_it, shared_new(&a, SIZE));
}

/* A table of pointers, one of which leads to the memory. */
static void free_what_table_names(bool is_argument)
{
    void **const table = host_new(&a, SIZE), *const memory = device_new(&a, SIZE);
    memset(table, 0, SIZE);
    table[7] = (unsigned char *)memory + 128;
    if (is_argument)
        set_pointer(kernel, 0, table);
    MUST(zeKernelSetIndirectAccess(kernel, ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE));
    around(free_it, memory);
}

static void pointed_to_freed(void)
{
    free_what_table_names(true);
}

/* The kernel has no way to the table. */
static void pointer_out_of_reach(void)
{
    free_what_table_names(false);
}

static void freed_before_submit(void)
{
    void *const memory = device_new(&a, SIZE);
    set_pointer(kernel, 0, memory);
    launch(list, kernel, gate);
    if (!fixed)
        free_it(memory);
    submit();
    wait_queue();
}

/* The first launch is well; the second is given the same again. */
static void stale_argument(void)
{
    void *const memory = device_new(&a, SIZE);
    set_pointer(kernel, 0, memory);
    launch(list, kernel, NULL);
    submit();
    wait_queue();
    free_it(memory);
    MUST(zeCommandListReset(list));
    if (fixed)
        set_pointer(kernel, 0, device_new(&a, SIZE));
    launch(list, kernel, gate);
    submit();
    wait_queue();
}

static void evicted_before_submit(void)
{
    void *const memory = device_new(&a, SIZE);
    set_pointer(kernel, 0, memory);
    launch(list, kernel, gate);
    evict_it(memory);
    if (fixed)
        MUST(zeContextMakeMemoryResident(a.context, a.device, memory, SIZE));
    submit();
    wait_queue();
}

static void one_of_several_freed(void)
{
    void *const memory = device_new(&a, SIZE);
    ze_kernel_handle_t kernels[] = {kernel_new(module), kernel};
    uint32_t *const count = host_new(&a, SIZE);
    ze_group_count_t *const groups = host_new(&a, SIZE);
    set_pointer(kernel, 0, memory);
    MUST(zeCommandListAppendLaunchMultipleKernelsIndirect(list, 2, kernels, count, groups, NULL, 1, &gate));
    submit();
    if (!fixed)
        free_it(memory);
    wait_queue();
}

static void kernel_in_flight(void)
{
    around(destroy_kernel, NULL);
}

static void module_in_flight(void)
{
    around(destroy_module, NULL);
}

static void module_before_kernel(void)
{
    if (fixed)
        zeKernelDestroy(kernel);
    zeModuleDestroy(module);
    if (!fixed)
        zeKernelDestroy(kernel);
}

static void kernel_before_submit(void)
{
    launch(list, kernel, gate);
    if (!fixed)
        zeKernelDestroy(kernel);
    submit();
    wait_queue();
    if (fixed)
        zeKernelDestroy(kernel);
}

/* The launch takes its arguments when it is appended, not when the list is closed or executed. */
static void argument_too_late(void)
{
    void *const memory = device_new(&a, SIZE);
    set_pointer(kernel, 0, device_new(&a, SIZE));
    if (fixed)
        set_pointer(kernel, 1, memory);
    launch(list, kernel, gate);
    if (!fixed)
        set_pointer(kernel, 1, memory);
    submit();
    wait_queue();
}

static void launch_copy(void *to, void *from)
{
    set_pointer(kernel, 0, to);
    set_pointer(kernel, 1, from);
    launch(list, kernel, NULL);
}

static void copy(void *to, void *from)
{
    MUST(zeCommandListAppendMemoryCopy(list, to, from, SIZE, NULL, 0, NULL));
}

/* A launch is to make what is read next: on this driver it copies from its second argument to its first. */
static void read_unordered(void (*read)(void *to, void *from))
{
    void *const middle = device_new(&a, SIZE);
    unsigned char *const from = host_new(&a, SIZE), *const to = host_new(&a, SIZE);
    memset(from, 1, SIZE);
    memset(to, 0, SIZE);
    launch_copy(middle, from);
    if (fixed)
        MUST(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    read(to, middle);
    submit();
    wait_queue();
    shown = to[0] != 1;
}

static void launches_unordered(void)
{
    read_unordered(launch_copy);
}

static void copy_unordered(void)
{
    read_unordered(copy);
}

/* The program asks whether the first is done, which says nothing about what the second may do. */
static void queues_unordered(void)
{
    const ze_command_queue_handle_t other = queue_new(&a, 0, 0);
    set_pointer(kernel, 0, device_new(&a, SIZE));
    launch(list, kernel, NULL);
    MUST(zeCommandListAppendWaitOnEvents(list, 1, &gate));
    submit();
    zeCommandQueueSynchronize(queue, 0);
    if (fixed)
        wait_queue();
    list = list_new(&a, 0);
    launch(list, kernel, NULL);
    MUST(zeCommandListClose(list));
    run(other, list, NULL);
    wait_queue();
    zeCommandQueueSynchronize(other, UINT64_MAX);
}

static const struct mode {
    const char *name;
    void (*run)(void);
} modes[] = {{"argument-freed", argument_freed},
             {"argument-evicted", argument_evicted},
             {"member-freed", member_freed},
             {"indirect-freed", indirect_freed},
             {"indirect-evicted", indirect_evicted},
             {"pointed-to-freed", pointed_to_freed},
             {"pointer-out-of-reach", pointer_out_of_reach},
             {"freed-before-submit", freed_before_submit},
             {"stale-argument", stale_argument},
             {"evicted-before-submit", evicted_before_submit},
             {"one-of-several-freed", one_of_several_freed},
             {"kernel-in-flight", kernel_in_flight},
             {"module-in-flight", module_in_flight},
             {"module-before-kernel", module_before_kernel},
             {"kernel-before-submit", kernel_before_submit},
             {"argument-too-late", argument_too_late},
             {"launches-unordered", launches_unordered},
             {"copy-unordered", copy_unordered},
             {"queues-unordered", queues_unordered}};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (argc < 2) {
            puts(modes[i].name);
        } else if (strcmp(argv[1], modes[i].name) == 0) {
            fixed = fixed_wanted(argc, argv);
            a = app_open();
            queue = queue_new(&a, 0, 0);
            list = list_new(&a, 0);
            gate = event_new(&a);
            module = module_new(&a, NULL);
            kernel = kernel_new(module);
            modes[i].run();
            return verdict(shown, argv[1]);
        }
    }
    return argc < 2 ? GOOD : CANNOT;
}

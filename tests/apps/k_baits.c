/* SPDX-License-Identifier: MIT */
/*
 * What looks like a mistake with a kernel and is none; MODE names one, and without one they are listed. A checker that reports one of
 * them is wrong.
 */
#include "kernels.h"

static app a;
static ze_command_queue_handle_t queue;
static ze_command_list_handle_t list;
static ze_event_handle_t gate;
static ze_module_handle_t module;
static ze_kernel_handle_t kernel;

static void submit(void)
{
    MUST(zeCommandListClose(list));
    MUST(run(queue, list, NULL));
}

static void finish(void)
{
    MUST(zeEventHostSignal(gate));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
}

/* A launch has taken its arguments: the kernel may be given others, and the memory of the others is not used by it. */
static void argument_changed(void)
{
    void *const first = device_new(&a, SIZE), *const second = device_new(&a, SIZE);
    void *value = first;
    MUST(zeKernelSetArgumentValue(kernel, 0, sizeof(value), &value));
    launch(list, kernel, gate);
    value = second;
    MUST(zeKernelSetArgumentValue(kernel, 0, sizeof(value), &value));
    value = NULL;
    submit();
    MUST(zeMemFree(a.context, second));
    finish();
    MUST(zeMemFree(a.context, first));
}

/* What the argument points to changes between the append and the submit: the kernel is to see it. */
static void contents_changed(void)
{
    unsigned char *const memory = host_new(&a, SIZE);
    memset(memory, 1, SIZE);
    set_pointer(kernel, 0, memory);
    launch(list, kernel, gate);
    memset(memory, 2, SIZE);
    submit();
    finish();
}

static void pattern_reused(void)
{
    unsigned char *const pattern = malloc(16);
    memset(pattern, 1, 16);
    MUST(zeCommandListAppendMemoryFill(list, device_new(&a, SIZE), pattern, 16, SIZE, NULL, 1, &gate));
    memset(pattern, 2, 16);
    submit();
    memset(pattern, 3, 16);
    finish();
    free(pattern);
}

/* Flags count for what is appended later; here there were none yet. */
static void flags_later(void)
{
    void *const memory = device_new(&a, SIZE);
    launch(list, kernel, gate);
    MUST(zeKernelSetIndirectAccess(kernel, ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE));
    submit();
    MUST(zeMemFree(a.context, memory));
    finish();
}

static void flags_of_another_kind(void)
{
    void *const memory = device_new(&a, SIZE);
    MUST(zeKernelSetIndirectAccess(kernel, ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST | ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED));
    launch(list, kernel, gate);
    submit();
    MUST(zeMemFree(a.context, memory));
    finish();
}

static void allocated_later(void)
{
    MUST(zeKernelSetIndirectAccess(kernel, ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE));
    launch(list, kernel, gate);
    submit();
    MUST(zeMemFree(a.context, device_new(&a, SIZE)));
    finish();
}

static void another_context(void)
{
    app other = a;
    const ze_context_desc_t context = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    MUST(zeContextCreate(a.driver, &context, &other.context));
    void *const memory = device_new(&other, SIZE);
    MUST(zeKernelSetIndirectAccess(kernel, ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE));
    launch(list, kernel, gate);
    submit();
    MUST(zeMemFree(other.context, memory));
    finish();
    MUST(zeContextDestroy(other.context));
}

/* Arguments that come with a launch are used in place of those that the kernel was given before. */
static void arguments_brought(void)
{
    void *const memory = device_new(&a, SIZE);
    set_pointer(kernel, 0, memory);
    launch_with(&a, list, kernel, (void *[]){NULL}, gate);
    submit();
    MUST(zeMemFree(a.context, memory));
    finish();
}

/* A free that waits for its users says that they are done with all else, too. */
static void free_that_waits(void)
{
    void *const first = device_new(&a, SIZE), *const second = device_new(&a, SIZE);
    const ze_memory_free_ext_desc_t blocking = {.stype = ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC,
                                                .freePolicy = ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE};
    MUST(zeKernelSetIndirectAccess(kernel, ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE));
    launch(list, kernel, NULL);
    submit();
    MUST(zeMemFreeExt(a.context, &blocking, first));
    MUST(zeMemFree(a.context, second));
    finish();
}

/*
 * Memory that the kernel may write changes while a copy of it is in flight: by the kernel, for all that a checker can know. Here the host
 * does it in its place.
 */
static void written_by_kernel(void (*launch_it)(void *memory))
{
    unsigned char *const memory = shared_new(&a, SIZE);
    memset(memory, 1, SIZE);
    launch_it(memory);
    MUST(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    MUST(zeCommandListAppendMemoryCopy(list, device_new(&a, SIZE), memory, SIZE, NULL, 1, &gate));
    submit();
    memset(memory, 2, SIZE);
    finish();
}

static void by_argument(void *memory)
{
    set_pointer(kernel, 0, memory);
    launch(list, kernel, NULL);
}

static void by_flag(void *memory)
{
    (void)memory;
    MUST(zeKernelSetIndirectAccess(kernel, ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED));
    launch(list, kernel, NULL);
}

static void by_brought(void *memory)
{
    launch_with(&a, list, kernel, &memory, NULL);
}

static void written_by_argument(void)
{
    written_by_kernel(by_argument);
}

static void written_by_flag(void)
{
    written_by_kernel(by_flag);
}

static void written_by_brought(void)
{
    written_by_kernel(by_brought);
}

static void log_after_module(void)
{
    ze_module_build_log_handle_t log;
    const ze_module_handle_t second = module_new(&a, &log);
    MUST(zeKernelDestroy(kernel_new(second)));
    MUST(zeModuleDestroy(second));
    MUST(zeModuleBuildLogDestroy(log));
}

/* Launches on an in-order list, each for the memory of the one before; all is given back behind the last. */
static void in_order(void)
{
    void *const memory = device_new(&a, SIZE);
    const ze_command_list_handle_t immediate = immediate_new(&a, IN_ORDER);
    set_pointer(kernel, 0, memory);
    MUST(zeKernelSetIndirectAccess(kernel, ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE));
    for (int i = 0; i < 3; i++)
        launch(immediate, kernel, i == 0 ? gate : NULL);
    const ze_event_handle_t done = event_new(&a);
    MUST(zeCommandListAppendSignalEvent(immediate, done));
    MUST(zeEventHostSignal(gate));
    MUST(zeEventHostSynchronize(done, UINT64_MAX));
    MUST(zeKernelDestroy(kernel));
    MUST(zeModuleDestroy(module));
    MUST(zeMemFree(a.context, memory));
}

/* An address that memory had before is given out again: the argument of old now means the new. */
static void address_again(void)
{
    void *memory = device_new(&a, SIZE);
    set_pointer(kernel, 0, memory);
    launch(list, kernel, gate);
    submit();
    finish();
    MUST(zeMemFree(a.context, memory));
    memory = device_new(&a, SIZE);
    set_pointer(kernel, 0, memory);
    MUST(zeCommandListReset(list));
    launch(list, kernel, NULL);
    submit();
    finish();
}

static const struct mode {
    const char *name;
    void (*run)(void);
} modes[] = {{"argument-changed", argument_changed},
             {"contents-changed", contents_changed},
             {"pattern-reused", pattern_reused},
             {"flags-later", flags_later},
             {"flags-of-another-kind", flags_of_another_kind},
             {"allocated-later", allocated_later},
             {"another-context", another_context},
             {"arguments-brought", arguments_brought},
             {"free-that-waits", free_that_waits},
             {"written-by-argument", written_by_argument},
             {"written-by-flag", written_by_flag},
             {"written-by-brought", written_by_brought},
             {"log-after-module", log_after_module},
             {"in-order", in_order},
             {"address-again", address_again}};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (argc < 2) {
            puts(modes[i].name);
        } else if (strcmp(argv[1], modes[i].name) == 0) {
            a = app_open();
            queue = queue_new(&a, 0, 0);
            list = list_new(&a, 0);
            gate = event_new(&a);
            module = module_new(&a, NULL);
            kernel = kernel_new(module);
            modes[i].run();
            return verdict(false, argv[1]);
        }
    }
    return argc < 2 ? GOOD : CANNOT;
}

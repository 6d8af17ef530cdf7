/* SPDX-License-Identifier: MIT */
/* Modules and kernels for programs of which only the order of calls matters: the driver of tests/driver/kernels.c takes any binary. */
#ifndef APPS_KERNELS_H
#define APPS_KERNELS_H

#include "common.h"

enum { SIZE = 4096 };

static inline ze_module_handle_t module_new(const app *a, ze_module_build_log_handle_t *log)
{
    static const uint8_t binary[64] = {0x03, 0x02, 0x23, 0x07};
    const ze_module_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MODULE_DESC, .format = ZE_MODULE_FORMAT_IL_SPIRV,
                                   .inputSize = sizeof(binary), .pInputModule = binary};
    ze_module_handle_t module;
    MUST(zeModuleCreate(a->context, a->device, &desc, &module, log));
    return module;
}

static inline ze_kernel_handle_t kernel_new(ze_module_handle_t module)
{
    const ze_kernel_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = "work"};
    ze_kernel_handle_t kernel;
    MUST(zeKernelCreate(module, &desc, &kernel));
    return kernel;
}

static inline void set_pointer(ze_kernel_handle_t kernel, uint32_t index, const void *pointer)
{
    MUST(zeKernelSetArgumentValue(kernel, index, sizeof(pointer), &pointer));
}

static inline void launch(ze_command_list_handle_t list, ze_kernel_handle_t kernel, ze_event_handle_t wait)
{
    const ze_group_count_t one = {1, 1, 1};
    MUST(zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, wait != NULL, wait != NULL ? &wait : NULL));
}

/* Younger than the headers this is built with. */
static inline void launch_with(const app *a, ze_command_list_handle_t list, ze_kernel_handle_t kernel, void **arguments, ze_event_handle_t wait)
{
    typedef ze_result_t (*launch_fn)(ze_command_list_handle_t, ze_kernel_handle_t, ze_group_count_t, ze_group_count_t, void **, const void *,
                                     ze_event_handle_t, uint32_t, ze_event_handle_t *);
    const ze_group_count_t one = {1, 1, 1};
    void *address;
    MUST(zeDriverGetExtensionFunctionAddress(a->driver, "zeCommandListAppendLaunchKernelWithArguments", &address));
    MUST(((launch_fn)address)(list, kernel, one, one, arguments, NULL, NULL, wait != NULL, wait != NULL ? &wait : NULL));
}

static inline void *shared_new(const app *a, size_t size)
{
    const ze_device_mem_alloc_desc_t device = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    const ze_host_mem_alloc_desc_t host = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    void *p;
    MUST(zeMemAllocShared(a->context, &device, &host, size, 64, a->device, &p));
    return p;
}

#endif

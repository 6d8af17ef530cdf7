/* SPDX-License-Identifier: MIT */
/*
 * libze_soft with kernels that run nothing: for programs whose launches have to be ordered, and for nothing else. A launch becomes one
 * copy of 64 bytes, with the launch's events: from the second pointer among the kernel's arguments to the first, or, as far as there are
 * less than two, from and to memory of the kernel's own. So it takes its time, and reaches what it was given.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "l0_api.h"
#include "proxy.h"

enum { ARGUMENTS = 16, BYTES = 64 };

typedef struct module {
    ze_context_handle_t context;
    ze_device_handle_t device;
} module;

typedef struct kernel {
    module *module;
    unsigned char *scratch; /* 2 * BYTES */
    void *arguments[ARGUMENTS]; /* of a pointer's size */
} kernel;

typedef ze_result_t (*getter_fn)(ze_api_version_t version, void *table);

static struct {
    void *library;
    ze_command_list_dditable_t list;
    ze_mem_dditable_t mem;
    ze_pfnDriverGetExtensionFunctionAddress_t address;
} soft;

static getter_fn soft_getter(const char *name)
{
    getter_fn getter;
    if (soft.library == NULL)
        soft.library = dlopen(SOFT_DRIVER, RTLD_NOW | RTLD_LOCAL);
    *(void **)&getter = soft.library ? dlsym(soft.library, name) : NULL;
    return getter;
}

static ze_result_t module_create(ze_context_handle_t context, ze_device_handle_t device, const ze_module_desc_t *desc, ze_module_handle_t *out,
                                 ze_module_build_log_handle_t *log)
{
    module *const m = calloc(1, sizeof(*m));
    (void)desc;
    if (log != NULL)
        *log = calloc(1, 1);
    if (m == NULL)
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    *m = (module){context, device};
    *out = (ze_module_handle_t)m;
    return ZE_RESULT_SUCCESS;
}

/* Handles are not used again: what a program does with a stale one is told from what it does with a new one. */
static ze_result_t module_destroy(ze_module_handle_t handle)
{
    (void)handle;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t log_destroy(ze_module_build_log_handle_t handle)
{
    free(handle);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t log_get_string(ze_module_build_log_handle_t handle, size_t *size, char *text)
{
    (void)handle;
    if (text != NULL && *size > 0)
        text[0] = 0;
    *size = 1;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t kernel_create(ze_module_handle_t handle, const ze_kernel_desc_t *desc, ze_kernel_handle_t *out)
{
    static const ze_device_mem_alloc_desc_t memory = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    kernel *const k = calloc(1, sizeof(*k));
    void *scratch = NULL;
    (void)desc;
    if (k == NULL)
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    k->module = (module *)handle;
    const ze_result_t r = soft.mem.pfnAllocDevice(k->module->context, &memory, (size_t)2 * BYTES, 64, k->module->device, &scratch);
    k->scratch = scratch;
    *out = (ze_kernel_handle_t)k;
    return r;
}

static ze_result_t kernel_destroy(ze_kernel_handle_t handle)
{
    (void)handle;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t set_argument(ze_kernel_handle_t handle, uint32_t index, size_t size, const void *value)
{
    kernel *const k = (kernel *)handle;
    if (index >= ARGUMENTS)
        return ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX;
    k->arguments[index] = NULL;
    if (value != NULL && size == sizeof(void *))
        memcpy(&k->arguments[index], value, sizeof(void *));
    return ZE_RESULT_SUCCESS;
}

static ze_result_t set_indirect(ze_kernel_handle_t handle, ze_kernel_indirect_access_flags_t flags)
{
    (void)handle, (void)flags;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t set_group_size(ze_kernel_handle_t handle, uint32_t x, uint32_t y, uint32_t z)
{
    (void)handle, (void)x, (void)y, (void)z;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t launch(ze_command_list_handle_t list, ze_kernel_handle_t handle, const ze_group_count_t *groups, ze_event_handle_t signal,
                          uint32_t n_waits, ze_event_handle_t *waits)
{
    const kernel *const k = (kernel *)handle;
    void *operands[2] = {k->scratch, k->scratch + BYTES};
    (void)groups;
    for (unsigned i = 0, n = 0; i < ARGUMENTS && n < 2; i++) {
        ze_memory_allocation_properties_t p = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
        if (k->arguments[i] != NULL && soft.mem.pfnGetAllocProperties(k->module->context, k->arguments[i], &p, NULL) == ZE_RESULT_SUCCESS &&
            p.type != ZE_MEMORY_TYPE_UNKNOWN)
            operands[n++] = k->arguments[i];
    }
    return soft.list.pfnAppendMemoryCopy(list, operands[0], operands[1], BYTES, signal, n_waits, waits);
}

static ze_result_t launch_with_arguments(ze_command_list_handle_t list, ze_kernel_handle_t handle, const ze_group_count_t groups,
                                         const ze_group_size_t sizes, void **arguments, const void *next, ze_event_handle_t signal,
                                         uint32_t n_waits, ze_event_handle_t *waits)
{
    const kernel *const k = (kernel *)handle;
    (void)groups, (void)sizes, (void)arguments, (void)next;
    return soft.list.pfnAppendMemoryCopy(list, k->scratch, k->scratch + BYTES, BYTES, signal, n_waits, waits);
}

static ze_result_t launch_several(ze_command_list_handle_t list, uint32_t n, ze_kernel_handle_t *kernels, const uint32_t *count,
                                  const ze_group_count_t *groups, ze_event_handle_t signal, uint32_t n_waits, ze_event_handle_t *waits)
{
    (void)count;
    return n > 0 ? launch(list, kernels[n - 1], groups, signal, n_waits, waits) : ZE_RESULT_ERROR_INVALID_SIZE;
}

static ze_result_t extension_address(ze_driver_handle_t driver, const char *name, void **out)
{
    if (strcmp(name, "zeCommandListAppendLaunchKernelWithArguments") != 0)
        return soft.address(driver, name, out);
    *out = (void *)launch_with_arguments;
    return ZE_RESULT_SUCCESS;
}

int zc_proxy_fill(const char *name, uint32_t version, void *table, size_t size, void *caller)
{
    const getter_fn getter = soft_getter(name), of_list = soft_getter("zeGetCommandListProcAddrTable"),
                    of_mem = soft_getter("zeGetMemProcAddrTable");
    (void)size, (void)caller;
    if (getter == NULL || of_list == NULL || of_mem == NULL || of_mem(ZE_API_VERSION_1_0, &soft.mem) != ZE_RESULT_SUCCESS ||
        of_list(ZE_API_VERSION_1_0, &soft.list) != ZE_RESULT_SUCCESS)
        return ZE_RESULT_ERROR_UNINITIALIZED;
    const ze_result_t r = getter((ze_api_version_t)version, table);
    if (r != ZE_RESULT_SUCCESS)
        return (int)r;
    if (strcmp(name, "zeGetModuleProcAddrTable") == 0) {
        ze_module_dditable_t *const t = table;
        t->pfnCreate = module_create;
        t->pfnDestroy = module_destroy;
    } else if (strcmp(name, "zeGetModuleBuildLogProcAddrTable") == 0) {
        ze_module_build_log_dditable_t *const t = table;
        t->pfnDestroy = log_destroy;
        t->pfnGetString = log_get_string;
    } else if (strcmp(name, "zeGetKernelProcAddrTable") == 0) {
        ze_kernel_dditable_t *const t = table;
        t->pfnCreate = kernel_create;
        t->pfnDestroy = kernel_destroy;
        t->pfnSetArgumentValue = set_argument;
        t->pfnSetIndirectAccess = set_indirect;
        t->pfnSetGroupSize = set_group_size;
    } else if (strcmp(name, "zeGetDriverProcAddrTable") == 0 && version >= ZE_MAKE_VERSION(1, 1)) {
        ze_driver_dditable_t *const t = table;
        soft.address = t->pfnGetExtensionFunctionAddress;
        t->pfnGetExtensionFunctionAddress = extension_address;
    } else if (strcmp(name, "zeGetCommandListProcAddrTable") == 0) {
        ze_command_list_dditable_t *const t = table;
        t->pfnAppendLaunchKernel = launch;
        t->pfnAppendLaunchCooperativeKernel = launch;
        t->pfnAppendLaunchMultipleKernelsIndirect = launch_several;
        if (version >= ZE_MAKE_VERSION(1, 14)) /* the tables of older callers end before it */
            t->pfnAppendLaunchKernelWithArguments = launch_with_arguments;
    }
    return ZE_RESULT_SUCCESS;
}

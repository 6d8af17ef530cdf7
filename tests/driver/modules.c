/* SPDX-License-Identifier: MIT */
/*
 * libze_soft with modules that do nothing: for what records, extracts and replaces them. SPIR-V is taken, whatever is behind its first
 * word, and everything else refused. The native binary begins as an ELF file and then has the sums of the bytes of each input and of the flags.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "l0_api.h"
#include "proxy.h"

enum { MOST = 8 };

typedef struct module {
    char native[4];
    uint32_t sums[2 * MOST];
} module;

typedef ze_result_t (*getter_fn)(ze_api_version_t version, void *table);

static uint32_t sum_of(const void *data, size_t size)
{
    uint32_t sum = 1;
    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + ((const uint8_t *)data)[i];
    return sum;
}

static bool take(module *m, unsigned i, const void *input, size_t size, const char *flags)
{
    static const uint8_t magic[4] = {3, 2, 0x23, 7};
    if (i >= MOST || size < 4 || memcmp(input, magic, 4) != 0)
        return false;
    m->sums[2 * i] = sum_of(input, size);
    m->sums[2 * i + 1] = flags ? sum_of(flags, strlen(flags)) : 0;
    return true;
}

static ze_result_t module_create(ze_context_handle_t context, ze_device_handle_t device, const ze_module_desc_t *desc, ze_module_handle_t *out,
                                 ze_module_build_log_handle_t *log)
{
    module *const m = calloc(1, sizeof(*m));
    const ze_module_program_exp_desc_t *const program = desc->pNext;
    (void)context, (void)device, (void)log;
    if (m == NULL)
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    memcpy(m->native, "\177ELF", 4);
    bool ok = program != NULL || take(m, 0, desc->pInputModule, desc->inputSize, desc->pBuildFlags);
    for (uint32_t i = 0; program != NULL && ok && i < program->count; i++)
        ok = take(m, i, program->pInputModules[i], program->inputSizes[i], program->pBuildFlags ? program->pBuildFlags[i] : NULL);
    if (!ok) {
        free(m);
        return ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
    }
    *out = (ze_module_handle_t)m;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t module_destroy(ze_module_handle_t handle)
{
    free(handle);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t get_native(ze_module_handle_t handle, size_t *size, uint8_t *binary)
{
    if (binary != NULL)
        memcpy(binary, handle, *size < sizeof(module) ? *size : sizeof(module));
    *size = sizeof(module);
    return ZE_RESULT_SUCCESS;
}

int zc_proxy_fill(const char *name, uint32_t version, void *table, size_t size, void *caller)
{
    static void *library;
    getter_fn getter;
    (void)size, (void)caller;
    if (library == NULL)
        library = dlopen(SOFT_DRIVER, RTLD_NOW | RTLD_LOCAL);
    *(void **)&getter = library ? dlsym(library, name) : NULL;
    const ze_result_t r = getter ? getter((ze_api_version_t)version, table) : ZE_RESULT_ERROR_UNINITIALIZED;
    if (r == ZE_RESULT_SUCCESS && strcmp(name, "zeGetModuleProcAddrTable") == 0) {
        ze_module_dditable_t *const t = table;
        t->pfnCreate = module_create;
        t->pfnDestroy = module_destroy;
        t->pfnGetNativeBinary = get_native;
    }
    return (int)r;
}

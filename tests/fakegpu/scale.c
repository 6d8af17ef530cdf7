/* SPDX-License-Identifier: MIT */
/*
 * A kernel of the program's own on Intel's driver: FILE is its SPIR-V (scale.spvasm). The fake device gets a body for it in C, unless
 * the second argument is `unregistered`.
 */
#include "../apps/common.h"
#include "kernel.h"

#include <dlfcn.h>

enum { ITEMS = 32 * 4, FACTOR = 3 };

static bool scale(const struct fakegpu_launch *launch)
{
    const uint32_t items = launch->groups[0] * launch->local[0];
    for (uint32_t i = 0; i < items; i++) {
        const uint64_t at = launch->arguments[0][0] + 4 * i;
        uint32_t value;
        if (!launch->read(launch->device, at, &value, 4))
            return false;
        value *= (uint32_t)launch->arguments[1][0];
        if (!launch->write(launch->device, at, &value, 4))
            return false;
    }
    return true;
}

static ze_module_handle_t module_of(const app *a, const char *path)
{
    static uint8_t code[4096];
    FILE *const file = fopen(path, "rb");
    const size_t size = file ? fread(code, 1, sizeof(code), file) : 0;
    if (file)
        fclose(file);
    const ze_module_desc_t desc = {
        .stype = ZE_STRUCTURE_TYPE_MODULE_DESC, .format = ZE_MODULE_FORMAT_IL_SPIRV, .inputSize = size, .pInputModule = code};
    ze_module_handle_t module;
    MUST(zeModuleCreate(a->context, a->device, &desc, &module, NULL));
    return module;
}

static bool give_body(ze_module_handle_t module)
{
    fakegpu_register_fn *const give = (fakegpu_register_fn *)dlsym(RTLD_DEFAULT, "fakegpu_register");
    size_t size = 0;
    MUST(zeModuleGetNativeBinary(module, &size, NULL));
    uint8_t *const binary = malloc(size);
    MUST(zeModuleGetNativeBinary(module, &size, binary));
    const bool given = give && give(binary, size, "scale", scale) && !give(binary, size, "no such kernel", scale);
    free(binary);
    return given;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return CANNOT;
    app a = app_open();
    const ze_module_handle_t module = module_of(&a, argv[1]);
    if (!wanted(argc, argv, "unregistered") && !give_body(module)) {
        printf("the kernel cannot be given a body\n");
        return CANNOT;
    }
    const ze_kernel_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = "scale"};
    ze_kernel_handle_t kernel;
    MUST(zeKernelCreate(module, &desc, &kernel));
    uint32_t *const values = host_new(&a, ITEMS * sizeof(*values));
    void *const device = device_new(&a, ITEMS * sizeof(*values));
    for (uint32_t i = 0; i < ITEMS; i++)
        values[i] = i;
    const uint32_t factor = FACTOR;
    MUST(zeKernelSetGroupSize(kernel, 32, 1, 1));
    MUST(zeKernelSetArgumentValue(kernel, 0, sizeof(device), &device));
    MUST(zeKernelSetArgumentValue(kernel, 1, sizeof(factor), &factor));
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    ze_command_list_handle_t list = list_new(&a, 0);
    const ze_group_count_t groups = {ITEMS / 32, 1, 1};
    MUST(zeCommandListAppendMemoryCopy(list, device, values, ITEMS * sizeof(*values), NULL, 0, NULL));
    MUST(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    MUST(zeCommandListAppendLaunchKernel(list, kernel, &groups, NULL, 0, NULL));
    MUST(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    MUST(zeCommandListAppendMemoryCopy(list, values, device, ITEMS * sizeof(*values), NULL, 0, NULL));
    MUST(zeCommandListClose(list));
    MUST(run(queue, list, NULL));
    bool failed = SHOWS(zeCommandQueueSynchronize(queue, UINT64_MAX));
    for (uint32_t i = 0; i < ITEMS && !failed; i++)
        if (values[i] != FACTOR * i) {
            printf("value %u is %u, not %u\n", i, values[i], FACTOR * i);
            failed = true;
        }
    return verdict(failed, "scale");
}

/* SPDX-License-Identifier: MIT */
/* Modules of all kinds that a program can hand to a driver: for extract_test.py, on the driver of tests/driver/modules.c. */
#include "common.h"

static ze_module_handle_t module_new(const app *a, const void *chain, ze_module_format_t format, const uint8_t *bytes, size_t size,
                                     const char *flags, bool must)
{
    const ze_module_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MODULE_DESC, .pNext = chain, .format = format, .inputSize = size,
                                   .pInputModule = bytes, .pBuildFlags = flags};
    ze_module_handle_t module = NULL;
    const ze_result_t r = zeModuleCreate(a->context, a->device, &desc, &module, NULL);
    if (must)
        MUST(r);
    return module;
}

int main(int argc, char **argv)
{
    const app a = app_open();
    uint8_t first[64] = {3, 2, 0x23, 7, 'A'}, second[100] = {3, 2, 0x23, 7, 'B'}, native[1024], big[200000] = {3, 2, 0x23, 7, 'C'};
    (void)argc, (void)argv;
    module_new(&a, NULL, ZE_MODULE_FORMAT_IL_SPIRV, first, sizeof(first), "-O2 ../../\x1b[31m\"quoted\"", true);
    module_new(&a, NULL, ZE_MODULE_FORMAT_IL_SPIRV, first, sizeof(first), NULL, true); /* once more */
    const size_t sizes[2] = {sizeof(first), sizeof(second)};
    const uint8_t *inputs[2] = {first, second};
    const char *flags[2] = {"-one", "-two"};
    const ze_module_program_exp_desc_t program = {.stype = ZE_STRUCTURE_TYPE_MODULE_PROGRAM_EXP_DESC, .count = 2, .inputSizes = sizes,
                                                  .pInputModules = inputs, .pBuildFlags = flags};
    const ze_module_handle_t both = module_new(&a, &program, ZE_MODULE_FORMAT_IL_SPIRV, NULL, 0, NULL, true);
    size_t size = 0;
    MUST(zeModuleGetNativeBinary(both, &size, NULL));
    MUST(zeModuleGetNativeBinary(both, &size, native));
    module_new(&a, NULL, ZE_MODULE_FORMAT_IL_SPIRV, big, sizeof(big), "", true);
    if (module_new(&a, NULL, ZE_MODULE_FORMAT_NATIVE, native, size, NULL, false) != NULL)
        return 2; /* which that driver does not take */
    const ze_module_handle_t last = module_new(&a, NULL, ZE_MODULE_FORMAT_IL_SPIRV, second, sizeof(second), NULL, true);
    MUST(zeModuleGetNativeBinary(last, &size, NULL));
    MUST(zeModuleGetNativeBinary(last, &size, native));
    return 0;
}

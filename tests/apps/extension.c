/* SPDX-License-Identifier: MIT */
/*
 * extension: functions that are newer than the loader are asked of the driver by name and called: such pointers pass by every layer.
 * Prints calls=N, those calls included.
 */
#include "common.h"

typedef ze_result_t (*host_synchronize)(ze_command_list_handle_t list, uint64_t timeout);
typedef ze_result_t (*get_ordinal)(ze_command_list_handle_t list, uint32_t *ordinal);

int main(void)
{
    void *synchronize, *ordinal_of, *none = NULL;
    uint32_t ordinal = 77;
    app a = app_open(); /* 5 calls */
    unsigned char *const from = host_new(&a, 64), *const to = host_new(&a, 64);
    from[0] = 6;
    MUST(zeDriverGetExtensionFunctionAddress(a.driver, "zeCommandListHostSynchronize", &synchronize));
    MUST(zeDriverGetExtensionFunctionAddress(a.driver, "zeCommandListGetOrdinal", &ordinal_of));
    if (zeDriverGetExtensionFunctionAddress(a.driver, "zexNobodyKnows", &none) == ZE_RESULT_SUCCESS)
        return CANNOT;
    ze_command_list_handle_t list = immediate_new(&a, 0);
    MUST(zeCommandListAppendMemoryCopy(list, to, from, 64, NULL, 0, NULL));
    for (int i = 0; i < 10; i++)
        MUST(((host_synchronize)synchronize)(list, UINT64_MAX));
    MUST(((get_ordinal)ordinal_of)(list, &ordinal));
    printf("calls=%d\n", 5 + 2 + 3 + 2 + 10 + 1);
    return to[0] == 6 && ordinal == 0 ? GOOD : BAD;
}

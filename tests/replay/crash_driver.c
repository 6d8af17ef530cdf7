/* SPDX-License-Identifier: MIT */
/* A driver whose zeContextCreate does not come back: TEST_CRASH=crash dies, hang waits for ever. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "l0_api.h"

static ze_result_t init(ze_init_flags_t flags)
{
    (void)flags;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t driver_get(uint32_t *count, ze_driver_handle_t *drivers)
{
    static int driver;
    *count = 1;
    if (drivers != NULL)
        drivers[0] = (ze_driver_handle_t)&driver;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t context_create(ze_driver_handle_t driver, const ze_context_desc_t *desc,
                                  ze_context_handle_t *context)
{
    (void)driver;
    (void)desc;
    (void)context;
    const char *const how = getenv("TEST_CRASH");
    if (how != NULL && strcmp(how, "hang") == 0)
        for (;;)
            pause();
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    return ZE_RESULT_SUCCESS;
}

ZE_DLLEXPORT ze_result_t zeGetGlobalProcAddrTable(ze_api_version_t version, ze_global_dditable_t *table)
{
    (void)version;
    table->pfnInit = init;
    return ZE_RESULT_SUCCESS;
}

ZE_DLLEXPORT ze_result_t zeGetDriverProcAddrTable(ze_api_version_t version, ze_driver_dditable_t *table)
{
    (void)version;
    table->pfnGet = driver_get;
    return ZE_RESULT_SUCCESS;
}

ZE_DLLEXPORT ze_result_t zeGetContextProcAddrTable(ze_api_version_t version, ze_context_dditable_t *table)
{
    (void)version;
    table->pfnCreate = context_create;
    return ZE_RESULT_SUCCESS;
}

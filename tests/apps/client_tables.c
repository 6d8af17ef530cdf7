/* SPDX-License-Identifier: MIT */
/*
 * The mixed sequence as a statically linked loader makes it: the program fetches the function tables from the loader it
 * opens and calls through them. client_tables PATH_OF_LOADER
 */
#include <dlfcn.h>
#include <level_zero/ze_ddi.h>

#include <stdio.h>

static ze_global_dditable_t Global;
static ze_driver_dditable_t Driver;
static ze_device_dditable_t Device;
static ze_context_dditable_t Context;
static ze_command_queue_dditable_t CommandQueue;
static ze_command_list_dditable_t CommandList;
static ze_event_dditable_t Event;
static ze_event_pool_dditable_t EventPool;
static ze_fence_dditable_t Fence;
static ze_mem_dditable_t Mem;
static ze_module_dditable_t Module;

#define ZE(name)                                  IN_##name
#define IN_zeInit                                 Global.pfnInit
#define IN_zeDriverGet                            Driver.pfnGet
#define IN_zeDriverGetApiVersion                  Driver.pfnGetApiVersion
#define IN_zeDriverGetProperties                  Driver.pfnGetProperties
#define IN_zeDriverGetExtensionProperties         Driver.pfnGetExtensionProperties
#define IN_zeDeviceGet                            Device.pfnGet
#define IN_zeDeviceGetProperties                  Device.pfnGetProperties
#define IN_zeDeviceGetComputeProperties           Device.pfnGetComputeProperties
#define IN_zeDeviceGetCommandQueueGroupProperties Device.pfnGetCommandQueueGroupProperties
#define IN_zeContextCreate                        Context.pfnCreate
#define IN_zeContextDestroy                       Context.pfnDestroy
#define IN_zeContextMakeMemoryResident            Context.pfnMakeMemoryResident
#define IN_zeContextEvictMemory                   Context.pfnEvictMemory
#define IN_zeMemAllocDevice                       Mem.pfnAllocDevice
#define IN_zeMemAllocHost                         Mem.pfnAllocHost
#define IN_zeMemAllocShared                       Mem.pfnAllocShared
#define IN_zeMemGetAllocProperties                Mem.pfnGetAllocProperties
#define IN_zeMemGetAddressRange                   Mem.pfnGetAddressRange
#define IN_zeMemFree                              Mem.pfnFree
#define IN_zeCommandQueueCreate                   CommandQueue.pfnCreate
#define IN_zeCommandQueueDestroy                  CommandQueue.pfnDestroy
#define IN_zeCommandQueueExecuteCommandLists      CommandQueue.pfnExecuteCommandLists
#define IN_zeCommandQueueSynchronize              CommandQueue.pfnSynchronize
#define IN_zeFenceCreate                          Fence.pfnCreate
#define IN_zeFenceDestroy                         Fence.pfnDestroy
#define IN_zeFenceReset                           Fence.pfnReset
#define IN_zeFenceHostSynchronize                 Fence.pfnHostSynchronize
#define IN_zeEventPoolCreate                      EventPool.pfnCreate
#define IN_zeEventPoolDestroy                     EventPool.pfnDestroy
#define IN_zeEventCreate                          Event.pfnCreate
#define IN_zeEventDestroy                         Event.pfnDestroy
#define IN_zeEventQueryStatus                     Event.pfnQueryStatus
#define IN_zeEventHostSynchronize                 Event.pfnHostSynchronize
#define IN_zeCommandListCreate                    CommandList.pfnCreate
#define IN_zeCommandListCreateImmediate           CommandList.pfnCreateImmediate
#define IN_zeCommandListDestroy                   CommandList.pfnDestroy
#define IN_zeCommandListClose                     CommandList.pfnClose
#define IN_zeCommandListAppendMemoryFill          CommandList.pfnAppendMemoryFill
#define IN_zeCommandListAppendMemoryCopy          CommandList.pfnAppendMemoryCopy
#define IN_zeCommandListAppendMemoryCopyRegion    CommandList.pfnAppendMemoryCopyRegion
#define IN_zeCommandListAppendBarrier             CommandList.pfnAppendBarrier
#define IN_zeModuleCreate                         Module.pfnCreate
#include "sequence.h"

static int fetch(void *library, const char *getter, void *table)
{
    ze_result_t (*const get)(ze_api_version_t, void *) =
        (ze_result_t(*)(ze_api_version_t, void *))dlsym(library, getter);
    const ze_result_t r = get ? get(ZE_API_VERSION_1_4, table) : ZE_RESULT_ERROR_UNINITIALIZED;
    if (r != ZE_RESULT_SUCCESS)
        printf("%s = 0x%x\n", getter, (unsigned)r);
    return r != ZE_RESULT_SUCCESS;
}

int main(int argc, char **argv)
{
    void *const library = argc > 1 ? dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        printf("usage: client_tables PATH_OF_LOADER\n");
        return 2;
    }
    /* the loader fills its tables when it is initialised, which is what the first call through its exports does */
    ze_result_t (*const init)(ze_init_flags_t) = (ze_result_t(*)(ze_init_flags_t))dlsym(library, "zeInit");
    sequence_count("zeInit");
    if (init == NULL || init(0) != ZE_RESULT_SUCCESS)
        return 2;
    int bad =
        fetch(library, "zeGetGlobalProcAddrTable", &Global) | fetch(library, "zeGetDriverProcAddrTable", &Driver) |
        fetch(library, "zeGetDeviceProcAddrTable", &Device) | fetch(library, "zeGetContextProcAddrTable", &Context) |
        fetch(library, "zeGetCommandQueueProcAddrTable", &CommandQueue) |
        fetch(library, "zeGetCommandListProcAddrTable", &CommandList) |
        fetch(library, "zeGetEventProcAddrTable", &Event) | fetch(library, "zeGetEventPoolProcAddrTable", &EventPool) |
        fetch(library, "zeGetFenceProcAddrTable", &Fence) | fetch(library, "zeGetMemProcAddrTable", &Mem) |
        fetch(library, "zeGetModuleProcAddrTable", &Module);
    const int status = bad ? 2 : sequence_run();
    sequence_report(argc > 2);
    return status;
}

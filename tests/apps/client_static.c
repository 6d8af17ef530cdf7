/* SPDX-License-Identifier: MIT */
/*
 * The mixed sequence as newer statically linked loaders make it: a table of pointers is filled by dlsym, whole, before
 * the first call, and everything goes through it. client_static PATH_OF_LOADER
 */
#include <dlfcn.h>
#include <level_zero/ze_api.h>

#define NAMES(X)                                                                                                       \
    X(zeInit)                                                                                                          \
    X(zeDriverGet) X(zeDriverGetApiVersion) X(zeDriverGetProperties) X(zeDriverGetExtensionProperties) X(zeDeviceGet)  \
        X(zeDeviceGetProperties) X(zeDeviceGetComputeProperties) X(zeDeviceGetCommandQueueGroupProperties)             \
            X(zeContextCreate) X(zeContextDestroy) X(zeContextMakeMemoryResident) X(zeContextEvictMemory)              \
                X(zeMemAllocDevice) X(zeMemAllocHost) X(zeMemAllocShared) X(zeMemGetAllocProperties)                   \
                    X(zeMemGetAddressRange) X(zeMemFree) X(zeCommandQueueCreate) X(zeCommandQueueDestroy)              \
                        X(zeCommandQueueExecuteCommandLists) X(zeCommandQueueSynchronize) X(zeFenceCreate)             \
                            X(zeFenceDestroy) X(zeFenceReset) X(zeFenceHostSynchronize) X(zeEventPoolCreate)           \
                                X(zeEventPoolDestroy) X(zeEventCreate) X(zeEventDestroy) X(zeEventQueryStatus)         \
                                    X(zeEventHostSynchronize) X(zeCommandListCreate) X(zeCommandListCreateImmediate)   \
                                        X(zeCommandListDestroy) X(zeCommandListClose) X(zeCommandListAppendMemoryFill) \
                                            X(zeCommandListAppendMemoryCopy) X(zeCommandListAppendMemoryCopyRegion)    \
                                                X(zeCommandListAppendBarrier) X(zeModuleCreate)

static struct {
#define FIELD(name) __typeof__(&name) name;
    NAMES(FIELD)
} table;

#define ZE(name) table.name
#include "sequence.h"

int main(int argc, char **argv)
{
    void *const library = argc > 1 ? dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        printf("usage: client_static PATH_OF_LOADER: %s\n", argc < 2 ? "no path" : dlerror());
        return 2;
    }
#define FILL(name)                                                                                                     \
    if ((table.name = (__typeof__(&name))dlsym(library, #name)) == NULL) {                                             \
        printf("the loader has no %s\n", #name);                                                                       \
        return 2;                                                                                                      \
    }
    NAMES(FILL)
    const int status = sequence_run();
    sequence_report(argc > 2);
    return status;
}

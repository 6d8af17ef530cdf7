/* SPDX-License-Identifier: MIT */
/* Who the driver and its devices say they are: a Data Center GPU Max 1550 as far as a CPU can stand for one. */
#include "soft.h"

#include <stdio.h>
#include <string.h>

static const uint64_t memory_size = 128ull << 30;

static const char *const extensions[] = {
    ZE_EVENT_QUERY_TIMESTAMPS_EXP_NAME,
    ZE_MEMORY_FREE_POLICIES_EXT_NAME,
    ZE_EVENT_POOL_COUNTER_BASED_EXP_NAME,
    ZE_EVENT_QUERY_KERNEL_TIMESTAMPS_EXT_NAME,
    ZE_PCI_PROPERTIES_EXT_NAME,
};

static bool is_driver(ze_driver_handle_t handle)
{
    return soft_object_get(handle, SOFT_DRIVER) != NULL;
}

static bool is_device(ze_device_handle_t handle)
{
    return soft_object_get(handle, SOFT_DEVICE) != NULL;
}

/* The two-call idiom: room in, number out; whatever fits is written. @return how many to write. */
static uint32_t two_calls(uint32_t *pCount, uint32_t there, const void *out)
{
    const uint32_t n = out == NULL || *pCount == 0 ? 0 : *pCount < there ? *pCount : there;
    if (out == NULL || *pCount == 0 || *pCount > there)
        *pCount = there;
    return n;
}

ze_result_t soft_zeDriverGetApiVersion(ze_driver_handle_t hDriver, ze_api_version_t *version)
{
    if (!is_driver(hDriver))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *version = ZE_API_VERSION_CURRENT_M;
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDriverGetProperties(ze_driver_handle_t hDriver, ze_driver_properties_t *pDriverProperties)
{
    if (!is_driver(hDriver))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    memcpy(pDriverProperties->uuid.id, "libze_soft\0\0\0\0\0", 16);
    pDriverProperties->driverVersion = 1u << 24;
    unsigned left = 64; /* a chain may lead to itself */
    for (ze_base_properties_t *p = pDriverProperties->pNext; p != NULL && left-- > 0; p = p->pNext)
        if (p->stype == ZE_STRUCTURE_TYPE_DRIVER_MEMORY_FREE_EXT_PROPERTIES)
            ((ze_driver_memory_free_ext_properties_t *)p)->freePolicies =
                ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE | ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_DEFER_FREE;
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDriverGetIpcProperties(ze_driver_handle_t hDriver, ze_driver_ipc_properties_t *pIpcProperties)
{
    if (!is_driver(hDriver))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    pIpcProperties->flags = 0;
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDriverGetExtensionProperties(ze_driver_handle_t hDriver, uint32_t *pCount,
                                                ze_driver_extension_properties_t *pExtensionProperties)
{
    if (!is_driver(hDriver))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    const uint32_t n = two_calls(pCount, sizeof(extensions) / sizeof(extensions[0]), pExtensionProperties);
    for (uint32_t i = 0; i < n; i++) {
        memset(&pExtensionProperties[i], 0, sizeof(pExtensionProperties[i]));
        snprintf(pExtensionProperties[i].name, sizeof(pExtensionProperties[i].name), "%s", extensions[i]);
        pExtensionProperties[i].version = ZE_MAKE_VERSION(1, 0);
    }
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDriverGetExtensionFunctionAddress(ze_driver_handle_t hDriver, const char *name, void **ppFunctionAddress)
{
    if (!is_driver(hDriver))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (!soft_entry_implemented(name))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *ppFunctionAddress = soft_entry_find(name);
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDriverGetLastErrorDescription(ze_driver_handle_t hDriver, const char **ppString)
{
    if (!is_driver(hDriver))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *ppString = "";
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceGet(ze_driver_handle_t hDriver, uint32_t *pCount, ze_device_handle_t *phDevices)
{
    if (!is_driver(hDriver))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    const uint32_t n = two_calls(pCount, soft.devices, phDevices);
    for (uint32_t i = 0; i < n; i++)
        phDevices[i] = (ze_device_handle_t)soft_devices[i];
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceGetSubDevices(ze_device_handle_t hDevice, uint32_t *pCount, ze_device_handle_t *phSubdevices)
{
    (void)phSubdevices;
    if (!is_device(hDevice))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *pCount = 0;
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceGetRootDevice(ze_device_handle_t hDevice, ze_device_handle_t *phRootDevice)
{
    if (!is_device(hDevice))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *phRootDevice = NULL; /* it is a root device itself */
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceGetProperties(ze_device_handle_t hDevice, ze_device_properties_t *p)
{
    const soft_object *const device = soft_object_get(hDevice, SOFT_DEVICE);
    if (device == NULL)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    const bool cycles = p->stype == ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2;
    p->type = ZE_DEVICE_TYPE_GPU;
    p->vendorId = 0x8086;
    p->deviceId = 0x0bd5;
    p->flags = 0;
    p->subdeviceId = 0;
    p->coreClockRate = 1600;
    p->maxMemAllocSize = 64ull << 30;
    p->maxHardwareContexts = 65536;
    p->maxCommandQueuePriority = 0;
    p->numThreadsPerEU = 8;
    p->physicalEUSimdWidth = 16;
    p->numEUsPerSubslice = 8;
    p->numSubslicesPerSlice = 64;
    p->numSlices = 1;
    p->timerResolution = cycles ? 19200000 : 52;
    p->timestampValidBits = 64;
    p->kernelTimestampValidBits = 64;
    memset(p->uuid.id, 0, sizeof(p->uuid.id));
    memcpy(p->uuid.id, "\x86\x80\xd5\x0b\x2f", 5);
    p->uuid.id[15] = (uint8_t)device->device.index;
    memset(p->name, 0, sizeof(p->name));
    snprintf(p->name, sizeof(p->name), "Data Center GPU Max 1550 (libze_soft)");
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceGetComputeProperties(ze_device_handle_t hDevice, ze_device_compute_properties_t *p)
{
    if (!is_device(hDevice))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    p->maxTotalGroupSize = p->maxGroupSizeX = p->maxGroupSizeY = p->maxGroupSizeZ = 1024;
    p->maxGroupCountX = p->maxGroupCountY = p->maxGroupCountZ = UINT32_MAX;
    p->maxSharedLocalMemory = 128u << 10;
    p->numSubGroupSizes = 2;
    memset(p->subGroupSizes, 0, sizeof(p->subGroupSizes));
    p->subGroupSizes[0] = 16;
    p->subGroupSizes[1] = 32;
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceGetModuleProperties(ze_device_handle_t hDevice, ze_device_module_properties_t *p)
{
    if (!is_device(hDevice))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    p->spirvVersionSupported = ZE_MAKE_VERSION(1, 4);
    p->flags = ZE_DEVICE_MODULE_FLAG_FP16 | ZE_DEVICE_MODULE_FLAG_FP64 | ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS;
    p->fp16flags = p->fp32flags = p->fp64flags = ZE_DEVICE_FP_FLAG_DENORM | ZE_DEVICE_FP_FLAG_INF_NAN |
                                                 ZE_DEVICE_FP_FLAG_ROUND_TO_NEAREST | ZE_DEVICE_FP_FLAG_FMA;
    p->maxArgumentsSize = 2048;
    p->printfBufferSize = 4u << 20;
    memset(&p->nativeKernelSupported, 0, sizeof(p->nativeKernelSupported));
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceGetCommandQueueGroupProperties(ze_device_handle_t hDevice, uint32_t *pCount,
                                                        ze_command_queue_group_properties_t *p)
{
    static const struct {
        uint32_t flags, queues;
    } groups[] = {
        {ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE | ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY |
             ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COOPERATIVE_KERNELS, 1},
        {ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY, 1},
        {ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY, 8},
    };
    if (!is_device(hDevice))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    const uint32_t n = two_calls(pCount, 3, p);
    for (uint32_t i = 0; i < n; i++) {
        p[i].flags = groups[i].flags;
        p[i].maxMemoryFillPatternSize = soft_longest_pattern[i];
        p[i].numQueues = groups[i].queues;
    }
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceGetMemoryProperties(ze_device_handle_t hDevice, uint32_t *pCount, ze_device_memory_properties_t *p)
{
    if (!is_device(hDevice))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (two_calls(pCount, 1, p) > 0) {
        p->flags = 0;
        p->maxClockRate = 3200;
        p->maxBusWidth = 1024;
        p->totalSize = soft.memory < memory_size ? soft.memory : memory_size;
        memset(p->name, 0, sizeof(p->name));
        snprintf(p->name, sizeof(p->name), "HBM");
    }
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceGetMemoryAccessProperties(ze_device_handle_t hDevice, ze_device_memory_access_properties_t *p)
{
    const ze_memory_access_cap_flags_t all = ZE_MEMORY_ACCESS_CAP_FLAG_RW | ZE_MEMORY_ACCESS_CAP_FLAG_ATOMIC;
    if (!is_device(hDevice))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    p->hostAllocCapabilities = ZE_MEMORY_ACCESS_CAP_FLAG_RW;
    p->deviceAllocCapabilities = p->sharedSingleDeviceAllocCapabilities = all;
    p->sharedCrossDeviceAllocCapabilities = soft.devices > 1 ? all : 0;
    p->sharedSystemAllocCapabilities = 0;
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceGetCacheProperties(ze_device_handle_t hDevice, uint32_t *pCount, ze_device_cache_properties_t *p)
{
    if (!is_device(hDevice))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (two_calls(pCount, 1, p) > 0) {
        p->flags = 0;
        p->cacheSize = 204u << 20;
    }
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceGetImageProperties(ze_device_handle_t hDevice, ze_device_image_properties_t *p)
{
    if (!is_device(hDevice))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    p->maxImageDims1D = p->maxImageDims2D = p->maxImageDims3D = 0; /* no images */
    p->maxImageBufferSize = 0;
    p->maxImageArraySlices = p->maxSamplers = p->maxReadImageArgs = p->maxWriteImageArgs = 0;
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceGetExternalMemoryProperties(ze_device_handle_t hDevice, ze_device_external_memory_properties_t *p)
{
    if (!is_device(hDevice))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    p->memoryAllocationImportTypes = p->memoryAllocationExportTypes = p->imageImportTypes = p->imageExportTypes = 0;
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceGetP2PProperties(ze_device_handle_t hDevice, ze_device_handle_t hPeerDevice,
                                          ze_device_p2p_properties_t *p)
{
    if (!is_device(hDevice) || !is_device(hPeerDevice))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    p->flags = ZE_DEVICE_P2P_PROPERTY_FLAG_ACCESS | ZE_DEVICE_P2P_PROPERTY_FLAG_ATOMICS;
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceCanAccessPeer(ze_device_handle_t hDevice, ze_device_handle_t hPeerDevice, ze_bool_t *value)
{
    if (!is_device(hDevice) || !is_device(hPeerDevice))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *value = 1;
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceGetGlobalTimestamps(ze_device_handle_t hDevice, uint64_t *hostTimestamp, uint64_t *deviceTimestamp)
{
    if (!is_device(hDevice))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *hostTimestamp = soft_now_ns();
    *deviceTimestamp = soft_device_ticks();
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDevicePciGetPropertiesExt(ze_device_handle_t hDevice, ze_pci_ext_properties_t *p)
{
    const soft_object *const device = soft_object_get(hDevice, SOFT_DEVICE);
    if (device == NULL)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    p->address = (ze_pci_address_ext_t){.bus = 0x3a + device->device.index};
    p->maxSpeed = (ze_pci_speed_ext_t){.genVersion = -1, .width = -1, .maxBandwidth = -1};
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceGetCounterBasedEventMaxValue(ze_device_handle_t hDevice, uint64_t *maxValue)
{
    if (!is_device(hDevice))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *maxValue = UINT64_MAX;
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceGetAggregatedCopyOffloadIncrementValue(ze_device_handle_t hDevice, uint32_t *incrementValue)
{
    if (!is_device(hDevice))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *incrementValue = 1; /* a copy is one operation */
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDeviceGetStatus(ze_device_handle_t hDevice)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    soft_enter();
    soft_object *const device = soft_object_get(hDevice, SOFT_DEVICE);
    ze_result_t result = device ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (device && soft_any_banned_locked(device))
        result = ZE_RESULT_ERROR_DEVICE_LOST;
    soft_leave();
    return result;
}

/* ---------------------------------------------------------------------------------------------------------- contexts */

ze_result_t soft_zeContextCreateEx(ze_driver_handle_t hDriver, const ze_context_desc_t *desc, uint32_t numDevices,
                                   ze_device_handle_t *phDevices, ze_context_handle_t *phContext)
{
    (void)desc;
    if (!is_driver(hDriver))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < numDevices; i++)
        if (!is_device(phDevices[i]))
            return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    soft_enter();
    soft_object *const context = soft_object_new_locked(SOFT_CONTEXT);
    soft_leave();
    *phContext = (ze_context_handle_t)context;
    return context ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
}

ze_result_t soft_zeContextCreate(ze_driver_handle_t hDriver, const ze_context_desc_t *desc, ze_context_handle_t *phContext)
{
    return soft_zeContextCreateEx(hDriver, desc, 0, NULL, phContext);
}

ze_result_t soft_zeContextDestroy(ze_context_handle_t hContext)
{
    soft_enter();
    soft_object *const context = soft_object_get(hContext, SOFT_CONTEXT);
    if (context != NULL)
        soft_object_kill_locked(context);
    soft_leave();
    return context ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

ze_result_t soft_zeContextGetStatus(ze_context_handle_t hContext)
{
    if (soft.schedule == SOFT_NULL)
        return ZE_RESULT_SUCCESS;
    soft_enter();
    /* also after a fault, as on the data-center driver: the device tells of it */
    const ze_result_t result = soft_object_get(hContext, SOFT_CONTEXT) ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
    soft_leave();
    return result;
}

ze_result_t soft_zeContextSystemBarrier(ze_context_handle_t hContext, ze_device_handle_t hDevice)
{
    return soft_object_get(hContext, SOFT_CONTEXT) && is_device(hDevice) ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

static soft_object *default_context;

ze_context_handle_t soft_zerGetDefaultContext(void)
{
    soft_enter();
    if (soft_started() && soft_object_get(default_context, SOFT_CONTEXT) == NULL)
        default_context = soft_object_new_locked(SOFT_CONTEXT);
    soft_object *const context = soft_started() ? default_context : NULL;
    soft_leave();
    return (ze_context_handle_t)context;
}

ze_context_handle_t soft_zeDriverGetDefaultContext(ze_driver_handle_t hDriver)
{
    return is_driver(hDriver) ? soft_zerGetDefaultContext() : NULL;
}

uint32_t soft_zerTranslateDeviceHandleToIdentifier(ze_device_handle_t hDevice)
{
    const soft_object *const device = soft_object_get(hDevice, SOFT_DEVICE);
    return device ? device->device.index : UINT32_MAX;
}

ze_device_handle_t soft_zerTranslateIdentifierToDeviceHandle(uint32_t identifier)
{
    return (ze_device_handle_t)(soft_started() && identifier < soft.devices ? soft_devices[identifier] : NULL);
}

ze_result_t soft_zerGetLastErrorDescription(const char **ppString)
{
    *ppString = "";
    return ZE_RESULT_SUCCESS;
}

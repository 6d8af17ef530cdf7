/* SPDX-License-Identifier: MIT */
/*
 * The part of the xe kernel driver's interface that the fake answers. Debian 12's kernel headers are older than xe. Names are
 * the kernel's without drm_; the sizes below are the kernel's too, and the compiler checks them.
 */
#ifndef FAKEGPU_XE_H
#define FAKEGPU_XE_H

#include <stdint.h>

enum { DRM_TYPE = 'd', DRM_NR_VERSION = 0x00, DRM_NR_GEM_CLOSE = 0x09, DRM_NR_XE = 0x40 };

enum xe_ioctl {
    XE_DEVICE_QUERY,
    XE_GEM_CREATE,
    XE_GEM_MMAP_OFFSET,
    XE_VM_CREATE,
    XE_VM_DESTROY,
    XE_VM_BIND,
    XE_EXEC_QUEUE_CREATE,
    XE_EXEC_QUEUE_DESTROY,
    XE_EXEC_QUEUE_GET_PROPERTY,
    XE_EXEC,
    XE_WAIT_USER_FENCE,
    XE_EXEC_QUEUE_SET_PROPERTY = 0x0e,
};

struct drm_version {
    int32_t major, minor, patch;
    uint64_t name_len;
    char *name;
    uint64_t date_len;
    char *date;
    uint64_t desc_len;
    char *desc;
};

struct drm_gem_close {
    uint32_t handle, pad;
};

struct xe_device_query {
    uint64_t extensions;
    uint32_t query, size;
    uint64_t data, reserved[2];
};

enum xe_query {
    XE_QUERY_ENGINES,
    XE_QUERY_MEM_REGIONS,
    XE_QUERY_CONFIG,
    XE_QUERY_GT_LIST,
    XE_QUERY_HWCONFIG,
    XE_QUERY_GT_TOPOLOGY,
    XE_QUERY_ENGINE_CYCLES,
    XE_QUERY_UC_FW_VERSION,
};

enum { XE_ENGINE_RENDER = 0, XE_ENGINE_COPY = 1, XE_ENGINE_COMPUTE = 4 };

struct xe_engine_instance {
    uint16_t engine_class, engine_instance, gt_id, pad;
};

struct xe_engine {
    struct xe_engine_instance instance;
    uint64_t reserved[3];
};

struct xe_query_engines {
    uint32_t num_engines, pad;
    struct xe_engine engines[];
};

enum { XE_REGION_SYSMEM = 0, XE_REGION_VRAM = 1 };

struct xe_mem_region {
    uint16_t mem_class, instance;
    uint32_t min_page_size;
    uint64_t total_size, used, cpu_visible_size, cpu_visible_used, reserved[6];
};

struct xe_query_mem_regions {
    uint32_t num_mem_regions, pad;
    struct xe_mem_region mem_regions[];
};

enum { XE_CONFIG_DEVICE_ID, XE_CONFIG_FLAGS, XE_CONFIG_MIN_ALIGNMENT, XE_CONFIG_VA_BITS, XE_CONFIG_MAX_PRIORITY, XE_CONFIGS };
enum { XE_CONFIG_FLAG_HAS_VRAM = 1 };

struct xe_query_config {
    uint32_t num_params, pad;
    uint64_t info[];
};

struct xe_gt {
    uint16_t type, tile_id, gt_id, pad[3];
    uint32_t reference_clock;
    uint64_t near_mem_regions, far_mem_regions;
    uint16_t ip_ver_major, ip_ver_minor, ip_ver_rev, pad2;
    uint64_t reserved[7];
};

struct xe_query_gt_list {
    uint32_t num_gt, pad;
    struct xe_gt gt_list[];
};

enum { XE_TOPO_DSS_GEOMETRY = 1, XE_TOPO_DSS_COMPUTE, XE_TOPO_L3_BANK, XE_TOPO_EU_PER_DSS, XE_TOPO_SIMD16_EU_PER_DSS };

struct xe_query_topology_mask {
    uint16_t gt_id, type;
    uint32_t num_bytes;
    uint8_t mask[];
};

struct xe_query_engine_cycles {
    struct xe_engine_instance eci;
    int32_t clockid;
    uint32_t width;
    uint64_t engine_cycles, cpu_timestamp, cpu_delta;
};

struct xe_gem_create {
    uint64_t extensions, size;
    uint32_t placement, flags, vm_id, handle;
    uint16_t cpu_caching, pad[3];
    uint64_t reserved[2];
};

enum { XE_MMAP_OFFSET_PCI_BARRIER = 1 };

struct xe_gem_mmap_offset {
    uint64_t extensions;
    uint32_t handle, flags;
    uint64_t offset, reserved[2];
};

enum { XE_VM_SCRATCH_PAGE = 1, XE_VM_LR_MODE = 2, XE_VM_FAULT_MODE = 4 };

struct xe_vm_create {
    uint64_t extensions;
    uint32_t flags, vm_id;
    uint64_t reserved[2];
};

struct xe_vm_destroy {
    uint32_t vm_id, pad;
    uint64_t reserved[2];
};

enum { XE_BIND_MAP, XE_BIND_UNMAP, XE_BIND_MAP_USERPTR, XE_BIND_UNMAP_ALL, XE_BIND_PREFETCH };
enum { XE_BIND_READONLY = 1, XE_BIND_NULL = 4, XE_BIND_CPU_ADDR_MIRROR = 32 };

struct xe_vm_bind_op {
    uint64_t extensions;
    uint32_t obj;
    uint16_t pat_index, pad;
    uint64_t obj_offset; /* or the user pointer */
    uint64_t range, addr;
    uint32_t op, flags, prefetch_region, pad2;
    uint64_t reserved[3];
};

struct xe_vm_bind {
    uint64_t extensions;
    uint32_t vm_id, exec_queue_id, pad, num_binds;
    union {
        struct xe_vm_bind_op bind;
        uint64_t vector_of_binds;
    };
    uint32_t pad2, num_syncs;
    uint64_t syncs, reserved[2];
};

struct xe_exec_queue_create {
    uint64_t extensions;
    uint16_t width, num_placements;
    uint32_t vm_id, flags, exec_queue_id;
    uint64_t instances, reserved[2];
};

struct xe_exec_queue_destroy {
    uint32_t exec_queue_id, pad;
    uint64_t reserved[2];
};

enum { XE_EXEC_QUEUE_PROPERTY_BAN = 0 };

struct xe_exec_queue_get_property {
    uint64_t extensions;
    uint32_t exec_queue_id, property;
    uint64_t value, reserved[2];
};

enum { XE_SYNC_USER_FENCE = 2 };
enum { XE_SYNC_SIGNAL = 1 };

struct xe_sync {
    uint64_t extensions;
    uint32_t type, flags;
    uint64_t addr; /* for VM binds the CPU's address, for EXEC the device's */
    uint64_t timeline_value, reserved[2];
};

struct xe_exec {
    uint64_t extensions;
    uint32_t exec_queue_id, num_syncs;
    uint64_t syncs, address;
    uint16_t num_batch_buffer, pad[3];
    uint64_t reserved[2];
};

enum { XE_WAIT_EQ, XE_WAIT_NEQ, XE_WAIT_GT, XE_WAIT_GTE, XE_WAIT_LT, XE_WAIT_LTE };
enum { XE_WAIT_ABSTIME = 1 };

struct xe_wait_user_fence {
    uint64_t extensions, addr;
    uint16_t op, flags;
    uint32_t pad;
    uint64_t value, mask;
    int64_t timeout;
    uint32_t exec_queue_id, pad2;
    uint64_t reserved[2];
};

#define XE_SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), "the kernel's " #type)
XE_SIZE(drm_version, 64);
XE_SIZE(xe_device_query, 40);
XE_SIZE(xe_engine, 32);
XE_SIZE(xe_mem_region, 88);
XE_SIZE(xe_gt, 96);
XE_SIZE(xe_query_engine_cycles, 40);
XE_SIZE(xe_gem_create, 56);
XE_SIZE(xe_gem_mmap_offset, 40);
XE_SIZE(xe_vm_create, 32);
XE_SIZE(xe_vm_destroy, 24);
XE_SIZE(xe_vm_bind_op, 80);
XE_SIZE(xe_vm_bind, 136);
XE_SIZE(xe_exec_queue_create, 48);
XE_SIZE(xe_exec_queue_destroy, 24);
XE_SIZE(xe_exec_queue_get_property, 40);
XE_SIZE(xe_sync, 48);
XE_SIZE(xe_exec, 56);
XE_SIZE(xe_wait_user_fence, 72);
#undef XE_SIZE

#endif

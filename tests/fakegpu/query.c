/* SPDX-License-Identifier: MIT */
/* DEVICE_QUERY: what the device is. A query of size 0 asks for the size. */
#include "fakegpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SYSTEM_MEMORY (16ull << 30)

union answer {
    uint8_t bytes[4096];
    struct xe_query_config config;
    struct xe_query_engines engines;
    struct xe_query_mem_regions regions;
    struct xe_query_gt_list gts;
};

static size_t answer_config(union answer *answer, const struct fake_device *device)
{
    answer->config.num_params = XE_CONFIGS;
    uint64_t *const info = answer->config.info;
    info[XE_CONFIG_DEVICE_ID] = device->id | (uint64_t)device->revision << 16;
    info[XE_CONFIG_FLAGS] = device->vram ? XE_CONFIG_FLAG_HAS_VRAM : 0;
    info[XE_CONFIG_MIN_ALIGNMENT] = device->vram ? 64 << 10 : 4 << 10;
    info[XE_CONFIG_VA_BITS] = device->va_bits;
    info[XE_CONFIG_MAX_PRIORITY] = 1;
    return sizeof(answer->config) + XE_CONFIGS * sizeof(*info);
}

static void add_engines(struct xe_query_engines *engines, unsigned engine_class, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        engines->engines[engines->num_engines++].instance =
            (struct xe_engine_instance){.engine_class = (uint16_t)engine_class, .engine_instance = (uint16_t)i};
}

static size_t answer_engines(union answer *answer, const struct fake_device *device)
{
    add_engines(&answer->engines, XE_ENGINE_RENDER, device->renders);
    add_engines(&answer->engines, XE_ENGINE_COMPUTE, device->computes);
    add_engines(&answer->engines, XE_ENGINE_COPY, device->copies);
    return sizeof(answer->engines) + answer->engines.num_engines * sizeof(answer->engines.engines[0]);
}

static size_t answer_regions(union answer *answer, const struct fake_device *device)
{
    struct xe_mem_region *const region = answer->regions.mem_regions;
    answer->regions.num_mem_regions = device->vram ? 2 : 1;
    region[0] = (struct xe_mem_region){.mem_class = XE_REGION_SYSMEM, .min_page_size = 4 << 10, .total_size = SYSTEM_MEMORY};
    if (device->vram)
        region[1] = (struct xe_mem_region){.mem_class = XE_REGION_VRAM,
                                           .instance = 1,
                                           .min_page_size = 64 << 10,
                                           .total_size = device->vram,
                                           .cpu_visible_size = device->vram};
    return sizeof(answer->regions) + answer->regions.num_mem_regions * sizeof(*region);
}

static size_t answer_gts(union answer *answer, const struct fake_device *device)
{
    answer->gts.num_gt = 1;
    answer->gts.gt_list[0] = (struct xe_gt){.reference_clock = FAKE_CLOCK_HZ,
                                            .near_mem_regions = device->vram ? 2 : 1,
                                            .far_mem_regions = device->vram ? 1 : 0,
                                            .ip_ver_major = device->ip_major,
                                            .ip_ver_minor = device->ip_minor,
                                            .ip_ver_rev = device->ip_revision};
    return sizeof(answer->gts) + sizeof(answer->gts.gt_list[0]);
}

static size_t answer_topology(union answer *answer, const struct fake_device *device)
{
    const struct {
        uint16_t type;
        uint32_t bytes;
        uint64_t mask;
    } masks[] = {{XE_TOPO_DSS_GEOMETRY, 8, device->renders ? device->subslices : 0},
                 {XE_TOPO_DSS_COMPUTE, 8, device->subslices},
                 {XE_TOPO_L3_BANK, 8, UINT32_MAX},
                 {device->units_kind, 4, device->units}};
    size_t size = 0;
    for (size_t i = 0; i < COUNT(masks); i++) {
        const struct xe_query_topology_mask head = {.type = masks[i].type, .num_bytes = masks[i].bytes};
        memcpy(answer->bytes + size, &head, sizeof(head));
        memcpy(answer->bytes + size + sizeof(head), &masks[i].mask, masks[i].bytes);
        size += sizeof(head) + masks[i].bytes;
    }
    return size;
}

static int query_cycles(struct xe_device_query *query)
{
    struct xe_query_engine_cycles *const cycles = (void *)(uintptr_t)query->data;
    if (query->size == 0) {
        query->size = sizeof(*cycles);
        return 0;
    }
    struct timespec now;
    if (query->size < sizeof(*cycles) || clock_gettime(cycles->clockid, &now) != 0) {
        errno = EINVAL;
        return -1;
    }
    cycles->width = 36;
    cycles->engine_cycles = fake_ticks() & ((1ull << 36) - 1);
    cycles->cpu_timestamp = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    cycles->cpu_delta = 10;
    return 0;
}

int fake_query(struct xe_device_query *query)
{
    static size_t (*const answers[])(union answer *, const struct fake_device *) = {
        [XE_QUERY_ENGINES] = answer_engines, [XE_QUERY_MEM_REGIONS] = answer_regions, [XE_QUERY_CONFIG] = answer_config,
        [XE_QUERY_GT_LIST] = answer_gts,     [XE_QUERY_GT_TOPOLOGY] = answer_topology};
    union answer answer = {0};
    size_t size = 0;
    if (query->query == XE_QUERY_ENGINE_CYCLES)
        return query_cycles(query);
    if (query->query < COUNT(answers) && answers[query->query]) {
        size = answers[query->query](&answer, fake_device());
    } else if (query->query != XE_QUERY_HWCONFIG) { /* none: the driver has tables of its own */
        fake_unknown("DEVICE_QUERY %u is not known", query->query);
        errno = EINVAL;
        return -1;
    }
    if (query->size != 0 && query->size < size) {
        errno = EINVAL;
        return -1;
    }
    if (query->size != 0)
        memcpy((void *)(uintptr_t)query->data, answer.bytes, size);
    query->size = (uint32_t)size;
    return 0;
}

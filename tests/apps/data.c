/* SPDX-License-Identifier: MIT */
/*
 * Copies, of regions too, and fills of odd sizes and places, in every direction, with every byte looked at: what a driver has to get right. With the
 * argument `copy` on a queue that only copies.
 */
#include "common.h"

enum { SIZE = 1 << 16, GUARD = 0xee };

static ze_command_queue_handle_t queue;
static uint32_t group;
static app a;

static ze_command_queue_group_properties_t choose_group(bool only_copies)
{
    ze_command_queue_group_properties_t groups[8] = {{0}};
    uint32_t n = 8;
    MUST(zeDeviceGetCommandQueueGroupProperties(a.device, &n, groups));
    for (group = 0; group < n; group++)
        if (!only_copies || !(groups[group].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE))
            return groups[group];
    printf("there is no queue that only copies\n");
    exit(CANNOT);
}

static void run_and_wait(ze_command_list_handle_t list)
{
    MUST(zeCommandListClose(list));
    MUST(run(queue, list, NULL));
    MUST(zeCommandQueueSynchronize(queue, 5 * SECOND));
    MUST(zeCommandListDestroy(list));
}

static bool same(const char *what, const unsigned char *found, const unsigned char *wanted, size_t at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (found[i] != wanted[i]) {
            printf("%s, offset %zu, %zu bytes: byte %zu is 0x%02x, not 0x%02x\n", what, at, n, i, found[i], wanted[i]);
            return false;
        }
    return true;
}

/* host to device, there to another place, and back; what is beside stays as it was */
static bool copies(unsigned char *device, unsigned char *in, unsigned char *out, size_t at, size_t n)
{
    static const unsigned char guard[1] = {GUARD};
    ze_command_list_handle_t list = list_new(&a, group);
    memset(out, 0, SIZE);
    MUST(zeCommandListAppendMemoryFill(list, device, guard, 1, 2 * SIZE, NULL, 0, NULL));
    MUST(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    MUST(zeCommandListAppendMemoryCopy(list, device + at, in + at, n, NULL, 0, NULL));
    MUST(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    MUST(zeCommandListAppendMemoryCopy(list, device + SIZE, device, SIZE, NULL, 0, NULL));
    MUST(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    MUST(zeCommandListAppendMemoryCopy(list, out, device + SIZE, SIZE, NULL, 0, NULL));
    run_and_wait(list);
    for (size_t i = 0; i < SIZE; i++)
        if ((i < at || i >= at + n) && out[i] != GUARD) {
            printf("copy, offset %zu, %zu bytes: byte %zu beside it was written\n", at, n, i);
            return false;
        }
    return same("copy", out + at, in + at, at, n);
}

static bool fills(unsigned char *device, unsigned char *out, size_t pattern, size_t at, size_t n)
{
    const unsigned char bytes[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    unsigned char wanted[SIZE];
    for (size_t i = 0; i < n; i++)
        wanted[i] = bytes[i % pattern];
    ze_command_list_handle_t list = list_new(&a, group);
    MUST(zeCommandListAppendMemoryFill(list, device + at, bytes, pattern, n, NULL, 0, NULL));
    MUST(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    MUST(zeCommandListAppendMemoryCopy(list, out, device, SIZE, NULL, 0, NULL));
    run_and_wait(list);
    char what[32];
    snprintf(what, sizeof(what), "fill with %zu bytes", pattern);
    return same(what, out + at, wanted, at, n);
}

/* a box out of host memory into one of other pitches, read back whole */
static bool regions(unsigned char *device, const unsigned char *in, unsigned char *out, uint32_t at, uint32_t width, uint32_t depth)
{
    enum { ROWS = 7, IN_PITCH = 256, IN_PLANE = 4096, OUT_PITCH = 320, OUT_PLANE = 5120 };
    static const unsigned char guard[1] = {GUARD};
    const ze_copy_region_t from = {at, 1, 0, width, ROWS, depth}, to = {at + 16, 2, 0, width, ROWS, depth};
    static unsigned char wanted[SIZE];
    memset(wanted, GUARD, SIZE);
    for (uint32_t z = 0; z < depth; z++)
        for (uint32_t y = 0; y < ROWS; y++)
            memcpy(wanted + z * OUT_PLANE + (y + 2) * OUT_PITCH + at + 16, in + z * IN_PLANE + (y + 1) * IN_PITCH + at, width);
    ze_command_list_handle_t list = list_new(&a, group);
    MUST(zeCommandListAppendMemoryFill(list, device, guard, 1, SIZE, NULL, 0, NULL));
    MUST(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    MUST(zeCommandListAppendMemoryCopyRegion(list, device, &to, OUT_PITCH, depth > 1 ? OUT_PLANE : 0, in, &from, IN_PITCH,
                                             depth > 1 ? IN_PLANE : 0, NULL, 0, NULL));
    MUST(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    MUST(zeCommandListAppendMemoryCopy(list, out, device, SIZE, NULL, 0, NULL));
    run_and_wait(list);
    return same("region", out, wanted, at, width);
}

int main(int argc, char **argv)
{
    a = app_open();
    const size_t longest = choose_group(wanted(argc, argv, "copy")).maxMemoryFillPatternSize;
    queue = queue_new(&a, group, 0);
    unsigned char *const device = device_new(&a, 2 * SIZE), *const host = host_new(&a, SIZE), *const out = host_new(&a, SIZE);
    unsigned char *const own = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        own[i] = host[i] = (unsigned char)(i * 7 + i / 251);
    static const size_t places[][2] = {{0, SIZE}, {0, 1}, {3, 5}, {0, 4096}, {1, 4096}, {64, 100}, {17, 1000}, {4096, 16}, {5, 33333}};
    static const size_t patterns[] = {1, 2, 4, 8, 16};
    bool failed = false;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        failed |= !copies(device, host, out, places[i][0], places[i][1]);
        failed |= !copies(device, own, out, places[i][0], places[i][1]);
    }
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]) && patterns[i] <= longest; i++) {
        failed |= !fills(device, out, patterns[i], 0, SIZE);
        failed |= !fills(device, out, patterns[i], 256, 16 * 33);
    }
    for (uint32_t depth = 1; depth < 4; depth += 2) {
        failed |= !regions(device, host, out, 0, 128, depth);
        failed |= !regions(device, host, out, 3, 37, depth);
        failed |= !regions(device, own, out, 16, 1, depth);
    }
    free(own);
    return verdict(failed, "data");
}

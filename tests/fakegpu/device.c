/* SPDX-License-Identifier: MIT */
#include "fakegpu.h"

#include <string.h>
#include <unistd.h>

static const struct fake_device devices[] = {
    /* Data Center GPU Max 1550; the kernel keeps the ninth copy engine for itself */
    {.name = "max1550",
     .id = 0x0bd5,
     .revision = 0x2f,
     .ip_major = 12,
     .ip_minor = 60,
     .ip_revision = 7,
     .va_bits = 57,
     .computes = 4,
     .copies = 9,
     .subslices = UINT64_MAX,
     .units_kind = XE_TOPO_EU_PER_DSS,
     .units = 0xff,
     .vram = 64ull << 30,
     .walker_kernel = 18,
     .walker_post_sync = 26,
     .walker_inline = 31,
     .walker_inline_words = 8},
    /* Arc B580 */
    {.name = "b580",
     .id = 0xe20b,
     .ip_major = 20,
     .ip_minor = 1,
     .ip_revision = 4,
     .va_bits = 48,
     .renders = 1,
     .computes = 1,
     .copies = 9,
     .subslices = 0xfffff,
     .units_kind = XE_TOPO_SIMD16_EU_PER_DSS,
     .units = 0xff,
     .vram = 12ull << 30,
     .walker_kernel = 19,
     .walker_post_sync = 27,
     .walker_inline = 32,
     .walker_inline_words = 8},
};

static const struct fake_device *chosen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void choose(void)
{
    const char *const name = fake_settings()->device;
    for (size_t i = 0; i < COUNT(devices); i++)
        if (!name || !*name || strcmp(name, devices[i].name) == 0) {
            chosen = &devices[i];
            return;
        }
    fake_unknown("FAKEGPU_DEVICE is '%s'; the devices are max1550 and b580", name);
    _exit(125);
}

const struct fake_device *fake_device(void)
{
    pthread_once(&once, choose);
    return chosen;
}

uint64_t fake_ticks(void)
{
    const uint64_t now = fake_now_ns();
    return now / 1000000000 * FAKE_CLOCK_HZ + now % 1000000000 * FAKE_CLOCK_HZ / 1000000000;
}

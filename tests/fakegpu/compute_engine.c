/* SPDX-License-Identifier: MIT */
/* What compute engines add: kernels, and the state that says where they and their arguments are. */
#include "fakegpu.h"

#include <string.h>

static bool pipe_control(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count)
{
    (void)batch, (void)count;
    return fake_post_sync(q, words[1] >> 14 & 3, fake_word64(words + 2) & ~3ull, fake_word64(words + 4));
}

static bool base_addresses(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count)
{
    (void)batch;
    const uint64_t page = ~0xfffull;
    if (count > 2 && words[1] & 1)
        q->general_base = fake_word64(words + 1) & page;
    if (count > 11 && words[10] & 1)
        q->instruction_base = fake_word64(words + 10) & page;
    return true;
}

static bool timestamps(struct fake_queue *q, uint64_t address, uint64_t begin)
{
    const uint64_t end = fake_ticks();
    const uint32_t record[4] = {(uint32_t)begin, (uint32_t)begin, (uint32_t)end, (uint32_t)end};
    return fake_write(q, address, record, sizeof(record));
}

static bool walker(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count)
{
    (void)batch;
    const struct fake_device *const device = fake_device();
    const uint32_t *const sync = words + device->walker_post_sync;
    uint8_t payload[FAKE_PAYLOAD];
    if (count < device->walker_inline + device->walker_inline_words) {
        fake_unknown("COMPUTE_WALKER has %u words", count);
        return fake_hang(q);
    }
    /* the arguments: a part stands in the command itself, the rest behind it */
    size_t size = 0;
    if (words[4] & 1 << 25) {
        size = 4 * device->walker_inline_words;
        memcpy(payload, words + device->walker_inline, size);
    }
    size_t indirect = words[2] & 0x1ffff;
    indirect = indirect < sizeof(payload) - size ? indirect : sizeof(payload) - size;
    const uint64_t begin = fake_ticks();
    fake_queue_work(q);
    if (indirect && !fake_read(q, q->general_base + (words[3] & ~63u), payload + size, indirect))
        return false;
    const struct fake_walk walk = {.address = q->instruction_base + (words[device->walker_kernel] & ~63u),
                                   .payload = payload,
                                   .payload_size = (uint32_t)(size + indirect),
                                   .groups = {words[7], words[8], words[9]},
                                   .local = {(words[6] & 0x3ff) + 1, (words[6] >> 10 & 0x3ff) + 1, (words[6] >> 20 & 0x3ff) + 1}};
    if (!fake_run_kernel(q, &walk))
        return false;
    const uint64_t address = fake_word64(sync + 1);
    return (sync[0] & 3) == 3 ? timestamps(q, address, begin) : fake_post_sync(q, sync[0] & 3, address, fake_word64(sync + 3));
}

#define GFX(value, name, length, run) {0xffff0000, (uint32_t)(value) << 16, name, LENGTH_##length, run}
const struct fake_command fake_compute_commands[] = {
    GFX(0x6101, "STATE_BASE_ADDRESS", 8_BITS, base_addresses),
    GFX(0x6102, "STATE_SIP", 8_BITS, NULL),
    GFX(0x6105, "STATE_COMPUTE_MODE", 8_BITS, NULL),
    GFX(0x610b, "STATE_CONTEXT_DATA_BASE_ADDRESS", 8_BITS, NULL),
    GFX(0x6904, "PIPELINE_SELECT", ONE, NULL),
    GFX(0x7200, "CFE_STATE", 8_BITS, NULL),
    {0xfffc0000, 0x72080000, "COMPUTE_WALKER", LENGTH_8_BITS, walker},
    GFX(0x7919, "3DSTATE_BINDING_TABLE_POOL_ALLOC", 8_BITS, NULL),
    GFX(0x7a00, "PIPE_CONTROL", 8_BITS, pipe_control),
    {0},
};

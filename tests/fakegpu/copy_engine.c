/* SPDX-License-Identifier: MIT */
/* What copy engines add: copies and fills of linear memory, in one row or many. */
#include "fakegpu.h"

enum { MATRIX = 3 << 17, EXTENT = 0x3ffff };

static bool mem_copy(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count)
{
    (void)batch, (void)count;
    const bool matrix = words[0] & MATRIX;
    const uint64_t width = (uint64_t)(matrix ? words[1] & EXTENT : words[1]) + 1, height = matrix ? (words[2] & EXTENT) + 1 : 1;
    const uint64_t from_pitch = (words[3] & EXTENT) + 1, to_pitch = (words[4] & EXTENT) + 1;
    const uint64_t from = fake_word64(words + 5), to = fake_word64(words + 7);
    fake_queue_work(q);
    for (uint64_t row = 0; row < height; row++)
        if (!fake_copy(q, to + row * to_pitch, from + row * from_pitch, width))
            return false;
    return true;
}

static bool mem_set(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count)
{
    (void)batch, (void)count;
    const bool matrix = words[0] & MATRIX;
    const uint64_t width = (uint64_t)(matrix ? words[1] & EXTENT : words[1]) + 1, height = matrix ? (words[2] & EXTENT) + 1 : 1;
    const uint64_t pitch = (words[3] & EXTENT) + 1, to = fake_word64(words + 4);
    const uint8_t value = (uint8_t)(words[6] >> 24);
    fake_queue_work(q);
    for (uint64_t row = 0; row < height; row++)
        if (!fake_fill(q, to + row * pitch, &value, 1, width))
            return false;
    return true;
}

#define BLT(operation, name, run) {0xffc00000, 2u << 29 | (uint32_t)(operation) << 22, name, LENGTH_8_BITS, run}
const struct fake_command fake_copy_commands[] = {
    BLT(0x5a, "MEM_COPY", mem_copy),
    BLT(0x5b, "MEM_SET", mem_set),
    {0},
};

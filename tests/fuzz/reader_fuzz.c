/* SPDX-License-Identifier: MIT */
/* Property: whatever stands in a trace, reading, walking, naming and printing it ends, without a crash and without undefined behaviour. */
#include "trace_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bytes whole;
static char path[64], folder[] = "/tmp/zetrace-fuzz.XXXXXX";

static void set_up(void)
{
    if (whole.n > 0)
        return;
    if (mkdtemp(folder) == NULL)
        exit(2);
    snprintf(path, sizeof(path), "%s/t", folder);
    if (!make_trace_with_backtraces(path, 400, 100))
        exit(2);
    whole = read_file(path);
}

/* The bytes become the contents of one chunk of an otherwise good trace, checksums and all. The first byte chooses the chunk. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned kinds[] = {ZT_CHUNK_CALLS, ZT_CHUNK_CALLS, ZT_CHUNK_API, ZT_CHUNK_BLOB, ZT_CHUNK_SESSION, ZT_CHUNK_ENDING,
                                     ZT_CHUNK_FRAMES};
    set_up();
    if (size < 1)
        return 0;
    const size_t at = find_chunk(&whole, kinds[data[0] % 7], 0);
    zt_chunk_header h;
    memcpy(&h, whole.at + at, sizeof(h));
    bytes file = with_contents(&whole, at, data + 1, size - 1, h.calls, h.late);
    if (write_file(path, file.at, file.n))
        read_everything(path, NULL, NULL, NULL);
    free(file.at);
    return 0;
}

#ifndef FUZZ_WITH_LIBFUZZER
static uint64_t seed;

static uint64_t roll(uint64_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % n;
}

static void mutate(uint8_t *data, size_t *size, size_t room)
{
    for (uint64_t k = 1 + roll(6); k > 0; k--) {
        const size_t at = *size ? roll(*size) : 0;
        switch (roll(6)) {
        case 0:
            data[at] ^= (uint8_t)(1u << roll(8));
            break;
        case 1:
            data[at] = (uint8_t)roll(256);
            break;
        case 2: /* a varint that never ends, or is huge */
            for (size_t i = at; i < *size && i < at + 9; i++)
                data[i] = 0xff;
            break;
        case 3:
            if (*size > 16) {
                const size_t n = 1 + roll(16);
                memmove(data + at, data + (at + n < *size ? at + n : *size), *size - (at + n < *size ? at + n : *size));
                *size -= at + n < *size ? n : *size - at;
            }
            break;
        case 4:
            if (*size + 16 < room) {
                memmove(data + at + 8, data + at, *size - at);
                *size += 8;
            }
            break;
        default:
            data[at] = (uint8_t)(roll(2) ? 0 : 0x80);
        }
    }
}

int main(int argc, char **argv)
{
    const double seconds = argc == 3 && strcmp(argv[1], "--seconds") == 0 ? atof(argv[2]) : 2;
    const time_t start = time(NULL);
    unsigned long rounds = 0;
    static const unsigned kinds[] = {ZT_CHUNK_CALLS, ZT_CHUNK_CALLS, ZT_CHUNK_API, ZT_CHUNK_BLOB, ZT_CHUNK_SESSION, ZT_CHUNK_ENDING,
                                     ZT_CHUNK_FRAMES};
    set_up();
    for (seed = 0x5eed; difftime(time(NULL), start) < seconds + 0.5; rounds++) {
        const unsigned which = (unsigned)(rounds % 7);
        bytes raw = chunk_contents(&whole, find_chunk(&whole, kinds[which], 0));
        const size_t room = raw.n + 256;
        uint8_t *const data = malloc(room + 1);
        if (data == NULL)
            return 2;
        data[0] = (uint8_t)which;
        memcpy(data + 1, raw.at, raw.n);
        size_t size = raw.n;
        mutate(data + 1, &size, room);
        /* the length in front mostly fits, or nothing behind it would be reached */
        if (roll(4) && size > 5) {
            size_t rest = size - (raw.n > 127 ? raw.n > 16383 + 3 ? 3u : 2u : 1u);
            for (size_t i = 1; rest > 0 || i == 1; i++, rest >>= 7)
                data[i] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
        }
        LLVMFuzzerTestOneInput(data, size + 1);
        free(data);
        free(raw.at);
    }
    free(whole.at);
    unlink(path);
    rmdir(folder);
    printf("%lu traces read\n", rounds);
    return 0;
}
#endif

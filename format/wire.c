/* SPDX-License-Identifier: MIT */
#include "wire.h"

static bool varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        const uint8_t byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

bool zt__field_next(const uint8_t **at, const uint8_t *end, zt__field *f)
{
    uint64_t tag, n = 0;
    *f = (zt__field){.at = *at};
    if (!varint(at, end, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX)
        return false;
    f->number = (uint32_t)(tag >> 3);
    f->type = tag & 7;
    if ((f->type == 0 || f->type == 2) && !varint(at, end, &n))
        return false;
    const uint64_t behind = f->type == 2 ? n : f->type == 1 ? 8 : f->type == 5 ? 4 : 0;
    if ((f->type != 0 && behind > (uint64_t)(end - *at)) || f->type > 5 || f->type == 3 || f->type == 4)
        return false;
    f->value = *at;
    f->value_n = (size_t)behind;
    *at += behind;
    f->n = (size_t)(*at - f->at);
    return true;
}

bool zt__varint(zt__bytes *out, uint64_t value)
{
    uint8_t bytes[10];
    size_t n = 0;
    for (; value > 0x7f; value >>= 7)
        bytes[n++] = (uint8_t)(value | 0x80);
    bytes[n++] = (uint8_t)value;
    return zt__append(out, bytes, n);
}

bool zt__field_bytes(zt__bytes *out, uint32_t number, const void *value, size_t n)
{
    return zt__varint(out, (uint64_t)number << 3 | 2) && zt__varint(out, n) && zt__append(out, value, n);
}

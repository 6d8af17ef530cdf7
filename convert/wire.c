/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"

uint8_t *zv_wire_room(zv_wire *w, size_t n)
{
    if (w->too_big || w->out_of_memory)
        return NULL;
    if (n > ZT_MAX_RAW - 16 - w->n) { /* the packet's own length comes in front of it */
        w->too_big = true;
        return NULL;
    }
    if (w->at == NULL || n > w->room - w->n) {
        size_t room = w->room ? w->room : 65536;
        while (room - w->n < n)
            room *= 2;
        uint8_t *const grown = realloc(w->at, room);
        if (grown == NULL) {
            w->out_of_memory = true;
            return NULL;
        }
        w->at = grown;
        w->room = room;
    }
    return w->at + w->n;
}

void zv_wire_bytes(zv_wire *w, const void *bytes, size_t n)
{
    uint8_t *const to = zv_wire_room(w, n);
    if (to == NULL)
        return;
    if (n > 0)
        memcpy(to, bytes, n);
    w->n += n;
}

static size_t varint(uint8_t *to, uint64_t value)
{
    size_t n = 0;
    do
        to[n++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    while ((value >>= 7) != 0);
    return n;
}

void zv_wire_varint(zv_wire *w, uint64_t value)
{
    uint8_t bytes[10];
    zv_wire_bytes(w, bytes, varint(bytes, value));
}

void zv_wire_tag(zv_wire *w, const ProtobufCFieldDescriptor *f)
{
    unsigned type = 0;
    if (f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_BYTES || f->type == PROTOBUF_C_TYPE_MESSAGE ||
        f->label == PROTOBUF_C_LABEL_REPEATED)
        type = 2;
    else if (f->type == PROTOBUF_C_TYPE_FIXED64 || f->type == PROTOBUF_C_TYPE_SFIXED64)
        type = 1;
    else if (f->type == PROTOBUF_C_TYPE_FIXED32 || f->type == PROTOBUF_C_TYPE_SFIXED32)
        type = 5;
    zv_wire_varint(w, (uint64_t)f->id << 3 | type);
}

void zv_wire_length(zv_wire *w, size_t start)
{
    uint8_t bytes[10];
    const size_t size = w->n - start, n = varint(bytes, size);
    if (zv_wire_room(w, n) == NULL)
        return;
    memmove(w->at + start + n, w->at + start, size);
    memcpy(w->at + start, bytes, n);
    w->n += n;
}

/* ------------------------------------------------------------------------------------------------------------ numbers */

/* Nothing but a sign and digits. */
static bool parse(const char *text, size_t n, bool *negative, uint64_t *magnitude)
{
    char digits[24];
    char *end;
    *negative = n > 0 && text[0] == '-';
    text += *negative;
    n -= *negative;
    if (n == 0 || n >= sizeof(digits))
        return false;
    memcpy(digits, text, n);
    digits[n] = '\0';
    if (strspn(digits, "0123456789") != n)
        return false;
    errno = 0;
    *magnitude = strtoull(digits, &end, 10);
    return errno == 0 && *end == '\0';
}

const char *zv_wire_number(zv_wire *w, const ProtobufCFieldDescriptor *f, const char *digits, size_t n)
{
    bool negative;
    uint64_t v;
    if (!parse(digits, n, &negative, &v))
        return "a whole number of at most 64 bits";
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
        if (v > (uint64_t)INT32_MAX + negative)
            return "a whole number of 32 bits with a sign";
        zv_wire_varint(w, negative ? 0 - v : v);
        return NULL;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
        if (v > (uint64_t)INT64_MAX + negative)
            return "a whole number of 64 bits with a sign";
        if (f->type == PROTOBUF_C_TYPE_INT64)
            zv_wire_varint(w, negative ? 0 - v : v);
        else
            zv_wire_varint(w, negative ? v * 2 - 1 + (v == 0) : v * 2);
        return NULL;
    case PROTOBUF_C_TYPE_UINT32:
        if (negative || v > UINT32_MAX)
            return "a whole number of 32 bits without a sign";
        zv_wire_varint(w, v);
        return NULL;
    case PROTOBUF_C_TYPE_UINT64:
        if (negative)
            return "a whole number of 64 bits without a sign";
        zv_wire_varint(w, v);
        return NULL;
    case PROTOBUF_C_TYPE_FIXED64: {
        uint8_t bytes[8];
        if (negative)
            return "a whole number of 64 bits without a sign";
        for (unsigned i = 0; i < 8; i++)
            bytes[i] = (uint8_t)(v >> (8 * i));
        zv_wire_bytes(w, bytes, sizeof(bytes));
        return NULL;
    }
    case PROTOBUF_C_TYPE_BOOL:
        return "true or false";
    case PROTOBUF_C_TYPE_STRING:
        return "a text";
    case PROTOBUF_C_TYPE_BYTES:
        return "bytes as base64";
    default:
        return "an object";
    }
}

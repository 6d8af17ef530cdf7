/* SPDX-License-Identifier: MIT */
/* Protobuf messages as they stand: fields go through byte for byte, whoever put them there. Private to format/. */
#ifndef ZT_WIRE_H
#define ZT_WIRE_H

#include "writer.h"

typedef struct zt__field {
    uint32_t number;
    uint8_t type;         /* 0 varint, 1 eight bytes, 2 bytes, 5 four bytes */
    const uint8_t *at;    /* with its tag */
    size_t n;
    const uint8_t *value; /* of type 2 */
    size_t value_n;
} zt__field;

/* The field at *at, which moves behind it. @return false at the end, or where no field can be made out. */
bool zt__field_next(const uint8_t **at, const uint8_t *end, zt__field *field);
bool zt__field_bytes(zt__bytes *out, uint32_t number, const void *value, size_t n);
bool zt__varint(zt__bytes *out, uint64_t value);

#endif

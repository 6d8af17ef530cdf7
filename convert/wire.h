/* SPDX-License-Identifier: MIT */
/* Protobuf messages put together field by field, in the bytes of the wire, in bounded memory. Private to convert/. */
#ifndef ZV_WIRE_H
#define ZV_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

typedef struct zv_wire {
    uint8_t *at;
    size_t n, room;
    bool too_big, out_of_memory; /* then it is no longer complete */
} zv_wire;

void zv_wire_bytes(zv_wire *w, const void *bytes, size_t n);
/* Room for `n` bytes, to be counted in w->n by the caller. @return NULL: too_big or out_of_memory. */
uint8_t *zv_wire_room(zv_wire *w, size_t n);
void zv_wire_varint(zv_wire *w, uint64_t value);
/* The tag of a field; what is packed or has a length is of wire type 2. */
void zv_wire_tag(zv_wire *w, const ProtobufCFieldDescriptor *field);
/* Puts the length of everything from `start` on in front of it. */
void zv_wire_length(zv_wire *w, size_t start);

/* A number, from decimal digits. @return NULL, or what was wanted instead. */
const char *zv_wire_number(zv_wire *w, const ProtobufCFieldDescriptor *field, const char *digits, size_t n);

#endif

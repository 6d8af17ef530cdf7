/* SPDX-License-Identifier: MIT */
/* What building a call's arguments (program.c) and reading its outputs (outputs.c) share. */
#ifndef ZR_PROGRAM_H
#define ZR_PROGRAM_H

#include <string.h>

#include "internal.h"

#define ZR_MAX_STACK 40

#ifdef __SANITIZE_ADDRESS__
#define ZR_SCRATCH 0 /* outputs each have their own memory, so that the sanitizer sees where they end */
#else
#define ZR_SCRATCH 4096
#endif

enum slot_kind { SLOT_POINTER, SLOT_OUTPUT, SLOT_HANDLE, SLOT_ADDRESS, SLOT_CALLBACK, SLOT_ARGUMENT };
typedef struct slot {
    const void *data;
    uint64_t value, size; /* SLOT_OUTPUT: bytes to provide. SLOT_ADDRESS: bytes the device touches, 0: none */
    uint16_t type;
    uint8_t kind;
    uint8_t tolerant; /* may hold anything: the call only writes it */
} slot;

typedef struct target {
    const uint8_t *data;
    uint64_t size, addr;
} target;

typedef struct builder {
    zr_plan *plan;
    zr_raw *raw;
    zr_call *call;
    const zt_walk *walk;
    slot *slots;
    size_t n_slots, room_slots;
    target *targets;
    size_t n_targets, room_targets;
    const zt_node *node;
    const uint8_t *structs[ZR_MAX_STACK]; /* the structs that are being visited */
    const zt_type *types[ZR_MAX_STACK];
    unsigned depth;
    uint8_t outs[ZR_MAX_STACK]; /* whether each pointer on the way was an output */
    unsigned n_outs;
    /* LEAVE */
    zr_out *list;
    size_t n_list, room_list;
} builder;

/* The memory of a call as of ENTER and as of LEAVE; `raw` must outlive it. */
zt_memory zr_memory_enter(zr_raw *raw);
zt_memory zr_memory_leave(zr_raw *raw);
/* Keeps the first reason why the call can't be made again. */
void zr_why(builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether `data` lies in the call's words. */
bool zr_in_words(const builder *b, const void *data);
/* Whether the node is the field itself and not an element that it points to. */
bool zr_is_outer(const builder *b, const zt_node *node);
/* The replay's place of the program's address. NULL: none. */
void *zr_seg_live(const zr_raw *raw, uint64_t addr);
/* The replay's place of a value that lies at `data` in the recorded memory. NULL: none. */
void *zr_place_of(const builder *b, const void *data);
/* For visitors: keeps `structs` and `types`, and the targets. @return 0, or a negative status. */
int zr_follow(builder *b, const zt_node *node);

static inline uint64_t zr_load(const void *p, uint64_t size)
{
    uint64_t value = 0;
    memcpy(&value, p, size > 8 ? 8 : size);
    return value;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What the layer knows of memory and work, so that it can tell what the device reads: allocations, command lists, queues, and the
 * commands in flight that touch memory the host sees. One spin lock guards all of it; it is never held while memory is read, a ring
 * is waited for, or a driver runs. Private to the layer.
 */
#ifndef ZC_CONTENTS_H
#define ZC_CONTENTS_H

#include "layer.h"

typedef struct zc_alloc {
    uint64_t base, size, id;
    uint32_t kind; /* enum zc_usm_kind */
} zc_alloc;

/* One range of memory that a command reads or writes; a command without any is kept for its event or for being a barrier. */
typedef struct zc_operand {
    uint64_t addr, len;
    uint64_t alloc;      /* id, 0: pageable */
    uint64_t signal;     /* event the command signals, 0: none */
    uint8_t access;      /* enum zt_dir: what the device does there */
    uint8_t barrier;
    uint8_t reach_all;   /* a kernel: may touch all host and shared memory */
    uint8_t pad[5];
} zc_operand;

typedef struct zc_list {
    uint64_t handle; /* of a list or queue; 0: a free place, ~0: one that was used */
    uint64_t generation;
    bool immediate, in_order, synchronous, queue;
    zc_operand *operands;
    uint32_t n, room;
} zc_list;

typedef struct zc_flight {
    zc_operand operand;
    uint64_t carrier, fence; /* queue or immediate list; fence handle or 0 */
    uint64_t submit;         /* counts up */
    uint64_t list;           /* generation of the list, for in-order ones; 0: not in order */
} zc_flight;

void zc_state_lock(void);
void zc_state_unlock(void);

/* All of these want the lock. */
const zc_alloc *zc_alloc_find(uint64_t addr);
void zc_alloc_add(uint64_t base, uint64_t size, uint32_t kind);
void zc_alloc_remove(uint64_t base);
extern uint64_t zc_alloc_generation;
const zc_alloc *zc_alloc_at(size_t index); /* NULL behind the last */
zc_list *zc_list_find(uint64_t handle);
zc_list *zc_list_add(uint64_t handle);
void zc_list_remove(uint64_t handle);
bool zc_list_append(zc_list *list, const zc_operand *operand);
void zc_list_clear(zc_list *list);
bool zc_flight_add(const zc_flight *flight);
extern zc_flight *zc_flights;
extern size_t zc_n_flights;
void zc_flight_drop(bool (*which)(const zc_flight *flight, void *ctx), void *ctx);
extern uint64_t zc_submit;
void zc_state_reset(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What the layer knows of memory and work, so that it can tell what the device reads: allocations, command lists, queues, kernels,
 * and the commands in flight that touch memory the host sees. One spin lock guards all of it; it is never held while memory is read,
 * a ring is waited for, or a driver runs. Private to the layer.
 */
#ifndef ZC_CONTENTS_H
#define ZC_CONTENTS_H

#include "layer.h"

enum { ZC_PAGE = 4096, ZC_OPERANDS = 64 };

/* Which of the host's and shared allocations a kernel may reach: bits by enum zc_usm_kind. */
#define ZC_REACH(kind) (1u << (kind))
#define ZC_REACH_ALL   (ZC_REACH(ZC_USM_HOST) | ZC_REACH(ZC_USM_SHARED))

struct zc_blocks;

typedef struct zc_alloc {
    uint64_t base, size, id;
    uint32_t kind;           /* enum zc_usm_kind */
    uint32_t launches;       /* in flight that may write here because an argument points here */
    uint64_t newest;         /* submit that such a launch came with last */
    bool busy;               /* when that submit came others were in flight */
    uint64_t round;          /* of reading, see zc_round */
    struct zc_blocks *blocks; /* what its pages held last, NULL: not kept in a table of its own */
} zc_alloc;

/* One range of memory that a command reads or writes; a command without any is kept for its event or for being a barrier. */
typedef struct zc_operand {
    uint64_t addr, len;
    uint64_t alloc;      /* id, 0: pageable */
    uint64_t signal;     /* event the command signals, 0: none */
    uint8_t access;      /* enum zt_dir: what the device does there */
    uint8_t barrier;
    uint8_t reach;       /* a kernel: may touch all memory of these kinds (ZC_REACH); `len` is 0 */
    uint8_t argument;    /* a kernel: an argument points into this allocation; which part it touches is not known */
    uint8_t pad[4];
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
    bool busy;               /* a kernel's argument: an earlier launch in flight may be writing there */
} zc_flight;

void zc_state_lock(void);
void zc_state_unlock(void);

/* All of these want the lock. */
zc_alloc *zc_alloc_find(uint64_t addr);
/* Nothing may be there. @return false without memory. */
bool zc_alloc_add(uint64_t base, uint64_t size, uint32_t kind, struct zc_blocks *blocks);
/* @return its blocks, which the caller releases behind the lock; NULL. */
struct zc_blocks *zc_alloc_remove(uint64_t base);
extern uint64_t zc_alloc_generation;
zc_alloc *zc_alloc_at(size_t index); /* NULL behind the last */
size_t zc_n_allocs(void);
zc_list *zc_list_find(uint64_t handle);
zc_list *zc_list_add(uint64_t handle);
void zc_list_remove(uint64_t handle);
bool zc_list_append(zc_list *list, const zc_operand *operand);
void zc_list_clear(zc_list *list);
bool zc_flight_add(zc_flight *flight);
extern zc_flight *zc_flights;
extern size_t zc_n_flights;
void zc_flight_drop(bool (*which)(const zc_flight *flight, void *ctx), void *ctx);
extern uint64_t zc_submit, zc_round;
void zc_state_reset(void);

/* A bigger mapping with the same contents. `list`: address of a pointer to `*room` things of `size` bytes. */
bool zc_grow_map(void *list, size_t n, size_t *room, size_t size, size_t first);

/* ------------------------------------------------------------------------------------- operands of commands (operands.c) */

/* The word of the parameter with that role, 0 if there is none. */
uint64_t zc_word_of(const zc_call *call, int role);
/* Wants the lock. @return the number of operands written to `out` (room for ZC_OPERANDS), at least 1. The last one carries the barrier. */
unsigned zc_operands(const zc_call *call, zc_operand *out);

/* ----------------------------------------------------------------------------------------------- kernels (kernels.c) */

/* Both want the lock. A kernel was created; a call that sets something of it succeeded. */
void zc_kernel_created(uint64_t handle);
void zc_kernel_set(const zc_call *call);
void zc_kernel_remove(uint64_t handle);
void zc_kernels_reset(void);
/*
 * Wants the lock. What a launch of the kernel reaches: allocations that its arguments point into, each once, are added to the `n` in
 * `out`. @return the new number; what `out` has no room for, and kernels that are not known, make `*reach` all.
 */
unsigned zc_kernel_operands(uint64_t handle, zc_operand *out, unsigned n, unsigned room, uint8_t *reach);

/* ----------------------------------------------------------------------------------------------- blocks (blocks.c) */

/* A range to look at. `blocks` is held while it is. */
typedef struct zc_range {
    uint64_t addr, len, alloc;
    struct zc_blocks *blocks;
    bool in_flight; /* was there before: a new hash is a change under way */
    bool kernel;    /* all of an allocation that a kernel may touch */
    bool reached;   /* by a kernel without an argument that points there */
    bool busy;      /* an earlier launch in flight may be writing there */
} zc_range;

/* What the pages of a new allocation hold; NULL if that is not kept for it yet. */
struct zc_blocks *zc_blocks_begin(uint64_t base, uint64_t size);
void zc_blocks_hold(struct zc_blocks *blocks);
void zc_blocks_release(struct zc_blocks *blocks); /* NULL: nothing */
void zc_blocks_end(struct zc_blocks *blocks); /* the allocation is about to go: releases, too */
/* Stages the blocks of a range that are new. */
void zc_read_range(zc_thread *t, const zc_range *range);
/* Stages what a command has written. `budget`: bytes that may still be kept as such; beyond it their hash is. */
void zc_read_back(zc_thread *t, const zc_range *range, uint64_t *budget);
void zc_blocks_fork(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A replay in a given order, private to the replayer. carriers.c makes what runs one command, forced.c decides when.
 * One thread, in the child, whose end is the end of all that is made here.
 */
#ifndef ZR_FORCED_H
#define ZR_FORCED_H

#include "internal.h"

/* SUBMITTED: behind a closed gate. LOST: not taken by the driver, or its engine is gone. */
enum zr_carrier_state { ZR_RECORDED, ZR_SUBMITTED, ZR_OPENED, ZR_ENDED, ZR_LOST };

typedef struct zr_where { /* what a list or queue was created with */
    uint64_t context, device;
    const void *next; /* pNext of its descriptor */
    uint32_t ordinal, index, flags, priority; /* flags: of a list or a queue, as the descriptor has them */
    bool of_queue, synchronous, known;
} zr_where;

typedef struct zr_carrier {
    size_t call;        /* index of the append, or of an execute with events of its own */
    uint64_t opened;    /* 1 for the first gate that was opened */
    uint64_t handle, gate, done;
    uint64_t queue;     /* of its own, 0: none, or destroyed with the program's */
    zr_where at;        /* where that is */
    uint32_t execution;
    uint32_t list, on;  /* objects: the program's list, and its queue or immediate list */
    uint8_t state;      /* enum zr_carrier_state */
} zr_carrier;

typedef struct zr_spare {
    zr_where at;
    uint64_t queue;
} zr_spare;

typedef struct zr_pool {
    uint64_t context, pool;
    uint32_t used;
} zr_pool;

typedef struct zr_carriers {
    zr_carrier *all;
    size_t n, room;
    size_t *flying; /* submitted in that order, and perhaps not over */
    size_t n_flying, room_flying;
    zr_spare *spares; /* queues on which nothing runs */
    size_t n_spares, room_spares;
    zr_pool *pools; /* one open for each context */
    size_t n_pools, room_pools;
    uint64_t opened;
    uint64_t limit_ns; /* how long to wait behind a gate */
    bool faulted;      /* the device's status says so */
} zr_carriers;

/* Where the driver is called for what no recorded call asked for. */
int64_t zr_ask(zr_run *run, const char *name, const uint64_t *words);
#define ZR_ASK(run, name, ...) zr_ask(run, name, (const uint64_t[]){__VA_ARGS__})
#define ZR_REF(x)              ((uint64_t)(uintptr_t)&(x))

/* A list as the program's at `where`. 0: it cannot be had. */
uint64_t zr_new_list(zr_run *run, const zr_where *where);
/* Adds a carrier and records the call into it. Its index is c->n - 1. @return what the call gave. */
int64_t zr_carrier_add(zr_run *run, zr_carriers *c, const zr_call *call, uint32_t execution, uint32_t list, const zr_where *where,
                       const char *name, uint64_t *words, unsigned n_words, unsigned list_word);
/* Submits it behind its gate. @return what the driver says. */
int64_t zr_carrier_submit(zr_run *run, zr_carriers *c, zr_carrier *carrier, uint32_t on, const zr_where *where);
/* Opens its gate and waits, bounded, until it has ended or faulted. */
void zr_carrier_open(zr_run *run, zr_carriers *c, zr_carrier *carrier);
/* Whether it has ended by now. */
bool zr_carrier_ended(zr_run *run, zr_carrier *carrier);
/* A list, queue or context of the program is reset or destroyed, and with it what stands for it in flight. */
void zr_carriers_gone(zr_run *run, zr_carriers *c, uint32_t object, bool reset);

/* tails.c: the end of an execute */
typedef struct zr_tail {
    size_t call; /* index of the execute */
    uint64_t queue_handle, fence_handle, list;
    uint32_t queue, fence; /* objects */
} zr_tail;
typedef struct zr_tails {
    zr_tail *all;
    size_t n, room;
} zr_tails;
bool zr_tail_add(zr_tails *t, const zr_tail *tail);
/* Submits those whose commands are over. */
void zr_tails_settle(zr_run *run, zr_tails *t);
/* The host is about to wait for the object, or to ask: what that covers is submitted, over or not. */
void zr_tails_before_wait(zr_run *run, zr_tails *t, uint32_t object);
/* The queue or fence is reset or destroyed. */
void zr_tails_gone(zr_run *run, zr_tails *t, uint32_t object);
/* Whether all that the execute submitted has ended, or never will. */
bool zr_forced_over(zr_run *run, size_t call);
bool zr_is_kind(const zr_run *run, uint32_t object, const char *kind);

#endif

/* SPDX-License-Identifier: MIT */
/* What the rules remember while a trace is read. All places are counted from 1: 0 means none. */
#ifndef ZO_FACTS_H
#define ZO_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct zo_facts { /* of an object */
    uint32_t context;            /* object it belongs to */
    uint32_t members;            /* context: objects and allocations of it that are alive */
    uint32_t evicted;            /* allocation: call that took it from the device; nothing has brought it back */
    uint64_t evicted_lo, evicted_hi;
    uint32_t last_evict;         /* the same, and nothing has used it since */
    size_t conflicts_then;       /* number of conflicts when it was evicted */
    uint32_t failed;             /* list, fence: call of its last submit, which failed */
    uint32_t users[2];           /* last call that one thread at a time may make, and the last one of any other thread */
    uint8_t reached;             /* context: how its launches reach memory without naming it: bit set of enum zo_reach */
    uint8_t given_pairs;         /* allocation: unordered pairs of launches that were given it */
    bool is_pool;                /* events were made in it */
    bool timestamps;             /* pool: its events have time stamps; event: of such a pool */
    bool shared;                 /* two threads using it has been told */
} zo_facts;

typedef struct zo_failed_create {
    uint32_t call;
    uint16_t type; /* of the handle */
} zo_failed_create;

typedef struct zo_queried { /* events whose time stamps an append asks for */
    uint32_t call, event;
} zo_queried;

typedef struct zo_memory_of_rules { /* of a graph */
    uint32_t first;      /* the first call that needs an initialisation */
    uint32_t init;       /* the first that initialises */
    uint32_t init_drivers, driver_get; /* first of each of the two ways to find drivers */
    uint32_t fault;      /* first call that told of a fault */
    zo_failed_create *failed; size_t n_failed, room_failed;
    zo_queried *queried; size_t n_queried, room_queried;
    uint32_t *deferred; size_t n_deferred, room_deferred; /* allocations freed with the policy that defers */
} zo_memory_of_rules;

#endif

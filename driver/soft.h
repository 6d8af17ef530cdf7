/* SPDX-License-Identifier: MIT */
/*
 * libze_soft from the inside. One lock guards everything but the null schedule; host waits sleep on one condition variable
 * that every change of state wakes. Functions whose name ends in _locked want the lock held.
 */
#ifndef SOFT_H
#define SOFT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver_entry.h"

/* ------------------------------------------------------------------------------------------------------------ knobs */

enum soft_schedule { SOFT_ASYNC, SOFT_EAGER, SOFT_LAZY, SOFT_SEED, SOFT_SCRIPT, SOFT_NULL };
enum soft_fault { SOFT_BAN, SOFT_ABORT, SOFT_SCRATCH };
enum soft_errors { SOFT_AT_SUBMIT, SOFT_AT_SYNC };
enum soft_free { SOFT_FREE_FAULT, SOFT_FREE_BLOCK, SOFT_FREE_REUSE };
enum soft_rebind { SOFT_REBIND_STRICT, SOFT_REBIND_SUBMIT };
enum soft_engines { SOFT_INDEPENDENT, SOFT_SHARED, SOFT_INTEL };
enum soft_append { SOFT_APPEND_RETURN, SOFT_APPEND_BLOCK };
enum soft_residency { SOFT_RES_ALLOCATION, SOFT_RES_EXACT, SOFT_RES_64K };
enum soft_hostptr { SOFT_HOST_START, SOFT_HOST_APPEND };
enum soft_va { SOFT_VA_WINDOW, SOFT_VA_REUSE, SOFT_VA_QUARANTINE };

typedef struct soft_knobs {
    int schedule, fault, errors, free, rebind, engines, append, residency, hostptr, va;
    uint64_t seed;
    char script[1024];
    unsigned devices;
    char log[1024];
} soft_knobs;
extern soft_knobs soft;

/* Reads ZE_SOFT_*. @return false after one sentence on stderr if a value is not one of those that exist. */
bool soft_knobs_read(void);

/* ---------------------------------------------------------------------------------------------------------- objects */

enum soft_kind {
    SOFT_DEAD, SOFT_DRIVER, SOFT_DEVICE, SOFT_CONTEXT, SOFT_QUEUE, SOFT_LIST, SOFT_POOL, SOFT_EVENT, SOFT_FENCE, SOFT_PHYSICAL
};

typedef struct soft_context {
    bool alive;
} soft_context;

/* What is banned together: one engine context of the kernel driver, (device, ordinal, index). */
typedef struct soft_csr {
    bool banned, noticed; /* noticed: a synchronise has reported it */
} soft_csr;

typedef struct soft_device {
    unsigned index;
    soft_csr csr[3][8];
} soft_device;

typedef struct soft_ring soft_ring;

typedef struct soft_queue {
    struct soft_object *context, *device;
    unsigned ordinal, index;
    bool synchronous;
    soft_ring *ring;
} soft_queue;

typedef struct soft_pool {
    struct soft_object *context;
    uint32_t count, flags;
    bool counter_based;
    struct soft_object **events; /* by index, NULL where there is none */
    uint32_t alive;
} soft_pool;

typedef struct soft_event {
    struct soft_object *pool, *context; /* pool NULL: created by zeEventCounterBasedCreate */
    uint32_t index, signal_scope, wait_scope, flags;
    bool signalled, lost, counter_based, timestamps;
    uint64_t assigned, done;      /* counter-based: signals handed out, signals that came */
    uint64_t start, end;          /* kernel timestamps, device ticks */
} soft_event;

typedef struct soft_fence {
    struct soft_object *queue;
    bool signalled, lost;
    uint64_t generation;          /* goes up with each reset: an older submit does not signal it */
} soft_fence;

struct soft_command;
typedef struct soft_list {
    struct soft_object *context, *device;
    unsigned ordinal, index;
    bool immediate, in_order, closed, synchronous;
    uint32_t flags;
    soft_ring *ring;              /* immediate lists */
    struct soft_command **commands;
    size_t n_commands, room;
    uint64_t next_id;
} soft_list;

typedef struct soft_physical {
    uint64_t offset, size; /* in the window's file */
} soft_physical;

typedef struct soft_object {
    uint32_t kind;   /* enum soft_kind; SOFT_DEAD once destroyed */
    uint32_t refs;   /* commands in flight that still name it; memory is reused when dead and 0 */
    uint64_t number; /* counts up for ever */
    union {
        soft_context context;
        soft_device device;
        soft_queue queue;
        soft_list list;
        soft_pool pool;
        soft_event event;
        soft_fence fence;
        soft_physical physical;
    };
} soft_object;

/* @return a new object, or NULL when memory is out. */
soft_object *soft_object_new_locked(enum soft_kind kind);
/* @return the live object of that kind, or NULL for anything else, garbage included. */
soft_object *soft_object_get(const void *handle, enum soft_kind kind);
void soft_object_kill_locked(soft_object *object);
void soft_object_ref_locked(soft_object *object);
void soft_object_unref_locked(soft_object *object);
/* n-th live object of a kind, for walks; NULL at the end. */
soft_object *soft_object_next_locked(enum soft_kind kind, size_t *cursor);

extern soft_object *soft_the_driver;
extern soft_object *soft_devices[8];

/* -------------------------------------------------------------------------------------------------------------- lock */

extern pthread_mutex_t soft_mutex;
extern pthread_cond_t soft_changed;

/* Every entry point but getters: takes the lock, lets `seed` and `script` schedules move, aborts if a fault asked for it. */
void soft_enter(void);
void soft_leave(void);
uint64_t soft_now_ns(void);
/* Starts the window, objects and devices once. @return ZE_RESULT_SUCCESS or why not. */
ze_result_t soft_start(void);
bool soft_started(void);
void soft_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ------------------------------------------------------------------------------------------------------------ memory */

typedef struct soft_alloc {
    uint64_t base, size, span; /* span: pages taken from the window */
    uint64_t offset;           /* in the window's file */
    uint64_t id;
    soft_object *context, *device;
    ze_memory_type_t type;
    uint64_t evicted;          /* soft_clock value of the last evict, 0 never */
    bool resident, deferred;
    bool reserved;             /* a virtual reservation, mapped piecewise */
    ze_memory_access_attribute_t access;
    uint64_t page_size;
} soft_alloc;

bool soft_window_open(void);
soft_alloc *soft_alloc_find_locked(uint64_t address);
soft_alloc *soft_alloc_by_id_locked(uint64_t id);
bool soft_in_window(uint64_t address);
void soft_memory_reset(void); /* in a forked child */
void soft_memory_reap_locked(void); /* releases deferred frees whose users have ended */
extern uint64_t soft_clock; /* counts submits and evicts */

enum soft_access { SOFT_READ = 1, SOFT_WRITE = 2 };
/*
 * Moves bytes between the device's view of `address` and `host`. `since` is the soft_clock of the submit.
 * @return false if the device may not touch them: a fault.
 */
bool soft_device_read_locked(uint64_t address, void *host, size_t size, uint64_t since);
bool soft_device_write_locked(uint64_t address, const void *host, size_t size, uint64_t since);
/* @return a pointer through which the device sees [address, address + size), or NULL: pageable memory, or a fault. */
void *soft_device_map_locked(uint64_t address, size_t size, int access, uint64_t since, bool *fault);

/* ------------------------------------------------------------------------------------------------------------ engine */

enum soft_command_type {
    SOFT_C_NOP, SOFT_C_COPY, SOFT_C_REGION, SOFT_C_FILL, SOFT_C_BARRIER, SOFT_C_WAIT, SOFT_C_SIGNAL, SOFT_C_RESET,
    SOFT_C_TIMESTAMP, SOFT_C_QUERY_TIMESTAMPS, SOFT_C_HOST_FUNCTION, SOFT_C_SUBMIT_END
};

typedef struct soft_command {
    int type;
    uint32_t refs;
    uint64_t id; /* place in its list */
    uint64_t dst, src, size;
    uint64_t dst_pitch, dst_slice, src_pitch, src_slice;
    ze_copy_region_t dst_region, src_region;
    uint8_t pattern[128];
    size_t pattern_size;
    void *staged;           /* ZE_SOFT_HOSTPTR=append: the bytes as of the append */
    soft_object *signal, *reset;
    soft_object **waits;
    uint32_t n_waits;
    soft_object **query;
    size_t *query_offsets;
    uint32_t n_query;
    ze_host_function_callback_t function;
    void *user_data;
} soft_command;

soft_command *soft_command_new(int type);
/* Takes references on the events. @return false when memory is out. */
bool soft_command_events_locked(soft_command *command, ze_event_handle_t signal, uint32_t n, ze_event_handle_t *waits);
void soft_command_unref_locked(soft_command *command);

typedef struct soft_submit {
    soft_object *queue;       /* queue or immediate list that carries the work; a reference */
    soft_object *list;        /* for in-order lists; a reference */
    bool in_order;
    soft_object *fence;       /* SOFT_C_SUBMIT_END */
    uint64_t submit;          /* soft_clock */
} soft_submit;

/* The ring for a queue or immediate list. */
soft_ring *soft_ring_get_locked(soft_object *device, unsigned ordinal, unsigned index);
soft_csr *soft_ring_csr(soft_ring *ring);
/* Puts a command on the ring. Takes its own reference on the command. @return a number that grows, 0 when memory is out. */
uint64_t soft_ring_submit_locked(soft_ring *ring, soft_command *command, const soft_submit *submit);
/* After a submit: lets the schedule do what it does at once. */
void soft_ring_kick_locked(soft_ring *ring);
/* Before a submit or append (lazy: the ring first finishes what is enabled). */
void soft_ring_before_submit_locked(soft_ring *ring);
/* Inside a host query of something on that ring (NULL: any). */
void soft_look_locked(soft_ring *ring);
/* Whether work numbered up to `number` of that queue or immediate list (NULL: of all) is still under way on the ring. */
bool soft_ring_busy_locked(soft_ring *ring, const soft_object *queue, uint64_t number);
bool soft_alloc_busy_locked(const soft_alloc *alloc);
uint64_t soft_last_number_locked(void);
soft_ring *soft_ring_next_locked(soft_ring *ring); /* NULL: the first */
void soft_engine_reset(void); /* in a forked child */
void soft_script_move_locked(void);
void soft_seed_move_locked(void);
extern bool soft_abort_pending;
bool soft_any_banned_locked(const soft_object *device);

/*
 * Waits until done(ctx) or the timeout, moving the schedule as a host wait does. @return ZE_RESULT_SUCCESS, ZE_RESULT_NOT_READY,
 * or what failed(ctx) says (may be NULL).
 */
ze_result_t soft_wait_locked(soft_ring *ring, bool (*done)(void *ctx), ze_result_t (*failed)(void *ctx), void *ctx,
                             uint64_t timeout);

/* ------------------------------------------------------------------------------------------------------------ events */

bool soft_event_is_signalled_locked(const soft_event *event);
void soft_event_signal_locked(soft_event *event, uint64_t counter, uint64_t start, uint64_t end);
uint64_t soft_device_ticks(void);

#endif

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
enum soft_destroy { SOFT_DESTROY_LOSE, SOFT_DESTROY_KEEP };
enum soft_va { SOFT_VA_WINDOW, SOFT_VA_REUSE, SOFT_VA_QUARANTINE };

typedef struct soft_knobs {
    int schedule, fault, errors, free, rebind, engines, append, residency, hostptr, va, destroy;
    uint64_t seed;
    char script[1024];
    unsigned devices;
    uint64_t memory; /* bytes of a device; UINT64_MAX: no limit */
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
    uint64_t used; /* bytes allocated on it, in pages */
    soft_csr csr[3][8];
} soft_device;

typedef struct soft_ring soft_ring;

typedef struct soft_queue {
    struct soft_object *context, *device;
    unsigned ordinal, index;
    ze_command_queue_flags_t flags;
    ze_command_queue_mode_t mode;
    ze_command_queue_priority_t priority;
    soft_ring *ring;
} soft_queue;

typedef struct soft_pool {
    struct soft_object *context;
    uint32_t count, flags, counter_flags;
    bool counter_based;
    struct soft_object **events; /* by index, NULL where there is none */
    uint32_t alive;
} soft_pool;

typedef struct soft_event {
    struct soft_object *pool, *context; /* pool NULL: created by zeEventCounterBasedCreate */
    uint32_t index, signal_scope, wait_scope;
    uint32_t flags, counter_flags; /* the pool's; those of a counter-based event */
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
    bool immediate, in_order, closed;
    uint32_t flags;               /* of a list, or of an immediate list's queue */
    ze_command_queue_mode_t mode; /* immediate lists, as the next */
    ze_command_queue_priority_t priority;
    soft_ring *ring;              /* immediate lists */
    struct soft_command **commands;
    size_t n_commands, room;
    uint64_t next_id;
} soft_list;

typedef struct soft_physical {
    uint64_t offset, size; /* in the window's file */
    struct soft_object *device; /* may be NULL */
} soft_physical;

typedef struct soft_object {
    uint32_t kind;   /* enum soft_kind; SOFT_DEAD once destroyed */
    uint32_t refs;   /* commands in flight that still name it; memory is reused when dead and 0 */
    uint64_t number; /* counts up for ever */
    bool lost;       /* queue, immediate list, device: work of its own was taken away, and no wait has said so yet */
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
_Noreturn void soft_abort(void);
void soft_cond_init(pthread_cond_t *cond); /* on the clock of soft_now_ns */
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
    bool deferred;             /* freed, but goes when its last user has ended */
    bool reserved;             /* a virtual reservation, mapped piecewise */
    ze_memory_access_attribute_t access;
    soft_object *physical;     /* a mapping: what is mapped, and its number while it was alive */
    uint64_t physical_number;
    struct soft_evicted {
        uint64_t begin, end, clock; /* soft_clock at the evict */
    } *evicted;
    size_t n_evicted;
} soft_alloc;
typedef struct soft_evicted soft_evicted;

bool soft_window_open(void);
soft_alloc *soft_alloc_find_locked(uint64_t address);
soft_alloc *soft_alloc_by_id_locked(uint64_t id);
bool soft_in_window(uint64_t address);
void soft_memory_reset(void); /* in a forked child */
/* Takes [begin, begin + size) from the device, or more: ZE_SOFT_RESIDENCY. @return false when memory is out. */
bool soft_evict_locked(soft_alloc *a, uint64_t begin, uint64_t size);
/* ZE_SOFT_REBIND=submit: gives the range back to all work; size 0 means to the allocation's end. */
void soft_make_resident_locked(uint64_t address, uint64_t size);
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
/* It will never run: waits for its signal fail. */
void soft_command_lose_locked(const soft_command *command);
/* What the command does to memory; `since` is the soft_clock of its submit. @return false on a fault. */
bool soft_command_perform_locked(const soft_command *command, uint64_t since);
uint64_t soft_command_cost_ns(const soft_command *command);

typedef struct soft_submit {
    soft_object *queue;       /* queue or immediate list that carries the work; a reference */
    soft_object *list;        /* for in-order lists; a reference */
    bool in_order;
    soft_object *fence;       /* SOFT_C_SUBMIT_END */
    uint64_t submit;          /* soft_clock */
} soft_submit;

/* The ring for a new queue or immediate list, which gives it back when it is destroyed. @return NULL when memory is out. */
soft_ring *soft_ring_acquire_locked(soft_object *device, unsigned ordinal, unsigned index);
void soft_ring_release_locked(soft_ring *ring);
soft_csr *soft_ring_csr(soft_ring *ring);
soft_ring *soft_ring_next_locked(soft_ring *ring); /* NULL: the first */
/* Puts a command on the ring. Takes its own reference on the command. @return a number that grows, 0 when memory is out. */
uint64_t soft_ring_submit_locked(soft_ring *ring, soft_command *command, const soft_submit *submit);
/* Whether work numbered up to `number` of that queue or immediate list (NULL: of all) is still under way on the ring. */
bool soft_ring_busy_locked(const soft_ring *ring, const soft_object *queue, uint64_t number);
bool soft_ring_touches_locked(const soft_ring *ring, const soft_alloc *alloc);
bool soft_alloc_busy_locked(const soft_alloc *alloc);
uint64_t soft_last_number_locked(void);

/* ZE_SOFT_DESTROY=lose: takes the work in flight away that needs the object, which is about to be destroyed or reset. */
void soft_lose_queue_locked(const soft_object *queue);
void soft_lose_list_locked(const soft_object *list); /* immediate or not */
void soft_lose_waiters_locked(const soft_object *event);
/* The list is about to be executed again: what has not started of its earlier runs never will. Their signals come from this run. */
void soft_replace_run_locked(const soft_object *list);
/* Whether the event, or work numbered up to `number` of that carrier and fence (NULL: any), waits for what has been lost. */
bool soft_hopeless_locked(const soft_object *event);
bool soft_ring_hopeless_locked(soft_ring *ring, const soft_object *carrier, const soft_object *fence, uint64_t number);
extern bool soft_abort_pending;
bool soft_any_banned_locked(const soft_object *device);

/* ---------------------------------------------------------------------------------------------------------- schedule */

/* What a host wait or query looks at: all that is set; if nothing is, everything. */
typedef struct soft_target {
    soft_ring *ring;
    const soft_object *event;
    uint64_t alloc; /* id */
} soft_target;
extern const soft_target soft_everything;

/* @return false after a sentence on stderr if the script is none. */
bool soft_schedule_start_locked(void);
void soft_schedule_reset(void); /* in a forked child */
/* What `seed` and `script` do at each call. */
void soft_schedule_move_locked(void);
/* After a submit or a host signal: lets the schedule do what it does at once, and wakes who waits. */
void soft_kick_locked(void);
/* Before a submit or append (lazy: the ring first finishes what is enabled). */
void soft_before_submit_locked(soft_ring *ring);
/* Inside a host query. */
void soft_look_locked(const soft_target *target);
/*
 * Waits until done(ctx), what failed(ctx) calls an error (may be NULL; asked first) or the timeout, moving the schedule as a host
 * wait does. @return ZE_RESULT_SUCCESS, ZE_RESULT_NOT_READY, or what failed(ctx) says.
 */
ze_result_t soft_wait_locked(const soft_target *target, bool (*done)(void *ctx), ze_result_t (*failed)(void *ctx), void *ctx,
                             uint64_t timeout);

extern const unsigned soft_queues_of_group[3];
extern const size_t soft_longest_pattern[]; /* of a fill, by group */
/* Waits for a carrier's work up to that number: a queue's, or an immediate list's. */
ze_result_t soft_wait_work_locked(soft_ring *ring, soft_object *carrier, uint64_t number, uint64_t timeout);

/* ------------------------------------------------------------------------------------------------------------ events */

bool soft_event_is_signalled_locked(const soft_event *event);
void soft_event_signal_locked(soft_event *event, uint64_t counter, uint64_t start, uint64_t end);
void soft_event_timestamp_locked(const soft_event *event, ze_kernel_timestamp_result_t *t);
#define SOFT_NS_PER_TICK 52 /* 19.2 MHz */
uint64_t soft_device_ticks(void);

/* An entry that reads one thing of an object. */
#define SOFT_GETTER(function, handle_type, kind, out_type, expression)                                                              \
    ze_result_t function(handle_type handle, out_type *out)                                                                    \
    {                                                                                                                          \
        const soft_object *const o = soft_object_get(handle, kind);                                                            \
        if (o == NULL)                                                                                                         \
            return ZE_RESULT_ERROR_INVALID_ARGUMENT;                                                                           \
        *out = expression;                                                                                                     \
        return ZE_RESULT_SUCCESS;                                                                                              \
    }

#endif

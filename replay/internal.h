/* SPDX-License-Identifier: MIT */
/* The replayer from the inside. A plan is built by one thread in the parent; the child that runs it only fills live
 * values. */
#ifndef ZR_INTERNAL_H
#define ZR_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "replay.h"
#include "replay_thunks.h"

#define ZR_NONE      UINT32_MAX
#define ZR_SUCCESS   0
#define ZR_NOT_READY 1

/* ------------------------------------------------------------------------------------------------------------ arena */

typedef struct zr_arena {
    struct zr_block *blocks;
    size_t used, room;
} zr_arena;
/* Zeroed memory, aligned to 64 bytes if `size` >= 64, else to 8; lives as long as the arena. NULL when memory is out.
 */
void *zr_alloc(zr_arena *arena, size_t size);
void zr_arena_free(zr_arena *arena);
bool zr_arena_has(const zr_arena *arena, uint64_t address, uint64_t size);
/* Makes room for one more element of a growing array. @return false when memory is out. */
bool zr_grow(void **array, size_t count, size_t *room, size_t element);

/* ---------------------------------------------------------------------------------------------------------- objects */

typedef struct zr_object {
    uint64_t recorded, live; /* handle; live is 0 until its creation has been replayed */
    uint16_t type;           /* base type, index into zt_types */
    uint8_t dead;
    uint8_t immediate; /* list */
    uint32_t generation;
    uint64_t created, destroyed; /* call numbers */
} zr_object;

typedef struct zr_mem {
    uint64_t recorded, live, size;
    uint32_t generation;
    uint8_t dead;
    uint8_t inside; /* part of an allocation or global of the driver's: no object of its own */
    uint64_t created;
} zr_mem;

typedef struct zr_span { /* pageable memory of the program that the device touches */
    uint64_t start, end;
    uint8_t *live;
} zr_span;

typedef struct zr_objects {
    zr_object *objects;
    size_t n_objects, room_objects;
    uint32_t *slots; /* hash: newest object of a handle value, by (value, base type) */
    size_t n_slots, used_slots;
    uint32_t *generations; /* by type */
    zr_mem *mems;
    size_t n_mems, room_mems;
    uint32_t *by_address; /* mems that do not overlap, ascending */
    size_t n_by_address, room_by_address;
    zr_span *spans;
    size_t n_spans, room_spans;
    bool soft; /* recorded on libze_soft */
} zr_objects;

bool zr_objects_init(zr_objects *o);
void zr_objects_destroy(zr_objects *o);
/* @return index of the newest object with that handle, any type if none of `type` has it; ZR_NONE if there is none. */
uint32_t zr_object_find(const zr_objects *o, uint16_t type, uint64_t handle);
uint32_t zr_object_add(zr_objects *o, uint16_t type, uint64_t handle, uint64_t call);
uint32_t zr_mem_find(const zr_objects *o, uint64_t address);
uint32_t zr_mem_add(zr_objects *o, uint64_t address, uint64_t size, uint64_t call, bool inside);
bool zr_span_add(zr_objects *o, uint64_t address, uint64_t size);
/* Merges the spans and gives them memory. @return false with a sentence in `error`. */
bool zr_spans_map(zr_objects *o, zt_error *error);
void *zr_span_live(const zr_objects *o, uint64_t address);
/* "queue#1" */
void zr_object_name(const zr_objects *o, uint32_t index, char *out, size_t size);
/* "mem#2+16", or the address */
void zr_address_name(const zr_objects *o, uint64_t address, uint32_t mem, char *out, size_t size);

/* ------------------------------------------------------------------------------------------------------------- plan */

enum zr_fix_kind { ZR_FIX_OBJECT, ZR_FIX_MEM };
/* A value that is known only when an earlier call has been replayed. */
typedef struct zr_fix {
    uint64_t *where;
    uint64_t offset; /* ZR_FIX_MEM: from the allocation's start */
    uint32_t index;  /* object or mem */
    uint8_t kind;
} zr_fix;

enum zr_out_kind { ZR_OUT_OBJECT, ZR_OUT_MEM, ZR_OUT_VALUE, ZR_OUT_TEXT, ZR_OUT_BYTES };
/* What the call wrote, in the order of the walk. */
typedef struct zr_out {
    const zt_field *field;
    const zt_type *type;
    void *live;
    const void *recorded;
    uint64_t size;
    uint32_t index; /* object or mem */
    uint32_t element;
    uint8_t kind;
    uint8_t created; /* a new object, not one that was there */
    uint8_t vary;    /* never compared */
    uint8_t clear;   /* lies where another call's output may be */
} zr_out;

typedef struct zr_data { /* contents */
    uint64_t addr, len;
    const void *bytes; /* NULL: only the hash is known */
    zt_hash hash;
    void *live;   /* pageable memory */
    uint32_t mem; /* else this allocation */
    uint8_t readback;
    uint8_t held;     /* an item of its own says when it is written, if ever */
    uint32_t number;  /* among the call's contents, from 1 */
    uint32_t n_taken;
    const zr_item *taken; /* parts that the host may have written */
} zr_data;

typedef struct zr_dep { /* thread must have finished that many calls first */
    uint32_t thread, count;
} zr_dep;

enum zr_call_flags {
    ZR_RETURNED = 1,
    ZR_SKIP = 2,  /* internal or nested: not made */
    ZR_QUIET = 4, /* made, not compared (loader's own) */
    ZR_LATE = 8,  /* takes effect at its end: a wait, or a call that needed another thread's help */
    ZR_HANDLE_RESULT = 16,
    ZR_CALLBACKS = 32,
    ZR_FAILED = 64 /* its result is an error */
};

typedef struct zr_call {
    uint64_t number;
    const zt_func *func;
    uint64_t *words;
    int64_t result;
    uint64_t enter_ns, leave_ns;
    const char *why_not; /* why it can't be rebuilt, NULL if it can */
    zr_fix *fixes;
    zr_out *outs;
    zr_data *data;
    zr_dep *deps;
    uint32_t n_fixes, n_outs, n_data, n_deps;
    uint32_t id;            /* of the function */
    uint32_t thread;        /* from 0 */
    uint32_t self;          /* object of the first handle parameter, ZR_NONE */
    uint32_t result_object; /* ZR_HANDLE_RESULT */
    uint8_t flags;
    int8_t timeout_word; /* -1: none */
} zr_call;

struct zr_plan {
    zr_arena arena;
    zr_objects objects;
    zr_call *calls; /* in the order of ENTERs */
    size_t n_calls, room_calls;
    uint32_t *order; /* for one thread */
    uint32_t n_threads;
    uint8_t **scratch; /* by thread */
    size_t n_scratch, room_scratch;
    size_t *per_thread;     /* calls of each thread */
    uint32_t *thread_calls; /* their indices, thread after thread */
    char *recorded_driver;  /* path or "" */
    bool recorded_soft;
    bool recorded_failed; /* some call failed for a fault of the device */
    zt_pair *environment;
    uint32_t n_environment;
    uint64_t callbacks;
    uint64_t pending; /* never returned */
    uint64_t replaced; /* modules */
    zr_call *first_pending;
    zr_call *crash; /* the last of them, if the program died of it */
};

/* Argument memory in the replay that stands for [start, end) of the program's. */
typedef struct zr_seg {
    uint64_t start, end;
    uint8_t *live;
    bool merged; /* of pieces that overlap: they keep their alignment */
    bool read;   /* the call reads it, too */
} zr_seg;

/* One call while it is read. Pieces have their bytes. */
typedef struct zr_raw {
    size_t index;    /* into plan->calls */
    uint64_t *words; /* as recorded */
    zt_piece *in, *out;
    uint32_t n_in, n_out;
    zr_seg *segs;
    size_t n_segs;
    uint64_t place;    /* event behind which one thread makes it, 0: its ENTER */
    uint32_t position; /* in its thread */
} zr_raw;

/* Builds the argument graph and what to fill in it, with the objects as of the call's ENTER. */
int zr_program_enter(zr_plan *plan, zr_raw *raw);
/* Lists what the call wrote, with the objects as of its LEAVE; new objects begin here. */
int zr_program_leave(zr_plan *plan, zr_raw *raw);
/* After the spans have memory: fills in what points there. */
void zr_program_finish(zr_plan *plan);

/* @return its index; SIZE_MAX if the trace does not hold it. */
size_t zr_find_call(const zr_plan *plan, uint64_t number);

typedef struct zr_orderer zr_orderer;
/*
 * Fixes the order, event by event: for one thread a line, for several what each call has to wait for. NULL: out of
 * memory.
 */
zr_orderer *zr_orderer_new(void);
bool zr_orderer_enter(zr_orderer *orderer, zr_plan *plan, zr_raw *raw, uint32_t thread);
/* `open`: calls that have not ended, this one not among them. */
void zr_orderer_leave(zr_orderer *orderer, zr_plan *plan, const zr_raw *raw, zr_raw **open, size_t n_open);
bool zr_orderer_finish(zr_orderer *orderer, zr_plan *plan);
void zr_orderer_free(zr_orderer *orderer);

/* ----------------------------------------------------------------------------------------------------------- target */

typedef struct zr_target {
    void *library;
    void **functions;       /* by function id */
    uint64_t driver_handle; /* for extension functions */
    char path[512];
    char why[160];
    bool soft, same; /* same: the kind of driver the trace was made on */
} zr_target;

/* Decides which driver, without loading it. @return false with a sentence in `message`. */
bool zr_target_choose(zr_target *target, const zr_plan *plan, const zr_options *options, char *message, size_t size);
/* Sets the environment and loads it. */
bool zr_target_load(zr_target *target, const zr_plan *plan, const zr_options *options, char *message, size_t size);
/* @return the function, looked up as an extension if no table has it; NULL if the driver lacks it. */
void *zr_target_function(zr_target *target, uint32_t id);

/* -------------------------------------------------------------------------------------------------------------- run */

/* Shared by child and parent. */
typedef struct zr_shared {
    zr_report report;
    atomic_uint_fast64_t progress; /* goes up with each call begun or ended */
    atomic_uint_fast32_t current;  /* index of the call begun last */
    atomic_uint crashing;          /* the call in which the recorded program died is being made */
    atomic_uint finished;
} zr_shared;

typedef struct zr_run {
    zr_plan *plan;
    const zr_options *options;
    zr_shared *shared;
    zr_report *report;
    zr_target target;
    pthread_mutex_t mutex; /* report */
    atomic_bool stop;
    unsigned spins; /* of a thread that waits for another, before it sleeps */
    struct zr_forced *forced; /* NULL: as recorded */
    uint32_t *first_point, *next_point; /* of a call; of a point. ZR_NONE behind the last */
    atomic_uint delayed; /* threads that are to let the device go on */
} zr_run;

/* Loads the driver and makes the calls, in the child. */
void zr_run_plan(zr_run *run);
/* The queue or immediate list that the call gives work to; ZR_NONE: none. */
uint32_t zr_submits_to(const zr_plan *plan, const zr_call *call);
/* inject.c: sorts options->points by call. @return false if memory is out. */
bool zr_inject_begin(zr_run *run);
/* What they say for the call. */
void zr_inject(zr_run *run, const zr_call *call, bool after);
/* Waits until nothing is delayed any more. */
void zr_inject_end(zr_run *run);
int64_t zr_sync_object(zr_run *run, uint32_t index, uint64_t timeout);
/* forced.c: makes options->items. */
void zr_run_forced(zr_run *run, void (*make)(zr_run *run, const zr_call *call));
/* Lets run what was submitted and not named, and counts what never ended. */
void zr_forced_finish(zr_run *run);
/* The call itself, with commands put on carriers. */
int64_t zr_forced_call(zr_run *run, const zr_call *call, void *fn, uint64_t *words);
/* Whether what the call read back is compared later. */
bool zr_forced_unread(zr_run *run, const zr_call *call);
/* How long a wait may take, at most `most`. */
uint64_t zr_forced_limit(zr_run *run, uint64_t most);
/* Before each wait or query of the program. */
void zr_forced_before_wait(zr_run *run, const zr_call *call);
/* Writes the call's contents that are not held. */
void zr_write_contents(zr_run *run, const zr_call *call);
/* Writes `size` bytes of one of them; with `flags` those of which the flag is set, which `learn` sets first. */
void zr_write_content(zr_run *run, const zr_data *data, uint64_t from, uint64_t size, uint8_t *flags, bool learn);
uint32_t zr_object_of_role(const zr_call *call, enum zt_role role);
int64_t zr_call_by_name(zr_run *run, const char *name, const uint64_t *words);
/* Ends the replay: it can't go on. */
void zr_stop(zr_run *run, int verdict, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ----------------------------------------------------------------------------------------------------------- verify */

void zr_check_result(zr_run *run, const zr_call *call, int64_t result);
void zr_take_outputs(zr_run *run, const zr_call *call, int64_t result);
void zr_check_readbacks(zr_run *run, const zr_call *call);
/* Hands out options->taken to the contents that they are about. */
void zr_take_in(zr_run *run);
void zr_mismatch_add(zr_run *run, const zr_call *call, int what, const char *detail, const char *recorded,
                     const char *replayed);
bool zr_verified(const zr_run *run, const zr_call *call);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Inside the layer: what the generated wrappers and the hand-written parts share. Private to the layer.
 *
 * A wrapper does, in this order: take the thread's state; contents (before the time stamp); zc_open; words and pieces;
 * zc_publish; the driver's call; zc_leave_*. Nothing here fails the application's call: what cannot be recorded is dropped and
 * counted. errno is left as the driver left it. All of it may be called from any thread; a call made by a signal handler
 * while its thread writes a record is dropped.
 */
#ifndef ZC_LAYER_H
#define ZC_LAYER_H

#include "api.h"
#include "format.h"
#include "ring.h"

#include <string.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define zc_likely(x) __builtin_expect(!!(x), 1)
#define zc_unlikely(x) __builtin_expect(!!(x), 0)
#define ZC_COLD __attribute__((cold, noinline))

#define ZC_INLINE_WAITS 64u /* wait lists up to this length are copied by the wrapper itself */
#define ZC_ALLOC_CACHE 8u
#define ZC_SCRATCH (64u << 10)

enum zc_memory_mode { ZC_MEMORY_NONE, ZC_MEMORY_INPUTS, ZC_MEMORY_FULL };

typedef void (*zc_fn)(void);

struct zc_list;

typedef struct zc_range_cache { /* an address range whose kind is known */
    uint64_t base, end;
    uint64_t generation; /* of the allocation table */
    uint32_t kind;
} zc_range_cache;

/* A thread's state. Lives in its own mapping, which is never reused: a call that returns after a fork still finds it. */
typedef struct zc_thread {
    uint64_t head;  /* end of the newest record; bit 0 set while one is being written */
    uint64_t limit; /* head may go up to here before the reader has to be asked */
    zc_slot *open;  /* the newest record, if it is a slot whose call has not returned */
    uint64_t seq;
    char *data;
    uint64_t mask;
    zc_ring *ring;
    uint32_t depth; /* calls that have not returned */
    uint32_t next_data_id;
    uint64_t size;

    /* loss */
    uint64_t lost_calls, lost_bytes; /* since the last ZC_R_LOST */
    uint64_t stall_tail, stall_beat; /* what the reader had done when it was given up */
    bool stalled, failed;
    uint64_t retry_at;

    /* pieces of the call that is being entered or left */
    char *stage;
    uint32_t staged, stage_size;
    uint32_t listed; /* of the staged bytes: pieces that stand for what went ahead */
    bool staging; /* pieces and tables are being worked on: a signal handler's call leaves them alone */
    uint8_t *scratch; /* ZC_SCRATCH bytes, made when first needed */

    zc_range_cache cache[ZC_ALLOC_CACHE];
    struct zc_thread *next;
    int32_t tid;
} zc_thread;

typedef struct zc_tls {
    zc_thread *thread;
    uint64_t variant; /* set by a thunk: index of the pointer to call instead of the function's usual one */
} zc_tls;

extern __thread zc_tls zc_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

extern bool zc_use_tsc;
extern int zc_memory;              /* enum zc_memory_mode */
extern bool zc_backtraces;         /* some functions' callers are recorded */
extern _Atomic(zc_fn) zc_next[];   /* by function id: what the wrapper calls */
extern const zc_fn zc_wrappers[];  /* by function id, generated */
extern const uint8_t zc_usm[];     /* by function id: enum zc_usm_kind of what an ALLOC function gives, generated */
extern const uint8_t zc_watched[]; /* by function id: contents depend on it, generated */
extern const uint16_t *const zc_table_slots[]; /* by table: function ids in the order of slots, generated */

enum zc_usm_kind { ZC_USM_NONE, ZC_USM_DEVICE, ZC_USM_HOST, ZC_USM_SHARED, ZC_USM_PAGEABLE };

/* ------------------------------------------------------------------------------------------------------ time */

uint64_t zc_clock_ticks(void); /* where the time-stamp counter cannot be trusted */

static inline uint64_t zc_ticks_enter(void)
{
#if defined(__x86_64__)
    if (zc_likely(zc_use_tsc)) {
        /* later than every load that saw the effect of a call that has returned */
        _mm_lfence();
        return __rdtsc();
    }
#endif
    return zc_clock_ticks();
}

static inline uint64_t zc_ticks_leave(void)
{
#if defined(__x86_64__)
    if (zc_likely(zc_use_tsc))
        return __rdtsc();
#endif
    return zc_clock_ticks();
}

/* ------------------------------------------------------------------------------------------------------ threads */

/* @return this thread's state, made at its first call; NULL if nothing is recorded. */
zc_thread *zc_thread_start(void);
/* Makes room for `need` bytes; waits for the reader if that is asked for. @return false: drop (already counted). */
bool zc_room(zc_thread *t, uint64_t need);
/* Counts a call that is not recorded. */
void zc_lose_call(zc_thread *t);
/* The newest slot gets a successor while its call runs. */
void zc_detach(zc_thread *t);
/* A record other than a slot: space for `size` bytes (multiple of 8), filled by the caller, then zc_record_end. */
void *zc_record_begin(zc_thread *t, uint32_t size);
void zc_record_end(zc_thread *t, uint32_t size);
/* Sends bytes of this process as ZC_R_DATA. `careful`: the memory may not be there. @return the data_id, 0 on loss. */
uint32_t zc_send_data(zc_thread *t, const void *data, uint64_t len, bool careful);
/* Copies memory that may have been unmapped. @return whether all of it was there. */
bool zc_read_carefully(void *to, const void *from, uint64_t len);
/* Own memory, never from malloc. @return NULL on failure. */
void *zc_map(uint64_t size);
void zc_unmap(void *p, uint64_t size);

typedef _Atomic uint32_t zc_lock;
void zc_lock_take(zc_lock *lock);
void zc_lock_give(zc_lock *lock);

/* ------------------------------------------------------------------------------------------------------ hot path */

/* zc_open for programs whose callers are recorded: the frames become a piece behind the `in_size` bytes. */
zc_slot *zc_open_traced(zc_thread *t, uint32_t func, uint32_t n_words, uint32_t in_size, uint32_t reserve, uint32_t flags);

static inline zc_slot *zc_open_plain(zc_thread *t, uint32_t func, uint32_t n_words, uint32_t in_size, uint32_t reserve,
                                     uint32_t flags)
{
    const uint32_t size = (uint32_t)sizeof(zc_slot) + n_words * 8 + in_size;
    if (zc_unlikely((t->head & 1) || t->head + size + reserve > t->limit) && !zc_room(t, size + reserve))
        return NULL;
    if (zc_unlikely(t->open != NULL))
        zc_detach(t);
    const uint64_t head = t->head;
    t->head = head | 1;
    atomic_store_explicit(&t->ring->head, head | 1, memory_order_release);
    zc_slot *const slot = (zc_slot *)(t->data + (head & t->mask));
    const uint64_t now = zc_ticks_enter();
    slot->t_enter = now;
    slot->rec = (zc_record){size, ZC_R_SLOT, (uint16_t)func};
    atomic_store_explicit(&slot->state, ZC_S_OPEN, memory_order_relaxed);
    slot->flags = (uint16_t)(flags | (t->depth ? ZC_SF_NESTED : 0));
    slot->n_words = (uint16_t)n_words;
    slot->seq = ++t->seq;
    slot->in_size = in_size;
    slot->out_size = 0;
    slot->added_ticks = 0;
    slot->pad = 0;
    return slot;
}

/*
 * Begins a slot with `in_size` bytes of pieces; `reserve` more bytes are sure to be free behind it. NULL: not recorded.
 */
static inline zc_slot *zc_open(zc_thread *t, uint32_t func, uint32_t n_words, uint32_t in_size, uint32_t reserve,
                               uint32_t flags)
{
    if (zc_unlikely(zc_backtraces))
        return zc_open_traced(t, func, n_words, in_size, reserve, flags);
    return zc_open_plain(t, func, n_words, in_size, reserve, flags);
}

static inline void zc_publish(zc_thread *t, zc_slot *slot)
{
    const uint64_t head = (t->head & ~1ull) + slot->rec.size;
    t->open = slot;
    t->depth++;
    atomic_store_explicit(&t->ring->head, head, memory_order_release);
    t->head = head;
}

static inline char *zc_words_end(zc_slot *slot, uint32_t n_words)
{
    return (char *)(slot + 1) + n_words * 8;
}

/* Writes one piece. @return where the next one goes. */
static inline char *zc_put(char *at, const void *p, uint32_t len)
{
    zc_piece *const piece = (zc_piece *)at;
    piece->addr = (uintptr_t)p;
    piece->len = len;
    *(uint64_t *)&piece->kind = ZC_P_MEMORY;
    at += sizeof(zc_piece);
    if (len & 7)
        *(uint64_t *)(at + (len & ~7u)) = 0;
    memcpy(at, p, len);
    return at + ((len + 7) & ~7u);
}
static inline uint32_t zc_put_size(uint32_t len)
{
    return (uint32_t)sizeof(zc_piece) + ((len + 7) & ~7u);
}

/*
 * From here to zc_done a signal handler's calls are dropped. @return whether the slot can be completed where it is: it is the
 * newest record, and this still is the process that made it.
 */
static inline bool zc_in_place(zc_thread *t, const zc_slot *slot)
{
    if (zc_unlikely(zc_self.thread != t))
        return false;
    t->head |= 1;
    if (zc_likely(t->open == slot))
        return true;
    t->head &= ~1ull;
    return false;
}

static inline char *zc_behind(const zc_thread *t)
{
    return t->data + (t->head & ~1ull & t->mask);
}

/* The reader had the lines ahead last: they are asked for before a slot needs them. They lie in the ring, which is mapped. */
static inline void zc_fetch_ahead(const zc_thread *t, uint64_t head)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(t->data[(head + 1024) & t->mask]));
    __asm__ volatile("prefetchw %0" : : "m"(t->data[(head + 1088) & t->mask]));
#else
    __builtin_prefetch(t->data + ((head + 1024) & t->mask), 1);
#endif
}

/* Completes a slot to which `out_size` bytes were written behind it. */
static inline void zc_done(zc_thread *t, zc_slot *slot, uint64_t t_leave, uint64_t result, uint32_t out_size)
{
    t->open = NULL;
    t->depth--;
    slot->t_leave = t_leave;
    slot->result = result;
    const uint64_t head = (t->head & ~1ull) + out_size;
    if (out_size) {
        atomic_store_explicit(&t->ring->head, head, memory_order_release);
        slot->rec.size += out_size;
        slot->out_size = out_size;
    }
    atomic_store_explicit(&slot->state, ZC_S_DONE, memory_order_release);
    zc_fetch_ahead(t, head);
    t->head = head;
}

/* A call under way, for the parts that are not straight-line. Lives on the wrapper's stack. */
typedef struct zc_call {
    zc_thread *thread;
    zc_slot *slot;
    uint64_t seq;
    uint32_t func, flags;
    uint32_t added_ticks;
    const uint64_t *words;
    uint32_t n_before;
    struct {
        uint64_t addr, value;
    } before[4]; /* counts as of ENTER */
    /* contents */
    uint32_t op;     /* place of the appended command in its list, plus one */
    uint64_t submit; /* number of the submit this call made, 0: none */
} zc_call;

/* ------------------------------------------------------------------------------------------------------ general path */

/* ENTER with everything the call reads; contents included where the function's kind asks for it. */
bool zc_enter_walk(zc_call *call, const uint64_t *words);
/* LEAVE with everything the call wrote; contents likewise. */
void zc_leave_walk(zc_call *call, uint64_t t_leave, uint64_t result);
/* LEAVE of a straight-line wrapper whose slot is no longer the newest. `slot` has been given up. */
void zc_leave_late(zc_thread *t, uint32_t func, uint64_t seq, const uint64_t *words, uint64_t t_leave, uint64_t result);
/* Adds a piece to those staged for the coming slot or LEAVE. */
void zc_stage(zc_thread *t, uint32_t kind, uint32_t flags, uint64_t addr, const void *data, uint64_t len, bool careful);

/* ------------------------------------------------------------------------------------------------------ tables */

/* Takes what a thunk has left behind. @return the pointer to call. */
zc_fn zc_take_variant(uint32_t *flags, void *return_address);
/* Puts wrappers into the function table that a loader has filled. */
int zc_fill_table(unsigned table, uint32_t version, void **slots, void *caller);
/* The address that the program gets instead of a driver's extension function. */
void zc_wrap_extension(const char *name, void **address);

/* ------------------------------------------------------------------------------------------------------ contents */

/* Before the driver is entered: updates the tables, stages pieces. */
void zc_contents_enter(zc_call *call);
/* After it has returned, and the return is recorded. @return whether pieces were staged. */

void zc_contents_leave(zc_call *call, uint64_t result);
/* Quick test of an append: whether its operands, in `n` ranges, are all on the device and the list has nothing to do. */
bool zc_contents_quick(zc_thread *t, uint64_t list, const uint64_t *addresses, unsigned n);
/* Quick test of a launch: whether the kernel is known to reach no memory that the host sees. */
bool zc_kernel_plain(uint64_t kernel);
extern _Atomic uint32_t zc_in_flight; /* submitted commands that touch memory the host sees */
extern _Atomic uint32_t zc_lists;     /* lists that hold or may get such commands */
void zc_contents_fork(void);
void zc_contents_lock_all(void);
void zc_contents_unlock_all(void);

#endif

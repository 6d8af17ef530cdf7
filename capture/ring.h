/* SPDX-License-Identifier: MIT */
/*
 * What the layer in the application and the recorder process share: a socket to meet on, and one ring of shared memory
 * for each thread. Everything here survives the death of either side.
 *
 * Meeting. The recorder listens on a SOCK_SEQPACKET Unix socket whose path is in ZETRACE_SOCKET. A process connects when
 * it makes its first call (again after fork: pthread_atfork resets the layer in the child) and sends zc_hello; then, for
 * each thread that makes a first call, zc_new_ring with the memfd of its ring. All sends are done before the thread's
 * first time stamp and never block. What was sent before a SIGKILL is still in the socket afterwards.
 * The recorder answers a hello with one byte once it has read from /proc what the program is; a program that has not been
 * forked from a recorded one waits for it, at most ZC_MEETING_MS: a short one would else be gone before it was looked at.
 *
 * Ring. A header page, then `size` bytes of records (a power of two), mapped twice in a row by both sides so that a record
 * never wraps. Positions count bytes for ever; position p lies at data + (p & (size - 1)). One writer, one reader.
 *   writer: head |= 1 (entering) -> time stamp -> fills a record at head -> head = end of the record (even)
 *   reader: takes records in [tail, head & ~1), stops at an OPEN slot, then tail = what it has taken
 * head is published with release order and read with acquire order.
 *
 * Slot. One slot a call: ENTER fills it (state OPEN) before the driver runs, LEAVE completes the same slot: appends what the
 * call wrote behind it while it is still the newest record, state = DONE, head moves. If it no longer is the newest
 * (a nested call, or contents too big for the ring), its state becomes DETACHED and a ZC_R_LEAVE record with the same `seq`
 * follows later. The reader may take an OPEN slot's ENTER part early (a call that lasts) but not step over it.
 *
 * A process whose socket was closed by the program connects again and says so (`again`): it continues the one that is known.
 * A hello of a known pid that does not say so comes from a program that took its place by exec.
 *
 * Order. Calls are ordered by t_enter (ticks of the time-stamp counter; when that cannot be trusted, nanoseconds of
 * CLOCK_MONOTONIC made strictly increasing within the process, so that a reader may use that clock as its time T). The reader may emit a call once no ring can still bring an earlier one: for each ring the bound is its next
 * record's t_enter; or, if it was seen empty with head even at reader time T, T minus 1 ms (a store may sit in the store
 * buffer; it does not sit there for 1 ms); a ring whose head is odd keeps its last bound. New rings are taken from the
 * socket after T was read, so none is missed.
 *
 * A full ring waits for the reader, sleeping in small steps; if tail and `beat` do not move for ZC_STALL_NS the ring is
 * marked stalled and calls are dropped and counted until the reader moves again. With ZC_LOSSY it never waits.
 */
#ifndef ZC_RING_H
#define ZC_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define ZC_MAGIC 0x315243455a544b43ull
#define ZC_ABI 1
#define ZC_STALL_NS 2000000000ull
#define ZC_DEFAULT_RING (4u << 20)
#define ZC_INLINE_MAX (64u << 10) /* a piece above this travels as ZC_R_DATA records before its slot */

/* Environment of a recorded program, set by the recorder. */
#define ZC_ENV_SOCKET "ZETRACE_SOCKET"
#define ZC_ENV_RING "ZETRACE_RING"     /* bytes of a ring */
#define ZC_ENV_MEMORY "ZETRACE_MEMORY" /* none, inputs, full */
#define ZC_ENV_LOSSY "ZETRACE_LOSSY"   /* 1 */
#define ZC_ENV_BACKTRACE "ZETRACE_BACKTRACE" /* globs of function names, separated by commas */
#define ZC_MAX_FRAMES 32u
#define ZC_ENV_LAYER "ZETRACE_LAYER"   /* path of the layer, read by the boot stub */

/* Sent once by a process. Fixed layout; the kernel adds pid, uid with SO_PASSCRED/SO_PEERCRED. */
typedef struct zc_hello {
    uint64_t magic;
    uint32_t abi;
    uint32_t kind;           /* ZC_M_HELLO */
    int32_t pid, parent_pid;
    uint32_t order;          /* 0: ticks are the TSC, 1: ticks are strictly increasing CLOCK_MONOTONIC nanoseconds */
    uint32_t forked;         /* child of a recorded process by fork without exec */
    uint32_t again, pad;     /* the same program had said hello before */
    uint64_t ticks, monotonic_ns, realtime_ns; /* read together */
    uint64_t build_hash;     /* zc_table_hash: recorder and layer must agree */
} zc_hello;
enum { ZC_M_HELLO = 1, ZC_M_RING = 2 };
#define ZC_MEETING_MS 200

/* Sent once by a thread, with the ring's memfd as SCM_RIGHTS. */
typedef struct zc_new_ring {
    uint64_t magic;
    uint32_t abi;
    uint32_t kind;           /* ZC_M_RING */
    int32_t pid, tid;
    uint64_t size;           /* of the data part */
} zc_new_ring;

/* First page of the memfd. Lines of 64 bytes are written by one side only. */
typedef struct zc_ring {
    uint64_t magic;
    uint32_t abi, header_size;
    uint64_t size;
    int32_t pid, tid;
    uint8_t pad0[32];
    /* writer */
    _Alignas(64) _Atomic uint64_t head; /* bit 0: entering */
    _Atomic uint64_t dropped, dropped_bytes;
    _Atomic uint32_t closed;             /* the thread has ended */
    _Atomic uint32_t stalled;
    _Atomic uint64_t unknown_pnext, unwrapped_extensions, unknown_slots;
    /* reader */
    _Alignas(64) _Atomic uint64_t tail;
    _Atomic uint64_t beat;               /* goes up with every poll of the reader */
    uint8_t pad1[4096 - 192];
} zc_ring;
_Static_assert(sizeof(zc_ring) == 4096, "the ring's header is one page");

enum zc_record_type {
    ZC_R_PAD = 1,  /* nothing */
    ZC_R_SLOT,     /* zc_slot */
    ZC_R_LEAVE,    /* zc_leave: completes a DETACHED slot */
    ZC_R_DATA,     /* zc_data: part of a big piece or content of the thread's next slot (or of a coming ZC_R_LEAVE) */
    ZC_R_LOST      /* zc_lost */
};

/* Every record begins so; size is a multiple of 8 and counts everything up to the next record. */
typedef struct zc_record {
    uint32_t size;
    uint16_t type;
    uint16_t func;  /* function id of the layer's table; 0 where it has no meaning */
} zc_record;

enum zc_slot_state { ZC_S_OPEN = 1, ZC_S_DONE = 2, ZC_S_DETACHED = 3 };
enum zc_slot_flags {
    ZC_SF_INTERNAL = 1, /* made by the loader itself */
    ZC_SF_NESTED = 2,
    ZC_SF_EXTENSION = 4 /* came through a pointer of zeDriverGetExtensionFunctionAddress */
};

/*
 * Followed by: n_words argument words; then `in_size` bytes of zc_piece (pieces and contents as of ENTER); then, once DONE,
 * `out_size` bytes of zc_piece (as of LEAVE). rec.size covers words and in_size only while OPEN or DETACHED, and is rewritten
 * to cover out_size before the state becomes DONE.
 */
typedef struct zc_slot {
    zc_record rec;
    _Atomic uint32_t state;
    uint16_t flags;
    uint16_t n_words;
    uint64_t seq;            /* of this thread, from 1 */
    uint64_t t_enter, t_leave;
    uint64_t result;
    uint32_t in_size, out_size;
    uint32_t added_ticks;    /* reading contents, before t_enter and after t_leave */
    uint32_t pad;
} zc_slot;
_Static_assert(sizeof(zc_slot) == 64, "a slot's head is one cache line");

typedef struct zc_leave {
    zc_record rec;
    uint32_t out_size;
    uint32_t added_ticks;    /* as in zc_slot: adds to what the slot says */
    uint64_t seq;
    uint64_t t_leave;
    uint64_t result;
} zc_leave; /* followed by out_size bytes of zc_piece */

enum zc_piece_kind {
    ZC_P_MEMORY = 1,   /* memory that the arguments point to */
    ZC_P_OPERAND,      /* contents: as ZT_C_OPERAND */
    ZC_P_USM,
    ZC_P_READBACK,
    ZC_P_BACKTRACE,    /* frame addresses: where each call returns to, innermost first */
    ZC_P_LIST          /* came in ZC_R_DATA: pieces with their payloads, none of them of this kind */
};
enum zc_piece_flags {
    ZC_PF_DATA = 1,      /* the bytes came in ZC_R_DATA records with this piece's `data_id` */
    ZC_PF_HASH_ONLY = 2, /* payload is a 16-byte hash instead of the bytes */
    ZC_PF_CHANGED = 4,   /* differs from an earlier reading while in flight */
    ZC_PF_LOST = 8       /* could not be read or kept; no payload */
};

/* Followed by its payload, padded to 8 bytes: the bytes, a hash, or nothing. */
typedef struct zc_piece {
    uint64_t addr;
    uint64_t len;
    uint8_t kind, flags;
    uint16_t pad;
    uint32_t data_id;
} zc_piece;

typedef struct zc_data {
    zc_record rec;
    uint32_t data_id;       /* of this thread */
    uint32_t pad;
    uint64_t offset, total; /* of the whole piece */
} zc_data; /* followed by bytes */

typedef struct zc_lost {
    zc_record rec;
    uint64_t time;          /* ticks */
    uint64_t calls, bytes;
} zc_lost;

#ifdef ZT_API_H
/* FNV-1a of all function names in the order of ids, each with its NUL. */
static inline uint64_t zc_table_hash(void)
{
    uint64_t hash = 0xcbf29ce484222325ull;
    for (unsigned i = 0; i < zt_n_funcs; i++) {
        const char *name = zt_funcs[i].name;
        do {
            hash = (hash ^ (unsigned char)*name) * 0x100000001b3ull;
        } while (*name++ != 0);
    }
    return hash;
}
#endif

#endif

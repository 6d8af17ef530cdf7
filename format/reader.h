/* SPDX-License-Identifier: MIT */
/* The reader from the inside: reader.c knows the file and its chunks, chunk.c takes a chunk of calls apart. Private to format/. */
#ifndef ZT_READER_H
#define ZT_READER_H

#include "file.h"
#include "format.h"
#include "zetrace.pb-c.h"

#define ZT_MAX_WORDS 64u

typedef struct zt__place { /* a chunk in the file */
    uint64_t offset; /* of its header */
    uint64_t first, begin, end, sequence;
    uint32_t calls, late, span, raw_size, stored_size;
    uint8_t kind, flags;
    bool damaged;    /* found out when it was decoded */
} zt__place;

typedef struct zt__word_cursor {
    const int64_t *delta;
    size_t n;
    uint64_t value;
} zt__word_cursor;

typedef struct zt__piece_cursor {
    const Zetrace__Pieces *column;
    size_t next;        /* element */
    uint64_t next_call; /* of the function, that has element `next` */
    uint64_t address;
    size_t data_at;
} zt__piece_cursor;

typedef struct zt__function_view {
    const zt_func *func;
    uint32_t calls; /* given so far */
    zt__word_cursor *words;
    zt__piece_cursor *pieces;
    size_t n_pieces;
} zt__function_view;

typedef struct zt__thread_last {
    uint32_t thread;
    uint64_t time;
} zt__thread_last;

/* A decoded chunk of calls. Counted: calls that were given out point into it. */
typedef struct zt__calls {
    unsigned refs;
    size_t place;
    Zetrace__Packet *packet;
    const Zetrace__CallChunk *chunk;
    zt__function_view *functions;
    uint32_t next;
    uint64_t number;
    size_t next_content, next_backtrace;
    zt__thread_last *threads;
    size_t n_threads, threads_room;
} zt__calls;

typedef struct zt__slot { /* one call with everything it refers to */
    zt_call call;
    uint64_t words[ZT_MAX_WORDS];
    zt_piece *in, *out;
    zt_content *contents;
    uint64_t *frames;
    size_t in_room, out_room, contents_room, frames_room;
    zt__calls *refs[2]; /* the chunk it stands in, and the one with its late LEAVE */
} zt__slot;

typedef struct zt__frame {
    uint64_t address;
    char *name;
} zt__frame;

typedef struct zt__frames {
    zt__frame *at;
    size_t n, room;
    bool sorted; /* ascending, as lookups want it */
} zt__frames;

void zt__frames_take(zt__frames *frames, const Zetrace__Frames *message);
/* By name, or made from the session's libraries. */
const char *zt__frames_find(zt__frames *frames, const zt_session *session, uint64_t address);
void zt__frames_free(zt__frames *frames);

/* Looks up a function id of the trace. @return NULL if the trace does not describe it. */
typedef const zt_func *(*zt__func_of)(void *ctx, uint32_t id);

/* Checks the columns against each other. Takes over `packet`. @return NULL if they do not fit (damage) or memory is out. */
zt__calls *zt__calls_new(Zetrace__Packet *packet, size_t place, zt__func_of func_of, void *ctx);
void zt__calls_ref(zt__calls *calls);
void zt__calls_unref(zt__calls *calls);
/* Fills the slot with the next call. @return ZT_OK, ZT_END or ZT_E_DAMAGED. */
int zt__calls_next(zt__calls *calls, zt__slot *slot);
/* Adds the LEAVE that stands in `late` to the slot's call. */
int zt__slot_complete(zt__slot *slot, zt__calls *calls, const Zetrace__Late *late);
void zt__slot_clear(zt__slot *slot); /* drops references, keeps room */
void zt__slot_free(zt__slot *slot);

/* For events: the next call into a slot of the caller's. */
int zt__trace_next(zt_trace *trace, zt__slot *slot);

#endif

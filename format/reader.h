/* SPDX-License-Identifier: MIT */
/* The reader from the inside: reader.c knows the file and its chunks, chunk.c takes a chunk of calls apart. Private to format/. */
#ifndef ZT_READER_H
#define ZT_READER_H

#include <sys/queue.h>

#include "scan.h"

#define ZT_MAX_WORDS 64u
#define ZT_LATE_CHUNKS 32 /* kept to find LEAVEs in */

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

typedef struct zt__late_place {
    uint64_t number;
    uint32_t place, index;
} zt__late_place;

typedef struct zt__blob {
    zt_hash hash;
    size_t from, n; /* its chunks, in zt__blobs.places */
    void *data;     /* NULL: not in memory */
    uint64_t len;
    bool held;
    TAILQ_ENTRY(zt__blob) next;
} zt__blob;
TAILQ_HEAD(zt__blob_list, zt__blob);

typedef struct zt__blobs {
    zt__blob *at; /* sorted by hash; made when the first one is asked for */
    size_t n;
    uint32_t *places; /* of chunks, by hash and offset */
    struct zt__blob_list idle, held; /* those in memory, the oldest first */
    uint64_t idle_bytes, held_bytes;
    uint64_t call; /* whose blobs are held */
} zt__blobs;

/* zt_trace_blob for who walks a call: valid until blobs of another call are asked for. A call gets 1 GiB of them, or one that is larger. */
const void *zt__blob_of_call(zt_trace *trace, uint64_t call, const zt_hash *hash, uint64_t *len);
void zt__blobs_free(zt__blobs *blobs);

typedef struct zt__foreign { /* a function this build does not know */
    zt_func func;
    zt_field *params;
} zt__foreign;

struct zt_trace {
    zt__file file;
    zt_session session;
    zt_ending ending;
    zt_health health;
    const zt_func **funcs; /* by id of the trace */
    size_t n_funcs;
    zt__foreign **foreigns;
    size_t n_foreigns;
    zt__late_place *lates; /* sorted by number */
    size_t n_lates, lates_room;
    zt__calls *current;
    zt__calls *late_chunks[ZT_LATE_CHUNKS]; /* the latest used first */
    uint64_t late_left; /* bytes that may still be unpacked to find LEAVEs */
    size_t next_place;
    uint64_t skip_to; /* seek: calls below it are passed over */
    zt__slot slot;
    zt__blobs blobs;
    zt__frames frames;
    uint8_t *packet; /* of zt_trace_packet */
    ZSTD_DCtx *zstd;
};

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

/* The packet of a chunk, counted as damaged the first time if it cannot be had. @return NULL then, or when memory is out. */
Zetrace__Packet *zt__unpack(zt_trace *trace, zt__place *place);
/* The calls of a chunk, counted as damaged the first time if they cannot be had. @return NULL then, or when memory is out. */
zt__calls *zt__load_calls(zt_trace *trace, size_t place);
/* For events: the next call into a slot of the caller's. */
int zt__trace_next(zt_trace *trace, zt__slot *slot);

#endif

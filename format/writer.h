/* SPDX-License-Identifier: MIT */
/* The writer from the inside: writer.c owns the file, writer_chunk.c the columns of the chunk being filled. Private to format/. */
#ifndef ZT_WRITER_H
#define ZT_WRITER_H

#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "format.h"
#include "zetrace.pb-c.h"

/* A growing array. On failure `broken` of the chunk is set and the element is dropped. */
#define ZT_ARRAY(type)                                                                                                         \
    struct {                                                                                                                   \
        type *at;                                                                                                              \
        size_t n, room;                                                                                                        \
    }
#define ZT_PUSH(broken, array, value)                                                                                          \
    do {                                                                                                                       \
        if ((array).n < (array).room || zt__grow((void **)&(array).at, &(array).room, sizeof(*(array).at)))                    \
            (array).at[(array).n++] = (value);                                                                                 \
        else                                                                                                                   \
            (broken) = true;                                                                                                   \
    } while (0)

static inline bool zt__grow(void **at, size_t *room, size_t size)
{
    const size_t more = *room ? *room * 2 : 64;
    void *const grown = realloc(*at, more * size);
    if (grown == NULL)
        return false;
    *at = grown;
    *room = more;
    return true;
}

typedef struct zt__bytes {
    uint8_t *at;
    size_t n, room;
} zt__bytes;
bool zt__append(zt__bytes *bytes, const void *data, size_t n);

typedef struct zt__piece_column {
    bool leave;
    uint32_t index;
    uint32_t next_call;
    uint64_t last_address;
    bool same_length, any_kind;
    ZT_ARRAY(uint32_t) call;
    ZT_ARRAY(int64_t) address;
    ZT_ARRAY(uint64_t) length;
    ZT_ARRAY(uint32_t) kind;
    zt__bytes data;
} zt__piece_column;

typedef ZT_ARRAY(int64_t) zt__deltas;

typedef struct zt__function_columns {
    const zt_func *func;
    uint32_t id, slot; /* slot: index in the chunk, valid if `chunk` is the current one */
    uint64_t chunk;
    uint32_t calls;
    bool described; /* its ApiTable entry was written */
    zt__deltas *words;
    uint64_t *last;
    zt__piece_column *pieces;
    size_t n_pieces, pieces_used;
} zt__function_columns;

typedef struct zt__thread_time {
    uint64_t chunk, time;
} zt__thread_time;

typedef struct zt__chunk {
    uint64_t serial; /* counts chunks: what belongs to an older one is stale */
    bool broken;     /* memory ran out: the chunk is incomplete */
    uint64_t first, last, begin, end;
    uint32_t calls, late;
    size_t bytes;    /* estimate of the raw size */
    zt__function_columns *functions; /* by id */
    size_t n_functions;
    ZT_ARRAY(uint32_t) used; /* ids in this chunk */
    ZT_ARRAY(uint32_t) function;
    ZT_ARRAY(uint32_t) thread;
    ZT_ARRAY(uint32_t) gaps;
    ZT_ARRAY(int64_t) enter;
    ZT_ARRAY(uint64_t) duration;
    ZT_ARRAY(uint64_t) results;
    ZT_ARRAY(uint32_t) result;
    ZT_ARRAY(uint32_t) flags;
    ZT_ARRAY(uint32_t) added;
    bool any_gap, any_flag, any_added;
    ZT_ARRAY(zt__thread_time) threads;
    ZT_ARRAY(Zetrace__Content *) contents;
    ZT_ARRAY(Zetrace__Late *) lates;
    ZT_ARRAY(Zetrace__Backtrace *) backtraces;
} zt__chunk;

bool zt__chunk_init(zt__chunk *chunk);
void zt__chunk_free(zt__chunk *chunk);
void zt__chunk_reset(zt__chunk *chunk);
/* Big pieces have become blobs before: their `data` is NULL. */
void zt__chunk_add(zt__chunk *chunk, const zt_call *call);
void zt__chunk_late(zt__chunk *chunk, uint64_t number, const zt_call *leave);
/* The chunk as a packet in one piece of memory behind its length. @return false when memory is out. */
bool zt__chunk_pack(zt__chunk *chunk, zt__bytes *out);
/* ApiTable for the functions of the chunk that were not described before. @return false if there is nothing new. */
bool zt__chunk_describe(zt__chunk *chunk, zt__bytes *out);
/* All that were described, once more without parameters and types: a table that is damaged must not take the calls with it. */
bool zt__chunk_describe_again(zt__chunk *chunk, zt__bytes *out);
bool zt__pack(const Zetrace__Packet *packet, zt__bytes *out);

#endif

/* SPDX-License-Identifier: MIT */
/* Fixed layouts of the file around the packets. Little-endian. Private to format/. */
#ifndef ZT_FILE_H
#define ZT_FILE_H

#include <stdint.h>

#define ZT_SKIPPABLE 0x184D2A50u /* zstd skips such frames */
#define ZT_MAGIC "ZETRACE"       /* with its NUL: 8 bytes */
#define ZT_MAJOR 1
#define ZT_MINOR 0
#define ZT_CHUNK_MAGIC 0x4b43545au /* "ZTCK" */
#define ZT_INDEX_MAGIC 0x5849545au /* "ZTIX" */
#define ZT_END_MAGIC 0x444e545au   /* "ZTND" */
#define ZT_BLOB_PART (1u << 20)
#define ZT_MAX_RAW (64u << 20)     /* of one chunk: more is not believed */
#define ZT_MAX_CALLS 8192u
#define ZT_INLINE_PIECE (64u << 10)  /* argument memory above that becomes a blob */
#define ZT_INLINE_CONTENT (4u << 10) /* contents likewise: they repeat more often */
#define ZT_INLINE_CALL (1u << 20)    /* of one call together */

enum zt_chunk_kind { ZT_CHUNK_SESSION = 1, ZT_CHUNK_API, ZT_CHUNK_CALLS, ZT_CHUNK_BLOB, ZT_CHUNK_LOST, ZT_CHUNK_ENDING,
                     ZT_CHUNK_FRAMES };

typedef struct zt_file_header { /* at offset 0 */
    uint32_t skippable, skip_size;
    char magic[8];
    uint16_t major, minor;
    uint32_t flags;
    uint8_t uuid[16];
} zt_file_header;
_Static_assert(sizeof(zt_file_header) == 40, "on disk");

typedef struct zt_chunk_header { /* before each zstd frame */
    uint32_t skippable, skip_size;
    uint32_t magic;
    uint8_t kind, flags;
    uint16_t reserved;
    uint64_t sequence;
    uint64_t first;     /* calls: first number. blobs: low half of the hash */
    uint32_t calls;
    uint32_t late;      /* LEAVEs of earlier chunks' calls */
    uint64_t begin;     /* calls: ns. blobs: high half of the hash */
    uint64_t end;       /* calls: ns. blobs: offset of the part */
    uint32_t raw_size, stored_size;
    uint32_t span;      /* calls: last number - first number */
    uint32_t check;     /* XXH32 of all before */
} zt_chunk_header;
_Static_assert(sizeof(zt_chunk_header) == 72, "on disk");

typedef struct zt_index_entry {
    uint64_t offset, first, begin;
    uint32_t calls, kind;
} zt_index_entry;
_Static_assert(sizeof(zt_index_entry) == 32, "on disk");

typedef struct zt_index_head { /* followed by the entries and zt_index_tail, all in one skippable frame */
    uint32_t skippable, skip_size;
    uint32_t magic, entries;
} zt_index_head;

typedef struct zt_index_tail { /* the last 16 bytes of a complete file */
    uint64_t offset; /* of the index frame */
    uint32_t check;  /* XXH32 of the entries */
    uint32_t magic;
} zt_index_tail;
_Static_assert(sizeof(zt_index_tail) == 16, "on disk");

#endif

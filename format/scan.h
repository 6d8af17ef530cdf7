/* SPDX-License-Identifier: MIT */
/* A trace as a file: its header, its chunks, and what lies between them where it is damaged. Private to format/, but for zt__packet_unpack. */
#ifndef ZT_SCAN_H
#define ZT_SCAN_H

#include <zstd.h>

#include "file.h"
#include "format.h"
#include "zetrace.pb-c.h"

enum zt__fault { ZT__GOOD, ZT__CHECKSUM, ZT__NO_PACKET, ZT__WRONG_KIND, ZT__MISFIT, ZT__NO_TABLE };

typedef struct zt__place { /* a chunk in the file */
    uint64_t offset; /* of its header */
    uint64_t first, begin, end, sequence;
    uint32_t calls, late, span, raw_size, stored_size;
    uint8_t kind, flags;
    uint8_t fault; /* enum zt__fault, found out when it was decoded */
} zt__place;

typedef struct zt__hole { /* a stretch that belongs to no chunk */
    uint64_t offset, end;
    size_t before; /* number of the chunk behind it */
    bool cut;      /* the file ends within a chunk */
} zt__hole;

typedef struct zt__file {
    int fd;
    char *path;
    uint64_t size;
    zt_file_header header;
    bool strange;    /* the header is damaged, or of another major version; chunks stand behind it all the same */
    zt__place *places;
    size_t n_places, places_room;
    zt__hole *holes;
    size_t n_holes, holes_room;
    uint64_t index_at; /* 0: there is none */
} zt__file;

/* Opens PATH ("-": stdin) and reads the header. zt__file_close in every case. */
int zt__file_open(zt__file *file, const char *path, zt_error *error);
/* Finds chunks and holes. @return ZT_OK or ZT_E_MEMORY. */
int zt__file_walk(zt__file *file);
void zt__file_close(zt__file *file);
bool zt__file_read(const zt__file *file, uint64_t offset, void *out, size_t n);
int zt__complain(zt_error *error, int status, const char *path, const char *text);

/* What a chunk holds, unless a fault is known but for that of a missing table: the packet's length as a varint, and the packet. @return to be freed; NULL: damaged (see its fault), or memory is out. */
uint8_t *zt__contents(const zt__file *file, zt__place *place, ZSTD_DCtx *zstd);
/* Where the packet begins in contents of `n` bytes. @return 0 if its length does not fit. */
size_t zt__packet_at(const uint8_t *contents, size_t n);
/* Takes a packet apart. Hostile ones may want far more memory than they have bytes: they get no more than is sane. */
Zetrace__Packet *zt__packet_unpack(const uint8_t *packet, size_t n);
/* contents and packet_unpack in one; the packet must be of the kind that the chunk says. */
Zetrace__Packet *zt__packet(const zt__file *file, zt__place *place, ZSTD_DCtx *zstd);
/* "its checksum differs" and so on. */
const char *zt__fault_text(int fault);

#endif

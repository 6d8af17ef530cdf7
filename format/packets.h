/* SPDX-License-Identifier: MIT */
/*
 * A trace packet by packet, as it stands in the file: for whatever writes a trace again and has to keep what this build does not
 * know. Not installed.
 */
#ifndef ZT_PACKETS_H
#define ZT_PACKETS_H

#include "file.h"
#include "format.h"

/* A chunk. Its header as in docs/FORMAT.md; sizes, sequence and check are the writer's business. */
typedef struct zt_packet {
    uint8_t kind, flags; /* enum zt_chunk_kind, or one of a newer version */
    uint32_t calls, late, span;
    uint64_t first, begin, end;
    const uint8_t *data; /* the message Packet, without its length */
    size_t size;
} zt_packet;

const zt_file_header *zt_trace_header(const zt_trace *trace);
/* Chunks that were found, those with damaged contents among them. */
size_t zt_trace_packets(const zt_trace *trace);
/* Its bytes alone count, not what is in them. Data is valid until the next one is asked for. @return ZT_OK, or ZT_E_DAMAGED, which zt_trace_health then tells of. */
int zt_trace_packet(zt_trace *trace, size_t index, zt_packet *packet);

/* As zt_writer_open, for packets: the first of them is the session. */
int zt_writer_open_packets(zt_writer **out, const char *path, const zt_file_header *header, const zt_writer_options *options,
                           zt_error *error);
int zt_writer_packet(zt_writer *writer, const zt_packet *packet);

#endif

/* SPDX-License-Identifier: MIT */
/* Repacking from the inside: repack.c writes the packets, repack_drop.c takes things out of them. Private to format/. */
#ifndef ZT_REPACK_H
#define ZT_REPACK_H

#include "hashes.h"
#include "output.h"
#include "reader.h"
#include "refile.h"

typedef struct zt__dropped_piece { /* the piece of a call that holds a module */
    uint64_t call, address;
    bool leave;
} zt__dropped_piece;

typedef struct zt__dropping {
    unsigned drop;          /* enum zt_drop */
    ZT_ARRAY(zt__dropped_piece) modules; /* sorted by call, phase and address */
    zt__hashes kept;        /* blobs that are still referred to */
    uint64_t bytes;         /* dropped */
    bool out_of_memory;
} zt__dropping;

/* Goes through the trace and finds what is to be dropped. */
int zt__dropping_find(zt__dropping *dropping, zt_trace *trace);
void zt__dropping_free(zt__dropping *dropping);
/* Whether the blob stays. */
bool zt__dropping_keeps(const zt__dropping *dropping, const zt_hash *hash);
/* UNCLEAN: what is to be dropped can't be told from the rest, or memory is out; who gives the trace away must not give that packet. */
enum zt__dropped { ZT__NOTHING_DROPPED, ZT__DROPPED, ZT__UNCLEAN };
/* The packet of the place without what is dropped, behind its length: in `out` if that is DROPPED. No packet: n 0. @return enum zt__dropped */
int zt__dropping_packet(zt__dropping *dropping, const zt__place *place, const uint8_t *packet, size_t n, zt__bytes *out);

#endif

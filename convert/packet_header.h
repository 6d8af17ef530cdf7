/* SPDX-License-Identifier: MIT */
/* What a chunk's header says follows from the packet in it, for all that zetrace writes. Private to convert/. */
#ifndef ZV_PACKET_HEADER_H
#define ZV_PACKET_HEADER_H

#include "packets.h"
#include "scan.h" /* zt__packet_unpack: hostile packets want more memory than is sane */

/* Fills all but data and size. */
void zv_header_of(zt_packet *packet, const Zetrace__Packet *message);
bool zv_same_header(const zt_packet *a, const zt_packet *b);

#endif

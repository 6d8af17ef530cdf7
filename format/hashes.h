/* SPDX-License-Identifier: MIT */
/* A set of blobs' hashes. Private to format/. */
#ifndef ZT_HASHES_H
#define ZT_HASHES_H

#include "format.h"

typedef struct zt__hashes {
    zt_hash *at; /* open addressing, power of two; zero is empty */
    size_t n, room;
} zt__hashes;

/* @return false when memory is out. *known: it was there before. */
bool zt__hashes_add(zt__hashes *set, const zt_hash *hash, bool *known);
bool zt__hashes_have(const zt__hashes *set, const zt_hash *hash);

#endif

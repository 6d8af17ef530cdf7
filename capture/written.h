/* SPDX-License-Identifier: MIT */
/*
 * Which pages of an allocation this process has written since they were last looked at, told by the kernel (userfaultfd WP_ASYNC and
 * PAGEMAP_SCAN, Linux 6.7): no signal, no thread; a page costs one fault when it is first written. What the device writes does
 * not count, as far as it does not write through this process's page tables. Whether that is cheaper than hashing the allocation is
 * measured. Private to the layer.
 */
#ifndef ZC_WRITTEN_H
#define ZC_WRITTEN_H

#include "layer.h"

typedef struct zc_watch {
    uint64_t base, size;      /* whole pages */
    _Atomic uint32_t state;
    _Atomic uint32_t against; /* how many times running the other way would have been cheaper */
    _Atomic bool given_up;    /* it was too dear */
    _Atomic bool needed;      /* host and device write here at a time: cost is no reason */
} zc_watch;

void zc_watch_init(zc_watch *watch, uint64_t base, uint64_t size);
/* Begins to watch, unless that has turned out to be too dear, or cannot be. All of it counts as not written. */
void zc_watch_begin(zc_watch *watch);
void zc_watch_need(zc_watch *watch);
/* Before the memory is freed. */
void zc_watch_end(zc_watch *watch);
bool zc_watched_now(const zc_watch *watch);
/* What a look has found: pages written while watched, blocks changed while not. */
void zc_watch_counted(zc_watch *watch, uint64_t pages);
void zc_watch_hashed(zc_watch *watch, uint64_t changed);

enum { ZC_STRETCHES = 64 };

/* Goes through what was written in [at, end). `take`: it counts as not written from then on. */
typedef struct zc_written {
    zc_watch *watch;
    uint64_t at, end;
    bool take;
    unsigned i, n;
    struct {
        uint64_t from, to, categories;
    } stretch[ZC_STRETCHES];
} zc_written;

/* @return false when there is no more. When the kernel cannot tell, all that is left counts as written, and the watch ends. */
bool zc_written_next(zc_written *written, uint64_t *from, uint64_t *to);

/* In a child after fork: nothing is watched there. */
void zc_written_fork(void);

#endif

/* SPDX-License-Identifier: MIT */
/* The recorded process as a whole; private to the layer. */
#ifndef ZC_PROCESS_H
#define ZC_PROCESS_H

#include "layer.h"

#include <sys/types.h>

enum { ZC_NEW, ZC_STARTING, ZC_ON, ZC_OFF };

typedef struct zc_process {
    _Atomic int state;
    int fd; /* to the recorder */
    dev_t device;
    ino_t inode;
    zc_lock socket_lock, threads_lock;
    zc_thread *threads; /* those that run */
    uint64_t ring_size;
    bool prepared, lossy;
    bool introduced; /* has said hello before */
    uint32_t forked;
    _Atomic uint64_t unknown_slots; /* not yet told to a ring */
    _Atomic uint64_t lost_calls, lost_bytes; /* likewise */
    char path[108];
} zc_process;

extern zc_process zc_this;

/* Connects at the process's first call. @return whether calls are recorded. */
bool zc_process_start(void);
/* @return whether the recorder has been told of the ring. Does not wait. */
bool zc_send_ring(const zc_new_ring *message, int fd);
uint64_t zc_monotonic_ns(void);
/* `globs`: functions whose callers are recorded, separated by commas. */
void zc_backtrace_start(const char *globs);
void zc_thread_key(void);
void zc_forget_threads(void);

#endif

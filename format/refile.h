/* SPDX-License-Identifier: MIT */
/*
 * Trace files as files: what of one is whole, putting together what is readable of a damaged one, and packing one again. Chunks that
 * are not looked into are carried over as they are, so what a newer version put there stays.
 */
#ifndef ZT_REFILE_H
#define ZT_REFILE_H

#include "format.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One thing that is wrong, and what it costs. */
typedef struct zt_finding {
    uint64_t offset, end;   /* in the file */
    uint64_t chunk;         /* its sequence number; UINT64_MAX: of no chunk in particular */
    uint64_t first, last;   /* call numbers; 0: none are known to be lost here */
    uint64_t calls;         /* lost */
    uint64_t from_ns, to_ns; /* if calls > 0: when these were made, as far as that is known */
    char text[160];
} zt_finding;

typedef struct zt_verdict {
    bool whole;              /* every chunk is there and good, index and ending too, and the recording was finished */
    bool damaged;            /* something in the file is not as it was written */
    bool session, index, ending, finished; /* what there is; index: and it fits. finished: the recorder saw the end */
    uint16_t major, minor;
    bool newer;              /* written by a newer version: what that has added was not looked at */
    uint64_t bytes, chunks, damaged_chunks, missing_chunks, other_chunks; /* other: of kinds that are not known */
    uint64_t calls, first_call, last_call, threads, never_returned; /* readable */
    uint64_t first_ns, last_ns;
    uint64_t calls_lost, lost_ns;
    uint64_t blobs, blobs_lost;  /* blobs_lost: that calls refer to and that are not there, or not as they were */
    uint64_t findings;
} zt_verdict;

/* Reads everything. `tell` gets each finding, may be NULL. @return ZT_OK, or an error if there is no trace to judge. */
int zt_verify(const char *path, void (*tell)(void *ctx, const zt_finding *finding), void *ctx,
              void (*step)(void *ctx, uint64_t done, uint64_t total), void *step_ctx, zt_verdict *verdict, zt_error *error);

enum zt_drop { ZT_DROP_MEMORY = 1, ZT_DROP_MODULES = 2, ZT_DROP_ENVIRONMENT = 4 };

typedef struct zt_refile_options {
    bool overwrite;
    int level;      /* repack: zstd, 1..19; 0 = 3 */
    unsigned drop;  /* repack: enum zt_drop */
    void (*step)(void *ctx, uint64_t done, uint64_t total); /* chunks. May be NULL */
    void *ctx;
} zt_refile_options;

typedef struct zt_refiled {
    uint64_t bytes_before, bytes, chunks, chunks_left_out; /* chunks: written. Left out: places that could not be read */
    uint64_t calls;
    char problem[512];       /* the first one with IN, a sentence, or "" */
    uint64_t dropped;        /* bytes of what `drop` names, before compression */
} zt_refiled;

/*
 * Writes PATH's good chunks, byte for byte, to OUT ("-": stdout) under a new header and index. Sequence numbers stay: what is missing
 * can still be told. Mode 0600. `verdict` is that of OUT.
 */
int zt_repair(const char *path, const char *out, const zt_refile_options *options, zt_refiled *done, zt_verdict *verdict, zt_error *error);
/*
 * Compresses every packet anew and leaves out what is to be dropped. The bytes of OUT depend on the packets, the level and the library
 * that compresses, on nothing else.
 */
int zt_repack(const char *path, const char *out, const zt_refile_options *options, zt_refiled *done, zt_error *error);

#ifdef __cplusplus
}
#endif
#endif

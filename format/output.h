/* SPDX-License-Identifier: MIT */
/* A trace file being written: header, chunks, index, and the name that it gets at the end. Private to format/. */
#ifndef ZT_OUTPUT_H
#define ZT_OUTPUT_H

#include <zstd.h>

#include "refile.h"
#include "writer.h"

typedef struct zt__output {
    int fd;
    char *path, *partial;
    bool overwrite;
    bool aside; /* nothing is left of it when it fails */
    uint64_t written, sequence;
    int failed;      /* first error; nothing is written after it */
    int failed_errno;
    zt__bytes packed;
    ZSTD_CCtx *zstd;
    ZT_ARRAY(zt_index_entry) index;
} zt__output;

/* The header of a trace of this version, or of `like`'s version if that is newer. `like` may be NULL. */
zt_file_header zt__output_header(const uint8_t uuid[16], const zt_file_header *like);
/*
 * Creates a file with mode 0600 beside PATH: PATH.partial, which takes the place of an older one, or, if `aside`, one without a name,
 * or of a name that nobody has. "-" and `aside` is stdout. Level as in zt_writer_options.
 */
int zt__output_open(zt__output *output, const char *path, const zt_file_header *header, int level, bool overwrite, bool aside, zt_error *error);
/* Compresses a packet behind its length into a chunk; sizes, checksum and the next sequence number go into the header. */
int zt__output_chunk(zt__output *output, zt_chunk_header header, const void *raw, size_t n);
/* A chunk as it stands in another file, with its header. */
int zt__output_copy(zt__output *output, const zt_chunk_header *header, const void *stored);
/* What the functions give back: the first failure for ever after, errno as it was then. */
int zt__output_fail(zt__output *output, int status);
int zt__output_standing(const zt__output *output);
/* Writes the index and gives the file its name. On failure the unfinished file stays, unless it was `aside`. Frees what `output` holds. */
int zt__output_close(zt__output *output, zt_error *error);
/* The same, and the sizes. */
int zt__output_finish(zt__output *output, zt_refiled *done, zt_error *error);
/* Removes the unfinished file. */
void zt__output_abandon(zt__output *output);

#endif

/* SPDX-License-Identifier: MIT */
/* Hand-made traces and what tests do to them: taking chunks apart, putting changed ones back with right checksums. */
#ifndef TEST_TRACE_TOOLS_H
#define TEST_TRACE_TOOLS_H

#include "file.h"
#include "format.h"

typedef struct bytes {
    uint8_t *at;
    size_t n;
} bytes;

/* A trace of `calls` calls with everything the format has: pieces, blobs, contents, late LEAVEs, losses, two threads. */
bool make_trace(const char *path, unsigned calls, unsigned per_chunk);
bool make_trace_with_backtraces(const char *path, unsigned calls, unsigned per_chunk);
bytes read_file(const char *path);
bool write_file(const char *path, const void *data, size_t n);
/* Finds the n-th chunk of a kind. @return its header's offset, or 0. */
size_t find_chunk(const bytes *file, unsigned kind, unsigned n);
bytes chunk_contents(const bytes *file, size_t offset);
/* The file with the contents of one chunk replaced, its header made to fit. */
bytes with_contents(const bytes *file, size_t offset, const void *raw, size_t n, uint32_t calls, uint32_t late);

/* Reads a trace in every way there is. Each call's number and digest go to `see`. @return the status of opening it. */
int read_everything(const char *path, void (*see)(void *ctx, uint64_t number, uint64_t digest), void *ctx, zt_health *health);

#endif

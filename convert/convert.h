/* SPDX-License-Identifier: MIT */
/* A trace as JSON and back, and as time lines of other programs. Nothing here prints or exits; one thread at a time. */
#ifndef ZV_CONVERT_H
#define ZV_CONVERT_H

#include <stdio.h>

#include "format.h"

typedef struct zv_progress {
    void (*step)(void *ctx, uint64_t done, uint64_t total); /* total 0: not known */
    void *ctx;
} zv_progress;

/*
 * Everything that can be read of the trace, one JSON object a line: docs/export.md. What went wrong in reading is in zt_trace_health.
 * A failing `out` is the caller's to find out.
 */
void zv_json_write(zt_trace *trace, FILE *out, const zv_progress *progress);

/* What a time line came to. */
typedef struct zv_timeline_facts {
    uint64_t commands, timed; /* executions; those whose times were recorded, the others' order is all that is known */
} zv_timeline_facts;

/* Chrome's Trace Event Format, and a stream of Perfetto's packets. Both read the trace from its beginning, several times. */
int zv_chrome_write(zt_trace *trace, FILE *out, const zv_progress *progress, zv_timeline_facts *facts, zt_error *error);
int zv_perfetto_write(zt_trace *trace, FILE *out, const zv_progress *progress, zv_timeline_facts *facts, zt_error *error);

typedef struct zv_import_options {
    int level; /* zstd, 0: as a recording's */
    bool overwrite;
    const zv_progress *progress;
} zv_import_options;

/*
 * Makes the trace `path` of what zv_json_write has written. `name` is for messages.
 * @return ZT_OK, ZT_E_FOREIGN, ZT_E_NEWER, ZT_E_DAMAGED or ZT_E_LIMIT for what stands in `in`, or what kept `path` from being written.
 * Nothing is left at `path` but after ZT_OK.
 */
int zv_json_read(FILE *in, const char *name, const char *path, const zv_import_options *options, zt_error *error);

#endif

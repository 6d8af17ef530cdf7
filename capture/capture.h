/* SPDX-License-Identifier: MIT */
/*
 * Recording a program: starts it with the layer inside, drains the rings of all its processes, writes a trace for each.
 * Used by the command; the layer's side is private to this folder. Not thread-safe: one recording at a time in a process.
 */
#ifndef ZC_CAPTURE_H
#define ZC_CAPTURE_H

#include "format.h"

typedef struct zc_record_options {
    char **argv;             /* program and arguments, NULL at the end */
    const char *output;      /* pattern: %p process, %h host, %r rank, %n program, %i round, %% */
    const char *driver;      /* "auto", "soft" or a path */
    const char *schedule;    /* ZE_SOFT_SCHEDULE, or NULL: left alone */
    const char *memory;      /* "none", "inputs", "full" */
    const char *attach;      /* "layer" or "driver" */
    const char *backtrace;   /* globs of functions whose callers are kept, separated by commas, or NULL */
    const char *const *env;  /* further globs of variables to keep, NULL at the end; may be NULL */
    const char *library_folder;
    uint64_t ring_bytes;     /* 0: the default */
    int level;               /* zstd; 0: the default */
    unsigned round;
    bool overwrite, lossy;
} zc_record_options;

typedef struct zc_record_summary {
    int status;              /* what `zetrace record` exits with: the program's own, 128 + N, 125, 126 or 127 */
    bool launched;
    uint64_t calls, threads, processes, bytes, dropped, never_returned;
    uint64_t traced;         /* calls with a backtrace */
    char file[4096];         /* of the first process, "" if no call was seen */
    char why_none[512];      /* no call seen: a sentence that says why that may be */
    char **files;            /* all traces that were finished */
    size_t n_files;
} zc_record_summary;

/*
 * @return ZT_OK if the program ran and all it did was written, else an error (summary is filled as far as it goes). In every case the
 * summary wants to be freed.
 */
int zc_record_program(const zc_record_options *options, zc_record_summary *summary, zt_error *error);
void zc_summary_free(zc_record_summary *summary);

/* Expands a pattern. @return false if it names an unknown % or does not fit. */
bool zc_expand_name(char *out, size_t size, const char *pattern, int64_t pid, const char *host, const char *rank,
                    const char *program, unsigned round);

#endif

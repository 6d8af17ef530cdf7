/* SPDX-License-Identifier: MIT */
/* A file that a command makes of a trace: nobody else may read it, none is overwritten unasked, none is there in halves. */
#ifndef ZT_OUTPUT_FILE_H
#define ZT_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

typedef struct zt_output {
    FILE *file;
    const char *path; /* NULL: standard output */
    char *partial;    /* NULL: it has no name yet */
    bool force, broken;
} zt_output;

/* `path` NULL or "-": standard output. @return false after a complaint. */
bool zt_output_open(zt_output *output, const char *path, bool force);
/* What was written so far is on the disk. @return false after a complaint, once. */
bool zt_output_whole(zt_output *output);
/* Puts it in its place if it is `good`, else removes it. @return false after a complaint: it could not be written. */
bool zt_output_close(zt_output *output, bool good);

#endif

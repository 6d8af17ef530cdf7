/* SPDX-License-Identifier: MIT */
/* What the files of 'zetrace isolate' share. */
#ifndef ZT_ISOLATE_H
#define ZT_ISOLATE_H

#include "order.h"

typedef struct isolate {
    const char *path; /* of the trace */
    zr_options replay;
    zo_isolate_options options;
    char **argv; /* for processes that run a trial elsewhere: isolate's own arguments, */
    int argc;
    const char *launcher;
    const char *fail_if, *small, *trial; /* arguments of --fail-if, -o and --trial; NULL */
    char *watch_function;                /* of --fail-if; freed by isolate_fail_if_free */
    bool json, quiet, force;
    bool launched;    /* --launcher gave a report before */
    char cannot[512]; /* why the condition or the launcher gave no answer, "" */
} isolate;

/* isolate_report.c */
void isolate_print(zt_trace *trace, const char *path, const zo_answer *answer, bool json);

/* isolate_fail_if.c: @return NULL, or what is wrong with the argument */
const char *isolate_fail_if(isolate *run, const char *argument);
/* Whether the trace has what the condition names; complains. Moves the position of the trace. @return an exit status */
int isolate_fail_if_fits(const isolate *run, zt_trace *trace);
void isolate_fail_if_free(isolate *run);

/* isolate_launch.c: trials through --launcher, and what such a process does. */
bool isolate_launch(void *ctx, const uint32_t *line, size_t n, zr_report *report);
int isolate_trial(isolate *run, zo_graph *graph, zr_plan *plan, const zt_ending *ending);

/* isolate_small.c: the smallest trace that still shows the answer. @return an exit status. */
int isolate_small(const isolate *run, zt_trace *trace, const zo_answer *answer);

/* Reads the whole trace. @return ZT_OK or an error, with one sentence in `error`. */
int isolate_open(zt_trace *trace, zo_graph **graph, zr_plan **plan, zt_error *error);

#endif

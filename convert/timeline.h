/* SPDX-License-Identifier: MIT */
/*
 * A trace as tracks with slices on them and flows between slices, for whatever writes them down. Tracks of threads hold calls; tracks of
 * queues and immediate lists hold the executions of commands. Each execution is a flow from the call that appended it over the one that
 * submitted it and its own slice to the end of the call that says that it is over. Private to convert/.
 */
#ifndef ZV_TIMELINE_H
#define ZV_TIMELINE_H

#include "convert.h"
#include "order/executions.h"

typedef struct zv_track {
    bool device;
    uint32_t id; /* thread, or lane of a device, from 1 */
} zv_track;

/* Where a slice stands in a flow. */
enum zv_step { ZV_FLOW_BEGINS, ZV_FLOW_GOES_ON, ZV_FLOW_ENDS };
typedef struct zv_flow {
    uint64_t id; /* from 1 */
    int step;    /* enum zv_step */
} zv_flow;

typedef struct zv_arg {
    const char *name, *text; /* text NULL: a number */
    uint64_t number;
} zv_arg;

typedef struct zv_mark { /* beginning or end of a slice */
    zv_track track;
    const char *name; /* of the slice, at its beginning */
    uint64_t ns;      /* CLOCK_MONOTONIC of the recorded machine */
    const zv_arg *args;
    size_t n_args;
    const zv_flow *flows; /* through the slice, at that moment */
    size_t n_flows;
} zv_mark;

/* Marks of one track come in the order of time, ends of inner slices before those of outer ones; a track is named before. */
typedef struct zv_sink {
    void (*track)(void *ctx, zv_track track, const char *name);
    void (*begin)(void *ctx, const zv_mark *mark);
    void (*end)(void *ctx, const zv_mark *mark);
    void *ctx;
} zv_sink;

int zv_timeline(zt_trace *trace, const zv_sink *sink, const zv_progress *progress, zv_timeline_facts *facts, zt_error *error);

#endif

/* SPDX-License-Identifier: MIT */
/* What 'zetrace diff' says of a comparison. */
#ifndef ZT_DIFF_REPORT_H
#define ZT_DIFF_REPORT_H

#include <stdio.h>

#include "diff.h"

typedef struct zt_diff_totals {
    uint64_t equal, removed, added, changed;
} zt_diff_totals;

typedef struct zt_diff_report {
    zd_diff *diff;
    zd_reader *readers[2];
    const char *names[2]; /* of the files */
    int view;
    zd_tolerance tolerance;
    uint64_t context; /* equal calls around a difference */
    bool by_order, color;
    const char *order; /* NULL, or what is to be said of calls that differ in order only */
    bool edges_known, edges_changed; /* whether that changes what happens before what */
    zt_diff_totals totals;
} zt_diff_report;

/* diff_order.c: of calls that differ in order only; moves both traces. Sets edges_known and edges_changed, and says so in `text`. */
void zt_diff_edges(zt_diff_report *report, zt_trace *const *traces, char *text, size_t size);
typedef struct zt_diff_replayed {
    char folder[1100], path[1200];
} zt_diff_replayed;
/* diff_replay.c: replays the trace at `path` and records that. @return false after a complaint; remove what was made in any case. */
bool zt_diff_replay_record(const char *path, const zt_trace *trace, zt_diff_replayed *made);
void zt_diff_replay_remove(const zt_diff_replayed *made);
void zt_diff_count(zt_diff_report *report);
bool zt_diff_same(const zt_diff_report *report);
/* Where they part, what is on one side only, which results have changed. */
void zt_diff_summary(zt_diff_report *report, FILE *out);
/* Unified. @return false when memory is out. */
bool zt_diff_unified(zt_diff_report *report, FILE *out);
/* One object; `brief`: without the differences and the script. */
bool zt_diff_json(zt_diff_report *report, FILE *out, bool brief);

#endif

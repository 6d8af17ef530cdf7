/* SPDX-License-Identifier: MIT */
/* The search for a pair: trials, and what they are made of. Private to isolate.c, search.c and trials.c. */
#ifndef ZO_FIND_H
#define ZO_FIND_H

#include "check.h"

typedef struct line {
    uint32_t *nodes;
    size_t n;
} line;

typedef struct finder {
    zo_graph *g;
    zr_plan *plan;
    const zo_isolate_options *o;
    zo_answer *a;
    zr_report report; /* of the last trial */
    zo_pair pair;     /* the last one that was looked at */
    bool bad, bad_by_result;
    uint64_t bad_wait; /* the recording failed in that nothing came of this wait: number, 0 */
    bool in_time;      /* in the earliest order every command ends in its turn */
    zo_edge repairs[ZO_PAIRS_MAX]; /* pairs that have been found, the other way round: in all lines */
    unsigned n_repairs;
    bool spent;          /* a trial was not made for want of replays */
    uint8_t *tried; /* by conflict */
    size_t n_tried;
} finder;

enum outcome { PASSES, FAILS, CANNOT /* not tried: it can't be had here, or no replays are left */ };

/* trials.c */
void zo_decide_recording(finder *f, const zt_ending *ending);
/* What a trial is replayed with. */
zr_options zo_trial_options(const finder *f);
bool zo_spent(const finder *f);
enum outcome zo_trial(finder *f, const line *l, const char *what);
/* All of them, up to `jobs` side by side. */
void zo_trials(finder *f, const line *lines, size_t n, const char *what, enum outcome *outcomes, zr_report *reports);
/* The same line `confirm` times. counts: as wanted, of all. @return the outcome they agree on, or another one. */
enum outcome zo_several(finder *f, const line *l, enum outcome wanted, unsigned counts[2], const char *what);
void zo_note_where_it_shows(finder *f);
/* A line with the repairs. */
bool zo_line(finder *f, int policy, uint64_t value, const line *like, const zo_edge *extra, size_t n, line *out);

/* How a trial's report is taken. */
enum outcome zo_judge(const finder *f, const zr_report *report);
unsigned zo_budget(const finder *f);

typedef struct zo_ranked {
    const zo_conflict *conflict;
    size_t number;
} zo_ranked;
/* Pairs that nothing orders and that were not tried, from conflict `first` on, the likeliest first. @return to be freed; NULL: no memory. */
zo_ranked *zo_candidates(finder *f, size_t first, size_t *n);

/* search.c: @return whether a pair was found and confirmed */
bool zo_try_candidates(finder *f, const line *base, enum outcome of_base, size_t first, unsigned most);
bool zo_try_host_writes(finder *f);
bool zo_try_family(finder *f, const line *base, enum outcome of_base, bool *other_seen);

/* isolate.c: early before late fails from the passing line alone, and the failing line passes with late before early. */
bool zo_confirm(finder *f, const line *passing, const line *failing, uint32_t early, uint32_t late);
void zo_fill_pair(finder *f, uint32_t early, uint32_t late);
uint32_t zo_node_in_line(const zo_conflict *c, uint32_t node);

/* timing.c: the pair by delays in real time. Sets the verdict. @return ZT_E_USAGE with a sentence in the answer if nothing can be replayed. */
int zo_timing(finder *f);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What must happen before what in a trace, and which order makes it fail.
 *
 *   zo_graph    happens-before over host calls and device commands, and the conflicting pairs that nothing orders
 *   zo_check    findings by rule, from the graph alone
 *
 * Needs format.h. Nothing prints or exits; an object belongs to one thread at a time. The graph borrows the trace it was made
 * from: close the graph first.
 */
#ifndef ZO_ORDER_H
#define ZO_ORDER_H

#include "format.h"
#include "replay.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ZO_NONE UINT32_MAX

typedef struct zo_graph zo_graph;

/* Which edges count besides those of the specification. */
typedef struct zo_graph_options {
    bool vendor; /* also what the recorded driver is known to do: see driver_edges.h */
    unsigned without; /* bit set of enum zo_edge_kind that are left out: for tests of the edges */
    unsigned limit;   /* accesses of an allocation, uses of an event, conflicts, findings, steps of a search; 0: the usual ones */
    uint64_t until;   /* the graph ends where that call has returned, or was made if it never did; 0: with the trace */
} zo_graph_options;

/* The edges, by the names that docs/check.md explains. */
enum zo_edge_kind {
    ZO_E_PROGRAM = 1 << 0,    /* calls of one thread */
    ZO_E_SUBMIT = 1 << 1,     /* submit before start */
    ZO_E_START = 1 << 2,      /* starts of one carrier, in order */
    ZO_E_IN_ORDER = 1 << 3,
    ZO_E_BARRIER = 1 << 4,
    ZO_E_BARRIER_WAITS = 1 << 5,
    ZO_E_WAIT = 1 << 6,       /* a wait holds back what comes behind it */
    ZO_E_EVENT = 1 << 7,      /* signal before wait */
    ZO_E_HOST_SIGNAL = 1 << 8,
    ZO_E_FENCE = 1 << 9,
    ZO_E_SYNC = 1 << 10,      /* queue, list, device */
    ZO_E_EVENT_SYNC = 1 << 11,
    ZO_E_SYNCHRONOUS = 1 << 12,
    ZO_E_COUNTER = 1 << 13,
    ZO_E_FREE = 1 << 14       /* a free that waits for its users */
};

/* Why two nodes must not be unordered. */
enum zo_conflict_kind {
    ZO_X_RACE,          /* two commands, one writes */
    ZO_X_EVICT, ZO_X_FREE,
    ZO_X_EVICT_REACHED, ZO_X_FREE_REACHED, /* a kernel may get there by pointers in memory */
    ZO_X_HOST_WRITE,
    ZO_X_LIST_RESET,    /* or destroyed */
    ZO_X_LIST_AGAIN,    /* executed while in flight */
    ZO_X_CARRIER_GONE,  /* queue or immediate list destroyed */
    ZO_X_FENCE_GONE,    /* reset or destroyed */
    ZO_X_EVENT_RESET,   /* by host or device, against a signal or wait of the same round */
    ZO_X_EVENT_GONE,
    ZO_X_STALE,         /* a wait passed on an older signal */
    ZO_X_KERNEL_GONE    /* kernel or module destroyed */
};

/* A call, or the execution of the command that it appended. */
typedef struct zo_point {
    uint64_t call;      /* number */
    uint32_t execution; /* of the command, from 1; 0: the host call itself */
} zo_point;

typedef struct zo_conflict {
    int kind;
    uint32_t a, b;    /* nodes: a is the one that is to come first (in flight when b came) */
    uint32_t object;  /* memory, event, list, ... */
    uint64_t lo, hi;  /* bytes, memory only */
    uint32_t through; /* memory that holds a pointer to it, index + 1; 0: none was seen */
    uint8_t coarse;   /* perhaps: the table can't tell the bytes (1), or what a kernel does there (2) */
    uint8_t possible; /* a thread had been told of a's end before b: ordered in this run, by what a trace cannot show */
    uint8_t forced;   /* b comes before a in every order: the program itself sees to it */
} zo_conflict;

/* Reads the trace from its present position to its end. */
int zo_graph_make(zo_graph **out, zt_trace *trace, const zo_graph_options *options, zt_error *error);
void zo_graph_free(zo_graph *graph);

size_t zo_graph_conflicts(const zo_graph *graph, const zo_conflict **conflicts);
/* A write of the host's (ZO_WRITE_BIT) goes by the call that it comes before. */
zo_point zo_graph_point(const zo_graph *graph, uint32_t node);
/* Whether x is over (a call has returned, a command has ended) before y begins in every order. */
bool zo_before(zo_graph *graph, uint32_t x, uint32_t y);
/* Node of a call's command (execution >= 1) or of the call itself (0). ZO_NONE: there is none. */
uint32_t zo_graph_node(const zo_graph *graph, zo_point point);
/* Numbers for reports. */
typedef struct zo_graph_numbers {
    uint64_t calls, commands, executions, never_ran, edges, carriers, threads, bytes, doubtful;
} zo_graph_numbers;
void zo_graph_count(const zo_graph *graph, zo_graph_numbers *numbers);
/* What was left out, for want of room or time: findings may be missing because of it. */
typedef struct zo_doubts {
    uint64_t accesses, uses, conflicts, findings, searches;
} zo_doubts;
void zo_graph_doubts(const zo_graph *graph, zo_doubts *doubts);

/* ------------------------------------------------------------------------------------------------------------- check */

enum zo_class { ZO_SPEC, ZO_HIDDEN, ZO_POSSIBLE, ZO_DRIVER, ZO_RACE };
enum zo_severity { ZO_NOTE, ZO_WARNING, ZO_ERROR };
#define ZO_FINDING_POINTS 6

/* Something that the specification, or this driver, does not allow. */
typedef struct zo_finding {
    char rule[4]; /* "A1", "B1q": see docs/check.md */
    uint8_t class, severity; /* enum zo_class, zo_severity */
    uint8_t n_points;
    bool forced;  /* the program itself fixes the bad order */
    zo_point points[ZO_FINDING_POINTS]; /* the one that came too early first, then what it came before */
    uint32_t more;                      /* further ones of the same kind */
    char object[48];                    /* "mem#2", "" */
    uint64_t lo, hi;                    /* bytes, if hi > lo */
    char what[384], missing[192], repair[256];
} zo_finding;

/* A failing call, and the finding it hangs on. */
typedef struct zo_consequence {
    uint64_t call;
    uint32_t of; /* index of the finding */
    const char *cause; /* what its result means, if that is not clear: a sentence, or "" */
} zo_consequence;

/*
 * Behind zo_check of a graph with the specification's edges alone: findings that are none with what the recorded driver is known to
 * order become ZO_HIDDEN, and warnings. Reads the trace again.
 */
int zo_check_hidden(zo_graph *graph, zt_error *error);
/* Makes findings of the conflicts and adds what single calls have wrong; once for a graph. Sorted by call. */
int zo_check(zo_graph *graph);
size_t zo_findings(const zo_graph *graph, const zo_finding **findings);
size_t zo_consequences(const zo_graph *graph, const zo_consequence **consequences);
const char *zo_class_name(int class);
const char *zo_severity_name(int severity);

/* ---------------------------------------------------------------------------------------------------------- schedules */

/* A node in a line: of zo_graph_node, or with this bit the host's writes that belong to a call. */
#define ZO_WRITE_BIT 0x40000000u

typedef struct zo_edge {
    uint32_t before, after;
} zo_edge;

enum zo_policy {
    ZO_P_EARLY,       /* commands as soon as they may run, oldest first */
    ZO_P_LATE,        /* host calls first; commands only when a call waits for them, newest first */
    ZO_P_CARRIER_FIRST, ZO_P_CARRIER_LAST, /* `value`: chain of the carrier */
    ZO_P_RANDOM,      /* `value`: seed */
    ZO_P_PCT,         /* `value`: seed * 8 + d; a random priority for each carrier and the host, and d - 1 places where one loses it
                         (Burckhardt et al., ASPLOS 2010) */
    ZO_P_LIKE         /* as close to `like` as it can be */
};
/*
 * A line of all host calls, in recorded order, and all commands that every edge of the graph and `extra` allows.
 * @return its length, and *line, to be freed by the caller; 0 if `extra` cannot be had: *stuck is a node that would wait for
 * itself. Memory out: 0 and *stuck ZO_NONE.
 */
size_t zo_schedule(zo_graph *graph, int policy, uint64_t value, const uint32_t *like, size_t n_like, const zo_edge *extra,
                   size_t n_extra, uint32_t **line, uint32_t *stuck);

/* The earliest line with one node, a host call or its writes, later than its place among the host's calls: as early as `extra` lets it. */
size_t zo_schedule_floating(zo_graph *graph, uint32_t floating, const zo_edge *extra, size_t n_extra, uint32_t **line, uint32_t *stuck);
/* The node of the host's writes that belong to a call and can come at another time; ZO_NONE. */
uint32_t zo_graph_write(const zo_graph *graph, uint64_t call);

/*
 * Which bytes that a call was recorded with the host had written, where a command may have: those that the commands of the earliest
 * order leave otherwise. One replay, on first use; sets `options->learned`, which is the graph's. @return false if there is nothing to
 * find out, or it can't be: then forced orders write all of them.
 */
bool zo_learn(zo_graph *graph, zr_plan *plan, zr_options *options);
/*
 * The same for memory that was read back, when it is not what the commands of the earliest order leave: then the host may have written
 * there while they were in flight. What differs becomes a write that has its place in lines, and a conflict. @return how many.
 */
size_t zo_learn_reads(zo_graph *graph, zr_plan *plan, const zr_options *options);
/*
 * Parts of what calls read back that the host may have written over since the commands were over that had written there, as far as it
 * could know: for zr_options.taken. free() it; NULL when memory is out.
 */
zr_item *zo_taken(const zo_graph *graph, size_t *n);
/* A line as items for zr_options; free() it. NULL when memory is out. */
zr_item *zo_graph_items(const zo_graph *graph, const uint32_t *line, size_t n, size_t *n_items);
/* The chain of the n-th queue or immediate list, from 1; ZO_NONE. */
uint32_t zo_graph_carrier(const zo_graph *graph, uint64_t n);
/* Nodes of the command that a call appended, in that execution, or of all commands that it submitted. @return how many. */
size_t zo_graph_commands(const zo_graph *graph, uint64_t call, uint32_t execution, uint32_t *out, size_t room);
/* Whether `first` can only come behind `second`; `why` then says so with the calls of the chain. */
bool zo_graph_needs(zo_graph *graph, uint32_t first, uint32_t second, char *why, size_t size);

/* ----------------------------------------------------------------------------------------------------------- isolate */

enum zo_verdict { ZO_V_ORDER, ZO_V_HOST_ORDER, ZO_V_NONE_FOUND, ZO_V_NOT_ORDER, ZO_V_UNFAITHFUL, ZO_V_UNSTABLE, ZO_V_BUDGET };
enum zo_recording { ZO_REC_AUTO, ZO_REC_GOOD, ZO_REC_BAD };

typedef struct zo_isolate_options {
    const zr_options *replay; /* driver, libraries, timeouts; its items are not looked at */
    int recording;            /* enum zo_recording */
    unsigned confirm;         /* trials of each claim, 0: 3 */
    unsigned budget;          /* trials in all, 0: 200 */
    unsigned jobs;            /* trials side by side, 0: 1 */
    unsigned timing;          /* 0, or in place of orders: this many trials in real time for each delay */
    uint64_t seed;
    void (*progress)(void *ctx, const char *what, unsigned replays, unsigned budget);
    /* NULL, or in place of the rules of docs/isolate.md: 0 the trial passes, 1 it fails, -1 it says nothing. */
    int (*judge)(void *ctx, const zr_report *report);
    /* NULL, or replays the line somewhere else. Its process has a graph of its own, and learns for itself. @return false: no report. */
    bool (*run)(void *ctx, const uint32_t *line, size_t n, zr_report *report);
    void *ctx;
} zo_isolate_options;

#define ZO_PAIRS_MAX 8

/* Two operations: early before late fails, late before early passes. */
#define ZO_PAIR                                                                                                                            \
    zo_point early, late;                                                                                                                  \
    bool early_is_write;                /* early: the host's writes that #early.call has seen */                                           \
    uint64_t early_submit, late_submit; /* calls that submitted them, 0 for host calls */                                                  \
    char object[48];                                                                                                                       \
    unsigned fails[2], passes[2], verified[2]; /* how many of how many; verified: with the repair */                                       \
    uint64_t shows_at;                  /* call in which it shows, 0: not by a call */                                                     \
    char shows_function[64], shows[320];                                                                                                   \
    uint64_t beyond;                    /* of the failing order: zr_report.early_call */                                                   \
    char inject[96], repair[320];                                                                                                          \
    unsigned found_after /* trials */
typedef struct zo_pair {
    ZO_PAIR;
} zo_pair;

/* What isolating came to. Plain data. */
typedef struct zo_answer {
    int verdict;
    bool by_delays;     /* zo_isolate_options.timing */
    bool taken_for_bad; /* the recording */
    char why_taken[128];
    union { /* order, host-order */
        struct {
            ZO_PAIR;
        };
        zo_pair pair;
    };
    zo_pair more[ZO_PAIRS_MAX - 1]; /* found with those before repaired */
    unsigned n_more;
    zo_point moved_behind;      /* host-order: behind what the early call passes, alone; call 0: nothing was found */
    unsigned replays, orders, carriers;
    zo_graph_numbers graph;
    unsigned host_device, device_device; /* pairs that nothing orders: of a host call and a command; of two commands */
    uint64_t seed;
    char hidden_by[64];         /* what of the recorded driver keeps it from showing, "" */
    char driver[512], text[512];
} zo_answer;

/* `plan` and `graph` are of one trace; zo_check(graph) has been called. Forks: call it before starting threads. */
int zo_isolate(zo_graph *graph, zr_plan *plan, const zt_ending *ending, const zo_isolate_options *options, zo_answer *answer);
const char *zo_verdict_name(int verdict);
/* a of n fail here, b of n there. @return how likely that or less likely is by chance (Fisher's exact test, two-sided). */
double zo_fisher(unsigned a, unsigned b, unsigned n);
/* Replays one line. @return 1 if it fails, 0 if it passes, -1 with a sentence in answer->text if it can't be replayed. */
int zo_order_fails(zo_graph *graph, zr_plan *plan, const zt_ending *ending, const zo_isolate_options *options, const uint32_t *nodes,
                   size_t n, zo_answer *answer);

/* The same with the report alone. @return false if that is no line of this graph. */
bool zo_run_line(zo_graph *graph, zr_plan *plan, const zt_ending *ending, const zo_isolate_options *options, const uint32_t *nodes, size_t n,
                 zr_report *report);

/* ----------------------------------------------------------------------------------------------------------- explore */

#define ZO_BLAMED_MAX 64

typedef struct zo_explore_options {
    bool (*run)(void *ctx, const uint32_t *line, size_t n); /* @return whether that order fails; NULL: counts only */
    void *ctx;
    uint64_t budget; /* orders, 0: no bound */
} zo_explore_options;

typedef struct zo_blamed {
    uint32_t early, late; /* nodes: early before late fails */
    uint64_t orders;      /* failing ones that have it so */
} zo_blamed;

typedef struct zo_explored {
    uint64_t pairs, orders, failing, pruned; /* pruned: beginnings that no order continues */
    uint64_t unexplained;                    /* failing, with no pair that fails when it alone is turned round */
    bool earliest_fails;                     /* so that no pair is to blame for any */
    bool stopped;                            /* by the budget */
    zo_blamed blamed[ZO_BLAMED_MAX];
    size_t n_blamed;
} zo_explored;

/* Runs every order that differs once, those with the fewest turns first. @return ZT_E_LIMIT if there are too many pairs or commands for that */
int zo_explore(zo_graph *graph, const zo_explore_options *options, zo_explored *explored);

#ifdef __cplusplus
}
#endif
#endif

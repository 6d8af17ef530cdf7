/* SPDX-License-Identifier: MIT */
/*
 * Makes the calls of a trace again on a driver, and compares what comes back with what was recorded.
 *
 *   zr_plan    the trace made ready: arguments rebuilt, handles and addresses resolved to objects, order fixed
 *   zr_replay  runs a plan in a child process, so that a crash or a hang of the driver is an answer and not the end
 *
 * A plan may be replayed any number of times, one after the other. Nothing here prints or exits; every function is to
 * be called by one thread at a time, and zr_replay forks: call it before starting threads of your own.
 */
#ifndef ZR_REPLAY_H
#define ZR_REPLAY_H

#include "format.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Verdicts; they are zetrace's exit codes too. */
enum zr_verdict { ZR_SAME = 0, ZR_DIFFERS = 1, ZR_DAMAGED = 3, ZR_CANNOT = 125 };

enum zr_verify { ZR_VERIFY_ALL, ZR_VERIFY_RESULTS, ZR_VERIFY_NONE };
enum zr_threads { ZR_THREADS_RECORDED, ZR_THREADS_ONE };
enum zr_serialize { ZR_SERIALIZE_NONE, ZR_SERIALIZE_SUBMIT, ZR_SERIALIZE_LIST, ZR_SERIALIZE_COMMAND };

/* A replay in an order that somebody else has worked out: host calls and commands one by one, on one thread. */
enum zr_item_kind {
    ZR_I_CALL,   /* the host call is made; what the program had written before it is written just before, unless ZR_I_WRITE says when */
    ZR_I_WRITE,  /* only what the program had written to host memory by that call, earlier or later than the call itself: of content
                    number `execution` of it, from 1, the bytes given; or of all its contents all bytes (0). The call itself then
                    writes nothing of them. A content that was read back is not compared */
    ZR_I_COMMAND /* the command that the call appended runs, in its n-th execution: its gate opens, and the replay waits, bounded,
                    until it has ended or faulted. Of a call that executes lists on an immediate list: 1 its waits, 2 its signal */
};
typedef struct zr_item {
    uint64_t call;
    uint32_t execution; /* from 1 */
    uint8_t kind;
    uint64_t from, size; /* ZR_I_WRITE; bytes beyond the content's end are left out */
    uint64_t learn;      /* ZR_I_WRITE; place + 1 in zr_options.learned of the first of its bytes; 0: all are written */
} zr_item;

/* What a replay does more than was recorded. */
enum zr_point_kind { ZR_P_SYNC, ZR_P_DELAY, ZR_P_GATE, ZR_P_HOLD };
typedef struct zr_point {
    uint64_t call, other; /* gate, hold: `call` (a command, in its `execution`) comes behind `other` */
    uint64_t ns;
    uint64_t of;          /* sync: for the carrier of what that call appended or submitted, 0 */
    uint32_t object;      /* sync: this one only, an index of the plan's */
    uint32_t execution;   /* gate, sync: of the command, from 1 */
    uint8_t kind;
    bool after, device;   /* sync: behind the call. delay: what the call gives the device */
} zr_point;
typedef struct zr_points {
    zr_point *list;
    size_t n, room;
} zr_points;

/* All zero is the default but for `timeout_ns`, `device` and `soft_library`: see zr_options_default. Strings are
 * borrowed. */
typedef struct zr_options {
    const char *driver;       /* "auto" or NULL, "soft", or a path */
    const char *soft_library; /* where libze_soft is */
    const char *schedule;     /* ZE_SOFT_SCHEDULE; NULL: as recorded */
    int device;               /* every recorded device becomes this one; -1: by position */
    enum zr_verify verify;
    enum zr_threads threads;
    enum zr_serialize serialize;
    uint64_t from, to;   /* verified from call #from on, ends behind call #to; 0: no bound */
    uint64_t timeout_ns; /* of one wait */
    uint64_t loop;       /* rounds, 0 = 1; ends with the first that differs */
    const zr_item *items; /* NULL: as recorded. Else exactly these; what was submitted and is not named runs at the end */
    size_t n_items;
    /* For items that have `learn`: bytes whose flag is set are written. `learn`: the flags are set, for bytes that differ from what
       commands have left there by then. Memory that is shared with child processes; NULL: all are written. */
    uint8_t *learned;
    uint64_t n_learned;
    bool learn;
    uint64_t gate_ns;     /* how long a command may take once it may run; 0: 2 s */
    const zt_pair *environment; /* set behind the recorded knobs */
    uint32_t n_environment;
    /* ZR_I_WRITE items, in the order of calls: parts of what calls read back that the host may have written over since. They may differ:
       then the recorded bytes are put there behind the call. With `items` they are not looked at. */
    const zr_item *taken;
    size_t n_taken;
    const zr_point *points; /* syncs and delays; gates and holds are the caller's to turn into items, and with items syncs, too */
    size_t n_points;
    unsigned tolerance_size; /* 4 or 8: memory that differs is the same if it is of such floating-point numbers, */
    double tolerance;        /* and each is within this part of its size; 0: to the bit */
    uint64_t watch;      /* call of which the report tells what it gave, 0 */
    const char *watch_function, *watch_name; /* patterns: calls with such a name and result are counted; NULL */
    bool dry_run;        /* chooses the driver, makes no call */
} zr_options;
void zr_options_default(zr_options *options);

enum zr_what { ZR_W_RESULT, ZR_W_MEMORY, ZR_W_OUTPUT, ZR_W_FAULT };

typedef struct zr_mismatch {
    uint64_t call; /* 0: at the final drain */
    char function[64];
    int what; /* enum zr_what */
    char recorded[256], replayed[256];
    char detail[256]; /* memory: object, offset, how many bytes; output: which one */
} zr_mismatch;

/* What a replay came to. Plain data. */
typedef struct zr_report {
    int verdict;       /* enum zr_verdict */
    uint64_t calls;    /* made */
    uint64_t not_made; /* never returned, nested, made by the loader, behind --to, objects that are missing */
    uint64_t mismatches, injected;
    uint64_t replaced;  /* modules that were not those of the recording */
    uint64_t mapped;    /* values that differ because driver or device is another one */
    uint64_t callbacks; /* host callbacks replaced by one that does nothing */
    uint64_t compared;  /* bytes of memory that the host read back */
    uint64_t taken;     /* of zr_options.taken: bytes that differed */
    uint64_t rounds;
    uint64_t ns;          /* time from first to last call */
    zr_mismatch first;    /* if mismatches > 0 */
    uint64_t stuck, first_stuck; /* items: commands that did not end; append call of the first */
    uint64_t late, first_late;   /* items: commands that had not ended before the next item's turn; so */
    uint64_t never_ran;          /* items: submitted, and in the end still not over */
    bool lost;                   /* items: a device was lost when all had run */
    bool watch_made;             /* zr_options.watch was made, */
    int64_t watch_result;        /* and gave this */
    uint64_t watched;            /* calls that zr_options.watch_function and watch_name match */
    uint64_t mismatches_of[4];   /* by enum zr_what */
    uint64_t error_call;         /* first call whose result is an error here, recorded or not; 0: none */
    char error_function[64], error_result[64];
    uint64_t early_call;  /* first call that gave NOT_READY when recorded and SUCCESS here, 0 if none: from there on the program might have gone another way */
    uint64_t failed_call; /* first recorded failure that came back, 0 if none */
    char failed_function[64], failed_result[64];
    uint64_t pending_call; /* first call that never returned in the recording, 0 if none */
    char pending_function[64];
    char pending_result[64]; /* what it gave when made last, if the program died in it; "" if it was not made */
    char driver[512];        /* path of the library used */
    char driver_why[160];    /* why this one */
    char message[768];       /* why it can't be replayed or can't go on, "" if there is nothing to say */
} zr_report;

typedef struct zr_plan zr_plan;

/*
 * Reads the trace from its present position to its end. The plan keeps no pointer into `trace` but for the API table
 * of functions this build does not know: close the plan first. Memory grows with the trace: 400 to 700 bytes a call,
 * and its contents.
 */
int zr_plan_make(zr_plan **out, zt_trace *trace, zt_error *error);
void zr_plan_free(zr_plan *plan);
uint64_t zr_plan_calls(const zr_plan *plan);
uint32_t zr_plan_threads(const zr_plan *plan);
/* How many calls there are from number `from` to number `to`; 0 is no bound. */
uint64_t zr_plan_calls_between(const zr_plan *plan, uint64_t from, uint64_t to);
/* Number of the last call, 0 if there is none. */
uint64_t zr_plan_last(const zr_plan *plan);

/*
 * Adds what --inject's argument says. @return false with one sentence in `error` if it is none, or matches nothing.
 * Free the points with zr_points_free.
 */
bool zr_inject_parse(const zr_plan *plan, const char *text, zr_points *points, char *error, size_t size);
void zr_points_free(zr_points *points);
/*
 * Gives the call that makes module `module` of the trace (module 0: call `call`) other bytes as its `input`-th binary, from 1. They are
 * copied. @return false with a sentence in `error`.
 */
typedef struct zr_replacement {
    uint64_t module, call;
    unsigned input;
    const void *bytes;
    uint64_t size;
    uint64_t of, recorded_size; /* out: the call, and how many bytes it had */
} zr_replacement;
bool zr_plan_replace(zr_plan *plan, zr_replacement *replacement, char *error, size_t size);

/* "queue#1": the object that a sync is for. @return false if it is for all. */
bool zr_point_object(const zr_plan *plan, const zr_point *point, char *name, size_t size);

/* Fills the report in every case; also returns its verdict. */
int zr_replay(zr_plan *plan, const zr_options *options, zr_report *report);

const char *zr_what_name(int what); /* "result", "memory", "output", "fault" */

#ifdef __cplusplus
}
#endif
#endif

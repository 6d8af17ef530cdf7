/* SPDX-License-Identifier: MIT */
/*
 * A random program before it runs: what the host does, in order, and which commands that starts. The plan knows every
 * edge of the happens-before model, so it can tell which pair one missing edge leaves without an order.
 *
 * Nodes: one for each host operation, two (start, end) for each run of a command. They keep their numbers when
 * operations move.
 */
#ifndef ORDER_PROGRAM_H
#define ORDER_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    MAX_NODES = 12288,
    WORDS = MAX_NODES / 64,
    MAX_OPS = 6144,
    MAX_RUNS = 3072,
    MAX_LANES = 8,
    MAX_BUFFERS = 64,
    MAX_EVENTS = 1024,
    MAX_LISTS = 1024,
    MAX_WAITS = 4,
    MAX_ACCESSES = 2 * MAX_RUNS + 1024,
    MAX_DEMANDS = 4 * MAX_RUNS,
    MAX_PAIRS = 32,
    BUFFER_SIZE = 4096
};

typedef enum class_id {
    MISSING_WAIT,
    WRONG_EVENT,
    NO_RESET,
    EARLY_RESET,
    HOST_WRITE,
    FREE_IN_USE,
    EVICT_IN_USE,
    LIST_REUSED,
    NO_BARRIER,
    COPY_COMPUTE,
    TWO_CONTEXTS,
    TWO_QUEUES,
    CLASSES
} class_id;

typedef enum op_kind {
    OP_APPEND,
    OP_CLOSE,
    OP_EXECUTE,
    OP_SYNC_QUEUE,
    OP_SYNC_FENCE,
    OP_SYNC_EVENT,
    OP_POLL,
    OP_SIGNAL,
    OP_RESET_EVENT,
    OP_RESET_LIST,
    OP_WRITE,
    OP_EVICT,
    OP_RESIDENT,
    OP_FREE,
    OP_IDLE_EVICT
} op_kind;

typedef enum command_kind { C_FILL, C_COPY, C_BARRIER, C_WAIT, C_SIGNAL } command_kind;

/* What the host does. Numbers are indices into the program's arrays; -1 is none. */
typedef struct host_op {
    op_kind kind;
    int node, lane, list, event, generation, buffer;
    bool with_fence, again; /* of an execute: carries the lane's fence; the list ran before */
    /* a command to append, and bytes to write */
    command_kind command;
    int dst, src, dst_at, src_at, size;
    uint64_t pattern;
    int waits[MAX_WAITS], n_waits, signal;
} host_op;

/* One run of a command. */
typedef struct instance {
    int append, submit, lane, list, execution, start, end;
    int sources[MAX_WAITS]; /* the node that signals each wait */
    int generations[MAX_WAITS];
} instance;

typedef struct plan_access {
    int buffer, from, to, start, end, run, op; /* run or op is -1 */
    bool write;
} plan_access;

/* A run must have ended before a host operation: an event's reset, a list's reset or next execution. */
typedef struct plan_demand {
    int run, op;
} plan_demand;

typedef struct plan_lane {
    bool immediate, in_order;
    int ordinal, index, context, open, fence_execute, counter_event; /* open: the list being recorded */
    uint64_t all[WORDS], start[WORDS],
        list_order[WORDS]; /* what ended, at the least, before a barrier; a start; the next */
} plan_lane;

typedef struct plan_event {
    int context, generation, source, counter_lane, users[64], n_users; /* source: the node that signals it */
    bool pinned;
    bool held; /* by a command that is being made and waits for it */
} plan_event;

typedef struct plan_list {
    int lane, ops[64], n_ops, first_run, executions;
    bool closed, pinned, plain; /* plain: no events */
} plan_list;

typedef enum memory_kind { M_DEVICE, M_HOST, M_MALLOC } memory_kind;

typedef struct plan_buffer {
    memory_kind kind;
    int context; /* -1: any */
    bool freed, bait;
    uint64_t seed;
} plan_buffer;

typedef struct program {
    uint64_t random;
    class_id class;
    bool intact;
    int n_ops, n_runs, n_lanes, n_events, n_lists, n_buffers, n_accesses, n_demands, n_nodes, n_commands, ready[2],
        contexts;
    host_op ops[MAX_OPS];
    instance runs[MAX_RUNS];
    plan_lane lanes[MAX_LANES];
    plan_event events[MAX_EVENTS];
    plan_list lists[MAX_LISTS];
    plan_buffer buffers[MAX_BUFFERS]; /* the last is where contents are read back to: it holds all others */
    plan_access accesses[MAX_ACCESSES];
    plan_demand demands[MAX_DEMANDS];
} program;

/* The edge left out: at most one of these. */
typedef struct removal {
    int drop_op, drop_slot, wrong_slot, move_op, move_to, stale_event,
        stale_generation; /* -1: none. Slots are drop_op's waits */
} removal;

typedef struct pair {
    int first_run, second_run, second_op; /* one of the second two is -1 */
    int first_op;                         /* if first_run is -1 */
    int buffer;                           /* -1: an event or a list */
} pair;

typedef struct verdict {
    removal out;
    pair pair, others[MAX_PAIRS];
    int n_pairs;
    bool eager_good;
} verdict_of_removal;

extern const char *const class_names[CLASSES];

uint64_t roll(program *p, uint64_t n);
void plan(program *p, int lanes, int commands);

enum { READ_BACK = MAX_BUFFERS - 1 };

/* Where the operations stand with the removal: order[0..n). @return n. */
int order_of(const program *p, const removal *r, int *order);
/* @return how many pairs the removal leaves without an order; the first MAX_PAIRS are kept. -1: the program could not
 * end. */
int unordered(const program *p, const removal *r, pair *pairs);
/* Chooses what to leave out. @return false if the program has no such edge. */
bool choose_removal(program *p, verdict_of_removal *v);
/* An order for ZE_SOFT_SCHEDULE=script in which the second of the pair comes first. */
void write_script(const program *p, const verdict_of_removal *v, FILE *to);
/* What the program prints if all goes well. */
uint64_t contents(const program *p);
void pattern_bytes(uint64_t seed, unsigned char *to, size_t size);
uint64_t hash_bytes(const unsigned char *bytes, size_t size);
size_t buffer_size(int buffer);

extern const removal nothing;

static inline bool has(const uint64_t *set, int bit)
{
    return set[bit / 64] >> (bit % 64) & 1;
}

static inline void put(uint64_t *set, int bit)
{
    set[bit / 64] |= (uint64_t)1 << (bit % 64);
}

#endif

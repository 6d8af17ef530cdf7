/* SPDX-License-Identifier: MIT */
/*
 * Happens-before over host calls and device commands, from the inside.
 *
 * A chain is a line of nodes: the calls of one thread in program order, or the commands of one carrier (a queue or an
 * immediate list) in the order in which they start. A clock says how far each chain is known to be over: the calls of a
 * thread up to at[chain] have returned, the commands of a carrier up to at[chain] have ended. Knowledge that is no prefix
 * (one command in the midst has ended) is kept as explicit edges, and looked up by a search.
 *
 * Commands are run in the earliest order that the specification allows, while the calls are read: that fixes which signal
 * a wait observes.
 */
#ifndef ZO_GRAPH_H
#define ZO_GRAPH_H

#include "driver_edges.h"
#include "facts.h"
#include "order.h"

#define ZO_CALL_BIT 0x80000000u /* a node is the index of an instance, or that of a call with this bit */
#define ZO_PAGEABLE (UINT32_MAX - 1) /* the memory object of everything that is no allocation */

typedef struct zo_clock {
    uint32_t n;
    uint32_t at[];
} zo_clock;

/* Commands lo..hi of a carrier have ended; or, for a thread's chain, its call number `hi` has returned. */
typedef struct zo_range {
    uint32_t chain, lo, hi;
} zo_range;

typedef struct zo_chain {
    bool device;
    uint32_t object;     /* carrier */
    uint32_t *nodes;     /* by position - 1: instance or call */
    size_t n, room;
    size_t started;      /* carrier: that many commands have started in the simulation */
    size_t last_sync;    /* thread: index of its latest call with edges + 1, 0: none */
    const zo_clock *clock; /* thread: what it knows */
    uint32_t loose;        /* thread: see zo_instance */
} zo_chain;

typedef struct zo_access {
    uint64_t lo, hi; /* from the allocation's start; absolute in pageable memory */
    uint32_t mem;    /* index of the object */
    uint8_t write, coarse; /* coarse: somewhere in there, perhaps */
    uint8_t given;         /* to a kernel: referenced for certain, read or written perhaps; see kernels.h */
} zo_access;

enum zo_command_flags {
    ZO_BARRIER = 1,    /* has the barrier's meaning if it has no waits */
    ZO_HOLDS_BACK = 2, /* what comes behind it starts when it has ended */
    ZO_WAIT_ONLY = 4
};
typedef struct zo_command {
    uint32_t call, list;
    uint32_t signal;  /* object, ZO_NONE */
    uint32_t reset;   /* event that it resets */
    uint32_t waits, n_waits;       /* into graph->waits */
    uint32_t accesses, n_accesses; /* into graph->accesses */
    uint32_t executions;
    uint32_t first, last; /* instances */
    uint8_t flags;
} zo_command;

typedef struct zo_instance {
    uint32_t command, submit; /* submit: index of the call */
    uint32_t chain, position; /* from 1 */
    uint32_t execution;
    uint32_t again; /* next instance of the command, ZO_NONE */
    uint32_t preds, n_preds; /* into graph->ranges */
    uint32_t order;          /* tick of its run in the simulation; 0: it never ran */
    uint32_t captured;       /* counter-based waits: into graph->captured, one an element of waits */
    const zo_clock *clock;   /* what is over when it starts */
    uint32_t loose;    /* nothing of a greater order is known to be over but by the clock: where a search need not begin */
    uint32_t landmark; /* position of the nearest one before it from which a search finds more than from here, 0: none */
} zo_instance;

enum zo_call_flags { ZO_RETURNED = 1, ZO_FAILED = 2, ZO_IGNORED = 4, ZO_WAITS_FOR_USERS = 8 };
typedef struct zo_call {
    uint64_t number, enter_ns, leave_ns;
    const zt_func *func;
    int64_t result;
    uint64_t timeout;
    uint32_t chain, position;
    uint32_t object;   /* of its first handle that is no context or device; an allocation for evict and free; ZO_NONE */
    uint64_t lo, hi;   /* evict: range in it */
    uint32_t command;  /* append */
    uint32_t first, n; /* instances it submitted */
    uint32_t preds, n_preds; /* what its success ordered before its return */
    uint32_t previous_sync;  /* of its thread, index + 1 */
    uint32_t order, end_order;
    uint32_t writes;             /* into graph->writes, + 1: what the call does not simply write itself; one is behind another */
    uint32_t unread, n_unread;   /* into graph->unread: contents read back that are not to be compared */
    /* At ENTER. Its own thread's part is behind the times unless the call submits: positions tell. observed: what any thread had been
       told. */
    const zo_clock *clock, *observed;
    uint32_t loose; /* see zo_instance */
    uint8_t flags;
    bool moves; /* some of the writes can come at another time than the call: a node of their own in a line */
} zo_call;

/* Bytes that the host wrote before a call; a command may have written the rest of that content. */
typedef struct zo_write {
    uint32_t content; /* of the call, from 1 */
    bool moves;       /* perhaps while a command that reads them was in flight */
    uint64_t from, size; /* in the content; size 0: none of it is the host's, or that can't be told */
    uint64_t learn;      /* place + 1 of its bytes in what zo_learn finds out; 0: they are the host's */
    uint32_t next;       /* of the same call, + 1 */
} zo_write;

/* Memory read back that `writer` had just written, as far as is known. */
typedef struct zo_read {
    uint32_t call, content, writer;
    zo_access access;
    uint64_t learn; /* as in zo_write */
} zo_read;

typedef struct zo_use { /* a node that signals, waits for, or carries an object */
    uint32_t node;
    uint8_t how; /* enum zo_how */
} zo_use;
enum zo_how { ZO_SIGNALS, ZO_WAITS, ZO_RESETS };

typedef struct zo_history {
    zo_access access;
    uint32_t node;
} zo_history;

typedef struct zo_object {
    const zt_object *base;
    uint32_t chain;   /* carrier's chain, ZO_NONE */
    uint32_t parent;  /* pool, queue */
    uint32_t children; /* alive that were made from it */
    bool gone;
    bool in_order, synchronous, immediate, counter_based, closed, is_fence, is_event, is_queue, is_list, is_memory, is_kernel, is_module;
    /* event */
    bool signalled;
    uint32_t signaller;          /* node that set it, ZO_NONE */
    uint32_t attempt;            /* newest node that signalled it although it was set */
    uint32_t pending;            /* submitted signals that have not run */
    uint32_t assigned;           /* counter-based: newest signal */
    uint32_t last_reset;         /* node */
    zo_use *uses; size_t n_uses, room_uses; /* of this generation */
    /* list: its commands; list, fence: submits as ranges; memory: accesses */
    uint32_t *commands; size_t n_commands, room_commands;
    zo_range *submits; size_t n_submits, room_submits;
    zo_history *history; size_t n_history, room_history;
    struct zo_kernel *kernel; /* kernels.c: what it was set to, NULL: nothing */
    zo_facts facts;
} zo_object;

struct zo_graph {
    zt_trace *trace;
    zt_objects *names;
    zo_object *objects; size_t n_objects, room_objects;
    zo_object pageable;
    zo_call *calls; size_t n_calls, room_calls;
    zo_command *commands; size_t n_commands, room_commands;
    zo_instance *instances; size_t n_instances, room_instances;
    zo_chain *chains; size_t n_chains, room_chains;
    zo_access *accesses; size_t n_accesses, room_accesses;
    zo_write *writes; size_t n_writes, room_writes;
    bool in_time;      /* in replays of the earliest order every command ends in its turn; known once isolate has tried */
    uint32_t patient;  /* call that comes only when no command can run before it, ZO_NONE */
    uint32_t floating; /* node that zo_schedule may put later than its place, ZO_NONE */
    zo_write *unread; size_t n_unread, room_unread;
    struct zo_read *reads; size_t n_reads, room_reads;
    bool learn_reads; /* items are to find out about those too */
    uint64_t n_learn; /* bytes that the host or a command may have written */
    uint8_t *learned; /* shared with replays: 1 for those that the host has written; NULL */
    struct zo_sightings *sightings; /* host_writes.c */
    uint32_t *waits; size_t n_waits, room_waits;
    uint32_t *captured; size_t n_captured, room_captured;
    zo_range *ranges; size_t n_ranges, room_ranges;
    zo_conflict *conflicts; size_t n_conflicts, room_conflicts;
    struct zo_block *blocks; /* clocks */
    size_t clock_bytes;
    const zo_clock *observed;
    uint32_t tick;
    uint32_t *marks, stamp; /* of the search: instances, then calls */
    size_t n_marks;
    uint32_t *stack; size_t room_stack;
    struct zo_memo *memo; /* what searches came to */
    uint64_t budget, steps; /* of one search; of all by now */
    uint64_t doubtful; /* searches that gave up */
    bool out_of_memory;
    zo_finding *findings; size_t n_findings, room_findings;
    zo_consequence *consequences; size_t n_consequences, room_consequences;
    zo_graph_options options;
    unsigned habits, known_habits; /* enum zo_habit: of the recorded driver; habits: those that count here */
    uint32_t device; /* its number, 0: not seen */
    zo_memory_of_rules rules;
    zo_doubts doubts; /* but for the searches: `doubtful` */
    uint64_t memory_lo, memory_hi; /* all allocations by now lie in between */
    uint32_t memory_epoch;         /* changes with each allocation and free */
    uint32_t *open; size_t n_open, room_open; /* calls that have not returned */
    uint32_t *unmet; size_t n_unmet, room_unmet; /* waits that gave up */
};

/* The bound of the options, if there is one. */
static inline size_t zo_limit(const zo_graph *g, size_t usual)
{
    return g->options.limit != 0 && g->options.limit < usual ? g->options.limit : usual;
}
/* Grows an array by one; false and g->out_of_memory when memory is out. */
bool zo_grow(zo_graph *g, void *array, size_t n, size_t *room, size_t element);
#define ZO_PUSH(g, array, n, room, value) \
    (zo_grow(g, &(array), n, &(room), sizeof(*(array))) ? ((array)[(n)++] = (value), true) : false)

const zo_clock *zo_clock_join(zo_graph *g, const zo_clock *a, const zo_clock *b);
const zo_clock *zo_clock_set(zo_graph *g, const zo_clock *a, uint32_t chain, uint32_t value);
static inline uint32_t zo_clock_at(const zo_clock *c, uint32_t chain)
{
    return c != NULL && chain < c->n ? c->at[chain] : 0;
}
void zo_clocks_free(zo_graph *g);

zo_object *zo_object_at(zo_graph *g, uint32_t index); /* ZO_PAGEABLE too; NULL for ZO_NONE */
uint32_t zo_object_index(zo_graph *g, const zt_object *object);

/* simulate.c */
void zo_submit(zo_graph *g, uint32_t call, uint32_t carrier, uint32_t command);
void zo_host_signal(zo_graph *g, uint32_t call, uint32_t event);
void zo_host_reset(zo_graph *g, uint32_t call, uint32_t event);
void zo_run(zo_graph *g);
void zo_sync_done(zo_graph *g, uint32_t call); /* at LEAVE of a wait or query that succeeded, or of a synchronous submit */
void zo_users_done(zo_graph *g, uint32_t call); /* of the memory that it frees */
void zo_told(zo_graph *g, uint32_t call, const zo_range *ranges, size_t n);

/* conflicts.c: hooks */
void zo_saw_start(zo_graph *g, uint32_t instance);
void zo_saw_memory_gone(zo_graph *g, uint32_t call, int kind);
/* Whether the command had ended when the call returned, which has been looked at. */
bool zo_ended_by_return(zo_graph *g, uint32_t x, uint32_t call);
void zo_conflict_add(zo_graph *g, zo_conflict c);
typedef bool (*zo_seen_fn)(void *ctx, zo_graph *g, uint32_t instance, const zo_access *access);
/* Executions submitted by now that have an access there, until one says stop; those that have run in the simulation first. */
bool zo_each_user(zo_graph *g, const zo_access *what, zo_seen_fn seen, void *ctx);
void zo_saw_object_gone(zo_graph *g, uint32_t call, uint32_t object, int kind);
void zo_saw_event_use(zo_graph *g, uint32_t event, uint32_t node, int how);
void zo_saw_stale(zo_graph *g, uint32_t event, uint32_t waiter, uint32_t signaller);
void zo_finish_conflicts(zo_graph *g);

#endif

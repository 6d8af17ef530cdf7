/* SPDX-License-Identifier: MIT */
/*
 * What a trace is: walking a call's arguments, writing and reading trace files, naming objects.
 *
 * Three layers, each usable alone:
 *   zt_walk     visits everything a call's arguments point to (library zt_api: no dependency, used inside the application)
 *   zt_writer   turns calls into a .zetrace file   } library zt_trace: zstd, protobuf-c, xxhash
 *   zt_trace    reads one, whole or damaged        }
 *
 * Errors: functions return an enum zt_status; those that take a `zt_error *` put one sentence there that says what was
 * wanted, what was found and what to do. Nothing here prints, exits or installs handlers. An object belongs to one
 * thread at a time; different objects may be used by different threads.
 */
#ifndef ZT_FORMAT_H
#define ZT_FORMAT_H

#include "api.h"

#ifdef __cplusplus
extern "C" {
#endif

enum zt_status {
    ZT_OK = 0,
    ZT_END = 1,        /* no more */
    ZT_E_IO = 10,      /* the system refused: errno in the message */
    ZT_E_EXISTS = 11,
    ZT_E_FOREIGN = 20, /* not a trace */
    ZT_E_NEWER = 21,   /* needs a newer reader */
    ZT_E_DAMAGED = 22,
    ZT_E_LIMIT = 23,   /* a size or count beyond what the format allows */
    ZT_E_MEMORY = 30,
    ZT_E_USAGE = 40
};

typedef struct zt_error {
    int status;
    char text[512];
} zt_error;

/* ------------------------------------------------------------------------------------------------ walking arguments */

/*
 * Memory as it was when the arguments were read. In the application it is the memory itself, in a trace the pieces kept
 * of it. `at` returns `len` readable bytes of address `addr`, or NULL; `string` the NUL-terminated string there and its
 * length without the NUL, or NULL.
 */
typedef struct zt_memory {
    const void *(*at)(void *ctx, uint64_t addr, uint64_t len);
    const char *(*string)(void *ctx, uint64_t addr, uint64_t *len);
    void *ctx;
} zt_memory;

extern const zt_memory zt_live_memory; /* the process's own memory */

enum zt_phase { ZT_ENTER, ZT_LEAVE };

enum zt_node_kind {
    ZT_N_VALUE,        /* scalar, enum, flags, handle, address or opaque pointer at `data`, `size` bytes */
    ZT_N_TEXT,         /* characters at `data`, `size` bytes (strings without their NUL, inline char arrays up to it) */
    ZT_N_BYTES,        /* a blob at `data`, `size` bytes */
    ZT_N_POINTER,      /* a pointer at `data` that is followed: its nodes come next, up to ZT_N_POINTER_END */
    ZT_N_POINTER_END,
    ZT_N_NULL,         /* a pointer at `data` that is NULL */
    ZT_N_LOST,         /* a pointer at `data` whose target is not available or whose size is not known */
    ZT_N_ARRAY,        /* `count` elements come next, up to ZT_N_ARRAY_END */
    ZT_N_ARRAY_END,
    ZT_N_STRUCT,       /* members of `type` come next, up to ZT_N_STRUCT_END */
    ZT_N_STRUCT_END,
    ZT_N_CHAIN,        /* the structs of a pNext chain come next, up to ZT_N_CHAIN_END */
    ZT_N_CHAIN_END,
    ZT_N_UNKNOWN,      /* a struct on a chain whose stype the table does not know: only its 16-byte head is available */
    ZT_N_TARGET        /* the memory a followed pointer designates, before its nodes: `addr`, `size`, `data` */
};

typedef struct zt_node {
    uint8_t kind;           /* enum zt_node_kind */
    uint8_t depth;
    uint8_t followed;       /* dir bits under which the pointer that led here is followed */
    const zt_func *func;
    const zt_field *field;  /* parameter or member that is being visited; NULL for structs on a chain */
    const zt_type *type;    /* type of the value, element or struct */
    uint64_t index;         /* element of the innermost array */
    uint64_t count;         /* ZT_N_ARRAY: elements */
    uint64_t addr;          /* where the program had `data`; 0 for parameters themselves */
    const void *data;
    uint64_t size;
} zt_node;

typedef struct zt_walk {
    const zt_func *func;
    const uint64_t *words;     /* func->n_words */
    int phase;                 /* ZT_ENTER: follows what the call reads, and heads of structs it fills. ZT_LEAVE: what it wrote */
    int64_t result;            /* ZT_LEAVE: outputs are followed as far as the result lets them be valid */
    const zt_memory *memory;
    bool targets_only;         /* visit ZT_N_TARGET only: the memory to keep, each stretch once */
    const zt_memory *before;   /* ZT_LEAVE: memory as of ENTER (capacities: min(before, after) elements are valid); may be NULL */
    /* @return 0 to go on, 1 to skip what is inside this node, <0 to stop the walk with that value. */
    int (*visit)(void *ctx, const zt_node *node);
    void *ctx;
} zt_walk;

/*
 * Visits the parameters in order, depth first. Bounded against hostile input: depth 16, chain 64, 1 << 20 nodes.
 * @return 0, the visitor's negative value, or -ZT_E_LIMIT. Allocates nothing; reentrant; async-signal-safe if `visit` is.
 */
int zt_walk_call(const zt_walk *walk);
/* One parameter only. */
int zt_walk_param(const zt_walk *walk, unsigned param);
/* @return the value of `expr` for parameter fields of a call; -1 if it cannot be known. */
int64_t zt_eval_param(const zt_walk *walk, const zt_expr *expr);

/* Whether two runs of one program need not have that output in common: times, process ids, what the system owns, by their names. */
bool zt_varies(const zt_node *node);

/* ------------------------------------------------------------------------------------------------------ calls */

typedef struct zt_hash {
    uint64_t lo, hi; /* XXH3, 128 bits */
} zt_hash;

/* A stretch of the program's memory that a call's arguments refer to. */
typedef struct zt_piece {
    uint64_t addr;
    uint64_t len;
    const void *data; /* NULL: bytes are in the blob `hash` (zt_trace_blob), or were not kept if `lost` */
    zt_hash hash;
    uint8_t lost;
} zt_piece;

/* Contents of memory the device reads, or that the host reads back. */
enum zt_content_kind {
    ZT_C_OPERAND = 1,  /* pageable host memory that a submitted command reads or writes */
    ZT_C_USM = 2,      /* host or shared USM */
    ZT_C_READBACK = 3  /* memory that a command wrote and this call's success made visible to the host */
};
typedef struct zt_content {
    uint8_t kind;      /* enum zt_content_kind */
    uint8_t changed;   /* read before while in flight, and different now: evidence of a race */
    uint64_t addr;
    uint64_t len;
    zt_hash hash;      /* of the len bytes */
    const void *data;  /* as in zt_piece: NULL means blob, or only the hash was kept if `hash_only` */
    uint8_t hash_only;
} zt_content;

/* One call. Valid until the next call on the trace that gave it. Times are ns since the session's start. */
typedef struct zt_call {
    uint64_t number;       /* place in the global order of ENTERs, from 1 */
    const zt_func *func;   /* of this build's table, or of the trace's own table for functions it does not know */
    uint32_t thread;       /* 1, 2, ... in order of first call */
    uint8_t returned;      /* false: never returned */
    uint8_t internal;      /* made by the loader, not by the program */
    uint8_t nested;        /* made while another call of the thread was open */
    uint64_t enter_ns, leave_ns;
    uint32_t added_ns;     /* time that reading contents added inside this call before the driver was entered */
    int64_t result;        /* raw return value, sign of ze_result_t kept as unsigned 32 bits */
    const uint64_t *words; /* func->n_words */
    const zt_piece *in, *out;
    uint32_t n_in, n_out;
    const zt_content *contents;        /* as of ENTER; read-backs as of LEAVE */
    uint32_t n_contents;
    const uint64_t *backtrace;         /* frame addresses, innermost first */
    uint32_t n_backtrace;
} zt_call;

/* Memory made of a call's pieces, for zt_walk. `call` must outlive it. What it gives of blobs stays until another call's are read. */
typedef struct zt_call_memory {
    const zt_call *call;
    int phase;
    struct zt_trace *trace;     /* for blobs; may be NULL */
    uint32_t last_in, last_out; /* where it was last found; begins with 0 */
} zt_call_memory;
zt_memory zt_memory_of(zt_call_memory *memory);

/* A parameter's value as it was passed. */
uint64_t zt_word(const zt_call *call, const zt_field *param);
/* The i-th word of an array that a zt_memory gave: such bytes lie anywhere, aligned or not. */
uint64_t zt_element(const void *array, uint64_t i);
/* What the call left behind a pointer to a handle or address. @return false, with 0: nothing is known of it */
bool zt_word_left(const zt_call *call, const zt_field *param, struct zt_trace *trace, uint64_t *value);

/* ------------------------------------------------------------------------------------------------------ session */

typedef struct zt_pair {
    char *name, *value;
} zt_pair;
typedef struct zt_library {
    char *path, *build_id; /* build_id in hex, may be empty */
    uint64_t base, size;   /* size 0: not known */
} zt_library;

/* Who, when, where. All strings owned by the session. Unset strings are "". */
typedef struct zt_session {
    uint8_t uuid[16], parent_uuid[16];
    char *program, *hostname, *rank, *version;      /* version of the recorder */
    char **argv;
    uint32_t argc;
    int64_t pid, parent_pid;
    uint64_t start_wall_ns;                         /* CLOCK_REALTIME of time 0 */
    uint64_t start_monotonic_ns;
    char *order;                                    /* "tsc" or "counter": what ordered the calls */
    char *attach, *memory;                          /* "layer", "inputs" */
    zt_pair *settings;  uint32_t n_settings;        /* recorder settings, driver choice and knobs */
    zt_pair *environment; uint32_t n_environment;   /* allow-listed variables only */
    zt_library *libraries; uint32_t n_libraries;    /* loader, drivers, program, as mapped */
} zt_session;

/* What is known when it is over. */
typedef struct zt_ending {
    uint8_t complete;          /* the recorder saw the process end and wrote everything */
    uint8_t exited, signalled; /* `status` is an exit status or a signal number */
    int32_t status;
    uint64_t calls, dropped, dropped_bytes, never_returned, threads, added_ns;
    uint64_t unknown_slots;    /* entries of function tables that the layer does not know, passed through */
    uint64_t unknown_pnext, unwrapped_extensions;
} zt_ending;

void zt_session_free(zt_session *session); /* frees members, not the struct */

/* ------------------------------------------------------------------------------------------------------ writing */

typedef struct zt_writer zt_writer;
typedef struct zt_writer_options {
    int level;            /* zstd, 1..19; 0 = 3 */
    bool overwrite;
    bool aside;           /* unfinished it has no name, or one that nobody has, and nothing is left of it; else PATH.partial, which stays */
    uint32_t max_calls;   /* per chunk; 0 = 8192 */
    uint64_t first_call;  /* number of the first call, 0 = 1 */
} zt_writer_options;

/* Whether a new file may take the place of what PATH names: of nothing, or of a regular file. A device or a pipe would be gone. */
bool zt_may_replace(const char *path);
/* Creates a file with mode 0600; PATH itself appears at zt_writer_close. @return ZT_OK and *out, or an error. */
int zt_writer_open(zt_writer **out, const char *path, const zt_session *session, const zt_writer_options *options,
                   zt_error *error);
/*
 * Adds a call; calls come in the order of their numbers. A call that has not returned yet is given with returned = 0 and
 * completed later by zt_writer_leave. Data is copied. Pieces and contents above 64 KiB, and module binaries, become blobs.
 */
int zt_writer_call(zt_writer *writer, const zt_call *call);
int zt_writer_leave(zt_writer *writer, uint64_t number, const zt_call *leave);
/* Stores bytes once, by hash. Big ones may come in parts. */
int zt_writer_blob(zt_writer *writer, const void *data, uint64_t len, zt_hash *hash);
int zt_writer_lost(zt_writer *writer, uint32_t thread, uint64_t time_ns, uint64_t calls, uint64_t bytes);
/* Says where frame addresses of backtraces lie. `addresses` ascend; `names` as zt_trace_frame gives them. */
int zt_writer_frames(zt_writer *writer, const uint64_t *addresses, const char *const *names, size_t n);
/* Ends the current chunk and hands it to the system: what came before survives the recorder's death. */
int zt_writer_flush(zt_writer *writer);
uint64_t zt_writer_bytes(const zt_writer *writer);
/* Writes index and ending, renames, frees the writer in every case. */
int zt_writer_close(zt_writer *writer, const zt_ending *ending, zt_error *error);
/* Frees the writer and removes what it has written. */
void zt_writer_abandon(zt_writer *writer);

/* ------------------------------------------------------------------------------------------------------ reading */

typedef struct zt_trace zt_trace;

/* What is wrong with a trace, in the reader's eyes; a trace with problems is read as far as it goes. */
typedef struct zt_health {
    bool complete;           /* has its index and ending, and no chunk is missing in between */
    uint64_t chunks, damaged_chunks;
    uint64_t calls;          /* readable */
    uint64_t calls_lost;     /* known to be missing: gaps in call numbers */
    char first_problem[512]; /* a sentence with offset and calls lost, or "" */
} zt_health;

/* Opens PATH ("-": stdin). Works without an index. Memory use does not grow with the trace's length. */
int zt_trace_open(zt_trace **out, const char *path, zt_error *error);
void zt_trace_close(zt_trace *trace);
const zt_session *zt_trace_session(const zt_trace *trace);
const zt_ending *zt_trace_ending(const zt_trace *trace);
const zt_health *zt_trace_health(const zt_trace *trace);
uint64_t zt_trace_bytes(const zt_trace *trace);
/* @return the trace's uuid-stable id, its own API table's function count, and names beyond this build's table. */
unsigned zt_trace_unknown_functions(const zt_trace *trace);

/* Next call in the order of numbers, its LEAVE included wherever the file has it. @return ZT_OK, ZT_END or an error. */
int zt_trace_next(zt_trace *trace, const zt_call **call);
/* Positions so that the next call is the first with a number >= `number`. */
int zt_trace_seek(zt_trace *trace, uint64_t number);
/* Bytes of a blob, valid until the trace is closed or 64 MiB of other blobs were asked for; NULL if it is not there. */
const void *zt_trace_blob(zt_trace *trace, const zt_hash *hash, uint64_t *len);

/*
 * Where a frame address of a backtrace lies: "main evict.c:31", what is not known left out; "libfoo.so+0x1234" where the recorder
 * could not tell more. @return NULL if nothing is known. The string is the trace's, valid until it is closed.
 */
const char *zt_trace_frame(zt_trace *trace, uint64_t address);

/*
 * Calls as events in time order: ENTER of a call, then its LEAVE, those of other threads in between. Needed by whatever
 * follows objects (a destroy counts at ENTER, a create at LEAVE) or replays overlapping calls.
 */
typedef struct zt_event {
    int phase;            /* ZT_ENTER or ZT_LEAVE; a call that never returned has no LEAVE */
    const zt_call *call;  /* valid until its LEAVE was given and the next event is asked for */
} zt_event;
typedef struct zt_events zt_events;
int zt_events_open(zt_events **out, zt_trace *trace);
int zt_events_next(zt_events *events, zt_event *event);
void zt_events_close(zt_events *events);

/* ------------------------------------------------------------------------------------------------------ objects */

/*
 * Names handles and addresses by kind and generation. Feed it every event in order.
 */
typedef struct zt_objects zt_objects;
typedef struct zt_object {
    const char *kind;      /* "queue", "list", "mem", ... */
    uint32_t generation;   /* 1, 2, ... per kind in the order of creation */
    uint64_t value;        /* handle or base address */
    uint64_t size;         /* allocations */
    uint32_t index;        /* place in zt_objects_list */
    uint64_t created, destroyed; /* call numbers; 0: not seen */
    const zt_func *by;     /* function that created it, or NULL */
    char label[64];        /* kernel name and the like, may be "" */
} zt_object;

zt_objects *zt_objects_new(void);
void zt_objects_free(zt_objects *objects);
int zt_objects_event(zt_objects *objects, zt_trace *trace, const zt_event *event);
/* @return the live object (or the newest dead one) with that handle of that handle type, or NULL. */
const zt_object *zt_object_of_handle(const zt_objects *objects, const zt_type *type, uint64_t handle);
/* @return the allocation that contains the address now (else the newest freed one that did), or NULL. */
const zt_object *zt_object_of_address(const zt_objects *objects, uint64_t address);
/*
 * For names that are known from elsewhere: what there is at that handle, or (type NULL) in that allocation. NULL when memory is out.
 */
const zt_object *zt_objects_put(zt_objects *objects, const zt_type *type, uint64_t value, uint64_t size, uint32_t generation);
/* Every object so far, in order of creation. */
size_t zt_objects_list(const zt_objects *objects, const zt_object *const **list);

/* ------------------------------------------------------------------------------------------------------ printing */

enum zt_print_flags { ZT_P_RAW = 1 /* raw handle values beside names */, ZT_P_NO_TIME = 2, ZT_P_COLOR = 4 };
typedef struct zt_text zt_text; /* a growing buffer */
zt_text *zt_text_new(void);
void zt_text_free(zt_text *text);
void zt_text_clear(zt_text *text);
const char *zt_text_get(const zt_text *text, size_t *len); /* NUL-terminated; never NULL */

/* One line in the manner of strace (cli.md "Looking"), without newline. `objects` may be NULL: raw handles then. */
int zt_print_call(zt_text *text, zt_trace *trace, const zt_objects *objects, const zt_call *call, unsigned flags);
/* One value of a walk as it stands in such a line: a node that is a value, text or bytes. */
void zt_print_value(zt_text *text, const zt_objects *objects, const zt_node *node);
/* The same as one JSON object. */
int zt_print_call_json(zt_text *text, zt_trace *trace, const zt_objects *objects, const zt_call *call);
/* A result code by name, or in hex if it has none: "ZE_RESULT_ERROR_UNKNOWN". Static or thread-local storage. */
const char *zt_result_name(int64_t result);

#ifdef __cplusplus
}
#endif
#endif

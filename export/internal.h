/* SPDX-License-Identifier: MIT */
/*
 * Exporting from the inside.
 *
 *   pair.c     which two operations, and the line of calls and commands for `bad`
 *   good.c     the line for `good`, and what is expected of it
 *   repair.c   where no order of commands helps: which calls would have to stand elsewhere
 *   rewrite.c  the trace written anew, with calls moved and results as they are wanted
 *   collect.c  the calls that matter, what they submit, the objects and host memory they use
 *   call.c     one call's arguments as C
 *   data.c     contents of memory
 *   steps.c    both lines as one, and which commands need a gate
 *   body.c     calls and commands as statements
 *   program.c  the program
 *   runtime.c  what each program begins with; embed.py makes a string of it
 */
#ifndef ZX_INTERNAL_H
#define ZX_INTERNAL_H

#include "export.h"

#define ZX_NONE       UINT32_MAX
#define ZX_MOST_STEPS 20000u
/* Numbers of calls that the repair adds. */
#define ZX_ADDED_CLOSE   (1ull << 62)
#define ZX_ADDED_EXECUTE (ZX_ADDED_CLOSE + 1)

/* ------------------------------------------------------------------------------------------------------------- texts */

typedef struct zx_text {
    char *at;
    size_t n, room;
    bool failed; /* memory is out */
} zx_text;
void zx_put(zx_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void zx_put_bytes(zx_text *text, const void *bytes, size_t n);
/* Takes `tail` off the end if it stands there. */
void zx_strip(zx_text *text, const char *tail);

extern const char *const zx_runtime[]; /* lines, NULL at the end */
extern const char *const zx_names[];   /* of the installed headers, sorted */
extern const size_t zx_n_names;
bool zx_in_headers(const char *name);

/* ----------------------------------------------------------------------------------------------------------- collect */

typedef struct zx_place { /* what a list or queue was created with */
    uint32_t context, device; /* objects */
    uint32_t ordinal, index, flags, priority, mode;
    bool known, of_queue, chained;
} zx_place;

typedef struct zx_submit { /* one command of an execute, or of an append to an immediate list */
    uint32_t call; /* index of the append */
    uint32_t execution;
} zx_submit;

typedef struct zx_content {
    uint32_t number, parts, n_parts; /* parts: id of the array in the data; n_parts 0: not kept */
    uint64_t len;
    bool readback;
    char place[64];
} zx_content;

typedef struct zx_call {
    uint64_t number;
    const zt_func *func;
    int64_t result;
    uint32_t thread;
    bool made; /* by the program, not by the loader or inside another call */
    bool returned, needed;
    uint32_t *uses; /* objects */
    uint32_t n_uses;
    uint32_t list, queue, event, self; /* objects by role: of an append the list ... ZX_NONE */
    uint32_t *lists, n_lists;          /* of an execute */
    uint32_t submits, n_submits;       /* into x->submits */
    uint32_t executions;               /* of the command that it appends */
    zx_content *contents;
    uint32_t n_contents;
    char **args; /* as C, one a parameter */
    const char *element; /* of the array `all` that it fills, of `room` elements; NULL: none */
    uint32_t room;
} zx_call;

typedef struct zx_span { /* host memory that is no allocation */
    uint64_t start, end;
} zx_span;

typedef struct zx_object {
    const zt_object *base;
    const zt_func *by;
    uint32_t creator; /* index of the call, ZX_NONE */
    uint32_t element; /* of the array that the call gave */
    bool used, immediate;
    zx_place place;
} zx_object;

enum { ZX_BAD = 1, ZX_GOOD = 2 };
/* Kinds of steps: as items, and: */
enum { ZX_LET = 100 }; /* the gate opens, though something else holds the command back */
typedef struct zx_step {
    uint64_t call;
    uint32_t execution;
    uint8_t kind, in;
    uint64_t from, size; /* ZR_I_WRITE */
} zx_step;
typedef struct zx_line {
    zx_step *steps;
    size_t n, room;
} zx_line;

typedef struct zx_wanted { /* where the passing line differs from the recording */
    uint64_t call;
    int64_t result;
    bool has_result;
    bool memory; /* what was read back is not to be as recorded */
} zx_wanted;

typedef struct zx_export {
    zt_trace *trace;
    const zx_options *options;
    zt_error *error;
    zt_objects *names, *all; /* as of the call that is read; as of the end */
    zx_call *calls;
    size_t n_calls, room_calls;
    zx_object *objects;
    size_t n_objects;
    zx_submit *submits;
    size_t n_submits, room_submits;
    zx_span *spans;
    size_t n_spans, room_spans;
    /* the pair */
    zo_answer answer;
    zr_item *bad_items, *good_items;
    size_t n_bad_items, n_good_items;
    zx_line bad, good, both;
    uint64_t unchecked_from; /* memory is not compared from that call on; 0: always */
    zx_wanted *wanted;
    size_t n_wanted, room_wanted;
    zx_call added[2];       /* close and execute, `number` 0: there are none */
    char cure[256];         /* how `good` differs, where not by the order of commands alone */
    /* the text */
    zx_text side;
    struct zx_known *known; /* contents that stand in the data */
    size_t n_known, room_known;
    size_t *literals;       /* by object and span: bytes embedded */
    uint8_t *declared;      /* types the headers lack */
    zx_text types, functions;
    uint8_t *looked_up;     /* functions the headers lack */
} zx_export;

/* One sentence; @return ZT_E_USAGE. */
int zx_refuse(zx_export *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
int zx_no_memory(zx_export *x);
bool zx_grow(void *array, size_t n, size_t *room, size_t element);
#define ZX_PUSH(array, n, room, value) (zx_grow(&(array), n, &(room), sizeof(*(array))) ? ((array)[(n)++] = (value), true) : false)

int zx_collect(zx_export *x);
zx_call *zx_call_of(zx_export *x, uint64_t number); /* also of those added; NULL */
void zx_object_name(const zt_object *object, char *out, size_t size);
/* "(char *)mem_2 + 16". @return false if there is no such memory. */
bool zx_address(const zx_export *x, uint64_t address, char *out, size_t size);

/* -------------------------------------------------------------------------------------------------------------- pair */

int zx_find_pair(zx_export *x, zo_graph *graph, zr_plan *plan);
/* A line of items as steps: contents by name, each before its call; calls that do not matter left out. */
int zx_line_of(zx_export *x, const zr_item *items, size_t n, zx_line *out);
/* The knobs under which an order is forced. */
void zx_force(zr_options *o, const zr_options *base, const zr_item *items, size_t n);

/* What the good line is tried with. */
typedef struct zx_try {
    uint64_t *order; /* numbers, also of calls added; NULL: as recorded */
    size_t n;
    zo_point early, late; /* late comes first */
    bool early_is_write;
    bool move_write;      /* the early one is the host's write, and moves behind the command by itself */
} zx_try;
/* @return ZT_OK if it passes, and x->good_items and x->wanted are filled in; ZT_END if it does not; else an error. */
int zx_try_good(zx_export *x, const zx_try *t);
/* The program itself fixes the bad order: calls of `good` have to be moved. */
int zx_repair(zx_export *x);
const zx_wanted *zx_wanted_of(const zx_export *x, uint64_t call);
/* What the calls submit, with the results that are wanted. */
int zx_find_submits(zx_export *x);

/* Writes the trace with the calls in that order and the results that are wanted, and opens it. */
int zx_rewrite(zx_export *x, const zx_try *t, zt_trace **out);
/* The edge's node in a line. ZO_NONE: there is none. */
uint32_t zx_node(const zo_graph *graph, zo_point point, bool is_write);

/* ------------------------------------------------------------------------------------------------------------- steps */

int zx_merge(zx_export *x);
/* Those that have to wait are on a list of their own; the others run in the program's list, at once. */
typedef struct zx_gates {
    bool *list_kept;   /* by object: regular lists that run as they are */
    bool *call_kept;   /* by call: appends to immediate lists that run as they are */
} zx_gates;
int zx_choose_gates(zx_export *x, zx_gates *gates);

/* -------------------------------------------------------------------------------------------------------------- text */

/* The call's arguments with the objects as of its ENTER. */
int zx_arguments(zx_export *x, zx_call *call, const zt_call *from);
/* The contents as parts in the data. `key`: of what buffer they are. */
int zx_parts(zx_export *x, const void *bytes, uint64_t len, size_t key, uint32_t *id, uint32_t *n);
int zx_contents(zx_export *x, zx_call *call, const zt_call *from);
/* Those that are not used are left out. */
void zx_use_parts(zx_export *x, uint32_t id);
void zx_put_parts(const zx_export *x, zx_text *out);
void zx_free_parts(zx_export *x);
/* A value of an enum or of flags: by name if the headers have it. */
void zx_put_enum(zx_text *out, const zt_type *type, uint32_t value);
void zx_put_flags(zx_text *out, const zt_type *type, uint32_t value);

/* One call at its place in both lines. */
typedef struct zx_body {
    zx_export *x;
    const zx_gates *gates;
    zx_text text;
    zx_call *unread;     /* what it read back is compared when its commands have run */
    uint32_t *appended;  /* by object: commands in a list */
    bool *marked;        /* by object: a kept list that has a mark at its end */
    int status;
} zx_body;
void zx_put_call(zx_body *b, zx_call *c, unsigned indent);
void zx_put_command(zx_body *b, const zx_step *s, unsigned indent);
void zx_put_unread(zx_body *b, unsigned indent);
/* A statement, in as many lines as it takes. */
void zx_put_line(zx_text *out, unsigned indent, const char *format, ...) __attribute__((format(printf, 3, 4)));

int zx_program_text(zx_export *x, const zx_gates *gates, zx_text *out);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What the calls of a trace need, from the inside: a graph of nodes and edges. A node is a call, or stands for several: the contents of
 * a list since its last reset, what an object is set to, whoever signals an event. An edge says that its `from` needs its `to`.
 */
#ifndef ZM_INTERNAL_H
#define ZM_INTERNAL_H

#include <stdlib.h>
#include <string.h>

#include "trim.h"

#define ZM_NONE UINT32_MAX

enum zm_edge_kind {
    ZM_E_HARD,     /* without it the call can't be made, or not with this result */
    ZM_E_LIST,     /* likewise: a submit and a list's contents */
    ZM_E_COMMAND,  /* a list's contents and one of its appends */
    ZM_E_DATA,     /* a submit, and one that wrote what it reads */
    ZM_E_SUBMIT,   /* a command and its submits */
    ZM_E_WORK,     /* a wait and the submits that it waits for */
    ZM_E_SYNC,     /* a submit and the wait that waits for it */
    ZM_E_END       /* an object's creation and its end */
};
typedef struct zm_edge {
    uint32_t from, to;
    uint8_t kind;
} zm_edge;

typedef struct zm_write { /* what a submit writes in a memory; lo..hi from its start, or addresses in pageable memory */
    uint64_t lo, hi;
    uint32_t node;  /* of the submit */
    bool exact;     /* every byte, for certain */
} zm_write;

typedef struct zm_access {
    uint64_t lo, hi;
    uint32_t object; /* ZM_PAGEABLE: none */
    uint32_t call;
    uint8_t read, write, exact;
} zm_access;
#define ZM_PAGEABLE (UINT32_MAX - 1)

typedef struct zm_command {
    uint32_t call;
    uint32_t accesses, n_accesses; /* into needs->accesses, which hold those of all commands */
    uint32_t waits, n_waits;       /* into needs->waits: events */
    uint32_t signal, reset;        /* events, ZM_NONE */
    bool barrier, holds; /* holds: what comes behind it on the carrier waits for its events */
} zm_command;

typedef struct zm_setting { /* what a call has set an object to, until a call with the same key */
    uint64_t key;
    uint32_t node;
    uint32_t refers; /* object that the argument points to, ZM_NONE */
} zm_setting;

#define ZM_ARRAY(type) struct { type *at; size_t n, room; }

typedef struct zm_object {
    uint32_t giver;        /* node of the call that gave it, ZM_NONE */
    uint32_t base;         /* what every user needs: giver, or the last reset */
    uint32_t state;        /* node of base and settings, ZM_NONE: to be made */
    bool provisional;      /* the giver is a call that a replay does not make */
    bool immediate, in_order, synchronous;
    bool common;           /* driver, device, context: used by everybody */
    bool is_event, is_fence, is_list, is_queue;
    ZM_ARRAY(zm_setting) settings;
    /* list */
    uint32_t contents, submits; /* nodes */
    ZM_ARRAY(zm_command) commands;
    /* queue, immediate list: submits that nobody has waited for */
    ZM_ARRAY(uint32_t) open;
    ZM_ARRAY(uint32_t) loose;   /* those that no barrier has ordered before what comes */
    uint32_t hold;              /* the newest that holds back what comes, ZM_NONE */
    /* event, fence */
    uint32_t signalled;         /* node of all signals of this round, ZM_NONE */
    ZM_ARRAY(uint32_t) signallers; /* calls */
    ZM_ARRAY(uint32_t) waiting;    /* calls that were submitted before the signal */
    /* memory, image */
    ZM_ARRAY(zm_write) writes;
    ZM_ARRAY(uint32_t) blocks;     /* node of each full 64 writes and those before */
} zm_object;

enum zm_call_flags {
    ZM_C_MADE = 1,    /* a replay makes it */
    ZM_C_COVERED = 2, /* submit: somebody has waited for all of it */
    ZM_C_FAULT = 4,   /* failed for a fault of the device: another call may be to blame */
    ZM_C_INIT = 8,
    ZM_C_QUIET = 16,  /* makes and reads, and disturbs nobody */
    ZM_C_ENDS_ORDERED = 32 /* submit: its last command is a barrier */
};
typedef struct zm_call {
    uint64_t number;
    uint32_t node;
    uint32_t uses, n_uses;         /* into needs->uses */
    uint32_t contents, n_contents; /* into needs->contents */
    uint32_t carrier;              /* of a submit, ZM_NONE */
    uint32_t before;               /* submits that it waits for: list in needs->before */
    uint32_t n_commands;
    uint32_t last_signal;          /* submit: the event of its last command, ZM_NONE */
    uint32_t barrier_signal;       /* the event of its last barrier */
    uint32_t over;                 /* the first wait that told of all of it, ZM_NONE */
    uint32_t told_by;              /* the newest wait that told of it, or of a part of it */
    uint8_t flags, kind;
} zm_call;

typedef struct zm_before {
    uint32_t call, next;
    uint32_t event; /* by which it is waited for */
} zm_before;

typedef struct zm_stretch { /* where a content lies, or a kept command reaches */
    uint64_t addr, len;
    uint32_t object;
} zm_stretch;

typedef struct zm_inside { /* an address that the driver gave and no allocation holds */
    uint64_t lo, hi;
    uint32_t node;
} zm_inside;

struct zm_needs {
    zt_trace *trace;
    zt_objects *names;
    ZM_ARRAY(zm_object) objects; /* as in names */
    zm_object pageable;
    ZM_ARRAY(zm_call) calls;
    ZM_ARRAY(uint32_t) nodes;    /* call of each node, ZM_NONE */
    ZM_ARRAY(zm_edge) edges;
    ZM_ARRAY(uint32_t) uses;     /* objects */
    ZM_ARRAY(zm_stretch) contents;
    ZM_ARRAY(zm_access) accesses;
    ZM_ARRAY(uint32_t) waits;
    ZM_ARRAY(zm_before) before;
    ZM_ARRAY(zm_inside) insides;
    ZM_ARRAY(uint32_t) carriers; /* objects */
    ZM_ARRAY(uint32_t) stack;    /* of zm_covered */
    uint32_t *by_handle;         /* newest object with a giver by handle, whatever its type */
    size_t n_by_handle, used_by_handle;
    /* once it is made */
    uint32_t *first;             /* edges of each node, sorted by node */
    uint32_t *first_use;         /* calls of each object, in users */
    uint32_t *users;
    bool out_of_memory;
};

struct zm_keep {
    const zm_needs *needs;
    uint64_t *bits;
};

bool zm_grow(zm_needs *n, void *array, size_t have, size_t *room, size_t element);
#define ZM_PUSH(needs, array, value)                                                                                           \
    (zm_grow(needs, &(array).at, (array).n, &(array).room, sizeof(*(array).at)) ? ((array).at[(array).n++] = (value), true)    \
                                                                                : false)

uint32_t zm_node(zm_needs *n, uint32_t call);
void zm_edge_add(zm_needs *n, uint32_t from, uint32_t to, int kind);
uint32_t zm_find_call(const zm_needs *n, uint64_t number);
static inline bool zm_in(const zm_keep *k, uint32_t call)
{
    return k->bits[call >> 6] >> (call & 63) & 1;
}
static inline void zm_put(zm_keep *k, uint32_t call)
{
    k->bits[call >> 6] |= 1ull << (call & 63);
}
static inline void zm_take(zm_keep *k, uint32_t call)
{
    k->bits[call >> 6] &= ~(1ull << (call & 63));
}

/* operands.c: a call while it is read, and the objects that it names. */
typedef struct zm_operand {
    const zt_field *field;
    const zt_type *type; /* NULL: an address */
    uint64_t value;
    uint32_t object, inside; /* ZM_NONE; inside: node */
} zm_operand;
typedef struct zm_reading {
    zm_needs *n;
    const zt_call *call;
    zt_call_memory in;
    zt_memory memory;
    zt_walk walk;
    ZM_ARRAY(zm_operand) operands;
    const zt_field *through[40]; /* the pointers that the walk is behind */
    unsigned depth, outputs;     /* outputs: so many of them are no inputs */
} zm_reading;
void zm_read_begin(zm_reading *r, zm_needs *n, const zt_call *call);
void zm_read_operands(zm_reading *r);
uint32_t zm_object_by_role(const zm_reading *r, enum zt_role role);
/* What a call that sets something is about; what one that ends something ends. */
uint32_t zm_subject(const zm_reading *r);
uint32_t zm_ended(const zm_reading *r);
uint32_t zm_object_index(zm_needs *n, const zt_object *base);
/* Whatever the handle's type: some functions take one type's handles for another's. */
void zm_remember_handle(zm_needs *n, uint64_t handle, uint32_t object);

/* effects.c: what a call does to its objects. */
void zm_act(zm_reading *r, uint32_t call, uint32_t node);
/* @return the node of what the object is set to now. */
uint32_t zm_state_of(zm_needs *n, uint32_t object);

/* flow.c: what submits, signals, waits and writes mean for each other. `call` is an index. */
zm_object *zm_object_at(zm_needs *n, uint32_t index);
void zm_list_begins(zm_needs *n, zm_object *list);
void zm_submitted(zm_needs *n, uint32_t call, uint32_t carrier, const zm_command *command);
void zm_signalled(zm_needs *n, uint32_t call, uint32_t object, uint32_t node);
void zm_unsignalled(zm_needs *n, uint32_t object, uint32_t node);
/* A wait or a query has told the program that they are over. */
void zm_told_of_carrier(zm_needs *n, uint32_t call, uint32_t carrier);
void zm_told_of_signal(zm_needs *n, uint32_t call, uint32_t object, bool fence);
void zm_told_at_once(zm_needs *n, uint32_t call);
/*
 * Marks the nodes of submits that do not have all that what they write depends on. @return one byte a node, to be freed; NULL when
 * memory is out.
 */
uint8_t *zm_unfounded(const zm_needs *n, const zm_keep *keep);
/* Whether a submit that is left out, and of whose end nothing was known by that call, may have written there. */
bool zm_left_out_writes(const zm_needs *n, const zm_keep *keep, uint32_t call, const zm_stretch *where);
/* Whether what call `call` reads back there is what it was, with these calls only. */
bool zm_founded(const zm_needs *n, const zm_keep *keep, const uint8_t *unfounded, uint32_t call, const zm_stretch *where);

#endif

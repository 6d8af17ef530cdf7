/* SPDX-License-Identifier: MIT */
/* A comparison from the inside. */
#ifndef ZD_INTERNAL_H
#define ZD_INTERNAL_H

#include "diff.h"
#include "names.h"

#define ZD_MARK 32u /* calls between two places from which operands can be read */

/* Something of a call that stands apart from its hash: a new object, a handle it gave, contents. Hash: what it is but for the object. */
typedef struct zd_extra {
    uint32_t call, object; /* index; ZD_NONE: none */
    uint64_t hash;
} zd_extra;
typedef struct zd_extras { /* ascending by call once the trace has been read */
    zd_extra *at;
    size_t n, room;
} zd_extras;

typedef struct zd_run { /* calls from `index` on have numbers from `number` on */
    uint32_t index;
    uint64_t number;
} zd_run;

enum zd_func_flags { ZD_IGNORED = 1, ZD_ENDS = 2 /* an object */, ZD_WRITES = 4 /* outputs */ };

typedef struct zd_side {
    zt_trace *trace;
    const zd_options *options;
    uint32_t n;
    size_t room;
    uint64_t *hash;   /* by call: all but its objects, with the objects as they are known by now mixed in by zd_rehash */
    uint16_t *func;   /* into funcs */
    uint8_t *result;  /* into results, 254: another, 255: never returned */
    uint16_t *thread; /* NULL: all are of `only_thread` */
    uint16_t only_thread;
    const zt_func **funcs;
    uint64_t *func_hash; /* of the name */
    uint8_t *func_flags; /* enum zd_func_flags */
    size_t n_funcs, funcs_room;
    uint16_t *func_of; /* by id of this build's table; UINT16_MAX */
    int64_t results[254];
    unsigned n_results;
    uint8_t *operands; /* for each call how many, and for each of these the difference to the one before at its place */
    size_t n_operands, operands_room;
    uint64_t *marks;   /* where in them each ZD_MARK-th call begins */
    size_t marks_room;
    zd_extras outs, contents;
    zd_run *runs;
    size_t n_runs, runs_room;
    zd_object *objects;
    uint32_t n_objects;
    uint64_t *names;   /* by object: what stands for it in hashes */
    uint32_t *index;   /* calls sorted by thread; NULL: all in one line */
    uint32_t *first;   /* of each thread in index */
    uint32_t n_threads; /* highest number */
    bool any_ignored;
    uint64_t progress; /* calls read, for who looks on */
    int status;
} zd_side;

struct zd_diff {
    zd_options options;
    zd_side side[2];
    uint32_t *pair;       /* by thread of A: thread of B, 0 none */
    uint8_t *paired;      /* by thread of B */
    zd_section *sections;
    size_t n_sections;
    zd_op *script;
    size_t n_script, script_room;
    bool same_by_thread;
    uint32_t **lines; /* of zd_forget_waits, one a section */
};

static inline uint64_t zd_mix(uint64_t h, uint64_t x)
{
    const unsigned __int128 p = (unsigned __int128)(h ^ x ^ 0xa0761d6478bd642fu) * 0xe7037ed1a0b428dbu;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* read.c */
void zd_read(zd_side *side); /* from the beginning to the end; status */
void zd_side_free(zd_side *side);
uint32_t zd_index_of(const zd_side *side, uint64_t number);

/* A handle or address among a call's arguments; those of one call come in the same order each time. */
typedef struct zd_candidate {
    const zt_type *type; /* of a handle; NULL: an address */
    uint64_t value;
} zd_candidate;
typedef struct zd_candidates {
    zd_candidate *at;
    size_t n, room;
} zd_candidates;

/* arguments.c */
typedef struct zd_arguments {
    const zd_side *side;
    zd_side *into;               /* what LEAVE gives goes there */
    zd_names *names;             /* NULL: only the candidates are wanted */
    const zt_call *call;
    uint32_t index;              /* ZD_NONE */
    int phase;
    uint64_t hash;
    zd_candidates candidates;    /* without names */
    uint32_t *operands;          /* of this call so far: objects, ZD_NONE */
    size_t n_operands, operands_room;
    uint32_t outs;
    struct {
        const zt_field *field;
        bool filled; /* the call writes it: at ENTER there is nothing in it */
        bool written; /* or there may be something in it */
    } through[48];
    unsigned depth;
    struct {
        const zt_field *field;
        const zt_type *type;
        const zt_func *func;
        bool varies;
    } known[256]; /* answers of zt_varies */
    /* For who wants them one by one: a value, its part of the hash in `hash`, and whether it is the newest candidate; all other nodes. */
    void (*leaf)(void *ctx, const zt_node *node, bool candidate);
    void (*shape)(void *ctx, const zt_node *node);
    void *ctx;
    bool failed;
} zd_arguments;
/* Walks the call as of that phase. The results are in `hash` and `operands` (or side->outs), or in `candidates`. */
void zd_walk(zd_arguments *arguments, const zt_call *call, uint32_t index, int phase);

bool zd_add_extra(zd_extras *extras, zd_extra extra);
/* Grows an array so that one more fits. */
bool zd_room(void *array, size_t n, size_t *room, size_t size);

/* operands.c */
typedef struct zd_cursor { /* over the operands of one side; belongs to a thread */
    const zd_side *side;
    uint32_t next;      /* call that stands at `at` */
    size_t at;
    uint32_t before[16];
    uint32_t *list;
    size_t room;
} zd_cursor;
bool zd_operands_put(zd_side *side, uint32_t call, uint32_t *before, const uint32_t *objects, size_t n);
/* The operands of a call, valid until the next. Memory out: none. */
size_t zd_operands_get(zd_cursor *cursor, uint32_t call, const uint32_t **objects);
/* Takes the old names out of all hashes, and puts the new ones in; frees the old. `marks`: also what creations give. */
void zd_rehash(zd_side *side, uint64_t *names);
/* The extras of a call. */
size_t zd_extras_of(const zd_extras *extras, uint32_t call, const zd_extra **first);

/* compare.c: one more step at the end of the script and of the section. */
bool zd_add_op(zd_diff *diff, zd_section *section, int kind, uint32_t a, uint32_t b, uint32_t n);

/* threads.c, match.c */
bool zd_pair_threads(zd_diff *diff, bool all);
bool zd_align_pair(zd_diff *diff, uint32_t thread_a, uint32_t thread_b, zd_blocks *blocks);
zd_sequence zd_thread_line(const zd_side *side, uint32_t thread);
bool zd_match_objects(zd_diff *diff);

/* fetch.c: a call that is read again. */
typedef struct zd_known { /* the object behind a handle or address of the call */
    zd_candidate what;
    uint32_t object;
} zd_known;
struct zd_reader {
    const zd_diff *diff;
    const zd_side *side;
    zd_cursor cursor;
    zd_arguments arguments;
    zd_known *known; /* ENTER's first, then LEAVE's, in the order of the walk */
    size_t n_known, known_room, n_enter;
    const zt_call *call;
    uint32_t index;
    uint64_t position; /* number of the call that was read last */
    zt_objects *names;
    zt_text *text;
};

#endif

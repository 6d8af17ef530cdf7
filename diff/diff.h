/* SPDX-License-Identifier: MIT */
/*
 * Two traces beside each other: what they have in common, and where they part.
 *
 *   zd_compare   aligns the calls of two traces; a call keeps 15 to 20 bytes in memory meanwhile
 *   zd_details   what differs within one call that both have
 *   zd_line      a call as 'zetrace dump' shows it
 *
 * Handles and addresses are compared as objects: those that both sides use alike are the same, whatever number they have on either
 * side. Times are not compared, nor what no two runs have in common (zt_varies). Nothing prints or exits. A comparison belongs to one
 * thread at a time, and borrows both traces.
 */
#ifndef ZD_DIFF_H
#define ZD_DIFF_H

#include "align.h"
#include "format.h"

#ifdef __cplusplus
extern "C" {
#endif

enum zd_ignore { ZD_ARGS = 1, ZD_RESULTS = 2, ZD_MEMORY = 4 };
#define ZD_GLOBS 32

typedef struct zd_options {
    bool by_order;              /* align in the order of calls; else thread by thread */
    unsigned ignore;            /* bits of enum zd_ignore */
    const char *globs[ZD_GLOBS]; /* functions that are left out */
    size_t n_globs;
    bool (*matches)(const char *glob, const char *name);
    bool is_replay;             /* B is a replay of A: time limits of waits are not compared */
    bool contents_apart;        /* contents do not make calls different: zd_details is to look at them, with a tolerance */
    void (*progress)(void *ctx, uint64_t done, uint64_t total); /* from the calling thread; may be NULL */
    void *ctx;
} zd_options;

enum zd_kind { ZD_EQUAL, ZD_REMOVED, ZD_ADDED, ZD_CHANGED };

/* A step of the script that makes B of A: n calls from place a of A's line and place b of B's. */
typedef struct zd_op {
    uint8_t kind;
    uint32_t a, b, n;
} zd_op;

/* A line of calls on either side: a thread's, or all of them in order. */
typedef struct zd_section {
    uint32_t thread_a, thread_b; /* 0: all, or none on that side */
    zd_sequence a, b;            /* of indices for zd_number and zd_line */
    size_t first, n;             /* in the script */
} zd_section;

typedef struct zd_diff zd_diff;

int zd_compare(zd_diff **out, zt_trace *a, zt_trace *b, const zd_options *options, zt_error *error);
void zd_free(zd_diff *diff);

size_t zd_sections(const zd_diff *diff, const zd_section **sections);
/* Of all sections, one behind the other. May be changed, not made longer. */
size_t zd_script(const zd_diff *diff, zd_op **script);
uint32_t zd_calls(const zd_diff *diff, int side); /* 0 or 1 */
/* The index behind a place of a section's line. */
static inline uint32_t zd_index(const zd_sequence *s, uint32_t place)
{
    return s->index != NULL ? s->index[place] : place;
}
uint64_t zd_number(const zd_diff *diff, int side, uint32_t index);
uint32_t zd_thread(const zd_diff *diff, int side, uint32_t index);
const char *zd_function(const zd_diff *diff, int side, uint32_t index);
/* false: it never returned. Only the first 254 results of a trace are told apart here: true and *known false are all others. */
bool zd_result(const zd_diff *diff, int side, uint32_t index, int64_t *result, bool *known);
/* Thread of B that does what that one of A does, 0: none. */
uint32_t zd_thread_of(const zd_diff *diff, uint32_t thread_a);
/* Whether every thread has a partner that does the same, with ZD_GLOBS left out. */
bool zd_same_by_thread(const zd_diff *diff);
/* Calls that both threads have, in one order on each, are in another order among the threads. */
bool zd_interleaved(const zd_diff *diff);

/* --------------------------------------------------------------------------------------------------------- one call */

/* Reads single calls of a comparison again. Best in ascending order. */
typedef struct zd_reader zd_reader;
zd_reader *zd_reader_new(const zd_diff *diff, int side); /* NULL when memory is out */
void zd_reader_free(zd_reader *reader);
/* The call and names for its handles and addresses, both valid until the next one. NULL: it can't be read again. */
const zt_call *zd_fetch(zd_reader *reader, uint32_t index, const zt_objects **names);
/* As zt_print_call without times, or zt_print_call_json. "" if it can't be read. Valid until the next one. */
const char *zd_line(zd_reader *reader, uint32_t index, bool json);

enum zd_view { ZD_BYTES, ZD_F16, ZD_BF16, ZD_F32, ZD_F64, ZD_I8, ZD_I16, ZD_I32, ZD_I64, ZD_U8, ZD_U16, ZD_U32, ZD_U64 };
/* @return -1 if there is none of that name: "bytes", "f16", "bf16", ... */
int zd_view_of(const char *name);
typedef struct zd_tolerance {
    uint64_t ulp;    /* floating-point numbers that are so many steps apart are the same */
    double relative; /* or |a - b| <= relative * max(|a|, |b|) */
} zd_tolerance;

/* The first element that differs, and how many. @return false: they are the same, within the tolerance. */
bool zd_contents_differ(const void *a, const void *b, uint64_t size, int view, const zd_tolerance *tolerance, char *text_a, char *text_b,
                        size_t room, char *count, size_t count_room);

typedef struct zd_detail {
    const char *what; /* "size", "desc.flags", "phEvents[2]", "result", "contents of mem#2+0", ... */
    const char *a, *b; /* as text; "" where that side has none */
} zd_detail;
/*
 * Tells what differs within the call that each reader fetched last.
 * @return how many details; 0 if all is within the tolerance. UINT32_MAX: memory is out.
 */
uint32_t zd_details(zd_reader *a, zd_reader *b, int view, const zd_tolerance *tolerance, void (*tell)(void *ctx, const zd_detail *detail),
                    void *ctx);

/*
 * B is a replay of A: takes the waits that it made besides out of B's lines, and the changes out of the script that are none: what was not
 * ready in A and is in B. @return ZT_OK or ZT_E_MEMORY; the comparison can only be freed then.
 */
int zd_forget_waits(zd_diff *diff);
/*
 * With `contents_apart`: looks at the contents of calls that are equal otherwise; those that differ by more than the tolerance become
 * ZD_CHANGED. Both readers are the caller's. @return ZT_OK or ZT_E_MEMORY.
 */
int zd_check_contents(zd_diff *diff, zd_reader *a, zd_reader *b, int view, const zd_tolerance *tolerance);

#ifdef __cplusplus
}
#endif
#endif

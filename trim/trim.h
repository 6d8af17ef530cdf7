/* SPDX-License-Identifier: MIT */
/*
 * A smaller trace that replays by itself.
 *
 *   zm_needs     what each call of a trace needs, from the roles in the API table alone
 *   zm_keep      a set of its calls
 *   zm_trim      writes those of a set
 *   zm_minimise  the smallest set that a test of yours still accepts
 *
 * Needs format.h and nothing else. Nothing prints or exits. An object belongs to one thread at a time; zm_needs and zm_keep
 * belong to the trace that they were made from, and do not outlive it.
 */
#ifndef ZM_TRIM_H
#define ZM_TRIM_H

#include "format.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct zm_needs zm_needs;
typedef struct zm_keep zm_keep; /* a bit for each call of the trace */

/* Reads the whole trace, wherever it stands. About 250 bytes a call. */
int zm_needs_make(zm_needs **out, zt_trace *trace, zt_error *error);
void zm_needs_free(zm_needs *needs);
uint64_t zm_needs_calls(const zm_needs *needs);

/* An empty set. NULL when memory is out. */
zm_keep *zm_keep_new(const zm_needs *needs);
zm_keep *zm_keep_copy(const zm_keep *keep);
void zm_keep_free(zm_keep *keep);
/* @return false if the trace has no such call. */
bool zm_keep_add(zm_keep *keep, uint64_t number);
bool zm_keep_has(const zm_keep *keep, uint64_t number);
/* Adds calls #from to #to. @return how many there are. */
uint64_t zm_keep_add_range(zm_keep *keep, uint64_t from, uint64_t to);
/* Adds the calls that have the object, such as "mem#2", as an operand or give it. @return how many there are. */
uint64_t zm_keep_add_object(zm_keep *keep, const char *name);
/* Adds the calls that have a kernel whose name matches the shell pattern, "saxpy". @return how many there are. */
uint64_t zm_keep_add_kernel(zm_keep *keep, const char *pattern);
uint64_t zm_keep_count(const zm_keep *keep);

enum zm_close_flags {
    ZM_WITH_SUBMITS = 1, /* for the calls that are in the set at first: what submits a command, what a wait waits for */
    ZM_WITH_SYNCS = 2,   /* for each submit: the wait that tells the program that it is over */
    ZM_WITH_ENDS = 4,    /* destroys and frees of kept objects, up to the last call that is kept for another reason */
    ZM_NO_DATA = 16,     /* without the writers of what a command reads: its bytes may be others, and are not compared */
    ZM_FEW = 8           /* without what only the same *contents* need: all commands of a list, the writers of what a command reads,
                            and what may have made a call fail. For minimising, where a test decides */
};
#define ZM_WITH_ALL (ZM_WITH_SUBMITS | ZM_WITH_SYNCS | ZM_WITH_ENDS)
/*
 * Adds what the calls of the set need: the calls that gave their handles and addresses; what an object was set to; for a list that
 * is executed its appends and its close; who signals what is waited for; who wrote what a command reads; and so on. Waits behind
 * call #until are not added (0: no bound). @return ZT_OK or ZT_E_MEMORY.
 */
int zm_close_over_needs(zm_keep *keep, unsigned flags, uint64_t until);

#define ZM_LEVEL_TO_KEEP 9 /* compression of what is written once and sent around; a recorder has no such time */

typedef struct zm_trim_options {
    bool overwrite;
    int level; /* zstd; 0 = 3 */
} zm_trim_options;
/*
 * Writes the calls of the set, under their numbers, as a trace that is complete in itself. Contents that a call left out had
 * brought go with the next call that is kept; read-backs go if a command that wrote there is left out. `options` may be NULL.
 * Moves the position of the trace.
 */
int zm_trim(const zm_keep *keep, const char *path, const zm_trim_options *options, zt_error *error);

/* --------------------------------------------------------------------------------------------------------- minimising */

typedef struct zm_minimise_options {
    /* Whether the trace at that path still shows it. Called one at a time; may take long. */
    bool (*still)(void *ctx, const char *path);
    void *ctx;
    uint64_t budget;      /* of calls of `still`; 0: no bound */
    bool overwrite;       /* OUT */
    const volatile int *stop; /* ends the search with what there is once it is not 0; may be NULL */
} zm_minimise_options;

typedef struct zm_minimised {
    uint64_t tests, before, after; /* calls of `still`; calls of the trace */
    bool spent;                    /* budget or `stop` ended it: smaller ones may be had */
} zm_minimised;

/*
 * Leaves out of `start` (a set closed with ZM_WITH_SYNCS) whatever `still` can do without: objects with their calls, submits with
 * their commands, single calls; with a call goes what needs it. A wait stays as long as the work that it waits for. What is left
 * cannot lose one more call. Candidates are files with mode 0600 beside OUT, gone at the end whatever happens; OUT is written once.
 * @return ZT_OK; ZT_END if `still` refuses the start set itself, nothing is written then; or an error.
 */
int zm_minimise(const zm_keep *start, const char *out, const zm_minimise_options *options, zm_minimised *result, zt_error *error);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* Which calls 'zetrace dump' shows, and what the trace has none of. */
#ifndef ZT_DUMP_FILTER_H
#define ZT_DUMP_FILTER_H

#include "calls.h"
#include "format.h"
#include "options.h"

#define ZT_GLOBS 32u

typedef struct zt_filter {
    zt_calls *calls;
    const char *functions[ZT_GLOBS], *object;
    bool met[ZT_GLOBS]; /* by function */
    size_t n_functions;
    uint64_t thread, last, threads; /* last, threads: of the calls seen */
    bool failed, pending;
    bool thread_met, failed_met, pending_met;
    uint64_t seen, shown;
} zt_filter;

/* "mem#2", "queue#1": whether there can be such an object. */
bool zt_is_object_name(const char *text);
/* All but the object, which only the printed line tells. `objects` as of the call's ENTER; to be asked once for each call. */
bool zt_filter_wants(zt_filter *f, const zt_objects *objects, const zt_call *call);
bool zt_filter_wants_line(const zt_filter *f, const char *line);
/* Says on stderr what was asked for and is not there. `objects`: all. */
void zt_filter_tell(const zt_filter *f, const zt_objects *objects, const char *path);

#endif

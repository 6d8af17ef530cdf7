/* SPDX-License-Identifier: MIT */
/*
 * Sets of calls as options name them: "4", "#4", "10..20", "10-20", "..20", "10..", "0-100/2" (each second), "1000-2000/submit" (those
 * of a kind), "/submit" (all of it), "@FILE", several with commas between them.
 */
#ifndef ZT_CALLS_H
#define ZT_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format.h"

typedef struct zt_calls zt_calls;

/* All calls, until something is added. NULL when memory is out. */
zt_calls *zt_calls_new(void);
void zt_calls_free(zt_calls *set);
/* Adds what `text` names. @return false with half a sentence in `why`: what was wanted and found. */
bool zt_calls_add(zt_calls *set, const char *text, char *why, size_t size);
bool zt_calls_given(const zt_calls *set);
/* `objects` as of the call's ENTER. Takes note of what was met. */
bool zt_calls_have(zt_calls *set, const zt_objects *objects, const zt_call *call);
/* Once all calls were asked for: what met none, as it was written; NULL: everything met some. */
const char *zt_calls_unmet(const zt_calls *set);
/* The last number that could be in it. */
uint64_t zt_calls_end(const zt_calls *set);
/* Reads the trace from its beginning. @return ZT_OK, or what ended it early; `found` returns false to end it with ZT_E_MEMORY. */
int zt_calls_each(zt_calls *set, zt_trace *trace, bool (*found)(void *ctx, uint64_t number), void *ctx);

#endif

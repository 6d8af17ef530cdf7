/* SPDX-License-Identifier: MIT */
/* What reports say of the calls that they name. */
#ifndef ZT_CALL_LINES_H
#define ZT_CALL_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "format.h"

#define ZT_FRAMES 3u /* of a backtrace: the innermost, and none behind main, which is the same for all */

typedef struct zt_call_line {
    uint64_t call;
    char *text, *function; /* NULL: the trace does not hold it */
    char *frames[ZT_FRAMES];
} zt_call_line;

/* Sorts by call and drops doubles. @return how many are left. */
size_t zt_call_lines_sort(zt_call_line *lines, size_t n);
/* Fills them in, in one reading of the trace, which it starts from the beginning. */
void zt_call_lines_read(zt_trace *trace, zt_call_line *lines, size_t n);
/* NULL: it is not among them. */
const zt_call_line *zt_call_line_of(const zt_call_line *lines, size_t n, uint64_t call);
/* What they hold; not the array. */
void zt_call_lines_clear(zt_call_line *lines, size_t n);

#endif

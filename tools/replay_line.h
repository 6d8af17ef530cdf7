/* SPDX-License-Identifier: MIT */
#ifndef ZT_REPLAY_LINE_H
#define ZT_REPLAY_LINE_H

#include "order.h"
#include "replay.h"

/*
 * Turns --order (NULL: none) and the gates and holds among the points into the options' items, and refuses what would wait for itself.
 * The caller frees the items and what was learned about the host's writes. @return -1, or the status to exit with: a usage error has been told.
 */
int zt_replay_line(zt_trace *trace, zr_plan *plan, const char *order, zr_options *options, zr_item **items, uint8_t **learned);

/*
 * What was read back late, and the host may have written over, is no difference. If the report of a replay as recorded begins with such
 * a one, or may, replays once more without them and makes that the report. @return the verdict.
 */
int zt_replay_taken(zt_trace *trace, zr_plan *plan, const zr_options *options, zr_report *report);

#endif

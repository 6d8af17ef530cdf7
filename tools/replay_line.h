/* SPDX-License-Identifier: MIT */
#ifndef ZT_REPLAY_LINE_H
#define ZT_REPLAY_LINE_H

#include "order.h"
#include "replay.h"

/*
 * Turns --order (NULL: none) and the gates and holds among the points into the options' items, to be freed by the caller, and refuses what
 * would wait for itself. @return -1, or the status to exit with: a usage error has been told.
 */
int zt_replay_line(zt_trace *trace, const zr_plan *plan, const char *order, zr_options *options, zr_item **items);

#endif

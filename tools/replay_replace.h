/* SPDX-License-Identifier: MIT */
#ifndef ZT_REPLAY_REPLACE_H
#define ZT_REPLAY_REPLACE_H

#include "replay.h"

/* Does what --replace=WHAT:FILE says, and tells of it on stderr but if `quiet`. @return -1, or the status of a usage error. */
int zt_replay_replace(zr_plan *plan, const char *text, bool quiet);

#endif

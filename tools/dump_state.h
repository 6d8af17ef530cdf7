/* SPDX-License-Identifier: MIT */
#ifndef ZT_DUMP_STATE_H
#define ZT_DUMP_STATE_H

#include "format.h"

/* What is alive, appended, signalled and in flight when call #number has returned. @return the exit status. */
int zt_dump_state(zt_trace *trace, const char *path, uint64_t number, bool json);

#endif

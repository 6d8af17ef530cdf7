/* SPDX-License-Identifier: MIT */
/* --serialize: the same calls with host waits between them, private to the replayer. */
#ifndef ZR_SERIALIZE_H
#define ZR_SERIALIZE_H

#include "internal.h"

/* Makes the call with these words and waits as the option says. @return the call's own result. */
int64_t zr_serialized(zr_run *run, const zr_call *call, void *fn, const uint64_t *words);
/* Waits for a queue or immediate list. */
int64_t zr_sync_object(zr_run *run, uint32_t index, uint64_t timeout_ns);

#endif

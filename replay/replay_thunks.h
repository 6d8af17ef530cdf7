/* SPDX-License-Identifier: MIT */
/* From words to calls: what format/api/emit_replay.py generates, private to the replayer. */
#ifndef ZR_THUNKS_H
#define ZR_THUNKS_H

#include <stdint.h>

/* Calls `fn` with a call's words. @return its value; ze_result_t as unsigned 32 bits. */
typedef int64_t (*zr_thunk)(void *fn, const uint64_t *words);

extern const zr_thunk zr_thunks[]; /* by function id */

#endif

/* SPDX-License-Identifier: MIT */
/* zt_verify for a trace that is open. Private to format/. */
#ifndef ZT_VERIFY_H
#define ZT_VERIFY_H

#include "reader.h"
#include "refile.h"

/* Afterwards each chunk's fault is known. @return ZT_OK or ZT_E_MEMORY. */
int zt__verify(zt_trace *trace, void (*tell)(void *ctx, const zt_finding *finding), void *ctx,
               void (*step)(void *ctx, uint64_t done, uint64_t total), void *step_ctx, zt_verdict *verdict);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A trace as a C program of pure Level Zero that shows an ordering bug: `bad` runs the two operations in the order that fails, `good`
 * in the other.
 *
 * Nothing here prints to the terminal or exits. Forks (it replays the trace): call it before starting threads.
 */
#ifndef ZX_EXPORT_H
#define ZX_EXPORT_H

#include <stdio.h>

#include "order.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct zx_options {
    const zr_options *replay; /* driver, libraries, timeouts */
    zo_point early, late;     /* early before late fails; `early.call` 0: the pair is searched */
    void (*progress)(void *ctx, const char *what, unsigned replays, unsigned budget); /* may be NULL */
    void *ctx;
    const char *title; /* the trace's name, for the comment at the top */
    const char *side;  /* what the program calls its side file; NULL: there can be none */
} zx_options;

/* What came of it. Free both texts. */
typedef struct zx_program {
    char *text; /* the C program */
    size_t size;
    unsigned char *side; /* what has to lie beside it; NULL: nothing */
    size_t side_size;
} zx_program;

/*
 * Reads the trace from its beginning. @return ZT_OK; else one sentence in `error`: ZT_E_USAGE if it can't be done, ZT_E_MEMORY, or what
 * reading the trace gave.
 */
int zx_export_c(zx_program *out, zt_trace *trace, const zx_options *options, zt_error *error);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/*
 * Random arguments for any function of the table, made from the table: valid ones, NULLs, pNext chains, arrays, strings. Every
 * stretch of memory ends at a page that cannot be read, so that a decoder that reads one byte too many dies.
 */
#ifndef TEST_ARGUMENTS_H
#define TEST_ARGUMENTS_H

#include "format.h"

#define ARGUMENTS_REGIONS 96u

typedef struct arguments {
    const zt_func *func;
    uint64_t words[64];
    unsigned used; /* regions taken by this call */
    uint64_t seed;
} arguments;

bool arguments_open(void);
uint64_t arguments_random(arguments *a, uint64_t below);
/* Makes arguments for one call; those of the call before are gone. */
void arguments_make(arguments *a, const zt_func *func);
/* What a driver would write: outputs of the call get new values; heads of structs and pointers in them stay. */
void arguments_write_outputs(arguments *a, int64_t result);

/* Everything the walk shows of a call, as one number. Text of each node goes to `text` if that is not NULL. */
uint64_t arguments_digest(const zt_func *func, const uint64_t *words, int phase, int64_t result, const zt_memory *memory,
                          const zt_memory *before, void *text);

#endif

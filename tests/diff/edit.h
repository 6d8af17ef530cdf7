/* SPDX-License-Identifier: MIT */
/* A trace with random edits: calls removed, inserted, moved, an argument or a result changed. */
#ifndef TEST_EDIT_H
#define TEST_EDIT_H

#include "format.h"

/*
 * An even seed spares calls that give objects: those are only doubled, and get other arguments.
 * Writes OUT from IN, and how many removals and insertions make it in *cost: a move or a change is two. One thread's calls come one
 * behind the other, whatever they were. @return false with a sentence in `error`.
 */
bool edit_trace(const char *in, const char *out, uint64_t seed, unsigned edits, uint64_t *cost, zt_error *error);

#endif

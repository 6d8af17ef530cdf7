/* SPDX-License-Identifier: MIT */
/*
 * Records by hand: makes calls on libze_soft in a child process and writes them with zt_writer, as the layer and the
 * recorder would. For tests that want to know exactly what is in a trace, or to put something wrong into it.
 */
#ifndef HAND_H
#define HAND_H

#include "internal.h"
#include "l0_api.h"

typedef struct hand hand;

/* Runs `program` in a child with that schedule ("" none) and leaves the trace at `path`. @return whether all went well.
 */
bool hand_record(const char *path, const char *schedule, void (*program)(hand *h));
/* Makes a call and records it. Words as the function takes them. */
int64_t hand_call(hand *h, const char *function, const uint64_t *words);
/* Only records it, with that result, as if it had been made. */
void hand_pretend(hand *h, const char *function, const uint64_t *words, int64_t result);
/* Contents for the next call of this thread. Read-backs are read once it has returned. */
void hand_contents(hand *h, int kind, const void *address, size_t size);
/* The newest call, not written yet: for putting something wrong into it. */
zt_call *hand_last(hand *h);
/* Which recorded thread the calling thread is; 1 if never told. */
void hand_thread(unsigned thread);
/* The program ends with this status at the end; signalled: by that signal. */
void hand_ending(hand *h, bool signalled, int status);

#define W(x)                   ((uint64_t)(uintptr_t)(x))
#define CALL(h, function, ...) hand_call(h, function, (const uint64_t[]){__VA_ARGS__})

#endif

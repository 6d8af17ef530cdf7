/* SPDX-License-Identifier: MIT */
/*
 * What must not be asked of a replay: a call or command that would wait for itself. A wish is an edge besides those of the graph; the
 * graph is to be made with `vendor`, so that what the recorded driver makes wait counts as well.
 */
#ifndef ZO_SELF_WAIT_H
#define ZO_SELF_WAIT_H

#include "order.h"

typedef struct zo_wishes {
    zo_edge *list; /* for zo_schedule; free() it */
    size_t n, room;
} zo_wishes;

/*
 * `after` is to come behind `before`: a call, or a command whose end counts. @return false if it can't: `why` has the chain of calls, or
 * is empty if memory is out.
 */
bool zo_wish(zo_graph *graph, zo_wishes *wishes, uint32_t before, uint32_t after, char *why, size_t size);
/* The same for two calls: `after` and what its thread did after it move behind `before`, which is of another thread. Holds come before all else. */
bool zo_wish_hold(zo_graph *graph, zo_wishes *wishes, uint32_t before, uint32_t after, char *why, size_t size);

/*
 * The host waits at a call (before it, or behind it) for all that was submitted by then: to a queue or immediate list, or for an event; `object`
 * is its name, "queue#1", NULL: all. With wishes: they get the edges that this is. @return false if it would wait for what comes later, as above.
 */
bool zo_wish_sync(zo_graph *graph, zo_wishes *wishes, uint64_t call, bool behind, const char *object, char *why, size_t size);
/* Whether the command that a call appended, in that execution, or what a call submits, has been submitted by then; if not, `why` says what submits it. */
bool zo_submitted_by(zo_graph *graph, zo_point of, uint64_t call, bool behind, char *why, size_t size);
/* The host waits behind each submit (enum zr_serialize), each list of it, or each command. @return false if memory is out. */
bool zo_wish_serialize(zo_graph *graph, zo_wishes *wishes, int how);
/* What of a line that zo_schedule could not make waits for itself: "" if it can't be told. */
void zo_why_stuck(zo_graph *graph, const zo_wishes *wishes, uint32_t stuck, char *why, size_t size);
/* What the recorded driver makes wait, and the graph has no edge for. @return false if memory is out. */
bool zo_wish_driver(zo_graph *graph, zo_wishes *wishes);

#endif

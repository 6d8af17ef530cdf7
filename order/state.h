/* SPDX-License-Identifier: MIT */
/* What is in flight, signalled and appended at one moment of a trace: where zo_graph_options.until has ended the graph. */
#ifndef ZO_STATE_H
#define ZO_STATE_H

#include "order.h"

/* An execution that no call has been told to be over. */
typedef struct zo_in_flight {
    zo_point point;
    uint64_t submit;      /* call that submitted it */
    const zt_func *func;  /* that appended it */
    const zt_object *list, *carrier;
    bool held;            /* in no order can it have started: it waits for an event, or stands behind one that does */
} zo_in_flight;

enum zo_signal_state { ZO_S_RESET, ZO_S_SIGNALLED, ZO_S_PENDING };

typedef struct zo_signal { /* an event or a fence */
    const zt_object *object;
    int state;            /* PENDING: a command in flight signals or resets it, the last if there are several */
    zo_point by;          /* call 0: as it was created */
    bool resets;          /* by: a reset */
} zo_signal;

typedef struct zo_list_state {
    const zt_object *object;
    bool immediate, in_order, closed;
    const uint64_t *commands; /* calls that appended them, since the last reset; of an immediate list none */
    size_t n_commands;
} zo_list_state;

/* What is NULL is not told. Only what is alive, in the order of creation, but for commands: those of destroyed lists may be in flight as
   well. */
typedef struct zo_state_teller {
    void (*list)(void *ctx, const zo_list_state *list);
    void (*signal)(void *ctx, const zo_signal *signal);
    void (*in_flight)(void *ctx, const zo_in_flight *command);
    void *ctx;
} zo_state_teller;

/* Objects are the graph's. @return ZT_OK or ZT_E_MEMORY. */
int zo_state(zo_graph *graph, const zo_state_teller *teller);
const char *zo_signal_state_name(int state);

#endif

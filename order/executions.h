/* SPDX-License-Identifier: MIT */
/* The life of each command: appended, submitted, run, known to be over. */
#ifndef ZO_EXECUTIONS_H
#define ZO_EXECUTIONS_H

#include "order.h"

typedef struct zo_execution {
    const zt_func *func;  /* that appended it */
    uint64_t append;      /* number of that call */
    uint64_t submit;      /* of the call that submitted it: the same one for an immediate list */
    uint64_t sync;        /* of the first call whose success says that it is over; 0: none does */
    uint64_t submit_ns, sync_ns; /* ENTER of submit, LEAVE of sync */
    uint32_t execution;   /* from 1 */
    uint32_t carrier;     /* queue or immediate list: place in zt_objects_list; executions of one carrier stand in the order of their starts */
    uint32_t event;       /* that it signals, likewise; ZO_NONE */
    char carrier_name[48];
    bool ran;             /* in the order that the graph goes by */
} zo_execution;

/* @return how many, and *out, to be freed by the caller; SIZE_MAX when memory is out. */
size_t zo_executions(zo_graph *graph, zo_execution **out);

#endif

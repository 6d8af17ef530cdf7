/* SPDX-License-Identifier: MIT */
/*
 * What a recorded driver orders beyond the specification: one table a driver, order/drivers/NAME.conf, chosen by the
 * library that the program had loaded.
 */
#ifndef ZO_DRIVER_EDGES_H
#define ZO_DRIVER_EDGES_H

#include <stddef.h>

#include "format.h"

enum zo_habit {
    ZO_H_FREE_WAITS = 1 << 0,      /* a free without a policy waits for the users of the memory */
    ZO_H_LIST_KEEPS = 1 << 1,      /* a list reset, destroyed or executed again takes nothing from what was submitted */
    ZO_H_QUEUE_KEEPS = 1 << 2,     /* nor does a queue that is destroyed */
    ZO_H_EVENT_KEEPS = 1 << 3,     /* nor an event */
    ZO_H_IMMEDIATE_WAITS = 1 << 4, /* the destruction of an immediate list waits for its commands */
    ZO_H_HOST_COPIED = 1 << 5,     /* pageable memory is read when a command is appended */
    ZO_H_SUBMIT_RESIDENT = 1 << 6, /* a submit makes resident what its commands name */
    ZO_H_APPEND_BLOCKS = 1 << 7,   /* an append to an immediate list returns when its command can start */
    ZO_H_ONE_ENGINE = 1 << 8       /* all queues share one engine, which runs one command behind the other */
};

/* `device`: number of the device as zeDeviceGetProperties gave it, 0: the program never asked. @return a set of enum zo_habit. */
unsigned zo_driver_habits(const zt_session *session, uint32_t device);
/* Names of the set: "free-waits, list-keeps". */
void zo_habit_names(unsigned habits, char *out, size_t size);

#endif

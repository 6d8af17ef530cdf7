/* SPDX-License-Identifier: MIT */
/* Small Level Zero programs, recorded by hand. */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include "hand.h"

typedef struct basics {
    ze_driver_handle_t driver;
    ze_device_handle_t device;
    ze_context_handle_t context;
    ze_command_queue_handle_t queue;
    ze_event_pool_handle_t pool;
} basics;

void start(hand *h, basics *b);
uint64_t new_list(hand *h, const basics *b);
uint64_t new_event(hand *h, const basics *b, uint32_t index);
uint64_t new_memory(hand *h, const basics *b, const char *function, size_t size);
int64_t execute(hand *h, const basics *b, uint64_t list);
int64_t sync_queue(hand *h, const basics *b);

void evict_bad(hand *h); /* lazy: a later submit gives UNKNOWN */
void evict_good(hand *h);
void host_memory(hand *h);   /* pageable source and destination, rewritten between append and execute */
void gate(hand *h);          /* submits, then signals from the host what the submit waits for */
void one_event(hand *h);     /* a hundred commands that wait for one event and signal it */
void two_threads(hand *h);   /* one waits for what the other signals */
void early_waiter(hand *h);  /* the wait returns before the signal that ended it does */
void eight_threads(hand *h); /* objects and memory come and go on each */
void many_queries(hand *h);  /* every enumeration and property there is, twice */
void original_goes(hand *h); /* a list, while a clone of it is in flight: pretended, libze_soft cannot clone */
void clone_goes(hand *h);    /* that clone, which loses its copy */

#endif

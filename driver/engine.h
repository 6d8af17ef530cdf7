/* SPDX-License-Identifier: MIT */
/* What rings and schedules share: commands in flight, and what moves them. All of it wants the lock held. */
#ifndef SOFT_ENGINE_H
#define SOFT_ENGINE_H

#include "soft.h"

enum soft_state { SOFT_WAITING, SOFT_STARTED, SOFT_ENDING };

/* One execution of a command. */
typedef struct soft_instance {
    struct soft_instance *next, *previous;
    soft_command *command;
    soft_submit submit;
    uint64_t number;         /* of all submitted commands */
    uint64_t list_id;        /* in-order lists: commands of one list end before the next starts */
    uint64_t fence_generation;
    uint64_t *wait_values;   /* counter-based events: the signal each wait is for */
    uint64_t signal_value;
    uint64_t ends_ns, started_ticks;
    enum soft_state state;
    struct soft_ring *ring;  /* once it is taken away */
} soft_instance;

/* Commands in the order in which they start. Those before `waiting` have started. */
struct soft_ring {
    soft_ring *next;
    soft_object *device;
    unsigned ordinal, index;
    unsigned owners; /* queues and immediate lists; a ring without one is given to the next that asks */
    soft_instance *first, *last, *waiting;
    bool wanted;     /* by the host wait that is being served */
    uint64_t asked;  /* the last question to which `stuck` is the answer: see loss.c */
    bool stuck;
};

extern soft_ring *soft_rings;

void soft_unlink_instance(soft_ring *ring, soft_instance *i);
void soft_free_instance(soft_instance *i);
bool soft_wait_satisfied(const soft_instance *i, uint32_t wait);
/* Whether nothing behind it in the ring may start before it has ended. */
bool soft_holds_back(const soft_instance *i);
void soft_start_commands(soft_ring *ring);
bool soft_can_end(const soft_ring *ring, const soft_instance *i);
/* @return false if it faulted and took its engine context, and all that was submitted to it, with it. */
bool soft_end_instance(soft_ring *ring, soft_instance *i);
/* Ends what can end on the ring, oldest first, until nothing can. @return whether anything ended. */
bool soft_run_ring(soft_ring *ring);
extern unsigned soft_in_host_function;

/* The engine context is gone: everything submitted to it is lost. */
void soft_ban(const soft_ring *from);
extern uint64_t soft_losses; /* counts commands taken away: pointers to commands in flight are to be forgotten when it moves */

#endif

/* SPDX-License-Identifier: MIT */
/* The parts that a plan is made of. */
#ifndef ORDER_PARTS_H
#define ORDER_PARTS_H

#include "program.h"

/* What is known, while planning, to be before each node, and before the host's next operation. Gates opened later are
 * left out: the plan orders a little more than it must. */
extern uint64_t known_before[MAX_NODES][WORDS], host[WORDS];
extern int gates[MAX_EVENTS], n_gates; /* events that the host has yet to signal */

bool chance(program *p, int percent);
void add(uint64_t *to, const uint64_t *from);
void add_node(uint64_t *to, int node);
int new_node(program *p);
int add_op(program *p, host_op o);
host_op op_of(op_kind kind);
void add_access(program *p, plan_access a);
int run_of_end(const program *p, int node);
bool used_up(const plan_event *e);
int add_run(program *p, int append, int submit, int execution);
void execute(program *p, int l);
void flush(program *p);
int take_event(program *p, int context);
int append(program *p, host_op o);
host_op command_on(program *p, int l, command_kind kind);
void sync_run(program *p, int r, bool may_poll);
void sync_lane(program *p, int l);
void sync_all(program *p);
bool event_idle(const program *p, const plan_event *e);
void reset_event(program *p, int number);
int new_event(program *p, int context, int counter_lane);
void open_list(program *p, int l);
void sync_list(program *p, int l);
void demand_list(program *p, int l, int op);

#endif

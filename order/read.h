/* SPDX-License-Identifier: MIT */
/* One call while the graph is built: its words, and what they name. Private to the files that read a trace. */
#ifndef ZO_READ_H
#define ZO_READ_H

#include "graph.h"

typedef struct zo_reading {
    zo_graph *g;
    const zt_call *call;
    zt_call_memory in;
    zt_memory memory;
    zt_walk walk;
} zo_reading;

void zo_read_begin(zo_reading *r, zo_graph *g, const zt_call *call);
/* The object that a call is about: where waits, resets and destructions look. ZO_NONE */
uint32_t zo_read_subject(zo_reading *r);
/* The queue or list that an execute or append is for. ZO_NONE */
uint32_t zo_read_carrier(zo_reading *r);
/* The object that a parameter of that role names, ZO_NONE. */
uint32_t zo_read_object(zo_reading *r, enum zt_role role);
/* Handles of an array of that role, for zt_element; NULL and *n 0: none can be read. */
const void *zo_read_array(zo_reading *r, enum zt_role role, const zt_field **f, uint32_t *n);
uint32_t zo_read_handle(zo_reading *r, const zt_field *f, uint64_t handle);
/* @return false if it cannot be told: memory is out. */
bool zo_locate(zo_graph *g, uint64_t address, uint64_t length, zo_access *out);
/* The command of an append, and the commands of an execute; `index` is the call's. */
void zo_read_append(zo_reading *r, uint32_t index);
void zo_read_execute(zo_reading *r, uint32_t index);
/* What the host wrote before the call, and what it may have written under a reader; see zo_write. */
void zo_host_writes(zo_graph *g, uint32_t index, const zt_call *call);
/* At LEAVE: memory read back that is not to be compared. */
void zo_host_reads(zo_graph *g, uint32_t index, const zt_call *call);
void zo_sightings_free(zo_graph *g);
/* An allocation that the command may read, and in which a pointer into `mem` stood when it was looked at last; ZO_NONE. */
uint32_t zo_pointer_seen(zo_graph *g, uint32_t mem, const zo_command *c);
void zo_write_add(zo_graph *g, uint32_t index, const zo_write *write);
void zo_learn_free(zo_graph *g);

uint32_t zo_chain_new(zo_graph *g, bool device, uint32_t object);
uint32_t zo_chain_of_carrier(zo_graph *g, uint32_t object);
/* Index of the call with that number, ZO_NONE. */
uint32_t zo_find_call(const zo_graph *g, uint64_t number);

#endif

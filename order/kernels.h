/* SPDX-License-Identifier: MIT */
/*
 * What a launch refers to. It takes the kernel's arguments and flags as they are when it is appended:
 *
 *   an allocation that an argument points into     from there to its end: an access that is `given`
 *   all allocations of the kinds of its flags      an access of the context, one byte for each kind, so that it costs the same
 *                                                  whether there are two allocations or a million
 *   the kernel and its module                      an access of the object
 *
 * Private to the files that build the graph.
 */
#ifndef ZO_KERNELS_H
#define ZO_KERNELS_H

#include "read.h"

/* Ways to memory that no argument names; the first three are ze_kernel_indirect_access_flags_t. */
enum zo_reach {
    ZO_REACH_HOST = 1, ZO_REACH_DEVICE = 2, ZO_REACH_SHARED = 4,
    ZO_REACH_UNKNOWN = 8 /* arguments that the trace does not hold */
};

/* A call that sets something of a kernel. */
void zo_kernel_set(zo_reading *r, uint32_t index);
/* Adds to the accesses of a command that launches. */
void zo_launch(zo_reading *r, uint32_t index, zo_command *c);
void zo_kernel_free(struct zo_kernel *kernel);
/* An allocation is met for the first time. */
void zo_memory_seen(zo_graph *g, const zt_object *memory);
/*
 * As zo_each_user, for executions that may get to an allocation by a pointer in other memory: submitted while it was there. unknown:
 * also those whose arguments are not known, which may have been given it.
 */
bool zo_each_reacher(zo_graph *g, uint32_t mem, bool unknown, zo_seen_fn seen, void *ctx);
/* Whether the command may read the allocation. */
bool zo_may_read(zo_graph *g, const zo_command *c, uint32_t mem);

#endif

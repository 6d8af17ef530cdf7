/* SPDX-License-Identifier: MIT */
/* The binaries among a call's arguments: modules that a program hands to the driver, and natives that it gets back. */
#ifndef ZT_MODULES_H
#define ZT_MODULES_H

#include "format.h"

#define ZT_BINARIES 64u /* of one call; further ones are counted */

typedef struct zt_binary {
    const void *data; /* NULL: it is not in the trace */
    uint64_t size;
    const char *flags; /* that it is to be built with; NULL: none */
    uint64_t flags_length;
    const void *pointer; /* where the arguments have its address */
    const void *length;  /* and its size, 8 bytes, or NULL. An element of an array of sizes: its address in the program, which is for those
                            alone who walk live memory */
    const void *owner;            /* struct that they lie in */
    uint64_t index;               /* among those of one member */
} zt_binary;

typedef struct zt_binaries {
    zt_binary list[ZT_BINARIES];
    unsigned n, left_out;
    const char *format; /* "ZE_MODULE_FORMAT_IL_SPIRV", NULL */
} zt_binaries;

enum zt_binary_kind { ZT_B_NONE, ZT_B_MODULE /* handed in: an ENTER walk */, ZT_B_NATIVE /* got back: a LEAVE walk */ };
int zt_binaries_of(const zt_func *func);
/* `walk`: func, words, phase, result and memory. What the list points to is the memory's; a trace's is
   valid until another call is walked. @return ZT_OK, or why the walk ended early. */
int zt_binaries_read(const zt_walk *walk, zt_binaries *out);

#endif

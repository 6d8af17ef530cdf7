/* SPDX-License-Identifier: MIT */
/*
 * Handles and addresses by kind and generation, as zt_objects has them, in a tenth of the room and without labels: for traces with
 * millions of objects. Feed it every event in order.
 */
#ifndef ZD_NAMES_H
#define ZD_NAMES_H

#include "format.h"

#define ZD_NONE UINT32_MAX

typedef struct zd_object {
    uint64_t value;      /* handle or base address */
    uint32_t creator;    /* index of the call that gave it, ZD_NONE */
    uint32_t generation;
    uint16_t kind;       /* index of the handle's base type; zt_n_types: an allocation */
    uint8_t dead;
    uint8_t times;       /* a command writes time stamps there */
} zd_object;

typedef struct zd_names zd_names;
zd_names *zd_names_new(void);
void zd_names_free(zd_names *names);
/* @return how many, and *objects, to be freed by the caller; the names have none from then on. */
uint32_t zd_names_take(zd_names *names, zd_object **objects);

/* ZD_NONE: there is none. */
uint32_t zd_names_handle(const zd_names *names, const zt_type *type, uint64_t handle);
/* The allocation that contains the address now, else a freed one that did. */
uint32_t zd_names_address(const zd_names *names, uint64_t address, uint64_t *offset);

/* The object with that handle, a new one if there was none; `fresh`: in any case. ZD_NONE: memory is out. */
uint32_t zd_names_set(zd_names *names, const zt_type *type, uint64_t handle, uint32_t creator, bool fresh);
void zd_names_holds_times(zd_names *names, uint32_t object);
bool zd_names_has_times(const zd_names *names, uint32_t object);
void zd_names_end(zd_names *names, uint32_t object);
uint32_t zd_names_allocated(zd_names *names, uint64_t base, uint64_t size, uint32_t creator);
void zd_names_freed(zd_names *names, uint64_t base);

#endif

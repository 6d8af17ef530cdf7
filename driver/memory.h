/* SPDX-License-Identifier: MIT */
/* The window and the table of what lies in it, for those who allocate. All of it wants the lock held. */
#ifndef SOFT_MEMORY_H
#define SOFT_MEMORY_H

#include "soft.h"

#define SOFT_GRAIN 0x10000ull /* the device's page */

/* Counts bytes of the device (NULL: of none) as used. @return false, with nothing counted, if there are not so many. */
bool soft_budget_take(soft_object *device, uint64_t size);
void soft_budget_give_back(soft_object *device, uint64_t size);

/* An address range of `span` bytes with nothing in it, or 0. One page of nothing lies behind each. */
uint64_t soft_range_take(uint64_t span, uint64_t alignment);
void soft_range_give_back(uint64_t base, uint64_t span);
/* A piece of the window's file that was never used before. */
uint64_t soft_file_take(uint64_t span);
void soft_file_punch(uint64_t offset, uint64_t span);
bool soft_window_map(uint64_t base, uint64_t span, uint64_t offset, ze_memory_access_attribute_t access);
void soft_window_unmap(uint64_t base, uint64_t span);

/* Index of the first entry whose base is above the address. */
size_t soft_alloc_above(uint64_t address);
soft_alloc *soft_alloc_at(size_t index); /* NULL behind the last */
/* @return a new entry of the table, or NULL when memory is out. */
soft_alloc *soft_alloc_insert(uint64_t base, uint64_t size, uint64_t span);
void soft_alloc_forget(soft_alloc *a);

#endif

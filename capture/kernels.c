/* SPDX-License-Identifier: MIT */
/*
 * What launches of a kernel reach: the allocations that the words of its arguments point into, and the kinds of memory that
 * its indirect access flags name. Of memory only the host's and the shared matter here.
 */
#include "contents.h"

#include "l0_api.h"

enum {
    BYTES_MAX = 4096,   /* of one argument that are looked at: a structure by value may hold pointers */
    POINTERS_MAX = 4096 /* of one kernel */
};
#define GONE (~0ull)

typedef struct pointer {
    uint64_t address;
    uint32_t argument, pad;
} pointer;

typedef struct kernel {
    uint64_t handle; /* 0: a free place, GONE: one that was used */
    pointer *pointers;
    size_t n, room;
    uint8_t reach;
    bool unknown; /* more pointers than are kept */
} kernel;

static kernel *kernels; /* open addressing by handle */
static size_t n_kernels, kernels_room;

/* Kernels that reach nothing of the host's; a place may push out another, which then goes the long way. */
static _Atomic uint64_t plain[1024];

static _Atomic uint64_t *plain_place(uint64_t handle)
{
    return &plain[handle * 0x9e3779b97f4a7c15ull >> 54];
}

bool zc_kernel_plain(uint64_t handle)
{
    return handle != 0 && atomic_load_explicit(plain_place(handle), memory_order_relaxed) == handle;
}

static void note_plain(uint64_t handle, bool is_plain)
{
    _Atomic uint64_t *const at = plain_place(handle);
    if (is_plain || atomic_load_explicit(at, memory_order_relaxed) == handle)
        atomic_store_explicit(at, is_plain ? handle : 0, memory_order_relaxed);
}

static size_t place(const kernel *table, size_t room, uint64_t handle)
{
    size_t at = (size_t)(handle * 0x9e3779b97f4a7c15ull >> 32) & (room - 1);
    while (table[at].handle != 0 && table[at].handle != handle)
        at = (at + 1) & (room - 1);
    return at;
}

static kernel *find(uint64_t handle)
{
    if (kernels_room == 0 || handle == 0 || handle == GONE)
        return NULL;
    kernel *const k = &kernels[place(kernels, kernels_room, handle)];
    return k->handle == handle ? k : NULL;
}

void zc_kernel_created(uint64_t handle)
{
    zc_kernel_remove(handle);
    if (handle == 0 || handle == GONE)
        return;
    if (n_kernels * 2 >= kernels_room) { /* places of kernels that are gone are left out of the new table */
        size_t live = 0;
        for (size_t i = 0; i < kernels_room; i++)
            live += kernels[i].handle != 0 && kernels[i].handle != GONE;
        size_t room = 256;
        while (room < live * 4)
            room *= 2;
        kernel *const table = zc_map(room * sizeof(*table));
        if (table == NULL)
            return;
        for (size_t i = 0; i < kernels_room; i++)
            if (kernels[i].handle != 0 && kernels[i].handle != GONE)
                table[place(table, room, kernels[i].handle)] = kernels[i];
        if (kernels_room)
            zc_unmap(kernels, kernels_room * sizeof(*kernels));
        kernels = table;
        kernels_room = room;
        n_kernels = live;
    }
    kernels[place(kernels, kernels_room, handle)] = (kernel){.handle = handle};
    n_kernels++;
    note_plain(handle, true);
}

static void forget(kernel *k)
{
    note_plain(k->handle, false);
    if (k->room)
        zc_unmap(k->pointers, k->room * sizeof(*k->pointers));
    *k = (kernel){.handle = GONE};
}

void zc_kernel_remove(uint64_t handle)
{
    kernel *const k = find(handle);
    if (k != NULL)
        forget(k);
}

void zc_kernels_reset(void)
{
    for (size_t i = 0; i < kernels_room; i++)
        if (kernels[i].handle != 0 && kernels[i].handle != GONE)
            forget(&kernels[i]);
}

static void set_argument(kernel *k, uint32_t argument, uint64_t address, uint64_t size)
{
    size_t kept = 0;
    for (size_t i = 0; i < k->n; i++)
        if (k->pointers[i].argument != argument)
            k->pointers[kept++] = k->pointers[i];
    k->n = kept;
    if (address == 0) /* local memory */
        return;
    for (uint64_t at = 0; at + 8 <= size && at < BYTES_MAX; at += 8) {
        pointer p = {.argument = argument};
        memcpy(&p.address, (const char *)(uintptr_t)address + at, 8); /* the driver has read them just now */
        const zc_alloc *const a = zc_alloc_find(p.address);
        if (a == NULL || !(ZC_REACH_ALL & ZC_REACH(a->kind)))
            continue;
        if (k->n >= POINTERS_MAX || !zc_grow_map(&k->pointers, k->n, &k->room, sizeof(*k->pointers), 256)) {
            k->unknown = true;
            return;
        }
        k->pointers[k->n++] = p;
    }
}

static uint8_t reach_of(uint64_t flags)
{
    return (uint8_t)((flags & ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST ? ZC_REACH(ZC_USM_HOST) : 0) |
                     (flags & ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED ? ZC_REACH(ZC_USM_SHARED) : 0));
}

void zc_kernel_set(const zc_call *call)
{
    static _Atomic int flags_type = -1;
    const zt_func *const f = &zt_funcs[call->func];
    const zt_walk w = {.func = f, .words = call->words, .phase = ZT_ENTER, .memory = &zt_live_memory};
    kernel *const k = find(call->words[0]);
    const zt_field *blob = NULL;
    if (k == NULL)
        return;
    if (atomic_load(&flags_type) < 0)
        atomic_store(&flags_type, (int)(zt_type_find("ze_kernel_indirect_access_flags_t") - zt_types));
    for (unsigned i = 0; i < f->n_params; i++)
        if (f->params[i].shape == ZT_BLOB)
            blob = &f->params[i];
    for (unsigned i = 0; i < f->n_params; i++) {
        const zt_field *const p = &f->params[i];
        const bool counts = blob != NULL && blob->count.op == ZT_X_FIELD && blob->count.a == (int)i;
        if (p->shape != ZT_VALUE)
            continue;
        if (p->type == (uint16_t)atomic_load(&flags_type))
            k->reach = reach_of(call->words[p->offset]);
        else if (blob != NULL && !counts && zt_types[p->type].cls == ZT_UINT) { /* its number, where the value is a blob */
            const int64_t size = zt_eval_param(&w, &blob->count);
            set_argument(k, (uint32_t)call->words[p->offset], call->words[blob->offset], size > 0 ? (uint64_t)size : 0);
            break;
        }
    }
    note_plain(k->handle, k->n == 0 && k->reach == 0 && !k->unknown);
}

unsigned zc_kernel_operands(uint64_t handle, zc_operand *out, unsigned n, unsigned room, uint8_t *reach)
{
    const kernel *const k = find(handle);
    if (k == NULL || k->unknown) {
        *reach = ZC_REACH_ALL;
        return n;
    }
    *reach |= k->reach;
    for (size_t i = 0; i < k->n; i++) {
        const zc_alloc *const a = zc_alloc_find(k->pointers[i].address);
        bool there = a == NULL || !(ZC_REACH_ALL & ZC_REACH(a->kind));
        for (unsigned o = 0; o < n && !there; o++)
            there = out[o].argument && out[o].alloc == a->id;
        if (there)
            continue;
        if (n >= room) {
            *reach = ZC_REACH_ALL;
            return n;
        }
        out[n++] = (zc_operand){.addr = a->base, .len = a->size, .alloc = a->id, .access = ZT_IN | ZT_OUT, .argument = 1};
    }
    return n;
}

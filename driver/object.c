/* SPDX-License-Identifier: MIT */
/*
 * Objects live in slots of one reserved region, so that any number a program calls a handle can be told apart from a live
 * one without touching memory that is not ours.
 */
#include "soft.h"

#include <string.h>
#include <sys/mman.h>

#define SLOT 512u
#define SLOTS (1u << 21)

_Static_assert(sizeof(soft_object) <= SLOT, "an object fits its slot");

static uint8_t *region;
static size_t used;       /* slots ever used */
/* Slots to be used again, as a ring. The oldest goes first, and not soon: a handle just destroyed is told from a live one. */
static soft_object **spare;
static size_t first_spare, n_spare;
#define KEEP_BACK 1024u
static uint64_t numbers;

static soft_object *slot(size_t index)
{
    return (soft_object *)(void *)(region + index * SLOT);
}

static bool reserve(void)
{
    if (region != NULL)
        return true;
    void *const p = mmap(NULL, (size_t)SLOT * SLOTS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void *const list = mmap(NULL, sizeof(*spare) * SLOTS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                            -1, 0);
    if (p == MAP_FAILED || list == MAP_FAILED)
        return false;
    spare = list;
    __atomic_store_n(&region, p, __ATOMIC_RELEASE);
    return true;
}

soft_object *soft_object_new_locked(enum soft_kind kind)
{
    if (!reserve())
        return NULL;
    soft_object *object;
    if (n_spare > KEEP_BACK || (n_spare > 0 && used == SLOTS)) {
        object = spare[first_spare];
        first_spare = (first_spare + 1) % SLOTS;
        n_spare--;
    } else if (used < SLOTS) {
        object = slot(used);
        __atomic_store_n(&used, used + 1, __ATOMIC_RELEASE);
    } else {
        return NULL;
    }
    memset(object, 0, sizeof(*object));
    object->number = ++numbers;
    __atomic_store_n(&object->kind, kind, __ATOMIC_RELEASE);
    return object;
}

soft_object *soft_object_get(const void *handle, enum soft_kind kind)
{
    const uintptr_t at = (uintptr_t)handle, base = (uintptr_t)__atomic_load_n(&region, __ATOMIC_ACQUIRE);
    if (base == 0 || at < base || at >= base + __atomic_load_n(&used, __ATOMIC_ACQUIRE) * SLOT || (at - base) % SLOT != 0)
        return NULL;
    soft_object *const object = (soft_object *)at;
    return __atomic_load_n(&object->kind, __ATOMIC_ACQUIRE) == (uint32_t)kind ? object : NULL;
}

static void recycle(soft_object *object)
{
    spare[(first_spare + n_spare++) % SLOTS] = object;
}

void soft_object_kill_locked(soft_object *object)
{
    __atomic_store_n(&object->kind, SOFT_DEAD, __ATOMIC_RELEASE);
    if (object->refs == 0)
        recycle(object);
}

void soft_object_ref_locked(soft_object *object)
{
    if (object != NULL)
        object->refs++;
}

void soft_object_unref_locked(soft_object *object)
{
    if (object != NULL && --object->refs == 0 && object->kind == SOFT_DEAD)
        recycle(object);
}

soft_object *soft_object_next_locked(enum soft_kind kind, size_t *cursor)
{
    while (*cursor < used) {
        soft_object *const object = slot((*cursor)++);
        if (object->kind == (uint32_t)kind)
            return object;
    }
    return NULL;
}

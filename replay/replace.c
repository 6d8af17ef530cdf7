/* SPDX-License-Identifier: MIT */
/* Other modules than those of the recording. */
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "modules.h"

/* Pointers of a call that could not be rebuilt lead out of the plan. */
static const void *plan_at(void *ctx, uint64_t addr, uint64_t len)
{
    const zr_plan *const plan = ctx;
    return zr_arena_has(&plan->arena, addr, len) ? (const void *)(uintptr_t)addr : NULL;
}

static const char *plan_string(void *ctx, uint64_t addr, uint64_t *len)
{
    for (*len = 0; plan_at(ctx, addr + *len, 1) != NULL; ++*len)
        if (((const char *)(uintptr_t)addr)[*len] == '\0')
            return (const char *)(uintptr_t)addr;
    return NULL;
}

static uint64_t creator_of(const zr_plan *plan, uint64_t module)
{
    for (size_t i = 0; i < plan->objects.n_objects; i++) {
        const zr_object *const o = &plan->objects.objects[i];
        if (zt_types[o->type].object != NULL && strcmp(zt_types[o->type].object, "module") == 0 && o->generation == module)
            return o->created;
    }
    return 0;
}

static void patch(const void *where, uint64_t value)
{
    memcpy((void *)(uintptr_t)where, &value, 8);
}

bool zr_plan_replace(zr_plan *plan, zr_replacement *r, char *error, size_t size)
{
    zt_binaries binaries;
    const uint64_t number = r->module ? creator_of(plan, r->module) : r->call;
    const size_t index = number ? zr_find_call(plan, number) : SIZE_MAX;
    if (index == SIZE_MAX && r->module) {
        snprintf(error, size, "there is no module#%llu in the trace", (unsigned long long)r->module);
        return false;
    }
    if (index == SIZE_MAX || zt_binaries_of(plan->calls[index].func) != ZT_B_MODULE) {
        snprintf(error, size, "#%llu is no call that makes a module", (unsigned long long)number);
        return false;
    }
    const zr_call *const call = &plan->calls[index];
    const zt_memory memory = {plan_at, plan_string, plan};
    const zt_walk walk = {.func = call->func, .words = call->words, .phase = ZT_ENTER, .memory = &memory};
    if (call->why_not != NULL) {
        snprintf(error, size, "#%llu can't be made: %s", (unsigned long long)number, call->why_not);
        return false;
    }
    zt_binaries_read(&walk, &binaries);
    if (r->input == 0 || r->input > binaries.n) {
        snprintf(error, size, "#%llu has %u binaries, and none with the number %u", (unsigned long long)number, binaries.n, r->input);
        return false;
    }
    const zt_binary *const old = &binaries.list[r->input - 1];
    void *const copy = zr_alloc(&plan->arena, r->size + 1);
    if (copy == NULL || old->length == NULL || !zr_arena_has(&plan->arena, (uint64_t)(uintptr_t)old->length, 8) ||
        !zr_arena_has(&plan->arena, (uint64_t)(uintptr_t)old->pointer, 8)) {
        snprintf(error, size, copy ? "#%llu does not say how long its binary is" : "#%llu: not enough memory for another module",
                 (unsigned long long)number);
        return false;
    }
    memcpy(copy, r->bytes, r->size);
    patch(old->pointer, (uint64_t)(uintptr_t)copy);
    patch(old->length, r->size);
    r->of = number;
    r->recorded_size = old->size;
    plan->replaced++;
    return true;
}

/* SPDX-License-Identifier: MIT */
/* C4 and, for arguments, A7 are told here, where the state that they are about is kept. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "kernels.h"
#include "l0_api.h"

enum {
    SET_MAX = 1024,     /* arguments of a kernel that are remembered */
    POINTERS_MAX = 128, /* in all of them */
    ACCESSES_MAX = 512, /* of one command */
    BYTES_MAX = 4096,   /* of one argument that are looked at */
    KINDS = 4           /* of enum zo_reach */
};

_Static_assert((int)ZO_REACH_HOST == (int)ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST && (int)ZO_REACH_DEVICE == (int)ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE &&
                   (int)ZO_REACH_SHARED == (int)ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED,
               "flags are kept as they come");

typedef struct pointer {
    uint32_t argument, mem; /* mem: where it led when it was set, ZO_NONE once a stale one has been told of */
    uint64_t address;
} pointer;

struct zo_kernel {
    uint32_t *set; size_t n_set, room_set; /* arguments that have a value */
    pointer *pointers; size_t n_pointers, room_pointers;
    uint32_t reach;  /* enum zo_reach */
    uint32_t launch; /* call that took its arguments last + 1, 0 */
    /* Those of the last launch, for the next one: mostly nothing has changed in between. */
    uint32_t accesses, n_accesses, context, epoch;
};

void zo_kernel_free(struct zo_kernel *k)
{
    if (k == NULL)
        return;
    free(k->set);
    free(k->pointers);
    free(k);
}

static struct zo_kernel *kernel_of(zo_graph *g, uint32_t object)
{
    zo_object *const o = zo_object_at(g, object);
    if (o == NULL)
        return NULL;
    if (o->kernel == NULL && (o->kernel = calloc(1, sizeof(*o->kernel))) == NULL)
        g->out_of_memory = true;
    return o->kernel;
}

/* ------------------------------------------------------------------------------------------------------------- memory */

void zo_memory_seen(zo_graph *g, const zt_object *memory)
{
    g->memory_epoch++;
    if (g->memory_hi == 0 || memory->value < g->memory_lo)
        g->memory_lo = memory->value;
    if (memory->value + memory->size > g->memory_hi)
        g->memory_hi = memory->value + memory->size;
}

/* By the descriptors of the function that allocates: shared memory has one of each. */
static unsigned kind_of(const zt_object *memory)
{
    bool device = false, host = false;
    for (unsigned i = 0; memory->by != NULL && i < memory->by->n_params; i++) {
        const zt_field *const p = &memory->by->params[i];
        device |= p->shape == ZT_ONE && zt_types[p->type].stype == ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC;
        host |= p->shape == ZT_ONE && zt_types[p->type].stype == ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC;
    }
    return device && host ? ZO_REACH_SHARED : device ? ZO_REACH_DEVICE : host ? ZO_REACH_HOST : 0;
}

typedef struct reaching {
    zo_seen_fn seen;
    void *ctx;
    uint64_t since; /* call that made the allocation */
} reaching;

static bool see_reacher(void *ctx, zo_graph *g, uint32_t x, const zo_access *access)
{
    const reaching *const r = ctx;
    return g->calls[g->instances[x].submit].number > r->since && r->seen(r->ctx, g, x, access);
}

bool zo_each_reacher(zo_graph *g, uint32_t mem, bool unknown, zo_seen_fn seen, void *ctx)
{
    const zo_object *const o = zo_object_at(g, mem);
    const zo_object *const context = o != NULL && o->is_memory && o->facts.context ? zo_object_at(g, o->facts.context - 1) : NULL;
    if (context == NULL || context->facts.reached == 0)
        return false;
    const unsigned ways = (kind_of(o->base) | (unknown ? ZO_REACH_UNKNOWN : 0)) & context->facts.reached;
    reaching r = {seen, ctx, o->base->created};
    for (unsigned k = 0; k < KINDS; k++) {
        const zo_access way = {.mem = o->facts.context - 1, .lo = k, .hi = k + 1};
        if ((ways & 1u << k) && zo_each_user(g, &way, see_reacher, &r))
            return true;
    }
    return false;
}

bool zo_may_read(zo_graph *g, const zo_command *c, uint32_t mem)
{
    const zo_object *const o = zo_object_at(g, mem);
    const unsigned kind = o != NULL && o->is_memory ? kind_of(o->base) : 0;
    for (uint32_t i = 0; i < c->n_accesses; i++) {
        const zo_access *const a = &g->accesses[c->accesses + i];
        if (a->mem == mem || (kind != 0 && o->facts.context == a->mem + 1 && 1u << a->lo == kind))
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------------------------------------ setting */

/* C4: what was appended has taken its arguments, and this one had no value. */
static void came_too_late(zo_graph *g, uint32_t index, uint32_t object, uint32_t argument, uint32_t launch)
{
    const zt_object *const o = zo_object_at(g, object)->base;
    if (o->by == NULL) /* its beginning is not in the trace */
        return;
    zo_finding *const f = zo_found_call(g, "C4", index, object, ZO_ERROR);
    ZO_SAY(f, "sets argument %u of %s#%u for the first time, and #%llu has launched it without: a launch takes its arguments when it is appended",
           argument, o->kind, o->generation, zo_number(g, launch));
    zo_finding_call(f, zo_number(g, launch));
    ZO_MISSING(f, "#%llu before #%llu", zo_number(g, index), zo_number(g, launch));
    ZO_REPAIR(f, "set all arguments before the append");
}

static void set_argument(zo_reading *r, uint32_t index, uint32_t object, struct zo_kernel *k, uint32_t argument, const zt_field *blob)
{
    zo_graph *const g = r->g;
    size_t at = 0, kept = 0;
    while (at < k->n_set && k->set[at] != argument)
        at++;
    if (at == k->n_set) {
        if (k->launch != 0 && k->n_set < SET_MAX)
            came_too_late(g, index, object, argument, k->launch - 1);
        if (k->n_set < SET_MAX)
            ZO_PUSH(g, k->set, k->n_set, k->room_set, argument);
    }
    for (size_t i = 0; i < k->n_pointers; i++)
        if (k->pointers[i].argument != argument)
            k->pointers[kept++] = k->pointers[i];
    k->n_pointers = kept;
    const int64_t size = zt_eval_param(&r->walk, &blob->count);
    const uint64_t address = r->call->words[blob->offset], n = size < 0 ? 0 : size > BYTES_MAX ? BYTES_MAX : (uint64_t)size;
    const uint8_t *const bytes = address != 0 && n >= 8 ? r->memory.at(r->memory.ctx, address, n) : NULL;
    for (uint64_t i = 0; bytes != NULL && i + 8 <= n; i += 8) { /* a structure by value may hold pointers */
        pointer p = {.argument = argument};
        memcpy(&p.address, bytes + i, 8);
        if (p.address < g->memory_lo || p.address >= g->memory_hi)
            continue;
        p.mem = zo_object_index(g, zt_object_of_address(g->names, p.address));
        if (p.mem == ZO_NONE)
            continue;
        if (k->n_pointers >= zo_limit(g, POINTERS_MAX)) {
            g->doubts.accesses++;
            break;
        }
        ZO_PUSH(g, k->pointers, k->n_pointers, k->room_pointers, p);
    }
}

void zo_kernel_set(zo_reading *r, uint32_t index)
{
    const zt_func *const f = r->call->func;
    const uint32_t object = zo_read_object(r, ZT_R_KERNEL);
    struct zo_kernel *const k = kernel_of(r->g, object);
    const zt_field *blob = NULL;
    if (k == NULL)
        return;
    k->n_accesses = 0;
    for (unsigned i = 0; i < f->n_params; i++)
        if (f->params[i].shape == ZT_BLOB)
            blob = &f->params[i];
    const uint16_t flags = (uint16_t)(zt_type_find("ze_kernel_indirect_access_flags_t") - zt_types);
    for (unsigned i = 0; i < f->n_params; i++) {
        const zt_field *const p = &f->params[i];
        const bool counts = blob != NULL && blob->count.op == ZT_X_FIELD && blob->count.a == (int)i;
        if (p->shape != ZT_VALUE)
            continue;
        if (p->type == flags)
            k->reach = (uint32_t)r->call->words[p->offset] & (ZO_REACH_HOST | ZO_REACH_DEVICE | ZO_REACH_SHARED);
        if (blob != NULL && !counts && zt_types[p->type].cls == ZT_UINT) { /* its number, where the value is a blob */
            set_argument(r, index, object, k, (uint32_t)r->call->words[p->offset], blob);
            return;
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------- launch */

/* Arguments that come with the launch: how many, and how long, only the kernel knows. */
static bool brings_arguments(const zt_func *f)
{
    for (unsigned i = 0; i < f->n_params; i++)
        if (f->params[i].shape == ZT_ARRAY && f->params[i].count.op == ZT_X_LOOKUP)
            return true;
    return false;
}

static void add(zo_graph *g, zo_command *c, zo_access access)
{
    access.given = 1;
    if (c->n_accesses >= ACCESSES_MAX)
        g->doubts.accesses++;
    else if (ZO_PUSH(g, g->accesses, g->n_accesses, g->room_accesses, access))
        c->n_accesses++;
}

/* A7: the argument was set, then the memory freed. */
static void stale(zo_graph *g, uint32_t index, uint32_t object, pointer *p)
{
    const zt_object *const mem = zo_object_at(g, p->mem)->base, *const o = zo_object_at(g, object)->base;
    zo_finding *const f = zo_found_call(g, "A7", index, p->mem, ZO_WARNING);
    p->mem = ZO_NONE;
    if (f == NULL)
        return;
    f->class = ZO_POSSIBLE;
    ZO_SAY(f, "launches %s#%u, whose argument %u points into mem#%u, which #%llu has freed; whether it uses it is not known", o->kind, o->generation,
           p->argument, mem->generation, (unsigned long long)mem->destroyed);
    zo_finding_call(f, mem->destroyed);
    ZO_REPAIR(f, "free the memory behind the last use of it, or set the argument anew");
}

static void add_arguments(zo_graph *g, uint32_t index, uint32_t object, const struct zo_kernel *k, zo_command *c)
{
    for (size_t i = 0; i < k->n_pointers; i++) {
        pointer *const p = &k->pointers[i];
        const zt_object *const mem = p->mem == ZO_NONE ? NULL : zt_object_of_address(g->names, p->address);
        if (mem != NULL && mem->destroyed != 0)
            stale(g, index, object, p);
        else if (mem != NULL)
            add(g, c, (zo_access){.mem = zo_object_index(g, mem), .lo = p->address - mem->value, .hi = mem->size, .write = 1});
    }
}

static void launch_one(zo_reading *r, uint32_t index, zo_command *c, uint32_t object, bool alone)
{
    zo_graph *const g = r->g;
    struct zo_kernel *const k = kernel_of(g, object);
    const uint32_t context = zo_object_at(g, c->list)->facts.context;
    const bool own = brings_arguments(r->call->func);
    if (k == NULL)
        return;
    if (!own)
        k->launch = index + 1;
    if (alone && !own && k->n_accesses > 0 && k->context == context && k->epoch == g->memory_epoch) {
        c->accesses = k->accesses;
        c->n_accesses = k->n_accesses;
        return;
    }
    if (!own)
        add_arguments(g, index, object, k, c);
    const uint32_t module = zo_object_at(g, object)->parent;
    add(g, c, (zo_access){.mem = object, .hi = 1});
    if (module != ZO_NONE)
        add(g, c, (zo_access){.mem = module, .hi = 1});
    const unsigned ways = k->reach | (own ? ZO_REACH_UNKNOWN : 0);
    for (unsigned i = 0; context != 0 && i < KINDS; i++)
        if (ways & 1u << i)
            add(g, c, (zo_access){.mem = context - 1, .lo = i, .hi = i + 1});
    if (context != 0)
        zo_object_at(g, context - 1)->facts.reached |= (uint8_t)ways;
    if (alone && !own) {
        k->accesses = c->accesses;
        k->n_accesses = c->n_accesses;
        k->context = context;
        k->epoch = g->memory_epoch;
    }
}

void zo_launch(zo_reading *r, uint32_t index, zo_command *c)
{
    const zt_field *field = zt_param_by_role(r->call->func, ZT_R_KERNEL);
    uint32_t n;
    if (field->shape == ZT_VALUE) {
        launch_one(r, index, c, zo_read_object(r, ZT_R_KERNEL), c->n_accesses == 0);
        return;
    }
    const void *const handles = zo_read_array(r, ZT_R_KERNEL, &field, &n);
    for (uint32_t i = 0; i < n; i++)
        launch_one(r, index, c, zo_read_handle(r, field, zt_element(handles, i)), false);
}

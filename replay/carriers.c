/* SPDX-License-Identifier: MIT */
/*
 * What runs one command when its turn has come: a list of its own on a queue of its own,
 *
 *     [wait for the gate] [the command, with the waits and the signal it was recorded with] [barrier that signals `done`]
 *
 * Gates are regular events that the host signals, and stay open. Lists and events are never used again: the driver may still look
 * at them when `done` has been signalled.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "forced.h"
#include "l0_api.h"

#define EVENTS_OF_POOL 256u
#define MOST_IN_FLIGHT 8192u
#define ALREADY_FAULTED_NS 20000000ull

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int64_t zr_ask(zr_run *run, const char *name, const uint64_t *words)
{
    __atomic_add_fetch(&run->report->injected, 1, __ATOMIC_RELAXED);
    return zr_call_by_name(run, name, words);
}

/* ------------------------------------------------------------------------------------------------------------ making */

static zr_pool *pool_of(zr_run *run, zr_carriers *c, uint64_t context)
{
    zr_pool *pool = NULL;
    for (size_t i = 0; i < c->n_pools && pool == NULL; i++)
        if (c->pools[i].context == context)
            pool = &c->pools[i];
    if (pool == NULL) {
        if (!zr_grow((void **)&c->pools, c->n_pools, &c->room_pools, sizeof(*c->pools)))
            return NULL;
        pool = &c->pools[c->n_pools++];
        *pool = (zr_pool){.context = context, .used = EVENTS_OF_POOL};
    }
    if (pool->used < EVENTS_OF_POOL)
        return pool;
    const ze_event_pool_desc_t desc = {
        .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE, .count = EVENTS_OF_POOL};
    if (ZR_ASK(run, "zeEventPoolCreate", context, ZR_REF(desc), 0, 0, ZR_REF(pool->pool)) != 0)
        return NULL;
    pool->used = 0;
    return pool;
}

static uint64_t new_event(zr_run *run, zr_carriers *c, uint64_t context)
{
    zr_pool *const pool = pool_of(run, c, context);
    uint64_t event = 0;
    if (pool == NULL)
        return 0;
    const ze_event_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .index = pool->used++,
                                  .signal = ZE_EVENT_SCOPE_FLAG_HOST, .wait = ZE_EVENT_SCOPE_FLAG_HOST};
    return ZR_ASK(run, "zeEventCreate", pool->pool, ZR_REF(desc), ZR_REF(event)) == 0 ? event : 0;
}

static uint32_t list_flags(const zr_where *where)
{
    static const uint32_t both[][2] = {
        {ZE_COMMAND_QUEUE_FLAG_EXPLICIT_ONLY, ZE_COMMAND_LIST_FLAG_EXPLICIT_ONLY},
        {ZE_COMMAND_QUEUE_FLAG_IN_ORDER, ZE_COMMAND_LIST_FLAG_IN_ORDER},
        {ZE_COMMAND_QUEUE_FLAG_COPY_OFFLOAD_HINT, ZE_COMMAND_LIST_FLAG_COPY_OFFLOAD_HINT},
    };
    uint32_t flags = 0;
    if (!where->of_queue)
        return where->flags;
    for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++)
        if (where->flags & both[i][0])
            flags |= both[i][1];
    return flags;
}

uint64_t zr_new_list(zr_run *run, const zr_where *where)
{
    uint64_t list = 0;
    const ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC,
                                         .pNext = where->of_queue ? NULL : where->next,
                                         .commandQueueGroupOrdinal = where->ordinal, .flags = list_flags(where)};
    return ZR_ASK(run, "zeCommandListCreate", where->context, where->device, ZR_REF(desc), ZR_REF(list)) == 0 ? list : 0;
}

int64_t zr_carrier_add(zr_run *run, zr_carriers *c, const zr_call *call, uint32_t execution, uint32_t list, const zr_where *where,
                       const char *name, uint64_t *words, unsigned n_words, unsigned list_word)
{
    zr_carrier new = {.call = (size_t)(call - run->plan->calls), .execution = execution, .list = list, .on = ZR_NONE,
                      .handle = zr_new_list(run, where), .gate = new_event(run, c, where->context),
                      .done = new_event(run, c, where->context)};
    uint64_t own[256];
    if (new.handle == 0 || new.gate == 0 || new.done == 0 || n_words > 256 ||
        !zr_grow((void **)&c->all, c->n, &c->room, sizeof(*c->all))) {
        zr_stop(run, ZR_CANNOT, "the command of call #%llu %s cannot be given a list of its own on the driver %s",
                (unsigned long long)call->number, call->func->name, run->target.path);
        return 0;
    }
    memcpy(own, words, n_words * sizeof(*own));
    own[list_word] = new.handle;
    ZR_ASK(run, "zeCommandListAppendWaitOnEvents", new.handle, 1, ZR_REF(new.gate));
    const int64_t result = zr_call_by_name(run, name, own);
    ZR_ASK(run, "zeCommandListAppendBarrier", new.handle, new.done, 0, 0);
    ZR_ASK(run, "zeCommandListClose", new.handle);
    c->all[c->n++] = new;
    return result;
}

/* ----------------------------------------------------------------------------------------------------------- running */

static bool same_place(const zr_where *a, const zr_where *b)
{
    return a->context == b->context && a->device == b->device && a->next == b->next && a->ordinal == b->ordinal &&
           a->index == b->index && a->flags == b->flags && a->priority == b->priority;
}

/* Each is on a queue of its own, at which a driver looks in each call. */
static bool has_room(zr_run *run, zr_carriers *c, const zr_carrier *next)
{
    size_t kept = 0;
    for (size_t i = 0; c->n_flying >= MOST_IN_FLIGHT && i < c->n_flying; i++) {
        zr_carrier *const carrier = &c->all[c->flying[i]];
        if ((carrier->state == ZR_SUBMITTED || carrier->state == ZR_OPENED) && !zr_carrier_ended(run, carrier))
            c->flying[kept++] = c->flying[i];
    }
    if (c->n_flying < MOST_IN_FLIGHT)
        return true;
    c->n_flying = kept;
    if (kept < MOST_IN_FLIGHT)
        return true;
    const zr_call *const call = &run->plan->calls[next->call];
    zr_stop(run, ZR_CANNOT, "with the command of call #%llu %s there are %u in flight at once, and no more can be held back one by one",
            (unsigned long long)call->number, call->func->name, MOST_IN_FLIGHT);
    return false;
}

int64_t zr_carrier_submit(zr_run *run, zr_carriers *c, zr_carrier *carrier, uint32_t on, const zr_where *where)
{
    int64_t result = 0;
    if (!has_room(run, c, carrier))
        return 0;
    atomic_fetch_add_explicit(&run->shared->progress, 1, memory_order_relaxed); /* one call may submit thousands */
    carrier->on = on;
    carrier->at = *where;
    for (size_t i = c->n_spares; i-- > 0 && carrier->queue == 0;) {
        if (!same_place(&c->spares[i].at, where))
            continue;
        carrier->queue = c->spares[i].queue;
        c->spares[i] = c->spares[--c->n_spares];
    }
    if (carrier->queue == 0) {
        const ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .pNext = where->next,
                                              .ordinal = where->ordinal, .index = where->index,
                                              .flags = where->flags & ~(uint32_t)ZE_COMMAND_QUEUE_FLAG_IN_ORDER,
                                              .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
                                              .priority = (ze_command_queue_priority_t)where->priority};
        result = ZR_ASK(run, "zeCommandQueueCreate", where->context, where->device, ZR_REF(desc), ZR_REF(carrier->queue));
    }
    if (result == 0)
        result = ZR_ASK(run, "zeCommandQueueExecuteCommandLists", carrier->queue, 1, ZR_REF(carrier->handle), 0);
    carrier->state = result == 0 ? ZR_SUBMITTED : ZR_LOST;
    if (result == 0) {
        if (!zr_grow((void **)&c->flying, c->n_flying, &c->room_flying, sizeof(*c->flying)))
            zr_stop(run, ZR_CANNOT, "not enough memory for the commands in flight");
        else
            c->flying[c->n_flying++] = (size_t)(carrier - c->all);
    }
    return result;
}

bool zr_carrier_ended(zr_run *run, zr_carrier *carrier)
{
    if (carrier->state == ZR_OPENED && ZR_ASK(run, "zeEventQueryStatus", carrier->done) == 0)
        carrier->state = ZR_ENDED;
    return carrier->state == ZR_ENDED;
}

static void give_back(zr_carriers *c, zr_carrier *carrier)
{
    if (carrier->queue != 0 && zr_grow((void **)&c->spares, c->n_spares, &c->room_spares, sizeof(*c->spares)))
        c->spares[c->n_spares++] = (zr_spare){carrier->at, carrier->queue};
    carrier->queue = 0;
}

void zr_carrier_open(zr_run *run, zr_carriers *c, zr_carrier *carrier)
{
    if (carrier->state != ZR_SUBMITTED)
        return;
    const uint64_t begin = now_ns();
    const uint64_t limit = c->faulted && c->limit_ns > ALREADY_FAULTED_NS ? ALREADY_FAULTED_NS : c->limit_ns;
    carrier->state = ZR_OPENED;
    carrier->opened = ++c->opened;
    /* if the driver dies of it, this is the call to name */
    atomic_store_explicit(&run->shared->current, (uint_fast32_t)carrier->call, memory_order_relaxed);
    atomic_fetch_add_explicit(&run->shared->progress, 1, memory_order_relaxed);
    ZR_ASK(run, "zeEventHostSignal", carrier->gate);
    for (;;) {
        if (zr_carrier_ended(run, carrier)) {
            give_back(c, carrier);
            return;
        }
        if (!c->faulted && ZR_ASK(run, "zeDeviceGetStatus", carrier->at.device) != 0) {
            c->faulted = true; /* it may have been this one or what it let go on: either way it is over */
            if (!zr_carrier_ended(run, carrier))
                carrier->state = ZR_LOST;
            return;
        }
        if (now_ns() - begin > limit)
            break;
        atomic_fetch_add_explicit(&run->shared->progress, 1, memory_order_relaxed);
        nanosleep(&(struct timespec){0, 100000}, NULL);
    }
    if (c->faulted) /* on an engine that is gone nothing ends */
        carrier->state = ZR_LOST;
}

void zr_carriers_gone(zr_run *run, zr_carriers *c, uint32_t object, bool reset)
{
    const zr_object *const o = &run->plan->objects.objects[object];
    const char *const kind = zt_types[o->type].object ? zt_types[o->type].object : "";
    if (strcmp(kind, "context") == 0) { /* another one may get its handle */
        for (size_t i = c->n_spares; i-- > 0;)
            if (c->spares[i].at.context == o->live)
                c->spares[i] = c->spares[--c->n_spares];
        for (size_t i = c->n_pools; i-- > 0;)
            if (c->pools[i].context == o->live)
                c->pools[i] = c->pools[--c->n_pools];
        return;
    }
    const bool queue = strcmp(kind, "queue") == 0 || o->immediate;
    size_t kept = 0;
    for (size_t i = 0; i < c->n_flying; i++) {
        zr_carrier *const carrier = &c->all[c->flying[i]];
        if ((carrier->state != ZR_SUBMITTED && carrier->state != ZR_OPENED) || carrier->queue == 0 || zr_carrier_ended(run, carrier))
            continue;
        c->flying[kept++] = c->flying[i];
        if (queue && !reset && carrier->on == object) {
            ZR_ASK(run, "zeCommandQueueDestroy", carrier->queue);
            carrier->queue = 0;
        } else if (!queue && carrier->list == object) {
            ZR_ASK(run, reset ? "zeCommandListReset" : "zeCommandListDestroy", carrier->handle);
        }
    }
    c->n_flying = kept;
}

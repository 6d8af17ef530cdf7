/* SPDX-License-Identifier: MIT */
/*
 * Who comes when. With one thread calls are made in the order of their ENTERs, but for those that another thread's call
 * had to help to their end: a wait whose event was signalled meanwhile would never return if it were made alone. They
 * come right behind the last call that may have helped. With several threads each call waits for those that had
 * returned before it began; what overlapped may overlap.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 4096

typedef struct lane {
    uint32_t id;        /* as recorded */
    uint32_t calls;     /* entered */
    uint32_t completed; /* calls at its beginning that have ended */
    uint32_t *known;    /* by lane: how many of its calls are already waited for */
    uint32_t n_known;
} lane;

struct zr_orderer {
    lane *lanes;
    size_t n_lanes, room_lanes;
    uint64_t event;
    struct place {
        uint64_t key;
        uint32_t index;
    } * places; /* by call */
    size_t n_places, room_places;
    bool moved;
};

zr_orderer *zr_orderer_new(void)
{
    return calloc(1, sizeof(zr_orderer));
}

void zr_orderer_free(zr_orderer *o)
{
    if (o == NULL)
        return;
    for (size_t i = 0; i < o->n_lanes; i++)
        free(o->lanes[i].known);
    free(o->lanes);
    free(o->places);
    free(o);
}

static lane *lane_of(zr_orderer *o, uint32_t thread, uint32_t *number)
{
    for (size_t i = o->n_lanes; i-- > 0;) {
        if (o->lanes[i].id == thread) {
            *number = (uint32_t)i;
            return &o->lanes[i];
        }
    }
    if (o->n_lanes >= MAX_THREADS || !zr_grow((void **)&o->lanes, o->n_lanes, &o->room_lanes, sizeof(*o->lanes)))
        return NULL;
    *number = (uint32_t)o->n_lanes;
    lane *const fresh = &o->lanes[o->n_lanes++];
    *fresh = (lane){.id = thread};
    return fresh;
}

bool zr_orderer_enter(zr_orderer *o, zr_plan *plan, zr_raw *raw, uint32_t thread)
{
    uint32_t number;
    lane *const mine = lane_of(o, thread, &number);
    if (mine == NULL)
        return false;
    zr_call *const call = &plan->calls[raw->index];
    call->thread = number;
    raw->position = mine->calls++;
    if (mine->n_known < o->n_lanes) {
        uint32_t *const known = realloc(mine->known, o->n_lanes * sizeof(*known));
        if (known == NULL)
            return false;
        memset(known + mine->n_known, 0, (o->n_lanes - mine->n_known) * sizeof(*known));
        mine->known = known;
        mine->n_known = (uint32_t)o->n_lanes;
    }
    for (uint32_t i = 0; i < o->n_lanes; i++)
        call->n_deps += i != number && o->lanes[i].completed > mine->known[i];
    if (call->n_deps > 0) {
        call->deps = zr_alloc(&plan->arena, call->n_deps * sizeof(*call->deps));
        if (call->deps == NULL)
            return false;
        uint32_t n = 0;
        for (uint32_t i = 0; i < o->n_lanes; i++) {
            if (i != number && o->lanes[i].completed > mine->known[i]) {
                mine->known[i] = o->lanes[i].completed;
                call->deps[n++] = (zr_dep){i, o->lanes[i].completed};
            }
        }
    }
    if (!zr_grow((void **)&o->places, o->n_places, &o->room_places, sizeof(*o->places)))
        return false;
    o->places[o->n_places++] = (struct place){++o->event, (uint32_t)raw->index};
    return true;
}

/* Whether `helper`, made by another thread while `call` was open, may have let it return. */
static bool may_help(const zr_plan *plan, const zr_call *helper, const zr_call *call)
{
    const int kind = helper->func->kind;
    if (helper->thread == call->thread || call->func->kind == ZT_K_HOST_SIGNAL)
        return false;
    if (kind == ZT_K_HOST_SIGNAL)
        return true;
    /* work that is submitted later can end a wait for an event, but not one for a queue or fence */
    const char *const object = call->self == ZR_NONE ? NULL : zt_types[plan->objects.objects[call->self].type].object;
    return (kind == ZT_K_EXECUTE || kind == ZT_K_APPEND) && call->func->kind == ZT_K_SYNC && object != NULL &&
           strcmp(object, "event") == 0;
}

static void move_behind(zr_orderer *o, zr_plan *plan, uint64_t index, uint64_t now)
{
    plan->calls[index].flags |= ZR_LATE;
    o->places[index].key = now;
    o->moved = true;
}

void zr_orderer_leave(zr_orderer *o, zr_plan *plan, const zr_raw *raw, zr_raw **open, size_t n_open)
{
    const zr_call *const call = &plan->calls[raw->index];
    const uint64_t now = ++o->event;
    if (!(call->flags & ZR_SKIP) && o->lanes[call->thread].completed <= raw->position)
        o->lanes[call->thread].completed = raw->position + 1;
    for (size_t i = 0; i < n_open; i++) {
        const uint64_t other = open[i]->index;
        if (other < raw->index && may_help(plan, call, &plan->calls[other]))
            move_behind(o, plan, other, now);
        else if (other > raw->index && may_help(plan, &plan->calls[other], call))
            move_behind(o, plan, raw->index, now); /* it returned before its helper did */
    }
}

static int compare(const void *a, const void *b)
{
    const struct place *const x = a, *const y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

bool zr_orderer_finish(zr_orderer *o, zr_plan *plan)
{
    plan->n_threads = (uint32_t)o->n_lanes;
    plan->order = malloc((plan->n_calls + 1) * sizeof(*plan->order));
    plan->thread_calls = malloc((plan->n_calls + 1) * sizeof(*plan->thread_calls));
    plan->per_thread = calloc(o->n_lanes + 1, sizeof(*plan->per_thread));
    size_t *const at = calloc(o->n_lanes + 1, sizeof(*at));
    if (plan->order == NULL || plan->thread_calls == NULL || plan->per_thread == NULL || at == NULL) {
        free(at);
        return false;
    }
    if (o->moved)
        qsort(o->places, o->n_places, sizeof(*o->places), compare);
    for (size_t i = 0; i < o->n_places; i++)
        plan->order[i] = o->places[i].index;
    for (size_t i = 0, sum = 0; i < o->n_lanes; i++) {
        plan->per_thread[i] = o->lanes[i].calls;
        at[i] = sum;
        sum += o->lanes[i].calls;
    }
    for (size_t i = 0; i < plan->n_calls; i++)
        plan->thread_calls[at[plan->calls[i].thread]++] = (uint32_t)i;
    free(at);
    return true;
}

/* SPDX-License-Identifier: MIT */
/* H and J: threads that share an object, processes that share none. */
#include <string.h>

#include "check.h"

/* ---------------------------------------------------------------------------------------------------------------- H */

static void overlaps(zo_graph *g, uint32_t index)
{
    const zo_call *const c = &g->calls[index];
    size_t kept = 0;
    for (size_t i = 0; i < g->n_open; i++) {
        const zo_call *const other = &g->calls[g->open[i]];
        if ((other->flags & ZO_RETURNED) && other->leave_ns <= c->enter_ns)
            continue;
        g->open[kept++] = g->open[i];
        if (c->object == ZO_NONE || c->object != other->object || c->chain == other->chain ||
            !(c->func->flags & ZT_F_ONE_THREAD))
            continue;
        zo_finding *const f = zo_found_call(g, "H", index, c->object, ZO_ERROR);
        zo_finding_call(f, other->number);
        ZO_SAY(f, "two threads are inside calls on one object, which the specification forbids for these functions");
        ZO_MISSING(f, "a lock of the program around both");
        ZO_REPAIR(f, "a mutex, or an object of its own for each thread");
    }
    g->n_open = kept;
    if (c->func->flags & ZT_F_ONE_THREAD)
        ZO_PUSH(g, g->open, g->n_open, g->room_open, index);
}

/* Another thread used it before, and no call orders that: locks, joins and starts of threads are in no trace. */
static void shared(zo_graph *g, uint32_t index)
{
    const zo_call *const c = &g->calls[index];
    zo_object *const o = zo_object_at(g, c->object);
    if (o == NULL || !(c->func->flags & ZT_F_ONE_THREAD))
        return;
    zo_facts *const facts = &o->facts;
    for (int i = 0; i < 2 && !facts->shared; i++) {
        const zo_call *const other = facts->users[i] ? &g->calls[facts->users[i] - 1] : NULL;
        if (other == NULL || other->chain == c->chain ||
            zo_before(g, (facts->users[i] - 1) | ZO_CALL_BIT, index | ZO_CALL_BIT))
            continue;
        facts->shared = true; /* once for an object */
        zo_finding *const f = zo_found(g, "H", ZO_POSSIBLE, ZO_WARNING);
        if (f == NULL)
            return;
        zo_finding_node(g, f, index | ZO_CALL_BIT);
        zo_finding_call(f, other->number);
        zo_finding_object(g, f, c->object);
        ZO_SAY(f, "two threads use one object, and no call orders them; a lock, a start or a join of a thread would, "
                  "which a trace of calls "
                  "does not show");
        ZO_MISSING(f, "a lock of the program around both, if there is none");
        ZO_REPAIR(f, "a mutex, or an object of its own for each thread");
    }
    if (facts->users[0] != 0 && g->calls[facts->users[0] - 1].chain != c->chain)
        facts->users[1] = facts->users[0];
    facts->users[0] = index + 1;
}

void zo_threads_enter(zo_graph *g, uint32_t index)
{
    overlaps(g, index);
    shared(g, index);
}

/* ---------------------------------------------------------------------------------------------------------------- J */

/* A way to find drivers: hands out their handles, and is given none. */
static bool gives_drivers(const zt_func *f)
{
    bool gives = false;
    for (unsigned i = 0; i < f->n_params; i++) {
        const bool handle = zt_types[f->params[i].type].cls == ZT_HANDLE;
        if (handle && f->params[i].shape == ZT_VALUE)
            return false;
        gives |= handle && f->params[i].role == ZT_R_GET;
    }
    return gives;
}

static void both_ways(zo_graph *g, uint32_t index)
{
    zo_memory_of_rules *const m = &g->rules;
    const zt_func *const f = g->calls[index].func;
    if (f->ns != ZT_NS_ZE || !gives_drivers(f))
        return;
    uint32_t *const mine = f->kind == ZT_K_INIT ? &m->init_drivers : &m->driver_get;
    const uint32_t other = f->kind == ZT_K_INIT ? m->driver_get : m->init_drivers;
    if (*mine == 0 && other != 0) {
        zo_finding *const finding = zo_found_call(g, "J", index, ZO_NONE, ZO_WARNING);
        ZO_SAY(finding, "finds drivers by %s, and #%llu by %s: a program is to use one of the two", f->name,
               zo_number(g, other - 1), g->calls[other - 1].func->name);
        zo_finding_call(finding, zo_number(g, other - 1));
        ZO_REPAIR(finding, "zeInitDrivers alone, or zeInit and zeDriverGet");
    }
    if (*mine == 0)
        *mine = index + 1;
}

void zo_process_enter(zo_graph *g, uint32_t index)
{
    zo_memory_of_rules *const m = &g->rules;
    const zo_call *const c = &g->calls[index];
    if (c->func->kind == ZT_K_INIT && m->init == 0 && !(c->flags & ZO_FAILED))
        m->init = index + 1;
    both_ways(g, index);
    /* a trace that was cut may have lost the beginning */
    if (c->func->kind == ZT_K_INIT || c->func->ns != ZT_NS_ZE || m->init != 0 || m->first != 0 ||
        g->calls[0].number != 1)
        return;
    m->first = index + 1;
    zo_finding *const f = zo_found_call(g, "J", index, ZO_NONE, ZO_ERROR);
    ZO_SAY(f, "a call before any zeInit or zeInitDrivers of this process; a child of fork has to begin anew, and "
              "nothing of its parent's is its own");
    ZO_MISSING(f, "an initialisation before #%llu", zo_number(g, index));
    ZO_REPAIR(f, "zeInit in this process, and objects of its own; or fork before the first call");
}

/* SPDX-License-Identifier: MIT */
/* G: results that were not heeded, and what results mean. */
#include <string.h>

#include "check.h"
#include "l0_api.h"

#define LOOK_BACK  4096u /* executions before an unheeded wait that are looked at */
#define LOOK_AHEAD 256u  /* and behind it */
#define LOOK_FOR   64u   /* executions that one unheeded wait was for */
#define STEPS_MAX  (1u << 28)

/* G4: the one code stands for many reasons. */
const char *zo_cause(int64_t result, int kind)
{
    const bool submit = kind == ZT_K_EXECUTE || kind == ZT_K_APPEND;
    switch (result) {
    case ZE_RESULT_ERROR_UNKNOWN:
        return submit ? "ZE_RESULT_ERROR_UNKNOWN from a submit: the kernel refused it, mostly because the engine was "
                        "stopped by an earlier fault"
                      : "";
    case ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY:
        return submit ? "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY from a submit: the kernel refused it; memory need not be "
                        "short"
                      : "";
    case ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY:
        return submit
                   ? "ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY from a submit: the kernel refused it; memory need not be short"
                   : "";
    case ZE_RESULT_ERROR_DEVICE_LOST:
        return "ZE_RESULT_ERROR_DEVICE_LOST: the work of an earlier submit faulted or hung; the context has to be made "
               "anew";
    default:
        return "";
    }
}

/* Whether the wait is for that execution, among others. */
static bool covers(const zo_graph *g, const zo_call *wait, const zo_object *o, const zo_instance *x)
{
    bool is = o->chain == x->chain || (o->is_event && g->commands[x->command].signal == wait->object);
    for (size_t k = 0; o->is_fence && k < o->n_submits && !is; k++)
        is = o->submits[k].chain == x->chain && o->submits[k].lo <= x->position && x->position <= o->submits[k].hi;
    return is;
}

static void unheeded(zo_graph *g, uint32_t wait, uint32_t later, uint32_t x)
{
    zo_finding *const f = zo_found_call(g, "G2", wait, g->calls[wait].object, ZO_ERROR);
    if (f == NULL)
        return;
    zo_finding_node(g, f, later | ZO_CALL_BIT);
    zo_finding_node(g, f, x);
    ZO_SAY(f, "said NOT_READY, and #%llu goes on as if the work were done", zo_number(g, later));
    ZO_MISSING(f, "a wait that succeeded before #%llu", zo_number(g, later));
    ZO_REPAIR(f, "a timeout of UINT64_MAX (nanoseconds), and a look at the result");
}

/* What the wait was for is in flight at a later finding of the same thread. */
static bool found_already(zo_graph *g, uint32_t index)
{
    const zo_call *const wait = &g->calls[index];
    const zo_object *const o = zo_object_at(g, wait->object);
    for (size_t i = 0; i < g->n_conflicts; i++) {
        const zo_conflict *const c = &g->conflicts[i];
        if (c->a & ZO_CALL_BIT)
            continue;
        const uint32_t later = c->b & ZO_CALL_BIT ? c->b & ~ZO_CALL_BIT : g->instances[c->b].submit;
        const zo_instance *const x = &g->instances[c->a];
        if (c->possible || c->coarse == 2 || x->submit >= index || later <= index || g->calls[later].chain != wait->chain ||
            !covers(g, wait, o, x))
            continue;
        unheeded(g, index, later, c->a);
        return true;
    }
    return false;
}

static bool meet(const zo_graph *g, const zo_instance *x, const zo_instance *y)
{
    const zo_command *const a = &g->commands[x->command], *const b = &g->commands[y->command];
    for (uint32_t i = 0; i < a->n_accesses; i++)
        for (uint32_t k = 0; k < b->n_accesses; k++) {
            const zo_access *const p = &g->accesses[a->accesses + i], *const q = &g->accesses[b->accesses + k];
            if (p->mem == q->mem && p->lo < q->hi && q->lo < p->hi && (p->write || q->write) && !p->coarse &&
                !q->coarse && !p->given && !q->given)
                return true;
        }
    return false;
}

/* The first execution with a submit behind the call. */
static uint32_t first_behind(const zo_graph *g, uint32_t call)
{
    size_t low = 0, high = g->n_instances;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (g->instances[mid].submit <= call)
            low = mid + 1;
        else
            high = mid;
    }
    return (uint32_t)low;
}

/* The program fixes the wrong order itself: what came later has ended before what the wait was for can begin, so
 * nothing races. */
static void wrong_way_round(zo_graph *g, uint32_t index)
{
    const zo_call *const wait = &g->calls[index];
    const zo_object *const o = zo_object_at(g, wait->object);
    const uint32_t behind = first_behind(g, index);
    unsigned looked_for = 0;
    for (uint32_t i = behind; i > 0 && i + LOOK_BACK > behind && looked_for < LOOK_FOR; i--) {
        const zo_instance *const x = &g->instances[i - 1];
        if (x->order == 0 || !covers(g, wait, o, x) || zo_before(g, i - 1, index | ZO_CALL_BIT))
            continue;
        looked_for++;
        for (uint32_t k = behind; k < g->n_instances && k < behind + LOOK_AHEAD; k++) {
            const zo_instance *const y = &g->instances[k];
            if (g->calls[y->submit].chain != wait->chain || y->order == 0 || !meet(g, x, y))
                continue;
            if (!zo_before(g, k, i - 1))
                break;
            unheeded(g, index, y->submit, i - 1);
            return;
        }
    }
}

static bool is_asked_again(const zo_graph *g, uint32_t index)
{
    const zo_call *const c = &g->calls[index];
    const zo_chain *const thread = &g->chains[c->chain];
    const zo_call *const next = c->position < thread->n ? &g->calls[thread->nodes[c->position]] : NULL;
    return next != NULL && next->object == c->object &&
           (next->func->kind == ZT_K_SYNC || next->func->kind == ZT_K_QUERY);
}

void zo_results_find(zo_graph *g)
{
    const size_t enough = STEPS_MAX / (g->n_conflicts + LOOK_BACK);
    size_t looked = 0;
    for (size_t u = 0; u < g->n_unmet; u++) {
        const uint32_t index = g->unmet[u];
        if (zo_object_at(g, g->calls[index].object) == NULL || is_asked_again(g, index))
            continue;
        if (looked++ >= enough) {
            g->doubts.searches++;
            continue;
        }
        if (!found_already(g, index))
            wrong_way_round(g, index);
    }
}

/* SPDX-License-Identifier: MIT */
/* B, D3: the states of lists, what is made of what, and what belongs to which context. */
#include <string.h>

#include "check.h"
#include "l0_api.h"

/* ----------------------------------------------------------------------------------------------------------- lists */

static void of_destroyed_kernel(zo_graph *g, uint32_t index, const zo_command *c, const zo_object *o)
{
    zo_finding *const f = zo_found_call(g, "B3", index, o->base->index, ZO_ERROR);
    ZO_SAY(f, "submits #%llu, a launch of %s#%u, destroyed by #%llu in between", zo_number(g, c->call), o->base->kind, o->base->generation,
           (unsigned long long)o->base->destroyed);
    zo_finding_call(f, o->base->destroyed);
    zo_finding_call(f, zo_number(g, c->call));
    ZO_MISSING(f, "the destruction behind the last submit of the list");
    ZO_REPAIR(f, "destroy %s#%u only when no list holds a launch of it", o->base->kind, o->base->generation);
}

static void poisoned(zo_graph *g, uint32_t index, const zo_object *list)
{
    for (size_t i = 0; i < list->n_commands; i++) {
        const zo_command *const c = &g->commands[list->commands[i]];
        for (uint32_t k = 0; k < c->n_accesses; k++) {
            const zo_object *const mem = zo_object_at(g, g->accesses[c->accesses + k].mem);
            if (mem == NULL || mem->base == NULL || mem->base->destroyed == 0)
                continue;
            if (mem->is_kernel || mem->is_module) {
                of_destroyed_kernel(g, index, c, mem);
                return;
            }
            if (!mem->is_memory)
                continue;
            zo_finding *const f = zo_found_call(g, "A2", index, g->accesses[c->accesses + k].mem, ZO_ERROR);
            ZO_SAY(f, "submits #%llu, which uses mem#%u, freed by #%llu in between", zo_number(g, c->call),
                   mem->base->generation, (unsigned long long)mem->base->destroyed);
            zo_finding_call(f, mem->base->destroyed);
            zo_finding_call(f, zo_number(g, c->call));
            ZO_MISSING(f, "the free behind the last submit of the list");
            ZO_REPAIR(f, "free mem#%u only when no list holds it", mem->base->generation);
            return;
        }
    }
}

/* What a submit that failed has left behind: nobody knows in which state. */
static void of_failed_submit(zo_graph *g, uint32_t index, uint32_t object)
{
    zo_object *const o = zo_object_at(g, object);
    if (o == NULL || o->facts.failed == 0)
        return;
    zo_finding *const f = zo_found_call(g, "G3", index, object, ZO_WARNING);
    ZO_SAY(f,
           o->is_fence ? "uses the fence of a submit, #%llu, that failed: nothing will signal it"
                       : "executes a list again that #%llu failed to execute, without a reset in between",
           zo_number(g, o->facts.failed - 1));
    zo_finding_call(f, zo_number(g, o->facts.failed - 1));
    ZO_REPAIR(f, "heed the result of #%llu", zo_number(g, o->facts.failed - 1));
    o->facts.failed = 0;
}

static void executed(zo_graph *g, uint32_t index, uint32_t list)
{
    zo_object *const l = zo_object_at(g, list);
    const zo_call *const c = &g->calls[index];
    if (l == NULL)
        return;
    of_failed_submit(g, index, list);
    if (l->immediate || !l->closed) {
        zo_finding *const f = zo_found_call(g, "B1", index, list, ZO_ERROR);
        ZO_SAY(f, l->immediate ? "executes an immediate list" : "executes a list that is not closed");
        ZO_REPAIR(f, l->immediate ? "append to it, it executes by itself" : "zeCommandListClose before it");
    }
    poisoned(g, index, l);
    if ((c->flags & ZO_FAILED) && !zt_is_fault(c->result)) /* after a fault all is lost, which is told once */
        l->facts.failed = index + 1;
}

static void lists_of(zo_reading *r, uint32_t index)
{
    const zt_field *const p = zt_param_by_role(r->call->func, ZT_R_LISTS), *const fence = zt_param_by_role(
                                                                               r->call->func, ZT_R_FENCE);
    const int64_t n = p ? zt_eval_param(&r->walk, &p->count) : 0;
    const void *const handles =
        n > 0 && n < 65536 ? r->memory.at(r->memory.ctx, r->call->words[p->offset], (uint64_t)n * 8) : NULL;
    for (int64_t i = 0; handles != NULL && i < n; i++)
        executed(r->g, index, zo_object_index(r->g, zt_object_of_handle(r->g->names, &zt_types[p->type], zt_element(handles, (uint64_t)i))));
    if (fence == NULL || !(r->g->calls[index].flags & ZO_FAILED))
        return;
    zo_object *const o = zo_object_at(
        r->g,
        zo_object_index(r->g, zt_object_of_handle(r->g->names, &zt_types[fence->type], r->call->words[fence->offset])));
    if (o != NULL && !zt_is_fault(r->g->calls[index].result))
        o->facts.failed = index + 1;
}

/* -------------------------------------------------------------------------------------------------------- contexts */

static uint32_t context_of_call(zo_reading *r)
{
    const zt_field *const p = zt_param_by_role(r->call->func, ZT_R_CONTEXT);
    if (p == NULL || p->shape != ZT_VALUE)
        return ZO_NONE;
    return zo_object_index(r->g, zt_object_of_handle(r->g->names, &zt_types[p->type], r->call->words[p->offset]));
}

static void belongs(zo_graph *g, uint32_t object, uint32_t context)
{
    zo_object *const o = zo_object_at(g, object);
    if (o == NULL || zo_object_at(g, context) == NULL || object == context)
        return;
    o->facts.context = context + 1;
    zo_object_at(g, context)->facts.members++;
}

static void leaves(zo_graph *g, uint32_t object)
{
    const zo_object *const o = zo_object_at(g, object);
    zo_object *const context = o && o->facts.context ? zo_object_at(g, o->facts.context - 1) : NULL;
    if (context != NULL && context->facts.members > 0)
        context->facts.members--;
}

static void context_gone(zo_graph *g, uint32_t index, uint32_t object)
{
    const zo_object *const o = zo_object_at(g, object);
    uint32_t first = ZO_NONE;
    for (uint32_t i = 0; i < g->n_objects; i++) {
        const zo_object *const m = &g->objects[i];
        if (m->facts.context != object + 1)
            continue;
        if (first == ZO_NONE && !m->gone && m->base->destroyed == 0)
            first = i;
        const zo_chain *const chain = m->chain == ZO_NONE ? NULL : &g->chains[m->chain];
        const uint32_t last = chain && chain->n > 0 ? chain->nodes[chain->n - 1] : ZO_NONE;
        if (last == ZO_NONE || zo_before(g, last, index | ZO_CALL_BIT))
            continue;
        zo_finding *const f = zo_found_call(g, "B5", index, object, ZO_ERROR);
        if (f == NULL)
            return;
        zo_finding_node(g, f, last);
        const unsigned long long user = (unsigned long long)zo_graph_point(g, last).call;
        ZO_SAY(f, "destroys the context while #%llu may be running in it", user);
        ZO_MISSING(f, "end of #%llu before #%llu", user, zo_number(g, index));
        ZO_REPAIR(f, "wait for all queues and lists of the context first");
        return;
    }
    if (o->facts.members == 0 || first == ZO_NONE)
        return;
    zo_finding *const f = zo_found_call(g, "B5", index, object, ZO_WARNING);
    ZO_SAY(f, "destroys the context while %u of its objects are alive, %s#%u first", o->facts.members,
           g->objects[first].base->kind, g->objects[first].base->generation);
    zo_finding_call(f, g->objects[first].base->created);
    ZO_REPAIR(f, "destroy and free them first");
}

/* ----------------------------------------------------------------------------------------------------------- enter */

static void states(zo_graph *g, uint32_t index)
{
    const zo_call *const c = &g->calls[index];
    const zo_object *const o = zo_object_at(g, c->object);
    const int kind = c->func->kind;
    if ((kind == ZT_K_CLOSE || kind == ZT_K_APPEND) && o->is_list && o->closed && !o->immediate) {
        zo_finding *const f = zo_found_call(g, "B1", index, c->object, ZO_ERROR);
        ZO_SAY(f, kind == ZT_K_CLOSE ? "closes a list that is closed" : "appends to a list that is closed");
        ZO_REPAIR(f, "zeCommandListReset opens it again");
    }
    if ((kind == ZT_K_HOST_SIGNAL || kind == ZT_K_HOST_RESET) && o->counter_based) {
        zo_finding *const f = zo_found_call(g, "D3", index, c->object, ZO_ERROR);
        ZO_SAY(f, "a counter-based event is signalled by the device alone and never reset");
        ZO_REPAIR(f, "a regular event, or no reset: each new signal begins a new round");
    }
    if (kind == ZT_K_DESTROY && o->children > 0 && (o->is_queue || o->facts.is_pool || o->is_module)) {
        const char *const what = o->is_queue ? "fences" : o->is_module ? "kernels" : "events";
        zo_finding *const f = zo_found_call(g, o->is_queue ? "B2" : o->is_module ? "B3" : "B4", index, c->object, ZO_ERROR);
        ZO_SAY(f, "destroys %s#%u while %u of its %s are alive", o->base->kind, o->base->generation, o->children, what);
        ZO_REPAIR(f, "destroy the %s first", what);
    }
    if (o->is_fence && (kind == ZT_K_SYNC || kind == ZT_K_QUERY))
        of_failed_submit(g, index, c->object);
}

void zo_objects_enter(zo_reading *r, uint32_t index)
{
    zo_graph *const g = r->g;
    const zo_call *const c = &g->calls[index];
    zo_object *const o = zo_object_at(g, c->object);
    if (c->func->kind == ZT_K_EXECUTE)
        lists_of(r, index);
    if (o == NULL)
        return;
    states(g, index);
    if (c->func->kind == ZT_K_RESET || c->func->kind == ZT_K_HOST_RESET)
        o->facts.failed = 0;
    if (c->func->kind != ZT_K_DESTROY || (c->flags & ZO_FAILED))
        return;
    const zt_field *const p = zt_param_by_role(c->func, ZT_R_DESTROY);
    leaves(g, c->object);
    if (p != NULL && zt_types[p->type].base == (uint16_t)(zt_type_find("ze_context_handle_t") - zt_types))
        context_gone(g, index, c->object);
}

/* ----------------------------------------------------------------------------------------------------------- leave */

void zo_objects_leave(zo_reading *r, uint32_t index, uint32_t created)
{
    zo_graph *const g = r->g;
    const zo_call *const c = &g->calls[index];
    const zo_object *const parent = created == ZO_NONE ? NULL : zo_object_at(g, zo_object_at(g, created)->parent);
    uint32_t made = created;
    if (c->flags & ZO_FAILED)
        return;
    if (c->func->kind == ZT_K_FREE && c->object != ZO_NONE)
        leaves(g, c->object);
    if (c->func->kind == ZT_K_ALLOC) {
        const zt_field *const out = zt_param_by_role(c->func, ZT_R_ALLOC);
        uint64_t address;
        made = out && zt_word_left(r->call, out, g->trace, &address) ? zo_object_index(g, zt_object_of_address(g->names, address)) : ZO_NONE;
    }
    if (made == ZO_NONE)
        return;
    const uint32_t context = context_of_call(r);
    belongs(g, made,
            context != ZO_NONE                        ? context
            : parent != NULL && parent->facts.context ? parent->facts.context - 1
                                                      : ZO_NONE);
    if (created == ZO_NONE)
        return;
    zo_object *const o = zo_object_at(g, created);
    if (o->is_event && parent != NULL) {
        zo_object_at(g, o->parent)->facts.is_pool = true;
        o->facts.timestamps |= parent->facts.timestamps;
    }
}

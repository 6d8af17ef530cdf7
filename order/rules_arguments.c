/* SPDX-License-Identifier: MIT */
/* B5, B6, C3, G3: the handles and structures that a call is given. */
#include <string.h>

#include "check.h"

typedef struct seeing {
    zo_reading *r;
    uint32_t index;
    uint32_t first;   /* object whose context counts for the others, ZO_NONE */
    bool told, wrong; /* of a handle, of a structure: one finding a call is enough */
    bool handles;
} seeing;

static bool fits(const zt_type *a, const zt_type *b)
{
    return a->cls == ZT_HANDLE && b->cls == ZT_HANDLE && a->base == b->base;
}

/* A handle that no call has given: perhaps one did fail to. */
static void not_given(seeing *s, const zt_node *node, uint64_t value)
{
    zo_graph *const g = s->r->g;
    for (size_t i = g->rules.n_failed; i > 0; i--) {
        const zo_failed_create *const c = &g->rules.failed[i - 1];
        if (!fits(&zt_types[c->type], node->type))
            continue;
        zo_finding *const f = zo_found_call(g, "G3", s->index, ZO_NONE, ZO_ERROR);
        ZO_SAY(f, "uses %s 0x%llx, which no call has given: #%llu, which was to make one, failed",
               node->type->object ? node->type->object : "handle", (unsigned long long)value, zo_number(g, c->call));
        zo_finding_call(f, zo_number(g, c->call));
        ZO_REPAIR(f, "heed the result of #%llu", zo_number(g, c->call));
        s->told = true;
        return;
    }
}

static void destroyed(seeing *s, const zt_object *o)
{
    zo_graph *const g = s->r->g;
    s->told = true;
    zo_finding *const f = zo_found_call(g, "B6", s->index, zo_object_index(g, o), ZO_ERROR);
    ZO_SAY(f, "uses %s#%u, which #%llu has destroyed", o->kind, o->generation, (unsigned long long)o->destroyed);
    ZO_MISSING(f, "the destruction behind the last use");
    ZO_REPAIR(f, "move #%llu behind this call", (unsigned long long)o->destroyed);
    zo_finding_call(f, o->destroyed);
}

/* "created, and the memory was allocated, on the same context" */
static void same_context(seeing *s, uint32_t object)
{
    zo_graph *const g = s->r->g;
    const zo_object *const o = zo_object_at(g, object), *const first = zo_object_at(g, s->first);
    if (o == NULL || o->facts.context == 0)
        return;
    if (first == NULL) {
        s->first = object;
        return;
    }
    if (s->told || first->facts.context == o->facts.context)
        return;
    s->told = true;
    zo_finding *const f = zo_found_call(g, "B5", s->index, object, ZO_ERROR);
    ZO_SAY(f, "mixes contexts: %s#%u is of context#%u, %s#%u of context#%u", first->base->kind, first->base->generation,
           g->objects[first->facts.context - 1].base->generation, o->base->kind, o->base->generation,
           g->objects[o->facts.context - 1].base->generation);
    zo_finding_call(f, o->base->created);
    ZO_REPAIR(f, "make both in one context");
}

static void structure(seeing *s, const zt_node *node)
{
    zo_graph *const g = s->r->g;
    uint32_t stype;
    if (s->wrong || node->data == NULL || node->size < 4)
        return;
    memcpy(&stype, node->data, 4);
    if (node->kind == ZT_N_STRUCT &&
        (node->type == NULL || node->type->stype < 0 || (uint32_t)node->type->stype == stype))
        return;
    s->wrong = true;
    const bool wrong = node->kind == ZT_N_STRUCT;
    zo_finding *const f = zo_found(g, "C3", wrong ? ZO_SPEC : ZO_POSSIBLE, wrong ? ZO_ERROR : ZO_WARNING);
    if (f == NULL)
        return;
    zo_finding_node(g, f, s->index | ZO_CALL_BIT);
    if (wrong)
        ZO_SAY(f, "a %s whose stype is 0x%x and not 0x%x", node->type->name, stype, (uint32_t)node->type->stype);
    else
        ZO_SAY(f,
               "a structure on a pNext chain with the stype 0x%x, which no structure of version %u.%u has; the driver "
               "may follow or ignore it",
               stype, zt_api_version >> 16, zt_api_version & 0xffff);
    ZO_REPAIR(f, wrong ? "set stype, and pNext to NULL" : "set pNext to NULL, or to an extension's structure");
}

static int see(void *ctx, const zt_node *node)
{
    seeing *const s = ctx;
    zo_graph *const g = s->r->g;
    uint64_t value;
    if (node->kind == ZT_N_STRUCT || node->kind == ZT_N_UNKNOWN)
        structure(s, node);
    if (!s->handles || node->kind != ZT_N_VALUE || node->type == NULL || node->type->cls != ZT_HANDLE ||
        node->size != 8 || s->told)
        return 0;
    memcpy(&value, node->data, 8);
    const zt_object *const o = zt_object_of_handle(g->names, node->type, value);
    if (o != NULL && o->destroyed != 0)
        destroyed(s, o);
    else if (o == NULL && (value != 0 || (node->field != NULL && !node->field->optional)))
        not_given(s, node, value);
    else if (o != NULL)
        same_context(s, zo_object_index(g, o));
    return 0;
}

void zo_arguments_enter(zo_reading *r, uint32_t index)
{
    zo_graph *const g = r->g;
    const zt_func *const func = r->call->func;
    seeing s = {.r = r, .index = index, .first = ZO_NONE, .handles = func->kind != ZT_K_GET && func->kind != ZT_K_INIT};
    zt_walk walk = r->walk;
    walk.visit = see;
    walk.ctx = &s;
    zt_walk_call(&walk);
    if (func->kind != ZT_K_APPEND ||
        zt_param_by_role(func, ZT_R_CONTEXT) != NULL) /* a copy from another context names it */
        return;
    for (unsigned i = 0; i < func->n_params && !s.told; i++) {
        const zt_field *const p = &func->params[i];
        const zt_object *const mem =
            p->shape == ZT_ADDRESS && p->access != 0 ? zt_object_of_address(g->names, r->call->words[p->offset]) : NULL;
        if (mem != NULL && mem->destroyed == 0)
            same_context(&s, zo_object_index(g, mem));
    }
}

void zo_arguments_leave(zo_reading *r, uint32_t index)
{
    zo_graph *const g = r->g;
    const zt_field *const out =
        r->call->func->kind == ZT_K_CREATE ? zt_param_by_role(r->call->func, ZT_R_CREATE) : NULL;
    const zo_failed_create failed = {index, out ? out->type : 0};
    if (out != NULL && (g->calls[index].flags & ZO_FAILED))
        ZO_PUSH(g, g->rules.failed, g->rules.n_failed, g->rules.room_failed, failed);
}

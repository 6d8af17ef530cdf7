/* SPDX-License-Identifier: MIT */
/* A: frees, ranges, residency. What is in flight when memory goes is found in conflicts.c. */
#include <string.h>

#include "check.h"
#include "l0_api.h"

uint32_t zo_free_policy(const zo_reading *r)
{
    for (unsigned i = 0; i < r->call->func->n_params; i++) {
        const zt_field *const f = &r->call->func->params[i];
        if (f->shape != ZT_ONE || zt_types[f->type].stype != ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC)
            continue;
        ze_memory_free_ext_desc_t desc = {0};
        const void *const at = r->memory.at(r->memory.ctx, r->call->words[f->offset], sizeof(desc));
        if (at != NULL)
            memcpy(&desc, at, sizeof(desc));
        return desc.freePolicy;
    }
    return 0;
}

/* ----------------------------------------------------------------------------------------------------------- enter */

static void free_of(zo_graph *g, uint32_t index, uint64_t address, const zt_object *mem)
{
    const bool dead = mem == NULL || mem->destroyed != 0;
    if (!dead && mem->value == address)
        return;
    zo_finding *const f = zo_found_call(g, "A6", index, zo_object_index(g, mem), ZO_ERROR);
    ZO_SAY(f,
           dead ? "frees 0x%llx, where no allocation is%s"
                : "frees 0x%llx, which is inside an allocation and not its start%s",
           (unsigned long long)address, mem && mem->destroyed ? " any more" : "");
    zo_finding_call(f, mem ? mem->destroyed : 0);
    ZO_REPAIR(f, "free each allocation once, by its first address");
}

static void operand(zo_reading *r, uint32_t index, const zt_field *p, uint64_t address, const zt_object *mem)
{
    zo_graph *const g = r->g;
    const int64_t n = zt_eval_param(&r->walk, &p->count);
    if (mem->destroyed != 0) {
        zo_finding *const f = zo_found_call(g, "A7", index, zo_object_index(g, mem), ZO_ERROR);
        ZO_SAY(f, "%s points into mem#%u, which #%llu has freed", p->name, mem->generation,
               (unsigned long long)mem->destroyed);
        zo_finding_call(f, mem->destroyed);
        ZO_REPAIR(f, "free the memory behind the last use of it");
    } else if (n > 0 && mem->size > 0 && r->call->func->kind == ZT_K_APPEND &&
               address - mem->value + (uint64_t)n > mem->size) {
        zo_finding *const f = zo_found_call(g, "A7", index, zo_object_index(g, mem), ZO_ERROR);
        ZO_SAY(f, "%s reaches %llu bytes beyond the end of mem#%u, which has %llu", p->name,
               (unsigned long long)(address - mem->value + (uint64_t)n - mem->size), mem->generation,
               (unsigned long long)mem->size);
        ZO_REPAIR(f, "a size of at most %llu", (unsigned long long)(mem->size - (address - mem->value)));
    }
}

/* A1': "implicitly evicted when freed". */
static void needless_evict(zo_graph *g, uint32_t index, uint32_t mem)
{
    const zo_facts *const facts = &zo_object_at(g, mem)->facts;
    const uint32_t evict = facts->last_evict;
    if (evict == 0 || (facts->conflicts_then < g->n_conflicts &&
                       g->conflicts[facts->conflicts_then].b == ((evict - 1) | ZO_CALL_BIT)))
        return; /* or it came too early, which is worse */
    zo_finding *const f = zo_found_call(g, "A1'", evict - 1, mem, ZO_NOTE);
    ZO_SAY(f, "is needless: #%llu frees the memory, which evicts it, and nothing uses it in between",
           zo_number(g, index));
    zo_finding_call(f, zo_number(g, index));
    ZO_REPAIR(f, "leave the call out");
}

static void residency(zo_reading *r, uint32_t index)
{
    const zt_field *const ptr = zt_param_by_role(r->call->func, ZT_R_PTR), *const size = zt_param_by_role(r->call->func,
                                                                                                          ZT_R_SIZE);
    zo_access access = {0};
    if (ptr == NULL || (r->g->calls[index].flags & ZO_FAILED) ||
        !zo_locate(r->g, r->call->words[ptr->offset], size ? r->call->words[size->offset] : 1, &access) ||
        access.mem == ZO_PAGEABLE)
        return;
    zo_facts *const facts = &zo_object_at(r->g, access.mem)->facts;
    if (r->call->func->kind == ZT_K_EVICT) {
        facts->evicted = facts->last_evict = index + 1;
        facts->conflicts_then = r->g->n_conflicts;
        facts->evicted_lo = access.lo;
        facts->evicted_hi = access.hi;
    } else {
        facts->evicted = facts->last_evict = 0;
    }
}

void zo_memory_enter(zo_reading *r, uint32_t index)
{
    zo_graph *const g = r->g;
    const zt_func *const func = r->call->func;
    if (func->kind == ZT_K_EVICT || func->kind == ZT_K_RESIDENT)
        residency(r, index);
    if (func->kind != ZT_K_APPEND && func->kind != ZT_K_FREE && func->kind != ZT_K_EVICT)
        return;
    for (unsigned i = 0; i < func->n_params; i++) {
        const zt_field *const p = &func->params[i];
        const uint64_t address = p->shape == ZT_ADDRESS ? r->call->words[p->offset] : 0;
        const zt_object *const mem = zt_object_of_address(g->names, address);
        if (address == 0 || (p->access == 0 && p->role != ZT_R_FREE && func->kind != ZT_K_EVICT))
            continue;
        if (p->role == ZT_R_FREE) {
            const uint32_t object = zo_object_index(g, mem);
            free_of(g, index, address, mem);
            if (object == ZO_NONE || mem->destroyed != 0 || (g->calls[index].flags & ZO_FAILED))
                continue;
            needless_evict(g, index, object);
            if (zo_free_policy(r) & ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_DEFER_FREE)
                ZO_PUSH(g, g->rules.deferred, g->rules.n_deferred, g->rules.room_deferred, object);
        } else if (mem != NULL) {
            operand(r, index, p, address, mem);
        }
    }
}

/* ----------------------------------------------------------------------------------------------------------- start */

/* A5: a command names memory that was taken from the device. */
void zo_memory_start(zo_graph *g, uint32_t instance)
{
    const zo_instance *const x = &g->instances[instance];
    const zo_command *const c = &g->commands[x->command];
    for (uint32_t i = 0; i < c->n_accesses; i++) {
        const zo_access *const a = &g->accesses[c->accesses + i];
        zo_object *const mem = zo_object_at(g, a->mem);
        if (mem == NULL || mem->facts.last_evict == 0 || mem->facts.last_evict - 1 > x->submit)
            continue;
        mem->facts.last_evict = 0;
        if (mem->facts.evicted == 0 || a->hi <= mem->facts.evicted_lo || a->lo >= mem->facts.evicted_hi ||
            (g->habits & ZO_H_SUBMIT_RESIDENT))
            continue;
        zo_finding *const f = zo_found_call(g, "A5", x->submit, a->mem, ZO_WARNING);
        ZO_SAY(f, "submits #%llu, which uses memory that #%llu has evicted, and nothing has made it resident since",
               zo_number(g, c->call), zo_number(g, mem->facts.evicted - 1));
        zo_finding_call(f, zo_number(g, mem->facts.evicted - 1));
        if (c->call != x->submit)
            zo_finding_call(f, zo_number(g, c->call));
        ZO_MISSING(f, "zeContextMakeMemoryResident before #%llu", zo_number(g, x->submit));
        ZO_REPAIR(f, "make it resident again, or do not evict it");
        mem->facts.evicted = 0; /* once for an evict */
    }
}

/* ----------------------------------------------------------------------------------------------------------- leave */

/* A command on those bytes that was submitted before the call, and that what the host does later is needed for. */
static uint32_t not_begun(const zo_graph *g, uint32_t mem, uint32_t before)
{
    for (size_t k = 0; k < g->n_chains; k++) {
        const zo_chain *const chain = &g->chains[k];
        for (size_t i = chain->started; chain->device && i < chain->n; i++) {
            const zo_instance *const x = &g->instances[chain->nodes[i]];
            const zo_command *const c = &g->commands[x->command];
            for (uint32_t j = 0; x->submit < before && j < c->n_accesses; j++)
                if (g->accesses[c->accesses + j].mem == mem)
                    return chain->nodes[i];
        }
    }
    return ZO_NONE;
}

static void not_honoured(zo_graph *g, uint32_t index, uint32_t mem, uint32_t user, const char *what)
{
    zo_finding *const f = zo_found(g, "A4", ZO_DRIVER, ZO_ERROR);
    if (f == NULL)
        return;
    zo_finding_node(g, f, index | ZO_CALL_BIT);
    zo_finding_node(g, f, user);
    zo_finding_object(g, f, mem);
    ZO_SAY(f, "%s #%llu, which uses the memory, cannot have ended by then: it waits for what the host does later", what,
           (unsigned long long)zo_graph_point(g, user).call);
    ZO_MISSING(f, "end of #%llu before that", (unsigned long long)zo_graph_point(g, user).call);
    ZO_REPAIR(f, "none in the program but a wait before the free: the driver does not honour the policy");
}

void zo_memory_leave(zo_reading *r, uint32_t index)
{
    zo_graph *const g = r->g;
    const zo_call *const c = &g->calls[index];
    if (c->flags & ZO_FAILED)
        return;
    if (c->func->kind == ZT_K_FREE && c->object != ZO_NONE &&
        (zo_free_policy(r) & ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE)) {
        const uint32_t user = not_begun(g, c->object, index);
        if (user != ZO_NONE)
            not_honoured(g, index, c->object, user, "returns from a free that has to wait;");
    }
    const zt_field *const out =
        c->func->kind == ZT_K_ALLOC && g->rules.n_deferred > 0 ? zt_param_by_role(c->func, ZT_R_ALLOC) : NULL;
    uint64_t address;
    const zt_object *const fresh =
        out && zt_word_left(r->call, out, g->trace, &address) ? zt_object_of_address(g->names, address) : NULL;
    for (size_t i = 0; fresh != NULL && i < g->rules.n_deferred; i++) {
        const uint32_t mem = g->rules.deferred[i];
        const zt_object *const old = zo_object_at(g, mem)->base;
        const uint32_t user = old->value < fresh->value + fresh->size && fresh->value < old->value + old->size
                                  ? not_begun(g, mem, index)
                                  : ZO_NONE;
        if (user != ZO_NONE)
            not_honoured(g, index, mem, user, "gives an address anew whose free was deferred;");
    }
}

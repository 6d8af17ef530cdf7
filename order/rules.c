/* SPDX-License-Identifier: MIT */
/* What is wrong with a call by itself, given the state of what it names: lifetime, state machines, overlaps, waits without hope. */
#include <stdio.h>
#include <string.h>

#include "check.h"

static zo_finding *call_finding(zo_graph *g, const char *rule, uint32_t call, uint32_t object, enum zo_severity severity)
{
    zo_finding *const f = zo_found(g, rule, ZO_SPEC, severity);
    if (f == NULL)
        return NULL;
    zo_finding_node(g, f, call | ZO_CALL_BIT);
    zo_finding_object(g, f, object);
    return f;
}

#define SAY(f, ...) do { if (f) snprintf((f)->what, sizeof((f)->what), __VA_ARGS__); } while (0)
#define MISSING(f, ...) do { if (f) snprintf((f)->missing, sizeof((f)->missing), __VA_ARGS__); } while (0)
#define REPAIR(f, ...) do { if (f) snprintf((f)->repair, sizeof((f)->repair), __VA_ARGS__); } while (0)

static void add_call(zo_graph *g, zo_finding *f, uint64_t number)
{
    if (f != NULL && number != 0 && f->n_points < ZO_FINDING_POINTS)
        f->points[f->n_points++] = (zo_point){number, 0};
    (void)g;
}

/* ---------------------------------------------------------------------------------------------------------- lifetime */

typedef struct seeing {
    zo_graph *g;
    uint32_t index;
    bool told;
} seeing;

static int see_handle(void *ctx, const zt_node *node)
{
    seeing *const s = ctx;
    uint64_t value;
    if (node->kind != ZT_N_VALUE || node->type == NULL || node->type->cls != ZT_HANDLE || node->size != 8 || s->told)
        return 0;
    memcpy(&value, node->data, 8);
    const zt_object *const o = zt_object_of_handle(s->g->names, node->type, value);
    if (value == 0 || o == NULL || o->destroyed == 0)
        return 0;
    s->told = true;
    zo_finding *const f = call_finding(s->g, "B6", s->index, zo_object_index(s->g, o), ZO_ERROR);
    SAY(f, "uses %s#%u, which #%llu has destroyed", o->kind, o->generation, (unsigned long long)o->destroyed);
    MISSING(f, "the destruction behind the last use");
    REPAIR(f, "move #%llu behind this call", (unsigned long long)o->destroyed);
    add_call(s->g, f, o->destroyed);
    return 0;
}

static void addresses(zo_graph *g, uint32_t index, const zt_call *call, const zt_walk *walk)
{
    for (unsigned i = 0; i < call->func->n_params; i++) {
        const zt_field *const p = &call->func->params[i];
        const uint64_t address = p->shape == ZT_ADDRESS ? call->words[p->offset] : 0;
        const zt_object *const mem = zt_object_of_address(g->names, address);
        if (address == 0 || (p->access == 0 && p->role != ZT_R_FREE && call->func->kind != ZT_K_EVICT))
            continue;
        if (p->role == ZT_R_FREE) {
            if (mem == NULL || mem->destroyed != 0 || mem->value != address) {
                zo_finding *const f = call_finding(g, "A6", index, zo_object_index(g, mem), ZO_ERROR);
                SAY(f, mem == NULL || mem->destroyed ? "frees 0x%llx, where no allocation is%s"
                                                     : "frees 0x%llx, which is inside an allocation and not its start%s",
                    (unsigned long long)address, mem && mem->destroyed ? " any more" : "");
                add_call(g, f, mem ? mem->destroyed : 0);
                REPAIR(f, "free each allocation once, by its first address");
            }
            continue;
        }
        if (mem == NULL)
            continue;
        const int64_t n = zt_eval_param(walk, &p->count);
        if (mem->destroyed != 0) {
            zo_finding *const f = call_finding(g, "A7", index, zo_object_index(g, mem), ZO_ERROR);
            SAY(f, "%s points into mem#%u, which #%llu has freed", p->name, mem->generation, (unsigned long long)mem->destroyed);
            add_call(g, f, mem->destroyed);
            REPAIR(f, "free the memory behind the last use of it");
        } else if (n > 0 && call->func->kind == ZT_K_APPEND && address - mem->value + (uint64_t)n > mem->size) {
            zo_finding *const f = call_finding(g, "A7", index, zo_object_index(g, mem), ZO_ERROR);
            SAY(f, "%s reaches %llu bytes beyond the end of mem#%u, which has %llu", p->name,
                (unsigned long long)(address - mem->value + (uint64_t)n - mem->size), mem->generation,
                (unsigned long long)mem->size);
            REPAIR(f, "a size of at most %llu", (unsigned long long)(mem->size - (address - mem->value)));
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------- state */

static void poisoned(zo_graph *g, uint32_t index, const zo_object *list)
{
    for (size_t i = 0; i < list->n_commands; i++) {
        const zo_command *const c = &g->commands[list->commands[i]];
        for (uint32_t k = 0; k < c->n_accesses; k++) {
            const zo_object *const mem = zo_object_at(g, g->accesses[c->accesses + k].mem);
            if (mem == NULL || mem->base == NULL || mem->base->destroyed == 0)
                continue;
            zo_finding *const f = call_finding(g, "A2", index, g->accesses[c->accesses + k].mem, ZO_ERROR);
            SAY(f, "submits #%llu, which uses mem#%u, freed by #%llu in between", (unsigned long long)g->calls[c->call].number,
                mem->base->generation, (unsigned long long)mem->base->destroyed);
            add_call(g, f, mem->base->destroyed);
            add_call(g, f, g->calls[c->call].number);
            MISSING(f, "the free behind the last submit of the list");
            REPAIR(f, "free mem#%u only when no list holds it", mem->base->generation);
            return;
        }
    }
}

static void lists_of(zo_graph *g, uint32_t index, const zt_call *call, const zt_walk *walk)
{
    const zt_field *const p = zt_param_by_role(call->func, ZT_R_LISTS);
    const int64_t n = p ? zt_eval_param(walk, &p->count) : 0;
    const uint64_t *const handles =
        n > 0 && n < 65536 ? walk->memory->at(walk->memory->ctx, call->words[p->offset], (uint64_t)n * 8) : NULL;
    for (int64_t i = 0; handles != NULL && i < n; i++) {
        const uint32_t list = zo_object_index(g, zt_object_of_handle(g->names, &zt_types[p->type], handles[i]));
        const zo_object *const l = zo_object_at(g, list);
        if (l == NULL)
            continue;
        if (l->immediate || !l->closed) {
            zo_finding *const f = call_finding(g, "B1", index, list, ZO_ERROR);
            SAY(f, l->immediate ? "executes an immediate list" : "executes a list that is not closed");
            REPAIR(f, l->immediate ? "append to it, it executes by itself" : "zeCommandListClose before it");
        }
        poisoned(g, index, l);
    }
}

static void states(zo_graph *g, uint32_t index, const zt_call *call, const zt_walk *walk)
{
    const zo_call *const c = &g->calls[index];
    const zo_object *const o = zo_object_at(g, c->object);
    const int kind = call->func->kind;
    if (kind == ZT_K_EXECUTE)
        lists_of(g, index, call, walk);
    if (o == NULL)
        return;
    if ((kind == ZT_K_CLOSE || kind == ZT_K_APPEND) && o->is_list && o->closed && !o->immediate) {
        zo_finding *const f = call_finding(g, "B1", index, c->object, ZO_ERROR);
        SAY(f, kind == ZT_K_CLOSE ? "closes a list that is closed" : "appends to a list that is closed");
        REPAIR(f, "zeCommandListReset opens it again");
    }
    if ((kind == ZT_K_HOST_SIGNAL || kind == ZT_K_HOST_RESET) && o->counter_based) {
        zo_finding *const f = call_finding(g, "D3", index, c->object, ZO_ERROR);
        SAY(f, "a counter-based event is signalled by the device alone and never reset");
        REPAIR(f, "a regular event, or no reset: each new signal begins a new round");
    }
    if (kind == ZT_K_DESTROY && o->children > 0 && (o->is_queue || strcmp(o->base->kind, "pool") == 0 || strstr(o->base->kind, "pool"))) {
        zo_finding *const f = call_finding(g, o->is_queue ? "B2" : "B4", index, c->object, ZO_ERROR);
        SAY(f, "destroys %s#%u while %u of its %s are alive", o->base->kind, o->base->generation, o->children,
            o->is_queue ? "fences" : "events");
        REPAIR(f, "destroy the %s first", o->is_queue ? "fences" : "events");
    }
}

/* ---------------------------------------------------------------------------------------------------------- overlaps */

static void overlaps(zo_graph *g, uint32_t index)
{
    const zo_call *const c = &g->calls[index];
    size_t kept = 0;
    for (size_t i = 0; i < g->n_open; i++) {
        const zo_call *const other = &g->calls[g->open[i]];
        if ((other->flags & ZO_RETURNED) && other->leave_ns <= c->enter_ns)
            continue;
        g->open[kept++] = g->open[i];
        if (c->object == ZO_NONE || c->object != other->object || c->chain == other->chain || !(c->func->flags & ZT_F_ONE_THREAD))
            continue;
        zo_finding *const f = call_finding(g, "H", index, c->object, ZO_ERROR);
        add_call(g, f, other->number);
        SAY(f, "two threads are inside calls on one object, which the specification forbids for these functions");
        MISSING(f, "a lock of the program around both");
        REPAIR(f, "a mutex, or an object of its own for each thread");
    }
    g->n_open = kept;
    if (c->func->flags & ZT_F_ONE_THREAD)
        ZO_PUSH(g, g->open, g->n_open, g->room_open, index);
}

void zo_rules_enter(zo_graph *g, uint32_t index, const zt_call *call)
{
    zt_call_memory in = {call, ZT_ENTER, g->trace};
    const zt_memory memory = zt_memory_of(&in);
    const int kind = call->func->kind;
    seeing s = {g, index, false};
    const zt_walk walk = {.func = call->func, .words = call->words, .phase = ZT_ENTER, .memory = &memory, .visit = see_handle, .ctx = &s};
    if (kind != ZT_K_GET && kind != ZT_K_INIT)
        zt_walk_call(&walk);
    if (kind == ZT_K_APPEND || kind == ZT_K_FREE || kind == ZT_K_EVICT)
        addresses(g, index, call, &walk);
    states(g, index, call, &walk);
    overlaps(g, index);
}

/* ------------------------------------------------------------------------------------------------------------- waits */

void zo_rules_leave(zo_graph *g, uint32_t index)
{
    const zo_call *const c = &g->calls[index];
    if ((c->func->kind == ZT_K_SYNC || c->func->kind == ZT_K_QUERY) && c->result == 1 && c->object != ZO_NONE)
        ZO_PUSH(g, g->unmet, g->n_unmet, g->room_unmet, index);
}

/* Why the event was never signalled. @return false if it was. */
static bool hopeless(zo_graph *g, uint32_t event, zo_finding *f)
{
    const zo_object *const e = zo_object_at(g, event);
    const zo_command *in_list = NULL, *submitted = NULL;
    if (e->signalled)
        return false;
    for (size_t i = 0; i < g->n_commands; i++) {
        if (g->commands[i].signal != event)
            continue;
        if (g->commands[i].executions == 0)
            in_list = &g->commands[i];
        else
            submitted = &g->commands[i];
    }
    const char *const name = e->base->kind;
    if (submitted != NULL) {
        SAY(f, "waits for %s#%u, whose signal by #%llu %s", name, e->base->generation,
            (unsigned long long)g->calls[submitted->call].number,
            e->last_reset != ZO_NONE ? "was reset or never came" : "never came: what it waits for itself never happens");
        add_call(g, f, g->calls[submitted->call].number);
        MISSING(f, "what lets #%llu run", (unsigned long long)g->calls[submitted->call].number);
    } else if (in_list != NULL) {
        const zo_object *const l = zo_object_at(g, in_list->list);
        SAY(f, "waits for %s#%u, whose only signal is #%llu in list#%u, which is never executed", name, e->base->generation,
            (unsigned long long)g->calls[in_list->call].number, l->base->generation);
        add_call(g, f, g->calls[in_list->call].number);
        MISSING(f, "the execution of list#%u", l->base->generation);
        REPAIR(f, "close and execute list#%u before this wait", l->base->generation);
    } else {
        SAY(f, "waits for %s#%u, which nothing signals", name, e->base->generation);
        MISSING(f, "a signal");
        REPAIR(f, "give the event to the command that is meant");
    }
    return true;
}

static void covers_nothing(zo_graph *g, uint32_t index, uint64_t command)
{
    /* the last wait for a queue before that one: it had nothing to wait for */
    for (uint32_t i = index; i-- > 0 && g->calls[i].number > command;) {
        const zo_call *const c = &g->calls[i];
        if (c->func->kind != ZT_K_SYNC || c->result != 0)
            continue;
        zo_finding *const f = call_finding(g, "E4", i, c->object, ZO_WARNING);
        SAY(f, "covers nothing of #%llu, which stands in a list that was not executed", (unsigned long long)command);
        add_call(g, f, command);
        REPAIR(f, "execute the list first");
        return;
    }
}

/* Waits that ended without success, with what became of them. */
void zo_rules_finish(zo_graph *g)
{
    for (size_t i = 0; i < g->n_calls; i++)
        if (!(g->calls[i].flags & (ZO_RETURNED | ZO_IGNORED)) && g->calls[i].func->kind == ZT_K_SYNC && g->calls[i].object != ZO_NONE)
            ZO_PUSH(g, g->unmet, g->n_unmet, g->room_unmet, (uint32_t)i);
    for (size_t i = 0; i < g->n_unmet; i++) {
        const uint32_t index = g->unmet[i];
        const zo_call *const c = &g->calls[index];
        const zo_object *const o = zo_object_at(g, c->object);
        if (c->func->kind != ZT_K_SYNC || !o->is_event || o->signalled || o->counter_based || o->gone)
            continue;
        zo_finding *const f = call_finding(g, "F1", index, c->object, ZO_ERROR);
        if (f == NULL || !hopeless(g, c->object, f))
            continue;
        const uint64_t signaller = f->n_points > 1 ? f->points[1].call : 0;
        if (f->repair[0] != 0 && signaller != 0)
            covers_nothing(g, index, signaller);
    }
}

/* SPDX-License-Identifier: MIT */
/* A search from what is wished to come first, over all that it needs itself; what it finds on the way tells how. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_edges.h"
#include "graph.h"
#include "self_wait.h"

enum how { BEGINNING, COMES_BEHIND, WAITS_FOR, IS_SUBMITTED_BY, STARTS_BEHIND, SHARES_ENGINE, BLOCKS_FOR, IS_WISHED_BEHIND };
static const char *const words[] = {"",              "comes behind",                "waits for",              "is submitted by",
                                    "starts behind", "stands on one engine behind", "does not return before", "is to come behind"};

typedef struct finder {
    zo_graph *g;
    const zo_wishes *wishes;
    uint32_t *parent; /* node + 1, by instance and then by call; 0: not seen */
    uint8_t *how;
    uint32_t *queue;
    size_t n, at;
    uint32_t target, found; /* ZO_NONE */
    uint32_t host_to;       /* calls up to that place have been reached */
    bool by_thread;         /* calls come behind those of their own thread, and not behind all that were made before */
    const zo_call *limit;   /* of a wait: what calls are too late */
    bool behind;
} finder;

static size_t slot(const finder *f, uint32_t node)
{
    return node & ZO_CALL_BIT ? f->g->n_instances + (node & ~ZO_CALL_BIT) : node;
}

/* As zo_schedule has it: a wait that succeeded belongs where it returned. */
static uint32_t place_of(const zo_call *c)
{
    return c->func->kind == ZT_K_SYNC || c->func->kind == ZT_K_QUERY ? c->end_order : c->order;
}

/* Of a wait: calls that are certain to be made behind it, whatever the threads do. */
static bool too_late(const finder *f, const zo_call *c)
{
    const zo_call *const p = f->limit;
    if (p == NULL)
        return false;
    if (c->chain == p->chain)
        return c->position >= p->position + f->behind;
    return (p->flags & ZO_RETURNED) && c->enter_ns >= p->leave_ns;
}

static bool begin(finder *f, zo_graph *g, const zo_wishes *wishes)
{
    const size_t n = g->n_instances + g->n_calls + 1;
    *f = (finder){.g = g, .wishes = wishes, .target = ZO_NONE, .found = ZO_NONE, .parent = calloc(n, sizeof(uint32_t)),
                  .how = calloc(n, 1), .queue = malloc(n * sizeof(uint32_t))};
    return f->parent != NULL && f->how != NULL && f->queue != NULL;
}

static void finish(finder *f)
{
    free(f->parent);
    free(f->how);
    free(f->queue);
}

static void reach(finder *f, uint32_t from, uint32_t node, enum how how)
{
    const size_t at = slot(f, node);
    if (f->found != ZO_NONE)
        return;
    const bool is_target = node == f->target && how != STARTS_BEHIND;
    if (is_target || f->parent[at] == 0) {
        f->parent[at] = from + 1;
        f->how[at] = (uint8_t)how;
        f->queue[f->n++] = node;
    }
    if (is_target || ((node & ZO_CALL_BIT) && too_late(f, &f->g->calls[node & ~ZO_CALL_BIT])))
        f->found = node;
}

static void reach_range(finder *f, uint32_t from, const zo_range *r)
{
    const zo_chain *const chain = &f->g->chains[r->chain];
    for (uint32_t i = r->hi; chain->device && i >= r->lo && i > 0; i--)
        reach(f, from, chain->nodes[i - 1], WAITS_FOR);
    if (!chain->device && r->hi < chain->n) /* what had returned before the call that signals: that call has to come */
        reach(f, from, chain->nodes[r->hi] | ZO_CALL_BIT, WAITS_FOR);
}

static bool is_immediate(const zo_graph *g, const zo_call *c)
{
    return c->n > 0 && c->func->kind == ZT_K_APPEND && g->objects[g->chains[g->instances[c->first].chain].object].immediate;
}

static void from_call(finder *f, uint32_t index)
{
    zo_graph *const g = f->g;
    const zo_call *const c = &g->calls[index];
    const uint32_t node = index | ZO_CALL_BIT, place = place_of(c);
    for (uint32_t i = 0; i < c->n_preds; i++)
        reach_range(f, node, &g->ranges[c->preds + i]);
    if ((g->habits & ZO_H_APPEND_BLOCKS) && is_immediate(g, c))
        reach(f, node, c->first, BLOCKS_FOR);
    if (f->limit != NULL || (place <= f->host_to && !f->by_thread)) /* of a wait: what came before it has been made */
        return;
    if (f->by_thread) {
        if (c->position > 1)
            reach(f, node, g->chains[c->chain].nodes[c->position - 2] | ZO_CALL_BIT, COMES_BEHIND);
        return;
    }
    f->host_to = place;
    for (size_t i = 0; i < g->n_calls; i++)
        if (place_of(&g->calls[i]) < place && !(g->calls[i].flags & ZO_IGNORED))
            reach(f, node, (uint32_t)i | ZO_CALL_BIT, COMES_BEHIND);
}

static void from_command(finder *f, uint32_t index)
{
    zo_graph *const g = f->g;
    const zo_instance *const x = &g->instances[index];
    for (uint32_t i = 0; i < x->n_preds; i++)
        reach_range(f, index, &g->ranges[x->preds + i]);
    reach(f, index, x->submit | ZO_CALL_BIT, IS_SUBMITTED_BY);
    if (x->position > 1)
        reach(f, index, g->chains[x->chain].nodes[x->position - 2], STARTS_BEHIND);
    if ((g->habits & ZO_H_ONE_ENGINE) && index > 0)
        reach(f, index, index - 1, SHARES_ENGINE);
}

static bool search(finder *f)
{
    while (f->at < f->n && f->found == ZO_NONE) {
        const uint32_t node = f->queue[f->at++];
        for (size_t i = 0; f->wishes != NULL && i < f->wishes->n; i++)
            if (f->wishes->list[i].after == node)
                reach(f, node, f->wishes->list[i].before, IS_WISHED_BEHIND);
        if (node & ZO_CALL_BIT)
            from_call(f, node & ~ZO_CALL_BIT);
        else
            from_command(f, node);
    }
    return f->found != ZO_NONE;
}

static void name(const zo_graph *g, uint32_t node, char *out, size_t size)
{
    const zo_point p = zo_graph_point(g, node);
    if (p.execution > 1)
        snprintf(out, size, "#%llu@%u", (unsigned long long)p.call, p.execution);
    else
        snprintf(out, size, "#%llu", (unsigned long long)p.call);
}

static void add(char *why, size_t size, const char *a, const char *b, const char *c)
{
    const size_t n = strlen(why);
    snprintf(why + n, size - n, "%s%s%s", a, b, c);
}

/* "#16 comes behind #15, which waits for #11" */
static void explain(const finder *f, char *why, size_t size)
{
    size_t n = 1;
    for (uint32_t node = f->found; f->how[slot(f, node)] != BEGINNING; node = f->parent[slot(f, node)] - 1)
        n++;
    uint32_t *const path = malloc(n * sizeof(*path)), node = f->found;
    char text[32];
    for (size_t i = n; path != NULL && i-- > 0; node = f->parent[slot(f, node)] - 1)
        path[i] = node;
    for (size_t i = 0, told = 0; path != NULL && i < n; i++) {
        const enum how how = f->how[slot(f, path[i])];
        if (how == COMES_BEHIND && i + 1 < n && f->how[slot(f, path[i + 1])] == COMES_BEHIND)
            continue; /* behind the last of them says it all */
        name(f->g, path[i], text, sizeof(text));
        add(why, size, i == 0 ? "" : told == 1 ? " " : ", which ", i == 0 ? "" : words[how], i == 0 ? "" : " ");
        add(why, size, text, "", "");
        told++;
    }
    free(path);
}

static void start_at(finder *f, uint32_t node)
{
    const size_t at = slot(f, node);
    if (f->parent[at] == 0)
        f->queue[f->n++] = node;
    f->parent[at] = node + 1;
    f->how[at] = BEGINNING;
}

static bool ask(zo_graph *g, zo_wishes *wishes, uint32_t before, uint32_t after, bool by_thread, char *why, size_t size)
{
    finder f;
    why[0] = 0;
    bool ok = begin(&f, g, wishes);
    if (ok && before == after) {
        snprintf(why, size, "it is one and the same call");
        ok = false;
    } else if (ok) {
        f.target = after;
        f.by_thread = by_thread;
        start_at(&f, before);
        ok = !search(&f);
        if (!ok)
            explain(&f, why, size);
    }
    finish(&f);
    const zo_edge edge = {before, after};
    return ok && ZO_PUSH(g, wishes->list, wishes->n, wishes->room, edge);
}

bool zo_wish(zo_graph *g, zo_wishes *wishes, uint32_t before, uint32_t after, char *why, size_t size)
{
    return ask(g, wishes, before, after, false, why, size);
}

static int by_place(const void *a, const void *b, void *graph)
{
    const zo_graph *const g = graph;
    const uint32_t x = place_of(&g->calls[*(const uint32_t *)a]), y = place_of(&g->calls[*(const uint32_t *)b]);
    return x < y ? -1 : x > y;
}

/* Puts the call, and what its thread did after it, behind the other: the places stay, and who takes them changes. */
static bool move_behind(zo_graph *g, const zo_call *call, const zo_call *other)
{
    uint32_t *const calls = malloc((g->n_calls + 1) * sizeof(*calls)), *const places = malloc((g->n_calls + 1) * sizeof(*places));
    size_t n = 0, at = 0;
    const uint32_t first = place_of(call), last = place_of(other);
    for (uint32_t i = 0; calls && places && i < g->n_calls; i++)
        if (place_of(&g->calls[i]) >= first && place_of(&g->calls[i]) <= last)
            calls[n++] = i;
    if (calls && places && n > 0) {
        qsort_r(calls, n, sizeof(*calls), by_place, g);
        for (size_t i = 0; i < n; i++)
            places[i] = place_of(&g->calls[calls[i]]);
        for (int moved = 0; moved < 2; moved++)
            for (size_t i = 0; i < n; i++) {
                zo_call *const c = &g->calls[calls[i]];
                if ((c->chain == call->chain && c->position >= call->position) != (moved == 1))
                    continue;
                const bool waits = c->func->kind == ZT_K_SYNC || c->func->kind == ZT_K_QUERY;
                *(waits ? &c->end_order : &c->order) = places[at++];
            }
    }
    free(calls);
    free(places);
    return calls && places;
}

bool zo_wish_hold(zo_graph *g, zo_wishes *wishes, uint32_t before, uint32_t after, char *why, size_t size)
{
    if (!ask(g, wishes, before, after, true, why, size))
        return false;
    const zo_call *const b = &g->calls[before & ~ZO_CALL_BIT], *const a = &g->calls[after & ~ZO_CALL_BIT];
    return place_of(a) > place_of(b) || move_behind(g, a, b);
}

/* --------------------------------------------------------------------------------------------------------------- waits */

static uint32_t find_object(const zo_graph *g, const char *wanted)
{
    char text[64];
    for (uint32_t i = 0; i < g->n_objects; i++) {
        snprintf(text, sizeof(text), "%s#%u", g->objects[i].base->kind, g->objects[i].base->generation);
        if (strcmp(text, wanted) == 0)
            return i;
    }
    return ZO_NONE;
}

/* Whether the wait covers the command, which was submitted before the call or, `behind`, by it. */
static bool covers(zo_graph *g, const zo_instance *x, const zo_call *p, bool behind, uint32_t object)
{
    const zo_call *const submit = &g->calls[x->submit];
    const zo_object *const o = zo_object_at(g, object);
    if (place_of(submit) > place_of(p) || (submit == p && !behind))
        return false;
    if (o == NULL)
        return true;
    return o->is_event ? g->commands[x->command].signal == object : o->chain == x->chain;
}

/* A signal of the host's, or the first that comes at all. @return whether one comes in time. */
static bool host_signals(const zo_graph *g, const zo_call *p, uint32_t event, uint32_t *later)
{
    *later = ZO_NONE;
    for (uint32_t i = 0; i < g->n_calls; i++) {
        const zo_call *const c = &g->calls[i];
        bool signals = c->func->kind == ZT_K_HOST_SIGNAL && c->object == event;
        for (uint32_t k = 0; k < c->n && !signals; k++)
            signals = g->commands[g->instances[c->first + k].command].signal == event;
        if (signals && place_of(c) < place_of(p) && c->n == 0)
            return true;
        if (signals && place_of(c) >= place_of(p) && *later == ZO_NONE)
            *later = i;
    }
    return false;
}

static bool event_comes(zo_graph *g, const zo_call *p, uint32_t event, bool any_command, char *why, size_t size)
{
    uint32_t later;
    if (any_command || host_signals(g, p, event, &later))
        return true;
    const zo_object *const e = zo_object_at(g, event);
    if (later == ZO_NONE)
        snprintf(why, size, "nothing signals %s#%u", e->base->kind, e->base->generation);
    else
        snprintf(why, size, "%s#%u is signalled by what #%llu does, which comes behind #%llu", e->base->kind, e->base->generation,
                 (unsigned long long)g->calls[later].number, (unsigned long long)p->number);
    return false;
}

static uint32_t call_behind(const zo_graph *g, const zo_call *p)
{
    uint32_t best = ZO_NONE;
    for (uint32_t i = 0; i < g->n_calls; i++)
        if (!(g->calls[i].flags & ZO_IGNORED) && place_of(&g->calls[i]) > place_of(p) &&
            (best == ZO_NONE || place_of(&g->calls[i]) < place_of(&g->calls[best])))
            best = i;
    return best;
}

bool zo_wish_sync(zo_graph *g, zo_wishes *wishes, uint64_t number, bool behind, const char *object, char *why, size_t size)
{
    const uint32_t at = zo_graph_node(g, (zo_point){number, 0}), which = object ? find_object(g, object) : ZO_NONE;
    why[0] = 0;
    if (at == ZO_NONE || (object != NULL && which == ZO_NONE))
        return true; /* not in the graph: a call of the loader's own, or an object of which nothing is known */
    const zo_call *const p = &g->calls[at & ~ZO_CALL_BIT];
    const uint32_t next = behind ? call_behind(g, p) : at & ~ZO_CALL_BIT;
    finder f;
    bool ok = begin(&f, g, NULL), any = false;
    f.limit = p;
    f.behind = behind;
    for (uint32_t i = 0; ok && i < g->n_instances; i++) {
        const zo_instance *const x = &g->instances[i];
        if (x->order == 0 || !covers(g, x, p, behind, which))
            continue;
        any = true;
        start_at(&f, i);
        if (wishes != NULL && next != ZO_NONE && !zo_before(g, i, next | ZO_CALL_BIT))
            ok = zo_wish(g, wishes, i, next | ZO_CALL_BIT, why, size);
    }
    if (ok && search(&f)) {
        explain(&f, why, size);
        add(why, size, ", which comes behind the wait", "", "");
        ok = false;
    }
    finish(&f);
    const zo_object *const o = zo_object_at(g, which);
    return ok && (o == NULL || !o->is_event || event_comes(g, p, which, any, why, size));
}

bool zo_submitted_by(zo_graph *g, zo_point of, uint64_t number, bool behind, char *why, size_t size)
{
    const uint32_t at = zo_graph_node(g, (zo_point){number, 0});
    uint32_t first;
    if (at == ZO_NONE)
        return true;
    if (zo_graph_commands(g, of.call, of.execution, &first, 1) == 0) {
        snprintf(why, size, "nothing submits #%llu", (unsigned long long)of.call);
        return false;
    }
    if (covers(g, &g->instances[first], &g->calls[at & ~ZO_CALL_BIT], behind, ZO_NONE))
        return true;
    const unsigned long long submit = g->calls[g->instances[first].submit].number;
    if (submit == of.call)
        snprintf(why, size, "#%llu comes behind the wait, which is at #%llu", submit, (unsigned long long)number);
    else
        snprintf(why, size, "#%llu is submitted by #%llu, which comes behind the wait", (unsigned long long)of.call, submit);
    return false;
}

bool zo_wish_driver(zo_graph *g, zo_wishes *wishes)
{
    for (uint32_t i = 1; (g->habits & ZO_H_ONE_ENGINE) && i < g->n_instances; i++) {
        const zo_edge edge = {i - 1, i};
        if (g->instances[i - 1].order != 0 && !ZO_PUSH(g, wishes->list, wishes->n, wishes->room, edge))
            return false;
    }
    return true;
}

static bool serialize_submit(zo_graph *g, zo_wishes *wishes, const zo_call *c, uint32_t behind, int how)
{
    bool ok = true;
    for (uint32_t i = c->first; ok && i < c->first + c->n; i++) {
        const uint32_t list = g->commands[g->instances[i].command].list;
        if (g->instances[i].order != 0 && behind != ZO_NONE)
            ok = ZO_PUSH(g, wishes->list, wishes->n, wishes->room, ((zo_edge){i, behind | ZO_CALL_BIT}));
        for (uint32_t k = c->first; ok && k < i && how != ZR_SERIALIZE_SUBMIT; k++)
            if ((how == ZR_SERIALIZE_COMMAND ? k + 1 == i : g->commands[g->instances[k].command].list != list) && g->instances[k].order != 0)
                ok = ZO_PUSH(g, wishes->list, wishes->n, wishes->room, ((zo_edge){k, i}));
    }
    return ok;
}

bool zo_wish_serialize(zo_graph *g, zo_wishes *wishes, int how)
{
    uint32_t *const calls = malloc((g->n_calls + 1) * sizeof(*calls));
    size_t n = 0;
    for (uint32_t i = 0; calls != NULL && i < g->n_calls; i++)
        if (!(g->calls[i].flags & ZO_IGNORED))
            calls[n++] = i;
    if (n > 0)
        qsort_r(calls, n, sizeof(*calls), by_place, g);
    bool ok = calls != NULL;
    for (size_t i = 0; ok && i < n && how != ZR_SERIALIZE_NONE; i++)
        ok = serialize_submit(g, wishes, &g->calls[calls[i]], i + 1 < n ? calls[i + 1] : ZO_NONE, how);
    free(calls);
    return ok;
}

void zo_why_stuck(zo_graph *g, const zo_wishes *wishes, uint32_t stuck, char *why, size_t size)
{
    why[0] = 0;
    finder f;
    const bool ok = begin(&f, g, wishes);
    for (size_t i = 0; ok && i < wishes->n; i++) {
        if (wishes->list[i].after != stuck)
            continue;
        f.target = stuck;
        start_at(&f, wishes->list[i].before);
        if (search(&f)) {
            explain(&f, why, size);
            break;
        }
        finish(&f);
        if (!begin(&f, g, wishes))
            break;
    }
    finish(&f);
}

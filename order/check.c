/* SPDX-License-Identifier: MIT */
/* Findings: each conflict becomes one, or joins one of the same call and object; failing calls hang on the first suspect. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define FINDINGS_MAX 10000u

const char *zo_class_name(int class)
{
    static const char *const names[] = {"spec", "hidden", "possible", "driver", "race"};
    return class >= 0 && class < 5 ? names[class] : "?";
}

const char *zo_severity_name(int severity)
{
    static const char *const names[] = {"note", "warning", "error"};
    return severity >= 0 && severity < 3 ? names[severity] : "?";
}

zo_finding *zo_found(zo_graph *g, const char *rule, enum zo_class class, enum zo_severity severity)
{
    zo_finding f = {.class = (uint8_t)class, .severity = (uint8_t)severity};
    snprintf(f.rule, sizeof(f.rule), "%s", rule);
    if (g->n_findings >= zo_limit(g, FINDINGS_MAX)) {
        g->doubts.findings++;
        return NULL;
    }
    if (!ZO_PUSH(g, g->findings, g->n_findings, g->room_findings, f))
        return NULL;
    return &g->findings[g->n_findings - 1];
}

void zo_finding_node(const zo_graph *g, zo_finding *f, uint32_t node)
{
    if (f->n_points < ZO_FINDING_POINTS)
        f->points[f->n_points++] = zo_graph_point(g, node);
    else
        f->more++;
}

void zo_finding_object(zo_graph *g, zo_finding *f, uint32_t object)
{
    const zo_object *const o = zo_object_at(g, object);
    if (object == ZO_PAGEABLE)
        snprintf(f->object, sizeof(f->object), "host memory");
    else if (o != NULL && o->base != NULL)
        snprintf(f->object, sizeof(f->object), "%s#%u", o->base->kind, o->base->generation);
}

/* ------------------------------------------------------------------------------------------------- conflicts in words */

typedef struct words {
    const char *rule, *what, *repair;
} words;

static const words of_kind[] = {
    [ZO_X_RACE] = {"E0", "nothing orders it against %s on the same bytes", NULL},
    [ZO_X_EVICT] = {"A1", "takes the memory from the device while %s may be using it", NULL},
    [ZO_X_FREE] = {"A2", "frees the memory while %s may be using it", NULL},
    [ZO_X_EVICT_REACHED] = {"A3", "takes the memory from the device while %s may reach it by a pointer", NULL},
    [ZO_X_FREE_REACHED] = {"A3", "frees the memory while %s may reach it by a pointer", NULL},
    [ZO_X_HOST_WRITE] = {"C1", "by then the host had written what %s may still have to read", NULL},
    [ZO_X_LIST_RESET] = {"B1", "resets or destroys the list while %s of it may be running", NULL},
    [ZO_X_LIST_AGAIN] = {"B1", "executes the list again while %s of its last execution may be running", NULL},
    [ZO_X_CARRIER_GONE] = {"B1q", "destroys the queue or list while %s may be running on it", NULL},
    [ZO_X_FENCE_GONE] = {"B2", "resets or destroys the fence while %s of its submit may be running", NULL},
    [ZO_X_EVENT_RESET] = {"D1", "resets the event, and nothing orders that against %s of the same round", NULL},
    [ZO_X_EVENT_GONE] = {"B4", "destroys the event while %s may still need it", NULL},
    [ZO_X_STALE] = {"D2", "the wait passes on an older signal of the event; it does not wait for %s", NULL},
    [ZO_X_KERNEL_GONE] = {"B3", "destroys the kernel or module while %s, a launch of it, may be running", NULL},
};

static bool is_reset(const zo_graph *g, uint32_t node)
{
    if (node & ZO_CALL_BIT)
        return g->calls[node & ~ZO_CALL_BIT].func->kind == ZT_K_HOST_RESET;
    return g->commands[g->instances[node].command].reset != ZO_NONE;
}

static const zo_command *command_of(const zo_graph *g, uint32_t node)
{
    return node & ZO_CALL_BIT ? NULL : &g->commands[g->instances[node].command];
}

static void name_node(const zo_graph *g, uint32_t node, char *out, size_t size)
{
    const zo_point p = zo_graph_point(g, node);
    if (p.execution > 1)
        snprintf(out, size, "#%llu@%u", (unsigned long long)p.call, p.execution);
    else
        snprintf(out, size, "#%llu", (unsigned long long)p.call);
}

static void carrier_name(const zo_graph *g, uint32_t instance, char *out, size_t size)
{
    const zt_object *const o = g->objects[g->chains[g->instances[instance].chain].object].base;
    snprintf(out, size, "%s#%u", o->kind, o->generation);
}

static void also(zo_finding *f, const char *format, ...)
{
    va_list arguments;
    const size_t n = strlen(f->what);
    va_start(arguments, format);
    vsnprintf(f->what + n, sizeof(f->what) - n, format, arguments);
    va_end(arguments);
}

/* E3: what stands between two commands of one carrier and looks as if it ordered them. */
static void looks_ordered(const zo_graph *g, zo_finding *f, const zo_instance *early, const zo_instance *late)
{
    for (uint32_t at = early->position + 1; at < late->position && at < early->position + 64; at++) {
        const zo_command *const c = &g->commands[g->instances[g->chains[early->chain].nodes[at - 1]].command];
        if ((c->flags & ZO_BARRIER) && c->n_waits > 0) {
            also(f, "; the barrier #%llu has wait events, and waits for nothing else", zo_number(g, c->call));
            return;
        }
        if ((c->flags & ZO_WAIT_ONLY) && c->n_waits == 0) {
            also(f, "; #%llu waits for no event, and orders nothing", zo_number(g, c->call));
            return;
        }
    }
}

/* D4: a wait for the event of another command of the same carrier, which the program may have taken for one for this. */
static void waited_for_another(zo_graph *g, zo_finding *f, uint32_t early, uint32_t late)
{
    const zo_instance *const x = &g->instances[early];
    const uint32_t call = late & ZO_CALL_BIT ? late & ~ZO_CALL_BIT : g->instances[late].submit;
    uint32_t at = g->calls[call].previous_sync;
    for (int steps = 0; at != 0 && at - 1 > x->submit && steps < 16; at = g->calls[at - 1].previous_sync, steps++) {
        const zo_call *const wait = &g->calls[at - 1];
        const zo_object *const o = zo_object_at(g, wait->object);
        const zo_range *const r = o != NULL && o->is_event && wait->n_preds > 0 ? &g->ranges[wait->preds] : NULL;
        if (r == NULL || r->chain != x->chain || r->hi == 0 || r->hi > g->chains[r->chain].n)
            continue;
        const zo_point signal = zo_graph_point(g, g->chains[r->chain].nodes[r->hi - 1]);
        also(f, "; #%llu has waited for %s#%u, which says that #%llu is done, and nothing of #%llu (proxy completion)",
             (unsigned long long)wait->number, o->base->kind, o->base->generation, (unsigned long long)signal.call,
             (unsigned long long)zo_graph_point(g, early).call);
        return;
    }
}

static void describe(zo_graph *g, zo_finding *f, const zo_conflict *c)
{
    char first[32], second[32], carrier[48] = "";
    uint32_t late = c->b, early = c->a;
    name_node(g, early, first, sizeof(first));
    name_node(g, late, second, sizeof(second));
    const zo_command *const x = command_of(g, early), *const y = command_of(g, late);
    if (!(early & ZO_CALL_BIT))
        carrier_name(g, early, carrier, sizeof(carrier));
    snprintf(f->what, sizeof(f->what), of_kind[c->kind].what, first);
    snprintf(f->missing, sizeof(f->missing), "end of %s before %s", first, second);
    if (c->kind == ZO_X_RACE && x != NULL && y != NULL && g->instances[early].chain == g->instances[late].chain)
        looks_ordered(g, f, &g->instances[early], &g->instances[late]);
    if (x != NULL && c->kind != ZO_X_STALE && c->kind != ZO_X_EVENT_RESET)
        waited_for_another(g, f, early, late);
    if (c->kind == ZO_X_RACE && x != NULL && y != NULL) {
        const bool same_list = x->list == y->list && g->instances[early].chain == g->instances[late].chain;
        snprintf(f->rule, sizeof(f->rule), same_list ? "E2" : "E1");
        if (same_list)
            snprintf(f->repair, sizeof(f->repair),
                     "a list with the in-order flag, a zeCommandListAppendBarrier without wait events between them, or an event of "
                     "%s that %s waits for", first, second);
        else
            snprintf(f->repair, sizeof(f->repair), "an event that %s signals and %s waits for, or a wait for %s before the submit of %s",
                     first, second, carrier, second);
    } else if (c->kind == ZO_X_STALE) {
        snprintf(f->repair, sizeof(f->repair), "reset the event behind the last round's waits and before %s", first);
    } else if (c->kind == ZO_X_EVENT_RESET) {
        snprintf(f->repair, sizeof(f->repair), "an event of its own for each round, or the reset behind a wait for both sides");
    } else if (c->forced && c->kind == ZO_X_HOST_WRITE) { /* seen at `second`, which may be what lets `first` go */
        snprintf(f->repair, sizeof(f->repair), "write the memory only behind a wait for %s: now it was written by %s, before which %s cannot end",
                 first, second, first);
    } else if (c->forced) {
        snprintf(f->repair, sizeof(f->repair), "move %s behind a wait for %s: now %s cannot end before it", second, first, first);
    } else {
        snprintf(f->repair, sizeof(f->repair), "wait for %s (or an event or fence of %s) before %s", carrier, first, second);
    }
}

static void from_conflict(zo_graph *g, const zo_conflict *c)
{
    const bool possible = c->possible || c->coarse;
    uint32_t late = c->b, early = c->a;
    if (c->kind == ZO_X_EVENT_RESET && is_reset(g, early) && !is_reset(g, late)) {
        late = c->a;
        early = c->b;
    }
    const zo_point p = zo_graph_point(g, late);
    const zo_conflict turned = {.kind = c->kind, .a = early, .b = late, .object = c->object, .lo = c->lo, .hi = c->hi,
                                .forced = c->forced};
    char object[48] = "";
    zo_finding probe = {0};
    zo_finding_object(g, &probe, c->object);
    memcpy(object, probe.object, sizeof(object));
    for (size_t i = g->n_findings; c->kind != ZO_X_RACE && i > 0 && i + 16 > g->n_findings; i--) {
        zo_finding *const f = &g->findings[i - 1];
        if (strcmp(f->rule, of_kind[c->kind].rule) == 0 && f->points[0].call == p.call && f->points[0].execution == p.execution &&
            strcmp(f->object, object) == 0) {
            zo_finding_node(g, f, early);
            if (!possible && f->class == ZO_POSSIBLE) { /* one that is certain is enough */
                f->class = c->kind == ZO_X_EVENT_RESET ? ZO_RACE : ZO_SPEC;
                f->severity = ZO_ERROR;
            }
            return;
        }
    }
    zo_finding *const f = zo_found(g, of_kind[c->kind].rule,
                                   possible                        ? ZO_POSSIBLE
                                   : c->kind == ZO_X_EVENT_RESET ? ZO_RACE
                                                                   : ZO_SPEC,
                                   possible ? ZO_WARNING : ZO_ERROR);
    if (f == NULL)
        return;
    zo_finding_node(g, f, late);
    zo_finding_node(g, f, early);
    zo_finding_object(g, f, c->object);
    f->forced = c->forced;
    if (c->hi > c->lo && (c->kind <= ZO_X_HOST_WRITE)) {
        f->lo = c->lo;
        f->hi = c->hi;
    }
    describe(g, f, &turned);
    if (c->through != 0)
        also(f, "; mem#%u holds one", zo_object_at(g, c->through - 1)->base->generation);
    if (possible)
        also(f, c->possible      ? "; ordered in this run, by what a trace of calls cannot show"
                : c->coarse == 2 ? "; what the kernel does there is not known"
                                 : "; the exact bytes are not known");
}

/* -------------------------------------------------------------------------------------------------------- consequences */

static int by_call(const void *a, const void *b)
{
    const zo_finding *const x = a, *const y = b;
    if (x->points[0].call != y->points[0].call)
        return x->points[0].call < y->points[0].call ? -1 : 1;
    return strcmp(x->rule, y->rule);
}

static uint64_t last_call(const zo_graph *g, const zo_finding *f)
{
    /* a command acts when it has been submitted */
    uint64_t last = 0;
    for (unsigned i = 0; i < f->n_points && i < 2; i++) {
        const uint32_t node = zo_graph_node(g, f->points[i]);
        const uint64_t at = node == ZO_NONE ? 0 : node & ZO_CALL_BIT ? f->points[i].call : g->calls[g->instances[node].submit].number;
        last = at > last ? at : last;
    }
    return last;
}

static void find_consequences(zo_graph *g)
{
    uint32_t suspect = ZO_NONE;
    uint64_t after = UINT64_MAX;
    for (uint32_t i = 0; i < g->n_findings; i++) {
        const zo_finding *const f = &g->findings[i];
        const uint64_t at = strchr("ABCDE", f->rule[0]) && f->severity == ZO_ERROR ? last_call(g, f) : UINT64_MAX;
        if (at < after) {
            after = at;
            suspect = i;
        }
    }
    for (size_t i = 0; suspect != ZO_NONE && i < g->n_calls; i++) {
        const zo_call *const c = &g->calls[i];
        if (c->number >= after && (c->flags & ZO_FAILED) && zt_is_fault(c->result)) {
            const zo_consequence k = {c->number, suspect, zo_cause(c->result, c->func->kind)};
            ZO_PUSH(g, g->consequences, g->n_consequences, g->room_consequences, k);
        }
    }
}

static const zo_finding *the_same(const zo_graph *g, const zo_finding *f)
{
    for (size_t i = 0; i < g->n_findings; i++) {
        const zo_finding *const o = &g->findings[i];
        bool same = strcmp(o->rule, f->rule) == 0 && strcmp(o->object, f->object) == 0;
        /* races and unheeded waits are told pair by pair */
        for (unsigned k = 0; k < (strchr("EG", f->rule[0]) ? 2u : 1u) && k < f->n_points; k++)
            same = same && k < o->n_points && o->points[k].call == f->points[k].call && o->points[k].execution == f->points[k].execution;
        if (same)
            return o;
    }
    return NULL;
}

/* The habits that may be why the driver lets it pass. */
static unsigned habits_behind(const zo_graph *g, const char *rule)
{
    static const struct {
        const char *rule;
        unsigned habits;
    } reasons[] = {{"A2", ZO_H_FREE_WAITS},   {"B1", ZO_H_LIST_KEEPS}, {"B1q", ZO_H_QUEUE_KEEPS | ZO_H_IMMEDIATE_WAITS},
                   {"B4", ZO_H_EVENT_KEEPS}, {"C1", ZO_H_HOST_COPIED}, {"A3", ZO_H_FREE_WAITS},  {"A5", ZO_H_SUBMIT_RESIDENT}};
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (strcmp(rule, reasons[i].rule) == 0 && (g->known_habits & reasons[i].habits))
            return g->known_habits & reasons[i].habits;
    return g->known_habits;
}

int zo_check_hidden(zo_graph *g, zt_error *error)
{
    zo_graph_options options = g->options;
    zo_graph *vendor = NULL;
    if (g->known_habits == 0 || g->options.vendor || g->n_findings == 0)
        return ZT_OK;
    options.vendor = true;
    zt_trace_seek(g->trace, 1);
    int status = zo_graph_make(&vendor, g->trace, &options, error);
    if (status == ZT_OK)
        status = zo_check(vendor);
    char habits[128];
    zo_doubts doubts = {0};
    if (status == ZT_OK)
        zo_graph_doubts(vendor, &doubts);
    const bool all_seen = doubts.accesses + doubts.uses + doubts.conflicts + doubts.findings + doubts.searches == 0;
    for (size_t i = 0; status == ZT_OK && all_seen && i < g->n_findings; i++) {
        zo_finding *const f = &g->findings[i];
        if (the_same(vendor, f) != NULL)
            continue;
        zo_habit_names(habits_behind(g, f->rule), habits, sizeof(habits));
        f->class = ZO_HIDDEN;
        f->severity = f->severity == ZO_ERROR ? ZO_WARNING : f->severity;
        also(f, "; legal on this driver (%s), forbidden by the specification", habits);
    }
    zo_graph_free(vendor);
    g->n_consequences = 0;
    find_consequences(g);
    return status;
}

int zo_check(zo_graph *g)
{
    for (size_t i = 0; i < g->n_conflicts; i++)
        from_conflict(g, &g->conflicts[i]);
    zo_results_find(g);
    if (g->n_findings > 0)
        qsort(g->findings, g->n_findings, sizeof(*g->findings), by_call);
    find_consequences(g);
    return g->out_of_memory ? ZT_E_MEMORY : ZT_OK;
}

size_t zo_findings(const zo_graph *g, const zo_finding **findings)
{
    *findings = g->findings;
    return g->n_findings;
}

size_t zo_consequences(const zo_graph *g, const zo_consequence **consequences)
{
    *consequences = g->consequences;
    return g->n_consequences;
}

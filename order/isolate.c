/* SPDX-License-Identifier: MIT */
/* Finds the two operations whose order makes the difference, and says what it came to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "find.h"

const char *zo_verdict_name(int verdict)
{
    static const char *const names[] = {"order", "host-order", "none-found", "not-order", "unfaithful", "unstable", "budget"};
    return verdict >= 0 && verdict < 7 ? names[verdict] : "?";
}

/* ------------------------------------------------------------------------------------------------------------ answer */

static uint64_t submit_of(const zo_graph *g, uint32_t node)
{
    return node & (ZO_CALL_BIT | ZO_WRITE_BIT) ? 0 : g->calls[g->instances[node].submit].number;
}

static void at(zo_point p, char *out, size_t size)
{
    if (p.execution > 1)
        snprintf(out, size, "#%llu@%u", (unsigned long long)p.call, p.execution);
    else
        snprintf(out, size, "#%llu", (unsigned long long)p.call);
}

static const zo_conflict *conflict_of(const zo_graph *g, uint32_t x, uint32_t y)
{
    for (size_t i = 0; i < g->n_conflicts; i++) {
        const zo_conflict *const c = &g->conflicts[i];
        const uint32_t x2 = x & ZO_WRITE_BIT ? (x & ~ZO_WRITE_BIT) | ZO_CALL_BIT : x, y2 = y & ZO_WRITE_BIT ? (y & ~ZO_WRITE_BIT) | ZO_CALL_BIT : y;
        if ((c->a == x2 && c->b == y2) || (c->a == y2 && c->b == x2))
            return c;
    }
    return NULL;
}

/* What in the recorded driver, rather than in the specification, orders such a pair. */
static void note_hidden(finder *f, const zo_conflict *c)
{
    for (size_t i = 0; c != NULL && i < f->g->n_findings; i++) {
        const zo_finding *const x = &f->g->findings[i];
        const zo_point b = zo_graph_point(f->g, c->b);
        const char *const by = strstr(x->what, "legal on this driver (");
        if (x->class == ZO_HIDDEN && by != NULL && x->points[0].call == b.call)
            snprintf(f->a->hidden_by, sizeof(f->a->hidden_by), "%.*s", (int)strcspn(by + 22, ")"), by + 22);
    }
}

void zo_fill_pair(finder *f, uint32_t early, uint32_t late)
{
    zo_pair *const a = &f->pair;
    zo_graph *const g = f->g;
    char e[32], l[32];
    a->early = zo_graph_point(g, early);
    a->late = zo_graph_point(g, late);
    a->early_is_write = (early & ZO_WRITE_BIT) != 0 && !(early & ZO_CALL_BIT);
    a->early_submit = submit_of(g, early);
    a->late_submit = submit_of(g, late);
    a->found_after = f->a->replays;
    at(a->early, e, sizeof(e));
    at(a->late, l, sizeof(l));
    const zo_conflict *const c = conflict_of(g, early, late);
    zo_finding named = {0};
    if (c != NULL)
        zo_finding_object(g, &named, c->object);
    note_hidden(f, c);
    snprintf(a->object, sizeof(a->object), "%s", named.object);
    a->inject[0] = '\0';
    const bool host = a->early_submit == 0;
    if (a->late_submit != 0)
        snprintf(a->inject, sizeof(a->inject), "sync(%s)@before:#%llu", l,
                 (unsigned long long)(host ? a->early.call : a->early_submit));
    if (host && a->early_is_write)
        snprintf(a->repair, sizeof(a->repair), "wait for %s before writing what %s has seen: by its event or fence, or for its queue", l, e);
    else if (host)
        snprintf(a->repair, sizeof(a->repair), "wait for %s before %s: by its event or fence, or for its queue", l, e);
    else if (a->late_submit == 0)
        snprintf(a->repair, sizeof(a->repair), "submit %s only when #%llu has been made", e, (unsigned long long)a->late.call);
    else
        snprintf(a->repair, sizeof(a->repair), "an event that %s signals and %s waits for; or wait on the host for %s before #%llu", l, e, l,
                 (unsigned long long)a->early_submit);
}

/* The pair that the last replays went into. */
static void note_suspect(finder *f, uint32_t early, uint32_t late)
{
    char e[32], l[32];
    at(zo_graph_point(f->g, early), e, sizeof(e));
    at(zo_graph_point(f->g, late), l, sizeof(l));
    snprintf(f->a->text, sizeof(f->a->text), "%s before %s seems to make the difference (fails %u of %u, the other way passes %u of %u), which more replays would confirm",
             e, l, f->pair.fails[0], f->pair.fails[1], f->pair.passes[0], f->pair.passes[1]);
}

bool zo_confirm(finder *f, const line *passing, const line *failing, uint32_t early, uint32_t late)
{
    zo_pair *const a = &f->pair;
    const zo_edge turned = {early, late}, kept = {late, early};
    line one = {0}, other = {0};
    *a = (zo_pair){0};
    if (f->bad_wait != 0 && zo_graph_point(f->g, early).call == f->bad_wait)
        return false; /* that a wait fails before what it waits for says nothing */
    bool ok = zo_line(f, ZO_P_LIKE, 0, passing, &turned, 1, &one) && zo_line(f, ZO_P_LIKE, 0, failing, &kept, 1, &other);
    ok = ok && zo_several(f, &one, FAILS, a->fails, "confirming that it fails") == FAILS;
    if (ok)
        zo_note_where_it_shows(f);
    ok = ok && zo_several(f, &other, PASSES, a->passes, "confirming the repair") == PASSES;
    if (ok) {
        zo_fill_pair(f, early, late);
        a->verified[0] = a->passes[0]; /* the repair is that edge */
        a->verified[1] = a->passes[1];
        if (f->n_repairs < ZO_PAIRS_MAX)
            f->repairs[f->n_repairs++] = kept;
    }
    if (!ok && f->spent)
        note_suspect(f, early, late);
    free(one.nodes);
    free(other.nodes);
    return ok;
}

uint32_t zo_node_in_line(const zo_conflict *c, uint32_t node)
{
    return c->kind == ZO_X_HOST_WRITE && (node & ZO_CALL_BIT) ? (node & ~ZO_CALL_BIT) | ZO_WRITE_BIT : node;
}

/* ---------------------------------------------------------------------------------------------------------- verdicts */

/* The host call of a finding moves behind what it has to follow, and nothing else does. @return whether that passes. */
static bool cures(finder *f, const line *base, uint32_t early, uint32_t late)
{
    zo_pair *const p = &f->pair;
    const zo_edge edge = {late, early};
    line moved = {0};
    f->g->floating = early;
    const bool ok = zo_line(f, ZO_P_LIKE, 0, base, &edge, 1, &moved) && zo_trial(f, &moved, "moving the host call") == PASSES &&
                    zo_several(f, &moved, PASSES, p->verified, "moving the host call") == PASSES;
    f->g->floating = ZO_NONE;
    free(moved.nodes);
    return ok;
}

#define FINDINGS_TRIED 8u /* the rest are consequences, as a rule */

static bool explains(const zo_finding *x)
{
    return (x->severity == ZO_ERROR || x->class == ZO_HIDDEN) && (x->forced || strchr("ABCDFG", x->rule[0]));
}

/* What takes something away explains more than who did not look at a result. */
static int weight(const zo_finding *x)
{
    return (x->forced ? 2 : 0) + (x->rule[0] < 'F');
}

static void take_finding(finder *f, const zo_finding *x)
{
    zo_pair *const p = &f->pair;
    p->early = x->points[0];
    p->late = x->n_points > 1 ? x->points[1] : (zo_point){0, 0};
    const uint32_t node = zo_graph_node(f->g, p->early);
    if (p->early.execution > 0 && node != ZO_NONE) /* what the host can move is the submit */
        p->early = (zo_point){f->g->calls[f->g->instances[node].submit].number, 0};
    p->early_is_write = x->rule[0] == 'C';
    p->verified[0] = p->verified[1] = 0;
    snprintf(p->object, sizeof(p->object), "%s", x->object);
    snprintf(p->repair, sizeof(p->repair), "%s", x->repair);
    snprintf(f->a->text, sizeof(f->a->text), "%s: %s", x->rule, x->what);
}

static bool try_finding(finder *f, const line *base, const zo_finding *x, uint64_t shows_at)
{
    take_finding(f, x);
    uint32_t early = zo_graph_node(f->g, f->pair.early);
    const uint32_t late = zo_graph_node(f->g, f->pair.late);
    if (early == ZO_NONE || late == ZO_NONE || x->n_points < 2)
        return false;
    if (f->pair.early_is_write && (early & ZO_CALL_BIT) && f->g->calls[early & ~ZO_CALL_BIT].moves)
        early = (early & ~ZO_CALL_BIT) | ZO_WRITE_BIT;
    f->a->moved_behind = f->pair.late;
    if (cures(f, base, early, late))
        return true;
    /* a reset has to follow the wait, too */
    const uint64_t wait = f->bad_wait != 0 ? f->bad_wait : shows_at;
    const uint32_t behind = wait > f->pair.early.call ? zo_graph_node(f->g, (zo_point){wait, 0}) : ZO_NONE;
    f->pair.verified[0] = f->pair.verified[1] = 0;
    f->a->moved_behind = (zo_point){wait, 0};
    if (behind != ZO_NONE && cures(f, base, early, behind))
        return true;
    f->a->moved_behind = (zo_point){0, 0};
    return false;
}

/* No order passes: perhaps the program itself forces the bad one. A finding whose call cures it when it alone is moved is the one. */
static void explain_forced(finder *f, const line *base, unsigned fails)
{
    zo_answer *const a = f->a;
    const zo_pair shown = f->pair;
    const zo_finding *best = NULL;
    unsigned tried = 0;
    for (int w = 3; w >= 0 && !zo_spent(f); w--)
        for (size_t i = 0; i < f->g->n_findings && !zo_spent(f); i++) {
            const zo_finding *const x = &f->g->findings[i];
            if (!explains(x) || weight(x) != w || tried++ >= FINDINGS_TRIED)
                continue;
            if (best == NULL)
                best = x;
            if (try_finding(f, base, x, shown.shows_at)) {
                best = x;
                w = -1;
                break;
            }
        }
    if (best == NULL) {
        a->verdict = f->bad ? ZO_V_NOT_ORDER : ZO_V_UNFAITHFUL;
        f->pair = shown;
        if (!f->bad)
            snprintf(a->text, sizeof(a->text), "in no order tried does the replay do what the recording did; first #%llu %.63s: %.319s",
                     (unsigned long long)shown.shows_at, shown.shows_function, shown.shows);
        return;
    }
    a->verdict = ZO_V_HOST_ORDER;
    if (f->pair.verified[1] == 0 || f->pair.verified[0] != f->pair.verified[1])
        take_finding(f, best);
    f->pair.shows_at = shown.shows_at;
    memcpy(f->pair.shows_function, shown.shows_function, sizeof(shown.shows_function));
    memcpy(f->pair.shows, shown.shows, sizeof(shown.shows));
    f->pair.fails[0] = f->pair.fails[1] = fails;
    f->pair.passes[0] = f->pair.verified[0];
    f->pair.passes[1] = f->pair.verified[1];
    f->pair.found_after = a->replays;
}

/* The earliest order, three times. */
static enum outcome try_baseline(finder *f, const line *base, unsigned *fails)
{
    enum { TIMES = 3 };
    enum outcome outcomes[TIMES];
    zr_report *const reports = malloc(TIMES * sizeof(*reports));
    const line lines[TIMES] = {*base, *base, *base};
    *fails = 0;
    if (reports == NULL)
        return CANNOT;
    f->in_time = false;
    zo_trials(f, lines, TIMES, "the earliest order", outcomes, reports);
    bool late = false, can = true;
    for (int i = 0; i < TIMES; i++) {
        late |= reports[i].late > 0;
        can &= outcomes[i] != CANNOT;
        if (outcomes[i] == FAILS && (*fails)++ == 0) {
            f->report = reports[i];
            zo_note_where_it_shows(f);
        }
    }
    f->in_time = f->g->in_time = !late;
    free(reports);
    return !can ? CANNOT : *fails > 0 ? FAILS : PASSES;
}

static bool search(finder *f, const line *base, enum outcome of_base, bool *other)
{
    const unsigned most = 2 * f->a->carriers + 8;
    return zo_try_candidates(f, base, of_base, 0, most) || (of_base == FAILS && !f->bad && f->n_repairs == 0 && f->o->run == NULL && zo_try_host_writes(f)) ||
           zo_try_family(f, base, of_base, other);
}

/* With what was found repaired, the next one. */
static void search_more(finder *f)
{
    zo_answer *const a = f->a;
    const zo_pair first = f->pair;
    bool found = true, other;
    while (found && a->n_more < ZO_PAIRS_MAX - 1 && !zo_spent(f)) {
        line base;
        if (!zo_line(f, ZO_P_EARLY, 0, NULL, NULL, 0, &base))
            break;
        const enum outcome of_base = zo_trial(f, &base, "with the repair");
        found = of_base != CANNOT && search(f, &base, of_base, &other);
        if (found)
            a->more[a->n_more++] = f->pair;
        free(base.nodes);
    }
    f->pair = first;
}

/* A bad recording that passes in every order here: the program's own calls forbid what it did, or nothing explains it. */
static void explain_unshown(finder *f)
{
    zo_answer *const a = f->a;
    for (size_t i = 0; i < f->g->n_findings; i++) {
        const zo_finding *const x = &f->g->findings[i];
        if (x->severity != ZO_ERROR || !x->forced || !explains(x))
            continue;
        take_finding(f, x);
        a->verdict = ZO_V_HOST_ORDER;
        f->pair.found_after = a->replays;
        return;
    }
    a->verdict = ZO_V_UNFAITHFUL;
    snprintf(a->text, sizeof(a->text), "the recorded run was a bad one, but no replay shows it, in any order tried");
}

typedef struct search_result {
    line base;
    enum outcome of_base;
    unsigned fails;
    bool other, found;
} search_result;

static search_result search_all(finder *f)
{
    search_result r = {.of_base = PASSES};
    if (!zo_line(f, ZO_P_EARLY, 0, NULL, NULL, 0, &r.base))
        return r;
    r.of_base = try_baseline(f, &r.base, &r.fails);
    if (f->a->orders == 0)
        f->a->orders = 1;
    if (r.of_base != CANNOT && (r.fails == 0 || r.fails == 3))
        r.found = search(f, &r.base, r.of_base, &r.other);
    return r;
}

/*
 * A bad recording that no call's result says is bad: first an order is looked for that shows a fault, for a fault is what such a
 * program may have died of, and only then one that has other contents, or in which the wait is answered.
 */
static search_result search_for_faults(finder *f)
{
    const uint64_t wait = f->bad_wait;
    const uint32_t patient = f->g->patient;
    f->bad_by_result = true;
    f->bad_wait = 0;
    f->g->patient = ZO_NONE;
    search_result r = search_all(f);
    if (r.found || r.of_base != PASSES || r.base.n == 0 || zo_spent(f))
        return r;
    free(r.base.nodes);
    free(f->tried);
    f->tried = NULL;
    f->n_tried = 0;
    f->a->host_device = f->a->device_device = 0;
    f->bad_by_result = false;
    f->bad_wait = wait;
    f->g->patient = patient;
    return search_all(f);
}

int zo_isolate(zo_graph *g, zr_plan *plan, const zt_ending *ending, const zo_isolate_options *o, zo_answer *a)
{
    *a = (zo_answer){.verdict = ZO_V_NONE_FOUND, .seed = o->seed};
    finder f = {.g = g, .plan = plan, .o = o, .a = a};
    for (size_t i = 0; i < g->n_chains; i++)
        a->carriers += g->chains[i].device;
    zo_graph_count(g, &a->graph);
    zo_decide_recording(&f, ending);
    if (o->timing > 0) {
        const int status = zo_timing(&f);
        a->pair = f.pair;
        free(f.tried);
        return status;
    }
    search_result r = f.bad && !f.bad_by_result && o->judge == NULL ? search_for_faults(&f) : search_all(&f);
    int status = ZT_OK;
    if (r.base.n == 0) {
        snprintf(a->text, sizeof(a->text), "no order can be made of this trace: a wait that it says succeeded waits for what never runs");
        a->verdict = ZO_V_UNFAITHFUL;
    } else if (r.of_base == CANNOT && f.spent) {
        a->verdict = ZO_V_BUDGET;
    } else if (r.of_base == CANNOT) {
        status = ZT_E_USAGE;
    } else if (r.fails != 0 && r.fails != 3) {
        a->verdict = ZO_V_UNSTABLE;
        snprintf(a->text, sizeof(a->text), "the earliest order fails %u of 3 times, at #%llu %.63s: %.319s", r.fails,
                 (unsigned long long)f.pair.shows_at, f.pair.shows_function, f.pair.shows);
    } else if (r.found) {
        a->verdict = ZO_V_ORDER;
        search_more(&f);
    } else if (zo_spent(&f)) {
        a->verdict = ZO_V_BUDGET;
    } else if (r.other) {
        a->verdict = ZO_V_UNSTABLE;
        snprintf(a->text, sizeof(a->text), "some orders fail and some pass, but no pair alone makes the difference every time");
    } else if (r.of_base == FAILS) {
        explain_forced(&f, &r.base, r.fails);
    } else if (f.bad && o->judge == NULL) {
        explain_unshown(&f);
    }
    if (a->verdict == ZO_V_BUDGET && a->text[0] == 0)
        snprintf(a->text, sizeof(a->text), "no order among those tried makes a difference, and %u replays are all there were to make", a->replays);
    a->pair = f.pair;
    if (a->verdict != ZO_V_ORDER && a->verdict != ZO_V_HOST_ORDER)
        a->early = a->late = (zo_point){0, 0};
    g->patient = ZO_NONE;
    free(f.tried);
    free(r.base.nodes);
    return status;
}

int zo_order_fails(zo_graph *g, zr_plan *plan, const zt_ending *ending, const zo_isolate_options *o, const uint32_t *nodes, size_t n,
                   zo_answer *a)
{
    *a = (zo_answer){0};
    finder f = {.g = g, .plan = plan, .o = o, .a = a};
    const line l = {(uint32_t *)(uintptr_t)nodes, n};
    zo_decide_recording(&f, ending);
    f.in_time = g->in_time;
    const enum outcome got = zo_trial(&f, &l, "an order");
    if (got == FAILS)
        zo_note_where_it_shows(&f);
    a->pair = f.pair;
    return got == CANNOT ? -1 : got == FAILS;
}

static bool is_node(const zo_graph *g, uint32_t node)
{
    return node & (ZO_CALL_BIT | ZO_WRITE_BIT) ? (node & ~(ZO_CALL_BIT | ZO_WRITE_BIT)) < g->n_calls : node < g->n_instances;
}

bool zo_run_line(zo_graph *g, zr_plan *plan, const zt_ending *ending, const zo_isolate_options *o, const uint32_t *nodes, size_t n,
                 zr_report *report)
{
    zo_answer answer;
    zo_isolate_options here = *o;
    here.run = NULL;
    here.judge = NULL;
    for (size_t i = 0; i < n; i++)
        if (!is_node(g, nodes[i]))
            return false;
    finder f = {.g = g, .plan = plan, .o = &here, .a = &answer};
    const line l = {(uint32_t *)(uintptr_t)nodes, n};
    enum outcome outcome;
    answer = (zo_answer){0};
    zo_decide_recording(&f, ending);
    zo_trials(&f, &l, 1, "an order", &outcome, report);
    return true;
}

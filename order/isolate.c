/* SPDX-License-Identifier: MIT */
/*
 * Finds the two operations whose order makes the difference. A trial is one replay of one line. Candidates that the graph gives
 * are turned round one by one from the earliest line; then come lines far from it, and a bisection between one that passes and one
 * that fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

const char *zo_verdict_name(int verdict)
{
    static const char *const names[] = {"order", "host-order", "none-found", "not-order", "unfaithful", "unstable", "budget"};
    return verdict >= 0 && verdict < 7 ? names[verdict] : "?";
}

typedef struct line {
    uint32_t *nodes;
    size_t n;
} line;

typedef struct finder {
    zo_graph *g;
    zr_plan *plan;
    const zo_isolate_options *o;
    zo_answer *a;
    zr_report report; /* of the last trial */
    bool bad, bad_by_result;
    bool in_time; /* in the earliest order every command ends in its turn */
} finder;

enum outcome { PASSES, FAILS, CANNOT };

/* ------------------------------------------------------------------------------------------------------------- trial */

static bool is_fault_name(const char *name)
{
    return strstr(name, "DEVICE_LOST") || strstr(name, "OUT_OF_DEVICE_MEMORY") || strstr(name, "ERROR_UNKNOWN");
}

static bool spent(const finder *f)
{
    return f->a->replays >= (f->o->budget ? f->o->budget : 200);
}

static zr_options options_of(const finder *f)
{
    /* gates of one engine would block each other, and a fault that nobody is told of is no outcome */
    static const zt_pair knobs[] = {{(char *)"ZE_SOFT_ENGINES", (char *)"independent"}, {(char *)"ZE_SOFT_FAULT", (char *)"ban"}};
    zr_options o = *f->o->replay;
    o.schedule = "eager";
    o.environment = knobs;
    o.n_environment = sizeof(knobs) / sizeof(knobs[0]);
    o.loop = 1;
    return o;
}

static enum outcome trial(finder *f, const line *l, const char *what)
{
    zr_options o = options_of(f);
    size_t n_items;
    zr_item *const items = zo_graph_items(f->g, l->nodes, l->n, &n_items);
    if (items == NULL)
        return CANNOT;
    o.items = items;
    o.n_items = n_items;
    f->a->replays += 1 + (f->g->n_learn > 0 && f->g->learned == NULL);
    zo_learn(f->g, f->plan, &o);
    if (f->o->progress != NULL)
        f->o->progress(f->o->ctx, what, f->a->replays, f->o->budget ? f->o->budget : 200);
    zr_replay(f->plan, &o, &f->report);
    free(items);
    const zr_report *const r = &f->report;
    snprintf(f->a->driver, sizeof(f->a->driver), "%s", r->driver);
    if (r->verdict == ZR_CANNOT) {
        snprintf(f->a->text, sizeof(f->a->text), "%s", r->message);
        return CANNOT;
    }
    const bool stopped = r->message[0] != 0 || r->stuck > 0 || (f->in_time && r->late > 0);
    if (!f->bad)
        return r->verdict != ZR_SAME || stopped || r->lost ? FAILS : PASSES;
    if (f->bad_by_result)
        return stopped || r->lost || (r->error_call != 0 && is_fault_name(r->error_result)) ? FAILS : PASSES;
    return r->verdict == ZR_SAME || stopped ? FAILS : PASSES; /* the recorded contents are the bad ones */
}

static enum outcome several(finder *f, const line *l, enum outcome wanted, unsigned counts[2], const char *what)
{
    const unsigned n = f->o->confirm ? f->o->confirm : 3;
    enum outcome last = wanted;
    for (unsigned i = 0; i < n && last != CANNOT; i++) {
        last = trial(f, l, what);
        counts[0] += last == wanted;
        counts[1]++;
    }
    return counts[0] == counts[1] ? wanted : last == CANNOT ? CANNOT : wanted == PASSES ? FAILS : PASSES;
}

static bool schedule(finder *f, int policy, uint64_t value, const line *like, const zo_edge *extra, size_t n, line *out)
{
    uint32_t stuck;
    out->n = zo_schedule(f->g, policy, value, like ? like->nodes : NULL, like ? like->n : 0, extra, n, &out->nodes, &stuck);
    return out->n > 0;
}

/* ------------------------------------------------------------------------------------------------------------ answer */

static void note_where_it_shows(finder *f)
{
    const zr_report *const r = &f->report;
    zo_answer *const a = f->a;
    a->shows_at = 0;
    if (r->mismatches > 0 && r->first.call != 0 && !f->bad) {
        a->shows_at = r->first.call;
        snprintf(a->shows_function, sizeof(a->shows_function), "%s", r->first.function);
        snprintf(a->shows, sizeof(a->shows), "%s%s%s instead of %s", r->first.detail, r->first.detail[0] ? ": " : "", r->first.replayed,
                 r->first.recorded);
    } else if (r->error_call != 0) {
        a->shows_at = r->error_call;
        snprintf(a->shows_function, sizeof(a->shows_function), "%s", r->error_function);
        snprintf(a->shows, sizeof(a->shows), "%s", r->error_result);
    } else if (r->lost) {
        snprintf(a->shows, sizeof(a->shows), "the device is lost in the end, and no call tells the program");
    } else if (r->stuck > 0) {
        a->shows_at = r->first_stuck;
        snprintf(a->shows, sizeof(a->shows), "the command never ends");
    } else if (r->message[0] != 0) {
        snprintf(a->shows, sizeof(a->shows), "%.300s", r->message);
    } else if (r->late > 0) {
        a->shows_at = r->first_late;
        snprintf(a->shows, sizeof(a->shows), "the command does not end in its turn: what it waits for has been taken away");
    }
}

static uint64_t submit_of(const zo_graph *g, uint32_t node)
{
    return node & (ZO_CALL_BIT | ZO_WRITE_BIT) ? 0 : g->calls[g->instances[node].submit].number;
}

static zo_point point_of(const zo_graph *g, uint32_t node)
{
    return node & ZO_WRITE_BIT ? (zo_point){g->calls[node & ~ZO_WRITE_BIT].number, 0} : zo_graph_point(g, node);
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

static void fill_answer(finder *f, uint32_t early, uint32_t late)
{
    zo_answer *const a = f->a;
    zo_graph *const g = f->g;
    char e[32], l[32];
    a->verdict = ZO_V_ORDER;
    a->early = point_of(g, early);
    a->late = point_of(g, late);
    a->early_is_write = (early & ZO_WRITE_BIT) != 0 && !(early & ZO_CALL_BIT);
    a->early_submit = submit_of(g, early);
    a->late_submit = submit_of(g, late);
    at(a->early, e, sizeof(e));
    at(a->late, l, sizeof(l));
    const zo_conflict *const c = conflict_of(g, early, late);
    zo_finding named = {0};
    if (c != NULL)
        zo_finding_object(g, &named, c->object);
    snprintf(a->object, sizeof(a->object), "%s", named.object);
    const bool host = a->early_submit == 0;
    if (a->late_submit != 0)
        snprintf(a->inject, sizeof(a->inject), "sync(%s)@before:#%llu", l,
                 (unsigned long long)(host ? a->early.call : a->early_submit));
    if (host)
        snprintf(a->repair, sizeof(a->repair), "wait for %s before %s: by its event or fence, or for its queue", l, e);
    else if (a->late_submit == 0)
        snprintf(a->repair, sizeof(a->repair), "submit %s only when #%llu has been made", e, (unsigned long long)a->late.call);
    else
        snprintf(a->repair, sizeof(a->repair), "an event that %s signals and %s waits for; or wait on the host for %s before #%llu", l, e, l,
                 (unsigned long long)a->early_submit);
}

/* early before late fails from the passing line alone, and the failing line passes with late before early. */
static bool confirm(finder *f, const line *passing, const line *failing, uint32_t early, uint32_t late)
{
    zo_answer *const a = f->a;
    const zo_edge turned = {early, late}, kept = {late, early};
    line one = {0}, other = {0};
    memset(a->fails, 0, sizeof(a->fails));
    memset(a->passes, 0, sizeof(a->passes));
    bool ok = schedule(f, ZO_P_LIKE, 0, passing, &turned, 1, &one) && schedule(f, ZO_P_LIKE, 0, failing, &kept, 1, &other);
    ok = ok && several(f, &one, FAILS, a->fails, "confirming that it fails") == FAILS;
    if (ok)
        note_where_it_shows(f);
    ok = ok && several(f, &other, PASSES, a->passes, "confirming the repair") == PASSES;
    if (ok) {
        fill_answer(f, early, late);
        a->verified[0] = a->passes[0]; /* the repair is that edge */
        a->verified[1] = a->passes[1];
    }
    free(one.nodes);
    free(other.nodes);
    return ok;
}

/* ------------------------------------------------------------------------------------------------------------ expose */

static uint32_t node_in_line(const zo_conflict *c, uint32_t node)
{
    return c->kind == ZO_X_HOST_WRITE && (node & ZO_CALL_BIT) ? (node & ~ZO_CALL_BIT) | ZO_WRITE_BIT : node;
}

/* Host calls first: what they take away is what programs die of. */
static int rank(const zo_conflict *c)
{
    return (c->possible ? 8 : 0) + (c->coarse ? 4 : 0) + (c->b & ZO_CALL_BIT ? 0 : 1) + (c->kind == ZO_X_EVENT_RESET ? 1 : 0);
}

static int by_rank(const void *a, const void *b)
{
    const zo_conflict *const x = a, *const y = b;
    if (rank(x) != rank(y))
        return rank(x) < rank(y) ? -1 : 1;
    return x->b < y->b ? -1 : x->b > y->b;
}

static size_t place_in(const line *l, uint32_t node)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->nodes[i] == node)
            return i;
    return SIZE_MAX;
}

/* Turns conflicts from number `first` on round one by one. @return whether one made the difference. */
static bool try_candidates(finder *f, const line *base, enum outcome of_base, size_t first, unsigned most)
{
    zo_conflict *const list = malloc((f->g->n_conflicts + 1) * sizeof(*list));
    size_t n = 0;
    bool found = false;
    for (size_t i = first; list != NULL && i < f->g->n_conflicts; i++)
        if (!f->g->conflicts[i].forced)
            list[n++] = f->g->conflicts[i];
    if (n > 0)
        qsort(list, n, sizeof(*list), by_rank);
    f->a->candidates += (unsigned)n;
    for (size_t i = 0; i < n && i < most && !found && !spent(f); i++) {
        uint32_t x = node_in_line(&list[i], list[i].a), y = node_in_line(&list[i], list[i].b);
        const size_t px = place_in(base, x), py = place_in(base, y);
        if (px == SIZE_MAX || py == SIZE_MAX)
            continue;
        if (py < px) {
            const uint32_t t = x;
            x = y;
            y = t;
        }
        const zo_edge turn = {y, x};
        line turned;
        if (!schedule(f, ZO_P_LIKE, 0, base, &turn, 1, &turned))
            continue;
        f->a->orders++;
        const enum outcome got = trial(f, &turned, "turning a pair round");
        if (got != of_base && got != CANNOT)
            found = of_base == PASSES ? confirm(f, base, &turned, y, x) : confirm(f, &turned, base, x, y);
        free(turned.nodes);
    }
    free(list);
    return found;
}

/*
 * The recording was good, and the earliest order is not: perhaps the host wrote into what a command was still to write. Then an order
 * in which the host's bytes come last passes, and one in which they come first fails.
 */
static bool try_host_writes(finder *f)
{
    const size_t first = f->g->n_conflicts;
    const zr_options o = options_of(f);
    line base;
    f->a->replays++;
    if (zo_learn_reads(f->g, f->plan, &o) == 0 || !schedule(f, ZO_P_EARLY, 0, NULL, NULL, 0, &base))
        return false;
    const bool found = trial(f, &base, "with the host's writes") == PASSES && try_candidates(f, &base, PASSES, first, 4);
    free(base.nodes);
    return found;
}

typedef struct ranked {
    uint32_t node;
    size_t place;
} ranked;

/* The line on the way from `from` to `to` after the first `moved` nodes of `from` have been sorted as in `to`. */
static int by_place(const void *a, const void *b)
{
    const ranked *const x = a, *const y = b;
    return x->place < y->place ? -1 : x->place > y->place;
}

static bool between(finder *f, const line *from, const line *to, size_t sorted, size_t shift, line *out)
{
    size_t *const place = calloc(f->g->n_instances + 2 * f->g->n_calls + 1, sizeof(*place));
    ranked *const head = malloc((from->n + 1) * sizeof(*head));
    out->nodes = malloc((from->n + 1) * sizeof(*out->nodes));
    out->n = from->n;
    const size_t n_i = f->g->n_instances, n_c = f->g->n_calls;
#define SLOT(node) ((node) & ZO_CALL_BIT ? n_i + ((node) & ~ZO_CALL_BIT) : (node) & ZO_WRITE_BIT ? n_i + n_c + ((node) & ~ZO_WRITE_BIT) : (node))
    const bool ok = place && head && out->nodes;
    for (size_t i = 0; ok && i < to->n; i++)
        place[SLOT(to->nodes[i])] = i;
    for (size_t i = 0; ok && i < from->n; i++)
        head[i] = (ranked){from->nodes[i], place[SLOT(from->nodes[i])]};
    if (ok) {
        qsort(head, sorted, sizeof(*head), by_place);
        /* the next one has moved `shift` places towards where it belongs */
        if (sorted < from->n && shift > 0) {
            const ranked mover = head[sorted];
            memmove(head + sorted - shift + 1, head + sorted - shift, shift * sizeof(*head));
            head[sorted - shift] = mover;
        }
        for (size_t i = 0; i < from->n; i++)
            out->nodes[i] = head[i].node;
    }
    free(place);
    free(head);
    return ok;
}

/* How many places the node at `index` moves when it is inserted among the sorted ones before it. */
static size_t moves(finder *f, const line *from, const line *to, size_t index)
{
    line l;
    size_t n = 0;
    const size_t target = place_in(to, from->nodes[index]);
    if (!between(f, from, to, index, 0, &l))
        return 0;
    for (size_t i = index; i-- > 0 && place_in(to, l.nodes[i]) > target;)
        n++;
    free(l.nodes);
    return n;
}

/* From a line with one outcome to a line with another: the swap of neighbours that changes it. */
static bool bisect(finder *f, const line *from, const line *to, enum outcome of_from, uint32_t *first, uint32_t *second)
{
    size_t low = 0, high = from->n; /* nodes that are sorted: low as `from`, high as `to` */
    while (high - low > 1) {
        const size_t mid = (low + high) / 2;
        line l;
        if (spent(f) || !between(f, from, to, mid, 0, &l))
            return false;
        const enum outcome got = trial(f, &l, "bisecting");
        free(l.nodes);
        if (got == CANNOT)
            return false;
        if (got == of_from)
            low = mid;
        else
            high = mid;
    }
    size_t less = 0, more = moves(f, from, to, low);
    while (more - less > 1) {
        const size_t mid = (less + more) / 2;
        line l;
        if (spent(f) || !between(f, from, to, low, mid, &l))
            return false;
        const enum outcome got = trial(f, &l, "bisecting");
        free(l.nodes);
        if (got == CANNOT)
            return false;
        if (got == of_from)
            less = mid;
        else
            more = mid;
    }
    line l;
    if (more == 0 || !between(f, from, to, low, less, &l))
        return false;
    *second = l.nodes[low - less];
    *first = l.nodes[low - less - 1];
    free(l.nodes);
    return true;
}

/* Lines far from the earliest one. @return whether the pair was found. */
static bool try_family(finder *f, const line *base, enum outcome of_base, bool *other_seen)
{
    const unsigned randoms = 8;
    bool found = false;
    *other_seen = false;
    for (unsigned i = 0; !found && !spent(f); i++) {
        const unsigned n = (unsigned)f->g->n_chains;
        line l;
        bool made;
        if (i == 0)
            made = schedule(f, ZO_P_LATE, 0, NULL, NULL, 0, &l);
        else if (i <= 2 * n) {
            const unsigned chain = (i - 1) / 2;
            if (!f->g->chains[chain].device)
                continue;
            made = schedule(f, i % 2 ? ZO_P_CARRIER_FIRST : ZO_P_CARRIER_LAST, chain, NULL, NULL, 0, &l);
        } else if (i <= 2 * n + randoms) {
            made = schedule(f, ZO_P_RANDOM, f->o->seed + i, NULL, NULL, 0, &l);
        } else {
            break;
        }
        if (!made)
            continue;
        f->a->orders++;
        const enum outcome got = trial(f, &l, "trying orders");
        uint32_t first, second;
        if (got != of_base && got != CANNOT) {
            *other_seen = true;
            if (bisect(f, base, &l, of_base, &first, &second))
                found = of_base == PASSES ? confirm(f, base, &l, second, first) : confirm(f, &l, base, first, second);
        }
        free(l.nodes);
    }
    return found;
}

/* ---------------------------------------------------------------------------------------------------------- verdicts */

static void decide_recording(finder *f, const zt_ending *ending)
{
    zo_answer *const a = f->a;
    uint64_t failing = 0;
    for (size_t i = 0; i < f->g->n_calls && failing == 0; i++)
        if ((f->g->calls[i].flags & ZO_FAILED) && is_fault_name(zt_result_name(f->g->calls[i].result)))
            failing = f->g->calls[i].number;
    const bool ended_badly = ending != NULL && ((ending->exited && ending->status != 0) || ending->signalled);
    f->bad_by_result = failing != 0;
    f->bad = f->o->recording == ZO_REC_BAD || (f->o->recording == ZO_REC_AUTO && (failing != 0 || ended_badly));
    a->taken_for_bad = f->bad;
    if (f->o->recording != ZO_REC_AUTO)
        snprintf(a->why_taken, sizeof(a->why_taken), "as told");
    else if (failing != 0)
        snprintf(a->why_taken, sizeof(a->why_taken), "#%llu failed", (unsigned long long)failing);
    else if (ended_badly)
        snprintf(a->why_taken, sizeof(a->why_taken), ending->signalled ? "the program was ended by signal %d" : "the program ended with status %d",
                 ending->status);
    else
        snprintf(a->why_taken, sizeof(a->why_taken), "no call failed and the program ended with status 0");
}

/* No order passes: a finding that the program itself forces explains it. */
static void explain_forced(finder *f)
{
    zo_answer *const a = f->a;
    const zo_finding *best = NULL;
    for (size_t i = 0; i < f->g->n_findings; i++) {
        const zo_finding *const x = &f->g->findings[i];
        /* what takes something away explains more than who did not look at a result */
        const bool explains = x->severity == ZO_ERROR && (x->forced || strchr("ABDFG", x->rule[0]));
        const bool better = best == NULL || (x->forced && !best->forced) ||
                            (x->forced == best->forced && x->rule[0] < 'F' && best->rule[0] >= 'F');
        if (explains && better)
            best = x;
    }
    if (best == NULL) {
        a->verdict = f->bad ? ZO_V_NOT_ORDER : ZO_V_UNFAITHFUL;
        if (!f->bad)
            snprintf(a->text, sizeof(a->text), "in no order tried does the replay do what the recording did; first #%llu %.63s: %.319s",
                     (unsigned long long)a->shows_at, a->shows_function, a->shows);
        return;
    }
    a->verdict = ZO_V_HOST_ORDER;
    a->early = best->points[0];
    const uint32_t node = zo_graph_node(f->g, a->early);
    if (a->early.execution > 0 && node != ZO_NONE) /* what the host can move is the submit */
        a->early = (zo_point){f->g->calls[f->g->instances[node].submit].number, 0};
    if (best->n_points > 1)
        a->late = best->points[1];
    snprintf(a->object, sizeof(a->object), "%s", best->object);
    snprintf(a->repair, sizeof(a->repair), "%s", best->repair);
    snprintf(a->text, sizeof(a->text), "%s: %s", best->rule, best->what);
}

int zo_isolate(zo_graph *g, zr_plan *plan, const zt_ending *ending, const zo_isolate_options *o, zo_answer *a)
{
    *a = (zo_answer){.verdict = ZO_V_NONE_FOUND, .seed = o->seed};
    finder f = {.g = g, .plan = plan, .o = o, .a = a};
    line base = {0};
    for (size_t i = 0; i < g->n_chains; i++)
        a->carriers += g->chains[i].device;
    if (!schedule(&f, ZO_P_EARLY, 0, NULL, NULL, 0, &base)) {
        snprintf(a->text, sizeof(a->text), "no order can be made of this trace: a wait that it says succeeded waits for what never runs");
        a->verdict = ZO_V_UNFAITHFUL;
        return ZT_OK;
    }
    decide_recording(&f, ending);
    enum outcome of_base = PASSES;
    unsigned fails = 0;
    bool late = false;
    for (unsigned i = 0; i < 3 && of_base != CANNOT; i++) {
        of_base = trial(&f, &base, "the earliest order");
        fails += of_base == FAILS;
        late |= f.report.late > 0;
        if (of_base == FAILS && fails == 1)
            note_where_it_shows(&f);
    }
    a->orders = 1;
    bool found = false, other = false;
    if (of_base == CANNOT) {
        free(base.nodes);
        return ZT_E_USAGE;
    }
    f.in_time = !late;
    if (fails != 0 && fails != 3) {
        a->verdict = ZO_V_UNSTABLE;
    } else {
        found = try_candidates(&f, &base, of_base, 0, 2 * a->carriers + 8) ||
                (of_base == FAILS && !f.bad && try_host_writes(&f)) || try_family(&f, &base, of_base, &other);
        if (!found && spent(&f))
            a->verdict = ZO_V_BUDGET;
        else if (!found && other)
            a->verdict = ZO_V_UNSTABLE;
        else if (!found && of_base == FAILS)
            explain_forced(&f);
    }
    free(base.nodes);
    return ZT_OK;
}

int zo_order_fails(zo_graph *g, zr_plan *plan, const zt_ending *ending, const zo_isolate_options *o, const uint32_t *nodes, size_t n,
                   zo_answer *a)
{
    *a = (zo_answer){0};
    finder f = {.g = g, .plan = plan, .o = o, .a = a};
    const line l = {(uint32_t *)(uintptr_t)nodes, n};
    decide_recording(&f, ending);
    const enum outcome got = trial(&f, &l, "an order");
    if (got == FAILS)
        note_where_it_shows(&f);
    return got == CANNOT ? -1 : got == FAILS;
}

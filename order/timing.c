/* SPDX-License-Identifier: MIT */
/*
 * What goes wrong only while two commands overlap shows in no order of whole commands. Here they run in real time, side by side as the
 * driver likes, and one or the other of a pair comes late: if that makes a difference that is no chance, the pair is to blame.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "find.h"

#define DELAY_MOST 64000000u /* ns */
#define CHANCE     0.01      /* a difference that likely is none */
#define UNKNOWN    UINT32_MAX /* the replays are used up, or none can be had */

/* ln of n over k */
static double choose(unsigned n, unsigned k)
{
    return lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0);
}

double zo_fisher(unsigned a, unsigned b, unsigned n)
{
    const unsigned both = a + b, least = both > n ? both - n : 0, most = both < n ? both : n;
    const double whole = choose(2 * n, both), seen = choose(n, a) + choose(n, b) - whole;
    double p = 0;
    for (unsigned k = least; k <= most; k++) {
        const double one = choose(n, k) + choose(n, both - k) - whole;
        if (one <= seen + 1e-9)
            p += exp(one);
    }
    return p < 1 ? p : 1;
}

static uint64_t submit_of(const zo_graph *g, uint32_t node)
{
    return node & ZO_CALL_BIT ? g->calls[node & ~ZO_CALL_BIT].number : g->calls[g->instances[node].submit].number;
}

/* What the device is given at a submit comes late; a call is made late. */
static zr_point delay(const zo_graph *g, uint32_t node, uint64_t ns)
{
    return (zr_point){.call = submit_of(g, node), .kind = ZR_P_DELAY, .ns = ns, .device = !(node & ZO_CALL_BIT)};
}

/* @return how many of `times` fail, or UNKNOWN */
static unsigned failures(finder *f, const zr_point *points, size_t n, unsigned times, const char *what)
{
    zr_options o = zo_trial_options(f);
    unsigned failed = 0;
    o.schedule = "async";
    o.points = points;
    o.n_points = n;
    for (unsigned i = 0; i < times; i++) {
        if (zo_spent(f)) {
            f->spent = true;
            return UNKNOWN;
        }
        f->a->replays++;
        if (f->o->progress != NULL)
            f->o->progress(f->o->ctx, what, f->a->replays, zo_budget(f));
        zr_report report;
        zr_replay(f->plan, &o, &report);
        snprintf(f->a->driver, sizeof(f->a->driver), "%s", report.driver);
        const enum outcome got = zo_judge(f, &report);
        if (got == CANNOT) {
            snprintf(f->a->text, sizeof(f->a->text), "%s", report.message);
            return UNKNOWN;
        }
        failed += got == FAILS;
        if (got == FAILS)
            f->report = report;
    }
    return failed;
}

/* With the wait that is missing, the late one being late changes nothing. */
static void try_repair(finder *f, uint32_t late, uint64_t ns, unsigned times)
{
    zo_pair *const pair = &f->pair;
    char sentence[256];
    zr_points points = {0};
    if (pair->inject[0] == 0 || !zr_inject_parse(f->plan, pair->inject, &points, sentence, sizeof(sentence)) || points.n == 0)
        return;
    const zr_point both[2] = {delay(f->g, late, ns), points.list[0]};
    const unsigned failed = failures(f, both, 2, times, "with the wait");
    pair->verified[0] = failed == UNKNOWN ? 0 : times - failed;
    pair->verified[1] = failed == UNKNOWN ? 0 : times;
    zr_points_free(&points);
}

/* Replays with one late and with the other. @return how likely such a difference is by chance, 2: no replay can be had. */
static double hold_against(finder *f, const zr_point late[2], unsigned failed[2])
{
    const unsigned times = f->o->timing;
    failed[0] = failures(f, &late[0], 1, times, "one late");
    failed[1] = failed[0] == UNKNOWN ? UNKNOWN : failures(f, &late[1], 1, times, "the other late");
    return failed[1] == UNKNOWN ? 2 : zo_fisher(failed[0], failed[1], times);
}

/* One late, then the other, by more and more. @return whether that is a difference. */
static bool try_pair(finder *f, uint32_t x, uint32_t y)
{
    const unsigned times = f->o->timing;
    for (uint64_t ns = 1000000; ns <= DELAY_MOST; ns *= 4) {
        const zr_point late[2] = {delay(f->g, x, ns), delay(f->g, y, ns)};
        unsigned first[2], failed[2];
        double p = hold_against(f, late, first);
        if (p > 1)
            return false;
        if (p >= CHANCE)
            continue;
        /* of many pairs and delays some differ so much by chance: what is no chance does so again */
        p = hold_against(f, late, failed);
        if (p > 1)
            return false;
        if (p >= CHANCE || (failed[0] > failed[1]) != (first[0] > first[1]))
            continue;
        const bool one = failed[0] > failed[1];
        zo_note_where_it_shows(f);
        zo_fill_pair(f, one ? y : x, one ? x : y);
        f->pair.fails[0] = failed[!one];
        f->pair.passes[0] = times - failed[one];
        f->pair.fails[1] = f->pair.passes[1] = times;
        try_repair(f, one ? x : y, ns, times);
        snprintf(f->a->text, sizeof(f->a->text), "of %llu ms: fails %u of %u with #%llu late, %u of %u with #%llu late; p = %.2g (Fisher's exact test)",
                 (unsigned long long)(ns / 1000000), f->pair.fails[0], times, (unsigned long long)f->pair.late.call, failed[one], times,
                 (unsigned long long)f->pair.early.call, p);
        return true;
    }
    return false;
}

int zo_timing(finder *f)
{
    zo_answer *const a = f->a;
    size_t n = 0;
    zo_ranked *const list = zo_candidates(f, 0, &n);
    bool found = false;
    if (list == NULL)
        return ZT_E_MEMORY;
    a->by_delays = true;
    for (size_t i = 0; i < n && !found && !f->spent && a->text[0] == 0; i++) {
        const zo_conflict *const c = list[i].conflict;
        if (submit_of(f->g, c->a) == submit_of(f->g, c->b))
            continue; /* they can't be delayed apart */
        a->orders++;
        found = try_pair(f, c->a, c->b);
    }
    free(list);
    a->verdict = found ? ZO_V_ORDER : f->spent ? ZO_V_BUDGET : ZO_V_NONE_FOUND;
    return !found && !f->spent && a->text[0] != 0 ? ZT_E_USAGE : ZT_OK;
}

/* SPDX-License-Identifier: MIT */
/* One replay of one line, and whether it fails. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "find.h"

/* --------------------------------------------------------------------------------------------------------- the recording */

static bool is_fault_name(const char *name)
{
    return strstr(name, "DEVICE_LOST") || strstr(name, "OUT_OF_DEVICE_MEMORY") || strstr(name, "ERROR_UNKNOWN");
}

void zo_decide_recording(finder *f, const zt_ending *ending)
{
    zo_answer *const a = f->a;
    uint64_t failing = 0;
    for (size_t i = 0; i < f->g->n_calls && failing == 0; i++)
        if ((f->g->calls[i].flags & ZO_FAILED) && is_fault_name(zt_result_name(f->g->calls[i].result)))
            failing = f->g->calls[i].number;
    for (size_t i = 0; i < f->g->n_calls; i++)
        if (f->g->calls[i].func->kind == ZT_K_SYNC && f->g->calls[i].result == 1 && f->g->calls[i].timeout > 0)
            f->bad_wait = f->g->calls[i].number;
    const bool ended_badly = ending != NULL && ((ending->exited && ending->status != 0) || ending->signalled);
    f->bad_by_result = failing != 0;
    f->bad = f->o->recording == ZO_REC_BAD || (f->o->recording == ZO_REC_AUTO && (failing != 0 || ended_badly));
    if (!f->bad || f->bad_by_result)
        f->bad_wait = 0;
    const uint32_t wait = f->bad_wait != 0 ? zo_graph_node(f->g, (zo_point){f->bad_wait, 0}) : ZO_NONE;
    f->g->patient = wait == ZO_NONE ? ZO_NONE : wait & ~ZO_CALL_BIT;
    a->taken_for_bad = f->bad;
    if (f->o->recording != ZO_REC_AUTO)
        snprintf(a->why_taken, sizeof(a->why_taken), "as told");
    else if (failing != 0)
        snprintf(a->why_taken, sizeof(a->why_taken), "#%llu failed", (unsigned long long)failing);
    else if (ended_badly)
        snprintf(a->why_taken, sizeof(a->why_taken), ending->signalled ? "the program was ended by signal %d" : "the program ended with status %d",
                 ending->status);
    else if (ending != NULL && ending->exited)
        snprintf(a->why_taken, sizeof(a->why_taken), "no call failed and the program ended with status 0");
    else
        snprintf(a->why_taken, sizeof(a->why_taken), "no call failed; how the program ended is not known");
}

/* ----------------------------------------------------------------------------------------------------------------- trial */

unsigned zo_budget(const finder *f)
{
    return f->o->budget ? f->o->budget : 200;
}

bool zo_spent(const finder *f)
{
    return f->a->replays >= zo_budget(f);
}

zr_options zo_trial_options(const finder *f)
{
    /* gates of one engine would block each other, and a fault that nobody is told of is no outcome */
    static const zt_pair knobs[] = {{(char *)"ZE_SOFT_ENGINES", (char *)"independent"}, {(char *)"ZE_SOFT_FAULT", (char *)"ban"},
                                    {(char *)"ZE_SOFT_FREE", (char *)"fault"}};
    const bool free_waits = (f->g->known_habits & ZO_H_FREE_WAITS) != 0; /* for what is held back, for ever */
    zr_options o = *f->o->replay;
    o.schedule = "eager";
    o.environment = knobs;
    o.n_environment = sizeof(knobs) / sizeof(knobs[0]) - !free_waits;
    o.loop = 1;
    o.watch = f->bad_wait;
    return o;
}

enum outcome zo_judge(const finder *f, const zr_report *r)
{
    const bool stopped = r->message[0] != 0 || r->stuck > 0 || (f->in_time && r->late > 0);
    if (r->verdict == ZR_CANNOT)
        return CANNOT;
    if (f->o->judge != NULL) {
        const int said = f->o->judge(f->o->ctx, r);
        return said < 0 ? CANNOT : said > 0 ? FAILS : PASSES;
    }
    if (!f->bad)
        return r->verdict != ZR_SAME || stopped || r->lost ? FAILS : PASSES;
    if (f->bad_by_result)
        return stopped || r->lost || (r->error_call != 0 && is_fault_name(r->error_result)) ? FAILS : PASSES;
    if (f->bad_wait != 0) /* nothing came of it in the recording; what has come of it is told from the results behind it */
        return stopped || !r->watch_made || r->watch_result != 0 ? FAILS : PASSES;
    /* the recorded contents are the bad ones */
    return r->verdict == ZR_SAME || stopped || r->lost || (r->error_call != 0 && is_fault_name(r->error_result)) ? FAILS : PASSES;
}

static void replay(finder *f, const line *l, const zr_options *options, zr_report *report)
{
    memset(report, 0, sizeof(*report));
    if (f->o->run != NULL) {
        if (!f->o->run(f->o->ctx, l->nodes, l->n, report)) {
            report->verdict = ZR_CANNOT;
            snprintf(report->message, sizeof(report->message), "the launcher gave no report");
        }
        return;
    }
    zr_options o = *options;
    size_t n_items;
    zr_item *const items = zo_graph_items(f->g, l->nodes, l->n, &n_items);
    if (items == NULL) {
        report->verdict = ZR_CANNOT;
        return;
    }
    o.items = items;
    o.n_items = n_items;
    zr_replay(f->plan, &o, report);
    free(items);
}

/* Each in a process of its own. */
static void side_by_side(finder *f, const line *lines, size_t n, unsigned jobs, const zr_options *options, zr_report *reports)
{
    zr_report *const shared = mmap(NULL, n * sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const pid_t parent = getpid();
    size_t begun = 0, running = 0;
    for (size_t i = 0; shared != MAP_FAILED && i < n; i++)
        shared[i].verdict = ZR_CANNOT;
    while (shared != MAP_FAILED && (begun < n || running > 0)) {
        if (begun < n && running < jobs) {
            const pid_t pid = fork();
            if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGTERM); /* nothing goes on when the search has been ended */
                if (getppid() != parent)
                    _exit(1);
                replay(f, &lines[begun], options, &shared[begun]);
                _exit(0);
            }
            if (pid < 0)
                replay(f, &lines[begun], options, &shared[begun]);
            running += pid > 0;
            begun++;
        } else if (wait(NULL) > 0) {
            running--;
        } else if (errno != EINTR) {
            break;
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (shared != MAP_FAILED)
            reports[i] = shared[i];
        else
            replay(f, &lines[i], options, &reports[i]);
    }
    if (shared != MAP_FAILED)
        munmap(shared, n * sizeof(*shared));
}

void zo_trials(finder *f, const line *lines, size_t n, const char *what, enum outcome *outcomes, zr_report *reports)
{
    zr_options o = zo_trial_options(f);
    const unsigned budget = zo_budget(f);
    if (f->o->run == NULL && !zo_spent(f)) {
        f->a->replays += f->g->n_learn > 0 && f->g->learned == NULL;
        zo_learn(f->g, f->plan, &o);
    }
    const size_t wanted = n;
    n = n < budget - f->a->replays ? n : budget - f->a->replays;
    f->spent |= n < wanted;
    for (size_t i = n; i < wanted; i++)
        outcomes[i] = CANNOT;
    const bool many = n > 1 && f->o->jobs > 1;
    for (size_t i = 0; i < n; i++) {
        f->a->replays++;
        if (f->o->progress != NULL)
            f->o->progress(f->o->ctx, what, f->a->replays, budget);
        if (!many)
            replay(f, &lines[i], &o, &reports[i]);
    }
    if (many)
        side_by_side(f, lines, n, f->o->jobs, &o, reports);
    for (size_t i = 0; i < n; i++) {
        outcomes[i] = zo_judge(f, &reports[i]);
        snprintf(f->a->driver, sizeof(f->a->driver), "%s", reports[i].driver);
        if (outcomes[i] == CANNOT)
            snprintf(f->a->text, sizeof(f->a->text), "%s", reports[i].message);
    }
    if (n > 0)
        f->report = reports[n - 1];
}

enum outcome zo_trial(finder *f, const line *l, const char *what)
{
    enum outcome outcome;
    zr_report report;
    zo_trials(f, l, 1, what, &outcome, &report);
    return outcome;
}

enum outcome zo_several(finder *f, const line *l, enum outcome wanted, unsigned counts[2], const char *what)
{
    enum { MOST = 64 };
    const unsigned asked = f->o->confirm ? f->o->confirm : 3;
    enum outcome outcomes[MOST], last = wanted;
    line lines[MOST];
    zr_report *const reports = malloc(MOST * sizeof(*reports));
    for (unsigned done = 0, n; reports != NULL && done < asked && last != CANNOT; done += n) {
        n = asked - done < MOST ? asked - done : MOST;
        for (unsigned i = 0; i < n; i++)
            lines[i] = *l;
        zo_trials(f, lines, n, what, outcomes, reports);
        for (unsigned i = 0; i < n; i++) {
            counts[0] += outcomes[i] == wanted;
            counts[1] += outcomes[i] != CANNOT;
            last = outcomes[i] == CANNOT ? CANNOT : last;
        }
    }
    free(reports);
    return last == CANNOT ? CANNOT : counts[1] > 0 && counts[0] == counts[1] ? wanted : wanted == PASSES ? FAILS : PASSES;
}

bool zo_line(finder *f, int policy, uint64_t value, const line *like, const zo_edge *extra, size_t n, line *out)
{
    zo_edge edges[ZO_PAIRS_MAX + 4];
    uint32_t stuck;
    memcpy(edges, f->repairs, f->n_repairs * sizeof(*edges));
    for (size_t i = 0; i < n && i < 4; i++)
        edges[f->n_repairs + i] = extra[i];
    out->n = zo_schedule(f->g, policy, value, like ? like->nodes : NULL, like ? like->n : 0, edges, f->n_repairs + n, &out->nodes, &stuck);
    return out->n > 0;
}

void zo_note_where_it_shows(finder *f)
{
    const zr_report *const r = &f->report;
    zo_pair *const a = &f->pair;
    a->shows_at = 0;
    a->beyond = r->early_call;
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

/* SPDX-License-Identifier: MIT */
/* The schedules: which command ends when, among those that may; and how a host waits. */
#include "engine.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const soft_target soft_everything = {0};

static bool run_all(void)
{
    bool moved = false, again = true;
    while (again) {
        again = false;
        for (soft_ring *r = soft_rings; r != NULL; r = r->next)
            again |= soft_run_ring(r);
        moved |= again;
    }
    return moved;
}

/* -------------------------------------------------------------------------------------------------------------- lazy */

/* Marks the rings that carry a signal of the event. @return whether one was not marked yet. */
static bool want_signallers(const soft_object *event)
{
    bool more = false;
    for (soft_ring *r = soft_rings; r != NULL; r = r->next)
        for (const soft_instance *i = r->first; i != NULL && !r->wanted; i = i->next)
            if (i->command->signal == event)
                more = r->wanted = true;
    return more;
}

/* Marks the rings on which what the ring's next command waits for is to come. */
static bool want_what_blocks(const soft_ring *ring)
{
    const soft_instance *const i = ring->waiting;
    bool more = false;
    for (uint32_t w = 0; i != NULL && w < i->command->n_waits; w++)
        if (!soft_wait_satisfied(i, w))
            more |= want_signallers(i->command->waits[w]);
    return more;
}

/* Moves the rings that a wait for the target looks at, and those which they wait for; no others. */
static bool run_for(const soft_target *target)
{
    const bool all = target->ring == NULL && target->event == NULL && target->alloc == 0;
    const soft_alloc *const alloc = target->alloc ? soft_alloc_by_id_locked(target->alloc) : NULL;
    for (soft_ring *r = soft_rings; r != NULL; r = r->next)
        r->wanted = all || r == target->ring || (alloc != NULL && soft_ring_touches_locked(r, alloc));
    if (target->event != NULL)
        want_signallers(target->event);
    bool moved = false, again = true;
    while (again) {
        again = false;
        for (soft_ring *r = soft_rings; r != NULL; r = r->next)
            if (r->wanted)
                again |= soft_run_ring(r);
        moved |= again;
        for (soft_ring *r = soft_rings; r != NULL; r = r->next)
            if (r->wanted)
                again |= want_what_blocks(r);
    }
    return moved;
}

/* -------------------------------------------------------------------------------------------------------------- seed */

static uint64_t seed_state;

static uint64_t roll(uint64_t n)
{
    seed_state += 0x9e3779b97f4a7c15ull; /* splitmix64 */
    uint64_t z = seed_state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (z ^ (z >> 31)) % n;
}

/* Ends one command that may end, any of them with the same chance. */
static bool end_any(void)
{
    size_t n = 0;
    for (soft_ring *r = soft_rings; r != NULL; r = r->next) {
        soft_start_commands(r);
        for (soft_instance *i = r->first; i != r->waiting; i = i->next)
            n += soft_can_end(r, i);
    }
    if (n == 0)
        return false;
    size_t pick = roll(n);
    for (soft_ring *r = soft_rings; r != NULL; r = r->next)
        for (soft_instance *i = r->first; i != r->waiting; i = i->next)
            if (soft_can_end(r, i) && pick-- == 0) {
                soft_end_instance(r, i);
                return true;
            }
    return false;
}

static void seed_move(void)
{
    /* mostly nothing, or work would never pile up and nothing could overtake */
    for (uint64_t steps = roll(4) ? 0 : roll(4); steps > 0 && end_any(); steps--)
        ;
}

/* ------------------------------------------------------------------------------------------------------------ script */

/* Commands by their number in the order of submission. */
static uint64_t *script;
static size_t script_length, script_at;

static bool script_read(void)
{
    FILE *const f = fopen(soft.script, "r");
    char line[256];
    script_length = script_at = 0;
    for (unsigned at = 1; f != NULL && fgets(line, sizeof(line), f); at++) {
        char *end;
        const char *const text = line + strspn(line, " \t\r\n");
        const uint64_t n = strtoull(text, &end, 10);
        if (*text == '\0' || *text == '#')
            continue;
        uint64_t *const grown = realloc(script, (script_length + 1) * sizeof(*script));
        if (grown == NULL || end == text || n == 0 || (end[strspn(end, " \t\r\n")] != '\0' && end[strspn(end, " \t\r\n")] != '#')) {
            fprintf(stderr, "libze_soft: %s:%u: a script has one number from 1 on a line, and '#' begins a comment\n", soft.script,
                    at);
            fclose(f);
            script = grown ? grown : script;
            return false;
        }
        script = grown;
        script[script_length++] = n;
    }
    if (f != NULL)
        fclose(f);
    return f != NULL;
}

static soft_instance *find_number(uint64_t number, soft_ring **ring)
{
    for (soft_ring *r = soft_rings; r != NULL; r = r->next)
        for (soft_instance *i = r->first; i != NULL && i->number <= number; i = i->next)
            if (i->number == number) {
                *ring = r;
                return i;
            }
    return NULL;
}

static void script_move(void)
{
    for (; script_at < script_length; script_at++) {
        soft_ring *ring;
        if (script[script_at] > soft_last_number_locked())
            return;
        soft_instance *const i = find_number(script[script_at], &ring);
        if (i == NULL)
            continue; /* has ended, or was lost */
        soft_start_commands(ring);
        if (!soft_can_end(ring, i))
            return;
        soft_end_instance(ring, i);
    }
}

static bool scripted(uint64_t number)
{
    for (size_t i = script_at; i < script_length; i++)
        if (script[i] == number)
            return true;
    return false;
}

/* The script has nothing that can end now: the oldest command that it does not name, or the oldest of all. */
static bool end_unscripted(void)
{
    soft_instance *best[2] = {NULL, NULL};
    soft_ring *ring[2] = {NULL, NULL};
    for (soft_ring *r = soft_rings; r != NULL; r = r->next) {
        soft_start_commands(r);
        for (soft_instance *i = r->first; i != r->waiting; i = i->next) {
            if (!soft_can_end(r, i))
                continue;
            const bool named = scripted(i->number);
            if (best[named] == NULL || i->number < best[named]->number) {
                best[named] = i;
                ring[named] = r;
            }
        }
    }
    const bool named = best[0] == NULL;
    return best[named] != NULL && (soft_end_instance(ring[named], best[named]), true);
}

/* ------------------------------------------------------------------------------------------------------------- async */

static pthread_t thread;
static bool thread_runs, thread_stop;
static pthread_cond_t work;

/* One pass: ends what is due, the sooner before the later. @return when the next is due, UINT64_MAX for none, 0 if any ended. */
static uint64_t end_due(void)
{
    enum { BATCH = 64 };
    const uint64_t now = soft_now_ns();
    uint64_t next = UINT64_MAX;
    struct due {
        soft_instance *i;
        soft_ring *ring;
    } due[BATCH];
    unsigned n = 0;
    for (soft_ring *r = soft_rings; r != NULL; r = r->next) {
        soft_start_commands(r);
        for (soft_instance *i = r->first; i != r->waiting; i = i->next) {
            if (i->state != SOFT_STARTED || (i->ends_ns <= now ? n == BATCH && i->ends_ns >= due[n - 1].i->ends_ns : i->ends_ns >= next))
                continue;
            if (!soft_can_end(r, i))
                continue;
            if (i->ends_ns > now) {
                next = i->ends_ns;
                continue;
            }
            unsigned at = n < BATCH ? n++ : n - 1;
            for (; at > 0 && due[at - 1].i->ends_ns > i->ends_ns; at--)
                due[at] = due[at - 1];
            due[at] = (struct due){i, r};
        }
    }
    const uint64_t losses = soft_losses;
    for (unsigned k = 0; k < n && soft_losses == losses; k++) /* what is left of the batch may be among the lost */
        soft_end_instance(due[k].ring, due[k].i);
    return n > 0 ? 0 : next;
}

static void *engine_main(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&soft_mutex);
    while (!thread_stop) {
        const uint64_t next = end_due();
        if (next == UINT64_MAX) {
            pthread_cond_wait(&work, &soft_mutex);
        } else if (next > 0) {
            const struct timespec until = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
            pthread_cond_timedwait(&work, &soft_mutex, &until);
        }
    }
    pthread_mutex_unlock(&soft_mutex);
    return NULL;
}

static void wake_engine(void)
{
    if (!thread_runs) {
        sigset_t all, before;
        soft_cond_init(&work);
        thread_stop = false;
        sigfillset(&all); /* the program's signals are for the program's threads */
        pthread_sigmask(SIG_SETMASK, &all, &before);
        thread_runs = pthread_create(&thread, NULL, engine_main, NULL) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (!thread_runs)
            run_all(); /* no thread to be had: work is done at once rather than never */
    }
    pthread_cond_signal(&work);
}

__attribute__((destructor)) static void stop_engine(void)
{
    pthread_mutex_lock(&soft_mutex);
    const bool runs = thread_runs, stuck = soft_in_host_function > 0; /* the program's function may never return */
    thread_stop = true;
    thread_runs = false;
    if (runs)
        pthread_cond_signal(&work);
    pthread_mutex_unlock(&soft_mutex);
    if (runs && !stuck)
        pthread_join(thread, NULL);
}

/* ------------------------------------------------------------------------------------------------------- entry points */

bool soft_schedule_start_locked(void)
{
    seed_state = soft.seed;
    return soft.schedule != SOFT_SCRIPT || script_read();
}

void soft_schedule_reset(void)
{
    soft_rings = NULL; /* what the parent had in flight is the parent's */
    thread_runs = false;
    soft_abort_pending = false;
    soft_in_host_function = 0;
}

void soft_schedule_move_locked(void)
{
    if (soft.schedule == SOFT_SEED)
        seed_move();
    else if (soft.schedule == SOFT_SCRIPT)
        script_move();
}

void soft_kick_locked(void)
{
    if (soft.schedule == SOFT_EAGER)
        run_all();
    else if (soft.schedule == SOFT_ASYNC)
        wake_engine();
    else if (soft.schedule == SOFT_SCRIPT)
        script_move();
    pthread_cond_broadcast(&soft_changed); /* on the other schedules it is the waiting threads that move the device */
}

void soft_before_submit_locked(soft_ring *ring)
{
    if (soft.schedule == SOFT_LAZY)
        soft_run_ring(ring);
}

void soft_look_locked(const soft_target *target)
{
    if (soft.schedule == SOFT_LAZY)
        run_for(target);
}

/* Moves the schedule by what a host wait makes it move. @return whether anything ended. */
static bool move_in_wait(const soft_target *target)
{
    switch (soft.schedule) {
    case SOFT_LAZY:
        return run_for(target);
    case SOFT_EAGER:
        return run_all();
    case SOFT_SEED:
        return end_any();
    case SOFT_SCRIPT: {
        const size_t before = script_at;
        script_move();
        return script_at != before || end_unscripted();
    }
    default:
        return false;
    }
}

ze_result_t soft_wait_locked(const soft_target *target, bool (*done)(void *ctx), ze_result_t (*failed)(void *ctx), void *ctx,
                             uint64_t timeout)
{
    const uint64_t start = soft_now_ns();
    const uint64_t end = start + timeout < start ? UINT64_MAX : start + timeout;
    for (;;) {
        if (soft_abort_pending)
            soft_abort();
        ze_result_t bad = failed ? failed(ctx) : ZE_RESULT_SUCCESS;
        if (bad != ZE_RESULT_SUCCESS || done(ctx))
            return bad;
        if (timeout == 0) {
            soft_look_locked(target);
            bad = failed ? failed(ctx) : ZE_RESULT_SUCCESS;
            return bad != ZE_RESULT_SUCCESS || done(ctx) ? bad : ZE_RESULT_NOT_READY;
        }
        if (move_in_wait(target))
            continue;
        if (end == UINT64_MAX) {
            pthread_cond_wait(&soft_changed, &soft_mutex);
            continue;
        }
        if (soft_now_ns() >= end)
            return ZE_RESULT_NOT_READY;
        const struct timespec until = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
        pthread_cond_timedwait(&soft_changed, &soft_mutex, &until);
    }
}

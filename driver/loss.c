/* SPDX-License-Identifier: MIT */
/*
 * What is taken away from work in flight: by a fault, which stops an engine context, or because an object that the work needs
 * is destroyed, reset or executed again (ZE_SOFT_DESTROY=lose). What is lost never acts, and waits for it say so.
 */
#include "engine.h"

uint64_t soft_losses;

static bool signaller_in_flight(const soft_object *event)
{
    for (const soft_ring *r = soft_rings; r != NULL; r = r->next)
        for (const soft_instance *i = r->first; i != NULL; i = i->next)
            if (i->command->signal == event)
                return true;
    return false;
}

/*
 * Waits for what the command would have brought about fail. A mark that brings nothing about is no loss to anybody, and a
 * command that another run of its list replaces none to those who wait for the queue.
 */
static void tell(const soft_ring *ring, const soft_instance *i, bool replaced)
{
    soft_object *const signal = i->command->signal, *const fence = i->submit.fence;
    if (i->command->type == SOFT_C_SUBMIT_END && signal == NULL && fence == NULL)
        return;
    if (signal != NULL && !signaller_in_flight(signal))
        signal->event.lost = true;
    if (fence != NULL && fence->fence.generation == i->fence_generation)
        fence->fence.lost = true;
    if (replaced)
        return;
    if (i->submit.queue != NULL)
        i->submit.queue->lost = true;
    ring->device->lost = true;
}

/* Takes away the picked commands, and with them the mark at the end of their submit, which carries its fence. */
static void lose(bool (*picked)(const soft_ring *ring, const soft_instance *i, const void *ctx), const void *ctx, bool replaced)
{
    soft_instance *lost = NULL;
    for (soft_ring *r = soft_rings; r != NULL; r = r->next) {
        uint64_t submit = 0; /* the last that lost a command; the commands of one stand together */
        for (soft_instance *i = r->first, *next; i != NULL; i = next) {
            next = i->next;
            const bool mark = i->command->type == SOFT_C_SUBMIT_END && i->submit.submit == submit;
            if (i->state == SOFT_ENDING || (!mark && !picked(r, i, ctx)))
                continue; /* ENDING: inside a host function on another thread, which goes on with it when that returns */
            submit = i->submit.submit;
            soft_log("lost #%llu", (unsigned long long)i->number);
            soft_unlink_instance(r, i);
            i->next = lost;
            i->ring = r;
            lost = i;
        }
    }
    for (soft_instance *i = lost, *next; i != NULL; i = next) {
        next = i->next;
        soft_losses++;
        tell(i->ring, i, replaced);
        soft_free_instance(i);
    }
    if (lost != NULL)
        pthread_cond_broadcast(&soft_changed);
}

/* ----------------------------------------------------------------------------------------------------------- by whom */

static bool on_engine(const soft_ring *ring, const soft_instance *i, const void *csr)
{
    (void)i;
    return soft_ring_csr((soft_ring *)(uintptr_t)ring) == csr;
}

void soft_ban(const soft_ring *from)
{
    soft_csr *const csr = soft_ring_csr((soft_ring *)(uintptr_t)from);
    csr->banned = true;
    lose(on_engine, csr, false);
    pthread_cond_broadcast(&soft_changed);
}

static void lose_unless_kept(bool (*picked)(const soft_ring *ring, const soft_instance *i, const void *ctx),
                             const soft_object *object)
{
    const uint64_t before = soft_losses;
    if (soft.destroy == SOFT_DESTROY_LOSE)
        lose(picked, object, false);
    if (soft_losses != before)
        soft_kick_locked(); /* what stood behind them may move */
}

static bool of_list(const soft_ring *ring, const soft_instance *i, const void *list)
{
    (void)ring;
    return i->submit.list == list || i->submit.queue == list;
}

void soft_lose_list_locked(const soft_object *list)
{
    lose_unless_kept(of_list, list);
}

static bool carried_by(const soft_ring *ring, const soft_instance *i, const void *queue)
{
    (void)ring;
    return i->submit.queue == queue;
}

void soft_lose_queue_locked(const soft_object *queue)
{
    lose_unless_kept(carried_by, queue);
}

static bool waits_for(const soft_ring *ring, const soft_instance *i, const void *event)
{
    (void)ring;
    for (uint32_t w = 0; i->state == SOFT_WAITING && w < i->command->n_waits; w++)
        if (i->command->waits[w] == event)
            return true;
    return false;
}

void soft_lose_waiters_locked(const soft_object *event)
{
    lose_unless_kept(waits_for, event);
}

static bool of_list_not_started(const soft_ring *ring, const soft_instance *i, const void *list)
{
    (void)ring;
    return i->state == SOFT_WAITING && i->submit.list == list;
}

void soft_replace_run_locked(const soft_object *list)
{
    if (soft.destroy == SOFT_DESTROY_LOSE)
        lose(of_list_not_started, list, true);
}

/* ------------------------------------------------------------------------------------------------- waiting for the lost */

static uint64_t question;

static bool stuck(soft_ring *ring);

/* Whether the event can only come from what has been lost. What the host may yet signal has no signaller in flight. */
static bool hopeless(const soft_object *event)
{
    bool any = false;
    for (soft_ring *r = soft_rings; r != NULL; r = r->next)
        for (const soft_instance *i = r->first; i != NULL; i = i->next) {
            if (i->command->signal != event)
                continue;
            if (i->state != SOFT_WAITING || !stuck(r))
                return false;
            any = true;
        }
    return any || event->event.lost;
}

/* Whether the ring's next command waits for such an event. */
static bool stuck(soft_ring *ring)
{
    if (ring->asked == question)
        return ring->stuck; /* while it is being asked: no */
    ring->asked = question;
    ring->stuck = false;
    const soft_instance *const i = ring->waiting;
    for (uint32_t w = 0; i != NULL && w < i->command->n_waits && !ring->stuck; w++)
        ring->stuck = !soft_wait_satisfied(i, w) && hopeless(i->command->waits[w]);
    return ring->stuck;
}

bool soft_hopeless_locked(const soft_object *event)
{
    question++;
    return soft_losses > 0 && !soft_event_is_signalled_locked(&event->event) && hopeless(event);
}

bool soft_ring_hopeless_locked(soft_ring *ring, const soft_object *carrier, const soft_object *fence, uint64_t number)
{
    if (soft_losses == 0)
        return false;
    question++;
    if (!stuck(ring))
        return false;
    for (const soft_instance *i = ring->waiting; i != NULL && i->number <= number; i = i->next)
        if ((carrier == NULL || i->submit.queue == carrier) && (fence == NULL || i->submit.fence == fence))
            return true;
    return false;
}

/* SPDX-License-Identifier: MIT */
/*
 * Rings: what is in flight. Commands of a ring start in order; which of the started ones ends next is the schedule's choice
 * within what the specification allows. A command acts in one piece, at its end.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

soft_ring *soft_rings;
bool soft_abort_pending;
unsigned soft_in_host_function;
static uint64_t next_number;

/* ------------------------------------------------------------------------------------------------------------- rings */

soft_ring *soft_ring_acquire_locked(soft_object *device, unsigned ordinal, unsigned index)
{
    const unsigned of_group = soft.engines == SOFT_SHARED ? 0 : index;
    for (soft_ring *r = soft_rings; r != NULL; r = r->next) {
        const bool free_again = r->owners == 0 && r->first == NULL;
        if (r->device == device && r->ordinal == ordinal && r->index == of_group &&
            (soft.engines != SOFT_INDEPENDENT || free_again)) {
            r->owners++;
            return r;
        }
    }
    soft_ring *const ring = calloc(1, sizeof(*ring));
    if (ring == NULL)
        return NULL;
    *ring = (soft_ring){.next = soft_rings, .device = device, .ordinal = ordinal, .index = of_group, .owners = 1};
    soft_rings = ring;
    return ring;
}

void soft_ring_release_locked(soft_ring *ring)
{
    ring->owners--;
}

soft_csr *soft_ring_csr(soft_ring *ring)
{
    return &ring->device->device.csr[ring->ordinal][ring->index];
}

soft_ring *soft_ring_next_locked(soft_ring *ring)
{
    return ring ? ring->next : soft_rings;
}

bool soft_any_banned_locked(const soft_object *device)
{
    for (unsigned o = 0; o < 3; o++)
        for (unsigned i = 0; i < 8; i++)
            if (device->device.csr[o][i].banned)
                return true;
    return false;
}

void soft_unlink_instance(soft_ring *ring, soft_instance *i)
{
    if (i->previous)
        i->previous->next = i->next;
    else
        ring->first = i->next;
    if (i->next)
        i->next->previous = i->previous;
    else
        ring->last = i->previous;
    if (ring->waiting == i)
        ring->waiting = i->next;
}

void soft_free_instance(soft_instance *i)
{
    soft_command_unref_locked(i->command);
    soft_object_unref_locked(i->submit.queue);
    soft_object_unref_locked(i->submit.list);
    soft_object_unref_locked(i->submit.fence);
    free(i->wait_values);
    free(i);
}

uint64_t soft_ring_submit_locked(soft_ring *ring, soft_command *command, const soft_submit *submit)
{
    soft_instance *const i = calloc(1, sizeof(*i));
    if (i == NULL)
        return 0;
    if (command->n_waits > 0) {
        i->wait_values = calloc(command->n_waits, sizeof(*i->wait_values));
        if (i->wait_values == NULL) {
            free(i);
            return 0;
        }
        for (uint32_t w = 0; w < command->n_waits; w++)
            i->wait_values[w] = command->waits[w]->event.assigned;
    }
    soft_make_resident_locked(command->dst, command->size);
    soft_make_resident_locked(command->src, command->size);
    i->command = command;
    command->refs++;
    i->submit = *submit;
    soft_object_ref_locked(i->submit.queue);
    soft_object_ref_locked(i->submit.list);
    soft_object_ref_locked(i->submit.fence);
    i->number = ++next_number;
    if (submit->in_order && submit->list)
        i->list_id = submit->list->number;
    if (submit->fence)
        i->fence_generation = submit->fence->fence.generation;
    if (command->signal) {
        command->signal->event.lost = false; /* a signal is to come again */
        if (command->signal->event.counter_based)
            i->signal_value = ++command->signal->event.assigned;
    }
    i->previous = ring->last;
    if (ring->last)
        ring->last->next = i;
    else
        ring->first = i;
    ring->last = i;
    if (ring->waiting == NULL)
        ring->waiting = i;
    return i->number;
}

bool soft_ring_busy_locked(const soft_ring *ring, const soft_object *queue, uint64_t number)
{
    for (const soft_instance *i = ring->first; i != NULL && i->number <= number; i = i->next)
        if (queue == NULL || i->submit.queue == queue)
            return true;
    return false;
}

uint64_t soft_last_number_locked(void)
{
    return next_number;
}

bool soft_ring_touches_locked(const soft_ring *ring, const soft_alloc *a)
{
    const uint64_t end = a->base + a->span;
    for (const soft_instance *i = ring->first; i != NULL; i = i->next) {
        const soft_command *const c = i->command;
        if ((c->dst >= a->base && c->dst < end) || (c->src >= a->base && c->src < end))
            return true;
    }
    return false;
}

bool soft_alloc_busy_locked(const soft_alloc *alloc)
{
    for (const soft_ring *r = soft_rings; r != NULL; r = r->next)
        if (soft_ring_touches_locked(r, alloc))
            return true;
    return false;
}

/* --------------------------------------------------------------------------------------------------- starting, ending */

bool soft_wait_satisfied(const soft_instance *i, uint32_t wait)
{
    const soft_event *const e = &i->command->waits[wait]->event;
    return e->counter_based ? e->done >= i->wait_values[wait] : e->signalled;
}

static bool can_start(const soft_ring *ring, const soft_instance *i)
{
    for (uint32_t w = 0; w < i->command->n_waits; w++)
        if (!soft_wait_satisfied(i, w))
            return false;
    const bool barrier = i->command->type == SOFT_C_BARRIER && i->command->n_waits == 0;
    if (!barrier && i->list_id == 0)
        return true;
    for (const soft_instance *before = ring->first; before != i; before = before->next) {
        if (barrier && before->submit.queue == i->submit.queue)
            return false;
        if (i->list_id != 0 && before->list_id == i->list_id)
            return false;
    }
    return true;
}

bool soft_holds_back(const soft_instance *i)
{
    return i->command->type == SOFT_C_BARRIER || i->command->type == SOFT_C_WAIT;
}

void soft_start_commands(soft_ring *ring)
{
    if (soft_ring_csr(ring)->banned)
        return;
    while (ring->waiting != NULL) {
        soft_instance *const i = ring->waiting;
        if ((i->previous != NULL && soft_holds_back(i->previous)) || !can_start(ring, i))
            return;
        i->state = SOFT_STARTED;
        i->ends_ns = soft_now_ns() + soft_command_cost_ns(i->command);
        i->started_ticks = soft_device_ticks();
        ring->waiting = i->next;
        soft_log("start #%llu type %d", (unsigned long long)i->number, i->command->type);
    }
}

bool soft_can_end(const soft_ring *ring, const soft_instance *i)
{
    if (i->state != SOFT_STARTED)
        return false;
    if (i->command->type == SOFT_C_SUBMIT_END)
        for (const soft_instance *before = ring->first; before != i; before = before->next)
            if (before->submit.submit == i->submit.submit) /* the mark ends when the rest of its submit has */
                return false;
    return true;
}

bool soft_end_instance(soft_ring *ring, soft_instance *i)
{
    soft_command *const c = i->command;
    i->state = SOFT_ENDING;
    if (!soft_command_perform_locked(c, i->submit.submit)) {
        soft_log("fault #%llu dst %#llx src %#llx", (unsigned long long)i->number, (unsigned long long)c->dst,
                 (unsigned long long)c->src);
        if (soft.fault != SOFT_SCRATCH) {
            if (soft.fault == SOFT_ABORT)
                soft_abort_pending = true;
            i->state = SOFT_STARTED;
            soft_ban(ring);
            return false;
        }
    }
    soft_log("end #%llu", (unsigned long long)i->number);
    if (c->reset) {
        c->reset->event.signalled = false;
        c->reset->event.lost = false;
    }
    if (c->signal)
        soft_event_signal_locked(&c->signal->event, i->signal_value, i->started_ticks, soft_device_ticks());
    if (i->submit.fence && i->submit.fence->fence.generation == i->fence_generation)
        i->submit.fence->fence.signalled = true;
    soft_unlink_instance(ring, i);
    soft_free_instance(i);
    pthread_cond_broadcast(&soft_changed);
    return true;
}

static soft_instance *first_that_can_end(soft_ring *ring)
{
    soft_start_commands(ring);
    for (soft_instance *i = ring->first; i != ring->waiting; i = i->next)
        if (soft_can_end(ring, i))
            return i;
    return NULL;
}

bool soft_run_ring(soft_ring *ring)
{
    bool moved = false;
    for (soft_instance *i; (i = first_that_can_end(ring)) != NULL; moved = true)
        soft_end_instance(ring, i);
    return moved;
}

/* SPDX-License-Identifier: MIT */
/*
 * Rings and the schedules. Commands of a ring start in order; how they end is the schedule's choice within what the
 * specification allows. A command acts in one piece, at its end.
 */
#include "soft.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum state { WAITING, STARTED, ENDING };

typedef struct instance {
    struct instance *next, *previous;
    soft_command *command;
    soft_submit submit;
    uint64_t number;         /* of all submitted commands */
    uint64_t list_id;        /* in-order lists: commands of one list end before the next starts */
    uint64_t fence_generation;
    uint64_t first;          /* SOFT_C_SUBMIT_END: number of the first command of its submit */
    uint64_t *wait_values;   /* counter-based events: the signal each wait is for */
    uint64_t signal_value;
    uint64_t started_ns, ends_ns, started_ticks;
    int state;
} instance;

struct soft_ring {
    soft_ring *next;
    soft_object *device;
    unsigned ordinal, index, copy; /* copy: tells independent engines of one (ordinal, index) apart */
    instance *first, *last;
    uint64_t last_number;
};

static soft_ring *rings;
static uint64_t next_number, seed_state;
static pthread_t thread;
static bool thread_runs, thread_stop;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
bool soft_abort_pending;

/* ---------------------------------------------------------------------------------------------------------- commands */

soft_command *soft_command_new(int type)
{
    soft_command *const c = calloc(1, sizeof(*c));
    if (c != NULL) {
        c->type = type;
        c->refs = 1;
    }
    return c;
}

bool soft_command_events_locked(soft_command *c, ze_event_handle_t signal, uint32_t n, ze_event_handle_t *waits)
{
    if (n > 0) {
        c->waits = calloc(n, sizeof(*c->waits));
        if (c->waits == NULL)
            return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        c->waits[i] = (soft_object *)waits[i];
        soft_object_ref_locked(c->waits[i]);
    }
    c->n_waits = n;
    c->signal = (soft_object *)signal;
    soft_object_ref_locked(c->signal);
    return true;
}

void soft_command_unref_locked(soft_command *c)
{
    if (--c->refs > 0)
        return;
    for (uint32_t i = 0; i < c->n_waits; i++)
        soft_object_unref_locked(c->waits[i]);
    for (uint32_t i = 0; i < c->n_query; i++)
        soft_object_unref_locked(c->query[i]);
    soft_object_unref_locked(c->signal);
    soft_object_unref_locked(c->reset);
    free(c->waits);
    free(c->query);
    free(c->query_offsets);
    free(c->staged);
    free(c);
}

/* ------------------------------------------------------------------------------------------------------------- rings */

soft_ring *soft_ring_get_locked(soft_object *device, unsigned ordinal, unsigned index)
{
    unsigned copy = 0;
    if (soft.engines == SOFT_SHARED)
        index = 0;
    for (soft_ring *r = rings; r != NULL; r = r->next) {
        if (r->device != device || r->ordinal != ordinal || r->index != index)
            continue;
        if (soft.engines != SOFT_INDEPENDENT)
            return r;
        copy++;
    }
    soft_ring *const ring = calloc(1, sizeof(*ring));
    if (ring == NULL)
        return NULL;
    ring->device = device;
    ring->ordinal = ordinal;
    ring->index = index;
    ring->copy = copy;
    ring->next = rings;
    rings = ring;
    return ring;
}

soft_csr *soft_ring_csr(soft_ring *ring)
{
    return &ring->device->device.csr[ring->ordinal][ring->index];
}

soft_ring *soft_ring_next_locked(soft_ring *ring)
{
    return ring ? ring->next : rings;
}

bool soft_any_banned_locked(const soft_object *device)
{
    for (unsigned o = 0; o < 3; o++)
        for (unsigned i = 0; i < 8; i++)
            if (device->device.csr[o][i].banned)
                return true;
    return false;
}

static void unlink_instance(soft_ring *ring, instance *i)
{
    if (i->previous)
        i->previous->next = i->next;
    else
        ring->first = i->next;
    if (i->next)
        i->next->previous = i->previous;
    else
        ring->last = i->previous;
}

static void free_instance(instance *i)
{
    soft_command_unref_locked(i->command);
    soft_object_unref_locked(i->submit.queue);
    soft_object_unref_locked(i->submit.list);
    soft_object_unref_locked(i->submit.fence);
    free(i->wait_values);
    free(i);
}

/* A submit brings what it names back; whether for itself alone or for all is the rebind knob's business. */
static void make_resident(uint64_t address)
{
    soft_alloc *const a = address ? soft_alloc_find_locked(address) : NULL;
    if (a != NULL)
        a->resident = true;
}

uint64_t soft_ring_submit_locked(soft_ring *ring, soft_command *command, const soft_submit *submit)
{
    instance *const i = calloc(1, sizeof(*i));
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
    make_resident(command->dst);
    make_resident(command->src);
    i->command = command;
    command->refs++;
    i->submit = *submit;
    soft_object_ref_locked(i->submit.queue);
    soft_object_ref_locked(i->submit.list);
    soft_object_ref_locked(i->submit.fence);
    i->number = ++next_number;
    i->first = submit->submit; /* instances of one submit share the clock value */
    if (submit->in_order && submit->list)
        i->list_id = submit->list->number;
    if (submit->fence)
        i->fence_generation = submit->fence->fence.generation;
    if (command->signal && command->signal->event.counter_based)
        i->signal_value = ++command->signal->event.assigned;
    i->previous = ring->last;
    if (ring->last)
        ring->last->next = i;
    else
        ring->first = i;
    ring->last = i;
    ring->last_number = i->number;
    return i->number;
}

bool soft_ring_busy_locked(soft_ring *ring, const soft_object *queue, uint64_t number)
{
    for (const instance *i = ring->first; i != NULL && i->number <= number; i = i->next)
        if (queue == NULL || i->submit.queue == queue)
            return true;
    return false;
}

uint64_t soft_last_number_locked(void)
{
    return next_number;
}

static bool touches(const soft_command *c, const soft_alloc *a)
{
    const uint64_t end = a->base + a->span;
    return (c->dst >= a->base && c->dst < end) || (c->src >= a->base && c->src < end);
}

bool soft_alloc_busy_locked(const soft_alloc *alloc)
{
    for (const soft_ring *r = rings; r != NULL; r = r->next)
        for (const instance *i = r->first; i != NULL; i = i->next)
            if (touches(i->command, alloc))
                return true;
    return false;
}

/* --------------------------------------------------------------------------------------------------- starting, ending */

static bool wait_satisfied(const instance *i, uint32_t w)
{
    const soft_event *const e = &i->command->waits[w]->event;
    return e->counter_based ? e->done >= i->wait_values[w] : e->signalled;
}

static bool can_start(const soft_ring *ring, const instance *i)
{
    for (uint32_t w = 0; w < i->command->n_waits; w++)
        if (!wait_satisfied(i, w))
            return false;
    const bool barrier = i->command->type == SOFT_C_BARRIER && i->command->n_waits == 0;
    for (const instance *before = ring->first; before != i; before = before->next) {
        if (barrier && before->submit.queue == i->submit.queue)
            return false;
        if (i->list_id != 0 && before->list_id == i->list_id)
            return false;
    }
    return true;
}

/* Whether nothing behind it in the ring may start before it has ended. */
static bool holds_back(const instance *i)
{
    return i->command->type == SOFT_C_BARRIER || i->command->type == SOFT_C_WAIT;
}

static uint64_t cost_ns(const soft_command *c)
{
    const uint64_t bytes = c->type == SOFT_C_REGION ? (uint64_t)c->src_region.width * c->src_region.height : c->size;
    return 20000 + bytes / 8; /* a launch, then 8 GB/s */
}

static void start_commands(soft_ring *ring)
{
    if (soft_ring_csr(ring)->banned)
        return;
    for (instance *i = ring->first; i != NULL; i = i->next) {
        if (i->state == WAITING) {
            if (!can_start(ring, i))
                return;
            i->state = STARTED;
            i->started_ns = soft_now_ns();
            i->ends_ns = i->started_ns + cost_ns(i->command);
            i->started_ticks = soft_device_ticks();
            soft_log("start #%llu type %d", (unsigned long long)i->number, i->command->type);
        }
        if (holds_back(i))
            return;
    }
}

static bool can_end(const soft_ring *ring, const instance *i)
{
    if (i->state != STARTED)
        return false;
    if (i->command->type == SOFT_C_SUBMIT_END)
        for (const instance *before = ring->first; before != i; before = before->next)
            if (before->first == i->first)
                return false;
    return true;
}

static bool copy_bytes(const soft_command *c, uint64_t since)
{
    bool dst_fault, src_fault;
    void *const dst = soft_device_map_locked(c->dst, c->size, SOFT_WRITE, since, &dst_fault);
    const void *const src = c->staged ? c->staged : soft_device_map_locked(c->src, c->size, SOFT_READ, since, &src_fault);
    if (dst_fault || (c->staged == NULL && src_fault))
        return false;
    if (dst != NULL && src != NULL) {
        memmove(dst, src, c->size);
        return true;
    }
    if (dst != NULL)
        return soft_device_read_locked(c->src, dst, c->size, since);
    if (src != NULL)
        return soft_device_write_locked(c->dst, src, c->size, since);
    uint8_t buffer[65536];
    for (uint64_t at = 0; at < c->size; at += sizeof(buffer)) {
        const size_t n = c->size - at < sizeof(buffer) ? c->size - at : sizeof(buffer);
        if (!soft_device_read_locked(c->src + at, buffer, n, since) || !soft_device_write_locked(c->dst + at, buffer, n, since))
            return false;
    }
    return true;
}

static bool copy_region(const soft_command *c, uint64_t since)
{
    const ze_copy_region_t *const d = &c->dst_region, *const s = &c->src_region;
    uint8_t *const row = malloc(d->width ? d->width : 1);
    bool ok = row != NULL;
    for (uint32_t z = 0; ok && z < (d->depth ? d->depth : 1); z++) {
        for (uint32_t y = 0; ok && y < d->height; y++) {
            const uint64_t from = c->src + (uint64_t)(s->originZ + z) * c->src_slice +
                                  (uint64_t)(s->originY + y) * c->src_pitch + s->originX;
            const uint64_t to = c->dst + (uint64_t)(d->originZ + z) * c->dst_slice +
                                (uint64_t)(d->originY + y) * c->dst_pitch + d->originX;
            ok = soft_device_read_locked(from, row, d->width, since) && soft_device_write_locked(to, row, d->width, since);
        }
    }
    free(row);
    return ok;
}

static bool fill(const soft_command *c, uint64_t since)
{
    bool fault;
    uint8_t *const dst = soft_device_map_locked(c->dst, c->size, SOFT_WRITE, since, &fault);
    if (fault)
        return false;
    uint8_t chunk[65536];
    const size_t unit = sizeof(chunk) / c->pattern_size * c->pattern_size;
    for (size_t i = 0; i < unit; i++)
        chunk[i] = c->pattern[i % c->pattern_size];
    for (uint64_t at = 0; at < c->size; at += unit) {
        const size_t n = c->size - at < unit ? c->size - at : unit;
        if (dst != NULL)
            memcpy(dst + at, chunk, n);
        else if (!soft_device_write_locked(c->dst + at, chunk, n, since))
            return false;
    }
    return true;
}

static void timestamp_of(const soft_event *e, ze_kernel_timestamp_result_t *t)
{
    t->global.kernelStart = t->context.kernelStart = e->start;
    t->global.kernelEnd = t->context.kernelEnd = e->end;
}

static bool query_timestamps(const soft_command *c, uint64_t since)
{
    for (uint32_t i = 0; i < c->n_query; i++) {
        ze_kernel_timestamp_result_t t;
        timestamp_of(&c->query[i]->event, &t);
        const uint64_t at = c->dst + (c->query_offsets ? c->query_offsets[i] : i * sizeof(t));
        if (!soft_device_write_locked(at, &t, sizeof(t), since))
            return false;
    }
    return true;
}

/* What the command does to memory. @return false on a fault. */
static bool perform(const instance *i)
{
    const soft_command *const c = i->command;
    const uint64_t since = i->submit.submit;
    switch (c->type) {
    case SOFT_C_COPY:
        return copy_bytes(c, since);
    case SOFT_C_REGION:
        return copy_region(c, since);
    case SOFT_C_FILL:
        return fill(c, since);
    case SOFT_C_TIMESTAMP: {
        const uint64_t now = soft_device_ticks();
        return soft_device_write_locked(c->dst, &now, sizeof(now), since);
    }
    case SOFT_C_QUERY_TIMESTAMPS:
        return query_timestamps(c, since);
    case SOFT_C_HOST_FUNCTION:
        pthread_mutex_unlock(&soft_mutex); /* the program's code may take locks of its own */
        c->function(c->user_data);
        pthread_mutex_lock(&soft_mutex);
        return true;
    default:
        return true;
    }
}

/* The engine context is gone: everything submitted to it is lost. */
static void ban(const soft_ring *from)
{
    soft_csr *const csr = &from->device->device.csr[from->ordinal][from->index];
    csr->banned = true;
    for (soft_ring *r = rings; r != NULL; r = r->next) {
        if (soft_ring_csr(r) != csr)
            continue;
        for (instance *i = r->first, *next; i != NULL; i = next) {
            next = i->next;
            if (i->state == ENDING)
                continue; /* inside a host function on another thread; it finds itself banned when it returns */
            if (i->command->signal)
                i->command->signal->event.lost = true;
            if (i->submit.fence && i->submit.fence->fence.generation == i->fence_generation)
                i->submit.fence->fence.lost = true;
            unlink_instance(r, i);
            free_instance(i);
        }
    }
    pthread_cond_broadcast(&soft_changed);
}

/* @return false if it faulted and took its engine context with it. */
static bool end_instance(soft_ring *ring, instance *i)
{
    soft_command *const c = i->command;
    i->state = ENDING;
    const bool ok = perform(i);
    if (!ok) {
        soft_log("fault #%llu dst %#llx src %#llx", (unsigned long long)i->number, (unsigned long long)c->dst,
                 (unsigned long long)c->src);
        if (soft.fault != SOFT_SCRATCH) {
            if (soft.fault == SOFT_ABORT)
                soft_abort_pending = true;
            i->state = STARTED;
            ban(ring);
            return false;
        }
        if (c->type == SOFT_C_COPY) { /* reads of what is not there give zeros */
            bool fault;
            void *const dst = soft_device_map_locked(c->dst, c->size, SOFT_WRITE, i->submit.submit, &fault);
            if (dst != NULL)
                memset(dst, 0, c->size);
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
    unlink_instance(ring, i);
    free_instance(i);
    pthread_cond_broadcast(&soft_changed);
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- schedules */

static instance *first_that_can_end(soft_ring *ring)
{
    start_commands(ring);
    for (instance *i = ring->first; i != NULL; i = i->next)
        if (can_end(ring, i))
            return i;
    return NULL;
}

/* Ends what can end on the ring, oldest first, until nothing can. */
static bool run_ring(soft_ring *ring)
{
    bool moved = false;
    for (instance *i; (i = first_that_can_end(ring)) != NULL; moved = true)
        end_instance(ring, i);
    return moved;
}

static bool run_all(void)
{
    bool moved = false, again = true;
    while (again) {
        again = false;
        for (soft_ring *r = rings; r != NULL; r = r->next)
            again |= run_ring(r);
        moved |= again;
    }
    return moved;
}

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
    for (soft_ring *r = rings; r != NULL; r = r->next) {
        start_commands(r);
        for (instance *i = r->first; i != NULL; i = i->next)
            n += can_end(r, i);
    }
    if (n == 0)
        return false;
    size_t pick = roll(n);
    for (soft_ring *r = rings; r != NULL; r = r->next)
        for (instance *i = r->first; i != NULL; i = i->next)
            if (can_end(r, i) && pick-- == 0) {
                end_instance(r, i);
                return true;
            }
    return false;
}

void soft_seed_move_locked(void)
{
    static bool seeded;
    if (!seeded) {
        seed_state = soft.seed;
        seeded = true;
    }
    /* mostly nothing, or work would never pile up and nothing could overtake */
    for (uint64_t steps = roll(4) ? 0 : roll(4); steps > 0 && end_any(); steps--)
        ;
}

/* A script lists commands by their number in the order of submission; '#' begins a comment. */
static uint64_t *script;
static size_t script_length, script_at;

static void read_script(void)
{
    static bool done;
    if (done)
        return;
    done = true;
    FILE *const f = fopen(soft.script, "r");
    char line[256];
    while (f != NULL && fgets(line, sizeof(line), f)) {
        char *end;
        const uint64_t n = strtoull(line, &end, 0);
        if (end == line || *line == '#')
            continue;
        uint64_t *const grown = realloc(script, (script_length + 1) * sizeof(*script));
        if (grown == NULL)
            break;
        script = grown;
        script[script_length++] = n;
    }
    if (f != NULL)
        fclose(f);
}

static bool end_number(uint64_t number)
{
    for (soft_ring *r = rings; r != NULL; r = r->next) {
        start_commands(r);
        for (instance *i = r->first; i != NULL; i = i->next)
            if (i->number == number) {
                if (!can_end(r, i))
                    return false;
                end_instance(r, i);
                return true;
            }
    }
    return false;
}

void soft_script_move_locked(void)
{
    read_script();
    while (script_at < script_length && (end_number(script[script_at]) || script[script_at] == 0))
        script_at++;
}

/* The async engine: one thread ends commands when their time has come, the shorter before the longer. */
static void *engine_main(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&soft_mutex);
    while (!thread_stop) {
        const uint64_t now = soft_now_ns();
        soft_ring *ring = NULL;
        instance *next = NULL;
        for (soft_ring *r = rings; r != NULL; r = r->next) {
            start_commands(r);
            for (instance *i = r->first; i != NULL; i = i->next)
                if (can_end(r, i) && (next == NULL || i->ends_ns < next->ends_ns)) {
                    next = i;
                    ring = r;
                }
        }
        if (next != NULL && next->ends_ns <= now) {
            end_instance(ring, next);
        } else if (next != NULL) {
            struct timespec until = {(time_t)(next->ends_ns / 1000000000u), (long)(next->ends_ns % 1000000000u)};
            pthread_cond_timedwait(&work, &soft_mutex, &until);
        } else {
            pthread_cond_wait(&work, &soft_mutex);
        }
    }
    pthread_mutex_unlock(&soft_mutex);
    return NULL;
}

static void wake_engine(void)
{
    if (!thread_runs) {
        pthread_condattr_t attributes;
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&work, &attributes);
        pthread_condattr_destroy(&attributes);
        thread_stop = false;
        thread_runs = pthread_create(&thread, NULL, engine_main, NULL) == 0;
        if (!thread_runs)
            run_all(); /* no thread to be had: work is done at once rather than never */
    }
    pthread_cond_signal(&work);
}

__attribute__((destructor)) static void stop_engine(void)
{
    pthread_mutex_lock(&soft_mutex);
    const bool runs = thread_runs;
    thread_stop = true;
    thread_runs = false;
    pthread_cond_signal(&work);
    pthread_mutex_unlock(&soft_mutex);
    if (runs)
        pthread_join(thread, NULL);
}

void soft_engine_reset(void)
{
    rings = NULL; /* what the parent had in flight is the parent's */
    thread_runs = false;
    soft_abort_pending = false;
}

void soft_ring_kick_locked(soft_ring *ring)
{
    (void)ring;
    if (soft.schedule == SOFT_EAGER)
        run_all();
    else if (soft.schedule == SOFT_ASYNC)
        wake_engine();
    else if (soft.schedule == SOFT_SCRIPT)
        soft_script_move_locked();
}

void soft_ring_before_submit_locked(soft_ring *ring)
{
    if (soft.schedule == SOFT_LAZY)
        run_ring(ring);
}

void soft_look_locked(soft_ring *ring)
{
    if (soft.schedule == SOFT_LAZY) {
        if (ring != NULL)
            run_ring(ring);
        else
            run_all();
    }
}

/* Moves the schedule by what a host wait makes it move. @return whether anything ended. */
static bool move_in_wait(soft_ring *ring)
{
    switch (soft.schedule) {
    case SOFT_LAZY:
        return (ring != NULL && run_ring(ring)) || run_all();
    case SOFT_EAGER:
        return run_all();
    case SOFT_SEED:
        return end_any();
    case SOFT_SCRIPT: {
        const size_t before = script_at;
        soft_script_move_locked();
        return script_at != before || end_any();
    }
    default:
        return false;
    }
}

ze_result_t soft_wait_locked(soft_ring *ring, bool (*done)(void *ctx), ze_result_t (*failed)(void *ctx), void *ctx,
                             uint64_t timeout)
{
    const uint64_t start = soft_now_ns();
    for (;;) {
        if (soft_abort_pending)
            abort();
        const ze_result_t bad = failed ? failed(ctx) : ZE_RESULT_SUCCESS;
        if (bad != ZE_RESULT_SUCCESS)
            return bad;
        if (done(ctx))
            return ZE_RESULT_SUCCESS;
        if (timeout == 0) {
            soft_look_locked(ring);
            return failed && failed(ctx) ? failed(ctx) : done(ctx) ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
        }
        if (move_in_wait(ring))
            continue;
        if (timeout == UINT64_MAX) {
            pthread_cond_wait(&soft_changed, &soft_mutex);
            continue;
        }
        const uint64_t now = soft_now_ns();
        if (now - start >= timeout)
            return ZE_RESULT_NOT_READY;
        uint64_t end = start + timeout;
        if (end < start)
            end = UINT64_MAX;
        struct timespec until = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
        pthread_cond_timedwait(&soft_changed, &soft_mutex, &until);
    }
}

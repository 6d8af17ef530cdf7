/* SPDX-License-Identifier: MIT */
/*
 * A replay in a given order, by Level Zero's own means. Each execution of each command has a carrier: a list of its own, recorded
 * where the program appended the command, submitted where the program submitted it, to a queue of its own:
 *
 *     [wait for the gate] [the command, with the waits and the signal it was recorded with] [barrier that signals `done`]
 *
 * The host opens a gate when the command's turn has come and waits until it has ended. The program's own list stays empty; its
 * Execute carries a list that waits for the `done` of all it would have submitted, so that fences and queue waits mean what they did.
 */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "l0_api.h"

#define EVENTS_OF_POOL 256u
#define SOFT_LIMIT_NS 20000000ull /* eager: it ends inside the signal of its gate, or something else has to come first */

enum state { RECORDED, SUBMITTED, OPENED, ENDED, LOST };

typedef struct place { /* where a command goes */
    uint64_t context, device;
    uint32_t ordinal, index, flags, priority;
    bool in_order, synchronous, known;
} place;

typedef struct carrier {
    size_t call; /* append */
    uint32_t execution, list, queue; /* objects: the program's list; the queue or immediate list that it was submitted to */
    uint64_t handle, gate, done, on;  /* on: queue of its own */
    place where;
    uint8_t state;
} carrier;

typedef struct book { /* a list, by object */
    place where;
    size_t *commands; /* append calls, indices */
    size_t n, room;
} book;

typedef struct spare {
    place where;
    uint64_t queue;
} spare;

struct zr_forced {
    book *books;
    uint32_t *executions; /* by call: how often the command it appends is submitted */
    uint32_t *submitted;  /* by call: how often it was so far */
    size_t *first;        /* by call: index of its first carrier + 1; they stand one behind the other */
    uint8_t *written;     /* by call */
    carrier *carriers;
    size_t n_carriers, room_carriers;
    spare *spares;
    size_t n_spares, room_spares;
    uint64_t pool, pool_context;
    uint32_t pool_used;
    uint64_t device;
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int64_t ask(zr_run *run, const char *name, const uint64_t *words)
{
    __atomic_add_fetch(&run->report->injected, 1, __ATOMIC_RELAXED);
    return zr_call_by_name(run, name, words);
}
#define ASK(run, name, ...) ask(run, name, (const uint64_t[]){__VA_ARGS__})
#define REF(x) ((uint64_t)(uintptr_t)&(x))

/* ------------------------------------------------------------------------------------------------------------- plan */

/* Objects that an execute names, in order. @return how many were written. */
static size_t lists_of(const zr_call *call, uint32_t *out, size_t room)
{
    const zt_field *const lists = zt_param_by_role(call->func, ZT_R_LISTS);
    const uint64_t first = lists ? call->words[lists->offset] : 0;
    const uint64_t n = lists && lists->count.op == ZT_X_FIELD ? (uint32_t)call->words[call->func->params[lists->count.a].offset] : 0;
    size_t found = 0;
    for (uint32_t i = 0; i < call->n_fixes && found < room; i++) {
        const uint64_t where = (uint64_t)(uintptr_t)call->fixes[i].where;
        if (call->fixes[i].kind == ZR_FIX_OBJECT && where >= first && where < first + n * 8)
            out[found++] = call->fixes[i].index;
    }
    return found;
}

#define LISTS_MAX 4096

static void keep(zr_run *run, uint32_t list, size_t call)
{
    book *const b = &run->forced->books[list];
    if (zr_grow((void **)&b->commands, b->n, &b->room, sizeof(*b->commands)))
        b->commands[b->n++] = call;
}

static void count_executions(zr_run *run)
{
    const zr_plan *const plan = run->plan;
    struct zr_forced *const f = run->forced;
    uint32_t *const lists = malloc(LISTS_MAX * sizeof(*lists));
    for (size_t i = 0; lists != NULL && i < plan->n_calls; i++) {
        const zr_call *const call = &plan->calls[i];
        const int kind = call->func->kind;
        if ((call->flags & (ZR_SKIP | ZR_FAILED)) || call->id == ZR_NONE)
            continue;
        if (kind == ZT_K_APPEND) {
            const uint32_t list = zr_object_of_role(call, ZT_R_LIST);
            if (list != ZR_NONE && plan->objects.objects[list].immediate)
                f->executions[i] = 1;
            else if (list != ZR_NONE)
                keep(run, list, i);
        } else if (kind == ZT_K_RESET && call->self != ZR_NONE) {
            f->books[call->self].n = 0;
        } else if (kind == ZT_K_EXECUTE) {
            const size_t n = lists_of(call, lists, LISTS_MAX);
            for (size_t k = 0; k < n; k++)
                for (size_t c = 0; c < f->books[lists[k]].n; c++)
                    f->executions[f->books[lists[k]].commands[c]]++;
        }
    }
    for (size_t i = 0; i < plan->objects.n_objects; i++)
        f->books[i].n = 0;
    free(lists);
}

/* --------------------------------------------------------------------------------------------------------- carriers */

static uint64_t new_event(zr_run *run, uint64_t context)
{
    struct zr_forced *const f = run->forced;
    uint64_t event = 0;
    if (f->pool == 0 || f->pool_context != context || f->pool_used == EVENTS_OF_POOL) {
        const ze_event_pool_desc_t desc = {
            .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE, .count = EVENTS_OF_POOL};
        f->pool = f->pool_used = 0;
        f->pool_context = context;
        if (ASK(run, "zeEventPoolCreate", context, REF(desc), 0, 0, REF(f->pool)) != 0)
            return 0;
    }
    const ze_event_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .index = f->pool_used++,
                                  .signal = ZE_EVENT_SCOPE_FLAG_HOST, .wait = ZE_EVENT_SCOPE_FLAG_HOST};
    return ASK(run, "zeEventCreate", f->pool, REF(desc), REF(event)) == 0 ? event : 0;
}

static uint64_t new_list(zr_run *run, const place *where)
{
    uint64_t list = 0;
    const ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, .commandQueueGroupOrdinal = where->ordinal,
                                         .flags = where->in_order ? ZE_COMMAND_LIST_FLAG_IN_ORDER : 0};
    return ASK(run, "zeCommandListCreate", where->context, where->device, REF(desc), REF(list)) == 0 ? list : 0;
}

/* @return what the recorded append gave. */
static int64_t record_carrier(zr_run *run, size_t index, const zr_call *call, uint32_t list, uint32_t execution, const place *where,
                              void *fn, const uint64_t *words)
{
    struct zr_forced *const f = run->forced;
    carrier c = {.call = index, .execution = execution, .list = list, .queue = ZR_NONE, .where = *where,
                 .handle = new_list(run, where), .gate = new_event(run, where->context), .done = new_event(run, where->context)};
    uint64_t own[64];
    const zt_field *const at = zt_param_by_role(call->func, ZT_R_LIST);
    int64_t result = 0x78000003;
    if (c.handle == 0 || c.gate == 0 || c.done == 0 || at == NULL || call->func->n_words > 64) {
        zr_stop(run, ZR_CANNOT, "call #%llu %s cannot be given a list of its own on this driver", (unsigned long long)call->number,
                call->func->name);
        return result;
    }
    memcpy(own, words, call->func->n_words * 8u);
    own[at->offset] = c.handle;
    ASK(run, "zeCommandListAppendWaitOnEvents", c.handle, 1, REF(c.gate));
    result = zr_thunks[call->id](fn, own);
    ASK(run, "zeCommandListAppendBarrier", c.handle, c.done, 0, 0);
    ASK(run, "zeCommandListClose", c.handle);
    if (zr_grow((void **)&f->carriers, f->n_carriers, &f->room_carriers, sizeof(*f->carriers))) {
        if (execution == 1)
            f->first[index] = f->n_carriers + 1;
        f->carriers[f->n_carriers++] = c;
    }
    return result;
}

static carrier *carrier_of(struct zr_forced *f, size_t call, uint32_t execution)
{
    const size_t at = f->first[call] ? f->first[call] - 1 + execution - 1 : SIZE_MAX;
    return execution > 0 && at < f->n_carriers && f->carriers[at].call == call && f->carriers[at].execution == execution
               ? &f->carriers[at]
               : NULL;
}

static bool same_place(const place *a, const place *b)
{
    return a->context == b->context && a->device == b->device && a->ordinal == b->ordinal && a->index == b->index &&
           a->flags == b->flags && a->priority == b->priority;
}

static int64_t submit(zr_run *run, carrier *c, uint32_t queue, const place *where)
{
    struct zr_forced *const f = run->forced;
    c->queue = queue;
    c->where.index = where->index;
    c->where.flags = where->flags;
    c->where.priority = where->priority;
    c->where.ordinal = where->ordinal;
    for (size_t i = 0; i < f->n_spares && c->on == 0; i++) {
        if (!same_place(&f->spares[i].where, &c->where))
            continue;
        c->on = f->spares[i].queue;
        f->spares[i] = f->spares[--f->n_spares];
    }
    const ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .ordinal = where->ordinal,
                                          .index = where->index, .flags = where->flags,
                                          .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
                                          .priority = (ze_command_queue_priority_t)where->priority};
    int64_t result = 0;
    if (c->on == 0)
        result = ASK(run, "zeCommandQueueCreate", where->context, where->device, REF(desc), REF(c->on));
    if (result == 0)
        result = ASK(run, "zeCommandQueueExecuteCommandLists", c->on, 1, REF(c->handle), 0);
    c->state = result == 0 ? SUBMITTED : LOST;
    return result;
}

/* Its turn has come. */
static void open_gate(zr_run *run, carrier *c)
{
    struct zr_forced *const f = run->forced;
    if (c->state != SUBMITTED)
        return;
    c->state = OPENED;
    atomic_fetch_add(&run->shared->progress, 1);
    ASK(run, "zeEventHostSignal", c->gate);
    const uint64_t begin = now_ns(), most = run->options->gate_ns ? run->options->gate_ns : 2000000000u;
    const uint64_t limit = run->target.soft && most > SOFT_LIMIT_NS ? SOFT_LIMIT_NS : most;
    for (;;) {
        if (ASK(run, "zeEventQueryStatus", c->done) == 0) {
            c->state = ENDED;
            const spare s = {c->where, c->on};
            if (zr_grow((void **)&f->spares, f->n_spares, &f->room_spares, sizeof(*f->spares)))
                f->spares[f->n_spares++] = s;
            return;
        }
        if (ASK(run, "zeDeviceGetStatus", c->where.device) != 0) {
            c->state = LOST;
            return;
        }
        if (now_ns() - begin > limit)
            break;
        nanosleep(&(struct timespec){0, 100000}, NULL);
    }
    if (run->report->stuck++ == 0)
        run->report->first_stuck = run->plan->calls[c->call].number;
}

/* ------------------------------------------------------------------------------------------------------------- calls */

static void learn_place(zr_run *run, const zr_call *call, const uint64_t *words)
{
    const zt_field *const desc = zt_param_by_role(call->func, ZT_R_DESC);
    const zt_field *const context = zt_param_by_role(call->func, ZT_R_CONTEXT), *const device = zt_param_by_role(call->func, ZT_R_DEVICE);
    if (call->n_outs == 0 || call->outs[0].kind != ZR_OUT_OBJECT || desc == NULL || context == NULL || device == NULL ||
        words[desc->offset] == 0)
        return;
    place w = {.context = words[context->offset], .device = words[device->offset], .known = true};
    const void *const at = (const void *)(uintptr_t)words[desc->offset];
    if (strcmp(zt_types[desc->type].name, "ze_command_list_desc_t") == 0) {
        const ze_command_list_desc_t *const d = at;
        w.ordinal = d->commandQueueGroupOrdinal;
        w.in_order = d->flags & ZE_COMMAND_LIST_FLAG_IN_ORDER;
    } else if (strcmp(zt_types[desc->type].name, "ze_command_queue_desc_t") == 0) {
        const ze_command_queue_desc_t *const d = at;
        w.ordinal = d->ordinal;
        w.index = d->index;
        w.flags = d->flags & ~(uint32_t)ZE_COMMAND_QUEUE_FLAG_IN_ORDER;
        w.in_order = d->flags & ZE_COMMAND_QUEUE_FLAG_IN_ORDER;
        w.synchronous = d->mode == ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS;
        w.priority = (uint32_t)d->priority;
    } else {
        return;
    }
    run->forced->books[call->outs[0].index].where = w;
}

static int64_t append(zr_run *run, const zr_call *call, void *fn, const uint64_t *words)
{
    struct zr_forced *const f = run->forced;
    const size_t index = (size_t)(call - run->plan->calls);
    const uint32_t list = zr_object_of_role(call, ZT_R_LIST);
    if (list == ZR_NONE || !f->books[list].where.known || f->executions[index] == 0 || call->result != 0)
        return zr_thunks[call->id](fn, words); /* it goes nowhere: to the program's own list */
    int64_t result = 0;
    for (uint32_t k = 1; k <= f->executions[index] && result == 0 && !atomic_load(&run->stop); k++)
        result = record_carrier(run, index, call, list, k, &f->books[list].where, fn, words);
    if (!run->plan->objects.objects[list].immediate) {
        keep(run, list, index);
        return result;
    }
    carrier *const c = carrier_of(f, index, 1);
    f->submitted[index] = 1;
    if (result == 0 && c != NULL)
        result = submit(run, c, list, &f->books[list].where);
    return result == 0x7ffffffe ? 0x70000003 : result; /* what a submit says as UNKNOWN an immediate append says as OUT_OF_DEVICE_MEMORY */
}

static int64_t execute(zr_run *run, const zr_call *call, void *fn, uint64_t *words)
{
    struct zr_forced *const f = run->forced;
    const zt_field *const lists = zt_param_by_role(call->func, ZT_R_LISTS);
    const uint32_t queue = zr_object_of_role(call, ZT_R_QUEUE);
    uint32_t found[256];
    const size_t n = lists_of(call, found, 256);
    if (queue == ZR_NONE || !f->books[queue].where.known || lists->count.op != ZT_X_FIELD) {
        zr_stop(run, ZR_CANNOT, "call #%llu %s cannot be taken apart into its commands yet", (unsigned long long)call->number,
                call->func->name);
        return 0;
    }
    const place *const where = &f->books[queue].where;
    uint64_t dones[1024];
    uint32_t n_dones = 0;
    uint64_t epilogue = new_list(run, &(place){.context = where->context, .device = where->device, .ordinal = where->ordinal});
    for (size_t i = 0; i < n; i++) {
        const book *const b = &f->books[found[i]];
        for (size_t k = 0; k < b->n; k++) {
            carrier *const c = carrier_of(f, b->commands[k], ++f->submitted[b->commands[k]]);
            if (c == NULL || submit(run, c, queue, where) != 0)
                continue;
            dones[n_dones++] = c->done;
            if (n_dones == 1024 && !where->synchronous) {
                ASK(run, "zeCommandListAppendWaitOnEvents", epilogue, n_dones, (uint64_t)(uintptr_t)dones);
                n_dones = 0;
            }
            n_dones &= 1023;
        }
    }
    if (n_dones > 0 && !where->synchronous)
        ASK(run, "zeCommandListAppendWaitOnEvents", epilogue, n_dones, (uint64_t)(uintptr_t)dones);
    ASK(run, "zeCommandListClose", epilogue);
    words[call->func->params[lists->count.a].offset] = 1;
    words[lists->offset] = REF(epilogue);
    return zr_thunks[call->id](fn, words);
}

/* What happens to a list or queue happens to those that stand for it in flight. */
static void pass_on(zr_run *run, const zr_call *call)
{
    struct zr_forced *const f = run->forced;
    const zr_object *const o = &run->plan->objects.objects[call->self];
    const char *const kind = zt_types[o->type].object;
    const bool is_queue = kind && (strcmp(kind, "queue") == 0 || o->immediate);
    for (size_t i = 0; i < f->n_carriers; i++) {
        carrier *const c = &f->carriers[i];
        if (c->state != SUBMITTED && c->state != OPENED)
            continue;
        if (is_queue && c->queue == call->self && call->func->kind == ZT_K_DESTROY)
            ASK(run, "zeCommandQueueDestroy", c->on);
        else if (!is_queue && c->list == call->self)
            ASK(run, call->func->kind == ZT_K_RESET ? "zeCommandListReset" : "zeCommandListDestroy", c->handle);
    }
    if (!is_queue)
        f->books[call->self].n = 0;
}

int64_t zr_forced_call(zr_run *run, const zr_call *call, void *fn, uint64_t *words)
{
    const int kind = call->func->kind;
    if (kind == ZT_K_APPEND)
        return append(run, call, fn, words);
    if (kind == ZT_K_EXECUTE)
        return execute(run, call, fn, words);
    const bool about_list = call->self != ZR_NONE && (kind == ZT_K_RESET || kind == ZT_K_DESTROY);
    if (about_list && (run->forced->books[call->self].where.known))
        pass_on(run, call);
    const int64_t result = zr_thunks[call->id](fn, words);
    if (kind == ZT_K_CREATE && result == 0)
        learn_place(run, call, words);
    return result;
}

bool zr_forced_written(const zr_run *run, const zr_call *call)
{
    return run->forced != NULL && run->forced->written[call - run->plan->calls];
}

static size_t find_call(const zr_plan *plan, uint64_t number)
{
    size_t low = 0, high = plan->n_calls;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (plan->calls[mid].number < number)
            low = mid + 1;
        else
            high = mid;
    }
    return low < plan->n_calls && plan->calls[low].number == number ? low : SIZE_MAX;
}

void zr_run_forced(zr_run *run, void (*make)(zr_run *run, const zr_call *call))
{
    const zr_plan *const plan = run->plan;
    struct zr_forced f = {.books = calloc(plan->objects.n_objects + 1, sizeof(book)),
                          .executions = calloc(plan->n_calls + 1, sizeof(uint32_t)),
                          .submitted = calloc(plan->n_calls + 1, sizeof(uint32_t)),
                          .first = calloc(plan->n_calls + 1, sizeof(size_t)),
                          .written = calloc(plan->n_calls + 1, 1)};
    if (f.books == NULL || f.executions == NULL || f.submitted == NULL || f.first == NULL || f.written == NULL) {
        zr_stop(run, ZR_CANNOT, "not enough memory for a replay in a given order");
        return; /* the child ends, and its memory with it */
    }
    run->forced = &f;
    count_executions(run);
    for (size_t i = 0; i < run->options->n_items && !atomic_load(&run->stop); i++) {
        const zr_item *const item = &run->options->items[i];
        const size_t index = find_call(plan, item->call);
        if (index == SIZE_MAX)
            continue;
        if (item->kind == ZR_I_CALL) {
            make(run, &plan->calls[index]);
        } else if (item->kind == ZR_I_WRITE) {
            zr_write_contents(run, &plan->calls[index]);
            f.written[index] = 1;
        } else {
            carrier *const c = carrier_of(&f, index, item->execution);
            if (c != NULL)
                open_gate(run, c);
        }
    }
    for (size_t i = 0; i < f.n_carriers && !atomic_load(&run->stop); i++)
        open_gate(run, &f.carriers[i]);
    for (size_t i = 0; i < f.n_carriers && !run->report->lost && !atomic_load(&run->stop); i++)
        if (i == 0 || f.carriers[i].where.device != f.carriers[i - 1].where.device)
            run->report->lost = ASK(run, "zeDeviceGetStatus", f.carriers[i].where.device) == 0x70000001;
    run->forced = NULL;
}

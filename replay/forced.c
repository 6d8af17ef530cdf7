/* SPDX-License-Identifier: MIT */
/*
 * A replay in a given order, by Level Zero's own means. Each execution of each command has a carrier (carriers.c), recorded where the
 * program appended the command, since arguments are taken then, and submitted behind a closed gate where the program submitted it. The
 * program's own lists stay empty, and what its Execute submits is a tail (tails.c).
 *
 * Executions are counted in the recorded order of the calls, whatever the order in which they are made here.
 */
#include "forced.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "l0_api.h"

#define SOFT_LIMIT_NS   20000000ull /* eager: what a call lets run has ended when it returns, or something else has to come first */
#define WAITS_OF_A_LIST 1024u

typedef struct submit { /* one command of an execute */
    size_t call;
    uint32_t execution;
    uint32_t list; /* which the execute names: the one it was appended to, or a clone */
} submit;

typedef struct book { /* a regular list while the executions are counted */
    size_t *commands;
    size_t n, room;
} book;

struct zr_forced {
    zr_carriers carriers;
    zr_where *places;     /* by object */
    uint32_t *executions; /* by call: how often the command that it appends is submitted */
    size_t *first;        /* by call: its first carrier + 1; they stand one behind the other */
    submit *submits;      /* of all executes, one behind the other */
    size_t n_submits, room_submits;
    size_t *submits_at;   /* by call: index of its first */
    uint8_t *named;       /* by call */
    size_t *unread;       /* synchronous submits whose commands are still to run: what the host read back is compared then */
    size_t n_unread, room_unread;
    zr_tails tails;
    bool eager; /* libze_soft does all work inside calls: by waiting nothing ends, and there is but this thread */
};

/* -------------------------------------------------------------------------------------------------------------- plan */

static uint64_t count_of(const zr_call *call, const zt_field *array)
{
    return array != NULL && array->count.op == ZT_X_FIELD ? (uint32_t)call->words[call->func->params[array->count.a].offset] : 0;
}

/* The n-th list that an execute names. @return false behind the last. */
static bool next_list(const zr_call *call, uint32_t *fix, uint32_t *list)
{
    const zt_field *const lists = zt_param_by_role(call->func, ZT_R_LISTS);
    const uint64_t first = lists ? call->words[lists->offset] : 0, n = count_of(call, lists);
    for (; *fix < call->n_fixes; (*fix)++) {
        const uint64_t where = (uint64_t)(uintptr_t)call->fixes[*fix].where;
        if (call->fixes[*fix].kind == ZR_FIX_OBJECT && where >= first && where < first + n * 8) {
            *list = call->fixes[(*fix)++].index;
            return true;
        }
    }
    return false;
}

/* A list made of another one: what is in that is in it as well. @return the other, ZR_NONE. */
static uint32_t cloned_from(const zr_plan *plan, const zr_call *call)
{
    if (call->func->kind != ZT_K_CREATE || (call->flags & ZR_FAILED) || call->self == ZR_NONE || call->n_outs == 0 ||
        call->outs[0].kind != ZR_OUT_OBJECT || plan->objects.objects[call->outs[0].index].type != plan->objects.objects[call->self].type)
        return ZR_NONE;
    return call->self;
}

static bool plan_clone(book *books, uint32_t from, uint32_t to)
{
    book *const b = &books[to];
    b->n = 0;
    for (size_t i = 0; i < books[from].n; i++) {
        if (!zr_grow((void **)&b->commands, b->n, &b->room, sizeof(*b->commands)))
            return false;
        b->commands[b->n++] = books[from].commands[i];
    }
    return true;
}

static bool plan_execute(zr_run *run, const book *books, size_t index)
{
    const zr_call *const call = &run->plan->calls[index];
    struct zr_forced *const f = run->forced;
    for (uint32_t fix = 0, list; next_list(call, &fix, &list);)
        for (size_t i = 0; i < books[list].n; i++) {
            const size_t command = books[list].commands[i];
            if (!zr_grow((void **)&f->submits, f->n_submits, &f->room_submits, sizeof(*f->submits)))
                return false;
            f->submits[f->n_submits++] = (submit){command, ++f->executions[command], list};
        }
    return true;
}

/* Which commands each execute submits, and in which of their executions. */
static bool plan_submits(zr_run *run)
{
    const zr_plan *const plan = run->plan;
    struct zr_forced *const f = run->forced;
    book *const books = calloc(plan->objects.n_objects + 1, sizeof(*books));
    bool ok = books != NULL;
    for (size_t i = 0; ok && i < plan->n_calls; i++) {
        const zr_call *const call = &plan->calls[i];
        const int kind = call->func->kind;
        f->submits_at[i] = f->n_submits;
        if ((call->flags & (ZR_SKIP | ZR_FAILED)) || call->id == ZR_NONE)
            continue;
        if (kind == ZT_K_APPEND) {
            const uint32_t list = zr_object_of_role(call, ZT_R_LIST);
            if (list == ZR_NONE)
                continue;
            book *const b = &books[list];
            if (plan->objects.objects[list].immediate)
                f->executions[i] = 1;
            else if ((ok = zr_grow((void **)&b->commands, b->n, &b->room, sizeof(*b->commands))))
                b->commands[b->n++] = i;
        } else if (kind == ZT_K_RESET && call->self != ZR_NONE) {
            books[call->self].n = 0;
        } else if (kind == ZT_K_EXECUTE) {
            ok = plan_execute(run, books, i);
        } else if (cloned_from(plan, call) != ZR_NONE) {
            ok = plan_clone(books, call->self, call->outs[0].index);
        }
    }
    f->submits_at[plan->n_calls] = f->n_submits;
    for (size_t i = 0; books != NULL && i < plan->objects.n_objects; i++)
        free(books[i].commands);
    free(books);
    return ok;
}

/* ------------------------------------------------------------------------------------------------------------- calls */

static zr_carrier *carrier_of(struct zr_forced *f, size_t call, uint32_t execution)
{
    zr_carriers *const c = &f->carriers;
    const size_t at = f->first[call] != 0 && execution > 0 ? f->first[call] - 1 + (execution - 1) : SIZE_MAX;
    return at < c->n && c->all[at].call == call && c->all[at].execution == execution ? &c->all[at] : NULL;
}

/* In flight it goes with the list that was submitted. */
static zr_carrier *carrier_of_submit(struct zr_forced *f, const submit *s)
{
    zr_carrier *const carrier = carrier_of(f, s->call, s->execution);
    if (carrier != NULL)
        carrier->list = s->list;
    return carrier;
}

static void learn_place(zr_run *run, const zr_call *call, const uint64_t *words)
{
    const zt_field *const desc = zt_param_by_role(call->func, ZT_R_DESC), *const context = zt_param_by_role(call->func, ZT_R_CONTEXT),
                   *const device = zt_param_by_role(call->func, ZT_R_DEVICE);
    if (call->n_outs == 0 || call->outs[0].kind != ZR_OUT_OBJECT || desc == NULL || context == NULL || device == NULL ||
        words[desc->offset] == 0)
        return;
    zr_where w = {.context = words[context->offset], .device = words[device->offset], .known = true};
    const void *const at = (const void *)(uintptr_t)words[desc->offset];
    if (strcmp(zt_types[desc->type].name, "ze_command_list_desc_t") == 0) {
        const ze_command_list_desc_t *const d = at;
        w.next = d->pNext;
        w.ordinal = d->commandQueueGroupOrdinal;
        w.flags = d->flags;
    } else if (strcmp(zt_types[desc->type].name, "ze_command_queue_desc_t") == 0) {
        const ze_command_queue_desc_t *const d = at;
        w.of_queue = true;
        w.next = d->pNext;
        w.ordinal = d->ordinal;
        w.index = d->index;
        w.flags = d->flags;
        w.synchronous = d->mode == ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS;
        w.priority = (uint32_t)d->priority;
    } else {
        return;
    }
    run->forced->places[call->outs[0].index] = w;
}

/* What a refused submit is called by an append to an immediate list. */
static int64_t as_append(int64_t result)
{
    return result == ZE_RESULT_ERROR_UNKNOWN ? ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY : result;
}

static int64_t append(zr_run *run, const zr_call *call, void *fn, uint64_t *words)
{
    struct zr_forced *const f = run->forced;
    const size_t index = (size_t)(call - run->plan->calls);
    const uint32_t list = zr_object_of_role(call, ZT_R_LIST);
    if (list == ZR_NONE || !f->places[list].known || f->executions[index] == 0)
        return zr_thunks[call->id](fn, words); /* never submitted, or refused: the program's own list will do */
    const zr_where *const where = &f->places[list];
    const unsigned list_word = zt_param_by_role(call->func, ZT_R_LIST)->offset;
    int64_t result = 0;
    f->first[index] = f->carriers.n + 1;
    for (uint32_t k = 1; k <= f->executions[index] && result == 0 && !atomic_load(&run->stop); k++)
        result = zr_carrier_add(run, &f->carriers, call, k, list, where, call->func->name, words, call->func->n_words, list_word);
    zr_carrier *const carrier = carrier_of(f, index, 1);
    if (result != 0 || !run->plan->objects.objects[list].immediate || carrier == NULL)
        return result;
    return as_append(zr_carrier_submit(run, &f->carriers, carrier, list, where));
}

/* The waits and the signal that an execute on an immediate list has of its own: executions 1 and 2 of that call. */
static void add_own_parts(zr_run *run, const zr_call *call, const uint64_t *words, uint32_t list, const zr_where *where)
{
    struct zr_forced *const f = run->forced;
    const zt_field *const waits = zt_param_by_role(call->func, ZT_R_WAITS), *const signal = zt_param_by_role(call->func, ZT_R_SIGNAL);
    const uint64_t n = count_of(call, waits), event = signal ? words[signal->offset] : 0;
    if (n == 0 && event == 0)
        return;
    uint64_t wait[3] = {0, n, n ? words[waits->offset] : 0}, after[4] = {0, event, 0, 0};
    f->first[call - run->plan->calls] = f->carriers.n + 1;
    /* a part that the call does not have is a command that does nothing, and is not submitted */
    zr_carrier_add(run, &f->carriers, call, 1, list, where, n ? "zeCommandListAppendWaitOnEvents" : "zeCommandListAppendBarrier",
                   n ? wait : (uint64_t[4]){0}, n ? 3 : 4, 0);
    if (event != 0)
        zr_carrier_add(run, &f->carriers, call, 2, list, where, "zeCommandListAppendBarrier", after, 4, 0);
}

typedef struct epilogue {
    zr_run *run;
    const zr_where *where;
    uint64_t list;
    uint32_t n;
    int64_t result; /* first submit that was refused */
    uint64_t dones[WAITS_OF_A_LIST];
} epilogue;

static void flush(epilogue *e)
{
    if (e->n == 0)
        return;
    if (e->list == 0)
        e->list = zr_new_list(e->run, &(zr_where){.context = e->where->context, .device = e->where->device,
                                                  .ordinal = e->where->ordinal, .of_queue = true,
                                                  .flags = e->where->flags & ~(uint32_t)ZE_COMMAND_QUEUE_FLAG_IN_ORDER});
    ZR_ASK(e->run, "zeCommandListAppendWaitOnEvents", e->list, e->n, (uint64_t)(uintptr_t)e->dones);
    e->n = 0;
}

static void submit_one(epilogue *e, zr_carrier *carrier, uint32_t on)
{
    if (carrier == NULL)
        return;
    const int64_t result = zr_carrier_submit(e->run, &e->run->forced->carriers, carrier, on, e->where);
    if (result != 0) {
        e->result = e->result ? e->result : result;
        return;
    }
    e->dones[e->n++] = carrier->done;
    if (e->n == WAITS_OF_A_LIST)
        flush(e);
}

static int64_t execute(zr_run *run, const zr_call *call, void *fn, uint64_t *words)
{
    struct zr_forced *const f = run->forced;
    const size_t index = (size_t)(call - run->plan->calls);
    const zt_field *const lists = zt_param_by_role(call->func, ZT_R_LISTS);
    const uint32_t queue = zr_object_of_role(call, ZT_R_QUEUE), list = zr_object_of_role(call, ZT_R_LIST);
    const uint32_t on = queue != ZR_NONE ? queue : list;
    if (call->flags & ZR_FAILED)
        return zr_thunks[call->id](fn, words);
    bool known = on != ZR_NONE && f->places[on].known && lists != NULL && lists->count.op == ZT_X_FIELD;
    for (uint32_t fix = 0, each; known && next_list(call, &fix, &each);)
        known = f->places[each].known;
    if (!known) {
        zr_stop(run, ZR_CANNOT, "call #%llu %s cannot be taken apart into its commands: where they go is not known",
                (unsigned long long)call->number, call->func->name);
        return 0;
    }
    epilogue *const e = calloc(1, sizeof(*e));
    if (e == NULL) {
        zr_stop(run, ZR_CANNOT, "not enough memory for call #%llu", (unsigned long long)call->number);
        return 0;
    }
    e->run = run;
    e->where = &f->places[on];
    const bool immediate = queue == ZR_NONE;
    if (immediate) {
        const zt_field *const waits = zt_param_by_role(call->func, ZT_R_WAITS);
        add_own_parts(run, call, words, list, e->where);
        if (count_of(call, waits) > 0)
            submit_one(e, carrier_of(f, index, 1), on);
    }
    for (size_t i = f->submits_at[index]; i < f->submits_at[index + 1] && !atomic_load(&run->stop); i++)
        submit_one(e, carrier_of_submit(f, &f->submits[i]), on);
    if (immediate)
        submit_one(e, carrier_of(f, index, 2), on);
    int64_t result = immediate ? as_append(e->result) : e->result;
    if (!immediate) {
        if (!e->where->synchronous)
            flush(e);
        if (e->list != 0) {
            const zt_field *const fence = zt_param_by_role(call->func, ZT_R_FENCE);
            ZR_ASK(run, "zeCommandListClose", e->list);
            const zr_tail tail = {.call = index, .queue = queue, .queue_handle = words[zt_param_by_role(call->func, ZT_R_QUEUE)->offset],
                                  .fence = zr_object_of_role(call, ZT_R_FENCE), .fence_handle = fence ? words[fence->offset] : 0,
                                  .list = e->list};
            if (!zr_tail_add(&f->tails, &tail))
                zr_stop(run, ZR_CANNOT, "not enough memory for call #%llu", (unsigned long long)call->number);
        } else {
            const int64_t own = zr_thunks[call->id](fn, words);
            result = own != 0 ? own : result;
        }
    }
    free(e);
    return result;
}

/* An empty list will do, since no list of the program's has commands here; the driver need not know how to clone. */
static int64_t make_clone(zr_run *run, const zr_call *call, uint64_t *words)
{
    zr_where *const places = run->forced->places;
    const uint64_t list = zr_new_list(run, &places[call->self]);
    if (list == 0)
        return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    ZR_ASK(run, "zeCommandListClose", list);
    *(uint64_t *)(uintptr_t)words[zt_param_by_role(call->func, ZT_R_CREATE)->offset] = list;
    places[call->outs[0].index] = places[call->self];
    return 0;
}

int64_t zr_forced_call(zr_run *run, const zr_call *call, void *fn, uint64_t *words)
{
    const int kind = call->func->kind;
    if (call->self != ZR_NONE && (kind == ZT_K_RESET || kind == ZT_K_HOST_RESET || kind == ZT_K_DESTROY))
        zr_tails_gone(run, &run->forced->tails, call->self);
    if (kind == ZT_K_APPEND)
        return append(run, call, fn, words);
    if (kind == ZT_K_EXECUTE)
        return execute(run, call, fn, words);
    if ((kind == ZT_K_RESET || kind == ZT_K_DESTROY) && call->self != ZR_NONE && !(call->flags & ZR_FAILED))
        zr_carriers_gone(run, &run->forced->carriers, call->self, kind == ZT_K_RESET);
    if (cloned_from(run->plan, call) != ZR_NONE && run->forced->places[call->self].known)
        return make_clone(run, call, words);
    const int64_t result = zr_thunks[call->id](fn, words);
    if (kind == ZT_K_CREATE && result == 0)
        learn_place(run, call, words);
    return result;
}

/* A synchronous submit returns here before its commands have run. */
bool zr_forced_unread(zr_run *run, const zr_call *call)
{
    struct zr_forced *const f = run->forced;
    const int kind = call->func->kind;
    if (f == NULL || (kind != ZT_K_APPEND && kind != ZT_K_EXECUTE))
        return false;
    const uint32_t queue = zr_object_of_role(call, ZT_R_QUEUE), on = queue != ZR_NONE ? queue : zr_object_of_role(call, ZT_R_LIST);
    if (on == ZR_NONE || !f->places[on].synchronous ||
        !zr_grow((void **)&f->unread, f->n_unread, &f->room_unread, sizeof(*f->unread)))
        return false;
    f->unread[f->n_unread++] = (size_t)(call - run->plan->calls);
    return true;
}

static bool is_over(const zr_carrier *carrier)
{
    return carrier == NULL || (carrier->state != ZR_SUBMITTED && carrier->state != ZR_OPENED);
}

static bool all_over(struct zr_forced *f, size_t index)
{
    for (size_t i = f->submits_at[index]; i < f->submits_at[index + 1]; i++)
        if (!is_over(carrier_of(f, f->submits[i].call, f->submits[i].execution)))
            return false;
    return is_over(carrier_of(f, index, 1)) && is_over(carrier_of(f, index, 2));
}

bool zr_forced_over(zr_run *run, size_t call)
{
    return all_over(run->forced, call);
}

bool zr_is_kind(const zr_run *run, uint32_t object, const char *kind)
{
    const zt_type *const type = object == ZR_NONE ? NULL : &zt_types[run->plan->objects.objects[object].type];
    return type != NULL && type->object != NULL && strcmp(type->object, kind) == 0;
}

void zr_forced_before_wait(zr_run *run, const zr_call *call)
{
    if (run->forced != NULL)
        zr_tails_before_wait(run, &run->forced->tails, call->self);
}

/* Compares what synchronous submits have read back: those that are over, and in any case those of a thread that goes on. */
static void read_back(zr_run *run, uint32_t thread)
{
    struct zr_forced *const f = run->forced;
    size_t kept = 0;
    for (size_t i = 0; i < f->n_unread; i++) {
        const zr_call *const call = &run->plan->calls[f->unread[i]];
        if (call->thread == thread || all_over(f, f->unread[i]))
            zr_check_readbacks(run, call);
        else
            f->unread[kept++] = f->unread[i];
    }
    f->n_unread = kept;
}

/* ------------------------------------------------------------------------------------------------------------- items */

static bool look_through(zr_run *run)
{
    const zr_options *const o = run->options;
    struct zr_forced *const f = run->forced;
    for (size_t i = 0; i < o->n_items; i++) {
        const size_t index = zr_find_call(run->plan, o->items[i].call);
        if (index == SIZE_MAX) {
            zr_stop(run, ZR_CANNOT, "the order names call #%llu, which the trace does not hold", (unsigned long long)o->items[i].call);
            return false;
        }
        const bool about_contents = o->items[i].kind == ZR_I_WRITE;
        const zr_call *const call = &run->plan->calls[index];
        for (uint32_t k = 0; about_contents && k < call->n_data; k++)
            if (o->items[i].execution == 0 || o->items[i].execution == call->data[k].number)
                call->data[k].held = 1;
        f->named[index] |= o->items[i].kind == ZR_I_CALL;
    }
    for (size_t i = 0; i < run->plan->n_calls; i++)
        run->report->not_made += !f->named[i];
    return true;
}

static void write_item(zr_run *run, const zr_call *call, const zr_item *item)
{
    const zr_options *const o = run->options;
    uint8_t *const flags = item->learn != 0 && o->learned != NULL && item->learn - 1 <= o->n_learned &&
                                   item->size <= o->n_learned - (item->learn - 1) ? o->learned + (item->learn - 1) : NULL;
    for (uint32_t i = 0; i < call->n_data; i++)
        if (item->execution == 0 || call->data[i].number == item->execution)
            zr_write_content(run, &call->data[i], item->from, item->execution == 0 ? call->data[i].len : item->size, flags, o->learn);
}

static bool is_eager(const zr_run *run)
{
    const char *const schedule = run->target.soft ? getenv("ZE_SOFT_SCHEDULE") : NULL;
    return schedule && strcmp(schedule, "eager") == 0;
}

uint64_t zr_forced_limit(zr_run *run, uint64_t most)
{
    struct zr_forced *const f = run->forced;
    return f != NULL && f->eager && atomic_load(&run->delayed) == 0 && most > SOFT_LIMIT_NS ? SOFT_LIMIT_NS : most;
}

static void open_in_turn(zr_run *run, zr_carrier *carrier)
{
    zr_report *const report = run->report;
    zr_carrier_open(run, &run->forced->carriers, carrier);
    if (carrier->state == ZR_OPENED && report->late++ == 0)
        report->first_late = run->plan->calls[carrier->call].number;
}

void zr_run_forced(zr_run *run, void (*make)(zr_run *run, const zr_call *call))
{
    const zr_plan *const plan = run->plan;
    struct zr_forced *const f = calloc(1, sizeof(*f));
    run->forced = f;
    if (f != NULL) {
        f->places = calloc(plan->objects.n_objects + 1, sizeof(*f->places));
        f->executions = calloc(plan->n_calls + 1, sizeof(*f->executions));
        f->first = calloc(plan->n_calls + 1, sizeof(*f->first));
        f->submits_at = calloc(plan->n_calls + 1, sizeof(*f->submits_at));
        f->named = calloc(plan->n_calls + 1, 1);
    }
    if (f == NULL || !f->places || !f->executions || !f->first || !f->submits_at || !f->named || !plan_submits(run)) {
        zr_stop(run, ZR_CANNOT, "not enough memory for a replay in a given order");
        return;
    }
    f->eager = is_eager(run);
    f->carriers.limit_ns = zr_forced_limit(run, run->options->gate_ns ? run->options->gate_ns : 2000000000u);
    if (!look_through(run))
        return;
    for (size_t i = 0; i < run->options->n_items && !atomic_load(&run->stop); i++) {
        const zr_item *const item = &run->options->items[i];
        const size_t index = zr_find_call(plan, item->call);
        zr_carrier *const carrier = item->kind == ZR_I_COMMAND ? carrier_of(f, index, item->execution) : NULL;
        if (f->n_unread > 0)
            read_back(run, item->kind == ZR_I_CALL ? plan->calls[index].thread : ZR_NONE);
        if (item->kind == ZR_I_CALL)
            make(run, &plan->calls[index]);
        else if (item->kind == ZR_I_WRITE)
            write_item(run, &plan->calls[index], item);
        else if (carrier != NULL)
            open_in_turn(run, carrier);
        if (f->tails.n > 0)
            zr_tails_settle(run, &f->tails);
    }
}

static uint64_t plan_number(const zr_run *run, const zr_carrier *carrier)
{
    return run->plan->calls[carrier->call].number;
}

void zr_forced_finish(zr_run *run)
{
    struct zr_forced *const f = run->forced;
    zr_report *const report = run->report;
    uint64_t first = UINT64_MAX;
    if (f == NULL)
        return;
    for (uint32_t thread = 0; thread < run->plan->n_threads && f->n_unread > 0; thread++)
        read_back(run, thread);
    for (size_t i = 0; i < f->carriers.n && !atomic_load(&run->stop); i++) {
        if (f->carriers.all[i].state != ZR_SUBMITTED)
            continue;
        zr_carrier_open(run, &f->carriers, &f->carriers.all[i]);
        report->never_ran += f->carriers.all[i].state != ZR_OPENED; /* the others are counted below */
        if (first == UINT64_MAX) {
            first = f->carriers.all[i].opened;
            report->first_stuck = plan_number(run, &f->carriers.all[i]);
        }
    }
    for (size_t i = 0; i < f->carriers.n; i++) {
        zr_carrier *const carrier = &f->carriers.all[i];
        if (carrier->state != ZR_OPENED || zr_carrier_ended(run, carrier))
            continue;
        report->stuck++;
        report->never_ran++;
        if (carrier->opened < first) {
            first = carrier->opened;
            report->first_stuck = plan_number(run, carrier);
        }
    }
    while (f->tails.n > 0 && !atomic_load(&run->stop))
        zr_tails_before_wait(run, &f->tails, ZR_NONE);
    for (size_t i = 0; i < f->carriers.n && !report->lost && !atomic_load(&run->stop); i++) {
        const uint64_t device = f->carriers.all[i].at.device;
        if (i == 0 || device != f->carriers.all[i - 1].at.device)
            report->lost = zr_call_by_name(run, "zeDeviceGetStatus", (const uint64_t[]){device}) == 0x70000001;
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * Reads the trace twice: who uses what, and which calls matter; then what those look like in C. Objects are those of the trace, by
 * kind and generation, so a program may be read beside a dump.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "l0_api.h"

#define MOST_HOST_MEMORY (1ull << 30)

/* -------------------------------------------------------------------------------------------------------- first time */

typedef struct seeing {
    zx_export *x;
    zx_call *call;
    const zt_walk *walk;
    size_t room_uses, room_lists;
    bool failed;
} seeing;

static bool add_span(zx_export *x, uint64_t address, uint64_t size)
{
    if (size == 0 || address > UINT64_MAX - size)
        return true;
    const zx_span span = {address, address + size};
    return ZX_PUSH(x->spans, x->n_spans, x->room_spans, span);
}

/* Where libze_soft had memory that is gone, and where no program has any. */
static bool is_wild(uint64_t address)
{
    return (address >= 0x200000000000ull && address < 0x400000000000ull) || address >= 0x800000000000ull;
}

static void use(seeing *s, const zt_object *object)
{
    if (!ZX_PUSH(s->call->uses, s->call->n_uses, s->room_uses, object->index))
        s->failed = true;
}

static int see(void *ctx, const zt_node *node)
{
    seeing *const s = ctx;
    uint64_t value = 0;
    if (node->kind != ZT_N_VALUE || node->field == NULL || node->type == NULL || node->size != 8)
        return 0;
    memcpy(&value, node->data, 8);
    const zt_field *const f = node->field;
    if (value == 0 || (f->role == ZT_R_GET || f->role == ZT_R_CREATE))
        return 0;
    if (node->type->cls == ZT_HANDLE) {
        const zt_object *const object = zt_object_of_handle(s->x->names, node->type, value);
        if (object == NULL)
            return 0;
        use(s, object);
        if (f->role == ZT_R_LISTS && !ZX_PUSH(s->call->lists, s->call->n_lists, s->room_lists, object->index))
            s->failed = true;
        if (f->shape != ZT_VALUE)
            return 0;
        if (s->call->self == ZX_NONE)
            s->call->self = object->index;
        if (f->role == ZT_R_LIST)
            s->call->list = object->index;
        if (f->role == ZT_R_QUEUE)
            s->call->queue = object->index;
    } else if (f->shape == ZT_ADDRESS || f->role == ZT_R_FREE) {
        const zt_object *const object = zt_object_of_address(s->x->names, value);
        if (object != NULL) {
            use(s, object);
            return 0;
        }
        const bool param = f >= s->walk->func->params && f < s->walk->func->params + s->walk->func->n_params;
        const int64_t size = param && f->access ? zt_eval_param(s->walk, &f->count) : -1;
        if (size > 0 && s->call->func->kind == ZT_K_APPEND && !is_wild(value) && !add_span(s->x, value, (uint64_t)size))
            s->failed = true;
    }
    return 0;
}

static int note_call(zx_export *x, const zt_call *from)
{
    if (from->number >= ZX_ADDED_CLOSE || (x->n_calls > 0 && from->number <= x->calls[x->n_calls - 1].number))
        return zx_refuse(x, "it is damaged: #%llu is no number that a recording gives there", (unsigned long long)from->number);
    const bool made = !from->internal && !from->nested && from->func >= zt_funcs && from->func < zt_funcs + zt_n_funcs;
    const zx_call new = {.number = from->number, .func = from->func, .result = from->result, .thread = from->thread, .made = made,
                         .returned = from->returned, .list = ZX_NONE, .queue = ZX_NONE, .event = ZX_NONE, .self = ZX_NONE};
    if (!ZX_PUSH(x->calls, x->n_calls, x->room_calls, new))
        return zx_no_memory(x);
    if (!made)
        return ZT_OK;
    zt_call_memory in = {.call = from, .phase = ZT_ENTER, .trace = x->trace};
    const zt_memory memory = zt_memory_of(&in);
    seeing s = {.x = x, .call = &x->calls[x->n_calls - 1]};
    const zt_walk walk = {.func = from->func, .words = from->words, .phase = ZT_ENTER, .memory = &memory, .visit = see, .ctx = &s};
    s.walk = &walk;
    zt_walk_call(&walk); /* what goes beyond its limits is refused by zx_arguments, if the call matters */
    for (uint32_t i = 0; i < from->n_contents && !s.failed; i++)
        if (zt_object_of_address(x->names, from->contents[i].addr) == NULL && !from->contents[i].hash_only)
            s.failed = !add_span(x, from->contents[i].addr, from->contents[i].len);
    return s.failed ? zx_no_memory(x) : ZT_OK;
}

static int by_start(const void *a, const void *b)
{
    const zx_span *const x = a, *const y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static int merge_spans(zx_export *x)
{
    size_t n = 0;
    uint64_t total = 0;
    if (x->n_spans > 1)
        qsort(x->spans, x->n_spans, sizeof(*x->spans), by_start);
    for (size_t i = 0; i < x->n_spans; i++) {
        if (n > 0 && x->spans[i].start <= x->spans[n - 1].end) {
            if (x->spans[i].end > x->spans[n - 1].end)
                x->spans[n - 1].end = x->spans[i].end;
        } else {
            x->spans[n++] = x->spans[i];
        }
    }
    x->n_spans = n;
    for (size_t i = 0; i < n; i++)
        total += x->spans[i].end - x->spans[i].start;
    return total > MOST_HOST_MEMORY ? zx_refuse(x, "its commands use %llu bytes of host memory, which is too much for a program to keep",
                                               (unsigned long long)total)
                                    : ZT_OK;
}

/* ----------------------------------------------------------------------------------------------------------- submits */

typedef struct book { /* commands of a regular list */
    uint32_t *calls;
    size_t n, room;
} book;

static bool submit_list(zx_export *x, const book *b)
{
    for (size_t i = 0; i < b->n; i++) {
        const zx_submit one = {b->calls[i], ++x->calls[b->calls[i]].executions};
        if (!ZX_PUSH(x->submits, x->n_submits, x->room_submits, one))
            return false;
    }
    return true;
}

static bool note_submits(zx_export *x, book *books)
{
    bool ok = true;
    for (size_t i = 0; ok && i < x->n_calls; i++) {
        zx_call *const c = &x->calls[i];
        const int kind = c->func->kind;
        c->submits = (uint32_t)x->n_submits;
        const zx_wanted *const wanted = zx_wanted_of(x, c->number);
        if (!c->made || (wanted != NULL && wanted->has_result ? wanted->result : c->result) != 0)
            continue;
        if (kind == ZT_K_APPEND && c->list != ZX_NONE) {
            book *const b = &books[c->list];
            const zx_submit one = {(uint32_t)i, 1};
            if (x->objects[c->list].immediate) {
                c->executions = 1;
                ok = ZX_PUSH(x->submits, x->n_submits, x->room_submits, one);
            } else {
                ok = ZX_PUSH(b->calls, b->n, b->room, (uint32_t)i);
            }
        } else if (kind == ZT_K_RESET && c->self != ZX_NONE) {
            books[c->self].n = 0;
        } else if (kind == ZT_K_EXECUTE) {
            for (uint32_t k = 0; ok && k < c->n_lists; k++)
                ok = submit_list(x, &books[c->lists[k]]);
        }
        c->n_submits = (uint32_t)x->n_submits - c->submits;
    }
    return ok;
}

int zx_find_submits(zx_export *x)
{
    book *const books = calloc(x->n_objects + 1, sizeof(*books));
    x->n_submits = 0;
    for (size_t i = 0; i < x->n_calls; i++)
        x->calls[i].executions = 0;
    bool ok = books != NULL && note_submits(x, books);
    zx_call *const added = &x->added[1];
    if (ok && added->number != 0) {
        added->submits = (uint32_t)x->n_submits;
        ok = submit_list(x, &books[added->lists[0]]);
        added->n_submits = (uint32_t)x->n_submits - added->submits;
    }
    for (size_t i = 0; books != NULL && i < x->n_objects; i++)
        free(books[i].calls);
    free(books);
    return ok ? ZT_OK : zx_no_memory(x);
}

/* ------------------------------------------------------------------------------------------------------ what matters */

static bool matters(const zx_call *c)
{
    switch (c->func->kind) {
    case ZT_K_APPEND:
    case ZT_K_CLOSE:
    case ZT_K_RESET:
    case ZT_K_EXECUTE:
    case ZT_K_SYNC:
    case ZT_K_QUERY:
    case ZT_K_HOST_SIGNAL:
    case ZT_K_HOST_RESET:
    case ZT_K_RESIDENT:
    case ZT_K_EVICT:
        return true;
    default:
        return c->func->kind == ZT_K_INIT;
    }
}

static void need(zx_export *x, zx_call *c)
{
    c->needed = true;
    for (uint32_t k = 0; k < c->n_uses; k++)
        x->objects[c->uses[k]].used = true;
}

static void choose(zx_export *x, bool *creates)
{
    for (size_t i = x->n_calls; i-- > 0;) {
        zx_call *const c = &x->calls[i];
        if (c->made && (matters(c) || creates[i]))
            need(x, c);
        for (uint32_t k = 0; c->needed && k < c->n_uses; k++)
            if (x->objects[c->uses[k]].creator != ZX_NONE)
                creates[x->objects[c->uses[k]].creator] = true;
    }
    for (size_t i = 0; i < x->n_calls; i++) {
        zx_call *const c = &x->calls[i];
        const uint32_t object = c->func->kind == ZT_K_FREE && c->n_uses > 0 ? c->uses[c->n_uses - 1] : c->self;
        if (c->made && (c->func->kind == ZT_K_DESTROY || c->func->kind == ZT_K_FREE) && object != ZX_NONE && x->objects[object].used)
            c->needed = true;
    }
}

static int by_number(const void *key, const void *element)
{
    const uint64_t a = *(const uint64_t *)key, b = ((const zx_call *)element)->number;
    return a < b ? -1 : a > b;
}

zx_call *zx_call_of(zx_export *x, uint64_t number)
{
    for (unsigned i = 0; i < 2; i++)
        if (number != 0 && x->added[i].number == number)
            return &x->added[i];
    return bsearch(&number, x->calls, x->n_calls, sizeof(*x->calls), by_number);
}

static int make_objects(zx_export *x)
{
    const zt_object *const *list;
    x->n_objects = zt_objects_list(x->names, &list);
    x->objects = calloc(x->n_objects + 1, sizeof(*x->objects));
    bool *const creates = calloc(x->n_calls + 1, sizeof(*creates));
    if (x->objects == NULL || creates == NULL) {
        free(creates);
        return zx_no_memory(x);
    }
    for (size_t i = 0; i < x->n_objects; i++) {
        const zt_object *const o = list[i];
        const zx_call *const by = o->by != NULL ? zx_call_of(x, o->created) : NULL;
        x->objects[i] = (zx_object){.base = o, .by = o->by, .creator = by != NULL && by->made ? (uint32_t)(by - x->calls) : ZX_NONE,
                                    .immediate = o->by != NULL && (o->by->flags & ZT_F_IMMEDIATE) != 0};
    }
    choose(x, creates);
    free(creates);
    size_t needed = 0;
    for (size_t i = 0; i < x->n_calls; i++)
        needed += x->calls[i].needed;
    return needed > ZX_MOST_STEPS ? zx_refuse(x, "a program of %zu calls is none that anybody reads; make a smaller trace first", needed)
                                  : zx_find_submits(x);
}

/* ------------------------------------------------------------------------------------------------------- second time */

static void learn_place(zx_export *x, const zx_call *c, const zt_call *from)
{
    const zt_func *const func = c->func;
    const zt_field *const desc = zt_param_by_role(func, ZT_R_DESC), *const context = zt_param_by_role(func, ZT_R_CONTEXT),
                   *const device = zt_param_by_role(func, ZT_R_DEVICE);
    zt_call_memory in = {.call = from, .phase = ZT_ENTER, .trace = x->trace};
    const zt_memory memory = zt_memory_of(&in);
    if (func->kind != ZT_K_CREATE || desc == NULL || context == NULL || device == NULL)
        return;
    const zt_type *const type = &zt_types[desc->type];
    const void *const at = memory.at(memory.ctx, from->words[desc->offset], type->size);
    const zt_object *const a = zt_object_of_handle(x->names, &zt_types[context->type], from->words[context->offset]),
                    *const b = zt_object_of_handle(x->names, &zt_types[device->type], from->words[device->offset]);
    if (at == NULL || a == NULL || b == NULL)
        return;
    zx_place place = {.context = a->index, .device = b->index, .known = true};
    if (strcmp(type->name, "ze_command_list_desc_t") == 0) {
        ze_command_list_desc_t d;
        memcpy(&d, at, sizeof(d));
        place.chained = d.pNext != NULL;
        place.ordinal = d.commandQueueGroupOrdinal;
        place.flags = d.flags;
    } else if (strcmp(type->name, "ze_command_queue_desc_t") == 0) {
        ze_command_queue_desc_t d;
        memcpy(&d, at, sizeof(d));
        place = (zx_place){a->index, b->index, d.ordinal, d.index, d.flags, (uint32_t)d.priority, (uint32_t)d.mode, true, true,
                           d.pNext != NULL};
    } else {
        return;
    }
    const uint32_t index = (uint32_t)(c - x->calls);
    for (size_t i = 0; i < x->n_objects; i++)
        if (x->objects[i].creator == index)
            x->objects[i].place = place;
}

static int describe(zx_export *x, const zt_call *from)
{
    zx_call *const c = zx_call_of(x, from->number);
    if (c == NULL || !c->needed)
        return ZT_OK;
    learn_place(x, c, from);
    const int status = zx_arguments(x, c, from);
    return status == ZT_OK ? zx_contents(x, c, from) : status;
}

static int read_events(zx_export *x, int (*enter)(zx_export *x, const zt_call *from))
{
    zt_events *events = NULL;
    zt_event event;
    x->names = zt_objects_new();
    zt_trace_seek(x->trace, 1);
    if (x->names == NULL || zt_events_open(&events, x->trace) != ZT_OK)
        return zx_no_memory(x);
    int status = ZT_OK, next = ZT_OK;
    while (status == ZT_OK && (next = zt_events_next(events, &event)) == ZT_OK) {
        if (zt_objects_event(x->names, x->trace, &event) != ZT_OK)
            status = zx_no_memory(x);
        else if (event.phase == ZT_ENTER)
            status = enter(x, event.call);
    }
    zt_events_close(events);
    return status == ZT_OK && next == ZT_E_MEMORY ? zx_no_memory(x) : status;
}

int zx_collect(zx_export *x)
{
    int status = read_events(x, note_call);
    if (status == ZT_OK)
        status = merge_spans(x);
    if (status == ZT_OK)
        status = make_objects(x);
    if (status == ZT_OK && (x->literals = calloc(x->n_objects + x->n_spans + 1, sizeof(*x->literals))) == NULL)
        status = zx_no_memory(x);
    if (status == ZT_OK)
        x->all = x->names;
    if (status == ZT_OK)
        status = read_events(x, describe);
    return status;
}

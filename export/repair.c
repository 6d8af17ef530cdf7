/* SPDX-License-Identifier: MIT */
/*
 * Where the program itself fixes the bad order: what would have to stand where. The calls that the late command needs come before the
 * early one; or the early one behind them; or the host's write behind the command; or a list that was forgotten is executed. Each is
 * tried, and the first that passes is the good program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MOST_MOVES 12u

/* Numbers in the order in which the bad line makes the calls; what it leaves out stays where it was. */
static uint64_t *order_of(const zx_export *x)
{
    uint64_t *const order = calloc(x->n_calls + 3, sizeof(*order));
    bool *const named = calloc(x->n_calls + 1, sizeof(*named));
    if (order == NULL || named == NULL) {
        free(order);
        free(named);
        return NULL;
    }
    for (size_t i = 0; i < x->n_bad_items; i++) {
        const zx_call *const c = x->bad_items[i].kind == ZR_I_CALL ? zx_call_of((zx_export *)(uintptr_t)x, x->bad_items[i].call) : NULL;
        if (c != NULL)
            named[c - x->calls] = true;
    }
    size_t at = 0;
    for (size_t i = 0; i < x->n_calls; i++) {
        order[i] = x->calls[i].number;
        while (named[i] && at < x->n_bad_items && x->bad_items[at].kind != ZR_I_CALL)
            at++;
        if (named[i] && at < x->n_bad_items)
            order[i] = x->bad_items[at++].call;
    }
    free(named);
    return order;
}

static size_t place(const uint64_t *order, size_t n, uint64_t number)
{
    size_t i = 0;
    while (i < n && order[i] != number)
        i++;
    return i;
}

static void move(uint64_t *order, size_t from, size_t to)
{
    const uint64_t number = order[from];
    if (from > to)
        memmove(order + to + 1, order + to, (from - to) * sizeof(*order));
    else
        memmove(order + from, order + from + 1, (to - from) * sizeof(*order));
    order[to] = number;
}

static bool shows_something(const zx_export *x)
{
    for (size_t i = 0; i < x->n_wanted; i++) {
        zx_export *const all = (zx_export *)(uintptr_t)x;
        const zx_call *const c = zx_call_of(all, x->wanted[i].call);
        if (x->wanted[i].memory || (x->wanted[i].has_result && c != NULL && c->result != x->wanted[i].result))
            return true;
    }
    return !x->answer.taken_for_bad;
}

static int try(zx_export *x, const zx_try *t)
{
    const int status = zx_try_good(x, t);
    return status == ZT_OK && !shows_something(x) ? ZT_END : status;
}

/* Whether a command might run when that call has been made, or is known to be over. */
static bool lets_run(const zx_call *c, bool or_waits)
{
    return c != NULL && c->made && (c->result == 0 || or_waits) &&
           (c->func->kind == ZT_K_HOST_SIGNAL || c->func->kind == ZT_K_EXECUTE || (c->func->kind == ZT_K_APPEND && c->executions > 0) ||
            (or_waits && c->func->kind == ZT_K_SYNC));
}

static int move_calls(zx_export *x, zx_try *t)
{
    const size_t early = place(t->order, t->n, t->early.call);
    int status = ZT_END;
    for (int ahead = 1; ahead >= 0 && status == ZT_END; ahead--) {
        unsigned moves = 0;
        for (size_t i = early + 1; i < t->n && status == ZT_END && moves < MOST_MOVES; i++) {
            const zx_call *const c = zx_call_of(x, t->order[i]);
            if (!lets_run(c, !ahead))
                continue;
            moves++;
            const uint64_t number = c->number;
            move(t->order, ahead ? i : early, ahead ? early : i);
            status = try(x, t);
            move(t->order, ahead ? early : i, ahead ? i : early);
            if (status == ZT_OK && ahead)
                snprintf(x->cure, sizeof(x->cure), "#%llu comes before #%llu", (unsigned long long)number, (unsigned long long)t->early.call);
            else if (status == ZT_OK)
                snprintf(x->cure, sizeof(x->cure), "#%llu comes behind #%llu", (unsigned long long)t->early.call, (unsigned long long)number);
        }
    }
    return status;
}

/* ------------------------------------------------------------------------------------------------------ added calls */

static const zt_func *function_of(enum zt_kind kind, enum zt_role role)
{
    for (unsigned i = 0; i < zt_n_funcs; i++)
        if (zt_funcs[i].ns == ZT_NS_ZE && zt_funcs[i].kind == kind && zt_funcs[i].n_params > 0 &&
            (zt_funcs[i].params[0].role == role || role == ZT_R_NONE) && zx_in_headers(zt_funcs[i].name))
            return &zt_funcs[i];
    return NULL;
}

static bool is_closed(const zx_export *x, uint32_t list, uint64_t before)
{
    bool closed = false;
    for (size_t i = 0; i < x->n_calls && x->calls[i].number < before; i++)
        if (x->calls[i].made && x->calls[i].result == 0 && x->calls[i].self == list) {
            closed |= x->calls[i].func->kind == ZT_K_CLOSE;
            closed &= x->calls[i].func->kind != ZT_K_RESET;
        }
    return closed;
}

static uint32_t queue_for(const zx_export *x, uint32_t list, uint64_t before)
{
    for (size_t i = 0; i < x->n_objects; i++) {
        const zx_object *const o = &x->objects[i];
        if (o->used && o->place.known && o->place.of_queue && !o->immediate && o->place.ordinal == x->objects[list].place.ordinal &&
            o->place.context == x->objects[list].place.context && o->place.device == x->objects[list].place.device &&
            o->base->created < before && (o->base->destroyed == 0 || o->base->destroyed > before))
            return (uint32_t)i;
    }
    return ZX_NONE;
}

/* The list with the late command is executed, and closed if it is not, before the early call. */
static int execute_list(zx_export *x, zx_try *t, uint32_t list)
{
    const zt_func *const close = function_of(ZT_K_CLOSE, ZT_R_NONE), *const execute = function_of(ZT_K_EXECUTE, ZT_R_QUEUE);
    const uint32_t queue = queue_for(x, list, t->early.call);
    const zx_call *const early = zx_call_of(x, t->early.call);
    const bool to_close = !is_closed(x, list, t->early.call);
    size_t at = place(t->order, t->n, t->early.call);
    if (close == NULL || execute == NULL || queue == ZX_NONE || early == NULL || !x->objects[list].place.known)
        return ZT_END;
    zx_call new = {.number = ZX_ADDED_CLOSE, .func = close, .thread = early->thread, .made = true, .returned = true, .needed = true,
                   .list = ZX_NONE, .queue = ZX_NONE, .event = ZX_NONE, .self = list};
    if (to_close) {
        x->added[0] = new;
        t->order[t->n] = new.number;
        move(t->order, t->n++, at++);
    }
    new.number = ZX_ADDED_EXECUTE;
    new.func = execute;
    new.self = new.queue = queue;
    new.lists = malloc(sizeof(*new.lists));
    if (new.lists == NULL)
        return zx_no_memory(x);
    new.lists[0] = list;
    new.n_lists = 1;
    x->added[1] = new;
    t->order[t->n] = new.number;
    move(t->order, t->n++, at);
    const int status = try(x, t);
    snprintf(x->cure, sizeof(x->cure), "list#%u is %sexecuted before #%llu", x->objects[list].base->generation, to_close ? "closed and " : "",
             (unsigned long long)t->early.call);
    return status;
}

/* Two host calls: the other way round, and what the one submits runs before the other. */
static int swap_calls(zx_export *x, zx_try *t)
{
    zo_answer *const a = &x->answer;
    size_t first = place(t->order, t->n, a->early.call), second = place(t->order, t->n, a->late.call);
    if (first >= t->n || second >= t->n)
        return ZT_END;
    if (first > second) {
        const zo_point early = a->early;
        const size_t i = first;
        a->early = a->late;
        a->late = early;
        first = second;
        second = i;
    }
    t->early = a->early;
    t->late = a->late;
    move(t->order, first, second);
    const int status = try(x, t);
    if (status == ZT_OK)
        snprintf(x->cure, sizeof(x->cure), "#%llu comes behind #%llu", (unsigned long long)a->early.call, (unsigned long long)a->late.call);
    return status;
}

int zx_repair(zx_export *x)
{
    const zo_answer *const a = &x->answer;
    zx_try t = {.early = a->early, .late = a->late, .n = x->n_calls};
    const zx_call *const late = zx_call_of(x, a->late.call);
    int status = ZT_END;
    t.order = order_of(x);
    if (t.order == NULL)
        return zx_no_memory(x);
    if (late != NULL && late->func->kind == ZT_K_APPEND) {
        if (t.late.execution == 0)
            t.late.execution = 1;
        if (a->early_is_write && a->early.execution == 0) {
            t.move_write = true;
            status = try(x, &t);
            if (status == ZT_OK)
                snprintf(x->cure, sizeof(x->cure), "what the host writes by #%llu comes behind #%llu", (unsigned long long)a->early.call,
                         (unsigned long long)a->late.call);
            t.move_write = false;
        }
        if (status == ZT_END) /* perhaps it is no more than a race */
            status = try(x, &t);
        if (status == ZT_END && late->executions == 0 && late->list != ZX_NONE && !x->objects[late->list].immediate)
            status = execute_list(x, &t, late->list);
        if (status == ZT_END && late->executions > 0)
            status = move_calls(x, &t);
    } else if (late != NULL) {
        status = swap_calls(x, &t);
    }
    free(t.order);
    if (status == ZT_END && late == NULL)
        return zx_refuse(x, "#%llu is wrong by itself, whatever the order: %.300s", (unsigned long long)a->early.call, a->text);
    return status == ZT_END ? zx_refuse(x, "the program itself fixes the bad order of #%llu and #%llu, and no order of its calls that was "
                                           "tried passes",
                                        (unsigned long long)a->early.call, (unsigned long long)a->late.call)
                            : status;
}

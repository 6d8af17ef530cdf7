/* SPDX-License-Identifier: MIT */
/* Reads a trace once, and keeps of each call a hash and the objects that it names. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "internal.h"

#define MOST_CALLS 0x7ffffff0u
#define THREADS 65535u /* those beyond count as one */

typedef struct reading {
    zd_side *side;
    zd_arguments arguments;
    uint32_t before[16];
} reading;

static uint64_t hash_name(const char *name)
{
    return XXH3_64bits(name, strlen(name));
}

static unsigned flags_of(const zt_func *func)
{
    unsigned flags = 0;
    for (unsigned i = 0; i < func->n_params; i++) {
        const zt_field *const p = &func->params[i];
        flags |= (p->role == ZT_R_DESTROY || p->role == ZT_R_FREE ? ZD_ENDS : 0) | (p->dir & ZT_OUT ? ZD_WRITES : 0);
    }
    return flags;
}

/* @return where the function stands in side->funcs; -1: memory is out, or there are more than a trace can have. */
static int function_of(zd_side *s, const zt_func *func)
{
    const bool own = func >= zt_funcs && func < zt_funcs + zt_n_funcs;
    if (own && s->func_of[func - zt_funcs] != UINT16_MAX)
        return s->func_of[func - zt_funcs];
    for (size_t i = 0; !own && i < s->n_funcs; i++)
        if (s->funcs[i] == func)
            return (int)i;
    size_t room = s->funcs_room;
    if (s->n_funcs >= UINT16_MAX - 1 || !zd_room(&s->funcs, s->n_funcs, &room, sizeof(*s->funcs)))
        return -1;
    room = s->funcs_room;
    if (!zd_room(&s->func_hash, s->n_funcs, &room, sizeof(*s->func_hash)))
        return -1;
    if (!zd_room(&s->func_flags, s->n_funcs, &s->funcs_room, sizeof(*s->func_flags)))
        return -1;
    bool ignored = false;
    for (size_t i = 0; i < s->options->n_globs; i++)
        ignored |= s->options->matches(s->options->globs[i], func->name);
    s->any_ignored |= ignored;
    s->func_flags[s->n_funcs] = (uint8_t)((ignored ? ZD_IGNORED : 0) | flags_of(func));
    s->func_hash[s->n_funcs] = hash_name(func->name);
    s->funcs[s->n_funcs] = func;
    if (own)
        s->func_of[func - zt_funcs] = (uint16_t)s->n_funcs;
    return (int)s->n_funcs++;
}

static bool room_for_call(zd_side *s)
{
    if (s->n < s->room)
        return true;
    size_t room[4] = {s->room, s->room, s->room, s->room};
    const bool ok = s->n < MOST_CALLS && zd_room(&s->hash, s->n, &room[0], sizeof(*s->hash)) && zd_room(&s->func, s->n, &room[1], sizeof(*s->func)) &&
                    zd_room(&s->result, s->n, &room[2], sizeof(*s->result)) &&
                    (s->thread == NULL || zd_room(&s->thread, s->n, &room[3], sizeof(*s->thread)));
    if (ok)
        s->room = room[0];
    return ok;
}

static bool note_thread(zd_side *s, uint32_t call, uint32_t thread)
{
    const uint16_t t = (uint16_t)(thread < THREADS ? thread : THREADS);
    if (call == 0)
        s->only_thread = t;
    if (t > s->n_threads)
        s->n_threads = t;
    if (s->thread == NULL) {
        if (t == s->only_thread)
            return true;
        s->thread = malloc(s->room * sizeof(*s->thread));
        if (s->thread == NULL)
            return false;
        for (uint32_t i = 0; i < call; i++)
            s->thread[i] = s->only_thread;
    }
    s->thread[call] = t;
    return true;
}

uint32_t zd_index_of(const zd_side *s, uint64_t number)
{
    size_t low = 0, high = s->n_runs;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (s->runs[middle].number <= number)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return ZD_NONE;
    const uint64_t index = s->runs[low - 1].index + (number - s->runs[low - 1].number);
    return index < (low < s->n_runs ? s->runs[low].index : s->n) ? (uint32_t)index : ZD_NONE;
}

static void note_contents(reading *r, const zt_call *call, uint32_t index, bool leave)
{
    zd_side *const s = r->side;
    for (uint32_t i = 0; i < call->n_contents && !(s->options->ignore & ZD_MEMORY); i++) {
        const zt_content *const c = &call->contents[i];
        if ((c->kind == ZT_C_READBACK) != leave)
            continue;
        uint64_t offset = 0;
        const uint32_t object = zd_names_address(r->arguments.names, c->addr, &offset);
        const uint64_t place = zd_mix(zd_mix(c->kind, object == ZD_NONE ? 0 : offset), c->len);
        const uint64_t hash = zd_names_has_times(r->arguments.names, object) ? place : zd_mix(zd_mix(place, c->hash.lo), c->hash.hi);
        if (!zd_add_extra(&s->contents, (zd_extra){index, object, hash}))
            s->status = ZT_E_MEMORY;
    }
}

static void enter(reading *r, const zt_call *call)
{
    zd_side *const s = r->side;
    zd_arguments *const a = &r->arguments;
    const uint32_t index = s->n;
    const int f = function_of(s, call->func);
    if (f < 0 || !room_for_call(s) || !note_thread(s, index, call->thread)) {
        s->status = ZT_E_MEMORY;
        return;
    }
    if (s->n_runs == 0 || s->runs[s->n_runs - 1].number + (index - s->runs[s->n_runs - 1].index) != call->number) {
        if (!zd_room(&s->runs, s->n_runs, &s->runs_room, sizeof(*s->runs))) {
            s->status = ZT_E_MEMORY;
            return;
        }
        s->runs[s->n_runs++] = (zd_run){index, call->number};
    }
    s->n++;
    s->func[index] = (uint16_t)f;
    s->result[index] = 255;
    a->hash = 0;
    zd_walk(a, call, index, ZT_ENTER);
    const bool args = !(s->options->ignore & ZD_ARGS);
    s->hash[index] = zd_mix(s->func_hash[f], args ? a->hash : 0);
    if (a->failed || !zd_operands_put(s, index, r->before, a->operands, a->n_operands))
        s->status = ZT_E_MEMORY;
    note_contents(r, call, index, false);
    for (unsigned i = 0; (s->func_flags[f] & ZD_ENDS) && i < call->func->n_params; i++) { /* what ends, ends with ENTER */
        const zt_field *const p = &call->func->params[i];
        uint64_t value = 0;
        memcpy(&value, call->words + p->offset, p->size > 8 ? 8 : p->size);
        if (p->role == ZT_R_DESTROY && p->shape == ZT_VALUE && zt_types[p->type].cls == ZT_HANDLE)
            zd_names_end(a->names, zd_names_handle(a->names, &zt_types[p->type], value));
        else if (p->role == ZT_R_FREE)
            zd_names_freed(a->names, value);
    }
}

static uint8_t result_of(zd_side *s, int64_t result)
{
    for (unsigned i = 0; i < s->n_results; i++)
        if (s->results[i] == result)
            return (uint8_t)i;
    if (s->n_results == 254)
        return 254;
    s->results[s->n_results] = result;
    return (uint8_t)s->n_results++;
}

static void leave(reading *r, const zt_call *call)
{
    zd_side *const s = r->side;
    zd_arguments *const a = &r->arguments;
    const uint32_t index = zd_index_of(s, call->number);
    if (index == ZD_NONE)
        return;
    const zt_type *const returns = &zt_types[call->func->return_type];
    a->hash = 0;
    if (returns->cls == ZT_HANDLE && call->result != 0) {
        const uint32_t object = zd_names_set(a->names, returns, (uint64_t)call->result, index, false);
        if (!zd_add_extra(&s->outs, (zd_extra){index, object, zd_mix(returns->base, 0)}))
            s->status = ZT_E_MEMORY;
        s->result[index] = result_of(s, 1);
    } else {
        s->result[index] = result_of(s, call->result);
        a->hash = zd_mix(a->hash, (uint64_t)call->result);
    }
    if (s->func_flags[s->func[index]] & ZD_WRITES)
        zd_walk(a, call, index, ZT_LEAVE);
    if (!(s->options->ignore & ZD_RESULTS))
        s->hash[index] = zd_mix(s->hash[index], a->hash);
    if (a->failed)
        s->status = ZT_E_MEMORY;
    note_contents(r, call, index, true);
}

static int by_call(const void *x, const void *y)
{
    const zd_extra *const p = x, *const q = y;
    return p->call < q->call ? -1 : p->call > q->call;
}

static void sort(zd_extras *e)
{
    bool sorted = true;
    for (size_t i = 1; i < e->n && sorted; i++)
        sorted = e->at[i - 1].call <= e->at[i].call;
    if (!sorted)
        qsort(e->at, e->n, sizeof(*e->at), by_call);
}

/* The calls by thread, each thread's in order; those of ignored functions nowhere. */
static bool index_threads(zd_side *s)
{
    s->first = calloc(s->n_threads + 2u, sizeof(*s->first));
    if (s->first == NULL)
        return false;
    if (s->thread == NULL && !s->any_ignored) {
        for (uint32_t t = s->only_thread + 1u; t <= s->n_threads + 1u; t++)
            s->first[t] = s->n;
        return true;
    }
    s->index = malloc(((size_t)s->n + 1) * sizeof(*s->index));
    uint32_t *const next = calloc(s->n_threads + 2u, sizeof(*next));
    for (uint32_t i = 0; i < s->n && next != NULL; i++)
        next[(s->thread ? s->thread[i] : s->only_thread) + 1u] += !(s->func_flags[s->func[i]] & ZD_IGNORED);
    for (uint32_t t = 1; t <= s->n_threads + 1u && next != NULL; t++)
        s->first[t] = next[t] += next[t - 1];
    for (uint32_t i = 0; i < s->n && s->index != NULL && next != NULL; i++)
        if (!(s->func_flags[s->func[i]] & ZD_IGNORED))
            s->index[next[s->thread ? s->thread[i] : s->only_thread]++] = i;
    free(next);
    return s->index != NULL && next != NULL;
}

void zd_read(zd_side *s)
{
    reading *const r = calloc(1, sizeof(*r));
    zt_events *events = NULL;
    zt_event event;
    s->func_of = malloc(zt_n_funcs * sizeof(*s->func_of));
    if (r == NULL || s->func_of == NULL || (r->arguments.names = zd_names_new()) == NULL || zt_events_open(&events, s->trace) != ZT_OK) {
        s->status = ZT_E_MEMORY;
        goto out;
    }
    memset(s->func_of, 0xff, zt_n_funcs * sizeof(*s->func_of));
    r->arguments.side = r->arguments.into = r->side = s;
    zt_trace_seek(s->trace, 1);
    while (s->status == ZT_OK) {
        s->status = zt_events_next(events, &event);
        if (s->status != ZT_OK)
            break;
        if (event.phase == ZT_ENTER)
            enter(r, event.call);
        else
            leave(r, event.call);
        if (s->n % 4096 == 0)
            __atomic_store_n(&s->progress, s->n, __ATOMIC_RELAXED);
    }
    if (s->status == ZT_END)
        s->status = ZT_OK;
    s->n_objects = zd_names_take(r->arguments.names, &s->objects);
    sort(&s->outs);
    sort(&s->contents);
    if (s->status == ZT_OK && !index_threads(s))
        s->status = ZT_E_MEMORY;
out:
    zt_events_close(events);
    if (r != NULL) {
        zd_names_free(r->arguments.names);
        free(r->arguments.operands);
        free(r->arguments.candidates.at);
    }
    free(r);
    __atomic_store_n(&s->progress, UINT64_MAX, __ATOMIC_RELEASE);
}

void zd_side_free(zd_side *s)
{
    free(s->hash);
    free(s->func);
    free(s->result);
    free(s->thread);
    free(s->funcs);
    free(s->func_hash);
    free(s->func_flags);
    free(s->func_of);
    free(s->operands);
    free(s->marks);
    free(s->outs.at);
    free(s->contents.at);
    free(s->runs);
    free(s->objects);
    free(s->names);
    free(s->index);
    free(s->first);
}

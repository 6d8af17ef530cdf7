/* SPDX-License-Identifier: MIT */
/*
 * What the device reads from memory that the host sees, and what it writes there. Driven by kinds and roles of the table: which
 * call submits, which one waits, which parameter is an address with an access.
 *
 * Operands are looked at when the device may begin to read them (execute, immediate append) and again, while in flight, at every
 * host signal, submit and sync. A block (the part of a 4 KiB page that an operand covers) is emitted when its hash is not the one
 * it was last emitted with.
 */
#include "contents.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define PAGE 4096u
#define BATCH 256u
#define VISIBLE_STEPS (1u << 24) /* of comparing what was written with what is in flight; what is left then is not read */
#define REREAD_MAX (1u << 20) /* bytes in flight that one call looks at again */
#define CACHE_SLOTS (1u << 20)

typedef struct range {
    uint64_t addr, len, alloc;
    uint8_t in_flight; /* was there before: a new hash is a change under way */
} range;

static _Atomic uint64_t *cache; /* signature of a block by its place */
static _Atomic uint32_t cache_made;

static bool have_cache(void)
{
    uint32_t expected = 0;
    if (atomic_load_explicit(&cache_made, memory_order_acquire) == 2)
        return true;
    if (atomic_compare_exchange_strong(&cache_made, &expected, 1)) {
        cache = zc_map(CACHE_SLOTS * sizeof(*cache));
        atomic_store_explicit(&cache_made, cache ? 2 : 3, memory_order_release);
    }
    while (atomic_load_explicit(&cache_made, memory_order_acquire) == 1)
        ;
    return cache != NULL;
}

enum known { SAME, UNKNOWN, CHANGED };

/*
 * Whether the bytes are those last kept for that place; remembers them. A slot holds a part of the place beside the bytes'
 * signature: another place that has pushed this one out is no change.
 */
static enum known compare(uint64_t addr, uint64_t alloc, const void *data, uint32_t len)
{
    const uint64_t key[3] = {addr, len, alloc}, of_place = 0xffffff0000000000u;
    const uint64_t place = XXH3_64bits(key, sizeof(key));
    const uint64_t now = (place & of_place) | (XXH3_64bits_withSeed(data, len, place) & ~of_place);
    const uint64_t before = atomic_exchange_explicit(&cache[place & (CACHE_SLOTS - 1)], now, memory_order_relaxed);
    return before == now ? SAME : (before & of_place) == (now & of_place) && before != 0 ? CHANGED : UNKNOWN;
}

/* Room to copy memory to before it is looked at: what is hashed is what is kept. @return NULL when there is none. */
static uint8_t *scratch(zc_thread *t)
{
    if (t->scratch == NULL)
        t->scratch = zc_map(ZC_SCRATCH);
    return t->scratch;
}

/* Emits [from, from + len), which lies in the scratch memory now. */
static void stage_run(zc_thread *t, const range *r, uint64_t from, const uint8_t *copy, uint64_t len, enum known known)
{
    if (len > 0)
        zc_stage(t, r->alloc ? ZC_P_USM : ZC_P_OPERAND, r->in_flight && known == CHANGED ? ZC_PF_CHANGED : 0, from, copy, len, false);
}

/* Emits the blocks of a range that are new. */
static void read_range(zc_thread *t, const range *r)
{
    uint8_t *const copy = scratch(t);
    const uint64_t end = r->addr + r->len;
    if (copy == NULL || !have_cache())
        return;
    for (uint64_t at = r->addr, stop; at < end; at = stop) {
        /* as much as fits, up to a page's end */
        stop = (at & ~(uint64_t)(PAGE - 1)) + ZC_SCRATCH;
        if (stop > end)
            stop = end;
        if (!zc_read_carefully(copy, (const void *)(uintptr_t)at, stop - at)) {
            stop = (at & ~(uint64_t)(PAGE - 1)) + PAGE; /* page by page around the hole */
            if (stop > end)
                stop = end;
            if (!zc_read_carefully(copy, (const void *)(uintptr_t)at, stop - at)) {
                zc_stage(t, r->alloc ? ZC_P_USM : ZC_P_OPERAND, ZC_PF_LOST, at, NULL, stop - at, false);
                continue;
            }
        }
        uint64_t run = at, run_len = 0;
        enum known of_run = SAME;
        for (uint64_t block = at, next; block < stop; block = next) {
            next = (block & ~(uint64_t)(PAGE - 1)) + PAGE;
            if (next > stop)
                next = stop;
            const enum known known = compare(block, r->alloc, copy + (block - at), (uint32_t)(next - block));
            if (known != of_run) {
                stage_run(t, r, run, copy + (run - at), run_len, of_run);
                run = block;
                run_len = 0;
                of_run = known;
            }
            if (known == SAME)
                run = next;
            else
                run_len += next - block;
        }
        stage_run(t, r, run, copy + (run - at), run_len, of_run);
    }
}

static bool host_sees(const zc_operand *o)
{
    return o->access != 0 && o->len > 0;
}

/* ----------------------------------------------------------------------------------------------- operands of a command */

static uint64_t word_of(const zc_call *call, int role)
{
    const zt_field *const f = zt_param_by_role(&zt_funcs[call->func], (enum zt_role)role);
    return f ? call->words[f->offset] : 0;
}

/* Fills in where an address lies. @return false for memory of the device's own. */
static bool locate(zc_operand *o)
{
    const zc_alloc *const a = zc_alloc_find(o->addr);
    if (a == NULL) {
        o->alloc = 0;
        return true;
    }
    o->alloc = a->id;
    return a->kind == ZC_USM_HOST || a->kind == ZC_USM_SHARED;
}

/* @return the number of operands written to `out` (room for 8). The last one carries the barrier. */
static unsigned operands_of(const zc_call *call, zc_operand *out)
{
    const zt_func *const f = &zt_funcs[call->func];
    const zt_walk w = {.func = f, .words = call->words, .phase = ZT_ENTER, .memory = &zt_live_memory};
    const zt_field *const waits = zt_param_by_role(f, ZT_R_WAITS);
    unsigned n = 0;
    bool kernel = false;
    for (unsigned i = 0; i < f->n_params; i++) {
        const zt_field *const p = &f->params[i];
        kernel |= p->role == ZT_R_KERNEL;
        if (p->shape != ZT_ADDRESS || p->access == 0 || n >= 6)
            continue;
        const int64_t len = zt_eval_param(&w, &p->count);
        zc_operand o = {.addr = call->words[p->offset], .len = len > 0 ? (uint64_t)len : 0, .access = p->access};
        if (o.len > 0 && o.addr != 0 && locate(&o))
            out[n++] = o;
    }
    if (kernel)
        out[n++] = (zc_operand){.reach_all = 1, .access = ZT_IN | ZT_OUT};
    const bool barrier = (f->flags & ZT_F_BARRIER) && (waits == NULL || call->words[waits->offset] == 0);
    const uint64_t signal = word_of(call, ZT_R_SIGNAL);
    if (n == 0)
        out[n++] = (zc_operand){.len = 0};
    for (unsigned i = 0; i < n; i++)
        out[i].signal = signal;
    out[n - 1].barrier = barrier;
    return n;
}

/* ---------------------------------------------------------------------------------------------------- reading in batches */

typedef struct cursor {
    size_t at, inside;
} cursor;

/* Next ranges that the commands of submits `from` to `to` read. The lock is taken here. */
static unsigned next_ranges(cursor *c, uint64_t from, uint64_t to, bool in_flight, range *out)
{
    unsigned n = 0;
    zc_state_lock();
    for (; c->at < zc_n_flights && n < BATCH; c->at++) {
        const zc_flight *const f = &zc_flights[c->at];
        if (f->submit < from || f->submit > to || !(f->operand.access & ZT_IN))
            continue;
        if (!f->operand.reach_all) {
            if (f->operand.len > 0)
                out[n++] = (range){f->operand.addr, f->operand.len, f->operand.alloc, in_flight};
            continue;
        }
        for (const zc_alloc *a; n < BATCH && (a = zc_alloc_at(c->inside)) != NULL; c->inside++)
            if (a->kind == ZC_USM_HOST || a->kind == ZC_USM_SHARED)
                out[n++] = (range){a->base, a->size, a->id, in_flight};
        if (zc_alloc_at(c->inside) != NULL)
            break;
        c->inside = 0;
    }
    zc_state_unlock();
    return n;
}

/*
 * Looking again at what is in flight must not change the timing that it wants to see: beyond a bound the rest of a call's operands
 * is not looked at again. What a submit hands to the device is always read whole.
 */
static void read_flights(zc_thread *t, uint64_t from, uint64_t to, bool in_flight)
{
    range ranges[BATCH];
    cursor c = {0, 0};
    uint64_t budget = in_flight ? REREAD_MAX : UINT64_MAX;
    for (unsigned n; budget > 0 && (n = next_ranges(&c, from, to, in_flight, ranges)) > 0;) {
        for (unsigned i = 0; i < n && budget > 0; i++) {
            if (ranges[i].len > budget)
                ranges[i].len = budget;
            budget -= ranges[i].len;
            read_range(t, &ranges[i]);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------ submits */

/* Puts the operands of a list in flight. Wants the lock. */
static void launch(const zc_list *list, uint64_t carrier, uint64_t fence, uint64_t submit)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const zc_flight f = {list->operands[i], carrier, fence, submit, list->in_order ? list->generation : 0};
        zc_flight_add(&f);
    }
}

/* @return the number of the submit. */
static uint64_t execute(const zc_call *call)
{
    const zt_func *const f = &zt_funcs[call->func];
    const zt_field *const lists = zt_param_by_role(f, ZT_R_LISTS);
    const zt_walk w = {.func = f, .words = call->words, .phase = ZT_ENTER, .memory = &zt_live_memory};
    const int64_t n = lists ? zt_eval_param(&w, &lists->count) : 0;
    const uint64_t *const handles = lists ? (const uint64_t *)(uintptr_t)call->words[lists->offset] : NULL;
    zc_state_lock();
    const uint64_t submit = ++zc_submit;
    for (int64_t i = 0; handles != NULL && i < n; i++) {
        const zc_list *const list = zc_list_find(handles[i]);
        if (list != NULL)
            launch(list, call->words[0], word_of(call, ZT_R_FENCE), submit);
    }
    zc_state_unlock();
    return submit;
}

/* @return the number of the submit for an immediate list, else 0. */
static uint64_t append(zc_call *call)
{
    zc_operand operands[8];
    uint64_t submit = 0;
    zc_state_lock();
    zc_list *list = zc_list_find(word_of(call, ZT_R_LIST));
    const unsigned n = operands_of(call, operands);
    bool seen = list != NULL && list->n > 0;
    for (unsigned i = 0; i < n; i++)
        seen |= host_sees(&operands[i]) || operands[i].reach_all;
    if (list == NULL && seen) /* of a list whose creation was not seen */
        list = zc_list_add(word_of(call, ZT_R_LIST));
    if (list != NULL && list->immediate) {
        submit = ++zc_submit;
        /* a command without operands matters only as a barrier or an event behind others */
        for (unsigned i = 0; (seen || zc_n_flights > 0) && i < n; i++) {
            const zc_flight f = {operands[i], list->handle, 0, submit, list->in_order ? list->generation : 0};
            zc_flight_add(&f);
        }
    } else if (list != NULL && seen) {
        call->op = list->n + 1;
        for (unsigned i = 0; i < n; i++)
            zc_list_append(list, &operands[i]);
    }
    zc_state_unlock();
    return submit;
}

static void read_modes(zc_list *list, const zt_type *type, const void *desc)
{
    unsigned modes = 0;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const zt_field *const f = &type->fields[i];
        uint32_t value;
        if (f->size != 4 || f->array_len)
            continue;
        memcpy(&value, (const char *)desc + f->offset, 4);
        modes |= zt_modes(&zt_types[f->type], value);
    }
    list->in_order = modes & ZT_M_IN_ORDER;
    list->synchronous = modes & ZT_M_SYNCHRONOUS;
}

/* A list or queue has come into being. */
static void created(const zc_call *call)
{
    const zt_func *const f = &zt_funcs[call->func];
    const zt_field *const out = zt_param_by_role(f, ZT_R_CREATE), *const desc = zt_param_by_role(f, ZT_R_DESC);
    if (out == NULL || call->words[out->offset] == 0)
        return;
    const char *const kind = zt_types[out->type].object;
    if (kind == NULL || (strcmp(kind, "list") != 0 && strcmp(kind, "queue") != 0))
        return;
    zc_state_lock();
    zc_list *const list = zc_list_add(*(const uint64_t *)(uintptr_t)call->words[out->offset]);
    if (list != NULL) {
        list->immediate = f->flags & ZT_F_IMMEDIATE;
        list->queue = strcmp(kind, "queue") == 0;
        if (desc != NULL && call->words[desc->offset] != 0)
            read_modes(list, &zt_types[desc->type], (const void *)(uintptr_t)call->words[desc->offset]);
    }
    zc_state_unlock();
}

void zc_contents_enter(zc_call *call)
{
    const zt_func *const f = &zt_funcs[call->func];
    zc_thread *const t = call->thread;
    uint64_t submit = 0;
    switch (f->kind) {
    case ZT_K_FREE:
        zc_state_lock();
        zc_alloc_remove(word_of(call, ZT_R_FREE));
        zc_state_unlock();
        break;
    case ZT_K_DESTROY:
    case ZT_K_RESET:
        zc_state_lock();
        if (f->kind == ZT_K_DESTROY) {
            const zt_field *const p = zt_param_by_role(f, ZT_R_DESTROY);
            if (p != NULL && zt_types[p->type].object != NULL &&
                (strcmp(zt_types[p->type].object, "list") == 0 || strcmp(zt_types[p->type].object, "queue") == 0))
                zc_list_remove(call->words[p->offset]);
        } else {
            zc_list *const list = zc_list_find(call->words[0]);
            if (list != NULL)
                zc_list_clear(list);
        }
        zc_state_unlock();
        break;
    case ZT_K_APPEND:
    case ZT_K_EXECUTE:
        submit = f->kind == ZT_K_EXECUTE ? execute(call) : append(call);
        if (submit == 0)
            break; /* appended to a regular list: nothing moves yet */
        read_flights(t, 0, submit - 1, true);
        read_flights(t, submit, submit, false);
        break;
    case ZT_K_HOST_SIGNAL:
    case ZT_K_SYNC:
        read_flights(t, 0, UINT64_MAX, true);
        break;
    default:
        break;
    }
    call->submit = submit;
}

/* -------------------------------------------------------------------------------------------- what a success makes visible */

typedef struct covered {
    uint64_t object;  /* queue, list, fence, event, device */
    const char *kind;
    uint64_t event_submit, event_carrier; /* up to where an event covers its carrier */
    size_t event_at;
    bool all_before;
} covered;

static bool is_covered(const zc_flight *f, void *ctx)
{
    const covered *const c = ctx;
    const size_t at = (size_t)(f - zc_flights);
    if (strcmp(c->kind, "queue") == 0 || strcmp(c->kind, "list") == 0)
        return f->carrier == c->object;
    if (strcmp(c->kind, "fence") == 0)
        return f->fence == c->object;
    if (strcmp(c->kind, "device") == 0)
        return true;
    if (c->event_submit == 0 || f->submit > c->event_submit)
        return false;
    if (at == c->event_at || f->operand.signal == c->object)
        return true;
    return c->all_before && f->carrier == c->event_carrier && at < c->event_at;
}

/* The last command that signals the event, and whether everything before it on its carrier has ended with it. */
static void find_event(covered *c)
{
    for (size_t i = zc_n_flights; i > 0; i--) {
        const zc_flight *const f = &zc_flights[i - 1];
        if (f->operand.signal != c->object)
            continue;
        c->event_submit = f->submit;
        c->event_carrier = f->carrier;
        c->event_at = i - 1;
        c->all_before = f->operand.barrier || f->list != 0;
        return;
    }
}

/* Only the hash of a range is kept. */
static void stage_hash(zc_thread *t, const range *r)
{
    _Alignas(64) XXH3_state_t state;
    uint8_t *const copy = scratch(t);
    XXH3_128bits_reset(&state);
    for (uint64_t at = 0; copy != NULL && at < r->len; at += ZC_SCRATCH) {
        const uint64_t n = r->len - at < ZC_SCRATCH ? r->len - at : ZC_SCRATCH;
        if (!zc_read_carefully(copy, (const void *)(uintptr_t)(r->addr + at), n))
            return;
        XXH3_128bits_update(&state, copy, n);
    }
    const XXH128_hash_t h = XXH3_128bits_digest(&state);
    const uint64_t hash[2] = {h.low64, h.high64};
    zc_stage(t, ZC_P_READBACK, ZC_PF_HASH_ONLY, r->addr, hash, r->len, false);
}

static void emit_readback(zc_thread *t, const range *r, uint64_t *budget)
{
    if (zc_memory == ZC_MEMORY_FULL || r->len <= *budget) {
        *budget -= r->len < *budget ? r->len : *budget;
        zc_stage(t, ZC_P_READBACK, 0, r->addr, (const void *)(uintptr_t)r->addr, r->len, true);
    } else {
        stage_hash(t, r);
    }
    /* what the device has written is no news when it is read next */
    uint8_t *const copy = scratch(t);
    for (uint64_t at = r->addr, stop, end = r->addr + r->len; copy != NULL && have_cache() && at < end; at = stop) {
        stop = (at & ~(uint64_t)(PAGE - 1)) + ZC_SCRATCH;
        if (stop > end)
            stop = end;
        if (!zc_read_carefully(copy, (const void *)(uintptr_t)at, stop - at))
            break;
        for (uint64_t block = at, next; block < stop; block = next) {
            next = (block & ~(uint64_t)(PAGE - 1)) + PAGE;
            if (next > stop)
                next = stop;
            compare(block, r->alloc, copy + (block - at), (uint32_t)(next - block));
        }
    }
}

static bool writes(const zc_operand *o)
{
    return (o->access & ZT_OUT) && o->len > 0;
}

/* Ranges that the covered commands have written, each once if its writers stand close together. Wants the lock. */
static size_t collect(const covered *c, range *ranges, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < zc_n_flights && n < room; i++) {
        const zc_operand *const o = &zc_flights[i].operand;
        if (!writes(o) || !is_covered(&zc_flights[i], (void *)(uintptr_t)c))
            continue;
        bool known = false;
        for (size_t k = n > BATCH ? n - BATCH : 0; k < n; k++)
            known |= ranges[k].addr == o->addr && ranges[k].len == o->len;
        const zc_alloc *const a = o->alloc ? zc_alloc_find(o->addr) : NULL;
        if (!known && (o->alloc == 0 || (a != NULL && a->id == o->alloc)))
            ranges[n++] = (range){o->addr, o->len, o->alloc, false};
    }
    return n;
}

/* What is still in flight may be writing there now: that cannot be compared with a replay. Wants the lock. */
static void leave_out_written(range *ranges, size_t n)
{
    uint64_t steps = VISIBLE_STEPS;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < zc_n_flights && ranges[i].len > 0; k++) {
            const zc_operand *const o = &zc_flights[k].operand;
            if (steps == 0 || (writes(o) && o->addr < ranges[i].addr + ranges[i].len && ranges[i].addr < o->addr + o->len))
                ranges[i].len = 0;
            else
                steps--;
        }
    }
}

static void make_visible(zc_call *call, uint64_t object, const char *kind)
{
    zc_thread *const t = call->thread;
    range few[BATCH], *ranges = few;
    size_t room = 0;
    uint64_t budget = ZC_INLINE_MAX;
    covered c = {.object = object, .kind = kind};
    zc_state_lock();
    if (strcmp(kind, "event") == 0)
        find_event(&c);
    for (size_t i = 0; i < zc_n_flights; i++)
        room += writes(&zc_flights[i].operand) && is_covered(&zc_flights[i], &c);
    if (room > BATCH && (ranges = zc_map(room * sizeof(*ranges))) == NULL)
        ranges = few;
    const size_t n = collect(&c, ranges, ranges == few ? BATCH : room);
    zc_flight_drop(is_covered, &c);
    leave_out_written(ranges, n);
    zc_state_unlock();
    for (size_t i = 0; i < n; i++)
        if (ranges[i].len > 0)
            emit_readback(t, &ranges[i], &budget);
    if (ranges != few)
        zc_unmap(ranges, room * sizeof(*ranges));
}

static bool of_submit(const zc_flight *f, void *ctx)
{
    return f->submit == *(const uint64_t *)ctx;
}

void zc_contents_leave(zc_call *call, uint64_t result)
{
    const zt_func *const f = &zt_funcs[call->func];
    uint64_t submit = call->submit;
    switch (f->kind) {
    case ZT_K_ALLOC:
        if (result == 0) {
            const zt_field *const p = zt_param_by_role(f, ZT_R_ALLOC);
            if (p == NULL || call->words[p->offset] == 0)
                break;
            zc_state_lock();
            zc_alloc_add(*(const uint64_t *)(uintptr_t)call->words[p->offset], word_of(call, ZT_R_SIZE), zc_usm[call->func]);
            zc_state_unlock();
        }
        break;
    case ZT_K_CREATE:
        if (result == 0)
            created(call);
        break;
    case ZT_K_APPEND:
    case ZT_K_EXECUTE:
        if (result != 0) {
            zc_state_lock();
            if (submit != 0)
                zc_flight_drop(of_submit, &submit);
            zc_list *const list = call->op ? zc_list_find(word_of(call, ZT_R_LIST)) : NULL;
            if (list != NULL && list->n >= call->op)
                list->n = call->op - 1;
            if (list != NULL && list->n == 0)
                atomic_fetch_sub_explicit(&zc_lists, 1, memory_order_relaxed);
            zc_state_unlock();
        } else if (submit != 0) {
            zc_state_lock();
            const zc_list *const carrier = zc_list_find(f->kind == ZT_K_EXECUTE ? call->words[0] : word_of(call, ZT_R_LIST));
            const bool synchronous = carrier != NULL && carrier->synchronous;
            zc_state_unlock();
            if (synchronous)
                make_visible(call, f->kind == ZT_K_EXECUTE ? call->words[0] : word_of(call, ZT_R_LIST), "queue");
        }
        break;
    case ZT_K_SYNC:
    case ZT_K_QUERY:
        if (result == 0) {
            const char *const kind = zt_types[f->params[0].type].object;
            if (kind != NULL)
                make_visible(call, call->words[0], kind);
        }
        break;
    default:
        break;
    }
}

/* -------------------------------------------------------------------------------------------------------------- quick */

static ZC_COLD bool look_up(uint64_t addr, zc_range_cache *place)
{
    zc_state_lock();
    const zc_alloc *const a = zc_alloc_find(addr);
    if (a != NULL)
        *place = (zc_range_cache){a->base, a->base + a->size, zc_alloc_generation, a->kind};
    zc_state_unlock();
    return a != NULL && place->kind == ZC_USM_DEVICE;
}

/* @return whether an address is known to lie in memory of the device's own. */
static inline bool on_device(zc_thread *t, uint64_t addr)
{
    zc_range_cache *const place = &t->cache[addr >> 16 & (ZC_ALLOC_CACHE - 1)];
    if (zc_likely(place->generation == __atomic_load_n(&zc_alloc_generation, __ATOMIC_ACQUIRE) && addr - place->base < place->end - place->base))
        return place->kind == ZC_USM_DEVICE;
    return look_up(addr, place);
}

bool zc_contents_quick(zc_thread *t, uint64_t list, const uint64_t *addresses, unsigned n)
{
    if (zc_unlikely(t->staging)) /* made by a signal handler: dropped on the general path */
        return false;
    for (unsigned i = 0; i < n; i++)
        if (addresses[i] != 0 && !on_device(t, addresses[i]))
            return false;
    /* behind commands that matter, events and barriers matter too; an immediate list looks at what is in flight */
    if (atomic_load_explicit(&zc_lists, memory_order_relaxed) == 0 && atomic_load_explicit(&zc_in_flight, memory_order_relaxed) == 0)
        return true;
    t->staging = true;
    atomic_signal_fence(memory_order_seq_cst);
    zc_state_lock();
    const zc_list *const l = zc_list_find(list);
    const bool quiet = l == NULL || (!l->immediate && l->n == 0) || (l->immediate && zc_n_flights == 0);
    zc_state_unlock();
    atomic_signal_fence(memory_order_seq_cst);
    t->staging = false;
    return quiet;
}

void zc_contents_fork(void)
{
    zc_state_reset();
    if (cache != NULL) /* the child's trace knows no block yet */
        zc_unmap(cache, CACHE_SLOTS * sizeof(*cache));
    cache = NULL;
    atomic_store(&cache_made, 0);
}

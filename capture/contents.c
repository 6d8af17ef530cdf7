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

#define BATCH 256u
#define VISIBLE_STEPS (1u << 24) /* of comparing what was written with what is in flight; what is left then is not read */
#define REREAD_MAX (1u << 20) /* bytes in flight that one call looks at again */

static bool host_sees(const zc_operand *o)
{
    return o->access != 0 && o->len > 0;
}

/* ---------------------------------------------------------------------------------------------------- reading in batches */

typedef struct cursor {
    size_t at, inside;
    uint64_t round; /* an allocation that several kernels reach is read once */
} cursor;

static bool is_host_memory(const zc_alloc *a)
{
    return a->kind == ZC_USM_HOST || a->kind == ZC_USM_SHARED;
}

/* @return whether a range for all of the allocation was added. */
static bool add_reached(cursor *c, zc_alloc *a, bool busy, bool reached, zc_range *out)
{
    if (a->round == c->round)
        return false;
    a->round = c->round;
    zc_blocks_hold(a->blocks);
    *out = (zc_range){.addr = a->base, .len = a->size, .alloc = a->id, .blocks = a->blocks, .kernel = true, .busy = busy, .reached = reached};
    return true;
}

/* Next ranges that the commands of submits `from` to `to` read. The lock is taken here. */
static unsigned next_ranges(cursor *c, uint64_t from, uint64_t to, bool in_flight, zc_range *out)
{
    unsigned n = 0;
    zc_state_lock();
    if (c->round == 0)
        c->round = ++zc_round;
    for (; c->at < zc_n_flights && n < BATCH; c->at++) {
        const zc_flight *const f = &zc_flights[c->at];
        const zc_operand *const o = &f->operand;
        if (f->submit < from || f->submit > to || !(o->access & ZT_IN))
            continue;
        if ((o->argument || o->reach) && in_flight)
            continue; /* what has changed there may be its own doing */
        zc_alloc *const a = o->alloc ? zc_alloc_find(o->addr) : NULL;
        if (o->argument) {
            if (a != NULL && a->id == o->alloc)
                n += add_reached(c, a, f->busy, false, &out[n]);
            continue;
        }
        if (o->reach == 0) {
            if (o->len > 0) {
                struct zc_blocks *const blocks = a != NULL && a->id == o->alloc ? a->blocks : NULL;
                zc_blocks_hold(blocks);
                out[n++] = (zc_range){.addr = o->addr, .len = o->len, .alloc = o->alloc, .blocks = blocks, .in_flight = in_flight};
            }
            continue;
        }
        for (zc_alloc *each; n < BATCH && (each = zc_alloc_at(c->inside)) != NULL; c->inside++)
            if (is_host_memory(each) && (o->reach & ZC_REACH(each->kind)))
                n += add_reached(c, each, each->launches > 0 && each->newest != f->submit, true, &out[n]);
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
    zc_range ranges[BATCH];
    cursor c = {0};
    uint64_t budget = in_flight ? REREAD_MAX : UINT64_MAX;
    for (unsigned n; budget > 0 && (n = next_ranges(&c, from, to, in_flight, ranges)) > 0;) {
        for (unsigned i = 0; i < n; i++) {
            if (ranges[i].len > budget)
                ranges[i].len = budget;
            budget -= ranges[i].len;
            if (ranges[i].len > 0)
                zc_read_range(t, &ranges[i]);
            zc_blocks_release(ranges[i].blocks);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------ submits */

/* Puts the operands of a list in flight. Wants the lock. */
static void launch(const zc_list *list, uint64_t carrier, uint64_t fence, uint64_t submit)
{
    for (uint32_t i = 0; i < list->n; i++) {
        zc_flight f = {list->operands[i], carrier, fence, submit, list->in_order ? list->generation : 0, false};
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
            launch(list, call->words[0], zc_word_of(call, ZT_R_FENCE), submit);
    }
    zc_state_unlock();
    return submit;
}

/* @return the number of the submit for an immediate list, else 0. */
static uint64_t append(zc_call *call)
{
    zc_operand operands[ZC_OPERANDS];
    uint64_t submit = 0;
    zc_state_lock();
    zc_list *list = zc_list_find(zc_word_of(call, ZT_R_LIST));
    const unsigned n = zc_operands(call, operands);
    bool seen = list != NULL && list->n > 0;
    for (unsigned i = 0; i < n; i++)
        seen |= host_sees(&operands[i]) || operands[i].reach != 0;
    if (list == NULL && seen) /* of a list whose creation was not seen */
        list = zc_list_add(zc_word_of(call, ZT_R_LIST));
    if (list != NULL && list->immediate) {
        submit = ++zc_submit;
        /* a command without operands matters only as a barrier or an event behind others */
        for (unsigned i = 0; (seen || zc_n_flights > 0) && i < n; i++) {
            zc_flight f = {operands[i], list->handle, 0, submit, list->in_order ? list->generation : 0, false};
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

static void freed(uint64_t base)
{
    zc_state_lock();
    struct zc_blocks *const blocks = zc_alloc_remove(base);
    zc_state_unlock();
    zc_blocks_end(blocks);
}

static void allocated(uint64_t base, uint64_t size, uint32_t kind)
{
    struct zc_blocks *const blocks = kind == ZC_USM_HOST || kind == ZC_USM_SHARED ? zc_blocks_begin(base, size) : NULL;
    freed(base);
    zc_state_lock();
    const bool added = zc_alloc_add(base, size, kind, blocks);
    zc_state_unlock();
    if (!added)
        zc_blocks_end(blocks);
}

/* A list, queue or kernel has come into being. */
static void created(const zc_call *call)
{
    const zt_func *const f = &zt_funcs[call->func];
    const zt_field *const out = zt_param_by_role(f, ZT_R_CREATE), *const desc = zt_param_by_role(f, ZT_R_DESC);
    if (out == NULL || call->words[out->offset] == 0)
        return;
    const char *const kind = zt_types[out->type].object;
    const bool is_kernel = kind != NULL && strcmp(kind, "kernel") == 0;
    if (kind == NULL || (strcmp(kind, "list") != 0 && strcmp(kind, "queue") != 0 && !is_kernel))
        return;
    const uint64_t handle = *(const uint64_t *)(uintptr_t)call->words[out->offset];
    zc_state_lock();
    if (is_kernel)
        zc_kernel_created(handle);
    zc_list *const list = is_kernel ? NULL : zc_list_add(handle);
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
        freed(zc_word_of(call, ZT_R_FREE));
        break;
    case ZT_K_DESTROY:
    case ZT_K_RESET:
        zc_state_lock();
        if (f->kind == ZT_K_DESTROY) {
            const zt_field *const p = zt_param_by_role(f, ZT_R_DESTROY);
            const char *const kind = p != NULL ? zt_types[p->type].object : NULL;
            if (kind != NULL && (strcmp(kind, "list") == 0 || strcmp(kind, "queue") == 0))
                zc_list_remove(call->words[p->offset]);
            if (kind != NULL && strcmp(kind, "kernel") == 0)
                zc_kernel_remove(call->words[p->offset]);
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

static bool writes(const zc_operand *o)
{
    return (o->access & ZT_OUT) && (o->len > 0 || o->reach);
}

/* Where a collection of ranges goes, and what is collected. */
typedef struct collection {
    zc_range *ranges;
    size_t n, room;
    cursor cursor;
} collection;

static void collect_allocation(collection *to, zc_alloc *a, bool reached)
{
    if (to->n < to->room)
        to->n += add_reached(&to->cursor, a, false, reached, &to->ranges[to->n]);
}

/* Ranges that the covered commands have written, each once if its writers stand close together. Wants the lock. */
static void collect(const covered *c, collection *to)
{
    to->cursor.round = ++zc_round;
    uint8_t reach = 0;
    for (size_t i = 0; i < zc_n_flights && to->n < to->room; i++) {
        const zc_operand *const o = &zc_flights[i].operand;
        if (!writes(o) || !is_covered(&zc_flights[i], (void *)(uintptr_t)c))
            continue;
        reach |= o->reach;
        zc_alloc *const a = o->alloc ? zc_alloc_find(o->addr) : NULL;
        const bool there = a != NULL && a->id == o->alloc;
        if (o->argument && there)
            collect_allocation(to, a, false);
        if (o->argument || o->reach || (o->alloc != 0 && !there))
            continue;
        bool known = false;
        for (size_t k = to->n > BATCH ? to->n - BATCH : 0; k < to->n; k++)
            known |= to->ranges[k].addr == o->addr && to->ranges[k].len == o->len;
        if (known)
            continue;
        if (there)
            zc_blocks_hold(a->blocks);
        to->ranges[to->n++] = (zc_range){.addr = o->addr, .len = o->len, .alloc = o->alloc, .blocks = there ? a->blocks : NULL};
    }
    zc_alloc *a;
    for (size_t i = 0; reach != 0 && (a = zc_alloc_at(i)) != NULL; i++)
        if (is_host_memory(a) && (reach & ZC_REACH(a->kind)))
            collect_allocation(to, a, true);
}

/* Whether a command in flight may be writing in a range that is to be read. */
static bool may_write(const zc_operand *o, const zc_range *r)
{
    if (!writes(o))
        return false;
    if (o->reach) /* of what it reaches without being pointed to, only what is no more certain is given up */
        return r->reached;
    return o->addr < r->addr + r->len && r->addr < o->addr + o->len;
}

/* What is still in flight may be writing there now: that cannot be compared with a replay. Wants the lock. */
static void leave_out_written(collection *c)
{
    uint64_t steps = VISIBLE_STEPS;
    for (size_t i = 0; i < c->n; i++) {
        for (size_t k = 0; k < zc_n_flights && c->ranges[i].len > 0; k++) {
            if (steps == 0 || may_write(&zc_flights[k].operand, &c->ranges[i]))
                c->ranges[i].len = 0;
            else
                steps--;
        }
    }
}

static void make_visible(zc_call *call, uint64_t object, const char *kind)
{
    zc_range few[BATCH];
    size_t room = 0;
    uint64_t budget = ZC_INLINE_MAX;
    covered c = {.object = object, .kind = kind};
    collection found = {.ranges = few, .room = BATCH};
    zc_state_lock();
    if (strcmp(kind, "event") == 0)
        find_event(&c);
    for (size_t i = 0; i < zc_n_flights; i++) {
        const zc_operand *const o = &zc_flights[i].operand;
        if (writes(o) && is_covered(&zc_flights[i], &c))
            room += o->reach ? zc_n_allocs() : 1;
    }
    if (room > zc_n_allocs() + zc_n_flights)
        room = zc_n_allocs() + zc_n_flights;
    zc_range *const many = room > BATCH ? zc_map(room * sizeof(*many)) : NULL;
    if (many != NULL) {
        found.ranges = many;
        found.room = room;
    }
    collect(&c, &found);
    zc_flight_drop(is_covered, &c);
    leave_out_written(&found);
    zc_state_unlock();
    for (size_t i = 0; i < found.n; i++) {
        if (found.ranges[i].len > 0)
            zc_read_back(call->thread, &found.ranges[i], &budget);
        zc_blocks_release(found.ranges[i].blocks);
    }
    if (many != NULL)
        zc_unmap(many, room * sizeof(*many));
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
            allocated(*(const uint64_t *)(uintptr_t)call->words[p->offset], zc_word_of(call, ZT_R_SIZE), zc_usm[call->func]);
        }
        break;
    case ZT_K_CREATE:
        if (result == 0)
            created(call);
        break;
    case ZT_K_SET:
        if (result == 0) {
            zc_state_lock();
            zc_kernel_set(call);
            zc_state_unlock();
        }
        break;
    case ZT_K_APPEND:
    case ZT_K_EXECUTE:
        if (result != 0) {
            zc_state_lock();
            if (submit != 0)
                zc_flight_drop(of_submit, &submit);
            zc_list *const list = call->op ? zc_list_find(zc_word_of(call, ZT_R_LIST)) : NULL;
            if (list != NULL && list->n >= call->op)
                list->n = call->op - 1;
            if (list != NULL && list->n == 0)
                atomic_fetch_sub_explicit(&zc_lists, 1, memory_order_relaxed);
            zc_state_unlock();
        } else if (submit != 0) {
            zc_state_lock();
            const zc_list *const carrier = zc_list_find(f->kind == ZT_K_EXECUTE ? call->words[0] : zc_word_of(call, ZT_R_LIST));
            const bool synchronous = carrier != NULL && carrier->synchronous;
            zc_state_unlock();
            if (synchronous)
                make_visible(call, f->kind == ZT_K_EXECUTE ? call->words[0] : zc_word_of(call, ZT_R_LIST), "queue");
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
    zc_blocks_fork();
}

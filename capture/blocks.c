/* SPDX-License-Identifier: MIT */
/*
 * What memory held when it was looked at last, in blocks: a block is the part of a page that is looked at. Whole pages of big
 * allocations have a table of their own; everything else shares a cache in which one place may push out another.
 */
#include "contents.h"
#include "written.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define CACHE_SLOTS (1u << 20)
#define TABLE_MIN   (1u << 20) /* bytes of an allocation from which on it has a table of its own */
#define READ_BACK_MAX (64u << 20) /* bytes of a watched allocation that are looked at when work in it has ended */
#define HOLES_MAX 256u

struct zc_blocks {
    _Atomic uint32_t users;
    zc_watch watch;
    uint64_t base, n; /* first whole page, number of them */
    _Atomic bool owed; /* it was not looked at when it should have been: all of it is, next time */
    _Atomic uint64_t signature[]; /* 0: never looked at */
};

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

void zc_blocks_fork(void)
{
    if (cache != NULL) /* the child's trace knows no block yet */
        zc_unmap(cache, CACHE_SLOTS * sizeof(*cache));
    cache = NULL;
    atomic_store(&cache_made, 0);
    zc_written_fork();
}

/* ----------------------------------------------------------------------------------------------------- an allocation's */

static struct zc_blocks *make(uint64_t base, uint64_t size)
{
    const uint64_t first = (base + ZC_PAGE - 1) & ~(uint64_t)(ZC_PAGE - 1), end = (base + size) & ~(uint64_t)(ZC_PAGE - 1);
    if (end <= first || base + size < base)
        return NULL;
    const uint64_t n = (end - first) / ZC_PAGE;
    struct zc_blocks *const b = zc_map(sizeof(*b) + n * sizeof(b->signature[0]));
    if (b == NULL)
        return NULL;
    atomic_store(&b->users, 1);
    b->base = first;
    b->n = n;
    zc_watch_init(&b->watch, first, n * ZC_PAGE);
    return b;
}

/* Big memory is watched from the beginning: then what nobody has touched need not be read. */
struct zc_blocks *zc_blocks_begin(uint64_t base, uint64_t size)
{
    struct zc_blocks *const b = size < TABLE_MIN ? NULL : make(base, size);
    if (b != NULL)
        zc_watch_begin(&b->watch);
    return b;
}

/* An allocation that had no table gets one. @return it, held; NULL. */
static struct zc_blocks *adopt(const zc_range *r)
{
    struct zc_blocks *const made = make(r->addr, r->len), *b = made;
    if (made == NULL)
        return NULL;
    zc_state_lock();
    zc_alloc *const a = zc_alloc_find(r->addr);
    if (a == NULL || a->id != r->alloc)
        b = NULL;
    else if (a->blocks != NULL)
        b = a->blocks;
    else
        a->blocks = b;
    zc_blocks_hold(b);
    zc_state_unlock();
    if (b != made)
        zc_blocks_release(made);
    return b;
}

void zc_blocks_hold(struct zc_blocks *b)
{
    if (b != NULL)
        atomic_fetch_add_explicit(&b->users, 1, memory_order_relaxed);
}

void zc_blocks_release(struct zc_blocks *b)
{
    if (b != NULL && atomic_fetch_sub_explicit(&b->users, 1, memory_order_acq_rel) == 1)
        zc_unmap(b, sizeof(*b) + b->n * sizeof(b->signature[0]));
}

void zc_blocks_end(struct zc_blocks *b)
{
    if (b != NULL)
        zc_watch_end(&b->watch);
    zc_blocks_release(b);
}

/* ------------------------------------------------------------------------------------------------------------ comparing */

enum known { SAME, UNKNOWN, CHANGED };

/*
 * Whether the bytes are those last kept for that place; remembers them. A slot of the cache holds a part of the place beside the
 * bytes' signature: another place that has pushed this one out is no change.
 */
static enum known compare(const zc_range *r, uint64_t addr, const void *data, uint32_t len)
{
    if (r->blocks != NULL && len == ZC_PAGE && addr >= r->blocks->base && (addr - r->blocks->base) / ZC_PAGE < r->blocks->n) {
        const uint64_t now = XXH3_64bits(data, len) | 1;
        const uint64_t before = atomic_exchange_explicit(&r->blocks->signature[(addr - r->blocks->base) / ZC_PAGE], now, memory_order_relaxed);
        return before == now ? SAME : before != 0 ? CHANGED : UNKNOWN;
    }
    const uint64_t key[3] = {addr, len, r->alloc}, of_place = 0xffffff0000000000u;
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

static uint64_t page_end(uint64_t at, uint64_t most)
{
    const uint64_t end = (at & ~(uint64_t)(ZC_PAGE - 1)) + ZC_PAGE;
    return end < most ? end : most;
}

/* What is handed the runs of blocks that compare alike; `copy` holds their bytes. */
typedef void (*run_fn)(void *ctx, uint64_t from, const uint8_t *copy, uint64_t len, enum known known);

/* Compares a stretch whose copy is in the scratch memory. @return the number of blocks that are not as they were. */
static uint64_t compare_runs(const zc_range *r, uint64_t from, uint64_t to, const uint8_t *copy, run_fn fn, void *ctx)
{
    uint64_t run = from, changed = 0;
    enum known of_run = SAME;
    for (uint64_t block = from, next; block < to; block = next) {
        next = page_end(block, to);
        const enum known known = compare(r, block, copy + (block - from), (uint32_t)(next - block));
        changed += known != SAME;
        if (known != of_run) {
            if (of_run != SAME && block > run)
                fn(ctx, run, copy + (run - from), block - run, of_run);
            run = block;
            of_run = known;
        }
    }
    if (of_run != SAME && to > run)
        fn(ctx, run, copy + (run - from), to - run, of_run);
    return changed;
}

/* As much as fits, up to a page's end. */
static uint64_t chunk_end(uint64_t at, uint64_t most)
{
    const uint64_t end = (at & ~(uint64_t)(ZC_PAGE - 1)) + ZC_SCRATCH;
    return end < most ? end : most;
}

/* -------------------------------------------------------------------------------------------------- what the device reads */

typedef struct reading {
    zc_thread *t;
    const zc_range *r;
} reading;

static void stage_new(void *ctx, uint64_t from, const uint8_t *copy, uint64_t len, enum known known)
{
    const reading *const re = ctx;
    zc_stage(re->t, re->r->alloc ? ZC_P_USM : ZC_P_OPERAND, re->r->in_flight && known == CHANGED ? ZC_PF_CHANGED : 0, from, copy, len, false);
}

/* @return the number of blocks staged. */
static uint64_t read_stretch(zc_thread *t, const zc_range *r, uint64_t from, uint64_t to)
{
    reading re = {t, r};
    uint8_t *const copy = scratch(t);
    uint64_t changed = 0;
    for (uint64_t at = from, stop; copy != NULL && at < to; at = stop) {
        stop = chunk_end(at, to);
        if (!zc_read_carefully(copy, (const void *)(uintptr_t)at, stop - at)) {
            stop = page_end(at, to); /* page by page around the hole */
            if (!zc_read_carefully(copy, (const void *)(uintptr_t)at, stop - at)) {
                zc_stage(t, r->alloc ? ZC_P_USM : ZC_P_OPERAND, ZC_PF_LOST, at, NULL, stop - at, false);
                continue;
            }
        }
        changed += compare_runs(r, at, stop, copy, stage_new, &re);
    }
    return changed;
}

static void read_written(zc_thread *t, const zc_range *r)
{
    struct zc_blocks *const b = r->blocks;
    const uint64_t first = b->base, last = b->base + b->n * ZC_PAGE;
    zc_written w = {.watch = &b->watch, .at = first, .end = last, .take = true};
    uint64_t from, to, pages = 0;
    if (!r->busy) {
        read_stretch(t, r, r->addr, first);
        read_stretch(t, r, last, r->addr + r->len);
    }
    while (zc_written_next(&w, &from, &to)) {
        read_stretch(t, r, from, to);
        pages += (to - from) / ZC_PAGE;
    }
    zc_watch_counted(&b->watch, pages);
}

/*
 * Of an allocation that a kernel may touch, the pages that the host has written are looked at, where that is known. Where it is not,
 * all of it is; and nothing while an earlier launch may be writing there: then a change is the device's, more likely than not.
 */
static void read_reached(zc_thread *t, const zc_range *r)
{
    struct zc_blocks *const b = r->blocks;
    bool all = true;
    if (b != NULL) {
        if (r->busy)
            zc_watch_need(&b->watch);
        if (zc_watched_now(&b->watch))
            all = !r->busy && atomic_exchange(&b->owed, false);
        else
            zc_watch_begin(&b->watch); /* before it is read: what is written from now on is seen */
        if (all && r->busy)
            atomic_store(&b->owed, true);
    }
    if (!all) {
        read_written(t, r);
    } else if (!r->busy) {
        const uint64_t changed = read_stretch(t, r, r->addr, r->addr + r->len);
        if (b != NULL)
            zc_watch_hashed(&b->watch, changed);
    }
}

void zc_read_range(zc_thread *t, const zc_range *range)
{
    if (!have_cache())
        return;
    if (!range->kernel) {
        read_stretch(t, range, range->addr, range->addr + range->len);
        return;
    }
    zc_range r = *range;
    struct zc_blocks *const adopted = r.blocks == NULL ? adopt(&r) : NULL;
    if (adopted != NULL)
        r.blocks = adopted;
    read_reached(t, &r);
    zc_blocks_release(adopted);
}

/* ----------------------------------------------------------------------------------------------- what the host reads back */

typedef struct readback {
    zc_thread *t;
    uint64_t *budget;
} readback;

static void stage_written(void *ctx, uint64_t from, const uint8_t *copy, uint64_t len, enum known known)
{
    readback *const rb = ctx;
    (void)known;
    if (zc_memory != ZC_MEMORY_FULL && len > *rb->budget)
        return; /* its hash is there */
    *rb->budget -= len < *rb->budget ? len : *rb->budget;
    zc_stage(rb->t, ZC_P_READBACK, 0, from, copy, len, false);
}

static void pass_over(void *ctx, uint64_t from, const uint8_t *copy, uint64_t len, enum known known)
{
    (void)ctx, (void)from, (void)copy, (void)len, (void)known;
}

/*
 * Keeps the hash of a stretch, and, as `fn` decides, the bytes of what is not as it was. What the device has written is no news when
 * it is read next.
 */
static void look_back(zc_thread *t, const zc_range *r, uint64_t from, uint64_t to, bool keep_hash, run_fn fn, void *ctx)
{
    _Alignas(64) XXH3_state_t state;
    uint8_t *const copy = scratch(t);
    bool read = copy != NULL;
    XXH3_128bits_reset(&state);
    for (uint64_t at = from, stop; read && at < to; at = stop) {
        stop = chunk_end(at, to);
        read = zc_read_carefully(copy, (const void *)(uintptr_t)at, stop - at);
        if (!read)
            break;
        if (keep_hash)
            XXH3_128bits_update(&state, copy, stop - at);
        compare_runs(r, at, stop, copy, fn, ctx);
    }
    if (!keep_hash || !read)
        return;
    const XXH128_hash_t h = XXH3_128bits_digest(&state);
    const uint64_t hash[2] = {h.low64, h.high64};
    zc_stage(t, ZC_P_READBACK, ZC_PF_HASH_ONLY, from, hash, to - from, false);
}

/* What the host has written meanwhile is left out: it comes with the next submit. */
static void read_back_reached(zc_thread *t, const zc_range *r, uint64_t *budget)
{
    readback rb = {t, budget};
    struct zc_blocks *const b = r->blocks;
    if (b == NULL || !zc_watched_now(&b->watch)) {
        if (!r->reached)
            look_back(t, r, r->addr, r->addr + r->len, true, stage_written, &rb);
        return;
    }
    zc_written w = {.watch = &b->watch, .at = b->base, .end = b->base + b->n * ZC_PAGE, .take = false};
    uint64_t at = w.at, from, to, left = READ_BACK_MAX;
    const uint64_t end = w.end;
    for (unsigned holes = 0; holes < HOLES_MAX && at < end && left > 0; holes++) {
        const bool hole = zc_written_next(&w, &from, &to);
        uint64_t stop = hole ? from : end;
        if (stop - at > left)
            stop = at + left;
        left -= stop - at;
        if (stop > at)
            look_back(t, r, at, stop, true, stage_written, &rb);
        at = hole ? to : end;
    }
}

void zc_read_back(zc_thread *t, const zc_range *r, uint64_t *budget)
{
    if (!have_cache())
        return;
    if (r->kernel) {
        read_back_reached(t, r, budget);
    } else if (zc_memory == ZC_MEMORY_FULL || r->len <= *budget) {
        *budget -= r->len < *budget ? r->len : *budget;
        zc_stage(t, ZC_P_READBACK, 0, r->addr, (const void *)(uintptr_t)r->addr, r->len, true);
        look_back(t, r, r->addr, r->addr + r->len, false, pass_over, NULL);
    } else {
        look_back(t, r, r->addr, r->addr + r->len, true, pass_over, NULL);
    }
}

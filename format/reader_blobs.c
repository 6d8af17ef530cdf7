/* SPDX-License-Identifier: MIT */
/* Blobs put together from their parts. The last ones are kept, and those that a walk over a call may still point into. */
#include "reader.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define BLOB_CACHE (64u << 20)
#define BLOB_ANY   (1u << 30) /* a blob of more bytes must not be as much larger than its file as a bomb is */
#define BLOB_RATIO 64u
#define HELD_MOST  (1u << 30) /* of one call */

static int compare(uint64_t x, uint64_t y)
{
    return x < y ? -1 : x > y;
}

static int compare_hashes(uint64_t lo, uint64_t hi, const zt_hash *h)
{
    const int d = compare(lo, h->lo);
    return d ? d : compare(hi, h->hi);
}

static int by_hash_and_offset(const void *a, const void *b, void *ctx)
{
    const zt__place *const all = ctx, *const x = &all[*(const uint32_t *)a], *const y = &all[*(const uint32_t *)b];
    int d = compare_hashes(x->first, x->begin, &(zt_hash){y->first, y->begin});
    if (d == 0)
        d = compare(x->end, y->end);
    return d ? d : compare(x->offset, y->offset);
}

static int by_hash(const void *key, const void *element)
{
    const zt_hash *const h = key;
    return compare_hashes(h->lo, h->hi, &((const zt__blob *)element)->hash);
}

static bool find_all(zt_trace *t)
{
    zt__blobs *const b = &t->blobs;
    size_t n = 0;
    for (size_t i = 0; i < t->file.n_places; i++)
        n += t->file.places[i].kind == ZT_CHUNK_BLOB;
    b->places = n <= UINT32_MAX ? malloc((n + 1) * sizeof(*b->places)) : NULL;
    b->at = b->places ? calloc(n + 1, sizeof(*b->at)) : NULL;
    if (b->at == NULL) {
        free(b->places);
        b->places = NULL;
        return false;
    }
    TAILQ_INIT(&b->idle);
    TAILQ_INIT(&b->held);
    n = 0;
    for (size_t i = 0; i < t->file.n_places; i++)
        if (t->file.places[i].kind == ZT_CHUNK_BLOB)
            b->places[n++] = (uint32_t)i;
    qsort_r(b->places, n, sizeof(*b->places), by_hash_and_offset, t->file.places);
    for (size_t i = 0; i < n; i++) {
        const zt__place *const p = &t->file.places[b->places[i]];
        if (b->n == 0 || compare_hashes(p->first, p->begin, &b->at[b->n - 1].hash) != 0)
            b->at[b->n++] = (zt__blob){.hash = {p->first, p->begin}, .from = i};
        b->at[b->n - 1].n++;
    }
    return true;
}

/* What is unpacked cannot be more. */
static uint64_t most_bytes(const zt_trace *t, const zt__blob *b)
{
    uint64_t most = 0;
    for (size_t i = 0; i < b->n; i++)
        most += t->file.places[t->blobs.places[b->from + i]].raw_size;
    return most;
}

/* @return to be freed; NULL: it is not whole, is not what its hash says, or memory is out. */
static void *put_together(zt_trace *t, const zt__blob *b, uint64_t *len)
{
    const uint64_t most = most_bytes(t, b);
    uint8_t *data = NULL;
    uint64_t total = 0, have = 0;
    bool ok = true;
    for (size_t i = 0; i < b->n && ok && (have == 0 || have < total); i++) {
        zt__place *const p = &t->file.places[t->blobs.places[b->from + i]];
        if (p->end != have)
            continue;
        Zetrace__Packet *const packet = zt__unpack(t, p);
        const Zetrace__Blob *const m = packet && packet->kind_case == ZETRACE__PACKET__KIND_BLOB ? packet->blob : NULL;
        ok = m != NULL && m->offset == have && (total == 0 || m->total == total) && m->data.len <= m->total - have &&
             /* no more than stands in the file, or than anybody could have meant */
             m->total <= most && (m->total <= BLOB_ANY || m->total / BLOB_RATIO <= t->file.size);
        if (ok && m->data.len > 0) {
            uint8_t *const grown = realloc(data, have + m->data.len);
            ok = grown != NULL;
            if (ok) {
                data = grown;
                memcpy(data + have, m->data.data, m->data.len);
                have += m->data.len;
            }
        }
        total = ok ? m->total : total;
        zetrace__packet__free_unpacked(packet, NULL);
    }
    const XXH128_hash_t h = XXH3_128bits(data ? data : (const uint8_t *)"", have);
    if (data == NULL || have != total || h.low64 != b->hash.lo || h.high64 != b->hash.hi) {
        free(data);
        return NULL;
    }
    *len = total;
    return data;
}

static void forget(zt__blobs *all, zt__blob *b)
{
    TAILQ_REMOVE(&all->idle, b, next);
    all->idle_bytes -= b->len;
    free(b->data);
    b->data = NULL;
}

static zt__blob *blob_of(zt_trace *t, const zt_hash *hash)
{
    zt__blobs *const all = &t->blobs;
    if (all->at == NULL && !find_all(t))
        return NULL;
    zt__blob *const b = bsearch(hash, all->at, all->n, sizeof(*all->at), by_hash);
    if (b == NULL || b->data != NULL)
        return b;
    b->data = put_together(t, b, &b->len);
    if (b->data == NULL)
        return NULL;
    while (!TAILQ_EMPTY(&all->idle) && all->idle_bytes + b->len > BLOB_CACHE)
        forget(all, TAILQ_FIRST(&all->idle));
    TAILQ_INSERT_TAIL(&all->idle, b, next);
    all->idle_bytes += b->len;
    return b;
}

const void *zt_trace_blob(zt_trace *t, const zt_hash *hash, uint64_t *len)
{
    const zt__blob *const b = blob_of(t, hash);
    if (b != NULL)
        *len = b->len;
    return b ? b->data : NULL;
}

static void release(zt__blobs *all)
{
    zt__blob *b;
    TAILQ_FOREACH(b, &all->held, next)
        b->held = false;
    TAILQ_CONCAT(&all->idle, &all->held, next);
    all->idle_bytes += all->held_bytes;
    all->held_bytes = 0;
}

const void *zt__blob_of_call(zt_trace *t, uint64_t call, const zt_hash *hash, uint64_t *len)
{
    zt__blobs *const all = &t->blobs;
    if (all->at == NULL && !find_all(t))
        return NULL;
    if (all->call != call)
        release(all);
    all->call = call;
    const zt__blob *const known = bsearch(hash, all->at, all->n, sizeof(*all->at), by_hash);
    const uint64_t most = known != NULL && !known->held ? most_bytes(t, known) : 0;
    if (known == NULL || (all->held_bytes > 0 && most > 0 && (most > HELD_MOST || all->held_bytes > HELD_MOST - most)))
        return NULL;
    zt__blob *const b = blob_of(t, hash);
    if (b == NULL)
        return NULL;
    if (!b->held) {
        TAILQ_REMOVE(&all->idle, b, next);
        TAILQ_INSERT_TAIL(&all->held, b, next);
        all->idle_bytes -= b->len;
        all->held_bytes += b->len;
        b->held = true;
    }
    *len = b->len;
    return b->data;
}

void zt__blobs_free(zt__blobs *all)
{
    for (size_t i = 0; i < all->n; i++)
        free(all->at[i].data);
    free(all->at);
    free(all->places);
}

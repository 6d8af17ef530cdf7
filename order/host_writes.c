/* SPDX-License-Identifier: MIT */
/*
 * Contents that a call was recorded with: bytes that the host wrote, and bytes that a command may have written. A forced order
 * must not write the latter itself; the former may have come under a command that reads them.
 */
#include <stdlib.h>
#include <string.h>

#include "read.h"

/* ---------------------------------------------------------------------------------------------------- what was seen before */

#define SIGHTINGS_BYTES (64u << 20) /* kept in all; what does not fit is compared as a whole */

typedef struct sighting {
    uint64_t addr, len; /* len 0: empty */
    zt_hash hash;
    void *data; /* NULL: a blob of the trace, or not kept */
} sighting;

struct zo_sightings {
    sighting *at;
    size_t n, room; /* a power of two */
    size_t bytes;
};

static sighting *find(const struct zo_sightings *s, uint64_t addr, uint64_t len)
{
    size_t i = (size_t)((addr ^ (addr >> 29) ^ len << 3) * 0x9e3779b97f4a7c15u >> 20) & (s->room - 1);
    while (s->at[i].len != 0 && (s->at[i].addr != addr || s->at[i].len != len))
        i = (i + 1) & (s->room - 1);
    return &s->at[i];
}

static bool grow(struct zo_sightings *s)
{
    struct zo_sightings more = *s;
    more.room = s->room ? s->room * 2 : 1024;
    more.at = calloc(more.room, sizeof(*more.at));
    if (more.at == NULL)
        return false;
    for (size_t i = 0; i < s->room; i++)
        if (s->at[i].len != 0)
            *find(&more, s->at[i].addr, s->at[i].len) = s->at[i];
    free(s->at);
    *s = more;
    return true;
}

static void remember(zo_graph *g, const zt_content *content)
{
    if (g->sightings == NULL)
        g->sightings = calloc(1, sizeof(*g->sightings));
    struct zo_sightings *const s = g->sightings;
    if (s == NULL || content->len == 0 || (s->n * 2 >= s->room && !grow(s)))
        return;
    sighting *const at = find(s, content->addr, content->len);
    s->n += at->len == 0;
    if (at->data != NULL)
        s->bytes -= (size_t)at->len;
    free(at->data);
    *at = (sighting){content->addr, content->len, content->hash, NULL};
    if (content->data != NULL && content->len <= SIGHTINGS_BYTES - s->bytes && (at->data = malloc((size_t)content->len)) != NULL) {
        memcpy(at->data, content->data, (size_t)content->len);
        s->bytes += (size_t)content->len;
    }
}

void zo_sightings_free(zo_graph *g)
{
    struct zo_sightings *const s = g->sightings;
    for (size_t i = 0; s != NULL && i < s->room; i++)
        free(s->at[i].data);
    if (s != NULL)
        free(s->at);
    free(s);
    g->sightings = NULL;
}

static const uint8_t *bytes_of(zo_graph *g, const void *data, const zt_hash *hash, uint64_t len)
{
    uint64_t have = 0;
    const uint8_t *const bytes = data != NULL ? data : zt_trace_blob(g->trace, hash, &have);
    return data != NULL || (bytes != NULL && have >= len) ? bytes : NULL;
}

/* ------------------------------------------------------------------------------------------------------------- bytes */

typedef struct span {
    uint64_t lo, hi;
} span;

typedef struct spans {
    span *at;
    size_t n, room;
} spans;

static void cut(zo_graph *g, spans *s, uint64_t lo, uint64_t hi)
{
    for (size_t i = 0; i < s->n;) {
        const span old = s->at[i];
        if (old.hi <= lo || hi <= old.lo) {
            i++;
            continue;
        }
        const span left = {old.lo, lo}, right = {hi, old.hi};
        s->at[i] = s->at[--s->n];
        if (left.lo < left.hi)
            ZO_PUSH(g, s->at, s->n, s->room, left);
        if (right.lo < right.hi)
            ZO_PUSH(g, s->at, s->n, s->room, right);
        i = 0;
    }
}

/* Commands that had not ended at a call, less one of them. */
typedef struct writers {
    uint32_t call, but;
    spans *left; /* what they don't write */
} writers;

static bool see_writer(void *ctx, zo_graph *g, uint32_t x, const zo_access *access)
{
    const writers *const w = ctx;
    if (access->write && x != w->but && !zo_before(g, x, w->call | ZO_CALL_BIT))
        cut(g, w->left, access->lo, access->hi);
    return w->left->n == 0;
}

/* The bytes of `all` that no command writes which had not ended at the call. */
static void leave_host_bytes(zo_graph *g, const zo_access *all, uint32_t call, uint32_t but, spans *left)
{
    const span whole = {all->lo, all->hi};
    left->n = 0;
    ZO_PUSH(g, left->at, left->n, left->room, whole);
    writers w = {call, but, left};
    zo_each_user(g, all, see_writer, &w);
}

typedef struct readers {
    const zo_access *all;
    const uint8_t *was, *is; /* of all; NULL: not known */
    uint32_t call;
    spans left, moved;
} readers;

/* Of a stretch in which something has changed: from the first byte that has to the last. */
static span narrow(const readers *r, span s)
{
    const uint64_t at = r->all->lo;
    while (s.lo < s.hi && r->was[s.lo - at] == r->is[s.lo - at])
        s.lo++;
    while (s.lo < s.hi && r->was[s.hi - 1 - at] == r->is[s.hi - 1 - at])
        s.hi--;
    return s;
}

/* The bytes were looked at when the reader was submitted: a command that had not ended by then may have changed them since. */
static bool see_reader(void *ctx, zo_graph *g, uint32_t x, const zo_access *access)
{
    readers *const r = ctx;
    if (access->write || zo_before(g, x, r->call | ZO_CALL_BIT))
        return false;
    zo_access both = *r->all;
    both.lo = access->lo > both.lo ? access->lo : both.lo;
    both.hi = access->hi < both.hi ? access->hi : both.hi;
    leave_host_bytes(g, &both, g->instances[x].submit, x, &r->left);
    const bool known = r->was != NULL && r->is != NULL;
    const bool whole = r->left.n == 1 && r->left.at[0].lo == both.lo && r->left.at[0].hi == both.hi;
    for (size_t i = 0; i < r->left.n && (known || whole); i++) {
        if (known)
            r->left.at[i] = narrow(r, r->left.at[i]);
        if (r->left.at[i].lo >= r->left.at[i].hi)
            continue;
        zo_conflict_add(g, (zo_conflict){.kind = ZO_X_HOST_WRITE, .a = x, .b = r->call | ZO_CALL_BIT, .object = r->all->mem,
                                         .lo = r->left.at[i].lo, .hi = r->left.at[i].hi, .coarse = access->coarse});
        ZO_PUSH(g, r->moved.at, r->moved.n, r->moved.room, r->left.at[i]);
    }
    return false;
}

static void keep(zo_graph *g, uint32_t index, const zo_access *all, uint32_t content, const spans *pieces, bool moves)
{
    for (size_t i = 0; i < pieces->n; i++) {
        const zo_write write = {content, moves, pieces->at[i].lo - all->lo, pieces->at[i].hi - pieces->at[i].lo};
        if (ZO_PUSH(g, g->writes, g->n_writes, g->room_writes, write)) {
            g->calls[index].n_writes++;
            g->calls[index].moves |= moves;
        }
    }
}

void zo_host_writes(zo_graph *g, uint32_t index, const zt_call *call)
{
    spans left = {0};
    readers r = {.call = index};
    g->calls[index].writes = (uint32_t)g->n_writes;
    for (uint32_t i = 0; i < call->n_contents; i++) {
        const zt_content *const content = &call->contents[i];
        zo_access all = {.write = 1};
        if (content->kind == ZT_C_READBACK || !zo_locate(g, content->addr, content->len, &all) ||
            (all.mem == ZO_PAGEABLE && (g->habits & ZO_H_HOST_COPIED)))
            continue;
        r.all = &all;
        r.moved.n = 0;
        if (content->changed && content->len > 0) {
            const sighting *const before = g->sightings != NULL && g->sightings->room > 0
                                               ? find(g->sightings, content->addr, content->len) : NULL;
            r.is = content->hash_only ? NULL : bytes_of(g, content->data, &content->hash, content->len);
            r.was = before == NULL || before->len == 0 ? NULL : bytes_of(g, before->data, &before->hash, before->len);
            zo_each_user(g, &all, see_reader, &r);
        }
        remember(g, content);
        leave_host_bytes(g, &all, index, ZO_NONE, &left);
        const bool whole = left.n == 1 && left.at[0].lo == all.lo && left.at[0].hi == all.hi;
        if (whole && r.moved.n == 0)
            continue; /* as the call itself writes it */
        for (size_t k = 0; k < r.moved.n; k++)
            cut(g, &left, r.moved.at[k].lo, r.moved.at[k].hi);
        if (left.n + r.moved.n == 0) {
            const span none = {all.lo, all.lo};
            ZO_PUSH(g, left.at, left.n, left.room, none);
        }
        keep(g, index, &all, i + 1, &left, false);
        keep(g, index, &all, i + 1, &r.moved, true);
    }
    free(left.at);
    free(r.left.at);
    free(r.moved.at);
}

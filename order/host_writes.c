/* SPDX-License-Identifier: MIT */
/*
 * Contents that a call was recorded with: bytes that the host wrote, and bytes that a command may have written. A forced order
 * must not write the latter itself; the former may have come under a command that reads them.
 */
#include <stdlib.h>
#include <string.h>

#include "read.h"

/* ---------------------------------------------------------------------------------------------------- what was seen before */

#define PAGE      4096u
#define PAGES_MAX 16384u /* kept; what does not fit is compared by its hash */

typedef struct page {
    uint64_t number; /* address / PAGE */
    uint8_t bytes[PAGE], seen[PAGE];
} page;

struct zo_sightings {
    page **at;
    size_t n, room; /* a power of two */
};

static page **find(const struct zo_sightings *s, uint64_t number)
{
    size_t i = (size_t)(number * 0x9e3779b97f4a7c15u >> 20) & (s->room - 1);
    while (s->at[i] != NULL && s->at[i]->number != number)
        i = (i + 1) & (s->room - 1);
    return &s->at[i];
}

static bool grow(struct zo_sightings *s)
{
    struct zo_sightings more = {.room = s->room ? s->room * 2 : 1024, .n = s->n};
    more.at = calloc(more.room, sizeof(*more.at));
    if (more.at == NULL)
        return false;
    for (size_t i = 0; i < s->room; i++)
        if (s->at[i] != NULL)
            *find(&more, s->at[i]->number) = s->at[i];
    free(s->at);
    *s = more;
    return true;
}

static page *page_of(zo_graph *g, uint64_t address, bool make)
{
    struct zo_sightings *const s = g->sightings ? g->sightings : (g->sightings = calloc(1, sizeof(*s)));
    if (s == NULL || (s->n * 2 >= s->room && !grow(s)))
        return NULL;
    page **const at = find(s, address / PAGE);
    if (*at == NULL && make && s->n < PAGES_MAX && (*at = calloc(1, sizeof(**at))) != NULL) {
        (*at)->number = address / PAGE;
        s->n++;
    }
    return *at;
}

void zo_sightings_free(zo_graph *g)
{
    struct zo_sightings *const s = g->sightings;
    for (size_t i = 0; s != NULL && i < s->room; i++)
        free(s->at[i]);
    if (s != NULL)
        free(s->at);
    free(s);
    g->sightings = NULL;
}

/* bytes NULL: forgotten. */
static void remember(zo_graph *g, uint64_t address, const uint8_t *bytes, uint64_t len)
{
    for (uint64_t done = 0; done < len;) {
        const uint64_t in = (address + done) % PAGE, n = PAGE - in < len - done ? PAGE - in : len - done;
        page *const p = page_of(g, address + done, bytes != NULL);
        if (p != NULL) {
            if (bytes != NULL)
                memcpy(p->bytes + in, bytes + done, n);
            memset(p->seen + in, bytes != NULL, n);
        }
        done += n;
    }
}

/* Whether a byte differs from the last look at it. What was not looked at differs in nothing. */
static bool differs(zo_graph *g, uint64_t address, uint8_t byte)
{
    const page *const p = page_of(g, address, false);
    return p != NULL && p->seen[address % PAGE] && p->bytes[address % PAGE] != byte;
}

static bool any_differs(zo_graph *g, uint64_t address, const uint8_t *bytes, uint64_t len)
{
    for (uint64_t done = 0; done < len;) {
        const uint64_t in = (address + done) % PAGE, n = PAGE - in < len - done ? PAGE - in : len - done;
        const page *const p = page_of(g, address + done, false);
        if (p != NULL && memcmp(p->bytes + in, bytes + done, n) != 0)
            for (uint64_t i = 0; i < n; i++)
                if (p->seen[in + i] && p->bytes[in + i] != bytes[done + i])
                    return true;
        done += n;
    }
    return false;
}

static const uint8_t *bytes_of(zo_graph *g, const zt_content *content)
{
    uint64_t have = 0;
    if (content->hash_only)
        return NULL;
    const uint8_t *const bytes = content->data != NULL ? content->data : zt_trace_blob(g->trace, &content->hash, &have);
    return content->data != NULL || have >= content->len ? bytes : NULL;
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
    const bool has_run = g->instances[x].order != 0; /* what had not in the earliest order can't have begun in any */
    if (access->write && x != w->but && has_run && !zo_before(g, x, w->call | ZO_CALL_BIT))
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
    const uint8_t *bytes; /* of all; NULL: not known, but that they have changed */
    uint64_t address;
    uint32_t call;
    spans left, moved;
} readers;

/* Of a stretch: from the first byte that has changed to the last. */
static span narrow(zo_graph *g, const readers *r, span s)
{
    const uint64_t at = r->all->lo;
    while (s.lo < s.hi && !differs(g, r->address + (s.lo - at), r->bytes[s.lo - at]))
        s.lo++;
    while (s.lo < s.hi && !differs(g, r->address + (s.hi - 1 - at), r->bytes[s.hi - 1 - at]))
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
    const bool whole = r->left.n == 1 && r->left.at[0].lo == both.lo && r->left.at[0].hi == both.hi;
    for (size_t i = 0; i < r->left.n && (r->bytes != NULL || whole); i++) {
        if (r->bytes != NULL)
            r->left.at[i] = narrow(g, r, r->left.at[i]);
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
        r.bytes = bytes_of(g, content);
        r.address = content->addr;
        if (r.bytes != NULL ? any_differs(g, content->addr, r.bytes, content->len) : content->changed)
            zo_each_user(g, &all, see_reader, &r);
        remember(g, content->addr, r.bytes, content->len);
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

typedef struct reading {
    uint32_t call;
    bool fresh; /* some command wrote there that was not known to be over when the call began */
} reading;

static bool see_unfinished(void *ctx, zo_graph *g, uint32_t x, const zo_access *access)
{
    reading *const r = ctx;
    if (!access->write || g->instances[x].order == 0 || zo_before(g, x, r->call | ZO_CALL_BIT))
        return false;
    r->fresh = true;
    return !zo_ended_by_return(g, x, r->call);
}

/* What was over before the call began the host may have written over since; what is not over may still be written. */
void zo_host_reads(zo_graph *g, uint32_t index, const zt_call *call)
{
    g->calls[index].unread = (uint32_t)g->n_unread;
    for (uint32_t i = 0; i < call->n_contents; i++) {
        zo_access all = {0};
        reading r = {.call = index};
        if (call->contents[i].kind != ZT_C_READBACK)
            continue;
        remember(g, call->contents[i].addr, bytes_of(g, &call->contents[i]), call->contents[i].len);
        if (zo_locate(g, call->contents[i].addr, call->contents[i].len, &all) &&
            (zo_each_user(g, &all, see_unfinished, &r) || !r.fresh) && ZO_PUSH(g, g->unread, g->n_unread, g->room_unread, i + 1))
            g->calls[index].n_unread++;
    }
}

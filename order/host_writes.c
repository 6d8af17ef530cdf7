/* SPDX-License-Identifier: MIT */
/*
 * Contents that a call was recorded with: bytes that the host wrote, and bytes that a command wrote. A forced order must write the
 * former, and not the latter, which its own commands write. Bytes are the host's if they have changed since the last look at them, or
 * were never looked at, and no command can have written them since. Where one may have, a replay finds out: see zo_learn.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

/* ------------------------------------------------------------------------------------------------------------- spans */

typedef struct span {
    uint64_t lo, hi;
} span;

typedef struct spans {
    span *at;
    size_t n, room;
} spans;

static void add(zo_graph *g, spans *s, uint64_t lo, uint64_t hi)
{
    const span new = {lo, hi};
    if (lo < hi)
        ZO_PUSH(g, s->at, s->n, s->room, new);
}

static void cut(zo_graph *g, spans *s, uint64_t lo, uint64_t hi)
{
    for (size_t i = 0; i < s->n;) {
        const span old = s->at[i];
        if (old.hi <= lo || hi <= old.lo) {
            i++;
            continue;
        }
        s->at[i] = s->at[--s->n];
        add(g, s, old.lo, old.lo > lo ? old.lo : lo);
        add(g, s, old.hi < hi ? old.hi : hi, old.hi);
    }
}

/* ------------------------------------------------------------------------------------------------------ what was seen */

#define PAGE      4096u
#define PAGES_MAX 16384u /* kept; of what does not fit all is new */
#define LEARN_MAX (1ull << 32)
#define GAP       64u    /* equal bytes between two changes that are taken for one */
#define SEARCHES_MAX 64u  /* for pointers, in all that was seen */
#define LOOKS_MAX (1u << 28) /* pages of all contents that are looked at: a file may claim contents of any length */

typedef struct look {
    uint32_t lo, hi; /* in the page */
    uint32_t call;
    bool at_return;  /* else before it was made */
    bool known;      /* the bytes are */
} look;

typedef struct page {
    uint64_t number;
    uint32_t mem;
    look *looks;
    size_t n, room;
    uint8_t bytes[PAGE];
} page;

struct zo_sightings {
    page **at;
    size_t n, room; /* a power of two */
    uint64_t looked; /* pages */
    unsigned searches;
    spans changed, left, moved, either; /* of the content that is looked at; either: the host's or a command's */
};

static page **find(const struct zo_sightings *s, uint32_t mem, uint64_t number)
{
    size_t i = (size_t)((number + ((uint64_t)mem << 40)) * 0x9e3779b97f4a7c15u >> 20) & (s->room - 1);
    while (s->at[i] != NULL && (s->at[i]->number != number || s->at[i]->mem != mem))
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
        if (s->at[i] != NULL)
            *find(&more, s->at[i]->mem, s->at[i]->number) = s->at[i];
    free(s->at);
    *s = more;
    return true;
}

static page *page_of(struct zo_sightings *s, uint32_t mem, uint64_t at, bool make)
{
    if (s->n * 2 >= s->room && !grow(s))
        return NULL;
    page **const p = find(s, mem, at / PAGE);
    if (*p == NULL && make && s->n < PAGES_MAX && (*p = calloc(1, sizeof(**p))) != NULL) {
        (*p)->number = at / PAGE;
        (*p)->mem = mem;
        s->n++;
    }
    return *p;
}

static struct zo_sightings *sightings_of(zo_graph *g)
{
    if (g->sightings == NULL && (g->sightings = calloc(1, sizeof(*g->sightings))) == NULL)
        g->out_of_memory = true;
    return g->sightings;
}

void zo_sightings_free(zo_graph *g)
{
    struct zo_sightings *const s = g->sightings;
    for (size_t i = 0; s != NULL && i < s->room; i++) {
        if (s->at[i] != NULL)
            free(s->at[i]->looks);
        free(s->at[i]);
    }
    if (s != NULL) {
        free(s->at);
        free(s->changed.at);
        free(s->left.at);
        free(s->moved.at);
        free(s->either.at);
    }
    free(s);
    g->sightings = NULL;
}

static void forget(zo_graph *g, page *p, uint32_t lo, uint32_t hi)
{
    for (size_t i = 0; i < p->n;) {
        const look old = p->looks[i];
        if (old.hi <= lo || hi <= old.lo) {
            i++;
            continue;
        }
        p->looks[i] = p->looks[--p->n];
        look part = old;
        part.hi = lo;
        if (part.lo < part.hi)
            ZO_PUSH(g, p->looks, p->n, p->room, part);
        part = old;
        part.lo = hi;
        if (part.lo < part.hi)
            ZO_PUSH(g, p->looks, p->n, p->room, part);
    }
}

/* bytes NULL: only that they were looked at. */
static void remember(zo_graph *g, const zo_access *all, const uint8_t *bytes, uint32_t call, bool at_return)
{
    for (uint64_t at = all->lo; at < all->hi;) {
        const uint32_t in = at % PAGE, n = PAGE - in < all->hi - at ? PAGE - in : (uint32_t)(all->hi - at);
        page *const p = page_of(g->sightings, all->mem, at, true);
        if (p != NULL) {
            const look new = {in, in + n, call, at_return, bytes != NULL};
            forget(g, p, in, in + n);
            ZO_PUSH(g, p->looks, p->n, p->room, new);
            if (bytes != NULL)
                memcpy(p->bytes + in, bytes + (at - all->lo), n);
        }
        at += n;
    }
}

/* @return false if the content is passed over: it is as the call itself writes it, or not compared with what the host wrote. */
static bool is_looked_at(zo_graph *g, const zt_content *content, zo_access *all)
{
    if (!zo_locate(g, content->addr, content->len, all) || all->lo >= all->hi)
        return false;
    const uint64_t pages = (all->hi - all->lo) / PAGE + 1;
    const bool there_is_room = pages <= LOOKS_MAX - g->sightings->looked;
    g->sightings->looked += there_is_room ? pages : 0;
    g->doubts.accesses += !there_is_room;
    return there_is_room;
}

static const uint8_t *bytes_of(zo_graph *g, const zt_content *content)
{
    uint64_t have = 0;
    if (content->hash_only)
        return NULL;
    const uint8_t *const bytes = content->data != NULL ? content->data : zt_trace_blob(g->trace, &content->hash, &have);
    return content->data != NULL || have >= content->len ? bytes : NULL;
}

static bool holds(const page *p, uint64_t lo, uint64_t hi)
{
    for (size_t i = 0; i < p->n; i++)
        for (uint32_t at = (p->looks[i].lo + 7) / 8 * 8; p->looks[i].known && at + 8 <= p->looks[i].hi; at += 8) {
            uint64_t word;
            memcpy(&word, p->bytes + at, sizeof(word));
            if (word >= lo && word < hi)
                return true;
        }
    return false;
}

uint32_t zo_pointer_seen(zo_graph *g, uint32_t mem, const zo_command *c)
{
    struct zo_sightings *const s = g->sightings;
    const zt_object *const to = zo_object_at(g, mem)->base;
    if (s == NULL || s->searches++ >= SEARCHES_MAX)
        return ZO_NONE;
    for (size_t i = 0; i < s->room; i++)
        if (s->at[i] != NULL && s->at[i]->mem != mem && zo_may_read(g, c, s->at[i]->mem) && holds(s->at[i], to->value, to->value + to->size))
            return s->at[i]->mem;
    return ZO_NONE;
}

/* ----------------------------------------------------------------------------------------------------- what is the host's */

typedef struct since { /* a look; NULL: none was there */
    const look *look;
    spans *left; /* bytes that no command can have written since */
} since;

static bool see_writer(void *ctx, zo_graph *g, uint32_t x, const zo_access *access)
{
    const since *const s = ctx;
    /* what has not run in the earliest order can't have begun in any */
    if (!access->write || g->instances[x].order == 0)
        return false;
    if (s->look == NULL || !(s->look->at_return ? zo_ended_by_return(g, x, s->look->call) : zo_before(g, x, s->look->call | ZO_CALL_BIT)))
        cut(g, s->left, access->lo, access->hi);
    return s->left->n == 0;
}

/* A kernel that may get there by a pointer may write anywhere. */
static bool see_reaching_writer(void *ctx, zo_graph *g, uint32_t x, const zo_access *access)
{
    const zo_access everywhere = {.mem = access->mem, .hi = UINT64_MAX, .write = 1};
    return see_writer(ctx, g, x, &everywhere);
}

/* Of a stretch, what differs from the look, in runs. */
static void add_changes(zo_graph *g, const page *p, span s, const uint8_t *bytes, uint64_t base)
{
    spans *const changed = &g->sightings->changed;
    uint64_t first = s.hi, last = s.hi;
    for (uint64_t at = s.lo; at < s.hi; at++) {
        if (p->bytes[at % PAGE] == bytes[at - base])
            continue;
        if (first != s.hi && at - last > GAP) {
            add(g, changed, first, last + 1);
            first = s.hi;
        }
        if (first == s.hi)
            first = at;
        last = at;
    }
    if (first != s.hi)
        add(g, changed, first, last + 1);
}

/* What of [lo, hi) is not left is either's. */
static void rest(zo_graph *g, uint64_t lo, uint64_t hi)
{
    spans part = {0};
    add(g, &part, lo, hi);
    for (size_t i = 0; i < g->sightings->left.n; i++)
        cut(g, &part, g->sightings->left.at[i].lo, g->sightings->left.at[i].hi);
    for (size_t i = 0; i < part.n; i++)
        add(g, &g->sightings->either, part.at[i].lo, part.at[i].hi);
    free(part.at);
}

/* Of the bytes [lo, hi) of one look, or of none. bytes: of `all`, NULL if not known. */
static void find_changes(zo_graph *g, const zo_access *all, const page *p, const look *l, uint64_t lo, uint64_t hi, const uint8_t *bytes)
{
    spans *const left = &g->sightings->left;
    zo_access part = *all;
    part.lo = lo;
    part.hi = hi;
    if (lo >= hi || (l != NULL && l->known && bytes != NULL && memcmp(p->bytes + lo % PAGE, bytes + (lo - all->lo), hi - lo) == 0))
        return;
    left->n = 0;
    add(g, left, lo, hi);
    since s = {l, left};
    if (!zo_each_user(g, &part, see_writer, &s))
        zo_each_reacher(g, part.mem, true, see_reaching_writer, &s);
    rest(g, lo, hi);
    for (size_t i = 0; i < left->n; i++) {
        if (l != NULL && l->known && bytes != NULL)
            add_changes(g, p, left->at[i], bytes, all->lo);
        else
            add(g, &g->sightings->changed, left->at[i].lo, left->at[i].hi);
    }
}

static int by_place(const void *a, const void *b)
{
    const look *const x = a, *const y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* Fills in `changed`. @return whether bytes had been looked at before. */
static bool find_host_bytes(zo_graph *g, const zo_access *all, const uint8_t *bytes)
{
    bool seen = false;
    g->sightings->changed.n = g->sightings->either.n = 0;
    for (uint64_t at = all->lo, end; at < all->hi; at = end) {
        end = PAGE - at % PAGE < all->hi - at ? at + (PAGE - at % PAGE) : all->hi;
        page *const p = page_of(g->sightings, all->mem, at, false);
        const uint64_t base = at / PAGE * PAGE;
        uint64_t from = at;
        if (p != NULL && p->n > 1)
            qsort(p->looks, p->n, sizeof(*p->looks), by_place);
        for (size_t i = 0; p != NULL && i < p->n; i++) {
            const look l = p->looks[i];
            const uint64_t lo = base + l.lo > from ? base + l.lo : from, hi = base + l.hi < end ? base + l.hi : end;
            if (lo >= hi)
                continue;
            find_changes(g, all, NULL, NULL, from, lo, bytes);
            find_changes(g, all, p, &l, lo, hi, bytes);
            seen = true;
            from = hi;
        }
        find_changes(g, all, NULL, NULL, from, end, bytes);
    }
    return seen;
}

typedef struct readers {
    const zo_access *all;
    uint32_t call;
} readers;

/* What the host has changed since a command was submitted that reads it. */
static bool see_reader(void *ctx, zo_graph *g, uint32_t x, const zo_access *access)
{
    const readers *const r = ctx;
    if (access->write || zo_before(g, x, r->call | ZO_CALL_BIT))
        return false;
    const spans *const changed = &g->sightings->changed;
    for (size_t i = 0; i < changed->n; i++) {
        const uint64_t lo = access->lo > changed->at[i].lo ? access->lo : changed->at[i].lo;
        const uint64_t hi = access->hi < changed->at[i].hi ? access->hi : changed->at[i].hi;
        if (lo >= hi)
            continue;
        zo_conflict_add(g, (zo_conflict){.kind = ZO_X_HOST_WRITE, .a = x, .b = r->call | ZO_CALL_BIT, .object = r->all->mem, .lo = lo,
                                         .hi = hi, .coarse = access->coarse});
        add(g, &g->sightings->moved, lo, hi);
    }
    return false;
}

void zo_write_add(zo_graph *g, uint32_t index, const zo_write *write)
{
    zo_write new = *write;
    new.next = g->calls[index].writes;
    if (!ZO_PUSH(g, g->writes, g->n_writes, g->room_writes, new))
        return;
    g->calls[index].writes = (uint32_t)g->n_writes;
    g->calls[index].moves |= new.moves;
}

static void keep(zo_graph *g, uint32_t index, const zo_access *all, uint32_t content, const spans *pieces, bool moves, bool learn)
{
    for (size_t i = 0; i < pieces->n; i++) {
        zo_write write = {.content = content, .moves = moves, .from = pieces->at[i].lo - all->lo,
                          .size = pieces->at[i].hi - pieces->at[i].lo};
        if (learn && g->n_learn + write.size < LEARN_MAX) {
            write.learn = g->n_learn + 1;
            g->n_learn += write.size;
        }
        zo_write_add(g, index, &write);
    }
}

static void see_content(zo_graph *g, uint32_t index, const zt_content *content, uint32_t number)
{
    struct zo_sightings *const s = g->sightings;
    zo_access all = {.write = 1};
    if (!is_looked_at(g, content, &all) || (all.mem == ZO_PAGEABLE && (g->habits & ZO_H_HOST_COPIED)))
        return;
    const uint8_t *const bytes = bytes_of(g, content);
    s->moved.n = 0;
    readers r = {&all, index};
    if (find_host_bytes(g, &all, bytes) && s->changed.n > 0 && (bytes != NULL || content->changed))
        zo_each_user(g, &all, see_reader, &r);
    remember(g, &all, bytes, index, false);
    if (s->moved.n == 0 && s->changed.n == 1 && s->changed.at[0].lo == all.lo && s->changed.at[0].hi == all.hi)
        return; /* as the call itself writes it */
    for (size_t k = 0; k < s->moved.n; k++)
        cut(g, &s->changed, s->moved.at[k].lo, s->moved.at[k].hi);
    keep(g, index, &all, number, &s->changed, false, false);
    keep(g, index, &all, number, &s->moved, true, false);
    keep(g, index, &all, number, &s->either, false, bytes != NULL);
    if (s->changed.n + s->moved.n + s->either.n == 0) {
        span none = {all.lo, all.lo};
        keep(g, index, &all, number, &(spans){&none, 1, 1}, false, false);
    }
}

void zo_host_writes(zo_graph *g, uint32_t index, const zt_call *call)
{
    if (call->n_contents == 0 || sightings_of(g) == NULL)
        return;
    for (uint32_t i = 0; i < call->n_contents; i++)
        if (call->contents[i].kind != ZT_C_READBACK)
            see_content(g, index, &call->contents[i], i + 1);
}

/* ------------------------------------------------------------------------------------------------------- what it read back */

typedef struct reading {
    uint32_t call;
    uint32_t fresh; /* a command that wrote there and was not known to be over when the call began; ZO_NONE */
    bool coarse;
    spans *left; /* what no such command wrote */
} reading;

static bool see_unfinished(void *ctx, zo_graph *g, uint32_t x, const zo_access *access)
{
    reading *const r = ctx;
    if (!access->write || g->instances[x].order == 0 || zo_before(g, x, r->call | ZO_CALL_BIT))
        return false;
    r->fresh = x;
    r->coarse |= access->coarse;
    cut(g, r->left, access->lo, access->hi);
    return !zo_ended_by_return(g, x, r->call);
}

static bool see_unfinished_reach(void *ctx, zo_graph *g, uint32_t x, const zo_access *access)
{
    const zo_access everywhere = {.mem = access->mem, .hi = UINT64_MAX, .write = 1, .coarse = 1};
    return see_unfinished(ctx, g, x, &everywhere);
}

static void read_add(zo_graph *g, uint32_t index, zo_write read, bool learn)
{
    if (learn) {
        read.learn = g->n_learn + 1;
        g->n_learn += read.size;
    }
    if (ZO_PUSH(g, g->unread, g->n_unread, g->room_unread, read))
        g->calls[index].n_unread++;
}

/*
 * What was over before the call began the host may have written over since: it is found out as in what it wrote. What is not over may
 * still be written, and says nothing. Contents are compared if all of their bytes come from commands that ended with the call.
 */
static void see_readback(zo_graph *g, uint32_t index, const zt_content *content, uint32_t number)
{
    zo_access all = {0};
    spans *const left = &g->sightings->left;
    reading r = {.call = index, .fresh = ZO_NONE, .left = left};
    if (!is_looked_at(g, content, &all))
        return;
    left->n = 0;
    add(g, left, all.lo, all.hi);
    if (zo_each_user(g, &all, see_unfinished, &r) || zo_each_reacher(g, all.mem, true, see_unfinished_reach, &r)) {
        read_add(g, index, (zo_write){.content = number}, false);
        return;
    }
    const uint8_t *const bytes = bytes_of(g, content);
    remember(g, &all, bytes, index, true);
    const bool learn = bytes != NULL && g->n_learn + content->len < LEARN_MAX;
    if (left->n > 0) {
        for (size_t i = 0; i < left->n; i++) {
            const span s = left->at[i];
            /* with a hash alone nothing of it is written */
            read_add(g, index, (zo_write){.content = number, .from = s.lo - all.lo, .size = s.hi - s.lo}, learn);
        }
    } else if (learn && !r.coarse) {
        const zo_read one = {index, number, r.fresh, all, g->n_learn + 1};
        if (ZO_PUSH(g, g->reads, g->n_reads, g->room_reads, one))
            g->n_learn += content->len;
    }
}

void zo_host_reads(zo_graph *g, uint32_t index, const zt_call *call)
{
    g->calls[index].unread = (uint32_t)g->n_unread;
    /* bytes say more than the hash of what they lie in, and are remembered last */
    for (unsigned with_bytes = 0; with_bytes < 2 && sightings_of(g) != NULL; with_bytes++)
        for (uint32_t i = 0; i < call->n_contents; i++)
            if (call->contents[i].kind == ZT_C_READBACK && call->contents[i].hash_only != with_bytes)
                see_readback(g, index, &call->contents[i], i + 1);
}

zr_item *zo_taken(const zo_graph *g, size_t *n)
{
    zr_item *const items = malloc((g->n_unread + 1) * sizeof(*items));
    *n = 0;
    for (size_t i = 0; items != NULL && i < g->n_calls; i++)
        for (uint32_t k = 0; k < g->calls[i].n_unread; k++) {
            const zo_write *const part = &g->unread[g->calls[i].unread + k];
            if (part->size > 0)
                items[(*n)++] = (zr_item){.call = g->calls[i].number, .execution = part->content, .kind = ZR_I_WRITE, .from = part->from,
                                          .size = part->size};
        }
    return items;
}

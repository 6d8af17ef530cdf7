/* SPDX-License-Identifier: MIT */
/* Lines: one after the other, whatever of the nodes that may come next has the highest priority. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"

typedef struct scheduler {
    zo_graph *g;
    uint32_t *host;      /* host calls in their order */
    size_t n_host, at;
    bool floats;         /* g->floating is still to come, at `floats_at` of host or later */
    size_t floats_at;
    uint8_t *ended;      /* by instance */
    uint8_t *called, *written; /* by call */
    uint32_t *started;   /* by chain: how many have started */
    uint32_t *prefix;    /* by chain: how many have ended without a gap */
    uint64_t *priority;  /* by instance, then by call, then by call for its writes */
    zo_edge *extra; /* by `after` */
    size_t n_extra;
    uint32_t *line;
    size_t n;
} scheduler;

static bool done(const scheduler *s, uint32_t node)
{
    if (node & ZO_CALL_BIT)
        return s->called[node & ~ZO_CALL_BIT];
    if (node & ZO_WRITE_BIT)
        return s->written[node & ~ZO_WRITE_BIT];
    return s->ended[node];
}

static int by_after(const void *a, const void *b)
{
    const zo_edge *const x = a, *const y = b;
    return x->after < y->after ? -1 : x->after > y->after;
}

static bool held(const scheduler *s, uint32_t node)
{
    size_t low = 0, high = s->n_extra;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (s->extra[mid].after < node)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < s->n_extra && s->extra[low].after == node; low++)
        if (!done(s, s->extra[low].before))
            return true;
    return false;
}

/* What comes behind a floating call in program order does not wait for it. */
static bool returned(const scheduler *s, uint32_t call)
{
    return s->called[call] || (call | ZO_CALL_BIT) == s->g->floating;
}

static bool range_done(const scheduler *s, const zo_range *r)
{
    const zo_chain *const chain = &s->g->chains[r->chain];
    if (!chain->device)
        return r->hi == 0 || returned(s, chain->nodes[r->hi - 1]);
    const uint32_t prefix = s->prefix[r->chain]; /* the one behind it has not ended */
    if (prefix >= r->hi || prefix + 1 >= r->lo)
        return prefix >= r->hi;
    for (uint32_t i = r->lo; i <= r->hi; i++)
        if (!s->ended[chain->nodes[i - 1]])
            return false;
    return true;
}

static bool preds_done(const scheduler *s, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!range_done(s, &s->g->ranges[first + i]))
            return false;
    return true;
}

/* Host signals: the range says what had returned before the call; the call itself has to come as well. */
static bool signals_given(const scheduler *s, const zo_instance *x)
{
    for (uint32_t i = 0; i < x->n_preds; i++) {
        const zo_range *const r = &s->g->ranges[x->preds + i];
        const zo_chain *const chain = &s->g->chains[r->chain];
        if (!chain->device && r->hi < chain->n && !returned(s, chain->nodes[r->hi]))
            return false;
    }
    return true;
}

static void start_all(scheduler *s)
{
    zo_graph *const g = s->g;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t k = 0; k < g->n_chains; k++) {
            const zo_chain *const chain = &g->chains[k];
            while (chain->device && s->started[k] < chain->n) {
                const zo_instance *const x = &g->instances[chain->nodes[s->started[k]]];
                if (x->order == 0 || !s->called[x->submit] || !preds_done(s, x->preds, x->n_preds) || !signals_given(s, x))
                    break;
                s->started[k]++;
                moved = true;
            }
        }
    }
}

/* A wait that succeeded belongs where it returned: other threads may have helped it. So does a free that waits. */
static uint32_t place_of(const zo_call *c)
{
    const bool waits = c->func->kind == ZT_K_SYNC || c->func->kind == ZT_K_QUERY || (c->flags & ZO_WAITS_FOR_USERS);
    return waits && c->end_order != 0 ? c->end_order : c->order;
}

/* What a synchronous submit waited for is over before its thread goes on. */
static bool previous_returned(const scheduler *s, const zo_call *c)
{
    const zo_graph *const g = s->g;
    if (c->position < 2 || c->position > g->chains[c->chain].n)
        return true;
    const zo_call *const previous = &g->calls[g->chains[c->chain].nodes[c->position - 2]];
    const int kind = previous->func->kind;
    return (kind != ZT_K_APPEND && kind != ZT_K_EXECUTE) || preds_done(s, previous->preds, previous->n_preds);
}

static int by_order(const void *a, const void *b, void *ctx)
{
    const zo_graph *const g = ctx;
    const zo_call *const x = &g->calls[*(const uint32_t *)a], *const y = &g->calls[*(const uint32_t *)b];
    return place_of(x) < place_of(y) ? -1 : place_of(x) > place_of(y);
}

static uint64_t roll(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* Carriers and the host by chance, and places at which what runs there falls behind all. */
static void set_pct(scheduler *s, uint64_t value)
{
    const zo_graph *const g = s->g;
    uint64_t *const calls = s->priority + g->n_instances, *const writes = calls + g->n_calls;
    uint64_t state = value;
    const uint64_t host = roll(&state) >> 24, salt = roll(&state);
    for (size_t i = 0; i < g->n_instances; i++) {
        uint64_t of_chain = salt + g->instances[i].chain;
        s->priority[i] = (1ull << 20) + (roll(&of_chain) >> 24);
    }
    for (size_t i = 0; i < g->n_calls; i++)
        calls[i] = writes[i] = (1ull << 20) + host;
    for (uint64_t d = 1; d < value % 8 && g->n_instances > 0; d++) {
        const size_t from = (size_t)(roll(&state) % g->n_instances);
        for (size_t i = 0; i < g->n_instances; i++)
            if (g->instances[i].chain == g->instances[from].chain && g->instances[i].position >= g->instances[from].position)
                s->priority[i] = d;
    }
}

static void set_priorities(scheduler *s, int policy, uint64_t value, const uint32_t *like, size_t n_like)
{
    const zo_graph *const g = s->g;
    const uint64_t high = 1ull << 40, middle = 1ull << 36;
    uint64_t *const calls = s->priority + g->n_instances, *const writes = calls + g->n_calls;
    uint64_t state = value;
    if (policy == ZO_P_PCT) {
        set_pct(s, value);
        return;
    }
    for (size_t i = 0; i < g->n_calls; i++) {
        calls[i] = policy == ZO_P_RANDOM ? roll(&state) >> 16 : middle;
        writes[i] = policy == ZO_P_RANDOM ? roll(&state) >> 16 : policy == ZO_P_LATE ? middle + 1 : middle;
    }
    for (size_t i = 0; i < g->n_instances; i++) {
        const bool mine = g->instances[i].chain == value;
        switch (policy) {
        case ZO_P_LATE:
            s->priority[i] = 1 + i;
            break;
        case ZO_P_CARRIER_FIRST:
            s->priority[i] = mine ? high + g->n_instances - i : 1 + g->n_instances - i;
            break;
        case ZO_P_CARRIER_LAST:
            s->priority[i] = mine ? 1 + g->n_instances - i : high + g->n_instances - i;
            break;
        case ZO_P_RANDOM:
            s->priority[i] = roll(&state) >> 16;
            break;
        default:
            s->priority[i] = high + g->n_instances - i;
            break;
        }
    }
    for (size_t i = 0; policy == ZO_P_LIKE && i < n_like; i++) {
        const uint32_t node = like[i];
        const uint64_t p = high + high + n_like - i; /* above all that is not named */
        if (node & ZO_CALL_BIT)
            calls[node & ~ZO_CALL_BIT] = p;
        else if (node & ZO_WRITE_BIT)
            writes[node & ~ZO_WRITE_BIT] = p;
        else
            s->priority[node] = p;
    }
}

static void take(scheduler *s, uint32_t node)
{
    zo_graph *const g = s->g;
    s->line[s->n++] = node;
    s->floats &= node != g->floating;
    if (node & ZO_CALL_BIT) {
        s->called[node & ~ZO_CALL_BIT] = 1;
        s->at += node != g->floating;
    } else if (node & ZO_WRITE_BIT) {
        s->written[node & ~ZO_WRITE_BIT] = 1;
    } else {
        s->ended[node] = 1;
        const uint32_t k = g->instances[node].chain;
        while (s->prefix[k] < g->chains[k].n && s->ended[g->chains[k].nodes[s->prefix[k]]])
            s->prefix[k]++;
    }
}

static void consider(const scheduler *s, uint32_t node, uint64_t priority, uint32_t *best, uint64_t *most)
{
    if ((*best == ZO_NONE || priority > *most) && !held(s, node)) {
        *best = node;
        *most = priority;
    }
}

/* What a submit waited for is over behind it, not before. */
static bool may_go(const scheduler *s, const zo_call *c)
{
    const bool submits = c->func->kind == ZT_K_APPEND || c->func->kind == ZT_K_EXECUTE;
    return submits || preds_done(s, c->preds, c->n_preds);
}

static uint32_t next(scheduler *s, bool believe)
{
    const zo_graph *const g = s->g;
    uint32_t best = ZO_NONE;
    uint64_t most = 0;
    const uint64_t *const calls = s->priority + g->n_instances, *const writes = calls + g->n_calls;
    if (s->at < s->n_host) {
        const uint32_t h = s->host[s->at];
        const zo_call *const c = &g->calls[h];
        const bool to_write = c->moves && !s->written[h] && (h | ZO_WRITE_BIT) != g->floating;
        if (to_write)
            consider(s, h | ZO_WRITE_BIT, writes[h], &best, &most);
        else if (h != g->patient && (believe || (may_go(s, c) && previous_returned(s, c))))
            consider(s, h | ZO_CALL_BIT, calls[h], &best, &most);
    }
    if (s->floats && s->at >= s->floats_at) {
        const zo_call *const c = &g->calls[g->floating & ~(ZO_CALL_BIT | ZO_WRITE_BIT)];
        if ((g->floating & ZO_WRITE_BIT) || preds_done(s, c->preds, c->n_preds))
            consider(s, g->floating, UINT64_MAX, &best, &most);
    }
    for (size_t k = 0; k < g->n_chains; k++) {
        const zo_chain *const chain = &g->chains[k];
        for (uint32_t i = s->prefix[k]; chain->device && i < s->started[k]; i++)
            if (!s->ended[chain->nodes[i]])
                consider(s, chain->nodes[i], s->priority[chain->nodes[i]], &best, &most);
    }
    if (best == ZO_NONE && s->at < s->n_host && s->host[s->at] == g->patient)
        consider(s, g->patient | ZO_CALL_BIT, 0, &best, &most);
    return best;
}

/* The one host call, or the writes of one, that need not keep its place in the host's order: it may come later. */
static void let_float(scheduler *s)
{
    const uint32_t node = s->g->floating, call = node & ~(ZO_CALL_BIT | ZO_WRITE_BIT);
    for (size_t i = 0; node != ZO_NONE && i < s->n_host; i++) {
        if (s->host[i] != call)
            continue;
        s->floats = true;
        s->floats_at = i;
        if (node & ZO_CALL_BIT) {
            memmove(s->host + i, s->host + i + 1, (s->n_host - i - 1) * sizeof(*s->host));
            s->n_host--;
        }
        return;
    }
}

size_t zo_schedule(zo_graph *g, int policy, uint64_t value, const uint32_t *like, size_t n_like, const zo_edge *extra,
                   size_t n_extra, uint32_t **line, uint32_t *stuck)
{
    const size_t most = g->n_instances + 2 * g->n_calls + 1;
    scheduler s = {.g = g, .host = malloc(most * sizeof(uint32_t)), .ended = calloc(g->n_instances + 1, 1),
                   .called = calloc(g->n_calls + 1, 1), .written = calloc(g->n_calls + 1, 1),
                   .started = calloc(g->n_chains + 1, sizeof(uint32_t)), .prefix = calloc(g->n_chains + 1, sizeof(uint32_t)),
                   .priority = calloc(most, sizeof(uint64_t)), .extra = malloc((n_extra + 1) * sizeof(zo_edge)), .n_extra = n_extra,
                   .line = malloc(most * sizeof(uint32_t))};
    size_t n = 0;
    *stuck = ZO_NONE;
    *line = NULL;
    if (s.host && s.ended && s.called && s.written && s.started && s.prefix && s.priority && s.line && s.extra) {
        if (n_extra > 0) {
            memcpy(s.extra, extra, n_extra * sizeof(*extra));
            qsort(s.extra, n_extra, sizeof(*extra), by_after);
        }
        for (size_t i = 0; i < g->n_calls; i++)
            if (!(g->calls[i].flags & ZO_IGNORED))
                s.host[s.n_host++] = (uint32_t)i;
            else
                s.called[i] = 1;
        qsort_r(s.host, s.n_host, sizeof(*s.host), by_order, g);
        let_float(&s);
        size_t wanted = s.n_host + (s.floats && (g->floating & ZO_CALL_BIT));
        for (size_t i = 0; i < g->n_calls; i++)
            wanted += g->calls[i].moves;
        for (size_t i = 0; i < g->n_instances; i++)
            wanted += g->instances[i].order != 0;
        set_priorities(&s, policy, value, like, n_like);
        while (s.n < wanted) {
            start_all(&s);
            uint32_t node = next(&s, false);
            if (node == ZO_NONE && s.at < s.n_host && n_extra == 0)
                node = next(&s, true); /* the trace says that it returned */
            if (node == ZO_NONE)
                break;
            take(&s, node);
        }
        if (s.n == wanted && wanted > 0) {
            n = s.n;
            *line = s.line;
            s.line = NULL;
        } else if (s.at < s.n_host) {
            *stuck = s.host[s.at] | ZO_CALL_BIT;
        } else if (n_extra > 0) {
            *stuck = extra[0].after;
        }
    }
    free(s.host);
    free(s.ended);
    free(s.called);
    free(s.written);
    free(s.started);
    free(s.prefix);
    free(s.priority);
    free(s.extra);
    free(s.line);
    return n;
}

size_t zo_schedule_floating(zo_graph *g, uint32_t floating, const zo_edge *extra, size_t n_extra, uint32_t **line, uint32_t *stuck)
{
    g->floating = floating;
    const size_t n = zo_schedule(g, ZO_P_EARLY, 0, NULL, 0, extra, n_extra, line, stuck);
    g->floating = ZO_NONE;
    return n;
}

uint32_t zo_graph_write(const zo_graph *g, uint64_t call)
{
    const uint32_t node = zo_graph_node(g, (zo_point){call, 0});
    return node != ZO_NONE && g->calls[node & ~ZO_CALL_BIT].moves ? (node & ~ZO_CALL_BIT) | ZO_WRITE_BIT : ZO_NONE;
}

static zr_item write_item(const zo_call *c, const zo_write *w)
{
    return (zr_item){.call = c->number, .execution = w->content, .kind = ZR_I_WRITE, .from = w->from, .size = w->size, .learn = w->learn};
}

/* The reads that a learning replay compares, in the order of calls. */
static size_t add_reads(const zo_graph *g, uint32_t call, zr_item *items, size_t k)
{
    size_t low = 0, high = g->learn_reads ? g->n_reads : 0;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (g->reads[mid].call < call)
            low = mid + 1;
        else
            high = mid;
    }
    for (; g->learn_reads && low < g->n_reads && g->reads[low].call == call; low++) {
        const zo_read *const r = &g->reads[low];
        items[k++] = write_item(&g->calls[call], &(zo_write){.content = r->content, .size = r->access.hi - r->access.lo, .learn = r->learn});
    }
    return k;
}

zr_item *zo_graph_items(const zo_graph *g, const uint32_t *line, size_t n, size_t *n_items)
{
    zr_item *const items = malloc((n + g->n_writes + g->n_unread + (g->learn_reads ? g->n_reads : 0) + 1) * sizeof(*items));
    size_t k = 0;
    for (size_t i = 0; items != NULL && i < n; i++) {
        const uint32_t node = line[i], index = node & ~(ZO_CALL_BIT | ZO_WRITE_BIT);
        const bool made = node & ZO_CALL_BIT;
        if (!(node & (ZO_CALL_BIT | ZO_WRITE_BIT))) {
            const zo_point p = zo_graph_point(g, node);
            items[k++] = (zr_item){.call = p.call, .execution = p.execution, .kind = ZR_I_COMMAND};
            continue;
        }
        const zo_call *const c = &g->calls[index];
        for (uint32_t w = c->writes; w != 0; w = g->writes[w - 1].next)
            if (g->writes[w - 1].moves == !made)
                items[k++] = write_item(c, &g->writes[w - 1]);
        if (!made)
            continue;
        items[k++] = (zr_item){.call = c->number, .kind = ZR_I_CALL};
        for (uint32_t u = 0; u < c->n_unread; u++)
            items[k++] = write_item(c, &g->unread[c->unread + u]);
        k = add_reads(g, index, items, k);
    }
    *n_items = k;
    return items;
}

uint32_t zo_graph_carrier(const zo_graph *g, uint64_t n)
{
    for (uint32_t i = 0; i < g->n_chains; i++)
        if (g->chains[i].device && --n == 0)
            return i;
    return ZO_NONE;
}

size_t zo_graph_commands(const zo_graph *g, uint64_t number, uint32_t execution, uint32_t *out, size_t room)
{
    const uint32_t call = zo_graph_node(g, (zo_point){number, 0}), one = zo_graph_node(g, (zo_point){number, execution});
    if (one != ZO_NONE && room > 0)
        return out[0] = one, 1;
    const zo_call *const c = call == ZO_NONE ? NULL : &g->calls[call & ~ZO_CALL_BIT];
    size_t n = 0;
    for (uint32_t i = 0; c != NULL && i < c->n && n < room; i++)
        out[n++] = c->first + i;
    return n;
}

bool zo_graph_needs(zo_graph *g, uint32_t first, uint32_t second, char *why, size_t size)
{
    const zo_edge edge = {first, second};
    uint32_t *line, stuck;
    if (zo_schedule(g, ZO_P_EARLY, 0, NULL, 0, &edge, 1, &line, &stuck) > 0) {
        free(line);
        return false;
    }
    const zo_point a = zo_graph_point(g, first), b = zo_graph_point(g, second);
    snprintf(why, size, "#%llu waits for the end of #%llu%s", (unsigned long long)a.call, (unsigned long long)b.call,
             b.execution ? "" : ", which comes first");
    if (stuck != ZO_NONE && stuck != first) {
        const size_t n = strlen(why);
        const zo_point s = zo_graph_point(g, stuck);
        snprintf(why + n, size - n, " by way of #%llu", (unsigned long long)s.call);
    }
    return true;
}

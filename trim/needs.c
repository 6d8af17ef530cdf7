/* SPDX-License-Identifier: MIT */
/* Sets of calls, and closing one over what its calls need. */
#include <fnmatch.h>
#include <stdio.h>

#include "internal.h"

bool zm_grow(zm_needs *n, void *array, size_t have, size_t *room, size_t element)
{
    if (have < *room && have < UINT32_MAX - 8)
        return true;
    const size_t more = *room ? *room * 2 : 8;
    void *const grown = have >= UINT32_MAX - 8 ? NULL : realloc(*(void **)array, more * element);
    if (grown == NULL) {
        n->out_of_memory = true;
        return false;
    }
    *(void **)array = grown;
    *room = more;
    return true;
}

/* @return node 0, which is no call's, when memory is out: out_of_memory ends it all soon. */
uint32_t zm_node(zm_needs *n, uint32_t call)
{
    return ZM_PUSH(n, n->nodes, call) ? (uint32_t)n->nodes.n - 1 : 0;
}

void zm_edge_add(zm_needs *n, uint32_t from, uint32_t to, int kind)
{
    const zm_edge e = {from, to, (uint8_t)kind};
    if (from != to && to != ZM_NONE)
        ZM_PUSH(n, n->edges, e);
}

uint32_t zm_find_call(const zm_needs *n, uint64_t number)
{
    size_t low = 0, high = n->calls.n;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (n->calls.at[mid].number < number)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n->calls.n && n->calls.at[low].number == number ? (uint32_t)low : ZM_NONE;
}

uint64_t zm_needs_calls(const zm_needs *n)
{
    return n->calls.n;
}

/* ---------------------------------------------------------------------------------------------------------------- sets */

static size_t words_of(const zm_needs *n)
{
    return n->calls.n / 64 + 1;
}

zm_keep *zm_keep_new(const zm_needs *needs)
{
    zm_keep *const k = malloc(sizeof(*k));
    uint64_t *const bits = calloc(words_of(needs), sizeof(*bits));
    if (k == NULL || bits == NULL) {
        free(k);
        free(bits);
        return NULL;
    }
    *k = (zm_keep){needs, bits};
    return k;
}

zm_keep *zm_keep_copy(const zm_keep *keep)
{
    zm_keep *const k = zm_keep_new(keep->needs);
    if (k != NULL)
        memcpy(k->bits, keep->bits, words_of(keep->needs) * sizeof(*k->bits));
    return k;
}

void zm_keep_free(zm_keep *keep)
{
    if (keep != NULL)
        free(keep->bits);
    free(keep);
}

bool zm_keep_add(zm_keep *keep, uint64_t number)
{
    const uint32_t call = zm_find_call(keep->needs, number);
    if (call != ZM_NONE)
        zm_put(keep, call);
    return call != ZM_NONE;
}

bool zm_keep_has(const zm_keep *keep, uint64_t number)
{
    const uint32_t call = zm_find_call(keep->needs, number);
    return call != ZM_NONE && zm_in(keep, call);
}

uint64_t zm_keep_add_range(zm_keep *keep, uint64_t from, uint64_t to)
{
    uint64_t found = 0;
    for (uint32_t i = 0; i < keep->needs->calls.n; i++)
        if (keep->needs->calls.at[i].number >= from && keep->needs->calls.at[i].number <= to) {
            zm_put(keep, i);
            found++;
        }
    return found;
}

static uint64_t add_users(zm_keep *keep, size_t object)
{
    const zm_needs *const n = keep->needs;
    uint64_t found = 0;
    for (uint32_t u = n->first_use[object]; u < n->first_use[object + 1]; u++) {
        zm_put(keep, n->users[u]);
        found++;
    }
    return found;
}

uint64_t zm_keep_add_object(zm_keep *keep, const char *name)
{
    const zt_object *const *list;
    const size_t have = zt_objects_list(keep->needs->names, &list);
    uint64_t found = 0;
    for (size_t i = 0; i < have && i < keep->needs->objects.n; i++) {
        char text[128];
        snprintf(text, sizeof(text), "%s#%u", list[i]->kind, list[i]->generation);
        if (strcmp(text, name) == 0)
            found += add_users(keep, i);
    }
    return found;
}

uint64_t zm_keep_add_kernel(zm_keep *keep, const char *pattern)
{
    const zt_object *const *list;
    const size_t have = zt_objects_list(keep->needs->names, &list);
    uint64_t found = 0;
    for (size_t i = 0; i < have && i < keep->needs->objects.n; i++)
        if (strcmp(list[i]->kind, "kernel") == 0 && list[i]->label[0] != '\0' && fnmatch(pattern, list[i]->label, 0) == 0)
            found += add_users(keep, i);
    return found;
}

uint64_t zm_keep_count(const zm_keep *keep)
{
    uint64_t count = 0;
    for (size_t i = 0; i < words_of(keep->needs); i++)
        count += (uint64_t)__builtin_popcountll(keep->bits[i]);
    return count;
}

/* ------------------------------------------------------------------------------------------------------------- closing */

typedef struct closing {
    const zm_needs *n;
    zm_keep *keep;
    uint8_t *seen;      /* by node */
    uint8_t *blamed;    /* by object: its users were taken in for a fault */
    uint8_t *suspect;   /* by call */
    uint32_t *suspects, *todo;
    size_t n_todo;
    unsigned flags;
    uint64_t until;
} closing;

static void reach(closing *c, uint32_t node)
{
    if (c->seen[node])
        return;
    c->seen[node] = 1;
    c->todo[c->n_todo++] = node;
    if (c->n->nodes.at[node] != ZM_NONE)
        zm_put(c->keep, c->n->nodes.at[node]);
}

static bool is_followed(const closing *c, const zm_edge *e)
{
    const uint32_t to = c->n->nodes.at[e->to];
    switch (e->kind) {
    case ZM_E_HARD:
    case ZM_E_LIST:
        return true;
    case ZM_E_COMMAND:
        return !(c->flags & ZM_FEW);
    case ZM_E_DATA:
        return !(c->flags & (ZM_FEW | ZM_NO_DATA));
    case ZM_E_SYNC:
        return (c->flags & ZM_WITH_SYNCS) && (c->until == 0 || c->n->calls.at[to].number <= c->until);
    default:
        return false;
    }
}

/*
 * A call that failed for a fault of the device may be innocent. Whatever was done before to the objects it uses, and to those that
 * were used with them, may be to blame.
 */
static void blame(closing *c)
{
    const zm_needs *const n = c->n;
    size_t have = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < n->calls.n; i++)
        if (zm_in(c->keep, i) && (n->calls.at[i].flags & ZM_C_FAULT) && !c->suspect[i]) {
            c->suspect[i] = 1;
            c->suspects[have++] = last = i;
        }
    while (have > 0) {
        const zm_call *const x = &n->calls.at[c->suspects[--have]];
        for (uint32_t u = x->uses; u < x->uses + x->n_uses; u++) {
            const uint32_t object = n->uses.at[u];
            if (c->blamed[object] || n->objects.at[object].common)
                continue;
            c->blamed[object] = 1;
            for (uint32_t k = n->first_use[object]; k < n->first_use[object + 1] && n->users[k] <= last; k++) {
                const uint32_t user = n->users[k];
                if (c->suspect[user] || (n->calls.at[user].flags & ZM_C_QUIET))
                    continue;
                c->suspect[user] = 1;
                c->suspects[have++] = user;
                reach(c, n->calls.at[user].node);
            }
        }
    }
}

static void spread(closing *c)
{
    const zm_needs *const n = c->n;
    do {
        while (c->n_todo > 0) {
            const uint32_t node = c->todo[--c->n_todo];
            for (uint32_t e = n->first[node]; e < n->first[node + 1]; e++)
                if (is_followed(c, &n->edges.at[e]))
                    reach(c, n->edges.at[e].to);
        }
        if (!(c->flags & ZM_FEW))
            blame(c);
    } while (c->n_todo > 0);
}

/* The calls that begin it all, as far as anything is kept behind them. */
static void add_beginning(closing *c, uint32_t last)
{
    for (uint32_t i = 0; i <= last; i++)
        if ((c->n->calls.at[i].flags & (ZM_C_INIT | ZM_C_MADE)) == (ZM_C_INIT | ZM_C_MADE))
            reach(c, c->n->calls.at[i].node);
}

/* @return index of the last call of the set; ZM_NONE: it is empty. */
static uint32_t last_of(const zm_keep *keep)
{
    for (uint32_t i = (uint32_t)keep->needs->calls.n; i > 0; i--)
        if (zm_in(keep, i - 1))
            return i - 1;
    return ZM_NONE;
}

static void add_ends(closing *c, uint32_t last)
{
    const zm_needs *const n = c->n;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < last; i++) {
            const uint32_t node = n->calls.at[i].node;
            for (uint32_t e = n->first[node]; zm_in(c->keep, i) && e < n->first[node + 1]; e++) {
                const uint32_t end = n->nodes.at[n->edges.at[e].to];
                if (n->edges.at[e].kind != ZM_E_END || end > last || c->seen[n->edges.at[e].to])
                    continue;
                reach(c, n->edges.at[e].to);
                more = true;
            }
        }
        spread(c);
    }
}

int zm_close_over_needs(zm_keep *keep, unsigned flags, uint64_t until)
{
    const zm_needs *const n = keep->needs;
    closing c = {.n = n, .keep = keep, .flags = flags, .until = until, .seen = calloc(n->nodes.n + 1, 1),
                 .blamed = calloc(n->objects.n + 1, 1), .suspect = calloc(n->calls.n + 1, 1),
                 .suspects = malloc((n->calls.n + 1) * sizeof(*c.suspects)), .todo = malloc((n->nodes.n + 1) * sizeof(*c.todo))};
    const bool ok = c.seen != NULL && c.todo != NULL && c.blamed != NULL && c.suspect != NULL && c.suspects != NULL;
    if (ok && last_of(keep) != ZM_NONE) {
        for (uint32_t i = 0; i < n->calls.n; i++)
            if (zm_in(keep, i))
                reach(&c, n->calls.at[i].node);
        const size_t roots = c.n_todo;
        for (size_t r = 0; (flags & ZM_WITH_SUBMITS) && r < roots; r++)
            for (uint32_t e = n->first[c.todo[r]]; e < n->first[c.todo[r] + 1]; e++)
                if (n->edges.at[e].kind == ZM_E_SUBMIT || n->edges.at[e].kind == ZM_E_WORK)
                    reach(&c, n->edges.at[e].to);
        spread(&c);
        add_beginning(&c, last_of(keep));
        spread(&c);
        if (flags & ZM_WITH_ENDS)
            add_ends(&c, last_of(keep));
    }
    free(c.seen);
    free(c.blamed);
    free(c.suspect);
    free(c.suspects);
    free(c.todo);
    return ok ? ZT_OK : ZT_E_MEMORY;
}

/* SPDX-License-Identifier: MIT */
/*
 * Delta debugging over groups of calls: first objects with all their calls, then submits with their commands, then single calls.
 * Leaving out a call leaves out what needs it, so that each candidate is a program that can be run.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "internal.h"

enum { BY_OBJECT, BY_SUBMIT, BY_CALL, LEVELS };

typedef struct search {
    const zm_needs *n;
    const zm_minimise_options *o;
    zm_minimised *result;
    char *file; /* of the candidate */
    zt_error *error;
    int status;
    uint32_t *back, *back_first; /* edges by their `to`: who needs it */
    zm_keep *current;
    uint32_t *group; /* by call */
    uint32_t n_groups;
    ZM_ARRAY(uint64_t) refused; /* hashes of sets that did not do */
} search;

/* -------------------------------------------------------------------------------------------------------- candidates */

static bool goes_with(const zm_edge *e)
{
    return e->kind == ZM_E_HARD || e->kind == ZM_E_LIST || e->kind == ZM_E_SYNC;
}

static bool turn_round(search *s)
{
    const zm_needs *const n = s->n;
    s->back_first = calloc(n->nodes.n + 2, sizeof(*s->back_first));
    s->back = malloc((n->edges.n + 1) * sizeof(*s->back));
    if (s->back_first == NULL || s->back == NULL)
        return false;
    for (size_t i = 0; i < n->edges.n; i++)
        s->back_first[n->edges.at[i].to + 2] += goes_with(&n->edges.at[i]);
    for (size_t i = 2; i < n->nodes.n + 2; i++)
        s->back_first[i] += s->back_first[i - 1];
    for (size_t i = 0; i < n->edges.n; i++)
        if (goes_with(&n->edges.at[i]))
            s->back[s->back_first[n->edges.at[i].to + 1]++] = n->edges.at[i].from;
    return true;
}

/* The current set without the calls of groups from..to-1 and all that needs them. @return NULL when memory is out. */
static zm_keep *without(const search *s, uint32_t from, uint32_t to)
{
    const zm_needs *const n = s->n;
    zm_keep *const left = zm_keep_copy(s->current);
    uint8_t *const gone = calloc(n->nodes.n + 1, 1);
    uint32_t *const todo = malloc((n->nodes.n + 1) * sizeof(*todo));
    size_t have = 0;
    for (uint32_t i = 0; left && gone && todo && i < n->calls.n; i++)
        if (s->group[i] >= from && s->group[i] < to && zm_in(s->current, i)) {
            gone[n->calls.at[i].node] = 1;
            todo[have++] = n->calls.at[i].node;
        }
    while (have > 0) {
        const uint32_t node = todo[--have], call = n->nodes.at[node];
        if (call != ZM_NONE)
            zm_take(left, call);
        for (uint32_t b = s->back_first[node]; b < s->back_first[node + 1]; b++)
            if (!gone[s->back[b]]) {
                gone[s->back[b]] = 1;
                todo[have++] = s->back[b];
            }
    }
    const bool ok = left && gone && todo;
    free(gone);
    free(todo);
    if (!ok) {
        zm_keep_free(left);
        return NULL;
    }
    return left;
}

static bool is_spent(search *s)
{
    const bool spent = (s->o->budget != 0 && s->result->tests >= s->o->budget) || (s->o->stop != NULL && *s->o->stop != 0);
    s->result->spent |= spent;
    return spent;
}

static uint64_t hash_of(const zm_keep *keep)
{
    uint64_t hash = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < keep->needs->calls.n / 64 + 1; i++) {
        hash = (hash ^ keep->bits[i]) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    return hash;
}

static bool still(search *s, const zm_keep *keep)
{
    const uint64_t hash = hash_of(keep);
    for (size_t i = 0; i < s->refused.n; i++)
        if (s->refused.at[i] == hash)
            return false;
    const zm_trim_options how = {.overwrite = true, .level = 1};
    s->status = zm_trim(keep, s->file, &how, s->error);
    if (s->status != ZT_OK)
        return false;
    s->result->tests++;
    if (s->o->still(s->o->ctx, s->file))
        return true;
    if (s->refused.n == s->refused.room) {
        const size_t more = s->refused.room ? s->refused.room * 2 : 64;
        uint64_t *const grown = realloc(s->refused.at, more * sizeof(*grown));
        if (grown == NULL)
            return false; /* it may be asked again, that is all */
        s->refused.at = grown;
        s->refused.room = more;
    }
    s->refused.at[s->refused.n++] = hash;
    return false;
}

/* ------------------------------------------------------------------------------------------------------------ groups */

/* What the call is grouped by: an object, or itself. */
static uint64_t key_of(const search *s, uint32_t index, int level)
{
    const zm_call *const c = &s->n->calls.at[index];
    const uint64_t alone = 1ull << 32 | index;
    if (level == BY_CALL)
        return alone;
    uint32_t list = ZM_NONE, first = ZM_NONE;
    for (uint32_t u = c->uses; u < c->uses + c->n_uses; u++) {
        const zm_object *const o = &s->n->objects.at[s->n->uses.at[u]];
        if (o->common)
            continue;
        if (first == ZM_NONE)
            first = s->n->uses.at[u];
        if (list == ZM_NONE && o->is_list && !o->immediate)
            list = s->n->uses.at[u];
    }
    if (level == BY_OBJECT)
        return list != ZM_NONE ? list : first != ZM_NONE ? first : alone;
    /* a list's commands between two resets go with it: what is left of a list is a submit of its own */
    if (c->kind == ZT_K_APPEND || c->kind == ZT_K_CLOSE || c->kind == ZT_K_EXECUTE)
        return list != ZM_NONE ? list : alone;
    return alone;
}

typedef struct keyed {
    uint64_t key;
    uint32_t call;
} keyed;

static int by_key(const void *a, const void *b)
{
    const keyed *const x = a, *const y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->call < y->call ? -1 : x->call > y->call;
}

static bool make_groups(search *s, int level)
{
    keyed *const k = malloc((s->n->calls.n + 1) * sizeof(*k));
    size_t have = 0;
    s->n_groups = 0;
    if (k == NULL)
        return false;
    for (uint32_t i = 0; i < s->n->calls.n; i++) {
        s->group[i] = ZM_NONE;
        if (zm_in(s->current, i) && !(s->n->calls.at[i].flags & ZM_C_INIT))
            k[have++] = (keyed){key_of(s, i, level), i};
    }
    if (have > 0)
        qsort(k, have, sizeof(*k), by_key);
    for (size_t i = 0; i < have; i++) {
        s->n_groups += i == 0 || k[i].key != k[i - 1].key;
        s->group[k[i].call] = s->n_groups - 1;
    }
    free(k);
    return true;
}

/* Halves, then quarters, ... of the groups are left out, until none can be. */
static bool reduce(search *s, int level)
{
    if (!make_groups(s, level))
        return false;
    for (uint32_t parts = 2; s->n_groups > 0;) {
        if (parts > s->n_groups)
            parts = s->n_groups;
        bool smaller = false;
        for (uint32_t p = parts; p > 0 && !smaller; p--) { /* the last ones first: little depends on them */
            const uint32_t from = (uint32_t)((uint64_t)s->n_groups * (p - 1) / parts), to = (uint32_t)((uint64_t)s->n_groups * p / parts);
            if (is_spent(s))
                return true;
            zm_keep *const candidate = without(s, from, to);
            if (candidate == NULL)
                return false;
            smaller = zm_keep_count(candidate) > 0 && still(s, candidate);
            if (smaller) {
                zm_keep_free(s->current);
                s->current = candidate;
            } else {
                zm_keep_free(candidate);
            }
            if (s->status != ZT_OK)
                return true;
        }
        if (smaller) {
            if (!make_groups(s, level))
                return false;
            parts = parts > 2 ? parts - 1 : 2;
        } else if (parts >= s->n_groups) {
            return true;
        } else {
            parts = parts * 2;
        }
    }
    return true;
}

/* -------------------------------------------------------------------------------------------------------------- files */

/* A name beside `out` that is nobody's. */
static bool reserve(search *s, const char *out)
{
    const size_t n = strlen(out) + sizeof(".XXXXXX");
    s->file = malloc(n);
    if (s->file == NULL)
        return false;
    snprintf(s->file, n, "%s.XXXXXX", out);
    const int fd = mkostemp(s->file, O_CLOEXEC);
    if (fd < 0) {
        s->error->status = s->status = ZT_E_IO;
        snprintf(s->error->text, sizeof(s->error->text), "%.300s: no file can be made beside it: %s", out, strerror(errno));
        free(s->file);
        s->file = NULL;
        return true;
    }
    close(fd);
    return true;
}

static void clean_up(search *s)
{
    if (s->file != NULL) {
        const size_t n = strlen(s->file) + sizeof(".partial");
        char *const partial = malloc(n);
        unlink(s->file);
        if (partial != NULL) {
            snprintf(partial, n, "%s.partial", s->file);
            unlink(partial);
        }
        free(partial);
    }
    zm_keep_free(s->current);
    free(s->refused.at);
    free(s->file);
    free(s->group);
    free(s->back);
    free(s->back_first);
}

int zm_minimise(const zm_keep *start, const char *out, const zm_minimise_options *options, zm_minimised *result, zt_error *error)
{
    const zm_needs *const needs = start->needs;
    search s = {.n = needs, .o = options, .result = result, .error = error, .status = ZT_OK,
                .current = zm_keep_copy(start), .group = malloc((needs->calls.n + 1) * sizeof(*s.group))};
    *result = (zm_minimised){.before = zm_keep_count(start)};
    error->text[0] = 0;
    if (!options->overwrite && access(out, F_OK) == 0) {
        error->status = s.status = ZT_E_EXISTS;
        snprintf(error->text, sizeof(error->text), "%.300s: exists and is not overwritten", out);
    }
    bool ok = s.current != NULL && s.group != NULL && turn_round(&s);
    if (ok && s.status == ZT_OK)
        ok = reserve(&s, out);
    if (ok && s.status == ZT_OK && !still(&s, s.current) && s.status == ZT_OK)
        s.status = ZT_END;
    for (int level = 0; ok && s.status == ZT_OK && level < LEVELS; level++)
        ok = reduce(&s, level);
    if (ok && s.status == ZT_OK) {
        const zm_trim_options how = {.overwrite = options->overwrite, .level = ZM_LEVEL_TO_KEEP};
        result->after = zm_keep_count(s.current);
        s.status = zm_trim(s.current, out, &how, error);
    }
    if (!ok) {
        error->status = s.status = ZT_E_MEMORY;
        snprintf(error->text, sizeof(error->text), "%.300s: not enough memory to minimise", out);
    }
    clean_up(&s);
    return s.status;
}

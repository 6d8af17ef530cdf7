/* SPDX-License-Identifier: MIT */
/* Where two calls of one function differ: arguments, members, results, contents. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MOST_LEAVES 4096u /* of a call that are compared one by one */
#define AHEAD 64u         /* leaves of which a side may have more than the other in one place */

typedef struct leaf {
    char *path, *text;
    uint64_t compare;
} leaf;

typedef struct level { /* an array, struct or chain that is open */
    const zt_field *field;
    const char *name;
    uint64_t element; /* which of the array around it; UINT64_MAX: none */
    uint64_t next;    /* of this array */
    bool array;
} level;

typedef struct leaves {
    zd_reader *reader;
    leaf *at;
    size_t n, room;
    level levels[40];
    unsigned depth;
    size_t candidate; /* the next one's place in reader->known */
    bool out, failed;
} leaves;

static level level_of(leaves *l, const zt_node *node)
{
    level *const top = l->depth > 0 && l->depth <= 40 ? &l->levels[l->depth - 1] : NULL;
    level here = {.field = node->field, .element = UINT64_MAX};
    if (top != NULL && top->array && top->field == node->field && node->field != NULL)
        here.element = top->next++;
    else
        here.name = node->field != NULL ? node->field->name : node->type != NULL ? node->type->name : "pNext";
    return here;
}

static void add_level(FILE *out, const level *l, bool first)
{
    if (l->element != UINT64_MAX)
        fprintf(out, "[%" PRIu64 "]", l->element);
    else
        fprintf(out, "%s%s", first ? "" : ".", l->name);
}

static void add(leaves *l, const char *path, const char *text, uint64_t compare)
{
    if (l->n >= MOST_LEAVES)
        return;
    if (!zd_room(&l->at, l->n, &l->room, sizeof(*l->at))) {
        l->failed = true;
        return;
    }
    l->at[l->n++] = (leaf){strdup(path), strdup(text), compare};
    l->failed |= l->at[l->n - 1].path == NULL || l->at[l->n - 1].text == NULL;
}

/* What makes it the same as that of the other side: the object's common name and the place in it. */
static uint64_t compare_candidate(const zd_reader *r, size_t index, uint64_t otherwise)
{
    const zd_known *const k = index < r->n_known ? &r->known[index] : NULL;
    if (k == NULL || k->object == ZD_NONE)
        return zd_mix(otherwise, 1);
    return zd_mix(r->side->names[k->object], k->what.type ? 0 : k->what.value - r->side->objects[k->object].value);
}

static void see_leaf(void *ctx, const zt_node *node, bool candidate)
{
    leaves *const l = ctx;
    const level here = level_of(l, node);
    char *path = NULL;
    size_t size;
    uint64_t compare = l->reader->arguments.hash;
    if (candidate)
        compare = compare_candidate(l->reader, l->candidate++, compare);
    if (l->n >= MOST_LEAVES)
        return;
    FILE *const out = open_memstream(&path, &size);
    if (out == NULL) {
        l->failed = true;
        return;
    }
    fputs(l->out ? "-> " : "", out);
    for (unsigned i = 0; i < l->depth && i < 40; i++)
        add_level(out, &l->levels[i], i == 0);
    add_level(out, &here, l->depth == 0);
    if (fclose(out) != 0) {
        l->failed = true;
    } else {
        zt_text_clear(l->reader->text);
        zt_print_value(l->reader->text, l->reader->names, node);
        add(l, path, zt_text_get(l->reader->text, NULL), compare);
    }
    free(path);
}

static void see_shape(void *ctx, const zt_node *node)
{
    leaves *const l = ctx;
    switch (node->kind) {
    case ZT_N_ARRAY:
    case ZT_N_STRUCT:
    case ZT_N_CHAIN: {
        level here = level_of(l, node);
        here.array = node->kind == ZT_N_ARRAY;
        if (l->depth < 40)
            l->levels[l->depth] = here;
        l->depth++;
        break;
    }
    case ZT_N_ARRAY_END:
    case ZT_N_STRUCT_END:
    case ZT_N_CHAIN_END:
        l->depth -= l->depth > 0;
        break;
    case ZT_N_NULL:
    case ZT_N_LOST: {
        const level here = level_of(l, node);
        char path[256];
        snprintf(path, sizeof(path), "%s%s", l->out ? "-> " : "", here.name ? here.name : "pointer");
        add(l, path, node->kind == ZT_N_NULL ? "NULL" : "not kept", node->kind);
        break;
    }
    default:
        break;
    }
}

static void collect(leaves *l, zd_reader *r)
{
    const zt_call *const call = r->call;
    zd_arguments *const a = &r->arguments;
    const unsigned ignore = r->side->options->ignore;
    *l = (leaves){.reader = r};
    a->leaf = see_leaf;
    a->shape = see_shape;
    a->ctx = l;
    if (!(ignore & ZD_ARGS))
        zd_walk(a, call, ZD_NONE, ZT_ENTER);
    const zt_type *const returns = &zt_types[call->func->return_type];
    if (!(ignore & ZD_RESULTS)) {
        char text[64];
        l->candidate = r->n_enter;
        l->depth = 0;
        if (!call->returned) {
            add(l, "result", "never returned", 1);
        } else if (returns->cls == ZT_HANDLE && call->result != 0) {
            const zt_object *const o = zt_object_of_handle(r->names, returns, (uint64_t)call->result);
            snprintf(text, sizeof(text), "%s#%u", o ? o->kind : "handle", o ? o->generation : 0);
            add(l, "result", text, compare_candidate(r, l->candidate++, 2));
        } else {
            const bool result = strcmp(returns->name, "ze_result_t") == 0;
            snprintf(text, sizeof(text), result ? "%s" : "%.0s%lld", result ? zt_result_name(call->result) : "", (long long)call->result);
            add(l, "result", text, (uint64_t)call->result);
        }
        l->out = true;
        if (call->returned)
            zd_walk(a, call, ZD_NONE, ZT_LEAVE);
    }
    a->leaf = NULL;
    a->shape = NULL;
}

static void clear(leaves *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->at[i].path);
        free(l->at[i].text);
    }
    free(l->at);
}

typedef struct telling {
    void (*tell)(void *ctx, const zd_detail *detail);
    void *ctx;
    uint32_t n;
} telling;

static void tell(telling *t, const char *what, const char *a, const char *b)
{
    const zd_detail detail = {what, a, b};
    t->n++;
    if (t->tell != NULL)
        t->tell(t->ctx, &detail);
}

static void compare_leaves(telling *t, const leaves *a, const leaves *b)
{
    size_t j = 0;
    for (size_t i = 0; i < a->n; i++) {
        size_t k = j;
        while (k < b->n && k < j + AHEAD && strcmp(a->at[i].path, b->at[k].path) != 0)
            k++;
        if (k == b->n || k == j + AHEAD) {
            tell(t, a->at[i].path, a->at[i].text, "");
            continue;
        }
        for (; j < k; j++)
            tell(t, b->at[j].path, "", b->at[j].text);
        if (a->at[i].compare != b->at[k].compare)
            tell(t, a->at[i].path, a->at[i].text, b->at[k].text);
        j = k + 1;
    }
    for (; j < b->n; j++)
        tell(t, b->at[j].path, "", b->at[j].text);
}

static const void *bytes_of(const zd_reader *r, const zt_content *c)
{
    uint64_t len = 0;
    if (c->data != NULL)
        return c->data;
    const void *const data = c->hash_only ? NULL : zt_trace_blob(r->side->trace, &c->hash, &len);
    return len == c->len ? data : NULL;
}

static const zt_content *nth(const zt_call *call, bool readback, uint32_t n)
{
    for (uint32_t i = 0; i < call->n_contents; i++)
        if ((call->contents[i].kind == ZT_C_READBACK) == readback && n-- == 0)
            return &call->contents[i];
    return NULL;
}

static bool holds_times(const zd_reader *r, uint64_t address)
{
    for (size_t i = 0; i < r->n_known; i++)
        if (r->known[i].what.type == NULL && r->known[i].what.value == address && r->known[i].object != ZD_NONE)
            return r->side->objects[r->known[i].object].times;
    return false;
}

static void compare_contents(telling *t, zd_reader *a, zd_reader *b, bool readback, int view, const zd_tolerance *tolerance)
{
    for (uint32_t i = 0;; i++) {
        const zt_content *const x = nth(a->call, readback, i), *const y = nth(b->call, readback, i);
        if (x == NULL && y == NULL)
            break;
        const zd_reader *const named = x != NULL ? a : b;
        const uint64_t address = (x != NULL ? x : y)->addr;
        const zt_object *const o = zt_object_of_address(named->names, address);
        char what[128] = "contents of host memory", count[80] = "", text_a[96] = "", text_b[96] = "", whole[256];
        if (o != NULL)
            snprintf(what, sizeof(what), "contents of %s#%u+%" PRIu64, o->kind, o->generation, address - o->value);
        if (x == NULL || y == NULL || x->len != y->len) {
            snprintf(text_a, sizeof(text_a), x ? "%" PRIu64 " bytes" : "none", x ? x->len : 0);
            snprintf(text_b, sizeof(text_b), y ? "%" PRIu64 " bytes" : "none", y ? y->len : 0);
            tell(t, what, text_a, text_b);
            continue;
        }
        if (memcmp(&x->hash, &y->hash, sizeof(x->hash)) == 0 || holds_times(a, x->addr))
            continue;
        const void *const p = bytes_of(a, x), *const q = bytes_of(b, y);
        if (p == NULL || q == NULL) {
            tell(t, what, p ? "kept" : "only a hash was kept", q ? "kept" : "only a hash was kept");
            continue;
        }
        if (!zd_contents_differ(p, q, x->len, view, tolerance, text_a, text_b, sizeof(text_a), count, sizeof(count)))
            continue;
        snprintf(whole, sizeof(whole), "%s, %s", what, count);
        tell(t, whole, text_a, text_b);
    }
}

uint32_t zd_details(zd_reader *a, zd_reader *b, int view, const zd_tolerance *tolerance, void (*told)(void *ctx, const zd_detail *detail),
                    void *ctx)
{
    leaves x, y;
    telling t = {told, ctx, 0};
    collect(&x, a);
    collect(&y, b);
    const bool failed = x.failed || y.failed;
    if (!failed) {
        compare_leaves(&t, &x, &y);
        if (!(a->side->options->ignore & ZD_MEMORY)) {
            compare_contents(&t, a, b, false, view, tolerance);
            compare_contents(&t, a, b, true, view, tolerance);
        }
    }
    clear(&x);
    clear(&y);
    return failed ? UINT32_MAX : t.n;
}

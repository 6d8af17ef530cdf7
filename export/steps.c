/* SPDX-License-Identifier: MIT */
/*
 * The two lines as one, with what is in both where both have it; and which commands have to wait behind a gate: all but those that
 * run where they are submitted, in the order of their list, in both lines.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MOST_CELLS (64u << 20)

static bool same(const zx_step *a, const zx_step *b)
{
    return a->call == b->call && a->execution == b->execution && a->kind == b->kind && a->from == b->from && a->size == b->size;
}

/* ------------------------------------------------------------------------------------------------------------- lines */

static bool add(zx_line *l, zx_step step)
{
    return ZX_PUSH(l->steps, l->n, l->room, step);
}

/* The call's contents come just before it, unless the line says otherwise. */
static bool add_contents(zx_line *out, const zx_call *c, const zr_item *items, size_t n)
{
    for (uint32_t k = 0; k < c->n_contents; k++) {
        const uint32_t number = c->contents[k].number;
        bool held = c->contents[k].readback || c->contents[k].n_parts == 0;
        for (size_t i = 0; i < n && !held; i++)
            held = items[i].call == c->number && items[i].kind == ZR_I_WRITE &&
                   (items[i].execution == 0 || items[i].execution == number);
        if (!held && !add(out, (zx_step){.call = c->number, .execution = number, .kind = ZR_I_WRITE, .size = c->contents[k].len}))
            return false;
    }
    return true;
}

/* Bytes of a content, as an item says. */
static bool add_write(zx_line *out, const zx_call *c, const zx_content *content, const zr_item *item)
{
    if (content->readback || content->n_parts == 0 || (item->execution != 0 && item->execution != content->number))
        return true;
    const bool all = item->execution == 0;
    const uint64_t from = all ? 0 : item->from, left = from < content->len ? content->len - from : 0;
    const uint64_t size = all || item->size > left ? left : item->size;
    zx_step *const last = out->n > 0 ? &out->steps[out->n - 1] : NULL;
    if (size > 0 && last != NULL && last->kind == ZR_I_WRITE && last->call == c->number && last->execution == content->number &&
        (last->from + last->size == from || from + size == last->from)) { /* page by page, up or down */
        last->from = last->from < from ? last->from : from;
        last->size += size;
        return true;
    }
    return size == 0 || add(out, (zx_step){c->number, content->number, ZR_I_WRITE, 0, from, size});
}

static size_t place_of(const zx_line *l, uint64_t call, uint32_t execution, uint8_t kind)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->steps[i].kind == kind && l->steps[i].call == call && l->steps[i].execution == execution)
            return i;
    return SIZE_MAX;
}

static bool insert(zx_line *l, size_t at, zx_step step)
{
    if (!add(l, step))
        return false;
    memmove(l->steps + at + 1, l->steps + at, (l->n - 1 - at) * sizeof(*l->steps));
    l->steps[at] = step;
    return true;
}

/*
 * Commands that were submitted and run in no line: the first of each queue is let go, so that what holds it back is what the recorded
 * program did, and no gate of ours. Those behind it stay behind it.
 */
static bool let_stuck(zx_export *x, zx_line *l)
{
    const size_t most = x->n_objects;
    bool *const stuck = calloc(most + 1, 1);
    uint64_t *const last = calloc(most + 1, sizeof(*last)); /* index of the step behind which it comes, + 1 */
    bool ok = stuck != NULL && last != NULL;
    for (size_t i = 0; ok && i < l->n; i++) {
        const zx_call *const c = l->steps[i].kind == ZR_I_CALL ? zx_call_of(x, l->steps[i].call) : NULL;
        const uint32_t carrier = c == NULL ? ZX_NONE : c->queue != ZX_NONE ? c->queue : c->list;
        size_t behind = i;
        for (uint32_t k = 0; c != NULL && carrier != ZX_NONE && k < c->n_submits && ok && !stuck[carrier]; k++) {
            const zx_submit *const s = &x->submits[c->submits + k];
            const uint64_t number = x->calls[s->call].number;
            const size_t at = place_of(l, number, s->execution, ZR_I_COMMAND);
            if (at != SIZE_MAX) {
                behind = at > behind ? at : behind;
                if (behind + 1 > last[carrier])
                    last[carrier] = behind + 1;
                continue;
            }
            if (last[carrier] > behind + 1)
                behind = last[carrier] - 1;
            stuck[carrier] = true;
            ok = insert(l, behind + 1, (zx_step){.call = number, .execution = s->execution, .kind = ZX_LET});
            for (size_t q = 0; q <= most; q++) /* the line has moved */
                last[q] += last[q] > behind + 1;
        }
    }
    free(stuck);
    free(last);
    return ok;
}

int zx_line_of(zx_export *x, const zr_item *items, size_t n, zx_line *out)
{
    out->n = 0;
    for (size_t i = 0; i < n; i++) {
        zx_call *const c = zx_call_of(x, items[i].call);
        bool ok = true;
        if (c == NULL || (!c->needed && c->number < ZX_ADDED_CLOSE))
            continue;
        if (items[i].kind == ZR_I_WRITE) {
            for (uint32_t k = 0; k < c->n_contents && ok; k++)
                ok = add_write(out, c, &c->contents[k], &items[i]);
        } else if (items[i].kind == ZR_I_CALL) {
            ok = add_contents(out, c, items, n) && add(out, (zx_step){.call = c->number, .kind = ZR_I_CALL});
        } else {
            ok = add(out, (zx_step){.call = c->number, .execution = items[i].execution, .kind = ZR_I_COMMAND});
        }
        if (!ok)
            return zx_no_memory(x);
        if (out->n > ZX_MOST_STEPS) /* what follows looks through the line for each step */
            return zx_refuse(x, "a program of more than %u steps is none that anybody reads; make a smaller trace first", ZX_MOST_STEPS);
    }
    return let_stuck(x, out) ? ZT_OK : zx_no_memory(x);
}

/* ------------------------------------------------------------------------------------------------------------- merge */

static bool emit(zx_export *x, const zx_step *s, uint8_t in)
{
    zx_step step = *s;
    step.in = in;
    return add(&x->both, step);
}

/* Longest common part of what differs, by a table; what is too long for it stands side by side. */
static bool merge_middle(zx_export *x, size_t from, size_t end_bad, size_t end_good)
{
    const zx_step *const a = x->bad.steps + from, *const b = x->good.steps + from;
    const size_t n = end_bad - from, m = end_good - from;
    uint32_t *const table = n == 0 || m == 0 || (n + 1) > MOST_CELLS / (m + 1) ? NULL : calloc((n + 1) * (m + 1), sizeof(*table));
    bool ok = true;
    size_t i = 0, k = 0;
#define CELL(row, column) table[(row) * (m + 1) + (column)]
    for (size_t r = n; table != NULL && r-- > 0;)
        for (size_t c = m; c-- > 0;)
            CELL(r, c) = same(&a[r], &b[c])                     ? CELL(r + 1, c + 1) + 1
                         : CELL(r + 1, c) >= CELL(r, c + 1) ? CELL(r + 1, c)
                                                            : CELL(r, c + 1);
    while (ok && (i < n || k < m)) {
        if (table != NULL && i < n && k < m && same(&a[i], &b[k])) {
            ok = emit(x, &a[i], ZX_BAD | ZX_GOOD);
            i++;
            k++;
        } else if (k >= m || (i < n && (table == NULL || CELL(i + 1, k) >= CELL(i, k + 1)))) {
            ok = emit(x, &a[i++], ZX_BAD);
        } else {
            ok = emit(x, &b[k++], ZX_GOOD);
        }
    }
    free(table);
    return ok;
#undef CELL
}

int zx_merge(zx_export *x)
{
    size_t first = 0, end_bad = x->bad.n, end_good = x->good.n;
    bool ok = true;
    while (first < end_bad && first < end_good && same(&x->bad.steps[first], &x->good.steps[first]))
        ok = ok && emit(x, &x->bad.steps[first++], ZX_BAD | ZX_GOOD);
    while (end_bad > first && end_good > first && same(&x->bad.steps[end_bad - 1], &x->good.steps[end_good - 1])) {
        end_bad--;
        end_good--;
    }
    ok = ok && merge_middle(x, first, end_bad, end_good);
    for (; ok && end_bad < x->bad.n; end_bad++)
        ok = emit(x, &x->bad.steps[end_bad], ZX_BAD | ZX_GOOD);
    return ok ? ZT_OK : zx_no_memory(x);
}

/* ------------------------------------------------------------------------------------------------------------- gates */

/* Whether the commands of that submit are the next steps of the line. */
static bool runs_at_once(const zx_export *x, const zx_line *l, size_t at, const zx_call *c)
{
    for (uint32_t k = 0; k < c->n_submits; k++) {
        const zx_submit *const s = &x->submits[c->submits + k];
        const zx_step step = {.call = x->calls[s->call].number, .execution = s->execution, .kind = ZR_I_COMMAND};
        if (at + 1 + k >= l->n || !same(&l->steps[at + 1 + k], &step))
            return false;
    }
    return true;
}

static bool drop(bool *flag)
{
    const bool was = *flag;
    *flag = false;
    return was;
}

/* One look at a line. @return whether something changed. */
static bool look(zx_export *x, const zx_line *l, zx_gates *g, bool *dirty)
{
    bool changed = false;
    for (size_t i = 0; i < l->n; i++) {
        const zx_call *const c = l->steps[i].kind == ZR_I_CALL ? zx_call_of(x, l->steps[i].call) : NULL;
        if (c == NULL || c->n_submits == 0)
            continue;
        if (c->func->kind == ZT_K_APPEND) {
            if (!runs_at_once(x, l, i, c))
                changed |= drop(&g->call_kept[c - x->calls]);
            continue;
        }
        bool kept = runs_at_once(x, l, i, c) && c->queue != ZX_NONE && !dirty[c->queue];
        for (uint32_t k = 0; k < c->n_lists; k++)
            kept = kept && g->list_kept[c->lists[k]];
        for (uint32_t k = 0; !kept && k < c->n_lists; k++)
            changed |= drop(&g->list_kept[c->lists[k]]);
        if (!kept && c->queue != ZX_NONE && !dirty[c->queue])
            changed = dirty[c->queue] = true;
    }
    return changed;
}

int zx_choose_gates(zx_export *x, zx_gates *g)
{
    bool *const dirty = calloc(x->n_objects + 1, 1);
    g->list_kept = malloc(x->n_objects + 1);
    g->call_kept = malloc(x->n_calls + 1);
    if (dirty == NULL || g->list_kept == NULL || g->call_kept == NULL) {
        free(dirty);
        return zx_no_memory(x);
    }
    memset(g->list_kept, 1, x->n_objects + 1);
    memset(g->call_kept, 1, x->n_calls + 1);
    for (bool changed = true; changed;) {
        changed = look(x, &x->bad, g, dirty);
        changed |= look(x, &x->good, g, dirty);
    }
    free(dirty);
    return ZT_OK;
}

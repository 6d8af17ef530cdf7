/* SPDX-License-Identifier: MIT */
/*
 * A trace against its own replay: the replay waits with a time limit of its own, also where the program had been told of an end in another
 * way, and may find done what the program had found on its way. None of that is a difference.
 */
#include <stdlib.h>

#include "internal.h"

#define NOT_READY 1

static bool is_wait(const zd_diff *d, int side, uint32_t index)
{
    const int kind = d->side[side].funcs[d->side[side].func[index]]->kind;
    return kind == ZT_K_SYNC || kind == ZT_K_QUERY;
}

static bool done_earlier(const zd_diff *d, uint32_t a, uint32_t b)
{
    int64_t was, is;
    bool known[2];
    return is_wait(d, 0, a) && is_wait(d, 1, b) && zd_result(d, 0, a, &was, &known[0]) && zd_result(d, 1, b, &is, &known[1]) && known[0] && known[1] &&
           was == NOT_READY && is == 0;
}

/* One section, its script from `ops`; its line of B is made anew. */
static bool rewrite(zd_diff *d, zd_section *s, const zd_op *ops, size_t n, uint32_t **line)
{
    uint32_t m = 0;
    bool ok = (*line = malloc(((size_t)s->b.n + 1) * sizeof(**line))) != NULL;
    s->first = d->n_script;
    s->n = 0;
    for (size_t k = 0; k < n && ok; k++)
        for (uint32_t x = 0; x < ops[k].n && ok; x++) {
            const zd_op o = ops[k];
            const uint32_t a = o.a + (o.kind != ZD_ADDED ? x : 0), b = o.b + (o.kind != ZD_REMOVED ? x : 0);
            if (o.kind == ZD_ADDED && is_wait(d, 1, zd_index(&s->b, b)))
                continue;
            const bool same = o.kind == ZD_CHANGED && done_earlier(d, zd_index(&s->a, a), zd_index(&s->b, b));
            ok = zd_add_op(d, s, same ? ZD_EQUAL : o.kind, a, m, 1);
            if (o.kind != ZD_REMOVED)
                (*line)[m++] = zd_index(&s->b, b);
        }
    if (ok)
        s->b = (zd_sequence){d->side[1].hash, *line, m};
    return ok;
}

int zd_forget_waits(zd_diff *d)
{
    zd_op *const old = d->script;
    d->lines = calloc(d->n_sections + 1, sizeof(*d->lines));
    bool ok = d->lines != NULL;
    d->script = NULL;
    d->n_script = d->script_room = 0;
    for (size_t i = 0; i < d->n_sections && ok; i++)
        ok = rewrite(d, &d->sections[i], old + d->sections[i].first, d->sections[i].n, &d->lines[i]);
    free(old);
    return ok ? ZT_OK : ZT_E_MEMORY;
}

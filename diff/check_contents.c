/* SPDX-License-Identifier: MIT */
/* Contents that need not be the same to the last bit: those of calls that are equal otherwise are looked at one by one. */
#include <stdlib.h>

#include "internal.h"

static bool contents_are_equal(const zd_diff *d, uint32_t a, uint32_t b)
{
    const zd_extra *x, *y;
    const size_t n = zd_extras_of(&d->side[0].contents, a, &x);
    if (zd_extras_of(&d->side[1].contents, b, &y) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (x[i].hash != y[i].hash)
            return false;
    return true;
}

int zd_check_contents(zd_diff *d, zd_reader *a, zd_reader *b, int view, const zd_tolerance *tolerance)
{
    zd_op *const old = d->script;
    const zt_objects *names;
    bool ok = true;
    d->script = NULL;
    d->n_script = d->script_room = 0;
    for (size_t i = 0; i < d->n_sections && ok; i++) {
        zd_section *const s = &d->sections[i];
        const zd_op *const ops = old + s->first;
        const size_t n = s->n;
        s->first = d->n_script;
        s->n = 0;
        for (size_t k = 0; k < n && ok; k++) {
            if (ops[k].kind != ZD_EQUAL) {
                ok = zd_add_op(d, s, ops[k].kind, ops[k].a, ops[k].b, ops[k].n);
                continue;
            }
            for (uint32_t x = 0; x < ops[k].n && ok; x++) {
                const uint32_t p = zd_index(&s->a, ops[k].a + x), q = zd_index(&s->b, ops[k].b + x);
                const bool differ = !contents_are_equal(d, p, q) && zd_fetch(a, p, &names) != NULL && zd_fetch(b, q, &names) != NULL &&
                                    zd_details(a, b, view, tolerance, NULL, NULL) > 0;
                ok = zd_add_op(d, s, differ ? ZD_CHANGED : ZD_EQUAL, ops[k].a + x, ops[k].b + x, 1);
            }
        }
    }
    free(old);
    return ok ? ZT_OK : ZT_E_MEMORY;
}

/* SPDX-License-Identifier: MIT */
/* Single calls of a comparison, read again, with names for their objects from what the comparison has kept. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define NEAR 8192u       /* calls that are rather read over than sought */
#define MOST_KNOWN 4096u /* names that a call gets; what is beyond them is shown by its value */

zd_reader *zd_reader_new(const zd_diff *diff, int side)
{
    zd_reader *const r = calloc(1, sizeof(*r));
    if (r == NULL || (r->text = zt_text_new()) == NULL) {
        free(r);
        return NULL;
    }
    r->diff = diff;
    r->side = r->cursor.side = r->arguments.side = &diff->side[side];
    r->position = UINT64_MAX;
    return r;
}

void zd_reader_free(zd_reader *r)
{
    if (r == NULL)
        return;
    zt_objects_free(r->names);
    zt_text_free(r->text);
    free(r->cursor.list);
    free(r->arguments.operands);
    free(r->arguments.candidates.at);
    free(r->known);
    free(r);
}

static void know(zd_reader *r, zd_candidate what, uint32_t object)
{
    if (r->n_known < MOST_KNOWN && zd_room(&r->known, r->n_known, &r->known_room, sizeof(*r->known)))
        r->known[r->n_known++] = (zd_known){what, object};
}

static void name_known(zd_reader *r)
{
    for (size_t i = 0; i < r->n_known; i++) {
        const zd_known *const k = &r->known[i];
        if (k->object == ZD_NONE)
            continue;
        const zd_object *const o = &r->side->objects[k->object];
        if (k->what.type != NULL) {
            if (zt_object_of_handle(r->names, k->what.type, k->what.value) == NULL)
                zt_objects_put(r->names, k->what.type, k->what.value, 0, o->generation);
            continue;
        }
        const zt_object *const there = zt_object_of_address(r->names, k->what.value);
        if (there == NULL || there->value != o->value)
            zt_objects_put(r->names, NULL, o->value, k->what.value - o->value + 1, o->generation);
    }
}

static void know_contents(zd_reader *r)
{
    const zd_extra *x;
    const size_t n = zd_extras_of(&r->side->contents, r->index, &x);
    size_t at = 0;
    for (int leave = 0; leave < 2; leave++)
        for (uint32_t i = 0; i < r->call->n_contents && at < n; i++)
            if ((r->call->contents[i].kind == ZT_C_READBACK) == leave)
                know(r, (zd_candidate){NULL, r->call->contents[i].addr}, x[at++].object);
}

const zt_call *zd_fetch(zd_reader *r, uint32_t index, const zt_objects **names)
{
    const uint64_t number = zd_number(r->diff, (int)(r->side - r->diff->side), index);
    if (r->call == NULL || index != r->index) {
        if (r->position == UINT64_MAX || number <= r->position || number - r->position > NEAR)
            zt_trace_seek(r->side->trace, number);
        do {
            if (zt_trace_next(r->side->trace, &r->call) != ZT_OK) {
                r->position = UINT64_MAX;
                r->call = NULL;
                return NULL;
            }
            r->position = r->call->number;
        } while (r->call->number < number);
        if (r->call->number != number) {
            r->call = NULL;
            return NULL;
        }
        r->index = index;
    }
    zt_objects_free(r->names);
    r->names = zt_objects_new();
    if (r->names == NULL)
        return NULL;
    r->n_known = 0;
    const uint32_t *objects;
    const size_t n = zd_operands_get(&r->cursor, index, &objects);
    zd_walk(&r->arguments, r->call, ZD_NONE, ZT_ENTER);
    for (size_t i = 0; i < r->arguments.candidates.n && i < n; i++)
        know(r, r->arguments.candidates.at[i], objects[i]);
    r->n_enter = r->n_known;
    const zd_extra *x;
    size_t outs = zd_extras_of(&r->side->outs, index, &x);
    const zt_type *const returns = &zt_types[r->call->func->return_type];
    if (r->call->returned && returns->cls == ZT_HANDLE && r->call->result != 0 && outs > 0) {
        know(r, (zd_candidate){returns, (uint64_t)r->call->result}, x->object);
        x++;
        outs--;
    }
    if (r->call->returned)
        zd_walk(&r->arguments, r->call, ZD_NONE, ZT_LEAVE);
    for (size_t i = 0; r->call->returned && i < r->arguments.candidates.n && i < outs; i++)
        know(r, r->arguments.candidates.at[i], x[i].object);
    know_contents(r);
    name_known(r);
    *names = r->names;
    return r->call;
}

const char *zd_line(zd_reader *r, uint32_t index, bool json)
{
    const zt_objects *names;
    zt_text_clear(r->text);
    const zt_call *const call = zd_fetch(r, index, &names);
    if (call != NULL && json)
        zt_print_call_json(r->text, r->side->trace, names, call);
    else if (call != NULL)
        zt_print_call(r->text, r->side->trace, names, call, ZT_P_NO_TIME);
    return zt_text_get(r->text, NULL);
}

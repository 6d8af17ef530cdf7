/* SPDX-License-Identifier: MIT */
/* ENTERs and LEAVEs in the order of time. A call waits in a heap until its LEAVE's turn; slots are used again. */
#include "reader.h"

#include <stdlib.h>

struct zt_events {
    zt_trace *trace;
    zt__slot *next;        /* the call whose ENTER comes next, if `have_next` */
    bool have_next, ended;
    zt__slot **open;       /* heap by leave time, then number */
    size_t n_open, room;
    zt__slot **spare;
    size_t n_spare, spare_room;
    zt__slot *given;       /* its LEAVE (or only event) was given: free once the next event is asked for */
};

static bool push(zt__slot ***list, size_t *n, size_t *room, zt__slot *slot)
{
    if (*n == *room) {
        const size_t more = *room ? *room * 2 : 16;
        zt__slot **const grown = realloc(*list, more * sizeof(*grown));
        if (grown == NULL)
            return false;
        *list = grown;
        *room = more;
    }
    (*list)[(*n)++] = slot;
    return true;
}

static bool before(const zt__slot *a, const zt__slot *b)
{
    return a->call.leave_ns != b->call.leave_ns ? a->call.leave_ns < b->call.leave_ns : a->call.number < b->call.number;
}

static bool heap_push(zt_events *e, zt__slot *slot)
{
    if (!push(&e->open, &e->n_open, &e->room, slot))
        return false;
    for (size_t i = e->n_open - 1; i > 0 && before(e->open[i], e->open[(i - 1) / 2]); i = (i - 1) / 2) {
        zt__slot *const t = e->open[i];
        e->open[i] = e->open[(i - 1) / 2];
        e->open[(i - 1) / 2] = t;
    }
    return true;
}

static zt__slot *heap_pop(zt_events *e)
{
    zt__slot *const least = e->open[0];
    e->open[0] = e->open[--e->n_open];
    for (size_t i = 0;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < e->n_open && before(e->open[child + 1], e->open[child]))
            child++;
        if (child >= e->n_open || !before(e->open[child], e->open[i]))
            break;
        zt__slot *const t = e->open[i];
        e->open[i] = e->open[child];
        e->open[child] = t;
        i = child;
    }
    return least;
}

int zt_events_open(zt_events **out, zt_trace *trace)
{
    *out = calloc(1, sizeof(**out));
    if (*out == NULL)
        return ZT_E_MEMORY;
    (*out)->trace = trace;
    return ZT_OK;
}

static void give_back(zt_events *e, zt__slot *slot)
{
    zt__slot_clear(slot);
    if (!push(&e->spare, &e->n_spare, &e->spare_room, slot)) {
        zt__slot_free(slot);
        free(slot);
    }
}

static int look_ahead(zt_events *e)
{
    if (e->have_next || e->ended)
        return ZT_OK;
    if (e->next == NULL)
        e->next = e->n_spare ? e->spare[--e->n_spare] : calloc(1, sizeof(*e->next));
    if (e->next == NULL)
        return ZT_E_MEMORY;
    const int status = zt__trace_next(e->trace, e->next);
    e->have_next = status == ZT_OK;
    e->ended = status == ZT_END;
    return status == ZT_END ? ZT_OK : status;
}

int zt_events_next(zt_events *e, zt_event *event)
{
    if (e->given != NULL) {
        give_back(e, e->given);
        e->given = NULL;
    }
    const int status = look_ahead(e);
    if (status != ZT_OK)
        return status;
    /* at the same time a LEAVE comes first: what had returned came before what begins */
    if (e->n_open > 0 && (!e->have_next || e->open[0]->call.leave_ns <= e->next->call.enter_ns)) {
        e->given = heap_pop(e);
        *event = (zt_event){ZT_LEAVE, &e->given->call};
        return ZT_OK;
    }
    if (!e->have_next)
        return ZT_END;
    zt__slot *const slot = e->next;
    e->next = NULL;
    e->have_next = false;
    *event = (zt_event){ZT_ENTER, &slot->call};
    if (!slot->call.returned) {
        e->given = slot;
        return ZT_OK;
    }
    if (heap_push(e, slot))
        return ZT_OK;
    give_back(e, slot);
    return ZT_E_MEMORY;
}

void zt_events_close(zt_events *e)
{
    if (e == NULL)
        return;
    if (e->given)
        give_back(e, e->given);
    if (e->next)
        give_back(e, e->next);
    while (e->n_open > 0)
        give_back(e, e->open[--e->n_open]);
    for (size_t i = 0; i < e->n_spare; i++) {
        zt__slot_free(e->spare[i]);
        free(e->spare[i]);
    }
    free(e->spare);
    free(e->open);
    free(e);
}

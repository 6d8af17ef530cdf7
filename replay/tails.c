/* SPDX-License-Identifier: MIT */
/*
 * What makes fences and queue waits mean what they did: for each Execute a list on the program's queue, with its fence, that waits for
 * the `done` of all that was submitted. It follows when they are over. Submitted at once, it would hold back what comes behind it on
 * that queue, and with it other fences, until all before it had ended; the program's own commands need only have started.
 */
#include <stdlib.h>

#include "forced.h"

bool zr_tail_add(zr_tails *t, const zr_tail *tail)
{
    if (!zr_grow((void **)&t->all, t->n, &t->room, sizeof(*t->all)))
        return false;
    t->all[t->n++] = *tail;
    return true;
}

static int64_t submit(zr_run *run, zr_tails *t, size_t i)
{
    const zr_tail tail = t->all[i];
    for (; i + 1 < t->n; i++)
        t->all[i] = t->all[i + 1];
    t->n--;
    return ZR_ASK(run, "zeCommandQueueExecuteCommandLists", tail.queue_handle, 1, ZR_REF(tail.list), tail.fence_handle);
}

void zr_tails_settle(zr_run *run, zr_tails *t)
{
    for (size_t i = 0; i < t->n;)
        if (zr_forced_over(run, t->all[i].call))
            submit(run, t, i);
        else
            i++;
}

void zr_tails_before_wait(zr_run *run, zr_tails *t, uint32_t object)
{
    const bool all = object == ZR_NONE || zr_is_kind(run, object, "device");
    zr_tails_settle(run, t);
    for (size_t i = 0; i < t->n;)
        if (all || t->all[i].queue == object || t->all[i].fence == object)
            submit(run, t, i);
        else
            i++;
}

void zr_tails_gone(zr_run *run, zr_tails *t, uint32_t object)
{
    size_t kept = 0;
    zr_tails_settle(run, t);
    for (size_t i = 0; i < t->n; i++)
        if (t->all[i].queue != object && t->all[i].fence != object)
            t->all[kept++] = t->all[i];
    t->n = kept;
}

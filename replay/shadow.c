/* SPDX-License-Identifier: MIT */
/*
 * Memory of the recorded program that its device used but no driver allocated: heap, stack, static data. The replay has
 * its own instead. All of it is known before the first call, so that it never moves while a command may still use it.
 */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MOST (1ull << 38) /* of one span: more is no buffer but a damaged trace */

bool zr_span_add(zr_objects *o, uint64_t address, uint64_t size)
{
    if (size == 0)
        size = 1;
    if (size > UINT64_MAX - 8192 - address)
        return true;      /* left out: the call that names it says so */
    if (o->n_spans > 0) { /* a loop over one buffer */
        zr_span *const last = &o->spans[o->n_spans - 1];
        if (address >= last->start && address + size <= last->end)
            return true;
    }
    if (!zr_grow((void **)&o->spans, o->n_spans, &o->room_spans, sizeof(*o->spans)))
        return false;
    o->spans[o->n_spans++] = (zr_span){address, address + size, NULL};
    return true;
}

static int compare(const void *a, const void *b)
{
    const zr_span *const x = a, *const y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

bool zr_spans_map(zr_objects *o, zt_error *error)
{
    if (o->n_spans == 0)
        return true;
    qsort(o->spans, o->n_spans, sizeof(*o->spans), compare);
    size_t n = 0;
    for (size_t i = 0; i < o->n_spans; i++) {
        if (n > 0 && o->spans[i].start <= o->spans[n - 1].end) {
            if (o->spans[i].end > o->spans[n - 1].end)
                o->spans[n - 1].end = o->spans[i].end;
        } else {
            o->spans[n++] = o->spans[i];
        }
    }
    o->n_spans = n;
    for (size_t i = 0; i < n; i++) {
        zr_span *const span = &o->spans[i];
        const uint64_t into = span->start & 4095, pages = (into + (span->end - span->start) + 4095) & ~4095ull;
        uint8_t *map = MAP_FAILED;
        if (pages <= MOST) /* a page in front and one behind that nobody may touch */
            map = mmap(NULL, pages + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED || mprotect(map + 4096, pages, PROT_READ | PROT_WRITE) != 0) {
            if (map != MAP_FAILED)
                munmap(map, pages + 8192);
            error->status = ZT_E_MEMORY;
            snprintf(error->text, sizeof(error->text),
                     "the program's memory at 0x%llx, %llu bytes that commands use, cannot be had here",
                     (unsigned long long)span->start, (unsigned long long)(span->end - span->start));
            return false;
        }
        span->live = map + 4096 + into;
    }
    return true;
}

void *zr_span_live(const zr_objects *o, uint64_t address)
{
    size_t low = 0, high = o->n_spans;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (o->spans[mid].end <= address)
            low = mid + 1;
        else
            high = mid;
    }
    if (low < o->n_spans && o->spans[low].start <= address && o->spans[low].live != NULL)
        return o->spans[low].live + (address - o->spans[low].start);
    return NULL;
}

/* SPDX-License-Identifier: MIT */
#include "packet_header.h"

#include <stdlib.h>
#include <string.h>

/* The latest time of the chunk. Times count from the same thread's call before: columns that do not fit end it. */
static uint64_t latest(const Zetrace__CallChunk *m)
{
    enum { THREADS = 4096 };
    struct last {
        uint32_t thread;
        bool used;
        uint64_t time;
    } *const lasts = calloc(THREADS, sizeof(*lasts));
    uint64_t end = m->start_ns;
    for (size_t i = 0, threads = 0; lasts != NULL && i < m->n_function; i++) {
        if (i >= m->n_thread || i >= m->n_enter || i >= m->n_duration)
            break;
        size_t at = m->thread[i] % THREADS;
        while (lasts[at].used && lasts[at].thread != m->thread[i])
            at = (at + 1) % THREADS;
        if (!lasts[at].used) {
            if (++threads == THREADS)
                break;
            lasts[at] = (struct last){m->thread[i], true, m->start_ns};
        }
        const uint64_t enter = lasts[at].time + (uint64_t)m->enter[i], leave = enter + m->duration[i];
        lasts[at].time = leave;
        end = enter > end ? enter : end;
        end = leave > end ? leave : end;
    }
    free(lasts);
    return end;
}

void zv_header_of(zt_packet *p, const Zetrace__Packet *message)
{
    *p = (zt_packet){.data = p->data, .size = p->size};
    switch (message->kind_case) {
    case ZETRACE__PACKET__KIND_CALLS: {
        const Zetrace__CallChunk *const m = message->calls;
        p->calls = (uint32_t)m->n_function;
        p->late = (uint32_t)m->n_late;
        p->begin = m->start_ns;
        p->end = latest(m);
        if (p->calls > 0) {
            p->first = m->first;
            p->span = p->calls - 1;
            for (size_t i = 1; i < m->n_gaps; i++)
                p->span += m->gaps[i];
        }
        break;
    }
    case ZETRACE__PACKET__KIND_BLOB:
        if (message->blob->hash.len == 16) {
            memcpy(&p->first, message->blob->hash.data, 8);
            memcpy(&p->begin, message->blob->hash.data + 8, 8);
        }
        p->end = message->blob->offset;
        break;
    case ZETRACE__PACKET__KIND_LOST:
        p->begin = message->lost->time_ns;
        break;
    default:
        break;
    }
    p->kind = (uint8_t)message->kind_case; /* enum zt_chunk_kind has the numbers of the packet's fields */
}

bool zv_same_header(const zt_packet *a, const zt_packet *b)
{
    return a->kind == b->kind && a->flags == b->flags && a->calls == b->calls && a->late == b->late && a->span == b->span &&
           a->first == b->first && a->begin == b->begin && a->end == b->end;
}

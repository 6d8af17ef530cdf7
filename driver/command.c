/* SPDX-License-Identifier: MIT */
/* A command: the events it names, and what it does to memory when its time has come. */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

soft_command *soft_command_new(int type)
{
    soft_command *const c = calloc(1, sizeof(*c));
    if (c != NULL) {
        c->type = type;
        c->refs = 1;
    }
    return c;
}

bool soft_command_events_locked(soft_command *c, ze_event_handle_t signal, uint32_t n, ze_event_handle_t *waits)
{
    if (n > 0) {
        c->waits = calloc(n, sizeof(*c->waits));
        if (c->waits == NULL)
            return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        c->waits[i] = (soft_object *)waits[i];
        soft_object_ref_locked(c->waits[i]);
    }
    c->n_waits = n;
    c->signal = (soft_object *)signal;
    soft_object_ref_locked(c->signal);
    return true;
}

void soft_command_lose_locked(const soft_command *c)
{
    if (c->signal != NULL)
        c->signal->event.lost = true;
}

void soft_command_unref_locked(soft_command *c)
{
    if (--c->refs > 0)
        return;
    for (uint32_t i = 0; i < c->n_waits; i++)
        soft_object_unref_locked(c->waits[i]);
    for (uint32_t i = 0; i < c->n_query; i++)
        soft_object_unref_locked(c->query[i]);
    soft_object_unref_locked(c->signal);
    soft_object_unref_locked(c->reset);
    free(c->waits);
    free(c->query);
    free(c->query_offsets);
    free(c->staged);
    free(c);
}

uint64_t soft_command_cost_ns(const soft_command *c)
{
    const ze_copy_region_t *const r = &c->src_region;
    const uint64_t bytes = c->type == SOFT_C_REGION ? (uint64_t)r->width * r->height * (r->depth ? r->depth : 1) : c->size;
    return 20000 + bytes / 8; /* a launch, then 8 GB/s */
}

/* -------------------------------------------------------------------------------------------------------- what it does */

/* A read has faulted. On `scratch` what was read is zeros. @return false */
static bool nothing_read(uint64_t dst, uint64_t size, uint64_t since)
{
    static const uint8_t zeros[65536];
    for (uint64_t at = 0; soft.fault == SOFT_SCRATCH && at < size; at += sizeof(zeros))
        if (!soft_device_write_locked(dst + at, zeros, size - at < sizeof(zeros) ? size - at : sizeof(zeros), since))
            break;
    return false;
}

static bool copy_bytes(const soft_command *c, uint64_t since)
{
    bool dst_fault, src_fault;
    void *const dst = soft_device_map_locked(c->dst, c->size, SOFT_WRITE, since, &dst_fault);
    const void *const src = c->staged ? c->staged : soft_device_map_locked(c->src, c->size, SOFT_READ, since, &src_fault);
    if (dst_fault || (c->staged == NULL && src_fault))
        return dst_fault ? false : nothing_read(c->dst, c->size, since);
    if (dst != NULL && src != NULL) {
        memmove(dst, src, c->size);
        return true;
    }
    if (dst != NULL)
        return soft_device_read_locked(c->src, dst, c->size, since) || nothing_read(c->dst, c->size, since);
    if (src != NULL)
        return soft_device_write_locked(c->dst, src, c->size, since);
    uint8_t buffer[65536];
    for (uint64_t at = 0; at < c->size; at += sizeof(buffer)) {
        const size_t n = c->size - at < sizeof(buffer) ? c->size - at : sizeof(buffer);
        if (!soft_device_read_locked(c->src + at, buffer, n, since))
            return nothing_read(c->dst + at, c->size - at, since);
        if (!soft_device_write_locked(c->dst + at, buffer, n, since))
            return false;
    }
    return true;
}

static bool copy_region(const soft_command *c, uint64_t since)
{
    const ze_copy_region_t *const d = &c->dst_region, *const s = &c->src_region;
    uint8_t *const row = malloc(d->width ? d->width : 1);
    bool ok = row != NULL;
    for (uint32_t z = 0; ok && z < (d->depth ? d->depth : 1); z++) {
        for (uint32_t y = 0; ok && y < d->height; y++) {
            const uint64_t from = c->src + (uint64_t)(s->originZ + z) * c->src_slice +
                                  (uint64_t)(s->originY + y) * c->src_pitch + s->originX;
            const uint64_t to = c->dst + (uint64_t)(d->originZ + z) * c->dst_slice +
                                (uint64_t)(d->originY + y) * c->dst_pitch + d->originX;
            const bool read = soft_device_read_locked(from, row, d->width, since);
            if (!read && soft.fault == SOFT_SCRATCH)
                memset(row, 0, d->width);
            ok = (read || soft.fault == SOFT_SCRATCH) && soft_device_write_locked(to, row, d->width, since);
        }
    }
    free(row);
    return ok;
}

static bool fill(const soft_command *c, uint64_t since)
{
    bool fault;
    uint8_t *const dst = soft_device_map_locked(c->dst, c->size, SOFT_WRITE, since, &fault);
    if (fault)
        return false;
    uint8_t chunk[65536];
    const size_t unit = sizeof(chunk) / c->pattern_size * c->pattern_size;
    for (size_t i = 0; i < unit; i++)
        chunk[i] = c->pattern[i % c->pattern_size];
    for (uint64_t at = 0; at < c->size; at += unit) {
        const size_t n = c->size - at < unit ? c->size - at : unit;
        if (dst != NULL)
            memcpy(dst + at, chunk, n);
        else if (!soft_device_write_locked(c->dst + at, chunk, n, since))
            return false;
    }
    return true;
}

static bool query_timestamps(const soft_command *c, uint64_t since)
{
    for (uint32_t i = 0; i < c->n_query; i++) {
        ze_kernel_timestamp_result_t t;
        soft_event_timestamp_locked(&c->query[i]->event, &t);
        const uint64_t at = c->dst + (c->query_offsets ? c->query_offsets[i] : i * sizeof(t));
        if (!soft_device_write_locked(at, &t, sizeof(t), since))
            return false;
    }
    return true;
}

bool soft_command_perform_locked(const soft_command *c, uint64_t since)
{
    switch (c->type) {
    case SOFT_C_COPY:
        return copy_bytes(c, since);
    case SOFT_C_REGION:
        return copy_region(c, since);
    case SOFT_C_FILL:
        return fill(c, since);
    case SOFT_C_TIMESTAMP: {
        const uint64_t now = soft_device_ticks();
        return soft_device_write_locked(c->dst, &now, sizeof(now), since);
    }
    case SOFT_C_QUERY_TIMESTAMPS:
        return query_timestamps(c, since);
    case SOFT_C_HOST_FUNCTION:
        soft_in_host_function++;
        pthread_mutex_unlock(&soft_mutex); /* the program's code may take locks of its own */
        c->function(c->user_data);
        pthread_mutex_lock(&soft_mutex);
        soft_in_host_function--;
        return true;
    default:
        return true;
    }
}

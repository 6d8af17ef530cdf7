/* SPDX-License-Identifier: MIT */
#include "repack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Header fields follow from the packet: what wrote it before does not show. What is not known to be otherwise stays. */
static zt_chunk_header header_of(zt_trace *t, size_t place)
{
    zt__place *const p = &t->file.places[place];
    zt_chunk_header h = {.kind = p->kind, .flags = p->flags, .first = p->first, .calls = p->calls, .late = p->late, .begin = p->begin, .end = p->end, .span = p->span};
    zt__calls *const calls = p->kind == ZT_CHUNK_CALLS ? zt__load_calls(t, place) : NULL;
    if (calls == NULL)
        return h;
    zt__slot slot = {0};
    const uint64_t begin = calls->chunk->start_ns;
    h.begin = h.end = begin;
    h.first = calls->chunk->n_function ? calls->chunk->first : 0;
    h.span = 0;
    while (zt__calls_next(calls, &slot) == ZT_OK) {
        h.end = slot.call.enter_ns > h.end ? slot.call.enter_ns : h.end;
        h.end = slot.call.leave_ns > h.end ? slot.call.leave_ns : h.end;
        h.span = (uint32_t)(slot.call.number - h.first);
    }
    zt__slot_free(&slot);
    zt__calls_unref(calls);
    return h;
}

/* @return false if the chunk is left out, for it is not readable; `out` may have failed. */
static bool repack_chunk(zt_trace *t, size_t place, zt__dropping *dropping, zt__output *out, zt_refiled *done)
{
    zt__place *const p = &t->file.places[place];
    const zt_chunk_header h = header_of(t, place);
    const zt_hash blob = {p->first, p->begin};
    if (p->kind == ZT_CHUNK_BLOB && !zt__dropping_keeps(dropping, &blob)) {
        dropping->bytes += p->raw_size;
        return p->fault == ZT__GOOD;
    }
    uint8_t *const raw = zt__contents(&t->file, p, t->zstd);
    const size_t at = raw ? zt__packet_at(raw, p->raw_size) : 0;
    zt__bytes changed = {0};
    const int dropped = raw ? zt__dropping_packet(dropping, p, raw + at, at ? p->raw_size - at : 0, &changed) : ZT__UNCLEAN;
    const bool good = dropped != ZT__UNCLEAN;
    if (dropping->out_of_memory)
        zt__output_fail(out, ZT_E_MEMORY);
    else if (good)
        zt__output_chunk(out, h, dropped == ZT__DROPPED ? changed.at : raw, dropped == ZT__DROPPED ? changed.n : p->raw_size);
    done->calls += good && p->kind == ZT_CHUNK_CALLS ? p->calls : 0;
    done->chunks += good;
    free(changed.at);
    free(raw);
    return good;
}

static void repack(zt_trace *t, const zt_refile_options *options, zt__dropping *dropping, zt__output *out, zt_refiled *done)
{
    uint64_t next = 0;
    for (size_t i = 0; i < t->file.n_places && !out->failed; i++) {
        const zt__place *const p = &t->file.places[i];
        if (p->sequence > next)
            out->sequence += p->sequence - next; /* what was missing still is */
        next = p->sequence + 1;
        if (!repack_chunk(t, i, dropping, out, done)) {
            done->chunks_left_out++;
            out->sequence++;
        }
        if (options->step != NULL)
            options->step(options->ctx, i + 1, t->file.n_places);
    }
    done->chunks_left_out += t->file.n_holes;
    done->dropped = dropping->bytes;
}

int zt_repack(const char *path, const char *to, const zt_refile_options *options, zt_refiled *done, zt_error *error)
{
    static const uint8_t none[16];
    zt_trace *t;
    zt__output out;
    zt__dropping dropping = {.drop = options->drop};
    *done = (zt_refiled){0};
    int status = zt_trace_open(&t, path, error);
    if (status != ZT_OK)
        return status;
    if (options->drop != 0 && zt__dropping_find(&dropping, t) != ZT_OK)
        status = zt__complain(error, ZT_E_MEMORY, path, "not enough memory to find what is to be dropped");
    const uint8_t *const uuid = memcmp(t->session.uuid, none, 16) != 0 ? t->session.uuid : t->file.header.uuid;
    const zt_file_header header = zt__output_header(uuid, t->file.strange ? NULL : &t->file.header);
    if (status == ZT_OK)
        status = zt__output_open(&out, to, &header, options->level, options->overwrite, true, error);
    if (status == ZT_OK) {
        repack(t, options, &dropping, &out, done);
        done->bytes_before = t->file.size;
        snprintf(done->problem, sizeof(done->problem), "%s", t->health.first_problem);
        status = zt__output_finish(&out, done, error);
    }
    zt__dropping_free(&dropping);
    zt_trace_close(t);
    return status;
}

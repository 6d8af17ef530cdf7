/* SPDX-License-Identifier: MIT */
/* What of a trace is whole: every chunk is decoded and held against its header, its neighbours, the index and the ending. */
#include "hashes.h"
#include "verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

typedef struct verifying {
    zt_trace *t;
    zt_verdict *v;
    void (*tell)(void *ctx, const zt_finding *finding);
    void *ctx;
    zt_finding open; /* chunks that are missing: how many calls that costs is known at the next chunk of calls */
    bool is_open, doubt; /* doubt: chunks are missing since the last chunk of calls */
    bool dense;      /* numbers of calls have no gaps of their own */
    uint64_t expected, last_end; /* number of the next call; time of the last */
    size_t hole;
    zt__hashes blobs, missed;
    zt_hash blob;    /* the one that is being put together */
    uint64_t blob_at, blob_total;
    XXH3_state_t *state;
    uint8_t threads[8192];
    bool out_of_memory;
} verifying;

static void tell(verifying *w, const zt_finding *f)
{
    w->v->findings++;
    w->v->calls_lost += f->calls;
    if (f->calls > 0 && f->to_ns > f->from_ns)
        w->v->lost_ns += f->to_ns - f->from_ns;
    if (w->tell != NULL)
        w->tell(w->ctx, f);
}

static void close_open(verifying *w)
{
    if (w->is_open)
        tell(w, &w->open);
    w->is_open = false;
}

static void missing(verifying *w, uint64_t offset, uint64_t end, uint64_t chunk, const char *text)
{
    close_open(w);
    w->open = (zt_finding){.offset = offset, .end = end, .chunk = chunk};
    snprintf(w->open.text, sizeof(w->open.text), "%s", text);
    w->is_open = w->doubt = true;
}

static void bad_chunk(verifying *w, const zt__place *p, const char *text)
{
    zt_finding f = {.offset = p->offset, .end = p->offset + sizeof(zt_chunk_header) + p->stored_size, .chunk = p->sequence};
    snprintf(f.text, sizeof(f.text), "%s", text);
    w->v->damaged = true;
    w->v->damaged_chunks++;
    if (p->kind == ZT_CHUNK_CALLS && p->calls > 0) {
        f.first = p->first;
        f.last = p->first + p->span;
        f.calls = p->calls;
        f.from_ns = p->begin;
        f.to_ns = p->end;
    }
    tell(w, &f);
}

/* ------------------------------------------------------------------------------------------------------------- blobs */

static void want_blob(verifying *w, const zt__place *p, const zt_hash *hash, uint64_t call)
{
    bool known = false;
    if (zt__hashes_have(&w->blobs, hash))
        return;
    w->out_of_memory |= !zt__hashes_add(&w->missed, hash, &known);
    if (known)
        return;
    zt_finding f = {.offset = p->offset, .end = p->offset, .chunk = p->sequence};
    snprintf(f.text, sizeof(f.text), "bytes that call #%llu refers to are missing", (unsigned long long)call);
    w->v->blobs_lost++;
    tell(w, &f);
}

static void take_blob(verifying *w, zt__place *p)
{
    Zetrace__Packet *const packet = zt__packet(&w->t->file, p, w->t->zstd);
    const Zetrace__Blob *const m = packet ? packet->blob : NULL;
    const zt_hash named = {p->first, p->begin};
    if (m == NULL) {
        bad_chunk(w, p, zt__fault_text(p->fault));
        return;
    }
    if (m->hash.len != sizeof(named) || memcmp(m->hash.data, &named, sizeof(named)) != 0 || m->offset != p->end ||
        m->data.len > m->total || m->offset > m->total - m->data.len) {
        bad_chunk(w, p, "its header and what it holds do not fit each other");
        zetrace__packet__free_unpacked(packet, NULL);
        return;
    }
    if (m->offset == 0) {
        w->blob = named;
        w->blob_total = m->total;
        w->blob_at = 0;
        XXH3_128bits_reset(w->state);
    }
    if (w->blob.lo == named.lo && w->blob.hi == named.hi && m->offset == w->blob_at && m->total == w->blob_total) {
        XXH3_128bits_update(w->state, m->data.data, m->data.len);
        w->blob_at += m->data.len;
        if (w->blob_at == w->blob_total) {
            const XXH128_hash_t h = XXH3_128bits_digest(w->state);
            bool known = false;
            if (h.low64 != named.lo || h.high64 != named.hi)
                bad_chunk(w, p, "its bytes are not those of its hash");
            else
                w->out_of_memory |= !zt__hashes_add(&w->blobs, &named, &known);
            w->v->blobs += !known;
        }
    }
    zetrace__packet__free_unpacked(packet, NULL);
}

/* ------------------------------------------------------------------------------------------------------------- calls */

static void want_blobs(verifying *w, const zt__place *p, const zt_call *call)
{
    for (uint32_t i = 0; i < call->n_in + call->n_out; i++) {
        const zt_piece *const piece = i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
        if (piece->data == NULL && !piece->lost)
            want_blob(w, p, &piece->hash, call->number);
    }
    for (uint32_t i = 0; i < call->n_contents; i++)
        if (call->contents[i].data == NULL && !call->contents[i].hash_only)
            want_blob(w, p, &call->contents[i].hash, call->number);
}

/* Missing chunks before this one: the calls between the last that was read and its first. */
static void settle(verifying *w, uint64_t number, uint64_t time)
{
    if (w->doubt && w->dense && number > w->expected) {
        zt_finding none = {.offset = 0, .chunk = UINT64_MAX, .text = "calls are missing"};
        zt_finding *const f = w->is_open ? &w->open : &none;
        f->first = w->expected;
        f->last = number - 1;
        f->calls = number - w->expected;
        f->from_ns = w->last_end;
        f->to_ns = time > w->last_end ? time : w->last_end;
        if (!w->is_open)
            tell(w, f);
    }
    close_open(w);
    w->doubt = false;
}

static void see_call(verifying *w, const zt__place *p, const zt_call *call)
{
    zt_verdict *const v = w->v;
    if (v->calls++ == 0) {
        v->first_call = call->number;
        v->first_ns = call->enter_ns;
    }
    v->last_call = call->number;
    const uint64_t end = call->returned && call->leave_ns > call->enter_ns ? call->leave_ns : call->enter_ns;
    v->last_ns = end > v->last_ns ? end : v->last_ns;
    if (call->thread / 8 < sizeof(w->threads) && !(w->threads[call->thread / 8] >> call->thread % 8 & 1)) {
        w->threads[call->thread / 8] |= (uint8_t)(1u << call->thread % 8);
        v->threads++;
    }
    want_blobs(w, p, call);
}

static const zt__late_place *late_of(const zt_trace *t, uint64_t number)
{
    size_t low = 0, high = t->n_lates;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (t->lates[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->n_lates && t->lates[low].number == number ? &t->lates[low] : NULL;
}

static void take_calls(verifying *w, size_t place)
{
    zt__place *const p = &w->t->file.places[place];
    if (p->calls > 0)
        settle(w, p->first, p->begin);
    const bool backwards = p->calls > 0 && p->first < w->expected;
    zt__calls *const calls = zt__load_calls(w->t, place);
    if (p->calls > 0) {
        w->expected = p->first + p->span + 1;
        w->last_end = p->end;
    }
    if (calls == NULL) {
        bad_chunk(w, p, zt__fault_text(p->fault ? p->fault : ZT__CHECKSUM));
        return;
    }
    zt__slot slot = {0};
    uint64_t n = 0, last = 0, end = 0;
    int status;
    while ((status = zt__calls_next(calls, &slot)) == ZT_OK) {
        see_call(w, p, &slot.call);
        if (!slot.call.returned && late_of(w->t, slot.call.number) == NULL)
            w->v->never_returned++;
        last = slot.call.number;
        end = slot.call.leave_ns > end ? slot.call.leave_ns : end;
        n++;
    }
    for (size_t i = 0; status == ZT_END && i < calls->chunk->n_late; i++) { /* bytes of these alone */
        zt__slot_clear(&slot);
        slot.call = (zt_call){.number = calls->chunk->late[i]->number};
        status = zt__slot_complete(&slot, calls, calls->chunk->late[i]);
        if (status == ZT_OK) {
            want_blobs(w, p, &slot.call);
            status = ZT_END;
        }
    }
    w->out_of_memory |= status == ZT_E_MEMORY;
    if (status == ZT_E_DAMAGED) {
        p->fault = ZT__MISFIT;
        bad_chunk(w, p, zt__fault_text(p->fault));
    }
    if (status != ZT_E_DAMAGED && n > 0 && (calls->chunk->first != p->first || last != p->first + p->span || calls->chunk->start_ns != p->begin))
        bad_chunk(w, p, "its header and what it holds do not fit each other");
    else if (backwards)
        bad_chunk(w, p, "it begins with a call that comes before those of the chunk in front of it");
    zt__slot_free(&slot);
    zt__calls_unref(calls);
}

/* ------------------------------------------------------------------------------------------------------- around calls */

static void whole_file(verifying *w, const char *text, uint64_t offset)
{
    zt_finding f = {.offset = offset, .end = offset, .chunk = UINT64_MAX};
    snprintf(f.text, sizeof(f.text), "%s", text);
    w->v->damaged = true;
    tell(w, &f);
}

static void check_header(verifying *w)
{
    const zt__file *const f = &w->t->file;
    static const uint8_t none[16];
    char text[160];
    w->v->major = f->header.major;
    w->v->minor = f->header.minor;
    w->v->newer = !f->strange && (f->header.minor > ZT_MINOR || f->header.flags != 0);
    if (f->strange && f->header.major != ZT_MAJOR) {
        snprintf(text, sizeof(text), "the file says to be of format %u.%u, and this zetrace reads format %u", f->header.major, f->header.minor,
                 (unsigned)ZT_MAJOR);
        whole_file(w, text, 0);
    } else if (f->strange) {
        whole_file(w, "the file header is damaged", 0);
    } else if (w->v->session && memcmp(f->header.uuid, w->t->session.uuid, 16) != 0 && memcmp(w->t->session.uuid, none, 16) != 0) {
        whole_file(w, "the uuid in the file header is not that of the session", 24);
    }
}

static bool is_of(const zt_index_entry *e, const zt__place *p)
{
    return e->offset == p->offset && e->first == p->first && e->begin == p->begin && e->calls == p->calls && e->kind == p->kind;
}

/* Whether it is good and lists every chunk that was found. It may list more: those that are lost. */
static bool index_fits(const zt__file *f)
{
    zt_index_head head;
    zt_index_tail tail;
    if (f->index_at == 0 || !zt__file_read(f, f->index_at, &head, sizeof(head)) ||
        (f->n_holes == 0 ? head.entries != f->n_places : head.entries < f->n_places))
        return false;
    const uint64_t end = f->index_at + 8 + head.skip_size;
    if (end != f->size || !zt__file_read(f, end - sizeof(tail), &tail, sizeof(tail)) || tail.magic != ZT_END_MAGIC ||
        tail.offset != f->index_at)
        return false;
    XXH32_state_t *const state = XXH32_createState();
    bool fits = state != NULL && XXH32_reset(state, 0) == XXH_OK;
    size_t found = 0;
    for (size_t i = 0; fits && i < head.entries; i++) {
        zt_index_entry e;
        fits = zt__file_read(f, f->index_at + sizeof(head) + i * sizeof(e), &e, sizeof(e)) && XXH32_update(state, &e, sizeof(e)) == XXH_OK;
        found += fits && found < f->n_places && is_of(&e, &f->places[found]);
    }
    fits = fits && found == f->n_places && tail.check == (head.entries ? XXH32_digest(state) : 0);
    XXH32_freeState(state);
    return fits;
}

static void take_place(verifying *w, size_t i, uint64_t *next_sequence)
{
    const zt__file *const f = &w->t->file;
    zt__place *const p = &f->places[i];
    char text[160];
    for (; w->hole < f->n_holes && f->holes[w->hole].before <= i; w->hole++) {
        w->v->damaged = true;
        missing(w, f->holes[w->hole].offset, f->holes[w->hole].end, UINT64_MAX, "no chunk can be read here");
    }
    if (p->sequence > *next_sequence) {
        const uint64_t n = p->sequence - *next_sequence;
        snprintf(text, sizeof(text), n == 1 ? "chunk %llu is missing" : "chunks %llu..%llu are missing", (unsigned long long)*next_sequence,
                 (unsigned long long)p->sequence - 1);
        w->v->missing_chunks += n;
        if (!w->is_open || w->open.end != p->offset)
            missing(w, p->offset, p->offset, *next_sequence, text);
        else
            w->open.chunk = *next_sequence;
    } else if (p->sequence < *next_sequence) {
        bad_chunk(w, p, "it is out of order");
    }
    *next_sequence = p->sequence + 1;
    if (p->kind == ZT_CHUNK_CALLS) {
        take_calls(w, i);
    } else if (p->kind == ZT_CHUNK_BLOB) {
        take_blob(w, p);
    } else if (p->kind >= ZT_CHUNK_SESSION && p->kind <= ZT_CHUNK_FRAMES) {
        Zetrace__Packet *const packet = zt__packet(&w->t->file, p, w->t->zstd);
        if (packet == NULL)
            bad_chunk(w, p, zt__fault_text(p->fault));
        else
            w->v->session |= p->kind == ZT_CHUNK_SESSION, w->v->ending |= p->kind == ZT_CHUNK_ENDING;
        zetrace__packet__free_unpacked(packet, NULL);
    } else {
        uint8_t *const contents = zt__contents(f, p, w->t->zstd);
        if (contents == NULL)
            bad_chunk(w, p, zt__fault_text(p->fault));
        w->v->other_chunks++;
        free(contents);
    }
}

static void finish(verifying *w)
{
    zt_verdict *const v = w->v;
    const zt__file *const f = &w->t->file;
    const zt_ending *const e = &w->t->ending;
    for (; w->hole < f->n_holes; w->hole++) {
        v->damaged = true;
        missing(w, f->holes[w->hole].offset, f->holes[w->hole].end, UINT64_MAX,
                f->holes[w->hole].cut ? "the file ends within a chunk" : "no chunk can be read here");
    }
    const uint64_t told = v->calls + v->calls_lost + (w->is_open ? w->open.calls : 0);
    if (v->ending && (w->doubt || v->missing_chunks > 0) && e->calls > told) {
        if (!w->is_open)
            missing(w, f->size, f->size, UINT64_MAX, "calls are missing");
        w->open.calls = e->calls - told;
        w->open.first = w->dense && w->doubt ? w->expected : 0;
        w->open.last = w->open.first ? w->expected + w->open.calls - 1 : 0;
        w->open.from_ns = w->open.to_ns = w->last_end;
    }
    close_open(w);
    check_header(w);
    v->index = index_fits(f);
    if (f->index_at != 0 && !v->index)
        whole_file(w, "the index is damaged, or is not that of this file", f->index_at);
    v->finished = v->ending && e->complete;
    if (!v->session)
        whole_file(w, "the session is missing: program, driver and settings are not known", 0);
    v->whole = !v->damaged && v->missing_chunks == 0 && v->index && v->finished && v->blobs_lost == 0 && v->calls_lost == 0;
}

int zt__verify(zt_trace *t, void (*tell_it)(void *ctx, const zt_finding *finding), void *ctx,
               void (*step)(void *ctx, uint64_t done, uint64_t total), void *step_ctx, zt_verdict *verdict)
{
    static const uint8_t none[16];
    *verdict = (zt_verdict){.bytes = t->file.size, .chunks = t->file.n_places};
    verifying *const w = calloc(1, sizeof(*w));
    if (w == NULL)
        return ZT_E_MEMORY;
    *w = (verifying){.t = t, .v = verdict, .tell = tell_it, .ctx = ctx, .expected = 1, .state = XXH3_createState()};
    w->dense = memcmp(t->session.parent_uuid, none, 16) == 0;
    w->out_of_memory = w->state == NULL;
    uint64_t sequence = 0;
    for (size_t i = 0; i < t->file.n_places && !w->out_of_memory; i++) {
        take_place(w, i, &sequence);
        if (step != NULL)
            step(step_ctx, i + 1, t->file.n_places);
    }
    finish(w);
    const int status = w->out_of_memory ? ZT_E_MEMORY : ZT_OK;
    XXH3_freeState(w->state);
    free(w->blobs.at);
    free(w->missed.at);
    free(w);
    return status;
}

int zt_verify(const char *path, void (*tell_it)(void *ctx, const zt_finding *finding), void *ctx,
              void (*step)(void *ctx, uint64_t done, uint64_t total), void *step_ctx, zt_verdict *verdict, zt_error *error)
{
    zt_trace *t;
    *verdict = (zt_verdict){0};
    int status = zt_trace_open(&t, path, error);
    if (status != ZT_OK)
        return status;
    status = zt__verify(t, tell_it, ctx, step, step_ctx, verdict);
    zt_trace_close(t);
    return status == ZT_OK ? ZT_OK : zt__complain(error, status, path, "not enough memory to check it");
}

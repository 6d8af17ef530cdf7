/* SPDX-License-Identifier: MIT */
#include "hashes.h"
#include "output.h"
#include "packets.h"
#include "scan.h"

#include <errno.h>
#include <xxhash.h>

#define CHUNK_BYTES (256u << 10)

struct zt_writer {
    zt__output out;
    uint32_t max_calls;
    zt__chunk chunk;
    zt__bytes raw;
    zt__hashes blobs;
};

static int write_chunk(zt_writer *w, zt_chunk_header header)
{
    return zt__output_chunk(&w->out, header, w->raw.at, w->raw.n);
}

static int write_packet(zt_writer *w, const Zetrace__Packet *packet, zt_chunk_header header)
{
    w->raw.n = 0;
    return zt__pack(packet, &w->raw) ? write_chunk(w, header) : zt__output_fail(&w->out, ZT_E_MEMORY);
}

static char *or_empty(char *s)
{
    return s ? s : (char *)"";
}

static int write_session(zt_writer *w, const zt_session *s)
{
    Zetrace__Session m;
    Zetrace__Packet packet;
    zetrace__session__init(&m);
    zetrace__packet__init(&packet);
    m.uuid = (ProtobufCBinaryData){16, (uint8_t *)(uintptr_t)s->uuid};
    static const uint8_t zero[16];
    if (memcmp(s->parent_uuid, zero, 16) != 0)
        m.parent_uuid = (ProtobufCBinaryData){16, (uint8_t *)(uintptr_t)s->parent_uuid};
    m.version = or_empty(s->version);
    m.program = or_empty(s->program);
    m.n_argv = s->argc;
    m.argv = s->argv;
    m.hostname = or_empty(s->hostname);
    m.rank = or_empty(s->rank);
    m.pid = s->pid;
    m.parent_pid = s->parent_pid;
    m.start_wall_ns = s->start_wall_ns;
    m.start_monotonic_ns = s->start_monotonic_ns;
    m.order = or_empty(s->order);
    m.attach = or_empty(s->attach);
    m.memory = or_empty(s->memory);
    const size_t pairs = (size_t)s->n_settings + s->n_environment;
    Zetrace__Pair *const pair = calloc(pairs + 1, sizeof(*pair));
    Zetrace__Pair **const refs = calloc(pairs + 1, sizeof(*refs));
    Zetrace__Library *const library = calloc(s->n_libraries + 1u, sizeof(*library));
    Zetrace__Library **const library_refs = calloc(s->n_libraries + 1u, sizeof(*library_refs));
    int status = ZT_E_MEMORY;
    if (pair && refs && library && library_refs) {
        for (size_t i = 0; i < pairs; i++) {
            const zt_pair *const from = i < s->n_settings ? &s->settings[i] : &s->environment[i - s->n_settings];
            zetrace__pair__init(&pair[i]);
            pair[i].name = or_empty(from->name);
            pair[i].value = or_empty(from->value);
            refs[i] = &pair[i];
        }
        for (uint32_t i = 0; i < s->n_libraries; i++) {
            zetrace__library__init(&library[i]);
            library[i].path = or_empty(s->libraries[i].path);
            library[i].build_id = or_empty(s->libraries[i].build_id);
            library[i].address = s->libraries[i].base;
            library[i].size = s->libraries[i].size;
            library_refs[i] = &library[i];
        }
        m.n_settings = s->n_settings;
        m.settings = refs;
        m.n_environment = s->n_environment;
        m.environment = refs + s->n_settings;
        m.n_libraries = s->n_libraries;
        m.libraries = library_refs;
        packet.kind_case = ZETRACE__PACKET__KIND_SESSION;
        packet.session = &m;
        status = write_packet(w, &packet, (zt_chunk_header){.kind = ZT_CHUNK_SESSION});
    }
    free(pair);
    free(refs);
    free(library);
    free(library_refs);
    return status;
}

static void free_writer(zt_writer *w)
{
    zt__chunk_free(&w->chunk);
    free(w->raw.at);
    free(w->blobs.at);
    free(w);
}

/* `session` may be NULL: then it comes as a packet. */
static int open_writer(zt_writer **out, const char *path, const zt_file_header *header, const zt_session *session,
                       const zt_writer_options *options, zt_error *error)
{
    static const zt_writer_options defaults;
    *out = NULL;
    if (options == NULL)
        options = &defaults;
    zt_writer *const w = calloc(1, sizeof(*w));
    if (w == NULL || !zt__chunk_init(&w->chunk)) {
        free(w);
        return zt__complain(error, ZT_E_MEMORY, path, "no memory for a writer");
    }
    w->max_calls = options->max_calls ? options->max_calls : ZT_MAX_CALLS;
    if (w->max_calls > ZT_MAX_CALLS)
        w->max_calls = ZT_MAX_CALLS;
    int status = zt__output_open(&w->out, path, header, options->level, options->overwrite, options->aside, error);
    if (status == ZT_OK && session != NULL && (status = write_session(w, session)) != ZT_OK) {
        zt__complain(error, status, path, status == ZT_E_IO ? strerror(errno) : "no memory for a writer");
        zt__output_abandon(&w->out);
    }
    if (status != ZT_OK) {
        free_writer(w);
        return status;
    }
    *out = w;
    return ZT_OK;
}

int zt_writer_open(zt_writer **out, const char *path, const zt_session *session, const zt_writer_options *options, zt_error *error)
{
    const zt_file_header header = zt__output_header(session->uuid, NULL);
    return open_writer(out, path, &header, session, options, error);
}

int zt_writer_open_packets(zt_writer **out, const char *path, const zt_file_header *header, const zt_writer_options *options,
                           zt_error *error)
{
    return open_writer(out, path, header, NULL, options, error);
}

int zt_writer_packet(zt_writer *w, const zt_packet *p)
{
    uint8_t length[10];
    size_t n = 0;
    zt_writer_flush(w);
    for (size_t rest = p->size; rest > 0 || n == 0; rest >>= 7)
        length[n++] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
    w->raw.n = 0;
    if (!zt__append(&w->raw, length, n) || !zt__append(&w->raw, p->data, p->size))
        return zt__output_fail(&w->out, ZT_E_MEMORY);
    return write_chunk(w, (zt_chunk_header){.kind = p->kind, .flags = p->flags, .first = p->first, .calls = p->calls, .late = p->late,
                                            .begin = p->begin, .end = p->end, .span = p->span});
}

void zt_writer_abandon(zt_writer *w)
{
    zt__output_abandon(&w->out);
    free_writer(w);
}

int zt_writer_flush(zt_writer *w)
{
    zt__chunk *const c = &w->chunk;
    if (c->calls == 0 && c->late == 0)
        return zt__output_standing(&w->out);
    w->raw.n = 0;
    if (zt__chunk_describe(c, &w->raw))
        write_chunk(w, (zt_chunk_header){.kind = ZT_CHUNK_API});
    w->raw.n = 0;
    if (c->broken || !zt__chunk_pack(c, &w->raw)) {
        errno = ENOMEM;
        zt__output_fail(&w->out, ZT_E_MEMORY);
    } else {
        write_chunk(w, (zt_chunk_header){.kind = ZT_CHUNK_CALLS, .first = c->calls ? c->first : 0, .calls = c->calls, .late = c->late,
                                         .begin = c->begin, .end = c->end,
                                         .span = c->calls ? (uint32_t)(c->last - c->first) : 0});
    }
    zt__chunk_reset(c);
    return zt__output_standing(&w->out);
}

/* -------------------------------------------------------------------------------------------------------------- blobs */

int zt_writer_blob(zt_writer *w, const void *data, uint64_t len, zt_hash *hash)
{
    const XXH128_hash_t h = XXH3_128bits(data, len);
    bool known;
    *hash = (zt_hash){h.low64, h.high64};
    if (!zt__hashes_add(&w->blobs, hash, &known))
        return zt__output_fail(&w->out, ZT_E_MEMORY);
    if (known)
        return zt__output_standing(&w->out);
    for (uint64_t at = 0; at < len || at == 0; at += ZT_BLOB_PART) {
        Zetrace__Blob m;
        Zetrace__Packet packet;
        zetrace__blob__init(&m);
        zetrace__packet__init(&packet);
        m.hash = (ProtobufCBinaryData){16, (uint8_t *)hash};
        m.total = len;
        m.offset = at;
        m.data = (ProtobufCBinaryData){len - at < ZT_BLOB_PART ? len - at : ZT_BLOB_PART, (uint8_t *)(uintptr_t)data + at};
        packet.kind_case = ZETRACE__PACKET__KIND_BLOB;
        packet.blob = &m;
        write_packet(w, &packet, (zt_chunk_header){.kind = ZT_CHUNK_BLOB, .first = hash->lo, .begin = hash->hi, .end = at});
    }
    return zt__output_standing(&w->out);
}

/* Whether bytes may stand in the call chunk itself; `left` is what the call may still put there. */
static bool stays_inline(uint64_t len, uint64_t limit, uint64_t *left)
{
    if (len > limit || len > *left)
        return false;
    *left -= len;
    return true;
}

/* Replaces big pieces and contents by blobs, in copies of the lists. */
static zt_piece *with_blobs(zt_writer *w, const zt_piece *pieces, uint32_t n, uint64_t *left)
{
    zt_piece *copy = NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (pieces[i].data == NULL || stays_inline(pieces[i].len, ZT_INLINE_PIECE, left))
            continue;
        if (copy == NULL) {
            copy = malloc(n * sizeof(*copy));
            if (copy == NULL)
                return NULL;
            memcpy(copy, pieces, n * sizeof(*copy));
        }
        zt_writer_blob(w, pieces[i].data, pieces[i].len, &copy[i].hash);
        copy[i].data = NULL;
        copy[i].lost = 0;
    }
    return copy;
}

static zt_content *contents_with_blobs(zt_writer *w, const zt_content *contents, uint32_t n, uint64_t *left)
{
    zt_content *const copy = malloc(n * sizeof(*copy));
    for (uint32_t i = 0; copy != NULL && i < n; i++) {
        copy[i] = contents[i];
        if (copy[i].data == NULL)
            continue;
        if (!stays_inline(copy[i].len, ZT_INLINE_CONTENT, left)) {
            zt_writer_blob(w, copy[i].data, copy[i].len, &copy[i].hash);
            copy[i].data = NULL;
        } else if (copy[i].hash.lo == 0 && copy[i].hash.hi == 0) {
            const XXH128_hash_t h = XXH3_128bits(copy[i].data, copy[i].len);
            copy[i].hash = (zt_hash){h.low64, h.high64};
        }
    }
    return copy;
}

typedef struct replaced {
    zt_call call;
    zt_piece *in, *out;
    zt_content *contents;
} replaced;

static const zt_call *replace_big(zt_writer *w, const zt_call *call, replaced *r)
{
    uint64_t left = ZT_INLINE_CALL;
    *r = (replaced){.call = *call};
    r->in = with_blobs(w, call->in, call->n_in, &left);
    r->out = with_blobs(w, call->out, call->n_out, &left);
    r->contents = call->n_contents ? contents_with_blobs(w, call->contents, call->n_contents, &left) : NULL;
    if (r->in)
        r->call.in = r->in;
    if (r->out)
        r->call.out = r->out;
    if (r->contents)
        r->call.contents = r->contents;
    return &r->call;
}

static bool needs_care(const zt_call *call)
{
    uint64_t left = ZT_INLINE_CALL;
    if (call->n_contents > 0)
        return true;
    for (uint32_t i = 0; i < call->n_in; i++)
        if (!stays_inline(call->in[i].len, ZT_INLINE_PIECE, &left))
            return true;
    for (uint32_t i = 0; i < call->n_out; i++)
        if (!stays_inline(call->out[i].len, ZT_INLINE_PIECE, &left))
            return true;
    return false;
}

int zt_writer_call(zt_writer *w, const zt_call *call)
{
    replaced r = {0};
    if (w->out.failed)
        return zt__output_standing(&w->out);
    const bool care = needs_care(call);
    if (w->chunk.calls > 0 && (call->number <= w->chunk.last || call->number - w->chunk.first > UINT32_MAX))
        zt_writer_flush(w);
    zt__chunk_add(&w->chunk, care ? replace_big(w, call, &r) : call);
    if (care) {
        free(r.in);
        free(r.out);
        free(r.contents);
    }
    if (w->chunk.calls >= w->max_calls || w->chunk.bytes >= CHUNK_BYTES)
        zt_writer_flush(w);
    return zt__output_standing(&w->out);
}

int zt_writer_leave(zt_writer *w, uint64_t number, const zt_call *leave)
{
    replaced r;
    if (w->out.failed)
        return zt__output_standing(&w->out);
    zt__chunk_late(&w->chunk, number, replace_big(w, leave, &r));
    free(r.in);
    free(r.out);
    free(r.contents);
    if (w->chunk.bytes >= CHUNK_BYTES || w->chunk.late >= ZT_MAX_CALLS)
        zt_writer_flush(w);
    return zt__output_standing(&w->out);
}

int zt_writer_lost(zt_writer *w, uint32_t thread, uint64_t time_ns, uint64_t calls, uint64_t bytes)
{
    Zetrace__Lost m;
    Zetrace__Packet packet;
    zetrace__lost__init(&m);
    zetrace__packet__init(&packet);
    m.thread = thread;
    m.time_ns = time_ns;
    m.calls = calls;
    m.bytes = bytes;
    packet.kind_case = ZETRACE__PACKET__KIND_LOST;
    packet.lost = &m;
    zt_writer_flush(w);
    return write_packet(w, &packet, (zt_chunk_header){.kind = ZT_CHUNK_LOST, .begin = time_ns});
}

int zt_writer_frames(zt_writer *w, const uint64_t *addresses, const char *const *names, size_t n)
{
    enum { PART = 4096 };
    uint64_t deltas[PART];
    for (size_t at = 0; at < n; at += PART) {
        Zetrace__Frames m;
        Zetrace__Packet packet;
        zetrace__frames__init(&m);
        zetrace__packet__init(&packet);
        const size_t part = n - at < PART ? n - at : PART;
        for (size_t i = 0; i < part; i++)
            deltas[i] = addresses[at + i] - (i ? addresses[at + i - 1] : 0);
        m.n_address = m.n_name = part;
        m.address = deltas;
        m.name = (char **)(uintptr_t)(names + at);
        packet.kind_case = ZETRACE__PACKET__KIND_FRAMES;
        packet.frames = &m;
        write_packet(w, &packet, (zt_chunk_header){.kind = ZT_CHUNK_FRAMES});
    }
    return zt__output_standing(&w->out);
}

uint64_t zt_writer_bytes(const zt_writer *w)
{
    return w->out.written;
}

static void write_ending(zt_writer *w, const zt_ending *e)
{
    Zetrace__Ending m;
    Zetrace__Packet packet;
    zetrace__ending__init(&m);
    zetrace__packet__init(&packet);
    m.complete = e->complete;
    m.exited = e->exited;
    m.signalled = e->signalled;
    m.status = e->status;
    m.calls = e->calls;
    m.dropped = e->dropped;
    m.dropped_bytes = e->dropped_bytes;
    m.never_returned = e->never_returned;
    m.threads = e->threads;
    m.added_ns = e->added_ns;
    m.unknown_slots = e->unknown_slots;
    m.unknown_pnext = e->unknown_pnext;
    m.unwrapped_extensions = e->unwrapped_extensions;
    packet.kind_case = ZETRACE__PACKET__KIND_ENDING;
    packet.ending = &m;
    write_packet(w, &packet, (zt_chunk_header){.kind = ZT_CHUNK_ENDING});
}

int zt_writer_close(zt_writer *w, const zt_ending *ending, zt_error *error)
{
    zt_writer_flush(w);
    w->raw.n = 0;
    if (zt__chunk_describe_again(&w->chunk, &w->raw))
        write_chunk(w, (zt_chunk_header){.kind = ZT_CHUNK_API});
    if (ending != NULL)
        write_ending(w, ending);
    const int status = zt__output_close(&w->out, error);
    free_writer(w);
    return status;
}

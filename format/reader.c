/* SPDX-License-Identifier: MIT */
/*
 * Finds the chunks of a trace by walking their headers, past damage where there is some, and gives their calls one by one. The
 * index at the end is for others: walking costs two reads per 8,192 calls and works on every file.
 */
#include "packets.h"
#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#define BLOB_CACHE (64u << 20)

typedef struct late_place {
    uint64_t number;
    uint32_t place, index;
} late_place;

typedef struct cached_blob {
    zt_hash hash;
    void *data;
    uint64_t len;
    struct cached_blob *next;
} cached_blob;

typedef struct foreign { /* a function this build does not know */
    zt_func func;
    zt_field *params;
} foreign;

struct zt_trace {
    int fd;
    char *path;
    uint64_t size;
    zt_file_header header;
    zt_session session;
    zt_ending ending;
    zt_health health;
    zt__place *places;
    size_t n_places, places_room;
    const zt_func **funcs; /* by id of the trace */
    size_t n_funcs;
    foreign **foreigns;
    size_t n_foreigns;
    late_place *lates; /* sorted by number */
    size_t n_lates, lates_room;
    zt__calls *current, *late_chunk;
    size_t next_place;
    uint64_t skip_to; /* seek: calls below it are passed over */
    zt__slot slot;
    cached_blob *blobs;
    uint64_t blob_bytes;
    zt__frames frames;
    uint8_t *packet; /* of zt_trace_packet */
    ZSTD_DCtx *zstd;
};

static int complain(zt_error *error, int status, const char *path, const char *text)
{
    if (error != NULL) {
        error->status = status;
        snprintf(error->text, sizeof(error->text), "%.300s: %s", path, text);
    }
    return status;
}

static void problem(zt_trace *t, uint64_t offset, const char *what)
{
    if (t->health.first_problem[0] == '\0')
        snprintf(t->health.first_problem, sizeof(t->health.first_problem), "%.300s: at 0x%llx: %s", t->path,
                 (unsigned long long)offset, what);
}

static bool read_at(const zt_trace *t, uint64_t offset, void *out, size_t n)
{
    uint8_t *p = out;
    while (n > 0) {
        const ssize_t got = pread(t->fd, p, n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        p += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- walking */

static bool header_at(const zt_trace *t, uint64_t offset, zt_chunk_header *h)
{
    return offset + sizeof(*h) <= t->size && read_at(t, offset, h, sizeof(*h)) && h->skippable == ZT_SKIPPABLE &&
           h->skip_size == sizeof(*h) - 8 && h->magic == ZT_CHUNK_MAGIC &&
           h->check == XXH32(h, offsetof(zt_chunk_header, check), 0) && h->raw_size <= ZT_MAX_RAW &&
           h->calls <= ZT_MAX_CALLS && h->stored_size <= ZT_MAX_RAW * 2u;
}

static bool is_index(const zt_trace *t, uint64_t offset, zt_index_head *head)
{
    return offset + sizeof(*head) <= t->size && read_at(t, offset, head, sizeof(*head)) && head->skippable == ZT_SKIPPABLE &&
           head->magic == ZT_INDEX_MAGIC && offset + 8 + head->skip_size <= t->size &&
           head->skip_size == 8 + (uint64_t)head->entries * sizeof(zt_index_entry) + sizeof(zt_index_tail);
}

/* The next offset from `from` on at which a good chunk header or the index stands. @return t->size if there is none. */
static uint64_t resync(const zt_trace *t, uint64_t from)
{
    static const uint32_t skippable = ZT_SKIPPABLE;
    uint8_t buffer[65536];
    zt_chunk_header h;
    zt_index_head head;
    while (from + sizeof(h) <= t->size) {
        const size_t n = t->size - from < sizeof(buffer) ? (size_t)(t->size - from) : sizeof(buffer);
        if (!read_at(t, from, buffer, n))
            return t->size;
        for (size_t i = 0; i + 4 <= n; i++)
            if (memcmp(buffer + i, &skippable, 4) == 0 && (header_at(t, from + i, &h) || is_index(t, from + i, &head)))
                return from + i;
        from += n - 3;
        if (n < sizeof(buffer))
            break;
    }
    return t->size;
}

static bool add_place(zt_trace *t, uint64_t offset, const zt_chunk_header *h)
{
    if (t->n_places == t->places_room) {
        const size_t more = t->places_room ? t->places_room * 2 : 64;
        zt__place *const grown = realloc(t->places, more * sizeof(*grown));
        if (grown == NULL)
            return false;
        t->places = grown;
        t->places_room = more;
    }
    t->places[t->n_places++] = (zt__place){.offset = offset, .first = h->first, .begin = h->begin, .end = h->end,
                                           .sequence = h->sequence, .calls = h->calls, .late = h->late, .span = h->span,
                                           .raw_size = h->raw_size, .stored_size = h->stored_size, .kind = h->kind,
                                           .flags = h->flags};
    return true;
}

static int walk(zt_trace *t)
{
    uint64_t offset = sizeof(zt_file_header);
    bool index = false, ending = false;
    while (offset < t->size) {
        zt_chunk_header h;
        zt_index_head head;
        if (header_at(t, offset, &h)) {
            const uint64_t end = offset + sizeof(h) + h.stored_size;
            if (end > t->size) {
                problem(t, offset, "the trace ends within a chunk; what comes before it is read");
                t->health.damaged_chunks++;
                break;
            }
            if (!add_place(t, offset, &h))
                return ZT_E_MEMORY;
            ending |= h.kind == ZT_CHUNK_ENDING;
            offset = end;
        } else if (is_index(t, offset, &head)) {
            index = true;
            offset += 8 + head.skip_size;
        } else {
            problem(t, offset, "no chunk begins here; what follows is searched for");
            t->health.damaged_chunks++;
            offset = resync(t, offset + 1);
        }
    }
    t->health.complete = index && ending;
    t->health.chunks = t->n_places;
    return ZT_OK;
}

/* ---------------------------------------------------------------------------------------------------------- decoding */

static void damaged(zt_trace *t, zt__place *p)
{
    char text[200];
    p->damaged = true;
    t->health.damaged_chunks++;
    if (p->kind == ZT_CHUNK_CALLS && p->calls > 0) {
        snprintf(text, sizeof(text), "a chunk's checksum or layout is wrong (calls #%llu..#%llu lost)", (unsigned long long)p->first,
                 (unsigned long long)p->first + p->span);
        t->health.calls_lost += p->calls;
        t->health.calls -= p->calls < t->health.calls ? p->calls : t->health.calls;
    } else {
        snprintf(text, sizeof(text), "a chunk's checksum or layout is wrong");
    }
    problem(t, p->offset, text);
}

/* Decompresses a chunk. @return what to free, or NULL: damaged, or memory is out. *message: in it, without the length in front. */
static uint8_t *contents(zt_trace *t, const zt__place *p, const uint8_t **message, size_t *size)
{
    uint8_t *const stored = malloc(p->stored_size ? p->stored_size : 1), *const raw = malloc(p->raw_size ? p->raw_size : 1);
    bool ok = false;
    if (stored != NULL && raw != NULL && !p->damaged && read_at(t, p->offset + sizeof(zt_chunk_header), stored, p->stored_size) &&
        ZSTD_getFrameContentSize(stored, p->stored_size) == p->raw_size &&
        ZSTD_findFrameCompressedSize(stored, p->stored_size) == p->stored_size) {
        const size_t n = ZSTD_decompressDCtx(t->zstd, raw, p->raw_size, stored, p->stored_size);
        if (!ZSTD_isError(n) && n == p->raw_size) {
            size_t at = 0, length = 0;
            unsigned shift = 0;
            while (at < n && shift < 35) {
                length |= (size_t)(raw[at] & 0x7f) << shift;
                shift += 7;
                if (!(raw[at++] & 0x80))
                    break;
            }
            ok = length == n - at;
            *message = raw + at;
            *size = length;
        }
    }
    free(stored);
    if (ok)
        return raw;
    free(raw);
    return NULL;
}

/* @return the packet of a chunk, or NULL: damaged, or memory is out. */
static Zetrace__Packet *unpack(zt_trace *t, zt__place *p)
{
    const uint8_t *message;
    size_t size;
    uint8_t *const raw = contents(t, p, &message, &size);
    Zetrace__Packet *const packet = raw != NULL ? zetrace__packet__unpack(NULL, size, message) : NULL;
    free(raw);
    if (packet == NULL && !p->damaged)
        damaged(t, p);
    return packet;
}

static char *copy(const char *text)
{
    return strdup(text ? text : "");
}

static bool copy_pairs(zt_pair **out, uint32_t *n, Zetrace__Pair *const *from, size_t count)
{
    *out = calloc(count ? count : 1, sizeof(**out));
    for (size_t i = 0; *out != NULL && i < count; i++)
        (*out)[(*n)++] = (zt_pair){copy(from[i]->name), copy(from[i]->value)};
    return *out != NULL;
}

static void take_session(zt_trace *t, const Zetrace__Session *m)
{
    zt_session *const s = &t->session;
    zt_session_free(s);
    if (m->uuid.len == 16)
        memcpy(s->uuid, m->uuid.data, 16);
    if (m->parent_uuid.len == 16)
        memcpy(s->parent_uuid, m->parent_uuid.data, 16);
    s->version = copy(m->version);
    s->program = copy(m->program);
    s->hostname = copy(m->hostname);
    s->rank = copy(m->rank);
    s->pid = m->pid;
    s->parent_pid = m->parent_pid;
    s->start_wall_ns = m->start_wall_ns;
    s->start_monotonic_ns = m->start_monotonic_ns;
    s->order = copy(m->order);
    s->attach = copy(m->attach);
    s->memory = copy(m->memory);
    s->argv = calloc(m->n_argv ? m->n_argv : 1, sizeof(*s->argv));
    for (size_t i = 0; s->argv != NULL && i < m->n_argv; i++)
        s->argv[s->argc++] = copy(m->argv[i]);
    copy_pairs(&s->settings, &s->n_settings, m->settings, m->n_settings);
    copy_pairs(&s->environment, &s->n_environment, m->environment, m->n_environment);
    s->libraries = calloc(m->n_libraries ? m->n_libraries : 1, sizeof(*s->libraries));
    for (size_t i = 0; s->libraries != NULL && i < m->n_libraries; i++)
        s->libraries[s->n_libraries++] = (zt_library){.path = copy(m->libraries[i]->path), .build_id = copy(m->libraries[i]->build_id),
                                                      .base = m->libraries[i]->address, .size = m->libraries[i]->size};
}

static void take_ending(zt_trace *t, const Zetrace__Ending *m)
{
    t->ending = (zt_ending){.complete = m->complete, .exited = m->exited, .signalled = m->signalled, .status = m->status,
                            .calls = m->calls, .dropped = m->dropped, .dropped_bytes = m->dropped_bytes,
                            .never_returned = m->never_returned, .threads = m->threads, .added_ns = m->added_ns,
                            .unknown_slots = m->unknown_slots, .unknown_pnext = m->unknown_pnext,
                            .unwrapped_extensions = m->unwrapped_extensions};
}

static uint16_t type_index(const char *name)
{
    const zt_type *const type = zt_type_find(name);
    const zt_type *const fallback = zt_type_find("uint64_t");
    return (uint16_t)((type ? type : fallback) - zt_types);
}

/* A function that this build does not know, from what the trace tells of it: its words can be shown. */
static const zt_func *foreign_function(zt_trace *t, const Zetrace__ApiTable__Function *m)
{
    foreign *const f = calloc(1, sizeof(*f));
    foreign **const grown = realloc(t->foreigns, (t->n_foreigns + 1) * sizeof(*grown));
    if (grown != NULL)
        t->foreigns = grown;
    const size_t n = m->n_params < 64 ? m->n_params : 64;
    if (f == NULL || grown == NULL || (f->params = calloc(n ? n : 1, sizeof(*f->params))) == NULL) {
        free(f);
        return NULL;
    }
    t->foreigns[t->n_foreigns++] = f;
    for (size_t i = 0; i < n; i++) {
        const Zetrace__ApiTable__Param *const p = m->params[i];
        const bool fits = p->word < m->words && p->size <= (m->words - p->word) * 8u && p->size > 0;
        f->params[i] = (zt_field){.name = copy(p->name), .decl = copy(p->type), .type = type_index("uint64_t"), .dir = ZT_IN,
                                  .shape = ZT_VALUE, .offset = (uint16_t)(fits ? p->word : 0), .size = 8};
    }
    f->func = (zt_func){.name = copy(m->name), .ns = m->ns < ZT_NS_COUNT ? (uint8_t)m->ns : 0, .kind = ZT_K_OTHER,
                        .n_params = (uint8_t)n, .n_words = (uint8_t)m->words, .return_type = type_index(m->returns),
                        .params = f->params};
    return &f->func;
}

static void take_api(zt_trace *t, const Zetrace__ApiTable *m)
{
    for (size_t i = 0; i < m->n_functions; i++) {
        const Zetrace__ApiTable__Function *const f = m->functions[i];
        if (f->id >= 65536 || f->words > ZT_MAX_WORDS)
            continue;
        if (f->id >= t->n_funcs) {
            const zt_func **const grown = realloc(t->funcs, (f->id + 1) * sizeof(*grown));
            if (grown == NULL)
                return;
            memset(grown + t->n_funcs, 0, (f->id + 1 - t->n_funcs) * sizeof(*grown));
            t->funcs = grown;
            t->n_funcs = f->id + 1;
        }
        const int known = zt_func_find(f->name);
        if (t->funcs[f->id] == NULL)
            t->funcs[f->id] = known >= 0 && zt_funcs[known].n_words == f->words ? &zt_funcs[known] : foreign_function(t, f);
    }
}

static const zt_func *func_of(void *ctx, uint32_t id)
{
    const zt_trace *const t = ctx;
    return id < t->n_funcs ? t->funcs[id] : NULL;
}

static zt__calls *load_calls(zt_trace *t, size_t place)
{
    Zetrace__Packet *const packet = unpack(t, &t->places[place]);
    if (packet == NULL)
        return NULL;
    zt__calls *const calls = zt__calls_new(packet, place, func_of, t);
    if (calls == NULL || calls->chunk->n_function != t->places[place].calls || calls->chunk->n_late != t->places[place].late) {
        if (!t->places[place].damaged) {
            t->places[place].damaged = true;
            t->health.damaged_chunks++;
            t->health.calls_lost += t->places[place].calls;
            t->health.calls -= t->places[place].calls;
            problem(t, t->places[place].offset, "a chunk's columns do not fit each other; its calls are lost");
        }
        zt__calls_unref(calls);
        return NULL;
    }
    return calls;
}

/* ------------------------------------------------------------------------------------------------------------ opening */

static int by_number(const void *a, const void *b)
{
    const late_place *const x = a, *const y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static int find_lates(zt_trace *t)
{
    for (size_t i = 0; i < t->n_places; i++) {
        if (t->places[i].kind != ZT_CHUNK_CALLS || t->places[i].late == 0)
            continue;
        zt__calls *const calls = load_calls(t, i);
        if (calls == NULL)
            continue;
        for (size_t k = 0; k < calls->chunk->n_late; k++) {
            if (t->n_lates == t->lates_room) {
                const size_t more = t->lates_room ? t->lates_room * 2 : 64;
                late_place *const grown = realloc(t->lates, more * sizeof(*grown));
                if (grown == NULL) {
                    zt__calls_unref(calls);
                    return ZT_E_MEMORY;
                }
                t->lates = grown;
                t->lates_room = more;
            }
            t->lates[t->n_lates++] = (late_place){calls->chunk->late[k]->number, (uint32_t)i, (uint32_t)k};
        }
        zt__calls_unref(calls);
    }
    if (t->n_lates > 0)
        qsort(t->lates, t->n_lates, sizeof(*t->lates), by_number);
    return ZT_OK;
}

/* What is not calls is read at once: session, table, ending. Call chunks only where headers cannot tell (late LEAVEs). */
static int read_frame(zt_trace *t)
{
    uint64_t expected = 0, next_sequence = 0;
    bool session = false, gap = false;
    for (size_t i = 0; i < t->n_places; i++) {
        zt__place *const p = &t->places[i];
        if (p->sequence != next_sequence && !gap) {
            gap = true;
            if (t->health.damaged_chunks == 0)
                problem(t, p->offset, "chunks are missing before this one");
        }
        next_sequence = p->sequence + 1;
        if (p->kind == ZT_CHUNK_CALLS) {
            t->health.calls += p->calls;
            if (expected != 0 && p->calls > 0 && p->first > expected && gap)
                t->health.calls_lost += p->first - expected;
            if (p->calls > 0)
                expected = p->first + p->span + 1;
            gap = false;
            continue;
        }
        if (p->kind != ZT_CHUNK_SESSION && p->kind != ZT_CHUNK_API && p->kind != ZT_CHUNK_ENDING && p->kind != ZT_CHUNK_FRAMES)
            continue;
        Zetrace__Packet *const packet = unpack(t, p);
        if (packet == NULL)
            continue;
        if (packet->kind_case == ZETRACE__PACKET__KIND_SESSION && !session) {
            session = true;
            if (packet->session->required_reader > ZT_MINOR) {
                zetrace__packet__free_unpacked(packet, NULL);
                return ZT_E_NEWER;
            }
            take_session(t, packet->session);
        } else if (packet->kind_case == ZETRACE__PACKET__KIND_API) {
            take_api(t, packet->api);
        } else if (packet->kind_case == ZETRACE__PACKET__KIND_ENDING) {
            take_ending(t, packet->ending);
        } else if (packet->kind_case == ZETRACE__PACKET__KIND_FRAMES) {
            zt__frames_take(&t->frames, packet->frames);
        }
        zetrace__packet__free_unpacked(packet, NULL);
    }
    if (!session) {
        static const Zetrace__Session none = ZETRACE__SESSION__INIT;
        take_session(t, &none);
    }
    return ZT_OK;
}

/* Standard input cannot be walked twice: into a file without a name. */
static int spool(zt_error *error)
{
    char buffer[65536];
    const int fd = memfd_create("zetrace-stdin", MFD_CLOEXEC);
    for (ssize_t n; fd >= 0 && (n = read(STDIN_FILENO, buffer, sizeof(buffer))) != 0;) {
        if ((n < 0 && errno != EINTR) || (n > 0 && write(fd, buffer, (size_t)n) != n)) {
            complain(error, ZT_E_IO, "-", strerror(errno));
            close(fd);
            return -1;
        }
    }
    return fd;
}

static int open_file(zt_trace *t, const char *path, zt_error *error)
{
    struct stat st;
    char text[256];
    t->fd = strcmp(path, "-") == 0 ? spool(error) : open(path, O_RDONLY | O_CLOEXEC);
    if (t->fd < 0 || fstat(t->fd, &st) != 0)
        return complain(error, ZT_E_IO, path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return complain(error, ZT_E_USAGE, path, "is a folder; a trace file was wanted");
    if (!S_ISREG(st.st_mode))
        return complain(error, ZT_E_USAGE, path, "is no regular file; give '-' to read a trace from standard input");
    t->size = (uint64_t)st.st_size;
    if (t->size == 0)
        return complain(error, ZT_E_FOREIGN, path, "is empty; a zetrace trace was wanted (a recording that was never begun?)");
    if (t->size < sizeof(t->header) || !read_at(t, 0, &t->header, sizeof(t->header)) ||
        memcmp(t->header.magic, ZT_MAGIC, sizeof(t->header.magic)) != 0)
        return complain(error, ZT_E_FOREIGN, path, "is not a zetrace trace (it does not begin with ZETRACE); record one with 'zetrace record'");
    if (t->header.major != ZT_MAJOR) {
        snprintf(text, sizeof(text), "is a trace of format %u.%u, but this zetrace reads format %u; use a newer zetrace",
                 t->header.major, t->header.minor, (unsigned)ZT_MAJOR);
        return complain(error, t->header.major > ZT_MAJOR ? ZT_E_NEWER : ZT_E_FOREIGN, path, text);
    }
    return ZT_OK;
}

int zt_trace_open(zt_trace **out, const char *path, zt_error *error)
{
    *out = NULL;
    zt_trace *const t = calloc(1, sizeof(*t));
    if (t == NULL)
        return complain(error, ZT_E_MEMORY, path, "no memory to read it");
    t->fd = -1;
    t->path = copy(path);
    t->zstd = ZSTD_createDCtx();
    int status = t->path && t->zstd ? open_file(t, path, error) : complain(error, ZT_E_MEMORY, path, "no memory to read it");
    if (status == ZT_OK) {
        status = walk(t);
        if (status == ZT_OK)
            status = read_frame(t);
        if (status == ZT_OK)
            status = find_lates(t);
        if (status == ZT_OK && t->n_places == 0)
            status = ZT_E_DAMAGED;
        if (status != ZT_OK)
            complain(error, status, path,
                     status == ZT_E_NEWER    ? "needs a newer zetrace to be read right"
                     : status == ZT_E_MEMORY ? "no memory to read it"
                                             : "nothing in it can be read: it was cut or damaged right behind its beginning");
    }
    if (status != ZT_OK) {
        zt_trace_close(t);
        return status;
    }
    *out = t;
    return ZT_OK;
}

void zt_trace_close(zt_trace *t)
{
    if (t == NULL)
        return;
    zt__calls_unref(t->current);
    zt__calls_unref(t->late_chunk);
    zt__slot_free(&t->slot);
    for (cached_blob *b = t->blobs, *next; b != NULL; b = next) {
        next = b->next;
        free(b->data);
        free(b);
    }
    for (size_t i = 0; i < t->n_foreigns; i++) {
        for (unsigned p = 0; p < t->foreigns[i]->func.n_params; p++) {
            free((void *)(uintptr_t)t->foreigns[i]->params[p].name);
            free((void *)(uintptr_t)t->foreigns[i]->params[p].decl);
        }
        free((void *)(uintptr_t)t->foreigns[i]->func.name);
        free(t->foreigns[i]->params);
        free(t->foreigns[i]);
    }
    zt__frames_free(&t->frames);
    zt_session_free(&t->session);
    ZSTD_freeDCtx(t->zstd);
    if (t->fd >= 0)
        close(t->fd);
    free(t->packet);
    free(t->foreigns);
    free(t->funcs);
    free(t->places);
    free(t->lates);
    free(t->path);
    free(t);
}

const zt_session *zt_trace_session(const zt_trace *t)
{
    return &t->session;
}

const zt_ending *zt_trace_ending(const zt_trace *t)
{
    return &t->ending;
}

const zt_health *zt_trace_health(const zt_trace *t)
{
    return &t->health;
}

uint64_t zt_trace_bytes(const zt_trace *t)
{
    return t->size;
}

const zt_file_header *zt_trace_header(const zt_trace *t)
{
    return &t->header;
}

size_t zt_trace_packets(const zt_trace *t)
{
    return t->n_places;
}

int zt_trace_packet(zt_trace *t, size_t index, zt_packet *packet)
{
    zt__place *const p = &t->places[index];
    *packet = (zt_packet){.kind = p->kind, .flags = p->flags, .calls = p->calls, .late = p->late, .span = p->span, .first = p->first,
                          .begin = p->begin, .end = p->end};
    free(t->packet);
    t->packet = contents(t, p, &packet->data, &packet->size);
    if (t->packet == NULL && !p->damaged)
        damaged(t, p);
    return t->packet != NULL ? ZT_OK : ZT_E_DAMAGED;
}

unsigned zt_trace_unknown_functions(const zt_trace *t)
{
    return (unsigned)t->n_foreigns;
}

const char *zt_trace_frame(zt_trace *t, uint64_t address)
{
    return zt__frames_find(&t->frames, &t->session, address);
}

/* ------------------------------------------------------------------------------------------------------------- calls */

static int complete_late(zt_trace *t, zt__slot *slot)
{
    const late_place key = {.number = slot->call.number};
    const late_place *const found = t->n_lates ? bsearch(&key, t->lates, t->n_lates, sizeof(key), by_number) : NULL;
    if (found == NULL)
        return ZT_OK;
    if (t->late_chunk == NULL || t->late_chunk->place != found->place) {
        zt__calls_unref(t->late_chunk);
        t->late_chunk = load_calls(t, found->place);
    }
    if (t->late_chunk == NULL)
        return ZT_OK;
    return zt__slot_complete(slot, t->late_chunk, t->late_chunk->chunk->late[found->index]);
}

int zt__trace_next(zt_trace *t, zt__slot *slot)
{
    for (;;) {
        while (t->current == NULL) {
            if (t->next_place >= t->n_places)
                return ZT_END;
            const size_t i = t->next_place++;
            if (t->places[i].kind == ZT_CHUNK_CALLS && t->places[i].calls > 0)
                t->current = load_calls(t, i);
        }
        const int status = zt__calls_next(t->current, slot);
        if (status == ZT_END) {
            zt__calls_unref(t->current);
            t->current = NULL;
            continue;
        }
        if (status == ZT_OK && slot->call.number < t->skip_to)
            continue;
        if (status == ZT_OK && !slot->call.returned)
            return complete_late(t, slot);
        if (status == ZT_E_DAMAGED) { /* what is left of the chunk is not believed */
            problem(t, t->places[t->current->place].offset, "a chunk's contents do not fit its calls");
            t->health.damaged_chunks++;
            zt__calls_unref(t->current);
            t->current = NULL;
            continue;
        }
        return status;
    }
}

int zt_trace_next(zt_trace *t, const zt_call **call)
{
    const int status = zt__trace_next(t, &t->slot);
    *call = status == ZT_OK ? &t->slot.call : NULL;
    return status;
}

int zt_trace_seek(zt_trace *t, uint64_t number)
{
    zt__calls_unref(t->current);
    t->current = NULL;
    t->next_place = 0;
    t->skip_to = number;
    for (size_t i = 0; i < t->n_places; i++) {
        if (t->places[i].kind != ZT_CHUNK_CALLS || t->places[i].calls == 0)
            continue;
        t->next_place = i;
        if (t->places[i].first + t->places[i].span >= number)
            return ZT_OK;
    }
    return ZT_OK;
}

const void *zt_trace_blob(zt_trace *t, const zt_hash *hash, uint64_t *len)
{
    for (cached_blob *b = t->blobs; b != NULL; b = b->next)
        if (b->hash.lo == hash->lo && b->hash.hi == hash->hi) {
            *len = b->len;
            return b->data;
        }
    uint8_t *data = NULL;
    uint64_t total = 0, have = 0;
    for (size_t i = 0; i < t->n_places; i++) {
        zt__place *const p = &t->places[i];
        if (p->kind != ZT_CHUNK_BLOB || p->first != hash->lo || p->begin != hash->hi || p->end != have)
            continue;
        Zetrace__Packet *const packet = unpack(t, p);
        if (packet == NULL)
            break;
        const Zetrace__Blob *const m = packet->kind_case == ZETRACE__PACKET__KIND_BLOB ? packet->blob : NULL;
        bool ok = m != NULL && m->offset == have && (total == 0 || m->total == total) && m->data.len <= m->total - have;
        if (ok && m->total > have + m->data.len && m->total > t->size * 4096)
            ok = false; /* more than the file could hold */
        if (ok && m->data.len > 0) {
            uint8_t *const grown = realloc(data, have + m->data.len);
            if (grown != NULL) {
                data = grown;
                memcpy(data + have, m->data.data, m->data.len);
                have += m->data.len;
            } else {
                ok = false;
            }
        }
        if (ok)
            total = m->total;
        zetrace__packet__free_unpacked(packet, NULL);
        if (!ok)
            break;
        if (have == total)
            break;
    }
    const XXH128_hash_t h = XXH3_128bits(data ? data : (const uint8_t *)"", have);
    cached_blob *const b = data != NULL && have == total && h.low64 == hash->lo && h.high64 == hash->hi ? malloc(sizeof(*b)) : NULL;
    if (b == NULL) {
        free(data);
        return NULL;
    }
    while (t->blobs != NULL && t->blob_bytes + total > BLOB_CACHE) { /* the oldest goes */
        cached_blob **last = &t->blobs;
        while ((*last)->next != NULL)
            last = &(*last)->next;
        t->blob_bytes -= (*last)->len;
        free((*last)->data);
        free(*last);
        *last = NULL;
    }
    *b = (cached_blob){*hash, data, total, t->blobs};
    t->blobs = b;
    t->blob_bytes += total;
    *len = total;
    return data;
}

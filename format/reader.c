/* SPDX-License-Identifier: MIT */
/* Gives the calls of a trace one by one, and what else stands in it. */
#include "packets.h"
#include "reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LATE_CACHE (16u << 20)

static void problem(zt_trace *t, uint64_t offset, const char *what)
{
    if (t->health.first_problem[0] == '\0')
        snprintf(t->health.first_problem, sizeof(t->health.first_problem), "%.300s: at 0x%llx: %s", t->file.path,
                 (unsigned long long)offset, what);
}

/* ---------------------------------------------------------------------------------------------------------- decoding */

/* A chunk that was found damaged, said and counted once. */
static void lost(zt_trace *t, const zt__place *p)
{
    char text[200];
    t->health.damaged_chunks++;
    if (p->kind == ZT_CHUNK_CALLS && p->calls > 0) {
        snprintf(text, sizeof(text), "chunk %llu: %s (calls #%llu..#%llu lost); 'zetrace repair' keeps the rest",
                 (unsigned long long)p->sequence, zt__fault_text(p->fault), (unsigned long long)p->first,
                 (unsigned long long)p->first + p->span);
        t->health.calls_lost += p->calls;
        t->health.calls -= p->calls < t->health.calls ? p->calls : t->health.calls;
    } else {
        snprintf(text, sizeof(text), "chunk %llu: %s", (unsigned long long)p->sequence, zt__fault_text(p->fault));
    }
    problem(t, p->offset, text);
}

Zetrace__Packet *zt__unpack(zt_trace *t, zt__place *p)
{
    const bool known = p->fault != ZT__GOOD;
    Zetrace__Packet *const packet = zt__packet(&t->file, p, t->zstd);
    if (packet == NULL && !known)
        lost(t, p);
    return packet;
}

static char *copy(const char *text)
{
    return strdup(text ? text : "");
}

/* A name that goes to terminals and into C: a stranger's may hold anything. */
static char *copy_name(const char *text)
{
    char *const name = copy(text);
    for (char *c = name; c != NULL && *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
            *c = '?';
    return name;
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
    zt__foreign *const f = calloc(1, sizeof(*f));
    zt__foreign **const grown = realloc(t->foreigns, (t->n_foreigns + 1) * sizeof(*grown));
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
        f->params[i] = (zt_field){.name = copy_name(p->name), .decl = copy_name(p->type), .type = type_index("uint64_t"), .dir = ZT_IN,
                                  .shape = ZT_VALUE, .offset = (uint16_t)(fits ? p->word : 0), .size = 8};
    }
    f->func = (zt_func){.name = copy_name(m->name), .ns = m->ns < ZT_NS_COUNT ? (uint8_t)m->ns : 0, .kind = ZT_K_OTHER,
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

zt__calls *zt__load_calls(zt_trace *t, size_t place)
{
    zt__place *const p = &t->file.places[place];
    Zetrace__Packet *const packet = zt__unpack(t, p);
    if (packet == NULL)
        return NULL;
    bool known = true;
    for (size_t i = 0; i < packet->calls->n_functions; i++)
        known &= func_of(t, packet->calls->functions[i]) != NULL;
    zt__calls *const calls = zt__calls_new(packet, place, func_of, t);
    if (calls == NULL || calls->chunk->n_function != p->calls || calls->chunk->n_late != p->late) {
        if (p->fault == ZT__GOOD) {
            p->fault = known ? ZT__MISFIT : ZT__NO_TABLE;
            lost(t, p);
        }
        zt__calls_unref(calls);
        return NULL;
    }
    return calls;
}

/* ------------------------------------------------------------------------------------------------------------ opening */

static int by_number(const void *a, const void *b)
{
    const zt__late_place *const x = a, *const y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void fill_late_budget(zt_trace *t)
{
    t->late_left = 256u << 20;
    for (size_t i = 0; i < t->file.n_places; i++)
        t->late_left += t->file.places[i].late ? 16ull * t->file.places[i].raw_size : 0;
}

static int find_lates(zt_trace *t)
{
    fill_late_budget(t);
    for (size_t i = 0; i < t->file.n_places; i++) {
        if (t->file.places[i].kind != ZT_CHUNK_CALLS || t->file.places[i].late == 0)
            continue;
        zt__calls *const calls = zt__load_calls(t, i);
        if (calls == NULL)
            continue;
        for (size_t k = 0; k < calls->chunk->n_late; k++) {
            if (t->n_lates == t->lates_room) {
                const size_t more = t->lates_room ? t->lates_room * 2 : 64;
                zt__late_place *const grown = realloc(t->lates, more * sizeof(*grown));
                if (grown == NULL) {
                    zt__calls_unref(calls);
                    return ZT_E_MEMORY;
                }
                t->lates = grown;
                t->lates_room = more;
            }
            t->lates[t->n_lates++] = (zt__late_place){calls->chunk->late[k]->number, (uint32_t)i, (uint32_t)k};
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
    bool session = false, gap = false, gaps = false;
    for (size_t i = 0; i < t->file.n_places; i++) {
        zt__place *const p = &t->file.places[i];
        if (p->sequence != next_sequence && !gap) {
            gap = gaps = true;
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
        Zetrace__Packet *const packet = zt__unpack(t, p);
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
    if ((gaps || t->health.damaged_chunks > 0) && t->ending.calls >= t->health.calls) /* it knows about the last chunk as well */
        t->health.calls_lost = t->ending.calls - t->health.calls;
    t->health.complete &= !gaps;
    if (!session) {
        static const Zetrace__Session none = ZETRACE__SESSION__INIT;
        take_session(t, &none);
    }
    return ZT_OK;
}

/* What the walk found, as a reader's health. */
static void take_walk(zt_trace *t)
{
    const zt__file *const f = &t->file;
    if (f->strange && f->header.major != ZT_MAJOR) {
        char text[200];
        snprintf(text, sizeof(text), "it says to be of format %u.%u, and this zetrace reads format %u; what can be made out is read, a newer zetrace may do better",
                 f->header.major, f->header.minor, (unsigned)ZT_MAJOR);
        problem(t, 0, text);
    } else if (f->strange) {
        problem(t, 0, "the file header is damaged; what follows is read");
    }
    if (!f->strange && f->header.minor > ZT_MINOR) {
        char text[160];
        snprintf(text, sizeof(text), "it is of format %u.%u, newer than the %u.%u of this zetrace: what that does not know is left out", f->header.major,
                 f->header.minor, (unsigned)ZT_MAJOR, (unsigned)ZT_MINOR);
        problem(t, 0, text);
    }
    t->health.damaged_chunks = f->n_holes + f->strange;
    for (size_t i = 0; i < f->n_holes; i++)
        problem(t, f->holes[i].offset, f->holes[i].cut ? "the trace ends within a chunk; what comes before it is read"
                                                       : "no chunk begins here; what follows is searched for");
    t->health.chunks = f->n_places;
    for (size_t i = 0; i < f->n_places; i++)
        t->health.complete |= f->places[i].kind == ZT_CHUNK_ENDING && f->index_at != 0;
}

int zt_trace_open(zt_trace **out, const char *path, zt_error *error)
{
    *out = NULL;
    zt_trace *const t = calloc(1, sizeof(*t));
    if (t == NULL)
        return zt__complain(error, ZT_E_MEMORY, path, "no memory to read it");
    int status = zt__file_open(&t->file, path, error);
    if (status == ZT_OK) {
        t->zstd = ZSTD_createDCtx();
        status = t->zstd ? zt__file_walk(&t->file) : ZT_E_MEMORY;
        take_walk(t);
        if (status == ZT_OK)
            status = read_frame(t);
        if (status == ZT_OK)
            status = find_lates(t);
        if (status == ZT_OK && t->file.n_places == 0)
            status = ZT_E_DAMAGED;
        if (status != ZT_OK)
            zt__complain(error, status, path,
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

static void drop_late(zt_trace *t, size_t from)
{
    for (size_t i = from; i < ZT_LATE_CHUNKS; i++) {
        zt__calls_unref(t->late_chunks[i]);
        t->late_chunks[i] = NULL;
    }
}

void zt_trace_close(zt_trace *t)
{
    if (t == NULL)
        return;
    zt__calls_unref(t->current);
    drop_late(t, 0);
    zt__slot_free(&t->slot);
    zt__blobs_free(&t->blobs);
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
    zt__file_close(&t->file);
    free(t->packet);
    free(t->foreigns);
    free(t->funcs);
    free(t->lates);
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
    return t->file.size;
}

const zt_file_header *zt_trace_header(const zt_trace *t)
{
    return &t->file.header;
}

size_t zt_trace_packets(const zt_trace *t)
{
    return t->file.n_places;
}

int zt_trace_packet(zt_trace *t, size_t index, zt_packet *packet)
{
    zt__place *const p = &t->file.places[index], fresh = *p;
    const bool known = p->fault != ZT__GOOD;
    *packet = (zt_packet){.kind = p->kind, .flags = p->flags, .calls = p->calls, .late = p->late, .span = p->span, .first = p->first,
                          .begin = p->begin, .end = p->end};
    free(t->packet);
    fresh.fault = ZT__GOOD; /* what was found wrong with it may lie in what its bytes say */
    t->packet = zt__contents(&t->file, &fresh, t->zstd);
    const size_t at = t->packet ? zt__packet_at(t->packet, p->raw_size) : 0;
    if (at == 0) {
        p->fault = known ? p->fault : fresh.fault != ZT__GOOD ? fresh.fault : ZT__NO_PACKET;
        if (!known)
            lost(t, p);
        return ZT_E_DAMAGED;
    }
    packet->data = t->packet + at;
    packet->size = p->raw_size - at;
    return ZT_OK;
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

/*
 * A chunk with LEAVEs. Calls are completed in the order of their ENTERs, so a few chunks are needed by turns; a stranger's trace may
 * want a large one again for each call, and gets it so often only.
 */
static zt__calls *late_chunk(zt_trace *t, size_t place)
{
    size_t at = 0;
    uint64_t bytes = 0;
    const zt__place *const p = &t->file.places[place];
    while (at < ZT_LATE_CHUNKS - 1 && t->late_chunks[at] != NULL && t->late_chunks[at]->place != place)
        at++;
    zt__calls *found = t->late_chunks[at];
    if (found == NULL || found->place != place) {
        if (p->raw_size > t->late_left) {
            problem(t, p->offset, "ends of calls lie too far from their beginnings, more of them are not looked for");
            t->health.complete = false;
            return NULL;
        }
        t->late_left -= p->raw_size;
        zt__calls_unref(found);
        t->late_chunks[at] = NULL;
        found = zt__load_calls(t, place);
        if (found == NULL)
            return NULL;
    }
    memmove(t->late_chunks + 1, t->late_chunks, at * sizeof(*t->late_chunks));
    t->late_chunks[0] = found;
    for (size_t i = 0; i < ZT_LATE_CHUNKS && t->late_chunks[i] != NULL; i++)
        if ((bytes += t->file.places[t->late_chunks[i]->place].raw_size) > LATE_CACHE && i > 0)
            drop_late(t, i);
    return found;
}

static int complete_late(zt_trace *t, zt__slot *slot)
{
    const zt__late_place key = {.number = slot->call.number};
    const zt__late_place *const found = t->n_lates ? bsearch(&key, t->lates, t->n_lates, sizeof(key), by_number) : NULL;
    zt__calls *const chunk = found ? late_chunk(t, found->place) : NULL;
    return chunk ? zt__slot_complete(slot, chunk, chunk->chunk->late[found->index]) : ZT_OK;
}

int zt__trace_next(zt_trace *t, zt__slot *slot)
{
    for (;;) {
        while (t->current == NULL) {
            if (t->next_place >= t->file.n_places)
                return ZT_END;
            const size_t i = t->next_place++;
            if (t->file.places[i].kind == ZT_CHUNK_CALLS && t->file.places[i].calls > 0)
                t->current = zt__load_calls(t, i);
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
            problem(t, t->file.places[t->current->place].offset, "a chunk's contents do not fit its calls");
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
    fill_late_budget(t);
    for (size_t i = 0; i < t->file.n_places; i++) {
        if (t->file.places[i].kind != ZT_CHUNK_CALLS || t->file.places[i].calls == 0)
            continue;
        t->next_place = i;
        if (t->file.places[i].first + t->file.places[i].span >= number)
            return ZT_OK;
    }
    return ZT_OK;
}

/* SPDX-License-Identifier: MIT */
/* A chunk of calls taken apart. It comes from a stranger: each column is checked against the count of calls it must have. */
#include "reader.h"

#include <stdlib.h>
#include <string.h>

void zt__calls_ref(zt__calls *c)
{
    c->refs++;
}

void zt__calls_unref(zt__calls *c)
{
    if (c == NULL || --c->refs > 0)
        return;
    for (size_t f = 0; c->functions != NULL && f < c->chunk->n_functions; f++) {
        free(c->functions[f].words);
        free(c->functions[f].pieces);
    }
    free(c->functions);
    free(c->threads);
    zetrace__packet__free_unpacked(c->packet, NULL);
    free(c);
}

/* Columns of calls: exactly one value a call, or none at all where that has a meaning. */
static bool columns_fit(const Zetrace__CallChunk *m)
{
    const size_t n = m->n_function;
    if (n > ZT_MAX_CALLS || m->n_thread != n || m->n_enter != n || m->n_duration != n || m->n_result != n ||
        (m->n_gaps != 0 && m->n_gaps != n) || (m->n_flags != 0 && m->n_flags != n) || (m->n_added_ns != 0 && m->n_added_ns != n))
        return false;
    for (size_t i = 0; i < n; i++)
        if (m->function[i] >= m->n_functions || m->result[i] >= m->n_results)
            return false;
    return true;
}

static bool words_fit(zt__calls *c, const size_t *calls)
{
    const Zetrace__CallChunk *const m = c->chunk;
    for (size_t i = 0; i < m->n_words; i++) {
        const Zetrace__Words *const w = m->words[i];
        if (w->function >= m->n_functions || w->word >= c->functions[w->function].func->n_words ||
            w->n_delta != calls[w->function])
            return false;
        c->functions[w->function].words[w->word] = (zt__word_cursor){w->delta, w->n_delta, 0};
    }
    for (size_t f = 0; f < m->n_functions; f++)
        for (unsigned w = 0; w < c->functions[f].func->n_words; w++)
            if (c->functions[f].words[w].n != calls[f])
                return false;
    return true;
}

static uint64_t piece_bytes(const Zetrace__Pieces *p, size_t i)
{
    const uint32_t kind = p->n_kind ? p->kind[i] : 0;
    return kind == 0 ? p->length[p->n_length == 1 ? 0 : i] : kind == 1 ? sizeof(zt_hash) : 0;
}

static bool pieces_fit(zt__calls *c, const size_t *calls)
{
    const Zetrace__CallChunk *const m = c->chunk;
    for (size_t i = 0; i < m->n_pieces; i++) {
        const Zetrace__Pieces *const p = m->pieces[i];
        if (p->function >= m->n_functions || (p->n_length != 1 && p->n_length != p->n_address) ||
            (p->n_kind != 0 && p->n_kind != p->n_address) || (p->n_call != 0 && p->n_call != p->n_address) ||
            (p->n_call == 0 && p->n_address != calls[p->function]) || p->n_address > calls[p->function])
            return false;
        uint64_t bytes = 0, call = 0;
        for (size_t k = 0; k < p->n_address; k++) {
            const uint64_t size = piece_bytes(p, k);
            if (size > p->data.len || (p->n_kind && p->kind[k] > 2))
                return false;
            bytes += size;
            if (p->n_call != 0)
                call += p->call[k] + 1ull;
        }
        if (bytes != p->data.len || call > calls[p->function])
            return false;
        zt__function_view *const f = &c->functions[p->function];
        f->pieces[f->n_pieces++] = (zt__piece_cursor){.column = p, .next_call = p->n_call && p->n_address ? p->call[0] : 0};
    }
    return true;
}

static bool contents_fit(const Zetrace__CallChunk *m)
{
    uint32_t last = 0;
    for (size_t i = 0; i < m->n_contents; i++) {
        const Zetrace__Content *const k = m->contents[i];
        if (k->call < last || k->call >= m->n_function || k->hash.len != sizeof(zt_hash) ||
            (!(k->flags & 6) && k->data.len != k->length))
            return false;
        last = k->call;
    }
    last = 0;
    for (size_t i = 0; i < m->n_backtraces; i++) {
        if (m->backtraces[i]->call < last || m->backtraces[i]->call >= m->n_function)
            return false;
        last = m->backtraces[i]->call;
    }
    return true;
}

static int by_phase_and_index(const void *a, const void *b)
{
    const Zetrace__Pieces *const x = ((const zt__piece_cursor *)a)->column, *const y = ((const zt__piece_cursor *)b)->column;
    if (x->leave != y->leave)
        return x->leave ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

zt__calls *zt__calls_new(Zetrace__Packet *packet, size_t place, zt__func_of func_of, void *ctx)
{
    zt__calls *c = NULL;
    size_t *calls = NULL, *columns = NULL;
    bool ok = false;
    if (packet->kind_case != ZETRACE__PACKET__KIND_CALLS || (c = calloc(1, sizeof(*c))) == NULL) {
        zetrace__packet__free_unpacked(packet, NULL);
        return NULL;
    }
    const Zetrace__CallChunk *const m = packet->calls;
    c->refs = 1;
    c->place = place;
    c->packet = packet;
    c->chunk = m;
    c->number = m->first - 1;
    const size_t n = m->n_functions ? m->n_functions : 1;
    c->functions = calloc(n, sizeof(*c->functions));
    calls = calloc(n, sizeof(*calls));
    columns = calloc(n, sizeof(*columns));
    if (c->functions == NULL || calls == NULL || columns == NULL || m->n_functions > ZT_MAX_CALLS || !columns_fit(m))
        goto out;
    for (size_t i = 0; i < m->n_function; i++)
        calls[m->function[i]]++;
    for (size_t i = 0; i < m->n_pieces; i++)
        if (m->pieces[i]->function < m->n_functions)
            columns[m->pieces[i]->function]++;
    for (size_t f = 0; f < m->n_functions; f++) {
        zt__function_view *const view = &c->functions[f];
        view->func = func_of(ctx, m->functions[f]);
        if (view->func == NULL || view->func->n_words > ZT_MAX_WORDS)
            goto out;
        view->words = calloc(view->func->n_words + 1u, sizeof(*view->words));
        view->pieces = calloc(columns[f] + 1, sizeof(*view->pieces));
        if (view->words == NULL || view->pieces == NULL)
            goto out;
    }
    if (!words_fit(c, calls) || !pieces_fit(c, calls) || !contents_fit(m))
        goto out;
    for (size_t f = 0; f < m->n_functions; f++)
        qsort(c->functions[f].pieces, c->functions[f].n_pieces, sizeof(zt__piece_cursor), by_phase_and_index);
    ok = true;
out:
    free(calls);
    free(columns);
    if (!ok) {
        zt__calls_unref(c);
        return NULL;
    }
    return c;
}

/* ------------------------------------------------------------------------------------------------------------- slots */

static bool room_for(void *list, size_t *room, size_t n, size_t size)
{
    if (n <= *room)
        return true;
    const size_t more = n < 8 ? 8 : n * 2;
    void *const grown = realloc(*(void **)list, more * size);
    if (grown == NULL)
        return false;
    *(void **)list = grown;
    *room = more;
    return true;
}

void zt__slot_clear(zt__slot *s)
{
    zt__calls_unref(s->refs[0]);
    zt__calls_unref(s->refs[1]);
    s->refs[0] = s->refs[1] = NULL;
}

void zt__slot_free(zt__slot *s)
{
    zt__slot_clear(s);
    free(s->in);
    free(s->out);
    free(s->contents);
    free(s->frames);
}

static uint64_t *last_time(zt__calls *c, uint32_t thread)
{
    for (size_t i = 0; i < c->n_threads; i++)
        if (c->threads[i].thread == thread)
            return &c->threads[i].time;
    if (!room_for(&c->threads, &c->threads_room, c->n_threads + 1, sizeof(*c->threads)))
        return NULL;
    c->threads[c->n_threads] = (zt__thread_last){thread, c->chunk->start_ns};
    return &c->threads[c->n_threads++].time;
}

static int take_pieces(zt__function_view *view, zt__slot *s)
{
    zt_call *const call = &s->call;
    for (size_t i = 0; i < view->n_pieces; i++) {
        zt__piece_cursor *const cursor = &view->pieces[i];
        const Zetrace__Pieces *const p = cursor->column;
        if (cursor->next >= p->n_address || cursor->next_call != view->calls)
            continue;
        const size_t k = cursor->next++;
        cursor->address += (uint64_t)p->address[k];
        cursor->next_call = p->n_call == 0            ? view->calls + 1ull
                            : cursor->next < p->n_call ? view->calls + 1ull + p->call[cursor->next]
                                                       : UINT64_MAX;
        const uint32_t kind = p->n_kind ? p->kind[k] : 0;
        zt_piece piece = {.addr = cursor->address, .len = p->length[p->n_length == 1 ? 0 : k], .lost = kind == 2};
        const uint64_t size = piece_bytes(p, k);
        if (kind == 0)
            piece.data = p->data.data ? p->data.data + cursor->data_at : (const uint8_t *)"";
        else if (kind == 1)
            memcpy(&piece.hash, p->data.data + cursor->data_at, sizeof(piece.hash));
        cursor->data_at += size;
        if (p->leave) {
            if (!room_for(&s->out, &s->out_room, call->n_out + 1, sizeof(*s->out)))
                return ZT_E_MEMORY;
            s->out[call->n_out++] = piece;
        } else {
            if (!room_for(&s->in, &s->in_room, call->n_in + 1, sizeof(*s->in)))
                return ZT_E_MEMORY;
            s->in[call->n_in++] = piece;
        }
    }
    return ZT_OK;
}

static bool take_content(zt__slot *s, const Zetrace__Content *k)
{
    if (k->hash.len != sizeof(zt_hash) || !room_for(&s->contents, &s->contents_room, s->call.n_contents + 1, sizeof(*s->contents)))
        return false;
    zt_content content = {.kind = (uint8_t)k->kind, .changed = k->flags & 1, .addr = k->address, .len = k->length,
                          .hash_only = !!(k->flags & 2)};
    memcpy(&content.hash, k->hash.data, sizeof(content.hash));
    if (!(k->flags & 6)) {
        if (k->data.len != k->length)
            return false;
        content.data = k->data.data ? k->data.data : (const uint8_t *)"";
    }
    s->contents[s->call.n_contents++] = content;
    return true;
}

static bool take_frames(zt__slot *s, const Zetrace__Backtrace *b)
{
    uint64_t frame = 0;
    if (!room_for(&s->frames, &s->frames_room, b->n_frame, sizeof(*s->frames)))
        return false;
    for (size_t i = 0; i < b->n_frame; i++)
        s->frames[i] = frame += (uint64_t)b->frame[i];
    s->call.n_backtrace = (uint32_t)b->n_frame;
    return true;
}

int zt__calls_next(zt__calls *c, zt__slot *s)
{
    const Zetrace__CallChunk *const m = c->chunk;
    if (c->next >= m->n_function)
        return ZT_END;
    const uint32_t i = c->next++;
    zt__function_view *const view = &c->functions[m->function[i]];
    uint64_t *const time = last_time(c, m->thread[i]);
    if (time == NULL)
        return ZT_E_MEMORY;
    const uint32_t flags = m->n_flags ? m->flags[i] : 0;
    zt__slot_clear(s);
    c->number += 1ull + (m->n_gaps ? m->gaps[i] : 0);
    const uint64_t enter = *time + (uint64_t)m->enter[i], leave = enter + m->duration[i];
    s->call = (zt_call){.number = c->number, .func = view->func, .thread = m->thread[i], .returned = !(flags & 1),
                        .internal = !!(flags & 2), .nested = !!(flags & 4), .enter_ns = enter,
                        .leave_ns = flags & 1 ? 0 : leave, .added_ns = m->n_added_ns ? m->added_ns[i] : 0,
                        .result = flags & 1 ? 0 : (int64_t)m->results[m->result[i]], .words = s->words};
    *time = leave;
    for (unsigned w = 0; w < view->func->n_words; w++)
        s->words[w] = view->words[w].value += (uint64_t)view->words[w].delta[view->calls];
    const int status = take_pieces(view, s);
    if (status != ZT_OK)
        return status;
    view->calls++;
    for (; c->next_content < m->n_contents && m->contents[c->next_content]->call == i; c->next_content++)
        if (!take_content(s, m->contents[c->next_content]))
            return ZT_E_DAMAGED;
    for (; c->next_backtrace < m->n_backtraces && m->backtraces[c->next_backtrace]->call == i; c->next_backtrace++)
        if (!take_frames(s, m->backtraces[c->next_backtrace]))
            return ZT_E_MEMORY;
    s->call.in = s->in;
    s->call.out = s->out;
    s->call.contents = s->contents;
    s->call.backtrace = s->frames;
    s->refs[0] = c;
    zt__calls_ref(c);
    return ZT_OK;
}

int zt__slot_complete(zt__slot *s, zt__calls *c, const Zetrace__Late *late)
{
    zt_call *const call = &s->call;
    if (!room_for(&s->out, &s->out_room, late->n_out, sizeof(*s->out)))
        return ZT_E_MEMORY;
    call->n_out = 0;
    for (size_t i = 0; i < late->n_out; i++) {
        const Zetrace__Piece *const p = late->out[i];
        zt_piece piece = {.addr = p->address, .len = p->length, .lost = p->kind == 2};
        if ((p->kind == 0 && p->data.len != p->length) || (p->kind == 1 && p->data.len != sizeof(piece.hash)) || p->kind > 2)
            return ZT_E_DAMAGED;
        if (p->kind == 0)
            piece.data = p->data.data ? p->data.data : (const uint8_t *)"";
        else if (p->kind == 1)
            memcpy(&piece.hash, p->data.data, sizeof(piece.hash));
        s->out[call->n_out++] = piece;
    }
    for (size_t i = 0; i < late->n_contents; i++)
        if (!take_content(s, late->contents[i]))
            return ZT_E_DAMAGED;
    call->returned = 1;
    call->leave_ns = late->leave_ns;
    call->result = (int64_t)late->result;
    call->added_ns += late->added_ns;
    call->out = s->out;
    call->contents = s->contents;
    if (s->refs[1] == NULL && c != s->refs[0]) {
        s->refs[1] = c;
        zt__calls_ref(c);
    }
    return ZT_OK;
}

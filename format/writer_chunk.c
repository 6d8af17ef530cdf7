/* SPDX-License-Identifier: MIT */
/* Calls turned into columns. Arrays keep their room from chunk to chunk: no allocation per call. */
#include "writer.h"

bool zt__append(zt__bytes *bytes, const void *data, size_t n)
{
    if (n > bytes->room - bytes->n) {
        size_t room = bytes->room ? bytes->room : 256;
        while (room - bytes->n < n)
            room *= 2;
        uint8_t *const grown = realloc(bytes->at, room);
        if (grown == NULL)
            return false;
        bytes->at = grown;
        bytes->room = room;
    }
    if (n > 0)
        memcpy(bytes->at + bytes->n, data, n);
    bytes->n += n;
    return true;
}

bool zt__chunk_init(zt__chunk *c)
{
    memset(c, 0, sizeof(*c));
    c->serial = 1;
    c->n_functions = zt_n_funcs;
    c->functions = calloc(c->n_functions, sizeof(*c->functions));
    if (c->functions == NULL)
        return false;
    for (uint32_t i = 0; i < zt_n_funcs; i++)
        c->functions[i] = (zt__function_columns){.func = &zt_funcs[i], .id = i};
    return true;
}

static void free_messages(zt__chunk *c)
{
    for (size_t i = 0; i < c->contents.n; i++)
        zetrace__content__free_unpacked(c->contents.at[i], NULL);
    for (size_t i = 0; i < c->lates.n; i++)
        zetrace__late__free_unpacked(c->lates.at[i], NULL);
    for (size_t i = 0; i < c->backtraces.n; i++)
        zetrace__backtrace__free_unpacked(c->backtraces.at[i], NULL);
    c->contents.n = c->lates.n = c->backtraces.n = 0;
}

void zt__chunk_free(zt__chunk *c)
{
    free_messages(c);
    for (size_t i = 0; i < c->n_functions; i++) {
        zt__function_columns *const f = &c->functions[i];
        for (unsigned w = 0; f->words != NULL && w < f->func->n_words; w++)
            free(f->words[w].at);
        for (size_t p = 0; p < f->n_pieces; p++) {
            free(f->pieces[p].call.at);
            free(f->pieces[p].address.at);
            free(f->pieces[p].length.at);
            free(f->pieces[p].kind.at);
            free(f->pieces[p].data.at);
        }
        free(f->words);
        free(f->last);
        free(f->pieces);
    }
    free(c->functions);
    free(c->used.at);
    free(c->function.at);
    free(c->thread.at);
    free(c->gaps.at);
    free(c->enter.at);
    free(c->duration.at);
    free(c->results.at);
    free(c->result.at);
    free(c->flags.at);
    free(c->added.at);
    free(c->threads.at);
    free(c->contents.at);
    free(c->lates.at);
    free(c->backtraces.at);
}

void zt__chunk_reset(zt__chunk *c)
{
    free_messages(c);
    c->serial++;
    c->calls = c->late = 0;
    c->bytes = 0;
    c->broken = c->any_gap = c->any_flag = c->any_added = false;
    c->used.n = c->function.n = c->thread.n = c->gaps.n = c->enter.n = c->duration.n = 0;
    c->results.n = c->result.n = c->flags.n = c->added.n = 0;
}

/* ------------------------------------------------------------------------------------------------------------ filling */

static zt__function_columns *columns_of(zt__chunk *c, const zt_func *func)
{
    size_t id = func >= zt_funcs && func < zt_funcs + zt_n_funcs ? (size_t)(func - zt_funcs) : zt_n_funcs;
    if (id == zt_n_funcs) { /* of another trace's table, which may have two of one name */
        while (id < c->n_functions &&
               (c->functions[id].func->n_words != func->n_words || strcmp(c->functions[id].func->name, func->name) != 0))
            id++;
        if (id == c->n_functions) {
            zt__function_columns *const grown = realloc(c->functions, (id + 1) * sizeof(*grown));
            if (grown == NULL)
                return NULL;
            c->functions = grown;
            c->functions[id] = (zt__function_columns){.func = func, .id = (uint32_t)id};
            c->n_functions++;
        }
    }
    zt__function_columns *const f = &c->functions[id];
    if (f->words == NULL) {
        f->words = calloc(func->n_words ? func->n_words : 1, sizeof(*f->words));
        f->last = calloc(func->n_words ? func->n_words : 1, sizeof(*f->last));
        if (f->words == NULL || f->last == NULL)
            return NULL;
    }
    if (f->chunk != c->serial) {
        f->chunk = c->serial;
        f->slot = (uint32_t)c->used.n;
        f->calls = 0;
        for (unsigned w = 0; w < func->n_words; w++) {
            f->words[w].n = 0;
            f->last[w] = 0;
        }
        for (size_t p = 0; p < f->n_pieces; p++) {
            zt__piece_column *const column = &f->pieces[p];
            column->call.n = column->address.n = column->length.n = column->kind.n = column->data.n = 0;
            column->next_call = 0;
            column->last_address = 0;
            column->same_length = true;
            column->any_kind = false;
        }
        ZT_PUSH(c->broken, c->used, f->id);
        c->bytes += 64;
    }
    return f;
}

static zt__piece_column *piece_column(zt__function_columns *f, bool leave, uint32_t index)
{
    for (size_t p = 0; p < f->n_pieces; p++)
        if (f->pieces[p].leave == leave && f->pieces[p].index == index)
            return &f->pieces[p];
    zt__piece_column *const grown = realloc(f->pieces, (f->n_pieces + 1) * sizeof(*grown));
    if (grown == NULL)
        return NULL;
    f->pieces = grown;
    f->pieces[f->n_pieces] = (zt__piece_column){.leave = leave, .index = index, .same_length = true};
    return &f->pieces[f->n_pieces++];
}

static void add_pieces(zt__chunk *c, zt__function_columns *f, bool leave, const zt_piece *pieces, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const zt_piece *const piece = &pieces[i];
        zt__piece_column *const p = piece_column(f, leave, i);
        if (p == NULL) {
            c->broken = true;
            return;
        }
        const uint32_t kind = piece->data != NULL ? 0 : piece->lost ? 2 : 1;
        ZT_PUSH(c->broken, p->call, f->calls - p->next_call);
        p->next_call = f->calls + 1;
        ZT_PUSH(c->broken, p->address, (int64_t)(piece->addr - p->last_address));
        p->last_address = piece->addr;
        p->same_length &= p->length.n == 0 || p->length.at[0] == piece->len;
        ZT_PUSH(c->broken, p->length, piece->len);
        ZT_PUSH(c->broken, p->kind, kind);
        p->any_kind |= kind != 0;
        if (kind == 0 && !zt__append(&p->data, piece->data, piece->len))
            c->broken = true;
        if (kind == 1 && !zt__append(&p->data, &piece->hash, sizeof(piece->hash)))
            c->broken = true;
        c->bytes += 6 + (kind == 0 ? piece->len : 16);
    }
}

static Zetrace__Content *content_message(const zt_content *content, uint32_t call)
{
    Zetrace__Content *const m = malloc(sizeof(*m));
    if (m == NULL)
        return NULL;
    zetrace__content__init(m);
    m->call = call;
    m->kind = content->kind;
    m->flags = (content->changed ? 1u : 0u) | (content->hash_only ? 2u : 0u) | (!content->hash_only && content->data == NULL ? 4u : 0u);
    m->address = content->addr;
    m->length = content->len;
    m->hash.data = malloc(16);
    if (m->hash.data != NULL) {
        m->hash.len = 16;
        memcpy(m->hash.data, &content->hash, 16);
    }
    if (content->data != NULL && content->len > 0 && (m->data.data = malloc(content->len)) != NULL) {
        m->data.len = content->len;
        memcpy(m->data.data, content->data, content->len);
    }
    return m;
}

static void add_backtrace(zt__chunk *c, const zt_call *call)
{
    Zetrace__Backtrace *const m = malloc(sizeof(*m));
    if (m == NULL)
        return;
    zetrace__backtrace__init(m);
    m->call = c->calls;
    m->frame = malloc(call->n_backtrace * sizeof(*m->frame));
    uint64_t last = 0;
    for (uint32_t i = 0; m->frame != NULL && i < call->n_backtrace; i++) {
        m->frame[m->n_frame++] = (int64_t)(call->backtrace[i] - last);
        last = call->backtrace[i];
    }
    ZT_PUSH(c->broken, c->backtraces, m);
    c->bytes += 8u * call->n_backtrace;
}

static zt__thread_time *thread_time(zt__chunk *c, uint32_t thread)
{
    while (c->threads.n <= thread && c->threads.n < (1u << 22)) {
        const zt__thread_time none = {0, 0};
        const size_t before = c->threads.n;
        ZT_PUSH(c->broken, c->threads, none);
        if (c->threads.n == before)
            return NULL;
    }
    return thread < c->threads.n ? &c->threads.at[thread] : NULL;
}

static uint32_t result_index(zt__chunk *c, uint64_t result)
{
    for (size_t i = c->results.n; i > 0 && i + 8 > c->results.n; i--)
        if (c->results.at[i - 1] == result)
            return (uint32_t)i - 1;
    for (size_t i = 0; i < c->results.n && i < 64; i++)
        if (c->results.at[i] == result)
            return (uint32_t)i;
    ZT_PUSH(c->broken, c->results, result);
    return (uint32_t)c->results.n - 1;
}

void zt__chunk_add(zt__chunk *c, const zt_call *call)
{
    zt__function_columns *const f = columns_of(c, call->func);
    zt__thread_time *const time = thread_time(c, call->thread);
    if (f == NULL || time == NULL) {
        c->broken = true;
        return;
    }
    if (c->calls == 0) {
        c->first = call->number;
        c->last = call->number - 1;
        c->begin = c->end = call->enter_ns;
    }
    const uint64_t since = time->chunk == c->serial ? time->time : c->begin;
    const uint32_t flags = (call->returned ? 0u : 1u) | (call->internal ? 2u : 0u) | (call->nested ? 4u : 0u);
    const uint64_t gap = call->number - c->last - 1;
    ZT_PUSH(c->broken, c->gaps, (uint32_t)gap);
    ZT_PUSH(c->broken, c->function, f->slot);
    ZT_PUSH(c->broken, c->thread, call->thread);
    ZT_PUSH(c->broken, c->enter, (int64_t)(call->enter_ns - since));
    ZT_PUSH(c->broken, c->duration, call->returned ? call->leave_ns - call->enter_ns : 0);
    ZT_PUSH(c->broken, c->result, result_index(c, call->returned ? (uint64_t)call->result : 0));
    ZT_PUSH(c->broken, c->flags, flags);
    ZT_PUSH(c->broken, c->added, call->added_ns);
    c->any_gap |= gap != 0;
    c->any_flag |= flags != 0;
    c->any_added |= call->added_ns != 0;
    *time = (zt__thread_time){c->serial, call->returned ? call->leave_ns : call->enter_ns};
    for (unsigned w = 0; w < call->func->n_words; w++) {
        ZT_PUSH(c->broken, f->words[w], (int64_t)(call->words[w] - f->last[w]));
        f->last[w] = call->words[w];
    }
    add_pieces(c, f, false, call->in, call->n_in);
    if (call->returned)
        add_pieces(c, f, true, call->out, call->n_out);
    for (uint32_t i = 0; i < call->n_contents; i++) {
        Zetrace__Content *const m = content_message(&call->contents[i], c->calls);
        if (m == NULL)
            c->broken = true;
        else
            ZT_PUSH(c->broken, c->contents, m);
        c->bytes += 40 + (call->contents[i].data ? call->contents[i].len : 0);
    }
    if (call->n_backtrace > 0)
        add_backtrace(c, call);
    f->calls++;
    c->calls++;
    c->last = call->number;
    if (call->leave_ns > c->end)
        c->end = call->leave_ns;
    if (call->enter_ns > c->end)
        c->end = call->enter_ns;
    c->bytes += 12 + call->func->n_words * 2u;
}

void zt__chunk_late(zt__chunk *c, uint64_t number, const zt_call *leave)
{
    Zetrace__Late *const m = malloc(sizeof(*m));
    if (m == NULL) {
        c->broken = true;
        return;
    }
    zetrace__late__init(m);
    m->number = number;
    m->leave_ns = leave->leave_ns;
    m->result = (uint64_t)leave->result;
    m->added_ns = leave->added_ns;
    m->out = calloc(leave->n_out ? leave->n_out : 1, sizeof(*m->out));
    m->contents = calloc(leave->n_contents ? leave->n_contents : 1, sizeof(*m->contents));
    for (uint32_t i = 0; m->out != NULL && i < leave->n_out; i++) {
        const zt_piece *const piece = &leave->out[i];
        Zetrace__Piece *const p = malloc(sizeof(*p));
        if (p == NULL)
            break;
        zetrace__piece__init(p);
        p->address = piece->addr;
        p->length = piece->len;
        p->kind = piece->data != NULL ? 0 : piece->lost ? 2 : 1;
        const void *const data = p->kind == 0 ? piece->data : &piece->hash;
        p->data.len = p->kind == 0 ? piece->len : p->kind == 1 ? 16 : 0;
        p->data.data = p->data.len ? malloc(p->data.len) : NULL;
        if (p->data.data != NULL)
            memcpy(p->data.data, data, p->data.len);
        else
            p->data.len = 0;
        m->out[m->n_out++] = p;
        c->bytes += 16 + p->data.len;
    }
    for (uint32_t i = 0; m->contents != NULL && i < leave->n_contents; i++) {
        Zetrace__Content *const content = content_message(&leave->contents[i], 0);
        if (content == NULL)
            break;
        m->contents[m->n_contents++] = content;
        c->bytes += 40 + content->data.len;
    }
    ZT_PUSH(c->broken, c->lates, m);
    c->late++;
    c->bytes += 24;
}

/* ------------------------------------------------------------------------------------------------------------ packing */

bool zt__pack(const Zetrace__Packet *packet, zt__bytes *out)
{
    uint8_t varint[10];
    const size_t size = zetrace__packet__get_packed_size(packet);
    size_t n = 0, rest = size;
    do {
        varint[n] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
        rest >>= 7;
    } while (varint[n++] & 0x80);
    if (!zt__append(out, varint, n))
        return false;
    if (size > out->room - out->n) {
        uint8_t *const grown = realloc(out->at, out->n + size);
        if (grown == NULL)
            return false;
        out->at = grown;
        out->room = out->n + size;
    }
    out->n += zetrace__packet__pack(packet, out->at + out->n);
    return true;
}

static Zetrace__Pieces *pieces_message(zt__function_columns *f, zt__piece_column *p)
{
    Zetrace__Pieces *const m = malloc(sizeof(*m));
    if (m == NULL)
        return NULL;
    zetrace__pieces__init(m);
    m->function = f->slot;
    m->leave = p->leave;
    m->index = p->index;
    if (p->address.n != f->calls) {
        m->n_call = p->call.n;
        m->call = p->call.at;
    }
    m->n_address = p->address.n;
    m->address = p->address.at;
    m->n_length = p->same_length ? 1 : p->length.n;
    m->length = p->length.at;
    m->n_kind = p->any_kind ? p->kind.n : 0;
    m->kind = p->any_kind ? p->kind.at : NULL;
    m->data.len = p->data.n;
    m->data.data = p->data.at;
    return m;
}

bool zt__chunk_pack(zt__chunk *c, zt__bytes *out)
{
    Zetrace__CallChunk m;
    Zetrace__Packet packet;
    size_t n_words = 0, n_pieces = 0;
    bool ok = false;
    zetrace__call_chunk__init(&m);
    zetrace__packet__init(&packet);
    for (size_t i = 0; i < c->used.n; i++) {
        n_words += c->functions[c->used.at[i]].func->n_words;
        n_pieces += c->functions[c->used.at[i]].n_pieces;
    }
    Zetrace__Words *const words = calloc(n_words ? n_words : 1, sizeof(*words));
    m.words = calloc(n_words ? n_words : 1, sizeof(*m.words));
    m.pieces = calloc(n_pieces ? n_pieces : 1, sizeof(*m.pieces));
    if (words == NULL || m.words == NULL || m.pieces == NULL)
        goto out;
    for (size_t i = 0; i < c->used.n; i++) {
        zt__function_columns *const f = &c->functions[c->used.at[i]];
        for (uint32_t w = 0; w < f->func->n_words; w++) {
            Zetrace__Words *const column = &words[m.n_words];
            zetrace__words__init(column);
            column->function = f->slot;
            column->word = w;
            column->n_delta = f->words[w].n;
            column->delta = f->words[w].at;
            m.words[m.n_words++] = column;
        }
        for (size_t p = 0; p < f->n_pieces; p++) {
            if (f->pieces[p].address.n == 0)
                continue;
            Zetrace__Pieces *const column = pieces_message(f, &f->pieces[p]);
            if (column == NULL)
                goto out;
            m.pieces[m.n_pieces++] = column;
        }
    }
    m.first = c->first;
    m.start_ns = c->begin;
    m.n_functions = c->used.n, m.functions = c->used.at;
    m.n_function = c->function.n, m.function = c->function.at;
    m.n_thread = c->thread.n, m.thread = c->thread.at;
    m.n_gaps = c->any_gap ? c->gaps.n : 0, m.gaps = c->gaps.at;
    m.n_enter = c->enter.n, m.enter = c->enter.at;
    m.n_duration = c->duration.n, m.duration = c->duration.at;
    m.n_results = c->results.n, m.results = c->results.at;
    m.n_result = c->result.n, m.result = c->result.at;
    m.n_flags = c->any_flag ? c->flags.n : 0, m.flags = c->flags.at;
    m.n_added_ns = c->any_added ? c->added.n : 0, m.added_ns = c->added.at;
    m.n_contents = c->contents.n, m.contents = c->contents.at;
    m.n_late = c->lates.n, m.late = c->lates.at;
    m.n_backtraces = c->backtraces.n, m.backtraces = c->backtraces.at;
    packet.kind_case = ZETRACE__PACKET__KIND_CALLS;
    packet.calls = &m;
    ok = zt__pack(&packet, out);
out:
    for (size_t i = 0; m.pieces != NULL && i < m.n_pieces; i++)
        free(m.pieces[i]);
    free(m.pieces);
    free(m.words);
    free(words);
    return ok;
}

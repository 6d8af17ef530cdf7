/* SPDX-License-Identifier: MIT */
/* Writes the calls of a set as a trace of its own. */
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "internal.h"

typedef struct carried { /* contents that a call left out had brought */
    zt_content content;
    void *bytes;
} carried;

typedef struct writing {
    const zm_needs *n;
    const zm_keep *keep;
    zt_trace *in;
    zt_writer *out;
    zt_ending ending;
    uint8_t *unfounded;
    zm_stretch *reached; /* pageable memory that kept commands touch: ascending, apart */
    size_t n_reached;
    carried *carried;
    size_t n_carried, room_carried;
    zt_piece *pieces;
    zt_content *contents;
    size_t room_pieces, room_contents;
    uint64_t *frames;
    size_t n_frames, room_frames;
    uint8_t threads[8192]; /* bit a thread */
    bool out_of_memory;
} writing;

static bool room_for(writing *w, void *list, size_t *room, size_t n, size_t size)
{
    if (n <= *room)
        return true;
    void *const grown = realloc(*(void **)list, (n + n / 2 + 16) * size);
    if (grown == NULL) {
        w->out_of_memory = true;
        return false;
    }
    *(void **)list = grown;
    *room = n + n / 2 + 16;
    return true;
}

/* --------------------------------------------------------------------------------------------------- pageable memory */

static int by_address(const void *a, const void *b)
{
    const zm_stretch *const x = a, *const y = b;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static bool find_reached(writing *w)
{
    size_t n = 0;
    w->reached = malloc((w->n->accesses.n + 1) * sizeof(*w->reached));
    if (w->reached == NULL)
        return false;
    for (size_t i = 0; i < w->n->accesses.n; i++) {
        const zm_access *const a = &w->n->accesses.at[i];
        if (a->object == ZM_PAGEABLE && zm_in(w->keep, a->call))
            w->reached[n++] = (zm_stretch){a->lo, a->hi - a->lo, ZM_PAGEABLE};
    }
    if (n > 0)
        qsort(w->reached, n, sizeof(*w->reached), by_address);
    for (size_t i = 0; i < n; i++) {
        zm_stretch *const last = w->n_reached ? &w->reached[w->n_reached - 1] : NULL;
        if (last == NULL || w->reached[i].addr - last->addr > last->len)
            w->reached[w->n_reached++] = w->reached[i];
        else if (w->reached[i].addr - last->addr + w->reached[i].len > last->len)
            last->len = w->reached[i].addr - last->addr + w->reached[i].len;
    }
    return true;
}

static bool is_reached(const writing *w, uint64_t addr, uint64_t len)
{
    size_t low = 0, high = w->n_reached; /* the first that ends behind the address */
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (w->reached[mid].addr + w->reached[mid].len <= addr)
            low = mid + 1;
        else
            high = mid;
    }
    return low < w->n_reached && (w->reached[low].addr <= addr || w->reached[low].addr - addr < len);
}

static bool is_there(const writing *w, const zm_stretch *where, const zt_content *content)
{
    if (where->object == ZM_PAGEABLE)
        return is_reached(w, content->addr, content->len);
    const uint32_t giver = w->n->objects.at[where->object].giver;
    return giver != ZM_NONE && zm_in(w->keep, w->n->nodes.at[giver]);
}

/* --------------------------------------------------------------------------------------------------------- contents */

/* Bytes that lie in a blob of IN, into one of OUT. */
static bool move_blob(writing *w, const zt_hash *hash, uint64_t at_least)
{
    zt_hash same;
    uint64_t len = 0;
    const void *const bytes = zt_trace_blob(w->in, hash, &len);
    if (bytes == NULL || len < at_least)
        return false;
    zt_writer_blob(w->out, bytes, len, &same);
    return true;
}

/* Changed while in flight, by a command that is left out: without it nobody could tell that it was not the host. */
static bool is_of_another(const writing *w, uint32_t index, const zm_stretch *where, const zt_content *content)
{
    return content->changed && zm_left_out_writes(w->n, w->keep, index, where);
}

static void carry(writing *w, uint32_t index, const zm_stretch *where, const zt_content *content)
{
    if (content->hash_only || content->kind == ZT_C_READBACK || is_of_another(w, index, where, content))
        return;
    for (size_t i = w->n_carried; i > 0 && i + 256 > w->n_carried; i--) /* an older one of the same place is of no use */
        if (w->carried[i - 1].content.addr == content->addr && w->carried[i - 1].content.len <= content->len)
            w->carried[i - 1].content.len = 0;
    if (!room_for(w, &w->carried, &w->room_carried, w->n_carried + 1, sizeof(*w->carried)))
        return;
    carried c = {*content, NULL};
    if (content->data != NULL) {
        c.bytes = malloc(content->len + 1);
        if (c.bytes == NULL) {
            w->out_of_memory = true;
            return;
        }
        memcpy(c.bytes, content->data, content->len);
        c.content.data = c.bytes;
    }
    w->carried[w->n_carried++] = c;
}

static void drop_carried(writing *w)
{
    for (size_t i = 0; i < w->n_carried; i++)
        free(w->carried[i].bytes);
    w->n_carried = 0;
}

/* What the call gets to write: what was carried so far, and its own as far as it makes sense without the others. */
static void choose_contents(writing *w, uint32_t index, const zt_call *call, zt_call *out)
{
    const zm_call *const c = &w->n->calls.at[index];
    size_t n = 0;
    if (!room_for(w, &w->contents, &w->room_contents, w->n_carried + call->n_contents, sizeof(*w->contents)))
        return;
    for (size_t i = 0; (c->flags & ZM_C_MADE) && i < w->n_carried; i++)
        if (w->carried[i].content.len > 0)
            w->contents[n++] = w->carried[i].content;
    for (uint32_t i = 0; i < call->n_contents && i < c->n_contents; i++) {
        const zm_stretch *const where = &w->n->contents.at[c->contents + i];
        const bool fits = call->contents[i].kind == ZT_C_READBACK ? zm_founded(w->n, w->keep, w->unfounded, index, where)
                                                                  : is_there(w, where, &call->contents[i]) &&
                                                                        !is_of_another(w, index, where, &call->contents[i]);
        if (fits)
            w->contents[n++] = call->contents[i];
    }
    for (size_t i = 0; i < n; i++) /* blobs */
        if (w->contents[i].data == NULL && !w->contents[i].hash_only && !move_blob(w, &w->contents[i].hash, w->contents[i].len))
            w->contents[i].hash_only = 1;
    out->contents = w->contents;
    out->n_contents = (uint32_t)n;
}

/* ------------------------------------------------------------------------------------------------------------- calls */

static void copy_pieces(writing *w, const zt_call *call, zt_call *out)
{
    const size_t n = (size_t)call->n_in + call->n_out;
    if (!room_for(w, &w->pieces, &w->room_pieces, n, sizeof(*w->pieces)))
        return;
    for (size_t i = 0; i < n; i++) {
        zt_piece *const piece = &w->pieces[i];
        *piece = i < call->n_in ? call->in[i] : call->out[i - call->n_in];
        if (piece->data == NULL && !piece->lost && !move_blob(w, &piece->hash, piece->len))
            piece->lost = 1;
    }
    out->in = w->pieces;
    out->out = w->pieces + call->n_in;
}

static void write_call(writing *w, uint32_t index, const zt_call *call)
{
    zt_call out = *call;
    copy_pieces(w, call, &out);
    choose_contents(w, index, call, &out);
    if (w->out_of_memory)
        return;
    zt_writer_call(w->out, &out);
    if (w->n->calls.at[index].flags & ZM_C_MADE)
        drop_carried(w);
    if (room_for(w, &w->frames, &w->room_frames, w->n_frames + call->n_backtrace, sizeof(*w->frames)) && call->n_backtrace > 0) {
        memcpy(w->frames + w->n_frames, call->backtrace, call->n_backtrace * sizeof(*w->frames));
        w->n_frames += call->n_backtrace;
    }
    w->ending.calls++;
    w->ending.never_returned += !call->returned;
    w->ending.added_ns += call->added_ns;
    if (call->thread / 8 < sizeof(w->threads) && !(w->threads[call->thread / 8] >> call->thread % 8 & 1)) {
        w->threads[call->thread / 8] |= (uint8_t)(1u << call->thread % 8);
        w->ending.threads++;
    }
}

static int write_calls(writing *w)
{
    const zt_call *call;
    uint32_t index = 0;
    uint64_t last = 0;
    int status = ZT_OK;
    zt_trace_seek(w->in, 1);
    while (!w->out_of_memory && (status = zt_trace_next(w->in, &call)) == ZT_OK) {
        if (call->number <= last)
            continue;
        last = call->number;
        while (index < w->n->calls.n && w->n->calls.at[index].number < last)
            index++;
        if (index == w->n->calls.n)
            break;
        if (w->n->calls.at[index].number != last)
            continue;
        if (zm_in(w->keep, index)) {
            write_call(w, index, call);
            continue;
        }
        const zm_call *const c = &w->n->calls.at[index];
        for (uint32_t i = 0; i < call->n_contents && i < c->n_contents; i++)
            if (is_there(w, &w->n->contents.at[c->contents + i], &call->contents[i]))
                carry(w, index, &w->n->contents.at[c->contents + i], &call->contents[i]);
    }
    return w->out_of_memory || status == ZT_E_MEMORY ? ZT_E_MEMORY : ZT_OK;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void write_frames(writing *w)
{
    const char **const names = malloc((w->n_frames + 1) * sizeof(*names));
    size_t n = 0;
    if (w->n_frames > 0)
        qsort(w->frames, w->n_frames, sizeof(*w->frames), by_value);
    for (size_t i = 0; names != NULL && i < w->n_frames; i++) {
        if (n > 0 && w->frames[n - 1] == w->frames[i])
            continue;
        names[n] = zt_trace_frame(w->in, w->frames[i]);
        if (names[n] != NULL)
            w->frames[n++] = w->frames[i];
    }
    if (n > 0)
        zt_writer_frames(w->out, w->frames, names, n);
    w->out_of_memory |= names == NULL;
    free(names);
}

static bool has_ending(const zt_ending *e)
{
    return e->complete || e->exited || e->signalled || e->calls > 0;
}

/* A failure that is left out: how the program ended says nothing of the calls that are kept, and readers have to know it. */
static bool leaves_out_failures(const zm_needs *n, const zm_keep *keep)
{
    bool failed = false;
    for (size_t i = 0; i < n->calls.n; i++) {
        if ((n->calls.at[i].flags & ZM_C_FAULT) && zm_in(keep, (uint32_t)i))
            return false;
        failed |= (n->calls.at[i].flags & ZM_C_FAULT) != 0;
    }
    return failed;
}

/* @return the pairs of `session` with one more; NULL if it needs none, or memory is out. */
static zt_pair *with_left_out(const zm_needs *n, const zm_keep *keep, zt_session *session)
{
    zt_pair *const pairs = leaves_out_failures(n, keep) ? malloc((session->n_settings + 1) * sizeof(*pairs)) : NULL;
    if (pairs == NULL)
        return NULL;
    for (uint32_t i = 0; i < session->n_settings; i++)
        pairs[i] = session->settings[i];
    pairs[session->n_settings++] = (zt_pair){(char *)(uintptr_t)"left-out", (char *)(uintptr_t)"failures"};
    return session->settings = pairs;
}

int zm_trim(const zm_keep *keep, const char *path, const zm_trim_options *options, zt_error *error)
{
    const zm_needs *const needs = keep->needs;
    zt_trace *const trace = needs->trace;
    writing *const w = calloc(1, sizeof(*w));
    const zt_session *const parent = zt_trace_session(trace);
    const zt_ending *const ending = zt_trace_ending(trace);
    zt_session session = *parent; /* its strings stay the parent's */
    const zt_writer_options how = {.overwrite = options && options->overwrite, .aside = true, .level = options ? options->level : 0};
    memcpy(session.parent_uuid, parent->uuid, sizeof(session.parent_uuid));
    if (getrandom(session.uuid, sizeof(session.uuid), 0) != (ssize_t)sizeof(session.uuid))
        session.uuid[0] ^= 1; /* at least another one than the parent's */
    int status = ZT_E_MEMORY;
    error->text[0] = 0;
    zt_pair *const settings = with_left_out(needs, keep, &session);
    if (w != NULL) {
        *w = (writing){.n = needs, .keep = keep, .in = trace, .unfounded = zm_unfounded(needs, keep), .ending = *ending};
        w->ending.calls = w->ending.never_returned = w->ending.threads = w->ending.added_ns = 0;
        if (w->unfounded != NULL && find_reached(w))
            status = zt_writer_open(&w->out, path, &session, &how, error);
    }
    if (status == ZT_OK) {
        status = write_calls(w);
        if (status == ZT_OK)
            write_frames(w);
        if (status == ZT_OK && w->out_of_memory)
            status = ZT_E_MEMORY;
        if (status == ZT_OK)
            status = zt_writer_close(w->out, has_ending(ending) ? &w->ending : NULL, error);
        else
            zt_writer_abandon(w->out); /* half of it is no trace */
    }
    if (status == ZT_E_MEMORY && error->text[0] == 0) {
        error->status = status;
        snprintf(error->text, sizeof(error->text), "%.300s: not enough memory to write it", path);
    }
    if (w != NULL) {
        drop_carried(w);
        free(w->unfounded);
        free(w->reached);
        free(w->carried);
        free(w->pieces);
        free(w->contents);
        free(w->frames);
    }
    free(w);
    free(settings);
    return status;
}

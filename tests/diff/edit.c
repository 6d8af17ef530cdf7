/* SPDX-License-Identifier: MIT */
#include "edit.h"

#include <stdlib.h>
#include <string.h>

enum { REMOVE, INSERT, MOVE, ARGUMENT, RESULT, KINDS };

typedef struct kept { /* a call of its own, to be written later or again */
    zt_call call;
    uint64_t words[64];
    zt_piece *pieces; /* in, then out */
    zt_content *contents;
    uint64_t due;     /* behind so many calls */
} kept;

static uint64_t state;
static uint64_t below(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 32) % n;
}

static void *copy(const void *data, uint64_t size)
{
    void *const p = malloc(size + 1);
    if (p != NULL && data != NULL)
        memcpy(p, data, size);
    return p;
}

/* What is in blobs stays there, and is left out of the copy. */
static kept *keep(const zt_call *call)
{
    kept *const k = calloc(1, sizeof(*k));
    k->call = *call;
    memcpy(k->words, call->words, call->func->n_words * 8u);
    k->call.words = k->words;
    k->pieces = calloc(call->n_in + call->n_out + 1u, sizeof(*k->pieces));
    for (uint32_t i = 0; i < call->n_in + call->n_out; i++) {
        k->pieces[i] = i < call->n_in ? call->in[i] : call->out[i - call->n_in];
        k->pieces[i].lost |= k->pieces[i].data == NULL;
        k->pieces[i].data = k->pieces[i].data ? copy(k->pieces[i].data, k->pieces[i].len) : NULL;
    }
    k->call.in = k->pieces;
    k->call.out = k->pieces + call->n_in;
    k->call.n_contents = k->call.n_backtrace = 0;
    return k;
}

static void drop(kept *k)
{
    for (uint32_t i = 0; i < k->call.n_in + k->call.n_out; i++)
        free((void *)(uintptr_t)k->pieces[i].data);
    free(k->pieces);
    free(k);
}

typedef struct output {
    zt_writer *writer;
    uint64_t n;
} output;

static bool put(output *o, const zt_call *call)
{
    zt_call c = *call;
    c.number = ++o->n;
    c.enter_ns = o->n * 100;
    c.leave_ns = c.returned ? c.enter_ns + 50 : 0;
    c.added_ns = 0;
    c.n_backtrace = 0;
    for (uint32_t i = 0; i < c.n_contents; i++) /* hashes will do */
        ((zt_content *)(uintptr_t)c.contents)[i].hash_only |= c.contents[i].data == NULL;
    return zt_writer_call(o->writer, &c) == ZT_OK;
}

static bool change_argument(kept *k)
{
    for (unsigned i = 0; i < k->call.func->n_params; i++) {
        const zt_field *const p = &k->call.func->params[i];
        if (p->shape == ZT_VALUE && zt_types[p->type].cls == ZT_UINT && p->role != ZT_R_COUNT && strncmp(p->name, "num", 3) != 0 && p->size == 8) {
            k->words[p->offset] += 1 + below(1000000);
            return true;
        }
    }
    return false;
}

/* Without them later calls would have other objects: one edit would make many differences. */
static bool gives(const zt_func *f)
{
    return f->kind == ZT_K_CREATE || f->kind == ZT_K_ALLOC || f->kind == ZT_K_GET || f->kind == ZT_K_INIT;
}

bool edit_trace(const char *in, const char *out, uint64_t seed, unsigned edits, uint64_t *cost, zt_error *error)
{
    zt_trace *trace;
    zt_error own;
    const zt_call *call;
    output o = {0};
    const zt_writer_options options = {.overwrite = true};
    if (zt_trace_open(&trace, in, error) != ZT_OK)
        return false;
    if (zt_writer_open(&o.writer, out, zt_trace_session(trace), &options, error) != ZT_OK) {
        zt_trace_close(trace);
        return false;
    }
    kept *moved[64];
    size_t n_moved = 0;
    uint64_t left = zt_trace_health(trace)->calls, read = 0;
    bool ok = true;
    state = seed * 2654435761u + 1;
    *cost = 0;
    for (; ok && zt_trace_next(trace, &call) == ZT_OK; left -= left > 0) {
        read++;
        for (size_t i = 0; i < n_moved; i++)
            if (moved[i]->due <= read) {
                ok = ok && put(&o, &moved[i]->call);
                drop(moved[i]);
                moved[i--] = moved[--n_moved];
            }
        const bool here = left > 0 && below(left) < edits; /* each place is as likely */
        edits -= here;
        uint64_t what = here ? below(KINDS) : KINDS;
        while (here && seed % 2 == 0 && gives(call->func) && what != INSERT && what != ARGUMENT)
            what = below(KINDS);
        kept *const k = here ? keep(call) : NULL;
        if (what == REMOVE) {
            ++*cost;
        } else if (what == MOVE && n_moved < 64) {
            k->due = read + 2 + below(200);
            moved[n_moved++] = k;
            *cost += 2;
            continue;
        } else if (what == INSERT) {
            ok = put(&o, call) && put(&o, &k->call);
            ++*cost;
        } else if (what == ARGUMENT && change_argument(k)) {
            ok = put(&o, &k->call);
            *cost += 2;
        } else if (what == RESULT && call->returned) {
            k->call.result = k->call.result == 0 ? 0x78000004 : 0; /* INVALID_ARGUMENT */
            ok = put(&o, &k->call);
            *cost += 2;
        } else {
            ok = put(&o, call);
        }
        if (k != NULL)
            drop(k);
    }
    for (size_t i = 0; i < n_moved; i++) {
        ok = ok && put(&o, &moved[i]->call);
        drop(moved[i]);
    }
    zt_ending ending = *zt_trace_ending(trace);
    ending.calls = o.n;
    ok = zt_writer_close(o.writer, &ending, error ? error : &own) == ZT_OK && ok;
    zt_trace_close(trace);
    return ok;
}

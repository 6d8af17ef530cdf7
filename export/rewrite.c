/* SPDX-License-Identifier: MIT */
/* The trace once more, with its calls in another order, calls added, and results as they are wanted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

static bool copy_blob(zx_export *x, zt_writer *writer, const zt_hash *hash)
{
    uint64_t len;
    zt_hash stored;
    const void *const bytes = zt_trace_blob(x->trace, hash, &len);
    return bytes == NULL || zt_writer_blob(writer, bytes, len, &stored) == ZT_OK;
}

static bool copy_blobs(zx_export *x, zt_writer *writer, const zt_call *call)
{
    bool ok = true;
    for (uint32_t i = 0; i < call->n_in && ok; i++)
        ok = call->in[i].data != NULL || call->in[i].lost || copy_blob(x, writer, &call->in[i].hash);
    for (uint32_t i = 0; i < call->n_out && ok; i++)
        ok = call->out[i].data != NULL || call->out[i].lost || copy_blob(x, writer, &call->out[i].hash);
    for (uint32_t i = 0; i < call->n_contents && ok; i++)
        ok = call->contents[i].data != NULL || call->contents[i].hash_only || copy_blob(x, writer, &call->contents[i].hash);
    return ok;
}

/* A call that the recording does not have: its arguments by their roles. */
static int write_added(zx_export *x, zt_writer *writer, uint64_t number, uint64_t time, const zx_call *c)
{
    const uint64_t somewhere = 0x1000;
    uint64_t words[64] = {0}, list = c->n_lists ? x->objects[c->lists[0]].base->value : 0;
    const zt_piece piece = {.addr = somewhere, .len = sizeof(list), .data = &list};
    const zt_call call = {.number = number, .func = c->func, .thread = c->thread, .returned = 1, .enter_ns = time, .leave_ns = time + 1,
                          .words = words, .in = &piece, .n_in = c->n_lists ? 1 : 0};
    if (c->func->n_words > 64)
        return ZT_E_LIMIT;
    words[c->func->params[0].offset] = x->objects[c->self].base->value;
    for (unsigned i = 0; i < c->func->n_params; i++)
        if (c->func->params[i].role == ZT_R_LISTS) {
            words[c->func->params[i].offset] = somewhere;
            if (c->func->params[i].count.op == ZT_X_FIELD)
                words[c->func->params[c->func->params[i].count.a].offset] = 1;
        }
    return zt_writer_call(writer, &call);
}

static int write_calls(zx_export *x, zt_writer *writer, const zx_try *t)
{
    const size_t n = t->order != NULL ? t->n : x->n_calls;
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t old = t->order != NULL ? t->order[i] : x->calls[i].number, number = t->order != NULL ? i + 1 : old;
        const zt_call *from;
        int status;
        if (old >= ZX_ADDED_CLOSE) {
            status = write_added(x, writer, number, 2 * i, zx_call_of(x, old));
            if (status != ZT_OK)
                return status;
            continue;
        }
        if (old != at)
            zt_trace_seek(x->trace, old);
        status = zt_trace_next(x->trace, &from);
        if (status != ZT_OK || from->number != old)
            return status == ZT_OK || status == ZT_END ? ZT_E_DAMAGED : status;
        at = old + 1;
        zt_call call = *from;
        const zx_wanted *const wanted = zx_wanted_of(x, old);
        call.number = number;
        if (wanted != NULL && wanted->has_result)
            call.result = wanted->result;
        if (t->order != NULL) { /* one after the other */
            call.enter_ns = 2 * i;
            call.leave_ns = 2 * i + 1;
        }
        if (!copy_blobs(x, writer, &call))
            return ZT_E_MEMORY;
        status = zt_writer_call(writer, &call);
        if (status != ZT_OK)
            return status;
    }
    return ZT_OK;
}

int zx_rewrite(zx_export *x, const zx_try *t, zt_trace **out)
{
    const char *const where = getenv("TMPDIR");
    char folder[4000], path[4096];
    zt_writer *writer = NULL;
    zt_error error = {0};
    snprintf(folder, sizeof(folder), "%s/zetrace-export.XXXXXX", where != NULL && where[0] != 0 ? where : "/tmp");
    if (mkdtemp(folder) == NULL)
        return zx_refuse(x, "no temporary folder can be made: %s", folder);
    snprintf(path, sizeof(path), "%s/good.zetrace", folder);
    const zt_writer_options options = {.level = 1, .aside = true};
    int status = zt_writer_open(&writer, path, zt_trace_session(x->trace), &options, &error);
    if (status == ZT_OK) {
        const zt_ending *const known = zt_trace_ending(x->trace);
        const zt_ending ending = known != NULL ? *known : (zt_ending){0};
        status = write_calls(x, writer, t);
        const int closed = zt_writer_close(writer, &ending, &error);
        status = status != ZT_OK ? status : closed;
    }
    if (status == ZT_OK)
        status = zt_trace_open(out, path, &error);
    unlink(path);
    rmdir(folder);
    if (status != ZT_OK && x->error->status == 0)
        *x->error = error.status ? error : (zt_error){.status = status, .text = "the trace can't be written once more"};
    return status;
}

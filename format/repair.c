/* SPDX-License-Identifier: MIT */
#include "output.h"
#include "verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int copy_chunk(zt_trace *t, const zt__place *p, zt__output *out)
{
    zt_chunk_header h;
    uint8_t *const stored = malloc(p->stored_size + 1u);
    int status = ZT_E_MEMORY;
    if (stored != NULL)
        status = zt__file_read(&t->file, p->offset, &h, sizeof(h)) && h.stored_size == p->stored_size &&
                         zt__file_read(&t->file, p->offset + sizeof(h), stored, p->stored_size)
                     ? zt__output_copy(out, &h, stored)
                     : ZT_E_IO;
    free(stored);
    return status == ZT_OK ? ZT_OK : zt__output_fail(out, status);
}

/* What is missing of IN is missing of OUT; damage and index are not. */
static void after_repair(zt_verdict *v)
{
    v->missing_chunks += v->damaged_chunks;
    v->chunks -= v->damaged_chunks < v->chunks ? v->damaged_chunks : v->chunks;
    v->damaged_chunks = 0;
    v->damaged = !v->session;
    v->index = true;
    v->whole = v->session && v->finished && v->missing_chunks == 0 && v->calls_lost == 0 && v->blobs_lost == 0;
}

static void write_good(zt_trace *t, zt__output *out, zt_refiled *done)
{
    for (size_t i = 0; i < t->file.n_places && !out->failed; i++) {
        const zt__place *const p = &t->file.places[i];
        if (p->fault != ZT__GOOD && p->fault != ZT__NO_TABLE) { /* somebody may know that table */
            done->chunks_left_out++;
            continue;
        }
        copy_chunk(t, p, out);
        done->chunks++;
        done->calls += p->kind == ZT_CHUNK_CALLS ? p->calls : 0;
    }
    done->chunks_left_out += t->file.n_holes;
}

int zt_repair(const char *path, const char *to, const zt_refile_options *options, zt_refiled *done, zt_verdict *verdict, zt_error *error)
{
    static const uint8_t none[16];
    zt_trace *t;
    zt__output out;
    *done = (zt_refiled){0};
    int status = zt_trace_open(&t, path, error);
    if (status != ZT_OK)
        return status;
    const uint8_t *const uuid = memcmp(t->session.uuid, none, 16) != 0 ? t->session.uuid : t->file.header.uuid;
    const zt_file_header header = zt__output_header(uuid, t->file.strange ? NULL : &t->file.header);
    status = zt__output_open(&out, to, &header, 0, options->overwrite, true, error);
    if (status == ZT_OK && zt__verify(t, NULL, NULL, options->step, options->ctx, verdict) != ZT_OK) {
        zt__output_abandon(&out);
        status = zt__complain(error, ZT_E_MEMORY, path, "not enough memory to check it");
    }
    if (status == ZT_OK) {
        after_repair(verdict);
        write_good(t, &out, done);
        done->bytes_before = t->file.size;
        snprintf(done->problem, sizeof(done->problem), "%s", t->health.first_problem);
        status = zt__output_finish(&out, done, error);
    }
    zt_trace_close(t);
    return status;
}

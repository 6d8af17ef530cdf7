/* SPDX-License-Identifier: MIT */
/*
 * craft IN OUT CHANGE...: a trace with other times than it was recorded with, for what no program shows for certain.
 *   N>M   call N returns when M has just been entered
 *   N<M   call N returns before M is entered
 *   N=M   the address that call N gives out is the last argument of M
 *   N+M   call N and those behind it are numbered M more
 *   N-M   calls N to M are not there
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"

typedef struct change {
    uint64_t call, other, value; /* value: of the other call, its time or argument */
    char what;
} change;

static bool read_values(zt_trace *trace, change *changes, int n)
{
    const zt_call *call;
    int found = 0;
    for (int i = 0; i < n; i++)
        found += changes[i].what == '-';
    while (zt_trace_next(trace, &call) == ZT_OK)
        for (int i = 0; i < n; i++)
            if (changes[i].what == '-')
                continue;
            else if (changes[i].what == '+' ? changes[i].call == call->number : changes[i].other == call->number) {
                changes[i].value = changes[i].what == '=' ? call->words[call->func->n_words - 1] : call->enter_ns;
                found++;
            }
    return found == n && zt_trace_seek(trace, 1) == ZT_OK;
}

/* What is kept as a blob goes over before the call that refers to it. */
static void copy_blob(zt_trace *trace, zt_writer *writer, const zt_hash *hash)
{
    uint64_t len;
    zt_hash again;
    const void *const data = zt_trace_blob(trace, hash, &len);
    if (data != NULL)
        zt_writer_blob(writer, data, len, &again);
}

static bool left_out(const zt_call *call, const change *changes, int n)
{
    for (int i = 0; i < n; i++)
        if (changes[i].what == '-' && call->number >= changes[i].call && call->number <= changes[i].other)
            return true;
    return false;
}

static int write_call(zt_trace *trace, zt_writer *writer, const zt_call *recorded, const change *changes, int n)
{
    zt_call call = *recorded;
    zt_piece out = {0};
    for (uint32_t i = 0; i < call.n_in + call.n_out; i++) {
        const zt_piece *const p = i < call.n_in ? &call.in[i] : &call.out[i - call.n_in];
        if (p->data == NULL && !p->lost)
            copy_blob(trace, writer, &p->hash);
    }
    for (uint32_t i = 0; i < call.n_contents; i++)
        if (call.contents[i].data == NULL && !call.contents[i].hash_only)
            copy_blob(trace, writer, &call.contents[i].hash);
    for (int i = 0; i < n; i++) {
        if (changes[i].what == '+' && recorded->number >= changes[i].call)
            call.number += changes[i].other;
        if (changes[i].what == '+' || changes[i].what == '-' || changes[i].call != recorded->number)
            continue;
        if (changes[i].what == '=') {
            out = call.out[0];
            out.data = &changes[i].value;
            call.out = &out;
            call.n_out = 1;
        } else {
            call.leave_ns = changes[i].what == '>' ? changes[i].value + 1 : changes[i].value - 1;
        }
    }
    return zt_writer_call(writer, &call);
}

int main(int argc, char **argv)
{
    const int n = argc - 3;
    change *const changes = calloc((size_t)argc, sizeof(*changes));
    zt_trace *trace;
    zt_writer *writer;
    zt_error error;
    const zt_call *call;
    for (int i = 0; changes != NULL && i < n; i++) {
        unsigned long long a, b;
        if (sscanf(argv[3 + i], "%llu%c%llu", &a, &changes[i].what, &b) != 3)
            return 2;
        changes[i].call = a;
        changes[i].other = b;
    }
    if (n < 0 || changes == NULL || zt_trace_open(&trace, argv[1], &error) != ZT_OK || !read_values(trace, changes, n))
        return 2;
    const zt_writer_options options = {.overwrite = true};
    if (zt_writer_open(&writer, argv[2], zt_trace_session(trace), &options, &error) != ZT_OK)
        return 2;
    while (zt_trace_next(trace, &call) == ZT_OK)
        if (!left_out(call, changes, n) && write_call(trace, writer, call, changes, n) != ZT_OK)
            return 2;
    const zt_ending ending = *zt_trace_ending(trace);
    const int status = zt_writer_close(writer, &ending, &error);
    zt_trace_close(trace);
    free(changes);
    return status == ZT_OK ? 0 : 2;
}

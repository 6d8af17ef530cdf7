/* SPDX-License-Identifier: MIT */
/* blobs_test FILE: who walks a call may point into all its blobs at once, whatever they come to; they go when another call's are asked for. */
#include "format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 4, BYTES = 20 << 20, CALLS = 2 }; /* more than the cache holds */

static unsigned failures;

static void expect(bool ok, const char *what, unsigned i)
{
    failures += !ok;
    if (!ok)
        fprintf(stderr, "blobs_test: piece %u: %s\n", i, what);
}

static uint64_t address_of(uint64_t call, unsigned piece)
{
    return (call * PIECES + piece + 1) << 32;
}

static bool write_trace(const char *path)
{
    const zt_session session = {.pid = 1, .uuid = "fifteen letters"};
    const zt_writer_options options = {.overwrite = true};
    const zt_ending ending = {.complete = 1, .exited = 1, .calls = CALLS};
    const uint64_t words[1] = {0};
    const zt_func *const func = &zt_funcs[zt_func_find("zeInit")];
    uint8_t *const bytes = calloc(BYTES, 1);
    zt_writer *writer;
    zt_error error;
    if (bytes == NULL || zt_writer_open(&writer, path, &session, &options, &error) != ZT_OK)
        return false;
    for (uint64_t number = 1; number <= CALLS; number++) {
        zt_piece pieces[PIECES] = {0};
        for (unsigned i = 0; i < PIECES; i++) {
            bytes[0] = (uint8_t)(number * PIECES + i);
            pieces[i] = (zt_piece){.addr = address_of(number, i), .len = BYTES};
            if (zt_writer_blob(writer, bytes, BYTES, &pieces[i].hash) != ZT_OK)
                return false;
        }
        const zt_call call = {.number = number, .func = func, .thread = 1, .returned = 1, .enter_ns = number * 10, .leave_ns = number * 10 + 5,
                              .words = words, .in = pieces, .n_in = PIECES};
        if (zt_writer_call(writer, &call) != ZT_OK)
            return false;
    }
    free(bytes);
    return zt_writer_close(writer, &ending, &error) == ZT_OK;
}

static void read_trace(const char *path)
{
    zt_trace *trace;
    zt_error error;
    const zt_call *call;
    unsigned calls = 0;
    if (zt_trace_open(&trace, path, &error) != ZT_OK) {
        expect(false, error.text, 0);
        return;
    }
    while (zt_trace_next(trace, &call) == ZT_OK) {
        const uint8_t *at[PIECES];
        zt_call_memory of = {.call = call, .phase = ZT_ENTER, .trace = trace};
        const zt_memory memory = zt_memory_of(&of);
        calls++;
        for (unsigned i = 0; i < PIECES; i++)
            at[i] = memory.at(memory.ctx, address_of(call->number, i), BYTES);
        for (unsigned i = 0; i < PIECES; i++)
            expect(at[i] != NULL && at[i][0] == (uint8_t)(call->number * PIECES + i) && at[i][BYTES - 1] == 0, "is not there any more", i);
        uint64_t len = 0; /* one by one: nobody holds them */
        for (unsigned i = 0; i < PIECES; i++)
            expect(zt_trace_blob(trace, &call->in[i].hash, &len) == at[i] && len == BYTES, "is read twice", i);
    }
    expect(calls == CALLS, "calls are missing", calls);
    zt_trace_close(trace);
}

int main(int argc, char **argv)
{
    if (argc != 2 || !write_trace(argv[1])) {
        fprintf(stderr, "blobs_test: no trace could be written\n");
        return 2;
    }
    read_trace(argv[1]);
    remove(argv[1]);
    return failures > 0;
}

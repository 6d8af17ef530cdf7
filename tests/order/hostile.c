/* SPDX-License-Identifier: MIT */
/* Property: contents of any length and place, of which the trace has no bytes, are passed over and counted; a graph is made all the same. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "order.h"

static bool write_trace(const char *path)
{
    static const uint64_t word = 0;
    zt_content contents[] = {{.kind = ZT_C_OPERAND, .addr = UINT64_MAX - 4000, .len = 1000, .hash_only = 1},
                             {.kind = ZT_C_OPERAND, .addr = 4096, .len = UINT64_MAX - 4096, .hash_only = 1},
                             {.kind = ZT_C_READBACK, .addr = 4096, .len = 1ull << 60, .hash_only = 1},
                             {.kind = ZT_C_READBACK, .addr = UINT64_MAX - 10, .len = 10, .hash_only = 1}};
    const zt_call call = {.number = 1, .func = &zt_funcs[zt_func_find("zeInit")], .thread = 1, .returned = 1, .enter_ns = 1, .leave_ns = 2,
                          .words = &word, .contents = contents, .n_contents = sizeof(contents) / sizeof(contents[0])};
    const zt_session session = {.pid = 42};
    const zt_writer_options options = {.overwrite = true};
    zt_writer *writer;
    zt_error error;
    return zt_writer_open(&writer, path, &session, &options, &error) == ZT_OK && zt_writer_call(writer, &call) == ZT_OK &&
           zt_writer_close(writer, &(zt_ending){.calls = 1}, &error) == ZT_OK;
}

int main(void)
{
    char path[] = "/tmp/zetrace-order.XXXXXX";
    zt_trace *trace = NULL;
    zo_graph *graph = NULL;
    zo_doubts doubts = {0};
    zt_error error = {0};
    const int fd = mkstemp(path);
    const bool ok = fd >= 0 && write_trace(path) && zt_trace_open(&trace, path, &error) == ZT_OK &&
                    zo_graph_make(&graph, trace, NULL, &error) == ZT_OK;
    if (ok)
        zo_graph_doubts(graph, &doubts);
    zo_graph_free(graph);
    if (trace != NULL)
        zt_trace_close(trace);
    unlink(path);
    if (fd >= 0)
        close(fd);
    if (!ok || doubts.accesses != 2)
        fprintf(stderr, "%llu contents were passed over, wanted 2; %s\n", (unsigned long long)doubts.accesses, error.text);
    return !ok || doubts.accesses != 2;
}

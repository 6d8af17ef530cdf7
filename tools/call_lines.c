/* SPDX-License-Identifier: MIT */
#include "call_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_call(const void *a, const void *b)
{
    const zt_call_line *const x = a, *const y = b;
    return x->call < y->call ? -1 : x->call > y->call;
}

size_t zt_call_lines_sort(zt_call_line *lines, size_t n)
{
    size_t kept = 0;
    if (n > 0)
        qsort(lines, n, sizeof(*lines), by_call);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || lines[kept - 1].call != lines[i].call)
            lines[kept++] = lines[i];
    return kept;
}

const zt_call_line *zt_call_line_of(const zt_call_line *lines, size_t n, uint64_t call)
{
    const zt_call_line key = {.call = call};
    return n ? bsearch(&key, lines, n, sizeof(*lines), by_call) : NULL;
}

static void read_frames(zt_trace *trace, const zt_call *call, zt_call_line *l)
{
    bool in_main = false;
    for (uint32_t i = 0; i < call->n_backtrace && i < ZT_FRAMES && !in_main; i++) {
        const char *const name = zt_trace_frame(trace, call->backtrace[i]);
        char address[32];
        snprintf(address, sizeof(address), "0x%llx", (unsigned long long)call->backtrace[i]);
        l->frames[i] = strdup(name ? name : address);
        in_main = name != NULL && strncmp(name, "main", 4) == 0 && (name[4] == ' ' || name[4] == '\0');
    }
}

void zt_call_lines_read(zt_trace *trace, zt_call_line *lines, size_t n)
{
    zt_objects *const objects = zt_objects_new();
    zt_text *const text = zt_text_new();
    zt_events *events = NULL;
    zt_event event;
    zt_trace_seek(trace, 1);
    if (n == 0 || objects == NULL || text == NULL || zt_events_open(&events, trace) != ZT_OK)
        goto out;
    while (zt_events_next(events, &event) == ZT_OK) {
        const bool last = event.phase == ZT_LEAVE || !event.call->returned;
        zt_call_line *const l = last ? (zt_call_line *)(uintptr_t)zt_call_line_of(lines, n, event.call->number) : NULL;
        if (event.phase == ZT_LEAVE)
            zt_objects_event(objects, trace, &event);
        if (l != NULL && l->text == NULL) {
            zt_text_clear(text);
            zt_print_call(text, trace, objects, event.call, ZT_P_NO_TIME);
            l->text = strdup(zt_text_get(text, NULL));
            l->function = strdup(event.call->func->name);
            read_frames(trace, event.call, l);
        }
        if (event.phase == ZT_ENTER)
            zt_objects_event(objects, trace, &event);
    }
out:
    zt_events_close(events);
    zt_text_free(text);
    zt_objects_free(objects);
}

void zt_call_lines_clear(zt_call_line *lines, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(lines[i].text);
        free(lines[i].function);
        for (unsigned k = 0; k < ZT_FRAMES; k++)
            free(lines[i].frames[k]);
    }
}

/* SPDX-License-Identifier: MIT */
#include "export_other.h"

#include <string.h>

#include "convert/convert.h"
#include "output_file.h"

static void step(void *ctx, uint64_t done, uint64_t total)
{
    zt_progress *const progress = ctx;
    progress->total = total;
    zt_progress_step(progress, done);
}

static int write_json(FILE *out, zt_trace *trace, const char *path)
{
    zt_progress progress;
    const zv_progress steps = {step, &progress};
    zt_progress_start(&progress, "export", 0);
    zv_json_write(trace, out, &steps);
    zt_progress_end(&progress);
    zt_tell_health(trace, path);
    return ZT_EXIT_OK;
}

typedef int (*timeline_writer)(zt_trace *trace, FILE *out, const zv_progress *progress, zv_timeline_facts *facts, zt_error *error);

static int write_timeline(timeline_writer writer, FILE *out, zt_trace *trace, const char *path)
{
    zt_progress progress;
    zv_timeline_facts facts;
    zt_error error;
    const zv_progress steps = {step, &progress};
    zt_progress_start(&progress, "export", 0);
    const int status = writer(trace, out, &steps, &facts, &error);
    zt_progress_end(&progress);
    zt_tell_health(trace, path);
    if (status != ZT_OK) {
        zt_complain("%s: %s", path, error.text);
        return status == ZT_E_MEMORY ? ZT_EXIT_CANNOT : ZT_EXIT_DAMAGED;
    }
    if (facts.timed < facts.commands)
        zt_complain("%s: the times of %llu of %llu commands were not recorded; they are drawn in their order, between their submit and what waited for them",
                    path, (unsigned long long)(facts.commands - facts.timed), (unsigned long long)facts.commands);
    return ZT_EXIT_OK;
}

static int write_chrome(FILE *out, zt_trace *trace, const char *path)
{
    return write_timeline(zv_chrome_write, out, trace, path);
}

static int write_perfetto(FILE *out, zt_trace *trace, const char *path)
{
    return write_timeline(zv_perfetto_write, out, trace, path);
}

int zt_export_other(zt_trace *trace, const char *path, const char *format, const char *output, bool force)
{
    static const struct {
        const char *name;
        int (*write)(FILE *out, zt_trace *trace, const char *path);
    } formats[] = {{"json", write_json}, {"chrome", write_chrome}, {"perfetto", write_perfetto}, {"dot", zt_draw_dot}};
    zt_output out;
    size_t i = 0;
    while (strcmp(formats[i].name, format) != 0)
        i++;
    if (!zt_output_open(&out, output, force))
        return ZT_EXIT_DIFFERS;
    const int status = formats[i].write(out.file, trace, path);
    return zt_output_close(&out, status == ZT_EXIT_OK) ? status : ZT_EXIT_DIFFERS;
}

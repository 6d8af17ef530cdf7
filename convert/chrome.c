/* SPDX-License-Identifier: MIT */
/* The Trace Event Format: an object with events, which chrome://tracing, Perfetto and others draw. */
#include <inttypes.h>

#include "text.h"
#include "timeline.h"

/* Processes there are numbers. What runs on devices is one of its own, which no kernel gives out. */
#define DEVICES 4194305

typedef struct chrome {
    FILE *out;
    int64_t pid;
    bool any;
} chrome;

static int64_t pid_of(const chrome *c, zv_track track)
{
    return track.device ? DEVICES : c->pid;
}

static void open_event(chrome *c, const char *phase, zv_track track)
{
    fprintf(c->out, "%s{\"ph\":\"%s\",\"pid\":%" PRId64 ",\"tid\":%" PRIu32, c->any ? ",\n" : "", phase, pid_of(c, track), track.id);
    c->any = true;
}

/* Microseconds, with all the digits there are. */
static void put_time(chrome *c, uint64_t ns)
{
    fprintf(c->out, ",\"ts\":%" PRIu64 ".%03" PRIu64, ns / 1000, ns % 1000);
}

static void put_metadata(chrome *c, const char *what, zv_track track, const char *name)
{
    open_event(c, "M", track);
    fprintf(c->out, ",\"name\":\"%s\",\"args\":{\"name\":", what);
    zv_text_put(c->out, name);
    fputs("}}", c->out);
}

static void put_args(chrome *c, const zv_mark *mark)
{
    fputs(",\"args\":{", c->out);
    for (size_t i = 0; i < mark->n_args; i++) {
        fprintf(c->out, "%s\"%s\":", i ? "," : "", mark->args[i].name);
        if (mark->args[i].text != NULL)
            zv_text_put(c->out, mark->args[i].text);
        else
            fprintf(c->out, "%" PRIu64, mark->args[i].number);
    }
    fputs("}}", c->out);
}

/* They belong to the slice that is open on the track at that time. */
static void put_flows(chrome *c, const zv_mark *mark)
{
    static const char *const phases[] = {[ZV_FLOW_BEGINS] = "s", [ZV_FLOW_GOES_ON] = "t", [ZV_FLOW_ENDS] = "f"};
    for (size_t i = 0; i < mark->n_flows; i++) {
        open_event(c, phases[mark->flows[i].step], mark->track);
        put_time(c, mark->ns);
        fprintf(c->out, ",\"cat\":\"command\",\"name\":\"command\",\"id\":%" PRIu64 ",\"bp\":\"e\"}", mark->flows[i].id);
    }
}

static void track(void *ctx, zv_track t, const char *name)
{
    put_metadata(ctx, "thread_name", t, name);
}

static void begin(void *ctx, const zv_mark *mark)
{
    chrome *const c = ctx;
    open_event(c, "B", mark->track);
    put_time(c, mark->ns);
    fprintf(c->out, ",\"cat\":\"%s\",\"name\":", mark->track.device ? "device" : "host");
    zv_text_put(c->out, mark->name);
    put_args(c, mark);
    put_flows(c, mark);
}

static void end(void *ctx, const zv_mark *mark)
{
    chrome *const c = ctx;
    put_flows(c, mark);
    open_event(c, "E", mark->track);
    put_time(c, mark->ns);
    put_args(c, mark);
}

int zv_chrome_write(zt_trace *trace, FILE *out, const zv_progress *progress, zv_timeline_facts *facts, zt_error *error)
{
    const zt_session *const s = zt_trace_session(trace);
    chrome c = {.out = out, .pid = s->pid > 0 && s->pid < DEVICES ? s->pid : 1};
    const zv_sink sink = {track, begin, end, &c};
    fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"program\":", out);
    zv_text_put(out, s->program);
    fputs(",\"host\":", out);
    zv_text_put(out, s->hostname);
    fputs(",\"recorder\":", out);
    zv_text_put(out, s->version);
    fputs("},\"traceEvents\":[\n", out);
    put_metadata(&c, "process_name", (zv_track){false, 0}, s->program);
    put_metadata(&c, "process_name", (zv_track){true, 0}, "devices");
    const int status = zv_timeline(trace, &sink, progress, facts, error);
    fputs("\n]}\n", out);
    return status;
}

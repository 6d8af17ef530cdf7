/* SPDX-License-Identifier: MIT */
/* A stream of Perfetto's packets. */
#include <stdlib.h>

#include "perfetto.pb-c.h"
#include "text.h"
#include "timeline.h"

enum { ARGS = 8, PROCESS = 1, DEVICES };

typedef struct perfetto {
    FILE *out;
    bool out_of_memory;
} perfetto;

static uint64_t uuid_of(zv_track track)
{
    return (uint64_t)(track.device ? 2 : 1) << 32 | track.id;
}

/* Perfetto's texts are UTF-8; a trace's mostly are, too. @return to be freed, NULL for NULL. */
static char *text_of(perfetto *p, const char *text)
{
    char *const clean = text != NULL ? zv_text_clean(text) : NULL;
    p->out_of_memory |= text != NULL && clean == NULL;
    return clean;
}

static void put_packet(perfetto *p, Perfetto__Protos__TracePacket *packet)
{
    Perfetto__Protos__TracePacket *one[] = {packet};
    Perfetto__Protos__Trace stream = PERFETTO__PROTOS__TRACE__INIT; /* packets of a trace may simply follow each other */
    stream.n_packet = 1;
    stream.packet = one;
    packet->has_trusted_packet_sequence_id = 1;
    packet->trusted_packet_sequence_id = 1;
    uint8_t *const bytes = malloc(perfetto__protos__trace__get_packed_size(&stream));
    if (bytes == NULL)
        p->out_of_memory = true;
    else
        fwrite(bytes, 1, perfetto__protos__trace__pack(&stream, bytes), p->out);
    free(bytes);
}

static void put_track(perfetto *p, uint64_t uuid, uint64_t parent, const char *name, Perfetto__Protos__ProcessDescriptor *process)
{
    Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
    Perfetto__Protos__TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
    track.has_uuid = 1;
    track.uuid = uuid;
    track.has_parent_uuid = parent != 0;
    track.parent_uuid = parent;
    track.name = text_of(p, name);
    track.process = process;
    packet.track_descriptor = &track;
    put_packet(p, &packet);
    free(track.name);
}

static void put_event(perfetto *p, const zv_mark *mark, Perfetto__Protos__TrackEvent__Type type, const zv_arg *args, size_t n_args)
{
    Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
    Perfetto__Protos__TrackEvent event = PERFETTO__PROTOS__TRACK_EVENT__INIT;
    Perfetto__Protos__DebugAnnotation annotations[ARGS], *refs[ARGS];
    char *category[] = {mark->track.device ? (char *)"device" : (char *)"host"};
    uint64_t *const flows = type == PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_END ? NULL : malloc((mark->n_flows + 1) * sizeof(*flows));
    size_t n = 0;
    for (size_t i = 0; i < n_args && i < ARGS; i++) {
        perfetto__protos__debug_annotation__init(&annotations[i]);
        annotations[i].name = (char *)(uintptr_t)args[i].name;
        annotations[i].string_value = text_of(p, args[i].text);
        annotations[i].has_uint_value = args[i].text == NULL;
        annotations[i].uint_value = args[i].number;
        refs[i] = &annotations[i];
    }
    /* those that end come behind the others: the two lists share the room */
    for (size_t i = 0; flows != NULL && i < mark->n_flows; i++)
        if (mark->flows[i].step != ZV_FLOW_ENDS)
            flows[n++] = mark->flows[i].id;
    event.n_flow_ids = n;
    event.flow_ids = flows;
    for (size_t i = 0; flows != NULL && i < mark->n_flows; i++)
        if (mark->flows[i].step == ZV_FLOW_ENDS)
            flows[n++] = mark->flows[i].id;
    event.n_terminating_flow_ids = n - event.n_flow_ids;
    event.terminating_flow_ids = flows != NULL ? flows + event.n_flow_ids : NULL;
    event.n_debug_annotations = n_args < ARGS ? n_args : ARGS;
    event.debug_annotations = refs;
    event.has_type = 1;
    event.type = type;
    event.has_track_uuid = 1;
    event.track_uuid = uuid_of(mark->track);
    event.n_categories = mark->name != NULL;
    event.categories = category;
    event.name = text_of(p, mark->name);
    packet.has_timestamp = 1;
    packet.timestamp = mark->ns;
    packet.track_event = &event;
    put_packet(p, &packet);
    for (size_t i = 0; i < event.n_debug_annotations; i++)
        free(annotations[i].string_value);
    free(event.name);
    free(flows);
}

static void track(void *ctx, zv_track t, const char *name)
{
    put_track(ctx, uuid_of(t), t.device ? DEVICES : PROCESS, name, NULL);
}

static void begin(void *ctx, const zv_mark *mark)
{
    put_event(ctx, mark, PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN, mark->args, mark->n_args);
}

/* A flow leads to an event, and the end of a slice is none: what is over then gets an instant of its own in the slice. */
static void end(void *ctx, const zv_mark *mark)
{
    if (mark->n_flows > 0) {
        zv_mark over = *mark;
        over.name = "over";
        put_event(ctx, &over, PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_INSTANT, NULL, 0);
    }
    put_event(ctx, mark, PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_END, mark->args, mark->n_args);
}

int zv_perfetto_write(zt_trace *trace, FILE *out, const zv_progress *progress, zv_timeline_facts *facts, zt_error *error)
{
    const zt_session *const s = zt_trace_session(trace);
    perfetto p = {.out = out};
    const zv_sink sink = {track, begin, end, &p};
    Perfetto__Protos__ProcessDescriptor process = PERFETTO__PROTOS__PROCESS_DESCRIPTOR__INIT;
    process.has_pid = 1;
    process.pid = s->pid > 0 && s->pid <= INT32_MAX ? (int32_t)s->pid : 1;
    process.process_name = text_of(&p, s->program);
    process.cmdline = calloc(s->argc + 1u, sizeof(*process.cmdline));
    for (uint32_t i = 0; process.cmdline != NULL && i < s->argc; i++)
        if ((process.cmdline[process.n_cmdline] = text_of(&p, s->argv[i])) != NULL)
            process.n_cmdline++;
    put_track(&p, PROCESS, 0, NULL, &process);
    for (size_t i = 0; i < process.n_cmdline; i++)
        free(process.cmdline[i]);
    free(process.cmdline);
    free(process.process_name);
    put_track(&p, DEVICES, 0, "devices", NULL);
    int status = zv_timeline(trace, &sink, progress, facts, error);
    if (status == ZT_OK && p.out_of_memory) {
        status = error->status = ZT_E_MEMORY;
        snprintf(error->text, sizeof(error->text), "not enough memory for a packet");
    }
    return status;
}

/* SPDX-License-Identifier: MIT */
#include "timeline.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "device_time.h"

enum { LANES = 64 }; /* commands of one carrier side by side; more are drawn over each other's ends, cut */

enum part { APPEND, SUBMIT, SYNC };
typedef struct part_of { /* what a call is to an execution */
    uint64_t call;
    uint64_t flow; /* index of the execution + 1 */
    uint8_t part;  /* enum part */
} part_of;

typedef struct timeline {
    zt_trace *trace;
    const zv_sink *sink;
    const zv_progress *progress;
    uint64_t origin, end_ns;
    zo_execution *executions;
    zv_span *spans;
    size_t n;
    part_of *parts; /* by call, then part */
    size_t n_parts;
    void *threads; /* tree of those that have a track */
    zv_flow *flows; /* room for those of one call */
    size_t flows_room;
    zt_text *text;
    bool out_of_memory;
} timeline;

/* ----------------------------------------------------------------------------------------------------------- executions */

/*
 * A command of which the order alone is known lies between its submit and the call that says that it is over, behind the one before
 * it. Those with the same bounds share the time.
 */
static void place_by_order(timeline *t)
{
    uint64_t *const latest = malloc((t->n + 1) * sizeof(*latest)), *const sharers = malloc((t->n + 1) * sizeof(*sharers));
    uint64_t before = 0;
    t->out_of_memory |= latest == NULL || sharers == NULL;
    for (size_t i = t->n; !t->out_of_memory && i-- > 0;) {
        const zo_execution *const e = &t->executions[i];
        const bool last = i + 1 == t->n || e[1].carrier != e->carrier;
        latest[i] = e->sync != 0 ? e->sync_ns : t->end_ns;
        if (!last && latest[i + 1] < latest[i])
            latest[i] = latest[i + 1];
        sharers[i] = 1 + (!last && e[1].submit_ns < latest[i] && latest[i + 1] == latest[i] ? sharers[i + 1] : 0);
    }
    for (size_t i = 0; !t->out_of_memory && i < t->n; i++) {
        const zo_execution *const e = &t->executions[i];
        zv_span *const s = &t->spans[i];
        if (i == 0 || e[-1].carrier != e->carrier)
            before = 0;
        if (!s->known) {
            s->begin = e->submit_ns >= before ? e->submit_ns + 1 : before; /* flows go by time: the submit comes first */
            const uint64_t share = latest[i] > s->begin ? (latest[i] - s->begin) / sharers[i] : 0;
            s->end = s->begin + (share > 0 ? share : 1);
        }
        before = !s->known ? s->end : s->begin > before ? s->begin : before;
    }
    free(latest);
    free(sharers);
}

static int by_begin(const void *a, const void *b, void *ctx)
{
    const timeline *const t = ctx;
    const size_t i = *(const size_t *)a, k = *(const size_t *)b;
    const zv_span *const x = &t->spans[i], *const y = &t->spans[k];
    return x->begin < y->begin ? -1 : x->begin > y->begin ? 1 : i < k ? -1 : 1;
}

static void tell_execution(timeline *t, size_t i, zv_track track)
{
    const zo_execution *const e = &t->executions[i];
    const zv_flow flow = {i + 1, e->sync != 0 ? ZV_FLOW_GOES_ON : ZV_FLOW_ENDS};
    zv_arg args[6] = {{"call", NULL, e->append}, {"execution", NULL, e->execution}, {"submit", NULL, e->submit},
                      {"time", t->spans[i].known ? "recorded" : e->ran ? "order only" : "order only; it never ran, as far as the trace tells", 0}};
    size_t n = 4;
    if (e->sync != 0)
        args[n++] = (zv_arg){"over by", NULL, e->sync};
    const zv_mark begin = {.track = track, .name = e->func->name, .ns = t->origin + t->spans[i].begin, .args = args, .n_args = n, .flows = &flow,
                           .n_flows = 1};
    const zv_mark end = {.track = track, .ns = t->origin + t->spans[i].end};
    t->sink->begin(t->sink->ctx, &begin);
    t->sink->end(t->sink->ctx, &end);
}

/* Commands that overlap get lanes of their own: slices of one track nest. */
static void tell_carrier(timeline *t, const size_t *order, size_t n, uint32_t *lane)
{
    uint64_t over[LANES];
    uint32_t lanes = 0;
    size_t timed = 0;
    for (size_t i = 0; i < n; i++)
        timed += t->spans[order[i]].known;
    for (size_t i = 0; i < n; i++) {
        zv_span *const s = &t->spans[order[i]];
        uint32_t k = 0;
        while (k < lanes && over[k] > s->begin)
            k++;
        if (k == LANES) {
            k = LANES - 1;
            s->begin = over[k];
            s->end = s->end > s->begin ? s->end : s->begin;
        }
        if (k == lanes) {
            char name[120], number[16] = "";
            if (k > 0)
                snprintf(number, sizeof(number), " (%u)", k + 1);
            snprintf(name, sizeof(name), "%s%s%s", t->executions[order[i]].carrier_name, number,
                     timed == n ? "" : timed == 0 ? ", order only" : ", some in order only");
            t->sink->track(t->sink->ctx, (zv_track){true, *lane + k + 1}, name);
            lanes++;
        }
        over[k] = s->end;
        tell_execution(t, order[i], (zv_track){true, *lane + k + 1});
    }
    *lane += lanes;
}

static void tell_executions(timeline *t)
{
    size_t *const order = malloc((t->n + 1) * sizeof(*order));
    uint32_t lane = 0;
    t->out_of_memory |= order == NULL;
    for (size_t first = 0, n; order != NULL && first < t->n; first += n) {
        for (n = 0; first + n < t->n && t->executions[first + n].carrier == t->executions[first].carrier; n++)
            order[n] = first + n;
        qsort_r(order, n, sizeof(*order), by_begin, t);
        tell_carrier(t, order, n, &lane);
    }
    free(order);
}

/* ---------------------------------------------------------------------------------------------------------------- calls */

static int by_call(const void *a, const void *b)
{
    const part_of *const x = a, *const y = b;
    if (x->call != y->call)
        return x->call < y->call ? -1 : 1;
    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    return x->flow < y->flow ? -1 : x->flow > y->flow;
}

static void find_parts(timeline *t)
{
    t->parts = malloc((t->n * 3 + 1) * sizeof(*t->parts));
    if (t->parts == NULL) {
        t->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < t->n; i++) {
        const zo_execution *const e = &t->executions[i];
        t->parts[t->n_parts++] = (part_of){e->append, i + 1, APPEND};
        if (e->submit != e->append)
            t->parts[t->n_parts++] = (part_of){e->submit, i + 1, SUBMIT};
        if (e->sync != 0)
            t->parts[t->n_parts++] = (part_of){e->sync, i + 1, SYNC};
    }
    qsort(t->parts, t->n_parts, sizeof(*t->parts), by_call);
}

/* Flows that pass a call when it begins, or that end when it does. */
static size_t flows_of(timeline *t, uint64_t call, bool at_end)
{
    size_t low = 0, high = t->n_parts, n = 0;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (t->parts[mid].call < call)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < t->n_parts && t->parts[low].call == call; low++) {
        if ((t->parts[low].part == SYNC) != at_end)
            continue;
        if (n == t->flows_room) {
            const size_t room = n ? n * 2 : 64;
            zv_flow *const grown = realloc(t->flows, room * sizeof(*grown));
            if (grown == NULL) {
                t->out_of_memory = true;
                break;
            }
            t->flows = grown;
            t->flows_room = room;
        }
        t->flows[n++] = (zv_flow){t->parts[low].flow, at_end ? ZV_FLOW_ENDS : t->parts[low].part == APPEND ? ZV_FLOW_BEGINS : ZV_FLOW_GOES_ON};
    }
    return n;
}

static int by_thread(const void *a, const void *b)
{
    return (uintptr_t)a < (uintptr_t)b ? -1 : (uintptr_t)a > (uintptr_t)b;
}

static void nothing(void *key)
{
    (void)key;
}

static void name_thread(timeline *t, uint32_t thread)
{
    char name[32];
    void *const key = (void *)((uintptr_t)thread + 1);
    if (tfind(key, &t->threads, by_thread) != NULL)
        return;
    if (tsearch(key, &t->threads, by_thread) == NULL)
        t->out_of_memory = true;
    snprintf(name, sizeof(name), "thread %u", thread);
    t->sink->track(t->sink->ctx, (zv_track){false, thread}, name);
}

static const char *line_of(timeline *t, const zt_objects *objects, const zt_call *call)
{
    zt_text_clear(t->text);
    zt_print_call(t->text, t->trace, objects, call, ZT_P_NO_TIME);
    return zt_text_get(t->text, NULL);
}

static void tell_call(timeline *t, const zt_objects *objects, const zt_event *event)
{
    const zt_call *const call = event->call;
    const zv_track track = {false, call->thread};
    const bool begin = event->phase == ZT_ENTER, leaves_text = begin ? !call->returned : true;
    zv_arg args[2];
    size_t n = 0;
    if (begin) {
        name_thread(t, call->thread);
        args[n++] = (zv_arg){"call", NULL, call->number};
    }
    if (leaves_text)
        args[n++] = (zv_arg){"line", line_of(t, objects, call), 0};
    const size_t n_flows = flows_of(t, call->number, !begin);
    const zv_mark mark = {.track = track, .name = begin ? call->func->name : NULL, .ns = t->origin + (begin ? call->enter_ns : call->leave_ns), .args = args,
                          .n_args = n, .flows = t->flows, .n_flows = n_flows};
    (begin ? t->sink->begin : t->sink->end)(t->sink->ctx, &mark);
}

/* ---------------------------------------------------------------------------------------------------------------- passes */

typedef int (*each_event)(timeline *t, zt_objects *objects, const zt_event *event, void *ctx);

static int tell(timeline *t, zt_objects *objects, const zt_event *event, void *ctx)
{
    (void)ctx;
    if (event->phase == ZT_LEAVE) /* what it made has a name in its own line, what it destroys still has one */
        zt_objects_event(objects, t->trace, event);
    tell_call(t, objects, event);
    if (event->phase == ZT_ENTER)
        zt_objects_event(objects, t->trace, event);
    if (t->progress != NULL)
        t->progress->step(t->progress->ctx, event->call->number, 0);
    return ZT_OK;
}

static int ask_for_times(timeline *t, zt_objects *objects, const zt_event *event, void *ctx)
{
    const uint64_t now = event->phase == ZT_LEAVE ? event->call->leave_ns : event->call->enter_ns;
    zt_objects_event(objects, t->trace, event);
    t->end_ns = now > t->end_ns ? now : t->end_ns;
    return event->phase == ZT_LEAVE ? zv_device_time_call(ctx, t->trace, objects, event->call) : ZT_OK;
}

static int pass(timeline *t, each_event each, void *ctx)
{
    zt_events *events = NULL;
    zt_event event;
    zt_objects *const objects = zt_objects_new();
    zt_trace_seek(t->trace, 1);
    int status = objects != NULL ? zt_events_open(&events, t->trace) : ZT_E_MEMORY;
    while (status == ZT_OK && !t->out_of_memory && (status = zt_events_next(events, &event)) == ZT_OK)
        status = each(t, objects, &event, ctx);
    zt_events_close(events);
    zt_objects_free(objects);
    return t->out_of_memory ? ZT_E_MEMORY : status == ZT_END ? ZT_OK : status;
}

static int prepare(timeline *t, zt_error *error)
{
    static const zo_graph_options options;
    zo_graph *graph;
    zt_trace_seek(t->trace, 1);
    int status = zo_graph_make(&graph, t->trace, &options, error);
    if (status != ZT_OK)
        return status;
    t->n = zo_executions(graph, &t->executions);
    zo_graph_free(graph);
    if (t->n == SIZE_MAX)
        return ZT_E_MEMORY;
    zv_device_time *const times = zv_device_time_new();
    t->spans = malloc((t->n + 1) * sizeof(*t->spans));
    status = times != NULL && t->spans != NULL ? pass(t, ask_for_times, times) : ZT_E_MEMORY;
    if (status == ZT_OK)
        status = zv_device_time_spans(times, t->executions, t->n, t->spans);
    zv_device_time_free(times);
    if (status != ZT_OK)
        return status;
    place_by_order(t);
    find_parts(t);
    return t->out_of_memory ? ZT_E_MEMORY : ZT_OK;
}

int zv_timeline(zt_trace *trace, const zv_sink *sink, const zv_progress *progress, zv_timeline_facts *facts, zt_error *error)
{
    const uint64_t start = zt_trace_session(trace)->start_monotonic_ns;
    timeline t = {.trace = trace, .sink = sink, .progress = progress, .origin = start < UINT64_MAX / 4 ? start : 0, .text = zt_text_new()};
    *error = (zt_error){.status = ZT_OK};
    *facts = (zv_timeline_facts){0};
    int status = t.text != NULL ? prepare(&t, error) : ZT_E_MEMORY;
    if (status == ZT_OK) {
        tell_executions(&t);
        status = pass(&t, tell, NULL);
        facts->commands = t.n;
        for (size_t i = 0; i < t.n; i++)
            facts->timed += t.spans[i].known;
    }
    tdestroy(t.threads, nothing);
    free(t.executions);
    free(t.spans);
    free(t.parts);
    free(t.flows);
    zt_text_free(t.text);
    if (status != ZT_OK && error->status == ZT_OK) {
        error->status = status;
        snprintf(error->text, sizeof(error->text), "%s", status == ZT_E_MEMORY ? "not enough memory for a time line" : "it could not be read to its end");
    }
    return status;
}

/* SPDX-License-Identifier: MIT */
/* zetrace dump --state: one moment of a trace. */
#include "dump_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "call_lines.h"
#include "commands.h"
#include "state.h"

typedef struct residency {
    uint64_t call; /* 0: nobody said */
    bool evicted;
} residency;

typedef struct under_way {
    uint64_t number;
    const zt_func *func;
} under_way;

typedef struct moment {
    zt_trace *trace;
    uint64_t number, last;
    zt_objects *objects;
    residency *residency; /* by object */
    size_t n_residency;
    under_way *open;
    size_t n_open;
    zo_in_flight *commands;
    size_t n_commands, room_commands;
    zt_call_line *lines;
    size_t n_lines;
    bool json, out_of_memory;
    size_t told; /* of the list that is being told */
} moment;

static bool grow(moment *m, void *list, size_t want, size_t element)
{
    void *const grown = realloc(*(void **)list, want * element);
    m->out_of_memory |= grown == NULL;
    if (grown != NULL)
        *(void **)list = grown;
    return grown != NULL;
}

/* -------------------------------------------------------------------------------------------------------- by the calls */

/* The allocation, or else the last object among the handles: an image. */
static const zt_object *resident_object(const moment *m, const zt_call *call)
{
    const zt_field *const address = zt_param_by_role(call->func, ZT_R_PTR);
    if (address != NULL)
        return zt_object_of_address(m->objects, zt_word(call, address));
    for (unsigned i = call->func->n_params; i-- > 0;) {
        const zt_field *const f = &call->func->params[i];
        if (f->shape == ZT_VALUE && zt_types[f->type].cls == ZT_HANDLE)
            return zt_object_of_handle(m->objects, &zt_types[f->type], zt_word(call, f));
    }
    return NULL;
}

static void see_residency(moment *m, const zt_event *event)
{
    const zt_call *const call = event->call;
    const bool evicts = call->func->kind == ZT_K_EVICT;
    if (!evicts && call->func->kind != ZT_K_RESIDENT)
        return;
    /* memory may be gone from the beginning of an eviction on; it is there when making it resident has ended */
    if (event->phase != (evicts ? ZT_ENTER : ZT_LEAVE) || (call->returned && call->result != 0))
        return;
    const zt_object *const o = resident_object(m, call);
    if (o == NULL)
        return;
    if (o->index >= m->n_residency) {
        const size_t want = o->index * 2 + 16;
        if (!grow(m, &m->residency, want, sizeof(*m->residency)))
            return;
        memset(m->residency + m->n_residency, 0, (want - m->n_residency) * sizeof(*m->residency));
        m->n_residency = want;
    }
    m->residency[o->index] = (residency){call->number, evicts};
}

static void see_open(moment *m, const zt_event *event)
{
    if (event->phase == ZT_ENTER) {
        if (grow(m, &m->open, m->n_open + 1, sizeof(*m->open)))
            m->open[m->n_open++] = (under_way){event->call->number, event->call->func};
        return;
    }
    for (size_t i = m->n_open; i-- > 0;)
        if (m->open[i].number == event->call->number) {
            memmove(m->open + i, m->open + i + 1, (m->n_open - i - 1) * sizeof(*m->open));
            m->n_open--;
            return;
        }
}

/* @return ZT_OK; ZT_END: there is no such call. */
static int read_calls(moment *m)
{
    zt_events *events = NULL;
    zt_event event;
    zt_trace_seek(m->trace, 1);
    int status = m->objects ? zt_events_open(&events, m->trace) : ZT_E_MEMORY;
    while (status == ZT_OK && (status = zt_events_next(events, &event)) == ZT_OK) {
        m->last = event.call->number > m->last ? event.call->number : m->last;
        see_open(m, &event);
        see_residency(m, &event);
        zt_objects_event(m->objects, m->trace, &event);
        if (m->out_of_memory)
            status = ZT_E_MEMORY;
        if (event.call->number == m->number && (event.phase == ZT_LEAVE || !event.call->returned))
            break;
    }
    zt_events_close(events);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------ printing */

static void put_name(const zt_object *o, bool json)
{
    char name[160];
    snprintf(name, sizeof(name), "%s#%u%s%s%s", o->kind, o->generation, o->label[0] ? "(" : "", o->label, o->label[0] ? ")" : "");
    if (json)
        zt_json_string(stdout, name);
    else
        printf("%-12s", name);
}

static void put_creator(const zt_object *o)
{
    if (o->by != NULL)
        printf("from #%" PRIu64 " %s", o->created, o->by->name);
    else
        printf("first seen in #%" PRIu64, o->created);
}

static void json_object(const zt_object *o)
{
    printf("{\"object\":");
    put_name(o, true);
    printf(",\"created\":%" PRIu64 ",\"by\":", o->created);
    if (o->by != NULL)
        zt_json_string(stdout, o->by->name);
    else
        printf("null");
}

/* Before each entry of a list: its heading, or what JSON wants between two. */
static void begin_entry(moment *m, const char *heading)
{
    if (m->json)
        printf("%s", m->told ? "," : "");
    else if (m->told == 0)
        printf("\n%s\n", heading);
    m->told++;
}

static void begin_list(moment *m, const char *field)
{
    m->told = 0;
    if (m->json)
        printf(",\"%s\":[", field);
}

static void end_list(moment *m)
{
    if (m->json)
        printf("]");
}

static bool is_told_elsewhere(const zt_object *o)
{
    return strcmp(o->kind, "mem") == 0 || strcmp(o->kind, "list") == 0 || strcmp(o->kind, "event") == 0 || strcmp(o->kind, "fence") == 0;
}

static void put_residency(const moment *m, const zt_object *o)
{
    const residency r = o->index < m->n_residency ? m->residency[o->index] : (residency){0};
    if (m->json && r.call != 0)
        printf(",\"residency\":\"%s\",\"residency_call\":%" PRIu64, r.evicted ? "evicted" : "resident", r.call);
    else if (m->json)
        printf(",\"residency\":null");
    else if (r.call != 0)
        printf(", %s by #%" PRIu64, r.evicted ? "evicted" : "made resident", r.call);
}

static void tell_objects(moment *m)
{
    const zt_object *const *list;
    const size_t n = zt_objects_list(m->objects, &list);
    begin_list(m, "allocations");
    for (size_t i = 0; i < n; i++) {
        if (list[i]->destroyed != 0 || strcmp(list[i]->kind, "mem") != 0)
            continue;
        begin_entry(m, "allocations");
        if (m->json) {
            json_object(list[i]);
            printf(",\"size\":%" PRIu64, list[i]->size);
        } else {
            printf("  ");
            put_name(list[i], false);
            printf(" %" PRIu64 " bytes, ", list[i]->size);
            put_creator(list[i]);
        }
        put_residency(m, list[i]);
        printf(m->json ? "}" : "\n");
    }
    end_list(m);
    begin_list(m, "objects");
    for (size_t i = 0; i < n; i++) {
        if (list[i]->destroyed != 0 || is_told_elsewhere(list[i]))
            continue;
        begin_entry(m, "other objects");
        if (m->json) {
            json_object(list[i]);
        } else {
            printf("  ");
            put_name(list[i], false);
            putchar(' ');
            put_creator(list[i]);
        }
        if (strcmp(list[i]->kind, "image") == 0)
            put_residency(m, list[i]);
        printf(m->json ? "}" : "\n");
    }
    end_list(m);
}

static void tell_list(void *ctx, const zo_list_state *l)
{
    moment *const m = ctx;
    const char *const state = l->immediate ? "immediate" : l->closed ? "closed" : "open";
    begin_entry(m, "lists");
    if (m->json) {
        json_object(l->object);
        printf(",\"state\":\"%s\",\"in_order\":%s,\"commands\":[", state, l->in_order ? "true" : "false");
        for (size_t i = 0; i < l->n_commands; i++)
            printf("%s%" PRIu64, i ? "," : "", l->commands[i]);
        printf("]}");
        return;
    }
    printf("  ");
    put_name(l->object, false);
    printf(" %s%s, ", state, l->in_order ? ", in order" : "");
    if (!l->immediate)
        printf("%zu command%s%s", l->n_commands, l->n_commands == 1 ? "" : "s", l->n_commands ? ": " : ", ");
    for (size_t i = 0; i < l->n_commands; i++)
        printf("#%" PRIu64 "%s", l->commands[i], i + 1 < l->n_commands ? " " : ", ");
    put_creator(l->object);
    putchar('\n');
}

static void put_point(const zo_point *p)
{
    printf("#%" PRIu64, p->call);
    if (p->execution > 0)
        printf("@%u", p->execution);
}

static void tell_signal(void *ctx, const zo_signal *s)
{
    moment *const m = ctx;
    const char *const state = zo_signal_state_name(s->state);
    begin_entry(m, "events and fences");
    if (m->json) {
        json_object(s->object);
        printf(",\"state\":\"%s\",\"by\":", state);
        if (s->by.call != 0)
            printf("{\"call\":%" PRIu64 ",\"execution\":%u,\"resets\":%s}}", s->by.call, s->by.execution, s->resets ? "true" : "false");
        else
            printf("null}");
        return;
    }
    printf("  ");
    put_name(s->object, false);
    printf(" %s", state);
    if (s->state == ZO_S_PENDING)
        printf(": %s by ", s->resets ? "to be reset" : "to be signalled");
    else if (s->by.call != 0)
        printf(" by ");
    if (s->by.call != 0)
        put_point(&s->by);
    printf(", ");
    put_creator(s->object);
    putchar('\n');
}

static void keep_command(void *ctx, const zo_in_flight *f)
{
    moment *const m = ctx;
    if (m->n_commands == m->room_commands) {
        const size_t want = m->room_commands ? m->room_commands * 2 : 16;
        if (!grow(m, &m->commands, want, sizeof(*m->commands)))
            return;
        m->room_commands = want;
    }
    m->commands[m->n_commands++] = *f;
}

static void tell_command(moment *m, const zo_in_flight *f)
{
    begin_entry(m, "in flight: submitted, and no call was told that they are over");
    if (m->json) {
        printf("{\"call\":%" PRIu64 ",\"execution\":%u,\"function\":", f->point.call, f->point.execution);
        zt_json_string(stdout, f->func->name);
        printf(",\"submit\":%" PRIu64, f->submit);
        if (f->list != NULL) {
            printf(",\"list\":");
            put_name(f->list, true);
        }
        if (f->carrier != NULL) {
            printf(",\"on\":");
            put_name(f->carrier, true);
        }
        printf(",\"held\":%s}", f->held ? "true" : "false");
        return;
    }
    const zt_call_line *const line = zt_call_line_of(m->lines, m->n_lines, f->point.call);
    printf("  %s\n      ", line && line->text ? line->text : f->func->name);
    if (f->point.execution > 1)
        printf("execution %u, ", f->point.execution);
    printf("submitted by #%" PRIu64, f->submit);
    if (f->carrier != NULL)
        printf(" on %s#%u", f->carrier->kind, f->carrier->generation);
    puts(f->held ? ", held back by an event that is not signalled" : "");
}

static void tell_commands(moment *m)
{
    m->lines = m->json ? NULL : calloc(m->n_commands + 1, sizeof(*m->lines));
    for (size_t i = 0; m->lines != NULL && i < m->n_commands; i++)
        m->lines[i].call = m->commands[i].point.call;
    m->n_lines = m->lines ? zt_call_lines_sort(m->lines, m->n_commands) : 0;
    zt_call_lines_read(m->trace, m->lines, m->n_lines);
    begin_list(m, "in_flight");
    for (size_t i = 0; i < m->n_commands; i++)
        tell_command(m, &m->commands[i]);
    end_list(m);
    zt_call_lines_clear(m->lines, m->n_lines);
    free(m->lines);
}

static void tell(moment *m, zo_graph *graph, const char *path)
{
    const zo_state_teller lists = {.list = tell_list, .ctx = m}, signals = {.signal = tell_signal, .ctx = m},
                          in_flight = {.in_flight = keep_command, .ctx = m};
    if (m->json)
        printf("{\"call\":%" PRIu64, m->number);
    else
        printf("%s when #%" PRIu64 " %s\n", path, m->number, m->n_open && m->open[m->n_open - 1].number == m->number ? "was made" : "had returned");
    begin_list(m, "open_calls");
    for (size_t i = 0; i < m->n_open; i++) {
        begin_entry(m, "calls that had not returned");
        printf(m->json ? "%" PRIu64 : "  #%" PRIu64, m->open[i].number);
        if (!m->json)
            printf(" %s\n", m->open[i].func->name);
    }
    end_list(m);
    m->out_of_memory |= zo_state(graph, &in_flight) != ZT_OK;
    tell_commands(m);
    begin_list(m, "lists");
    m->out_of_memory |= zo_state(graph, &lists) != ZT_OK;
    end_list(m);
    begin_list(m, "signals");
    m->out_of_memory |= zo_state(graph, &signals) != ZT_OK;
    end_list(m);
    tell_objects(m);
    if (m->json)
        puts("}");
}

int zt_dump_state(zt_trace *trace, const char *path, uint64_t number, bool json)
{
    moment m = {.trace = trace, .number = number, .json = json, .objects = zt_objects_new()};
    const zo_graph_options options = {.until = number};
    zo_graph *graph = NULL;
    zt_error error = {0};
    int status = read_calls(&m);
    if (status == ZT_OK) {
        zt_trace_seek(trace, 1);
        status = zo_graph_make(&graph, trace, &options, &error);
        if (status == ZT_OK)
            tell(&m, graph, path);
        else
            zt_complain("%s: %s", path, error.text);
        status = status == ZT_OK && !m.out_of_memory ? ZT_EXIT_OK : status == ZT_OK || status == ZT_E_MEMORY ? ZT_EXIT_CANNOT : ZT_EXIT_DAMAGED;
        zo_graph_free(graph);
    } else if (status == ZT_E_MEMORY) {
        zt_complain("%s: not enough memory", path);
        status = ZT_EXIT_CANNOT;
    } else {
        zt_complain("dump: --state wants a call of %s, but it has no #%" PRIu64 "; its last is #%" PRIu64, path, number, m.last);
        status = ZT_EXIT_USAGE;
    }
    free(m.residency);
    free(m.open);
    free(m.commands);
    zt_objects_free(m.objects);
    return status;
}

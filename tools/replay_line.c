/* SPDX-License-Identifier: MIT */
/* The line of calls and commands that --order, gates and holds ask for. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "replay_line.h"
#include "self_wait.h"

#define MOST_GATED 4096u      /* commands of one gate */
#define MOST_STEPS 100000000u /* of looking through syncs: with a pattern there may be one at each call */

typedef struct line {
    zo_graph *graph;
    const zr_plan *plan;
    const zr_options *options;
    zo_wishes wishes;
    uint32_t *like; /* --order=file */
    size_t n_like, room_like;
    int policy;
    uint64_t value;
} line;

static int refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int refuse(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return zt_usage_error(&zt_command_replay, "%s", text);
}

static int out_of_memory(void)
{
    zt_complain("not enough memory for the order");
    return ZT_EXIT_CANNOT;
}

/* ------------------------------------------------------------------------------------------------------------- order */

/* "#12" or "#12@2"; *execution 0: none was given. */
static bool parse_node(char *text, uint64_t *call, uint64_t *execution)
{
    text += strspn(text, " \t");
    char *const end = text + strcspn(text, " \t\r\n");
    if (end[strspn(end, " \t\r\n")] != 0)
        return false;
    *end = 0;
    char *const at = strchr(text, '@');
    *execution = 0;
    if (at != NULL)
        *at = 0;
    return zt_parse_call(text, call) && (at == NULL || (zt_parse_number(at + 1, execution) && *execution > 0 && *execution < UINT32_MAX));
}

static int read_node(line *l, const char *path, unsigned at, char *text)
{
    uint64_t call, execution;
    if (text[strspn(text, " \t\r\n")] == 0)
        return -1;
    char shown[48];
    snprintf(shown, sizeof(shown), "%.*s", (int)strcspn(text, "\r\n"), text);
    if (!parse_node(text, &call, &execution)) /* or the line is too long */
        return refuse("%s:%u: a line is a call or command as #12 or #12@2, not '%s'", path, at, shown);
    uint32_t node = zo_graph_node(l->graph, (zo_point){call, execution ? (uint32_t)execution : 1});
    if (node == ZO_NONE && execution == 0)
        node = zo_graph_node(l->graph, (zo_point){call, 0});
    if (node == ZO_NONE)
        return refuse("%s:%u: the trace has no %s", path, at, shown);
    if (l->n_like == l->room_like) {
        const size_t room = l->room_like ? l->room_like * 2 : 256;
        uint32_t *const grown = realloc(l->like, room * sizeof(*grown));
        if (grown == NULL)
            return out_of_memory();
        l->like = grown;
        l->room_like = room;
    }
    l->like[l->n_like++] = node;
    return -1;
}

static int read_order(line *l, const char *path)
{
    FILE *const f = fopen(path, "r");
    char text[128];
    int status = -1;
    if (f == NULL)
        return refuse("--order: %s: %s", path, strerror(errno));
    for (unsigned at = 1; status < 0 && fgets(text, sizeof(text), f) != NULL; at++)
        status = read_node(l, path, at, text);
    fclose(f);
    if (status < 0 && l->n_like == 0)
        status = refuse("%s has no line such as #12 or #12@2", path);
    l->policy = ZO_P_LIKE;
    return status;
}

static int parse_order(line *l, const char *order)
{
    l->policy = ZO_P_EARLY;
    if (order == NULL || strcmp(order, "recorded") == 0)
        return -1;
    if (strncmp(order, "file:", 5) == 0)
        return read_order(l, order + 5);
    if (strcmp(order, "latest") == 0)
        l->policy = ZO_P_LATE;
    else if (strncmp(order, "seed:", 5) == 0 && zt_parse_number(order + 5, &l->value))
        l->policy = ZO_P_RANDOM;
    else if (strncmp(order, "queue:", 6) == 0 && zt_parse_number(order + 6, &l->value) &&
             (l->value = zo_graph_carrier(l->graph, l->value)) != ZO_NONE)
        l->policy = ZO_P_CARRIER_FIRST;
    else
        return refuse("--order wants recorded, latest, queue:N with a queue that there is, seed:N, or file:FILE with a line such as '#12' or "
                      "'#12@2' for each, not '%s'", order);
    return -1;
}

/* ------------------------------------------------------------------------------------------------------------ points */

/* "#11", "#11@2" */
static const char *name_command(uint64_t call, uint32_t execution, char *out, size_t size)
{
    snprintf(out, size, execution > 1 ? "#%llu@%u" : "#%llu", (unsigned long long)call, execution);
    return out;
}

static int no_call(const char *what, const zr_point *p, uint64_t call)
{
    char first[48];
    return refuse("%s@%s..#%llu: the trace has no call #%llu", what, name_command(p->call, p->execution, first, sizeof(first)),
                  (unsigned long long)p->other, (unsigned long long)call);
}

static int wish(line *l, const zr_point *p, uint32_t after)
{
    const char *const what = p->kind == ZR_P_GATE ? "gate" : "hold";
    const uint32_t before = zo_graph_node(l->graph, (zo_point){p->other, 0});
    char why[700], first[48];
    if (before == ZO_NONE || after == ZO_NONE)
        return no_call(what, p, before == ZO_NONE ? p->other : p->call);
    if ((p->kind == ZR_P_HOLD ? zo_wish_hold : zo_wish)(l->graph, &l->wishes, before, after, why, sizeof(why)))
        return -1;
    if (why[0] == 0)
        return out_of_memory();
    return refuse("%s@%s..#%llu would wait for itself: %s", what, name_command(p->call, p->execution, first, sizeof(first)),
                  (unsigned long long)p->other, why);
}

/* A gate for which there is no command. */
static int no_command(line *l, const zr_point *p)
{
    char first[48];
    uint32_t n = 0;
    name_command(p->call, p->execution, first, sizeof(first));
    if (zo_graph_node(l->graph, (zo_point){p->call, 0}) == ZO_NONE)
        return no_call("gate", p, p->call);
    while (n < p->execution && zo_graph_node(l->graph, (zo_point){p->call, n + 1}) != ZO_NONE)
        n++;
    if (n > 0)
        return refuse("gate@%s..#%llu: #%llu has %u execution%s, not %u", first, (unsigned long long)p->other, (unsigned long long)p->call, n,
                      n == 1 ? "" : "s", p->execution);
    return refuse("gate@%s..#%llu: #%llu is to be an append%s that runs%s", first, (unsigned long long)p->other, (unsigned long long)p->call,
                  p->execution > 1 ? "" : " or a submit", p->execution > 1 ? " that often" : "");
}

static int add_gate(line *l, const zr_point *p)
{
    uint32_t *const nodes = malloc(MOST_GATED * sizeof(*nodes));
    /* of a call that has no such execution all commands would be meant */
    const bool one = p->execution == 1 || zo_graph_node(l->graph, (zo_point){p->call, p->execution}) != ZO_NONE;
    const size_t n = nodes && one ? zo_graph_commands(l->graph, p->call, p->execution, nodes, MOST_GATED) : 0;
    int status = nodes == NULL ? out_of_memory() : n == 0 ? no_command(l, p) : -1;
    for (size_t i = 0; i < n && status < 0; i++)
        status = wish(l, p, nodes[i]);
    free(nodes);
    return status;
}

static int add_sync(line *l, const zr_point *p, bool in_line)
{
    char object[64], command[48], why[700];
    const char *const where = p->after ? "after" : "before";
    const bool one = zr_point_object(l->plan, p, object, sizeof(object));
    if (p->of != 0 && !zo_submitted_by(l->graph, (zo_point){p->of, p->execution}, p->call, p->after, why, sizeof(why)))
        return refuse("sync(%s)@%s:#%llu would wait for itself: %s", name_command(p->of, p->execution, command, sizeof(command)), where,
                      (unsigned long long)p->call, why);
    if (zo_wish_sync(l->graph, in_line ? &l->wishes : NULL, p->call, p->after, one ? object : NULL, why, sizeof(why)))
        return -1;
    if (why[0] == 0)
        return out_of_memory();
    return refuse("sync%s%s%s@%s:#%llu would wait for itself: %s", one ? "(" : "", one ? object : "", one ? ")" : "", where,
                  (unsigned long long)p->call, why);
}

static int add_point(line *l, const zr_point *p, bool in_line)
{
    if (p->device && in_line)
        return refuse("delay(device)@ is for replays on the recorded schedule: with gate@, hold@ or --order each command runs when its turn comes");
    if (p->kind == ZR_P_GATE)
        return add_gate(l, p);
    if (p->kind == ZR_P_HOLD)
        return wish(l, p, zo_graph_node(l->graph, (zo_point){p->call, 0}));
    return p->kind == ZR_P_SYNC ? add_sync(l, p, in_line) : -1;
}

/* Holds move calls; what gates and then syncs ask for is looked at in the order that this gives. */
static int add_points(line *l, bool in_line)
{
    const zr_options *const o = l->options;
    zo_graph_numbers numbers;
    uint64_t steps = 0;
    int status = -1;
    zo_graph_count(l->graph, &numbers);
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < o->n_points && status < 0; i++) {
            const bool sync = o->points[i].kind == ZR_P_SYNC, hold = o->points[i].kind == ZR_P_HOLD;
            if ((sync ? 2 : hold ? 0 : 1) != round || (sync && (steps += numbers.executions + numbers.calls + 1) > MOST_STEPS && !in_line))
                continue;
            status = add_point(l, &o->points[i], in_line);
        }
    return status;
}

/* -------------------------------------------------------------------------------------------------------------- line */

static int schedule(line *l, zr_options *o, zr_item **items)
{
    uint32_t *nodes = NULL, stuck = ZO_NONE;
    if (!zo_wish_driver(l->graph, &l->wishes) || !zo_wish_serialize(l->graph, &l->wishes, o->serialize))
        return out_of_memory();
    const size_t n = zo_schedule(l->graph, l->policy, l->value, l->like, l->n_like, l->wishes.list, l->wishes.n, &nodes, &stuck);
    if (n == 0 && stuck == ZO_NONE)
        return out_of_memory();
    if (n == 0) {
        char why[700];
        zo_why_stuck(l->graph, &l->wishes, stuck, why, sizeof(why));
        return refuse("this order can't be had: #%llu would wait for itself%s%s", (unsigned long long)zo_graph_point(l->graph, stuck).call,
                      why[0] ? ": " : "", why);
    }
    *items = zo_graph_items(l->graph, nodes, n, &o->n_items);
    free(nodes);
    if (*items == NULL)
        return out_of_memory();
    o->items = *items;
    o->schedule = o->schedule ? o->schedule : "eager";
    return -1;
}

/* What the recorded driver makes wait counts if it may be the one that is replayed on. */
static bool like_recorded(const zt_trace *trace, const char *driver)
{
    const zt_session *const s = zt_trace_session(trace);
    if (driver == NULL || strcmp(driver, "auto") == 0)
        return true;
    for (uint32_t i = 0; i < s->n_libraries; i++)
        if (strstr(s->libraries[i].path, strcmp(driver, "soft") == 0 ? "libze_soft" : driver) != NULL)
            return true;
    return false;
}

/* What the host had written where commands may have, found out by a replay; the graph's, so a copy. NULL: nothing, or memory is out. */
static uint8_t *learn(zo_graph *graph, zr_plan *plan, zr_options *options)
{
    zr_options o = *options;
    o.items = NULL;
    o.points = NULL;
    o.n_points = 0;
    uint8_t *const copy = zo_learn(graph, plan, &o) ? malloc(o.n_learned) : NULL;
    if (copy != NULL)
        memcpy(copy, o.learned, o.n_learned);
    options->learned = copy;
    options->n_learned = copy ? o.n_learned : 0;
    return copy;
}

int zt_replay_line(zt_trace *trace, zr_plan *plan, const char *order, zr_options *options, zr_item **items, uint8_t **learned)
{
    const zo_graph_options graph = {.vendor = like_recorded(trace, options->driver)};
    line l = {.plan = plan, .options = options};
    zt_error error;
    bool in_line = order != NULL, wanted = false;
    for (size_t i = 0; i < options->n_points; i++) {
        const int kind = options->points[i].kind;
        in_line |= kind == ZR_P_GATE || kind == ZR_P_HOLD;
        wanted |= kind == ZR_P_SYNC;
    }
    if (!in_line && !wanted)
        return -1;
    zt_trace_seek(trace, 1);
    if (zo_graph_make(&l.graph, trace, &graph, &error) != ZT_OK) {
        zt_complain("%s", error.text);
        return ZT_EXIT_CANNOT;
    }
    int status = parse_order(&l, order);
    if (status < 0)
        status = add_points(&l, in_line);
    if (status < 0 && in_line)
        status = schedule(&l, options, items);
    if (status < 0 && in_line)
        *learned = learn(l.graph, plan, options);
    free(l.wishes.list);
    free(l.like);
    zo_graph_free(l.graph);
    return status;
}

int zt_replay_taken(zt_trace *trace, zr_plan *plan, const zr_options *options, zr_report *report)
{
    const zo_graph_options edges = {.vendor = true}; /* what the host could know is the recorded driver's */
    zo_graph *graph;
    zt_error error;
    zr_options o = *options;
    if (report->verdict != ZR_DIFFERS || report->mismatches == 0 || report->first.what != ZR_W_MEMORY || options->items != NULL)
        return report->verdict;
    zt_trace_seek(trace, 1);
    if (zo_graph_make(&graph, trace, &edges, &error) != ZT_OK)
        return report->verdict;
    zr_item *const taken = zo_taken(graph, &o.n_taken);
    zo_graph_free(graph);
    o.taken = taken;
    if (taken != NULL && o.n_taken > 0)
        zr_replay(plan, &o, report);
    free(taken);
    return report->verdict;
}

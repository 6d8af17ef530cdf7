/* SPDX-License-Identifier: MIT */
/* zetrace graph: what is ordered before what, as a picture for Graphviz or as JSON. */
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "commands.h"
#include "export.h"

enum { FORMAT = 1, CALLS };

#define MANY 400u /* nodes that a picture still takes */

static const zt_option options[] = {
    {FORMAT, 0, "format", "dot|json", "dot, for Graphviz (default), or one JSON object"},
    {CALLS, 0, "calls", "SET", "these calls, and the commands that they submit: 10..20, 10.., /submit, @FILE, ...; see 'zetrace help dump'"},
    {0, 0, NULL, NULL, NULL},
};

static int run(int argc, char **argv);
const zt_command zt_command_graph = {
    .name = "graph",
    .summary = "draw what is ordered before what",
    .synopsis = "TRACE",
    .options = options,
    .more = "'zetrace graph TRACE | dot -Tsvg -o graph.svg' makes a picture of it. Red dashed lines join what nothing orders and should be.\n"
            "Exit status: 0 drawn, 2 usage, 3 damaged trace, 125 it can't be done here.\n",
    .usage_status = ZT_EXIT_USAGE,
    .run = run,
};

typedef struct drawing {
    FILE *out;
    zo_graph *graph;
    uint32_t chain; /* whose nodes are being told */
    size_t nodes, edges, conflicts;
} drawing;

typedef struct chosen { /* calls, ascending; NULL: all */
    uint64_t *calls;
    size_t n, room;
} chosen;

static bool choose(void *ctx, uint64_t number)
{
    chosen *const c = ctx;
    if (c->n == c->room) {
        const size_t room = c->room ? c->room * 2 : 256;
        uint64_t *const grown = realloc(c->calls, room * sizeof(*grown));
        if (grown == NULL)
            return false;
        c->calls = grown;
        c->room = room;
    }
    c->calls[c->n++] = number;
    return true;
}

/* "14" for a call, "11@1" for an execution. */
static void put_id(FILE *out, const zo_point *p)
{
    fprintf(out, "\"%llu", (unsigned long long)p->call);
    if (p->execution > 0)
        fprintf(out, "@%u", p->execution);
    fputc('"', out);
}

static void put_node_id(const drawing *d, uint32_t node)
{
    const zo_point p = zo_graph_point(d->graph, node);
    put_id(d->out, &p);
}

static bool has_result(const zo_export_node *n)
{
    return !n->device && n->over && strcmp(zt_types[n->func->return_type].name, "ze_result_t") == 0;
}

/* --------------------------------------------------------------------------------------------------------------- dot */

static int dot_node(void *ctx, const zo_export_node *n)
{
    drawing *const d = ctx;
    if (d->nodes++ == 0 || d->chain != n->chain) {
        fprintf(d->out, "%s  subgraph cluster_%u {\n    label=\"%s\"; style=filled; color=\"%s\";\n", d->nodes > 1 ? "  }\n" : "", n->chain,
               n->chain_name, n->device ? "#eaf1fb" : "#f2f2f2");
        d->chain = n->chain;
    }
    fprintf(d->out, "    ");
    put_id(d->out, &n->point);
    fprintf(d->out, " [label=\"#%llu", (unsigned long long)n->point.call);
    if (n->point.execution > 1)
        fprintf(d->out, "@%u", n->point.execution);
    fprintf(d->out, " %s", n->func->name);
    if (n->object[0] != 0)
        fprintf(d->out, "\\n%s", n->object);
    if (has_result(n) && n->result != 0)
        fprintf(d->out, "\\n%s", zt_result_name(n->result));
    else if (!n->over)
        fprintf(d->out, "\\n%s", n->device ? "never ran" : "never returned");
    fprintf(d->out, "\"");
    if (n->device)
        fprintf(d->out, ", style=\"filled,rounded%s\"", n->over ? "" : ",dashed");
    if (has_result(n) && n->result > 1)
        fprintf(d->out, ", color=\"#c00000\"");
    fprintf(d->out, "];\n");
    return 0;
}

static int dot_edge(void *ctx, uint32_t from, uint32_t to, int kind)
{
    drawing *const d = ctx;
    if (d->edges++ == 0 && d->nodes > 0)
        fprintf(d->out, "  }\n");
    fprintf(d->out, "  ");
    put_node_id(d, from);
    fprintf(d->out, " -> ");
    put_node_id(d, to);
    if (kind == ZO_E_PROGRAM)
        fprintf(d->out, " [color=\"#909090\", weight=4];\n");
    else if (kind == ZO_E_START) /* says nothing of ends */
        fprintf(d->out, " [color=\"#909090\", style=dotted, weight=4];\n");
    else
        fprintf(d->out, " [label=\"%s\"%s];\n", zo_edge_name(kind), kind == ZO_E_SUBMIT ? ", color=\"#2060c0\", fontcolor=\"#2060c0\"" : "");
    return 0;
}

static int dot_conflict(void *ctx, const zo_conflict *c, const char *object)
{
    drawing *const d = ctx;
    if (d->conflicts++ == 0 && d->edges++ == 0 && d->nodes > 0)
        fprintf(d->out, "  }\n");
    fprintf(d->out, "  ");
    put_node_id(d, c->a);
    fprintf(d->out, " -> ");
    put_node_id(d, c->b);
    fprintf(d->out, " [label=\"%s%s%s%s\", dir=none, style=dashed, color=red, fontcolor=red, constraint=false];\n", zo_conflict_name(c->kind),
           object[0] != 0 ? " " : "", object, c->possible || c->coarse ? "?" : "");
    return 0;
}

static int draw_dot(drawing *d, const chosen *c)
{
    const zo_exporter out = {dot_node, dot_edge, dot_conflict, d};
    fprintf(d->out, "digraph trace {\n"
           "  node [shape=box, style=filled, fillcolor=white, fontname=\"sans-serif\", fontsize=10];\n"
           "  edge [fontname=\"sans-serif\", fontsize=9];\n");
    const int status = zo_export(d->graph, c->calls, c->n, &out);
    if (d->nodes > 0 && d->edges == 0)
        fprintf(d->out, "  }\n");
    fprintf(d->out, "}\n");
    return status;
}

/* -------------------------------------------------------------------------------------------------------------- JSON */

static int json_node(void *ctx, const zo_export_node *n)
{
    drawing *const d = ctx;
    fprintf(d->out, "%s{\"id\":", d->nodes++ ? "," : "");
    put_id(d->out, &n->point);
    fprintf(d->out, ",\"call\":%llu,\"execution\":%u,\"function\":", (unsigned long long)n->point.call, n->point.execution);
    zt_json_string(d->out, n->func->name);
    fprintf(d->out, ",\"object\":");
    zt_json_string(d->out, n->object);
    fprintf(d->out, ",\"on\":");
    zt_json_string(d->out, n->chain_name);
    fprintf(d->out, ",\"over\":%s", n->over ? "true" : "false");
    if (has_result(n))
        fprintf(d->out, ",\"result\":\"%s\"", zt_result_name(n->result));
    fprintf(d->out, "}");
    return 0;
}

static int json_edge(void *ctx, uint32_t from, uint32_t to, int kind)
{
    drawing *const d = ctx;
    fprintf(d->out, "%s{\"from\":", d->edges++ ? "," : "");
    put_node_id(d, from);
    fprintf(d->out, ",\"to\":");
    put_node_id(d, to);
    fprintf(d->out, ",\"kind\":\"%s\"}", zo_edge_name(kind));
    return 0;
}

static int json_conflict(void *ctx, const zo_conflict *c, const char *object)
{
    drawing *const d = ctx;
    fprintf(d->out, "%s{\"a\":", d->conflicts++ ? "," : "");
    put_node_id(d, c->a);
    fprintf(d->out, ",\"b\":");
    put_node_id(d, c->b);
    fprintf(d->out, ",\"kind\":\"%s\",\"object\":", zo_conflict_name(c->kind));
    zt_json_string(d->out, object);
    fprintf(d->out, ",\"possible\":%s,\"forced\":%s}", c->possible || c->coarse ? "true" : "false", c->forced ? "true" : "false");
    return 0;
}

static int draw_json(drawing *d, const chosen *c)
{
    const zo_exporter nodes = {.node = json_node, .ctx = d}, edges = {.edge = json_edge, .ctx = d},
                      conflicts = {.conflict = json_conflict, .ctx = d};
    fprintf(d->out, "{\"nodes\":[");
    int status = zo_export(d->graph, c->calls, c->n, &nodes);
    fprintf(d->out, "],\"edges\":[");
    status = status ? status : zo_export(d->graph, c->calls, c->n, &edges);
    fprintf(d->out, "],\"conflicts\":[");
    status = status ? status : zo_export(d->graph, c->calls, c->n, &conflicts);
    fprintf(d->out, "]}\n");
    return status;
}

static int draw(FILE *out, zt_trace *trace, const char *path, bool json, const chosen *c)
{
    const zo_graph_options graph_options = {0};
    zt_error error = {.status = ZT_OK};
    drawing d = {.out = out};
    zt_trace_seek(trace, 1);
    if (zo_graph_make(&d.graph, trace, &graph_options, &error) != ZT_OK) {
        zt_complain("%s: %s", path, error.text);
        return error.status == ZT_E_MEMORY ? ZT_EXIT_CANNOT : ZT_EXIT_DAMAGED;
    }
    zt_tell_health(trace, path);
    const int status = json ? draw_json(&d, c) : draw_dot(&d, c);
    if (status != 0)
        zt_complain("%s: not enough memory for the graph", path);
    else if (!json && d.nodes > MANY)
        zt_complain("%s: a picture of %zu nodes is hard to read; --calls=A..B takes a part", path, d.nodes);
    zo_graph_free(d.graph);
    return status == 0 ? ZT_EXIT_OK : ZT_EXIT_CANNOT;
}

int zt_draw_dot(FILE *out, zt_trace *trace, const char *path)
{
    const chosen all = {.calls = NULL};
    return draw(out, trace, path, false, &all);
}

static int run(int argc, char **argv)
{
    zt_parser parser;
    zt_trace *trace = NULL;
    zt_calls *const calls = zt_calls_new();
    chosen c = {.calls = NULL};
    bool json = false;
    char why[512];
    int status = calls ? -1 : ZT_EXIT_CANNOT;
    zt_parser_init(&parser, &zt_command_graph, argc, argv);
    for (int id; status < 0 && (id = zt_option_next(&parser)) != 0;) {
        if (id == ZT_OPTION_HELP)
            status = zt_finish_output(ZT_EXIT_OK);
        else if (id == ZT_OPTION_ERROR)
            status = ZT_EXIT_USAGE;
        else if (id == FORMAT)
            json = strcmp(parser.value, "json") == 0;
        else if (id == CALLS && !zt_calls_add(calls, parser.value, why, sizeof(why)))
            status = zt_usage_error(&zt_command_graph, "graph: --calls %s", why);
    }
    if (status < 0 && (status = zt_open_calls(&parser, &trace)) == ZT_EXIT_OK) {
        const char *const path = argv[parser.at];
        if (zt_calls_given(calls) && zt_calls_each(calls, trace, choose, &c) == ZT_OK && zt_calls_unmet(calls) != NULL)
            zt_complain("%s: it has no call that --calls=%s names", path, zt_calls_unmet(calls));
        if (zt_calls_given(calls) && c.calls == NULL)
            c.calls = calloc(1, sizeof(*c.calls)); /* none, which is not all */
        status = zt_finish_output(draw(stdout, trace, path, json, &c));
        zt_trace_close(trace);
    }
    free(c.calls);
    zt_calls_free(calls);
    return status;
}

/* SPDX-License-Identifier: MIT */
/* zetrace check: what the graph finds, in the manner of a compiler. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call_lines.h"
#include "commands.h"
#include "export.h"
#include "order.h"

enum { WITHOUT = 100, LIMIT, RULES = 1, LEVEL, FAIL_ON, STATISTICS, JSON, QUIET };

static const zt_option options[] = {
    {RULES, 0, "rules", "A,B1,...", "these rules only: a letter stands for all that begin with it"},
    {LEVEL, 0, "level", "spec|vendor", "edges of the specification only (spec), or also what the recorded driver is known to do"},
    {FAIL_ON, 0, "fail-on", "error|warning|note", "the least severity that gives exit status 1 (error)"},
    {WITHOUT, 0, "without", "EDGE,...",
     "leave out kinds of edges, to see what depends on them: program, submit, start, in-order, barrier, ..."},
    {LIMIT, 0, "limit", "N", "keep and look at so many of everything at the most, to see what is said of the rest"},
    {STATISTICS, 0, "statistics", NULL, "the numbers of commands and edges and the memory used, on stderr"},
    {JSON, 0, "json", NULL, "the findings as one JSON object"},
    {QUIET, 'q', "quiet", NULL, "the exit status only"},
    {0, 0, NULL, NULL, NULL},
};

static int run(int argc, char **argv);
const zt_command zt_command_check = {
    .name = "check",
    .summary = "find hazards in a trace, without running anything",
    .synopsis = "TRACE",
    .options = options,
    .more = "Exit status: 0 nothing found, 1 something of --fail-on was found, 2 usage, 3 damaged trace, 125 it can't be done here.\n\n"
            "A finding names the call that came too early, what it came before, the missing edge and a repair. It needs no failure: "
            "a trace of a run that went well shows it as well. docs/check.md has the rules.\n",
    .usage_status = ZT_EXIT_USAGE,
    .run = run,
};

#define CONSEQUENCES 4u /* of a finding that are told by number */

static bool wanted(const char *rules, const char *rule)
{
    if (rules == NULL)
        return true;
    for (const char *at = rules; *at;) {
        const size_t n = strcspn(at, ",");
        if (n > 0 && strncmp(at, rule, n) == 0 && (n == strlen(rule) || n == 1))
            return true;
        at += n + (at[n] == ',');
    }
    return false;
}

static size_t collect(const zo_graph *graph, const char *rules, zt_call_line **out)
{
    const zo_finding *f;
    const zo_consequence *c;
    const size_t n = zo_findings(graph, &f), m = zo_consequences(graph, &c);
    zt_call_line *const lines = calloc(n * ZO_FINDING_POINTS + m + 1, sizeof(*lines));
    size_t used = 0;
    for (size_t i = 0; lines != NULL && i < n; i++)
        for (unsigned k = 0; wanted(rules, f[i].rule) && k < f[i].n_points; k++)
            lines[used++].call = f[i].points[k].call;
    for (size_t i = 0; lines != NULL && i < m; i++)
        lines[used++].call = c[i].call;
    *out = lines;
    return zt_call_lines_sort(lines, used);
}

static void print_point(const zo_point *p, zt_call_line *lines, size_t n)
{
    const zt_call_line *const l = zt_call_line_of(lines, n, p->call);
    if (l != NULL && l->text != NULL)
        printf("    %s", l->text);
    else
        printf("    #%llu", (unsigned long long)p->call);
    if (p->execution > 1)
        printf(" (execution %u)", p->execution);
    putchar('\n');
    for (unsigned i = 0; l != NULL && i < ZT_FRAMES && l->frames[i] != NULL; i++)
        printf("%s%s", i == 0 ? "        at " : ", from ", l->frames[i]);
    if (l != NULL && l->frames[0] != NULL)
        putchar('\n');
}

/* Two calls tell the story; further ones go by number. */
static void print_further(const zo_finding *f)
{
    if (f->n_points <= 2 && f->more == 0)
        return;
    printf("    also");
    for (unsigned i = 2; i < f->n_points; i++) {
        printf("%s #%llu", i > 2 ? "," : "", (unsigned long long)f->points[i].call);
        if (f->points[i].execution > 1)
            printf("@%u", f->points[i].execution);
    }
    if (f->more > 0)
        printf("%s %u more", f->n_points > 2 ? " and" : "", f->more);
    putchar('\n');
}

static void print_finding(const zo_finding *f, zt_call_line *lines, size_t n)
{
    const bool pageable = strcmp(f->object, "host memory") == 0;
    printf("#%llu: %s: %s: %s [%s]\n", (unsigned long long)f->points[0].call, zo_severity_name(f->severity), f->rule, f->what,
           zo_class_name(f->class));
    for (unsigned i = 0; i < f->n_points && i < 2; i++)
        print_point(&f->points[i], lines, n);
    print_further(f);
    if (f->object[0] != 0)
        printf("  on %s", f->object);
    if (f->object[0] != 0 && f->hi > f->lo && pageable)
        printf(" at 0x%llx, %llu bytes", (unsigned long long)f->lo, (unsigned long long)(f->hi - f->lo));
    else if (f->object[0] != 0 && f->hi > f->lo)
        printf(" bytes %llu..%llu", (unsigned long long)f->lo, (unsigned long long)f->hi);
    if (f->missing[0] != 0)
        printf("%smissing: %s", f->object[0] != 0 ? "; " : "  ", f->missing);
    if (f->object[0] != 0 || f->missing[0] != 0)
        putchar('\n');
    if (f->repair[0] != 0)
        printf("  repair: %s\n", f->repair);
}

static void print_consequences(const zo_graph *graph, const uint32_t *shown_as, zt_call_line *lines, size_t n)
{
    const zo_finding *f;
    const zo_consequence *c;
    const size_t n_findings = zo_findings(graph, &f), m = zo_consequences(graph, &c);
    for (uint32_t i = 0; i < n_findings; i++) {
        size_t all = 0, said = 0;
        const char *cause = "";
        for (size_t k = 0; shown_as[i] != ZO_NONE && k < m; k++)
            all += c[k].of == i;
        for (size_t k = 0; said < all && said < CONSEQUENCES; k++) {
            if (c[k].of != i)
                continue;
            const zt_call_line *const l = said == 0 ? zt_call_line_of(lines, n, c[k].call) : NULL;
            printf("%s#%llu%s%s", said == 0 ? "" : said + 1 == all ? " and " : ", ", (unsigned long long)c[k].call,
                   l && l->function ? " " : "", l && l->function ? l->function : "");
            cause = cause[0] == 0 ? c[k].cause : cause;
            said++;
        }
        if (all > said)
            printf(", ... and %zu more", all - said);
        if (all > 0)
            printf(" fail%s because of #%llu\n", all == 1 ? "s" : "", (unsigned long long)f[i].points[0].call);
        if (cause[0] != 0)
            printf("  %s\n", cause);
    }
}

static void json_finding(const zo_finding *f, zt_call_line *lines, size_t n)
{
    printf("{\"rule\":\"%s\",\"class\":\"%s\",\"severity\":\"%s\",\"calls\":[", f->rule, zo_class_name(f->class),
           zo_severity_name(f->severity));
    for (unsigned i = 0; i < f->n_points; i++)
        printf("%s%llu", i ? "," : "", (unsigned long long)f->points[i].call);
    printf("],\"executions\":[");
    for (unsigned i = 0; i < f->n_points; i++)
        printf("%s%u", i ? "," : "", f->points[i].execution);
    printf("],\"functions\":[");
    for (unsigned i = 0; i < f->n_points; i++) {
        const zt_call_line *const l = zt_call_line_of(lines, n, f->points[i].call);
        printf("%s", i ? "," : "");
        zt_json_string(stdout, l && l->function ? l->function : "");
    }
    printf("],\"object\":");
    zt_json_string(stdout, f->object);
    printf(",\"range\":[%llu,%llu],\"forced\":%s,\"what\":", (unsigned long long)f->lo, (unsigned long long)f->hi,
           f->forced ? "true" : "false");
    zt_json_string(stdout, f->what);
    printf(",\"missing\":");
    zt_json_string(stdout, f->missing);
    printf(",\"repair\":");
    zt_json_string(stdout, f->repair);
    printf("}");
}

static void json_consequences(const zo_graph *graph, const uint32_t *shown_as)
{
    const zo_consequence *c;
    const size_t m = zo_consequences(graph, &c);
    size_t shown = 0;
    for (size_t i = 0; i < m; i++)
        if (shown_as[c[i].of] != ZO_NONE) {
            printf("%s{\"call\":%llu,\"of\":%u,\"cause\":", shown++ ? "," : "", (unsigned long long)c[i].call, shown_as[c[i].of]);
            zt_json_string(stdout, c[i].cause);
            printf("}");
        }
}

static void print_doubt(const zo_graph *graph, bool json)
{
    zo_doubts d;
    zo_graph_doubts(graph, &d);
    const struct {
        const char *key, *text;
        uint64_t n;
    } all[] = {{"accesses", "accesses of memory that had many were forgotten", d.accesses},
               {"uses", "uses of events that had many were forgotten", d.uses},
               {"conflicts", "conflicts had no room", d.conflicts},
               {"findings", "findings had no room", d.findings},
               {"searches", "searches for an order were given up, and an order taken for granted", d.searches}};
    if (json)
        printf("],\"doubt\":{");
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (json)
            printf("%s\"%s\":%llu", i > 0 ? "," : "", all[i].key, (unsigned long long)all[i].n);
        else if (all[i].n > 0)
            printf("in doubt: %llu %s; something may have been missed\n", (unsigned long long)all[i].n, all[i].text);
    }
    if (json)
        printf("}}\n");
}

static int report(zo_graph *graph, zt_trace *trace, const char *rules, int fail_on, bool json, bool quiet)
{
    const zo_finding *f;
    const size_t n = zo_findings(graph, &f);
    uint32_t *const shown_as = malloc((n + 1) * sizeof(*shown_as)), shown = 0; /* place among those that are shown */
    zt_call_line *lines;
    const size_t n_lines = collect(graph, rules, &lines);
    size_t counts[3] = {0};
    int status = ZT_EXIT_OK;
    if (shown_as == NULL || lines == NULL) {
        free(shown_as);
        free(lines);
        zt_complain("not enough memory for the findings");
        return ZT_EXIT_CANNOT;
    }
    for (size_t i = 0; i < n; i++) {
        shown_as[i] = wanted(rules, f[i].rule) ? shown++ : ZO_NONE;
        if (shown_as[i] == ZO_NONE)
            continue;
        counts[f[i].severity]++;
        if (f[i].severity >= fail_on)
            status = ZT_EXIT_DIFFERS;
    }
    if (!quiet) {
        zt_call_lines_read(trace, lines, n_lines);
        if (json)
            printf("{\"findings\":[");
        for (size_t i = 0; i < n; i++) {
            if (shown_as[i] == ZO_NONE)
                continue;
            if (json && shown_as[i] > 0)
                printf(",");
            if (json)
                json_finding(&f[i], lines, n_lines);
            else
                print_finding(&f[i], lines, n_lines);
        }
        if (json) {
            printf("],\"consequences\":[");
            json_consequences(graph, shown_as);
            print_doubt(graph, true);
        } else {
            print_consequences(graph, shown_as, lines, n_lines);
            if (shown == 0)
                printf("nothing found\n");
            else
                printf("%s, %s, %s\n", zt_count(counts[2], "error").text, zt_count(counts[1], "warning").text, zt_count(counts[0], "note").text);
            print_doubt(graph, false);
        }
    }
    zt_call_lines_clear(lines, n_lines);
    free(lines);
    free(shown_as);
    return status;
}

static bool edges_without(const char *list, unsigned *bits)
{
    for (const char *at = list; *at != '\0';) {
        const size_t n = strcspn(at, ",");
        const unsigned before = *bits;
        for (int kind = 1; kind <= ZO_E_FREE; kind <<= 1)
            if (strlen(zo_edge_name(kind)) == n && strncmp(zo_edge_name(kind), at, n) == 0)
                *bits |= (unsigned)kind;
        if (*bits == before)
            return false;
        at += n + (at[n] == ',');
    }
    return *bits != 0;
}

static int run(int argc, char **argv)
{
    zt_parser parser;
    zo_graph_options graph_options = {0};
    const char *rules = NULL;
    bool json = false, quiet = false, statistics = false;
    int fail_on = ZO_ERROR;
    zt_parser_init(&parser, &zt_command_check, argc, argv);
    for (int id; (id = zt_option_next(&parser)) != 0;) {
        if (id == ZT_OPTION_HELP)
            return 0;
        if (id == ZT_OPTION_ERROR)
            return ZT_EXIT_USAGE;
        json |= id == JSON;
        quiet |= id == QUIET;
        statistics |= id == STATISTICS;
        if (id == RULES) {
            rules = parser.value;
            if (strspn(rules, "'ABCDEFGHIJabcdefghijklmnopqrstuvwxyz0123456789,") != strlen(rules) || *rules == '\0')
                return zt_usage_error(&zt_command_check, "--rules wants rules as A,B1,D2, not '%s'; docs/check.md lists them", rules);
        }
        uint64_t limit;
        if (id == LIMIT && (!zt_parse_number(parser.value, &limit) || limit == 0 || limit > UINT_MAX))
            return zt_usage_error(&zt_command_check, "--limit wants a number above 0, not '%s'", parser.value);
        if (id == LIMIT)
            graph_options.limit = (unsigned)limit;
        if (id == LEVEL)
            graph_options.vendor = strcmp(parser.value, "vendor") == 0;
        if (id == WITHOUT && !edges_without(parser.value, &graph_options.without))
            return zt_usage_error(&zt_command_check, "--without wants kinds of edges as barrier,event, not '%s'; docs/check.md lists them", parser.value);
        if (id == FAIL_ON)
            fail_on = parser.value[0] == 'e' ? ZO_ERROR : parser.value[0] == 'w' ? ZO_WARNING : ZO_NOTE;
    }
    zt_trace *trace;
    int status = zt_open_calls(&parser, &trace);
    if (status != ZT_EXIT_OK)
        return status;
    const char *const path = argv[parser.at];
    zo_graph *graph;
    zt_error error = {.status = ZT_OK};
    if (zo_graph_make(&graph, trace, &graph_options, &error) != ZT_OK) {
        zt_complain("%s: %s", path, error.text);
        zt_trace_close(trace);
        return error.status == ZT_E_MEMORY ? ZT_EXIT_CANNOT : ZT_EXIT_DAMAGED;
    }
    if (zo_check(graph) != ZT_OK || zo_check_hidden(graph, &error) != ZT_OK) {
        zt_complain("%s: not enough memory for the findings", path);
        zo_graph_free(graph);
        zt_trace_close(trace);
        return ZT_EXIT_CANNOT;
    }
    zt_tell_health(trace, path);
    const zt_ending *const ending = zt_trace_ending(trace);
    if (ending != NULL && ending->dropped > 0)
        zt_complain("%s: %s %s dropped: an edge may be missing from the trace and not from the program", path,
                    zt_count(ending->dropped, "call").text, zt_was(ending->dropped));
    if (statistics) {
        zo_graph_numbers numbers;
        zo_graph_count(graph, &numbers);
        fprintf(stderr, "zetrace: %s of %s, %s, %s on %s, %llu never ran, %s beside the clocks, %llu MiB, %llu searches given up\n",
                zt_count(numbers.calls, "call").text, zt_count(numbers.threads, "thread").text, zt_count(numbers.commands, "command").text,
                zt_count(numbers.executions, "execution").text, zt_count(numbers.carriers, "carrier").text, (unsigned long long)numbers.never_ran,
                zt_count(numbers.edges, "edge").text, (unsigned long long)(numbers.bytes >> 20), (unsigned long long)numbers.doubtful);
    }
    status = report(graph, trace, rules, fail_on, json, quiet);
    zo_graph_free(graph);
    zt_trace_close(trace);
    return zt_finish_output(status);
}

/* SPDX-License-Identifier: MIT */
/* What 'zetrace isolate' says, to people and to programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call_lines.h"
#include "commands.h"
#include "isolate.h"

typedef struct calls {
    zt_call_line lines[2 * ZO_PAIRS_MAX];
    size_t n;
    const char *path; /* of the trace */
} calls;

static void name_point(const zo_point *p, char *out, size_t size)
{
    snprintf(out, size, p->execution > 1 ? "#%llu@%u" : "#%llu", (unsigned long long)p->call, p->execution);
}

static void print_call(const calls *c, uint64_t call)
{
    const zt_call_line *const l = zt_call_line_of(c->lines, c->n, call);
    if (l == NULL || l->text == NULL) {
        printf("      #%llu\n", (unsigned long long)call);
        return;
    }
    printf("      %s\n", l->text);
    for (unsigned i = 0; i < ZT_FRAMES && l->frames[i] != NULL; i++)
        printf("          at %s\n", l->frames[i]);
}

static void print_shows(const zo_pair *p)
{
    if (p->shows_at != 0)
        printf("  it shows at   #%llu %s%s%s%s\n", (unsigned long long)p->shows_at, p->shows_function, p->shows_function[0] ? ": " : "",
               p->shows, p->shows_at != p->early.call && p->shows_at != p->late.call ? "; that call is innocent" : "");
    else if (p->shows[0] != 0)
        printf("  it shows as   %s\n", p->shows);
    if (p->beyond != 0)
        printf("  beyond        #%llu, which was NOT_READY when recorded and is done there, the program might have gone another way\n",
               (unsigned long long)p->beyond);
}

static void print_pair(const calls *c, const zo_pair *p)
{
    char early[32], late[32];
    name_point(&p->early, early, sizeof(early));
    name_point(&p->late, late, sizeof(late));
    printf("It fails when %s%s comes before %s%s.\n\n", p->early_is_write ? "what the host has written by " : "", early,
           p->late_submit ? "the end of " : "", late);
    printf("  too early:\n");
    print_call(c, p->early.call);
    printf("  must be over by then%s:\n", p->late_submit ? "" : " (or have been made)");
    print_call(c, p->late.call);
    if (p->late_submit != 0 && p->late_submit != p->late.call)
        printf("      submitted by #%llu\n", (unsigned long long)p->late_submit);
    printf("\n");
    if (p->object[0] != 0)
        printf("  both use      %s\n", p->object);
    printf("  this order    %s first: fails %u of %u\n", early, p->fails[0], p->fails[1]);
    printf("  the other     %s first: passes %u of %u\n", late, p->passes[0], p->passes[1]);
    print_shows(p);
    printf("  repair        %s; verified %u of %u\n", p->repair, p->verified[0], p->verified[1]);
    if (p->inject[0] != 0) {
        printf("  try it        zetrace replay --inject='%s' ", p->inject);
        zt_shell_word(stdout, c->path);
        putchar('\n');
    }
}

static void print_host_order(const calls *c, const zo_answer *a)
{
    char early[32];
    name_point(&a->early, early, sizeof(early));
    printf("%s the program itself makes %s%s come too early.\n\n",
           a->fails[1] > 0 ? "It fails in every order:" : "The recorded run was a bad one; no replay shows it, but",
           a->early_is_write ? "what the host has written by " : "", early);
    print_call(c, a->early.call);
    if (a->late.call != 0 && a->late.call != a->early.call) {
        printf("  before\n");
        print_call(c, a->late.call);
    }
    printf("\n  %s\n", a->text);
    if (a->fails[1] > 0)
        printf("  as it is      fails %u of %u\n", a->fails[0], a->fails[1]);
    if (a->moved_behind.call != 0) {
        char behind[32];
        name_point(&a->moved_behind, behind, sizeof(behind));
        printf("  moved behind  %s: passes %u of %u\n", behind, a->verified[0], a->verified[1]);
    } else if (a->fails[1] > 0) {
        printf("  moving it alone cures nothing: the calls themselves have to change\n");
    }
    print_shows(&a->pair);
    printf("  repair        %s\n", a->repair);
}

static void print_text(const calls *c, const zo_answer *a)
{
    printf("The recording is taken for a %s one: %s.\n", a->taken_for_bad ? "bad" : "good", a->why_taken);
    switch (a->verdict) {
    case ZO_V_ORDER:
        print_pair(c, &a->pair);
        if (a->text[0] != 0)
            printf("  by delays     %s\n", a->text);
        if (a->hidden_by[0] != 0)
            printf("  hidden by     the recorded driver (%s): legal there, forbidden by the specification\n", a->hidden_by);
        for (unsigned i = 0; i < a->n_more; i++) {
            printf("\nWith that repaired: ");
            print_pair(c, &a->more[i]);
        }
        break;
    case ZO_V_HOST_ORDER:
        print_host_order(c, a);
        break;
    case ZO_V_NONE_FOUND:
        printf("No %s that was tried changes anything.\n", a->by_delays ? "delay" : "order");
        break;
    case ZO_V_NOT_ORDER:
        printf("It fails in every order that was tried, and nothing in the calls explains it: not a question of order.\n");
        print_shows(&a->pair);
        break;
    default:
        printf("Undecided (%s)%s%s.\n", zo_verdict_name(a->verdict), a->text[0] ? ": " : "", a->text);
        break;
    }
    printf("\n  searched      replays %u, orders %u; commands run %llu, queues and immediate lists %u; pairs that nothing orders: host and device %u, "
           "two commands %u\n                commands whole; host calls in their recorded order; seed %llu; on %s\n",
           a->replays, a->orders, (unsigned long long)a->graph.executions, a->carriers, a->host_device, a->device_device,
           (unsigned long long)a->seed, a->driver);
}

/* -------------------------------------------------------------------------------------------------------------- JSON */

static void json_text(const char *name, const char *text)
{
    printf(",\"%s\":", name);
    zt_json_string(stdout, text);
}

static void json_point(const calls *c, const char *name, const zo_point *p)
{
    const zt_call_line *const l = zt_call_line_of(c->lines, c->n, p->call);
    printf("\"%s\":{\"call\":%llu,\"execution\":%u,\"function\":", name, (unsigned long long)p->call, p->execution);
    zt_json_string(stdout, l && l->function ? l->function : "");
    printf("}");
}

static void json_pair(const calls *c, const zo_pair *p)
{
    json_point(c, "early", &p->early);
    printf(",");
    json_point(c, "late", &p->late);
    printf(",\"early_is_write\":%s", p->early_is_write ? "true" : "false");
    json_text("object", p->object);
    printf(",\"fails\":[%u,%u],\"passes\":[%u,%u],\"shows_at\":%llu", p->fails[0], p->fails[1], p->passes[0], p->passes[1],
           (unsigned long long)p->shows_at);
    json_text("shows", p->shows);
    printf(",\"beyond\":%llu", (unsigned long long)p->beyond);
    printf(",\"repair\":{\"inject\":");
    zt_json_string(stdout, p->inject);
    json_text("text", p->repair);
    printf(",\"verified\":[%u,%u]},\"found_after\":%u", p->verified[0], p->verified[1], p->found_after);
}

static void print_json(const calls *c, const zo_answer *a)
{
    printf("{\"verdict\":\"%s\",\"recording\":\"%s\",", zo_verdict_name(a->verdict), a->taken_for_bad ? "bad" : "good");
    json_pair(c, &a->pair);
    printf(",\"moved_behind\":%llu", (unsigned long long)a->moved_behind.call);
    printf(",\"replays\":%u,\"orders_searched\":%u,\"candidates\":%u,\"carriers\":%u", a->replays, a->orders, a->host_device + a->device_device,
           a->carriers);
    printf(",\"graph\":{\"commands\":%llu,\"executions\":%llu,\"edges\":%llu,\"host_device\":%u,\"device_device\":%u}",
           (unsigned long long)a->graph.commands, (unsigned long long)a->graph.executions, (unsigned long long)a->graph.edges, a->host_device,
           a->device_device);
    json_text("driver", a->driver);
    json_text("text", a->text);
    printf(",\"hidden_by\":[");
    if (a->hidden_by[0] != 0)
        zt_json_string(stdout, a->hidden_by);
    printf("],\"seed\":%llu,\"more\":[", (unsigned long long)a->seed);
    for (unsigned i = 0; i < a->n_more; i++) {
        printf("%s{", i ? "," : "");
        json_pair(c, &a->more[i]);
        printf("}");
    }
    printf("]}\n");
}

void isolate_print(zt_trace *trace, const char *path, const zo_answer *a, bool json)
{
    calls c = {.path = path};
    c.lines[c.n++].call = a->early.call;
    c.lines[c.n++].call = a->late.call;
    for (unsigned i = 0; i < a->n_more; i++) {
        c.lines[c.n++].call = a->more[i].early.call;
        c.lines[c.n++].call = a->more[i].late.call;
    }
    c.n = zt_call_lines_sort(c.lines, c.n);
    if (a->early.call != 0)
        zt_call_lines_read(trace, c.lines, c.n);
    if (json)
        print_json(&c, a);
    else
        print_text(&c, a);
    zt_call_lines_clear(c.lines, c.n);
}

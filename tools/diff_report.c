/* SPDX-License-Identifier: MIT */
#include "diff_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

#define SHOWN 12 /* lines of each list of the summary */

void zt_diff_count(zt_diff_report *r)
{
    zd_op *script;
    const size_t n = zd_script(r->diff, &script);
    r->totals = (zt_diff_totals){0};
    for (size_t i = 0; i < n; i++) {
        uint64_t *const of[] = {&r->totals.equal, &r->totals.removed, &r->totals.added, &r->totals.changed};
        *of[script[i].kind] += script[i].n;
    }
}

bool zt_diff_same(const zt_diff_report *r)
{
    return r->totals.removed + r->totals.added + r->totals.changed == 0;
}

/* ------------------------------------------------------------------------------------------------------------ counting */

typedef struct tally { /* a function that one side has more often, or results of it that have changed */
    const char *function;
    uint64_t only[2];
    uint64_t first[2]; /* call numbers */
    int64_t results[2];
    uint8_t returned[2], known[2];
    uint64_t n;
} tally;

typedef struct tallies {
    tally *at;
    size_t n, room;
    uint64_t left_out;
} tallies;

static tally *tally_new(tallies *t)
{
    if (t->n == t->room) {
        const size_t room = t->room ? 2 * t->room : 64;
        tally *const grown = room <= 65536 ? realloc(t->at, room * sizeof(*grown)) : NULL;
        if (grown == NULL) {
            t->left_out++;
            return NULL;
        }
        t->at = grown;
        t->room = room;
    }
    t->at[t->n] = (tally){0};
    return &t->at[t->n++];
}

static void count_only(tallies *t, const zd_diff *d, int side, const zd_sequence *line, uint32_t from, uint32_t n)
{
    const char *last = NULL;
    tally *found = NULL;
    for (uint32_t i = from; i < from + n; i++) {
        const char *const function = zd_function(d, side, zd_index(line, i));
        if (function != last) {
            found = NULL;
            for (size_t k = 0; k < t->n && found == NULL; k++)
                if (strcmp(t->at[k].function, function) == 0)
                    found = &t->at[k];
            if (found == NULL && (found = tally_new(t)) != NULL)
                found->function = function;
            last = function;
        }
        if (found != NULL)
            found->only[side]++;
    }
}

static void count_result(tallies *t, const zd_diff *d, uint32_t a, uint32_t b)
{
    const uint32_t index[2] = {a, b};
    tally x = {.function = zd_function(d, 0, a), .n = 1};
    for (int side = 0; side < 2; side++) {
        bool known;
        x.returned[side] = zd_result(d, side, index[side], &x.results[side], &known);
        x.known[side] = known;
        x.first[side] = zd_number(d, side, index[side]);
    }
    if (x.returned[0] == x.returned[1] && x.results[0] == x.results[1])
        return;
    for (size_t i = 0; i < t->n; i++) {
        tally *const y = &t->at[i];
        if (strcmp(x.function, y->function) == 0 && memcmp(x.results, y->results, sizeof(x.results)) == 0 &&
            memcmp(x.returned, y->returned, sizeof(x.returned)) == 0) {
            y->n++;
            return;
        }
    }
    tally *const new = tally_new(t);
    if (new != NULL)
        *new = x;
}

static int by_count(const void *x, const void *y)
{
    const tally *const p = x, *const q = y;
    const uint64_t a = p->only[0] + p->only[1], b = q->only[0] + q->only[1];
    return a != b ? (a > b ? -1 : 1) : strcmp(p->function, q->function);
}

static void count_all(const zt_diff_report *r, tallies *only, tallies *results)
{
    const zd_section *sections;
    zd_op *script;
    const size_t n = zd_sections(r->diff, &sections);
    zd_script(r->diff, &script);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sections[i].n; k++) {
            const zd_section *const s = &sections[i];
            const zd_op *const o = &script[s->first + k];
            if (o->kind == ZD_REMOVED)
                count_only(only, r->diff, 0, &s->a, o->a, o->n);
            else if (o->kind == ZD_ADDED)
                count_only(only, r->diff, 1, &s->b, o->b, o->n);
            for (uint32_t x = 0; o->kind == ZD_CHANGED && x < o->n; x++)
                count_result(results, r->diff, zd_index(&s->a, o->a + x), zd_index(&s->b, o->b + x));
        }
    if (only->n > 0)
        qsort(only->at, only->n, sizeof(*only->at), by_count);
}

static const char *result_text(const tally *t, int side)
{
    return !t->returned[side] ? "never returned" : !t->known[side] ? "another result" : zt_result_name(t->results[side]);
}

/* The first step that is no equality, by the calls' numbers. */
static const zd_op *first_difference(const zt_diff_report *r, const zd_section **section)
{
    const zd_section *sections;
    zd_op *script;
    const zd_op *first = NULL;
    uint64_t lowest = UINT64_MAX;
    const size_t n = zd_sections(r->diff, &sections);
    zd_script(r->diff, &script);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sections[i].n; k++) {
            const zd_op *const o = &script[sections[i].first + k];
            if (o->kind == ZD_EQUAL)
                continue;
            const uint64_t number = o->kind == ZD_ADDED ? zd_number(r->diff, 1, zd_index(&sections[i].b, o->b))
                                                        : zd_number(r->diff, 0, zd_index(&sections[i].a, o->a));
            if (number < lowest) {
                lowest = number;
                first = o;
                *section = &sections[i];
            }
            break; /* later ones of the section have higher numbers */
        }
    return first;
}

void zt_diff_summary(zt_diff_report *r, FILE *out)
{
    const zd_section *s = NULL;
    const zd_op *const first = first_difference(r, &s);
    tallies only = {0}, results = {0};
    const zt_diff_totals *const t = &r->totals;
    fprintf(out, "%s %s the same; %" PRIu64 " only in %s, %" PRIu64 " only in %s, %" PRIu64 " changed\n", zt_count(t->equal, "call").text,
            zt_is(t->equal), t->removed,
            r->names[0], t->added, r->names[1], t->changed);
    if (first != NULL) {
        const int side = first->kind == ZD_ADDED;
        const uint32_t index = side ? zd_index(&s->b, first->b) : zd_index(&s->a, first->a);
        fprintf(out, "  they part at    #%" PRIu64 " of %s: ", zd_number(r->diff, side, index), r->names[side]);
        zt_put_text(out, zd_function(r->diff, side, index));
        fprintf(out, "%s\n", first->kind == ZD_CHANGED ? ", changed" : first->kind == ZD_ADDED ? ", added" : ", missing in the other");
    }
    if (r->order != NULL)
        fprintf(out, "  order only      %s\n", r->order);
    count_all(r, &only, &results);
    for (size_t i = 0; i < only.n && i < SHOWN; i++) {
        fprintf(out, "  %s     %" PRIu64 " and %" PRIu64 "  ", i == 0 ? "only in one" : "           ", only.at[i].only[0], only.at[i].only[1]);
        zt_put_text(out, only.at[i].function);
        fputc('\n', out);
    }
    if (only.n > SHOWN)
        fprintf(out, "                  and %zu functions more\n", only.n - SHOWN);
    for (size_t i = 0; i < results.n && i < SHOWN; i++) {
        const tally *const x = &results.at[i];
        fprintf(out, "  %s #%" PRIu64 " and #%" PRIu64 " ", i == 0 ? "result changed " : "               ", x->first[0], x->first[1]);
        zt_put_text(out, x->function);
        fprintf(out, ": %s", result_text(x, 0));
        fprintf(out, " -> %s", result_text(x, 1));
        if (x->n > 1)
            fprintf(out, ", and %" PRIu64 " more like it", x->n - 1);
        fputc('\n', out);
    }
    if (results.n > SHOWN)
        fprintf(out, "                  and %zu kinds more\n", results.n - SHOWN);
    free(only.at);
    free(results.at);
}

/* ------------------------------------------------------------------------------------------------------------- unified */

static void paint(const zt_diff_report *r, FILE *out, const char *code)
{
    if (r->color)
        fputs(code, out);
}

static void show_line(zt_diff_report *r, FILE *out, int side, uint32_t index, char mark)
{
    paint(r, out, mark == '-' ? "\033[31m" : mark == '+' ? "\033[32m" : "");
    const char *const line = zd_line(r->readers[side], index, false);
    fprintf(out, "%c ", mark);
    zt_put_text(out, line[0] ? line : "(can't be read again)");
    paint(r, out, mark == ' ' ? "" : "\033[0m");
    fputc('\n', out);
}

typedef struct shown {
    FILE *out;
    bool json, any;
} shown;

static void show_detail(void *ctx, const zd_detail *detail)
{
    shown *const s = ctx;
    if (s->json) {
        fprintf(s->out, "%s{\"what\":", s->any ? "," : "");
        zt_json_string(s->out, detail->what);
        fputs(",\"a\":", s->out);
        zt_json_string(s->out, detail->a);
        fputs(",\"b\":", s->out);
        zt_json_string(s->out, detail->b);
        fputs("}", s->out);
    } else {
        fputs("      ", s->out);
        zt_put_text(s->out, detail->what);
        fputs(": ", s->out);
        zt_put_text(s->out, detail->a[0] ? detail->a : "(none)");
        fputs(" -> ", s->out);
        zt_put_text(s->out, detail->b[0] ? detail->b : "(none)");
        fputc('\n', s->out);
    }
    s->any = true;
}

static void show_details(zt_diff_report *r, FILE *out, uint32_t a, uint32_t b, bool json)
{
    const zt_objects *names;
    shown s = {out, json, false};
    const uint32_t threads[2] = {zd_thread(r->diff, 0, a), zd_thread(r->diff, 1, b)};
    if (r->by_order && zd_thread_of(r->diff, threads[0]) != threads[1]) {
        char text[2][16];
        for (int i = 0; i < 2; i++)
            snprintf(text[i], sizeof(text[i]), "T%u", threads[i]);
        const zd_detail detail = {"thread", text[0], text[1]};
        show_detail(&s, &detail);
    }
    if (zd_fetch(r->readers[0], a, &names) != NULL && zd_fetch(r->readers[1], b, &names) != NULL)
        zd_details(r->readers[0], r->readers[1], r->view, &r->tolerance, show_detail, &s);
}

static void show_header(zt_diff_report *r, FILE *out, const zd_section *s, const zd_op *from, const zd_op *to, uint64_t before, uint64_t after)
{
    const uint64_t a = from->a - before, b = from->b - before;
    const uint64_t n = to->a + (to->kind != ZD_ADDED ? to->n : 0) + after - a, m = to->b + (to->kind != ZD_REMOVED ? to->n : 0) + after - b;
    paint(r, out, "\033[36m");
    fprintf(out, "@@ -%" PRIu64 ",%" PRIu64 " +%" PRIu64 ",%" PRIu64 " @@", n ? a + 1 : a, n, m ? b + 1 : b, m);
    if (s->thread_a != 0 && s->thread_b != 0)
        fprintf(out, " T%u T%u", s->thread_a, s->thread_b);
    else if (s->thread_a != 0 || s->thread_b != 0)
        fprintf(out, " T%u of %s alone", s->thread_a ? s->thread_a : s->thread_b, r->names[s->thread_a == 0]);
    paint(r, out, "\033[0m");
    fputc('\n', out);
}

static void show_op(zt_diff_report *r, FILE *out, const zd_section *s, const zd_op *o)
{
    for (uint32_t i = 0; i < o->n && !ferror(out); i++) {
        if (o->kind != ZD_ADDED)
            show_line(r, out, 0, zd_index(&s->a, o->a + i), o->kind == ZD_EQUAL ? ' ' : '-');
        if (o->kind == ZD_ADDED || o->kind == ZD_CHANGED)
            show_line(r, out, 1, zd_index(&s->b, o->b + i), '+');
        if (o->kind == ZD_CHANGED)
            show_details(r, out, zd_index(&s->a, o->a + i), zd_index(&s->b, o->b + i), false);
    }
}

static void show_section(zt_diff_report *r, FILE *out, const zd_section *s, const zd_op *ops)
{
    const uint64_t around = r->context;
    for (size_t i = 0; i < s->n && !ferror(out);) {
        if (ops[i].kind == ZD_EQUAL) {
            i++;
            continue;
        }
        size_t end = i + 1; /* a hunk: differences with few equal calls between them */
        while (end < s->n && (ops[end].kind != ZD_EQUAL || (end + 1 < s->n && ops[end].n <= 2 * around)))
            end++;
        const uint64_t before = i > 0 ? (ops[i - 1].n < around ? ops[i - 1].n : around) : 0;
        const uint64_t after = end < s->n ? (ops[end].n < around ? ops[end].n : around) : 0;
        show_header(r, out, s, &ops[i], &ops[end - 1], before, after);
        const zd_op lead = {ZD_EQUAL, ops[i].a - (uint32_t)before, ops[i].b - (uint32_t)before, (uint32_t)before};
        show_op(r, out, s, &lead);
        for (size_t k = i; k < end; k++)
            show_op(r, out, s, &ops[k]);
        const zd_op trail = {ZD_EQUAL, end < s->n ? ops[end].a : 0, end < s->n ? ops[end].b : 0, (uint32_t)after};
        show_op(r, out, s, &trail);
        i = end;
    }
}

bool zt_diff_unified(zt_diff_report *r, FILE *out)
{
    const zd_section *sections;
    zd_op *script;
    const size_t n = zd_sections(r->diff, &sections);
    zd_script(r->diff, &script);
    fprintf(out, "--- %s\n+++ %s\n", r->names[0], r->names[1]);
    zt_diff_summary(r, out);
    for (size_t i = 0; i < n; i++)
        show_section(r, out, &sections[i], script + sections[i].first);
    return !ferror(out);
}

/* ---------------------------------------------------------------------------------------------------------------- JSON */

static void json_number(FILE *out, const char *name, const zd_diff *d, int side, const zd_sequence *line, uint32_t place, bool there)
{
    fprintf(out, ",\"%s\":", name);
    if (there)
        fprintf(out, "%" PRIu64, zd_number(d, side, zd_index(line, place)));
    else
        fputs("null", out);
}

static void json_difference(zt_diff_report *r, FILE *out, const zd_section *s, const zd_op *o, uint32_t i, bool details)
{
    static const char *const names[] = {"equal", "removed", "added", "changed"};
    const uint32_t a = o->a + (o->kind != ZD_ADDED ? i : 0), b = o->b + (o->kind != ZD_REMOVED ? i : 0);
    fprintf(out, "{\"op\":\"%s\"", names[o->kind]);
    json_number(out, "a", r->diff, 0, &s->a, a, o->kind != ZD_ADDED);
    json_number(out, "b", r->diff, 1, &s->b, b, o->kind != ZD_REMOVED);
    fputs(",\"function\":", out);
    zt_json_string(out, o->kind == ZD_ADDED ? zd_function(r->diff, 1, zd_index(&s->b, b)) : zd_function(r->diff, 0, zd_index(&s->a, a)));
    if (o->kind == ZD_CHANGED && details) {
        fputs(",\"details\":[", out);
        show_details(r, out, zd_index(&s->a, a), zd_index(&s->b, b), true);
        fputs("]", out);
    }
    fputs("}", out);
}

static void json_tallies(const zt_diff_report *r, FILE *out)
{
    tallies only = {0}, results = {0};
    count_all(r, &only, &results);
    fputs(",\"functions\":[", out);
    for (size_t i = 0; i < only.n; i++) {
        fprintf(out, "%s{\"function\":", i ? "," : "");
        zt_json_string(out, only.at[i].function);
        fprintf(out, ",\"only_a\":%" PRIu64 ",\"only_b\":%" PRIu64 "}", only.at[i].only[0], only.at[i].only[1]);
    }
    fputs("],\"results\":[", out);
    for (size_t i = 0; i < results.n; i++) {
        const tally *const x = &results.at[i];
        fprintf(out, "%s{\"a\":%" PRIu64 ",\"b\":%" PRIu64 ",\"function\":", i ? "," : "", x->first[0], x->first[1]);
        zt_json_string(out, x->function);
        fputs(",\"was\":", out);
        zt_json_string(out, result_text(x, 0));
        fputs(",\"is\":", out);
        zt_json_string(out, result_text(x, 1));
        fprintf(out, ",\"times\":%" PRIu64 "}", x->n);
    }
    fputs("]", out);
    free(only.at);
    free(results.at);
}

static void json_script(zt_diff_report *r, FILE *out, const zd_section *sections, size_t n, const zd_op *script)
{
    static const char *const names[] = {"equal", "removed", "added", "changed"};
    bool any = false;
    fputs(",\"differences\":[", out);
    for (size_t i = 0; i < n && !ferror(out); i++)
        for (size_t k = 0; k < sections[i].n; k++) {
            const zd_op *const o = &script[sections[i].first + k];
            for (uint32_t x = 0; o->kind != ZD_EQUAL && x < o->n; x++) {
                fputs(any ? ",\n" : "\n", out);
                json_difference(r, out, &sections[i], o, x, true);
                any = true;
            }
        }
    fputs("],\"script\":[", out);
    for (size_t i = 0; i < n && !ferror(out); i++) {
        fprintf(out, "%s\n{\"threads\":[%u,%u],\"calls\":[%u,%u],\"steps\":[", i ? "," : "", sections[i].thread_a, sections[i].thread_b,
                sections[i].a.n, sections[i].b.n);
        for (size_t k = 0; k < sections[i].n; k++) {
            const zd_op *const o = &script[sections[i].first + k];
            fprintf(out, "%s[\"%s\",%u,%u,%u]", k ? "," : "", names[o->kind], o->a, o->b, o->n);
        }
        fputs("]}", out);
    }
    fputs("]", out);
}

bool zt_diff_json(zt_diff_report *r, FILE *out, bool brief)
{
    const zd_section *sections, *s = NULL;
    zd_op *script;
    const size_t n = zd_sections(r->diff, &sections);
    zd_script(r->diff, &script);
    const zd_op *const first = first_difference(r, &s);
    fprintf(out, "{\"same\":%s,\"calls\":[%u,%u],\"equal\":%" PRIu64 ",\"only_a\":%" PRIu64 ",\"only_b\":%" PRIu64 ",\"changed\":%" PRIu64,
            zt_diff_same(r) ? "true" : "false", zd_calls(r->diff, 0), zd_calls(r->diff, 1), r->totals.equal, r->totals.removed, r->totals.added,
            r->totals.changed);
    fputs(",\"first\":", out);
    if (first != NULL)
        json_difference(r, out, s, first, 0, false);
    else
        fputs("null", out);
    json_tallies(r, out);
    fprintf(out, ",\"same_by_thread\":%s,\"interleaved\":%s,\"order_only\":%s,\"edges_changed\":%s",
            zd_same_by_thread(r->diff) ? "true" : "false", zd_interleaved(r->diff) ? "true" : "false", r->order ? "true" : "false",
            !r->edges_known ? "null" : r->edges_changed ? "true" : "false");
    if (!brief)
        json_script(r, out, sections, n, script);
    fputs("}\n", out);
    return !ferror(out);
}

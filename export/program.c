/* SPDX-License-Identifier: MIT */
/* The whole program: what it is, its runtime, its variables and data, and both lines in one. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static void put_comment(zx_text *out, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        const char c = *p < 0x20 || *p >= 0x7f ? '?' : *p;
        if (c == '/' && out->n > 0 && out->at[out->n - 1] == '*')
            zx_put(out, " ");
        zx_put_bytes(out, &c, 1);
    }
}

static const char *point_text(const zx_export *x, const zo_point *p, char *room, size_t size)
{
    const zx_call *const c = zx_call_of((zx_export *)(uintptr_t)x, p->call);
    char execution[24] = "";
    if (p->execution > 1)
        snprintf(execution, sizeof(execution), "@%u", p->execution);
    snprintf(room, size, "#%" PRIu64 "%s %s", p->call, execution, c != NULL ? c->func->name : "");
    return room;
}

static void put_top(const zx_export *x, zx_text *out)
{
    const zo_answer *const a = &x->answer;
    char early[128], late[128];
    point_text(x, &a->early, early, sizeof(early));
    point_text(x, &a->late, late, sizeof(late));
    zx_put(out, "/*\n * Made from a recording of Level Zero calls, ");
    put_comment(out, x->options->title ? x->options->title : "a trace");
    zx_put(out, ", by 'zetrace export'.\n *\n *     it fails when  %s%s\n *     comes before   %s%s\n",
           a->early_is_write ? "what the host has written by " : "", early, a->late_submit ? "the end of " : "", late);
    if (a->object[0] != 0) {
        zx_put(out, " *     both use       ");
        put_comment(out, a->object);
        zx_put(out, "\n");
    }
    if (x->cure[0] != 0)
        zx_put(out, " *     in `good`      %s\n", x->cure);
    zx_put(out,
           " *\n * `bad` runs them in that order and ends with status 1 and a line that says where it shows; `good` runs them in the other and\n"
           " * ends with status 0. Numbers are those of the recorded calls. A command that has to wait for its turn is on a list of its own\n"
           " * behind an event, its gate, that the host signals when the turn has come.\n"
           " *\n *     cc -Wall -Wextra this.c -lze_loader && ./a.out bad; ./a.out good\n */\n");
}

static void put_runtime(zx_text *out)
{
    const zt_type *const results = zt_type_find("ze_result_t");
    zx_put(out, "#define _POSIX_C_SOURCE 200809L\n#include <level_zero/ze_api.h>\n\n"
                "static const struct {\n    unsigned value;\n    const char *name;\n} results[] = {\n");
    for (unsigned i = 0; results != NULL && i < results->n_values; i++)
        if (strstr(results->values[i].name, "FORCE_UINT32") == NULL)
            zx_put(out, "    {0x%" PRIx32 ", \"%s\"},\n", results->values[i].value, results->values[i].name);
    zx_put(out, "};\n\n");
    for (size_t i = 0; zx_runtime[i] != NULL; i++)
        zx_put(out, "%s\n", zx_runtime[i]);
}

static const char *handle_type(const char *kind)
{
    for (unsigned i = 0; i < zt_n_types; i++)
        if (zt_types[i].cls == ZT_HANDLE && zt_types[i].base == i && zt_types[i].ns == ZT_NS_ZE && zt_types[i].object != NULL &&
            strcmp(zt_types[i].object, kind) == 0)
            return zt_types[i].name;
    return "void *";
}

static void put_variables(const zx_body *b, zx_text *out)
{
    const zx_export *const x = b->x;
    char name[64];
    zx_put(out, "\n/* ---- the recorded program's objects ---- */\n\n");
    for (size_t i = 0; i < x->n_objects; i++) {
        const zx_object *const o = &x->objects[i];
        if (o->creator == ZX_NONE || !x->calls[o->creator].needed)
            continue;
        zx_object_name(o->base, name, sizeof(name));
        if (strcmp(o->base->kind, "mem") == 0)
            zx_put(out, "static void *%s;\n", name);
        else
            zx_put(out, "static %s %s;\n", handle_type(o->base->kind), name);
        if (b->marked[i])
            zx_put(out, "static command after_%s;\n", name);
    }
    for (size_t i = 0; i < x->n_spans; i++)
        zx_put(out, "static void *host_%zu; /* %" PRIu64 " bytes of the program's own memory */\n", i + 1, x->spans[i].end - x->spans[i].start);
}

static void put_commands(const zx_export *x, const zx_gates *g, zx_text *out)
{
    bool first = true;
    for (size_t i = 0; i < x->n_calls; i++) {
        const zx_call *const c = &x->calls[i];
        if (c->func->kind != ZT_K_APPEND || c->list == ZX_NONE || c->executions == 0 ||
            (x->objects[c->list].immediate ? g->call_kept[i] : g->list_kept[c->list]))
            continue;
        if (first)
            zx_put(out, "\n/* Commands that wait for their turn: by call and execution. */\n");
        first = false;
        for (uint32_t k = 1; k <= c->executions; k++)
            zx_put(out, "static command c%" PRIu64 "_%u;\n", c->number, k);
    }
}

/* ------------------------------------------------------------------------------------------------------------- lines */

static bool is_shown(const zx_body *b, const zx_step *s)
{
    const zx_export *const x = b->x;
    if (s->kind != ZR_I_COMMAND && s->kind != ZX_LET)
        return true;
    const zx_call *const c = zx_call_of((zx_export *)(uintptr_t)x, s->call);
    return c != NULL && c->list != ZX_NONE &&
           !(x->objects[c->list].immediate ? b->gates->call_kept[c - x->calls] : b->gates->list_kept[c->list]);
}

static void put_step(zx_body *b, const zx_step *s, unsigned indent)
{
    zx_call *const c = zx_call_of(b->x, s->call);
    if (c == NULL)
        return;
    if (s->kind == ZR_I_CALL) {
        zx_put_unread(b, indent);
        zx_put_call(b, c, indent);
    } else if (s->kind == ZR_I_WRITE) {
        const zx_content *const k = &c->contents[s->execution - 1];
        zx_use_parts(b->x, k->parts);
        if (s->from == 0 && s->size == k->len)
            zx_put_line(&b->text, indent, "put(%s, parts_%u, %u, 0, SIZE_MAX);", k->place, k->parts, k->n_parts);
        else
            zx_put_line(&b->text, indent, "put(%s, parts_%u, %u, %" PRIu64 ", %" PRIu64 ");", k->place, k->parts, k->n_parts, s->from,
                        s->size);
    } else {
        zx_put_command(b, s, indent);
    }
}

/* Look-ups of newer functions stand behind the call that gives the first driver. */
static void put_look_ups(zx_body *b, bool *done)
{
    const zx_export *const x = b->x;
    char driver[64];
    for (size_t i = 0; i < x->n_objects && !*done; i++) {
        const zx_object *const o = &x->objects[i];
        if (strcmp(o->base->kind, "driver") != 0 || o->creator == ZX_NONE || !x->calls[o->creator].needed)
            continue;
        zx_object_name(o->base, driver, sizeof(driver));
        for (unsigned f = 0; f < zt_n_funcs; f++)
            if (x->looked_up[f] && zt_funcs[f].kind != ZT_K_INIT)
                zx_put_line(&b->text, 4, "look_up(%s, \"%s\", &%s);", driver, zt_funcs[f].name, zt_funcs[f].name);
        *done = true;
    }
}

static void put_lines(zx_body *b)
{
    zx_export *const x = b->x;
    uint8_t in = ZX_BAD | ZX_GOOD;
    bool looked_up = false;
    for (size_t i = 0; i < x->both.n && b->status == ZT_OK; i++) {
        const zx_step *const s = &x->both.steps[i];
        if (!is_shown(b, s))
            continue;
        if (s->in != in && in != (ZX_BAD | ZX_GOOD))
            zx_put_unread(b, 8);
        if (s->in != in) {
            const bool both = s->in == (ZX_BAD | ZX_GOOD), was_both = in == (ZX_BAD | ZX_GOOD);
            if (both)
                zx_put_line(&b->text, 4, "}");
            else if (was_both)
                zx_put_line(&b->text, 4, s->in == ZX_BAD ? "if (bad) {" : "if (!bad) {");
            else
                zx_put_line(&b->text, 4, "} else {");
            in = s->in;
        }
        put_step(b, s, in == (ZX_BAD | ZX_GOOD) ? 4 : 8);
        const zx_call *const c = s->kind == ZR_I_CALL ? zx_call_of(x, s->call) : NULL;
        for (size_t o = 0; c != NULL && !looked_up && o < x->n_objects; o++)
            if (c->number < ZX_ADDED_CLOSE && x->objects[o].creator == (uint32_t)(c - x->calls) && strcmp(x->objects[o].base->kind, "driver") == 0)
                put_look_ups(b, &looked_up);
    }
    zx_put_unread(b, in == (ZX_BAD | ZX_GOOD) ? 4 : 8);
    if (in != (ZX_BAD | ZX_GOOD))
        zx_put_line(&b->text, 4, "}");
}

int zx_program_text(zx_export *x, const zx_gates *gates, zx_text *out)
{
    zx_body b = {.x = x, .gates = gates, .appended = calloc(x->n_objects + 1, sizeof(*b.appended)),
                 .marked = calloc(x->n_objects + 1, sizeof(*b.marked))};
    if (b.appended == NULL || b.marked == NULL)
        b.status = zx_no_memory(x);
    if (b.status == ZT_OK && x->both.n > ZX_MOST_STEPS)
        b.status = zx_refuse(x, "a program of %zu steps is none that anybody reads; make a smaller trace first", x->both.n);
    if (b.status == ZT_OK)
        put_lines(&b);
    if (b.status == ZT_OK) {
        put_top(x, out);
        put_runtime(out);
        if (x->types.n > 0)
            zx_put(out, "\n/* ---- younger than the headers ---- */\n\n%s", x->types.at);
        if (x->functions.n > 0)
            zx_put(out, "\n%s", x->functions.at);
        put_variables(&b, out);
        put_commands(x, gates, out);
        zx_put(out, "\n/* ---- contents of memory ---- */\n\n");
        zx_put_parts(x, out);
        zx_put(out, "\nint main(int argc, char **argv)\n{\n    start(argc, argv);\n");
        if (x->side.n > 0)
            zx_put(out, "    read_side_data(argc, argv, \"%s\", %zu);\n", x->options->side, x->side.n);
        for (size_t i = 0; i < x->n_spans; i++)
            zx_put(out, "    host_%zu = buffer(%" PRIu64 ");\n", i + 1, x->spans[i].end - x->spans[i].start);
        zx_put(out, "\n");
        if (b.text.n > 0)
            zx_put_bytes(out, b.text.at, b.text.n);
        zx_put(out, "\n    printf(\"%%s: %%s\\n\", bad ? \"bad\" : \"good\", trouble ? \"it shows\" : \"all as it should be\");\n"
                    "    return trouble;\n}\n");
        if (out->failed || b.text.failed || x->types.failed || x->functions.failed)
            b.status = zx_no_memory(x);
    }
    free(b.text.at);
    free(b.appended);
    free(b.marked);
    return b.status;
}

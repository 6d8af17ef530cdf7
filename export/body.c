/* SPDX-License-Identifier: MIT */
/* Calls and commands as statements. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "l0_api.h"

#define COLUMNS 116u

void zx_put_line(zx_text *out, unsigned indent, const char *format, ...)
{
    va_list list;
    char *text = NULL;
    va_start(list, format);
    const int n = vasprintf(&text, format, list);
    va_end(list);
    if (n < 0) {
        out->failed = true;
        return;
    }
    unsigned column = indent;
    bool quoted = false;
    zx_put(out, "%*s", (int)indent, "");
    for (const char *p = text; *p != '\0'; p++) {
        quoted ^= *p == '"';
        size_t word = 0; /* up to where the line can be broken next */
        while (p[word] != '\0' && (word < 2 || p[word - 2] != ',' || p[word - 1] != ' '))
            word++;
        if (p > text && p[-1] == ' ' && p - 2 >= text && p[-2] == ',' && !quoted && column + word > COLUMNS) {
            zx_strip(out, " ");
            zx_put(out, "\n%*s", (int)indent + 8, "");
            column = indent + 8;
        }
        zx_put_bytes(out, p, 1);
        column++;
    }
    zx_put(out, "\n");
    free(text);
}

/* ------------------------------------------------------------------------------------------------------------ pieces */

static int64_t result_wanted(const zx_body *b, const zx_call *c)
{
    const zx_wanted *const w = zx_wanted_of(b->x, c->number);
    return w != NULL && w->has_result ? w->result : c->returned ? c->result : 0;
}

static char *result_text(int64_t result)
{
    zx_text t = {0};
    zx_put_enum(&t, zt_type_find("ze_result_t"), (uint32_t)result);
    return t.at;
}

static void object_name(const zx_body *b, uint32_t object, char *out, size_t size)
{
    zx_object_name(b->x->objects[object].base, out, size);
}

/* "(a, b, c)", one of them, or two that belong together, replaced. */
static char *arguments(const zx_call *c, int replaced, const char *by, int count_at)
{
    zx_text t = {0};
    zx_put(&t, "(");
    for (int i = 0; i < c->func->n_params; i++)
        zx_put(&t, "%s%s", i ? ", " : "", i == replaced ? by : i == count_at ? "1" : c->args[i] ? c->args[i] : "NULL");
    zx_put(&t, ")");
    return t.at;
}

static int param_of(const zt_func *func, enum zt_role role)
{
    const zt_field *const f = zt_param_by_role(func, role);
    return f != NULL ? (int)(f - func->params) : -1;
}

static void put_made(zx_body *b, const zx_call *c, unsigned indent, char *args, const char *macro)
{
    char *const wanted = result_text(result_wanted(b, c));
    zx_put_line(&b->text, indent, "%s(%llu, %s, %s, %s);", macro, (unsigned long long)(c->number < ZX_ADDED_CLOSE ? c->number : 0),
                c->func->name, wanted ? wanted : "0", args ? args : "()");
    free(wanted);
    free(args);
}

static void no_place(zx_body *b, const zx_call *c)
{
    if (b->status == ZT_OK)
        b->status = zx_refuse(b->x, "where the commands of #%" PRIu64 " %s run is not known well enough to hold them back", c->number,
                              c->func->name);
}

static uint32_t list_flags(const zx_place *p)
{
    if (!p->of_queue)
        return p->flags;
    return (p->flags & ZE_COMMAND_QUEUE_FLAG_EXPLICIT_ONLY ? ZE_COMMAND_LIST_FLAG_EXPLICIT_ONLY : 0) |
           (p->flags & ZE_COMMAND_QUEUE_FLAG_IN_ORDER ? ZE_COMMAND_LIST_FLAG_IN_ORDER : 0) |
           (p->flags & ZE_COMMAND_QUEUE_FLAG_COPY_OFFLOAD_HINT ? ZE_COMMAND_LIST_FLAG_COPY_OFFLOAD_HINT : 0);
}

static char *list_desc(const zx_place *p, bool with_flags)
{
    zx_text t = {0};
    zx_put(&t, "&(ze_command_list_desc_t){.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, .commandQueueGroupOrdinal = %u", p->ordinal);
    if (with_flags && list_flags(p) != 0) {
        zx_put(&t, ", .flags = ");
        zx_put_flags(&t, zt_type_find("ze_command_list_flags_t"), list_flags(p));
    }
    zx_put(&t, "}");
    return t.at;
}

static char *queue_desc(const zx_place *p)
{
    zx_text t = {0};
    const uint32_t flags = p->flags & ~(uint32_t)ZE_COMMAND_QUEUE_FLAG_IN_ORDER;
    zx_put(&t, "&(ze_command_queue_desc_t){.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .ordinal = %u, .index = %u", p->ordinal, p->index);
    if (flags != 0) {
        zx_put(&t, ", .flags = ");
        zx_put_flags(&t, zt_type_find("ze_command_queue_flags_t"), flags);
    }
    zx_put(&t, ", .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS");
    if (p->priority != 0) {
        zx_put(&t, ", .priority = ");
        zx_put_enum(&t, zt_type_find("ze_command_queue_priority_t"), p->priority);
    }
    zx_put(&t, "}");
    return t.at;
}

/* ------------------------------------------------------------------------------------------------------------ memory */

static void put_readbacks(zx_body *b, const zx_call *c, unsigned indent)
{
    zx_export *const x = b->x;
    const zx_wanted *const w = zx_wanted_of(x, c->number);
    const bool other = w != NULL && w->memory;
    zx_text all = {0};
    const char *first = NULL;
    if (result_wanted(b, c) != 0 || (x->unchecked_from != 0 && c->number >= x->unchecked_from))
        return;
    for (uint32_t i = 0; i < c->n_contents; i++) {
        const zx_content *const k = &c->contents[i];
        if (!k->readback || k->n_parts == 0)
            continue;
        zx_use_parts(x, k->parts);
        if (!other) {
            zx_put_line(&b->text, indent, "expect_memory(\"%s\", %s, parts_%u, %u);", k->place, k->place, k->parts, k->n_parts);
            continue;
        }
        zx_put(&all, "%ssame(%s, parts_%u, %u)", first ? " && " : "", k->place, k->parts, k->n_parts);
        first = first ? first : k->place;
    }
    if (first != NULL)
        zx_put_line(&b->text, indent, "expect_other(%s, \"%s\", %s);", all.at, first, first);
    free(all.at);
}

void zx_put_unread(zx_body *b, unsigned indent)
{
    zx_call *const c = b->unread;
    b->unread = NULL;
    if (c != NULL)
        put_readbacks(b, c, indent);
}

/* ----------------------------------------------------------------------------------------------------------- appends */

static bool is_gated(const zx_body *b, const zx_call *c)
{
    const zx_export *const x = b->x;
    if (c->executions == 0 || c->list == ZX_NONE)
        return false;
    return x->objects[c->list].immediate ? !b->gates->call_kept[c - x->calls] : !b->gates->list_kept[c->list];
}

static void put_mark(zx_body *b, uint32_t list, unsigned indent)
{
    const zx_place *const p = &b->x->objects[list].place;
    char name[64], context[64], device[64];
    object_name(b, list, name, sizeof(name));
    object_name(b, p->context, context, sizeof(context));
    object_name(b, p->device, device, sizeof(device));
    zx_put_line(&b->text, indent, "mark(&after_%s, %s, %s, %s);", name, context, device, name);
    b->marked[list] = true;
}

static void put_over(zx_body *b, uint32_t list, unsigned indent)
{
    char name[64];
    object_name(b, list, name, sizeof(name));
    zx_put_line(&b->text, indent, "over(&after_%s);", name);
}

static void put_gated(zx_body *b, zx_call *c, unsigned indent)
{
    const zx_object *const list = &b->x->objects[c->list];
    const zx_place *const p = &list->place;
    char context[64], device[64], own[64];
    if (!p->known || p->chained)
        return no_place(b, c);
    object_name(b, p->context, context, sizeof(context));
    object_name(b, p->device, device, sizeof(device));
    for (uint32_t k = 1; k <= c->executions; k++) {
        char *const desc = list_desc(p, true);
        zx_put_line(&b->text, indent, "begin(&c%" PRIu64 "_%u, %s, %s, %s);", c->number, k, context, device, desc ? desc : "");
        free(desc);
        snprintf(own, sizeof(own), "c%" PRIu64 "_%u.list", c->number, k);
        put_made(b, c, indent, arguments(c, param_of(c->func, ZT_R_LIST), own, -1), "CALL");
        zx_put_line(&b->text, indent, "finish(&c%" PRIu64 "_%u);", c->number, k);
    }
    if (list->immediate) {
        char *const desc = queue_desc(p);
        zx_put_line(&b->text, indent, "submit(&c%" PRIu64 "_1, %s);", c->number, desc ? desc : "");
        zx_put_line(&b->text, indent, "expect(ZE_RESULT_SUCCESS, ZE_RESULT_SUCCESS);");
        free(desc);
    }
}

static void put_append(zx_body *b, zx_call *c, unsigned indent)
{
    const zx_export *const x = b->x;
    char name[64];
    if (is_gated(b, c))
        return put_gated(b, c, indent);
    const bool kept = c->list != ZX_NONE && c->executions > 0;
    const bool immediate = kept && x->objects[c->list].immediate;
    if (kept && !x->objects[c->list].place.known)
        return no_place(b, c);
    if (kept && !immediate && b->appended[c->list]++ > 0) { /* one after the other */
        object_name(b, c->list, name, sizeof(name));
        zx_put_line(&b->text, indent, "must(zeCommandListAppendBarrier(%s, NULL, 0, NULL));", name);
    }
    put_made(b, c, indent, arguments(c, -1, NULL, -1), "CALL");
    if (immediate) {
        put_mark(b, c->list, indent);
        put_over(b, c->list, indent);
    }
}

/* ---------------------------------------------------------------------------------------------------------- executes */

static void put_execute(zx_body *b, zx_call *c, unsigned indent)
{
    zx_export *const x = b->x;
    bool kept = true;
    for (uint32_t i = 0; i < c->n_lists; i++)
        kept = kept && b->gates->list_kept[c->lists[i]];
    if (c->queue == ZX_NONE && c->n_submits > 0 && b->status == ZT_OK)
        b->status = zx_refuse(x, "#%" PRIu64 " %s can't be taken apart into its commands yet", c->number, c->func->name);
    if (kept || c->n_submits == 0) {
        put_made(b, c, indent, arguments(c, -1, NULL, -1), "CALL");
        for (uint32_t i = 0; i < c->n_lists && c->n_submits > 0; i++)
            if (b->marked[c->lists[i]])
                put_over(b, c->lists[i], indent);
        return;
    }
    const zx_place *const p = &x->objects[c->queue].place;
    if (!p->known || p->chained)
        return no_place(b, c);
    char *const desc = queue_desc(p);
    zx_text all = {0};
    for (uint32_t k = 0; k < c->n_submits; k++) {
        const zx_submit *const s = &x->submits[c->submits + k];
        zx_put_line(&b->text, indent, "submit(&c%" PRIu64 "_%u, %s);", x->calls[s->call].number, s->execution, desc ? desc : "");
        zx_put(&all, "%s&c%" PRIu64 "_%u", k ? ", " : "", x->calls[s->call].number, s->execution);
    }
    free(desc);
    if (p->mode == ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS) { /* it would wait here for what runs later */
        put_made(b, c, indent, arguments(c, -1, NULL, -1), "CALL");
    } else {
        char *const list = list_desc(p, false);
        const zt_field *const lists = zt_param_by_role(c->func, ZT_R_LISTS);
        zx_put_line(&b->text, indent, "{");
        zx_put_line(&b->text, indent + 4, "command *const all[] = {%s};", all.at ? all.at : "");
        zx_put_line(&b->text, indent + 4, "ze_command_list_handle_t all_over = tail(all, %u, %s);", c->n_submits, list ? list : "");
        put_made(b, c, indent + 4, arguments(c, (int)(lists - c->func->params), "&all_over", lists->count.a), "CALL");
        zx_put_line(&b->text, indent, "}");
        free(list);
    }
    free(all.at);
}

/* --------------------------------------------------------------------------------------------------- resets, destroys */

static size_t place_in(const zx_line *l, uint64_t call, uint32_t execution, uint8_t kind)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->steps[i].kind == kind && l->steps[i].call == call && l->steps[i].execution == execution)
            return i;
    return SIZE_MAX;
}

/* Whether, in that line, the command has been submitted and has not run when the call is made. */
static bool in_flight(const zx_line *l, const zx_call *at, const zx_call *submit, uint64_t command, uint32_t execution)
{
    const size_t here = place_in(l, at->number, 0, ZR_I_CALL), begin = place_in(l, submit->number, 0, ZR_I_CALL);
    return begin != SIZE_MAX && here != SIZE_MAX && begin < here && here < place_in(l, command, execution, ZR_I_COMMAND);
}

static bool has_use(const zx_call *c, uint32_t object)
{
    for (uint32_t i = 0; i < c->n_uses; i++)
        if (c->uses[i] == object)
            return true;
    return false;
}

static bool comes_before(const zx_line *l, const zx_call *first, const zx_call *second)
{
    const size_t a = place_in(l, first->number, 0, ZR_I_CALL), b = place_in(l, second->number, 0, ZR_I_CALL);
    return a != SIZE_MAX && b != SIZE_MAX && a < b;
}

/* A queue or a fence goes: its submits are over when their commands are, but for an instant. */
static void put_settle(zx_body *b, const zx_call *c, unsigned indent)
{
    const zx_export *const x = b->x;
    const char *const kind = x->objects[c->self].base->kind;
    char name[64];
    zx_text all = {0};
    unsigned n = 0;
    bool any = false;
    if (strcmp(kind, "queue") != 0 && strcmp(kind, "fence") != 0)
        return;
    for (size_t i = 0; i < x->n_calls; i++) {
        const zx_call *const submit = &x->calls[i];
        if (submit->func->kind != ZT_K_EXECUTE || !submit->needed || !has_use(submit, c->self) ||
            (!comes_before(&x->bad, submit, c) && !comes_before(&x->good, submit, c)))
            continue;
        any = true;
        for (uint32_t k = 0; k < submit->n_submits; k++) {
            const zx_submit *const s = &x->submits[submit->submits + k];
            if (is_gated(b, &x->calls[s->call]))
                zx_put(&all, "%s&c%" PRIu64 "_%u", n++ ? ", " : "", x->calls[s->call].number, s->execution);
        }
    }
    object_name(b, c->self, name, sizeof(name));
    if (n > 0)
        zx_put_line(&b->text, indent, "settle_%s(%s, (command *[]){%s}, %u);", kind, name, all.at ? all.at : "", n);
    else if (any)
        zx_put_line(&b->text, indent, "settle_%s(%s, NULL, 0);", kind, name);
    free(all.at);
}

static void put_goes(zx_body *b, const zx_call *c, unsigned indent)
{
    const zx_export *const x = b->x;
    const uint32_t gone = c->self;
    for (size_t i = 0; i < x->n_calls; i++) {
        const zx_call *const submit = &x->calls[i];
        const uint32_t on = submit->queue != ZX_NONE ? submit->queue : submit->list;
        for (uint32_t k = 0; k < submit->n_submits; k++) {
            const zx_submit *const s = &x->submits[submit->submits + k];
            const zx_call *const command = &x->calls[s->call];
            if ((on != gone && command->list != gone) || !is_gated(b, command))
                continue;
            if (!in_flight(&x->bad, c, submit, command->number, s->execution) && !in_flight(&x->good, c, submit, command->number, s->execution))
                continue;
            if (on == gone && c->func->kind == ZT_K_DESTROY)
                zx_put_line(&b->text, indent, "queue_goes(&c%" PRIu64 "_%u);", command->number, s->execution);
            else if (command->list == gone)
                zx_put_line(&b->text, indent, "list_goes(&c%" PRIu64 "_%u, %d);", command->number, s->execution, c->func->kind == ZT_K_RESET);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------- calls */

static void put_wait(zx_body *b, zx_call *c, unsigned indent)
{
    const int timeout = param_of(c->func, ZT_R_TIMEOUT);
    const bool patient = result_wanted(b, c) == 0 || timeout < 0 || c->args[timeout] == NULL || strcmp(c->args[timeout], "UINT64_MAX") == 0 ||
                         strtoull(c->args[timeout], NULL, 10) > 2000000000u;
    put_made(b, c, indent, arguments(c, timeout >= 0 && patient ? timeout : -1, "PATIENCE", -1), "CALL");
}

/* Objects that were there before: the program asks for as many as the recorded one did. */
static void put_get(zx_body *b, zx_call *c, unsigned indent)
{
    const zx_export *const x = b->x;
    const uint32_t index = (uint32_t)(c - x->calls);
    char name[64];
    zx_put_line(&b->text, indent, "{");
    zx_put_line(&b->text, indent + 4, "%s all[%u] = {0};", c->element, c->room);
    put_made(b, c, indent + 4, arguments(c, -1, NULL, -1), "CALL");
    for (size_t i = 0; i < x->n_objects; i++) {
        if (x->objects[i].creator != index || !x->objects[i].used)
            continue;
        object_name(b, (uint32_t)i, name, sizeof(name));
        zx_put_line(&b->text, indent + 4, "%s = handle_of(all[%u], \"%s\");", name,
                    x->objects[i].element < c->room ? x->objects[i].element : 0, name);
    }
    zx_put_line(&b->text, indent, "}");
}

/* A call that the headers do not know gives drivers: the oldest that does. */
static void put_old_init(zx_body *b, zx_call *c, unsigned indent)
{
    const zx_export *const x = b->x;
    char name[64];
    zx_put_line(&b->text, indent, "enter(%" PRIu64 ", \"zeInit\"); /* for %s */", c->number, c->func->name);
    zx_put_line(&b->text, indent, "expect(zeInit(0), ZE_RESULT_SUCCESS);");
    for (size_t i = 0; i < x->n_objects; i++)
        if (x->objects[i].creator == (uint32_t)(c - x->calls) && x->objects[i].used) {
            object_name(b, (uint32_t)i, name, sizeof(name));
            zx_put_line(&b->text, indent, "%s = nth_driver(%u);", name, x->objects[i].element);
        }
}

static void put_added(zx_body *b, zx_call *c, unsigned indent)
{
    zx_text t = {0};
    char self[64], list[64];
    object_name(b, c->self, self, sizeof(self));
    zx_put(&t, "(%s", self);
    if (c->n_lists > 0)
        object_name(b, c->lists[0], list, sizeof(list));
    for (int i = 1; i < c->func->n_params; i++)
        if (c->n_lists > 0 && c->func->params[i].role == ZT_R_LISTS)
            zx_put(&t, ", &%s", list);
        else if (c->func->params[i].shape == ZT_VALUE && zt_types[c->func->params[i].type].cls == ZT_UINT)
            zx_put(&t, ", 1");
        else
            zx_put(&t, ", NULL");
    zx_put(&t, ")");
    if (c->n_lists == 0) { /* closes */
        if (b->gates->list_kept[c->self] && b->x->added[1].n_submits > 0)
            put_mark(b, c->self, indent);
        put_made(b, c, indent, t.at, "CALL");
        return;
    }
    if (!b->gates->list_kept[c->lists[0]]) {
        free(t.at);
        c->args = calloc(c->func->n_params + 1u, sizeof(*c->args));
        if (c->args != NULL && (c->args[0] = strdup(self)) != NULL)
            put_execute(b, c, indent);
        return;
    }
    put_made(b, c, indent, t.at, "CALL");
    if (b->marked[c->lists[0]])
        put_over(b, c->lists[0], indent);
}

void zx_put_call(zx_body *b, zx_call *c, unsigned indent)
{
    const int kind = c->func->kind;
    if (c->number >= ZX_ADDED_CLOSE)
        zx_put_line(&b->text, indent, "/* %s, which the recorded program lacks */", c->func->name);
    else
        zx_put_line(&b->text, indent, "/* #%" PRIu64 " %s, thread %u */", c->number, c->func->name, c->thread);
    if (c->number >= ZX_ADDED_CLOSE)
        return put_added(b, c, indent);
    if (kind == ZT_K_INIT && !zx_in_headers(c->func->name))
        return put_old_init(b, c, indent);
    if (c->element != NULL)
        return put_get(b, c, indent);
    if (kind == ZT_K_RESET || kind == ZT_K_DESTROY) {
        if (c->self != ZX_NONE) {
            put_goes(b, c, indent);
            put_settle(b, c, indent);
        }
        if (c->self != ZX_NONE && kind == ZT_K_RESET)
            b->appended[c->self] = 0;
    }
    if (kind == ZT_K_CLOSE && c->self != ZX_NONE && b->gates->list_kept[c->self] && b->appended[c->self] > 0)
        put_mark(b, c->self, indent);
    if (kind == ZT_K_APPEND)
        put_append(b, c, indent);
    else if (kind == ZT_K_EXECUTE)
        put_execute(b, c, indent);
    else if (kind == ZT_K_SYNC)
        put_wait(b, c, indent);
    else
        put_made(b, c, indent, arguments(c, -1, NULL, -1), kind == ZT_K_QUERY ? "ASK" : "CALL");
    if (kind == ZT_K_APPEND || kind == ZT_K_EXECUTE)
        b->unread = c;
    else
        put_readbacks(b, c, indent);
}

void zx_put_command(zx_body *b, const zx_step *s, unsigned indent)
{
    const zx_call *const c = zx_call_of(b->x, s->call);
    if (c == NULL || !is_gated(b, c))
        return;
    if (s->kind == ZX_LET)
        zx_put_line(&b->text, indent, "let(&c%" PRIu64 "_%u); /* what holds it back now is no gate */", s->call, s->execution);
    else
        zx_put_line(&b->text, indent, "run(&c%" PRIu64 "_%u, %" PRIu64 ", \"%s\");", s->call, s->execution, s->call, c->func->name);
}

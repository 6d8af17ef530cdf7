/* SPDX-License-Identifier: MIT */
/* Calls as text and as JSON. One visitor of the walk writes values; the two forms differ in what stands around them. */
#include "reader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES 32   /* of a blob that are shown */
#define MAX_TEXT 4096
#define MAX_ELEMENTS 64

struct zt_text {
    char *at;
    size_t n, room;
};

zt_text *zt_text_new(void)
{
    return calloc(1, sizeof(zt_text));
}

void zt_text_free(zt_text *t)
{
    if (t != NULL)
        free(t->at);
    free(t);
}

void zt_text_clear(zt_text *t)
{
    t->n = 0;
    if (t->at != NULL)
        t->at[0] = '\0';
}

const char *zt_text_get(const zt_text *t, size_t *len)
{
    if (len != NULL)
        *len = t->n;
    return t->at ? t->at : "";
}

static void add_bytes(zt_text *t, const char *s, size_t n)
{
    if (n + 1 > t->room - t->n) {
        size_t room = t->room ? t->room : 256;
        while (room - t->n < n + 1)
            room *= 2;
        char *const grown = realloc(t->at, room);
        if (grown == NULL)
            return;
        t->at = grown;
        t->room = room;
    }
    memcpy(t->at + t->n, s, n);
    t->n += n;
    t->at[t->n] = '\0';
}

static void add(zt_text *t, const char *s)
{
    add_bytes(t, s, strlen(s));
}

static __attribute__((format(printf, 2, 3))) void addf(zt_text *t, const char *format, ...)
{
    char buffer[256];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(buffer, sizeof(buffer), format, args);
    va_end(args);
    add_bytes(t, buffer, n < 0 ? 0 : (size_t)n < sizeof(buffer) ? (size_t)n : sizeof(buffer) - 1);
}

/* Text in quotes, everything that is not printable escaped; valid in JSON as well. */
static void add_quoted(zt_text *t, const char *s, uint64_t n)
{
    const uint64_t shown = n < MAX_TEXT ? n : MAX_TEXT;
    add(t, "\"");
    for (uint64_t i = 0; i < shown; i++) {
        const unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            addf(t, "\\%c", c);
        else if (c == '\n')
            add(t, "\\n");
        else if (c < 0x20 || c >= 0x7f)
            addf(t, "\\u%04x", c);
        else
            add_bytes(t, s + i, 1);
    }
    add(t, n > shown ? "...\"" : "\"");
}

const char *zt_result_name(int64_t result)
{
    static _Thread_local char hex[32];
    const zt_type *const type = zt_type_find("ze_result_t");
    const char *const name = zt_enum_name(type, (uint32_t)result);
    if (name != NULL)
        return name;
    snprintf(hex, sizeof(hex), "0x%" PRIx64, (uint64_t)result);
    return hex;
}

/* ------------------------------------------------------------------------------------------------------------ values */

typedef struct printer {
    zt_text *text;
    const zt_objects *objects;
    unsigned flags;
    bool json;
    bool first;        /* nothing stands before in the bracket that is open */
    uint64_t skipped;  /* elements left out of the array that is open */
    unsigned array_depth;
    bool in_array;
} printer;

static void separate(printer *p)
{
    if (!p->first)
        add(p->text, p->json ? "," : ", ");
    p->first = false;
}

static void add_object(printer *p, const zt_object *o, uint64_t offset, bool address)
{
    addf(p->text, "%s%s#%u", p->json ? "\"" : "", o->kind, o->generation);
    if (o->label[0])
        addf(p->text, "(%s)", o->label);
    if (address)
        addf(p->text, "+%" PRIu64, offset);
    if (p->json)
        add(p->text, "\"");
    else if (p->flags & ZT_P_RAW)
        addf(p->text, " (0x%" PRIx64 ")", o->value + offset);
}

static void add_address(printer *p, uint64_t value)
{
    const zt_object *const o = zt_object_of_address(p->objects, value);
    if (o != NULL)
        add_object(p, o, value - o->value, true);
    else if (value == 0)
        add(p->text, p->json ? "null" : "NULL");
    else
        addf(p->text, p->json ? "\"0x%" PRIx64 "\"" : "0x%" PRIx64, value);
}

static void add_flags(printer *p, const zt_type *type, uint32_t value)
{
    bool any = false;
    uint32_t rest = value;
    if (p->json)
        add(p->text, "\"");
    for (unsigned i = 0; i < type->n_values; i++) {
        const uint32_t bit = type->values[i].value;
        if (bit == 0x7fffffff || bit == 0 || (bit & (bit - 1)) != 0 || !(rest & bit))
            continue;
        addf(p->text, "%s%s", any ? "|" : "", type->values[i].name);
        rest &= ~bit;
        any = true;
    }
    if (rest != 0 || !any)
        addf(p->text, rest == 0 ? "%s%x" : "%s0x%x", any ? "|" : "", rest);
    if (p->json)
        add(p->text, "\"");
}

static void add_float(printer *p, const void *data, uint64_t size)
{
    double d;
    float f;
    if (size == 4) {
        memcpy(&f, data, 4);
        d = f;
    } else {
        memcpy(&d, data, 8);
    }
    if (p->json && !(d - d == 0))
        add(p->text, "null"); /* JSON has no word for it */
    else
        addf(p->text, "%.*g", size == 4 ? 9 : 17, d);
}

static void add_value(printer *p, const zt_field *field, const zt_type *type, const void *data, uint64_t size)
{
    uint64_t value = 0;
    memcpy(&value, data, size > 8 ? 8 : size);
    if (field != NULL && (field->shape == ZT_ADDRESS || field->role == ZT_R_ALLOC ||
                          (field->inner == ZT_ADDRESS && size == 8 && type->cls == ZT_POINTER))) {
        add_address(p, value);
        return;
    }
    if (field != NULL && field->shape != ZT_VALUE && size == 8 && type->cls != ZT_HANDLE && type->size != 8) {
        add_address(p, value); /* a pointer that is not followed */
        return;
    }
    const zt_object *object;
    const char *name;
    switch (type->cls) {
    case ZT_HANDLE:
        object = zt_object_of_handle(p->objects, type, value);
        if (object != NULL)
            add_object(p, object, 0, false);
        else if (value == 0)
            add(p->text, p->json ? "null" : "NULL");
        else
            addf(p->text, p->json ? "\"0x%" PRIx64 "\"" : "0x%" PRIx64, value);
        break;
    case ZT_ENUM:
        name = zt_enum_name(type, (uint32_t)value);
        if (name != NULL)
            addf(p->text, p->json ? "\"%s\"" : "%s", name);
        else
            addf(p->text, p->json ? "%u" : "0x%x", (uint32_t)value);
        break;
    case ZT_FLAGS:
        add_flags(p, type, (uint32_t)value);
        break;
    case ZT_FLOAT:
        add_float(p, data, size);
        break;
    case ZT_INT: {
        const unsigned shift = 64 - 8 * (unsigned)(size > 8 ? 8 : size);
        addf(p->text, "%" PRId64, (int64_t)(value << shift) >> shift);
        break;
    }
    case ZT_BOOL:
        add(p->text, value ? "true" : "false");
        break;
    case ZT_POINTER:
    case ZT_FUNCTION:
        add_address(p, value);
        break;
    default:
        addf(p->text, "%" PRIu64, value);
    }
}

static void add_hex(printer *p, const uint8_t *data, uint64_t size)
{
    const uint64_t shown = size < MAX_BYTES ? size : MAX_BYTES;
    add(p->text, "\"");
    for (uint64_t i = 0; i < shown; i++)
        addf(p->text, "%02x", data[i]);
    add(p->text, size > shown ? "...\"" : "\"");
    if (!p->json && size > shown)
        addf(p->text, " (%" PRIu64 " bytes)", size);
}

/* Name of a struct's member, before its value. Parameters are named by who prints the call. */
static void add_name(printer *p, const zt_node *node)
{
    separate(p);
    if (node->field == NULL || p->in_array)
        return;
    if (p->json)
        addf(p->text, "\"%s\":", node->field->name);
    else
        addf(p->text, ".%s=", node->field->name);
}

typedef struct frame {
    bool in_array;
} frame;

typedef struct state {
    printer p;
    frame stack[64];
    unsigned depth;
    unsigned pointers; /* pointers that are open: what they point to has been named already */
    bool named;        /* the value's name stands there already */
} state;

static void begin(state *s, const zt_node *node, const char *bracket, bool array)
{
    if (!s->named)
        add_name(&s->p, node);
    s->named = false;
    add(s->p.text, bracket);
    if (s->depth < 64)
        s->stack[s->depth].in_array = s->p.in_array;
    s->depth++;
    s->p.in_array = array;
    s->p.first = true;
}

static void end(state *s, const char *bracket)
{
    add(s->p.text, bracket);
    s->depth--;
    s->p.in_array = s->depth < 64 ? s->stack[s->depth].in_array : false;
    s->p.first = false;
}

static int print_node(void *ctx, const zt_node *node)
{
    state *const s = ctx;
    printer *const p = &s->p;
    const bool json = p->json;
    switch (node->kind) {
    case ZT_N_TARGET:
    case ZT_N_POINTER_END:
        return 0;
    case ZT_N_POINTER:
        if (node->type != NULL && node->field != NULL && node->field->shape == ZT_PNEXT)
            return 0; /* links of a chain: the structs stand in its bracket */
        if (!s->named)
            add_name(p, node);
        s->named = true;
        if (node->count == 0) {
            add(p->text, "[]");
            s->named = false;
            return 1;
        }
        return 0;
    case ZT_N_ARRAY:
        begin(s, node, "[", true);
        return 0;
    case ZT_N_ARRAY_END:
        if (p->skipped > 0)
            addf(p->text, json ? "" : ", ...%" PRIu64 " more", p->skipped);
        p->skipped = 0;
        end(s, "]");
        return 0;
    case ZT_N_CHAIN:
        begin(s, node, "[", true);
        return 0;
    case ZT_N_CHAIN_END:
        end(s, "]");
        return 0;
    case ZT_N_STRUCT:
        begin(s, node, "{", false);
        return 0;
    case ZT_N_STRUCT_END:
        end(s, "}");
        return 0;
    default:
        break;
    }
    if (p->in_array && node->index >= MAX_ELEMENTS && node->kind == ZT_N_VALUE && !json) {
        p->skipped++;
        return 0;
    }
    if (!s->named)
        add_name(p, node);
    s->named = false;
    switch (node->kind) {
    case ZT_N_NULL:
        add(p->text, json ? "null" : "NULL");
        break;
    case ZT_N_TEXT:
        add_quoted(p->text, node->data, node->size);
        break;
    case ZT_N_BYTES:
        add_hex(p, node->data, node->size);
        break;
    case ZT_N_LOST:
        addf(p->text, json ? "\"0x%" PRIx64 "\"" : "0x%" PRIx64 " (not kept)", node->addr);
        break;
    case ZT_N_UNKNOWN: {
        uint32_t stype;
        memcpy(&stype, node->data, 4);
        addf(p->text, json ? "{\"stype\":%u}" : "{.stype=0x%x, ...}", stype);
        break;
    }
    case ZT_N_VALUE:
        add_value(p, node->field, node->type, node->data, node->size);
        break;
    default:
        break;
    }
    return 0;
}

void zt_print_value(zt_text *text, const zt_objects *objects, const zt_node *node)
{
    printer p = {.text = text, .objects = objects};
    if (node->kind == ZT_N_TEXT)
        add_quoted(text, node->data, node->size);
    else if (node->kind == ZT_N_BYTES)
        add_hex(&p, node->data, node->size);
    else
        add_value(&p, node->field, node->type, node->data, node->size);
}

/* --------------------------------------------------------------------------------------------------------------- calls */

typedef struct call_printer {
    state s;
    zt_walk walk;
    zt_call_memory in, out;
    zt_memory before, after;
} call_printer;

static void call_printer_init(call_printer *c, zt_text *text, zt_trace *trace, const zt_objects *objects, const zt_call *call,
                              unsigned flags, bool json)
{
    *c = (call_printer){.s.p = {.text = text, .objects = objects, .flags = flags, .json = json, .first = true},
                        .in = {call, ZT_ENTER, trace}, .out = {call, ZT_LEAVE, trace}};
    c->before = zt_memory_of(&c->in);
    c->after = zt_memory_of(&c->out);
    c->walk = (zt_walk){.func = call->func, .words = call->words, .phase = ZT_ENTER, .result = call->result, .memory = &c->before,
                        .visit = print_node, .ctx = &c->s};
}

/* One parameter behind its name. A walk that stops half way leaves brackets open: they are closed. */
static void add_param(call_printer *c, unsigned i)
{
    const zt_field *const f = &c->walk.func->params[i];
    zt_text *const text = c->s.p.text;
    separate(&c->s.p);
    addf(text, c->s.p.json ? "\"%s\":" : "%s=", f->name);
    const size_t start = text->n;
    c->s.named = true;
    if (zt_walk_param(&c->walk, i) < 0)
        c->s.depth = c->s.depth > 64 ? 64 : c->s.depth;
    if (c->s.depth > 0 || text->n == start) { /* hostile arguments: say so in one word */
        text->n = start;
        if (text->at != NULL)
            text->at[start] = '\0';
        add(text, c->s.p.json ? "null" : "?");
        c->s.depth = 0;
    }
    c->s.named = c->s.p.in_array = c->s.p.first = false;
}

static bool is_output(const zt_call *call, const zt_field *f)
{
    return (f->dir & ZT_OUT) && (f->shape == ZT_ONE || f->shape == ZT_ARRAY || f->shape == ZT_BLOB) && call->n_out > 0 &&
           call->words[f->offset] != 0;
}

static void add_outputs(call_printer *c, const zt_call *call, const char *opening, const char *closing)
{
    c->walk.phase = ZT_LEAVE;
    c->walk.memory = &c->after;
    c->walk.before = &c->before;
    bool any = false;
    c->s.p.first = true;
    for (unsigned i = 0; call->returned && i < call->func->n_params; i++) {
        zt_text *const text = c->s.p.text;
        const size_t start = text->n;
        if (!is_output(call, &call->func->params[i]))
            continue;
        const bool first = c->s.p.first;
        if (!any)
            add(text, opening);
        const size_t before = text->n;
        add_param(c, i);
        /* nothing was followed there: the call failed */
        if (text->n >= 1 && (strcmp(text->at + before + strlen(call->func->params[i].name), c->s.p.json ? "null" : "=?") == 0 ||
                             text->at[text->n - 1] == '?')) {
            text->n = start;
            text->at[start] = '\0';
            c->s.p.first = first;
            continue;
        }
        any = true;
    }
    if (any)
        add(c->s.p.text, closing);
}

static void add_duration(zt_text *t, uint64_t ns)
{
    if (ns < 1000)
        addf(t, " <%" PRIu64 "ns>", ns);
    else if (ns < 1000000)
        addf(t, " <%.2fus>", (double)ns / 1e3);
    else if (ns < 1000000000)
        addf(t, " <%.2fms>", (double)ns / 1e6);
    else
        addf(t, " <%.3fs>", (double)ns / 1e9);
}

static bool returns_result(const zt_call *call)
{
    return strcmp(zt_types[call->func->return_type].name, "ze_result_t") == 0;
}

int zt_print_call(zt_text *text, zt_trace *trace, const zt_objects *objects, const zt_call *call, unsigned flags)
{
    call_printer c;
    call_printer_init(&c, text, trace, objects, call, flags, false);
    const bool color = flags & ZT_P_COLOR;
    const bool failed = call->returned && returns_result(call) && call->result != 0 && call->result != 1;
    addf(text, "#%" PRIu64 "  ", call->number);
    if (!(flags & ZT_P_NO_TIME))
        addf(text, "%.6f  ", (double)call->enter_ns / 1e9);
    addf(text, "T%u  %s%s%s(", call->thread, color ? "\033[1m" : "", call->func->name, color ? "\033[0m" : "");
    for (unsigned i = 0; i < call->func->n_params; i++)
        add_param(&c, i);
    add(text, ")");
    if (!call->returned) {
        add(text, " (never returned)");
        return ZT_OK;
    }
    add(text, " = ");
    if (failed && color)
        add(text, "\033[31m");
    if (returns_result(call))
        add(text, zt_result_name(call->result));
    else
        add_value(&c.s.p, NULL, &zt_types[call->func->return_type], &call->result, 8);
    if (failed && color)
        add(text, "\033[0m");
    add_outputs(&c, call, " -> ", "");
    if (!(flags & ZT_P_NO_TIME))
        add_duration(text, call->leave_ns - call->enter_ns);
    if (call->internal)
        add(text, " (by the loader)");
    return ZT_OK;
}

int zt_print_call_json(zt_text *text, zt_trace *trace, const zt_objects *objects, const zt_call *call)
{
    call_printer c;
    call_printer_init(&c, text, trace, objects, call, 0, true);
    addf(text, "{\"call\":%" PRIu64 ",\"time_ns\":%" PRIu64 ",\"thread\":%u,\"function\":\"%s\",\"args\":{", call->number,
         call->enter_ns, call->thread, call->func->name);
    for (unsigned i = 0; i < call->func->n_params; i++)
        add_param(&c, i);
    add(text, "}");
    if (call->internal)
        add(text, ",\"internal\":true");
    if (!call->returned) {
        add(text, ",\"result\":null,\"never_returned\":true}");
        return ZT_OK;
    }
    if (returns_result(call)) {
        addf(text, ",\"result\":\"%s\"", zt_result_name(call->result));
    } else {
        add(text, ",\"result\":");
        add_value(&c.s.p, NULL, &zt_types[call->func->return_type], &call->result, 8);
    }
    add_outputs(&c, call, ",\"out\":{", "}");
    addf(text, ",\"duration_ns\":%" PRIu64 "}", call->leave_ns - call->enter_ns);
    return ZT_OK;
}

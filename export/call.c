/* SPDX-License-Identifier: MIT */
/*
 * The arguments of a call as C expressions: descriptors as compound literals with named members, handles and memory by the names of
 * the program's variables. What cannot be said so is refused.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MOST_BYTES 4096u
#define MOST_DEPTH 40
#define MOST_GIVEN 4096u /* objects that one call gives */

enum context { IN_PARAM, IN_POINTER, IN_ARRAY, IN_STRUCT };

typedef struct writing {
    zx_export *x;
    zx_call *call;
    zx_text text;
    const zt_node *node;
    uint8_t stack[MOST_DEPTH];
    unsigned depth;
    unsigned links[MOST_DEPTH]; /* of the chains that are open */
    unsigned chains;
    int status;
} writing;

/* ------------------------------------------------------------------------------------------------------------ values */

static const char *c_type(const zt_type *type, char *room, size_t size)
{
    if (type->cls == ZT_VOID)
        return "void";
    if (zx_in_headers(type->name) || type->cls == ZT_UINT || type->cls == ZT_INT || type->cls == ZT_FLOAT || type->cls == ZT_CHAR)
        return type->name;
    if (type->cls == ZT_ENUM || type->cls == ZT_FLAGS)
        return "uint32_t";
    if (type->cls == ZT_HANDLE)
        return "void *";
    snprintf(room, size, "newer_%s", type->name);
    return room;
}

void zx_put_enum(zx_text *out, const zt_type *type, uint32_t value)
{
    const char *const name = zt_enum_name(type, value);
    const char *const cast = zx_in_headers(type->name) ? type->name : "uint32_t";
    if (name != NULL && zx_in_headers(name))
        zx_put(out, "%s", name);
    else if (name != NULL)
        zx_put(out, "(%s)0x%" PRIx32 " /* %s */", cast, value, name);
    else
        zx_put(out, "(%s)0x%" PRIx32, cast, value);
}

void zx_put_flags(zx_text *out, const zt_type *type, uint32_t value)
{
    bool first = true;
    for (uint32_t bit = 1; bit != 0; bit <<= 1) {
        if (!(value & bit))
            continue;
        const char *const name = zt_enum_name(type, bit);
        zx_put(out, "%s", first ? "" : " | ");
        first = false;
        if (name != NULL && zx_in_headers(name))
            zx_put(out, "%s", name);
        else
            zx_put(out, "0x%" PRIx32 "%s%s%s", bit, name ? " /* " : "", name ? name : "", name ? " */" : "");
    }
    if (first)
        zx_put(out, "0");
}

static void put_number(zx_text *out, uint64_t value, bool is_signed, unsigned size)
{
    if (is_signed && size == 4)
        zx_put(out, "%" PRId32, (int32_t)value);
    else if (is_signed)
        zx_put(out, "(int64_t)0x%" PRIx64 "ull", value);
    else if (value == UINT64_MAX)
        zx_put(out, "UINT64_MAX");
    else
        zx_put(out, "%" PRIu64 "%s", value, value > INT32_MAX ? "ull" : "");
}

static void put_string(zx_text *out, const char *text, size_t n)
{
    zx_put(out, "\"");
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\' || c == '?' || c < 0x20 || c >= 0x7f)
            zx_put(out, "\\%03o", c);
        else
            zx_put_bytes(out, &c, 1);
    }
    zx_put(out, "\"");
}

static bool is_known_kind(const zt_object *object)
{
    static const char *const kinds[] = {"driver", "device", "context", "queue", "list", "event_pool", "event", "fence"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(object->kind, kinds[i]) == 0)
            return true;
    return false;
}

static int put_handle(writing *w, const zt_type *type, uint64_t value)
{
    char name[64];
    const zt_object *const object = zt_object_of_handle(w->x->names, type, value);
    if (value == 0) {
        zx_put(&w->text, "NULL");
        return 0;
    }
    if (object == NULL || object->by == NULL)
        return zx_refuse(w->x, "#%" PRIu64 " %s uses a handle 0x%" PRIx64 " that no call of the trace gave", w->call->number,
                         w->call->func->name, value);
    if (!is_known_kind(object))
        return zx_refuse(w->x, "#%" PRIu64 " %s is about a %s, which can't be exported yet", w->call->number, w->call->func->name,
                         object->kind);
    zx_object_name(object, name, sizeof(name));
    zx_put(&w->text, "%s", name);
    return 0;
}

bool zx_address(const zx_export *x, uint64_t address, char *out, size_t size)
{
    const zt_object *const object = zt_object_of_address(x->names, address);
    if (object != NULL) {
        const uint64_t offset = address - object->value;
        char name[64];
        zx_object_name(object, name, sizeof(name));
        snprintf(out, size, offset ? "(char *)%s + %" PRIu64 : "%s", name, offset);
        return true;
    }
    for (size_t i = 0; i < x->n_spans; i++)
        if (address >= x->spans[i].start && address < x->spans[i].end) {
            const uint64_t offset = address - x->spans[i].start;
            snprintf(out, size, offset ? "(char *)host_%zu + %" PRIu64 : "host_%zu", i + 1, offset);
            return true;
        }
    snprintf(out, size, "(void *)0x%" PRIx64 "ull /* no memory that the trace knows */", address);
    return false;
}

static int put_value(writing *w, const zt_node *node)
{
    const zt_field *const f = node->field;
    const zt_type *const type = node->type;
    const unsigned top = w->depth > 0 ? w->stack[w->depth - 1] : IN_PARAM;
    const bool inner = (top == IN_POINTER || top == IN_ARRAY) && f->inner != ZT_VALUE;
    const uint8_t shape = inner ? f->inner : top == IN_PARAM || top == IN_STRUCT ? f->shape : ZT_VALUE;
    uint64_t value = 0;
    memcpy(&value, node->data, node->size > 8 ? 8 : node->size);
    char place[96];
    if (shape == ZT_ADDRESS) {
        if (value == 0)
            zx_put(&w->text, "NULL");
        else {
            zx_address(w->x, value, place, sizeof(place));
            zx_put(&w->text, "%s", place);
        }
        return 0;
    }
    if (shape == ZT_OPAQUE || (shape != ZT_VALUE && value != 0) || type->cls == ZT_FUNCTION || type->cls == ZT_POINTER) {
        if (value == 0) {
            zx_put(&w->text, "NULL");
            return 0;
        }
        return zx_refuse(w->x, "#%" PRIu64 " %s: its %s means something to the recorded program only", w->call->number,
                         w->call->func->name, f->name);
    }
    switch (type->cls) {
    case ZT_HANDLE:
        return put_handle(w, type, value);
    case ZT_ENUM:
        zx_put_enum(&w->text, type, (uint32_t)value);
        return 0;
    case ZT_FLAGS:
        zx_put_flags(&w->text, type, (uint32_t)value);
        return 0;
    case ZT_FLOAT: {
        float narrow;
        double wide;
        memcpy(&narrow, node->data, 4);
        memcpy(&wide, &value, 8);
        zx_put(&w->text, "%a", node->size == 4 ? (double)narrow : wide);
        return 0;
    }
    default:
        if (shape != ZT_VALUE)
            zx_put(&w->text, "NULL");
        else
            put_number(&w->text, value, type->cls == ZT_INT, (unsigned)node->size);
        return 0;
    }
}

static int put_blob(writing *w, const void *data, uint64_t size)
{
    if (size > MOST_BYTES)
        return zx_refuse(w->x, "#%" PRIu64 " %s has an argument of %" PRIu64 " bytes", w->call->number, w->call->func->name, size);
    for (uint64_t i = 0; i < size; i++)
        zx_put(&w->text, "%s0x%02x", i ? ", " : "", ((const uint8_t *)data)[i]);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------- newer types */

static void declare(zx_export *x, const zt_type *type)
{
    const size_t index = (size_t)(type - zt_types);
    char room[96];
    if (zx_in_headers(type->name) || x->declared == NULL || x->declared[index])
        return;
    x->declared[index] = 1;
    for (unsigned i = 0; i < type->n_fields; i++)
        if (type->fields[i].shape == ZT_VALUE && zt_types[type->fields[i].type].cls == ZT_STRUCT)
            declare(x, &zt_types[type->fields[i].type]);
    zx_put(&x->types, "typedef struct newer_%s {\n", type->name);
    for (unsigned i = 0; i < type->n_fields; i++) {
        const zt_field *const f = &type->fields[i];
        if (f->shape != ZT_VALUE)
            zx_put(&x->types, "    const void *%s;\n", f->name);
        else if (f->array_len)
            zx_put(&x->types, "    %s %s[%u];\n", c_type(&zt_types[f->type], room, sizeof(room)), f->name, f->array_len);
        else
            zx_put(&x->types, "    %s %s;\n", c_type(&zt_types[f->type], room, sizeof(room)), f->name);
    }
    zx_put(&x->types, "} newer_%s;\n\n", type->name);
}

/* A function that the headers lack is looked up, and called through a pointer of its type. */
static void declare_function(zx_export *x, const zt_func *func)
{
    const size_t index = (size_t)(func - zt_funcs);
    if (zx_in_headers(func->name) || x->looked_up[index])
        return;
    x->looked_up[index] = 1;
    zx_put(&x->functions, "static ze_result_t (*%s)(", func->name);
    for (unsigned i = 0; i < func->n_params; i++) {
        const zt_field *const f = &func->params[i];
        char room[96];
        if (f->shape == ZT_VALUE)
            zx_put(&x->functions, "%s%s", i ? ", " : "", c_type(&zt_types[f->type], room, sizeof(room)));
        else
            zx_put(&x->functions, "%sconst void *", i ? ", " : "");
    }
    zx_put(&x->functions, ");\n");
}

/* ----------------------------------------------------------------------------------------------------------- visitor */

static unsigned at(const writing *w)
{
    return w->depth ? w->stack[w->depth - 1] : IN_PARAM;
}

static int push(writing *w, unsigned context)
{
    if (w->depth >= MOST_DEPTH)
        return zx_refuse(w->x, "#%" PRIu64 " %s: its arguments go too deep", w->call->number, w->call->func->name);
    w->stack[w->depth++] = (uint8_t)context;
    return 0;
}

static void pop(writing *w)
{
    if (w->depth > 0)
        w->depth--;
}

static bool is_zero(const zt_node *node)
{
    const uint8_t *const p = node->data;
    for (uint64_t i = 0; p != NULL && i < node->size; i++)
        if (p[i] != 0)
            return false;
    return true;
}

/* What stands before a member or an element; what is behind it is a comma. */
static void name_member(writing *w, const zt_node *node)
{
    if (at(w) == IN_STRUCT && node->field != NULL)
        zx_put(&w->text, ".%s = ", node->field->name);
}

static void behind(writing *w)
{
    if (at(w) == IN_STRUCT || at(w) == IN_ARRAY)
        zx_put(&w->text, ", ");
}

static int begin_struct(writing *w, const zt_node *node)
{
    char room[96];
    declare(w->x, node->type);
    const char *const type = c_type(node->type, room, sizeof(room));
    if (w->chains > 0 && node->field == NULL) { /* a link: its end is that of the chain */
        zx_put(&w->text, "%s&(%s){", w->links[w->chains - 1]++ ? ".pNext = " : "", type);
    } else if (at(w) == IN_POINTER) {
        zx_put(&w->text, "&(%s){", type);
    } else {
        name_member(w, node);
        zx_put(&w->text, "{");
    }
    return push(w, IN_STRUCT);
}

static void end_struct(writing *w, const zt_node *node)
{
    pop(w);
    if (w->chains > 0 && node->field == NULL)
        return;
    zx_strip(&w->text, ", ");
    if (w->text.n > 0 && w->text.at[w->text.n - 1] == '{')
        zx_put(&w->text, "0");
    zx_put(&w->text, "}");
    behind(w);
}

static int visit(void *ctx, const zt_node *node)
{
    writing *const w = ctx;
    const zt_field *const f = node->field;
    char room[96];
    switch (node->kind) {
    case ZT_N_TARGET:
        break;
    case ZT_N_POINTER:
        if (w->chains == 0 || f == NULL || f->shape != ZT_PNEXT)
            name_member(w, node);
        w->status = push(w, IN_POINTER);
        break;
    case ZT_N_POINTER_END:
        pop(w);
        if (w->chains == 0 || f == NULL || f->shape != ZT_PNEXT)
            behind(w);
        break;
    case ZT_N_ARRAY:
        if (at(w) == IN_POINTER)
            zx_put(&w->text, "(%s[]){", f->inner != ZT_VALUE ? "void *" : c_type(node->type, room, sizeof(room)));
        else {
            name_member(w, node);
            zx_put(&w->text, "{");
        }
        w->status = push(w, IN_ARRAY);
        break;
    case ZT_N_ARRAY_END:
        pop(w);
        zx_strip(&w->text, ", ");
        zx_put(&w->text, "%s}", w->text.n > 0 && w->text.at[w->text.n - 1] == '{' ? "0" : "");
        behind(w);
        break;
    case ZT_N_STRUCT:
        w->status = begin_struct(w, node);
        break;
    case ZT_N_STRUCT_END:
        end_struct(w, node);
        break;
    case ZT_N_CHAIN:
        name_member(w, node);
        if (w->chains >= MOST_DEPTH)
            w->status = -1;
        else
            w->links[w->chains++] = 0;
        break;
    case ZT_N_CHAIN_END:
        zx_strip(&w->text, ", ");
        for (unsigned i = w->links[--w->chains]; i > 0; i--)
            zx_put(&w->text, "}");
        behind(w);
        break;
    case ZT_N_NULL:
        if (at(w) == IN_STRUCT)
            break;
        zx_put(&w->text, "NULL");
        behind(w);
        break;
    case ZT_N_VALUE:
        if (at(w) == IN_STRUCT && is_zero(node))
            break;
        name_member(w, node);
        if (at(w) == IN_POINTER && f->inner == ZT_VALUE)
            zx_put(&w->text, "&(%s){", c_type(node->type, room, sizeof(room)));
        w->status = put_value(w, node);
        if (at(w) == IN_POINTER && f->inner == ZT_VALUE)
            zx_put(&w->text, "}");
        behind(w);
        break;
    case ZT_N_TEXT:
        name_member(w, node);
        put_string(&w->text, node->data, node->size);
        behind(w);
        break;
    case ZT_N_BYTES:
        if (at(w) == IN_STRUCT && is_zero(node))
            break;
        name_member(w, node);
        zx_put(&w->text, at(w) == IN_POINTER ? "(unsigned char[]){" : "{");
        w->status = put_blob(w, node->data, node->size);
        zx_put(&w->text, "}");
        behind(w);
        break;
    default:
        w->status = zx_refuse(w->x, "#%" PRIu64 " %s: what its argument %s points to is not in the trace", w->call->number,
                              w->call->func->name, f ? f->name : "pNext");
        break;
    }
    return w->status != 0 || w->text.failed ? -ZT_E_USAGE : 0;
}

/* ------------------------------------------------------------------------------------------------------------- calls */

/* Where a call puts what it gives. @return false if the parameter is none of these. */
static bool output(writing *w, const zt_field *f, const zt_call *from)
{
    char name[64], room[96];
    const bool only_out = (f->dir & ZT_OUT) && f->shape == ZT_ONE;
    const uint32_t index = (uint32_t)(w->call - w->x->calls);
    if (!only_out || from->words[f->offset] == 0)
        return false;
    for (size_t i = 0; i < w->x->n_objects; i++)
        if (w->x->objects[i].creator == index && (f->role == ZT_R_CREATE || f->role == ZT_R_ALLOC || f->role == ZT_R_GET)) {
            snprintf(name, sizeof(name), "%s_%u", w->x->objects[i].base->kind, w->x->objects[i].base->generation);
            zx_put(&w->text, "&%s", name);
            return true;
        }
    if (f->dir & ZT_IN)
        return false;
    if (f->inner != ZT_VALUE || zt_types[f->type].cls == ZT_HANDLE)
        zx_put(&w->text, "&(void *){NULL}");
    else
        zx_put(&w->text, "&(%s){0}", c_type(&zt_types[f->type], room, sizeof(room)));
    return true;
}

/* Which element of the array that the call gave is which object. */
static void find_elements(zx_export *x, const zx_call *call, const zt_call *from)
{
    zt_call_memory out = {.call = from, .phase = ZT_LEAVE, .trace = x->trace};
    const zt_memory memory = zt_memory_of(&out);
    for (unsigned i = 0; i < call->func->n_params; i++) {
        const zt_field *const f = &call->func->params[i];
        if (f->role != ZT_R_GET || f->shape != ZT_ARRAY)
            continue;
        for (uint32_t k = 0; k < MOST_GIVEN; k++) {
            const void *const at = memory.at(memory.ctx, from->words[f->offset] + k * 8, 8);
            uint64_t value;
            if (at == NULL)
                break;
            memcpy(&value, at, 8);
            for (size_t o = 0; o < x->n_objects; o++)
                if (x->objects[o].creator == (uint32_t)(call - x->calls) && x->objects[o].base->value == value)
                    x->objects[o].element = k;
        }
    }
}

int zx_arguments(zx_export *x, zx_call *call, const zt_call *from)
{
    const zt_func *const func = call->func;
    zt_call_memory in = {.call = from, .phase = ZT_ENTER, .trace = x->trace};
    const zt_memory memory = zt_memory_of(&in);
    if (x->declared == NULL)
        x->declared = calloc(zt_n_types + 1, 1);
    if (x->looked_up == NULL)
        x->looked_up = calloc(zt_n_funcs + 1, 1);
    call->args = calloc(func->n_params + 1u, sizeof(*call->args));
    if (x->declared == NULL || x->looked_up == NULL || call->args == NULL)
        return zx_no_memory(x);
    if (func->kind == ZT_K_GET || func->kind == ZT_K_INIT)
        find_elements(x, call, from);
    if (func->kind == ZT_K_INIT && !zx_in_headers(func->name))
        return ZT_OK; /* there is nothing to look it up with: an older one stands for it */
    if (strcmp(zt_types[func->return_type].name, "ze_result_t") != 0)
        return zx_refuse(x, "#%" PRIu64 " %s gives no result, and can't be exported yet", call->number, func->name);
    declare_function(x, func);
    for (unsigned i = 0; i < func->n_params; i++) {
        writing w = {.x = x, .call = call};
        const zt_walk walk = {.func = func, .words = from->words, .phase = ZT_ENTER, .memory = &memory, .visit = visit, .ctx = &w};
        const bool array_out = (func->kind == ZT_K_GET || func->kind == ZT_K_INIT) && func->params[i].shape == ZT_ARRAY && func->params[i].role == ZT_R_GET;
        if (array_out) {
            const int64_t n = zt_eval_param(&walk, &func->params[i].count);
            if (n > MOST_GIVEN)
                return zx_refuse(x, "#%" PRIu64 " %s asks for %lld objects", call->number, func->name, (long long)n);
            call->room = n > 0 ? (uint32_t)n : 1;
            call->element = zt_types[func->params[i].type].name;
            zx_put(&w.text, "all");
        }
        if (!array_out && !output(&w, &func->params[i], from) && zt_walk_param(&walk, i) < 0) {
            free(w.text.at);
            return w.text.failed ? zx_no_memory(x)
                   : w.status    ? w.status
                                 : zx_refuse(x, "#%" PRIu64 " %s: its arguments can't be followed", call->number, func->name);
        }
        call->args[i] = w.text.at;
        if (w.text.failed)
            return zx_no_memory(x);
    }
    return ZT_OK;
}

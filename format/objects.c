/* SPDX-License-Identifier: MIT */
/*
 * Handles and addresses by kind and generation, from the roles in the table alone. A handle value may name a driver's object of
 * one kind and, later, another; lookups go by (kind, value) and the newest generation wins.
 */
#include <stdlib.h>
#include <string.h>
#include <stdio.h>

#include "format.h"

typedef struct entry {
    uint64_t value;
    uint16_t kind; /* base type of the handle; ADDRESS for allocations */
    zt_object *object;
} entry;

#define ADDRESS UINT16_MAX

struct zt_objects {
    const zt_object **list;
    size_t n_list, list_room;
    entry *table; /* open addressing by (kind, value) */
    size_t n_table, table_room;
    zt_object **allocs;  /* live, sorted by base */
    size_t n_allocs, allocs_room;
    zt_object **freed;   /* newest last */
    size_t n_freed, freed_room;
    uint32_t *generations; /* by type index; the last one is for allocations */
};

zt_objects *zt_objects_new(void)
{
    zt_objects *const o = calloc(1, sizeof(*o));
    if (o != NULL && (o->generations = calloc(zt_n_types + 1, sizeof(*o->generations))) == NULL) {
        free(o);
        return NULL;
    }
    return o;
}

void zt_objects_free(zt_objects *o)
{
    if (o == NULL)
        return;
    for (size_t i = 0; i < o->n_list; i++)
        free((void *)(uintptr_t)o->list[i]);
    free(o->list);
    free(o->table);
    free(o->allocs);
    free(o->freed);
    free(o->generations);
    free(o);
}

static bool room_for_one(void *list, size_t *room, size_t n, size_t size)
{
    if (n < *room)
        return true;
    const size_t more = *room ? *room * 2 : 64;
    void *const grown = realloc(*(void **)list, more * size);
    if (grown == NULL)
        return false;
    *(void **)list = grown;
    *room = more;
    return true;
}

static size_t place_of(const zt_objects *o, uint16_t kind, uint64_t value)
{
    size_t at = (size_t)((value ^ ((uint64_t)kind << 48)) * 0x9e3779b97f4a7c15ull >> 20) & (o->table_room - 1);
    while (o->table[at].object != NULL && (o->table[at].kind != kind || o->table[at].value != value))
        at = (at + 1) & (o->table_room - 1);
    return at;
}

static entry *table_entry(zt_objects *o, uint16_t kind, uint64_t value)
{
    if (o->n_table * 2 >= o->table_room) {
        zt_objects bigger = {.table_room = o->table_room ? o->table_room * 2 : 256};
        bigger.table = calloc(bigger.table_room, sizeof(*bigger.table));
        if (bigger.table == NULL)
            return NULL;
        for (size_t i = 0; i < o->table_room; i++)
            if (o->table[i].object != NULL)
                bigger.table[place_of(&bigger, o->table[i].kind, o->table[i].value)] = o->table[i];
        free(o->table);
        o->table = bigger.table;
        o->table_room = bigger.table_room;
    }
    entry *const e = &o->table[place_of(o, kind, value)];
    if (e->object == NULL) {
        e->kind = kind;
        e->value = value;
    }
    return e;
}

static zt_object *add_object(zt_objects *o, const char *kind, size_t generation_of, uint64_t value, uint64_t call, const zt_func *by)
{
    zt_object *const object = calloc(1, sizeof(*object));
    if (object == NULL || !room_for_one(&o->list, &o->list_room, o->n_list, sizeof(*o->list))) {
        free(object);
        return NULL;
    }
    *object = (zt_object){.index = (uint32_t)o->n_list, .kind = kind, .generation = ++o->generations[generation_of], .value = value, .created = call, .by = by};
    o->list[o->n_list++] = object;
    return object;
}

static zt_object *set_handle(zt_objects *o, const zt_type *type, uint64_t value, uint64_t call, const zt_func *by, bool fresh)
{
    if (value == 0 || type->object == NULL)
        return NULL;
    entry *const e = table_entry(o, type->base, value);
    if (e == NULL)
        return NULL;
    if (e->object != NULL && e->object->destroyed == 0 && !fresh)
        return e->object;
    zt_object *const object = add_object(o, type->object, type->base, value, call, by);
    if (object != NULL) {
        o->n_table += e->object == NULL;
        e->object = object;
    }
    return object;
}

static size_t alloc_above(const zt_objects *o, uint64_t address)
{
    size_t low = 0, high = o->n_allocs;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (o->allocs[mid]->value <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void end_alloc(zt_objects *o, size_t index, uint64_t call)
{
    zt_object *const object = o->allocs[index];
    object->destroyed = call;
    memmove(o->allocs + index, o->allocs + index + 1, (o->n_allocs - index - 1) * sizeof(*o->allocs));
    o->n_allocs--;
    if (room_for_one(&o->freed, &o->freed_room, o->n_freed, sizeof(*o->freed)))
        o->freed[o->n_freed++] = object;
}

static void add_alloc(zt_objects *o, uint64_t base, uint64_t size, uint64_t call, const zt_func *by)
{
    size_t at = alloc_above(o, base);
    if (at > 0 && o->allocs[at - 1]->value == base) /* its free was not seen */
        end_alloc(o, --at, call);
    zt_object *const object = add_object(o, "mem", zt_n_types, base, call, by);
    if (object == NULL || !room_for_one(&o->allocs, &o->allocs_room, o->n_allocs, sizeof(*o->allocs)))
        return;
    object->size = size;
    memmove(o->allocs + at + 1, o->allocs + at, (o->n_allocs - at) * sizeof(*o->allocs));
    o->allocs[at] = object;
    o->n_allocs++;
}

typedef struct outputs {
    zt_objects *objects;
    const zt_call *call;
    const char *label; /* of what is created, "" */
} outputs;

/* A name in the descriptor, such as a kernel's: what would be no word in a line or in JSON is left out. */
static int see_name(void *ctx, const zt_node *node)
{
    char *const label = ctx;
    if (node->kind != ZT_N_TEXT || node->field == NULL || node->field->shape != ZT_STRING || label[0] != '\0' ||
        strstr(node->field->name, "Name") == NULL)
        return 0;
    size_t n = 0;
    for (uint64_t i = 0; i < node->size && n + 1 < sizeof(((zt_object *)0)->label); i++) {
        const char c = ((const char *)node->data)[i];
        label[n++] = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("_.$:<>@-", c) != NULL ? c : '?';
    }
    label[n] = '\0';
    return 0;
}

static int see_output(void *ctx, const zt_node *node)
{
    const outputs *const s = ctx;
    if (node->kind != ZT_N_VALUE || node->field == NULL || node->size != 8)
        return 0;
    uint64_t value;
    memcpy(&value, node->data, sizeof(value));
    if (node->type->cls == ZT_HANDLE && value != 0) {
        const bool created = node->field->role == ZT_R_CREATE;
        zt_object *const o = set_handle(s->objects, node->type, value, s->call->number, s->call->func, created);
        if (o != NULL && created && s->label[0] != '\0')
            snprintf(o->label, sizeof(o->label), "%s", s->label);
    } else if (node->field->role == ZT_R_ALLOC && s->call->result == 0) {
        const zt_field *const size = zt_param_by_role(s->call->func, ZT_R_SIZE);
        add_alloc(s->objects, value, size ? zt_word(s->call, size) : 0, s->call->number, s->call->func);
    }
    return 0;
}

int zt_objects_event(zt_objects *o, zt_trace *trace, const zt_event *event)
{
    const zt_call *const call = event->call;
    if (event->phase == ZT_ENTER) {
        for (unsigned i = 0; i < call->func->n_params; i++) {
            const zt_field *const f = &call->func->params[i];
            if (f->shape == ZT_VALUE && zt_types[f->type].cls == ZT_HANDLE && zt_word(call, f) != 0) {
                zt_object *const object = set_handle(o, &zt_types[f->type], zt_word(call, f), call->number, NULL, false);
                if (f->role == ZT_R_DESTROY && object != NULL)
                    object->destroyed = call->number;
            } else if (f->role == ZT_R_FREE) {
                const size_t at = alloc_above(o, zt_word(call, f));
                if (at > 0 && o->allocs[at - 1]->value == zt_word(call, f))
                    end_alloc(o, at - 1, call->number);
            }
        }
        return ZT_OK;
    }
    if (!call->returned)
        return ZT_OK;
    const zt_type *const returns = &zt_types[call->func->return_type];
    if (returns->cls == ZT_HANDLE)
        set_handle(o, returns, (uint64_t)call->result, call->number, call->func, false);
    zt_call_memory in = {.call = call, .phase = ZT_ENTER, .trace = trace}, out = {.call = call, .phase = ZT_LEAVE, .trace = trace};
    const zt_memory before = zt_memory_of(&in), after = zt_memory_of(&out);
    char label[sizeof(((zt_object *)0)->label)] = "";
    const zt_field *const desc = call->func->kind == ZT_K_CREATE ? zt_param_by_role(call->func, ZT_R_DESC) : NULL;
    if (desc != NULL) {
        const zt_walk names = {.func = call->func, .words = call->words, .phase = ZT_ENTER, .memory = &before, .visit = see_name, .ctx = label};
        zt_walk_param(&names, (unsigned)(desc - call->func->params));
    }
    outputs seen = {o, call, label};
    const zt_walk walk = {.func = call->func, .words = call->words, .phase = ZT_LEAVE, .result = call->result, .memory = &after,
                          .before = &before, .visit = see_output, .ctx = &seen};
    const int status = zt_walk_call(&walk);
    return status < 0 ? -status : ZT_OK;
}

const zt_object *zt_object_of_handle(const zt_objects *o, const zt_type *type, uint64_t handle)
{
    if (o == NULL || o->table_room == 0 || handle == 0 || type->cls != ZT_HANDLE)
        return NULL;
    return o->table[place_of(o, type->base, handle)].object;
}

const zt_object *zt_object_of_address(const zt_objects *o, uint64_t address)
{
    if (o == NULL || address == 0)
        return NULL;
    const size_t at = alloc_above(o, address);
    if (at > 0) {
        const zt_object *const a = o->allocs[at - 1];
        if (address - a->value < a->size || address == a->value)
            return a;
    }
    for (size_t i = o->n_freed; i > 0 && i + 4096 > o->n_freed; i--)
        if (address >= o->freed[i - 1]->value && address - o->freed[i - 1]->value < o->freed[i - 1]->size)
            return o->freed[i - 1];
    return NULL;
}

const zt_object *zt_objects_put(zt_objects *o, const zt_type *type, uint64_t value, uint64_t size, uint32_t generation)
{
    zt_object *object = NULL;
    if (type != NULL)
        object = set_handle(o, type, value, 0, NULL, true);
    else if (add_alloc(o, value, size, 0, NULL), o->n_list > 0)
        object = (zt_object *)(uintptr_t)o->list[o->n_list - 1];
    if (object != NULL)
        object->generation = generation;
    return object;
}

size_t zt_objects_list(const zt_objects *o, const zt_object *const **list)
{
    *list = o->list;
    return o->n_list;
}

/* SPDX-License-Identifier: MIT */
/* Points at which a replay does more than was recorded: their grammar, and what of the trace they name. */
#include "internal.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool number_after_hash(const char **text, uint64_t *number)
{
    char *end;
    if (**text != '#' || (*text)[1] < '0' || (*text)[1] > '9')
        return false;
    *number = strtoull(*text + 1, &end, 10);
    *text = end;
    return *number > 0;
}

static bool add_point(zr_points *p, zr_point point)
{
    size_t room = p->room;
    zr_point *list = p->list;
    if (!zr_grow((void **)&list, p->n, &room, sizeof(*list)))
        return false;
    p->list = list;
    p->room = room;
    p->list[p->n++] = point;
    return true;
}

/* Whether the object of a sync is there at the call: made before it, or by it if the wait comes behind, and not yet gone. */
static bool is_there(const zr_plan *plan, const zr_point *point, uint64_t call)
{
    if (point->object == ZR_NONE || point->of != 0)
        return true;
    const zr_object *const o = &plan->objects.objects[point->object];
    return point->after ? o->created <= call && (o->destroyed == 0 || o->destroyed > call)
                        : o->created < call && (o->destroyed == 0 || o->destroyed >= call);
}

/* SEL: #N, a glob, or a glob with [k]. @return how many calls it stands for, also if some of them are no places for the point. */
static size_t select_calls(const zr_plan *plan, const char *sel, size_t length, zr_points *points, zr_point point)
{
    char pattern[160];
    uint64_t number = 0, nth = 0;
    size_t found = 0, seen = 0;
    if (length == 0 || length >= sizeof(pattern))
        return 0;
    memcpy(pattern, sel, length);
    pattern[length] = '\0';
    const char *text = pattern;
    const bool by_number = number_after_hash(&text, &number) && *text == '\0';
    char *const bracket = by_number ? NULL : strrchr(pattern, '[');
    if (bracket != NULL && pattern[length - 1] == ']') {
        char *end;
        nth = strtoull(bracket + 1, &end, 10);
        if (*end != ']' || nth == 0)
            return 0;
        *bracket = '\0';
    }
    for (size_t i = 0; i < plan->n_calls; i++) {
        const zr_call *const call = &plan->calls[i];
        if (call->flags & ZR_SKIP)
            continue;
        if (by_number ? call->number != number : fnmatch(pattern, call->func->name, 0) != 0)
            continue;
        if (point.device && zr_submits_to(plan, call) == ZR_NONE)
            continue;
        if (nth != 0 && ++seen != nth)
            continue;
        point.call = call->number;
        found++;
        if (is_there(plan, &point, call->number))
            add_point(points, point);
    }
    return found;
}

static bool find_object(const zr_plan *plan, const char *text, size_t length, uint32_t *object)
{
    char name[64];
    for (uint32_t i = 0; i < plan->objects.n_objects; i++) {
        zr_object_name(&plan->objects, i, name, sizeof(name));
        if (strlen(name) == length && memcmp(name, text, length) == 0) {
            *object = i;
            return true;
        }
    }
    return false;
}

static bool names_list(const zr_call *call, uint32_t list)
{
    for (uint32_t i = 0; i < call->n_fixes; i++)
        if (call->fixes[i].kind == ZR_FIX_OBJECT && call->fixes[i].index == list)
            return true;
    return false;
}

static bool parse_time(const char *text, uint64_t *ns)
{
    char *end;
    const double value = strtod(text, &end);
    const double factor = strcmp(end, "s") == 0 || *end == '\0' ? 1e9 : strcmp(end, "ms") == 0 ? 1e6 : strcmp(end, "us") == 0 ? 1e3
                          : strcmp(end, "ns") == 0                                             ? 1
                                                                                                : 0;
    if (end == text || factor == 0 || value < 0 || value * factor > 1e12)
        return false;
    *ns = (uint64_t)(value * factor);
    return true;
}

#define WANTED "sync@before:SEL, sync@after:SEL, sync(OBJECT)@..., gate@#A..#B, hold@#A..#B, delay@SEL:TIME or delay(device)@SEL:TIME"

/* ------------------------------------------------------------------------------------------------------------ syncs */

static bool refuse(char *error, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool refuse(char *error, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, size, format, args);
    va_end(args);
    return false;
}

/* "@2" behind a command. */
static bool execution_after_at(const char **text, uint32_t *execution)
{
    char *end;
    *execution = 1;
    if (**text != '@')
        return true;
    if ((*text)[1] < '0' || (*text)[1] > '9')
        return false;
    errno = 0;
    const unsigned long long number = strtoull(*text + 1, &end, 10);
    if (errno != 0 || number == 0 || number >= UINT32_MAX)
        return false;
    *execution = (uint32_t)number;
    *text = end;
    return true;
}

/* What a sync for a call waits for: the queue or immediate list on which a submit runs, or the command of an append in its execution. */
static bool find_carrier(const zr_plan *plan, zr_point *point, char *error, size_t size)
{
    const unsigned long long number = point->of;
    size_t i = zr_find_call(plan, point->of);
    uint32_t seen = 0;
    if (i == SIZE_MAX)
        return refuse(error, size, "sync(#%llu): the trace has no call #%llu", number, number);
    const zr_call *const call = &plan->calls[i];
    const uint32_t list = call->func->kind == ZT_K_APPEND ? zr_object_of_role(call, ZT_R_LIST) : ZR_NONE;
    point->object = zr_submits_to(plan, call);
    seen += point->object != ZR_NONE;
    for (; point->object == ZR_NONE && list != ZR_NONE && i < plan->n_calls; i++)
        if (plan->calls[i].func->kind == ZT_K_EXECUTE && names_list(&plan->calls[i], list) && ++seen == point->execution)
            point->object = zr_submits_to(plan, &plan->calls[i]);
    if (seen == 0)
        return refuse(error, size, "sync(#%llu): #%llu %s gives the device nothing to do", number, number, call->func->name);
    if (seen < point->execution)
        return refuse(error, size, "sync(#%llu@%u): #%llu has %u execution%s, not %u", number, point->execution, number, seen,
                      seen == 1 ? "" : "s", point->execution);
    return true;
}

/* The host can wait for a queue, an immediate list and an event. */
static bool can_wait_for(const zr_object *o)
{
    const char *const kind = zt_types[o->type].object;
    return kind != NULL && (strcmp(kind, "queue") == 0 || strcmp(kind, "event") == 0 || (strcmp(kind, "list") == 0 && o->immediate));
}

static bool sync_object(const zr_plan *plan, const char *text, size_t length, zr_point *point, char *error, size_t size)
{
    const char *at = text;
    if (number_after_hash(&at, &point->of)) {
        if (!execution_after_at(&at, &point->execution) || at != text + length)
            return refuse(error, size, "sync wants a call or command as #12 or #12@2, not '%.*s'", (int)length, text);
        return find_carrier(plan, point, error, size);
    }
    if (!find_object(plan, text, length, &point->object))
        return refuse(error, size, "sync wants a queue, list, event or command of the trace, but '%.*s' is none", (int)length, text);
    if (!can_wait_for(&plan->objects.objects[point->object]))
        return refuse(error, size, "the host can wait for a queue, an immediate list or an event, or for a command as sync(#12), but not for '%.*s'",
                      (int)length, text);
    return true;
}

/* Why none of the calls is a place for the sync. */
static bool never_there(const zr_plan *plan, const zr_point *point, const char *text, char *error, size_t size)
{
    if (point->object == ZR_NONE)
        return refuse(error, size, "not enough memory for %s", text);
    const zr_object *const o = &plan->objects.objects[point->object];
    char name[64], gone[64] = "";
    zr_object_name(&plan->objects, point->object, name, sizeof(name));
    if (o->destroyed != 0)
        snprintf(gone, sizeof(gone), " and gone with #%llu", (unsigned long long)o->destroyed);
    return refuse(error, size, "%s can't be had: %s is made by #%llu%s", text, name, (unsigned long long)o->created, gone);
}

static bool parse_sync(const zr_plan *plan, const char *text, const char *open, const char *at, zr_points *points, char *error, size_t size)
{
    zr_point point = {.object = ZR_NONE, .kind = ZR_P_SYNC, .execution = 1};
    const char *const rest = at + 1;
    const size_t before = points->n;
    if (open != NULL && !sync_object(plan, open + 1, (size_t)(at - open) - 2, &point, error, size))
        return false;
    if (strncmp(rest, "before:", 7) != 0 && strncmp(rest, "after:", 6) != 0)
        return refuse(error, size, "an injection is " WANTED ", not '%s'", text);
    point.after = rest[0] == 'a';
    const char *const sel = strchr(rest, ':') + 1;
    if (select_calls(plan, sel, strlen(sel), points, point) == 0)
        return refuse(error, size, "'%s' matches no call of the trace; #N, a function or a pattern such as zeContextEvict* is wanted", sel);
    return points->n > before || never_there(plan, &point, text, error, size);
}

/* ------------------------------------------------------------------------------------------------------------ others */

static bool parse_two_calls(const char *text, const char *rest, zr_points *points, char *error, size_t size)
{
    zr_point point = {.object = ZR_NONE, .kind = text[0] == 'g' ? ZR_P_GATE : ZR_P_HOLD, .execution = 1};
    bool ok = number_after_hash(&rest, &point.call) && (point.kind == ZR_P_HOLD || execution_after_at(&rest, &point.execution)) &&
              strncmp(rest, "..", 2) == 0;
    rest += ok ? 2 : 0;
    if (!ok || !number_after_hash(&rest, &point.other) || *rest != '\0')
        return refuse(error, size, "%.4s wants two calls, as %.4s@#40..#41, not '%s'", text, text, text);
    return add_point(points, point);
}

static bool parse_delay(const zr_plan *plan, const char *text, const char *rest, bool device, zr_points *points, char *error, size_t size)
{
    zr_point point = {.object = ZR_NONE, .kind = ZR_P_DELAY, .device = device};
    const char *const colon = strrchr(rest, ':');
    if (colon == NULL || !parse_time(colon + 1, &point.ns))
        return refuse(error, size, "an injection is " WANTED ", not '%s'", text);
    if (select_calls(plan, rest, (size_t)(colon - rest), points, point) > 0)
        return true;
    return refuse(error, size, "'%.*s' matches no call of the trace%s", (int)(colon - rest), rest, device ? " that gives the device work" : "");
}

bool zr_inject_parse(const zr_plan *plan, const char *text, zr_points *points, char *error, size_t size)
{
    const char *open = strchr(text, '('), *const close = open ? strstr(open, ")@") : NULL;
    const char *const at = close ? close + 1 : strchr(text, '@');
    if (open != NULL && at != NULL && open > at)
        open = NULL;
    const size_t word = open ? (size_t)(open - text) : at ? (size_t)(at - text) : 0;
    if (at != NULL && (open == NULL || at[-1] == ')')) {
        if (word == 4 && (memcmp(text, "gate", 4) == 0 || memcmp(text, "hold", 4) == 0) && open == NULL)
            return parse_two_calls(text, at + 1, points, error, size);
        if (word == 4 && memcmp(text, "sync", 4) == 0)
            return parse_sync(plan, text, open, at, points, error, size);
        if (word == 5 && memcmp(text, "delay", 5) == 0 && (open == NULL || strncmp(open, "(device)@", 9) == 0))
            return parse_delay(plan, text, at + 1, open != NULL, points, error, size);
    }
    return refuse(error, size, "an injection is " WANTED ", not '%s'", text);
}

bool zr_point_object(const zr_plan *plan, const zr_point *point, char *name, size_t size)
{
    if (point->object == ZR_NONE)
        return false;
    zr_object_name(&plan->objects, point->object, name, size);
    return true;
}

void zr_points_free(zr_points *points)
{
    free(points->list);
    *points = (zr_points){0};
}

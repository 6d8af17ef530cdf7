/* SPDX-License-Identifier: MIT */
/* Points at which a replay does more than was recorded: their grammar, and the waits and delays among them. */
#include "internal.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* SEL: #N, a glob, or a glob with [k]. @return how many calls it stands for. */
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
        if (nth != 0 && ++seen != nth)
            continue;
        point.call = call->number;
        found += add_point(points, point);
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

/* The queue or immediate list on which the command of an append runs first. */
static bool find_carrier(const zr_plan *plan, uint64_t number, uint32_t *object)
{
    uint32_t list = ZR_NONE;
    for (size_t i = 0; i < plan->n_calls; i++) {
        const zr_call *const call = &plan->calls[i];
        if (call->number == number && call->func->kind == ZT_K_APPEND)
            list = zr_object_of_role(call, ZT_R_LIST);
        if (call->number == number && call->func->kind == ZT_K_EXECUTE)
            return (*object = zr_object_of_role(call, ZT_R_QUEUE)) != ZR_NONE;
        if (list != ZR_NONE && plan->objects.objects[list].immediate)
            return (*object = list), true;
        if (list == ZR_NONE || call->func->kind != ZT_K_EXECUTE)
            continue;
        for (uint32_t k = 0; k < call->n_fixes; k++)
            if (call->fixes[k].kind == ZR_FIX_OBJECT && call->fixes[k].index == list)
                return (*object = zr_object_of_role(call, ZT_R_QUEUE)) != ZR_NONE;
    }
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

#define WANTED "sync@before:SEL, sync@after:SEL, sync(OBJECT)@..., gate@#A..#B, hold@#A..#B or delay@SEL:TIME"

bool zr_inject_parse(const zr_plan *plan, const char *text, zr_points *points, char *error, size_t size)
{
    zr_point point = {.object = ZR_NONE};
    const char *const at = strchr(text, '@');
    const char *open = at ? memchr(text, '(', (size_t)(at - text)) : NULL;
    const size_t word = open ? (size_t)(open - text) : at ? (size_t)(at - text) : 0;
    if (at == NULL || (open != NULL && at[-1] != ')')) {
        snprintf(error, size, "an injection is " WANTED ", not '%s'", text);
        return false;
    }
    const char *rest = at + 1;
    if (word == 4 && (memcmp(text, "gate", 4) == 0 || memcmp(text, "hold", 4) == 0) && open == NULL) {
        point.kind = text[0] == 'g' ? ZR_P_GATE : ZR_P_HOLD;
        point.execution = 1;
        bool ok = number_after_hash(&rest, &point.call);
        if (ok && *rest == '@')
            point.execution = (uint32_t)strtoul(rest + 1, (char **)(uintptr_t)&rest, 10);
        ok = ok && strncmp(rest, "..", 2) == 0;
        rest += ok ? 2 : 0;
        if (!ok || !number_after_hash(&rest, &point.other) || *rest != '\0') {
            snprintf(error, size, "%.4s wants two calls, as %.4s@#40..#41, not '%s'", text, text, text);
            return false;
        }
        return add_point(points, point);
    }
    if (word == 4 && memcmp(text, "sync", 4) == 0) {
        point.kind = ZR_P_SYNC;
        if (open != NULL) {
            const char *name = open + 1;
            uint64_t number;
            const size_t length = (size_t)(at - open) - 2;
            const bool by_number = *name == '#' && number_after_hash(&name, &number);
            if (by_number ? !find_carrier(plan, number, &point.object) : !find_object(plan, open + 1, length, &point.object)) {
                snprintf(error, size, "sync wants a queue, list, event or command of the trace, but '%.*s' is none", (int)length, open + 1);
                return false;
            }
        }
        if (strncmp(rest, "before:", 7) == 0 || strncmp(rest, "after:", 6) == 0) {
            point.after = rest[0] == 'a';
            const char *const sel = strchr(rest, ':') + 1;
            if (select_calls(plan, sel, strlen(sel), points, point) > 0)
                return true;
            snprintf(error, size, "'%s' matches no call of the trace; #N, a function or a pattern such as zeContextEvict* is wanted", sel);
            return false;
        }
    } else if (word == 5 && memcmp(text, "delay", 5) == 0 && (open == NULL || strncmp(open, "(device)@", 9) == 0)) {
        point.kind = ZR_P_DELAY;
        const char *const colon = strrchr(rest, ':');
        if (colon != NULL && parse_time(colon + 1, &point.ns)) {
            if (select_calls(plan, rest, (size_t)(colon - rest), points, point) > 0)
                return true;
            snprintf(error, size, "'%.*s' matches no call of the trace", (int)(colon - rest), rest);
            return false;
        }
    }
    snprintf(error, size, "an injection is " WANTED ", not '%s'", text);
    return false;
}

void zr_points_free(zr_points *points)
{
    free(points->list);
    *points = (zr_points){0};
}

/* ------------------------------------------------------------------------------------------------------------ making */

static void wait_for(zr_run *run, const zr_call *call, uint32_t index)
{
    const zr_object *const o = &run->plan->objects.objects[index];
    const char *const kind = zt_types[o->type].object;
    int64_t result;
    if (o->live == 0)
        return;
    atomic_fetch_add(&run->shared->progress, 1);
    if (kind != NULL && strcmp(kind, "event") == 0)
        result = zr_call_by_name(run, "zeEventHostSynchronize", (const uint64_t[]){o->live, run->options->timeout_ns});
    else
        result = zr_sync_object(run, index, run->options->timeout_ns);
    if (result == ZR_NOT_READY) {
        char name[64];
        zr_object_name(&run->plan->objects, index, name, sizeof(name));
        zr_stop(run, ZR_DIFFERS, "the wait for %s that was injected at call #%llu %s did not end: the device waits for the host, which is there",
                name, (unsigned long long)call->number, call->func->name);
    }
}

void zr_inject(zr_run *run, const zr_call *call, bool after)
{
    const zr_options *const o = run->options;
    for (size_t i = 0; i < o->n_points && !atomic_load(&run->stop); i++) {
        const zr_point *const p = &o->points[i];
        if (p->call != call->number || p->after != after)
            continue;
        __atomic_add_fetch(&run->report->injected, 1, __ATOMIC_RELAXED);
        if (p->kind == ZR_P_DELAY) {
            nanosleep(&(struct timespec){(time_t)(p->ns / 1000000000u), (long)(p->ns % 1000000000u)}, NULL);
        } else if (p->kind == ZR_P_SYNC && p->object != ZR_NONE) {
            wait_for(run, call, p->object);
        } else if (p->kind == ZR_P_SYNC) {
            zr_objects *const objects = &run->plan->objects;
            for (uint32_t k = 0; k < objects->n_objects; k++) {
                const char *const kind = zt_types[objects->objects[k].type].object;
                if (kind != NULL && (objects->objects[k].destroyed == 0 || objects->objects[k].destroyed >= call->number) &&
                    (strcmp(kind, "queue") == 0 || (strcmp(kind, "list") == 0 && objects->objects[k].immediate)))
                    wait_for(run, call, k);
            }
        }
    }
}

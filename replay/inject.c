/* SPDX-License-Identifier: MIT */
/* Points at which a replay does more than was recorded: their grammar, and the waits and delays among them. */
#include "internal.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "l0_api.h"

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

/* The queue or immediate list that the call gives work to. */
static uint32_t submits_to(const zr_plan *plan, const zr_call *call)
{
    const uint32_t list = zr_object_of_role(call, ZT_R_LIST), queue = zr_object_of_role(call, ZT_R_QUEUE);
    if (call->func->kind == ZT_K_EXECUTE)
        return queue != ZR_NONE ? queue : list;
    return call->func->kind == ZT_K_APPEND && list != ZR_NONE && plan->objects.objects[list].immediate ? list : ZR_NONE;
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
        if (point.device && submits_to(plan, call) == ZR_NONE)
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

static bool names_list(const zr_call *call, uint32_t list)
{
    for (uint32_t i = 0; i < call->n_fixes; i++)
        if (call->fixes[i].kind == ZR_FIX_OBJECT && call->fixes[i].index == list)
            return true;
    return false;
}

/* The queue or immediate list on which a submit runs, or the command of an append in its n-th execution, from 1. */
static bool find_carrier(const zr_plan *plan, uint64_t number, uint64_t execution, uint32_t *object)
{
    size_t i = zr_find_call(plan, number);
    if (i == SIZE_MAX)
        return false;
    const uint32_t list = plan->calls[i].func->kind == ZT_K_APPEND ? zr_object_of_role(&plan->calls[i], ZT_R_LIST) : ZR_NONE;
    *object = submits_to(plan, &plan->calls[i]);
    for (; *object == ZR_NONE && list != ZR_NONE && i < plan->n_calls; i++)
        if (plan->calls[i].func->kind == ZT_K_EXECUTE && names_list(&plan->calls[i], list) && --execution == 0)
            *object = submits_to(plan, &plan->calls[i]);
    return *object != ZR_NONE;
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

bool zr_inject_parse(const zr_plan *plan, const char *text, zr_points *points, char *error, size_t size)
{
    zr_point point = {.object = ZR_NONE};
    const char *open = strchr(text, '('), *const close = open ? strstr(open, ")@") : NULL;
    const char *const at = close ? close + 1 : strchr(text, '@');
    if (open != NULL && at != NULL && open > at)
        open = NULL;
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
            uint64_t number = 0, execution = 1;
            const size_t length = (size_t)(at - open) - 2;
            const bool by_number = *name == '#' && number_after_hash(&name, &number);
            if (by_number && *name == '@')
                execution = strtoull(name + 1, (char **)(uintptr_t)&name, 10);
            if (by_number ? execution == 0 || *name != ')' || !find_carrier(plan, number, execution, &point.object) : !find_object(plan, open + 1, length, &point.object)) {
                snprintf(error, size, "sync wants a queue, list, event or command of the trace, but '%.*s' is none", (int)length, open + 1);
                return false;
            }
            point.of = number;
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
        point.device = open != NULL;
        const char *const colon = strrchr(rest, ':');
        if (colon != NULL && parse_time(colon + 1, &point.ns)) {
            if (select_calls(plan, rest, (size_t)(colon - rest), points, point) > 0)
                return true;
            snprintf(error, size, "'%.*s' matches no call of the trace%s", (int)(colon - rest), rest,
                     point.device ? " that gives the device work" : "");
            return false;
        }
    }
    snprintf(error, size, "an injection is " WANTED ", not '%s'", text);
    return false;
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

typedef struct held { /* work that a thread lets go on later */
    zr_run *run;
    uint64_t event, ns;
} held;

static void pause_for(uint64_t ns)
{
    if (ns > 0)
        nanosleep(&(struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)}, NULL);
}

static void *let_go(void *arg)
{
    held *const h = arg;
    pause_for(h->ns);
    zr_call_by_name(h->run, "zeEventHostSignal", (const uint64_t[]){h->event});
    atomic_fetch_sub(&h->run->delayed, 1);
    free(h);
    return NULL;
}

static const zr_call *creation_of(const zr_plan *plan, uint32_t object)
{
    for (size_t i = 0; i < plan->n_calls; i++)
        if (plan->calls[i].func->kind == ZT_K_CREATE && plan->calls[i].n_outs > 0 && plan->calls[i].outs[0].kind == ZR_OUT_OBJECT &&
            plan->calls[i].outs[0].index == object)
            return &plan->calls[i];
    return NULL;
}

#define REF(x) ((uint64_t)(uintptr_t)&(x))
#define MAKE(run, name, ...) zr_call_by_name(run, name, (const uint64_t[]){__VA_ARGS__})

static uint64_t new_event(zr_run *run, uint64_t context)
{
    uint64_t pool = 0, event = 0;
    const ze_event_pool_desc_t of_pool = {
        .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE, .count = 1};
    const ze_event_desc_t of_event = {
        .stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .signal = ZE_EVENT_SCOPE_FLAG_HOST, .wait = ZE_EVENT_SCOPE_FLAG_HOST};
    const bool ok = MAKE(run, "zeEventPoolCreate", context, REF(of_pool), 0, 0, REF(pool)) == 0 &&
                    MAKE(run, "zeEventCreate", pool, REF(of_event), REF(event)) == 0;
    return ok ? event : 0;
}

/* A list that does nothing but wait, on a queue of that descriptor. */
static void submit_wait(zr_run *run, uint64_t queue, const ze_command_queue_desc_t *made, uint64_t context, uint64_t device, uint64_t event)
{
    uint64_t list = 0;
    const ze_command_list_desc_t desc = {
        .stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, .commandQueueGroupOrdinal = made->ordinal,
        .flags = made->flags & ZE_COMMAND_QUEUE_FLAG_EXPLICIT_ONLY ? ZE_COMMAND_LIST_FLAG_EXPLICIT_ONLY : 0};
    if (MAKE(run, "zeCommandListCreate", context, device, REF(desc), REF(list)) != 0)
        return;
    MAKE(run, "zeCommandListAppendWaitOnEvents", list, 1, REF(event));
    MAKE(run, "zeCommandListClose", list);
    MAKE(run, "zeCommandQueueExecuteCommandLists", queue, 1, REF(list), 0);
}

/* Puts a wait in front of what the call gives the device, and a thread that ends it. */
static void hold_device(zr_run *run, const zr_call *call, uint64_t ns)
{
    const zr_object *const objects = run->plan->objects.objects;
    const uint32_t on = submits_to(run->plan, call);
    const zr_call *const create = on != ZR_NONE && objects[on].live != 0 ? creation_of(run->plan, on) : NULL;
    const zt_field *const desc = create ? zt_param_by_role(create->func, ZT_R_DESC) : NULL;
    const uint32_t context = create ? zr_object_of_role(create, ZT_R_CONTEXT) : ZR_NONE;
    const uint32_t device = create ? zr_object_of_role(create, ZT_R_DEVICE) : ZR_NONE;
    pthread_t thread;
    held *const h = calloc(1, sizeof(*h));
    const uint64_t event = h && desc && context != ZR_NONE && device != ZR_NONE ? new_event(run, objects[context].live) : 0;
    if (event == 0) {
        free(h);
        zr_stop(run, ZR_CANNOT, "the work of call #%llu %s cannot be delayed on the driver %s", (unsigned long long)call->number,
                call->func->name, run->target.path);
        return;
    }
    *h = (held){run, event, ns};
    atomic_fetch_add(&run->delayed, 1);
    /* the thread first: a synchronous queue or list waits here already */
    if (pthread_create(&thread, NULL, let_go, h) != 0)
        let_go(h);
    else
        pthread_detach(thread);
    if (objects[on].immediate)
        MAKE(run, "zeCommandListAppendWaitOnEvents", objects[on].live, 1, REF(event));
    else
        submit_wait(run, objects[on].live, (const void *)(uintptr_t)create->words[desc->offset], objects[context].live,
                    objects[device].live, event);
}

void zr_inject_end(zr_run *run)
{
    for (unsigned i = 0; atomic_load(&run->delayed) > 0 && !atomic_load(&run->stop); i++) {
        atomic_fetch_add(&run->shared->progress, 1);
        pause_for(1000000);
    }
}

bool zr_inject_begin(zr_run *run)
{
    const zr_options *const o = run->options;
    run->first_point = malloc((run->plan->n_calls + 1) * sizeof(*run->first_point));
    run->next_point = malloc((o->n_points + 1) * sizeof(*run->next_point));
    if (run->first_point == NULL || run->next_point == NULL)
        return false;
    memset(run->first_point, 0xff, (run->plan->n_calls + 1) * sizeof(*run->first_point));
    for (size_t i = o->n_points; i-- > 0;) { /* the first given comes first */
        const size_t call = zr_find_call(run->plan, o->points[i].call);
        if (call == SIZE_MAX)
            continue;
        run->next_point[i] = run->first_point[call];
        run->first_point[call] = (uint32_t)i;
    }
    return true;
}

static void sync_all(zr_run *run, const zr_call *call)
{
    const zr_objects *const objects = &run->plan->objects;
    for (uint32_t i = 0; i < objects->n_objects && !atomic_load(&run->stop); i++) {
        const zr_object *const o = &objects->objects[i];
        const char *const kind = zt_types[o->type].object;
        if (kind != NULL && (o->destroyed == 0 || o->destroyed >= call->number) &&
            (strcmp(kind, "queue") == 0 || (strcmp(kind, "list") == 0 && o->immediate)))
            wait_for(run, call, i);
    }
}

void zr_inject(zr_run *run, const zr_call *call, bool after)
{
    for (uint32_t i = run->first_point[call - run->plan->calls]; i != ZR_NONE && !atomic_load(&run->stop); i = run->next_point[i]) {
        const zr_point *const p = &run->options->points[i];
        if (p->after != after || (p->kind != ZR_P_DELAY && p->kind != ZR_P_SYNC))
            continue;
        __atomic_add_fetch(&run->report->injected, 1, __ATOMIC_RELAXED);
        if (p->kind == ZR_P_DELAY && p->device)
            hold_device(run, call, p->ns);
        else if (p->kind == ZR_P_DELAY)
            pause_for(p->ns);
        else if (run->options->items != NULL)
            continue; /* the line has what was submitted before whatever comes behind the wait, and may have it after this call */
        else if (p->object != ZR_NONE)
            wait_for(run, call, p->object);
        else
            sync_all(run, call);
    }
}

/* SPDX-License-Identifier: MIT */
/* Points at which a replay does more than was recorded: the waits and delays among them. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "l0_api.h"

uint32_t zr_submits_to(const zr_plan *plan, const zr_call *call)
{
    const uint32_t list = zr_object_of_role(call, ZT_R_LIST), queue = zr_object_of_role(call, ZT_R_QUEUE);
    if (call->func->kind == ZT_K_EXECUTE)
        return queue != ZR_NONE ? queue : list;
    return call->func->kind == ZT_K_APPEND && list != ZR_NONE && plan->objects.objects[list].immediate ? list : ZR_NONE;
}

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
    const uint32_t on = zr_submits_to(run->plan, call);
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

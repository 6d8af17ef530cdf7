/* SPDX-License-Identifier: MIT */
#include "device_time.h"

#include <l0_api.h>
#include <stdlib.h>
#include <string.h>

enum { ANCHORS = 4096 /* of all devices; more do not make times better */ };

typedef struct device {
    uint64_t handle;
    double tick_ns; /* 0: not known */
    unsigned bits;  /* of a kernel's time stamp that count */
} device;

typedef struct anchor { /* device clock and trace clock at one moment */
    uint64_t handle, ticks, ns, doubt_ns;
} anchor;

typedef struct stamp {
    uint32_t event;
    uint64_t call, leave_ns, start, end; /* ticks */
} stamp;

struct zv_device_time {
    const zt_type *result, *properties;
    uint8_t *tells; /* by function: 0 not looked at, 1 no, 2 its outputs may hold a result or properties */
    device *devices;
    size_t n_devices, room_devices;
    anchor *anchors;
    size_t n_anchors, room_anchors;
    stamp *stamps;
    size_t n_stamps, room_stamps;
    uint64_t *device_of; /* by object: of queues and lists */
    size_t n_device_of;
};

static bool grow(void *array, size_t n, size_t *room, size_t element)
{
    if (n < *room)
        return true;
    const size_t more = *room ? *room * 2 : 16;
    void *const grown = realloc(*(void **)array, more * element);
    if (grown == NULL)
        return false;
    *(void **)array = grown;
    *room = more;
    return true;
}

zv_device_time *zv_device_time_new(void)
{
    zv_device_time *const t = calloc(1, sizeof(*t));
    if (t == NULL || (t->tells = calloc(zt_n_funcs, 1)) == NULL) {
        free(t);
        return NULL;
    }
    t->result = zt_type_find("ze_kernel_timestamp_result_t");
    t->properties = zt_type_find("ze_device_properties_t");
    return t;
}

void zv_device_time_free(zv_device_time *t)
{
    if (t == NULL)
        return;
    free(t->tells);
    free(t->devices);
    free(t->anchors);
    free(t->stamps);
    free(t->device_of);
    free(t);
}

/* ---------------------------------------------------------------------------------------------------------- collecting */

static bool holds(const zv_device_time *t, const zt_type *type, unsigned depth)
{
    if (type == t->result || type == t->properties)
        return true;
    for (unsigned i = 0; depth < 3 && type->cls == ZT_STRUCT && i < type->n_fields; i++)
        if (holds(t, &zt_types[type->fields[i].type], depth + 1))
            return true;
    return false;
}

static bool may_tell(zv_device_time *t, const zt_func *func)
{
    if (func < zt_funcs || func >= zt_funcs + zt_n_funcs)
        return false;
    uint8_t *const tells = &t->tells[func - zt_funcs];
    if (*tells == 0) {
        *tells = 1;
        for (unsigned i = 0; i < func->n_params; i++)
            if ((func->params[i].dir & ZT_OUT) && holds(t, &zt_types[func->params[i].type], 0))
                *tells = 2;
    }
    return *tells == 2;
}

typedef struct asking {
    zv_device_time *times;
    const zt_call *call;
    uint32_t event; /* ZO_NONE: about none */
    uint64_t device;
    bool out_of_memory;
} asking;

static uint64_t word_of(const zt_call *call, enum zt_role role)
{
    const zt_field *const f = zt_param_by_role(call->func, role);
    return f != NULL ? call->words[f->offset] : 0;
}

static void take_properties(asking *a, const void *data)
{
    zv_device_time *const t = a->times;
    ze_device_properties_t p;
    memcpy(&p, data, sizeof(p));
    const double tick = p.stype == ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES ? (double)p.timerResolution
                        : p.timerResolution > 0                        ? 1e9 / (double)p.timerResolution
                                                                       : 0;
    size_t i = 0;
    while (i < t->n_devices && t->devices[i].handle != a->device)
        i++;
    if (i == t->n_devices) {
        if (i == ANCHORS || !grow(&t->devices, i, &t->room_devices, sizeof(*t->devices))) {
            a->out_of_memory |= i < ANCHORS;
            return;
        }
        t->n_devices++;
    }
    t->devices[i] = (device){a->device, tick, p.kernelTimestampValidBits};
}

static int visit(void *ctx, const zt_node *node)
{
    asking *const a = ctx;
    zv_device_time *const t = a->times;
    if (node->kind != ZT_N_STRUCT || node->data == NULL)
        return 0;
    if (node->type == t->properties && node->size >= sizeof(ze_device_properties_t)) {
        take_properties(a, node->data);
    } else if (node->type == t->result && a->event != ZO_NONE && node->size >= sizeof(ze_kernel_timestamp_result_t)) {
        ze_kernel_timestamp_result_t r;
        memcpy(&r, node->data, sizeof(r));
        if (!grow(&t->stamps, t->n_stamps, &t->room_stamps, sizeof(*t->stamps)))
            a->out_of_memory = true;
        else
            t->stamps[t->n_stamps++] = (stamp){a->event, a->call->number, a->call->leave_ns, r.global.kernelStart, r.global.kernelEnd};
        a->event = ZO_NONE; /* of several (one a tile) the first */
    }
    return 0;
}

static bool note_device_of(zv_device_time *t, const zt_objects *objects, const zt_field *made, uint64_t handle, uint64_t device_handle)
{
    const zt_object *const o = zt_object_of_handle(objects, &zt_types[made->type], handle);
    if (o == NULL)
        return true;
    if (o->index >= t->n_device_of) {
        const size_t n = (size_t)o->index * 2 + 16;
        uint64_t *const grown = realloc(t->device_of, n * sizeof(*grown));
        if (grown == NULL)
            return false;
        memset(grown + t->n_device_of, 0, (n - t->n_device_of) * sizeof(*grown));
        t->device_of = grown;
        t->n_device_of = n;
    }
    t->device_of[o->index] = device_handle;
    return true;
}

int zv_device_time_call(zv_device_time *t, zt_trace *trace, const zt_objects *objects, const zt_call *call)
{
    const zt_field *const made = zt_param_by_role(call->func, ZT_R_CREATE), *const clock = zt_param_by_role(call->func, ZT_R_DEVICE_TIME);
    asking a = {.times = t, .call = call, .event = ZO_NONE, .device = word_of(call, ZT_R_DEVICE)};
    zt_call_memory after = {.call = call, .phase = ZT_LEAVE, .trace = trace};
    const zt_memory memory = zt_memory_of(&after);
    uint64_t value;
    if (!call->returned || call->result != 0)
        return ZT_OK;
    if (clock != NULL && t->n_anchors < ANCHORS && zt_word_left(call, clock, trace, &value)) {
        if (!grow(&t->anchors, t->n_anchors, &t->room_anchors, sizeof(*t->anchors)))
            return ZT_E_MEMORY;
        const uint64_t half = (call->leave_ns - call->enter_ns) / 2;
        t->anchors[t->n_anchors++] = (anchor){a.device, value, call->enter_ns + half, half};
    }
    if (made != NULL && a.device != 0 && zt_word_left(call, made, trace, &value) && !note_device_of(t, objects, made, value, a.device))
        return ZT_E_MEMORY;
    if (!may_tell(t, call->func))
        return ZT_OK;
    const zt_field *const about = zt_param_by_role(call->func, ZT_R_EVENT);
    const zt_object *const event = about ? zt_object_of_handle(objects, &zt_types[about->type], call->words[about->offset]) : NULL;
    if (event != NULL)
        a.event = event->index;
    const zt_walk walk = {.func = call->func, .words = call->words, .phase = ZT_LEAVE, .result = call->result, .memory = &memory,
                          .visit = visit, .ctx = &a};
    zt_walk_call(&walk);
    return a.out_of_memory ? ZT_E_MEMORY : ZT_OK;
}

/* ------------------------------------------------------------------------------------------------------------- matching */

static const device *device_of(const zv_device_time *t, const zo_execution *e)
{
    const uint64_t handle = e->carrier < t->n_device_of ? t->device_of[e->carrier] : 0;
    for (size_t i = 0; handle != 0 && i < t->n_devices; i++)
        if (t->devices[i].handle == handle && t->devices[i].tick_ns > 0)
            return &t->devices[i];
    return NULL;
}

static const anchor *nearest(const zv_device_time *t, uint64_t handle, uint64_t ns)
{
    const anchor *best = NULL;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < t->n_anchors; i++) {
        const anchor *const a = &t->anchors[i];
        const uint64_t distance = a->ns > ns ? a->ns - ns : ns - a->ns;
        if (a->handle == handle && distance < least) {
            best = a;
            least = distance;
        }
    }
    return best;
}

/* Ticks of a counter of so many bits, as a time of the trace: the one nearest to the anchor. */
static double time_of(const device *d, const anchor *a, uint64_t ticks)
{
    const unsigned spare = d->bits > 0 && d->bits < 64 ? 64 - d->bits : 0;
    const int64_t since = (int64_t)((ticks - a->ticks) << spare) >> spare;
    return (double)a->ns + (double)since * d->tick_ns;
}

/* A stamp counts if it lies between the submit and the return of the call that asked for it. */
static zv_span span_of(const zv_device_time *t, const zo_execution *e, const stamp *s)
{
    const device *const d = device_of(t, e);
    const anchor *const a = d != NULL ? nearest(t, d->handle, e->submit_ns) : NULL;
    if (a == NULL)
        return (zv_span){.known = false};
    const double begin = time_of(d, a, s->start), end = time_of(d, a, s->end), slack = (double)a->doubt_ns + 2 * d->tick_ns + 1000;
    if (begin < (double)e->submit_ns - slack || end > (double)s->leave_ns + slack || end < begin)
        return (zv_span){.known = false};
    const uint64_t from = begin > (double)e->submit_ns ? (uint64_t)begin : e->submit_ns + 1;
    return (zv_span){.begin = from, .end = end > (double)from ? (uint64_t)end : from, .known = true};
}

static int by_event_and_submit(const void *a, const void *b, void *ctx)
{
    const zo_execution *const all = ctx, *const x = &all[*(const size_t *)a], *const y = &all[*(const size_t *)b];
    if (x->event != y->event)
        return x->event < y->event ? -1 : 1;
    return x->submit < y->submit ? -1 : x->submit > y->submit;
}

int zv_device_time_spans(const zv_device_time *t, const zo_execution *executions, size_t n, zv_span *spans)
{
    size_t *const order = malloc((n + 1) * sizeof(*order));
    if (order == NULL)
        return ZT_E_MEMORY;
    for (size_t i = 0; i < n; i++) {
        order[i] = i;
        spans[i] = (zv_span){.known = false};
    }
    qsort_r(order, n, sizeof(*order), by_event_and_submit, (void *)(uintptr_t)executions);
    for (size_t k = 0; k < t->n_stamps; k++) {
        const stamp *const s = &t->stamps[k];
        size_t low = 0, high = n; /* the last that was submitted before the question, with that event */
        while (low < high) {
            const size_t mid = (low + high) / 2;
            const zo_execution *const e = &executions[order[mid]];
            if (e->event < s->event || (e->event == s->event && e->submit < s->call))
                low = mid + 1;
            else
                high = mid;
        }
        if (low > 0 && executions[order[low - 1]].event == s->event && !spans[order[low - 1]].known)
            spans[order[low - 1]] = span_of(t, &executions[order[low - 1]], s);
    }
    free(order);
    return ZT_OK;
}

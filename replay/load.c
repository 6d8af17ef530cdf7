/* SPDX-License-Identifier: MIT */
/* Reads a trace into a plan, event by event, so that each handle and address means what it meant at that moment. */
#include "internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct loader {
    zr_plan *plan;
    zt_trace *trace;
    zr_orderer *orderer;
    zr_raw **open; /* calls that have not ended */
    size_t n_open, room_open;
} loader;

static int out_of_memory(zt_error *error)
{
    error->status = ZT_E_MEMORY;
    snprintf(error->text, sizeof(error->text), "not enough memory to hold the trace's calls");
    return ZT_E_MEMORY;
}

static bool copy_pieces(loader *l, const zt_piece *from, uint32_t n, zt_piece **out)
{
    *out = n ? zr_alloc(&l->plan->arena, n * sizeof(**out)) : NULL;
    if (n && *out == NULL)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        zt_piece *const piece = &(*out)[i];
        *piece = from[i];
        uint64_t len = piece->len;
        const void *const bytes = piece->lost   ? NULL
                                  : piece->data ? piece->data
                                                : zt_trace_blob(l->trace, &piece->hash, &len);
        piece->data = NULL;
        piece->lost = bytes == NULL || len < piece->len;
        if (piece->lost)
            continue;
        void *const copy = zr_alloc(&l->plan->arena, piece->len + 1);
        if (copy == NULL)
            return false;
        memcpy(copy, bytes, piece->len);
        piece->data = copy;
    }
    return true;
}

static bool copy_contents(loader *l, const zt_call *from, zr_call *call)
{
    call->data = from->n_contents ? zr_alloc(&l->plan->arena, from->n_contents * sizeof(*call->data)) : NULL;
    if (from->n_contents && call->data == NULL)
        return false;
    for (uint32_t i = 0; i < from->n_contents; i++) {
        const zt_content *const content = &from->contents[i];
        if (content->len == 0 || content->len > UINT64_MAX - content->addr)
            continue;
        uint64_t len = content->len;
        const void *const bytes = content->hash_only ? NULL
                                  : content->data    ? content->data
                                                     : zt_trace_blob(l->trace, &content->hash, &len);
        zr_data *const data = &call->data[call->n_data++];
        *data = (zr_data){.addr = content->addr,
                          .len = content->len,
                          .hash = content->hash,
                          .mem = ZR_NONE,
                          .readback = content->kind == ZT_C_READBACK,
                          .number = i + 1};
        if (bytes != NULL && len >= content->len) {
            void *const copy = zr_alloc(&l->plan->arena, content->len);
            if (copy == NULL)
                return false;
            memcpy(copy, bytes, content->len);
            data->bytes = copy;
        }
    }
    return true;
}

/* Which memory of the replay stands for the contents, as of now. */
static bool place_contents(zr_plan *plan, zr_call *call, bool readback)
{
    for (uint32_t i = 0; i < call->n_data; i++) {
        zr_data *const data = &call->data[i];
        if (data->readback != readback)
            continue;
        const uint32_t index = zr_mem_find(&plan->objects, data->addr);
        const zr_mem *const mem = index == ZR_NONE ? NULL : &plan->objects.mems[index];
        if (mem != NULL && !mem->dead) {
            if (data->addr + data->len <= mem->recorded + mem->size)
                data->mem = index;
        } else if (!zr_span_add(&plan->objects, data->addr, data->len)) {
            return false;
        }
    }
    return true;
}

static int leave(loader *l, size_t which)
{
    zr_raw *const raw = l->open[which];
    l->open[which] = l->open[--l->n_open];
    zr_call *const call = &l->plan->calls[raw->index];
    int status = zr_program_leave(l->plan, raw);
    if (status == 0 && !place_contents(l->plan, call, true))
        status = -ZT_E_MEMORY;
    zr_orderer_leave(l->orderer, l->plan, raw, l->open, l->n_open);
    free(raw->segs);
    free(raw);
    return status;
}

/* Ends the calls that had returned by `time`, oldest return first. */
static int leave_until(loader *l, uint64_t time)
{
    for (;;) {
        size_t first = l->n_open;
        for (size_t i = 0; i < l->n_open; i++) {
            const zr_call *const call = &l->plan->calls[l->open[i]->index];
            if ((call->flags & ZR_RETURNED) && call->leave_ns <= time &&
                (first == l->n_open || call->leave_ns < l->plan->calls[l->open[first]->index].leave_ns ||
                 (call->leave_ns == l->plan->calls[l->open[first]->index].leave_ns &&
                  l->open[i]->index < l->open[first]->index)))
                first = i;
        }
        if (first == l->n_open)
            return 0;
        const int status = leave(l, first);
        if (status != 0)
            return status;
    }
}

static bool known(const zt_func *func)
{
    return func >= zt_funcs && func < zt_funcs + zt_n_funcs;
}

static int enter(loader *l, const zt_call *from)
{
    zr_plan *const plan = l->plan;
    if (plan->n_calls >= ZR_NONE - 1 ||
        !zr_grow((void **)&plan->calls, plan->n_calls, &plan->room_calls, sizeof(*plan->calls)))
        return -ZT_E_MEMORY;
    zr_raw *const raw = calloc(1, sizeof(*raw) + (from->func->n_words + 1u) * 8);
    if (raw == NULL || !zr_grow((void **)&l->open, l->n_open, &l->room_open, sizeof(*l->open))) {
        free(raw);
        return -ZT_E_MEMORY;
    }
    raw->index = plan->n_calls++;
    zr_call *const call = &plan->calls[raw->index];
    *call = (zr_call){.number = from->number,
                      .func = from->func,
                      .result = from->result,
                      .enter_ns = from->enter_ns,
                      .leave_ns = from->leave_ns,
                      .self = ZR_NONE,
                      .result_object = ZR_NONE,
                      .timeout_word = -1};
    call->id = known(from->func) ? (uint32_t)(from->func - zt_funcs) : ZR_NONE;
    call->flags = (uint8_t)((from->returned ? ZR_RETURNED : 0) | (from->nested ? ZR_SKIP : 0));
    if (from->internal)
        call->flags |= from->func->kind == ZT_K_INIT || from->func->kind == ZT_K_GET ? ZR_QUIET : ZR_SKIP;
    if (call->leave_ns < call->enter_ns)
        call->leave_ns = call->enter_ns;
    call->words = zr_alloc(&plan->arena, (from->func->n_words + 1u) * 8);
    raw->n_in = from->n_in;
    raw->n_out = from->n_out;
    if (call->words == NULL || !copy_pieces(l, from->in, from->n_in, &raw->in) ||
        !copy_pieces(l, from->out, from->n_out, &raw->out) || !copy_contents(l, from, call)) {
        free(raw);
        return -ZT_E_MEMORY;
    }
    memcpy(call->words, from->words, from->func->n_words * 8u);
    raw->words = (uint64_t *)(raw + 1);
    memcpy(raw->words, from->words, from->func->n_words * 8u);
    l->open[l->n_open++] = raw;
    if (call->id == ZR_NONE)
        call->why_not = "this zetrace does not know the function";

    int status = place_contents(plan, call, false) ? 0 : -ZT_E_MEMORY;
    if (status == 0 && !zr_orderer_enter(l->orderer, plan, raw, from->thread))
        status = -ZT_E_LIMIT;
    if (status == 0 && call->id != ZR_NONE && !(call->flags & ZR_SKIP))
        status = zr_program_enter(plan, raw);
    if (!from->returned) {
        if (plan->pending++ == 0)
            plan->first_pending =
                (zr_call *)(uintptr_t)(raw->index + 1); /* an index until the calls have their place */
    }
    return status;
}

static int read_calls(loader *l, zt_error *error)
{
    int status = 0;
    for (;;) {
        const zt_call *from;
        const int got = zt_trace_next(l->trace, &from);
        if (got == ZT_END ||
            (got != ZT_OK && l->plan->n_calls > 0)) /* what is readable of a damaged trace; its health says so */
            break;
        if (got != ZT_OK) {
            error->status = got;
            snprintf(error->text, sizeof(error->text), "no call of the trace can be read");
            return got;
        }
        status = leave_until(l, from->enter_ns);
        if (status == 0)
            status = enter(l, from);
        if (status != 0)
            break;
    }
    if (status == 0)
        status = leave_until(l, UINT64_MAX);
    if (status == -ZT_E_LIMIT) {
        error->status = ZT_E_LIMIT;
        snprintf(error->text, sizeof(error->text), "call #%llu: arguments or threads beyond what a replay allows",
                 (unsigned long long)l->plan->calls[l->plan->n_calls - 1].number);
        return ZT_E_LIMIT;
    }
    return status != 0 ? out_of_memory(error) : ZT_OK;
}

static char *copy_text(const char *text)
{
    return strdup(text ? text : "");
}

/* What somebody asked for: "soft" or a path. */
static void name_driver(zr_plan *plan, const char *text)
{
    plan->recorded_soft = strcmp(text, "soft") == 0 || strstr(text, "libze_soft") != NULL;
    if (plan->recorded_soft || strchr(text, '/') != NULL)
        plan->recorded_driver = copy_text(text);
}

static bool read_session(zr_plan *plan, const zt_session *session)
{
    plan->recorded_driver = NULL;
    for (uint32_t i = 0; session != NULL && i < session->n_libraries; i++) {
        const char *const slash = strrchr(session->libraries[i].path, '/');
        const char *const name = slash ? slash + 1 : session->libraries[i].path;
        const bool soft = strncmp(name, "libze_soft", 10) == 0;
        if (soft || (plan->recorded_driver == NULL && strncmp(name, "libze_intel_gpu", 15) == 0)) {
            free(plan->recorded_driver);
            plan->recorded_driver = copy_text(session->libraries[i].path);
            plan->recorded_soft = soft;
        }
    }
    /* a program that ended at once may have taken its list of libraries with it */
    for (uint32_t i = 0; session != NULL && i < session->n_settings && plan->recorded_driver == NULL; i++)
        if (strcmp(session->settings[i].name, "driver") == 0)
            name_driver(plan, session->settings[i].value);
    for (uint32_t i = 0; session != NULL && i < session->n_environment && plan->recorded_driver == NULL; i++)
        if (strcmp(session->environment[i].name, "ZE_ENABLE_ALT_DRIVERS") == 0)
            name_driver(plan, session->environment[i].value);
    if (plan->recorded_driver == NULL)
        plan->recorded_driver = copy_text("");
    plan->objects.soft = plan->recorded_soft;
    const uint32_t n = session ? session->n_environment + session->n_settings : 0;
    plan->environment = calloc(n + 1, sizeof(*plan->environment));
    if (plan->environment == NULL || plan->recorded_driver == NULL)
        return false;
    for (uint32_t i = 0; i < n; i++) { /* settings last: they are what zetrace itself has set */
        const zt_pair *const pair =
            i < session->n_environment ? &session->environment[i] : &session->settings[i - session->n_environment];
        const bool schedule = i >= session->n_environment && strcmp(pair->name, "schedule") == 0 && pair->value[0] != 0;
        if (!schedule && strncmp(pair->name, "ZE_", 3) != 0)
            continue;
        plan->environment[plan->n_environment++] =
            (zt_pair){copy_text(schedule ? "ZE_SOFT_SCHEDULE" : pair->name), copy_text(pair->value)};
    }
    return true;
}

/* Whether the program died inside its last call, for all the trace can tell. */
static void find_crash(zr_plan *plan, const zt_ending *ending)
{
    static const int fatal[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
    zr_call *const last = plan->n_calls ? &plan->calls[plan->n_calls - 1] : NULL;
    if (last == NULL || ending == NULL || !ending->signalled || (last->flags & (ZR_RETURNED | ZR_SKIP)) ||
        last->func->kind == ZT_K_SYNC)
        return;
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
        if (ending->status == fatal[i])
            plan->crash = last;
}

int zr_plan_make(zr_plan **out, zt_trace *trace, zt_error *error)
{
    *out = NULL;
    error->text[0] = 0;
    zr_plan *const plan = calloc(1, sizeof(*plan));
    loader l = {.plan = plan, .trace = trace, .orderer = zr_orderer_new()};
    int status = ZT_OK;
    if (plan == NULL || l.orderer == NULL || !zr_objects_init(&plan->objects) ||
        !read_session(plan, zt_trace_session(trace)))
        status = out_of_memory(error);
    if (status == ZT_OK)
        status = read_calls(&l, error);
    if (status == ZT_OK && !zr_orderer_finish(l.orderer, plan))
        status = out_of_memory(error);
    if (status == ZT_OK && !zr_spans_map(&plan->objects, error))
        status = error->status;
    if (status == ZT_OK) {
        zr_program_finish(plan);
        plan->first_pending = plan->pending ? &plan->calls[(uintptr_t)plan->first_pending - 1] : NULL;
        find_crash(plan, zt_trace_ending(trace));
    }
    for (size_t i = 0; i < l.n_open; i++) {
        free(l.open[i]->segs);
        free(l.open[i]);
    }
    free(l.open);
    zr_orderer_free(l.orderer);
    if (status != ZT_OK) {
        zr_plan_free(plan);
        return status;
    }
    *out = plan;
    return ZT_OK;
}

void zr_plan_free(zr_plan *plan)
{
    if (plan == NULL)
        return;
    zr_objects_destroy(&plan->objects);
    zr_arena_free(&plan->arena);
    for (uint32_t i = 0; i < plan->n_environment; i++) {
        free(plan->environment[i].name);
        free(plan->environment[i].value);
    }
    free(plan->environment);
    free(plan->recorded_driver);
    free(plan->calls);
    free(plan->order);
    free(plan->scratch);
    free(plan->per_thread);
    free(plan->thread_calls);
    free(plan);
}

uint64_t zr_plan_calls(const zr_plan *plan)
{
    return plan->n_calls;
}

uint64_t zr_plan_calls_between(const zr_plan *plan, uint64_t from, uint64_t to)
{
    uint64_t n = 0;
    for (size_t i = 0; i < plan->n_calls; i++)
        n += plan->calls[i].number >= from && (to == 0 || plan->calls[i].number <= to);
    return n;
}

uint64_t zr_plan_last(const zr_plan *plan)
{
    return plan->n_calls > 0 ? plan->calls[plan->n_calls - 1].number : 0;
}

uint32_t zr_plan_threads(const zr_plan *plan)
{
    return plan->n_threads;
}

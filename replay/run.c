/* SPDX-License-Identifier: MIT */
/* Makes the calls of a plan, in the child. What the program saw stays true: what it was told is done is waited for
 * here. */
#include "internal.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "serialize.h"

#define UNSUPPORTED_FEATURE 0x78000003

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void zr_stop(zr_run *run, int verdict, const char *format, ...)
{
    pthread_mutex_lock(&run->mutex);
    if (!atomic_load(&run->stop)) {
        va_list list;
        va_start(list, format);
        vsnprintf(run->report->message, sizeof(run->report->message), format, list);
        va_end(list);
        run->report->verdict = verdict;
        atomic_store(&run->stop, true);
    }
    pthread_mutex_unlock(&run->mutex);
}

/* The device waits for the host, which is at this call. */
static void blocked(zr_run *run, const zr_call *call, uint64_t limit)
{
    const zr_plan *const plan = run->plan;
    char object[64] = "", later[256] = "no call behind it signals an event from the host";
    if (call->self != ZR_NONE)
        zr_object_name(&plan->objects, call->self, object, sizeof(object));
    for (size_t i = (size_t)(call - plan->calls) + 1; i < plan->n_calls; i++) {
        const zr_call *const other = &plan->calls[i];
        if (other->func->kind == ZT_K_HOST_SIGNAL && other->self != ZR_NONE && (other->flags & ZR_RETURNED)) {
            char event[64];
            zr_object_name(&plan->objects, other->self, event, sizeof(event));
            snprintf(later, sizeof(later), "the host signals %s only at call #%llu, behind it", event,
                     (unsigned long long)other->number);
            break;
        }
    }
    zr_stop(run, ZR_DIFFERS,
            "call #%llu %s(%s) was answered in the recording, but here not within %.3g s: the device waits for the "
            "host, and %s",
            (unsigned long long)call->number, call->func->name, object, (double)limit / 1e9, later);
}

static void pause_between(unsigned round)
{
    if (round < 64) {
        sched_yield();
    } else {
        const struct timespec t = {0, round < 256 ? 50000 : 1000000};
        nanosleep(&t, NULL);
    }
}

/* A wait or query. */
static int64_t ask(zr_run *run, const zr_call *call, void *fn, uint64_t *words)
{
    const zr_thunk thunk = zr_thunks[call->id];
    const uint64_t limit = zr_forced_limit(run, run->options->timeout_ns);
    uint64_t *const timeout = call->timeout_word < 0 ? NULL : &words[call->timeout_word];
    const uint64_t recorded = timeout ? *timeout : 0;
    if (timeout != NULL && recorded > limit)
        *timeout = limit;
    zr_forced_before_wait(run, call);
    int64_t result = thunk(fn, words);
    if (call->result == ZR_SUCCESS && result == ZR_NOT_READY) {
        const uint64_t deadline = now_ns() + (recorded > limit ? 0 : limit);
        for (unsigned round = 0; result == ZR_NOT_READY && !atomic_load_explicit(&run->stop, memory_order_relaxed);
             round++) {
            const uint64_t now = now_ns();
            if (now >= deadline) {
                blocked(run, call, limit);
                break;
            }
            const uint64_t rest = deadline - now, slice = recorded > 1000000 ? recorded : 1000000;
            if (timeout != NULL)
                *timeout = recorded == 0 ? 0 : slice < rest ? slice : rest;
            if (timeout == NULL || recorded == 0)
                pause_between(round);
            atomic_fetch_add_explicit(&run->shared->progress, 1, memory_order_relaxed);
            result = thunk(fn, words);
        }
    }
    return result;
}

/*
 * The call's words with what only the replay knows. The plan's pages are shared with the parent until they are written,
 * and a fault costs more than a call: so words are filled in on the stack, and argument memory only where it changes.
 * @return false if something the call needs is not there.
 */
static bool apply_fixes(const zr_run *run, const zr_call *call, uint64_t *words)
{
    const zr_objects *const o = &run->plan->objects;
    const size_t size = call->func->n_words * sizeof(*words);
    memcpy(words, call->words, size);
    for (uint32_t i = 0; i < call->n_fixes; i++) {
        const zr_fix *const fix = &call->fixes[i];
        uint64_t live, now;
        if (fix->kind == ZR_FIX_OBJECT)
            live = o->objects[fix->index].live;
        else
            live = o->mems[fix->index].live;
        if (live == 0)
            return false;
        live += fix->offset;
        const uintptr_t at = (uintptr_t)fix->where - (uintptr_t)call->words;
        if (at < size) {
            memcpy((uint8_t *)words + at, &live, 8);
            continue;
        }
        memcpy(&now, fix->where, 8);
        if (now != live)
            memcpy(fix->where, &live, 8);
    }
    return true;
}

void zr_write_content(zr_run *run, const zr_data *data, uint64_t from, uint64_t size, uint8_t *flags, bool learn)
{
    uint8_t *live = data->live;
    if (data->bytes == NULL || (data->readback && flags == NULL) || from >= data->len)
        return;
    if (data->mem != ZR_NONE) {
        const zr_mem *const mem = &run->plan->objects.mems[data->mem];
        live = mem->live ? (uint8_t *)(uintptr_t)(mem->live + (data->addr - mem->recorded)) : NULL;
    }
    const uint8_t *const bytes = (const uint8_t *)data->bytes + from;
    if (size > data->len - from)
        size = data->len - from;
    if (live == NULL)
        return;
    live += from;
    if (flags == NULL) {
        memcpy(live, bytes, size);
        return;
    }
    for (uint64_t i = 0; i < size; i++) {
        if (learn)
            flags[i] = live[i] != bytes[i];
        if (flags[i])
            live[i] = bytes[i];
    }
}

void zr_write_contents(zr_run *run, const zr_call *call)
{
    for (uint32_t i = 0; i < call->n_data; i++)
        if (!call->data[i].held)
            zr_write_content(run, &call->data[i], 0, call->data[i].len, NULL, false);
}

/* Every device of the recording becomes the one that was asked for. */
static void choose_device(zr_run *run, const zr_call *call)
{
    const int get = zt_func_find("zeDeviceGet");
    void *const fn = get >= 0 ? zr_target_function(&run->target, (uint32_t)get) : NULL;
    const uint32_t wanted = (uint32_t)run->options->device;
    uint32_t count = 0;
    uint64_t words[] = {run->target.driver_handle, (uint64_t)(uintptr_t)&count, 0};
    if (fn == NULL || zr_thunks[get](fn, words) != 0 || count <= wanted) {
        zr_stop(run, ZR_CANNOT, "device %u was asked for, but the driver %s has %u", wanted, run->target.path, count);
        return;
    }
    uint64_t *const devices = calloc(count, sizeof(*devices));
    words[2] = (uint64_t)(uintptr_t)devices;
    if (devices != NULL && zr_thunks[get](fn, words) == 0)
        for (uint32_t i = 0; i < call->n_outs; i++)
            if (call->outs[i].kind == ZR_OUT_OBJECT)
                run->plan->objects.objects[call->outs[i].index].live = devices[wanted];
    free(devices);
}

/* The first calls tell whether there is anything to replay on. */
static void look_at_start(zr_run *run, const zr_call *call, int64_t result)
{
    if (call->func->kind == ZT_K_INIT && call->result == 0 && result != 0) {
        zr_stop(run, ZR_CANNOT, "the driver %s cannot be used here: call #%llu %s gave %s", run->target.path,
                (unsigned long long)call->number, call->func->name, zt_result_name(result));
        return;
    }
    if (call->n_outs == 0 || result != 0 || (call->func->kind != ZT_K_GET && call->func->kind != ZT_K_INIT))
        return;
    bool devices = false;
    for (uint32_t i = 0; i < call->n_outs; i++) {
        const zr_out *const out = &call->outs[i];
        const char *const kind = out->kind == ZR_OUT_OBJECT ? out->type->object : NULL;
        const uint64_t live = out->kind == ZR_OUT_OBJECT ? run->plan->objects.objects[out->index].live : 0;
        if (kind == NULL || (strcmp(kind, "driver") != 0 && strcmp(kind, "device") != 0))
            continue;
        if (live == 0) {
            zr_stop(run, ZR_CANNOT, "the recording used a %s, but the driver %s has none", kind, run->target.path);
            return;
        }
        devices |= strcmp(kind, "device") == 0;
        if (kind[1] == 'r' && run->target.driver_handle == 0)
            run->target.driver_handle = live;
    }
    if (devices && run->options->device >= 0 && strcmp(call->func->name, "zeDeviceGet") == 0)
        choose_device(run, call);
}

static void not_made(zr_run *run)
{
    __atomic_add_fetch(&run->report->not_made, 1, __ATOMIC_RELAXED);
}

/* A question whose answer no later call uses. */
static bool is_needless(const zr_call *call)
{
    for (uint32_t i = 0; i < call->n_outs; i++)
        if (call->outs[i].kind == ZR_OUT_OBJECT || call->outs[i].kind == ZR_OUT_MEM)
            return false;
    return call->func->kind == ZT_K_GET && call->id != ZR_NONE;
}

static void watch(zr_run *run, const zr_call *call, int64_t result)
{
    const zr_options *const o = run->options;
    if (call->number == o->watch) {
        run->report->watch_made = true;
        run->report->watch_result = result;
    }
    if (o->watch_function != NULL && o->watch_name != NULL && fnmatch(o->watch_function, call->func->name, 0) == 0 &&
        fnmatch(o->watch_name, zt_result_name(result), 0) == 0)
        __atomic_add_fetch(&run->report->watched, 1, __ATOMIC_RELAXED);
}

static void note_error(zr_run *run, const zr_call *call, int64_t result)
{
    zr_report *const report = run->report;
    if (result == 0 || result == ZR_NOT_READY || call->func->kind == ZT_K_GET || (call->flags & ZR_QUIET) ||
        strcmp(zt_types[call->func->return_type].name, "ze_result_t") != 0)
        return;
    pthread_mutex_lock(&run->mutex);
    if (report->error_call == 0) {
        report->error_call = call->number;
        snprintf(report->error_function, sizeof(report->error_function), "%s", call->func->name);
        snprintf(report->error_result, sizeof(report->error_result), "%s", zt_result_name(result));
    }
    pthread_mutex_unlock(&run->mutex);
}

static void make_call(zr_run *run, const zr_call *call)
{
    if ((call->flags & ZR_SKIP) || !(call->flags & ZR_RETURNED) ||
        (run->options->to != 0 && call->number > run->options->to)) {
        not_made(run);
        return;
    }
    if (call->why_not != NULL) {
        if ((call->flags & (ZR_FAILED | ZR_QUIET)) || is_needless(call))
            not_made(run);
        else
            zr_stop(run, ZR_CANNOT, "call #%llu %s cannot be made again: %s", (unsigned long long)call->number,
                    call->func->name, call->why_not);
        return;
    }
    void *const fn = zr_target_function(&run->target, call->id);
    if (fn == NULL && call->result == 0 && !(call->flags & ZR_QUIET)) {
        zr_stop(run, ZR_CANNOT, "call #%llu needs %s, which the driver %s does not have",
                (unsigned long long)call->number, call->func->name, run->target.path);
        return;
    }
    uint64_t words[256];
    if (!apply_fixes(run, call, words)) {
        if (run->report->mismatches == 0 && run->options->verify != ZR_VERIFY_NONE &&
            !(call->flags & (ZR_FAILED | ZR_QUIET)))
            zr_stop(run, ZR_CANNOT, "call #%llu %s needs an object that no call before it has made here",
                    (unsigned long long)call->number, call->func->name);
        else
            not_made(run); /* it was to come from a call that failed here, which has been told */
        return;
    }
    /* what is waited for here may still read what the program wrote last before the call */
    if (run->options->n_points > 0)
        zr_inject(run, call, false);
    if (atomic_load_explicit(&run->stop, memory_order_relaxed))
        return;
    if (call->n_data > 0)
        zr_write_contents(run, call);
    for (uint32_t i = 0; i < call->n_outs; i++)
        if (call->outs[i].clear)
            memset(call->outs[i].live, 0, 8);
    atomic_store_explicit(&run->shared->current, (uint_fast32_t)(call - run->plan->calls), memory_order_relaxed);
    atomic_fetch_add_explicit(&run->shared->progress, 1, memory_order_relaxed);
    int64_t result = UNSUPPORTED_FEATURE;
    if (fn != NULL) {
        if (call->func->kind == ZT_K_SYNC || call->func->kind == ZT_K_QUERY)
            result = ask(run, call, fn, words);
        else if (run->forced != NULL)
            result = zr_forced_call(run, call, fn, words);
        else if (run->options->serialize != ZR_SERIALIZE_NONE)
            result = zr_serialized(run, call, fn, words);
        else
            result = zr_thunks[call->id](fn, words);
    }
    if (atomic_load_explicit(&run->stop, memory_order_relaxed))
        return;
    __atomic_add_fetch(&run->report->calls, 1, __ATOMIC_RELAXED);
    if (run->options->watch != 0 || run->options->watch_function != NULL)
        watch(run, call, result);
    note_error(run, call, result);
    zr_check_result(run, call, result);
    if (call->n_outs > 0)
        zr_take_outputs(run, call, result);
    look_at_start(run, call, result);
    if (call->n_data > 0 && result == call->result && !zr_forced_unread(run, call))
        zr_check_readbacks(run, call);
    if (run->options->n_points > 0)
        zr_inject(run, call, true);
}

/* The call in which the recorded program died, made last: dying again is the same. */
static void make_crash(zr_run *run)
{
    const zr_call *const call = run->plan->crash;
    if (call == NULL || call->why_not != NULL || atomic_load(&run->stop) ||
        (run->options->to != 0 && call->number > run->options->to))
        return;
    void *const fn = zr_target_function(&run->target, call->id);
    uint64_t words[256];
    if (fn == NULL || !apply_fixes(run, call, words))
        return;
    zr_write_contents(run, call);
    atomic_store(&run->shared->current, (uint_fast32_t)(call - run->plan->calls));
    atomic_store(&run->shared->crashing, 1);
    atomic_fetch_add(&run->shared->progress, 1);
    const int64_t result = run->forced ? zr_forced_call(run, call, fn, words) : zr_thunks[call->id](fn, words);
    atomic_store(&run->shared->crashing, 0);
    /* no difference: it may have died of the program's own pointer, and the replay's are always good */
    snprintf(run->report->pending_result, sizeof(run->report->pending_result), "%s", zt_result_name(result));
}

/* ------------------------------------------------------------------------------------------------------------ threads
 */

typedef struct lane {
    _Alignas(64) atomic_uint done; /* calls of the thread that are over */
    atomic_uint sleepers;
    zr_run *run;
    struct lane *all;
    const uint32_t *calls;
    size_t n;
    pthread_t thread;
} lane;

static void futex(atomic_uint *word, int op, unsigned value)
{
    const struct timespec t = {0, 50000000}; /* so that a stop is seen */
    syscall(SYS_futex, word, op, value, op == FUTEX_WAIT_PRIVATE ? &t : NULL, NULL, 0);
}

static bool wait_for(zr_run *run, lane *other, unsigned count)
{
    unsigned done;
    for (unsigned spin = 0; (done = atomic_load_explicit(&other->done, memory_order_acquire)) < count; spin++) {
        if (atomic_load_explicit(&run->stop, memory_order_relaxed))
            return false;
        if (spin < run->spins) {
            __builtin_ia32_pause();
            continue;
        }
        atomic_fetch_add(&other->sleepers, 1);
        futex(&other->done, FUTEX_WAIT_PRIVATE, done);
        atomic_fetch_sub(&other->sleepers, 1);
    }
    return true;
}

static void *run_lane(void *arg)
{
    lane *const l = arg;
    for (size_t i = 0; i < l->n; i++) {
        const zr_call *const call = &l->run->plan->calls[l->calls[i]];
        for (uint32_t k = 0; k < call->n_deps; k++)
            if (!wait_for(l->run, &l->all[call->deps[k].thread], call->deps[k].count))
                return NULL;
        if (atomic_load_explicit(&l->run->stop, memory_order_relaxed))
            return NULL;
        make_call(l->run, call);
        atomic_store(&l->done, (unsigned)i + 1);
        if (atomic_load(&l->sleepers) > 0)
            futex(&l->done, FUTEX_WAKE_PRIVATE, INT_MAX);
    }
    return NULL;
}

static void run_threads(zr_run *run)
{
    zr_plan *const plan = run->plan;
    lane *const lanes = aligned_alloc(64, plan->n_threads * sizeof(*lanes));
    if (lanes == NULL) {
        zr_stop(run, ZR_CANNOT, "not enough memory for %u threads", plan->n_threads);
        return;
    }
    memset(lanes, 0, plan->n_threads * sizeof(*lanes));
    size_t at = 0;
    uint32_t started = 0;
    /* a hand-over takes less than a sleep, if there is a processor for each */
    run->spins = sysconf(_SC_NPROCESSORS_ONLN) >= (long)plan->n_threads ? 20000 : 200;
    for (uint32_t i = 0; i < plan->n_threads; i++) {
        lanes[i].run = run;
        lanes[i].all = lanes;
        lanes[i].calls = plan->thread_calls + at;
        lanes[i].n = plan->per_thread[i];
        at += lanes[i].n;
    }
    for (; started < plan->n_threads; started++) {
        const int error = pthread_create(&lanes[started].thread, NULL, run_lane, &lanes[started]);
        if (error != 0) {
            zr_stop(run, ZR_CANNOT, "thread %u of %u cannot be started: %s; --threads=one needs none", started + 1,
                    plan->n_threads, strerror(error));
            break;
        }
    }
    for (uint32_t i = 0; i < started; i++)
        pthread_join(lanes[i].thread, NULL);
    free(lanes);
}

/* -------------------------------------------------------------------------------------------------------------- drain
 */

int64_t zr_sync_object(zr_run *run, uint32_t index, uint64_t timeout)
{
    const zr_object *const object = &run->plan->objects.objects[index];
    const char *const kind = zt_types[object->type].object;
    const int id =
        zt_func_find(kind && strcmp(kind, "queue") == 0 ? "zeCommandQueueSynchronize" : "zeCommandListHostSynchronize");
    void *const fn = id >= 0 ? zr_target_function(&run->target, (uint32_t)id) : NULL;
    const uint64_t words[] = {object->live, timeout};
    return fn ? zr_thunks[id](fn, words) : UNSUPPORTED_FEATURE;
}

static void drain(zr_run *run)
{
    zr_objects *const o = &run->plan->objects;
    const uint64_t limit = run->options->timeout_ns, deadline = now_ns() + limit;
    if (run->options->to != 0 || run->options->verify == ZR_VERIFY_NONE)
        return;
    for (size_t i = 0; i < o->n_objects && !atomic_load(&run->stop); i++) {
        const zr_object *const object = &o->objects[i];
        const char *const kind = zt_types[object->type].object;
        if (object->dead || object->live == 0 || kind == NULL ||
            !(strcmp(kind, "queue") == 0 || (strcmp(kind, "list") == 0 && object->immediate)))
            continue;
        const uint64_t now = now_ns();
        atomic_fetch_add(&run->shared->progress, 1);
        /* what still waits for the host at the end of the recording would wait for ever: no need to wait that long */
        const uint64_t rest = now < deadline ? deadline - now : 0, most = zr_forced_limit(run, 1000000000);
        const int64_t result = zr_sync_object(run, (uint32_t)i, rest < most ? rest : most);
        if (zt_is_fault(result) && !run->plan->recorded_failed && run->plan->pending == 0) {
            char name[64], detail[160];
            zr_object_name(o, (uint32_t)i, name, sizeof(name));
            snprintf(detail, sizeof(detail), "found when %s was drained at the end", name);
            zr_mismatch_add(run, NULL, ZR_W_FAULT, detail, "no fault", zt_result_name(result));
        }
    }
}

void zr_run_plan(zr_run *run)
{
    zr_plan *const plan = run->plan;
    zr_report *const report = run->report;
    if (!zr_target_load(&run->target, plan, run->options, report->message, sizeof(report->message))) {
        report->verdict = ZR_CANNOT;
        return;
    }
    if (run->options->n_points > 0 && !zr_inject_begin(run)) {
        zr_stop(run, ZR_CANNOT, "not enough memory for injections");
        return;
    }
    zr_take_in(run);
    const uint64_t start = now_ns();
    const bool one =
        run->options->threads == ZR_THREADS_ONE || plan->n_threads <= 1 || run->options->serialize != ZR_SERIALIZE_NONE;
    if (run->options->items != NULL) {
        zr_run_forced(run, make_call);
    } else if (one) {
        for (size_t i = 0; i < plan->n_calls && !atomic_load_explicit(&run->stop, memory_order_relaxed); i++)
            make_call(run, &plan->calls[plan->order[i]]);
    } else {
        run_threads(run);
    }
    report->ns = now_ns() - start;
    zr_forced_finish(run);
    zr_inject_end(run);
    if (!atomic_load(&run->stop)) {
        make_crash(run);
        drain(run);
    }
    if (report->verdict == ZR_SAME && report->mismatches > 0)
        report->verdict = ZR_DIFFERS;
}

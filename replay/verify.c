/* SPDX-License-Identifier: MIT */
/* What came back against what was recorded: results, outputs, memory. Takes over the new objects on the way. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

bool zr_verified(const zr_run *run, const zr_call *call)
{
    return run->options->verify != ZR_VERIFY_NONE && call->number >= run->options->from && !(call->flags & ZR_QUIET);
}

void zr_mismatch_add(zr_run *run, const zr_call *call, int what, const char *detail, const char *recorded,
                     const char *replayed)
{
    pthread_mutex_lock(&run->mutex);
    zr_report *const report = run->report;
    const uint64_t number = call ? call->number : 0;
    report->mismatches_of[what]++;
    /* threads may find theirs out of turn: the first is the one with the lowest number */
    if (report->mismatches++ == 0 || (number != 0 && number < report->first.call)) {
        report->first = (zr_mismatch){.call = number, .what = what};
        snprintf(report->first.function, sizeof(report->first.function), "%s", call ? call->func->name : "");
        snprintf(report->first.recorded, sizeof(report->first.recorded), "%s", recorded);
        snprintf(report->first.replayed, sizeof(report->first.replayed), "%s", replayed);
        snprintf(report->first.detail, sizeof(report->first.detail), "%s", detail);
    }
    pthread_mutex_unlock(&run->mutex);
}

static void add(zr_run *run, uint64_t *counter)
{
    (void)run;
    __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

void zr_check_result(zr_run *run, const zr_call *call, int64_t result)
{
    if (call->flags & ZR_HANDLE_RESULT) {
        if (call->result_object != ZR_NONE)
            run->plan->objects.objects[call->result_object].live = (uint64_t)result;
        if (zr_verified(run, call) && (result == 0) != (call->result == 0))
            zr_mismatch_add(run, call, ZR_W_RESULT, "", call->result ? "a handle" : "NULL",
                            result ? "a handle" : "NULL");
        return;
    }
    if (!zr_verified(run, call))
        return;
    const int kind = call->func->kind;
    /* done earlier than recorded is no difference: nobody forces the device to be late */
    const bool early =
        call->result == ZR_NOT_READY && result == ZR_SUCCESS && (kind == ZT_K_SYNC || kind == ZT_K_QUERY);
    if (early) {
        pthread_mutex_lock(&run->mutex);
        if (run->report->early_call == 0 || call->number < run->report->early_call)
            run->report->early_call = call->number;
        pthread_mutex_unlock(&run->mutex);
    } else if (result != call->result) {
        char recorded[64], replayed[64];
        const bool is_result = strcmp(zt_types[call->func->return_type].name, "ze_result_t") == 0;
        if (!is_result) {
            snprintf(recorded, sizeof(recorded), "%lld", (long long)call->result);
            snprintf(replayed, sizeof(replayed), "%lld", (long long)result);
        } else {
            snprintf(recorded, sizeof(recorded), "%s", zt_result_name(call->result));
            snprintf(replayed, sizeof(replayed), "%s", zt_result_name(result));
        }
        zr_mismatch_add(run, call, ZR_W_RESULT, "", recorded, replayed);
    } else if ((call->flags & ZR_FAILED) && result != ZR_NOT_READY && kind != ZT_K_GET) {
        pthread_mutex_lock(&run->mutex);
        zr_report *const report = run->report;
        if (report->failed_call == 0 || call->number < report->failed_call) {
            report->failed_call = call->number;
            snprintf(report->failed_function, sizeof(report->failed_function), "%s", call->func->name);
            snprintf(report->failed_result, sizeof(report->failed_result), "%s", zt_result_name(result));
        }
        pthread_mutex_unlock(&run->mutex);
    }
}

static uint64_t load(const void *p, uint64_t size)
{
    uint64_t value = 0;
    memcpy(&value, p, size > 8 ? 8 : size);
    return value;
}

static void print_value(const zt_type *type, const void *data, uint64_t size, char *out, size_t room)
{
    const uint64_t value = load(data, size);
    const char *const name = type->cls == ZT_ENUM ? zt_enum_name(type, (uint32_t)value) : NULL;
    double number = 0;
    if (name != NULL) {
        snprintf(out, room, "%s", name);
    } else if (type->cls == ZT_FLOAT) {
        if (size == 4) {
            float narrow;
            memcpy(&narrow, data, 4);
            number = narrow;
        } else {
            memcpy(&number, data, 8);
        }
        snprintf(out, room, "%g", number);
    } else if (type->cls == ZT_FLAGS || type->cls == ZT_ENUM) {
        snprintf(out, room, "0x%llx", (unsigned long long)value);
    } else {
        snprintf(out, room, "%llu", (unsigned long long)value);
    }
}

static void output_differs(zr_run *run, const zr_call *call, const zr_out *out)
{
    char detail[160], recorded[256], replayed[256];
    snprintf(detail, sizeof(detail), "%s", out->field->name);
    if (out->kind == ZR_OUT_VALUE) {
        print_value(out->type, out->recorded, out->size, recorded, sizeof(recorded));
        print_value(out->type, out->live, out->size, replayed, sizeof(replayed));
    } else if (out->kind == ZR_OUT_TEXT) {
        snprintf(recorded, sizeof(recorded), "\"%.*s\"", (int)(out->size < 250 ? out->size : 250),
                 (const char *)out->recorded);
        snprintf(replayed, sizeof(replayed), "\"%.*s\"", (int)(out->size < 250 ? out->size : 250),
                 (const char *)out->live);
    } else {
        const uint8_t *const a = out->recorded, *const b = out->live;
        uint64_t first = 0, n = 0;
        for (uint64_t i = out->size; i-- > 0;) {
            if (a[i] != b[i]) {
                first = i;
                n++;
            }
        }
        snprintf(detail, sizeof(detail), "%s, byte %llu, %llu of %llu bytes differ", out->field->name,
                 (unsigned long long)first, (unsigned long long)n, (unsigned long long)out->size);
        snprintf(recorded, sizeof(recorded), "0x%02x", a[first]);
        snprintf(replayed, sizeof(replayed), "0x%02x", b[first]);
    }
    zr_mismatch_add(run, call, ZR_W_OUTPUT, detail, recorded, replayed);
}

static void take_object(zr_run *run, const zr_call *call, const zr_out *out)
{
    zr_object *const objects = run->plan->objects.objects;
    const uint64_t live = load(out->live, 8);
    if (live != 0) {
        if (out->created || objects[out->index].live == 0)
            objects[out->index].live = live;
        return;
    }
    /* fewer here than recorded: the first stands for those that are missing */
    for (uint32_t i = 0; i < call->n_outs && objects[out->index].live == 0; i++) {
        const zr_out *const first = &call->outs[i];
        if (first->kind == ZR_OUT_OBJECT && first->field == out->field && load(first->live, 8) != 0) {
            objects[out->index].live = load(first->live, 8);
            add(run, &run->report->mapped);
        }
    }
}

void zr_take_outputs(zr_run *run, const zr_call *call, int64_t result)
{
    const bool compare = zr_verified(run, call) && run->options->verify == ZR_VERIFY_ALL && result == call->result;
    const bool wrote =
        result == 0 || call->result != 0; /* outputs that a failed call still gives were recorded as such */
    for (uint32_t i = 0; wrote && i < call->n_outs; i++) {
        const zr_out *const out = &call->outs[i];
        if (out->kind == ZR_OUT_OBJECT) {
            take_object(run, call, out);
        } else if (out->kind == ZR_OUT_MEM) {
            zr_mem *const mem = &run->plan->objects.mems[out->index];
            const uint64_t recorded = load(out->recorded, 8), live = load(out->live, 8),
                           inside = recorded - mem->recorded;
            if (out->created)
                mem->live = live;
            else if (compare && mem->live != 0 && live != mem->live + inside) {
                char a[96], b[128];
                zr_address_name(&run->plan->objects, recorded, out->index, a, sizeof(a));
                snprintf(b, sizeof(b), "%s%+lld", a, (long long)(live - (mem->live + inside)));
                zr_mismatch_add(run, call, ZR_W_OUTPUT, out->field->name, a, b);
            }
        } else if (compare && !out->vary) {
            const bool differs = out->kind == ZR_OUT_TEXT ? strncmp(out->recorded, out->live, out->size) != 0
                                                          : memcmp(out->recorded, out->live, out->size) != 0;
            if (differs && run->target.same)
                output_differs(run, call, out);
            else if (differs)
                add(run, &run->report->mapped);
        }
    }
}

static double number_at(const uint8_t *at, unsigned size)
{
    float single;
    double wide;
    memcpy(&single, at, sizeof(single));
    if (size == 4)
        return single;
    memcpy(&wide, at, sizeof(wide));
    return wide;
}

/* Whether both hold floating-point numbers that are as good as the same. */
static bool within(const zr_options *o, const uint8_t *a, const uint8_t *b, uint64_t len)
{
    const unsigned size = o->tolerance_size;
    if (size == 0 || len % size != 0)
        return false;
    for (uint64_t i = 0; i < len; i += size) {
        const double x = number_at(a + i, size), y = number_at(b + i, size);
        if (memcmp(a + i, b + i, size) != 0 && !(fabs(x - y) <= o->tolerance * fmax(fabs(x), fabs(y))))
            return false;
    }
    return true;
}

static uint8_t *live_of(const zr_run *run, const zr_data *data)
{
    if (data->mem == ZR_NONE)
        return data->live;
    const zr_mem *const mem = &run->plan->objects.mems[data->mem];
    return mem->live ? (uint8_t *)(uintptr_t)(mem->live + (data->addr - mem->recorded)) : NULL;
}

void zr_take_in(zr_run *run)
{
    const zr_options *const o = run->options;
    for (size_t i = 0; o->items == NULL && i < o->n_taken; i++) {
        const size_t index = zr_find_call(run->plan, o->taken[i].call);
        for (uint32_t k = 0; index != SIZE_MAX && k < run->plan->calls[index].n_data; k++) {
            zr_data *const data = &run->plan->calls[index].data[k];
            if (data->number != o->taken[i].execution || !data->readback)
                continue;
            if (data->n_taken++ == 0)
                data->taken = &o->taken[i];
        }
    }
}

/* The host's bytes come back as it left them: no later call need carry them. */
static void put_taken(zr_run *run, const zr_data *data)
{
    uint8_t *const live = live_of(run, data);
    const uint8_t *const bytes = data->bytes;
    uint64_t n = 0;
    for (uint32_t i = 0; live != NULL && bytes != NULL && i < data->n_taken; i++) {
        const zr_item *const part = &data->taken[i];
        for (uint64_t at = part->from; at < data->len && at - part->from < part->size; at++) {
            n += live[at] != bytes[at];
            live[at] = bytes[at];
        }
    }
    __atomic_add_fetch(&run->report->taken, n, __ATOMIC_RELAXED);
}

static void check_memory(zr_run *run, const zr_call *call, const zr_data *data)
{
    const uint8_t *const live = live_of(run, data);
    if (live == NULL)
        return;
    __atomic_add_fetch(&run->report->compared, data->len, __ATOMIC_RELAXED);
    char name[96], detail[256], recorded[64], replayed[64];
    if (data->bytes == NULL) {
        const XXH128_hash_t hash = XXH3_128bits(live, data->len);
        if (hash.low64 == data->hash.lo && hash.high64 == data->hash.hi)
            return;
        if (data->n_taken > 0) { /* who wrote what of them can't be told */
            __atomic_add_fetch(&run->report->taken, data->len, __ATOMIC_RELAXED);
            return;
        }
        zr_address_name(&run->plan->objects, data->addr, data->mem, name, sizeof(name));
        snprintf(detail, sizeof(detail), "%s, %llu bytes, of which the trace holds the hash only", name,
                 (unsigned long long)data->len);
        snprintf(recorded, sizeof(recorded), "hash %016llx%016llx", (unsigned long long)data->hash.hi,
                 (unsigned long long)data->hash.lo);
        snprintf(replayed, sizeof(replayed), "hash %016llx%016llx", (unsigned long long)hash.high64,
                 (unsigned long long)hash.low64);
        zr_mismatch_add(run, call, ZR_W_MEMORY, detail, recorded, replayed);
        return;
    }
    if (memcmp(live, data->bytes, data->len) == 0 || within(run->options, live, data->bytes, data->len))
        return;
    const uint8_t *const bytes = data->bytes;
    uint64_t first = data->len, n = 0;
    for (uint64_t i = data->len; i-- > 0;) {
        if (live[i] != bytes[i]) {
            first = i;
            n++;
        }
    }
    if (n == 0)
        return; /* it has changed under our eyes */
    zr_address_name(&run->plan->objects, data->addr + first, data->mem, name, sizeof(name));
    snprintf(detail, sizeof(detail), "%s, %llu of %llu bytes differ", name, (unsigned long long)n,
             (unsigned long long)data->len);
    snprintf(recorded, sizeof(recorded), "0x%02x", bytes[first]);
    snprintf(replayed, sizeof(replayed), "0x%02x", live[first]);
    zr_mismatch_add(run, call, ZR_W_MEMORY, detail, recorded, replayed);
}

void zr_check_readbacks(zr_run *run, const zr_call *call)
{
    for (uint32_t i = 0; i < call->n_data; i++)
        if (call->data[i].n_taken > 0)
            put_taken(run, &call->data[i]);
    if (run->options->verify != ZR_VERIFY_ALL || !zr_verified(run, call))
        return;
    for (uint32_t i = 0; i < call->n_data; i++)
        if (call->data[i].readback && !call->data[i].held)
            check_memory(run, call, &call->data[i]);
}

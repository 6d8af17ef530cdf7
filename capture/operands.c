/* SPDX-License-Identifier: MIT */
/* Which memory a command touches: by shapes and roles of its parameters; of a kernel, by what was set before. */
#include "contents.h"

uint64_t zc_word_of(const zc_call *call, int role)
{
    const zt_field *const f = zt_param_by_role(&zt_funcs[call->func], (enum zt_role)role);
    return f ? call->words[f->offset] : 0;
}

/* Fills in where an address lies. @return false for memory of the device's own. */
static bool locate(zc_operand *o)
{
    const zc_alloc *const a = zc_alloc_find(o->addr);
    if (a == NULL) {
        o->alloc = 0;
        return true;
    }
    o->alloc = a->id;
    return a->kind == ZC_USM_HOST || a->kind == ZC_USM_SHARED;
}

/* Arguments that come with the launch: how many, and how long, only the kernel knows. */
static bool brings_arguments(const zt_func *f)
{
    for (unsigned i = 0; i < f->n_params; i++)
        if (f->params[i].shape == ZT_ARRAY && f->params[i].count.op == ZT_X_LOOKUP)
            return true;
    return false;
}

/* @return the number of operands after those of the kernels that the call launches. */
static unsigned launched(const zc_call *call, const zt_walk *w, const zt_field *kernels, zc_operand *out, unsigned n, unsigned room, uint8_t *reach)
{
    const uint64_t word = call->words[kernels->offset];
    if (kernels->shape == ZT_VALUE)
        return zc_kernel_operands(word, out, n, room, reach);
    const int64_t count = zt_eval_param(w, &kernels->count);
    for (int64_t i = 0; i < count && word != 0; i++) {
        uint64_t handle;
        if (!zc_read_carefully(&handle, (const uint64_t *)(uintptr_t)word + i, sizeof(handle))) {
            *reach = ZC_REACH_ALL;
            break;
        }
        n = zc_kernel_operands(handle, out, n, room, reach);
    }
    return n;
}

unsigned zc_operands(const zc_call *call, zc_operand *out)
{
    const zt_func *const f = &zt_funcs[call->func];
    const zt_walk w = {.func = f, .words = call->words, .phase = ZT_ENTER, .memory = &zt_live_memory};
    const zt_field *const waits = zt_param_by_role(f, ZT_R_WAITS), *const kernels = zt_param_by_role(f, ZT_R_KERNEL);
    unsigned n = 0;
    uint8_t reach = 0;
    for (unsigned i = 0; i < f->n_params; i++) {
        const zt_field *const p = &f->params[i];
        if (p->shape != ZT_ADDRESS || p->access == 0 || n >= 8)
            continue;
        const int64_t len = zt_eval_param(&w, &p->count);
        zc_operand o = {.addr = call->words[p->offset], .len = len > 0 ? (uint64_t)len : 0, .access = p->access};
        if (o.len > 0 && o.addr != 0 && locate(&o))
            out[n++] = o;
    }
    if (kernels != NULL) {
        n = launched(call, &w, kernels, out, n, ZC_OPERANDS - 1, &reach);
        if (brings_arguments(f))
            reach = ZC_REACH_ALL;
        if (reach != 0)
            out[n++] = (zc_operand){.reach = reach, .access = ZT_IN | ZT_OUT};
    }
    const bool barrier = (f->flags & ZT_F_BARRIER) && (waits == NULL || call->words[waits->offset] == 0);
    const uint64_t signal = zc_word_of(call, ZT_R_SIGNAL);
    if (n == 0)
        out[n++] = (zc_operand){.len = 0};
    for (unsigned i = 0; i < n; i++)
        out[i].signal = signal;
    out[n - 1].barrier = barrier;
    return n;
}

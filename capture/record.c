/* SPDX-License-Identifier: MIT */
/*
 * Calls with arguments that have to be followed: everything is staged first, so that big pieces can go ahead as
 * ZC_R_DATA, and then copied behind the slot.
 */
#include "layer.h"

#include <errno.h>

#define PIECE_MAX (1ull << 40) /* no memory is that large */

/* The stage is full: what is in it goes ahead, and one piece stands for it. */
static void send_staged(zc_thread *t)
{
    zc_piece list = {.len = t->staged - t->listed, .kind = ZC_P_LIST};
    if (list.len <= sizeof(list))
        return;
    list.data_id = zc_send_data(t, t->stage + t->listed, list.len, false);
    list.flags = list.data_id ? ZC_PF_DATA : ZC_PF_LOST;
    if (list.data_id == 0 && t->ring != NULL)
        atomic_fetch_add_explicit(&t->ring->dropped_bytes, list.len, memory_order_relaxed);
    memcpy(t->stage + t->listed, &list, sizeof(list));
    t->listed += (uint32_t)sizeof(list);
    t->staged = t->listed;
}

void zc_stage(zc_thread *t, uint32_t kind, uint32_t flags, uint64_t addr, const void *data, uint64_t len, bool careful)
{
    zc_piece piece = {.addr = addr, .len = len, .kind = (uint8_t)kind, .flags = (uint8_t)flags};
    bool payload = !(flags & ZC_PF_LOST);
    const uint64_t bytes = flags & ZC_PF_HASH_ONLY ? 16 : len;
    if (payload && bytes > PIECE_MAX) {
        payload = false;
        piece.flags |= ZC_PF_LOST;
    }
    /* a length that the driver may be about to refuse: the program survives it, so must we */
    careful |= bytes > ZC_INLINE_MAX;
    uint64_t size = payload ? (bytes + 7) & ~7ull : 0;
    if (t->staged + sizeof(piece) + (size <= ZC_INLINE_MAX ? size : 0) > t->stage_size)
        send_staged(t);
    if (t->staged + sizeof(piece) > t->stage_size) {
        if (t->ring != NULL)
            atomic_fetch_add_explicit(&t->ring->dropped_bytes, size + sizeof(piece), memory_order_relaxed);
        return;
    }
    if (payload && (size > ZC_INLINE_MAX || t->staged + sizeof(piece) + size > t->stage_size)) {
        piece.data_id = zc_send_data(t, data, bytes, careful);
        piece.flags |= piece.data_id ? ZC_PF_DATA : ZC_PF_LOST;
        size = 0;
    }
    char *const at = t->stage + t->staged;
    if (size) {
        char *const to = at + sizeof(piece);
        *(uint64_t *)(to + size - 8) = 0;
        if (!careful) {
            memcpy(to, data, bytes);
        } else if (!zc_read_carefully(to, data, bytes)) {
            piece.flags |= ZC_PF_LOST;
            size = 0;
        }
    }
    memcpy(at, &piece, sizeof(piece));
    t->staged += (uint32_t)(sizeof(piece) + size);
}

static int stage_node(void *ctx, const zt_node *node)
{
    zc_thread *const t = ctx;
    if (node->kind != ZT_N_TARGET)
        return 0;
    if (node->type == NULL && node->field != NULL && node->field->shape == ZT_PNEXT)
        atomic_fetch_add_explicit(&t->ring->unknown_pnext, 1, memory_order_relaxed);
    zc_stage(t, ZC_P_MEMORY, 0, node->addr, node->data, node->size, false);
    return 0;
}

/* Counts as they were when the call was made. */
static const void *before_at(void *ctx, uint64_t addr, uint64_t len)
{
    const zc_call *const call = ctx;
    for (unsigned i = 0; i < call->n_before; i++)
        if (call->before[i].addr == addr && len <= 8)
            return &call->before[i].value;
    return NULL;
}

static void walk(zc_call *call, int phase, uint64_t result)
{
    const zt_memory before = {before_at, NULL, call};
    const zt_walk w = {.func = &zt_funcs[call->func], .words = call->words, .phase = phase, .result = (int64_t)result,
                       .memory = &zt_live_memory, .before = phase == ZT_LEAVE ? &before : NULL, .targets_only = true,
                       .visit = stage_node, .ctx = call->thread};
    zt_walk_call(&w);
}

bool zc_enter_walk(zc_call *call, const uint64_t *words)
{
    zc_thread *const t = call->thread;
    const uint32_t n_words = zt_funcs[call->func].n_words;
    if (zc_unlikely(t->staging || (t->head & 1))) { /* made by a signal handler */
        zc_lose_call(t);
        return false;
    }
    const int saved = errno;
    call->words = words;
    t->staging = true;
    atomic_signal_fence(memory_order_seq_cst);
    t->staged = t->listed = 0;
    if (zc_memory && zc_watched[call->func]) {
        const uint64_t since = zc_ticks_leave();
        zc_contents_enter(call);
        const uint64_t added = t->staged ? zc_ticks_leave() - since : 0;
        call->added_ticks = added > UINT32_MAX ? UINT32_MAX : (uint32_t)added;
    }
    if (t->ring != NULL)
        walk(call, ZT_ENTER, 0);
    zc_slot *const slot = zc_open(t, call->func, n_words, t->staged, 0, call->flags);
    call->slot = slot;
    if (slot != NULL) {
        call->seq = slot->seq;
        slot->added_ticks = call->added_ticks;
        memcpy(slot + 1, words, n_words * 8);
        memcpy(zc_words_end(slot, n_words), t->stage, t->staged);
        zc_publish(t, slot);
    }
    atomic_signal_fence(memory_order_seq_cst);
    t->staging = false;
    errno = saved;
    return slot != NULL;
}

/* A LEAVE of its own, for a slot that is no longer the newest record or lacks the room behind it. */
static void leave_record(zc_call *call, uint64_t t_leave, uint64_t result, uint64_t added)
{
    zc_thread *const t = call->thread;
    const uint32_t size = (uint32_t)sizeof(zc_leave) + t->staged;
    zc_leave *const leave = zc_record_begin(t, size);
    if (leave == NULL)
        return;
    *leave = (zc_leave){{size, ZC_R_LEAVE, (uint16_t)call->func}, t->staged, (uint32_t)added, call->seq, t_leave, result};
    memcpy(leave + 1, t->stage, t->staged);
    zc_record_end(t, size);
}

void zc_leave_walk(zc_call *call, uint64_t t_leave, uint64_t result)
{
    zc_thread *const t = call->thread;
    if (zc_self.thread != t)
        return; /* forked inside the call */
    const int saved = errno;
    uint64_t added = 0;
    t->staging = true;
    atomic_signal_fence(memory_order_seq_cst);
    t->staged = t->listed = 0;
    walk(call, ZT_LEAVE, result);
    if (zc_memory && zc_watched[call->func]) {
        const uint64_t since = zc_ticks_leave();
        zc_contents_leave(call, result);
        added = zc_ticks_leave() - since;
    }
    /* a slot that was given up has no place, also when no other is open any more */
    const bool in_place = call->slot != NULL && zc_in_place(t, call->slot);
    if (in_place && (t->head & ~1ull) + t->staged <= t->limit) {
        memcpy(zc_behind(t), t->stage, t->staged);
        if (zc_watched[call->func])
            call->slot->added_ticks += (uint32_t)added;
        zc_done(t, call->slot, t_leave, result, t->staged);
    } else {
        t->head &= ~1ull;
        t->depth--;
        leave_record(call, t_leave, result, added);
    }
    atomic_signal_fence(memory_order_seq_cst);
    t->staging = false;
    errno = saved;
}

ZC_COLD void zc_leave_late(zc_thread *t, uint32_t func, uint64_t seq, const uint64_t *words, uint64_t t_leave, uint64_t result)
{
    zc_call call = {.thread = t, .func = func, .seq = seq, .words = words};
    zc_leave_walk(&call, t_leave, result);
}

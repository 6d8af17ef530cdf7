/* SPDX-License-Identifier: MIT */
/* Makes a correct program: each command is appended only once everything it conflicts with is ordered before it. */
#include "parts.h"

#include <string.h>

/* -------------------------------------------------------------------------------------------- commands */

static bool overlaps(const plan_access *a, int buffer, int from, int to, bool write)
{
    return a->buffer == buffer && a->from < to && from < a->to && (write || a->write);
}

/* @return the youngest run that conflicts with the bytes and is not in the set, -1 if none. */
static int in_the_way(const program *p, const uint64_t *set, int buffer, int from, int to, bool write)
{
    for (int i = p->n_accesses - 1; i >= 0; i--) {
        const plan_access *const a = &p->accesses[i];
        if (overlaps(a, buffer, from, to, write) && a->run >= 0 && !has(set, a->end))
            return a->run;
    }
    return -1;
}

static int first_conflict(const program *p, const host_op *o)
{
    static uint64_t row[WORDS];
    const plan_lane *const l = &p->lanes[o->lane];
    memcpy(row, host, sizeof(row));
    add(row, l->start);
    if (l->in_order)
        add(row, l->list_order);
    for (int w = 0; w < o->n_waits; w++)
        add_node(row, p->events[o->waits[w]].source);
    int r = o->dst >= 0 ? in_the_way(p, row, o->dst, o->dst_at, o->dst_at + o->size, true) : -1;
    if (r < 0 && o->src >= 0)
        r = in_the_way(p, row, o->src, o->src_at, o->src_at + o->size, false);
    return r;
}

/* An event whose signal comes after the run, that the lane may wait for; -1 if none. */
static int event_after(program *p, int r, int l)
{
    const int from = (int)roll(p, (uint64_t)p->n_events);
    for (int i = 0; i < p->n_events; i++) {
        const int e = (from + i) % p->n_events;
        const plan_event *const event = &p->events[e];
        if (event->source < 0 || event->context != p->lanes[l].context || event->pinned ||
            (event->counter_lane < 0 && used_up(event)))
            continue;
        if (event->counter_lane >= 0 &&
            !p->lanes[l].immediate) /* its wait is for what is signalled when the list is submitted */
            continue;
        if (event->source == p->runs[r].end || (has(known_before[event->source], p->runs[r].end) && chance(p, 30)))
            return e;
    }
    return -1;
}

/* Signals an event once the run has ended, by a command behind it. */
static int signal_after(program *p, int r)
{
    const int l = p->runs[r].lane;
    const int e = take_event(p, p->lanes[l].context);
    host_op o = command_on(p, l, C_BARRIER);
    if (p->lanes[l].in_order && (p->lanes[l].immediate || p->runs[r].list == p->lanes[l].open) && chance(p, 50))
        o.command = C_SIGNAL;
    o.signal = e;
    append(p, o);
    return e;
}

/* Orders the run before the command, which is about to be appended. */
static void put_before(program *p, int r, host_op *o)
{
    const int from = p->runs[r].lane, to = o->lane;
    const bool same_context = p->lanes[from].context == p->lanes[to].context;
    const int percent_host = p->class == TWO_QUEUES || p->class == HOST_WRITE ? 25 : 8;
    if (!same_context || o->n_waits == MAX_WAITS || chance(p, percent_host)) {
        sync_run(p, r, true);
    } else if (from == to && chance(p, p->class == NO_BARRIER ? 90 : 50)) {
        append(p, command_on(p, to, C_BARRIER));
    } else {
        int e = event_after(p, r, to);
        if (e < 0)
            e = signal_after(p, r);
        if (o->n_waits == 0 && o->command != C_WAIT && chance(p, 15)) {
            host_op wait = command_on(p, to, C_WAIT);
            wait.waits[wait.n_waits++] = e;
            append(p, wait);
        } else {
            o->waits[o->n_waits++] = e;
            p->events[e].held = true;
        }
    }
    if (!p->lanes[to].immediate && p->lanes[to].open < 0)
        open_list(p, to);
}

static void append_ordered(program *p, host_op o)
{
    for (int r; (r = first_conflict(p, &o)) >= 0;)
        put_before(p, r, &o);
    plan_lane *const l = &p->lanes[o.lane];
    if (o.n_waits < MAX_WAITS && chance(p, 4)) { /* submit first, signal later */
        const int e = take_event(p, l->context);
        p->events[e].source = new_node(p);
        gates[n_gates++] = e;
        o.waits[o.n_waits++] = e;
    }
    if (l->immediate && l->in_order && chance(p, 40))
        o.signal = l->counter_event;
    else if (chance(p, 50))
        o.signal = take_event(p, l->context);
    for (int w = 0; w < o.n_waits; w++)
        p->events[o.waits[w]].held = false;
    append(p, o);
}

static int pick_buffer(program *p, int context)
{
    for (;;) {
        const int b = (int)roll(p, (uint64_t)p->n_buffers);
        const plan_buffer *const chosen = &p->buffers[b];
        if (!chosen->freed && !chosen->bait && (chosen->context < 0 || chosen->context == context))
            return b;
    }
}

/* A copy engine fills with single bytes. */
static uint64_t pattern_for(const program *p, int lane, uint64_t wanted)
{
    return p->lanes[lane].ordinal > 0 ? (wanted & 0xff) * 0x0101010101010101u : wanted;
}

static void random_command(program *p)
{
    const int l = (int)roll(p, (uint64_t)p->n_lanes), context = p->lanes[l].context;
    host_op o = command_on(p, l, chance(p, 35) ? C_FILL : C_COPY);
    const int blocks = BUFFER_SIZE / 64;
    const int n = 1 + (int)roll(p, chance(p, 70) ? 16 : (uint64_t)blocks);
    o.size = 64 * n;
    o.dst = pick_buffer(p, context);
    o.dst_at = 64 * (int)roll(p, (uint64_t)(blocks - n + 1));
    o.pattern = pattern_for(p, l, roll(p, UINT64_MAX));
    if (o.command == C_COPY) {
        do
            o.src = pick_buffer(p, context);
        while (o.src == o.dst);
        o.src_at = 64 * (int)roll(p, (uint64_t)(blocks - n + 1));
    }
    append_ordered(p, o);
}

/* ----------------------------------------------------------------------- what the host does in between */

/* Waits for whatever uses the buffer, and does something with it at once. */
static void touch(program *p, op_kind kind, int b)
{
    for (int r; (r = in_the_way(p, host, b, 0, BUFFER_SIZE, true)) >= 0;)
        sync_run(p, r, false);
    host_op o = op_of(kind);
    o.buffer = b;
    o.dst = b;
    o.size = BUFFER_SIZE;
    o.pattern = roll(p, UINT64_MAX);
    const int at = add_op(p, o);
    const int node = p->ops[at].node;
    add_access(p, (plan_access){b, 0, BUFFER_SIZE, node, node, -1, at, true});
    if (kind == OP_EVICT)
        add_op(p, (o.kind = OP_RESIDENT, o));
    p->buffers[b].freed |= kind == OP_FREE;
}

static int in_flight_buffer(program *p, bool device, bool host_memory, bool pageable)
{
    for (int i = p->n_accesses - 1, looked = 0; i >= 0 && looked < 40; i--, looked++) {
        const plan_access *const a = &p->accesses[i];
        const plan_buffer *const b = &p->buffers[a->buffer];
        if (!b->freed && !b->bait && a->run >= 0 && !has(host, a->end) && a->buffer < p->n_buffers && chance(p, 40) &&
            ((b->kind == M_DEVICE && device) || (b->kind == M_HOST && host_memory) ||
             (b->kind == M_MALLOC && pageable)))
            return a->buffer;
    }
    return -1;
}

static void execute_again(program *p, int l)
{
    plan_list *const list = &p->lists[l];
    const int n = list->n_ops;
    for (int i = 0; i < n; i++) {
        const host_op o = p->ops[list->ops[i]];
        for (int r; o.dst >= 0 && (r = in_the_way(p, host, o.dst, o.dst_at, o.dst_at + o.size, true)) >= 0;)
            sync_run(p, r, false);
        for (int r; o.src >= 0 && (r = in_the_way(p, host, o.src, o.src_at, o.src_at + o.size, false)) >= 0;)
            sync_run(p, r, false);
    }
    sync_list(p, l);
    host_op o = op_of(OP_EXECUTE);
    o.lane = list->lane;
    o.list = l;
    o.again = true;
    const int at = add_op(p, o);
    demand_list(p, l, at);
    list->executions++;
    plan_lane *const lane = &p->lanes[list->lane];
    memset(lane->list_order, 0, sizeof(lane->list_order));
    for (int i = 0; i < n; i++)
        add_run(p, list->ops[i], at, list->executions);
    memset(lane->list_order, 0, sizeof(lane->list_order));
}

static void again(program *p)
{
    flush(p);
    const int from = p->n_lists ? (int)roll(p, (uint64_t)p->n_lists) : 0;
    for (int i = 0; i < p->n_lists; i++) {
        const int l = (from + i) % p->n_lists;
        const plan_list *const list = &p->lists[l];
        bool lives = list->closed && list->plain && !list->pinned && list->executions < 3 && list->n_ops > 0;
        for (int c = 0; c < list->n_ops && lives; c++) {
            const host_op *const o = &p->ops[list->ops[c]];
            lives = (o->dst < 0 || !p->buffers[o->dst].freed) && (o->src < 0 || !p->buffers[o->src].freed);
        }
        if (lives) {
            execute_again(p, l);
            return;
        }
    }
}

/* Two lists on two queues with an event between them, run in rounds with new contents in each. */
static void rounds(program *p)
{
    int lanes[2], n = 0, b[3], buffers = 0;
    for (int l = 0; l < p->n_lanes && n < 2; l++)
        if (!p->lanes[l].immediate && p->lanes[l].context == 0)
            lanes[n++] = l;
    for (int i = 0; i < p->n_buffers && buffers < 3; i++)
        if (!p->buffers[i].freed && !p->buffers[i].bait && p->buffers[i].context <= 0 &&
            (buffers > 0 || p->buffers[i].kind != M_DEVICE))
            b[buffers++] = i;
    if (n < 2 || buffers < 3)
        return;
    sync_all(p);
    const int e = new_event(p, 0, -1);
    p->events[e].pinned = true;
    int lists[2];
    for (int i = 0; i < 2; i++) {
        host_op o = command_on(p, lanes[i], C_COPY);
        lists[i] = p->lanes[lanes[i]].open;
        p->lists[lists[i]].pinned = true;
        o.src = b[i];
        o.dst = b[i + 1];
        o.size = BUFFER_SIZE;
        if (i == 0)
            o.signal = e;
        else
            o.waits[o.n_waits++] = e;
        append(p, o);
    }
    flush(p);
    const int k = 1 + (int)roll(p, 3);
    for (int i = 0; i < k; i++) {
        touch(p, OP_WRITE, b[0]);
        sync_list(p, lists[1]);
        reset_event(p, e);
        execute_again(p, lists[0]);
        /* the second list's operands are ordered by the event: nothing to wait for */
        host_op o = op_of(OP_EXECUTE);
        o.lane = lanes[1];
        o.list = lists[1];
        o.again = true;
        const int at = add_op(p, o);
        demand_list(p, lists[1], at);
        add_run(p, p->lists[lists[1]].ops[0], at, ++p->lists[lists[1]].executions);
    }
}

static void early_event_reset(program *p)
{
    const int from = p->n_events ? (int)roll(p, (uint64_t)p->n_events) : 0;
    flush(p);
    for (int i = 0; i < p->n_events; i++) {
        const int number = (from + i) % p->n_events;
        const plan_event *const e = &p->events[number];
        const int signaller = e->source >= 0 ? run_of_end(p, e->source) : -1;
        if (signaller < 0 || e->counter_lane >= 0 || e->pinned || e->n_users == 0 ||
            has(host, p->runs[e->users[0]].end))
            continue;
        for (int u = 0; u < e->n_users; u++)
            while (!has(host, p->runs[e->users[u]].end))
                sync_lane(p, p->runs[e->users[u]].lane);
        if (event_idle(p, e)) {
            reset_event(p, number);
            host_op o = command_on(p, p->runs[signaller].lane, C_BARRIER);
            o.signal = number;
            append(p, o);
        }
        return;
    }
}

/* What looks wrong and is not. */
static void bait(program *p)
{
    add_op(p, op_of(OP_IDLE_EVICT));
    for (int l = 0; l < p->n_lanes; l++) {
        if (p->lanes[l].immediate)
            continue;
        int b = 0; /* written between append and execute */
        while (b < p->n_buffers && !p->buffers[b].bait)
            b++;
        for (int r; (r = in_the_way(p, host, b, 0, BUFFER_SIZE, true)) >= 0;)
            sync_run(p, r, false);
        host_op o = command_on(p, l, C_COPY);
        o.src = b;
        o.dst = pick_buffer(p, p->lanes[l].context);
        o.size = 256;
        for (int r; (r = first_conflict(p, &o)) >= 0;)
            put_before(p, r, &o);
        append(p, o);
        if (p->lanes[l].open < 0)
            return;
        host_op w = op_of(OP_WRITE);
        w.buffer = w.dst = b;
        w.size = BUFFER_SIZE;
        w.pattern = roll(p, UINT64_MAX);
        const int at = add_op(p, w);
        add_access(p, (plan_access){b, 0, BUFFER_SIZE, p->ops[at].node, p->ops[at].node, -1, at, true});
        execute(p, l);
        return;
    }
}

static void host_action(program *p)
{
    static const class_id wanted[] = {HOST_WRITE, FREE_IN_USE, EVICT_IN_USE, LIST_REUSED, EARLY_RESET};
    int what = (int)roll(p, 6), alive = 0;
    for (int i = 0; i < 5; i++)
        if (p->class == wanted[i] && chance(p, 70))
            what = i;
    for (int b = 0; b < p->n_buffers; b++)
        alive += !p->buffers[b].freed;
    const int b = in_flight_buffer(p, what != 0, what != 2, what == 0);
    if (what == 5)
        bait(p);
    else if (what == 3)
        again(p);
    else if (what == 4)
        early_event_reset(p);
    else if (b >= 0 && (what != 1 || (p->buffers[b].kind != M_MALLOC && alive > 8)))
        touch(p, what == 0 ? OP_WRITE : what == 1 ? OP_FREE : OP_EVICT, b);
}

/* ------------------------------------------------------------------------------------------------ plan */

static void make_world(program *p, int lanes)
{
    const bool two = p->class == TWO_CONTEXTS || chance(p, 25);
    p->contexts = two ? 2 : 1;
    p->n_lanes = lanes ? lanes : 2 + (int)roll(p, MAX_LANES - 1);
    for (int l = 0; l < p->n_lanes; l++) {
        const int ordinal = l == 0 ? 0 : l == 1 && p->class == COPY_COMPUTE ? 1 + (int)roll(p, 2) : (int)roll(p, 3);
        p->lanes[l] = (plan_lane){.immediate = l > 1 && chance(p, 50),
                                  .in_order = l > 1 && chance(p, 40),
                                  .ordinal = ordinal,
                                  .index = ordinal == 2 ? (int)roll(p, 8) : 0,
                                  .context = two && (l == p->n_lanes - 1 || (l > 1 && chance(p, 30))),
                                  .open = -1,
                                  .fence_execute = -1,
                                  .counter_event = -1};
        if (p->lanes[l].immediate && p->lanes[l].in_order)
            p->lanes[l].counter_event = new_event(p, p->lanes[l].context, l);
    }
    p->n_buffers = 10 + (int)roll(p, 51);
    for (int b = 0; b < p->n_buffers; b++) {
        const memory_kind kind = b < 4 ? (b == 0 ? M_HOST : M_MALLOC) : (memory_kind)roll(p, 3);
        p->buffers[b] = (plan_buffer){.kind = kind,
                                      .context = kind == M_MALLOC ? -1
                                                 : b == 0         ? 0
                                                                  : two && chance(p, 30),
                                      .bait = b == 3,
                                      .seed = roll(p, UINT64_MAX)};
    }
    p->buffers[READ_BACK] = (plan_buffer){.kind = M_MALLOC, .context = -1};
}

void plan(program *p, int lanes, int commands)
{
    memset(known_before, 0, sizeof(known_before));
    memset(host, 0, sizeof(host));
    n_gates = 0;
    make_world(p, lanes);
    for (int c = 0; c < p->contexts; c++) { /* signalled from the start to the end */
        host_op o = op_of(OP_SIGNAL);
        o.event = p->ready[c] = new_event(p, c, -1);
        p->events[o.event].pinned = true;
        p->events[o.event].source = p->ops[add_op(p, o)].node;
    }
    const int n = commands ? commands : 50 + (int)roll(p, chance(p, 70) ? 250 : 951);
    for (int b = 0; b < p->n_buffers; b++)
        if (p->buffers[b].kind == M_DEVICE)
            for (int l = 0; l < p->n_lanes; l++)
                if (p->lanes[l].context == p->buffers[b].context) {
                    host_op o = command_on(p, l, C_FILL);
                    o.dst = b;
                    o.size = BUFFER_SIZE;
                    o.pattern = pattern_for(p, l, p->buffers[b].seed);
                    append(p, o);
                    break;
                }
    bait(p);
    for (int c = 0; c < n; c++) {
        random_command(p);
        if (chance(p, 8))
            host_action(p);
        const int l = (int)roll(p, (uint64_t)p->n_lanes);
        if (p->lanes[l].open >= 0 && chance(p, 20))
            execute(p, l);
        if (n_gates > 0 && chance(p, 15))
            flush(p);
        if (c % (n / 3 + 1) == n / 6)
            rounds(p);
    }
    sync_all(p);
    for (int b = 0; b < p->n_buffers; b++)
        for (int l = 0; l < p->n_lanes && !p->buffers[b].freed; l++)
            if (p->buffers[b].context < 0 || p->lanes[l].context == p->buffers[b].context) {
                host_op o = command_on(p, l, C_COPY);
                o.src = b;
                o.dst = READ_BACK;
                o.dst_at = b * BUFFER_SIZE;
                o.size = BUFFER_SIZE;
                append(p, o);
                break;
            }
    sync_all(p);
}

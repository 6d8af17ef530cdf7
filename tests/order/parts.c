/* SPDX-License-Identifier: MIT */
/* What a plan is made of: operations, runs, events and lists, and the host's waits, with what each of them is known to
 * come after. */
#include "parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const class_names[CLASSES] = {"missing-wait", "wrong-event",  "no-reset",     "early-reset",
                                          "host-write",   "free-in-use",  "evict-in-use", "list-reused",
                                          "no-barrier",   "copy-compute", "two-contexts", "two-queues"};

uint64_t known_before[MAX_NODES][WORDS], host[WORDS];
int gates[MAX_EVENTS], n_gates;

uint64_t roll(program *p, uint64_t n)
{
    p->random += 0x9e3779b97f4a7c15ull; /* splitmix64 */
    uint64_t z = p->random;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (z ^ (z >> 31)) % n;
}

bool chance(program *p, int percent)
{
    return (int)roll(p, 100) < percent;
}

void add(uint64_t *to, const uint64_t *from)
{
    for (int w = 0; w < WORDS; w++)
        to[w] |= from[w];
}

void add_node(uint64_t *to, int node)
{
    add(to, known_before[node]);
    put(to, node);
}

static void no_room(const char *what)
{
    fprintf(stderr, "random: too many %s\n", what);
    exit(2);
}

int new_node(program *p)
{
    if (p->n_nodes == MAX_NODES)
        no_room("nodes");
    return p->n_nodes++;
}

/* --------------------------------------------------------------------------------------- what is added */

int add_op(program *p, host_op o)
{
    if (p->n_ops == MAX_OPS)
        no_room("operations");
    o.node = new_node(p);
    memcpy(known_before[o.node], host, sizeof(host));
    put(host, o.node);
    p->ops[p->n_ops] = o;
    return p->n_ops++;
}

host_op op_of(op_kind kind)
{
    return (host_op){
        .kind = kind, .lane = -1, .list = -1, .event = -1, .buffer = -1, .dst = -1, .src = -1, .signal = -1};
}

void add_access(program *p, plan_access a)
{
    if (p->n_accesses == MAX_ACCESSES)
        no_room("accesses");
    p->accesses[p->n_accesses++] = a;
}

static void add_demand(program *p, int run, int op)
{
    if (p->n_demands == MAX_DEMANDS)
        no_room("demands");
    p->demands[p->n_demands++] = (plan_demand){run, op};
}

int run_of_end(const program *p, int node)
{
    for (int r = p->n_runs - 1; r >= 0; r--)
        if (p->runs[r].end == node)
            return r;
    return -1;
}

bool used_up(const plan_event *e)
{
    return e->n_users == 64;
}

static void use_event(program *p, instance *r, int number, int e, int slot)
{
    plan_event *const used = &p->events[e];
    r->sources[slot] = used->source;
    r->generations[slot] = used->generation;
    if (used->n_users < 64)
        used->users[used->n_users++] = number;
}

/* A run of the append's command, submitted by `submit` (which may come later). */
int add_run(program *p, int append, int submit, int execution)
{
    if (p->n_runs == MAX_RUNS)
        no_room("commands");
    const host_op *const o = &p->ops[append];
    plan_lane *const l = &p->lanes[o->lane];
    const int number = p->n_runs++;
    instance *const r = &p->runs[number];
    *r = (instance){.append = append, .submit = submit, .lane = o->lane, .list = o->list, .execution = execution};
    r->start = new_node(p);
    r->end = new_node(p);
    uint64_t *const row = known_before[r->start];
    add(row, host);
    add(row, l->start);
    if (l->in_order)
        add(row, l->list_order);
    if (o->command == C_BARRIER && o->n_waits == 0)
        add(row, l->all);
    for (int w = 0; w < o->n_waits; w++) {
        use_event(p, r, number, o->waits[w], w);
        add_node(row, r->sources[w]);
    }
    add_node(known_before[r->end], r->start);
    add_node(l->start, r->start);
    add_node(l->all, r->end);
    add_node(l->list_order, r->end);
    if (o->command == C_BARRIER || o->command == C_WAIT)
        add_node(l->start, r->end);
    if (o->signal >= 0)
        p->events[o->signal].source = r->end;
    if (o->dst >= 0)
        add_access(p, (plan_access){o->dst, o->dst_at, o->dst_at + o->size, r->start, r->end, number, -1, true});
    if (o->src >= 0)
        add_access(p, (plan_access){o->src, o->src_at, o->src_at + o->size, r->start, r->end, number, -1, false});
    return number;
}

/* ------------------------------------------------------------------------------------------ host waits */

void execute(program *p, int l)
{
    plan_lane *const lane = &p->lanes[l];
    plan_list *const list = &p->lists[lane->open];
    host_op o = op_of(OP_CLOSE);
    o.lane = l;
    o.list = lane->open;
    add_op(p, o);
    o.kind = OP_EXECUTE;
    o.with_fence = lane->fence_execute < 0 && chance(p, 40);
    const int at = add_op(p, o);
    if (o.with_fence)
        lane->fence_execute = at;
    for (int r = list->n_ops ? list->first_run : p->n_runs; r < p->n_runs; r++)
        if (p->runs[r].list == lane->open && p->runs[r].submit < 0)
            p->runs[r].submit = at;
    list->closed = true;
    list->executions++;
    lane->open = -1;
    memset(lane->list_order, 0, sizeof(lane->list_order));
}

/* Before the host waits, everything is submitted and every gate open: nothing is left that could wait for the host. */
void flush(program *p)
{
    for (int l = 0; l < p->n_lanes; l++)
        if (p->lanes[l].open >= 0)
            execute(p, l);
    while (n_gates > 0) {
        host_op o = op_of(OP_SIGNAL);
        const plan_event *const e = &p->events[o.event = gates[--n_gates]];
        o.generation = e->generation;
        add_op(p, o);
        p->ops[p->n_ops - 1].node = e->source; /* the node was taken when the first waiter was appended */
        put(host, e->source);
    }
}

int append(program *p, host_op o)
{
    plan_lane *const l = &p->lanes[o.lane];
    o.kind = OP_APPEND;
    if (!l->immediate) {
        plan_list *const list = &p->lists[l->open];
        o.list = l->open;
        list->ops[list->n_ops++] = p->n_ops;
        list->plain &= o.n_waits == 0 && o.signal < 0;
    }
    const int at = add_op(p, o);
    const int r = add_run(p, at, l->immediate ? at : -1, 1);
    if (!l->immediate && p->lists[l->open].first_run < 0)
        p->lists[l->open].first_run = r;
    if (!l->immediate && p->lists[l->open].n_ops == 60)
        execute(p, o.lane);
    return r;
}

host_op command_on(program *p, int l, command_kind kind)
{
    if (!p->lanes[l].immediate && p->lanes[l].open < 0)
        open_list(p, l);
    host_op o = op_of(OP_APPEND);
    o.lane = l;
    o.command = kind;
    return o;
}

/* The host waits for an event. */
static void wait_event(program *p, int e, bool poll)
{
    host_op o = op_of(poll ? OP_POLL : OP_SYNC_EVENT);
    o.event = e;
    add_op(p, o);
    add_node(host, p->events[e].source);
}

void sync_lane(program *p, int l)
{
    flush(p);
    if (p->lanes[l].immediate) {
        const int e = take_event(p, p->lanes[l].context);
        host_op o = command_on(p, l, C_BARRIER);
        o.signal = e;
        append(p, o);
        wait_event(p, e, false);
        return;
    }
    host_op o = op_of(OP_SYNC_QUEUE);
    o.lane = l;
    add_op(p, o);
    add(host, p->lanes[l].all);
}

/* The host waits for a run, by one of the ways there are. */
void sync_run(program *p, int r, bool may_poll)
{
    const host_op *const o = &p->ops[p->runs[r].append];
    const int l = p->runs[r].lane;
    flush(p);
    if (o->signal >= 0 && p->events[o->signal].source == p->runs[r].end && chance(p, 60)) {
        wait_event(p, o->signal, may_poll && p->events[o->signal].counter_lane < 0 && chance(p, 50));
        return;
    }
    if (p->lanes[l].fence_execute >= 0 && p->runs[r].submit == p->lanes[l].fence_execute) {
        host_op f = op_of(OP_SYNC_FENCE);
        f.lane = l;
        add_op(p, f);
        for (int other = 0; other < p->n_runs; other++)
            if (p->runs[other].submit == p->lanes[l].fence_execute)
                add_node(host, p->runs[other].end);
        p->lanes[l].fence_execute = -1;
        return;
    }
    sync_lane(p, l);
}

void sync_all(program *p)
{
    for (int l = 0; l < p->n_lanes; l++)
        sync_lane(p, l);
}

/* --------------------------------------------------------------------------------------- events, lists */

bool event_idle(const program *p, const plan_event *e)
{
    bool idle = e->source >= 0 && has(host, e->source) && e->counter_lane < 0 && !e->pinned && !e->held;
    for (int u = 0; u < e->n_users && idle; u++)
        idle = has(host, p->runs[e->users[u]].end);
    return idle;
}

void reset_event(program *p, int number)
{
    plan_event *const e = &p->events[number];
    host_op o = op_of(OP_RESET_EVENT);
    o.event = number;
    o.generation = e->generation + 1;
    const int at = add_op(p, o);
    const int signaller = run_of_end(p, e->source);
    if (signaller >= 0)
        add_demand(p, signaller, at);
    for (int u = 0; u < e->n_users; u++)
        add_demand(p, e->users[u], at);
    e->generation++;
    e->source = -1;
    e->n_users = 0;
}

int new_event(program *p, int context, int counter_lane)
{
    if (p->n_events == MAX_EVENTS)
        no_room("events");
    p->events[p->n_events] = (plan_event){.context = context, .source = -1, .counter_lane = counter_lane};
    return p->n_events++;
}

/* An event that is not signalled and has nobody who waits for it; pinned until it has a source. */
int take_event(program *p, int context)
{
    const int from = p->n_events ? (int)roll(p, (uint64_t)p->n_events) : 0;
    for (int i = 0; i < p->n_events && chance(p, 97); i++) {
        const int e = (from + i) % p->n_events;
        if (p->events[e].context == context && event_idle(p, &p->events[e])) {
            reset_event(p, e);
            return e;
        }
    }
    return new_event(p, context, -1);
}

static bool list_idle(const program *p, int l)
{
    for (int r = 0; r < p->n_runs; r++)
        if (p->runs[r].list == l && !has(host, p->runs[r].end))
            return false;
    return true;
}

void sync_list(program *p, int l)
{
    for (int r = p->n_runs - 1; r >= 0; r--)
        if (p->runs[r].list == l && !has(host, p->runs[r].end))
            sync_run(p, r, false);
}

void demand_list(program *p, int l, int op)
{
    for (int r = p->lists[l].n_ops ? p->lists[l].first_run : p->n_runs; r < p->n_runs; r++)
        if (p->runs[r].list == l && p->runs[r].submit != op)
            add_demand(p, r, op);
}

void open_list(program *p, int l)
{
    plan_lane *const lane = &p->lanes[l];
    for (int i = 0; i < p->n_lists && lane->open < 0; i++) {
        plan_list *const old = &p->lists[i];
        if (old->lane != l || !old->closed || old->pinned || !chance(p, 50))
            continue;
        if (!list_idle(p, i)) {
            if (!chance(p, p->class == LIST_REUSED ? 40 : 8))
                continue;
            sync_list(p, i);
        }
        host_op o = op_of(OP_RESET_LIST);
        o.list = i;
        o.lane = l;
        demand_list(p, i, add_op(p, o));
        *old = (plan_list){.lane = l, .first_run = -1, .plain = true};
        lane->open = i;
    }
    if (lane->open < 0) {
        if (p->n_lists == MAX_LISTS)
            no_room("lists");
        p->lists[p->n_lists] = (plan_list){.lane = l, .first_run = -1, .plain = true};
        lane->open = p->n_lists++;
    }
}

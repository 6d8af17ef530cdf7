/* SPDX-License-Identifier: MIT */
/* What a program's edges order, with or without one of them, and what its memory holds in the end. */
#include "program.h"

#include <string.h>

enum { MAX_EDGES = 16 * MAX_NODES, TRIES = 100 };

const removal nothing = {-1, -1, -1, -1, -1, -1, -1};

static int edge_to[MAX_EDGES], edge_next[MAX_EDGES], edge_first[MAX_NODES], missing[MAX_NODES], n_edges;
static uint64_t before[MAX_NODES][WORDS];
static int sorted[MAX_NODES], n_sorted;

static void edge(int from, int to)
{
    if (from < 0 || n_edges == MAX_EDGES)
        return;
    edge_to[n_edges] = to;
    edge_next[n_edges] = edge_first[from];
    edge_first[from] = n_edges++;
    missing[to]++;
}

int order_of(const program *p, const removal *r, int *order)
{
    int n = 0;
    for (int i = 0; i < p->n_ops; i++) {
        if (i == r->move_to)
            order[n++] = r->move_op;
        if (i != r->move_op && !(i == r->drop_op && r->drop_slot < 0 && r->wrong_slot < 0))
            order[n++] = i;
    }
    return n;
}

static bool waits_in_vain(const program *p, const removal *r, const instance *run, int slot)
{
    return (run->append == r->drop_op && (slot == r->drop_slot || slot == r->wrong_slot)) ||
           (p->ops[run->append].waits[slot] == r->stale_event && run->generations[slot] == r->stale_generation);
}

static void device_edges(const program *p, const removal *out)
{
    static int open_ends[MAX_LANES][MAX_RUNS], n_open[MAX_LANES], last[MAX_LANES], barrier[MAX_LANES];
    memset(n_open, 0, sizeof(n_open));
    memset(last, -1, sizeof(last));
    memset(barrier, -1, sizeof(barrier));
    for (int i = 0; i < p->n_runs; i++) {
        const instance *const r = &p->runs[i];
        const host_op *const o = &p->ops[r->append];
        const int l = r->lane;
        edge(r->start, r->end);
        if (r->append == out->drop_op && out->drop_slot < 0 && out->wrong_slot < 0)
            continue; /* never appended: its node stays, tied to nothing */
        edge(p->ops[r->submit].node, r->start);
        edge(p->ops[r->append].node, r->start);
        if (last[l] >= 0) {
            const instance *const previous = &p->runs[last[l]];
            const command_kind kind = p->ops[previous->append].command;
            const bool in_order =
                p->lanes[l].in_order && previous->list == r->list && (r->list < 0 || previous->submit == r->submit);
            edge(in_order || kind == C_BARRIER || kind == C_WAIT ? previous->end : previous->start, r->start);
        }
        if (o->command == C_BARRIER && o->n_waits == 0) {
            for (int k = 0; k < n_open[l]; k++)
                edge(open_ends[l][k], r->start);
            n_open[l] = 0;
        }
        for (int w = 0; w < o->n_waits; w++)
            if (!waits_in_vain(p, out, r, w))
                edge(r->sources[w], r->start);
        open_ends[l][n_open[l]++] = r->end;
        last[l] = i;
    }
}

/* What a host wait covers: the runs submitted before it, in the order of the plan. */
static void host_wait_edges(const program *p, int at, const int *place)
{
    const host_op *const o = &p->ops[at];
    int fence = -1;
    for (int i = at; o->kind == OP_SYNC_FENCE && i >= 0 && fence < 0; i--)
        if (p->ops[i].kind == OP_EXECUTE && p->ops[i].lane == o->lane && p->ops[i].with_fence)
            fence = i;
    for (int i = 0; i < p->n_runs; i++) {
        const instance *const r = &p->runs[i];
        if (o->kind == OP_SYNC_FENCE ? r->submit == fence : r->lane == o->lane && place[r->submit] < place[at])
            edge(r->end, o->node);
    }
}

/* The source of an event when the host waits for it. */
static int source_at(const program *p, int event, int at)
{
    int source = -1, place = -1;
    for (int i = 0; i < p->n_runs; i++)
        if (p->ops[p->runs[i].append].signal == event && p->runs[i].submit < at && p->runs[i].submit >= place) {
            source = p->runs[i].end;
            place = p->runs[i].submit;
        }
    return source;
}

static bool close_graph(const program *p, const removal *out)
{
    static int order[MAX_OPS], place[MAX_OPS], todo[MAX_NODES];
    n_edges = n_sorted = 0;
    memset(edge_first, -1, sizeof(edge_first));
    memset(missing, 0, sizeof(missing));
    const int n = order_of(p, out, order), words = p->n_nodes / 64 + 1;
    memset(place, -1, sizeof(place));
    for (int i = 0; i < n; i++)
        place[order[i]] = i;
    for (int i = 0; i < n; i++) {
        const host_op *const o = &p->ops[order[i]];
        if (i > 0)
            edge(p->ops[order[i - 1]].node, o->node);
        if (o->kind == OP_SYNC_QUEUE || o->kind == OP_SYNC_FENCE)
            host_wait_edges(p, order[i], place);
        else if (o->kind == OP_SYNC_EVENT || o->kind == OP_POLL)
            edge(source_at(p, o->event, order[i]), o->node);
    }
    device_edges(p, out);
    int n_todo = 0;
    for (int i = p->n_nodes - 1; i >= 0; i--) {
        memset(before[i], 0, (size_t)words * 8);
        if (missing[i] == 0)
            todo[n_todo++] = i;
    }
    while (n_todo > 0) {
        const int node = todo[--n_todo];
        sorted[n_sorted++] = node;
        for (int e = edge_first[node]; e >= 0; e = edge_next[e]) {
            const int to = edge_to[e];
            for (int w = 0; w < words; w++)
                before[to][w] |= before[node][w];
            put(before[to], node);
            if (--missing[to] == 0)
                todo[n_todo++] = to;
        }
    }
    return n_sorted == p->n_nodes && n_edges < MAX_EDGES;
}

static bool never(const program *p, const removal *out, int run)
{
    return run >= 0 && p->runs[run].append == out->drop_op && out->drop_slot < 0 && out->wrong_slot < 0;
}

static int unordered_of_closed(const program *p, const removal *out, pair *pairs)
{
    static int by_buffer[MAX_ACCESSES];
    int n = 0;
    for (int b = 0; b < MAX_BUFFERS; b++) {
        int k = 0;
        for (int i = 0; i < p->n_accesses; i++)
            if (p->accesses[i].buffer == b && !never(p, out, p->accesses[i].run))
                by_buffer[k++] = i;
        for (int j = 0; j < k; j++)
            for (int i = 0; i < j; i++) {
                const plan_access *const x = &p->accesses[by_buffer[i]], *const y = &p->accesses[by_buffer[j]];
                if ((!x->write && !y->write) || x->from >= y->to || y->from >= x->to || (x->run < 0 && y->run < 0) ||
                    (x->run >= 0 && x->run == y->run) || has(before[y->start], x->end) || has(before[x->start], y->end))
                    continue;
                if (n < MAX_PAIRS)
                    pairs[n] = (pair){x->run, y->run, y->op, x->op, b};
                n++;
            }
    }
    for (int i = 0; i < p->n_demands; i++) {
        const plan_demand *const d = &p->demands[i];
        if (d->op == out->drop_op || never(p, out, d->run) || has(before[p->ops[d->op].node], p->runs[d->run].end))
            continue;
        if (n < MAX_PAIRS)
            pairs[n] = (pair){d->run, -1, d->op, -1, -1};
        n++;
    }
    return n;
}

int unordered(const program *p, const removal *r, pair *pairs)
{
    return close_graph(p, r) ? unordered_of_closed(p, r, pairs) : -1;
}

/* -------------------------------------------------------------------------------------------- contents */

void pattern_bytes(uint64_t seed, unsigned char *to, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (unsigned char)(seed >> 8 * (i % 8));
}

uint64_t hash_bytes(const unsigned char *bytes, size_t size)
{
    uint64_t h = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < size; i++)
        h = (h ^ bytes[i]) * 0x100000001b3ull;
    return h;
}

size_t buffer_size(int buffer)
{
    return buffer == READ_BACK ? (size_t)MAX_BUFFERS * BUFFER_SIZE : BUFFER_SIZE;
}

static unsigned char memory[MAX_BUFFERS][BUFFER_SIZE], back[MAX_BUFFERS * BUFFER_SIZE];

static unsigned char *bytes_of(int buffer)
{
    return buffer == READ_BACK ? back : memory[buffer];
}

static void act(const program *p, int node, const int *run_ending, const int *op_of_node)
{
    if (op_of_node[node] >= 0 && p->ops[op_of_node[node]].kind == OP_WRITE) {
        const host_op *const o = &p->ops[op_of_node[node]];
        pattern_bytes(o->pattern, memory[o->buffer], BUFFER_SIZE);
    }
    if (run_ending[node] < 0)
        return;
    const host_op *const o = &p->ops[p->runs[run_ending[node]].append];
    if (o->command == C_FILL)
        pattern_bytes(o->pattern, bytes_of(o->dst) + o->dst_at, (size_t)o->size);
    else if (o->command == C_COPY)
        memcpy(bytes_of(o->dst) + o->dst_at, bytes_of(o->src) + o->src_at, (size_t)o->size);
}

/* The contents at the end of the closed program, if the node and all that must be before it come first. `skip`: a
 * submit that is lost. */
static uint64_t contents_of_closed(const program *p, int first, int skip)
{
    static int run_ending[MAX_NODES], op_of_node[MAX_NODES];
    memset(run_ending, -1, sizeof(run_ending));
    memset(op_of_node, -1, sizeof(op_of_node));
    for (int r = 0; r < p->n_runs; r++)
        if (skip < 0 || p->runs[r].submit != skip)
            run_ending[p->runs[r].end] = r;
    for (int i = 0; i < p->n_ops; i++)
        op_of_node[p->ops[i].node] = i;
    for (int b = 0; b < p->n_buffers; b++)
        pattern_bytes(p->buffers[b].seed, memory[b], BUFFER_SIZE);
    memset(back, 0, sizeof(back));
    for (int late = first < 0; late < 2; late++)
        for (int i = 0; i < n_sorted; i++)
            if (first < 0 || late == !(sorted[i] == first || has(before[first], sorted[i])))
                act(p, sorted[i], run_ending, op_of_node);
    return hash_bytes(back, sizeof(back));
}

uint64_t contents(const program *p)
{
    return close_graph(p, &nothing) ? contents_of_closed(p, -1, -1) : 0;
}

/* ----------------------------------------------------------------------------------- what to leave out */

static bool is_host_wait(op_kind kind)
{
    return kind == OP_SYNC_QUEUE || kind == OP_SYNC_FENCE || kind == OP_SYNC_EVENT;
}

/* Moves the operation before the waits that stand right before it. */
static bool move_early(const program *p, int at, removal *out)
{
    int to = at;
    while (to > 0 && is_host_wait(p->ops[to - 1].kind) &&
           !(p->ops[to - 1].event >= 0 && p->ops[to - 1].event == p->ops[at].event))
        to--;
    out->move_op = at;
    out->move_to = to;
    return to < at;
}

/* @return whether leaving out something of the operation is of the program's class. */
static bool removal_at(program *p, int at, removal *out)
{
    const host_op *const o = &p->ops[at];
    const bool command = o->kind == OP_APPEND;
    *out = nothing;
    switch (p->class) {
    case MISSING_WAIT:
    case COPY_COMPUTE:
    case WRONG_EVENT:
        if (!command || o->n_waits == 0 || (o->command == C_WAIT && p->class != WRONG_EVENT))
            return false; /* a wait on nothing would be no call at all */
        out->drop_op = at;
        *(p->class == WRONG_EVENT ? &out->wrong_slot : &out->drop_slot) = (int)roll(p, (uint64_t)o->n_waits);
        return true;
    case NO_BARRIER:
        out->drop_op = at;
        return command && o->command == C_BARRIER && o->n_waits == 0 && o->signal < 0 && !p->lanes[o->lane].in_order;
    case TWO_CONTEXTS:
    case TWO_QUEUES:
        out->drop_op = at;
        return o->kind == OP_SYNC_QUEUE || o->kind == OP_SYNC_EVENT || o->kind == OP_POLL;
    case NO_RESET:
        out->drop_op = at;
        out->stale_event = o->event;
        out->stale_generation = o->generation;
        return o->kind == OP_RESET_EVENT;
    case EARLY_RESET:
        return o->kind == OP_RESET_EVENT && move_early(p, at, out);
    case HOST_WRITE:
        return o->kind == OP_WRITE && move_early(p, at, out);
    case FREE_IN_USE:
        return o->kind == OP_FREE && move_early(p, at, out);
    case EVICT_IN_USE:
        return o->kind == OP_EVICT && move_early(p, at, out);
    case LIST_REUSED:
        return (o->kind == OP_RESET_LIST || (o->kind == OP_EXECUTE && o->again)) && move_early(p, at, out);
    default:
        return false;
    }
}

/* The node that signals the event for the run, -1 if it does not wait for it. */
static int signaller(const program *p, int run, int event)
{
    const host_op *const o = &p->ops[p->runs[run].append];
    for (int w = 0; w < o->n_waits; w++)
        if (o->waits[w] == event)
            return p->runs[run].sources[w];
    return -1;
}

/* Whether the run can be held back, by something else that it needs, from the signal till the reset: it misses the
 * signal then. */
static bool may_miss(const program *p, const pair *x)
{
    const int reset = p->ops[x->second_op].node, from = signaller(p, x->first_run, p->ops[x->second_op].event);
    for (int r = 0; r < p->n_runs && from >= 0; r++) {
        const int end = p->runs[r].end;
        if (end != from && has(before[p->runs[x->first_run].start], end) && !has(before[reset], end) &&
            !has(before[from], end))
            return true;
    }
    return false;
}

static bool of_class(const program *p, const pair *x, const removal *out)
{
    const bool two = x->first_run >= 0 && x->second_run >= 0;
    const plan_lane *const a = x->first_run >= 0 ? &p->lanes[p->runs[x->first_run].lane] : NULL;
    const plan_lane *const b = x->second_run >= 0 ? &p->lanes[p->runs[x->second_run].lane] : NULL;
    switch (p->class) {
    case COPY_COMPUTE:
        return two && (a->ordinal == 0) != (b->ordinal == 0);
    case TWO_CONTEXTS:
        return two && a->context != b->context;
    case TWO_QUEUES:
        return two && a != b && a->context == b->context;
    case NO_BARRIER:
        return two && a == b;
    case MISSING_WAIT:
    case WRONG_EVENT:
    case NO_RESET:
        return two;
    case EARLY_RESET:
        return x->second_op == out->move_op && x->first_run >= 0 && may_miss(p, x);
    default:
        return x->second_op == out->move_op && x->first_run >= 0;
    }
}

static int node_of(const program *p, const pair *x)
{
    return x->second_run >= 0 ? p->runs[x->second_run].end : p->ops[x->second_op].node;
}

/* Whether the second too early is seen in the end. A free, an evict, a reset too early make a call fail. */
static bool shows(const program *p, const pair *x, const removal *out, uint64_t good)
{
    if (p->class == LIST_REUSED && p->ops[out->move_op].kind == OP_EXECUTE)
        return contents_of_closed(p, -1, p->runs[x->first_run].submit) != good;
    const bool fails =
        p->class == EARLY_RESET || p->class == FREE_IN_USE || p->class == EVICT_IN_USE || p->class == LIST_REUSED;
    return fails || contents_of_closed(p, node_of(p, x), -1) != good;
}

/* On the eager schedule all that may run has run before the host's next operation. */
static bool eager_orders(const program *p, const removal *out, const pair *x)
{
    static int order[MAX_OPS];
    if (x->first_run < 0)
        return false;
    const uint64_t *const needs = before[p->runs[x->first_run].end];
    const int second = x->second_run >= 0 ? p->runs[x->second_run].submit : x->second_op, n = order_of(p, out, order);
    for (int i = 0, seen = false; i < n; i++) {
        seen |= order[i] == second;
        if (seen && has(needs, p->ops[order[i]].node))
            return false;
    }
    return true;
}

static int score(const verdict_of_removal *v)
{
    return (v->eager_good ? 0 : 100000) + v->n_pairs;
}

/* ---------------------------------------------------------------------------------------------- script */

/* libze_soft counts what is submitted, the mark behind each execute too. */
static void count_submits(const program *p, const removal *out, int *number, int *mark, int *left)
{
    static int order[MAX_OPS];
    const int n = order_of(p, out, order);
    for (int i = 0, k = 0; i < n; i++) {
        left[order[i]] = 0;
        for (int r = 0; r < p->n_runs; r++)
            if (p->runs[r].submit == order[i] && !never(p, out, r)) {
                number[r] = ++k;
                left[order[i]]++;
            }
        mark[order[i]] = p->ops[order[i]].kind == OP_EXECUTE ? ++k : 0;
    }
}

void write_script(const program *p, const verdict_of_removal *v, FILE *to)
{
    enum { NEVER_SUBMITTED = 1000000000 };
    static int number[MAX_RUNS], mark[MAX_OPS], left[MAX_OPS], run_ending[MAX_NODES];
    static uint64_t early[WORDS];
    close_graph(p, &v->out);
    memset(run_ending, -1, sizeof(run_ending));
    count_submits(p, &v->out, number, mark, left);
    for (int r = 0; r < p->n_runs; r++)
        if (!never(p, &v->out, r))
            run_ending[p->runs[r].end] = r;
    const int second = node_of(p, &v->pair);
    memcpy(early, before[second], sizeof(early));
    put(early, second);
    if (p->class == EARLY_RESET) { /* signalled, reset, and only then waited for */
        const int from = signaller(p, v->pair.first_run, p->ops[v->pair.second_op].event);
        for (int i = 0; i < WORDS; i++)
            early[i] |= before[from][i];
        put(early, from);
    }
    for (int late = 0; late < 2; late++) {
        for (int i = 0; i < n_sorted; i++) {
            const int r = run_ending[sorted[i]];
            if (r < 0 || late == has(early, sorted[i]))
                continue;
            fprintf(to, "%d\n", number[r]);
            if (--left[p->runs[r].submit] == 0 && mark[p->runs[r].submit] > 0)
                fprintf(to, "%d\n", mark[p->runs[r].submit]);
        }
        if (late == 0 && v->pair.second_run < 0)
            fprintf(to, "%d\n", NEVER_SUBMITTED); /* the rest ends in the waits that come after the host's operation */
    }
}

/* ---------------------------------------------------------------------------------------------- choice */

bool choose_removal(program *p, verdict_of_removal *best)
{
    static int at[MAX_OPS];
    const uint64_t good = contents(p);
    bool found = false;
    int n = 0;
    for (int i = 0; i < p->n_ops; i++) {
        removal r;
        if (removal_at(p, i, &r))
            at[n++] = i;
    }
    for (int tries = 0; n > 0 && tries < TRIES && !(found && score(best) == 1); tries++) {
        verdict_of_removal v = {0};
        const int pick = (int)roll(p, (uint64_t)n);
        removal_at(p, at[pick], &v.out);
        at[pick] = at[--n];
        v.n_pairs = unordered(p, &v.out, v.others);
        const int kept = v.n_pairs < MAX_PAIRS ? v.n_pairs : MAX_PAIRS;
        v.eager_good = true;
        for (int i = 0; i < kept; i++)
            v.eager_good &= eager_orders(p, &v.out, &v.others[i]);
        if (kept <= 0 || (found && score(&v) >= score(best)))
            continue;
        for (int i = kept - 1; i >= 0; i--) {
            if (!of_class(p, &v.others[i], &v.out) || !shows(p, &v.others[i], &v.out, good))
                continue;
            v.pair = v.others[i];
            *best = v;
            found = true;
            break;
        }
    }
    return found;
}

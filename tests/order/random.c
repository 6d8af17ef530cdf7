/* SPDX-License-Identifier: MIT */
/*
 * A random Level Zero program: random SEED CLASS [intact] [--queues=N] [--commands=N] [--patience=MS] [--script=FILE]
 * [--list]
 *
 * The same seed and class make the same program. `intact` is correct; without it one edge of the class is left out, and
 * a line says which. --script=FILE writes an order, for ZE_SOFT_SCHEDULE=script:FILE, in which it shows. Exit: 0 and a
 * hash of all memory, 1 a call failed or a wait did not end, 2 there is no such program.
 */
#include "../apps/common.h"
#include "program.h"

enum { FLAG_LIST_IN_ORDER = 8, FLAG_QUEUE_IN_ORDER = 2, POOL_COUNTER_BASED = 0x20014 }; /* younger than the headers */

typedef struct counter_pool {
    ze_structure_type_t stype;
    const void *pNext;
    uint32_t flags;
} counter_pool;

static program P;
static struct {
    app apps[2];
    ze_command_queue_handle_t queues[MAX_LANES];
    ze_command_list_handle_t immediate[MAX_LANES], lists[MAX_LISTS];
    ze_fence_handle_t fences[MAX_LANES];
    ze_event_handle_t events[MAX_EVENTS];
    unsigned char *memory[MAX_BUFFERS];
    void *idle;
    uint64_t patience;
} live;

/* A call that fails, or does not end, is what the missing edge shows as. */
#define GOES(call)                                                                                                     \
    do {                                                                                                               \
        const ze_result_t r_ = (call);                                                                                 \
        if (r_ != ZE_RESULT_SUCCESS) {                                                                                 \
            printf("fails: %.*s = %s\n", (int)strcspn(#call, "("), #call, result_name(r_));                            \
            fflush(stdout);                                                                                            \
            _Exit(BAD);                                                                                                \
        }                                                                                                              \
    } while (0)

/* ----------------------------------------------------------------------------------------------- names */

static const char *function_of(const host_op *o)
{
    static const char *const commands[] = {"zeCommandListAppendMemoryFill", "zeCommandListAppendMemoryCopy",
                                           "zeCommandListAppendBarrier", "zeCommandListAppendWaitOnEvents",
                                           "zeCommandListAppendSignalEvent"};
    static const char *const others[] = {NULL,
                                         "zeCommandListClose",
                                         "zeCommandQueueExecuteCommandLists",
                                         "zeCommandQueueSynchronize",
                                         "zeFenceHostSynchronize",
                                         "zeEventHostSynchronize",
                                         "zeEventQueryStatus",
                                         "zeEventHostSignal",
                                         "zeEventHostReset",
                                         "zeCommandListReset",
                                         NULL,
                                         "zeContextEvictMemory",
                                         "zeContextMakeMemoryResident",
                                         "zeMemFree",
                                         "zeContextEvictMemory"};
    return o->kind == OP_APPEND ? commands[o->command] : others[o->kind];
}

/* How often the function was called up to the place, that one included. */
static int count_to(const int *order, int place, const char *function)
{
    int n = 0;
    for (int i = 0; i <= place; i++) {
        const char *const f = function_of(&P.ops[order[i]]);
        n += f != NULL && strcmp(f, function) == 0;
    }
    return n;
}

static void name_run(char *to, size_t size, const int *order, int n, int run)
{
    int k = 0;
    for (int i = 0; i < n; i++) {
        k += P.ops[order[i]].kind == OP_APPEND;
        if (order[i] == P.runs[run].append)
            break;
    }
    snprintf(to, size, "append:%d", k);
}

static void name_op(char *to, size_t size, const int *order, int n, int op)
{
    int place = 0;
    while (place < n && order[place] != op)
        place++;
    const bool write = P.ops[op].kind == OP_WRITE;
    while (place < n - 1 && function_of(&P.ops[order[place]]) == NULL)
        place++;
    const char *const f = function_of(&P.ops[order[place]]);
    snprintf(to, size, "%s:%s:%d", write ? "write-before" : "host", f, count_to(order, place, f));
}

static void name_object(char *to, size_t size, const pair *x)
{
    int k = 0;
    if (x->buffer >= 0 && P.buffers[x->buffer].kind == M_MALLOC) {
        snprintf(to, size, "malloc#%d", x->buffer);
    } else if (x->buffer >= 0) {
        for (int b = 0; b <= x->buffer; b++)
            k += P.buffers[b].kind != M_MALLOC;
        snprintf(to, size, "mem#%d", k);
    } else if (P.ops[x->second_op].event >= 0) {
        snprintf(to, size, "event#%d", P.ops[x->second_op].event + 1);
    } else {
        for (int l = 0; l < P.n_lanes; l++)
            k += P.lanes[l].immediate;
        snprintf(to, size, "list#%d", k + P.ops[x->second_op].list + 1);
    }
}

static int execution_of(int run)
{
    return run >= 0 ? P.runs[run].execution : 1;
}

static void print_pair(FILE *to, const char *what, const verdict_of_removal *v, const pair *x)
{
    static int order[MAX_OPS];
    const int n = order_of(&P, &v->out, order);
    char first[96], second[96], object[32];
    if (x->first_run >= 0)
        name_run(first, sizeof(first), order, n, x->first_run);
    else
        name_op(first, sizeof(first), order, n, x->first_op);
    if (x->second_run >= 0)
        name_run(second, sizeof(second), order, n, x->second_run);
    else
        name_op(second, sizeof(second), order, n, x->second_op);
    name_object(object, sizeof(object), x);
    fprintf(to, "%s: class=%s first=%s second=%s object=%s executions=%d,%d pairs=%d eager=%s\n", what,
            class_names[P.class], first, second, object, execution_of(x->first_run), execution_of(x->second_run),
            v->n_pairs, v->eager_good ? "good" : "bad");
}

static void print_removed(FILE *to, const verdict_of_removal *v)
{
    print_pair(to, "removed", v, &v->pair);
    for (int i = 0; i < v->n_pairs && i < MAX_PAIRS; i++)
        if (memcmp(&v->others[i], &v->pair, sizeof(pair)) != 0)
            print_pair(to, "also", v, &v->others[i]);
}

/* ----------------------------------------------------------------------------------------------- world */

static ze_event_pool_handle_t pool_new(const app *a, uint32_t count, bool counter)
{
    ze_event_pool_handle_t pool;
    const counter_pool based = {.stype = (ze_structure_type_t)POOL_COUNTER_BASED, .flags = 1};
    const ze_event_pool_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
                                       .pNext = counter ? &based : NULL,
                                       .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE,
                                       .count = count};
    MUST(zeEventPoolCreate(a->context, &desc, 1, (ze_device_handle_t *)&a->device, &pool));
    return pool;
}

static void open_lane(int l)
{
    const plan_lane *const lane = &P.lanes[l];
    const app *const a = &live.apps[lane->context];
    if (lane->immediate) {
        const ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                              .ordinal = (uint32_t)lane->ordinal,
                                              .index = (uint32_t)lane->index,
                                              .flags = lane->in_order ? FLAG_QUEUE_IN_ORDER : 0,
                                              .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS};
        MUST(zeCommandListCreateImmediate(a->context, a->device, &desc, &live.immediate[l]));
        return;
    }
    live.queues[l] = queue_new(a, (uint32_t)lane->ordinal, (uint32_t)lane->index);
    const ze_fence_desc_t fence = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC};
    MUST(zeFenceCreate(live.queues[l], &fence, &live.fences[l]));
}

static void open_world(void)
{
    live.apps[0] = live.apps[1] = app_open();
    const ze_context_desc_t context = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    if (P.contexts == 2)
        MUST(zeContextCreate(live.apps[0].driver, &context, &live.apps[1].context));
    for (int b = 0; b < MAX_BUFFERS; b++) {
        const app *const a = &live.apps[P.buffers[b].context == 1];
        if (b >= P.n_buffers && b != READ_BACK)
            continue;
        live.memory[b] = P.buffers[b].kind == M_DEVICE ? device_new(a, buffer_size(b))
                         : P.buffers[b].kind == M_HOST ? host_new(a, buffer_size(b))
                                                       : calloc(1, buffer_size(b));
        if (P.buffers[b].kind != M_DEVICE && b != READ_BACK)
            pattern_bytes(P.buffers[b].seed, live.memory[b], buffer_size(b));
    }
    live.idle = device_new(&live.apps[0], BUFFER_SIZE);
    ze_event_pool_handle_t pools[2][2];
    for (int c = 0; c < P.contexts; c++)
        for (int counter = 0; counter < 2; counter++)
            pools[c][counter] = pool_new(&live.apps[c], MAX_EVENTS, counter);
    for (int e = 0; e < P.n_events; e++) {
        const ze_event_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC,
                                      .index = (uint32_t)e,
                                      .signal = ZE_EVENT_SCOPE_FLAG_HOST,
                                      .wait = ZE_EVENT_SCOPE_FLAG_HOST};
        MUST(zeEventCreate(pools[P.events[e].context][P.events[e].counter_lane >= 0], &desc, &live.events[e]));
    }
    for (int l = 0; l < P.n_lanes; l++)
        open_lane(l);
    for (int i = 0; i < P.n_lists; i++) {
        const plan_lane *const lane = &P.lanes[P.lists[i].lane];
        const app *const a = &live.apps[lane->context];
        const ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC,
                                             .commandQueueGroupOrdinal = (uint32_t)lane->ordinal,
                                             .flags = lane->in_order ? FLAG_LIST_IN_ORDER : 0};
        MUST(zeCommandListCreate(a->context, a->device, &desc, &live.lists[i]));
    }
}

/* ------------------------------------------------------------------------------------------------- run */

static void append(const host_op *o, int at, const removal *out)
{
    const ze_command_list_handle_t list = o->list >= 0 ? live.lists[o->list] : live.immediate[o->lane];
    ze_event_handle_t waits[MAX_WAITS];
    uint32_t n = 0;
    for (int w = 0; w < o->n_waits; w++)
        if (at != out->drop_op || w != out->drop_slot)
            waits[n++] = live.events[at == out->drop_op && w == out->wrong_slot ? P.ready[P.lanes[o->lane].context]
                                                                                : o->waits[w]];
    ze_event_handle_t *const first = n ? waits : NULL;
    const ze_event_handle_t signal = o->signal >= 0 ? live.events[o->signal] : NULL;
    unsigned char *const dst = o->dst >= 0 ? live.memory[o->dst] + o->dst_at : NULL;
    if (o->command == C_FILL)
        GOES(zeCommandListAppendMemoryFill(list, dst, &o->pattern, P.lanes[o->lane].ordinal > 0 ? 1 : sizeof(o->pattern), (size_t)o->size,
                                           signal, n, first));
    else if (o->command == C_COPY)
        GOES(zeCommandListAppendMemoryCopy(list, dst, live.memory[o->src] + o->src_at, (size_t)o->size, signal, n,
                                           first));
    else if (o->command == C_BARRIER)
        GOES(zeCommandListAppendBarrier(list, signal, n, first));
    else if (o->command == C_SIGNAL)
        GOES(zeCommandListAppendSignalEvent(list, signal));
    else if (n > 0)
        GOES(zeCommandListAppendWaitOnEvents(list, n, first));
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static ze_result_t poll_until(ze_event_handle_t event)
{
    const uint64_t end = now_ns() + live.patience;
    ze_result_t r;
    while ((r = zeEventQueryStatus(event)) == ZE_RESULT_NOT_READY && now_ns() < end)
        nanosleep(&(struct timespec){0, 20000}, NULL);
    return r;
}

static void perform(const host_op *o, int at, const removal *out)
{
    const app *const a = &live.apps[o->buffer >= 0 && P.buffers[o->buffer].context == 1];
    switch (o->kind) {
    case OP_APPEND:
        append(o, at, out);
        break;
    case OP_CLOSE:
        GOES(zeCommandListClose(live.lists[o->list]));
        break;
    case OP_EXECUTE:
        GOES(zeCommandQueueExecuteCommandLists(live.queues[o->lane], 1, &live.lists[o->list],
                                               o->with_fence ? live.fences[o->lane] : NULL));
        break;
    case OP_SYNC_QUEUE:
        GOES(zeCommandQueueSynchronize(live.queues[o->lane], live.patience));
        break;
    case OP_SYNC_FENCE:
        GOES(zeFenceHostSynchronize(live.fences[o->lane], live.patience));
        GOES(zeFenceReset(live.fences[o->lane]));
        break;
    case OP_SYNC_EVENT:
        GOES(zeEventHostSynchronize(live.events[o->event], live.patience));
        break;
    case OP_POLL:
        GOES(poll_until(live.events[o->event]));
        break;
    case OP_SIGNAL:
        GOES(zeEventHostSignal(live.events[o->event]));
        break;
    case OP_RESET_EVENT:
        GOES(zeEventHostReset(live.events[o->event]));
        break;
    case OP_RESET_LIST:
        GOES(zeCommandListReset(live.lists[o->list]));
        break;
    case OP_WRITE:
        pattern_bytes(o->pattern, live.memory[o->buffer], BUFFER_SIZE);
        break;
    case OP_EVICT:
        GOES(zeContextEvictMemory(a->context, a->device, live.memory[o->buffer], BUFFER_SIZE));
        break;
    case OP_RESIDENT:
        GOES(zeContextMakeMemoryResident(a->context, a->device, live.memory[o->buffer], BUFFER_SIZE));
        break;
    case OP_FREE:
        GOES(zeMemFree(a->context, live.memory[o->buffer]));
        break;
    case OP_IDLE_EVICT:
        GOES(zeContextEvictMemory(live.apps[0].context, live.apps[0].device, live.idle, BUFFER_SIZE));
        break;
    }
}

/* ------------------------------------------------------------------------------------------------ main */

static int number_of(int argc, char **argv, const char *option, int otherwise)
{
    for (int i = 3; i < argc; i++)
        if (strncmp(argv[i], option, strlen(option)) == 0)
            return atoi(argv[i] + strlen(option));
    return otherwise;
}

/* A program that has such an edge: preferably one that orders few pairs, and whose absence the eager schedule hides. */
static bool make(uint64_t seed, class_id class, int lanes, int commands, verdict_of_removal *v)
{
    enum { CHOOSY = 12, ATTEMPTS = 20 };
    pair pairs[MAX_PAIRS];
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        memset(&P, 0, sizeof(P));
        P.class = class;
        P.random = (seed * ATTEMPTS + (uint64_t)attempt) * CLASSES + class;
        plan(&P, lanes, commands);
        const int n = unordered(&P, &nothing, pairs);
        if (n != 0) {
            verdict_of_removal wrong = {.out = nothing, .n_pairs = n, .pair = pairs[0]};
            if (n > 0)
                print_pair(stderr, "unordered", &wrong, &pairs[0]);
            fprintf(stderr, "random: the plan itself is wrong\n");
            exit(CANNOT);
        }
        if (choose_removal(&P, v) && (attempt >= CHOOSY || (v->eager_good && v->n_pairs <= 3)))
            return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    static verdict_of_removal v;
    static int order[MAX_OPS];
    int class = 0;
    while (argc > 2 && class < CLASSES && strcmp(argv[2], class_names[class]) != 0)
        class ++;
    const int lanes = number_of(argc, argv, "--queues=", 0), commands = number_of(argc, argv, "--commands=", 0);
    live.patience = (uint64_t)number_of(argc, argv, "--patience=", 5000) * 1000000u;
    if (argc < 3 || class == CLASSES || lanes < 0 || lanes == 1 || lanes > MAX_LANES || commands < 0 ||
        commands > 1000) {
        fprintf(stderr, "usage: random SEED CLASS [intact] [--queues=2..8] [--commands=1..1000] [--patience=MS] "
                        "[--script=FILE] [--list]\n");
        return CANNOT;
    }
    if (!make(strtoull(argv[1], NULL, 0), (class_id) class, lanes, commands, &v)) {
        fprintf(stderr, "random: no such edge\n");
        return CANNOT;
    }
    print_removed(stderr, &v);
    if (wanted(argc, argv, "--list")) {
        print_removed(stdout, &v);
        return GOOD;
    }
    fprintf(stderr, "expected: %016llx commands=%d queues=%d\n", (unsigned long long)contents(&P), P.n_runs, P.n_lanes);
    for (int i = 3; i < argc; i++)
        if (strncmp(argv[i], "--script=", 9) == 0) {
            FILE *const f = fopen(argv[i] + 9, "w");
            if (f == NULL)
                return CANNOT;
            write_script(&P, &v, f);
            fclose(f);
        }
    const removal *const out = wanted(argc, argv, "intact") ? &nothing : &v.out;
    open_world();
    const int n = order_of(&P, out, order);
    for (int i = 0; i < n; i++)
        perform(&P.ops[order[i]], order[i], out);
    printf("hash %016llx\n", (unsigned long long)hash_bytes(live.memory[READ_BACK], buffer_size(READ_BACK)));
    return GOOD;
}

/* SPDX-License-Identifier: MIT */
/* What every exported program begins with. embed.py makes a string of it, from the first blank line on. */

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wunused-function" /* not every program needs all of these, and clang looks at inline ones, too */

#define PATIENCE 2000000000ull /* ns that one wait may take */
#define GIVE_UP  20            /* s that one call may take */

/* A command that runs when its turn has come: [wait for the gate] [the command] [barrier that signals `done`]. */
typedef struct command {
    ze_context_handle_t context;
    ze_device_handle_t device;
    ze_command_list_handle_t list;
    ze_command_queue_handle_t queue;
    ze_event_handle_t gate, done;
    enum { RECORDED, SUBMITTED, REFUSED, OPENED, ENDED } state;
} command;

/* Bytes from `at` on: `bytes`, or `byte` n times, or, if that is -1, the side file's from `from` on. */
typedef struct part {
    size_t at, n;
    const unsigned char *bytes;
    int byte;
    size_t from;
} part;

static int bad;             /* run in the order that fails */
static int trouble;         /* a command did not end */
static int device_lost;
static ze_result_t refused; /* what a submit of one of our own lists gave */
static unsigned long long number;
static const char *function = "";
static char gave_up[160];
static const unsigned char *side_data;

static inline const char *result_name(ze_result_t result)
{
    static char other[24];
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
        if (results[i].value == (unsigned)result)
            return results[i].name;
    snprintf(other, sizeof(other), "0x%x", (unsigned)result);
    return other;
}

static inline void give_up(int signal_number)
{
    (void)signal_number;
    if (write(1, gave_up, strlen(gave_up)) >= 0)
        _exit(1);
    _exit(1);
}

/* The call that comes now. */
static inline void enter(unsigned long long call, const char *name)
{
    number = call;
    function = name;
    snprintf(gave_up, sizeof(gave_up), "#%llu %s does not come back\n", call, name);
    alarm(GIVE_UP);
}

/* A wait that was recorded as not over in time may be over here. */
static inline void expect(ze_result_t result, ze_result_t wanted)
{
    alarm(0);
    if (result == ZE_RESULT_SUCCESS)
        result = refused;
    refused = ZE_RESULT_SUCCESS;
    if (result == wanted || (wanted == ZE_RESULT_NOT_READY && result == ZE_RESULT_SUCCESS))
        return;
    printf("#%llu %s: %s, expected %s\n", number, function, result_name(result), result_name(wanted));
    exit(1);
}

#define CALL(call, name, wanted, arguments)                                                                            \
    do {                                                                                                               \
        enter(call, #name);                                                                                            \
        expect(name arguments, wanted);                                                                                \
    } while (0)

/* What holds the commands back is no call of the recorded program. */
static inline void must(ze_result_t result)
{
    if (result == ZE_RESULT_SUCCESS)
        return;
    printf("#%llu %s: its gate cannot be had: %s\n", number, function, result_name(result));
    exit(1);
}

static inline void nap(void)
{
    const struct timespec a_little = {0, 1000000};
    nanosleep(&a_little, NULL);
}

static inline unsigned long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec;
}

/* A question that had the answer yes: asked until it has, or for too long. */
#define ASK(call, name, wanted, arguments)                                                                             \
    do {                                                                                                               \
        const unsigned long long until = now() + PATIENCE;                                                             \
        ze_result_t answer;                                                                                            \
        enter(call, #name);                                                                                            \
        while ((answer = name arguments) == ZE_RESULT_NOT_READY && (wanted) == ZE_RESULT_SUCCESS && now() < until)     \
            nap();                                                                                                     \
        expect(answer, wanted);                                                                                        \
    } while (0)

static inline void make_events(command *c)
{
    const ze_event_pool_desc_t pool_desc = {
        .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE, .count = 2};
    ze_event_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC,
                            .signal = ZE_EVENT_SCOPE_FLAG_HOST,
                            .wait = ZE_EVENT_SCOPE_FLAG_HOST};
    ze_event_pool_handle_t pool;
    must(zeEventPoolCreate(c->context, &pool_desc, 0, NULL, &pool));
    must(zeEventCreate(pool, &desc, &c->gate));
    desc.index = 1;
    must(zeEventCreate(pool, &desc, &c->done));
}

/* A list of its own for one command, which is appended next. */
static inline ze_command_list_handle_t begin(command *c, ze_context_handle_t context, ze_device_handle_t device,
                                             const ze_command_list_desc_t *desc)
{
    c->context = context;
    c->device = device;
    make_events(c);
    must(zeCommandListCreate(context, device, desc, &c->list));
    must(zeCommandListAppendWaitOnEvents(c->list, 1, &c->gate));
    return c->list;
}

static inline void finish(command *c)
{
    must(zeCommandListAppendBarrier(c->list, c->done, 0, NULL));
    must(zeCommandListClose(c->list));
}

static inline void submit(command *c, const ze_command_queue_desc_t *desc)
{
    ze_result_t result = zeCommandQueueCreate(c->context, c->device, desc, &c->queue);
    if (result == ZE_RESULT_SUCCESS)
        result = zeCommandQueueExecuteCommandLists(c->queue, 1, &c->list, NULL);
    c->state = result == ZE_RESULT_SUCCESS ? SUBMITTED : REFUSED;
    if (refused == ZE_RESULT_SUCCESS)
        refused = result;
}

/* A list that is over when the commands are: fences and waits for the queue mean what they did. */
static inline ze_command_list_handle_t tail(command *const *all, unsigned n, const ze_command_list_desc_t *desc)
{
    ze_command_list_handle_t list = NULL;
    must(zeCommandListCreate(all[0]->context, all[0]->device, desc, &list));
    for (unsigned i = 0; i < n; i++)
        if (all[i]->state != REFUSED)
            must(zeCommandListAppendWaitOnEvents(list, 1, &all[i]->done));
    must(zeCommandListClose(list));
    return list;
}

/* Waits until it has ended or can't any more. */
static inline void await(command *c)
{
    const unsigned long long until = now() + (device_lost ? PATIENCE / 100 : PATIENCE);
    ze_result_t result;
    for (;;) {
        result = zeEventHostSynchronize(c->done, 10000000);
        if (result == ZE_RESULT_SUCCESS) {
            c->state = ENDED;
            return;
        }
        if (result == ZE_RESULT_NOT_READY && zeDeviceGetStatus(c->device) != ZE_RESULT_SUCCESS)
            result = ZE_RESULT_ERROR_DEVICE_LOST;
        if (result != ZE_RESULT_NOT_READY || now() > until)
            break;
        nap();
    }
    printf("#%llu %s does not end: %s\n", number, function, result_name(result));
    trouble = 1;
    device_lost |= result != ZE_RESULT_NOT_READY;
}

/* Opens the command's gate: it runs now. */
static inline void run(command *c, unsigned long long call, const char *name)
{
    enter(call, name);
    if (c->state != SUBMITTED)
        return;
    c->state = OPENED;
    must(zeEventHostSignal(c->gate));
    await(c);
}

/* Opens the gate of a command that something else still holds back. */
static inline void let(command *c)
{
    if (c->state == SUBMITTED)
        must(zeEventHostSignal(c->gate));
}

/* The program's own list runs at once; a barrier at its end tells when it is over. */
static inline void mark(command *c, ze_context_handle_t context, ze_device_handle_t device, ze_command_list_handle_t list)
{
    c->context = context;
    c->device = device;
    if (c->done == NULL)
        make_events(c);
    must(zeCommandListAppendBarrier(list, c->done, 0, NULL));
}

static inline void over(command *c)
{
    if (device_lost)
        return;
    await(c);
    must(zeEventHostReset(c->done));
}

/* All of a queue's or fence's work has run: so has the end of its submit, before the queue or fence goes. */
static inline int all_ended(command *const *all, unsigned n)
{
    int ended = !device_lost;
    for (unsigned i = 0; i < n; i++)
        ended = ended && (all[i]->state == ENDED || all[i]->state == RECORDED);
    return ended;
}
static inline void settle_queue(ze_command_queue_handle_t queue, command *const *all, unsigned n)
{
    if (all_ended(all, n))
        zeCommandQueueSynchronize(queue, PATIENCE);
}
static inline void settle_fence(ze_fence_handle_t fence, command *const *all, unsigned n)
{
    if (all_ended(all, n))
        zeFenceHostSynchronize(fence, PATIENCE);
}

/* The program's list or queue goes while the command may be in flight, and with it what stands for it. */
static inline int in_flight(const command *c)
{
    return (c->state == SUBMITTED || c->state == OPENED) && zeEventQueryStatus(c->done) != ZE_RESULT_SUCCESS;
}
static inline void queue_goes(command *c)
{
    if (in_flight(c) && c->queue != NULL)
        zeCommandQueueDestroy(c->queue);
    c->queue = NULL;
}
static inline void list_goes(command *c, int is_reset)
{
    if (!in_flight(c))
        return;
    if (is_reset)
        zeCommandListReset(c->list);
    else
        zeCommandListDestroy(c->list);
}

static inline unsigned char byte_of(const part *p, size_t i)
{
    return p->bytes != NULL ? p->bytes[i] : p->byte >= 0 ? (unsigned char)p->byte : side_data[p->from + i];
}

/* What the program had in its memory, `size` bytes from `from` on. */
static inline void put(void *to, const part *parts, size_t n, size_t from, size_t size)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = from > parts[i].at ? from - parts[i].at : 0; k < parts[i].n && parts[i].at + k - from < size; k++)
            ((unsigned char *)to)[parts[i].at + k] = byte_of(&parts[i], k);
}

/* How many bytes are not as in the parts; the first of them, and how many there are in all. */
static inline size_t differences(const void *memory, const part *parts, size_t n, size_t *first, size_t *size)
{
    const unsigned char *const at = (const unsigned char *)memory;
    size_t differ = 0;
    *size = 0;
    for (size_t i = 0; i < n; i++) {
        *size += parts[i].n;
        for (size_t k = 0; k < parts[i].n; k++)
            if (at[parts[i].at + k] != byte_of(&parts[i], k) && differ++ == 0)
                *first = parts[i].at + k;
    }
    return differ;
}

/* What the program read there when all went well. */
static inline void expect_memory(const char *name, const void *memory, const part *parts, size_t n)
{
    size_t first = 0, size;
    const size_t differ = differences(memory, parts, n, &first, &size);
    if (differ == 0)
        return;
    unsigned wanted = 0;
    for (size_t i = 0; i < n; i++)
        if (first >= parts[i].at && first - parts[i].at < parts[i].n)
            wanted = byte_of(&parts[i], first - parts[i].at);
    printf("#%llu %s: byte %zu of %s is 0x%02x, expected 0x%02x; %zu of %zu bytes differ\n", number, function, first, name,
           ((const unsigned char *)memory)[first], wanted, differ, size);
    exit(1);
}

static inline int same(const void *memory, const part *parts, size_t n)
{
    size_t first, size;
    return differences(memory, parts, n, &first, &size) == 0;
}

/* What the failing run read is wrong, and all that is known of it. */
static inline void expect_other(int as_failing, const char *name, const void *memory)
{
    if (!as_failing)
        return;
    printf("#%llu %s: %s holds what the failing run read there, 0x%02x first\n", number, function, name,
           *(const unsigned char *)memory);
    exit(1);
}

static inline void *buffer(size_t size)
{
    void *const p = calloc(1, size);
    if (p == NULL) {
        printf("no memory for %zu bytes\n", size);
        exit(1);
    }
    return p;
}

static inline void *handle_of(void *handle, const char *name)
{
    if (handle == NULL) {
        printf("#%llu %s: there is no %s here\n", number, function, name);
        exit(1);
    }
    return handle;
}

static inline ze_driver_handle_t nth_driver(uint32_t n)
{
    ze_driver_handle_t drivers[16] = {0};
    uint32_t count = 16;
    must(zeDriverGet(&count, drivers));
    return (ze_driver_handle_t)handle_of(n < count ? drivers[n] : NULL, "driver");
}

/* Functions younger than the headers. */
static inline void look_up(ze_driver_handle_t driver, const char *name, void *pointer)
{
    void *found = NULL;
    if (zeDriverGetExtensionFunctionAddress(driver, name, &found) != ZE_RESULT_SUCCESS || found == NULL) {
        printf("this driver has no %s\n", name);
        exit(1);
    }
    memcpy(pointer, &found, sizeof(found));
}

/* The side file lies beside the program, unless the second argument says where it is. */
static inline void read_side_data(int argc, char **argv, const char *file, size_t size)
{
    char path[4096];
    const char *const slash = strrchr(argv[0], '/');
    const int folder = slash != NULL ? (int)(slash - argv[0]) + 1 : 0;
    if (argc > 2)
        snprintf(path, sizeof(path), "%s", argv[2]);
    else
        snprintf(path, sizeof(path), "%.*s%s", folder, argv[0], file);
    unsigned char *const data = (unsigned char *)buffer(size);
    FILE *const in = fopen(path, "rb");
    if (in == NULL || fread(data, 1, size, in) != size) {
        printf("%s is not there or too short; its path may be given as the second argument\n", path);
        exit(2);
    }
    fclose(in);
    side_data = data;
}

static inline void start(int argc, char **argv)
{
    if (argc < 2 || (strcmp(argv[1], "bad") != 0 && strcmp(argv[1], "good") != 0)) {
        fprintf(stderr, "usage: %s good|bad: the calls in the order that works, or in the one that fails\n", argv[0]);
        exit(2);
    }
    bad = strcmp(argv[1], "bad") == 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGALRM, give_up);
}

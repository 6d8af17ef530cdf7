/* SPDX-License-Identifier: MIT */
/*
 * What looks like a mistake and is none; MODE names one, and without one they are listed. Each is right on every schedule: a
 * checker that reports one of them is wrong.
 */
#include "common.h"

#include <pthread.h>

enum { SIZE = 4096 };

static app a;
static unsigned char *from, *to;
static ze_command_queue_handle_t queue;

/* A closed list of one copy. */
static ze_command_list_handle_t copy_list(void *dst, const void *src, ze_event_handle_t signal)
{
    ze_command_list_handle_t list = list_new(&a, 0);
    MUST(zeCommandListAppendMemoryCopy(list, dst, src, SIZE, signal, 0, NULL));
    MUST(zeCommandListClose(list));
    return list;
}

static bool host_write_before_execute(void)
{
    const ze_command_list_handle_t list = copy_list(to, from, NULL);
    memset(from, 2, SIZE); /* the list names the memory; nothing has run yet */
    MUST(run(queue, list, NULL));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    return to[0] == 2 && to[SIZE - 1] == 2;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool synchronized;

static void *free_when_told(void *memory)
{
    pthread_mutex_lock(&lock);
    while (!synchronized)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    MUST(zeMemFree(a.context, memory));
    return NULL;
}

/* The thread that frees has made no wait of its own. */
static bool cv_free(void)
{
    void *const memory = device_new(&a, SIZE);
    pthread_t thread;
    if (pthread_create(&thread, NULL, free_when_told, memory) != 0)
        exit(CANNOT);
    MUST(run(queue, copy_list(memory, from, NULL), NULL));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    pthread_mutex_lock(&lock);
    synchronized = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    const ze_command_list_handle_t later = copy_list(to, from, NULL);
    MUST(run(queue, later, NULL));
    return zeCommandQueueSynchronize(queue, UINT64_MAX) == ZE_RESULT_SUCCESS;
}

/* A query that says SUCCESS is as good as a wait. */
static bool polled(void)
{
    void *const memory = device_new(&a, SIZE);
    const ze_event_handle_t done = event_new(&a);
    MUST(run(queue, copy_list(memory, from, done), NULL));
    for (int i = 0; zeEventQueryStatus(done) == ZE_RESULT_NOT_READY; i++) {
        if (i == 10000)
            exit(CANNOT);
        nap(1);
    }
    MUST(zeMemFree(a.context, memory));
    return zeCommandQueueSynchronize(queue, UINT64_MAX) == ZE_RESULT_SUCCESS;
}

static bool evict_unused(void)
{
    void *const used = device_new(&a, SIZE), *const unused = device_new(&a, SIZE);
    const ze_event_handle_t gate = event_new(&a);
    ze_command_list_handle_t list = list_new(&a, 0);
    MUST(zeCommandListAppendMemoryCopy(list, used, from, SIZE, NULL, 1, (ze_event_handle_t[]){gate}));
    MUST(zeCommandListClose(list));
    MUST(zeContextMakeMemoryResident(a.context, a.device, unused, SIZE));
    MUST(run(queue, list, NULL));
    MUST(zeContextEvictMemory(a.context, a.device, unused, SIZE));
    MUST(zeMemFree(a.context, unused));
    MUST(zeEventHostSignal(gate));
    return zeCommandQueueSynchronize(queue, UINT64_MAX) == ZE_RESULT_SUCCESS;
}

/* A pair of lists runs again, after a wait for both and a reset of the event between them. */
static bool resubmit(void)
{
    void *const middle = device_new(&a, SIZE);
    ze_event_handle_t written = event_new(&a);
    const ze_command_queue_handle_t reader = queue_new(&a, 1, 0);
    ze_command_list_handle_t write = copy_list(middle, from, written), read = list_new(&a, 1);
    MUST(zeCommandListAppendMemoryCopy(read, to, middle, SIZE, NULL, 1, &written));
    MUST(zeCommandListClose(read));
    for (unsigned char i = 1; i <= 3; i++) {
        memset(from, i, SIZE);
        MUST(run(reader, read, NULL));
        MUST(run(queue, write, NULL));
        MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
        MUST(zeCommandQueueSynchronize(reader, UINT64_MAX));
        if (to[0] != i)
            return false;
        MUST(zeEventHostReset(written));
    }
    return true;
}

/* Barriers order what the list does not. */
static bool barrier(void)
{
    void *const A = device_new(&a, SIZE), *const B = device_new(&a, SIZE);
    ze_command_list_handle_t list = list_new(&a, 0);
    MUST(zeCommandListAppendMemoryCopy(list, A, from, SIZE, NULL, 0, NULL));
    MUST(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    MUST(zeCommandListAppendMemoryCopy(list, B, A, SIZE, NULL, 0, NULL));
    MUST(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    MUST(zeCommandListAppendMemoryCopy(list, to, B, SIZE, NULL, 0, NULL));
    MUST(zeCommandListClose(list));
    MUST(run(queue, list, NULL));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    return memcmp(from, to, SIZE) == 0;
}

/* Order within two lists, and counter-based events from one to the other and back, which nobody resets. */
static bool in_order(void)
{
    void *const A = device_new(&a, SIZE), *const B = device_new(&a, SIZE);
    ze_command_list_handle_t one = immediate_new(&a, IN_ORDER), two = immediate_new(&a, IN_ORDER);
    ze_event_handle_t there = counter_event_new(&a), back = counter_event_new(&a);
    for (unsigned char i = 1; i <= 3; i++) {
        memset(from, i, SIZE);
        MUST(zeCommandListAppendMemoryCopy(one, A, from, SIZE, NULL, 0, NULL));
        MUST(zeCommandListAppendMemoryCopy(one, B, A, SIZE, there, 0, NULL));
        MUST(zeCommandListAppendMemoryCopy(two, A, B, SIZE, NULL, 1, &there));
        MUST(zeCommandListAppendMemoryCopy(two, to, A, SIZE, back, 0, NULL));
        MUST(zeCommandListAppendBarrier(one, NULL, 1, &back));
        MUST(zeEventHostSynchronize(back, UINT64_MAX));
        if (to[0] != i)
            return false;
    }
    return true;
}

/* Compute and copy queue in turn; each event is reset by the device, by who waited for it. */
static bool two_queues(void)
{
    void *const middle = device_new(&a, SIZE);
    ze_event_handle_t full = event_new(&a), empty = event_new(&a);
    const ze_command_queue_handle_t copier = queue_new(&a, 1, 0);
    ze_command_list_handle_t fill = list_new(&a, 0), drain = list_new(&a, 1);
    MUST(zeCommandListAppendWaitOnEvents(fill, 1, &empty));
    MUST(zeCommandListAppendEventReset(fill, empty));
    MUST(zeCommandListAppendBarrier(fill, NULL, 0, NULL));
    MUST(zeCommandListAppendMemoryCopy(fill, middle, from, SIZE, full, 0, NULL));
    MUST(zeCommandListClose(fill));
    MUST(zeCommandListAppendWaitOnEvents(drain, 1, &full));
    MUST(zeCommandListAppendEventReset(drain, full));
    MUST(zeCommandListAppendBarrier(drain, NULL, 0, NULL));
    MUST(zeCommandListAppendMemoryCopy(drain, to, middle, SIZE, empty, 0, NULL));
    MUST(zeCommandListClose(drain));
    MUST(zeEventHostSignal(empty));
    for (unsigned char i = 1; i <= 3; i++) {
        memset(from, i, SIZE);
        MUST(run(queue, fill, NULL));
        MUST(run(copier, drain, NULL));
        MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
        MUST(zeCommandQueueSynchronize(copier, UINT64_MAX));
        if (to[0] != i)
            return false;
    }
    return true;
}

/* One fence, waited for, reset and given to the next submit; one list, reset and recorded anew. */
static bool fence(void)
{
    const ze_fence_handle_t done = fence_new(queue);
    ze_command_list_handle_t list = list_new(&a, 0);
    for (size_t i = 0; i < 4; i++) {
        MUST(zeCommandListAppendMemoryCopy(list, to + i, from, 1, NULL, 0, NULL));
        MUST(zeCommandListClose(list));
        MUST(run(queue, list, done));
        MUST(zeFenceHostSynchronize(done, UINT64_MAX));
        if (to[i] != 1)
            return false;
        MUST(zeFenceReset(done));
        MUST(zeCommandListReset(list));
    }
    MUST(zeFenceDestroy(done));
    return true;
}

/* What the submit waits for is signalled later, and the host writes until then. */
static bool host_signal(void)
{
    ze_event_handle_t go = event_new(&a);
    ze_command_list_handle_t list = list_new(&a, 0);
    MUST(zeCommandListAppendMemoryCopy(list, to, from, SIZE, NULL, 1, &go));
    MUST(zeCommandListClose(list));
    memset(from, 5, SIZE); /* before the submit: from then on it is the device's */
    MUST(run(queue, list, NULL));
    MUST(zeEventHostSignal(go));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    return to[0] == 5 && to[SIZE - 1] == 5;
}

/* The driver frees when the copy has ended. */
static bool defer_free(void)
{
    const ze_memory_free_ext_desc_t deferred = {.stype = ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC,
                                                .freePolicy = ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_DEFER_FREE};
    void *const memory = device_new(&a, SIZE);
    ze_event_handle_t gate = event_new(&a);
    ze_command_list_handle_t list = list_new(&a, 0);
    MUST(zeCommandListAppendMemoryCopy(list, memory, from, SIZE, NULL, 1, &gate));
    MUST(zeCommandListClose(list));
    MUST(run(queue, list, NULL));
    MUST(zeMemFreeExt(a.context, &deferred, memory));
    MUST(zeEventHostSignal(gate));
    return zeCommandQueueSynchronize(queue, UINT64_MAX) == ZE_RESULT_SUCCESS;
}

/* Four queues hand one buffer on, in turn; the last link's event is all that the host waits for. */
static bool chain(void)
{
    enum { LINKS = 28 };
    unsigned char *const buffers[2] = {device_new(&a, SIZE), device_new(&a, SIZE)};
    ze_command_queue_handle_t queues[4];
    ze_event_handle_t before = NULL;
    for (uint32_t i = 0; i < 4; i++)
        queues[i] = queue_new(&a, 2, i);
    for (uint32_t i = 0; i < LINKS; i++) {
        ze_event_handle_t after = event_new(&a);
        ze_command_list_handle_t list = list_new(&a, 2);
        void *const dst = i + 1 == LINKS ? to : buffers[i % 2];
        const void *const src = i == 0 ? from : buffers[(i + 1) % 2];
        MUST(zeCommandListAppendMemoryCopy(list, dst, src, SIZE, after, i > 0, i > 0 ? &before : NULL));
        MUST(zeCommandListClose(list));
        MUST(run(queues[i % 4], list, NULL));
        before = after;
    }
    MUST(zeEventHostSynchronize(before, UINT64_MAX));
    MUST(zeMemFree(a.context, buffers[0]));
    MUST(zeMemFree(a.context, buffers[1]));
    return memcmp(from, to, SIZE) == 0;
}

static const struct mode {
    const char *name;
    bool (*run)(void);
} modes[] = {{"host-write-before-execute", host_write_before_execute},
             {"cv-free", cv_free},
             {"polled", polled},
             {"evict-unused", evict_unused},
             {"resubmit", resubmit},
             {"barrier", barrier},
             {"in-order", in_order},
             {"two-queues", two_queues},
             {"fence", fence},
             {"host-signal", host_signal},
             {"defer-free", defer_free},
             {"chain", chain}};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (argc < 2)
            puts(modes[i].name);
        else if (strcmp(argv[1], modes[i].name) == 0) {
            a = app_open();
            from = host_new(&a, SIZE);
            to = host_new(&a, SIZE);
            memset(from, 1, SIZE);
            memset(to, 0, SIZE);
            queue = queue_new(&a, 0, 0);
            return verdict(!modes[i].run(), argv[1]);
        }
    }
    return argc < 2 ? GOOD : CANNOT;
}

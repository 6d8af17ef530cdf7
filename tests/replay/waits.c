/* SPDX-License-Identifier: MIT */
/*
 * waits KIND: correct programs in which the host comes to wait for a copy, each in its own way; what a gate or wait would have to wait for
 * itself in is tried on their traces. The first copy is the one that gates hold; zeMemGetAddressRange is a call that waits for nothing.
 */
#include "../apps/common.h"

#include <pthread.h>

enum { SIZE = 4096 };

static app a;
static void *from, *to, *other;

static void look(void)
{
    void *base;
    size_t size;
    MUST(zeMemGetAddressRange(a.context, other, &base, &size));
}

static ze_command_list_handle_t copying(ze_event_handle_t signal, ze_event_handle_t wait)
{
    ze_command_list_handle_t list = list_new(&a, 0);
    if (wait != NULL)
        MUST(zeCommandListAppendWaitOnEvents(list, 1, &wait));
    MUST(zeCommandListAppendMemoryCopy(list, to, from, SIZE, signal, 0, NULL));
    MUST(zeCommandListClose(list));
    return list;
}

static void on_queue(const char *kind, ze_command_queue_handle_t queue)
{
    ze_event_handle_t done = event_new(&a);
    ze_fence_handle_t fence = fence_new(queue);
    MUST(run(queue, copying(done, NULL), fence));
    look();
    if (strcmp(kind, "event") == 0)
        MUST(zeEventHostSynchronize(done, UINT64_MAX));
    else if (strcmp(kind, "fence") == 0)
        MUST(zeFenceHostSynchronize(fence, UINT64_MAX));
    else if (strcmp(kind, "queue") == 0)
        MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    look();
}

/* The host lets the copy go on. */
static void gated(ze_command_queue_handle_t queue)
{
    ze_event_handle_t gate = event_new(&a), done = event_new(&a);
    MUST(run(queue, copying(done, gate), NULL));
    look();
    MUST(zeEventHostSignal(gate));
    look();
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
}

/* `lost`: its copy fails, and it says so. */
static void synchronous(bool lost)
{
    ze_command_queue_handle_t queue;
    const ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS};
    MUST(zeCommandQueueCreate(a.context, a.device, &desc, &queue));
    ze_command_list_handle_t list = copying(NULL, NULL);
    if (lost) {
        MUST(zeMemFree(a.context, from));
        SHOWS(run(queue, list, NULL));
        return;
    }
    MUST(run(queue, list, NULL));
    look();
}

/* Two commands, the second awaited: on a list in order or not, or on two queues. */
static void two(const char *kind, ze_command_queue_handle_t queue)
{
    ze_event_handle_t done = event_new(&a);
    if (strcmp(kind, "engines") == 0) {
        ze_command_queue_handle_t second = queue_new(&a, 0, 0);
        ze_command_list_handle_t list = list_new(&a, 0);
        MUST(zeCommandListAppendMemoryCopy(list, other, from, SIZE, done, 0, NULL));
        MUST(zeCommandListClose(list));
        MUST(run(queue, copying(NULL, NULL), NULL));
        MUST(run(second, list, NULL));
    } else {
        ze_command_list_handle_t list = immediate_new(&a, strcmp(kind, "inorder") == 0 ? IN_ORDER : 0);
        MUST(zeCommandListAppendMemoryCopy(list, to, from, SIZE, NULL, 0, NULL));
        look();
        MUST(zeCommandListAppendMemoryCopy(list, other, from, SIZE, done, 0, NULL));
    }
    MUST(zeEventHostSynchronize(done, UINT64_MAX));
    look();
}

static void *wait_for(void *event)
{
    MUST(zeEventHostSynchronize(event, UINT64_MAX));
    look();
    return NULL;
}

/* Two threads, which look and know nothing of each other; a third event ends both. */
static void threads(ze_command_queue_handle_t queue)
{
    ze_event_handle_t done = event_new(&a);
    pthread_t thread;
    MUST(run(queue, copying(done, NULL), NULL));
    if (pthread_create(&thread, NULL, wait_for, done) != 0)
        exit(CANNOT);
    pthread_join(thread, NULL);
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    look();
}

int main(int argc, char **argv)
{
    const char *const kind = argc > 1 ? argv[1] : "";
    a = app_open();
    from = device_new(&a, SIZE);
    to = device_new(&a, SIZE);
    other = device_new(&a, SIZE);
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    if (strcmp(kind, "gated") == 0)
        gated(queue);
    else if (strcmp(kind, "synchronous") == 0)
        synchronous(false);
    else if (strcmp(kind, "lost") == 0)
        synchronous(true);
    else if (strcmp(kind, "engines") == 0 || strcmp(kind, "inorder") == 0 || strcmp(kind, "append") == 0)
        two(kind, queue);
    else if (strcmp(kind, "threads") == 0)
        threads(queue);
    else
        on_queue(kind, queue);
    if (strcmp(kind, "free") == 0) { /* with ZE_SOFT_FREE=block */
        MUST(zeMemFree(a.context, from));
        look();
        MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    }
    return GOOD;
}

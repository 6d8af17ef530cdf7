/* SPDX-License-Identifier: MIT */
/* S1: two threads append to one list at the same time, which its caller must not let happen. `fixed`: a lock. */
#include "common.h"

#include <pthread.h>

enum { EACH = 500 };

static ze_command_list_handle_t list;
static unsigned char *from, *to;
static bool fixed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t together;

static void *append(void *half)
{
    const size_t first = (uintptr_t)half * EACH;
    pthread_barrier_wait(&together);
    for (size_t i = first; i < first + EACH; i++) {
        if (fixed)
            pthread_mutex_lock(&lock);
        MUST(zeCommandListAppendMemoryCopy(list, to + i, from + i, 1, NULL, 0, NULL));
        if (fixed)
            pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    fixed = fixed_wanted(argc, argv);
    app a = app_open();
    list = list_new(&a, 0);
    from = host_new(&a, 2 * EACH);
    to = host_new(&a, 2 * EACH);
    memset(from, 1, 2 * EACH);
    memset(to, 0, 2 * EACH);
    pthread_t thread;
    pthread_barrier_init(&together, NULL, 2);
    if (pthread_create(&thread, NULL, append, (void *)1) != 0)
        return CANNOT;
    append(NULL);
    pthread_join(thread, NULL);
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    bool shown = SHOWS(zeCommandListClose(list));
    shown |= SHOWS(run(queue, list, NULL));
    shown |= SHOWS(zeCommandQueueSynchronize(queue, UINT64_MAX));
    return verdict(shown || memcmp(from, to, 2 * EACH) != 0, "S1");
}

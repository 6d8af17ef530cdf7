/* SPDX-License-Identifier: MIT */
/* S2: two threads create events of one pool at the same time, which its caller must not let happen. `fixed`: a lock. */
#include "common.h"

#include <pthread.h>

enum { EACH = 500 };

static ze_event_pool_handle_t pool;
static ze_event_handle_t events[2 * EACH];
static bool fixed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t together;

static void *create(void *half)
{
    const uint32_t first = (uint32_t)(uintptr_t)half * EACH;
    pthread_barrier_wait(&together);
    for (uint32_t i = first; i < first + EACH; i++) {
        const ze_event_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .index = i};
        if (fixed)
            pthread_mutex_lock(&lock);
        MUST(zeEventCreate(pool, &desc, &events[i]));
        if (fixed)
            pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    fixed = fixed_wanted(argc, argv);
    app a = app_open();
    const ze_event_pool_desc_t desc = {
        .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE, .count = 2 * EACH};
    MUST(zeEventPoolCreate(a.context, &desc, 1, &a.device, &pool));
    pthread_t thread;
    pthread_barrier_init(&together, NULL, 2);
    if (pthread_create(&thread, NULL, create, (void *)1) != 0)
        return CANNOT;
    create(NULL);
    pthread_join(thread, NULL);
    bool shown = false;
    for (int i = 0; i < 2 * EACH; i++)
        shown |= SHOWS(zeEventDestroy(events[i]));
    shown |= SHOWS(zeEventPoolDestroy(pool));
    return verdict(shown, "S2");
}

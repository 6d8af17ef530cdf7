/* SPDX-License-Identifier: MIT */
/*
 * Exec queues. Each has a thread for its engine, so that queues overlap, and a queue whose work never ends (the driver's direct
 * submission is such a job: a ring that is polled) holds up no other.
 */
#include "fakegpu.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { QUEUES = 1024 };

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_queue *queues[QUEUES]; /* by id; the first is none */

static int failed(int error)
{
    errno = error;
    return -1;
}

const char *fake_class_name(unsigned engine_class)
{
    return engine_class == XE_ENGINE_COPY ? "copy" : engine_class == XE_ENGINE_COMPUTE ? "compute" : "render";
}

/* The driver never uses a queue while it destroys it. */
static struct fake_queue *queue_of(uint32_t id)
{
    pthread_mutex_lock(&table_lock);
    struct fake_queue *const q = id < QUEUES ? queues[id] : NULL;
    pthread_mutex_unlock(&table_lock);
    return q;
}

bool fake_queue_ends(struct fake_queue *q)
{
    pthread_mutex_lock(&q->lock);
    const bool ends = q->stop || q->banned;
    pthread_mutex_unlock(&q->lock);
    return ends;
}

void fake_queue_sleep(struct fake_queue *q, uint64_t ns)
{
    const uint64_t end = fake_now_ns() + ns;
    const struct timespec until = {(time_t)(end / 1000000000), (long)(end % 1000000000)};
    pthread_mutex_lock(&q->lock);
    while (!q->stop && pthread_cond_timedwait(&q->wake, &q->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&q->lock);
}

/* splitmix64 */
static uint64_t mixed(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

void fake_queue_work(struct fake_queue *q)
{
    const struct fake_settings *const settings = fake_settings();
    uint64_t delay = settings->delay_ns[q->engine_class];
    if (settings->seed && delay)
        delay = mixed(settings->seed ^ mixed((uint64_t)q->id << 32 | q->works)) % (2 * delay);
    q->works++;
    if (delay)
        fake_queue_sleep(q, delay);
}

static struct fake_job *next_job(struct fake_queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (!q->first && !q->stop)
        pthread_cond_wait(&q->wake, &q->lock);
    struct fake_job *const job = q->stop ? NULL : q->first;
    if (job) {
        q->first = job->next;
        if (!q->first)
            q->last = &q->first;
    }
    pthread_mutex_unlock(&q->lock);
    return job;
}

static void *run(void *argument)
{
    struct fake_queue *const q = argument;
    struct fake_job *job;
    while ((job = next_job(q)) != NULL) {
        const bool done = !q->banned && fake_run_batch(q, job->batch) && (!job->has_fence || fake_write(q, job->fence, &job->value, 8));
        fake_say(LOG_JOB, "queue %u (%s): job 0x%llx %s", q->id, fake_class_name(q->engine_class), (unsigned long long)job->batch,
                 done ? "is done" : "did not end");
        free(job);
    }
    return NULL;
}

static void free_queue(struct fake_queue *q)
{
    while (q->first) {
        struct fake_job *const job = q->first;
        q->first = job->next;
        free(job);
    }
    pthread_cond_destroy(&q->wake);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

static uint32_t enter(struct fake_queue *q)
{
    pthread_mutex_lock(&table_lock);
    uint32_t id = 1;
    while (id < QUEUES && queues[id])
        id++;
    if (id < QUEUES)
        queues[id] = q;
    pthread_mutex_unlock(&table_lock);
    q->id = id;
    return id < QUEUES ? id : 0;
}

static struct fake_queue *leave(uint32_t id)
{
    pthread_mutex_lock(&table_lock);
    struct fake_queue *const q = id < QUEUES ? queues[id] : NULL;
    if (q)
        queues[id] = NULL;
    pthread_mutex_unlock(&table_lock);
    return q;
}

/* The program's signals are not the device's. */
static bool start_thread(struct fake_queue *q)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int error = pthread_create(&q->thread, NULL, run, q);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error == 0;
}

int fake_queue_create(struct xe_exec_queue_create *create)
{
    const struct xe_engine_instance *const instance = (const void *)(uintptr_t)create->instances;
    if (!instance || create->num_placements == 0 || !fake_vm_exists(create->vm_id))
        return failed(EINVAL);
    if (create->width != 1 || instance->engine_class >= COUNT(fake_settings()->delay_ns)) {
        fake_unknown("EXEC_QUEUE_CREATE with a width of %u on the class %u is not implemented", create->width, instance->engine_class);
        return failed(EINVAL);
    }
    struct fake_queue *const q = calloc(1, sizeof(*q));
    if (!q)
        return failed(ENOMEM);
    q->vm = create->vm_id;
    q->owner = getpid();
    q->engine_class = instance->engine_class;
    q->instance = instance->engine_instance;
    q->last = &q->first;
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&q->wake, &clock);
    pthread_condattr_destroy(&clock);
    if (!enter(q) || !start_thread(q)) {
        leave(q->id);
        free_queue(q);
        return failed(ENOMEM);
    }
    create->exec_queue_id = q->id;
    fake_say(LOG_JOB, "queue %u: %s %u of %u", q->id, fake_class_name(q->engine_class), q->instance, create->num_placements);
    return 0;
}

int fake_queue_destroy(uint32_t id)
{
    struct fake_queue *const q = leave(id);
    if (!q)
        return failed(ENOENT);
    pthread_mutex_lock(&q->lock);
    q->stop = true;
    pthread_cond_broadcast(&q->wake);
    pthread_mutex_unlock(&q->lock);
    if (q->owner == getpid())
        pthread_join(q->thread, NULL);
    free_queue(q);
    return 0;
}

int fake_queue_property(struct xe_exec_queue_get_property *property)
{
    const struct fake_queue *const q = queue_of(property->exec_queue_id);
    if (!q)
        return failed(ENOENT);
    if (property->property != XE_EXEC_QUEUE_PROPERTY_BAN) {
        fake_unknown("EXEC_QUEUE_GET_PROPERTY %u is not known", property->property);
        return failed(EINVAL);
    }
    property->value = q->banned;
    return 0;
}

int fake_exec(const struct xe_exec *exec)
{
    struct fake_queue *const q = queue_of(exec->exec_queue_id);
    const struct xe_sync *const sync = (const void *)(uintptr_t)exec->syncs;
    if (!q)
        return failed(ENOENT);
    if (q->banned)
        return failed(ECANCELED);
    if (q->owner != getpid()) {
        fake_unknown("EXEC in a child of fork is not implemented: the engine's thread stayed with the parent");
        return failed(ENODEV);
    }
    if (exec->num_batch_buffer != 1 || exec->num_syncs > 1 ||
        (exec->num_syncs && (sync->type != XE_SYNC_USER_FENCE || !(sync->flags & XE_SYNC_SIGNAL)))) {
        fake_unknown("EXEC with %u batches, %u syncs, the first of type %u is not implemented", exec->num_batch_buffer, exec->num_syncs,
                     exec->num_syncs ? sync->type : 0);
        return failed(EINVAL);
    }
    struct fake_job *const job = calloc(1, sizeof(*job));
    if (!job)
        return failed(ENOMEM);
    job->batch = exec->address;
    if (exec->num_syncs) {
        job->has_fence = true;
        job->fence = sync->addr;
        job->value = sync->timeline_value;
    }
    fake_say(LOG_JOB, "queue %u: job 0x%llx, fence value %llu", q->id, (unsigned long long)job->batch, (unsigned long long)job->value);
    pthread_mutex_lock(&q->lock);
    *q->last = job;
    q->last = &job->next;
    pthread_cond_broadcast(&q->wake);
    pthread_mutex_unlock(&q->lock);
    return 0;
}

static bool holds(unsigned operation, uint64_t value, uint64_t wanted)
{
    switch (operation) {
    case XE_WAIT_EQ:
        return value == wanted;
    case XE_WAIT_NEQ:
        return value != wanted;
    case XE_WAIT_GT:
        return value > wanted;
    case XE_WAIT_GTE:
        return value >= wanted;
    case XE_WAIT_LT:
        return value < wanted;
    default:
        return value <= wanted;
    }
}

int fake_wait_user_fence(struct xe_wait_user_fence *wait)
{
    const uint64_t *const word = (const uint64_t *)(uintptr_t)wait->addr;
    if (!word || wait->addr % 8 || wait->op > XE_WAIT_LTE || (wait->flags & XE_WAIT_ABSTIME))
        return failed(EINVAL);
    const uint64_t start = fake_now_ns();
    const uint64_t limit = wait->timeout < 0 ? UINT64_MAX : (uint64_t)wait->timeout;
    const struct fake_queue *const q = wait->exec_queue_id ? queue_of(wait->exec_queue_id) : NULL;
    for (;;) {
        if (holds(wait->op, __atomic_load_n(word, __ATOMIC_ACQUIRE) & wait->mask, wait->value & wait->mask))
            return 0;
        if (q && q->banned)
            return failed(EIO);
        if (fake_now_ns() - start >= limit)
            return failed(ETIME);
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}

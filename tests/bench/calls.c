/* SPDX-License-Identifier: MIT */
/*
 * calls one|seven THREADS CALLS BURST [WARM]: a loop of cheap calls. one: zeEventQueryStatus (1 argument); seven:
 * zeCommandListAppendMemoryCopy between device memory (7 arguments), on a list of each thread's own. After BURST calls
 * (0: never) the thread rests for 5 ms, outside the time taken, so that the ring empties. WARM calls (60000), which
 * touch each page of a ring, come before and are not counted. Prints ns per call. With BENCH_TRACER in the environment both
 * functions have an empty callback in the loader's tracing layer, which ZE_ENABLE_TRACING_LAYER=1 switches on.
 */
#include <level_zero/layers/zel_tracing_api.h>
#include <level_zero/layers/zel_tracing_ddi.h>
#include <level_zero/ze_api.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != ZE_RESULT_SUCCESS) {                                                                             \
            fprintf(stderr, "%s failed\n", #call);                                                                     \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)

static bool seven;
static unsigned long calls, burst, warm = 60000;
static ze_context_handle_t context;
static ze_device_handle_t device;
static char *from, *to;
static pthread_barrier_t start;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double stretch(ze_command_list_handle_t list, ze_event_handle_t event, unsigned long n)
{
    const double begin = now();
    if (seven)
        for (unsigned long i = 0; i < n; i++)
            zeCommandListAppendMemoryCopy(list, to, from + (i & 63), 64, NULL, 0, NULL);
    else
        for (unsigned long i = 0; i < n; i++)
            zeEventQueryStatus(event);
    return now() - begin;
}

static void queried(ze_event_query_status_params_t *params, ze_result_t result, void *of_tracer, void **of_call)
{
    (void)params, (void)result, (void)of_tracer, (void)of_call;
}

static void appended(ze_command_list_append_memory_copy_params_t *params, ze_result_t result, void *of_tracer, void **of_call)
{
    (void)params, (void)result, (void)of_tracer, (void)of_call;
}

static void trace_empty(void)
{
    const zel_tracer_desc_t desc = {.stype = ZEL_STRUCTURE_TYPE_TRACER_DESC};
    zel_core_callbacks_t callbacks = {.Event.pfnQueryStatusCb = queried, .CommandList.pfnAppendMemoryCopyCb = appended};
    zel_tracer_handle_t tracer;
    MUST(zelTracerCreate(&desc, &tracer));
    MUST(zelTracerSetPrologues(tracer, &callbacks));
    MUST(zelTracerSetEnabled(tracer, 1));
}

static void *work(void *index)
{
    ze_command_list_handle_t list;
    ze_event_pool_handle_t pool;
    ze_event_handle_t event;
    const ze_command_list_desc_t ld = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
    const ze_event_pool_desc_t pd = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .count = 1};
    const ze_event_desc_t ed = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC};
    double *const ns = index;
    MUST(zeCommandListCreate(context, device, &ld, &list));
    MUST(zeEventPoolCreate(context, &pd, 0, NULL, &pool));
    MUST(zeEventCreate(pool, &ed, &event));
    const struct timespec rest = {0, 5000000};
    for (unsigned long done = 0; done < warm; done += 15000) {
        stretch(list, event, warm - done < 15000 ? warm - done : 15000);
        nanosleep(&rest, NULL);
    }
    pthread_barrier_wait(&start);
    for (unsigned long done = 0; done < calls;) {
        const unsigned long n = burst != 0 && burst < calls - done ? burst : calls - done;
        *ns += stretch(list, event, n);
        done += n;
        if (burst != 0)
            nanosleep(&rest, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 6)
        return 2;
    if (argc == 6)
        warm = strtoul(argv[5], NULL, 0);
    seven = strcmp(argv[1], "seven") == 0;
    const unsigned threads = (unsigned)atoi(argv[2]);
    calls = strtoul(argv[3], NULL, 0);
    burst = strtoul(argv[4], NULL, 0);
    ze_driver_handle_t driver;
    uint32_t n = 1;
    MUST(zeInit(0));
    MUST(zeDriverGet(&n, &driver));
    n = 1;
    MUST(zeDeviceGet(driver, &n, &device));
    const ze_context_desc_t cd = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    MUST(zeContextCreate(driver, &cd, &context));
    const ze_device_mem_alloc_desc_t md = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    MUST(zeMemAllocDevice(context, &md, 4096, 64, device, (void **)&from));
    MUST(zeMemAllocDevice(context, &md, 4096, 64, device, (void **)&to));
    if (getenv("BENCH_TRACER") != NULL)
        trace_empty();
    pthread_t t[16];
    double ns[16] = {0}, sum = 0;
    if (threads < 1 || threads > 16 || pthread_barrier_init(&start, NULL, threads) != 0)
        return 2;
    for (unsigned i = 1; i < threads; i++)
        if (pthread_create(&t[i], NULL, work, &ns[i]) != 0)
            return 2;
    work(&ns[0]);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(t[i], NULL);
    for (unsigned i = 0; i < threads; i++)
        sum += ns[i] / (double)calls;
    printf("%.2f\n", sum / threads);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* The software driver under the installed loader: found by name, called through it, alone and twice. */
#include "l0_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *loader;
static int failures;

#define CHECK(condition)                                                                                                       \
    do {                                                                                                                       \
        if (!(condition)) {                                                                                                    \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                            \
            exit(1);                                                                                                           \
        }                                                                                                                      \
    } while (0)
/* A function of the loader, typed as its declaration. */
#define ZE(name) ((__typeof__(&name))(uintptr_t)dlsym(loader, #name))

static ze_driver_handle_t drivers[4];
static ze_context_handle_t context;
static ze_device_handle_t device;

static uint32_t start(void)
{
    uint32_t n = 4;
    CHECK(ZE(zeInit)(0) == ZE_RESULT_SUCCESS);
    CHECK(ZE(zeInit)(0) == ZE_RESULT_SUCCESS);
    CHECK(ZE(zeDriverGet)(&n, drivers) == ZE_RESULT_SUCCESS);
    return n;
}

static void choose(ze_driver_handle_t driver)
{
    uint32_t n = 1;
    const ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    CHECK(ZE(zeDeviceGet)(driver, &n, &device) == ZE_RESULT_SUCCESS);
    CHECK(ZE(zeContextCreate)(driver, &desc, &context) == ZE_RESULT_SUCCESS);
}

static void *alloc(void)
{
    void *p;
    const ze_host_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    CHECK(ZE(zeMemAllocHost)(context, &desc, 4096, 0, &p) == ZE_RESULT_SUCCESS);
    return p;
}

/* Copy a -> b, evict and free b at once, then empty lists. @return the first result that is no success. */
static ze_result_t evict_sequence(void)
{
    const ze_command_queue_desc_t qd = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
    const ze_command_list_desc_t ld = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
    ze_command_queue_handle_t queue;
    ze_command_list_handle_t list, empty;
    ze_result_t bad = ZE_RESULT_SUCCESS;
    void *const a = alloc(), *const b = alloc();
    CHECK(ZE(zeCommandQueueCreate)(context, device, &qd, &queue) == ZE_RESULT_SUCCESS);
    CHECK(ZE(zeCommandListCreate)(context, device, &ld, &list) == ZE_RESULT_SUCCESS);
    CHECK(ZE(zeCommandListCreate)(context, device, &ld, &empty) == ZE_RESULT_SUCCESS);
    CHECK(ZE(zeCommandListAppendMemoryCopy)(list, b, a, 4096, NULL, 0, NULL) == ZE_RESULT_SUCCESS);
    CHECK(ZE(zeCommandListClose)(list) == ZE_RESULT_SUCCESS);
    CHECK(ZE(zeCommandListClose)(empty) == ZE_RESULT_SUCCESS);
    CHECK(ZE(zeCommandQueueExecuteCommandLists)(queue, 1, &list, NULL) == ZE_RESULT_SUCCESS);
    CHECK(ZE(zeContextEvictMemory)(context, device, b, 4096) == ZE_RESULT_SUCCESS);
    CHECK(ZE(zeMemFree)(context, b) == ZE_RESULT_SUCCESS);
    for (int i = 0; i < 10 && bad == ZE_RESULT_SUCCESS; i++)
        bad = ZE(zeCommandQueueExecuteCommandLists)(queue, 1, &empty, NULL);
    return bad;
}

static void lazy_fails(void)
{
    CHECK(start() == 1);
    choose(drivers[0]);
    CHECK(evict_sequence() == ZE_RESULT_ERROR_UNKNOWN);
}

static void eager_passes(void)
{
    CHECK(start() == 1);
    choose(drivers[0]);
    CHECK(evict_sequence() == ZE_RESULT_SUCCESS);
}

/* Each copy has its own devices, memory and faults. */
static void two_copies(void)
{
    CHECK(start() == 2 && drivers[0] != drivers[1]);
    choose(drivers[0]);
    char *const first = alloc();
    CHECK(evict_sequence() == ZE_RESULT_ERROR_UNKNOWN);
    CHECK(ZE(zeDeviceGetStatus)(device) == ZE_RESULT_ERROR_DEVICE_LOST);
    choose(drivers[1]);
    char *const second = alloc();
    CHECK(second - first == 0x20000000000 || first - second == 0x20000000000);
    CHECK(ZE(zeDeviceGetStatus)(device) == ZE_RESULT_SUCCESS);
    CHECK(evict_sequence() == ZE_RESULT_ERROR_UNKNOWN);
}

static void knob_refused(void)
{
    CHECK(ZE(zeInit)(0) != ZE_RESULT_SUCCESS);
}

static void run(const char *what, const char *schedule, const char *paths, void (*body)(void))
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        setenv("ZE_SOFT_SCHEDULE", schedule, 1);
        setenv("ZE_ENABLE_ALT_DRIVERS", paths, 1);
        loader = dlopen("libze_loader.so.1", RTLD_NOW);
        CHECK(loader != NULL);
        body();
        exit(0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    printf("%-50s %s\n", what, status == 0 ? "passed" : "FAILED");
    failures += status != 0;
}

int main(void)
{
    char copy[] = "/tmp/libze_soft-XXXXXX", command[8192], both[8192];
    const char *const one = getenv("TEST_SOFT");
    const int fd = mkstemp(copy);
    if (one == NULL || fd < 0)
        return 2;
    close(fd);
    snprintf(command, sizeof(command), "cp '%s' '%s'", one, copy);
    snprintf(both, sizeof(both), "%s,%s", one, copy);
    if (system(command) != 0)
        return 2;
    run("the evict sequence fails on lazy", "lazy", one, lazy_fails);
    run("the evict sequence passes on eager", "eager", one, eager_passes);
    run("two copies in one process", "lazy", both, two_copies);
    run("a knob's value that is none", "fast", one, knob_refused);
    unlink(copy);
    return failures != 0;
}

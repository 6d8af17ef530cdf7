/* SPDX-License-Identifier: MIT */
#include "soft_test.h"

#include <CUnit/Basic.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

tables ze;
ze_driver_handle_t the_driver;
ze_device_handle_t the_device;
ze_context_handle_t the_context;

static ze_event_pool_handle_t events;
static uint32_t next_event;

bool load_driver(const char *path, tables *t)
{
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct {
        const char *name;
        void *table;
    } getters[] = {{"zeGetGlobalProcAddrTable", &t->global},           {"zeGetDriverProcAddrTable", &t->driver},
                   {"zeGetDeviceProcAddrTable", &t->device},           {"zeGetContextProcAddrTable", &t->context},
                   {"zeGetCommandQueueProcAddrTable", &t->queue},      {"zeGetCommandListProcAddrTable", &t->list},
                   {"zeGetCommandListExpProcAddrTable", &t->list_exp}, {"zeGetEventProcAddrTable", &t->event},
                   {"zeGetEventPoolProcAddrTable", &t->pool},          {"zeGetFenceProcAddrTable", &t->fence},
                   {"zeGetMemProcAddrTable", &t->mem},                 {"zeGetPhysicalMemProcAddrTable", &t->physical},
                   {"zeGetVirtualMemProcAddrTable", &t->virt},         {"zeGetModuleProcAddrTable", &t->module},
                   {"zeGetEventExpProcAddrTable", &t->event_exp}};
    memset(t, 0, sizeof(*t));
    for (size_t i = 0; library != NULL && i < sizeof(getters) / sizeof(getters[0]); i++) {
        ze_result_t (*const get)(ze_api_version_t, void *) = (ze_result_t(*)(ze_api_version_t, void *))dlsym(library, getters[i].name);
        if (get == NULL || get(ZE_API_VERSION_CURRENT_M, getters[i].table) != ZE_RESULT_SUCCESS)
            return false;
    }
    return library != NULL;
}

void check(bool condition, const char *text, const char *file, int line)
{
    if (condition)
        return;
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, text);
    exit(1);
}

void is(ze_result_t got, ze_result_t want, const char *text, const char *file, int line)
{
    if (got == want)
        return;
    fprintf(stderr, "%s:%d: %s = 0x%x, wanted 0x%x\n", file, line, text, (unsigned)got, (unsigned)want);
    exit(1);
}

void open_all(void)
{
    uint32_t n = 1;
    OK(ze.global.pfnInit(0));
    OK(ze.driver.pfnGet(&n, &the_driver));
    n = 1;
    OK(ze.device.pfnGet(the_driver, &n, &the_device));
    const ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    OK(ze.context.pfnCreate(the_driver, &desc, &the_context));
    const ze_event_pool_desc_t pool = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
                                       .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE | ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP, .count = 64};
    OK(ze.pool.pfnCreate(the_context, &pool, 0, NULL, &events));
}

ze_command_queue_handle_t new_queue(uint32_t ordinal, uint32_t index)
{
    ze_command_queue_handle_t queue;
    const ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .ordinal = ordinal, .index = index};
    OK(ze.queue.pfnCreate(the_context, the_device, &desc, &queue));
    return queue;
}

ze_command_list_handle_t new_list(uint32_t ordinal, uint32_t flags)
{
    ze_command_list_handle_t list;
    const ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, .commandQueueGroupOrdinal = ordinal, .flags = flags};
    OK(ze.list.pfnCreate(the_context, the_device, &desc, &list));
    return list;
}

ze_command_list_handle_t new_immediate(uint32_t flags, bool synchronous)
{
    ze_command_list_handle_t list;
    const ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .flags = flags,
                                          .mode = synchronous ? ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS : ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS};
    OK(ze.list.pfnCreateImmediate(the_context, the_device, &desc, &list));
    return list;
}

ze_event_handle_t new_event(void)
{
    ze_event_handle_t event;
    const ze_event_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .index = next_event++, .signal = ZE_EVENT_SCOPE_FLAG_HOST};
    OK(ze.event.pfnCreate(events, &desc, &event));
    return event;
}

void *new_device(size_t size)
{
    void *p;
    const ze_device_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    OK(ze.mem.pfnAllocDevice(the_context, &desc, size, 64, the_device, &p));
    return p;
}

unsigned char *new_host(size_t size)
{
    void *p;
    const ze_host_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    OK(ze.mem.pfnAllocHost(the_context, &desc, size, 64, &p));
    return p;
}

ze_result_t run(ze_command_queue_handle_t queue, ze_command_list_handle_t list)
{
    return ze.queue.pfnExecuteCommandLists(queue, 1, &list, NULL);
}

void copy(ze_command_list_handle_t list, void *to, const void *from, size_t size)
{
    OK(ze.list.pfnAppendMemoryCopy(list, to, from, size, NULL, 0, NULL));
}

void close_list(ze_command_list_handle_t list)
{
    OK(ze.list.pfnClose(list));
}

void nap(unsigned ms)
{
    const struct timespec t = {ms / 1000, (ms % 1000) * 1000000L};
    nanosleep(&t, NULL);
}

static const test_case *cases[256];
static size_t n_cases;

static int run_case(const test_case *c)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        char knobs[512];
        snprintf(knobs, sizeof(knobs), "%s", c->knobs);
        for (char *save = NULL, *k = strtok_r(knobs, " ", &save); k != NULL; k = strtok_r(NULL, " ", &save)) {
            char *const equals = strchr(k, '=');
            *equals = '\0';
            setenv(k, equals + 1, 1);
        }
        alarm(60); /* a case that hangs fails */
        if (!load_driver(getenv("TEST_SOFT"), &ze)) {
            fprintf(stderr, "%s could not be loaded\n", getenv("TEST_SOFT"));
            _exit(9);
        }
        c->run();
        exit(0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void one(void)
{
    const test_case *const c = cases[n_cases++];
    const int status = run_case(c);
    if (status != c->status)
        fprintf(stderr, "%s (%s): ended with %d, wanted %d\n", c->name, c->knobs, status, c->status);
    CU_ASSERT_EQUAL(status, c->status);
}

static void add_suite(const char *name, const test_case *list)
{
    const CU_pSuite suite = CU_add_suite(name, NULL, NULL);
    for (; list->name != NULL; list++) {
        cases[n_cases++] = list;
        CU_add_test(suite, list->name, one);
    }
}

int main(void)
{
    if (getenv("TEST_SOFT") == NULL || CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    add_suite("knobs", knob_cases);
    add_suite("memory", memory_cases);
    add_suite("model", model_cases);
    add_suite("use", use_cases);
    add_suite("lasting", lasting_cases);
    add_suite("loss", loss_cases);
    n_cases = 0; /* from here on: the next one to run */
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    const unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}

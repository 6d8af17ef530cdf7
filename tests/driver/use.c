/* SPDX-License-Identifier: MIT */
/* Wrong use gives the code the header names; garbage is told from handles; what is not there says so; two copies live together. */
#include "soft_test.h"

#include <dlfcn.h>
#include <unistd.h>

static void null_arguments(void)
{
    open_all();
    ze_command_list_handle_t list = new_list(0, 0);
    void *p;
    IS(ze.list.pfnClose(NULL), ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    IS(ze.list.pfnAppendMemoryCopy(list, NULL, &p, 8, NULL, 0, NULL), ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    IS(ze.list.pfnAppendMemoryCopy(list, &p, &p, 8, NULL, 1, NULL), ZE_RESULT_ERROR_INVALID_SIZE);
    IS(ze.mem.pfnAllocHost(the_context, NULL, 8, 0, &p), ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    IS(ze.context.pfnCreate(NULL, NULL, NULL), ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    IS(ze.device.pfnGetProperties(the_device, NULL), ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    const ze_command_queue_desc_t mode = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .mode = 77};
    ze_command_queue_handle_t queue;
    IS(ze.queue.pfnCreate(the_context, the_device, &mode, &queue), ZE_RESULT_ERROR_INVALID_ENUMERATION);
    IS(ze.global.pfnInit(0x100), ZE_RESULT_ERROR_INVALID_ENUMERATION);
}

static void garbage_handles(void)
{
    open_all();
    ze_command_list_handle_t list = new_list(0, 0);
    OK(ze.list.pfnDestroy(list));
    IS(ze.list.pfnClose(list), ZE_RESULT_ERROR_INVALID_ARGUMENT);                                       /* destroyed */
    IS(ze.list.pfnClose((ze_command_list_handle_t)0x1234), ZE_RESULT_ERROR_INVALID_ARGUMENT);           /* never one */
    IS(ze.list.pfnClose((ze_command_list_handle_t)((char *)the_device + 8)), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    IS(ze.list.pfnClose((ze_command_list_handle_t)the_device), ZE_RESULT_ERROR_INVALID_ARGUMENT);       /* of another kind */
    IS(ze.event.pfnHostSignal((ze_event_handle_t)the_context), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    ze_event_handle_t event = new_event();
    OK(ze.event.pfnDestroy(event));
    list = new_list(0, 0);
    IS(ze.list.pfnAppendSignalEvent(list, event), ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT);
}

static void lists(void)
{
    open_all();
    ze_command_queue_handle_t queue = new_queue(0, 0);
    ze_command_list_handle_t open = new_list(0, 0), closed = new_list(0, 0), copy_group = new_list(1, 0), immediate = new_immediate(0, false);
    close_list(closed);
    close_list(copy_group);
    IS(run(queue, open), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    IS(run(queue, immediate), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    IS(run(queue, copy_group), ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE);
    IS(ze.list.pfnClose(closed), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    IS(ze.list.pfnAppendBarrier(closed, NULL, 0, NULL), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    IS(ze.queue.pfnExecuteCommandLists(queue, 0, &closed, NULL), ZE_RESULT_ERROR_INVALID_SIZE);
    IS(ze.list.pfnHostSynchronize(closed, 0), ZE_RESULT_ERROR_INVALID_ARGUMENT); /* not immediate */
    ze_bool_t yes;
    uint32_t ordinal;
    OK(ze.list.pfnIsImmediate(immediate, &yes));
    CHECK(yes);
    OK(ze.list.pfnGetOrdinal(copy_group, &ordinal));
    CHECK(ordinal == 1);
}

static void pools(void)
{
    open_all();
    ze_event_pool_handle_t pool;
    ze_event_handle_t event, again;
    ze_event_pool_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .count = 0};
    IS(ze.pool.pfnCreate(the_context, &desc, 0, NULL, &pool), ZE_RESULT_ERROR_INVALID_SIZE);
    desc.count = 2;
    OK(ze.pool.pfnCreate(the_context, &desc, 0, NULL, &pool));
    ze_event_desc_t ed = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .index = 2};
    IS(ze.event.pfnCreate(pool, &ed, &event), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    ed.index = 1;
    OK(ze.event.pfnCreate(pool, &ed, &event));
    IS(ze.event.pfnCreate(pool, &ed, &again), ZE_RESULT_ERROR_INVALID_ARGUMENT); /* the place is taken */
    IS(ze.pool.pfnDestroy(pool), ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
    OK(ze.event.pfnDestroy(event));
    OK(ze.pool.pfnDestroy(pool));
}

static void not_there(void)
{
    open_all();
    ze_module_handle_t module;
    const ze_module_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MODULE_DESC, .inputSize = 4, .pInputModule = (const uint8_t *)"abcd"};
    IS(ze.module.pfnCreate(the_context, the_device, &desc, &module, NULL), ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
    void *address = NULL;
    OK(ze.driver.pfnGetExtensionFunctionAddress(the_driver, "zeCommandListHostSynchronize", &address));
    CHECK(address == (void *)ze.list.pfnHostSynchronize);
    IS(ze.driver.pfnGetExtensionFunctionAddress(the_driver, "zeModuleCreate", &address), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    IS(ze.driver.pfnGetExtensionFunctionAddress(the_driver, "zexNothing", &address), ZE_RESULT_ERROR_INVALID_ARGUMENT);
}

/* docs/driver.md lists what answers UNSUPPORTED_FEATURE: the list is compared with the library. */
static void documented(void)
{
    void *const library = dlopen(getenv("TEST_SOFT"), RTLD_NOW | RTLD_NOLOAD);
    CHECK(library != NULL);
    FILE *const page = fopen(getenv("TEST_DRIVER_PAGE"), "r");
    CHECK(page != NULL);
    char line[1024], *text = calloc(1, 1 << 20);
    size_t n = 0;
    while (fgets(line, sizeof(line), page) != NULL && n + strlen(line) < (1 << 20)) {
        strcpy(text + n, line);
        n += strlen(line);
    }
    fclose(page);
    const char *const begin = strstr(text, "<!-- implemented -->"), *const end = strstr(text, "<!-- end -->");
    CHECK(begin != NULL && end != NULL);
    open_all();
    unsigned wrong = 0;
    FILE *const names = fopen(getenv("TEST_NAMES"), "r");
    CHECK(names != NULL);
    while (fgets(line, sizeof(line), names) != NULL) {
        void *address = NULL;
        line[strcspn(line, "\n")] = '\0';
        const bool there = ze.driver.pfnGetExtensionFunctionAddress(the_driver, line, &address) == ZE_RESULT_SUCCESS;
        char quoted[128];
        snprintf(quoted, sizeof(quoted), "`%s`", line);
        const char *const at = strstr(begin, quoted);
        if (there != (at != NULL && at < end)) {
            fprintf(stderr, "%s is %s, but the page says otherwise\n", line, there ? "implemented" : "not implemented");
            wrong++;
        }
    }
    fclose(names);
    free(text);
    CHECK(wrong == 0);
}

static void two_copies(void)
{
    tables other;
    char copy_path[] = "/tmp/libze_soft-copy.XXXXXX", command[4096];
    const int fd = mkstemp(copy_path);
    CHECK(fd >= 0);
    snprintf(command, sizeof(command), "cp '%s' '%s'", getenv("TEST_SOFT"), copy_path);
    CHECK(system(command) == 0 && load_driver(copy_path, &other));
    unlink(copy_path);
    open_all();
    void *const mine = new_device(64);
    OK(other.global.pfnInit(0));
    const tables first = ze;
    ze = other;
    open_all();
    void *const its = new_device(64);
    CHECK(mine != its && (uint64_t)its - (uint64_t)mine == 0x20000000000ull); /* each its own window */
    IS(first.mem.pfnFree(the_context, its), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    OK(ze.mem.pfnFree(the_context, its));
}

static void properties(void)
{
    uint32_t n = 0;
    open_all();
    ze_device_properties_t device = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
    OK(ze.device.pfnGetProperties(the_device, &device));
    CHECK(device.type == ZE_DEVICE_TYPE_GPU && device.vendorId == 0x8086 && strstr(device.name, "libze_soft") != NULL);
    OK(ze.device.pfnGetCommandQueueGroupProperties(the_device, &n, NULL));
    CHECK(n == 3);
    ze_command_queue_group_properties_t groups[5] = {{0}};
    n = 5; /* more room than there is */
    OK(ze.device.pfnGetCommandQueueGroupProperties(the_device, &n, groups));
    CHECK(n == 3 && groups[0].numQueues == 1 && groups[2].numQueues == 8);
    n = 1; /* less */
    groups[1].numQueues = 77;
    OK(ze.device.pfnGetCommandQueueGroupProperties(the_device, &n, groups));
    CHECK(n == 1 && groups[1].numQueues == 77);
    n = 0;
    OK(ze.driver.pfnGetExtensionProperties(the_driver, &n, NULL));
    CHECK(n > 0);
}

const test_case use_cases[] = {{"null arguments", "ZE_SOFT_SCHEDULE=lazy", null_arguments, 0},
                               {"garbage handles", "ZE_SOFT_SCHEDULE=lazy", garbage_handles, 0},
                               {"lists", "ZE_SOFT_SCHEDULE=lazy", lists, 0},
                               {"event pools", "ZE_SOFT_SCHEDULE=lazy", pools, 0},
                               {"what is not there", "ZE_SOFT_SCHEDULE=lazy", not_there, 0},
                               {"the page says what is there", "ZE_SOFT_SCHEDULE=lazy", documented, 0},
                               {"two copies", "ZE_SOFT_SCHEDULE=lazy", two_copies, 0},
                               {"properties", "ZE_SOFT_SCHEDULE=lazy", properties, 0},
                               {NULL, NULL, NULL, 0}};

/* SPDX-License-Identifier: MIT */
/*
 * What a program gets here: run by 'zetrace doctor' in a process of its own, for what it loads may crash or hang. One line a fact,
 * "WORD TEXT", on stdout; the calls it has made are counted in the last lines.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "l0_api.h"

#define PATIENCE     20 /* s */
#define MOST_DRIVERS 64u
#define MOST_DEVICES 64u

/* As the loader's own header has it, level_zero/loader/ze_loader.h */
typedef struct component {
    char name[64];
    ze_api_version_t spec;
    struct {
        int major, minor, patch;
    } version;
} component;

static void *loader;
static struct {
    const char *name;
    unsigned n;
} made[32];
static unsigned n_made;

static void *function(const char *name)
{
    void *const at = dlsym(loader, name);
    for (unsigned i = 0; at != NULL && i <= n_made && i < sizeof(made) / sizeof(made[0]); i++)
        if (i == n_made || strcmp(made[i].name, name) == 0) {
            n_made += i == n_made;
            made[i].name = name;
            made[i].n++;
            break;
        }
    return at;
}

/* ISO C has no way from dlsym to a function but through memory. */
#define MAKE(result, name, type, arguments)                                                                            \
    do {                                                                                                               \
        void *const at = function(#name);                                                                              \
        type call;                                                                                                     \
        memcpy(&call, &at, sizeof(call));                                                                              \
        if (at != NULL)                                                                                                \
            (result) = call arguments;                                                                                 \
    } while (0)

static void tell_hex(const uint8_t *id, size_t n)
{
    for (size_t i = 0; i < n; i++)
        printf("%02x", id[i]);
}

/* Names come from a driver: a '?' stands for what is no plain character. */
static void tell_text(const char *text, size_t most)
{
    for (size_t i = 0; i < most && text[i] != '\0'; i++)
        putchar(text[i] >= ' ' && text[i] < 127 ? text[i] : '?');
}

static void tell_libraries(void)
{
    FILE *const maps = fopen("/proc/self/maps", "re");
    char line[4400], last[4400] = "";
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        char *const path = strchr(line, '/');
        if (path == NULL)
            continue;
        path[strcspn(path, "\n")] = '\0';
        const char *const name = strrchr(path, '/') + 1;
        if (strcmp(path, last) != 0 && (strncmp(name, "libze_", 6) == 0 || strncmp(name, "libzetrace", 10) == 0))
            printf("library %s\n", path);
        snprintf(last, sizeof(last), "%s", path);
    }
    if (maps != NULL)
        fclose(maps);
}

static void tell_loader(void)
{
    size_t n = 0;
    ze_result_t result = ZE_RESULT_ERROR_UNKNOWN;
    Dl_info info;
    void *const any = dlsym(loader, "zeInit");
    if (any != NULL && dladdr(any, &info) != 0)
        printf("loader %s\n", info.dli_fname);
    typedef ze_result_t (*versions)(size_t *, component *);
    void *const at = dlsym(loader, "zelLoaderGetVersions");
    versions get;
    memcpy(&get, &at, sizeof(get));
    if (at == NULL || get(&n, NULL) != ZE_RESULT_SUCCESS || n == 0 || n > 64)
        return;
    component *const all = calloc(n, sizeof(*all));
    if (all != NULL)
        result = get(&n, all);
    for (size_t i = 0; result == ZE_RESULT_SUCCESS && i < n; i++) {
        printf("component ");
        tell_text(all[i].name, sizeof(all[i].name));
        printf(" %d.%d.%d\n", all[i].version.major, all[i].version.minor, all[i].version.patch);
    }
    free(all);
}

static void tell_device(ze_device_handle_t device, unsigned driver)
{
    ze_device_properties_t p = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
    ze_result_t result = ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    typedef ze_result_t (*get)(ze_device_handle_t, ze_device_properties_t *);
    MAKE(result, zeDeviceGetProperties, get, (device, &p));
    printf("device %u %s %04x:%04x ", driver, p.type == ZE_DEVICE_TYPE_GPU ? "GPU" : p.type == ZE_DEVICE_TYPE_VPU ? "NPU" : "other", p.vendorId,
           p.deviceId);
    tell_text(p.name, sizeof(p.name));
    printf("\n");
    if (result != ZE_RESULT_SUCCESS)
        printf("failed zeDeviceGetProperties 0x%x\n", (unsigned)result);
}

static void tell_driver(ze_driver_handle_t driver, unsigned number)
{
    ze_driver_properties_t p = {.stype = ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES};
    ze_api_version_t api = 0;
    ze_device_handle_t devices[MOST_DEVICES];
    uint32_t n = MOST_DEVICES;
    ze_result_t result = ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    typedef ze_result_t (*properties)(ze_driver_handle_t, ze_driver_properties_t *);
    typedef ze_result_t (*version)(ze_driver_handle_t, ze_api_version_t *);
    typedef ze_result_t (*get)(ze_driver_handle_t, uint32_t *, ze_device_handle_t *);
    MAKE(result, zeDriverGetProperties, properties, (driver, &p));
    MAKE(result, zeDriverGetApiVersion, version, (driver, &api));
    printf("driver %u %u.%u 0x%08x ", number, ZE_MAJOR_VERSION((unsigned)api), ZE_MINOR_VERSION((unsigned)api), p.driverVersion);
    tell_hex(p.uuid.id, sizeof(p.uuid.id));
    printf("\n");
    MAKE(result, zeDeviceGet, get, (driver, &n, devices));
    if (result != ZE_RESULT_SUCCESS)
        printf("failed zeDeviceGet 0x%x\n", (unsigned)result);
    for (uint32_t i = 0; result == ZE_RESULT_SUCCESS && i < n && i < MOST_DEVICES; i++)
        tell_device(devices[i], number);
}

int main(int argc, char **argv)
{
    ze_driver_handle_t drivers[MOST_DRIVERS];
    uint32_t n = MOST_DRIVERS;
    ze_result_t result = ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    typedef ze_result_t (*init)(ze_init_flags_t);
    typedef ze_result_t (*get)(uint32_t *, ze_driver_handle_t *);
    if (argc > 1 && freopen(argv[1], "we", stdout) == NULL)
        return 1;
    setvbuf(stdout, NULL, _IOLBF, 0); /* what is known before a crash is told */
    alarm(PATIENCE);
    loader = dlopen("libze_loader.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (loader == NULL) {
        printf("no-loader %s\n", dlerror());
        return 0;
    }
    printf("init-begins\n");
    MAKE(result, zeInit, init, (0));
    printf("init 0x%x\n", (unsigned)result);
    tell_loader();
    if (result == ZE_RESULT_SUCCESS) {
        MAKE(result, zeDriverGet, get, (&n, drivers));
        if (result != ZE_RESULT_SUCCESS)
            printf("failed zeDriverGet 0x%x\n", (unsigned)result);
        for (uint32_t i = 0; result == ZE_RESULT_SUCCESS && i < n && i < MOST_DRIVERS; i++)
            tell_driver(drivers[i], i + 1);
    }
    tell_libraries();
    for (unsigned i = 0; i < n_made; i++)
        printf("made %s %u\n", made[i].name, made[i].n);
    printf("end\n");
    return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The driver that a replay talks to. It is loaded by itself, without the loader: its own function tables hold
 * everything it can do, also what a loader of this machine is too old to know, and nothing comes between.
 */
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

#define INTEL "libze_intel_gpu.so.1"
#define SPARE 64 /* slots a newer driver may write behind those the table knows */

typedef int (*getter_fn)(uint32_t version, void *table);

static bool is_soft(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, "libze_soft", 10) == 0;
}

/*
 * Where 'zetrace record --attach=driver' records this replay, the library that it put in the driver's place; NULL elsewhere.
 */
static const char *stand_in(char *path, size_t size)
{
    const char *const drivers = getenv("ZE_ENABLE_ALT_DRIVERS");
    if (drivers == NULL || getenv("ZETRACE_REAL_DRIVER") == NULL || strstr(drivers, "/libzetrace-proxy") == NULL)
        return NULL;
    snprintf(path, size, "%.*s", (int)strcspn(drivers, ",:"), drivers);
    return path;
}

static bool has_gpu(void)
{
    glob_t found;
    const bool any = glob("/dev/dri/renderD*", 0, NULL, &found) == 0 && found.gl_pathc > 0;
    globfree(&found);
    return any;
}

static bool choose(zr_target *t, const char *path, const char *why)
{
    snprintf(t->path, sizeof(t->path), "%s", path);
    snprintf(t->why, sizeof(t->why), "%s", why);
    return true;
}

bool zr_target_choose(zr_target *t, const zr_plan *plan, const zr_options *options, char *message, size_t size)
{
    const char *const driver = options->driver ? options->driver : "auto";
    char proxy[sizeof(t->path)];
    const bool recorded = strcmp(driver, "auto") == 0 && stand_in(proxy, sizeof(proxy)) != NULL;
    const char *const soft = options->soft_library ? options->soft_library : "libze_soft.so.1";
    if (strcmp(driver, "soft") == 0) {
        choose(t, soft, "asked for");
    } else if (strcmp(driver, "auto") != 0) {
        choose(t, driver, "asked for");
    } else if (recorded) {
        choose(t, proxy, "which is being recorded");
    } else if (plan->recorded_soft) {
        choose(t, soft, "the recorded driver");
    } else if (plan->recorded_driver[0] != 0 && access(plan->recorded_driver, R_OK) == 0 && has_gpu()) {
        choose(t, plan->recorded_driver, "the recorded driver");
    } else if (has_gpu()) {
        choose(t, INTEL, "a GPU is here");
    } else {
        choose(t, soft, "no GPU is here");
    }
    t->soft = is_soft(recorded ? getenv("ZETRACE_REAL_DRIVER") : t->path);
    t->same = plan->recorded_driver[0] == 0 || t->soft == plan->recorded_soft;
    if (strchr(t->path, '/') != NULL && access(t->path, R_OK) != 0) {
        snprintf(message, size, "the driver %s cannot be read: %s; --driver names another", t->path, strerror(errno));
        return false;
    }
    return true;
}

/* The recorded knobs hold, and no others: what the user's shell has for programs it records says nothing about this
 * trace. */
static void set_environment(const zr_target *t, const zr_plan *plan, const zr_options *options)
{
    char name[128];
    for (size_t i = 0; environ[i] != NULL;) {
        const char *const equals = strchr(environ[i], '=');
        const size_t n = equals ? (size_t)(equals - environ[i]) : 0;
        if (n > 0 && n < sizeof(name) && strncmp(environ[i], "ZE_SOFT_", 8) == 0 &&
            strncmp(environ[i], "ZE_SOFT_LOG=", 12) != 0) {
            memcpy(name, environ[i], n);
            name[n] = 0;
            unsetenv(name);
            i = 0;
        } else {
            i++;
        }
    }
    for (uint32_t i = 0; i < plan->n_environment; i++) {
        const zt_pair *const pair = &plan->environment[i];
        const bool knob = strncmp(pair->name, "ZE_SOFT_", 8) == 0 && strcmp(pair->name, "ZE_SOFT_LOG") != 0;
        if (t->soft ? knob : strcmp(pair->name, "ZE_FLAT_DEVICE_HIERARCHY") == 0)
            setenv(pair->name, pair->value, t->soft);
    }
    if (t->soft && options->schedule != NULL)
        setenv("ZE_SOFT_SCHEDULE", options->schedule, 1);
    if (t->soft) /* a trace has what host memory held at the submit, not at the append */
        setenv("ZE_SOFT_HOSTPTR", "start", 1);
    for (uint32_t i = 0; i < options->n_environment; i++)
        setenv(options->environment[i].name, options->environment[i].value, 1);
}

static void fill(zr_target *t, unsigned table, void **slots)
{
    for (unsigned i = 0; i < zt_n_funcs; i++)
        if (zt_funcs[i].table == table)
            t->functions[i] = slots[zt_funcs[i].slot];
}

bool zr_target_load(zr_target *t, const zr_plan *plan, const zr_options *options, char *message, size_t size)
{
    set_environment(t, plan, options);
    t->library = dlopen(t->path, RTLD_NOW | RTLD_LOCAL);
    if (t->library == NULL) {
        snprintf(message, size, "the driver %s cannot be loaded: %s", t->path, dlerror());
        return false;
    }
    t->functions = calloc(zt_n_funcs, sizeof(*t->functions));
    unsigned tables = 0;
    for (unsigned i = 0; t->functions != NULL && i < zt_n_tables; i++) {
        getter_fn getter;
        *(void **)&getter = dlsym(t->library, zt_tables[i].getter);
        void **const slots = getter ? calloc(zt_tables[i].n_slots + (size_t)SPARE, sizeof(*slots)) : NULL;
        if (slots == NULL)
            continue;
        for (uint32_t version = zt_api_version; (int)(version & 0xffff) >= 0; version--) {
            if (getter(version, slots) == 0) {
                fill(t, i, slots);
                tables++;
                break;
            }
            if ((version & 0xffff) == 0)
                break;
        }
        free(slots);
    }
    if (tables == 0) {
        snprintf(message, size, "%s is not a Level Zero driver: it exports none of its function tables", t->path);
        return false;
    }
    return true;
}

void *zr_target_function(zr_target *t, uint32_t id)
{
    void *fn = __atomic_load_n(&t->functions[id], __ATOMIC_RELAXED);
    if (fn == (void *)-1)
        return NULL;
    if (fn == NULL) {
        const int lookup = zt_func_find("zeDriverGetExtensionFunctionAddress");
        void *const get = lookup >= 0 ? t->functions[lookup] : NULL;
        void *found = NULL;
        const uint64_t words[] = {t->driver_handle, (uint64_t)(uintptr_t)zt_funcs[id].name,
                                  (uint64_t)(uintptr_t)&found};
        if (get == NULL || t->driver_handle == 0)
            return NULL;
        fn = zr_thunks[lookup](get, words) == 0 && found != NULL ? found : (void *)-1;
        __atomic_store_n(&t->functions[id], fn, __ATOMIC_RELAXED);
    }
    return fn == (void *)-1 ? NULL : fn;
}

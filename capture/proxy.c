/* SPDX-License-Identifier: MIT */
/*
 * A driver that is none: it loads the real one and has the layer wrap the function tables which that one fills. For programs whose
 * loader cannot be given a layer. The recorder makes a copy of this file for each driver, libzetrace-proxyN.so, since the loader
 * tells libraries apart by file; N is the driver's place in ZETRACE_REAL_DRIVER.
 */
#include "proxy.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*getter_fn)(uint32_t version, void *table);

static void *driver, *layer;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread void *loader_address;

/* For the layer: who asked. Exported by name, looked up with dlsym. */
__attribute__((visibility("default"))) void *zetrace_proxy_caller(void);
void *zetrace_proxy_caller(void)
{
    return loader_address;
}

/* The number in this library's own file name. */
static unsigned place(void)
{
    Dl_info info;
    unsigned n = 0;
    if (dladdr((void *)(uintptr_t)place, &info) != 0 && info.dli_fname != NULL) {
        const char *const name = strstr(info.dli_fname, "libzetrace-proxy");
        if (name != NULL)
            sscanf(name, "libzetrace-proxy%u", &n);
    }
    return n;
}

static void load(void)
{
    const char *list = getenv("ZETRACE_REAL_DRIVER"), *const path = getenv("ZETRACE_LAYER");
    char name[PATH_MAX];
    for (unsigned n = place(); list != NULL && n > 0; n--)
        list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL;
    if (list != NULL) {
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(list, ","), list);
        driver = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (path != NULL && *path)
        layer = dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

int zc_proxy_fill(const char *getter, uint32_t version, void *table, size_t size, void *caller)
{
    (void)size;
    const int saved = errno;
    pthread_once(&once, load);
    const getter_fn real = driver ? (getter_fn)dlsym(driver, getter) : NULL;
    if (real == NULL) {
        errno = saved;
        return 0x78000001; /* ZE_RESULT_ERROR_UNINITIALIZED: there is no driver behind this one, or it lacks the table */
    }
    const int result = real(version, table);
    const getter_fn wrap = layer ? (getter_fn)dlsym(layer, getter) : NULL;
    if (result == 0 && wrap != NULL) {
        loader_address = caller;
        wrap(version, table);
        loader_address = NULL;
    }
    errno = saved;
    return result;
}

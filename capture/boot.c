/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into the program: loads the layer before anything else can look for the validation layer, whose SONAME it
 * carries, and keeps it loaded. Exports nothing: the loader binds its own calls to whatever a preloaded library exports.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

static void *layer;

__attribute__((constructor)) static void boot(void)
{
    const int saved = errno;
    const char *const path = getenv("ZETRACE_LAYER");
    if (path != NULL && path[0] != 0)
        layer = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    errno = saved;
}

/* SPDX-License-Identifier: MIT */
/*
 * The mixed sequence from a program that opens the loader itself: by absolute path with RTLD_DEEPBIND (as Julia does)
 * and dlsym. client_dlsym PATH_OF_LOADER
 */
#include <dlfcn.h>
static void *library;
#define ZE(name) ((__typeof__(&name))dlsym(library, #name))
#include "sequence.h"

int main(int argc, char **argv)
{
    if (argc < 2 || (library = dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND)) == NULL) {
        printf("usage: client_dlsym PATH_OF_LOADER: %s\n", argc < 2 ? "no path" : dlerror());
        return 2;
    }
    const int status = sequence_run();
    sequence_report(argc > 2);
    return status;
}

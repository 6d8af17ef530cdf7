/* SPDX-License-Identifier: MIT */
/*
 * every_export LOADER NAME...: calls each of the functions of a loader with all arguments NULL or 0, behind zeInit and zesInit, and prints
 * their names with the result. A driver that checks what the specification says of NULLs refuses them all; a crash is a finding.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

/* As many words as any function takes, so that what is read beyond them is 0 as well. */
typedef uint32_t (*any_fn)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                           uint64_t, uint64_t, uint64_t, uint64_t);

int main(int argc, char **argv)
{
    void *const loader = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (loader == NULL) {
        fprintf(stderr, "every_export: %s\n", argc > 2 ? dlerror() : "wants LOADER NAME...");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        any_fn fn;
        *(void **)&fn = dlsym(loader, argv[i]);
        if (fn == NULL)
            return 2;
        printf("%s ", argv[i]);
        fflush(stdout);
        printf("%x\n", fn(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    }
    return 0;
}

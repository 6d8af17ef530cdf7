/* SPDX-License-Identifier: MIT */
/* threads [THREADS [CALLS]]: each thread makes CALLS cheap calls of its own. Prints calls=N, all it made. */
#include "common.h"

#include <pthread.h>

static app shared;
static unsigned long calls = 100000;

static void *work(void *memory)
{
    for (unsigned long i = 0; i < calls; i++) {
        void *base;
        size_t size;
        if (zeMemGetAddressRange(shared.context, (char *)memory + i % 4096, &base, &size) != ZE_RESULT_SUCCESS ||
            base != memory)
            return "wrong";
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 0) : 8;
    pthread_t threads[256];
    void *memory[256];
    if (argc > 2)
        calls = strtoul(argv[2], NULL, 0);
    if (n > 256)
        return CANNOT;
    shared = app_open(); /* 5 calls */
    for (unsigned long i = 0; i < n; i++)
        memory[i] = host_new(&shared, 4096);
    for (unsigned long i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, work, memory[i]) != 0)
            return CANNOT;
    bool bad = false;
    for (unsigned long i = 0; i < n; i++) {
        void *result;
        pthread_join(threads[i], &result);
        bad |= result != NULL;
    }
    printf("calls=%lu\n", 5 + n + n * calls);
    return bad;
}

/* SPDX-License-Identifier: MIT */
/*
 * spinner FILE [THREADS]: makes calls in an endless loop. Each thread keeps in FILE (mapped, 64 bytes a thread) how
 * many of its calls have begun and how many have returned, so that a test that kills the program knows what a trace
 * must hold. A call's number is in its `ptr` argument: base + thread * 2^24 + number, base being the first 8 bytes
 * behind the threads' places.
 */
#include "common.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct place {
    volatile uint64_t begun, returned;
    uint64_t pad[6];
} place;

static app shared;
static place *places;
static char *base;

static void *work(void *mine)
{
    place *const p = &places[(unsigned long)mine];
    for (uint64_t i = 1;; i++) {
        void *b;
        size_t size;
        p->begun = i;
        zeMemGetAddressRange(shared.context, base + ((unsigned long)mine << 24) + i % (1u << 24), &b, &size);
        p->returned = i;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
    const int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
    if (fd < 0 || n > 16 || ftruncate(fd, 4096) != 0)
        return CANNOT;
    places = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (places == MAP_FAILED)
        return CANNOT;
    shared = app_open();
    base = host_new(&shared, (n + 1) << 24);
    *(volatile uint64_t *)(void *)&places[32] = (uint64_t)base;
    for (unsigned long i = 1; i < n; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, work, (void *)i) != 0)
            return CANNOT;
    }
    work((void *)0ul);
    return GOOD;
}

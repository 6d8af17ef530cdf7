/* SPDX-License-Identifier: MIT */
/*
 * floor ARGUMENTS THREADS CALLS BURST: the least that recording a call can cost: one slot of a shared ring filled at
 * ENTER and completed at LEAVE around an empty call, a time stamp each, another thread draining every 200 us. Prints ns
 * per call.
 */
#include "ring.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { SIZE = ZC_DEFAULT_RING };

typedef struct ring {
    zc_ring *head;
    char *data;
    double ns;
} ring;

static unsigned arguments;
static unsigned long calls, burst;
static ring rings[16];
static unsigned threads;
static _Atomic int stop;
static pthread_barrier_t start;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static __attribute__((noinline)) uint64_t empty_call(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    __asm__ volatile("" ::"r"(a), "r"(b), "r"(c), "r"(d));
    return 0;
}

static void *drain(void *unused)
{
    while (!stop) {
        for (unsigned i = 0; i < threads; i++) {
            const uint64_t head = atomic_load_explicit(&rings[i].head->head, memory_order_acquire) & ~1ull;
            uint64_t tail = atomic_load_explicit(&rings[i].head->tail, memory_order_relaxed);
            while (tail < head) {
                const zc_slot *const slot = (const zc_slot *)(const void *)(rings[i].data + (tail & (SIZE - 1)));
                if (atomic_load_explicit(&slot->state, memory_order_acquire) != ZC_S_DONE)
                    break;
                tail += slot->rec.size;
            }
            atomic_store_explicit(&rings[i].head->tail, tail, memory_order_release);
        }
        const struct timespec t = {0, 200000};
        nanosleep(&t, NULL);
    }
    return unused;
}

static void one(ring *r, uint64_t i)
{
    const uint32_t size = (uint32_t)sizeof(zc_slot) + arguments * 8;
    const uint64_t head = atomic_load_explicit(&r->head->head, memory_order_relaxed);
    while (head + size > atomic_load_explicit(&r->head->tail, memory_order_acquire) + SIZE)
        ;
    zc_slot *const slot = (zc_slot *)(void *)(r->data + (head & (SIZE - 1)));
    _mm_lfence();
    slot->t_enter = __rdtsc();
    slot->rec = (zc_record){size, ZC_R_SLOT, 1};
    atomic_store_explicit(&slot->state, ZC_S_OPEN, memory_order_relaxed);
    uint64_t *const words = (uint64_t *)(slot + 1);
    for (unsigned w = 0; w < arguments; w++)
        words[w] = i + w;
    atomic_store_explicit(&r->head->head, head + size, memory_order_release);
    slot->result = empty_call(i, i, i, i);
    slot->t_leave = __rdtsc();
    atomic_store_explicit(&slot->state, ZC_S_DONE, memory_order_release);
}

static void *work(void *mine)
{
    ring *const r = mine;
    const struct timespec rest = {0, 5000000};
    for (unsigned long i = 0; i < 60000; i++) {
        if (i % 15000 == 0)
            nanosleep(&rest, NULL);
        one(r, i);
    }
    nanosleep(&rest, NULL);
    pthread_barrier_wait(&start);
    for (unsigned long done = 0; done < calls;) {
        const unsigned long n = burst != 0 && burst < calls - done ? burst : calls - done;
        const double begin = now();
        for (unsigned long i = 0; i < n; i++)
            one(r, i);
        r->ns += now() - begin;
        done += n;
        if (burst != 0)
            nanosleep(&rest, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t[16], reader;
    double sum = 0;
    if (argc != 5)
        return 2;
    arguments = (unsigned)atoi(argv[1]);
    threads = (unsigned)atoi(argv[2]);
    calls = strtoul(argv[3], NULL, 0);
    burst = strtoul(argv[4], NULL, 0);
    if (threads < 1 || threads > 16 || arguments > 16 || pthread_barrier_init(&start, NULL, threads) != 0)
        return 2;
    for (unsigned i = 0; i < threads; i++) {
        const int fd = memfd_create("floor", MFD_CLOEXEC);
        char *const base = mmap(NULL, 4096 + 2 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fd < 0 || ftruncate(fd, 4096 + SIZE) != 0 || base == MAP_FAILED ||
            mmap(base, 4096 + SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) ==
                MAP_FAILED ||
            mmap(base + 4096 + SIZE, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 4096) ==
                MAP_FAILED)
            return 2;
        rings[i] = (ring){(zc_ring *)(void *)base, base + 4096, 0};
    }
    pthread_create(&reader, NULL, drain, NULL);
    for (unsigned i = 1; i < threads; i++)
        pthread_create(&t[i], NULL, work, &rings[i]);
    work(&rings[0]);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(t[i], NULL);
    stop = 1;
    pthread_join(reader, NULL);
    for (unsigned i = 0; i < threads; i++)
        sum += rings[i].ns / (double)calls;
    printf("%.2f\n", sum / threads);
    return 0;
}

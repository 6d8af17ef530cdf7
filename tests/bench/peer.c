/* SPDX-License-Identifier: MIT */
/* peer one|seven THREADS CALLS BURST: the same loop around an empty call, with LTTng-UST tracepoints. Prints ns per
 * call. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "peer_tp.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int seven;
static unsigned long calls, burst;
static pthread_barrier_t start;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static __attribute__((noinline)) uint32_t empty_call(uint64_t a)
{
    __asm__ volatile("" ::"r"(a));
    return 0;
}

static void stretch(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++) {
        if (seven)
            lttng_ust_tracepoint(zebench, seven_entry, i, i + 1, i + 2, i + 3, i + 4, (uint32_t)i, i + 6);
        else
            lttng_ust_tracepoint(zebench, one_entry, i);
        const uint32_t r = empty_call(i);
        lttng_ust_tracepoint(zebench, leave, r);
    }
}

static void *work(void *mine)
{
    double *const ns = mine;
    const struct timespec rest = {0, 5000000};
    for (unsigned i = 0; i < 4; i++) {
        stretch(15000);
        nanosleep(&rest, NULL);
    }
    pthread_barrier_wait(&start);
    for (unsigned long done = 0; done < calls;) {
        const unsigned long n = burst != 0 && burst < calls - done ? burst : calls - done;
        const double begin = now();
        stretch(n);
        *ns += now() - begin;
        done += n;
        if (burst != 0)
            nanosleep(&rest, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t[16];
    double ns[16] = {0}, sum = 0;
    if (argc != 5)
        return 2;
    seven = strcmp(argv[1], "seven") == 0;
    const unsigned threads = (unsigned)atoi(argv[2]);
    calls = strtoul(argv[3], NULL, 0);
    burst = strtoul(argv[4], NULL, 0);
    if (threads < 1 || threads > 16 || pthread_barrier_init(&start, NULL, threads) != 0)
        return 2;
    for (unsigned i = 1; i < threads; i++)
        pthread_create(&t[i], NULL, work, &ns[i]);
    work(&ns[0]);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(t[i], NULL);
    for (unsigned i = 0; i < threads; i++)
        sum += ns[i] / (double)calls;
    printf("%.2f\n", sum / threads);
    return 0;
}

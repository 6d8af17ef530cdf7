/* SPDX-License-Identifier: MIT */
/*
 * token [TURNS]: two threads hand a token to and fro through an atomic variable; at each turn its holder makes a call
 * whose `ptr` argument is base + turn. In a trace no two of these may stand the wrong way round. Prints base=ADDRESS
 * and turns=N.
 */
#include "common.h"

#include <pthread.h>
#include <stdatomic.h>

static app shared;
static char *base;
static unsigned long turns = 1000000;
static _Atomic unsigned long token;

static void *work(void *mine)
{
    const unsigned long me = (unsigned long)mine;
    for (;;) {
        const unsigned long turn = atomic_load_explicit(&token, memory_order_acquire);
        if (turn >= turns)
            return NULL;
        if (turn % 2 != me)
            continue;
        void *b;
        size_t size;
        zeMemGetAddressRange(shared.context, base + turn, &b, &size);
        atomic_store_explicit(&token, turn + 1, memory_order_release);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        turns = strtoul(argv[1], NULL, 0);
    shared = app_open();
    base = host_new(&shared, turns + 1);
    pthread_t other;
    if (pthread_create(&other, NULL, work, (void *)1ul) != 0)
        return CANNOT;
    work((void *)0ul);
    pthread_join(other, NULL);
    printf("base=%p\nturns=%lu\n", (void *)base, turns);
    return GOOD;
}

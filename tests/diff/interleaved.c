/* SPDX-License-Identifier: MIT */
/*
 * interleaved harmless|submits|numbers FIRST SECOND: two traces of two threads that do the same, each by itself, in another order among each
 * other; numbers: a third thread makes their objects, and which of the two is the second one and which the third is turned.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "programs.h"

static bool submits, numbers, turned;

typedef struct worker {
    hand *h;
    basics *b;
    uint64_t list, event, from, to;
    unsigned thread;
} worker;

static void submit(const worker *w)
{
    hand_thread(w->thread);
    CALL(w->h, "zeCommandListAppendMemoryCopy", w->list, w->to, w->from, 64, 0, 0, 0);
    CALL(w->h, "zeCommandListClose", w->list);
    execute(w->h, w->b, w->list);
}

static void query(const worker *w)
{
    hand_thread(w->thread);
    CALL(w->h, "zeEventQueryStatus", w->event);
}

static void program(hand *h)
{
    basics b;
    worker w[2];
    hand_thread(1);
    start(h, &b);
    for (unsigned i = 0; i < 2; i++)
        w[i] = (worker){h, &b, new_list(h, &b), new_event(h, &b, i), new_memory(h, &b, "zeMemAllocDevice", 64u << i),
                        new_memory(h, &b, "zeMemAllocDevice", 64u << i), numbers ? 2 + (i ^ (turned ? 1u : 0u)) : i + 1};
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < 2; i++)
            query(&w[i ^ (turned && !numbers ? 1u : 0u)]);
    if (submits && turned && !numbers)
        submit(&w[1]);
    if (submits)
        submit(&w[0]);
    hand_thread(1);
    if (submits)
        sync_queue(h, &b); /* waits for what the other thread has submitted as well, or not */
    query(&w[0]);
    if (submits && (!turned || numbers))
        submit(&w[1]);
    hand_thread(numbers ? 1 : 2);
    sync_queue(h, &b);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    numbers = strcmp(argv[1], "numbers") == 0;
    submits = numbers || strcmp(argv[1], "submits") == 0;
    for (int i = 0; i < 2; i++) {
        turned = i == 1;
        if (!hand_record(argv[2 + i], "eager", program))
            return 1;
    }
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* exitpath: calls are made from an exit handler and a destructor. Prints calls=N, those included. */
#include "common.h"

static app a;
static void *in_handler, *in_destructor;

static void at_exit(void)
{
    zeMemFree(a.context, in_handler);
}

__attribute__((destructor)) static void at_unload(void)
{
    if (in_destructor)
        zeMemFree(a.context, in_destructor);
}

int main(void)
{
    a = app_open();
    in_handler = host_new(&a, 4096);
    in_destructor = host_new(&a, 4096);
    atexit(at_exit);
    printf("calls=9\n");
    return GOOD;
}

/* SPDX-License-Identifier: MIT */
/*
 * nested: calls made while another call is open. First a thread sits in zeEventHostSynchronize while the main thread
 * makes INSIDE calls and then signals; then a signal handler makes 3 calls on the very thread that sits in one. In a
 * trace those calls lie between ENTER and LEAVE of the open one. Prints inside=N, handler=N and calls=N, all it made.
 */
#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { INSIDE = 1000, HANDLER = 3 };

static app a;
static ze_result_t waited;
static volatile sig_atomic_t handled;

static void *wait_for(void *event)
{
    waited = zeEventHostSynchronize(event, 30 * SECOND);
    return NULL;
}

static void *open_later(void *event)
{
    nap(300);
    zeEventHostSignal(event);
    return NULL;
}

/* a call that takes no lock in the driver */
static void at_alarm(int number)
{
    (void)number;
    ze_api_version_t version;
    for (int i = 0; i < HANDLER; i++)
        handled += zeDriverGetApiVersion(a.driver, &version) == ZE_RESULT_SUCCESS;
}

int main(void)
{
    a = app_open(); /* 5 calls */
    char *const memory = host_new(&a, 4096);
    ze_event_handle_t first = event_new(&a), second = event_new(&a);
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for, first) != 0)
        return CANNOT;
    nap(100); /* it is inside the call now */
    for (int i = 0; i < INSIDE; i++) {
        void *base;
        size_t size;
        MUST(zeMemGetAddressRange(a.context, memory + i, &base, &size));
    }
    MUST(zeEventHostSignal(first));
    pthread_join(thread, NULL);
    MUST(waited);

    const struct sigaction action = {.sa_handler = at_alarm, .sa_flags = SA_RESTART};
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm_only, NULL); /* the helper inherits it: the handler runs on the main thread */
    if (sigaction(SIGALRM, &action, NULL) != 0 || pthread_create(&thread, NULL, open_later, second) != 0)
        return CANNOT;
    pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
    ualarm(100000, 0);
    MUST(zeEventHostSynchronize(second, 30 * SECOND));
    pthread_join(thread, NULL);
    printf("inside=%d\nhandler=%d\ncalls=%d\n", INSIDE, (int)handled, 5 + 3 + 1 + INSIDE + 1 + 2 + (int)handled);
    return handled == HANDLER ? GOOD : BAD;
}

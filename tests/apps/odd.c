/* SPDX-License-Identifier: MIT */
/*
 * Programs with habits that a recorder must survive; MODE names one. Prints calls=N, its own count. Exits 0 if all calls
 * answered as they do without a recorder.
 */
#include "common.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static app a;
static volatile sig_atomic_t calls = 5; /* app_open's */

static void ask(void)
{
    ze_device_properties_t p = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
    if (zeDeviceGetProperties(a.device, &p) != ZE_RESULT_SUCCESS || p.stype != ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES)
        _exit(BAD);
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

static void *ask_ten_times(void *nothing)
{
    for (int i = 0; i < 10; i++)
        ask();
    return nothing;
}

static void in_threads(size_t stack)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack);
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, ask_ten_times, NULL) != 0)
            exit(CANNOT);
        pthread_join(thread, NULL);
    }
}

static void on_alarm(int number)
{
    (void)number;
    ask();
}

/* A handler's calls in the midst of the same calls. */
static void signals(void)
{
    const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    const struct itimerval often = {{0, 60}, {0, 60}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 60000; i++)
        ask();
    setitimer(ITIMER_REAL, &never, NULL);
}

/* All descriptors closed, and so many allowed. */
static void few_descriptors(rlim_t most)
{
    const struct rlimit limit = {most, most};
    for (int fd = 3; fd < 2048; fd++)
        close(fd);
    setrlimit(RLIMIT_NOFILE, &limit);
    in_threads(1 << 18);
}

/* The driver refuses these sizes without a look at the pattern. */
static void huge(void)
{
    const ze_command_list_handle_t list = list_new(&a, 0);
    char *const memory = device_new(&a, 4096), *const nowhere = (char *)16;
    if (zeCommandListAppendMemoryFill(list, memory, nowhere, 1ull << 60, 1ull << 62, NULL, 0, NULL) == ZE_RESULT_SUCCESS ||
        zeCommandListAppendMemoryFill(list, memory, nowhere, SIZE_MAX, SIZE_MAX, NULL, 0, NULL) == ZE_RESULT_SUCCESS)
        exit(BAD);
    calls += 4;
}

/* A child that no fork handler was told of goes on with what its parent had. */
static void two_writers(void)
{
    const pid_t child = _Fork();
    for (int i = 0; i < 20000; i++)
        ask();
    if (child == 0)
        _exit(GOOD);
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        exit(BAD);
}

int main(int argc, char **argv)
{
    a = app_open();
    if (wanted(argc, argv, "signals"))
        signals();
    if (wanted(argc, argv, "starved"))
        few_descriptors(4);
    if (wanted(argc, argv, "no-descriptors"))
        few_descriptors(3);
    if (wanted(argc, argv, "small-stack"))
        in_threads(PTHREAD_STACK_MIN);
    if (wanted(argc, argv, "huge"))
        huge();
    if (wanted(argc, argv, "two-writers"))
        two_writers();
    if (wanted(argc, argv, "file-size")) {
        const struct rlimit limit = {4096, 4096};
        setrlimit(RLIMIT_FSIZE, &limit);
        in_threads(1 << 18);
    }
    ask();
    printf("calls=%d\n", (int)calls);
    return GOOD;
}

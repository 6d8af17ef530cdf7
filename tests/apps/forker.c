/* SPDX-License-Identifier: MIT */
/*
 * forker [CHILDREN]: the parent makes calls and runs commands, then forks children, of which each does so anew. Each
 * process prints "PID calls=N".
 */
#include "common.h"

#include <sys/wait.h>
#include <unistd.h>

static void some_calls(int n)
{
    app a = app_open(); /* 5 calls */
    for (int i = 0; i < n; i++)
        MUST(zeMemFree(a.context, host_new(&a, 4096)));
    char *const from = host_new(&a, 4096), *const to = host_new(&a, 4096); /* 10 calls from here on */
    memset(from, n, 4096);
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    ze_command_list_handle_t list = list_new(&a, 0);
    MUST(zeCommandListAppendMemoryCopy(list, to, from, 4096, NULL, 0, NULL));
    MUST(zeCommandListClose(list));
    MUST(run(queue, list, NULL));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    if (memcmp(to, from, 4096) != 0)
        exit(BAD);
    MUST(zeMemFree(a.context, from));
    MUST(zeMemFree(a.context, to));
    printf("%d calls=%d\n", getpid(), 5 + 2 * n + 10);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const int children = argc > 1 ? atoi(argv[1]) : 3;
    some_calls(10);
    for (int i = 0; i < children; i++) {
        const pid_t pid = fork();
        if (pid == 0) {
            some_calls(20 + i);
            _exit(0);
        }
        int status;
        if (waitpid(pid, &status, 0) != pid || status != 0)
            return BAD;
    }
    return GOOD;
}

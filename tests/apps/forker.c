/* SPDX-License-Identifier: MIT */
/* forker [CHILDREN]: parent and children make calls; each prints "PID calls=N". */
#include "common.h"

#include <sys/wait.h>
#include <unistd.h>

static void some_calls(int n)
{
    app a = app_open(); /* 5 calls */
    for (int i = 0; i < n; i++)
        MUST(zeMemFree(a.context, host_new(&a, 4096)));
    printf("%d calls=%d\n", getpid(), 5 + 2 * n);
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

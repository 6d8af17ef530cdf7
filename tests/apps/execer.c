/* SPDX-License-Identifier: MIT */
/* execer: makes calls, then runs itself again with exec. Prints "step N calls=M" for each image. */
#include "common.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    app a = app_open();
    MUST(zeMemFree(a.context, host_new(&a, 4096)));
    printf("step %d calls=7\n", argc > 1 ? 2 : 1);
    fflush(stdout);
    if (argc > 1)
        return GOOD;
    char *const again[] = {argv[0], "second", NULL};
    execv("/proc/self/exe", again);
    return CANNOT;
}

/* SPDX-License-Identifier: MIT */
/* S3: a child of fork goes on with what its parent had. `fixed`: it begins anew. */
#include "common.h"

#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    app a = app_open();
    const pid_t pid = fork();
    if (pid == 0) {
        if (fixed_wanted(argc, argv))
            a = app_open();
        const ze_host_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
        void *p;
        _exit(SHOWS(zeMemAllocHost(a.context, &desc, 4096, 64, &p)) ? BAD : GOOD);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return CANNOT;
    return verdict(WEXITSTATUS(status) != GOOD, "S3");
}

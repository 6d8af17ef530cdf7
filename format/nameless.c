/* SPDX-License-Identifier: MIT */
#include "nameless.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

int zt_nameless_open(const char *path)
{
    const char *const slash = strrchr(path, '/');
    char *const folder = slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (folder == NULL)
        return -1;
    /* without /proc it could get no name */
    const int fd = access("/proc/self/fd", X_OK) == 0 ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600) : -1;
    free(folder);
    return fd;
}

static int link_as(int fd, const char *path)
{
    char self[64];
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

/* A link replaces nothing, a rename wants a name: for a moment there is another one. */
static int replace(int fd, const char *path)
{
    const size_t room = strlen(path) + 20;
    char *const other = malloc(room);
    int status = -1;
    for (int tries = 0; other != NULL && tries < 100; tries++) {
        unsigned dice = (unsigned)tries;
        if (getrandom(&dice, sizeof(dice), 0) < 0)
            dice += (unsigned)getpid();
        snprintf(other, room, "%s.%08x", path, dice);
        status = link_as(fd, other);
        if (status == 0 || errno != EEXIST)
            break;
    }
    if (status == 0 && (status = rename(other, path)) != 0) {
        const int why = errno;
        unlink(other);
        errno = why;
    }
    free(other);
    return status;
}

int zt_nameless_place(int fd, const char *path, bool overwrite)
{
    if (link_as(fd, path) == 0)
        return 0;
    return overwrite && errno == EEXIST ? replace(fd, path) : -1;
}

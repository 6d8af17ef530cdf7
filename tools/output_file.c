/* SPDX-License-Identifier: MIT */
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"
#include "nameless.h"

static bool is_there(const char *path)
{
    zt_complain("%s is there already; -f overwrites it", path);
    return false;
}

bool zt_output_open(zt_output *output, const char *path, bool force)
{
    struct stat st;
    *output = (zt_output){.file = stdout, .force = force};
    if (path == NULL || strcmp(path, "-") == 0)
        return true;
    output->path = path;
    if (!force && lstat(path, &st) == 0)
        return is_there(path);
    if (!zt_may_replace(path)) {
        zt_complain("%s is no regular file, which could be replaced; give another name, or - for standard output", path);
        return false;
    }
    int fd = zt_nameless_open(path);
    if (fd >= 0 && (output->file = fdopen(fd, "wb")) != NULL)
        return true;
    if (fd >= 0)
        close(fd);
    output->partial = malloc(strlen(path) + sizeof(".partial"));
    if (output->partial == NULL) {
        zt_complain("%s: not enough memory", path);
        return false;
    }
    sprintf(output->partial, "%s.partial", path);
    unlink(output->partial);
    fd = open(output->partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    output->file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (output->file != NULL)
        return true;
    zt_complain("%s cannot be created: %s; name a place that can be written to", output->partial, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(output->partial);
    return false;
}

bool zt_output_whole(zt_output *output)
{
    if (output->broken)
        return false;
    const bool cut = ferror(output->file); /* why is not known any more */
    /* some file systems tell of a full disk only when asked */
    output->broken = cut || fflush(output->file) != 0 ||
                     (output->path != NULL && fsync(fileno(output->file)) != 0 && errno != EINVAL && errno != EROFS);
    if (output->broken)
        zt_complain("%s: %s", output->path ? output->path : "standard output",
                    cut ? "not all of it could be written; is there room for it?" : strerror(errno));
    return !output->broken;
}

/* A link does not replace what has come into being meanwhile; some file systems know none. */
static bool put_in_place(const zt_output *output)
{
    if (output->partial == NULL) {
        if (zt_nameless_place(fileno(output->file), output->path, output->force) == 0)
            return true;
        if (errno == EEXIST)
            return is_there(output->path);
        zt_complain("%s: %s", output->path, strerror(errno));
        return false;
    }
    if (!output->force && link(output->partial, output->path) == 0) {
        unlink(output->partial);
        return true;
    }
    if (!output->force && errno == EEXIST)
        return is_there(output->path);
    if (rename(output->partial, output->path) == 0)
        return true;
    zt_complain("%s: %s", output->path, strerror(errno));
    return false;
}

bool zt_output_close(zt_output *output, bool good)
{
    if (output->path == NULL)
        return true; /* zt_finish_output sees to it */
    const bool whole = zt_output_whole(output);
    const bool placed = good && whole && put_in_place(output);
    fclose(output->file);
    if (!placed && output->partial != NULL)
        unlink(output->partial);
    free(output->partial);
    return placed || (whole && !good);
}

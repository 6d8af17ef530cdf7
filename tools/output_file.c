/* SPDX-License-Identifier: MIT */
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"

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
    output->partial = malloc(strlen(path) + sizeof(".partial"));
    if (output->partial == NULL) {
        zt_complain("%s: not enough memory", path);
        return false;
    }
    sprintf(output->partial, "%s.partial", path);
    unlink(output->partial);
    const int fd = open(output->partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    output->file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (output->file != NULL)
        return true;
    zt_complain("%s: %s", output->partial, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(output->partial);
    return false;
}

/* A link does not replace what has come into being meanwhile; some file systems know none. */
static bool put_in_place(const zt_output *output)
{
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
    const bool cut = ferror(output->file); /* why is not known any more */
    const bool whole = fclose(output->file) == 0 && !cut;
    if (!whole)
        zt_complain("%s: %s", output->path, cut ? "not all of it could be written; is there room for it?" : strerror(errno));
    const bool placed = good && whole && put_in_place(output);
    if (!placed)
        unlink(output->partial);
    free(output->partial);
    return placed || (whole && !good);
}

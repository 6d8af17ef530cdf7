/* SPDX-License-Identifier: MIT */
/* What a command has lying about while it works, and is not to be left behind if a signal ends it. */
#ifndef ZT_LEFTOVERS_H
#define ZT_LEFTOVERS_H

#include <stdbool.h>

/*
 * Notes a file or an empty folder; the newest go first. Those that find no room are left behind. The text is copied. Of a process that SIGKILL
 * ends, they go only if a command of zt_run_shell runs.
 */
void zt_leftover_add(const char *path);
void zt_leftover_forget(const char *path);

/*
 * Runs `command` by sh, and ends it if this process is ended. What it has started and not waited for ends with it, but for one that `asks`, as
 * for a password, on a terminal: that one is not taken out of the terminal's foreground. Others have nothing to read.
 * `prepare` (or NULL) is called in the child. One at a time. @return its exit status, 128 + N for signal N, or -1
 */
int zt_run_shell(const char *command, bool asks, bool (*prepare)(void *ctx), void *ctx);

#endif

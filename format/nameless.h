/* SPDX-License-Identifier: MIT */
/* Files without a name until they are finished: whatever ends the process meanwhile, a signal, kill -9 or a crash, leaves nothing behind. */
#ifndef ZT_NAMELESS_H
#define ZT_NAMELESS_H

#include <stdbool.h>

/* A file with mode 0600 on PATH's file system. @return -1 where there are none, as on NFS: a name is needed then. */
int zt_nameless_open(const char *path);
/* Gives it its name; `overwrite`: in the place of what has it. @return 0, or -1 and errno, EEXIST if the name is taken. */
int zt_nameless_place(int fd, const char *path, bool overwrite);

#endif

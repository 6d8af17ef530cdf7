/* SPDX-License-Identifier: MIT */
/* The C library's functions by which a driver finds and talks to its device. Everything else goes through unchanged. */
#undef _FORTIFY_SOURCE /* its inline functions would be these ones */
#include "fakegpu.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))
#define PATH_ROOM 1024

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one stat is the other");

/* Looked up at the first call: libraries open files before any constructor of this one has run. */
#define REAL(name)                                                                                                     \
    static __typeof__(&name) real;                                                                                     \
    if (!real)                                                                                                         \
    real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static mode_t mode_of(int flags, va_list arguments)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

static int open_path(const char *path, int flags, mode_t mode)
{
    REAL(open);
    char buffer[PATH_ROOM];
    if (!fake_path_is_node(path))
        return real(fake_path(path, buffer, sizeof(buffer)), flags, mode);
    const int fd = fake_memory_open();
    fake_say(LOG_IOCTL, "open %s: %d", path, fd);
    return fd;
}

#define OPEN(name)                                                                                                     \
    PUBLIC int name(const char *path, int flags, ...)                                                                  \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        const mode_t mode = mode_of(flags, arguments);                                                                 \
        va_end(arguments);                                                                                             \
        return open_path(path, flags, mode);                                                                           \
    }
OPEN(open)
OPEN(open64)

#define OPEN_2(name)                                                                                                   \
    PUBLIC int name(const char *path, int flags);                                                                      \
    PUBLIC int name(const char *path, int flags)                                                                       \
    {                                                                                                                  \
        return open_path(path, flags, 0);                                                                              \
    }
OPEN_2(__open_2)
OPEN_2(__open64_2)

#define OPENAT(name)                                                                                                   \
    PUBLIC int name(int folder, const char *path, int flags, ...)                                                      \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        const mode_t mode = mode_of(flags, arguments);                                                                 \
        va_end(arguments);                                                                                             \
        if (*path == '/')                                                                                              \
            return open_path(path, flags, mode);                                                                       \
        REAL(openat);                                                                                                  \
        return real(folder, path, flags, mode);                                                                        \
    }
OPENAT(openat)
OPENAT(openat64)

#define FOPEN(name)                                                                                                    \
    PUBLIC FILE *name(const char *path, const char *mode)                                                              \
    {                                                                                                                  \
        REAL(name);                                                                                                    \
        char buffer[PATH_ROOM];                                                                                        \
        return real(fake_path(path, buffer, sizeof(buffer)), mode);                                                    \
    }
FOPEN(fopen)
FOPEN(fopen64)

PUBLIC DIR *opendir(const char *path)
{
    REAL(opendir);
    char buffer[PATH_ROOM];
    return real(fake_path(path, buffer, sizeof(buffer)));
}

PUBLIC int access(const char *path, int mode)
{
    REAL(access);
    char buffer[PATH_ROOM];
    return real(fake_path(path, buffer, sizeof(buffer)), mode);
}

/* The C library's own looks into folders do not come through opendir above. */
static void strip_found(glob_t *found)
{
    for (size_t i = 0; i < found->gl_pathc; i++)
        fake_path_strip(found->gl_pathv[found->gl_offs + i]);
}

PUBLIC int glob(const char *restrict pattern, int flags, int (*fails)(const char *, int), glob_t *restrict found)
{
    REAL(glob);
    char buffer[PATH_ROOM];
    const char *const fake = fake_path(pattern, buffer, sizeof(buffer));
    if (!(flags & GLOB_DOOFFS))
        found->gl_offs = 0;
    const int result = real(fake, flags, fails, found);
    if (result == 0 && fake != pattern)
        strip_found(found);
    return result;
}

static void make_node(struct stat *status)
{
    status->st_mode = S_IFCHR | 0666;
    status->st_rdev = makedev(226, 128);
}

PUBLIC int stat(const char *restrict path, struct stat *restrict status)
{
    REAL(stat);
    char buffer[PATH_ROOM];
    const int result = real(fake_path(path, buffer, sizeof(buffer)), status);
    if (result == 0 && fake_path_is_node(path))
        make_node(status);
    return result;
}

PUBLIC int stat64(const char *restrict path, struct stat64 *restrict status)
{
    return stat(path, (struct stat *)status);
}

PUBLIC int lstat(const char *restrict path, struct stat *restrict status)
{
    REAL(lstat);
    char buffer[PATH_ROOM];
    return real(fake_path(path, buffer, sizeof(buffer)), status);
}

PUBLIC int lstat64(const char *restrict path, struct stat64 *restrict status)
{
    return lstat(path, (struct stat *)status);
}

PUBLIC int fstat(int fd, struct stat *status)
{
    REAL(fstat);
    const int result = real(fd, status);
    if (result == 0 && fake_memory_is(fd))
        make_node(status);
    return result;
}

PUBLIC int fstat64(int fd, struct stat64 *status)
{
    return fstat(fd, (struct stat *)status);
}

PUBLIC ssize_t readlink(const char *restrict path, char *restrict to, size_t size)
{
    REAL(readlink);
    char buffer[PATH_ROOM];
    return real(fake_path(path, buffer, sizeof(buffer)), to, size);
}

PUBLIC ssize_t __readlink_chk(const char *path, char *to, size_t size, size_t room);
PUBLIC ssize_t __readlink_chk(const char *path, char *to, size_t size, size_t room)
{
    return readlink(path, to, size < room ? size : room);
}

PUBLIC char *realpath(const char *restrict path, char *restrict resolved)
{
    REAL(realpath);
    char buffer[PATH_ROOM];
    const char *const fake = fake_path(path, buffer, sizeof(buffer));
    char *const result = real(fake, resolved);
    if (result && fake != path)
        fake_path_strip(result);
    return result;
}

PUBLIC char *__realpath_chk(const char *path, char *resolved, size_t room);
PUBLIC char *__realpath_chk(const char *path, char *resolved, size_t room)
{
    (void)room;
    return realpath(path, resolved);
}

PUBLIC int ioctl(int fd, unsigned long request, ...)
{
    REAL(ioctl);
    va_list arguments;
    va_start(arguments, request);
    void *const argument = va_arg(arguments, void *);
    va_end(arguments);
    if (_IOC_TYPE(request) == DRM_TYPE && fake_memory_is(fd))
        return fake_ioctl(request, argument);
    return real(fd, request, argument);
}

/* SPDX-License-Identifier: MIT */
/*
 * The driver looks its device up in /dev and /sys. A folder of real files and links stands for both, one for each user and
 * device, made by the first who needs it; only the beginnings of paths have to be changed for it.
 */
#include "fakegpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The functions that make the tree are not those of interpose.c: its paths do not begin like the ones that are changed. */

#define BUS_ADDRESS "0000:3a:00.0"
#define PORT "/sys/devices/pci0000:37/0000:37:01.0/0000:38:00.0"
#define DEVICE PORT "/0000:39:01.0/" BUS_ADDRESS

static const struct {
    const char *path, *text;
} files[] = {
    {"/dev/dri/renderD128", ""},
    {"/dev/dri/card0", ""},
    {DEVICE "/vendor", "0x8086\n"},
    {DEVICE "/class", "0x038000\n"},
    {DEVICE "/numa_node", "0\n"},
    {DEVICE "/drm/card0/dev", "226:0\n"},
    {DEVICE "/drm/renderD128/dev", "226:128\n"},
    {DEVICE "/tile0/gt0/freq0/max_freq", "1600\n"},
    {DEVICE "/tile0/gt0/freq0/min_freq", "900\n"},
    {DEVICE "/tile0/gt0/freq0/rp0_freq", "1600\n"},
    {PORT "/max_link_width", "16\n"},
    {PORT "/max_link_speed", "32.0 GT/s PCIe\n"},
};

static const struct {
    const char *path, *to;
} links[] = {
    {"/dev/dri/by-path/pci-" BUS_ADDRESS "-render", "../renderD128"},
    {"/dev/dri/by-path/pci-" BUS_ADDRESS "-card", "../card0"},
    {DEVICE "/drm/card0/device", "../../../" BUS_ADDRESS},
    {DEVICE "/drm/renderD128/device", "../../../" BUS_ADDRESS},
    {"/sys/dev/char/226:128", "../../devices/pci0000:37/0000:37:01.0/0000:38:00.0/0000:39:01.0/" BUS_ADDRESS "/drm/renderD128"},
    {"/sys/bus/pci/devices/" BUS_ADDRESS, "../../../devices/pci0000:37/0000:37:01.0/0000:38:00.0/0000:39:01.0/" BUS_ADDRESS},
    {"/sys/class/drm/card0", "../../devices/pci0000:37/0000:37:01.0/0000:38:00.0/0000:39:01.0/" BUS_ADDRESS "/drm/card0"},
    {"/sys/class/drm/renderD128", "../../devices/pci0000:37/0000:37:01.0/0000:38:00.0/0000:39:01.0/" BUS_ADDRESS "/drm/renderD128"},
};

static const char *const prefixes[] = {"/dev/dri",         "/sys/class/drm", "/sys/bus/pci",         "/sys/dev/char",
                                       "/sys/devices/pci", "/sys/module/xe", "/sys/class/intel_pmt", "/sys/class/mei"};

enum { ROOM = 512 };
static char root[ROOM / 2];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_folders_of(char *path)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
}

static bool make_all_in(const char *folder)
{
    char path[ROOM];
    for (size_t i = 0; i < COUNT(files); i++) {
        snprintf(path, sizeof(path), "%s%s", folder, files[i].path);
        make_folders_of(path);
        FILE *const file = fopen(path, "w");
        if (!file)
            return false;
        fputs(files[i].text, file);
        if (fclose(file) != 0)
            return false;
    }
    for (size_t i = 0; i < COUNT(links); i++) {
        snprintf(path, sizeof(path), "%s%s", folder, links[i].path);
        make_folders_of(path);
        if (symlink(links[i].to, path) != 0)
            return false;
    }
    return true;
}

/* Made aside and renamed: who comes at the same time sees all of it or nothing. */
static void make_tree(void)
{
    const char *const temporary = getenv("TMPDIR");
    snprintf(root, sizeof(root), "%.150s/fakegpu-1.%u", temporary && *temporary == '/' ? temporary : "/tmp", (unsigned)getuid());
    struct stat status;
    if (lstat(root, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == getuid())
        return;
    char aside[ROOM];
    snprintf(aside, sizeof(aside), "%s.XXXXXX", root);
    if (mkdtemp(aside) && make_all_in(aside) && (rename(aside, root) == 0 || errno == EEXIST || errno == ENOTEMPTY))
        return;
    fake_unknown("the files of the device cannot be made in %s: %s", root, strerror(errno));
    _exit(125);
}

const char *fake_path(const char *path, char *buffer, size_t room)
{
    if (!path || (strncmp(path, "/dev/", 5) != 0 && strncmp(path, "/sys/", 5) != 0))
        return path;
    for (size_t i = 0; i < COUNT(prefixes); i++)
        if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0) {
            pthread_once(&once, make_tree);
            const int n = snprintf(buffer, room, "%s%s", root, path);
            fake_say(LOG_IOCTL, "path %s", path);
            return n < 0 || (size_t)n >= room ? path : buffer;
        }
    return path;
}

void fake_path_strip(char *path)
{
    const size_t n = strlen(root);
    if (n && strncmp(path, root, n) == 0 && path[n] == '/')
        memmove(path, path + n, strlen(path + n) + 1);
}

bool fake_path_is_node(const char *path)
{
    return path && strncmp(path, "/dev/dri/", 9) == 0 &&
           (strstr(path, "renderD128") || strstr(path, "card0") || strstr(path, "-render") || strstr(path, "-card"));
}

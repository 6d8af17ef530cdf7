/* SPDX-License-Identifier: MIT */
#include "replay_replace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"

#define LARGEST (1ll << 30)

/* @return NULL after a complaint. */
static void *read_file(const char *path, uint64_t *size)
{
    FILE *const in = fopen(path, "rb");
    struct stat st = {.st_size = 0};
    void *bytes = NULL;
    if (in == NULL || fstat(fileno(in), &st) != 0)
        zt_complain("replay: --replace: %s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode) || st.st_size == 0 || st.st_size > LARGEST)
        zt_complain("replay: --replace wants a file with a module, but %s is %s", path,
                    !S_ISREG(st.st_mode) ? "no file" : st.st_size == 0 ? "empty" : "larger than 1 GiB");
    else if ((bytes = malloc((size_t)st.st_size)) == NULL || fread(bytes, 1, (size_t)st.st_size, in) != (size_t)st.st_size) {
        zt_complain("replay: --replace: %s could not be read", path);
        free(bytes);
        bytes = NULL;
    }
    *size = (uint64_t)st.st_size;
    if (in != NULL)
        fclose(in);
    return bytes;
}

/* "2", "module#2", "#12", "#12.2" */
static bool parse_what(const char *text, size_t length, zr_replacement *r)
{
    char what[64];
    if (length >= sizeof(what))
        return false;
    memcpy(what, text, length);
    what[length] = '\0';
    char *const dot = strchr(what, '.');
    uint64_t input = 1;
    if (dot != NULL) {
        *dot = '\0';
        if (!zt_parse_call(dot + 1, &input) || dot[1] == '#' || input > 1000)
            return false;
    }
    r->input = (unsigned)input;
    const char *const number = strncmp(what, "module#", 7) == 0 ? what + 7 : what;
    return number[0] == '#' ? number == what && zt_parse_call(number, &r->call) : zt_parse_call(number, &r->module);
}

int zt_replay_replace(zr_plan *plan, const char *text, bool quiet)
{
    const char *const colon = strchr(text, ':');
    zr_replacement r = {0};
    char why[512];
    if (colon == NULL || colon[1] == '\0' || !parse_what(text, (size_t)(colon - text), &r))
        return zt_usage_error(&zt_command_replay, "replay: --replace wants a module and a file, as 2:FILE for module#2 or #12:FILE for the one "
                                                  "of call 12, but was given '%s'", text);
    void *const bytes = read_file(colon + 1, &r.size);
    if (bytes == NULL)
        return ZT_EXIT_USAGE;
    r.bytes = bytes;
    const bool done = zr_plan_replace(plan, &r, why, sizeof(why));
    free(bytes);
    if (!done)
        return zt_usage_error(&zt_command_replay, "replay: --replace=%s: %s", text, why);
    if (!quiet)
        fprintf(stderr, "zetrace: #%" PRIu64 " is given %s, %" PRIu64 " bytes, in place of the %" PRIu64 " recorded\n", r.of, colon + 1, r.size,
                r.recorded_size);
    return -1;
}

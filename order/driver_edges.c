/* SPDX-License-Identifier: MIT */
/* Reads the tables of order/drivers, which the build puts into drivers.inc as they are. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_edges.h"

static const char *const tables[] = {
#include "drivers.inc"
};

static const char *const names[] = {"free-waits",  "list-keeps",      "queue-keeps",   "event-keeps", "immediate-waits",
                                    "host-copied", "submit-resident", "append-blocks", "one-engine"};
#define N_NAMES (sizeof(names) / sizeof(names[0]))

static bool holds(const zt_session *s, uint32_t device, const char *condition)
{
    const char *const equals = strchr(condition, '=');
    const size_t n = equals ? (size_t)(equals - condition) : strlen(condition);
    char number[16];
    snprintf(number, sizeof(number), "%04x", device);
    if (equals != NULL && n == 6 && strncmp(condition, "device", n) == 0)
        return device != 0 && fnmatch(equals + 1, number, 0) == 0;
    for (uint32_t i = 0; equals != NULL && i < s->n_environment; i++)
        if (strlen(s->environment[i].name) == n && strncmp(s->environment[i].name, condition, n) == 0)
            return fnmatch(equals + 1, s->environment[i].value, 0) == 0;
    return false;
}

static bool is_loaded(const zt_session *s, const char *library)
{
    for (uint32_t i = 0; i < s->n_libraries; i++) {
        const char *const slash = strrchr(s->libraries[i].path, '/'), *const name =
                                                                          slash ? slash + 1 : s->libraries[i].path;
        if (strncmp(name, library, strlen(library)) == 0)
            return true;
    }
    return false;
}

/* One line: a habit, then conditions behind `if` and `unless`. */
static unsigned read_line(const zt_session *s, uint32_t device, char *line)
{
    char *rest = NULL;
    const char *const first = strtok_r(line, " \t", &rest);
    unsigned habit = 0;
    bool wanted = true, all = true;
    for (size_t i = 0; first != NULL && i < N_NAMES; i++)
        if (strcmp(first, names[i]) == 0)
            habit = 1u << i;
    for (const char *word; habit != 0 && (word = strtok_r(NULL, " \t", &rest)) != NULL;) {
        if (strcmp(word, "if") == 0 || strcmp(word, "unless") == 0)
            wanted = word[0] == 'i';
        else
            all = all && holds(s, device, word) == wanted;
    }
    return all ? habit : 0;
}

/* @return false if its library was not loaded. */
static bool read_table(const zt_session *s, uint32_t device, const char *table, unsigned *habits)
{
    char *const copy = strdup(table), *rest = NULL;
    bool loaded = false;
    *habits = 0;
    for (char *line = copy ? strtok_r(copy, "\n", &rest) : NULL; line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "library ", 8) == 0)
            loaded = is_loaded(s, line + 8);
        else if (line[0] != '#')
            *habits |= read_line(s, device, line);
    }
    free(copy);
    return loaded;
}

unsigned zo_driver_habits(const zt_session *s, uint32_t device)
{
    unsigned common = 0;
    bool any = false;
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        unsigned habits;
        if (!read_table(s, device, tables[i], &habits))
            continue;
        common = any ? common & habits : habits; /* of several drivers it is not known whose call it is */
        any = true;
    }
    return common;
}

void zo_habit_names(unsigned habits, char *out, size_t size)
{
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < N_NAMES; i++)
        if ((habits & (1u << i)) && n < size)
            n += (size_t)snprintf(out + n, size - n, "%s%s", n > 0 ? ", " : "", names[i]);
}

/* SPDX-License-Identifier: MIT */
#include "soft.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

soft_knobs soft;

/* One row a knob: the names of its values in the order of its enum, the first being the default. */
static const struct choice {
    const char *variable;
    int *value;
    const char *names[8];
} choices[] = {
    {"ZE_SOFT_FAULT", &soft.fault, {"ban", "abort", "scratch"}},
    {"ZE_SOFT_ERRORS", &soft.errors, {"submit", "sync"}},
    {"ZE_SOFT_FREE", &soft.free, {"fault", "block", "reuse"}},
    {"ZE_SOFT_REBIND", &soft.rebind, {"strict", "submit"}},
    {"ZE_SOFT_ENGINES", &soft.engines, {"independent", "shared", "intel"}},
    {"ZE_SOFT_APPEND", &soft.append, {"return", "block"}},
    {"ZE_SOFT_RESIDENCY", &soft.residency, {"allocation", "exact", "64k"}},
    {"ZE_SOFT_HOSTPTR", &soft.hostptr, {"start", "append"}},
    {"ZE_SOFT_DESTROY", &soft.destroy, {"lose", "keep"}},
    {"ZE_SOFT_VA", &soft.va, {"window", "reuse", "quarantine"}},
};
static const char *const schedules[] = {"async", "eager", "lazy", "seed:", "script:", "null"};

/* A replay takes values from a trace, which a stranger may have made. */
static void put(const char *value)
{
    for (const char *c = value; *c != '\0'; c++)
        fputc((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f ? '?' : *c, stderr);
}

static bool refuse(const char *variable, const char *found, const char *wanted)
{
    fprintf(stderr, "libze_soft: %s is '", variable);
    put(found);
    fprintf(stderr, "', but must be one of: %s\n", wanted);
    return false;
}

static bool read_choice(const struct choice *choice)
{
    const char *const text = getenv(choice->variable);
    char wanted[256] = "";
    *choice->value = 0;
    if (text == NULL || *text == '\0')
        return true;
    for (int i = 0; i < 8 && choice->names[i] != NULL; i++) {
        if (strcmp(text, choice->names[i]) == 0) {
            *choice->value = i;
            return true;
        }
        snprintf(wanted + strlen(wanted), sizeof(wanted) - strlen(wanted), "%s%s", i ? ", " : "", choice->names[i]);
    }
    return refuse(choice->variable, text, wanted);
}

static bool read_schedule(void)
{
    static const char wanted[] = "async, eager, lazy, seed:NUMBER, script:FILE, null";
    const char *const text = getenv("ZE_SOFT_SCHEDULE");
    soft.schedule = SOFT_ASYNC;
    if (text == NULL || *text == '\0')
        return true;
    for (int i = 0; i < 6; i++) {
        const size_t length = strlen(schedules[i]);
        if (schedules[i][length - 1] != ':') {
            if (strcmp(text, schedules[i]) == 0) {
                soft.schedule = i;
                return true;
            }
            continue;
        }
        if (strncmp(text, schedules[i], length) != 0)
            continue;
        soft.schedule = i;
        if (i == SOFT_SEED) {
            char *end;
            soft.seed = strtoull(text + length, &end, 0);
            return (*end == '\0' && end != text + length) || refuse("ZE_SOFT_SCHEDULE", text, wanted);
        }
        if (strlen(text + length) >= sizeof(soft.script) || text[length] == '\0')
            return refuse("ZE_SOFT_SCHEDULE", text, wanted);
        strcpy(soft.script, text + length);
        FILE *const file = fopen(soft.script, "r");
        if (file == NULL) {
            const int error = errno;
            fputs("libze_soft: ZE_SOFT_SCHEDULE names the script '", stderr);
            put(soft.script);
            fprintf(stderr, "', which cannot be read: %s\n", strerror(error));
            return false;
        }
        fclose(file);
        return true;
    }
    return refuse("ZE_SOFT_SCHEDULE", text, wanted);
}

bool soft_knobs_read(void)
{
    if (!read_schedule())
        return false;
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
        if (!read_choice(&choices[i]))
            return false;
    soft.devices = 1;
    const char *const devices = getenv("ZE_SOFT_DEVICES");
    if (devices != NULL && *devices != '\0') {
        if (devices[0] < '1' || devices[0] > '8' || devices[1] != '\0')
            return refuse("ZE_SOFT_DEVICES", devices, "a number from 1 to 8");
        soft.devices = (unsigned)(devices[0] - '0');
    }
    soft.memory = UINT64_MAX;
    const char *const memory = getenv("ZE_SOFT_MEMORY");
    if (memory != NULL && *memory != '\0') {
        char *end;
        soft.memory = strtoull(memory, &end, 0);
        if (memory[0] < '1' || memory[0] > '9' || *end != '\0')
            return refuse("ZE_SOFT_MEMORY", memory, "a number of bytes");
    }
    const char *const log = getenv("ZE_SOFT_LOG");
    snprintf(soft.log, sizeof(soft.log), "%s", log ? log : "");
    return true;
}

/* SPDX-License-Identifier: MIT */
#include "fakegpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct fake_settings settings;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct {
    const char *name;
    unsigned bit;
} kinds[] = {{"kernel", LOG_KERNEL},
             {"ioctl", LOG_IOCTL},
             {"job", LOG_JOB},
             {"command", LOG_COMMAND},
             {"kernels", LOG_KERNELS}};

static void say(const char *format, va_list arguments)
{
    char line[1024];
    int n = snprintf(line, sizeof(line), "fakegpu[%d]: ", (int)getpid());
    const int m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, arguments);
    n = m < 0 || (size_t)(n + m) > sizeof(line) - 2 ? (int)sizeof(line) - 2 : n + m;
    line[n++] = '\n';
    /* one write: lines of several threads and processes stay whole */
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        return;
}

void fake_unknown(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

bool fake_logged(enum fake_log kind)
{
    return (fake_settings()->log & kind) != 0;
}

void fake_say(enum fake_log kind, const char *format, ...)
{
    if (!fake_logged(kind))
        return;
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

static void refuse(const char *name, const char *value, const char *wanted)
{
    fake_unknown("%s is '%s'; it takes %s", name, value, wanted);
    _exit(125);
}

static void read_log(const char *value)
{
    settings.log = 0;
    while (*value) {
        const size_t n = strcspn(value, ",");
        size_t i = 0;
        while (i < COUNT(kinds) && (strlen(kinds[i].name) != n || strncmp(kinds[i].name, value, n) != 0))
            i++;
        if (i < COUNT(kinds))
            settings.log |= kinds[i].bit;
        else if (n)
            refuse("FAKEGPU_LOG", value, "a list of kernel, ioctl, job, command, kernels");
        value += n + (value[n] == ',');
    }
}

/* [CLASS:]MILLISECONDS,... */
static void read_delay(const char *value)
{
    static const char wanted[] = "milliseconds, or compute:MILLISECONDS,copy:MILLISECONDS";
    for (const char *at = value; *at;) {
        const bool compute = strncmp(at, "compute:", 8) == 0, copy = strncmp(at, "copy:", 5) == 0;
        const char *const number = at + (compute ? 8 : copy ? 5 : 0);
        char *end;
        const double milliseconds = strtod(number, &end);
        if (end == number || (*end && *end != ',') || !(milliseconds >= 0 && milliseconds <= 60000))
            refuse("FAKEGPU_DELAY", value, wanted);
        for (size_t i = 0; i < COUNT(settings.delay_ns); i++)
            if ((!compute && !copy) || copy == (i == XE_ENGINE_COPY))
                settings.delay_ns[i] = (uint64_t)(milliseconds * 1e6);
        at = end + (*end == ',');
    }
}

static void read_settings(void)
{
    settings.log = LOG_KERNEL;
    const char *value = getenv("FAKEGPU_LOG");
    if (value)
        read_log(value);
    settings.device = getenv("FAKEGPU_DEVICE");
    value = getenv("FAKEGPU_DELAY");
    read_delay(value && *value ? value : "1");
    value = getenv("FAKEGPU_SEED");
    if (value && *value) {
        char *end;
        settings.seed = strtoull(value, &end, 10);
        if (*end)
            refuse("FAKEGPU_SEED", value, "a number");
    }
}

const struct fake_settings *fake_settings(void)
{
    pthread_once(&once, read_settings);
    return &settings;
}

uint64_t fake_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* SPDX-License-Identifier: MIT */
/* What doctor has found, to people and to programs, and what is to be done about it. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "doctor.h"

extern char **environ;

static void note(doctor_facts *problems, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(doctor_facts *problems, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    doctor_add(problems, text);
}

/* ---------------------------------------------------------------------------------------------------------- problems */

static bool is_set(const char *name)
{
    const char *const value = getenv(name);
    return value != NULL && *value != '\0';
}

static unsigned long init_of(const doctor_facts *facts)
{
    const char *const init = doctor_fact(facts, "init", NULL);
    return init != NULL ? strtoul(init, NULL, 16) : 1;
}

/* Files that a list of drivers names by path and that are not there. */
static void look_for_alternatives(doctor_facts *problems)
{
    char list[8192];
    snprintf(list, sizeof(list), "%s", getenv("ZE_ENABLE_ALT_DRIVERS"));
    for (char *save = NULL, *name = strtok_r(list, ",", &save); name != NULL; name = strtok_r(NULL, ",", &save))
        if (strchr(name, '/') != NULL && access(name, R_OK) != 0)
            note(problems, "ZE_ENABLE_ALT_DRIVERS names %.300s, which is not there; unset it or name a library that is", name);
}

static void find_driver_problems(const doctor *d, doctor_facts *problems)
{
    const doctor_facts *const f = &d->facts;
    unsigned closed = 0;
    const char *const missing = doctor_fact(f, "no-loader", NULL);
    if (missing != NULL) {
        note(problems, "no Level Zero loader: %.300s; install it (Debian: libze1)", missing);
        return;
    }
    if (d->ended_by != 0) {
        note(problems, d->ended_by == SIGALRM ? "a probe did not end within 20 s: the driver hangs in %s"
                                                : "a probe crashed: the loader or a driver does so in %s",
               doctor_fact(f, "init", NULL) == NULL ? "zeInit" : "the calls behind zeInit");
        return;
    }
    if (is_set("ZE_ENABLE_ALT_DRIVERS") && strcmp(d->driver, "auto") == 0)
        look_for_alternatives(problems);
    for (size_t i = 0; i < d->n_nodes; i++) {
        closed += d->nodes[i].error != 0;
        if (d->nodes[i].error != 0)
            note(problems, "%.255s can't be opened: %s; add yourself to the group that owns it (render, as a rule)", d->nodes[i].path,
                   strerror(d->nodes[i].error));
    }
    if (init_of(f) != 0)
        note(problems, "zeInit gives %s: no driver was found, or none that finds a device%s; install the device's Level Zero driver, or use libze_soft: 'zetrace record "
                         "--driver=soft'",
               zt_result_name((int64_t)init_of(f)), d->n_nodes == 0 ? " (there are no /dev/dri/renderD* and no /dev/accel/*)" : closed ? " it may open" : "");
    else if (doctor_fact(f, "device", NULL) == NULL)
        note(problems, "there is a driver and no device%s", d->n_nodes == 0 ? ": no /dev/dri/renderD* and no /dev/accel/*" : "");
    size_t at = 0;
    for (const char *failed; (failed = doctor_fact(f, "failed", &at)) != NULL;)
        note(problems, "%.300s: a call of the probe failed", failed);
}

static void find_capture_problems(const doctor *d, const doctor_capture *c, const char *how, doctor_facts *problems)
{
    if (doctor_fact(&d->facts, "no-loader", NULL) != NULL || d->ended_by != 0)
        return;
    if (c->why[0] != '\0')
        note(problems, "a probe could not be recorded as a %s: %s", how, c->why);
    else if (c->init[0] == '\0' || c->status != 0)
        note(problems, "a probe that runs well by itself ends with status %d when recorded as a %s", c->status, how);
    else if (strtoul(c->init, NULL, 16) != init_of(&d->facts))
        note(problems, "zeInit gives %s when recorded as a %s, and %s else", zt_result_name((int64_t)strtoul(c->init, NULL, 16)), how,
               zt_result_name((int64_t)init_of(&d->facts)));
    else if (c->seen < c->made && init_of(&d->facts) == 0)
        note(problems, "recorded as a %s, %u of %u calls of a probe are seen; %s", how, c->seen, c->made,
               strcmp(how, "layer") == 0 ? "try 'zetrace record --attach=driver'" : "use --attach=layer, which is the default");
}

/* ------------------------------------------------------------------------------------------------------------ report */

static bool matters(const char *variable)
{
    static const char *const prefixes[] = {"ZE_", "ZEL_", "ZET_", "ZES_", "ZER_", "NEO", "LD_PRELOAD=", "LD_LIBRARY_PATH=", "LD_AUDIT=", "ONEAPI_DEVICE_SELECTOR="};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static void print_list(const doctor_facts *facts, const char *word, const char *title)
{
    size_t at = 0;
    for (const char *text; (text = doctor_fact(facts, word, &at)) != NULL; title = "") {
        printf("%-12s", title);
        zt_put_text(stdout, text);
        putchar('\n');
    }
}

static void print_capture(const doctor_capture *c, const char *title, const char *how)
{
    printf("%-12s%s: %u of %u calls of a probe seen\n", title, how, c->seen, c->made);
}

static void print_text(const doctor *d, const doctor_facts *problems)
{
    const doctor_facts *const f = &d->facts;
    print_list(f, "loader", "Loader");
    print_list(f, "component", "");
    if (doctor_fact(f, "init", NULL) != NULL)
        printf("%-12s%s\n", "zeInit", zt_result_name((int64_t)init_of(f)));
    print_list(f, "driver", "Drivers");
    print_list(f, "device", "Devices");
    print_list(f, "library", "Libraries");
    for (size_t i = 0; i < d->n_nodes; i++)
        printf("%-12s%s %s%s%s\n", i ? "" : "Nodes", d->nodes[i].path, d->nodes[i].kernel_driver, d->nodes[i].error ? " " : "",
               d->nodes[i].error ? strerror(d->nodes[i].error) : "");
    const char *title = "Environment";
    for (char **e = environ; *e != NULL; e++)
        if (matters(*e)) {
            printf("%-12s", title);
            zt_put_text(stdout, *e);
            putchar('\n');
            title = "";
        }
    print_capture(&d->as_layer, "Capture", "layer");
    print_capture(&d->as_driver, "", "driver");
    printf("\n");
    for (size_t i = 0; i < problems->n; i++) {
        printf("In the way: ");
        zt_put_text(stdout, problems->lines[i]);
        printf("\n");
    }
    if (problems->n == 0)
        printf("All is well: 'zetrace record -- PROGRAM' sees what a program does here.\n");
}

static void json_list(const doctor_facts *facts, const char *word, const char *name)
{
    size_t at = 0;
    bool first = true;
    printf("\"%s\":[", name);
    for (const char *text; (text = doctor_fact(facts, word, &at)) != NULL; first = false) {
        printf("%s", first ? "" : ",");
        zt_json_string(stdout, text);
    }
    printf("],");
}

static void json_devices(const doctor_facts *facts)
{
    size_t at = 0;
    bool first = true;
    printf("\"devices\":[");
    for (const char *text; (text = doctor_fact(facts, "device", &at)) != NULL; first = false) {
        unsigned driver = 0, vendor = 0, device = 0;
        char kind[16] = "";
        int name = 0;
        sscanf(text, "%u %15s %x:%x %n", &driver, kind, &vendor, &device, &name);
        printf("%s{\"driver\":%u,\"kind\":", first ? "" : ",", driver);
        zt_json_string(stdout, kind);
        printf(",\"vendor\":%u,\"device\":%u,\"name\":", vendor, device);
        zt_json_string(stdout, name > 0 ? text + name : "");
        printf("}");
    }
    printf("],");
}

static void json_capture(const char *name, const doctor_capture *c)
{
    printf("\"%s\":{\"made\":%u,\"seen\":%u}", name, c->made, c->seen);
}

static void print_json(const doctor *d, const doctor_facts *problems)
{
    const doctor_facts *const f = &d->facts;
    const char *const loader = doctor_fact(f, "loader", NULL);
    bool first = true;
    printf("{\"loader\":");
    zt_json_string(stdout, loader != NULL ? loader : "");
    printf(",");
    json_list(f, "component", "components");
    printf("\"init\":");
    zt_json_string(stdout, doctor_fact(f, "init", NULL) != NULL ? zt_result_name((int64_t)init_of(f)) : "");
    printf(",");
    json_list(f, "driver", "drivers");
    json_devices(f);
    json_list(f, "library", "libraries");
    printf("\"nodes\":[");
    for (size_t i = 0; i < d->n_nodes; i++) {
        printf("%s{\"path\":", i ? "," : "");
        zt_json_string(stdout, d->nodes[i].path);
        printf(",\"kernel_driver\":");
        zt_json_string(stdout, d->nodes[i].kernel_driver);
        printf(",\"error\":");
        zt_json_string(stdout, d->nodes[i].error ? strerror(d->nodes[i].error) : "");
        printf("}");
    }
    printf("],\"environment\":{");
    for (char **e = environ; *e != NULL; e++) {
        char name[256];
        const size_t length = strcspn(*e, "=");
        if (!matters(*e) || length >= sizeof(name))
            continue;
        memcpy(name, *e, length);
        name[length] = '\0';
        printf("%s", first ? "" : ",");
        first = false;
        zt_json_string(stdout, name);
        printf(":");
        zt_json_string(stdout, (*e)[length] == '=' ? *e + length + 1 : "");
    }
    printf("},\"capture\":{");
    json_capture("layer", &d->as_layer);
    printf(",");
    json_capture("driver", &d->as_driver);
    printf("},\"problems\":[");
    for (size_t i = 0; i < problems->n; i++) {
        printf("%s", i ? "," : "");
        zt_json_string(stdout, problems->lines[i]);
    }
    printf("],\"well\":%s}\n", problems->n == 0 ? "true" : "false");
}

unsigned doctor_report(const doctor *d, bool json)
{
    doctor_facts problems = {0};
    find_driver_problems(d, &problems);
    find_capture_problems(d, &d->as_layer, "layer", &problems);
    find_capture_problems(d, &d->as_driver, "driver", &problems);
    if (json)
        print_json(d, &problems);
    else
        print_text(d, &problems);
    const unsigned n = (unsigned)problems.n;
    for (size_t i = 0; i < problems.n; i++)
        free(problems.lines[i]);
    free(problems.lines);
    return n;
}

/* SPDX-License-Identifier: MIT */
/* zetrace doctor: what a program gets on this machine, and whether capture sees it. A probe finds out, bare and recorded. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture.h"
#include "commands.h"
#include "doctor.h"

enum { DRIVER = 1, JSON };

static const zt_option options[] = {
    {DRIVER, 0, "driver", "auto|soft|PATH", "driver to look at: what a program gets here (default), libze_soft, or a library"},
    {JSON, 0, "json", NULL, "what was found as one JSON object"},
    {0, 0, NULL, NULL, NULL},
};

static int run(int argc, char **argv);
const zt_command zt_command_doctor = {
    .name = "doctor",
    .summary = "find out what a program gets here and whether it can be recorded",
    .synopsis = "",
    .options = options,
    .more = "Exit status: 0 a program gets a device and capture sees all its calls, 1 something stands in the way, 2 usage, "
            "125 it can't be found out here.\n",
    .usage_status = ZT_EXIT_USAGE,
    .run = run,
};

#define MOST_FACTS  4096u
#define MOST_LENGTH 8192u

bool doctor_add(doctor_facts *facts, const char *text)
{
    char **const grown = facts->n < MOST_FACTS ? realloc(facts->lines, (facts->n + 1) * sizeof(*grown)) : NULL;
    if (grown == NULL)
        return false;
    facts->lines = grown;
    facts->lines[facts->n] = strdup(text);
    if (facts->lines[facts->n] == NULL)
        return false;
    facts->n++;
    return true;
}

const char *doctor_fact(const doctor_facts *facts, const char *word, size_t *from)
{
    const size_t length = strlen(word);
    for (size_t i = from != NULL ? *from : 0; i < facts->n; i++)
        if (strncmp(facts->lines[i], word, length) == 0 && (facts->lines[i][length] == ' ' || facts->lines[i][length] == '\0')) {
            if (from != NULL)
                *from = i + 1;
            return facts->lines[i] + length + (facts->lines[i][length] == ' ');
        }
    return NULL;
}

static void free_facts(doctor_facts *facts)
{
    for (size_t i = 0; i < facts->n; i++)
        free(facts->lines[i]);
    free(facts->lines);
}

static bool read_facts(const char *path, doctor_facts *facts)
{
    FILE *const f = fopen(path, "re");
    char line[MOST_LENGTH];
    if (f == NULL)
        return false;
    bool ok = true;
    while (ok && fgets(line, sizeof(line), f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        ok = doctor_add(facts, line);
    }
    fclose(f);
    return ok;
}

/* ------------------------------------------------------------------------------------------------------------- probe */

static int probe_bare(const doctor *d, const char *out)
{
    int status = 0;
    const pid_t pid = fork();
    if (pid < 0)
        return -1;
    if (pid == 0) {
        if (strcmp(d->driver, "auto") != 0)
            setenv("ZE_ENABLE_ALT_DRIVERS", d->driver_path, 1);
        execl(d->probe, d->probe, out, (char *)NULL);
        _exit(127);
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

/* How many of the probe's calls are in the trace, by function. */
static void count_seen(const char *path, const doctor_facts *facts, doctor_capture *c)
{
    zt_trace *trace;
    zt_error error;
    const zt_call *call;
    unsigned *const seen = calloc(zt_n_funcs, sizeof(*seen));
    if (seen != NULL && zt_trace_open(&trace, path, &error) == ZT_OK) {
        while (zt_trace_next(trace, &call) == ZT_OK)
            if (!call->internal && call->func >= zt_funcs && call->func < zt_funcs + zt_n_funcs)
                seen[call->func - zt_funcs]++;
        zt_trace_close(trace);
    }
    size_t at = 0;
    for (const char *made; (made = doctor_fact(facts, "made", &at)) != NULL;) {
        char name[128];
        unsigned n;
        if (sscanf(made, "%127s %u", name, &n) != 2)
            continue;
        c->made += n;
        for (unsigned i = 0; seen != NULL && i < zt_n_funcs; i++)
            if (strcmp(zt_funcs[i].name, name) == 0)
                c->seen += seen[i] < n ? seen[i] : n;
    }
    free(seen);
}

static void probe_recorded(const doctor *d, const char *folder, const char *attach, doctor_capture *c)
{
    char out[4200], trace[4200];
    doctor_facts facts = {0};
    zc_record_summary summary = {0};
    zt_error error = {0};
    snprintf(out, sizeof(out), "%s/%s.facts", folder, attach);
    snprintf(trace, sizeof(trace), "%s/%s.zetrace", folder, attach);
    char *argv[] = {(char *)(uintptr_t)d->probe, out, NULL};
    const zc_record_options o = {.argv = argv, .output = trace, .driver = strcmp(d->driver, "auto") == 0 ? "auto" : d->driver_path, .memory = "inputs",
                                 .attach = attach, .library_folder = zt_library_folder(), .overwrite = true};
    if (zc_record_program(&o, &summary, &error) != ZT_OK)
        snprintf(c->why, sizeof(c->why), "%s", error.text);
    c->status = summary.status;
    zc_summary_free(&summary);
    read_facts(out, &facts);
    if (doctor_fact(&facts, "init", NULL) != NULL)
        snprintf(c->init, sizeof(c->init), "%s", doctor_fact(&facts, "init", NULL));
    count_seen(trace, &facts, c);
    free_facts(&facts);
}

/* ----------------------------------------------------------------------------------------------------------- machine */

static void look_at_node(doctor *d, const char *folder, const char *name, const char *class)
{
    char path[4200], link[4400], target[4096];
    doctor_node *const node = &d->nodes[d->n_nodes];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    snprintf(node->path, sizeof(node->path), "%.255s", path);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    node->error = fd < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    snprintf(link, sizeof(link), "/sys/class/%s/%s/device/driver", class, name);
    const ssize_t n = readlink(link, target, sizeof(target) - 1);
    if (n > 0) {
        target[n] = '\0';
        const char *const slash = strrchr(target, '/');
        snprintf(node->kernel_driver, sizeof(node->kernel_driver), "%.63s", slash ? slash + 1 : target);
    }
    d->n_nodes++;
}

static void look_at_nodes(doctor *d)
{
    static const struct {
        const char *folder, *prefix, *class;
    } places[] = {{"/dev/dri", "renderD", "drm"}, {"/dev/accel", "accel", "accel"}};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        DIR *const folder = opendir(places[i].folder);
        for (struct dirent *e; folder != NULL && d->n_nodes < DOCTOR_NODES && (e = readdir(folder)) != NULL;)
            if (strncmp(e->d_name, places[i].prefix, strlen(places[i].prefix)) == 0)
                look_at_node(d, places[i].folder, e->d_name, places[i].class);
        if (folder != NULL)
            closedir(folder);
    }
}

static void remove_folder(const char *path)
{
    DIR *const folder = opendir(path);
    for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;)
        unlinkat(dirfd(folder), e->d_name, 0);
    if (folder != NULL)
        closedir(folder);
    rmdir(path);
}

static int run(int argc, char **argv)
{
    zt_parser parser;
    doctor d = {.driver = "auto"};
    bool json = false;
    struct stat st;
    zt_parser_init(&parser, &zt_command_doctor, argc, argv);
    for (int id; (id = zt_option_next(&parser)) != 0;) {
        if (id == ZT_OPTION_HELP)
            return zt_finish_output(ZT_EXIT_OK);
        if (id == ZT_OPTION_ERROR)
            return ZT_EXIT_USAGE;
        json |= id == JSON;
        if (id == DRIVER)
            d.driver = parser.value;
    }
    if (parser.at < argc)
        return zt_usage_error(&zt_command_doctor, "doctor wants no operand, but was given '%s'; --driver says which driver", argv[parser.at]);
    if (strcmp(d.driver, "soft") == 0)
        snprintf(d.driver_path, sizeof(d.driver_path), "%s/libze_soft.so.1", zt_library_folder());
    else if (strcmp(d.driver, "auto") != 0 && (stat(d.driver, &st) != 0 || realpath(d.driver, d.driver_path) == NULL))
        return zt_usage_error(&zt_command_doctor, "the driver '%s' was not found; give auto, soft or the path of a library", d.driver);
    snprintf(d.probe, sizeof(d.probe), "%.4000s/zetrace-probe", zt_library_folder());
    if (access(d.probe, X_OK) != 0) {
        zt_complain("its own program %s was not found; set ZETRACE_LIBDIR to the folder that holds it", d.probe);
        return ZT_EXIT_CANNOT;
    }
    char folder[4096], out[4200];
    const char *const tmp = getenv("TMPDIR");
    snprintf(folder, sizeof(folder), "%.4000s/zetrace-doctor.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (mkdtemp(folder) == NULL) {
        zt_complain("%s: %s; set TMPDIR to a folder that can be written", folder, strerror(errno));
        return ZT_EXIT_CANNOT;
    }
    snprintf(out, sizeof(out), "%s/bare.facts", folder);
    const int status = probe_bare(&d, out);
    d.ended_by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const bool told = read_facts(out, &d.facts);
    if (told) {
        look_at_nodes(&d);
        probe_recorded(&d, folder, "layer", &d.as_layer);
        probe_recorded(&d, folder, "driver", &d.as_driver);
    }
    remove_folder(folder);
    int exit_status = ZT_EXIT_CANNOT;
    if (!told)
        zt_complain("the probe %s told nothing (status 0x%x)", d.probe, (unsigned)status);
    else
        exit_status = doctor_report(&d, json) > 0 ? ZT_EXIT_DIFFERS : ZT_EXIT_OK;
    free_facts(&d.facts);
    return zt_finish_output(exit_status);
}

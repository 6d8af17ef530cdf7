/* SPDX-License-Identifier: MIT */
/*
 * Trials on another machine: the line goes into a file, LAUNCHER zetrace isolate --trial=FILE TRACE replays it there and leaves its
 * report beside it. Both ends are the same build, and see the same files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"
#include "isolate.h"
#include "leftovers.h"

#define MAGIC "zetrace trial 1\n"

typedef struct trial_header {
    char magic[sizeof(MAGIC)];
    uint64_t report_size, n;
} trial_header;

static bool write_all(int fd, const void *data, size_t size)
{
    for (const char *at = data; size > 0;) {
        const ssize_t n = write(fd, at, size);
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bool read_all(int fd, void *data, size_t size)
{
    for (char *at = data; size > 0;) {
        const ssize_t n = read(fd, at, size);
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

/* LAUNCHER zetrace isolate --trial=FILE and isolate's own arguments. */
static char *command_of(const isolate *run, const char *file)
{
    char self[4096], *all = NULL;
    size_t size = 0;
    const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    FILE *const out = n > 0 ? open_memstream(&all, &size) : NULL;
    if (out == NULL)
        return NULL;
    self[n] = '\0';
    fprintf(out, "%s ", run->launcher);
    zt_shell_word(out, self);
    fputs(" isolate --trial=", out);
    zt_shell_word(out, file);
    for (int i = 1; i < run->argc; i++) {
        fputc(' ', out);
        zt_shell_word(out, run->argv[i]);
    }
    if (fclose(out) == 0)
        return all;
    free(all);
    return NULL;
}

/* @return the launcher's exit status; -1: it could not even be run. */
static int launch(const isolate *run, const char *file)
{
    char *const command = command_of(run, file);
    const int status = command != NULL ? zt_run_shell(command, true, NULL, NULL) : -1;
    free(command);
    return status;
}

static bool read_report(const char *path, zr_report *report)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool ok = fd >= 0 && read_all(fd, report, sizeof(*report));
    if (fd >= 0)
        close(fd);
    return ok;
}

/* In the report, for trials side by side are in processes of their own. One that never worked is not tried again. */
static bool no_report(isolate *run, zr_report *report)
{
    *report = (zr_report){.verdict = ZR_CANNOT};
    snprintf(report->message, sizeof(report->message), "%s", run->cannot);
    if (run->launched)
        run->cannot[0] = '\0';
    return true;
}

bool isolate_launch(void *ctx, const uint32_t *line, size_t n, zr_report *report)
{
    isolate *const run = ctx;
    const trial_header head = {MAGIC, sizeof(*report), n};
    char file[4200], out[4210];
    snprintf(file, sizeof(file), "%.4000s.trial.XXXXXX", run->path);
    const int fd = run->cannot[0] == '\0' ? mkstemp(file) : -1;
    if (fd < 0) {
        if (run->cannot[0] == '\0')
            snprintf(run->cannot, sizeof(run->cannot), "no file for --launcher can be made beside it: %s", strerror(errno));
        return no_report(run, report);
    }
    snprintf(out, sizeof(out), "%s.out", file);
    zt_leftover_add(file);
    zt_leftover_add(out);
    bool ok = write_all(fd, &head, sizeof(head)) && write_all(fd, line, n * sizeof(*line));
    ok = close(fd) == 0 && ok;
    const int status = ok ? launch(run, file) : -1;
    ok = status != -1 && read_report(out, report);
    unlink(file);
    unlink(out);
    zt_leftover_forget(file);
    zt_leftover_forget(out);
    run->launched |= ok;
    if (!ok)
        snprintf(run->cannot, sizeof(run->cannot), "--launcher='%.300s' gave no report, but status %d; it has to run the command that stands behind it",
                 run->launcher, status);
    return ok || no_report(run, report);
}

int isolate_trial(isolate *run, zo_graph *graph, zr_plan *plan, const zt_ending *ending)
{
    trial_header head;
    struct stat st;
    char out[4210];
    zr_report report;
    uint32_t *line = NULL;
    const int fd = open(run->trial, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && fstat(fd, &st) == 0 && read_all(fd, &head, sizeof(head)) && memcmp(head.magic, MAGIC, sizeof(MAGIC)) == 0 &&
              head.report_size == sizeof(report) && head.n == ((uint64_t)st.st_size - sizeof(head)) / sizeof(*line);
    if (ok && (line = malloc((size_t)head.n * sizeof(*line) + 1)) != NULL)
        ok = read_all(fd, line, (size_t)head.n * sizeof(*line));
    if (fd >= 0)
        close(fd);
    if (!ok || line == NULL || !zo_run_line(graph, plan, ending, &run->options, line, (size_t)head.n, &report)) {
        zt_complain("%s: no line that --launcher wrote for this trace", run->trial);
        free(line);
        return ZT_EXIT_USAGE;
    }
    free(line);
    snprintf(out, sizeof(out), "%.4200s.out", run->trial);
    const int result = open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ok = result >= 0 && write_all(result, &report, sizeof(report));
    if (result >= 0)
        ok = close(result) == 0 && ok;
    if (!ok)
        zt_complain("%s: the report can't be written", out);
    return ok ? ZT_EXIT_OK : ZT_EXIT_CANNOT;
}

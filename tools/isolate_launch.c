/* SPDX-License-Identifier: MIT */
/*
 * Trials on another machine: the line goes into a file, LAUNCHER zetrace isolate --trial=FILE TRACE replays it there and leaves its
 * report beside it. Both ends are the same build, and see the same files.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands.h"
#include "isolate.h"

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

static char *quoted(const char *text)
{
    char *all = NULL;
    size_t size = 0;
    FILE *const out = open_memstream(&all, &size);
    if (out == NULL)
        return NULL;
    fputc('\'', out);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    fputc('\'', out);
    return fclose(out) == 0 ? all : NULL;
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
    char *const program = quoted(self), *const argument = quoted(file);
    bool ok = program != NULL && argument != NULL;
    fprintf(out, "%s %s isolate --trial=%s", run->launcher, program ? program : "", argument ? argument : "");
    for (int i = 1; ok && i < run->argc; i++) {
        char *const one = quoted(run->argv[i]);
        ok = one != NULL;
        fprintf(out, " %s", one ? one : "");
        free(one);
    }
    free(program);
    free(argument);
    if (fclose(out) == 0 && ok)
        return all;
    free(all);
    return NULL;
}

bool isolate_launch(void *ctx, const uint32_t *line, size_t n, zr_report *report)
{
    isolate *const run = ctx;
    const trial_header head = {MAGIC, sizeof(*report), n};
    char file[4200], out[4210];
    bool ok = false;
    snprintf(file, sizeof(file), "%.4000s.trial.XXXXXX", run->path);
    const int fd = mkstemp(file);
    if (fd < 0)
        return false;
    snprintf(out, sizeof(out), "%s.out", file);
    ok = write_all(fd, &head, sizeof(head)) && write_all(fd, line, n * sizeof(*line));
    ok = close(fd) == 0 && ok;
    char *const command = ok ? command_of(run, file) : NULL;
    fflush(NULL);
    if (command != NULL && system(command) != -1) {
        const int result = open(out, O_RDONLY | O_CLOEXEC);
        ok = result >= 0 && read_all(result, report, sizeof(*report));
        if (result >= 0)
            close(result);
    } else {
        ok = false;
    }
    free(command);
    unlink(file);
    unlink(out);
    return ok;
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

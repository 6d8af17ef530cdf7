/* SPDX-License-Identifier: MIT */
/* --fail-if: what makes a trial a failing one, in the user's words. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "isolate.h"
#include "leftovers.h"
#include "report.h"

enum { SKIP = 125 };

static isolate *isolate_of(void *ctx)
{
    return ctx;
}

static int by_result(void *ctx, const zr_report *report)
{
    (void)ctx;
    return report->watched > 0;
}

static int by_memory(void *ctx, const zr_report *report)
{
    (void)ctx;
    return report->mismatches_of[ZR_W_MEMORY] > 0;
}

typedef struct place {
    const char *folder, *report;
} place;

static bool go_there(void *ctx)
{
    const place *const p = ctx;
    if (chdir(p->folder) != 0 || setenv("ZETRACE_REPORT", p->report, 1) != 0)
        _exit(SKIP);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* isolate's own output is for its answer */
    return true;
}

static int status_of(const char *command, const char *folder, const char *report)
{
    place p = {folder, report};
    const int status = zt_run_shell(command, false, go_there, &p);
    return status == -1 ? SKIP : status;
}

/* As git bisect run: 0 good, 125 can't be told, else bad. */
static int by_command(void *ctx, const zr_report *report)
{
    isolate *const run = isolate_of(ctx);
    const char *const temporary = getenv("TMPDIR");
    char folder[4096], file[4160];
    snprintf(folder, sizeof(folder), "%s/zetrace-trial.XXXXXX", temporary && temporary[0] ? temporary : "/tmp");
    if (mkdtemp(folder) == NULL) {
        snprintf(run->cannot, sizeof(run->cannot), "%.300s: no folder for the command of --fail-if can be made: %s", folder, strerror(errno));
        return -1;
    }
    snprintf(file, sizeof(file), "%s/report.json", folder);
    zt_leftover_add(folder);
    zt_leftover_add(file);
    FILE *const out = fopen(file, "w");
    int status = SKIP;
    if (out != NULL) {
        zt_print_report_json(out, report);
        if (fclose(out) == 0)
            status = status_of(run->fail_if + strlen("exit:"), folder, file);
    }
    unlink(file);
    zt_leftover_forget(file);
    zt_leftover_forget(folder);
    if (rmdir(folder) != 0)
        zt_complain("%s: left as it is, for the command of --fail-if put files there", folder);
    if (status == SKIP)
        snprintf(run->cannot, sizeof(run->cannot), "the command of --fail-if ended with status %d, which means that it can't tell; it has to tell good (0) "
                                                   "from bad (any other) for each trial", SKIP);
    return status == SKIP ? -1 : status != 0;
}

/* A result without a name is told in hex, as 0x78000099. */
static bool is_result(const char *pattern)
{
    const zt_type *const results = zt_type_find("ze_result_t");
    bool found = strncmp(pattern, "0x", 2) == 0;
    for (unsigned i = 0; i < results->n_values && !found; i++)
        found = zt_glob(pattern, results->values[i].name);
    return found;
}

int isolate_fail_if_fits(const isolate *run, zt_trace *trace)
{
    const zt_call *call;
    bool found = run->watch_function == NULL || zt_trace_health(trace)->calls == 0;
    zt_trace_seek(trace, 1);
    while (!found && zt_trace_next(trace, &call) == ZT_OK)
        found = zt_glob(run->watch_function, call->func->name);
    return found ? ZT_EXIT_OK
                 : zt_usage_error(&zt_command_isolate, "--fail-if=%s: %s has no call of such a function; 'zetrace info' lists those it has", run->fail_if,
                                  run->path);
}

const char *isolate_fail_if(isolate *run, const char *argument)
{
    run->fail_if = argument;
    run->options.ctx = run;
    if (strcmp(argument, "memory") == 0) {
        run->options.judge = by_memory;
        return NULL;
    }
    if (strncmp(argument, "exit:", 5) == 0 && argument[5] != '\0') {
        run->options.judge = by_command;
        return NULL;
    }
    if (strncmp(argument, "result:", 7) != 0)
        return "wants result:FUNCTION-GLOB=RESULT, memory or exit:COMMAND";
    run->watch_function = strdup(argument + 7);
    char *const equals = run->watch_function ? strchr(run->watch_function, '=') : NULL;
    if (equals == NULL || equals == run->watch_function || equals[1] == '\0')
        return "wants a function and a result, as in result:zeCommandQueue*=ZE_RESULT_ERROR_UNKNOWN";
    *equals = '\0';
    if (!is_result(equals + 1))
        return "wants a result that there is, as ZE_RESULT_ERROR_UNKNOWN or *_DEVICE_LOST";
    run->replay.watch_function = run->watch_function;
    run->replay.watch_name = equals + 1;
    run->options.judge = by_result;
    return NULL;
}

void isolate_fail_if_free(isolate *run)
{
    free(run->watch_function);
    run->watch_function = NULL;
    run->replay.watch_function = run->replay.watch_name = NULL;
}

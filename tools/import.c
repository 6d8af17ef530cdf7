/* SPDX-License-Identifier: MIT */
/* zetrace import: a trace from the JSON that 'zetrace export --format=json' makes of one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "convert/convert.h"
#include "output_file.h"

enum { OUTPUT = 1, FORCE, LEVEL };

static const zt_option options[] = {
    {OUTPUT, 'o', "output", "FILE", "the trace to write, with mode 0600; - is standard output"},
    {FORCE, 'f', "force", NULL, "overwrite an existing file"},
    {LEVEL, 0, "level", "1..19", "how hard to compress it (3)"},
    {0, 0, NULL, NULL, NULL},
};

static int run(int argc, char **argv);
const zt_command zt_command_import = {
    .name = "import",
    .summary = "make a trace of its JSON",
    .synopsis = "FILE.json -o OUT",
    .options = options,
    .more = "The JSON is that of 'zetrace export --format=json', as it was or changed; - is standard input.\n"
            "Exit status: 0 written, 1 it could not be written, 2 usage, or a file is there, 3 that is no such JSON, or not all of it, 125 it can't be done here.\n",
    .usage_status = ZT_EXIT_USAGE,
    .run = run,
};

static void step(void *ctx, uint64_t done, uint64_t total)
{
    zt_progress *const progress = ctx;
    progress->total = total;
    zt_progress_step(progress, done);
}

/* What stands in the JSON may be no trace that can be read, though each line is a packet. @return the exit status. */
static int look_through(const char *path, const char *name)
{
    zt_trace *trace;
    zt_error error;
    const zt_call *call;
    if (zt_trace_open(&trace, path, &error) != ZT_OK) {
        zt_complain("%s", error.text);
        return ZT_EXIT_DAMAGED;
    }
    while (zt_trace_next(trace, &call) == ZT_OK)
        ;
    const zt_health health = *zt_trace_health(trace);
    zt_trace_close(trace);
    if (health.damaged_chunks == 0)
        return ZT_EXIT_OK;
    zt_complain("%s: was written, but what is in it does not fit together: %s", name, health.first_problem);
    return ZT_EXIT_DAMAGED;
}

static int status_of(int status)
{
    switch (status) {
    case ZT_OK:
        return ZT_EXIT_OK;
    case ZT_E_IO:
    case ZT_E_EXISTS:
        return ZT_EXIT_DIFFERS;
    case ZT_E_MEMORY:
        return ZT_EXIT_CANNOT;
    default:
        return ZT_EXIT_DAMAGED;
    }
}

static int import(FILE *in, const char *name, const char *path, const char *shown, const zv_import_options *how)
{
    zt_error error;
    zt_progress progress;
    const zv_progress steps = {step, &progress};
    zv_import_options options_now = *how;
    options_now.progress = &steps;
    zt_progress_start(&progress, "import", 0);
    const int status = zv_json_read(in, name, path, &options_now, &error);
    zt_progress_end(&progress);
    if (status == ZT_E_EXISTS)
        zt_complain("%s is there already; -f overwrites it", shown);
    else if (status != ZT_OK)
        zt_complain("%s", error.text);
    return status != ZT_OK ? status_of(status) : look_through(path, shown);
}

static bool copy_out(const char *path)
{
    char block[65536];
    FILE *const file = fopen(path, "rb");
    for (size_t n; file != NULL && (n = fread(block, 1, sizeof(block), file)) > 0;)
        fwrite(block, 1, n, stdout);
    return file != NULL && fclose(file) == 0;
}

/* A trace is written with seeks and links: to standard output it goes by way of a file. */
static int import_to_output(FILE *in, const char *name, const zv_import_options *how)
{
    const char *const tmp = getenv("TMPDIR");
    char folder[4096], path[4200];
    snprintf(folder, sizeof(folder), "%s/zetrace-import.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (mkdtemp(folder) == NULL) {
        zt_complain("%s: %s", folder, strerror(errno));
        return ZT_EXIT_DIFFERS;
    }
    snprintf(path, sizeof(path), "%s/trace", folder);
    int status = import(in, name, path, "-", how);
    if (status == ZT_EXIT_OK && !copy_out(path)) {
        zt_complain("%s: %s", path, strerror(errno));
        status = ZT_EXIT_DIFFERS;
    }
    unlink(path);
    rmdir(folder);
    return status;
}

static int run(int argc, char **argv)
{
    zt_parser parser;
    zv_import_options how = {0};
    const char *output = NULL;
    char *operand[2] = {argv[0], NULL};
    uint64_t level = 0;
    int operands = 0;
    zt_parser_init(&parser, &zt_command_import, argc, argv);
    for (int id; (id = zt_option_anywhere(&parser, &operand[1], 1, &operands)) != 0;) {
        if (id == ZT_OPTION_HELP)
            return zt_finish_output(ZT_EXIT_OK);
        if (id == ZT_OPTION_ERROR)
            return ZT_EXIT_USAGE;
        if (id == OUTPUT)
            output = parser.value;
        how.overwrite |= id == FORCE;
        if (id == LEVEL && (!zt_parse_number(parser.value, &level) || level == 0 || level > 19))
            return zt_usage_error(&zt_command_import, "--level wants a number from 1 to 19, not '%s'", parser.value);
    }
    if (operands != 1)
        return zt_usage_error(&zt_command_import, "import wants one file, but was given %s; 'zetrace help import' tells more", zt_count((unsigned)operands, "operand").text);
    if (output == NULL)
        return zt_usage_error(&zt_command_import, "import wants -o FILE, the trace to write");
    const bool standard = strcmp(operand[1], "-") == 0, to_output = strcmp(output, "-") == 0;
    const int free_to_write = to_output ? ZT_EXIT_OK : zt_check_output(&zt_command_import, operand[1], output, how.overwrite);
    if (free_to_write != ZT_EXIT_OK)
        return free_to_write;
    if (to_output && isatty(STDOUT_FILENO))
        return zt_usage_error(&zt_command_import, "a trace is not for a terminal; give -o FILE");
    FILE *const in = standard ? stdin : fopen(operand[1], "rb");
    if (in == NULL)
        return zt_usage_error(&zt_command_import, "%s: %s", operand[1], strerror(errno));
    how.level = (int)level;
    const int status = to_output ? import_to_output(in, operand[1], &how) : import(in, operand[1], output, output, &how);
    if (!standard)
        fclose(in);
    return zt_finish_output(status);
}

/* SPDX-License-Identifier: MIT */
/* zetrace export: an ordering bug as a C program of pure Level Zero. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "export/export.h"
#include "export_other.h"
#include "output_file.h"

enum { FORMAT = 1, OUTPUT, FORCE, EARLY, LATE, DRIVER, TIMEOUT };

static const zt_option options[] = {
    {FORMAT, 0, "format", "c|json|chrome|perfetto|dot",
     "what to make: c, a C program that shows an ordering bug (default); json, all of the trace, for 'zetrace import'; chrome or perfetto, a time line; dot, a picture as of 'zetrace graph'"},
    {OUTPUT, 'o', "output", "FILE", "write it there, with mode 0600, and what it needs beside it to FILE.bin (standard output)"},
    {FORCE, 'f', "force", NULL, "overwrite existing files"},
    {EARLY, 0, "early", "#N[@K]", "the call or command that has to come first to make it fail; searched, as in 'zetrace isolate', if not given"},
    {LATE, 0, "late", "#N[@K]", "the one that has to be over by then; goes with --early"},
    {DRIVER, 0, "driver", "auto|soft|PATH", "what to replay on, as in 'zetrace replay'"},
    {TIMEOUT, 0, "timeout", "T", "how long one wait of a replay may take (2s)"},
    {0, 0, NULL, NULL, NULL},
};

static int run(int argc, char **argv);
const zt_command zt_command_export = {
    .name = "export",
    .summary = "make a C program that shows an ordering bug, or turn a trace into JSON, a time line or a picture",
    .synopsis = "TRACE",
    .options = options,
    .more = "The program runs the recorded calls in the order that fails ('./a.out bad', status 1) or in the one that works ('good', status 0).\n"
            "Exit status: 0 written, 1 it could not be written, 2 usage, or a file is there and -f was not given, 3 damaged trace, 125 it can't be done here.\n",
    .usage_status = ZT_EXIT_USAGE,
    .run = run,
};

/* "#17", "#17@2" */
static bool parse_point(const char *text, zo_point *point)
{
    char call[32];
    const char *const at = strchr(text, '@');
    uint64_t execution = 0;
    const size_t n = at != NULL ? (size_t)(at - text) : strlen(text);
    if (n >= sizeof(call))
        return false;
    memcpy(call, text, n);
    call[n] = '\0';
    if (!zt_parse_call(call, &point->call) || point->call == 0)
        return false;
    if (at != NULL && (!zt_parse_number(at + 1, &execution) || execution == 0 || execution > UINT32_MAX))
        return false;
    point->execution = (uint32_t)execution;
    return true;
}

static void show_progress(void *ctx, const char *what, unsigned replays, unsigned budget)
{
    (void)ctx;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%s: replay %u of at most %u\033[K", what, replays, budget);
}

/* What can be written is known before anything is searched for, but for the file beside it, which is not always needed. */
static int check_outputs(const char *path, const char *output, bool force, bool beside)
{
    char side[4100];
    if (output == NULL || strcmp(output, "-") == 0)
        return ZT_EXIT_OK;
    snprintf(side, sizeof(side), "%s.bin", output);
    const int status = zt_check_output(&zt_command_export, path, output, force);
    return status != ZT_EXIT_OK ? status : zt_check_output(&zt_command_export, path, side, force || !beside);
}

static int write_program(const zx_program *program, const char *path, bool force)
{
    if (path == NULL || strcmp(path, "-") == 0) {
        fwrite(program->text, 1, program->size, stdout);
        return ZT_EXIT_OK;
    }
    char beside[4100];
    zt_output text, side = {0};
    snprintf(beside, sizeof(beside), "%s.bin", path);
    if (!zt_output_open(&text, path, force))
        return ZT_EXIT_DIFFERS;
    const bool two = program->side != NULL;
    const bool opened = !two || zt_output_open(&side, beside, force);
    fwrite(program->text, 1, program->size, text.file);
    if (two && opened)
        fwrite(program->side, 1, program->side_size, side.file);
    /* neither takes its place before both are written */
    bool good = opened && zt_output_whole(&text) && (!two || zt_output_whole(&side));
    if (two && opened)
        good = zt_output_close(&side, good) && good;
    return zt_output_close(&text, good) && good ? ZT_EXIT_OK : ZT_EXIT_DIFFERS;
}

/* What the program calls the file beside it goes into its text: nothing but plain characters. @return false: it has others. */
static bool side_name(const char *path, char *name, size_t size)
{
    const char *const slash = strrchr(path, '/');
    snprintf(name, size, "%s.bin", slash ? slash + 1 : path);
    for (const char *p = name; *p != '\0'; p++)
        if (*p <= 0x20 || *p >= 0x7f || *p == '"' || *p == '\\' || *p == '?')
            return false;
    return true;
}

static int run(int argc, char **argv)
{
    zt_parser parser;
    zr_options replay;
    const char *output = NULL, *format = "c";
    bool force = false, for_c = false;
    char soft[4096], side[300];
    zr_options_default(&replay);
    replay.timeout_ns = 2000000000u;
    zx_options o = {.replay = &replay, .progress = show_progress};
    zt_parser_init(&parser, &zt_command_export, argc, argv);
    for (int id; (id = zt_option_next(&parser)) != 0;) {
        if (id == ZT_OPTION_HELP)
            return zt_finish_output(ZT_EXIT_OK);
        if (id == ZT_OPTION_ERROR)
            return ZT_EXIT_USAGE;
        force |= id == FORCE;
        if (id == FORMAT)
            format = parser.value;
        for_c |= id == EARLY || id == LATE || id == DRIVER || id == TIMEOUT;
        if (id == OUTPUT)
            output = parser.value;
        if (id == DRIVER)
            replay.driver = parser.value;
        if ((id == EARLY || id == LATE) && !parse_point(parser.value, id == EARLY ? &o.early : &o.late))
            return zt_usage_error(&zt_command_export, "--%s wants a call as #12 or a command's execution as #12@2, not '%s'",
                                  id == EARLY ? "early" : "late", parser.value);
        if (id == TIMEOUT && (!zt_parse_time(parser.value, &replay.timeout_ns) || replay.timeout_ns == 0))
            return zt_usage_error(&zt_command_export, "--timeout wants a time as 500ms or 10s, not '%s'", parser.value);
    }
    if ((o.early.call == 0) != (o.late.call == 0))
        return zt_usage_error(&zt_command_export, "--early and --late go together, but one is missing");
    if (output != NULL && strlen(output) > 4090)
        return zt_usage_error(&zt_command_export, "the name given with -o is too long");
    if (for_c && strcmp(format, "c") != 0)
        return zt_usage_error(&zt_command_export, "--early, --late, --driver and --timeout are for --format=c, not for %s", format);
    zt_trace *trace;
    const int opened = strcmp(format, "json") == 0 ? zt_open_operand(&parser, &trace) : zt_open_calls(&parser, &trace);
    if (opened != ZT_EXIT_OK)
        return opened;
    const char *const path = argv[parser.at], *const slash = strrchr(path, '/');
    const int free_to_write = check_outputs(path, output, force, false);
    if (free_to_write != ZT_EXIT_OK) {
        zt_trace_close(trace);
        return free_to_write;
    }
    if (strcmp(format, "c") != 0) {
        const int status = zt_export_other(trace, path, format, output, force);
        zt_trace_close(trace);
        return zt_finish_output(status);
    }
    snprintf(soft, sizeof(soft), "%s/libze_soft.so.1", zt_library_folder());
    replay.soft_library = soft;
    o.title = slash ? slash + 1 : path;
    if (output != NULL && strcmp(output, "-") != 0 && side_name(output, side, sizeof(side)))
        o.side = side;
    zx_program program;
    zt_error error;
    int status = zx_export_c(&program, trace, &o, &error);
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    if (status == ZT_OK) {
        zt_tell_health(trace, path);
        status = program.side != NULL ? check_outputs(path, output, force, true) : ZT_EXIT_OK;
        if (status == ZT_EXIT_OK)
            status = write_program(&program, output, force);
        free(program.text);
        free(program.side);
    } else {
        zt_complain("%s: %s", path, error.text);
        status = status == ZT_E_USAGE || status == ZT_E_MEMORY || status == ZT_E_LIMIT ? ZT_EXIT_CANNOT : ZT_EXIT_DAMAGED;
    }
    zt_trace_close(trace);
    return zt_finish_output(status);
}

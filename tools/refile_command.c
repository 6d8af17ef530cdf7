/* SPDX-License-Identifier: MIT */
#include "refile_command.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int zt_refuse_same(const zt_command *command, const char *in, const char *out)
{
    struct stat a, b;
    const int of_in = strcmp(in, "-") == 0 ? fstat(STDIN_FILENO, &a) : stat(in, &a);
    const int of_out = strcmp(out, "-") == 0 ? fstat(STDOUT_FILENO, &b) : stat(out, &b);
    if (of_in != 0 || of_out != 0 || !S_ISREG(a.st_mode) || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
        return -1;
    return zt_usage_error(command, "%s and %s are the same file; name another one to write", in, out);
}

int zt_refile_parse(const zt_command *command, int argc, char **argv, int (*take)(zt_refile_wishes *wishes, int id, const char *value),
                    zt_refile_wishes *w)
{
    zt_parser parser;
    int operands = 0;
    zt_parser_init(&parser, command, argc, argv);
    for (;;) {
        const int id = zt_option_next(&parser);
        int status = -1;
        if (id == 0 && parser.at >= argc)
            break;
        if (id == ZT_OPTION_HELP)
            return zt_finish_output(ZT_EXIT_OK);
        if (id == ZT_OPTION_ERROR)
            return command->usage_status;
        if (id == 0)
            w->in = argv[parser.at++], operands++;
        else if (id == ZT_REFILE_OUTPUT)
            w->out = parser.value;
        else if (id == ZT_REFILE_FORCE)
            w->how.overwrite = true;
        else if (id == ZT_REFILE_QUIET)
            w->quiet = true;
        else if (id == ZT_REFILE_JSON)
            w->json = true;
        else
            status = take(w, id, parser.value);
        if (status >= 0)
            return status;
    }
    if (operands != 1)
        return zt_usage_error(command, "%s wants one trace, but was given %s; 'zetrace help %s' tells more", command->name, zt_count((unsigned)operands, "operand").text,
                              command->name);
    if (w->out == NULL || w->out[0] == '\0')
        return zt_usage_error(command, "%s wants -o OUT, the trace to write", command->name);
    if (strcmp(w->out, "-") == 0 && isatty(STDOUT_FILENO))
        return zt_usage_error(command, "%s does not write a trace to a terminal; name a file, or send the output elsewhere", command->name);
    return zt_tell_missing(w->in) ? command->usage_status : zt_refuse_same(command, w->in, w->out);
}

int zt_refile_failed(int status, const zt_error *error)
{
    zt_complain("%s%s", error->text, status == ZT_E_EXISTS ? "; give another name with -o, or -f" : "");
    switch (status) {
    case ZT_E_FOREIGN:
    case ZT_E_NEWER:
    case ZT_E_DAMAGED:
        return ZT_EXIT_DAMAGED;
    case ZT_E_EXISTS:
    case ZT_E_USAGE:
        return ZT_EXIT_USAGE;
    default:
        return ZT_EXIT_CANNOT;
    }
}

void zt_refile_step(void *progress, uint64_t done, uint64_t total)
{
    zt_progress *const p = progress;
    p->total = total;
    zt_progress_step(p, done);
}

/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool zt_tell_missing(const char *path)
{
    if (strcmp(path, "-") == 0 || access(path, F_OK) == 0 || errno != ENOENT)
        return false;
    zt_complain("%s: there is no such file; give a trace, as 'zetrace record' writes them", path);
    return true;
}

int zt_open_operand(const zt_parser *parser, zt_trace **trace)
{
    zt_error error = {0};
    const int operands = parser->argc - parser->at;
    if (operands != 1)
        return zt_usage_error(parser->command, "%s wants one trace, but was given %s; 'zetrace help %s' tells more",
                              parser->command->name, zt_count((unsigned)operands, "operand").text, parser->command->name);
    const char *const path = parser->argv[parser->at];
    const int status = zt_trace_open(trace, path, &error);
    if (status == ZT_OK)
        return ZT_EXIT_OK;
    if (status != ZT_E_IO || !zt_tell_missing(path))
        zt_complain("%s", error.text);
    return status == ZT_E_IO || status == ZT_E_USAGE ? parser->command->usage_status : ZT_EXIT_DAMAGED;
}

int zt_open_calls(const zt_parser *parser, zt_trace **trace)
{
    const zt_call *call;
    const char *const path = parser->argv[parser->at];
    const int opened = zt_open_operand(parser, trace);
    if (opened != ZT_EXIT_OK)
        return opened;
    const int status = zt_trace_next(*trace, &call);
    if (status == ZT_OK) {
        zt_trace_seek(*trace, 1);
        return ZT_EXIT_OK;
    }
    const zt_health *const h = zt_trace_health(*trace);
    if (status == ZT_END && h->complete && h->first_problem[0] == '\0') {
        zt_complain("%s: the trace is whole, and has no calls", path);
        return ZT_EXIT_OK;
    }
    if (status == ZT_E_MEMORY)
        zt_complain("%s: not enough memory to read it", path);
    else if (h->first_problem[0] != '\0')
        zt_complain("%s; no call was found, 'zetrace info' shows what else there is", h->first_problem);
    else
        zt_complain("%s: the recording was not finished, and no call was found; 'zetrace info' shows what else there is", path);
    zt_trace_close(*trace);
    *trace = NULL;
    return status == ZT_E_MEMORY ? ZT_EXIT_CANNOT : ZT_EXIT_DAMAGED;
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int zt_check_output(const zt_command *command, const char *in, const char *out, bool overwrite)
{
    char partial[4096]; /* what a trace is called until it is finished, and what takes the place of an older one */
    struct stat st;
    if (strcmp(in, "-") == 0)
        in = "/dev/stdin";
    if (same_file(in, out))
        return zt_usage_error(command, "-o %s is the trace %s itself, which would be overwritten; give another name", out, in);
    if ((size_t)snprintf(partial, sizeof(partial), "%s.partial", out) < sizeof(partial) && same_file(in, partial))
        return zt_usage_error(command, "-o %s is called %s while it is written, which is the trace itself; give another name", out, partial);
    if (strcmp(out, "-") == 0)
        return zt_usage_error(command, "%s writes a file and not to standard output; name one with -o", command->name);
    if (!zt_may_replace(out))
        return zt_usage_error(command, "-o %s is no regular file, which could be replaced; give another name", out);
    if (!overwrite && lstat(out, &st) == 0)
        return zt_usage_error(command, "%s exists and is not overwritten; give another name with -o, or -f", out);
    return ZT_EXIT_OK;
}

void zt_tell_health(const zt_trace *trace, const char *path)
{
    const zt_health *const h = zt_trace_health(trace);
    if (h->first_problem[0] != '\0')
        zt_complain("%s", h->first_problem);
    else if (!h->complete)
        zt_complain("%s: the recording was not finished; what there is was read", path);
}

bool zt_failures_left_out(const zt_trace *trace)
{
    const zt_session *const s = zt_trace_session(trace);
    for (uint32_t i = 0; i < s->n_settings; i++)
        if (strcmp(s->settings[i].name, "left-out") == 0 && strcmp(s->settings[i].value, "failures") == 0)
            return true;
    return false;
}

void zt_tell_dropped(const zt_trace *trace, const char *path)
{
    const zt_ending *const ending = zt_trace_ending(trace);
    const uint64_t dropped = ending ? ending->dropped : 0;
    if (dropped > 0)
        zt_complain("%s: %s %s dropped while it was recorded; what is said stands on the others", path, zt_count(dropped, "call").text, zt_was(dropped));
}

void zt_shell_word(FILE *out, const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+,-./:=@_";
    if (*text != '\0' && text[strspn(text, plain)] == '\0') {
        fputs(text, out);
        return;
    }
    fputc('\'', out);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    fputc('\'', out);
}

void zt_json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if (*p < 0x20 || *p >= 0x7f)
            fprintf(out, "\\u%04x", *p);
        else
            fputc(*p, out);
    }
    fputc('"', out);
}

/* SPDX-License-Identifier: MIT */
/* The subcommands, each in its own file, and what they share. */
#ifndef ZT_COMMANDS_H
#define ZT_COMMANDS_H

#include <stdio.h>

#include "format.h"
#include "options.h"

/* In the order of 'zetrace help'. */
#define ZT_COMMANDS(X) \
    X(record) \
    X(info) \
    X(dump) \
    X(replay) \
    X(whois) \
    X(check) \
    X(isolate) \
    X(explore) \
    X(graph) \
    X(export) \
    X(import) \
    X(trim) \
    X(diff) \
    X(leaks) \
    X(extract) \
    X(verify) \
    X(repair) \
    X(repack) \
    X(doctor) \
    X(help)
#define ZT_DECLARE(name) extern const zt_command zt_command_##name;
ZT_COMMANDS(ZT_DECLARE)

const zt_command *zt_command_find(const char *name);
void zt_print_commands(FILE *out);
int zt_no_command(const char *name);

/* Complains if there is no such file. @return whether it did */
bool zt_tell_missing(const char *path);
/* Opens the only operand as a trace; complains, also about damage. @return ZT_EXIT_OK, or the status to exit with. */
int zt_open_operand(const zt_parser *parser, zt_trace **trace);
/* The same for commands that say something about calls: a trace of which damage has left none is ZT_EXIT_DAMAGED. */
int zt_open_calls(const zt_parser *parser, zt_trace **trace);
/*
 * Before anything is done: complains if `out` is the file `in`, by whatever name, or would take it away while it is written, or if it
 * exists and is not to be overwritten. @return ZT_EXIT_OK or the command's usage status.
 */
int zt_check_output(const zt_command *command, const char *in, const char *out, bool overwrite);
/* Once at the end: says on stderr what of the trace could not be read. */
void zt_tell_health(const zt_trace *trace, const char *path);
/* Whether it was cut from a recording that failed, and the calls that failed are not in it: then its end says nothing of what is. */
bool zt_failures_left_out(const zt_trace *trace);
/* The doubt that calls which are not there leave in what is concluded from the rest. */
void zt_tell_dropped(const zt_trace *trace, const char *path);
/*
 * A call's line, or its JSON object, with where in the program it was made below it or in it. @return to be freed; NULL when memory is out.
 */
char *zt_with_backtrace(zt_trace *trace, const zt_call *call, const char *line, bool as_json);
/* The whole trace as 'zetrace graph' draws it. Complains itself. @return the status to exit with. */
int zt_draw_dot(FILE *out, zt_trace *trace, const char *path);
/* `text` as a JSON string with its quotes. */
void zt_json_string(FILE *out, const char *text);
/* `text` as one word of a shell's command line, quoted if need be. */
void zt_shell_word(FILE *out, const char *text);

#endif

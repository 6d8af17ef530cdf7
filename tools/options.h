/* SPDX-License-Identifier: MIT */
/*
 * Options are declared once, in a table per subcommand; parsing, --help, the pages under docs/ and shell completion come from it.
 *
 * A subcommand is one file: it defines `const zt_command zt_command_NAME` and its run function, which loops over
 * zt_option_next. Usage errors print one sentence and give the command's usage status.
 */
#ifndef ZT_OPTIONS_H
#define ZT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum zt_exit { ZT_EXIT_OK = 0, ZT_EXIT_DIFFERS = 1, ZT_EXIT_USAGE = 2, ZT_EXIT_DAMAGED = 3, ZT_EXIT_CANNOT = 125 };

typedef struct zt_option {
    int id;            /* > 0, the subcommand's own enum */
    char letter;       /* short form, or 0 */
    const char *name;  /* long form without dashes */
    const char *value; /* what stands behind it, "FILE"; NULL: a flag. "a|b|c": one of these, checked by the parser */
    const char *help;  /* one line or more, without full stop */
} zt_option;

typedef struct zt_command {
    const char *name;
    const char *summary;        /* one line */
    const char *synopsis;       /* operands: "TRACE", "-- PROGRAM [ARG]..." */
    const zt_option *options;   /* ends with an id of 0; -h/--help is added by the parser */
    const char *more;           /* paragraphs behind the options in --help and the manual page, or NULL */
    int usage_status;           /* exit status of a usage error: ZT_EXIT_USAGE, or 125 for record */
    int (*run)(int argc, char **argv);
} zt_command;

extern const zt_command *const zt_commands[]; /* NULL at the end */

typedef struct zt_parser {
    const zt_command *command;
    int argc;
    char **argv;               /* argv[0] is the subcommand's name */
    int at;                    /* next argument; the first operand once zt_option_next gave 0 */
    const char *cluster;       /* rest of -abc */
    bool operands;             /* -- was seen */
    const char *value;         /* of the option just given */
} zt_parser;

/* zt_option_next gives an option's id, 0 at the first operand, or one of these. zt_parser_init has put options that stand behind operands before them,
 * unless the operands are a program with options of its own: the synopsis begins with "--". */
enum { ZT_OPTION_ERROR = -1, ZT_OPTION_HELP = -2 }; /* already told; exit with usage_status or 0 */
void zt_parser_init(zt_parser *parser, const zt_command *command, int argc, char **argv);
int zt_option_next(zt_parser *parser);
/* The same for who takes options behind operands as well, 0 at the end: operands come into `list`, `most` at the most; `n` counts all. */
int zt_option_anywhere(zt_parser *parser, char **list, int most, int *n);

/* A name that a stranger has chosen, as of a trace or a file: control characters are written out, for they would steer a terminal. */
void zt_put_text(FILE *out, const char *text);
/* "zetrace: SENTENCE" on stderr, by zt_put_text. */
void zt_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Complains and gives the command's usage status. */
int zt_usage_error(const zt_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
void zt_print_help(const zt_command *command);

/* "12", "4k", "3Mi", "1G". @return false if it is none. */
bool zt_parse_number(const char *text, uint64_t *number);
/* "250ms", "3s", "10us", "7ns"; a bare number is seconds. In ns. */
bool zt_parse_time(const char *text, uint64_t *ns);
/* "#41", "41". */
bool zt_parse_call(const char *text, uint64_t *number);
/* "1 call", "2 calls", "3 processes": for one printf; the text lives until its end. */
typedef struct zt_counted {
    char text[64];
} zt_counted;
zt_counted zt_count(uint64_t n, const char *what);
/* "is", "was" for one, else "are", "were". */
const char *zt_is(uint64_t n);
const char *zt_was(uint64_t n);
/* Shell pattern with * ? [..]. */
bool zt_glob(const char *pattern, const char *text);

/* Flushes stdout. A broken pipe is no error. @return status, or 1 after a complaint if the output could not be written. */
int zt_finish_output(int status);

/* Folder with libzetrace-*.so and libze_soft.so.1: ZETRACE_LIBDIR, or found from the command's own place. */
const char *zt_library_folder(void);

/* Progress on a terminal for work over a second; silent elsewhere. total 0: not known. */
typedef struct zt_progress {
    const char *what;
    uint64_t total, done, start_ns, shown_ns;
    bool terminal;
} zt_progress;
void zt_progress_start(zt_progress *progress, const char *what, uint64_t total);
void zt_progress_step(zt_progress *progress, uint64_t done);
void zt_progress_end(zt_progress *progress);

#endif

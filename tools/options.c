/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Of 8-bit terminals, and of UTF-8 ones behind 0xc2. */
static bool is_upper_control(const unsigned char *p, unsigned char before)
{
    return *p == 0xc2 ? p[1] >= 0x80 && p[1] < 0xa0 : *p >= 0x80 && *p < 0xa0 && (before < 0x80 || before == 0xc2);
}

void zt_put_text(FILE *out, const char *text)
{
    unsigned char before = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; before = *p++) {
        if (*p == '\n')
            fputs("\\n", out);
        else if (*p < 0x20 || *p == 0x7f || is_upper_control(p, before))
            fprintf(out, "\\x%02x", *p);
        else
            fputc(*p, out);
    }
}

static void complain(const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    fputs("zetrace: ", stderr);
    zt_put_text(stderr, text ? text : format);
    fputc('\n', stderr);
    free(text);
}

void zt_complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(format, args);
    va_end(args);
}

int zt_usage_error(const zt_command *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(format, args);
    va_end(args);
    return command->usage_status;
}

/* Whether the argument behind this one is its value. */
static bool value_follows(const zt_command *command, const char *argument)
{
    const bool is_long = argument[1] == '-';
    for (const char *letter = argument + 1; *letter != '\0'; letter++) {
        for (const zt_option *o = command->options; o->id != 0; o++)
            if (o->value != NULL && (is_long ? strcmp(o->name, argument + 2) == 0 : o->letter == *letter))
                return is_long || letter[1] == '\0';
        if (is_long)
            break;
    }
    return false;
}

/* 'info TRACE --json' is 'info --json TRACE': the operands go to the end, or behind a "--". */
static void put_options_first(const zt_command *command, int argc, char **argv)
{
    char **const operands = malloc((size_t)argc * sizeof(*operands));
    int n = 0, to = 1, at = 1;
    if (operands == NULL)
        return;
    for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
        if (argv[at][0] != '-' || argv[at][1] == '\0') {
            operands[n++] = argv[at];
            continue;
        }
        const bool two = value_follows(command, argv[at]) && at + 1 < argc;
        argv[to++] = argv[at];
        if (two)
            argv[to++] = argv[++at];
    }
    if (at < argc)
        argv[to++] = argv[at];
    memcpy(argv + to, operands, (size_t)n * sizeof(*operands));
    free(operands);
}

void zt_parser_init(zt_parser *parser, const zt_command *command, int argc, char **argv)
{
    if (strncmp(command->synopsis, "--", 2) != 0)
        put_options_first(command, argc, argv);
    *parser = (zt_parser){.command = command, .argc = argc, .argv = argv, .at = 1};
}

/* Whether `value` is one of the words in "a|b|c", where a word that ends in ... or has an upper-case letter stands for any text. */
static bool allowed(const char *choices, const char *value)
{
    const size_t length = strlen(value);
    for (const char *word = choices; word != NULL && *word;) {
        const size_t n = strcspn(word, "|");
        bool free_text = false;
        for (size_t i = 0; i < n; i++)
            free_text |= word[i] >= 'A' && word[i] <= 'Z';
        if (free_text || (n == length && memcmp(word, value, n) == 0))
            return true;
        word += n + (word[n] == '|');
    }
    return false;
}

static int take_value(zt_parser *parser, const zt_option *option, const char *value, const char *written)
{
    if (strchr(option->value, '|') != NULL && !allowed(option->value, value)) {
        zt_complain("%s: option %s wants one of %s, but was given '%s'", parser->command->name, written, option->value, value);
        return ZT_OPTION_ERROR;
    }
    parser->value = value;
    return option->id;
}

static int unknown(const zt_parser *parser, const char *written)
{
    zt_complain("%s: there is no option '%s'; 'zetrace help %s' lists them", parser->command->name, written,
                parser->command->name);
    return ZT_OPTION_ERROR;
}

static int next_short(zt_parser *parser)
{
    const char letter = *parser->cluster++;
    const char written[3] = {'-', letter, 0};
    if (letter == 'h') {
        zt_print_help(parser->command);
        return ZT_OPTION_HELP;
    }
    for (const zt_option *o = parser->command->options; o->id != 0; o++) {
        if (o->letter != letter)
            continue;
        if (o->value == NULL)
            return o->id;
        const char *value = parser->cluster;
        parser->cluster = NULL;
        if (*value != '\0')
            return take_value(parser, o, value, written);
        if (parser->at < parser->argc)
            return take_value(parser, o, parser->argv[parser->at++], written);
        zt_complain("%s: option %s wants a value (%s), but nothing follows it", parser->command->name, written, o->value);
        return ZT_OPTION_ERROR;
    }
    return unknown(parser, written);
}

static int next_long(zt_parser *parser, const char *argument)
{
    const char *const name = argument + 2, *const equals = strchr(name, '=');
    const size_t length = equals ? (size_t)(equals - name) : strlen(name);
    if (length == 4 && memcmp(name, "help", 4) == 0) {
        zt_print_help(parser->command);
        return ZT_OPTION_HELP;
    }
    for (const zt_option *o = parser->command->options; o->id != 0; o++) {
        if (strlen(o->name) != length || memcmp(o->name, name, length) != 0)
            continue;
        char written[64];
        snprintf(written, sizeof(written), "--%s", o->name);
        if (o->value == NULL) {
            if (equals == NULL)
                return o->id;
            zt_complain("%s: option %s takes no value, but was given '%s'", parser->command->name, written, equals + 1);
            return ZT_OPTION_ERROR;
        }
        if (equals != NULL)
            return take_value(parser, o, equals + 1, written);
        if (parser->at < parser->argc)
            return take_value(parser, o, parser->argv[parser->at++], written);
        zt_complain("%s: option %s wants a value (%s), but nothing follows it", parser->command->name, written, o->value);
        return ZT_OPTION_ERROR;
    }
    return unknown(parser, argument);
}

int zt_option_next(zt_parser *parser)
{
    parser->value = NULL;
    if (parser->cluster != NULL && *parser->cluster != '\0')
        return next_short(parser);
    parser->cluster = NULL;
    if (parser->operands || parser->at >= parser->argc)
        return 0;
    const char *const argument = parser->argv[parser->at];
    if (argument[0] != '-' || argument[1] == '\0')
        return 0;
    parser->at++;
    if (strcmp(argument, "--") == 0) {
        parser->operands = true;
        return 0;
    }
    if (argument[1] == '-')
        return next_long(parser, argument);
    parser->cluster = argument + 1;
    return next_short(parser);
}

int zt_option_anywhere(zt_parser *parser, char **list, int most, int *n)
{
    int id;
    while ((id = zt_option_next(parser)) == 0 && parser->at < parser->argc) {
        if (*n < most)
            list[*n] = parser->argv[parser->at];
        parser->at++;
        ++*n;
    }
    return id;
}

bool zt_parse_number(const char *text, uint64_t *number)
{
    static const struct {
        const char *suffix;
        uint64_t factor;
    } suffixes[] = {{"", 1},       {"k", 1000},        {"K", 1000},        {"M", 1000000},
                    {"G", 1000000000}, {"Ki", 1ull << 10}, {"Mi", 1ull << 20}, {"Gi", 1ull << 30}};
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    const uint64_t value = strtoull(text, &end, 10);
    if (errno != 0)
        return false;
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
        if (strcmp(end, suffixes[i].suffix) == 0)
            return !__builtin_mul_overflow(value, suffixes[i].factor, number);
    return false;
}

bool zt_parse_time(const char *text, uint64_t *ns)
{
    static const struct {
        const char *suffix;
        double factor;
    } suffixes[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    const double value = strtod(text, &end);
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
        if (strcmp(end, suffixes[i].suffix) == 0 && value * suffixes[i].factor < 9e18) {
            *ns = (uint64_t)(value * suffixes[i].factor);
            return true;
        }
    return false;
}

bool zt_parse_call(const char *text, uint64_t *number)
{
    char *end;
    text += *text == '#';
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && *number > 0;
}

zt_counted zt_count(uint64_t n, const char *what)
{
    const size_t length = strlen(what);
    zt_counted c;
    snprintf(c.text, sizeof(c.text), "%llu %s%s", (unsigned long long)n, what, n == 1 ? "" : length > 0 && what[length - 1] == 's' ? "es" : "s");
    return c;
}

const char *zt_is(uint64_t n)
{
    return n == 1 ? "is" : "are";
}

const char *zt_was(uint64_t n)
{
    return n == 1 ? "was" : "were";
}

bool zt_glob(const char *pattern, const char *text)
{
    return fnmatch(pattern, text, 0) == 0;
}

int zt_finish_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (errno == EPIPE)
        return status;
    zt_complain("the output could not be written: %s", strerror(errno));
    return status ? status : 1;
}

const char *zt_library_folder(void)
{
    static char folder[PATH_MAX];
    const char *const given = getenv("ZETRACE_LIBDIR");
    if (given != NULL && *given != '\0') {
        if (realpath(given, folder) == NULL)
            snprintf(folder, sizeof(folder), "%s", given);
        return folder;
    }
    char self[PATH_MAX], candidate[PATH_MAX + 64];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n > 0) {
        self[n] = '\0';
        char *const slash = strrchr(self, '/');
        if (slash != NULL)
            *slash = '\0';
        static const char *const places[] = {"../" ZETRACE_INSTALL_LIBDIR "/zetrace", "../lib/zetrace"};
        for (size_t i = 0; i < 2; i++) {
            snprintf(candidate, sizeof(candidate), "%s/%s", self, places[i]);
            if (realpath(candidate, folder) != NULL)
                return folder;
        }
    }
    snprintf(folder, sizeof(folder), "%s", ZETRACE_FULL_LIBDIR);
    return folder;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void zt_progress_start(zt_progress *p, const char *what, uint64_t total)
{
    *p = (zt_progress){.what = what, .total = total, .start_ns = now_ns(), .terminal = isatty(STDERR_FILENO)};
}

void zt_progress_step(zt_progress *p, uint64_t done)
{
    p->done = done;
    if (!p->terminal)
        return;
    const uint64_t now = now_ns();
    if (now - p->start_ns < 1000000000u || now - p->shown_ns < 200000000u)
        return;
    p->shown_ns = now;
    const double seconds = (double)(now - p->start_ns) / 1e9, rate = (double)done / seconds;
    if (p->total > done && done > 0)
        fprintf(stderr, "\r%s: %llu of %llu, %.0f/s, %.0f s left\033[K", p->what, (unsigned long long)done,
                (unsigned long long)p->total, rate, (double)(p->total - done) / rate);
    else
        fprintf(stderr, "\r%s: %llu, %.0f/s\033[K", p->what, (unsigned long long)done, rate);
}

void zt_progress_end(zt_progress *p)
{
    if (p->shown_ns != 0)
        fputs("\r\033[K", stderr);
}

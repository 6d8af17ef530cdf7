/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <ctype.h>
#include <string.h>

enum { WIDTH = 100, COLUMN = 33 }; /* of all, and where what an option means begins */

static const zt_option options[] = {{0}};

/* Words, with a space for each line's end; the first stands in column `at`, further lines begin in column `indent`. */
static void fill(const char *text, size_t length, size_t at, size_t indent)
{
    for (size_t i = 0, word; i < length; i += word) {
        i += strspn(text + i, " \n");
        word = strcspn(text + i, " \n");
        if (i + word > length || word == 0)
            break;
        if (at > indent && at + 1 + word > WIDTH) {
            printf("\n%*s", (int)indent, "");
            at = indent;
        } else if (at > indent) {
            putchar(' ');
            at++;
        }
        printf("%.*s", (int)word, text + i);
        at += word;
    }
    putchar('\n');
}

static void print_option(char letter, const char *name, const char *value, const char *help)
{
    const char short_form[] = {' ', ' ', letter ? '-' : ' ', letter ? letter : ' ', letter ? ',' : ' ', ' ', '\0'};
    const int width = printf("%s--%s%s%s", short_form, name, value ? "=" : "", value ? value : "");
    printf(width < COLUMN ? "%*s" : "\n%*s", width < COLUMN ? COLUMN - width : COLUMN, "");
    fill(help, strlen(help), COLUMN, COLUMN);
}

void zt_print_help(const zt_command *command)
{
    printf("Usage: zetrace %s [OPTION]...%s%s\n%c%s.\n\n", command->name, command->synopsis[0] ? " " : "", command->synopsis, toupper((unsigned char)command->summary[0]),
           command->summary + 1);
    for (const zt_option *o = command->options; o->id != 0; o++)
        print_option(o->letter, o->name, o->value, o->help);
    print_option('h', "help", NULL, "show this");
    if (command->more != NULL)
        putchar('\n');
    for (const char *line = command->more; line != NULL && *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t n = strcspn(line, "\n"), indent = strspn(line, " ");
        printf("%*s", (int)indent, "");
        if (n <= WIDTH)
            printf("%.*s\n", (int)(n - indent), line + indent);
        else
            fill(line + indent, n - indent, indent, indent);
    }
}

static int run_help(int argc, char **argv)
{
    zt_parser parser;
    zt_parser_init(&parser, &zt_command_help, argc, argv);
    const int option = zt_option_next(&parser);
    if (option != 0)
        return option == ZT_OPTION_HELP ? zt_finish_output(ZT_EXIT_OK) : ZT_EXIT_USAGE;
    if (parser.at == argc) {
        zt_print_commands(stdout);
        return zt_finish_output(ZT_EXIT_OK);
    }
    const zt_command *const command = zt_command_find(argv[parser.at]);
    if (command == NULL)
        return zt_no_command(argv[parser.at]);
    zt_print_help(command);
    return zt_finish_output(ZT_EXIT_OK);
}

const zt_command zt_command_help = {"help", "tell about a command", "[COMMAND]", options, NULL, ZT_EXIT_USAGE, run_help};

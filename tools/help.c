/* SPDX-License-Identifier: MIT */
#include "commands.h"

static const zt_option options[] = {{0}};

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

const zt_command zt_command_help = {"help", "Tells about a command", "[COMMAND]", options, NULL, ZT_EXIT_USAGE, run_help};

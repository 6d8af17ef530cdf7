/* SPDX-License-Identifier: MIT */
/* The zetrace command: finds the subcommand and runs it. */
#include "options.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "manual.h"

#define ENTRY(name) &zt_command_##name,
const zt_command *const zt_commands[] = {ZT_COMMANDS(ENTRY) NULL};

const zt_command *zt_command_find(const char *name)
{
    for (size_t i = 0; zt_commands[i] != NULL; i++)
        if (strcmp(zt_commands[i]->name, name) == 0)
            return zt_commands[i];
    return NULL;
}

void zt_print_commands(FILE *out)
{
    fputs("Usage: zetrace COMMAND [OPTION]... ARGUMENT...\n"
          "Records the Level Zero calls of a program, shows them, and runs them again.\n\n",
          out);
    for (size_t i = 0; zt_commands[i] != NULL; i++)
        fprintf(out, "  %-10s %s\n", zt_commands[i]->name, zt_commands[i]->summary);
    fputs("\n'zetrace help COMMAND' tells more; 'zetrace --version' the version.\n", out);
}

/* How many letters have to be put in, left out or changed; 9 for what is too long. */
static unsigned apart(const char *a, const char *b)
{
    unsigned row[16];
    const size_t n = strlen(b);
    if (n >= 16 || strlen(a) >= 16)
        return 9;
    for (size_t k = 0; k <= n; k++)
        row[k] = (unsigned)k;
    for (size_t i = 0; a[i] != '\0'; i++) {
        unsigned corner = row[0]++;
        for (size_t k = 0; k < n; k++) {
            const unsigned changed = corner + (a[i] != b[k]), longer = row[k] + 1, shorter = row[k + 1] + 1;
            corner = row[k + 1];
            row[k + 1] = changed < longer ? (changed < shorter ? changed : shorter) : (longer < shorter ? longer : shorter);
        }
    }
    return row[n];
}

int zt_no_command(const char *name)
{
    const char *meant = NULL;
    for (size_t i = 0; zt_commands[i] != NULL && meant == NULL; i++)
        if (apart(name, zt_commands[i]->name) <= (strlen(name) > 4 ? 2 : 1))
            meant = zt_commands[i]->name;
    zt_complain("there is no command '%s'%s%s%s; 'zetrace help' lists them", name, meant ? " ('" : "", meant ? meant : "",
                meant ? "'?)" : "");
    return ZT_EXIT_USAGE;
}

/*
 * A file opened where 0, 1 or 2 was closed would be taken for standard input or output, and messages would go into a trace. What stands there
 * instead fails as a closed one does, and is closed for a recorded program.
 */
static void hold_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            open("/dev/null", (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

int main(int argc, char **argv)
{
    hold_standard_descriptors();
    signal(SIGPIPE, SIG_IGN); /* a reader that has seen enough is no error: writes then fail with EPIPE */
    if (argc < 2) {
        zt_print_commands(stderr);
        return ZT_EXIT_USAGE;
    }
    const char *const name = argv[1];
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("zetrace %s (Level Zero API %u.%u)\n", ZETRACE_VERSION, zt_api_version >> 16, zt_api_version & 0xffff);
        return zt_finish_output(ZT_EXIT_OK);
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        zt_print_commands(stdout);
        return zt_finish_output(ZT_EXIT_OK);
    }
    if (strcmp(name, "--generate") == 0)
        return zt_generate(argc - 1, argv + 1);
    const zt_command *const command = zt_command_find(name);
    return command ? command->run(argc - 1, argv + 1) : zt_no_command(name);
}

/* SPDX-License-Identifier: MIT */
/* What the subcommands share that make a trace file of another: IN -o OUT. */
#ifndef ZT_TOOLS_REFILE_H
#define ZT_TOOLS_REFILE_H

#include "commands.h"
#include "refile.h"

/*
 * Complains if OUT is the very file that is read, under whatever name. @return -1, or the status of a usage error.
 */
int zt_refuse_same(const zt_command *command, const char *in, const char *out);

typedef struct zt_refile_wishes {
    const char *in, *out;
    zt_refile_options how;
    bool quiet, json;
} zt_refile_wishes;

enum { ZT_REFILE_OUTPUT = 100, ZT_REFILE_FORCE, ZT_REFILE_QUIET, ZT_REFILE_JSON };

/*
 * Parses options and the operand, options behind it too; `take` gets the subcommand's own and gives -1, or the status to exit with.
 * @return -1, or the status to exit with.
 */
int zt_refile_parse(const zt_command *command, int argc, char **argv, int (*take)(zt_refile_wishes *wishes, int id, const char *value),
                    zt_refile_wishes *wishes);
/* Complains about a failed zt_repair or zt_repack. @return the status to exit with. */
int zt_refile_failed(int status, const zt_error *error);
void zt_refile_step(void *progress, uint64_t done, uint64_t total);

#endif

/* SPDX-License-Identifier: MIT */
/* For the build: zetrace --generate man FOLDER | completion FILE | options COMMAND. */
#ifndef ZT_MANUAL_H
#define ZT_MANUAL_H

#include "commands.h"

int zt_generate(int argc, char **argv);

#endif

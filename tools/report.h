/* SPDX-License-Identifier: MIT */
#ifndef ZT_REPORT_H
#define ZT_REPORT_H

#include <stdio.h>

#include "replay.h"

/* What 'zetrace replay --json' prints; docs/replay.md has the fields. */
void zt_print_report_json(FILE *out, const zr_report *report);

#endif

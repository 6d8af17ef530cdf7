/* SPDX-License-Identifier: MIT */
#ifndef ZT_EXPORT_OTHER_H
#define ZT_EXPORT_OTHER_H

#include "commands.h"

/* 'zetrace export' in the formats that are not C. `output` may be NULL. Complains itself. @return the status to exit with. */
int zt_export_other(zt_trace *trace, const char *path, const char *format, const char *output, bool force);

#endif

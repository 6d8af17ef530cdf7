/* SPDX-License-Identifier: MIT */
#include "commands.h"

int zt_open_operand(const zt_parser *parser, zt_trace **trace)
{
    zt_error error = {0};
    const int operands = parser->argc - parser->at;
    if (operands != 1)
        return zt_usage_error(parser->command, "%s wants one trace, but was given %d operands; 'zetrace help %s' tells more",
                              parser->command->name, operands, parser->command->name);
    const char *const path = parser->argv[parser->at];
    const int status = zt_trace_open(trace, path, &error);
    if (status == ZT_OK)
        return ZT_EXIT_OK;
    zt_complain("%s", error.text);
    return status == ZT_E_IO || status == ZT_E_USAGE ? parser->command->usage_status : ZT_EXIT_DAMAGED;
}

void zt_tell_health(const zt_trace *trace, const char *path)
{
    const zt_health *const h = zt_trace_health(trace);
    if (h->first_problem[0] != '\0')
        zt_complain("%s", h->first_problem);
    else if (!h->complete)
        zt_complain("%s: the recording was not finished; what there is was read", path);
}

void zt_tell_dropped(const zt_trace *trace, const char *path)
{
    const zt_ending *const ending = zt_trace_ending(trace);
    const uint64_t dropped = ending ? ending->dropped : 0;
    if (dropped > 0)
        zt_complain("%s: %llu calls were dropped while it was recorded; what is said stands on the others", path, (unsigned long long)dropped);
}

void zt_json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if (*p < 0x20 || *p >= 0x7f)
            fprintf(out, "\\u%04x", *p);
        else
            fputc(*p, out);
    }
    fputc('"', out);
}

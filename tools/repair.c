/* SPDX-License-Identifier: MIT */
/* zetrace repair: what is readable of a damaged trace, as a trace. */
#include <inttypes.h>

#include "refile_command.h"

static const zt_option options[] = {
    {ZT_REFILE_OUTPUT, 'o', "output", "OUT", "the trace to write; '-' is standard output"},
    {ZT_REFILE_FORCE, 'f', "force", NULL, "overwrite it"},
    {ZT_REFILE_QUIET, 'q', "quiet", NULL, "say nothing of what was kept"},
    {ZT_REFILE_JSON, 0, "json", NULL, "say it machine-readable"},
    {0, 0, NULL, NULL, NULL},
};

static int run(int argc, char **argv);
const zt_command zt_command_repair = {
    .name = "repair",
    .summary = "keep what is readable of a damaged trace",
    .synopsis = "IN -o OUT",
    .options = options,
    .more = "Exit status: 0 written; 2 usage; 3 nothing in IN is readable; 125 it can't be written.\n\n"
            "Options may stand behind IN as well.\n",
    .usage_status = ZT_EXIT_USAGE,
    .run = run,
};

static void tell_json(FILE *out, const zt_refile_wishes *w, const zt_refiled *done, const zt_verdict *v)
{
    fputs("{\"file\":", out);
    zt_json_string(out, w->out);
    fprintf(out, ",\"chunks\":%" PRIu64 ",\"chunks_left_out\":%" PRIu64 ",\"bytes\":%" PRIu64, done->chunks, done->chunks_left_out, done->bytes);
    fprintf(out, ",\"calls\":%" PRIu64 ",\"calls_lost\":%" PRIu64 ",\"lost_s\":%.9f,\"finished\":%s,\"whole\":%s}\n", v->calls, v->calls_lost,
            (double)v->lost_ns / 1e9, v->finished ? "true" : "false", v->whole ? "true" : "false");
}

static void tell_text(FILE *out, const zt_refile_wishes *w, const zt_refiled *done, const zt_verdict *v)
{
    fprintf(out, "%s: %s in %s", w->out, zt_count(v->calls, "call").text, zt_count(done->chunks, "chunk").text);
    if (v->calls_lost > 0)
        fprintf(out, "; %s (%.6f s) %s lost", zt_count(v->calls_lost, "call").text, (double)v->lost_ns / 1e9, zt_is(v->calls_lost));
    if (done->chunks_left_out > 0)
        fprintf(out, "; %s %s left out", zt_count(done->chunks_left_out, "damaged place").text, zt_was(done->chunks_left_out));
    if (!v->session)
        fputs("; program, driver and settings are not known", out);
    fputs(v->finished ? "\n" : "; the recording was not finished, or its end is lost\n", out);
}

static int run(int argc, char **argv)
{
    zt_refile_wishes w = {0};
    zt_refiled done;
    zt_verdict verdict;
    zt_error error = {0};
    zt_progress progress;
    int status = zt_refile_parse(&zt_command_repair, argc, argv, NULL, &w);
    if (status >= 0)
        return status;
    zt_progress_start(&progress, "repair", 0);
    w.how.step = zt_refile_step;
    w.how.ctx = &progress;
    status = zt_repair(w.in, w.out, &w.how, &done, &verdict, &error);
    zt_progress_end(&progress);
    if (status != ZT_OK)
        return zt_refile_failed(status, &error);
    FILE *const out = w.out[0] == '-' && w.out[1] == '\0' ? stderr : stdout;
    if (w.json)
        tell_json(out, &w, &done, &verdict);
    else if (!w.quiet)
        tell_text(out, &w, &done, &verdict);
    return zt_finish_output(ZT_EXIT_OK);
}

/* SPDX-License-Identifier: MIT */
/* zetrace repack: the same trace smaller, or without what is not to be given away. */
#include <inttypes.h>
#include <string.h>

#include "refile_command.h"

enum { LEVEL = 1, DROP };

static const zt_option options[] = {
    {ZT_REFILE_OUTPUT, 'o', "output", "OUT", "the trace to write; '-' is standard output"},
    {ZT_REFILE_FORCE, 'f', "force", NULL, "overwrite it"},
    {LEVEL, 0, "level", "N", "compression, from 1 (fast) to 19 (small); 3"},
    {DROP, 0, "drop", "LIST", "leave out, separated by commas: memory (contents), modules (their binaries), env (the environment)"},
    {ZT_REFILE_QUIET, 'q', "quiet", NULL, "say nothing of what was written"},
    {ZT_REFILE_JSON, 0, "json", NULL, "say it machine-readable"},
    {0, 0, NULL, NULL, NULL},
};

static int run(int argc, char **argv);
const zt_command zt_command_repack = {
    .name = "repack",
    .summary = "compress a trace anew, leave out what is not to be shared",
    .synopsis = "IN -o OUT",
    .options = options,
    .more = "Exit status: 0 written; 1 written, but a part of IN is damaged and was left out; 2 usage; 3 nothing in IN is readable; 125 it can't "
            "be written.\n\n"
            "Options may stand behind IN as well.\n",
    .usage_status = ZT_EXIT_USAGE,
    .run = run,
};

static int take_drop(zt_refile_wishes *w, const char *list)
{
    static const struct {
        const char *name;
        unsigned drop;
    } words[] = {{"memory", ZT_DROP_MEMORY}, {"modules", ZT_DROP_MODULES}, {"env", ZT_DROP_ENVIRONMENT}};
    for (const char *word = list;; word++) {
        const size_t n = strcspn(word, ",");
        size_t i = 0;
        while (i < 3 && (strlen(words[i].name) != n || memcmp(words[i].name, word, n) != 0))
            i++;
        if (i == 3)
            return zt_usage_error(&zt_command_repack, "--drop wants some of memory, modules, env, separated by commas, not '%s'", list);
        w->how.drop |= words[i].drop;
        word += n;
        if (*word == '\0')
            return -1;
    }
}

static int take(zt_refile_wishes *w, int id, const char *value)
{
    uint64_t level;
    if (id == DROP)
        return take_drop(w, value);
    if (!zt_parse_number(value, &level) || level < 1 || level > 19)
        return zt_usage_error(&zt_command_repack, "--level wants a number from 1 to 19, not '%s'", value);
    w->how.level = (int)level;
    return -1;
}

static void tell(FILE *out, const zt_refile_wishes *w, const zt_refiled *done, uint64_t before)
{
    if (w->json) {
        fputs("{\"file\":", out);
        zt_json_string(out, w->out);
        fprintf(out, ",\"chunks\":%" PRIu64 ",\"chunks_left_out\":%" PRIu64 ",\"calls\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"bytes_before\":%" PRIu64
                ",\"dropped_bytes\":%" PRIu64 "}\n", done->chunks, done->chunks_left_out, done->calls, done->bytes, before, done->dropped);
        return;
    }
    fprintf(out, "%s: %s, %" PRIu64 " bytes, %" PRIu64 " before", w->out, zt_count(done->calls, "call").text, done->bytes, before);
    if (w->how.drop != 0)
        fprintf(out, "; %s (uncompressed) %s dropped", zt_count(done->dropped, "byte").text, zt_was(done->dropped));
    fputc('\n', out);
}

static int run(int argc, char **argv)
{
    zt_refile_wishes w = {0};
    zt_refiled done;
    zt_error error = {0};
    zt_progress progress;
    int status = zt_refile_parse(&zt_command_repack, argc, argv, take, &w);
    if (status >= 0)
        return status;
    zt_progress_start(&progress, "repack", 0);
    w.how.step = zt_refile_step;
    w.how.ctx = &progress;
    status = zt_repack(w.in, w.out, &w.how, &done, &error);
    zt_progress_end(&progress);
    if (status != ZT_OK)
        return zt_refile_failed(status, &error);
    if (w.json || !w.quiet)
        tell(strcmp(w.out, "-") == 0 ? stderr : stdout, &w, &done, done.bytes_before);
    if (done.problem[0] != '\0')
        zt_complain("%s", done.problem);
    return zt_finish_output(done.chunks_left_out > 0 ? ZT_EXIT_DIFFERS : ZT_EXIT_OK);
}

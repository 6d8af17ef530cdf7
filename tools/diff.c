/* SPDX-License-Identifier: MIT */
/* zetrace diff: what two traces have in common, and where they part. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "diff_report.h"

enum { BRIEF = 1, REPLAY, BY, IGNORE, AS, TOLERANCE, CONTEXT, JSON };

static const zt_option options[] = {
    {BRIEF, 'q', "brief", NULL, "say only whether they differ"},
    {REPLAY, 0, "replay", NULL, "compare A with its own replay, which is made and recorded for it"},
    {BY, 0, "by", "thread|order", "compare thread by thread (default), or all calls in the order in which they were made"},
    {IGNORE, 0, "ignore", "LIST", "leave out: args, results, memory, order, or functions by GLOB; separated by commas, may be given often"},
    {AS, 0, "as", "bytes|f16|bf16|f32|f64|i8|i16|i32|i64|u8|u16|u32|u64", "show contents of memory as elements of that type (bytes)"},
    {TOLERANCE, 0, "tolerance", "Nulp|REL", "elements that are so close are the same: 4ulp, or relative, 1e-6; needs --as"},
    {CONTEXT, 'U', "unified", "N", "show N equal calls around a difference (3)"},
    {JSON, 0, "json", NULL, "one JSON object"},
    {0}};

static int run(int argc, char **argv);
const zt_command zt_command_diff = {
    .name = "diff",
    .summary = "compare two traces: where they part, what has changed",
    .synopsis = "A B | --replay A",
    .options = options,
    .more = "Handles and addresses are compared as objects, times not at all. Exit status, as of diff(1): 0 the same, 1 different, 2 trouble.\n"
            "Options may stand behind A and B as well.\n",
    .usage_status = ZT_EXIT_USAGE,
    .run = run,
};

#define TROUBLE ZT_EXIT_USAGE

typedef struct wishes {
    zd_options compare;
    zd_tolerance tolerance;
    uint64_t context;
    int view;
    bool viewed, brief, json;
    char *words; /* of --ignore */
} wishes;

static bool is_function(const char *glob)
{
    for (unsigned i = 0; i < zt_n_funcs; i++)
        if (zt_glob(glob, zt_funcs[i].name))
            return true;
    return false;
}

static int take_ignore(wishes *w, const char *list)
{
    char *const copy = strdup(list); /* the globs are kept until the end of the program */
    char *rest = copy;
    if (copy == NULL)
        return ZT_EXIT_CANNOT;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        if (strcmp(word, "args") == 0)
            w->compare.ignore |= ZD_ARGS;
        else if (strcmp(word, "results") == 0)
            w->compare.ignore |= ZD_RESULTS;
        else if (strcmp(word, "memory") == 0)
            w->compare.ignore |= ZD_MEMORY;
        else if (strcmp(word, "order") == 0)
            w->compare.by_order = false;
        else if (word[0] == '\0')
            return zt_usage_error(&zt_command_diff, "diff: --ignore wants args, results, memory, order or functions, but one word of '%s' is empty", list);
        else if (w->compare.n_globs == ZD_GLOBS)
            return zt_usage_error(&zt_command_diff, "diff: --ignore takes %d functions, not more", ZD_GLOBS);
        else if (word[0] != 'z' && !is_function(word)) /* one that begins like one may be newer than this program */
            return zt_usage_error(&zt_command_diff, "diff: --ignore wants args, results, memory, order or functions such as 'zeMem*', "
                                  "but no function matches '%s'", word);
        else
            w->compare.globs[w->compare.n_globs++] = word;
    }
    return -1;
}

static bool parse_tolerance(const char *text, zd_tolerance *t)
{
    char *end;
    const double number = strtod(text, &end);
    if (end == text || !(number >= 0) || number > 1e18)
        return false;
    if (strcmp(end, "ulp") == 0 && number == (double)(uint64_t)number)
        t->ulp = (uint64_t)number;
    else if (*end == '\0')
        t->relative = number;
    else
        return false;
    return true;
}

static int take_option(const zt_parser *parser, wishes *w, int id)
{
    switch (id) {
    case BRIEF:
        w->brief = true;
        break;
    case REPLAY:
        w->compare.is_replay = true;
        break;
    case BY:
        w->compare.by_order = strcmp(parser->value, "order") == 0;
        break;
    case IGNORE:
        return take_ignore(w, parser->value);
    case AS:
        w->view = zd_view_of(parser->value);
        w->viewed = true;
        break;
    case TOLERANCE:
        if (!parse_tolerance(parser->value, &w->tolerance))
            return zt_usage_error(&zt_command_diff, "diff: --tolerance wants a number of ulp such as 4ulp, or a relative one such as 1e-6, but was given '%s'",
                                  parser->value);
        break;
    case CONTEXT:
        if (!zt_parse_number(parser->value, &w->context))
            return zt_usage_error(&zt_command_diff, "diff: -U wants a number of calls, but was given '%s'", parser->value);
        break;
    case JSON:
        w->json = true;
        break;
    }
    return -1;
}

static void show_progress(void *ctx, uint64_t done, uint64_t total)
{
    zt_progress *const p = ctx;
    p->total = total;
    zt_progress_step(p, done);
}

/* @return the exit status. */
static int report(const wishes *w, zd_diff *diff, zt_trace *const *traces, char *const *paths)
{
    char order[512];
    zt_diff_report r = {.diff = diff, .names = {paths[0], paths[1]}, .view = w->view, .tolerance = w->tolerance, .context = w->context,
                        .by_order = w->compare.by_order, .color = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL};
    bool ok = (r.readers[0] = zd_reader_new(diff, 0)) != NULL && (r.readers[1] = zd_reader_new(diff, 1)) != NULL;
    if (ok && w->compare.is_replay)
        ok = zd_forget_waits(diff) == ZT_OK;
    if (ok && w->compare.contents_apart)
        ok = zd_check_contents(diff, r.readers[0], r.readers[1], w->view, &w->tolerance) == ZT_OK;
    if (ok) {
        zt_diff_count(&r);
        if (r.by_order && !zt_diff_same(&r) && zd_same_by_thread(diff) && w->compare.n_globs == 0) {
            zt_diff_edges(&r, traces, order, sizeof(order));
            r.order = order;
        }
        if (w->json)
            zt_diff_json(&r, stdout, w->brief);
        else if (w->brief && !zt_diff_same(&r))
            printf("%s and %s differ\n", paths[0], paths[1]);
        else if (!zt_diff_same(&r))
            zt_diff_unified(&r, stdout);
        else if (zd_interleaved(diff) && !w->brief)
            zt_complain("the threads do the same, each by itself; their calls came in another order, which '--by=order' looks at");
    } else {
        zt_complain("no memory to tell what differs");
    }
    zd_reader_free(r.readers[0]);
    zd_reader_free(r.readers[1]);
    return !ok ? TROUBLE : zt_diff_same(&r) ? ZT_EXIT_OK : ZT_EXIT_DIFFERS;
}

static int compare(wishes *w, char **paths)
{
    zt_trace *traces[2] = {NULL, NULL};
    zt_error error = {0};
    zd_diff *diff = NULL;
    zt_progress progress;
    zt_diff_replayed made = {0};
    int status = ZT_EXIT_OK;
    for (int i = 0; i < 2 && status == ZT_EXIT_OK; i++) {
        if (i == 1 && w->compare.is_replay && !zt_diff_replay_record(paths[0], traces[0], &made)) {
            status = TROUBLE;
            break;
        }
        char *one[] = {(char *)(uintptr_t) "diff", i == 1 && w->compare.is_replay ? made.path : paths[i]};
        const zt_parser parser = {.command = &zt_command_diff, .argc = 2, .argv = one, .at = 1};
        status = zt_open_operand(&parser, &traces[i]);
    }
    if (status == ZT_EXIT_OK) {
        zt_progress_start(&progress, "diff", 0);
        w->compare.progress = show_progress;
        w->compare.ctx = &progress;
        if (zd_compare(&diff, traces[0], traces[1], &w->compare, &error) != ZT_OK) {
            zt_complain("%s", error.text);
            status = TROUBLE;
        }
        zt_progress_end(&progress);
    } else {
        status = TROUBLE;
    }
    if (diff != NULL)
        status = report(w, diff, traces, paths);
    zd_free(diff);
    for (int i = 0; i < 2; i++)
        if (traces[i] != NULL) {
            if (status != TROUBLE) {
                zt_tell_health(traces[i], paths[i]);
                zt_tell_dropped(traces[i], paths[i]);
            }
            zt_trace_close(traces[i]);
        }
    zt_diff_replay_remove(&made);
    return zt_finish_output(status);
}

static int run(int argc, char **argv)
{
    wishes w = {.context = 3, .view = ZD_BYTES, .compare = {.matches = zt_glob}};
    static char its_replay[] = "its replay";
    char *paths[2];
    int operands = 0;
    zt_parser parser;
    zt_parser_init(&parser, &zt_command_diff, argc, argv);
    for (int id; (id = zt_option_anywhere(&parser, paths, 2, &operands)) != 0;) {
        if (id == ZT_OPTION_HELP)
            return zt_finish_output(ZT_EXIT_OK);
        if (id == ZT_OPTION_ERROR)
            return TROUBLE;
        const int status = take_option(&parser, &w, id);
        if (status >= 0)
            return status;
    }
    if (w.compare.is_replay && (operands != 1 || strcmp(paths[0], "-") == 0))
        return zt_usage_error(&zt_command_diff, "diff --replay wants one trace, a file, but was given %d operands", operands);
    if (w.compare.is_replay)
        paths[operands++] = its_replay;
    if (operands != 2)
        return zt_usage_error(&zt_command_diff, "diff wants two traces, but was given %s; 'zetrace help diff' tells more", zt_count((unsigned)operands, "operand").text);
    if (strcmp(paths[0], "-") == 0 && strcmp(paths[1], "-") == 0)
        return zt_usage_error(&zt_command_diff, "diff can read one of both traces from standard input, not both");
    const bool tolerant = w.tolerance.ulp > 0 || w.tolerance.relative > 0;
    if (tolerant && !w.viewed)
        return zt_usage_error(&zt_command_diff, "diff: --tolerance wants --as, the type of the elements");
    w.compare.contents_apart = tolerant;
    return compare(&w, paths);
}

/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "dump_filter.h"
#include "dump_state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLS = 1, FUNCTION, THREAD, OBJECT, FAILED, PENDING, STATE, JSON };

static const zt_option options[] = {
    {CALLS, 0, "calls", "SET", "only calls of the set: 4, 10..20, 10.., 0-100/2, 10-20/submit, @FILE, several with commas; see below"},
    {FUNCTION, 0, "function", "GLOB", "only functions whose name matches; may be given several times"},
    {THREAD, 0, "thread", "N", "only calls of thread N"},
    {OBJECT, 0, "object", "KIND#N", "only calls that name the object, such as mem#2 or queue#1"},
    {FAILED, 0, "failed", NULL, "only calls whose result is an error"},
    {PENDING, 0, "pending", NULL, "only calls that never returned"},
    {STATE, 0, "state", "#N", "not the calls, but what is alive, appended, signalled and in flight when call #N has returned"},
    {JSON, 0, "json", NULL, "one JSON object a line; with --state one"},
    {0}};

static const char more[] = "One line a call, in the order in which calls were made:\n"
                           "  #CALL  SECONDS TTHREAD  FUNCTION(ARGUMENTS) = RESULT -> OUTPUTS <DURATION>\n\n"
                           "A set of calls: 4 or #4, 10..20 or 10-20, 10.., ..20; /2 behind it takes every second; /WORD those that do that:\n"
                           "  append, submit, wait, create, destroy, alloc, free, close, reset, signal, resident, evict, set, get, init;\n"
                           "  /submit alone all of them; @FILE the first word of each line, such as what dump printed.\n";

char *zt_with_backtrace(zt_trace *trace, const zt_call *call, const char *line, bool as_json)
{
    char *all = NULL;
    size_t size = 0, n = strlen(line);
    FILE *const out = open_memstream(&all, &size);
    if (out == NULL)
        return NULL;
    const bool json = as_json && n > 0 && call->n_backtrace > 0; /* before the brace that ends the object */
    fwrite(line, 1, n - json, out);
    if (json)
        fputs(",\"backtrace\":[", out);
    for (uint32_t i = 0; i < call->n_backtrace; i++) {
        const char *const name = zt_trace_frame(trace, call->backtrace[i]);
        char address[32];
        snprintf(address, sizeof(address), "0x%llx", (unsigned long long)call->backtrace[i]);
        fputs(json ? i ? "," : "" : "\n    at ", out);
        if (json)
            zt_json_string(out, name ? name : address);
        else
            fputs(name ? name : address, out);
    }
    if (json)
        fputs("]}", out);
    return fclose(out) == 0 ? all : NULL;
}

/*
 * Lines come in the order of ENTERs, but an output can only be named once its call has left. Lines wait in a queue until
 * every call before them is done.
 */
typedef struct queue {
    struct line {
        uint64_t number;
        char *text;
    } *lines;
    size_t n, room;
} queue;

static bool queue_begin(queue *q, uint64_t number)
{
    if (q->n == q->room) {
        struct line *const grown = realloc(q->lines, (q->room ? q->room * 2 : 64) * sizeof(*grown));
        if (grown == NULL)
            return false;
        q->lines = grown;
        q->room = q->room ? q->room * 2 : 64;
    }
    q->lines[q->n++] = (struct line){number, NULL};
    return true;
}

static struct line *queue_find(const queue *q, uint64_t number)
{
    for (size_t i = q->n; i-- > 0;)
        if (q->lines[i].number == number && q->lines[i].text == NULL) /* a damaged trace may have two of a number */
            return &q->lines[i];
    return NULL;
}

/* @return how many lines were shown. */
static size_t queue_print(queue *q)
{
    size_t done = 0, shown = 0;
    while (done < q->n && q->lines[done].text != NULL) {
        if (q->lines[done].text[0] != '\0') {
            puts(q->lines[done].text);
            shown++;
        }
        free(q->lines[done++].text);
    }
    memmove(q->lines, q->lines + done, (q->n - done) * sizeof(*q->lines));
    q->n -= done;
    return shown;
}

static void queue_clear(queue *q)
{
    for (size_t i = 0; i < q->n; i++)
        free(q->lines[i].text);
    free(q->lines);
}

static int show(zt_filter *f, bool json, zt_trace *trace, const char *path)
{
    zt_objects *const objects = zt_objects_new();
    zt_text *const text = zt_text_new();
    zt_events *events = NULL;
    zt_progress progress;
    zt_event event;
    queue lines = {0};
    int status = objects && text ? zt_events_open(&events, trace) : ZT_E_MEMORY;
    const unsigned flags = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL ? ZT_P_COLOR : 0;
    zt_progress_start(&progress, "dump", zt_trace_health(trace)->calls);
    while (status == ZT_OK && (status = zt_events_next(events, &event)) == ZT_OK) {
        const zt_call *const call = event.call;
        if (event.phase == ZT_ENTER && zt_filter_wants(f, objects, call) && !queue_begin(&lines, call->number)) {
            status = ZT_E_MEMORY;
            break;
        }
        if (event.phase == ZT_LEAVE)
            zt_objects_event(objects, trace, &event); /* creations count before the line that shows them */
        struct line *const line = event.phase == ZT_LEAVE || !call->returned ? queue_find(&lines, call->number) : NULL;
        if (line != NULL) {
            zt_text_clear(text);
            if (json)
                zt_print_call_json(text, trace, objects, call);
            else
                zt_print_call(text, trace, objects, call, flags);
            if (zt_filter_wants_line(f, zt_text_get(text, NULL)))
                line->text = zt_with_backtrace(trace, call, zt_text_get(text, NULL), json);
            if (line->text == NULL)
                line->text = strdup("");
            f->shown += queue_print(&lines);
            zt_progress_step(&progress, call->number);
        }
        if (event.phase == ZT_ENTER)
            zt_objects_event(objects, trace, &event); /* destructions count behind the line that shows them */
        if (ferror(stdout))
            break;
    }
    zt_progress_end(&progress);
    if (status == ZT_END)
        zt_filter_tell(f, objects, path);
    queue_clear(&lines);
    zt_events_close(events);
    zt_objects_free(objects);
    zt_text_free(text);
    return status == ZT_OK || status == ZT_END ? ZT_EXIT_OK : ZT_EXIT_DAMAGED;
}

/* @return -1, or the status of a usage error. */
static int take_option(const zt_parser *parser, int option, zt_filter *f, uint64_t *state, bool *json)
{
    char why[512];
    switch (option) {
    case CALLS:
        if (!zt_calls_add(f->calls, parser->value, why, sizeof(why)))
            return zt_usage_error(&zt_command_dump, "dump: --calls %s", why);
        break;
    case FUNCTION:
        if (f->n_functions == ZT_GLOBS)
            return zt_usage_error(&zt_command_dump, "dump: --function may be given %u times, not more", ZT_GLOBS);
        f->functions[f->n_functions++] = parser->value;
        break;
    case THREAD:
        if (!zt_parse_number(parser->value, &f->thread) || f->thread == 0)
            return zt_usage_error(&zt_command_dump, "dump: --thread wants a number from 1, but was given '%s'", parser->value);
        break;
    case OBJECT:
        f->object = parser->value;
        if (!zt_is_object_name(f->object))
            return zt_usage_error(&zt_command_dump, "dump: --object wants a kind of object and its number as dump prints them, such as mem#2, but was given '%s'", parser->value);
        break;
    case FAILED:
        f->failed = true;
        break;
    case PENDING:
        f->pending = true;
        break;
    case STATE:
        if (!zt_parse_call(parser->value, state))
            return zt_usage_error(&zt_command_dump, "dump: --state wants a call such as #12, but was given '%s'", parser->value);
        break;
    case JSON:
        *json = true;
        break;
    default:
        return option == ZT_OPTION_HELP ? zt_finish_output(ZT_EXIT_OK) : ZT_EXIT_USAGE;
    }
    return -1;
}

static int run_dump(int argc, char **argv)
{
    zt_filter f = {.calls = zt_calls_new()};
    bool json = false;
    uint64_t state = 0;
    zt_parser parser;
    zt_trace *trace;
    int status = f.calls ? -1 : ZT_EXIT_CANNOT;
    zt_parser_init(&parser, &zt_command_dump, argc, argv);
    for (int option; status < 0 && (option = zt_option_next(&parser)) != 0;)
        status = take_option(&parser, option, &f, &state, &json);
    if (status < 0 && state != 0 && (zt_calls_given(f.calls) || f.n_functions || f.thread || f.object || f.failed || f.pending))
        status = zt_usage_error(&zt_command_dump, "dump: --state shows one moment, and goes with --json only");
    if (status >= 0)
        goto out;
    status = zt_open_operand(&parser, &trace);
    if (status != ZT_EXIT_OK)
        goto out;
    status = state ? zt_dump_state(trace, argv[parser.at], state, json) : show(&f, json, trace, argv[parser.at]);
    zt_tell_health(trace, argv[parser.at]);
    if (zt_trace_health(trace)->calls == 0 && zt_trace_health(trace)->damaged_chunks > 0)
        status = ZT_EXIT_DAMAGED;
    zt_trace_close(trace);
    status = zt_finish_output(status);
out:
    zt_calls_free(f.calls);
    return status;
}

const zt_command zt_command_dump = {"dump", "show the calls of a trace", "TRACE", options, more, ZT_EXIT_USAGE, run_dump};

/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLS = 1, FUNCTION, THREAD, OBJECT, FAILED, PENDING, JSON };

static const zt_option options[] = {
    {CALLS, 0, "calls", "A..B", "only calls #A to #B (also A, A.., ..B)"},
    {FUNCTION, 0, "function", "GLOB", "only functions whose name matches; may be given several times"},
    {THREAD, 0, "thread", "N", "only calls of thread N"},
    {OBJECT, 0, "object", "KIND#N", "only calls that name the object, such as mem#2 or queue#1"},
    {FAILED, 0, "failed", NULL, "only calls whose result is an error"},
    {PENDING, 0, "pending", NULL, "only calls that never returned"},
    {JSON, 0, "json", NULL, "one JSON object a line"},
    {0}};

static const char more[] = "One line a call, in the order in which calls were made:\n"
                           "  #CALL  SECONDS TTHREAD  FUNCTION(ARGUMENTS) = RESULT -> OUTPUTS <DURATION>\n";

typedef struct filter {
    uint64_t from, to, thread;
    const char *functions[32];
    size_t n_functions;
    const char *object;
    bool failed, pending, json;
} filter;

static bool is_failure(const zt_call *call)
{
    const char *const type = zt_types[call->func->return_type].name;
    return call->returned && strcmp(type, "ze_result_t") == 0 && call->result != 0 && call->result != 1 /* NOT_READY */;
}

/* Whether the printed line names the object: the name, not followed by a further digit. */
static bool names_object(const char *line, const char *object)
{
    const size_t n = strlen(object);
    for (const char *p = line; (p = strstr(p, object)) != NULL; p += n) {
        const bool begins = p == line || strchr("=,{[( >\"", p[-1]) != NULL;
        if (begins && (p[n] < '0' || p[n] > '9'))
            return true;
    }
    return false;
}

static bool wanted(const filter *f, const zt_call *call)
{
    if (call->number < f->from || call->number > f->to || (f->thread && call->thread != f->thread))
        return false;
    if ((f->failed && !is_failure(call)) || (f->pending && call->returned))
        return false;
    bool match = f->n_functions == 0;
    for (size_t i = 0; i < f->n_functions; i++)
        match |= zt_glob(f->functions[i], call->func->name);
    return match;
}

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

static int show(const filter *f, zt_trace *trace)
{
    zt_objects *const objects = zt_objects_new();
    zt_text *const text = zt_text_new();
    zt_events *events = NULL;
    zt_progress progress;
    zt_event event;
    int status = objects && text ? zt_events_open(&events, trace) : ZT_E_MEMORY;
    const unsigned flags = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL ? ZT_P_COLOR : 0;
    zt_progress_start(&progress, "dump", zt_trace_health(trace)->calls);
    /*
     * Lines come in the order of ENTERs, but an output can only be named once its call has left. Lines wait in a queue until
     * every call before them is done.
     */
    struct line {
        uint64_t number;
        char *text;
    } *lines = NULL;
    size_t n_lines = 0, room = 0;
    while (status == ZT_OK && (status = zt_events_next(events, &event)) == ZT_OK) {
        const zt_call *const call = event.call;
        const bool last = event.phase == ZT_LEAVE || !call->returned;
        if (event.phase == ZT_ENTER) {
            if (n_lines == room) {
                struct line *const grown = realloc(lines, (room ? room * 2 : 64) * sizeof(*lines));
                if (grown == NULL) {
                    status = ZT_E_MEMORY;
                    break;
                }
                lines = grown;
                room = room ? room * 2 : 64;
            }
            lines[n_lines++] = (struct line){call->number, NULL};
        }
        if (event.phase == ZT_LEAVE)
            zt_objects_event(objects, trace, &event); /* creations count before the line that shows them */
        if (last) {
            char *shown = NULL;
            if (wanted(f, call)) {
                zt_text_clear(text);
                if (f->json)
                    zt_print_call_json(text, trace, objects, call);
                else
                    zt_print_call(text, trace, objects, call, flags);
                if (f->object == NULL || names_object(zt_text_get(text, NULL), f->object))
                    shown = zt_with_backtrace(trace, call, zt_text_get(text, NULL), f->json);
            }
            for (size_t i = 0; i < n_lines; i++)
                if (lines[i].number == call->number)
                    lines[i].text = shown ? shown : strdup("");
            size_t done = 0;
            while (done < n_lines && lines[done].text != NULL) {
                if (lines[done].text[0] != '\0')
                    puts(lines[done].text);
                free(lines[done++].text);
            }
            memmove(lines, lines + done, (n_lines - done) * sizeof(*lines));
            n_lines -= done;
            zt_progress_step(&progress, call->number);
        }
        if (event.phase == ZT_ENTER)
            zt_objects_event(objects, trace, &event); /* destructions count behind the line that shows them */
        if (ferror(stdout))
            break;
    }
    for (size_t i = 0; i < n_lines; i++)
        free(lines[i].text);
    free(lines);
    zt_progress_end(&progress);
    zt_events_close(events);
    zt_objects_free(objects);
    zt_text_free(text);
    return status == ZT_OK || status == ZT_END ? ZT_EXIT_OK : ZT_EXIT_DAMAGED;
}

static int run_dump(int argc, char **argv)
{
    filter f = {.from = 1, .to = UINT64_MAX};
    zt_parser parser;
    zt_trace *trace;
    zt_parser_init(&parser, &zt_command_dump, argc, argv);
    for (int option; (option = zt_option_next(&parser)) != 0;) {
        switch (option) {
        case CALLS:
            if (!zt_parse_calls(parser.value, &f.from, &f.to))
                return zt_usage_error(&zt_command_dump, "dump: --calls wants A..B with call numbers from 1, but was given '%s'", parser.value);
            break;
        case FUNCTION:
            if (f.n_functions == 32)
                return zt_usage_error(&zt_command_dump, "dump: --function may be given 32 times, not more");
            f.functions[f.n_functions++] = parser.value;
            break;
        case THREAD:
            if (!zt_parse_number(parser.value, &f.thread) || f.thread == 0)
                return zt_usage_error(&zt_command_dump, "dump: --thread wants a number from 1, but was given '%s'", parser.value);
            break;
        case OBJECT:
            f.object = parser.value;
            if (strchr(f.object, '#') == NULL)
                return zt_usage_error(&zt_command_dump, "dump: --object wants a kind and number such as mem#2, but was given '%s'", parser.value);
            break;
        case FAILED:
            f.failed = true;
            break;
        case PENDING:
            f.pending = true;
            break;
        case JSON:
            f.json = true;
            break;
        default:
            return option == ZT_OPTION_HELP ? zt_finish_output(ZT_EXIT_OK) : ZT_EXIT_USAGE;
        }
    }
    int status = zt_open_operand(&parser, &trace);
    if (status != ZT_EXIT_OK)
        return status;
    status = show(&f, trace);
    zt_tell_health(trace, argv[parser.at]);
    if (zt_trace_health(trace)->calls == 0 && zt_trace_health(trace)->damaged_chunks > 0)
        status = ZT_EXIT_DAMAGED;
    zt_trace_close(trace);
    return zt_finish_output(status);
}

const zt_command zt_command_dump = {"dump", "Shows the calls of a trace", "TRACE", options, more, ZT_EXIT_USAGE, run_dump};

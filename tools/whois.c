/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LAST = 1, JSON };

static const zt_option options[] = {
    {LAST, 0, "last", "N", "show the last N calls that touched it (default 10)"},
    {JSON, 0, "json", NULL, "one JSON object"},
    {0}};

static const char more[] =
    "ADDRESS is hexadecimal, as kernel logs and debuggers print it. One at the start of a page stands for the page.\n"
    "Exit status: 0 an allocation held it, 1 none did, 2 usage, 3 damaged trace.\n";

#define PAGE 4096u

typedef struct shown { /* a call that touched the address */
    uint64_t number;
    char *text; /* NULL: it is still open */
} shown;

typedef struct search {
    zt_trace *trace;
    uint64_t address, end; /* byte, or page */
    bool json;
    zt_objects *objects;
    zt_text *text;
    shown *calls; /* the last `most` of them, and those still open */
    size_t n_calls, room, most;
    uint64_t *lists; /* handles of lists that hold a command which touches it */
    size_t n_lists, lists_room;
    size_t n_objects; /* seen so far */
} search;

static bool room_for_one(void *list, size_t *room, size_t n, size_t size)
{
    if (n < *room)
        return true;
    const size_t more_room = *room ? *room * 2 : 16;
    void *const grown = realloc(*(void **)list, more_room * size);
    if (grown == NULL)
        return false;
    *(void **)list = grown;
    *room = more_room;
    return true;
}

static bool covers(const search *s, uint64_t begin, uint64_t size)
{
    return begin < s->end && (begin >= s->address || s->address - begin < size);
}

static bool is_holder(const search *s, const zt_object *o)
{
    return o != NULL && o->by != NULL && strcmp(o->kind, "mem") == 0 && covers(s, o->value, o->size);
}

/* ------------------------------------------------------------------------------------------------------------- calls */

typedef struct looking {
    const search *s;
    const zt_call *call;
    const zt_walk *walk;
    bool touches;
} looking;

static int see_value(void *ctx, const zt_node *node)
{
    looking *const l = ctx;
    const zt_func *const func = l->call->func;
    const zt_field *const field = node->field;
    uint64_t value;
    if (field == NULL || node->size != sizeof(value) || l->touches)
        return 0;
    memcpy(&value, node->data, sizeof(value));
    /* the argument of a kernel is bytes to the API */
    const bool argument = node->kind == ZT_N_BYTES && func->kind == ZT_K_SET;
    if (!argument && (node->kind != ZT_N_VALUE || (field->shape != ZT_ADDRESS && field->inner != ZT_ADDRESS)))
        return 0;
    int64_t extent = -1;
    if (field >= func->params && field < func->params + func->n_params && field->shape == ZT_ADDRESS) {
        const zt_field *const size = zt_param_by_role(func, ZT_R_SIZE);
        extent = field->count.op != ZT_X_NONE ? zt_eval_param(l->walk, &field->count) : -1;
        if (extent < 0 && field->role == ZT_R_PTR && size != NULL)
            extent = (int64_t)zt_word(l->call, size);
    }
    l->touches = extent > 0 && covers(l->s, value, (uint64_t)extent);
    /* what the device does not read or write there is said of the allocation; so is what has no known end */
    if (!field->access || extent < 0)
        l->touches |= is_holder(l->s, zt_object_of_address(l->s->objects, value));
    return 0;
}

static size_t place_of_list(const search *s, uint64_t list)
{
    size_t i = 0;
    while (i < s->n_lists && s->lists[i] != list)
        i++;
    return i;
}

/* Lists remember what was appended; executing one touches what its commands touch. @return whether this call does. */
static bool follow_lists(search *s, const zt_call *call, bool touches, const zt_memory *memory)
{
    const zt_func *const func = call->func;
    const zt_field *const one = zt_param_by_role(func, ZT_R_LIST), *const many = zt_param_by_role(func, ZT_R_LISTS);
    const zt_field *const self = one ? one : func->n_params ? &func->params[0] : NULL;
    if (func->kind == ZT_K_APPEND && touches && one != NULL && place_of_list(s, zt_word(call, one)) == s->n_lists &&
        room_for_one(&s->lists, &s->lists_room, s->n_lists, sizeof(*s->lists)))
        s->lists[s->n_lists++] = zt_word(call, one);
    if ((func->kind == ZT_K_RESET || func->kind == ZT_K_DESTROY) && self != NULL) {
        const size_t place = place_of_list(s, zt_word(call, self));
        if (place < s->n_lists)
            s->lists[place] = s->lists[--s->n_lists];
    }
    if (func->kind != ZT_K_EXECUTE || many == NULL || many->count.op == ZT_X_NONE)
        return false;
    const zt_walk walk = {.func = func, .words = call->words, .phase = ZT_ENTER, .memory = memory};
    const int64_t n = zt_eval_param(&walk, &many->count);
    const uint8_t *const lists = n > 0 && n < 65536 ? memory->at(memory->ctx, zt_word(call, many), (uint64_t)n * 8) : NULL;
    for (int64_t i = 0; lists != NULL && i < n; i++) {
        if (place_of_list(s, zt_element(lists, (uint64_t)i)) < s->n_lists)
            return true;
    }
    return false;
}

static bool touches(search *s, const zt_call *call)
{
    zt_call_memory in = {.call = call, .phase = ZT_ENTER, .trace = s->trace};
    const zt_memory memory = zt_memory_of(&in);
    looking l = {s, call, NULL, false};
    const zt_walk walk = {.func = call->func, .words = call->words, .phase = ZT_ENTER, .memory = &memory, .visit = see_value, .ctx = &l};
    l.walk = &walk;
    zt_walk_call(&walk);
    return follow_lists(s, call, l.touches, &memory) || l.touches;
}

/* The oldest that is complete makes room. */
static bool note(search *s, uint64_t number)
{
    size_t complete = 0, oldest = SIZE_MAX;
    for (size_t i = 0; i < s->n_calls; i++) {
        complete += s->calls[i].text != NULL;
        if (s->calls[i].text != NULL && oldest == SIZE_MAX)
            oldest = i;
    }
    if (complete >= s->most && oldest != SIZE_MAX) {
        free(s->calls[oldest].text);
        memmove(s->calls + oldest, s->calls + oldest + 1, (s->n_calls - oldest - 1) * sizeof(*s->calls));
        s->n_calls--;
    }
    if (!room_for_one(&s->calls, &s->room, s->n_calls, sizeof(*s->calls)))
        return false;
    s->calls[s->n_calls++] = (shown){number, NULL};
    return true;
}

static shown *noted(search *s, uint64_t number)
{
    for (size_t i = s->n_calls; i > 0; i--)
        if (s->calls[i - 1].number == number)
            return &s->calls[i - 1];
    return NULL;
}

static void show_call(search *s, const zt_call *call)
{
    shown *const entry = noted(s, call->number);
    if (entry == NULL || entry->text != NULL)
        return;
    zt_text_clear(s->text);
    if (s->json)
        zt_print_call_json(s->text, s->trace, s->objects, call);
    else
        zt_print_call(s->text, s->trace, s->objects, call, 0);
    entry->text = zt_with_backtrace(s->trace, call, zt_text_get(s->text, NULL), s->json);
}

static int scan(search *s)
{
    zt_events *events = NULL;
    zt_progress progress;
    zt_event event;
    s->objects = zt_objects_new();
    s->text = zt_text_new();
    int status = s->objects && s->text ? zt_events_open(&events, s->trace) : ZT_E_MEMORY;
    zt_progress_start(&progress, "whois", zt_trace_health(s->trace)->calls);
    while (status == ZT_OK && (status = zt_events_next(events, &event)) == ZT_OK) {
        if (event.phase == ZT_ENTER) {
            if (touches(s, event.call))
                note(s, event.call->number);
            if (!event.call->returned)
                show_call(s, event.call);
            zt_objects_event(s->objects, s->trace, &event);
        } else {
            const zt_object *const *list;
            zt_objects_event(s->objects, s->trace, &event);
            const size_t n = zt_objects_list(s->objects, &list);
            for (size_t i = s->n_objects; i < n; i++)
                if (is_holder(s, list[i]) && noted(s, event.call->number) == NULL)
                    note(s, event.call->number);
            s->n_objects = n;
            show_call(s, event.call);
            zt_progress_step(&progress, event.call->number);
        }
    }
    zt_progress_end(&progress);
    zt_events_close(events);
    return status == ZT_END ? ZT_OK : status;
}

static void forget(search *s)
{
    for (size_t i = 0; i < s->n_calls; i++)
        free(s->calls[i].text);
    free(s->calls);
    free(s->lists);
    zt_objects_free(s->objects);
    zt_text_free(s->text);
    s->calls = NULL;
    s->lists = NULL;
    s->objects = NULL;
    s->text = NULL;
    s->n_calls = s->room = s->n_lists = s->lists_room = s->n_objects = 0;
}

/* ------------------------------------------------------------------------------------------------------------ answer */

static int by_number(const void *a, const void *b)
{
    const shown *const x = a, *const y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void print_holder(const search *s, const zt_object *o, size_t index)
{
    const uint64_t offset = s->address > o->value ? s->address - o->value : 0;
    if (!s->json) {
        printf("%s#%u+%" PRIu64 ": %s at 0x%" PRIx64 ", made by #%" PRIu64 " %s, ", o->kind, o->generation, offset, zt_count(o->size, "byte").text,
               o->value, o->created, o->by->name);
        if (o->destroyed)
            printf("freed by #%" PRIu64 "\n", o->destroyed);
        else
            puts("live at the end");
        return;
    }
    printf("%s{\"object\":\"%s#%u\",\"address\":\"0x%" PRIx64 "\",\"size\":%" PRIu64 ",\"offset\":%" PRIu64 ",\"created\":%" PRIu64
           ",\"function\":", index ? "," : "", o->kind, o->generation, o->value, o->size, offset, o->created);
    zt_json_string(stdout, o->by->name);
    if (o->destroyed)
        printf(",\"freed\":%" PRIu64 "}", o->destroyed);
    else
        fputs(",\"freed\":null}", stdout);
}

/* An address a little outside is the commonest mistake. */
static void print_neighbour(const search *s)
{
    const zt_object *const *list, *below = NULL;
    const size_t n = zt_objects_list(s->objects, &list);
    for (size_t i = 0; i < n; i++)
        if (list[i]->by != NULL && strcmp(list[i]->kind, "mem") == 0 && list[i]->value <= s->address &&
            (below == NULL || list[i]->value >= below->value))
            below = list[i];
    printf("0x%" PRIx64 " lies in no allocation of this trace", s->address);
    if (below != NULL)
        printf("; %s#%u, %s at 0x%" PRIx64 ", ends 0x%" PRIx64 " bytes before it", below->kind, below->generation, zt_count(below->size, "byte").text,
               below->value, s->address - below->value - below->size);
    putchar('\n');
}

static bool answer(search *s)
{
    const zt_object *const *list;
    size_t holders = 0;
    const size_t n = zt_objects_list(s->objects, &list);
    if (s->json)
        printf("{\"address\":\"0x%" PRIx64 "\",\"allocations\":[", s->address);
    for (size_t i = n; i > 0; i--)
        if (is_holder(s, list[i - 1]))
            print_holder(s, list[i - 1], holders++);
    if (holders == 0 && !s->json)
        print_neighbour(s);
    if (s->json)
        fputs("],\"calls\":[", stdout);
    if (s->n_calls > 0)
        qsort(s->calls, s->n_calls, sizeof(*s->calls), by_number);
    for (size_t i = s->n_calls > s->most ? s->n_calls - s->most : 0, first = i; i < s->n_calls; i++)
        if (s->calls[i].text != NULL)
            printf("%s%s%s", s->json && i > first ? "," : "", s->calls[i].text, s->json ? "" : "\n");
    if (s->json)
        puts("]}");
    return holders > 0;
}

static bool held(const search *s)
{
    const zt_object *const *list;
    const size_t n = zt_objects_list(s->objects, &list);
    for (size_t i = 0; i < n; i++)
        if (is_holder(s, list[i]))
            return true;
    return false;
}

/* Kernel logs leave out the upper bits that a program's pointer repeats. @return an address of an allocation, or 0. */
static uint64_t with_upper_bits(const search *s)
{
    const zt_object *const *list;
    const size_t n = zt_objects_list(s->objects, &list);
    for (unsigned bits = 57; bits >= 48; bits -= 9)
        for (size_t i = n; i > 0; i--) {
            const zt_object *const o = list[i - 1];
            const uint64_t offset = (s->address - o->value) & ((1ull << bits) - 1);
            if (o->by != NULL && strcmp(o->kind, "mem") == 0 && offset < o->size)
                return o->value + offset;
        }
    return 0;
}

static void set_address(search *s, uint64_t address)
{
    s->address = address;
    s->end = address + (address % PAGE == 0 ? PAGE : 1);
}

static bool parse_address(const char *text, uint64_t *address)
{
    const char *const digits = text + (strncmp(text, "0x", 2) == 0 || strncmp(text, "0X", 2) == 0 ? 2 : 0);
    const size_t n = strspn(digits, "0123456789abcdefABCDEF");
    if (n == 0 || n > 16 || digits[n] != '\0')
        return false;
    *address = strtoull(digits, NULL, 16);
    return *address < UINT64_MAX - PAGE;
}

static int run_whois(int argc, char **argv)
{
    zt_parser parser;
    search s = {.most = 10};
    uint64_t address, last;
    zt_parser_init(&parser, &zt_command_whois, argc, argv);
    for (int option; (option = zt_option_next(&parser)) != 0;) {
        switch (option) {
        case LAST:
            if (!zt_parse_number(parser.value, &last) || last == 0 || last > 1000000)
                return zt_usage_error(&zt_command_whois, "whois: --last wants a number from 1 to 1M, but was given '%s'", parser.value);
            s.most = (size_t)last;
            break;
        case JSON:
            s.json = true;
            break;
        default:
            return option == ZT_OPTION_HELP ? zt_finish_output(ZT_EXIT_OK) : ZT_EXIT_USAGE;
        }
    }
    if (argc - parser.at != 2)
        return zt_usage_error(&zt_command_whois, "whois wants one trace and an address, but was given %s; 'zetrace help whois' tells more",
                              zt_count((unsigned)(argc - parser.at), "operand").text);
    if (!parse_address(argv[parser.at + 1], &address))
        return zt_usage_error(&zt_command_whois, "whois: an address such as 0x7f3a40001000 was wanted, but '%s' given", argv[parser.at + 1]);
    parser.argc--; /* the trace alone */
    const int opened = zt_open_calls(&parser, &s.trace);
    if (opened != ZT_EXIT_OK)
        return opened;
    set_address(&s, address);
    int status = scan(&s);
    const uint64_t meant = status == ZT_OK && !held(&s) ? with_upper_bits(&s) : 0;
    if (meant != 0) {
        zt_complain("whois: 0x%" PRIx64 " is taken as 0x%" PRIx64 ", which has the same lower bits", address, meant);
        forget(&s);
        set_address(&s, meant);
        zt_trace_seek(s.trace, 1);
        status = scan(&s);
    }
    bool found = false;
    if (status == ZT_OK)
        found = answer(&s);
    zt_tell_health(s.trace, argv[parser.at]);
    forget(&s);
    zt_trace_close(s.trace);
    return zt_finish_output(status != ZT_OK ? ZT_EXIT_DAMAGED : found ? 0 : 1);
}

const zt_command zt_command_whois = {"whois", "tell what was at an address", "TRACE ADDRESS", options, more, ZT_EXIT_USAGE, run_whois};

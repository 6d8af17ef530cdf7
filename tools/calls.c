/* SPDX-License-Identifier: MIT */
#include "calls.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

#define KIND(k) (1u << ZT_K_##k)
#define MOST_PARTS 1000000u
#define LONGEST_LINE 65536u

static const struct {
    const char *word;
    uint32_t kinds;
    bool immediate; /* and appends to immediate lists */
} words[] = {
    {"append", KIND(APPEND), false},
    {"submit", KIND(EXECUTE), true},
    {"wait", KIND(SYNC) | KIND(QUERY), false},
    {"create", KIND(CREATE), false},
    {"destroy", KIND(DESTROY), false},
    {"alloc", KIND(ALLOC) | KIND(MAP), false},
    {"free", KIND(FREE) | KIND(UNMAP), false},
    {"close", KIND(CLOSE), false},
    {"reset", KIND(RESET) | KIND(HOST_RESET), false},
    {"signal", KIND(HOST_SIGNAL), false},
    {"resident", KIND(RESIDENT), false},
    {"evict", KIND(EVICT), false},
    {"set", KIND(SET), false},
    {"get", KIND(GET) | KIND(EXT_LOOKUP), false},
    {"init", KIND(INIT), false},
};
#define N_WORDS (sizeof(words) / sizeof(words[0]))

typedef struct part {
    uint64_t from, to, step;
    int word;     /* -1: any */
    bool met;
    char *text;
} part;

struct zt_calls {
    part *parts;
    size_t n, room;
    uint64_t *reach; /* the greatest `to` of a part and those before it, once they are sorted */
    bool given;
};

zt_calls *zt_calls_new(void)
{
    return calloc(1, sizeof(zt_calls));
}

void zt_calls_free(zt_calls *set)
{
    for (size_t i = 0; set != NULL && i < set->n; i++)
        free(set->parts[i].text);
    if (set != NULL) {
        free(set->parts);
        free(set->reach);
    }
    free(set);
}

/* "append, submit, ..." */
static void list_words(char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < N_WORDS && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", words[i].word);
}

bool zt_calls_given(const zt_calls *set)
{
    return set != NULL && set->given;
}

/* ------------------------------------------------------------------------------------------------------------- parsing */

static bool parse_suffix(const char *suffix, part *p, char *why, size_t size)
{
    char known[256];
    uint64_t step;
    if (zt_parse_number(suffix, &step) && step > 0 && p->step == 0) {
        p->step = step;
        return true;
    }
    for (size_t i = 0; i < N_WORDS; i++)
        if (strcmp(words[i].word, suffix) == 0 && p->word < 0) {
            p->word = (int)i;
            return true;
        }
    list_words(known, sizeof(known));
    snprintf(why, size, "wants a step or one of %s behind '/', but was given '%s'", known, suffix);
    return false;
}

static bool parse_range(char *text, part *p)
{
    char *const dots = strstr(text, ".."), *const dash = dots ? NULL : strchr(text, '-');
    char *const second = dots ? dots + 2 : dash ? dash + 1 : NULL;
    p->from = 1;
    p->to = UINT64_MAX;
    if (text[0] == '\0' || strcmp(text, "*") == 0)
        return p->step != 0 || p->word >= 0 || text[0] == '*';
    if (second == NULL)
        return zt_parse_call(text, &p->from) && (p->to = p->from) != 0;
    *(dots ? dots : dash) = '\0';
    if (text[0] == '\0' && second[0] == '\0')
        return false;
    const bool open = dots != NULL;
    const bool first_ok = (open && text[0] == '\0') || zt_parse_call(text, &p->from) || (strcmp(text, "0") == 0 && (p->from = 0) == 0);
    return first_ok && ((open && second[0] == '\0') || zt_parse_call(second, &p->to)) && p->from <= p->to;
}

static bool add_part(zt_calls *set, const char *text, char *why, size_t size)
{
    part p = {.word = -1, .text = strdup(text)};
    char *const copy = strdup(text), *rest = copy ? strchr(copy, '/') : NULL;
    bool ok = p.text != NULL && copy != NULL && set->n < MOST_PARTS;
    if (!ok)
        snprintf(why, size, "names too many calls");
    while (ok && rest != NULL) {
        *rest++ = '\0';
        char *const next = strchr(rest, '/');
        if (next != NULL)
            *next = '\0';
        ok = parse_suffix(rest, &p, why, size);
        rest = next;
    }
    if (ok && !parse_range(copy, &p)) {
        snprintf(why, size, "wants calls such as 4, 10..20, 10.., 10-20/2, /submit or @FILE, with numbers from 1, but was given '%s'", text);
        ok = false;
    }
    if (ok && set->n == set->room) {
        const size_t room = set->room ? set->room * 2 : 16;
        part *const grown = realloc(set->parts, room * sizeof(*grown));
        ok = grown != NULL;
        if (ok) {
            set->parts = grown;
            set->room = room;
        }
    }
    free(copy);
    if (!ok) {
        free(p.text);
        return false;
    }
    set->parts[set->n++] = p;
    return true;
}

static bool add_list(zt_calls *set, const char *text, char *why, size_t size)
{
    char *const copy = strdup(text);
    bool ok = copy != NULL;
    for (char *at = copy; ok && at != NULL;) {
        char *const comma = strchr(at, ',');
        if (comma != NULL)
            *comma = '\0';
        ok = add_part(set, at, why, size);
        at = comma ? comma + 1 : NULL;
    }
    free(copy);
    return ok;
}

/* The first word of each line, so that what 'zetrace dump' prints can be cut down and given back. Lines that begin with a blank,
   as those of a backtrace do, and with a '#' that is no call's are passed over. */
static bool add_file(zt_calls *set, const char *path, char *why, size_t size)
{
    FILE *const in = fopen(path, "r");
    char *line = malloc(LONGEST_LINE);
    bool ok = in != NULL && line != NULL;
    if (!ok)
        snprintf(why, size, "wants a file behind '@', but %s: %s", path, strerror(errno));
    for (uint64_t n = 1; ok && fgets(line, LONGEST_LINE, in) != NULL; n++) {
        char reason[512];
        const size_t word = strcspn(line, " \t\r\n");
        if (line[word] == '\0' && word + 1 == LONGEST_LINE) {
            snprintf(why, size, "wants lines that begin with calls, but line %llu of %s is too long", (unsigned long long)n, path);
            ok = false;
        }
        const bool whole = strchr(line + word, '\n') != NULL;
        line[word] = '\0';
        if (ok && word > 0 && (line[0] != '#' || isdigit((unsigned char)line[1])) && !add_list(set, line, reason, sizeof(reason))) {
            snprintf(why, size, "%s in line %llu of %s", reason, (unsigned long long)n, path);
            ok = false;
        }
        for (int c = 0; ok && !whole && c != EOF && c != '\n';)
            c = fgetc(in);
    }
    if (ok && ferror(in)) {
        snprintf(why, size, "wants a file behind '@', but %s: %s", path, strerror(errno));
        ok = false;
    }
    if (in != NULL)
        fclose(in);
    free(line);
    return ok;
}

static int by_start(const void *a, const void *b)
{
    const part *const x = a, *const y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

bool zt_calls_add(zt_calls *set, const char *text, char *why, size_t size)
{
    snprintf(why, size, "names too many calls"); /* memory is out */
    if (!(text[0] == '@' ? add_file(set, text + 1, why, size) : add_list(set, text, why, size)))
        return false;
    uint64_t *const reach = realloc(set->reach, (set->n + 1) * sizeof(*reach));
    if (reach == NULL)
        return false;
    set->reach = reach;
    set->given = true;
    if (set->n > 0)
        qsort(set->parts, set->n, sizeof(*set->parts), by_start);
    for (size_t i = 0; i < set->n; i++)
        reach[i] = i > 0 && reach[i - 1] > set->parts[i].to ? reach[i - 1] : set->parts[i].to;
    return true;
}

/* ------------------------------------------------------------------------------------------------------------ matching */

static bool is_kind(const part *p, const zt_objects *objects, const zt_call *call)
{
    if (p->word < 0 || (words[p->word].kinds >> call->func->kind & 1))
        return true;
    const zt_field *const list = call->func->kind == ZT_K_APPEND ? zt_param_by_role(call->func, ZT_R_LIST) : NULL;
    if (!words[p->word].immediate || list == NULL || list->shape != ZT_VALUE)
        return false;
    const zt_object *const o = zt_object_of_handle(objects, &zt_types[list->type], call->words[list->offset]);
    return o != NULL && o->by != NULL && (o->by->flags & ZT_F_IMMEDIATE);
}

bool zt_calls_have(zt_calls *set, const zt_objects *objects, const zt_call *call)
{
    if (!zt_calls_given(set))
        return true;
    size_t low = 0, high = set->n;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (set->parts[mid].from <= call->number)
            low = mid + 1;
        else
            high = mid;
    }
    bool have = false;
    for (size_t i = low; i-- > 0 && set->reach[i] >= call->number;) {
        part *const p = &set->parts[i];
        if (call->number > p->to || (p->step != 0 && (call->number - p->from) % p->step != 0) || !is_kind(p, objects, call))
            continue;
        have = p->met = true;
    }
    return have;
}

const char *zt_calls_unmet(const zt_calls *set)
{
    for (size_t i = 0; zt_calls_given(set) && i < set->n; i++)
        if (!set->parts[i].met)
            return set->parts[i].text;
    return NULL;
}

uint64_t zt_calls_end(const zt_calls *set)
{
    return !zt_calls_given(set) ? UINT64_MAX : set->n ? set->reach[set->n - 1] : 0;
}

int zt_calls_each(zt_calls *set, zt_trace *trace, bool (*found)(void *ctx, uint64_t number), void *ctx)
{
    zt_objects *const objects = zt_objects_new();
    zt_events *events = NULL;
    zt_event event;
    zt_trace_seek(trace, 1);
    int status = objects ? zt_events_open(&events, trace) : ZT_E_MEMORY;
    while (status == ZT_OK && (status = zt_events_next(events, &event)) == ZT_OK) {
        if (event.phase == ZT_ENTER && zt_calls_have(set, objects, event.call) && !found(ctx, event.call->number))
            status = ZT_E_MEMORY;
        else
            zt_objects_event(objects, trace, &event);
    }
    zt_events_close(events);
    zt_objects_free(objects);
    return status == ZT_END ? ZT_OK : status;
}

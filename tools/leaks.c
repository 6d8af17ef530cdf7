/* SPDX-License-Identifier: MIT */
/* zetrace leaks: what was created and never destroyed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

enum { ALL = 1, JSON };

static const zt_option options[] = {
    {ALL, 0, "all", NULL, "what ended with its parent counts for the exit status as well"},
    {JSON, 0, "json", NULL, "one JSON object"},
    {0, 0, NULL, NULL, NULL},
};

static int run(int argc, char **argv);
const zt_command zt_command_leaks = {
    .name = "leaks",
    .summary = "tell what was created and never destroyed",
    .synopsis = "TRACE",
    .options = options,
    .more = "Record with --backtrace='*' to see where in the program. What ended with its parent, such as memory with its context, is told "
            "apart.\n"
            "Exit status: 0 none, 1 some, 2 usage, 3 damaged trace, 125 not enough memory.\n",
    .usage_status = ZT_EXIT_USAGE,
    .run = run,
};

#define FRAMES 16u
#define PARENTS 6u
#define SHOWN 8u /* calls of a group, and frames */
#define NONE UINT32_MAX

typedef struct birth {
    uint32_t object, parent; /* parent: the one that it ended with, NONE */
    uint64_t refused;        /* call that was to destroy it, and failed; 0 */
    uint32_t parents[PARENTS];
    uint32_t n_parents, n_frames;
    uint64_t frames[FRAMES];
    const zt_object *o;
} birth;

typedef struct search {
    zt_trace *trace;
    zt_objects *objects;
    birth *born; /* in the order of creation */
    size_t n_born, room;
    uint32_t *birth_of; /* by object: index + 1 */
    size_t n_birth_of;
    uint32_t *refused; /* births that some call was to end, and failed */
    size_t n_refused, room_refused;
    bool out_of_memory;
} search;

/* ------------------------------------------------------------------------------------------------------------ reading */

static bool makes_objects(const zt_func *func)
{
    return func != NULL && (zt_param_by_role(func, ZT_R_CREATE) != NULL || zt_param_by_role(func, ZT_R_ALLOC) != NULL);
}

/* What it was made from may be gone by the end, and its handle another object's. */
static void parents_of(const search *s, const zt_call *call, birth *b)
{
    for (unsigned i = 0; i < call->func->n_params && b->n_parents < PARENTS; i++) {
        const zt_field *const f = &call->func->params[i];
        if (f->shape != ZT_VALUE || zt_types[f->type].cls != ZT_HANDLE)
            continue;
        const zt_object *const o = zt_object_of_handle(s->objects, &zt_types[f->type], zt_word(call, f));
        if (o != NULL)
            b->parents[b->n_parents++] = o->index;
    }
}

static bool room_for(search *s, void *list, size_t *room, size_t want, size_t element)
{
    if (want <= *room)
        return true;
    void *const grown = realloc(*(void **)list, want * 2 * element);
    s->out_of_memory |= grown == NULL;
    if (grown == NULL)
        return false;
    memset((char *)grown + *room * element, 0, (want * 2 - *room) * element);
    *(void **)list = grown;
    *room = want * 2;
    return true;
}

static void see_births(search *s, const zt_call *call, size_t before)
{
    const zt_object *const *list;
    const size_t n = zt_objects_list(s->objects, &list);
    for (size_t i = before; i < n; i++) {
        birth b = {.object = (uint32_t)i, .parent = NONE, .o = list[i]};
        if (list[i]->created != call->number || list[i]->by != call->func)
            continue;
        parents_of(s, call, &b);
        b.n_frames = call->n_backtrace < FRAMES ? call->n_backtrace : FRAMES;
        if (b.n_frames > 0)
            memcpy(b.frames, call->backtrace, b.n_frames * sizeof(*b.frames));
        if (!room_for(s, &s->born, &s->room, s->n_born + 1, sizeof(*s->born)) ||
            !room_for(s, &s->birth_of, &s->n_birth_of, i + 1, sizeof(*s->birth_of)))
            return;
        s->born[s->n_born++] = b;
        s->birth_of[i] = (uint32_t)s->n_born;
    }
}

static birth *birth_of(const search *s, const zt_object *o)
{
    return o != NULL && o->index < s->n_birth_of && s->birth_of[o->index] != 0 ? &s->born[s->birth_of[o->index] - 1] : NULL;
}

static const zt_object *ended_object(const search *s, const zt_call *call, uint64_t *value)
{
    for (unsigned i = 0; i < call->func->n_params; i++) {
        const zt_field *const f = &call->func->params[i];
        if (f->role == ZT_R_FREE || (f->role == ZT_R_DESTROY && f->shape == ZT_VALUE))
            *value = zt_word(call, f);
        if (f->role == ZT_R_FREE)
            return zt_object_of_address(s->objects, *value);
        if (f->role == ZT_R_DESTROY && f->shape == ZT_VALUE && zt_types[f->type].cls == ZT_HANDLE)
            return zt_object_of_handle(s->objects, &zt_types[f->type], *value);
    }
    return NULL;
}

/* Objects count as destroyed from the ENTER on. If that failed they are still there, until somebody destroys them after all. */
static void see_end(search *s, const zt_call *call)
{
    uint64_t value = 0;
    const zt_object *const o = ended_object(s, call, &value);
    birth *const b = birth_of(s, o);
    if (b != NULL && call->result == 0)
        b->refused = 0;
    if (call->result != 0 && b != NULL && o->destroyed == call->number &&
        room_for(s, &s->refused, &s->room_refused, s->n_refused + 1, sizeof(*s->refused))) {
        b->refused = call->number;
        s->refused[s->n_refused++] = s->birth_of[o->index] - 1;
    }
    /* a handle that is used once more behind that counts as another object */
    for (size_t i = s->n_refused; o != NULL && b == NULL && call->result == 0 && i > 0 && i + 1024 > s->n_refused; i--) {
        birth *const old = &s->born[s->refused[i - 1]];
        if (old->o->value == value && strcmp(old->o->kind, o->kind) == 0)
            old->refused = 0;
    }
}

static bool is_alive(const birth *b)
{
    return b->o->destroyed == 0 || b->refused != 0;
}

/* In the order of creation, so that a parent's own fate is known. Keeps what was not destroyed. */
static void settle(search *s)
{
    const zt_object *const *list;
    zt_objects_list(s->objects, &list);
    size_t kept = 0;
    for (size_t i = 0; i < s->n_born; i++) {
        birth *const b = &s->born[i];
        for (uint32_t k = 0; k < b->n_parents && is_alive(b) && b->parent == NONE; k++) {
            const birth *const p = birth_of(s, list[b->parents[k]]);
            if (p != NULL && (!is_alive(p) || p->parent != NONE))
                b->parent = is_alive(p) ? p->parent : p->object;
        }
    }
    for (size_t i = 0; i < s->n_born; i++)
        if (is_alive(&s->born[i]))
            s->born[kept++] = s->born[i];
    s->n_born = kept;
}

static int read_calls(search *s)
{
    zt_events *events = NULL;
    zt_event event;
    zt_progress progress;
    int status = s->objects ? zt_events_open(&events, s->trace) : ZT_E_MEMORY;
    zt_progress_start(&progress, "leaks", zt_trace_health(s->trace)->calls);
    while (status == ZT_OK && (status = zt_events_next(events, &event)) == ZT_OK) {
        const zt_call *const call = event.call;
        const zt_object *const *list;
        const size_t before = zt_objects_list(s->objects, &list);
        zt_objects_event(s->objects, s->trace, &event);
        if (event.phase == ZT_LEAVE && makes_objects(call->func) && !call->internal)
            see_births(s, call, before);
        else if (event.phase == ZT_LEAVE && (call->func->kind == ZT_K_DESTROY || call->func->kind == ZT_K_FREE))
            see_end(s, call);
        if (s->out_of_memory)
            status = ZT_E_MEMORY;
        zt_progress_step(&progress, call->number);
    }
    zt_progress_end(&progress);
    zt_events_close(events);
    settle(s);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- grouping */

static int compare_numbers(uint64_t x, uint64_t y)
{
    return x < y ? -1 : x > y;
}

/* What is told together: the same fate, the same function, the same place in the program. */
static int compare_groups(const birth *x, const birth *y)
{
    int d = compare_numbers(x->parent, y->parent);
    if (d == 0)
        d = strcmp(x->o->by->name, y->o->by->name);
    if (d == 0)
        d = strcmp(x->o->kind, y->o->kind);
    if (d == 0)
        d = compare_numbers(x->refused != 0, y->refused != 0);
    if (d == 0)
        d = compare_numbers(x->n_frames, y->n_frames);
    return d ? d : memcmp(x->frames, y->frames, x->n_frames * sizeof(*x->frames));
}

static int by_group(const void *a, const void *b)
{
    const birth *const x = a, *const y = b;
    const int d = compare_groups(x, y);
    return d ? d : compare_numbers(x->object, y->object);
}

typedef struct group {
    const birth *first;
    size_t n;
    uint64_t bytes;
} group;

static int by_first(const void *a, const void *b)
{
    const group *const x = a, *const y = b;
    const int d = compare_numbers(x->first->parent != NONE, y->first->parent != NONE);
    return d ? d : compare_numbers(x->first->object, y->first->object);
}

/* @return NULL when memory is out. */
static group *make_groups(search *s, size_t *n)
{
    group *const groups = malloc((s->n_born + 1) * sizeof(*groups));
    *n = 0;
    if (groups == NULL)
        return NULL;
    if (s->n_born > 0)
        qsort(s->born, s->n_born, sizeof(*s->born), by_group);
    for (size_t i = 0; i < s->n_born; i++) {
        if (i == 0 || compare_groups(&s->born[i - 1], &s->born[i]) != 0)
            groups[(*n)++] = (group){.first = &s->born[i]};
        groups[*n - 1].n++;
        groups[*n - 1].bytes += s->born[i].o->size;
    }
    qsort(groups, *n, sizeof(*groups), by_first);
    return groups;
}

/* ------------------------------------------------------------------------------------------------------------ telling */

static const zt_object *object_at(const search *s, uint32_t index)
{
    const zt_object *const *list;
    return index < zt_objects_list(s->objects, &list) ? list[index] : NULL;
}

static const char *frame_name(const search *s, uint64_t address, char *room, size_t size)
{
    const char *const name = zt_trace_frame(s->trace, address);
    snprintf(room, size, "0x%" PRIx64, address);
    return name ? name : room;
}

static bool is_main(const char *frame)
{
    const char *const inlined = strstr(frame, "inlined into main"), *const name = inlined ? inlined + 13 : frame;
    return strncmp(name, "main", 4) == 0 && (name[4] == ' ' || name[4] == '\0');
}

static void tell_group(const search *s, const group *g)
{
    const birth *const b = g->first;
    const zt_object *const parent = object_at(s, b->parent);
    printf("  %zu %s", g->n, b->o->kind);
    if (strcmp(b->o->kind, "mem") == 0)
        printf(", %" PRIu64 " bytes", g->bytes);
    printf(", %s:", b->o->by->name);
    for (size_t i = 0; i < g->n && i < SHOWN; i++)
        printf(" #%" PRIu64, b[i].o->created);
    if (g->n > SHOWN)
        printf(" and %zu more", g->n - SHOWN);
    if (parent != NULL)
        printf(", with %s#%u in #%" PRIu64, parent->kind, parent->generation, parent->destroyed);
    if (b->refused != 0)
        printf("; #%" PRIu64 "%s was to destroy it, and failed", b->refused, g->n > 1 ? ", for one," : "");
    putchar('\n');
    for (uint32_t i = 0; i < b->n_frames && i < SHOWN; i++) {
        char address[32];
        const char *const name = frame_name(s, b->frames[i], address, sizeof(address));
        printf("      at %s\n", name);
        if (is_main(name))
            break; /* what is behind it is the same for all */
    }
}

static void json_group(const search *s, const group *g)
{
    const birth *const b = g->first;
    const zt_object *const parent = object_at(s, b->parent);
    printf("{\"kind\":\"%s\",\"by\":", b->o->kind);
    zt_json_string(stdout, b->o->by->name);
    printf(",\"count\":%zu,\"bytes\":%" PRIu64 ",\"objects\":[", g->n, g->bytes);
    for (size_t i = 0; i < g->n; i++)
        printf("%s\"%s#%u\"", i ? "," : "", b[i].o->kind, b[i].o->generation);
    printf("],\"calls\":[");
    for (size_t i = 0; i < g->n; i++)
        printf("%s%" PRIu64, i ? "," : "", b[i].o->created);
    printf("]");
    if (parent != NULL)
        printf(",\"parent\":\"%s#%u\",\"ended\":%" PRIu64, parent->kind, parent->generation, parent->destroyed);
    if (b->refused != 0)
        printf(",\"refused\":%" PRIu64, b->refused);
    printf(",\"backtrace\":[");
    for (uint32_t i = 0; i < b->n_frames; i++) {
        char address[32];
        printf("%s", i ? "," : "");
        zt_json_string(stdout, frame_name(s, b->frames[i], address, sizeof(address)));
    }
    printf("]}");
}

static void tell(const search *s, const char *path, const group *groups, size_t n, size_t lost, uint64_t bytes, bool json)
{
    if (json) {
        printf("{\"objects\":%zu,\"bytes\":%" PRIu64 ",\"leaks\":[", lost, bytes);
        for (size_t i = 0; i < n; i++) {
            const bool begins = i > 0 && groups[i].first->parent != NONE && groups[i - 1].first->parent == NONE;
            printf("%s", i == 0 && groups[i].first->parent != NONE ? "],\"with_parent\":[" : begins ? "],\"with_parent\":[" : i ? "," : "");
            json_group(s, &groups[i]);
        }
        puts(n > 0 && groups[n - 1].first->parent != NONE ? "]}" : "],\"with_parent\":[]}");
        return;
    }
    if (lost == 0)
        printf("%s: everything that was created was destroyed%s\n", path, n > 0 ? ", or ended with its parent" : "");
    else
        printf("%s: %zu object%s never destroyed, %" PRIu64 " bytes of memory among them\n", path, lost, lost == 1 ? " was" : "s were", bytes);
    for (size_t i = 0; i < n; i++) {
        const bool with_parent = groups[i].first->parent != NONE;
        if (i == 0 || with_parent != (groups[i - 1].first->parent != NONE))
            printf("\n%s\n", with_parent ? "not destroyed, but what they were made from was" : "never destroyed");
        tell_group(s, &groups[i]);
    }
}

/* What stands there at the end of a program that did not come to its end is no fault of its. */
static void tell_ending(const zt_trace *trace, const char *path)
{
    const zt_ending *const ending = zt_trace_ending(trace);
    if (ending != NULL && ending->signalled)
        zt_complain("%s: the program was ended by signal %d; it may have had no time to destroy what it made", path, ending->status);
    else if (ending != NULL && ending->never_returned > 0)
        zt_complain("%s: a call of the program never returned; it may have had no time to destroy what it made", path);
    zt_tell_dropped(trace, path);
}

static int find(zt_trace *trace, const char *path, bool all, bool json)
{
    search s = {.trace = trace, .objects = zt_objects_new()};
    const int read = read_calls(&s);
    size_t n = 0, lost = 0;
    uint64_t bytes = 0;
    group *const groups = read == ZT_E_MEMORY ? NULL : make_groups(&s, &n);
    for (size_t i = 0; i < n; i++) {
        lost += groups[i].first->parent == NONE ? groups[i].n : 0;
        bytes += groups[i].first->parent == NONE ? groups[i].bytes : 0;
    }
    int status = lost > 0 || (all && n > 0) ? ZT_EXIT_DIFFERS : ZT_EXIT_OK;
    if (groups == NULL) {
        zt_complain("%s: not enough memory", path);
        status = ZT_EXIT_CANNOT;
    } else {
        tell(&s, path, groups, n, lost, bytes, json);
        tell_ending(trace, path);
        zt_tell_health(trace, path);
        if (zt_trace_health(trace)->calls == 0 && zt_trace_health(trace)->damaged_chunks > 0)
            status = ZT_EXIT_DAMAGED;
    }
    free(groups);
    free(s.born);
    free(s.birth_of);
    free(s.refused);
    zt_objects_free(s.objects);
    return status;
}

static int run(int argc, char **argv)
{
    zt_parser parser;
    zt_trace *trace;
    bool all = false, json = false;
    zt_parser_init(&parser, &zt_command_leaks, argc, argv);
    for (int id; (id = zt_option_next(&parser)) != 0;) {
        if (id == ZT_OPTION_HELP)
            return zt_finish_output(ZT_EXIT_OK);
        if (id == ZT_OPTION_ERROR)
            return ZT_EXIT_USAGE;
        all |= id == ALL;
        json |= id == JSON;
    }
    int status = zt_open_calls(&parser, &trace);
    if (status != ZT_EXIT_OK)
        return status;
    status = find(trace, argv[parser.at], all, json);
    zt_trace_close(trace);
    return zt_finish_output(status);
}

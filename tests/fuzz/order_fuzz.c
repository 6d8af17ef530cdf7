/* SPDX-License-Identifier: MIT */
/*
 * Property: whatever a program did, the graph of its trace is made, checked, scheduled and turned into items without a crash; nothing comes
 * before itself, a line has each node once and in an order that the graph allows, and a time line each execution. The bytes choose calls, their objects, arguments, threads and results.
 */
#include "convert/convert.h"
#include "graph.h"
#include "self_wait.h"
#include "trace_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OBJECTS = 4, CALLS = 300, PAIRS = 400, ROOM = 4096 };

static bool sane; /* each thread makes one call at a time */
static uint64_t left_ns[4];
static char path[64], folder[] = "/tmp/zetrace-fuzz.XXXXXX";
static uint16_t wanted[512]; /* functions that the graph has an opinion on */
static size_t n_wanted;
static unsigned long n_executions, n_ran, n_lines, n_before, n_findings; /* whether the property was tried at all */

static void set_up(void)
{
    if (path[0] != 0)
        return;
    if (mkdtemp(folder) == NULL)
        exit(2);
    snprintf(path, sizeof(path), "%s/t", folder);
    for (unsigned i = 0; i < zt_n_funcs && n_wanted < 512; i++)
        if (zt_funcs[i].ns == ZT_NS_ZE && zt_funcs[i].n_words <= 32 && zt_funcs[i].kind >= ZT_K_CREATE && zt_funcs[i].kind <= ZT_K_EVICT)
            wanted[n_wanted++] = (uint16_t)i;
}

typedef struct source {
    const uint8_t *at;
    size_t n;
} source;

static unsigned pick(source *s, unsigned n)
{
    if (s->n == 0)
        return 0;
    s->n--;
    return *s->at++ % n;
}

/* ----------------------------------------------------------------------------------------------------------- one call */

typedef struct making {
    source *from;
    uint64_t words[64];
    zt_piece in[16], out[16];
    zt_content contents[2];
    unsigned n_in, n_out;
    uint8_t room[ROOM];
    size_t used;
} making;

static uint64_t handle(making *m, unsigned type)
{
    return pick(m->from, 40) == 0 ? 0xbad : 0x10000 + zt_types[type].base * 64u + pick(m->from, OBJECTS) * 8;
}

static uint64_t address(making *m)
{
    return 0x7f0000000000ull + pick(m->from, OBJECTS) * 0x10000ull + pick(m->from, 4) * 512;
}

static uint64_t value(making *m, const zt_field *f)
{
    if (zt_types[f->type].cls == ZT_HANDLE)
        return handle(m, f->type);
    if (f->role == ZT_R_TIMEOUT)
        return pick(m->from, 3) ? UINT64_MAX : 0;
    return f->role == ZT_R_SIZE ? 1ull << pick(m->from, 13) : pick(m->from, 4);
}

static void *scratch(making *m, size_t size)
{
    void *const p = m->used + size <= ROOM ? m->room + m->used : NULL;
    m->used += p ? (size + 15) & ~(size_t)15 : 0;
    return p;
}

/* What a pointer points to, before or after the call. */
static uint64_t piece(making *m, const zt_field *f, bool after)
{
    const unsigned n = f->shape == ZT_ARRAY ? 4 : 1, size = zt_types[f->type].size ? zt_types[f->type].size : 1;
    uint8_t *const data = scratch(m, (size_t)n * size);
    zt_piece *const p = after ? &m->out[m->n_out] : &m->in[m->n_in];
    if (data == NULL || (after ? m->n_out : m->n_in) == 16)
        return 0;
    for (size_t i = 0; i < (size_t)n * size; i++)
        data[i] = zt_types[f->type].cls == ZT_STRUCT && pick(m->from, 4) == 0 ? (uint8_t)pick(m->from, 4) : 0;
    for (unsigned i = 0; i < n && size == 8 && zt_types[f->type].cls != ZT_STRUCT; i++) {
        const uint64_t v = zt_types[f->type].cls == ZT_HANDLE ? handle(m, f->type) : address(m);
        memcpy(data + i * 8u, &v, 8);
    }
    if (zt_types[f->type].cls == ZT_STRUCT && zt_types[f->type].stype >= 0) {
        const uint32_t stype = (uint32_t)zt_types[f->type].stype;
        memcpy(data, &stype, 4);
        memset(data + 8, 0, size >= 16 ? 8 : 0); /* no chain */
    }
    *p = (zt_piece){.addr = (uintptr_t)data, .len = (uint64_t)n * size, .data = data};
    *(after ? &m->n_out : &m->n_in) += 1;
    return (uintptr_t)data;
}

static void fill(making *m, const zt_func *func)
{
    for (unsigned i = 0; i < func->n_params; i++) {
        const zt_field *const f = &func->params[i];
        uint64_t *const word = &m->words[f->offset];
        if (f->shape == ZT_VALUE)
            *word = value(m, f);
        else if (f->shape == ZT_ADDRESS)
            *word = address(m);
        else if ((f->shape == ZT_ONE || f->shape == ZT_ARRAY) && zt_types[f->type].cls != ZT_VOID && !(f->optional && pick(m->from, 2)))
            *word = piece(m, f, f->dir == ZT_OUT);
    }
}

/* A kind first: there are many ways to append, and one to wait for a fence. */
static const zt_func *choose(source *s)
{
    static const uint8_t kinds[] = {ZT_K_APPEND, ZT_K_APPEND, ZT_K_APPEND, ZT_K_EXECUTE, ZT_K_EXECUTE, ZT_K_SYNC, ZT_K_QUERY, ZT_K_HOST_SIGNAL,
                                    ZT_K_HOST_RESET, ZT_K_CREATE, ZT_K_CREATE, ZT_K_CREATE, ZT_K_ALLOC, ZT_K_FREE, ZT_K_EVICT, ZT_K_CLOSE,
                                    ZT_K_RESET, ZT_K_DESTROY};
    const unsigned kind = kinds[pick(s, sizeof(kinds))], from = pick(s, 256);
    for (size_t i = 0; i < n_wanted; i++)
        if (zt_funcs[wanted[(from + i) % n_wanted]].kind == kind)
            return &zt_funcs[wanted[(from + i) % n_wanted]];
    return &zt_funcs[wanted[0]];
}

static void make_call(making *m, zt_call *call, source *s, uint64_t *time)
{
    const zt_func *const func = choose(s);
    memset(m, 0, offsetof(making, room));
    m->used = 0;
    m->from = s;
    fill(m, func);
    *call = (zt_call){.func = func, .thread = 1 + pick(s, 3), .words = m->words, .enter_ns = *time += pick(s, 20), .in = m->in, .out = m->out,
                      .n_in = m->n_in, .n_out = m->n_out, .contents = m->contents, .returned = pick(s, 30) != 0,
                      .nested = pick(s, 60) == 0};
    static const int64_t results[] = {0x70000001, 1, 0x7ffffffe, 0x78000004};
    call->result = pick(s, 12) == 0 ? results[pick(s, 4)] : 0;
    if (sane && call->enter_ns <= left_ns[call->thread])
        call->enter_ns = *time = left_ns[call->thread] + 1;
    call->leave_ns = left_ns[call->thread] = *time + pick(s, 60);
    if (!call->returned)
        call->n_out = 0;
    if (pick(s, 6) == 0) {
        m->contents[0] = (zt_content){.kind = (uint8_t)(1 + pick(s, 3)), .changed = pick(s, 2) != 0, .addr = address(m), .len = 64, .data = m->room};
        call->n_contents = 1;
    }
}

static bool write_trace(source *s)
{
    zt_session session = {.pid = 42, .start_wall_ns = 1, .uuid = "fifteen letters"};
    zt_pair knobs[] = {{(char[]){"ZE_SOFT_FREE"}, (char[]){"block"}}, {(char[]){"ZE_SOFT_ENGINES"}, (char[]){"shared"}},
                       {(char[]){"ZE_SOFT_APPEND"}, (char[]){"block"}}};
    zt_library library = {.path = (char[]){"/x/libze_soft.so.1"}, .build_id = (char[]){""}};
    static making m;
    const zt_writer_options options = {.overwrite = true, .max_calls = 64, .level = 1};
    zt_error error;
    zt_writer *w;
    uint64_t time = 1000;
    session.environment = knobs;
    session.n_environment = pick(s, 4);
    session.libraries = &library;
    session.n_libraries = 1;
    if (zt_writer_open(&w, path, &session, &options, &error) != ZT_OK)
        return false;
    uint64_t n = 0;
    while (s->n > 0 && n < CALLS) {
        zt_call call;
        make_call(&m, &call, s, &time);
        call.number = ++n;
        if (zt_writer_call(w, &call) != ZT_OK)
            break;
    }
    const zt_ending ending = {.complete = 1, .exited = 1, .calls = n};
    return zt_writer_close(w, &ending, &error) == ZT_OK;
}

/* -------------------------------------------------------------------------------------------------------------- looking */

static void expect(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "order_fuzz: %s (%s)\n", what, path);
    abort();
}

static uint32_t any_node(const zo_graph *g, source *s)
{
    const unsigned i = pick(s, 256) * 256 + pick(s, 256);
    return g->n_instances > 0 && i % 3 ? i % (uint32_t)g->n_instances : (i % (uint32_t)g->n_calls) | ZO_CALL_BIT;
}

static bool ran(const zo_graph *g, uint32_t node)
{
    return (node & ZO_CALL_BIT) || g->instances[node].order != 0;
}

static void look_at_pairs(zo_graph *g, source *s)
{
    for (unsigned i = 0; i < PAIRS && s->n > 0; i++) {
        const uint32_t a = any_node(g, s), b = any_node(g, s);
        const bool forth = zo_before(g, a, b);
        n_before += forth;
        expect(!zo_before(g, a, a), "a node comes before itself");
        expect(!forth || !zo_before(g, b, a), "two nodes come before each other");
        expect(forth == zo_before(g, a, b), "asked again, the answer is another one");
    }
}

/* strict: nothing was made only because the trace says that it returned. */
static void look_at_line(zo_graph *g, const uint32_t *line, size_t n, bool strict)
{
    uint32_t *const place = calloc(g->n_instances + 2 * g->n_calls + 1, sizeof(*place));
    for (size_t i = 0; place != NULL && i < n; i++) {
        const uint32_t node = line[i];
        const size_t at = node & ZO_CALL_BIT    ? g->n_instances + (node & ~ZO_CALL_BIT)
                          : node & ZO_WRITE_BIT ? g->n_instances + g->n_calls + (node & ~ZO_WRITE_BIT)
                                                : node;
        expect(at < g->n_instances + 2 * g->n_calls, "a node that there is not");
        expect(place[at] == 0, "a node comes twice");
        place[at] = (uint32_t)i + 1;
        expect(!strict || i == 0 || (node & ZO_WRITE_BIT) || (line[i - 1] & (ZO_WRITE_BIT | ZO_CALL_BIT)) == ZO_WRITE_BIT || !zo_before(g, node, line[i - 1]),
               "a node comes behind one that it is to come before");
        expect((node & (ZO_CALL_BIT | ZO_WRITE_BIT)) || place[g->n_instances + g->instances[node].submit] != 0, "a command comes before its submit");
    }
    free(place);
    size_t items = 0;
    free(zo_graph_items(g, line, n, &items));
}

static void schedule(zo_graph *g, source *s)
{
    zo_wishes wishes = {0};
    char why[400];
    uint32_t like[8], stuck;
    for (unsigned i = pick(s, 5); i > 0; i--) {
        const uint32_t before = any_node(g, s) | ZO_CALL_BIT, after = any_node(g, s);
        if ((before & ~ZO_CALL_BIT) < g->n_calls && ran(g, after))
            zo_wish(g, &wishes, before, after, why, sizeof(why));
    }
    if (pick(s, 3) == 0)
        zo_wish_sync(g, pick(s, 2) ? &wishes : NULL, 1 + pick(s, CALLS % 256), pick(s, 2), NULL, why, sizeof(why));
    if (pick(s, 3) == 0)
        zo_wish_driver(g, &wishes);
    if (pick(s, 3) == 0)
        zo_wish_serialize(g, &wishes, (int)pick(s, 4));
    for (unsigned i = 0; i < 8; i++)
        like[i] = any_node(g, s);
    for (int policy = ZO_P_EARLY; policy <= ZO_P_LIKE; policy++) {
        uint32_t *line = NULL;
        const size_t n = zo_schedule(g, policy, pick(s, 4), like, 8, wishes.list, policy == ZO_P_EARLY ? 0 : wishes.n, &line, &stuck);
        n_lines += n > 0;
        if (n > 0)
            look_at_line(g, line, n, sane && wishes.n > 0 && policy != ZO_P_EARLY);
        else if (stuck != ZO_NONE)
            zo_why_stuck(g, &wishes, stuck, why, sizeof(why));
        free(line);
    }
    free(wishes.list);
}

/* Time lines have each execution, whatever its times are said to be. */
static void draw(zt_trace *trace, uint64_t executions)
{
    static FILE *nowhere;
    zv_timeline_facts facts;
    zt_error error;
    if (nowhere == NULL && (nowhere = fopen("/dev/null", "wb")) == NULL)
        exit(2);
    if (zv_chrome_write(trace, nowhere, NULL, &facts, &error) == ZT_OK)
        expect(facts.commands == executions, "an execution has no place in the time line");
    zv_perfetto_write(trace, nowhere, NULL, &facts, &error);
}

static void look(source *s)
{
    for (unsigned vendor = 0; vendor < 2; vendor++) {
        zt_trace *trace;
        zt_error error;
        zo_graph *g;
        const zo_graph_options options = {.vendor = vendor == 1};
        if (zt_trace_open(&trace, path, &error) != ZT_OK)
            return;
        if (zo_graph_make(&g, trace, &options, &error) == ZT_OK) {
            const zo_finding *findings;
            zo_graph_numbers numbers;
            zo_check(g);
            n_findings += zo_findings(g, &findings);
            zo_graph_count(g, &numbers);
            n_executions += numbers.executions;
            n_ran += numbers.executions - numbers.never_ran;
            if (g->n_calls > 0) {
                source again = *s;
                schedule(g, &again);
                look_at_pairs(g, &again);
            }
            zo_graph_free(g);
            if (vendor == 0)
                draw(trace, numbers.executions);
        }
        zt_trace_close(trace);
    }
}

/* The first byte says whether the trace is damaged besides. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    set_up();
    source s = {data, size};
    const bool damaged = pick(&s, 4) == 0;
    sane = !damaged && pick(&s, 4) > 0;
    memset(left_ns, 0, sizeof(left_ns));
    source rest = {s.at + s.n - s.n / 4, s.n / 4};
    s.n -= s.n / 4;
    if (!write_trace(&s))
        return 0;
    bytes whole = read_file(path);
    const size_t at = damaged ? find_chunk(&whole, ZT_CHUNK_CALLS, pick(&rest, 3)) : 0;
    if (at != 0) {
        zt_chunk_header h;
        memcpy(&h, whole.at + at, sizeof(h));
        bytes raw = chunk_contents(&whole, at);
        for (unsigned i = 1 + pick(&rest, 6); i > 0 && raw.n > 0; i--)
            raw.at[(pick(&rest, 256) * 256u + pick(&rest, 256)) % raw.n] ^= (uint8_t)(1u << pick(&rest, 8));
        bytes file = with_contents(&whole, at, raw.at, raw.n, h.calls, h.late);
        write_file(path, file.at, file.n);
        free(file.at);
        free(raw.at);
    }
    free(whole.at);
    look(&rest);
    return 0;
}

#ifndef FUZZ_WITH_LIBFUZZER
int main(int argc, char **argv)
{
    const double seconds = argc >= 3 && strcmp(argv[1], "--seconds") == 0 ? atof(argv[2]) : 2;
    const time_t start = time(NULL);
    uint64_t seed = argc >= 5 && strcmp(argv[3], "--seed") == 0 ? strtoull(argv[4], NULL, 0) : 1;
    static uint8_t data[32768];
    unsigned long rounds = 0;
    for (; rounds == 0 || difftime(time(NULL), start) < seconds + 0.5; rounds++, seed++) {
        uint64_t state = seed * 0x9e3779b97f4a7c15ull;
        const size_t size = 200 + seed * 977 % (sizeof(data) - 200);
        for (size_t i = 0; i < size; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            data[i] = (uint8_t)(state >> 24);
        }
        if (getenv("ORDER_FUZZ_SHOW"))
            fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
        LLVMFuzzerTestOneInput(data, size);
    }
    unlink(path);
    rmdir(folder);
    printf("%lu programs; %lu executions, %lu of them ran; %lu pairs in order; %lu lines; %lu findings\n", rounds, n_executions, n_ran, n_before, n_lines,
           n_findings);
    return 0;
}
#endif

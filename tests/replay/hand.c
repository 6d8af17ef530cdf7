/* SPDX-License-Identifier: MIT */
#include "hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct kept {
    zt_call call;
    uint64_t words[64];
    zt_piece in[128], out[128];
    zt_content contents[8];
} kept;

struct hand {
    zr_target target;
    pthread_mutex_t mutex;
    kept *calls[65536];
    size_t n;
    zt_ending ending;
};

static _Thread_local unsigned this_thread = 1;
static _Thread_local zt_content waiting[8];
static _Thread_local uint32_t n_waiting;

void hand_thread(unsigned thread)
{
    this_thread = thread;
}

void hand_ending(hand *h, bool signalled, int status)
{
    h->ending.signalled = signalled;
    h->ending.exited = !signalled;
    h->ending.status = status;
}

zt_call *hand_last(hand *h)
{
    return &h->calls[h->n - 1]->call;
}

void hand_contents(hand *h, int kind, const void *address, size_t size)
{
    (void)h;
    waiting[n_waiting++] = (zt_content){.kind = (uint8_t)kind, .addr = W(address), .len = size};
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *copy(const void *data, size_t size)
{
    void *const p = malloc(size + 1);
    memcpy(p, data, size);
    return p;
}

typedef struct keeper {
    zt_piece *pieces;
    uint32_t n;
} keeper;

static int keep(void *ctx, const zt_node *node)
{
    keeper *const k = ctx;
    if (node->kind == ZT_N_TARGET && k->n < 128)
        k->pieces[k->n++] = (zt_piece){.addr = node->addr, .len = node->size, .data = copy(node->data, node->size)};
    return 0;
}

static kept *begin(hand *h, const zt_func *func, const uint64_t *words)
{
    kept *const k = calloc(1, sizeof(*k));
    memcpy(k->words, words, func->n_words * 8u);
    keeper in = {k->in, 0};
    const zt_walk walk = {.func = func,
                          .words = k->words,
                          .phase = ZT_ENTER,
                          .memory = &zt_live_memory,
                          .targets_only = true,
                          .visit = keep,
                          .ctx = &in};
    zt_walk_call(&walk);
    memcpy(k->contents, waiting, sizeof(waiting));
    k->call = (zt_call){.func = func,
                        .thread = this_thread,
                        .words = k->words,
                        .in = k->in,
                        .out = k->out,
                        .n_in = in.n,
                        .contents = k->contents,
                        .n_contents = n_waiting};
    n_waiting = 0;
    for (uint32_t i = 0; i < k->call.n_contents; i++)
        if (k->contents[i].kind != ZT_C_READBACK)
            k->contents[i].data = copy((void *)(uintptr_t)k->contents[i].addr, k->contents[i].len);
    pthread_mutex_lock(&h->mutex);
    k->call.enter_ns = now_ns();
    h->calls[h->n++] = k;
    k->call.number = h->n;
    pthread_mutex_unlock(&h->mutex);
    return k;
}

static void end(kept *k, int64_t result)
{
    k->call.leave_ns = now_ns();
    k->call.result = result;
    k->call.returned = 1;
    /* as of ENTER: with the memory that was kept, for capacities */
    zt_call_memory before = {.call = &k->call, .phase = ZT_ENTER};
    const zt_memory then = zt_memory_of(&before);
    keeper out = {k->out, 0};
    const zt_walk walk = {.func = k->call.func,
                          .words = k->words,
                          .phase = ZT_LEAVE,
                          .result = result,
                          .memory = &zt_live_memory,
                          .targets_only = true,
                          .before = &then,
                          .visit = keep,
                          .ctx = &out};
    zt_walk_call(&walk);
    k->call.n_out = out.n;
    for (uint32_t i = 0; i < k->call.n_contents; i++)
        if (k->contents[i].kind == ZT_C_READBACK)
            k->contents[i].data = copy((void *)(uintptr_t)k->contents[i].addr, k->contents[i].len);
}

int64_t hand_call(hand *h, const char *function, const uint64_t *words)
{
    const int id = zt_func_find(function);
    void *const fn = id >= 0 ? zr_target_function(&h->target, (uint32_t)id) : NULL;
    if (fn == NULL) {
        fprintf(stderr, "no function %s\n", function);
        _exit(99);
    }
    kept *const k = begin(h, &zt_funcs[id], words);
    const int64_t result = zr_thunks[id](fn, k->words);
    end(k, result);
    return result;
}

void hand_pretend(hand *h, const char *function, const uint64_t *words, int64_t result)
{
    end(begin(h, &zt_funcs[zt_func_find(function)], words), result);
}

static void record(const char *path, const char *schedule, void (*program)(hand *h))
{
    hand *const h = calloc(1, sizeof(*h));
    zr_plan none = {.recorded_soft = true, .recorded_driver = (char[]){"soft"}};
    zr_options options;
    char message[512];
    zr_options_default(&options);
    options.schedule = schedule;
    options.soft_library = getenv("TEST_SOFT");
    pthread_mutex_init(&h->mutex, NULL);
    if (!zr_target_choose(&h->target, &none, &options, message, sizeof(message)) ||
        !zr_target_load(&h->target, &none, &options, message, sizeof(message))) {
        fprintf(stderr, "%s\n", message);
        _exit(98);
    }
    h->ending = (zt_ending){.complete = 1, .exited = 1, .threads = 1};
    program(h);
    zt_library library = {.path = (char *)getenv("TEST_SOFT"), .build_id = (char[]){""}};
    zt_pair knob = {(char[]){"ZE_SOFT_SCHEDULE"}, (char *)(uintptr_t)schedule};
    char *none_text = (char[]){""};
    zt_session session = {.program = (char[]){"hand"},
                          .hostname = none_text,
                          .rank = none_text,
                          .version = none_text,
                          .order = (char[]){"tsc"},
                          .attach = (char[]){"layer"},
                          .memory = (char[]){"inputs"},
                          .libraries = &library,
                          .n_libraries = 1,
                          .environment = &knob,
                          .n_environment = schedule[0] ? 1 : 0};
    zt_writer *writer;
    zt_error error;
    const zt_writer_options overwrite = {.overwrite = true};
    if (zt_writer_open(&writer, path, &session, &overwrite, &error) != ZT_OK) {
        fprintf(stderr, "%s\n", error.text);
        _exit(97);
    }
    const uint64_t start = h->n ? h->calls[0]->call.enter_ns : 0;
    for (size_t i = 0; i < h->n; i++) {
        h->calls[i]->call.enter_ns -= start;
        if (h->calls[i]->call.returned)
            h->calls[i]->call.leave_ns -= start;
        zt_writer_call(writer, &h->calls[i]->call);
    }
    h->ending.calls = h->n;
    _exit(zt_writer_close(writer, &h->ending, &error) == ZT_OK ? 0 : 96);
}

bool hand_record(const char *path, const char *schedule, void (*program)(hand *h))
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0)
        record(path, schedule, program);
    int status = -1;
    waitpid(pid, &status, 0);
    if (status != 0)
        fprintf(stderr, "%s: recording by hand ended with status 0x%x\n", path, status);
    return status == 0;
}

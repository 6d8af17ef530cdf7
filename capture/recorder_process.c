/* SPDX-License-Identifier: MIT */
/* One recorded process: its rings merged into one order, its trace. */
#include "recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define STORE_BUFFER_NS 1000000ull    /* ring.h: a store is visible after that time */
#define OPEN_PATIENCE_NS 20000000ull  /* a call that lasts longer is emitted before it returns */
#define FLUSH_NS 500000000ull

uint64_t zc_mono_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t zc_ticks_now(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    return zc_mono_now();
#endif
}

static uint64_t now_ticks(const zc_process *process)
{
    return process->counter ? zc_mono_now() : zc_ticks_now();
}

uint64_t zc_process_ns(const zc_process *process, uint64_t ticks)
{
    if (ticks <= process->ticks0)
        return 0;
    return (uint64_t)((double)(ticks - process->ticks0) * process->ns_per_tick);
}

static uint64_t ns_to_ticks(const zc_process *process, uint64_t ns)
{
    return (uint64_t)((double)ns / (process->ns_per_tick > 0 ? process->ns_per_tick : 1));
}

/* The rate must not change once times have been given out: it is fixed when the first call is at hand. */
static void calibrate(const zc_recorder *recorder, zc_process *process)
{
    if (process->ns_per_tick != 0)
        return;
    process->ns_per_tick = 1;
    if (process->counter)
        return;
    uint64_t ticks, mono;
    do {
        mono = zc_mono_now();
        ticks = zc_ticks_now();
    } while (mono - recorder->calibrate_ns < 5000000u);
    process->ns_per_tick = (double)(mono - recorder->calibrate_ns) / (double)(ticks - recorder->calibrate_ticks);
}

zc_process *zc_process_new(zc_recorder *recorder, const zc_hello *hello, int32_t system_pid)
{
    zc_process *const p = calloc(1, sizeof(*p));
    if (p == NULL)
        return NULL;
    p->pid = hello->pid;
    p->system_pid = system_pid;
    p->parent_pid = hello->parent_pid;
    p->forked = hello->forked;
    p->counter = hello->order != 0;
    p->ticks0 = hello->ticks;
    p->mono0 = hello->monotonic_ns;
    p->real0 = hello->realtime_ns;
    p->pidfd = (int)syscall(SYS_pidfd_open, system_pid, 0);
    zc_session_read(recorder, p);
    return p;
}

/* ------------------------------------------------------------------------------------------------------------- names */

bool zc_expand_name(char *out, size_t size, const char *pattern, int64_t pid, const char *host, const char *rank,
                    const char *program, unsigned round)
{
    size_t n = 0;
    for (const char *p = pattern; *p; p++) {
        char number[32] = {*p, 0};
        const char *text = number;
        if (*p == '%') {
            p++;
            if (*p == 'p' || *p == 'i')
                snprintf(number, sizeof(number), "%lld", *p == 'p' ? (long long)pid : (long long)round);
            else if (*p == 'h')
                text = host;
            else if (*p == 'r')
                text = rank;
            else if (*p == 'n')
                text = program;
            else if (*p != '%')
                return false;
        }
        const size_t length = strlen(text);
        if (n + length + 1 > size)
            return false;
        memcpy(out + n, text, length);
        n += length;
    }
    out[n] = '\0';
    return n > 0;
}

static bool taken(const zc_recorder *recorder, const char *name)
{
    for (size_t i = 0; i < recorder->n_names; i++)
        if (strcmp(recorder->names[i], name) == 0)
            return true;
    return false;
}

static bool exists(const char *name)
{
    struct stat st;
    return lstat(name, &st) == 0;
}

/* The pattern's name, or the first free one with a number put in front of its ending. */
static bool choose_name(zc_recorder *recorder, zc_process *p)
{
    char plain[4096];
    const zc_record_options *const o = recorder->options;
    const char *const slash = strrchr(p->session.program, '/');
    if (!zc_expand_name(plain, sizeof(plain), o->output, p->pid, recorder->hostname, zc_rank(),
                        slash ? slash + 1 : p->session.program, o->round))
        return false;
    const char *const dot = strrchr(plain, '.');
    const size_t stem = dot != NULL && strchr(dot, '/') == NULL && dot != plain ? (size_t)(dot - plain) : strlen(plain);
    for (unsigned n = 1; n < 100000; n++) {
        int length;
        if (n == 1)
            length = snprintf(p->file, sizeof(p->file), "%s", plain);
        else
            length = snprintf(p->file, sizeof(p->file), "%.*s.%u%s", (int)stem, plain, n, plain + stem);
        if (length < 0 || (size_t)length >= sizeof(p->file))
            return false;
        if (taken(recorder, p->file) || (!o->overwrite && exists(p->file)))
            continue;
        char **const grown = realloc(recorder->names, (recorder->n_names + 1) * sizeof(*grown));
        if (grown == NULL)
            return false;
        recorder->names = grown;
        recorder->names[recorder->n_names] = strdup(p->file);
        recorder->n_names += recorder->names[recorder->n_names] != NULL;
        return true;
    }
    return false;
}

bool zc_process_open_writer(zc_recorder *recorder, zc_process *p)
{
    const zt_writer_options options = {.level = recorder->options->level, .overwrite = recorder->options->overwrite};
    zc_session_read(recorder, p); /* again: by now the loader and its drivers are mapped, and exec has settled */
    if (!choose_name(recorder, p)) {
        p->error = (zt_error){.status = ZT_E_USAGE};
        snprintf(p->error.text, sizeof(p->error.text), "%s: no file name could be made of this pattern", recorder->options->output);
        p->failed = true;
    } else if (zt_writer_open(&p->writer, p->file, &p->session, &options, &p->error) != ZT_OK) {
        p->writer = NULL;
        p->failed = true;
    }
    return !p->failed;
}

void zc_process_emit(zc_process *p, const zt_call *call)
{
    p->calls++;
    p->added_ns += call->added_ns;
    if (p->writer == NULL || p->failed)
        return;
    const int status = zt_writer_call(p->writer, call);
    if (status != ZT_OK) {
        p->failed = true;
        if (p->error.status == 0) {
            p->error.status = status;
            snprintf(p->error.text, sizeof(p->error.text), "%.300s: writing stopped at call #%llu: %s", p->file,
                     (unsigned long long)call->number, errno ? strerror(errno) : "the trace could not be extended");
        }
    }
}

/* -------------------------------------------------------------------------------------------------------------- merge */

typedef struct front {
    uint64_t t_enter;
    zc_reader *reader;
    bool open;
} front;

static void sift_down(front *heap, size_t n, size_t i)
{
    for (;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++)
            if (heap[child].t_enter < heap[least].t_enter)
                least = child;
        if (least == i)
            return;
        const front t = heap[i];
        heap[i] = heap[least];
        heap[least] = t;
        i = least;
    }
}

static uint64_t min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What a ring with nothing to take says about its future. */
static void move_bound(const zc_process *p, zc_reader *reader, uint64_t now)
{
    const uint64_t margin = ns_to_ticks(p, STORE_BUFFER_NS);
    const bool entering = atomic_load_explicit(&reader->ring->head, memory_order_acquire) & 1;
    if (p->ended || atomic_load_explicit(&reader->ring->closed, memory_order_acquire))
        reader->bound = entering && !p->ended ? reader->bound : UINT64_MAX;
    else if (!entering && now > margin && now - margin > reader->bound)
        reader->bound = now - margin;
}

void zc_process_look(zc_process *p)
{
    p->horizon = now_ticks(p);
}

bool zc_process_pass(zc_recorder *recorder, zc_process *p)
{
    if (p->n_readers == 0)
        return false;
    front *const heap = malloc(p->n_readers * sizeof(*heap));
    if (heap == NULL)
        return false;
    /* the bound of an idle ring is only as good as the look at the ring that came before it: time first */
    const uint64_t now = now_ticks(p), patience = p->ns_per_tick > 0 ? ns_to_ticks(p, OPEN_PATIENCE_NS) : UINT64_MAX;
    /* No further: threads not met yet may have entered calls since, and a program that never rests would keep us here. */
    uint64_t watermark = p->horizon;
    size_t n = 0;
    bool moved = false;
    for (size_t i = 0; i < p->n_readers; i++) {
        zc_reader *const r = p->readers[i];
        if (!r->broken) /* nobody will empty it: the program must not wait */
            atomic_fetch_add_explicit(&r->ring->beat, 1, memory_order_relaxed);
        move_bound(p, r, now);
        uint64_t t = 0;
        const uint64_t tail = r->tail;
        const enum zc_front what = zc_reader_front(r, p, &t);
        moved |= r->tail != tail;
        if (what == ZC_CALL || (what == ZC_CALL_OPEN && r->open_number == 0))
            heap[n++] = (front){t, r, what == ZC_CALL_OPEN};
        else if (what != ZC_BROKEN)
            watermark = min(watermark, r->bound);
    }
    for (size_t i = n / 2 + 1; i > 0; i--)
        if (i - 1 < n)
            sift_down(heap, n, i - 1);
    while (n > 0 && (heap[0].t_enter <= watermark || p->ended)) {
        zc_reader *const r = heap[0].reader;
        /* a call that is open is worth waiting for a little: most return at once */
        if (heap[0].open && !p->ended) {
            uint64_t t;
            const enum zc_front again = zc_reader_front(r, p, &t);
            if (again == ZC_CALL_OPEN && (now < heap[0].t_enter || now - heap[0].t_enter < patience))
                break;
        }
        calibrate(recorder, p);
        if (p->writer == NULL && !p->failed)
            zc_process_open_writer(recorder, p);
        zc_reader_take(r, p);
        moved = true;
        uint64_t t = 0;
        const enum zc_front what = r->open_number ? ZC_CALL_OPEN : zc_reader_front(r, p, &t);
        if (r->open_number == 0 && (what == ZC_CALL || what == ZC_CALL_OPEN)) {
            heap[0] = (front){t, r, what == ZC_CALL_OPEN};
        } else {
            if (what != ZC_BROKEN && !p->ended)
                watermark = min(watermark, r->bound);
            heap[0] = heap[--n];
        }
        sift_down(heap, n, 0);
    }
    free(heap);
    const uint64_t mono = zc_mono_now();
    if (p->writer != NULL && !p->failed && mono - p->last_flush_ns > FLUSH_NS) {
        p->last_flush_ns = mono;
        zt_writer_flush(p->writer);
    }
    return moved;
}

static void note_file(zc_record_summary *s, const char *file)
{
    char **const grown = realloc(s->files, (s->n_files + 1) * sizeof(*grown));
    if (grown == NULL)
        return;
    s->files = grown;
    if ((grown[s->n_files] = strdup(file)) != NULL)
        s->n_files++;
}

void zc_summary_free(zc_record_summary *s)
{
    for (size_t i = 0; i < s->n_files; i++)
        free(s->files[i]);
    free(s->files);
    s->files = NULL;
    s->n_files = 0;
}

void zc_process_finish(zc_recorder *recorder, zc_process *p)
{
    zc_record_summary *const s = recorder->summary;
    zt_ending ending = {.complete = 1, .exited = p->exited, .signalled = p->signalled, .status = p->status, .calls = p->calls,
                        .never_returned = p->never_returned, .threads = p->next_thread, .added_ns = p->added_ns};
    for (size_t i = 0; i < p->n_readers; i++) {
        const zc_ring *const ring = p->readers[i]->ring;
        ending.dropped += atomic_load(&ring->dropped);
        ending.dropped_bytes += atomic_load(&ring->dropped_bytes);
        ending.unknown_slots += atomic_load(&ring->unknown_slots);
        ending.unknown_pnext += atomic_load(&ring->unknown_pnext);
        ending.unwrapped_extensions += atomic_load(&ring->unwrapped_extensions);
        zc_reader_free(p->readers[i]);
    }
    s->calls += p->calls;
    s->threads += p->next_thread;
    s->dropped += ending.dropped;
    s->never_returned += p->never_returned;
    s->traced += p->traced;
    if (p->calls > 0)
        s->processes++;
    if (p->writer != NULL) {
        const uint64_t bytes = zt_writer_bytes(p->writer);
        zt_error error = {0};
        ending.complete = !p->failed;
        zc_frames_write(recorder, p);
        if (zt_writer_close(p->writer, &ending, &error) == ZT_OK)
            note_file(s, p->file);
        else if (p->error.status == 0) {
            p->error = error;
            p->failed = true;
        }
        struct stat st;
        s->bytes += stat(p->file, &st) == 0 ? (uint64_t)st.st_size : bytes;
        if (s->file[0] == '\0')
            memcpy(s->file, p->file, sizeof(s->file));
    }
    free(p->readers);
    if (p->pidfd >= 0)
        close(p->pidfd);
    zt_session_free(&p->session);
    zc_frames_free(&p->frames);
    free(p->in.pieces);
    free(p->in.contents);
    free(p->in.frames);
    free(p->out.pieces);
    free(p->out.contents);
    free(p->out.frames);
    p->readers = NULL;
    p->n_readers = 0;
}

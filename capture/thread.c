/* SPDX-License-Identifier: MIT */
/*
 * A thread's ring: made at its first call, closed when the thread ends, and what happens when it is full.
 */
#include "process.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define LATE_DESTRUCTORS 3 /* other keys' destructors may still make calls */
#define STEP_MIN_NS 20000
#define STEP_MAX_NS 1000000
#define RETRY_NS 100000000ull
#define RING_MIN 65536u

__thread zc_tls zc_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

static pthread_key_t key;
static bool have_key;
static __thread uintptr_t rounds __attribute__((tls_model("initial-exec")));

static void unmap_ring(zc_thread *t)
{
    if (t->ring != NULL)
        munmap(t->ring, sizeof(zc_ring) + 2 * t->size);
    t->ring = NULL;
    t->size = t->limit = 0; /* nothing fits: every call asks for room first */
}

static void thread_ends(void *value)
{
    const int saved = errno;
    zc_thread *const t = value;
    if (zc_self.thread != t)
        return;
    if (++rounds < LATE_DESTRUCTORS) {
        pthread_setspecific(key, t);
        return;
    }
    zc_self.thread = NULL;
    zc_lock_take(&zc_this.threads_lock);
    zc_thread **at = &zc_this.threads;
    while (*at != NULL && *at != t)
        at = &(*at)->next;
    if (*at == t)
        *at = t->next;
    zc_lock_give(&zc_this.threads_lock);
    if (t->ring != NULL) {
        if (t->open != NULL)
            zc_detach(t);
        atomic_store_explicit(&t->ring->closed, 1, memory_order_release);
        unmap_ring(t);
    }
    zc_unmap(t->stage, t->stage_size);
    if (t->scratch != NULL)
        zc_unmap(t->scratch, ZC_SCRATCH);
    zc_unmap(t, sizeof(*t));
    errno = saved;
}

void zc_thread_key(void)
{
    have_key = pthread_key_create(&key, thread_ends) == 0;
}

/* In a forked child: the rings belong to the parent's threads. */
void zc_forget_threads(void)
{
    for (zc_thread *t = zc_this.threads; t != NULL; t = t->next)
        unmap_ring(t);
    zc_this.threads = NULL;
    zc_self.thread = NULL;
    rounds = 0;
    if (have_key)
        pthread_setspecific(key, NULL);
}

static bool map_ring(zc_thread *t, int fd, uint64_t size)
{
    const uint64_t header = sizeof(zc_ring);
    char *const at = mmap(NULL, header + 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return false;
    const int flags = MAP_SHARED | MAP_FIXED, access = PROT_READ | PROT_WRITE;
    if (mmap(at, header + size, access, flags, fd, 0) == MAP_FAILED ||
        mmap(at + header + size, size, access, flags, fd, (off_t)header) == MAP_FAILED) {
        munmap(at, header + 2 * size);
        return false;
    }
    t->ring = (zc_ring *)at;
    t->data = at + header;
    t->mask = size - 1;
    t->size = t->limit = size;
    /* the first calls should not wait for pages */
    madvise(at, header + 65536, MADV_POPULATE_WRITE);
    return true;
}

static void pause_ns(uint64_t ns)
{
    const struct timespec step = {0, (long)ns};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &step, NULL);
}

/* What a file may hold: beyond its limit the kernel kills the program with SIGXFSZ. @return 0: not even the least ring. */
static uint64_t allowed_size(void)
{
    struct rlimit limit;
    uint64_t size = zc_this.ring_size;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0)
        while (size >= RING_MIN && sizeof(zc_ring) + size > limit.rlim_cur)
            size /= 2;
    return size >= RING_MIN ? size : 0;
}

static bool make_ring(zc_thread *t)
{
    const uint64_t size = allowed_size();
    if (size == 0)
        return false;
    const int fd = memfd_create("zetrace-ring", MFD_CLOEXEC);
    if (fd < 0)
        return false;
    bool done = ftruncate(fd, (off_t)(sizeof(zc_ring) + size)) == 0 && map_ring(t, fd, size);
    if (done) {
        t->ring->abi = ZC_ABI;
        t->ring->header_size = sizeof(zc_ring);
        t->ring->size = size;
        t->ring->pid = getpid();
        t->ring->tid = t->tid;
        t->ring->magic = ZC_MAGIC;
        atomic_fetch_add(&t->ring->dropped, atomic_exchange(&zc_this.lost_calls, 0));
        atomic_fetch_add(&t->ring->dropped_bytes, atomic_exchange(&zc_this.lost_bytes, 0));
        atomic_fetch_add(&t->ring->unknown_slots, atomic_exchange(&zc_this.unknown_slots, 0));
        const zc_new_ring message = {ZC_MAGIC, ZC_ABI, ZC_M_RING, t->ring->pid, t->tid, size};
        /* the socket is full when very many threads start at once: give the recorder a little time */
        const uint64_t until = zc_monotonic_ns() + (zc_this.lossy ? 0 : ZC_STALL_NS);
        while (!(done = zc_send_ring(&message, fd)) && errno == EAGAIN && zc_monotonic_ns() < until)
            pause_ns(STEP_MAX_NS);
        if (!done) {
            atomic_fetch_add(&zc_this.lost_calls, atomic_load(&t->ring->dropped));
            atomic_fetch_add(&zc_this.lost_bytes, atomic_load(&t->ring->dropped_bytes));
            unmap_ring(t);
        }
    }
    close(fd);
    return done;
}

/* Of a thread that has no ring: told by another's, or by the next that is made. */
static void lose_elsewhere(uint64_t calls, uint64_t bytes)
{
    uint32_t unlocked = 0;
    atomic_fetch_add(&zc_this.lost_calls, calls);
    atomic_fetch_add(&zc_this.lost_bytes, bytes);
    /* never waits: a signal handler's call may have interrupted the one that holds the lock */
    if (!atomic_compare_exchange_strong(&zc_this.threads_lock, &unlocked, 1))
        return;
    for (zc_thread *other = zc_this.threads; other != NULL; other = other->next) {
        if (other->ring == NULL || other->failed) /* failed: its ring may be one that does not stay */
            continue;
        atomic_fetch_add(&other->ring->dropped, atomic_exchange(&zc_this.lost_calls, 0));
        atomic_fetch_add(&other->ring->dropped_bytes, atomic_exchange(&zc_this.lost_bytes, 0));
        break;
    }
    zc_lock_give(&zc_this.threads_lock);
}

static void lose(zc_thread *t, uint64_t calls, uint64_t bytes)
{
    t->lost_calls += calls;
    t->lost_bytes += bytes;
    if (t->ring == NULL || t->failed) {
        lose_elsewhere(calls, bytes);
        return;
    }
    atomic_fetch_add_explicit(&t->ring->dropped, calls, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->ring->dropped_bytes, bytes, memory_order_relaxed);
}

ZC_COLD zc_thread *zc_thread_start(void)
{
    if (atomic_load_explicit(&zc_this.state, memory_order_acquire) == ZC_OFF)
        return NULL;
    const int saved = errno;
    zc_thread *t = NULL;
    if (zc_process_start() && (t = zc_map(sizeof(*t))) != NULL) {
        t->stage_size = (uint32_t)(zc_this.ring_size / 4);
        t->stage = zc_map(t->stage_size);
        if (t->stage == NULL)
            t->stage_size = 0;
        t->tid = (int32_t)syscall(SYS_gettid);
        t->head = 1; /* no record can be written: a signal handler's call is lost, not recorded half */
        zc_self.thread = t;
        if (!make_ring(t)) {
            t->failed = true;
            t->retry_at = zc_monotonic_ns() + RETRY_NS;
        }
        t->head = 0;
        zc_lock_take(&zc_this.threads_lock);
        t->next = zc_this.threads;
        zc_this.threads = t;
        zc_lock_give(&zc_this.threads_lock);
        if (have_key)
            pthread_setspecific(key, t);
    }
    errno = saved;
    return t;
}

static bool fits(zc_thread *t, uint64_t need)
{
    t->limit = atomic_load_explicit(&t->ring->tail, memory_order_acquire) + t->size;
    return t->head + need <= t->limit;
}

static void tell_loss(zc_thread *t)
{
    const uint64_t calls = t->lost_calls, bytes = t->lost_bytes;
    t->lost_calls = t->lost_bytes = 0;
    t->stalled = false;
    atomic_store(&t->ring->stalled, 0);
    if (t->open != NULL)
        zc_detach(t);
    const uint64_t head = t->head;
    t->head = head | 1;
    atomic_store_explicit(&t->ring->head, head | 1, memory_order_release);
    zc_lost *const lost = (zc_lost *)(t->data + (head & t->mask));
    *lost = (zc_lost){{sizeof(*lost), ZC_R_LOST, 0}, zc_ticks_enter(), calls, bytes};
    atomic_store_explicit(&t->ring->head, head + sizeof(*lost), memory_order_release);
    t->head = head + sizeof(*lost);
}

static bool reader_moved(const zc_thread *t)
{
    return atomic_load(&t->ring->tail) != t->stall_tail || atomic_load(&t->ring->beat) != t->stall_beat;
}

static bool wait_for_reader(zc_thread *t, uint64_t need)
{
    if (t->open != NULL)
        zc_detach(t); /* the reader does not step over an open slot */
    uint64_t step = STEP_MIN_NS, since = zc_monotonic_ns();
    t->stall_tail = atomic_load(&t->ring->tail);
    t->stall_beat = atomic_load(&t->ring->beat);
    while (!fits(t, need)) {
        if (zc_this.lossy)
            return false;
        pause_ns(step);
        step = step * 2 > STEP_MAX_NS ? STEP_MAX_NS : step * 2;
        if (reader_moved(t)) {
            t->stall_tail = atomic_load(&t->ring->tail);
            t->stall_beat = atomic_load(&t->ring->beat);
            since = zc_monotonic_ns();
        } else if (zc_monotonic_ns() - since > ZC_STALL_NS) {
            t->stalled = true;
            atomic_store(&t->ring->stalled, 1);
            return false;
        }
    }
    return true;
}

/* Waits for it where that is wanted. @return whether `need` bytes are free behind head. */
static bool find_room(zc_thread *t, uint64_t need)
{
    const int saved = errno;
    bool room = false;
    if (t->head & 1)
        return false; /* made by a signal handler in the middle of a record */
    if (t->failed && zc_monotonic_ns() >= t->retry_at) {
        t->head = 1; /* a signal handler's call must not come in here again */
        t->failed = !make_ring(t);
        t->retry_at = zc_monotonic_ns() + RETRY_NS;
        t->head = 0;
    }
    need += sizeof(zc_lost);
    if (!t->failed && need <= t->size / 2) {
        if (fits(t, need))
            room = true;
        else if (!t->stalled || reader_moved(t))
            room = wait_for_reader(t, need);
        if (room && (t->lost_calls | t->lost_bytes))
            tell_loss(t);
    }
    errno = saved;
    return room;
}

ZC_COLD void zc_lose_call(zc_thread *t)
{
    lose(t, 1, 0);
}

ZC_COLD bool zc_room(zc_thread *t, uint64_t need)
{
    const bool room = find_room(t, need);
    if (!room)
        lose(t, 1, need);
    return room;
}

ZC_COLD void zc_detach(zc_thread *t)
{
    atomic_store_explicit(&t->open->state, ZC_S_DETACHED, memory_order_release);
    t->open = NULL;
}

void *zc_record_begin(zc_thread *t, uint32_t size)
{
    if (((t->head & 1) || t->head + size > t->limit) && !find_room(t, size)) {
        lose(t, 0, size);
        return NULL;
    }
    if (t->open != NULL)
        zc_detach(t);
    const uint64_t head = t->head;
    t->head = head | 1;
    atomic_store_explicit(&t->ring->head, head | 1, memory_order_release);
    return t->data + (head & t->mask);
}

void zc_record_end(zc_thread *t, uint32_t size)
{
    const uint64_t head = (t->head & ~1ull) + size;
    atomic_store_explicit(&t->ring->head, head, memory_order_release);
    t->head = head;
}

bool zc_read_carefully(void *to, const void *from, uint64_t len)
{
    const int saved = errno;
    const struct iovec here = {to, len}, there = {(void *)(uintptr_t)from, len};
    const ssize_t n = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    errno = saved;
    return n == (ssize_t)len;
}

uint32_t zc_send_data(zc_thread *t, const void *data, uint64_t len, bool careful)
{
    const uint64_t most = t->size / 8 < ZC_INLINE_MAX ? t->size / 8 : ZC_INLINE_MAX;
    const uint32_t id = ++t->next_data_id;
    for (uint64_t offset = 0; offset < len;) {
        const uint64_t n = len - offset < most ? len - offset : most;
        const uint32_t size = (uint32_t)(sizeof(zc_data) + ((n + 7) & ~7ull));
        zc_data *const record = zc_record_begin(t, size);
        if (record == NULL)
            return 0;
        *record = (zc_data){{size, ZC_R_DATA, 0}, id, 0, offset, len};
        char *const to = (char *)(record + 1);
        if (n & 7)
            *(uint64_t *)(to + (n & ~7ull)) = 0;
        bool read = true;
        if (careful)
            read = zc_read_carefully(to, (const char *)data + offset, n);
        else
            memcpy(to, (const char *)data + offset, n);
        if (!read) {
            record->rec.type = ZC_R_PAD;
            zc_record_end(t, size);
            return 0;
        }
        zc_record_end(t, size);
        offset += n;
    }
    return id;
}

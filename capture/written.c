/* SPDX-License-Identifier: MIT */
#include "written.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Newer than Debian 12's headers. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#define FEATURES ((1ull << 12) /* WP_HUGETLBFS_SHMEM */ | (1ull << 13) /* WP_UNPOPULATED */ | (1ull << 15) /* WP_ASYNC */)

struct scan { /* struct pm_scan_arg */
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define SCAN         _IOWR('f', 16, struct scan)
#define WP_MATCHING  1ull
#define CHECK_ASYNC  2ull
#define PAGE_WRITTEN 2ull

#define PAGE        4096u
#define PROBES      16u  /* pages of a measurement */
/* How many looks running must have been dearer than the other way of looking. */
#define AGAINST_MAX 3u
#define AGAIN       8u
#define HIGH_FD     600  /* out of the way of programs that count on low numbers */

static int fd = -1, pagemap = -1;
static _Atomic uint32_t started; /* 1: being started, 2: there, 3: not there */
static double fault_ns, hash_ns; /* of a page */

static int out_of_the_way(int low)
{
    const int high = fcntl(low, F_DUPFD_CLOEXEC, HIGH_FD);
    if (high < 0)
        return low;
    close(low);
    return high;
}

static bool protect(uint64_t base, uint64_t size)
{
    struct uffdio_writeprotect wp = {.range = {base, size}, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
    return ioctl(fd, UFFDIO_WRITEPROTECT, &wp) == 0;
}

static bool enlist(uint64_t base, uint64_t size)
{
    struct uffdio_register reg = {.range = {base, size}, .mode = UFFDIO_REGISTER_MODE_WP};
    if (ioctl(fd, UFFDIO_REGISTER, &reg) != 0)
        return false;
    if (protect(base, size))
        return true;
    ioctl(fd, UFFDIO_UNREGISTER, &reg.range);
    return false;
}

/* @return the number of stretches, -1 if the kernel cannot tell. */
static int scan(uint64_t from, uint64_t to, bool take, void *stretches, unsigned room, uint64_t *walked)
{
    struct scan s = {.size = sizeof(s), .flags = CHECK_ASYNC | (take ? WP_MATCHING : 0), .start = from, .end = to,
                     .vec = (uintptr_t)stretches, .vec_len = room, .category_mask = PAGE_WRITTEN, .return_mask = PAGE_WRITTEN};
    const int n = ioctl(pagemap, SCAN, &s);
    *walked = s.walk_end;
    return n;
}

static double since(uint64_t begin)
{
    return (double)(zc_clock_ticks() - begin);
}

/* What a fault and a hash cost here. @return whether it works at all. */
static bool measure(void)
{
    const size_t size = PROBES * PAGE;
    uint64_t walked, none[3 * 4];
    volatile uint8_t *const probe = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bool works = probe != MAP_FAILED;
    if (!works)
        return false;
    for (size_t at = 0; at < size; at += PAGE)
        probe[at] = 1;
    works = enlist((uintptr_t)probe, size);
    if (works) {
        uint64_t begin = zc_clock_ticks();
        for (size_t at = 0; at < size; at += PAGE)
            probe[at] = 2;
        fault_ns = since(begin) / PROBES;
        works = scan((uintptr_t)probe, (uintptr_t)probe + size, true, none, 4, &walked) == 1;
        begin = zc_clock_ticks();
        volatile uint64_t sink = XXH3_64bits((const void *)(uintptr_t)probe, size) + XXH3_64bits((const void *)(uintptr_t)probe, size);
        (void)sink;
        /* memory that is looked at is mostly not in a cache, and is copied first */
        hash_ns = since(begin) / (2 * PROBES) * 4;
    }
    munmap((void *)(uintptr_t)probe, size);
    return works && hash_ns > 0;
}

static bool start(void)
{
    const char *const wanted = getenv("ZETRACE_WRITTEN");
    if (wanted != NULL && strcmp(wanted, "hash") == 0)
        return false;
    fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API, .features = FEATURES};
    if (fd < 0 || pagemap < 0 || ioctl(fd, UFFDIO_API, &api) != 0) {
        zc_written_fork();
        return false;
    }
    fd = out_of_the_way(fd);
    pagemap = out_of_the_way(pagemap);
    if (!measure()) {
        zc_written_fork();
        return false;
    }
    if (wanted != NULL && strcmp(wanted, "watch") == 0)
        fault_ns = 0;
    return true;
}

static bool have(void)
{
    uint32_t expected = 0;
    if (atomic_load_explicit(&started, memory_order_acquire) == 0 && atomic_compare_exchange_strong(&started, &expected, 1)) {
        const int saved = errno;
        atomic_store_explicit(&started, start() ? 2 : 3, memory_order_release);
        errno = saved;
    }
    while (atomic_load_explicit(&started, memory_order_acquire) == 1)
        ;
    return atomic_load_explicit(&started, memory_order_relaxed) == 2;
}

void zc_written_fork(void)
{
    if (fd >= 0)
        close(fd);
    if (pagemap >= 0)
        close(pagemap);
    fd = pagemap = -1;
    atomic_store(&started, 0);
}

/* ------------------------------------------------------------------------------------------------------------- watching */

enum { IDLE, WATCHED, BEGINNING };

static double hashing(const zc_watch *w)
{
    return hash_ns * (double)(w->size / PAGE);
}

void zc_watch_init(zc_watch *w, uint64_t base, uint64_t size)
{
    w->base = base;
    w->size = size;
}

void zc_watch_need(zc_watch *w)
{
    if (!atomic_load_explicit(&w->needed, memory_order_relaxed))
        atomic_store(&w->needed, true);
}

void zc_watch_begin(zc_watch *w)
{
    uint32_t expected = IDLE;
    if ((atomic_load(&w->given_up) && !atomic_load(&w->needed)) || !have())
        return;
    if (!atomic_compare_exchange_strong(&w->state, &expected, BEGINNING))
        return;
    const int saved = errno;
    const bool watched = enlist(w->base, w->size);
    errno = saved;
    if (!watched) {
        atomic_store(&w->given_up, true);
        atomic_store(&w->needed, false);
    }
    atomic_store_explicit(&w->against, 0, memory_order_relaxed);
    atomic_store_explicit(&w->state, watched ? WATCHED : IDLE, memory_order_release);
}

void zc_watch_end(zc_watch *w)
{
    uint32_t expected = WATCHED;
    if (!atomic_compare_exchange_strong(&w->state, &expected, IDLE))
        return;
    const int saved = errno;
    struct uffdio_range range = {w->base, w->size};
    ioctl(fd, UFFDIO_UNREGISTER, &range);
    errno = saved;
}

bool zc_watched_now(const zc_watch *w)
{
    return atomic_load_explicit(&w->state, memory_order_acquire) == WATCHED;
}

void zc_watch_counted(zc_watch *w, uint64_t pages)
{
    if ((double)pages * fault_ns <= hashing(w) || atomic_load(&w->needed)) {
        atomic_store(&w->against, 0);
    } else if (atomic_fetch_add(&w->against, 1) + 1 >= AGAINST_MAX) {
        atomic_store(&w->given_up, true);
        atomic_store(&w->against, 0);
        zc_watch_end(w);
    }
}

void zc_watch_hashed(zc_watch *w, uint64_t changed)
{
    if (!atomic_load_explicit(&w->given_up, memory_order_relaxed) || (double)changed * fault_ns * 4 > hashing(w))
        atomic_store(&w->against, 0);
    else if (atomic_fetch_add(&w->against, 1) + 1 >= AGAIN)
        atomic_store(&w->given_up, false); /* the next look begins it */
}

bool zc_written_next(zc_written *s, uint64_t *from, uint64_t *to)
{
    const int saved = errno;
    if (s->i == s->n && s->at < s->end) {
        uint64_t walked = s->end;
        const int n = scan(s->at, s->end, s->take, s->stretch, ZC_STRETCHES, &walked);
        s->i = 0;
        s->n = n > 0 ? (unsigned)n : 0;
        if (n < 0) {
            atomic_store(&s->watch->given_up, true);
            atomic_store(&s->watch->needed, false);
            zc_watch_end(s->watch);
            s->stretch[0].from = s->at;
            s->stretch[0].to = s->end;
            s->n = 1;
            walked = s->end;
        }
        s->at = walked;
    }
    errno = saved;
    if (s->i == s->n)
        return false;
    *from = s->stretch[s->i].from;
    *to = s->stretch[s->i++].to;
    return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * The recorded process: settings, the socket to the recorder, the clock, fork.
 */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

bool zc_use_tsc;
int zc_memory;
zc_process zc_this = {.fd = -1};

static _Atomic uint64_t last_ticks;

uint64_t zc_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t zc_clock_ticks(void)
{
    uint64_t last = atomic_load_explicit(&last_ticks, memory_order_relaxed), next;
    do {
        next = zc_monotonic_ns();
        if (next <= last)
            next = last + 1;
    } while (!atomic_compare_exchange_weak(&last_ticks, &last, next));
    return next;
}

void zc_lock_take(zc_lock *lock)
{
    unsigned turns = 0;
    for (;;) {
        uint32_t free = 0;
        if (atomic_compare_exchange_weak_explicit(lock, &free, 1, memory_order_acquire, memory_order_relaxed))
            return;
        if (++turns < 100)
            __builtin_ia32_pause();
        else
            sched_yield();
    }
}

void zc_lock_give(zc_lock *lock)
{
    atomic_store_explicit(lock, 0, memory_order_release);
}

void *zc_map(uint64_t size)
{
    const int saved = errno;
    void *const p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved;
    return p == MAP_FAILED ? NULL : p;
}

void zc_unmap(void *p, uint64_t size)
{
    const int saved = errno;
    if (p != NULL)
        munmap(p, size);
    errno = saved;
}

/* The counter runs at one rate in every state of the processor, and the kernel itself keeps time by it. */
static bool tsc_is_trusted(void)
{
#if defined(__x86_64__)
    const char *const wanted = getenv("ZETRACE_ORDER");
    if (wanted != NULL && strcmp(wanted, "counter") == 0)
        return false;
    unsigned a, b, c, d = 0;
    if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & (1u << 8)))
        return false;
    int mode = 0;
    if (prctl(PR_GET_TSC, &mode) != 0 || mode != PR_TSC_ENABLE)
        return false;
    char source[32] = "";
    const int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t n = read(fd, source, sizeof(source) - 1);
    close(fd);
    return n > 0 && (strncmp(source, "tsc", 3) == 0 || strncmp(source, "kvm-clock", 9) == 0);
#else
    return false;
#endif
}

/* Out of the way of programs that expect low numbers or close a range of them. */
static int move_up(int fd)
{
    const int up = fcntl(fd, F_DUPFD_CLOEXEC, 900);
    if (up < 0)
        return fd;
    close(fd);
    return up;
}

static bool send_message(const void *message, size_t size, int passed)
{
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {(void *)(uintptr_t)message, size};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (passed >= 0) {
        memset(control, 0, sizeof(control));
        header.msg_control = control;
        header.msg_controllen = sizeof(control);
        struct cmsghdr *const c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &passed, sizeof(int));
    }
    ssize_t n;
    do
        n = sendmsg(zc_this.fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)size;
}

static bool connect_recorder(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, zc_this.path, sizeof(address.sun_path));
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    /* a stopped recorder with a full backlog must not hold the program */
    const struct timeval limit = {0, 200000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        return false;
    }
    zc_this.fd = move_up(fd);
    struct stat facts;
    if (fstat(zc_this.fd, &facts) == 0) {
        zc_this.device = facts.st_dev;
        zc_this.inode = facts.st_ino;
    }
    struct timespec real;
    zc_hello hello = {.magic = ZC_MAGIC, .abi = ZC_ABI, .kind = ZC_M_HELLO, .pid = getpid(), .parent_pid = getppid(),
                      .order = !zc_use_tsc, .forked = zc_this.forked, .again = zc_this.introduced, .build_hash = zc_table_hash()};
    hello.ticks = zc_ticks_leave();
    hello.monotonic_ns = zc_monotonic_ns();
    clock_gettime(CLOCK_REALTIME, &real);
    hello.realtime_ns = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
    if (send_message(&hello, sizeof(hello), -1)) {
        zc_this.introduced = true;
        return true;
    }
    close(zc_this.fd);
    zc_this.fd = -1;
    return false;
}

/* Programs close descriptors they do not know; the number may then belong to something else. */
static bool socket_is_ours(void)
{
    struct stat facts;
    return zc_this.fd >= 0 && fstat(zc_this.fd, &facts) == 0 && S_ISSOCK(facts.st_mode) &&
           facts.st_dev == zc_this.device && facts.st_ino == zc_this.inode;
}

/* This is before the program's first call, which no device work precedes. */
static void wait_for_the_recorder(void)
{
    struct pollfd answer = {.fd = zc_this.fd, .events = POLLIN};
    char byte;
    if (poll(&answer, 1, ZC_MEETING_MS) == 1)
        (void)!recv(zc_this.fd, &byte, 1, MSG_DONTWAIT);
}

bool zc_send_ring(const zc_new_ring *message, int fd)
{
    bool sent = false;
    zc_lock_take(&zc_this.socket_lock);
    if (!socket_is_ours()) {
        zc_this.fd = -1;
        connect_recorder();
    }
    if (zc_this.fd >= 0)
        sent = send_message(message, sizeof(*message), fd);
    zc_lock_give(&zc_this.socket_lock);
    return sent;
}

static void fork_prepare(void)
{
    zc_lock_take(&zc_this.threads_lock);
    zc_lock_take(&zc_this.socket_lock);
    zc_contents_lock_all();
}

static void fork_parent(void)
{
    zc_contents_unlock_all();
    zc_lock_give(&zc_this.socket_lock);
    zc_lock_give(&zc_this.threads_lock);
}

/* The child has no part in its parent's rings and socket: it begins anew with its next call. */
static void fork_child(void)
{
    zc_contents_unlock_all();
    zc_lock_give(&zc_this.socket_lock);
    zc_lock_give(&zc_this.threads_lock);
    const int saved = errno;
    zc_contents_fork();
    zc_forget_threads();
    if (socket_is_ours())
        close(zc_this.fd);
    zc_this.fd = -1;
    zc_this.forked = 1;
    zc_this.introduced = false;
    if (atomic_load(&zc_this.state) == ZC_ON)
        atomic_store(&zc_this.state, ZC_NEW);
    errno = saved;
}

static void read_settings(void)
{
    const char *const path = getenv(ZC_ENV_SOCKET);
    const char *const ring = getenv(ZC_ENV_RING);
    const char *const memory = getenv(ZC_ENV_MEMORY);
    const char *const lossy = getenv(ZC_ENV_LOSSY);
    if (path != NULL && strlen(path) < sizeof(zc_this.path))
        strcpy(zc_this.path, path);
    zc_this.ring_size = ZC_DEFAULT_RING;
    if (ring != NULL) {
        const unsigned long long wanted = strtoull(ring, NULL, 10);
        uint64_t size = 1u << 16;
        while (size < wanted && size < (1ull << 30))
            size <<= 1;
        zc_this.ring_size = size;
    }
    zc_this.lossy = lossy != NULL && strcmp(lossy, "1") == 0;
    zc_memory = memory == NULL || strcmp(memory, "inputs") == 0 ? ZC_MEMORY_INPUTS
                : strcmp(memory, "full") == 0                   ? ZC_MEMORY_FULL
                                                                : ZC_MEMORY_NONE;
}

bool zc_process_start(void)
{
    for (;;) {
        int state = atomic_load_explicit(&zc_this.state, memory_order_acquire);
        if (state == ZC_ON || state == ZC_OFF)
            return state == ZC_ON;
        if (state == ZC_STARTING) {
            sched_yield();
            continue;
        }
        if (!atomic_compare_exchange_strong(&zc_this.state, &state, ZC_STARTING))
            continue;
        if (!zc_this.prepared) {
            zc_this.prepared = true;
            read_settings();
            zc_use_tsc = tsc_is_trusted();
            zc_backtrace_start(getenv(ZC_ENV_BACKTRACE));
            pthread_atfork(fork_prepare, fork_parent, fork_child);
            zc_thread_key();
        }
        const bool on = zc_this.path[0] != 0 && connect_recorder();
        if (!on)
            zc_memory = ZC_MEMORY_NONE;
        else if (!zc_this.forked)
            wait_for_the_recorder();
        atomic_store_explicit(&zc_this.state, on ? ZC_ON : ZC_OFF, memory_order_release);
        return on;
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * A GPU and its kernel driver in user space, for Intel's own user-mode driver to run on. What the modules share:
 *
 *   log.c       what is said, and the settings of the environment (FAKEGPU_*)
 *   device.c    the devices it can be
 *   tree.c      the files of /dev and /sys by which the driver finds the device
 *   interpose.c the C library's functions that lead there
 *   ioctl.c     the kernel's calls, checked and handed on
 *   query.c     what the device is, in the kernel's words
 *   memory.c    memory objects; address spaces and what is bound in them; how engines reach memory
 *   queue.c     exec queues, each a thread that runs its jobs; user fences; delays; bans
 *   fault.c     what an engine does when it cannot go on
 *   command.c   the commands all engines have; copy_engine.c and compute_engine.c theirs
 *   kernels.c   which kernel a walker runs; kernel_bodies.c what it does, in C
 *
 * All functions may be called from any thread unless they take a queue: these belong to the queue's own thread.
 */
#ifndef FAKEGPU_H
#define FAKEGPU_H

#include "kernel.h"
#include "xe.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- log.c --- */

enum fake_log { LOG_KERNEL = 1, LOG_IOCTL = 2, LOG_JOB = 4, LOG_COMMAND = 8, LOG_KERNELS = 16 };

void fake_say(enum fake_log kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Says what the fake cannot do, whatever is logged: a test must not pass by luck. */
void fake_unknown(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool fake_logged(enum fake_log kind);

struct fake_settings {
    const char *device;
    unsigned log;
    uint64_t delay_ns[5]; /* by engine class: how long a copy, fill or kernel waits before it begins */
    uint64_t seed;        /* not 0: the delay is drawn anew for each, between 0 and twice as much */
};
/** Read once, from the environment. */
const struct fake_settings *fake_settings(void);
uint64_t fake_now_ns(void);

/* --- device.c --- */

struct fake_device {
    const char *name;
    uint16_t id, ip_major, ip_minor, ip_revision;
    uint8_t revision, va_bits, renders, computes, copies;
    uint64_t subslices;        /* a bit each */
    uint16_t units_kind;       /* XE_TOPO_*EU_PER_DSS */
    uint32_t units;            /* a bit each, of a subslice */
    uint64_t vram;             /* bytes */
    unsigned walker_kernel, walker_post_sync, walker_inline, walker_inline_words; /* where they are in COMPUTE_WALKER, in words */
};
const struct fake_device *fake_device(void);
enum { FAKE_CLOCK_HZ = 19200000 };
/** The device's clock, in ticks. */
uint64_t fake_ticks(void);

/* --- tree.c --- */

/** @return path, or where its fake is, in room bytes of buffer. */
const char *fake_path(const char *path, char *buffer, size_t room);
/** Takes the fake tree's own folder off a path that was resolved in it. */
void fake_path_strip(char *path);
bool fake_path_is_node(const char *path);

/* --- ioctl.c, query.c --- */

/** @return 0, or -1 with errno, as ioctl(2). */
int fake_ioctl(unsigned long request, void *argument);
int fake_query(struct xe_device_query *query);

/* --- memory.c --- */

/** A new descriptor of the device, -1 with errno. mmap on it reaches memory objects. */
int fake_memory_open(void);
bool fake_memory_is(int fd);
int fake_object_create(struct xe_gem_create *create);
int fake_object_close(uint32_t handle);
int fake_object_offset(struct xe_gem_mmap_offset *offset);
int fake_vm_create(struct xe_vm_create *create);
int fake_vm_destroy(uint32_t vm);
int fake_vm_bind(uint32_t vm, const struct xe_vm_bind_op *ops, uint32_t count);
bool fake_vm_exists(uint32_t vm);
bool fake_vm_has_scratch(uint32_t vm);

/* --- queue.c --- */

enum { FAKE_REGISTERS = 0x1000 / 4, FAKE_NESTING = 8 };

struct fake_job {
    uint64_t batch, fence, value;
    bool has_fence;
    struct fake_job *next;
};

struct fake_queue {
    uint32_t id, vm;
    uint16_t engine_class, instance;
    pthread_t thread;
    pid_t owner; /* a child of fork has the queue, but not its thread */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct fake_job *first, **last; /* under lock, and stop */
    bool stop;
    _Atomic bool banned;
    /* the engine's own state, of the thread alone */
    uint64_t general_base, instruction_base;
    uint32_t predicate, works;
    uint32_t registers[FAKE_REGISTERS];
};

int fake_queue_create(struct xe_exec_queue_create *create);
int fake_queue_destroy(uint32_t id);
int fake_queue_property(struct xe_exec_queue_get_property *property);
int fake_exec(const struct xe_exec *exec);
int fake_wait_user_fence(struct xe_wait_user_fence *wait);
bool fake_queue_ends(struct fake_queue *q);
/** Sleeps; a queue that is destroyed wakes at once. */
void fake_queue_sleep(struct fake_queue *q, uint64_t ns);
/** A command that moves data begins: the delay that was set. */
void fake_queue_work(struct fake_queue *q);
const char *fake_class_name(unsigned engine_class);

/* --- how engines reach memory: false when the queue cannot go on --- */

bool fake_read(struct fake_queue *q, uint64_t address, void *data, size_t size);
bool fake_write(struct fake_queue *q, uint64_t address, const void *data, size_t size);
bool fake_copy(struct fake_queue *q, uint64_t to, uint64_t from, uint64_t size);
/** Repeats the pattern of width bytes, 16 at most, over size bytes. */
bool fake_fill(struct fake_queue *q, uint64_t to, const void *pattern, size_t width, uint64_t size);
/** Reads without a fault. @return bytes read. */
size_t fake_peek(struct fake_queue *q, uint64_t address, void *data, size_t size);
/** Counts the unbinds: while it stays the same, what was at an address is still there. */
uint64_t fake_vm_generation(void);

/* --- fault.c --- */

/** @return whether the engine goes on (there is a scratch page). */
bool fake_page_fault(struct fake_queue *q, uint64_t address, const char *access);
/** A command that hangs the engine. @return false */
bool fake_hang(struct fake_queue *q);

/* --- command.c and the engines --- */

struct fake_batch {
    uint64_t at, next;              /* this command, the one to run behind it */
    uint64_t callers[FAKE_NESTING]; /* where to go on after the end */
    unsigned depth;
    bool ended;
};

struct fake_command {
    uint32_t mask, value; /* of the first word */
    const char *name;
    enum { LENGTH_ONE, LENGTH_THREE, LENGTH_6_BITS, LENGTH_8_BITS, LENGTH_10_BITS } length;
    /** NULL: nothing that the fake would have to do. @return false when the queue cannot go on. */
    bool (*run)(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count);
};
extern const struct fake_command fake_copy_commands[], fake_compute_commands[]; /* the last has no name */

bool fake_run_batch(struct fake_queue *q, uint64_t address);
/** What a command of all engines may ask for behind its work. Operations 0 none, 1 the value, 3 the clock. */
bool fake_post_sync(struct fake_queue *q, unsigned operation, uint64_t address, uint64_t value);

static inline uint64_t fake_word64(const uint32_t *words)
{
    return words[0] | (uint64_t)words[1] << 32;
}

/* --- kernels.c, kernel_bodies.c --- */

enum { FAKE_PAYLOAD = 4096 };

struct fake_walk {
    uint64_t address; /* of the code */
    const uint8_t *payload;
    uint32_t payload_size;
    uint32_t groups[3], local[3];
};
/** Finds the kernel and runs its body. @return false when the queue cannot go on. */
bool fake_run_kernel(struct fake_queue *q, const struct fake_walk *walk);
/** What one of the driver's own kernels does; NULL if that is not known. */
fakegpu_body *fake_builtin_body(const char *name);

#endif

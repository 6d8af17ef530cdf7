/* SPDX-License-Identifier: MIT */
/*
 * Which memory the recorder looks at for a launch; MODE names a case, and without one they are listed. On the driver of
 * tests/driver/kernels.c a launch copies 64 bytes from the second pointer among the arguments to the first.
 */
#include "kernels.h"

enum { PAGES = 4, BIG = PAGES * 4096 };

static app a;
static ze_command_list_handle_t list; /* immediate, in order */
static ze_kernel_handle_t kernel;
static ze_module_handle_t module;
static ze_event_handle_t done;
static unsigned char *from, *to, *other; /* shared, shared, host */

static void fill(unsigned char *memory, int value)
{
    memset(memory, value, BIG);
}

static void go(void)
{
    launch(list, kernel, NULL);
}

static void finish(void)
{
    MUST(zeCommandListAppendSignalEvent(list, done));
    MUST(zeEventHostSynchronize(done, UINT64_MAX));
    MUST(zeEventHostReset(done));
}

static void arguments(void)
{
    set_pointer(kernel, 0, to);
    set_pointer(kernel, 1, from);
}

/* Only what the arguments point into; and when it is launched again, only what has changed. */
static void argument(void)
{
    arguments();
    go();
    finish();
    from[2 * 4096 + 5] = 9;
    fill(other, 7);
    go();
    finish();
}

/* The flag makes all host memory reachable, and takes effect until it is taken back. */
static void indirect(void)
{
    set_pointer(kernel, 0, device_new(&a, BIG));
    MUST(zeKernelSetIndirectAccess(kernel, ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST));
    go();
    finish();
    MUST(zeKernelSetIndirectAccess(kernel, 0));
    fill(other, 9);
    go();
    finish();
}

/* An argument by value holds a pointer. */
static void member(void)
{
    const struct {
        uint64_t n;
        void *pointer;
        uint32_t flags[2];
    } value = {1, other + 100, {2, 3}};
    MUST(zeKernelSetArgumentValue(kernel, 0, sizeof(value), &value));
    go();
    finish();
}

/* An argument that has been given another value no longer reaches what it pointed to. */
static void replaced(void)
{
    arguments();
    set_pointer(kernel, 1, other);
    go();
    finish();
}

/* What the first launch writes the second reads, and the host does not look in between. */
static void chain(void)
{
    arguments();
    go();
    set_pointer(kernel, 0, from + 4096);
    set_pointer(kernel, 1, to);
    go();
    finish();
    if (memcmp(from + 4096, from, 64) != 0)
        exit(BAD);
}

/* The reader of what a later launch writes is launched first: the bytes of the later one must not come early. */
static void reader_first(void)
{
    set_pointer(kernel, 0, to);
    set_pointer(kernel, 1, from);
    go();
    set_pointer(kernel, 0, from);
    set_pointer(kernel, 1, to + 4096);
    go();
    set_pointer(kernel, 0, to + 2 * 4096);
    set_pointer(kernel, 1, from);
    go();
    finish();
    if (to[0] != 1 || to[2 * 4096] != 2)
        exit(BAD);
}

/* Appended to a regular list; the host writes before it is executed, and again before it is executed again. */
static void regular(void)
{
    const ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    const ze_command_list_handle_t later = list_new(&a, 0);
    arguments();
    launch(later, kernel, NULL);
    MUST(zeCommandListClose(later));
    for (int i = 3; i < 6; i++) {
        from[0] = (unsigned char)i;
        MUST(run(queue, later, NULL));
        MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
        if (to[0] != i)
            exit(BAD);
    }
}

/* More memory than has a place among a command's operands: all of its kind counts as reached. */
static void many(void)
{
    struct {
        void *pointers[100];
    } value;
    for (int i = 0; i < 100; i++) {
        unsigned char *const each = host_new(&a, 4096);
        memset(each, i + 1, 4096);
        value.pointers[i] = each;
    }
    MUST(zeKernelSetArgumentValue(kernel, 0, sizeof(value), &value));
    go();
    finish();
}

/* The host writes one part while the device may write another: bytes of the host, and no sync. */
static void two_halves(void)
{
    const size_t half = (size_t)2 << 20;
    unsigned char *const both = shared_new(&a, 2 * half);
    memset(both, 0, 2 * half);
    set_pointer(kernel, 0, to);
    for (int i = 1; i < 5; i++) {
        unsigned char *const part = both + (i % 2) * half;
        part[0] = (unsigned char)i;
        set_pointer(kernel, 1, part);
        go();
    }
    finish();
    if (to[0] != 4)
        exit(BAD);
}

/* More stretches than the recorder takes at a time. */
static void scattered(void)
{
    const size_t size = (size_t)16 << 20;
    unsigned char *const memory = shared_new(&a, size);
    memset(memory, 0, size);
    set_pointer(kernel, 0, to);
    set_pointer(kernel, 1, memory);
    go();
    finish();
    for (size_t at = 0; at < size; at += 2 * 4096)
        memory[at] = (unsigned char)(at / 8192 % 251 + 1);
    go();
    finish();
}

static const struct mode {
    const char *name;
    void (*run)(void);
} modes[] = {{"argument", argument}, {"indirect", indirect}, {"member", member}, {"replaced", replaced}, {"chain", chain},
             {"reader-first", reader_first}, {"regular", regular}, {"many", many}, {"two-halves", two_halves}, {"scattered", scattered}};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (argc < 2) {
            puts(modes[i].name);
        } else if (strcmp(argv[1], modes[i].name) == 0) {
            a = app_open();
            list = immediate_new(&a, IN_ORDER);
            done = event_new(&a);
            module = module_new(&a, NULL);
            kernel = kernel_new(module);
            from = shared_new(&a, BIG);
            to = shared_new(&a, BIG);
            other = host_new(&a, BIG);
            fill(from, 1);
            fill(to, 2);
            fill(other, 3);
            modes[i].run();
            return verdict(false, argv[1]);
        }
    }
    return argc < 2 ? GOOD : CANNOT;
}

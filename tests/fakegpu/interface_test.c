/* SPDX-License-Identifier: MIT */
/*
 * The fake by its own: what it answers to the calls of xe and does with commands, without Intel's driver. It is preloaded; for the
 * rest this is a program that opens a device node. FAKEGPU_DELAY must be 50.
 */
#include "xe.h"

#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, OBJECT = 64 << 10 };
enum { BATCH = 0x100000, DATA = 0x200000, USER = 0x300000, UNBOUND = 0x400000, FENCE = DATA + 0x800 };
enum { MI_END = 0x0a << 23, MI_STORE = 0x20 << 23 | 2, MI_SEMAPHORE_EQUAL = 0x1c << 23 | 4 << 12 | 2, MEM_COPY_COUNT = 10, WORDS = 256 };
#define MEM_COPY (2u << 29 | 0x5au << 22 | (MEM_COPY_COUNT - 2))

struct bench {
    int fd;
    uint32_t vm, queue, batch_object, data_object;
    uint32_t *batch;
    uint64_t *data;
    uint8_t *user;
    uint64_t submitted;
};

static int call(int fd, unsigned number, void *argument)
{
    return ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, DRM_TYPE, DRM_NR_XE + number, 0), argument);
}

static void *new_object(struct bench *b, uint32_t *handle)
{
    struct xe_gem_create create = {.size = OBJECT, .placement = 2};
    CU_ASSERT_EQUAL_FATAL(call(b->fd, XE_GEM_CREATE, &create), 0);
    struct xe_gem_mmap_offset offset = {.handle = *handle = create.handle};
    CU_ASSERT_EQUAL_FATAL(call(b->fd, XE_GEM_MMAP_OFFSET, &offset), 0);
    void *const p = mmap(NULL, OBJECT, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, (off_t)offset.offset);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(p, MAP_FAILED);
    return p;
}

static int bind(struct bench *b, unsigned operation, uint32_t object, uint64_t offset, uint64_t address, uint64_t range)
{
    uint64_t bound = 0;
    struct xe_sync sync = {
        .type = XE_SYNC_USER_FENCE, .flags = XE_SYNC_SIGNAL, .addr = (uint64_t)(uintptr_t)&bound, .timeline_value = 7};
    struct xe_vm_bind bind = {
        .vm_id = b->vm,
        .num_binds = 1,
        .bind = {.obj = object, .obj_offset = offset, .addr = address, .range = range, .op = operation},
        .num_syncs = 1,
        .syncs = (uint64_t)(uintptr_t)&sync};
    const int result = call(b->fd, XE_VM_BIND, &bind);
    CU_ASSERT_EQUAL(bound, result == 0 ? 7 : 0);
    return result;
}

static struct bench begin(unsigned engine_class)
{
    struct bench b = {.fd = open("/dev/dri/renderD128", O_RDWR)};
    CU_ASSERT_FATAL(b.fd >= 0);
    struct xe_vm_create vm = {.flags = XE_VM_LR_MODE};
    CU_ASSERT_EQUAL_FATAL(call(b.fd, XE_VM_CREATE, &vm), 0);
    b.vm = vm.vm_id;
    b.batch = new_object(&b, &b.batch_object);
    b.data = new_object(&b, &b.data_object);
    b.user = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(b.user, MAP_FAILED);
    CU_ASSERT_EQUAL_FATAL(bind(&b, XE_BIND_MAP, b.batch_object, 0, BATCH, OBJECT), 0);
    CU_ASSERT_EQUAL_FATAL(bind(&b, XE_BIND_MAP, b.data_object, 0, DATA, OBJECT), 0);
    CU_ASSERT_EQUAL_FATAL(bind(&b, XE_BIND_MAP_USERPTR, 0, (uint64_t)(uintptr_t)b.user, USER, PAGE), 0);
    struct xe_engine_instance instance = {.engine_class = (uint16_t)engine_class};
    struct xe_exec_queue_create queue = {
        .width = 1, .num_placements = 1, .vm_id = b.vm, .instances = (uint64_t)(uintptr_t)&instance};
    CU_ASSERT_EQUAL_FATAL(call(b.fd, XE_EXEC_QUEUE_CREATE, &queue), 0);
    b.queue = queue.exec_queue_id;
    return b;
}

static void end(struct bench *b)
{
    struct xe_exec_queue_destroy queue = {.exec_queue_id = b->queue};
    struct xe_vm_destroy vm = {.vm_id = b->vm};
    CU_ASSERT_EQUAL(call(b->fd, XE_EXEC_QUEUE_DESTROY, &queue), 0);
    CU_ASSERT_EQUAL(call(b->fd, XE_EXEC_QUEUE_DESTROY, &queue), -1);
    CU_ASSERT_EQUAL(call(b->fd, XE_VM_DESTROY, &vm), 0);
    munmap(b->batch, OBJECT);
    munmap(b->data, OBJECT);
    close(b->fd);
}

static int submit(struct bench *b, const uint32_t *words, unsigned count)
{
    memcpy(b->batch, words, 4 * count);
    b->batch[count] = MI_END;
    struct xe_sync sync = {
        .type = XE_SYNC_USER_FENCE, .flags = XE_SYNC_SIGNAL, .addr = FENCE, .timeline_value = ++b->submitted};
    struct xe_exec exec = {.exec_queue_id = b->queue,
                           .num_syncs = 1,
                           .syncs = (uint64_t)(uintptr_t)&sync,
                           .address = BATCH,
                           .num_batch_buffer = 1};
    return call(b->fd, XE_EXEC, &exec);
}

/* @return 0 or the errno. */
static int wait_for(struct bench *b, unsigned milliseconds)
{
    struct xe_wait_user_fence wait = {.addr = (uint64_t)(uintptr_t)b->data + (FENCE - DATA),
                                      .op = XE_WAIT_GTE,
                                      .value = b->submitted,
                                      .mask = UINT64_MAX,
                                      .timeout = milliseconds * 1000000ll,
                                      .exec_queue_id = b->queue};
    return call(b->fd, XE_WAIT_USER_FENCE, &wait) == 0 ? 0 : errno;
}

static bool banned(struct bench *b)
{
    struct xe_exec_queue_get_property property = {.exec_queue_id = b->queue, .property = XE_EXEC_QUEUE_PROPERTY_BAN};
    CU_ASSERT_EQUAL(call(b->fd, XE_EXEC_QUEUE_GET_PROPERTY, &property), 0);
    return property.value;
}

static unsigned put_store(uint32_t *words, uint64_t address, uint32_t value)
{
    const uint32_t store[] = {MI_STORE, (uint32_t)address, (uint32_t)(address >> 32), value};
    memcpy(words, store, sizeof(store));
    return 4;
}

static unsigned put_copy(uint32_t *words, uint64_t to, uint64_t from, uint32_t size)
{
    const uint32_t copy[MEM_COPY_COUNT] = {MEM_COPY, size - 1, 0, 0, 0, (uint32_t)from, (uint32_t)(from >> 32), (uint32_t)to, (uint32_t)(to >> 32)};
    memcpy(words, copy, sizeof(copy));
    return MEM_COPY_COUNT;
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void test_node(void)
{
    struct stat status;
    CU_ASSERT_EQUAL(stat("/dev/dri/renderD128", &status), 0);
    CU_ASSERT(S_ISCHR(status.st_mode));
    char path[256] = "";
    CU_ASSERT(readlink("/sys/dev/char/226:128", path, sizeof(path) - 1) > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(path, "/drm/renderD128"));
    glob_t found;
    CU_ASSERT_EQUAL_FATAL(glob("/dev/dri/renderD*", 0, NULL, &found), 0);
    CU_ASSERT_STRING_EQUAL(found.gl_pathv[0], "/dev/dri/renderD128");
    globfree(&found);
    const int other = open("/dev/null", O_RDWR);
    CU_ASSERT_EQUAL(call(other, XE_VM_CREATE, &(struct xe_vm_create){0}), -1);
    close(other);
}

static void test_commands(void)
{
    struct bench b = begin(XE_ENGINE_COPY);
    uint32_t words[WORDS];
    unsigned n = put_store(words, DATA + 64, 42);
    for (unsigned i = 0; i < 100; i++)
        b.user[i] = (uint8_t)i;
    n += put_copy(words + n, DATA + 128, USER, 100);
    n += put_copy(words + n, USER + 1000, DATA + 128, 100);
    const uint64_t start = now_ms();
    CU_ASSERT_EQUAL_FATAL(submit(&b, words, n), 0);
    CU_ASSERT_EQUAL(wait_for(&b, 5000), 0);
    CU_ASSERT(now_ms() - start >= 2 * 50 - 1); /* no sooner than after two delays, however slow the machine */
    CU_ASSERT_EQUAL(b.data[8], 42);
    CU_ASSERT_EQUAL(memcmp(b.user, b.user + 1000, 100), 0);
    CU_ASSERT_EQUAL(b.user[1099], 99);
    CU_ASSERT_FALSE(banned(&b));
    end(&b);
}

static void expect_ban(struct bench *b)
{
    CU_ASSERT_EQUAL(wait_for(b, 5000), EIO);
    CU_ASSERT(banned(b));
    const uint32_t nothing = 0;
    CU_ASSERT_EQUAL(submit(b, &nothing, 1), -1);
    CU_ASSERT_EQUAL(errno, ECANCELED);
}

static void test_page_fault(void)
{
    struct bench b = begin(XE_ENGINE_COPY);
    uint32_t words[WORDS];
    CU_ASSERT_EQUAL(submit(&b, words, put_copy(words, UNBOUND, DATA, 64)), 0);
    expect_ban(&b);
    end(&b);
}

/* The work was right when it was submitted; its memory goes while the engine still waits. */
static void test_unbound_in_flight(void)
{
    struct bench b = begin(XE_ENGINE_COPY);
    uint32_t words[WORDS];
    CU_ASSERT_EQUAL(submit(&b, words, put_copy(words, USER, DATA, 64)), 0);
    CU_ASSERT_EQUAL(bind(&b, XE_BIND_UNMAP, 0, 0, USER, PAGE), 0);
    expect_ban(&b);
    end(&b);
}

static void test_user_pages_gone(void)
{
    struct bench b = begin(XE_ENGINE_COPY);
    uint32_t words[WORDS];
    munmap(b.user, PAGE);
    CU_ASSERT_EQUAL(submit(&b, words, put_copy(words, USER, DATA, 64)), 0);
    expect_ban(&b);
    end(&b);
}

/* What is said on stderr from here to heard(), read from a file that takes its place. */
static int hear(void)
{
    fflush(stderr);
    const int kept = dup(STDERR_FILENO), file = memfd_create("stderr", 0);
    CU_ASSERT_FATAL(kept >= 0 && file >= 0 && dup2(file, STDERR_FILENO) == STDERR_FILENO);
    close(file);
    return kept;
}

static void heard(int kept, char *text, size_t room)
{
    const ssize_t n = pread(STDERR_FILENO, text, room - 1, 0);
    dup2(kept, STDERR_FILENO);
    close(kept);
    text[n > 0 ? n : 0] = '\0';
}

static void test_unknown_command(void)
{
    struct bench b = begin(XE_ENGINE_COMPUTE);
    const uint32_t words[] = {0x7bcd0000};
    char said[4096];
    const int kept = hear();
    CU_ASSERT_EQUAL(submit(&b, words, 1), 0);
    expect_ban(&b);
    heard(kept, said, sizeof(said));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "command 0x7bcd0000 at 0x100000 of the compute engine is not known"));
    end(&b);
}

static void test_unknown_ioctl(void)
{
    struct bench b = begin(XE_ENGINE_COPY);
    char said[4096];
    const int kept = hear();
    errno = 0;
    CU_ASSERT_EQUAL(call(b.fd, 0x1f, NULL), -1);
    CU_ASSERT_EQUAL(errno, EINVAL);
    heard(kept, said, sizeof(said));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "ioctl 0x5f of xe is not known"));
    end(&b);
}

/* A queue that waits holds up no other, and is destroyed at once. */
static void test_gate(void)
{
    struct bench gated = begin(XE_ENGINE_COMPUTE), other = begin(XE_ENGINE_COPY);
    uint32_t words[WORDS] = {MI_SEMAPHORE_EQUAL, 1, DATA + 16, 0};
    const unsigned n = 4 + put_store(words + 4, DATA + 64, 42);
    CU_ASSERT_EQUAL(submit(&gated, words, n), 0);
    const uint32_t nothing = 0;
    CU_ASSERT_EQUAL(submit(&other, &nothing, 1), 0);
    CU_ASSERT_EQUAL(wait_for(&other, 5000), 0);
    CU_ASSERT_EQUAL(wait_for(&gated, 30), ETIME);
    CU_ASSERT_EQUAL(gated.data[8], 0);
    __atomic_store_n((uint32_t *)&gated.data[2], 1, __ATOMIC_RELEASE);
    CU_ASSERT_EQUAL(wait_for(&gated, 5000), 0);
    CU_ASSERT_EQUAL(gated.data[8], 42);
    gated.data[2] = 0;
    CU_ASSERT_EQUAL(submit(&gated, words, n), 0);
    end(&gated);
    end(&other);
}

/* An unbind out of the middle leaves both ends; one over everything leaves nothing. */
static void test_binds(void)
{
    struct bench b = begin(XE_ENGINE_COPY);
    uint32_t words[WORDS];
    CU_ASSERT_EQUAL(bind(&b, XE_BIND_UNMAP, 0, 0, DATA + 4 * PAGE, PAGE), 0);
    unsigned n = put_store(words, DATA + 3 * PAGE, 1);
    n += put_store(words + n, DATA + 5 * PAGE, 2);
    CU_ASSERT_EQUAL(submit(&b, words, n), 0);
    CU_ASSERT_EQUAL(wait_for(&b, 5000), 0);
    CU_ASSERT_EQUAL(b.data[3 * PAGE / 8], 1);
    CU_ASSERT_EQUAL(b.data[5 * PAGE / 8], 2);
    CU_ASSERT_EQUAL(bind(&b, XE_BIND_MAP, b.data_object, OBJECT - PAGE, 0, 2 * PAGE), -1);
    CU_ASSERT_EQUAL(bind(&b, XE_BIND_MAP, 12345, 0, 0, PAGE), -1);
    CU_ASSERT_EQUAL(bind(&b, XE_BIND_MAP, b.data_object, 8, DATA, UINT64_MAX), -1);
    CU_ASSERT_EQUAL(submit(&b, words, put_store(words, DATA + 4 * PAGE, 3)), 0);
    expect_ban(&b);
    end(&b);
}

static void test_objects(void)
{
    struct bench b = begin(XE_ENGINE_COPY);
    struct xe_gem_create create = {.size = 0};
    CU_ASSERT_EQUAL(call(b.fd, XE_GEM_CREATE, &create), -1);
    create = (struct xe_gem_create){.size = 1ull << 60, .placement = 1};
    CU_ASSERT_EQUAL(call(b.fd, XE_GEM_CREATE, &create), -1);
    CU_ASSERT_EQUAL(errno, ENOMEM);
    CU_ASSERT_EQUAL(call(b.fd, XE_GEM_MMAP_OFFSET, &(struct xe_gem_mmap_offset){.handle = 999999}), -1);
    end(&b);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return CU_get_error();
    CU_pSuite const suite = CU_add_suite("fakegpu", NULL, NULL);
    CU_add_test(suite, "the device is found", test_node);
    CU_add_test(suite, "commands", test_commands);
    CU_add_test(suite, "page fault", test_page_fault);
    CU_add_test(suite, "unbound in flight", test_unbound_in_flight);
    CU_add_test(suite, "user pages gone", test_user_pages_gone);
    CU_add_test(suite, "unknown command", test_unknown_command);
    CU_add_test(suite, "unknown ioctl", test_unknown_ioctl);
    CU_add_test(suite, "gate", test_gate);
    CU_add_test(suite, "binds", test_binds);
    CU_add_test(suite, "objects", test_objects);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    const unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: MIT */
/*
 * One sparse file holds all memory objects; the device's descriptors are duplicates of its own, and the offset that the kernel
 * gives out for mapping an object is its place in the file, so that mmap needs no help. The whole file is mapped once for the
 * engines and stays: what a program unmaps or closes is never pulled away under an engine that is copying.
 * User pointers are the program's own pages, and may go at any time: they are reached through the kernel, which says so.
 */
#include "fakegpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { VMS = 1024, BOUNCE = 64 << 10 };
#define FILE_SIZE (1ull << 40)
#define OBJECT_ALIGNMENT 0x10000ull

struct object {
    uint64_t offset, size; /* size 0: free */
    bool vram;
};

struct range {
    uint64_t address, size;
    uint8_t *host;
    uint32_t object;
    bool user;
};

struct vm {
    bool used;
    uint32_t flags;
    struct range *ranges; /* sorted, apart from each other */
    size_t count, room;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static int file = -1;
static struct stat file_status;
static uint8_t *base;
static uint64_t next_offset = OBJECT_ALIGNMENT, vram_used;
static struct object *objects; /* by handle; the first is none */
static uint32_t object_count, object_room;
static struct vm vms[VMS];
static _Atomic uint64_t generation;

static int failed(int error)
{
    errno = error;
    return -1;
}

/* --- the file and its objects --- */

static bool open_file(void)
{
    const int fd = memfd_create("fakegpu", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, FILE_SIZE) != 0 || syscall(SYS_fstat, fd, &file_status) != 0)
        return false;
    base = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED)
        return false;
    file = fd;
    return true;
}

int fake_memory_open(void)
{
    pthread_mutex_lock(&lock);
    const bool opened = file >= 0 || open_file();
    pthread_mutex_unlock(&lock);
    if (!opened) {
        fake_unknown("no file of %llu bytes can be mapped for the device's memory: %s", FILE_SIZE, strerror(errno));
        return failed(ENODEV);
    }
    return fcntl(file, F_DUPFD_CLOEXEC, 3);
}

bool fake_memory_is(int fd)
{
    struct stat status;
    if (file < 0)
        return false;
    const int error = errno;
    const bool is = syscall(SYS_fstat, fd, &status) == 0 && status.st_ino == file_status.st_ino && status.st_dev == file_status.st_dev;
    errno = error;
    return is;
}

static struct object *object_of(uint32_t handle)
{
    return handle && handle < object_count && objects[handle].size ? &objects[handle] : NULL;
}

static uint32_t free_handle(void)
{
    for (uint32_t i = 1; i < object_count; i++)
        if (!objects[i].size)
            return i;
    if (object_count == object_room) {
        const uint32_t room = object_room ? 2 * object_room : 256;
        struct object *const more = realloc(objects, room * sizeof(*more));
        if (!more)
            return 0;
        objects = more;
        object_room = room;
    }
    if (!object_count)
        object_count = 1;
    objects[object_count] = (struct object){0};
    return object_count++;
}

int fake_object_create(struct xe_gem_create *create)
{
    const uint64_t size = (create->size + OBJECT_ALIGNMENT - 1) & ~(OBJECT_ALIGNMENT - 1);
    const bool vram = create->placement != 1 && fake_device()->vram;
    if (create->size == 0 || size < create->size)
        return failed(EINVAL);
    pthread_mutex_lock(&lock);
    int error = 0;
    if (size > FILE_SIZE - next_offset || (vram && size > fake_device()->vram - vram_used))
        error = ENOMEM;
    const uint32_t handle = error ? 0 : free_handle();
    if (handle) {
        objects[handle] = (struct object){.offset = next_offset, .size = size, .vram = vram};
        next_offset += size;
        vram_used += vram ? size : 0;
        create->handle = handle;
    } else {
        error = ENOMEM;
    }
    pthread_mutex_unlock(&lock);
    return error ? failed(error) : 0;
}

int fake_object_close(uint32_t handle)
{
    pthread_mutex_lock(&lock);
    struct object *const object = object_of(handle);
    if (object) {
        fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)object->offset, (off_t)object->size);
        vram_used -= object->vram ? object->size : 0;
        *object = (struct object){0};
    }
    pthread_mutex_unlock(&lock);
    return object ? 0 : failed(EINVAL);
}

int fake_object_offset(struct xe_gem_mmap_offset *offset)
{
    if (offset->flags & XE_MMAP_OFFSET_PCI_BARRIER) {
        offset->offset = 0; /* the first page of the file is nobody's */
        return 0;
    }
    pthread_mutex_lock(&lock);
    const struct object *const object = object_of(offset->handle);
    if (object)
        offset->offset = object->offset;
    pthread_mutex_unlock(&lock);
    return object ? 0 : failed(ENOENT);
}

/* --- address spaces --- */

static struct vm *vm_of(uint32_t id)
{
    return id && id < VMS && vms[id].used ? &vms[id] : NULL;
}

int fake_vm_create(struct xe_vm_create *create)
{
    /* page faults that can be served would make every evict harmless */
    if (create->flags & XE_VM_FAULT_MODE)
        return failed(EINVAL);
    pthread_mutex_lock(&lock);
    uint32_t id = 1;
    while (id < VMS && vms[id].used)
        id++;
    if (id < VMS)
        vms[id] = (struct vm){.used = true, .flags = create->flags};
    pthread_mutex_unlock(&lock);
    create->vm_id = id;
    return id < VMS ? 0 : failed(ENOSPC);
}

int fake_vm_destroy(uint32_t id)
{
    pthread_mutex_lock(&lock);
    struct vm *const vm = vm_of(id);
    if (vm) {
        free(vm->ranges);
        *vm = (struct vm){0};
        generation++;
    }
    pthread_mutex_unlock(&lock);
    return vm ? 0 : failed(ENOENT);
}

bool fake_vm_exists(uint32_t id)
{
    pthread_mutex_lock(&lock);
    const bool exists = vm_of(id) != NULL;
    pthread_mutex_unlock(&lock);
    return exists;
}

bool fake_vm_has_scratch(uint32_t id)
{
    pthread_mutex_lock(&lock);
    const struct vm *const vm = vm_of(id);
    const bool has = vm && (vm->flags & XE_VM_SCRATCH_PAGE);
    pthread_mutex_unlock(&lock);
    return has;
}

uint64_t fake_vm_generation(void)
{
    return generation;
}

/* The first range that ends behind the address. */
static size_t first_behind(const struct vm *vm, uint64_t address)
{
    size_t low = 0, high = vm->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (vm->ranges[middle].address + vm->ranges[middle].size > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool has_room(struct vm *vm, size_t more)
{
    if (vm->count + more <= vm->room)
        return true;
    const size_t room = 2 * vm->room + more + 64;
    struct range *const ranges = realloc(vm->ranges, room * sizeof(*ranges));
    if (!ranges)
        return false;
    vm->ranges = ranges;
    vm->room = room;
    return true;
}

static void insert(struct vm *vm, size_t at, const struct range *range)
{
    memmove(&vm->ranges[at + 1], &vm->ranges[at], (vm->count - at) * sizeof(*range));
    vm->ranges[at] = *range;
    vm->count++;
}

static struct range behind(struct range range, uint64_t address)
{
    const uint64_t cut = address - range.address;
    range.address += cut;
    range.host += cut;
    range.size -= cut;
    return range;
}

/* There must be room for one more: what is cut out of the middle of a range leaves two. */
static void unmap(struct vm *vm, uint64_t address, uint64_t end)
{
    size_t i = first_behind(vm, address);
    while (i < vm->count && vm->ranges[i].address < end) {
        const struct range old = vm->ranges[i];
        const uint64_t old_end = old.address + old.size;
        if (old.address < address) {
            vm->ranges[i++].size = address - old.address;
            if (old_end > end) {
                const struct range rest = behind(old, end);
                insert(vm, i, &rest);
            }
        } else if (old_end > end) {
            vm->ranges[i] = behind(old, end);
        } else {
            memmove(&vm->ranges[i], &vm->ranges[i + 1], (vm->count - i - 1) * sizeof(old));
            vm->count--;
        }
    }
    generation++;
}

static void unmap_object(struct vm *vm, uint32_t handle)
{
    size_t kept = 0;
    for (size_t i = 0; i < vm->count; i++)
        if (vm->ranges[i].user || vm->ranges[i].object != handle)
            vm->ranges[kept++] = vm->ranges[i];
    vm->count = kept;
    generation++;
}

static uint64_t canonical_off(uint64_t address)
{
    return address & ((1ull << fake_device()->va_bits) - 1);
}

static int bind(struct vm *vm, const struct xe_vm_bind_op *op)
{
    const uint64_t address = canonical_off(op->addr), end = address + op->range;
    struct range range = {.address = address, .size = op->range};
    const bool maps = op->op == XE_BIND_MAP || op->op == XE_BIND_MAP_USERPTR;
    if (op->op != XE_BIND_UNMAP_ALL && (end < address || (maps && op->range == 0)))
        return EINVAL;
    if (!has_room(vm, 2))
        return ENOMEM;
    switch (op->op) {
    case XE_BIND_MAP: {
        if (op->flags & (XE_BIND_NULL | XE_BIND_CPU_ADDR_MIRROR)) {
            fake_unknown("VM_BIND with the flags 0x%x is not implemented", op->flags);
            return EOPNOTSUPP;
        }
        const struct object *const object = object_of(op->obj);
        if (!object || op->obj_offset > object->size || op->range > object->size - op->obj_offset)
            return EINVAL;
        range.host = base + object->offset + op->obj_offset;
        range.object = op->obj;
        break;
    }
    case XE_BIND_MAP_USERPTR:
        range.host = (uint8_t *)(uintptr_t)op->obj_offset;
        range.user = true;
        break;
    case XE_BIND_UNMAP:
        unmap(vm, address, end);
        return 0;
    case XE_BIND_UNMAP_ALL:
        unmap_object(vm, op->obj);
        return 0;
    case XE_BIND_PREFETCH:
        return 0;
    default:
        fake_unknown("VM_BIND knows no operation %u", op->op);
        return EINVAL;
    }
    unmap(vm, address, end);
    insert(vm, first_behind(vm, address), &range);
    return 0;
}

int fake_vm_bind(uint32_t id, const struct xe_vm_bind_op *ops, uint32_t count)
{
    pthread_mutex_lock(&lock);
    struct vm *const vm = vm_of(id);
    int error = vm ? 0 : ENOENT;
    for (uint32_t i = 0; i < count && !error; i++) {
        fake_say(LOG_IOCTL, "bind in vm %u: operation %u, object %u, address 0x%llx, range 0x%llx", id, ops[i].op, ops[i].obj,
                 (unsigned long long)ops[i].addr, (unsigned long long)ops[i].range);
        error = bind(vm, &ops[i]);
    }
    pthread_mutex_unlock(&lock);
    return error ? failed(error) : 0;
}

/* --- what engines do --- */

struct place {
    uint8_t *host; /* NULL: nothing is bound there */
    uint64_t size; /* bytes from here on */
    bool user;
};

static struct place find(const struct fake_queue *q, uint64_t address)
{
    struct place place = {0};
    address = canonical_off(address);
    pthread_mutex_lock(&lock);
    const struct vm *const vm = vm_of(q->vm);
    const size_t i = vm ? first_behind(vm, address) : 0;
    if (vm && i < vm->count && vm->ranges[i].address <= address) {
        const struct range rest = behind(vm->ranges[i], address);
        place = (struct place){rest.host, rest.size, rest.user};
    }
    pthread_mutex_unlock(&lock);
    return place;
}

static bool user_transfer(bool writes, uint8_t *host, void *data, size_t size)
{
    const struct iovec ours = {data, size}, theirs = {host, size};
    const ssize_t n = writes ? process_vm_writev(getpid(), &ours, 1, &theirs, 1, 0) : process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0);
    return n == (ssize_t)size;
}

static bool get(const struct place *place, void *data, size_t size)
{
    if (place->user)
        return user_transfer(false, place->host, data, size);
    memcpy(data, place->host, size);
    return true;
}

/* Others poll the words that engines write: those must come in one piece. */
static bool put(const struct place *place, const void *data, size_t size)
{
    const bool word = (size == 8 || size == 4) && (uintptr_t)place->host % size == 0;
    if (place->user && !user_transfer(true, place->host, (void *)(uintptr_t)data, size))
        return false;
    if (place->user)
        return true;
    if (word && size == 8)
        __atomic_store_n((uint64_t *)(void *)place->host, *(const uint64_t *)data, __ATOMIC_RELEASE);
    else if (word)
        __atomic_store_n((uint32_t *)(void *)place->host, *(const uint32_t *)data, __ATOMIC_RELEASE);
    else
        memcpy(place->host, data, size);
    return true;
}

size_t fake_peek(struct fake_queue *q, uint64_t address, void *data, size_t size)
{
    size_t done = 0;
    while (done < size) {
        const struct place place = find(q, address + done);
        const size_t n = place.size < size - done ? place.size : size - done;
        if (!place.host || !get(&place, (uint8_t *)data + done, n))
            break;
        done += n;
    }
    return done;
}

bool fake_read(struct fake_queue *q, uint64_t address, void *data, size_t size)
{
    const size_t done = fake_peek(q, address, data, size);
    if (done == size)
        return true;
    memset((uint8_t *)data + done, 0, size - done);
    return fake_page_fault(q, address + done, "read");
}

bool fake_write(struct fake_queue *q, uint64_t address, const void *data, size_t size)
{
    while (size) {
        const struct place place = find(q, address);
        const size_t n = place.size < size ? place.size : size;
        if (!place.host || !put(&place, data, n))
            return fake_page_fault(q, address, "write");
        data = (const uint8_t *)data + n;
        address += n;
        size -= n;
    }
    return true;
}

bool fake_copy(struct fake_queue *q, uint64_t to, uint64_t from, uint64_t size)
{
    uint8_t bounce[BOUNCE];
    while (size) {
        const struct place source = find(q, from), target = find(q, to);
        uint64_t n = size;
        if (source.host && source.size < n)
            n = source.size;
        if (target.host && target.size < n)
            n = target.size;
        if (source.host && target.host && !source.user && !target.user) {
            memmove(target.host, source.host, n);
        } else {
            n = n < BOUNCE ? n : BOUNCE;
            if (!fake_read(q, from, bounce, n) || !fake_write(q, to, bounce, n))
                return false;
        }
        from += n;
        to += n;
        size -= n;
    }
    return true;
}

bool fake_fill(struct fake_queue *q, uint64_t to, const void *pattern, size_t width, uint64_t size)
{
    uint8_t block[4096];
    const size_t whole = sizeof(block) / width * width;
    for (size_t i = 0; i < whole; i++)
        block[i] = ((const uint8_t *)pattern)[i % width];
    while (size) {
        const size_t n = size < whole ? size : whole;
        if (!fake_write(q, to, block, n))
            return false;
        to += n;
        size -= n;
    }
    return true;
}

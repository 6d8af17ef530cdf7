/* SPDX-License-Identifier: MIT */
/*
 * shared plain|mprotect BYTES TOUCHED ROUNDS: a program that writes a word in each of TOUCHED pages of BYTES of shared memory, launches a kernel
 * that is given the memory, and waits. `mprotect` finds out by itself which pages it has written, as tools without the kernel's help do:
 * the memory is read-only, a signal handler notes the page and makes it writable, and what was noted is copied and protected anew before
 * the launch. Prints microseconds a round. On the driver of tests/driver/kernels.c, where a kernel does next to nothing.
 */
#include <level_zero/ze_api.h>

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != ZE_RESULT_SUCCESS) {                                                                             \
            fprintf(stderr, "%s failed\n", #call);                                                                     \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)
enum { PAGE = 4096 };

static unsigned char *memory, *copies;
static size_t bytes, touched, *noted;
static volatile size_t n_noted;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void on_write(int number, siginfo_t *info, void *context)
{
    const size_t at = (size_t)((unsigned char *)info->si_addr - memory) / PAGE;
    (void)number, (void)context;
    if (at >= bytes / PAGE || n_noted >= touched || mprotect(memory + at * PAGE, PAGE, PROT_READ | PROT_WRITE) != 0)
        abort();
    noted[n_noted++] = at;
}

static void keep_noted(void)
{
    for (size_t i = 0; i < n_noted; i++)
        memcpy(copies + i * PAGE, memory + noted[i] * PAGE, PAGE);
    n_noted = 0;
    if (mprotect(memory, bytes, PROT_READ) != 0)
        abort();
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    const int tracked = strcmp(argv[1], "mprotect") == 0;
    bytes = strtoul(argv[2], NULL, 0) / PAGE * PAGE;
    touched = strtoul(argv[3], NULL, 0);
    const unsigned long rounds = strtoul(argv[4], NULL, 0);
    const size_t pages = bytes / PAGE, step = touched ? pages / touched : 1;
    ze_driver_handle_t driver;
    ze_device_handle_t device;
    ze_context_handle_t context;
    ze_command_queue_handle_t queue;
    ze_command_list_handle_t list;
    ze_module_handle_t module;
    ze_kernel_handle_t kernel;
    uint32_t n = 1;
    MUST(zeInit(0));
    MUST(zeDriverGet(&n, &driver));
    n = 1;
    MUST(zeDeviceGet(driver, &n, &device));
    const ze_context_desc_t cd = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    MUST(zeContextCreate(driver, &cd, &context));
    const ze_command_queue_desc_t qd = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
    MUST(zeCommandQueueCreate(context, device, &qd, &queue));
    const ze_command_list_desc_t ld = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
    MUST(zeCommandListCreate(context, device, &ld, &list));
    static const uint8_t binary[64] = {0x03, 0x02, 0x23, 0x07};
    const ze_module_desc_t md = {.stype = ZE_STRUCTURE_TYPE_MODULE_DESC, .format = ZE_MODULE_FORMAT_IL_SPIRV, .inputSize = sizeof(binary),
                                 .pInputModule = binary};
    MUST(zeModuleCreate(context, device, &md, &module, NULL));
    const ze_kernel_desc_t kd = {.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = "work"};
    MUST(zeKernelCreate(module, &kd, &kernel));
    const ze_device_mem_alloc_desc_t dd = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    const ze_host_mem_alloc_desc_t hd = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    void *p;
    MUST(zeMemAllocShared(context, &dd, &hd, bytes, 64, device, &p));
    memory = p;
    MUST(zeKernelSetArgumentValue(kernel, 0, sizeof(p), &p));
    const ze_group_count_t one = {1, 1, 1};
    MUST(zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL));
    MUST(zeCommandListClose(list));
    if (tracked) {
        const struct sigaction sa = {.sa_sigaction = on_write, .sa_flags = SA_SIGINFO};
        noted = calloc(touched + 1, sizeof(*noted));
        copies = malloc((touched + 1) * PAGE);
        if (noted == NULL || copies == NULL)
            return 2;
        memset(copies, 1, (touched + 1) * PAGE);
        sigaction(SIGSEGV, &sa, NULL);
    }
    double begin = 0;
    for (unsigned long r = 0; r <= rounds; r++) {
        if (r == 1) /* the first is not like the others */
            begin = now();
        if (tracked)
            keep_noted();
        for (size_t i = 0; i < touched; i++) {
            const uint64_t x = (r * touched + i) * 0x9e3779b97f4a7c15u;
            memcpy(memory + i * step * PAGE + x % (PAGE / 8) * 8, &x, 8);
        }
        MUST(zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
        MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    }
    printf("%.2f\n", (now() - begin) / (double)rounds);
    return 0;
}

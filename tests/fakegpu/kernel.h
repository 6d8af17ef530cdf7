/* SPDX-License-Identifier: MIT */
/*
 * What kernels do, in C: there is no interpreter of the device's instructions. The driver's own kernels for copies and fills are
 * known. A test that launches others registers a body for each; it finds fakegpu_register by dlsym, if the fake is there.
 */
#ifndef FAKEGPU_KERNEL_H
#define FAKEGPU_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKEGPU_ARGUMENTS = 16 };

struct fakegpu_launch {
    uint32_t groups[3], local[3];
    uint64_t arguments[FAKEGPU_ARGUMENTS][4]; /* as many bytes as the kernel declares, the others 0; pointers are the device's */
    uint32_t sizes[FAKEGPU_ARGUMENTS];
    void *device;                             /* for the functions below */
    /* All return false if the device faulted; then the body must return false too. */
    bool (*read)(void *device, uint64_t address, void *data, size_t size);
    bool (*write)(void *device, uint64_t address, const void *data, size_t size);
    bool (*copy)(void *device, uint64_t to, uint64_t from, uint64_t size);
    bool (*fill)(void *device, uint64_t to, const void *pattern, size_t width, uint64_t size);
};

/** Runs on the queue's thread, for the whole launch. @return whether all went well. */
typedef bool fakegpu_body(const struct fakegpu_launch *launch);

/**
 * From now on a launch of the kernel of this name, of the native binary that zeModuleGetNativeBinary gave, runs body.
 * The binary is copied. @return false if it has no such kernel, or there is no memory.
 */
typedef bool fakegpu_register_fn(const void *binary, size_t size, const char *name, fakegpu_body *body);
fakegpu_register_fn fakegpu_register;

#endif

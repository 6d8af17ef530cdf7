/* SPDX-License-Identifier: MIT */
#include "soft.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t soft_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t soft_changed;
soft_object *soft_the_driver;
soft_object *soft_devices[8];

static bool started, hooks_set;
static ze_result_t start_result;
static FILE *log_file;

uint64_t soft_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void soft_log(const char *format, ...)
{
    if (log_file == NULL)
        return;
    va_list args;
    va_start(args, format);
    vfprintf(log_file, format, args);
    va_end(args);
    fputc('\n', log_file);
    fflush(log_file);
}

bool soft_started(void)
{
    return started && start_result == ZE_RESULT_SUCCESS;
}

static void before_fork(void)
{
    pthread_mutex_lock(&soft_mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&soft_mutex);
}

/* The parent's objects and memory mean nothing here: the child starts anew at its own zeInit. */
static void in_child(void)
{
    if (started) {
        started = false;
        soft_memory_reset();
        soft_schedule_reset();
        size_t cursor = 0;
        for (int kind = SOFT_DRIVER; kind <= SOFT_PHYSICAL; kind++, cursor = 0)
            for (soft_object *o; (o = soft_object_next_locked((enum soft_kind)kind, &cursor)) != NULL;)
                __atomic_store_n(&o->kind, SOFT_DEAD, __ATOMIC_RELEASE);
        soft_the_driver = NULL;
        memset(soft_devices, 0, sizeof(soft_devices));
    }
    pthread_mutex_unlock(&soft_mutex);
}

void soft_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

_Noreturn void soft_abort(void)
{
    fprintf(stderr, "libze_soft: a command touched memory that is not there (ZE_SOFT_FAULT=abort)\n");
    abort();
}

static ze_result_t start_locked(void)
{
    soft_cond_init(&soft_changed);
    if (!hooks_set)
        pthread_atfork(before_fork, after_fork, in_child);
    hooks_set = true;
    if (!soft_knobs_read() || !soft_schedule_start_locked())
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (soft.log[0] && log_file == NULL)
        log_file = fopen(soft.log, "ae");
    if (!soft_window_open()) {
        fprintf(stderr, "libze_soft: no window of 1 TiB of addresses from 0x200000000000 on could be reserved\n");
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    soft_the_driver = soft_object_new_locked(SOFT_DRIVER);
    if (soft_the_driver == NULL)
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    for (unsigned i = 0; i < soft.devices; i++) {
        soft_devices[i] = soft_object_new_locked(SOFT_DEVICE);
        if (soft_devices[i] == NULL)
            return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
        soft_devices[i]->device.index = i;
    }
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_start(void)
{
    pthread_mutex_lock(&soft_mutex);
    if (!started) {
        start_result = start_locked();
        started = true;
    }
    pthread_mutex_unlock(&soft_mutex);
    return start_result;
}

void soft_enter(void)
{
    pthread_mutex_lock(&soft_mutex);
    if (soft_abort_pending)
        soft_abort();
    soft_schedule_move_locked();
    soft_memory_reap_locked();
}

void soft_leave(void)
{
    if (soft.schedule == SOFT_SEED) /* the device may also move before the call returns */
        soft_schedule_move_locked();
    pthread_mutex_unlock(&soft_mutex);
}

ze_result_t soft_zeInit(ze_init_flags_t flags)
{
    if (flags != 0 && !(flags & ZE_INIT_FLAG_GPU_ONLY))
        return ZE_RESULT_ERROR_UNINITIALIZED;
    return soft_start();
}

ze_result_t soft_zeInitDrivers(uint32_t *pCount, ze_driver_handle_t *phDrivers, ze_init_driver_type_desc_t *desc)
{
    if (!(desc->flags & ZE_INIT_DRIVER_TYPE_FLAG_GPU)) {
        *pCount = 0;
        return ZE_RESULT_ERROR_UNINITIALIZED;
    }
    const ze_result_t result = soft_start();
    if (result != ZE_RESULT_SUCCESS)
        return result;
    if (phDrivers != NULL && *pCount > 0)
        phDrivers[0] = (ze_driver_handle_t)soft_the_driver;
    *pCount = 1;
    return ZE_RESULT_SUCCESS;
}

ze_result_t soft_zeDriverGet(uint32_t *pCount, ze_driver_handle_t *phDrivers)
{
    if (!soft_started())
        return ZE_RESULT_ERROR_UNINITIALIZED;
    if (phDrivers != NULL && *pCount > 0)
        phDrivers[0] = (ze_driver_handle_t)soft_the_driver;
    *pCount = 1;
    return ZE_RESULT_SUCCESS;
}

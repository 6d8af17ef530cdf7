/* SPDX-License-Identifier: MIT */
/* A test case of the software driver: runs in a process of its own, with its own knobs, on the driver's own function tables. */
#ifndef SOFT_TEST_H
#define SOFT_TEST_H

#include "l0_api.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct tables {
    ze_global_dditable_t global;
    ze_driver_dditable_t driver;
    ze_device_dditable_t device;
    ze_context_dditable_t context;
    ze_command_queue_dditable_t queue;
    ze_command_list_dditable_t list;
    ze_command_list_exp_dditable_t list_exp;
    ze_event_dditable_t event;
    ze_event_exp_dditable_t event_exp;
    ze_event_pool_dditable_t pool;
    ze_fence_dditable_t fence;
    ze_mem_dditable_t mem;
    ze_physical_mem_dditable_t physical;
    ze_virtual_mem_dditable_t virt;
    ze_module_dditable_t module;
} tables;

extern tables ze;
extern ze_driver_handle_t the_driver;
extern ze_device_handle_t the_device;
extern ze_context_handle_t the_context;

/* Loads a file as driver and fills `t`. @return false if it is none. */
bool load_driver(const char *path, tables *t);
/* zeInit, first driver and device, a context. */
void open_all(void);

/* A condition that fails ends the case with its text. */
#define CHECK(condition) check(condition, #condition, __FILE__, __LINE__)
#define IS(call, result) is(call, result, #call, __FILE__, __LINE__)
#define OK(call) is(call, ZE_RESULT_SUCCESS, #call, __FILE__, __LINE__)
void check(bool condition, const char *text, const char *file, int line);
void is(ze_result_t got, ze_result_t want, const char *text, const char *file, int line);

ze_command_queue_handle_t new_queue(uint32_t ordinal, uint32_t index);
ze_command_list_handle_t new_list(uint32_t ordinal, uint32_t flags);
ze_command_list_handle_t new_immediate(uint32_t flags, bool synchronous);
ze_event_handle_t new_event(void);
void *new_device(size_t size);
unsigned char *new_host(size_t size);
ze_result_t run(ze_command_queue_handle_t queue, ze_command_list_handle_t list);
void copy(ze_command_list_handle_t list, void *to, const void *from, size_t size);
void close_list(ze_command_list_handle_t list);

void nap(unsigned ms);

typedef struct test_case {
    const char *name;
    const char *knobs; /* "ZE_SOFT_SCHEDULE=lazy ZE_SOFT_FAULT=ban" */
    void (*run)(void);
    int status;        /* what the process is to end with: 0, or -N for signal N */
} test_case;

extern const test_case knob_cases[], model_cases[], use_cases[], lasting_cases[], loss_cases[], memory_cases[];

#endif

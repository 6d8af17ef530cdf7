/* SPDX-License-Identifier: MIT */
/* modules OUT: a trace of a program that builds modules and asks for their binaries, which no driver of ours does. */
#include <string.h>

#include "format.h"
#include "l0_api.h"

enum { BIG = 200000 };

typedef struct maker {
    zt_writer *writer;
    zt_piece pieces[2][32];
    uint32_t n[2];
    uint64_t number;
} maker;

static int take_target(void *ctx, const zt_node *node)
{
    zt_piece **const at = ctx;
    *(*at)++ = (zt_piece){.addr = node->addr, .len = node->size, .data = node->data};
    return 0;
}

static void call(maker *m, const char *name, const uint64_t *words, bool late, const zt_content *content)
{
    const zt_func *const func = &zt_funcs[zt_func_find(name)];
    for (int phase = ZT_ENTER; phase <= ZT_LEAVE; phase++) {
        zt_piece *at = m->pieces[phase];
        const zt_walk walk = {.func = func, .words = words, .phase = phase, .memory = &zt_live_memory, .targets_only = true, .visit = take_target,
                              .ctx = &at};
        zt_walk_call(&walk);
        m->n[phase] = (uint32_t)(at - m->pieces[phase]);
    }
    zt_call c = {.number = ++m->number, .func = func, .thread = 1, .returned = !late, .enter_ns = m->number * 100, .leave_ns = late ? 0 : m->number * 100 + 50,
                 .words = words, .in = m->pieces[ZT_ENTER], .n_in = m->n[ZT_ENTER], .out = m->pieces[ZT_LEAVE],
                 .n_out = late ? 0 : m->n[ZT_LEAVE], .contents = content, .n_contents = content != NULL};
    zt_writer_call(m->writer, &c);
    if (!late)
        return;
    zt_writer_flush(m->writer);
    c.returned = 1;
    c.leave_ns = c.enter_ns + 150;
    c.n_out = m->n[ZT_LEAVE];
    zt_writer_leave(m->writer, c.number, &c);
}

#define W(x) ((uint64_t)(uintptr_t)(x))

int main(int argc, char **argv)
{
    static uint8_t big[BIG] = "a big module", native[] = "a native binary", late[] = "a late native binary", value[] = "kernel value";
    static uint8_t small[] = "a small module", buffer[] = "a buffer";
    zt_session session = {.pid = 1, .uuid = "fifteen letters"};
    const zt_writer_options options = {.overwrite = true};
    const zt_ending ending = {.complete = 1, .exited = 1, .calls = 6};
    zt_error error;
    maker m = {0};
    if (argc != 2 || zt_writer_open(&m.writer, argv[1], &session, &options, &error) != ZT_OK)
        return 1;
    for (size_t i = 100; i < BIG; i++)
        big[i] = (uint8_t)(i * i >> 5);
    ze_module_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MODULE_DESC, .inputSize = sizeof(small), .pInputModule = small, .pBuildFlags = "build options"};
    ze_module_handle_t module = (ze_module_handle_t)(uintptr_t)0x1000;
    size_t size = sizeof(native);
    const zt_content content = {.kind = ZT_C_OPERAND, .addr = W(buffer), .len = sizeof(buffer), .data = buffer};
    call(&m, "zeModuleCreate", (uint64_t[]){0x10, 0x20, W(&desc), W(&module), 0}, false, NULL);
    desc.inputSize = BIG;
    desc.pInputModule = big;
    call(&m, "zeModuleCreate", (uint64_t[]){0x10, 0x20, W(&desc), W(&module), 0}, false, NULL);
    call(&m, "zeModuleGetNativeBinary", (uint64_t[]){0x1000, W(&size), W(native)}, false, NULL);
    size = sizeof(late);
    call(&m, "zeModuleGetNativeBinary", (uint64_t[]){0x1000, W(&size), W(late)}, true, NULL);
    call(&m, "zeKernelSetArgumentValue", (uint64_t[]){0x2000, 0, sizeof(value), W(value)}, false, NULL);
    call(&m, "zeCommandListAppendMemoryCopy", (uint64_t[]){0x3000, W(native), W(buffer), sizeof(buffer), 0, 0, 0}, false, &content);
    return zt_writer_close(m.writer, &ending, &error) != ZT_OK;
}

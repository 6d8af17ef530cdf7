/* SPDX-License-Identifier: MIT */
/*
 * Right programs, each of which depends on one kind of order alone; MODE names it, and without one they are listed.
 * Right on every schedule: a checker that left that kind out would accuse them.
 */
#include "common.h"

enum { SIZE = 4096 };

static app a;
static unsigned char *from, *to;
static ze_command_queue_handle_t writer, reader;

/* Writes `memory`, and says so by the event. */
static void write_to(void *memory, ze_event_handle_t done)
{
    ze_command_list_handle_t list = list_new(&a, 0);
    MUST(zeCommandListAppendMemoryCopy(list, memory, from, SIZE, done, 0, NULL));
    MUST(zeCommandListClose(list));
    MUST(run(writer, list, NULL));
}

static void finish(ze_command_list_handle_t list)
{
    MUST(zeCommandListClose(list));
    MUST(run(reader, list, NULL));
    MUST(zeCommandQueueSynchronize(reader, UINT64_MAX));
    MUST(zeCommandQueueSynchronize(writer, UINT64_MAX));
}

/* The second copy starts behind the first, which waits. */
static void start(void)
{
    void *const memory = device_new(&a, SIZE), *const other = device_new(&a, SIZE);
    ze_event_handle_t written = event_new(&a);
    ze_command_list_handle_t list = list_new(&a, 1);
    write_to(memory, written);
    MUST(zeCommandListAppendMemoryCopy(list, other, from, SIZE, NULL, 1, &written));
    MUST(zeCommandListAppendMemoryCopy(list, to, memory, SIZE, NULL, 0, NULL));
    finish(list);
}

/* The event is reset behind its wait. */
static void barrier_waits(void)
{
    void *const memory = device_new(&a, SIZE);
    ze_event_handle_t written = event_new(&a);
    ze_command_list_handle_t list = list_new(&a, 1);
    write_to(memory, written);
    MUST(zeCommandListAppendBarrier(list, NULL, 1, &written));
    MUST(zeCommandListAppendEventReset(list, written));
    MUST(zeCommandListAppendMemoryCopy(list, to, memory, SIZE, NULL, 0, NULL));
    finish(list);
}

static void wait_on_events(void)
{
    void *const memory = device_new(&a, SIZE);
    ze_event_handle_t written = event_new(&a);
    ze_command_list_handle_t list = list_new(&a, 1);
    write_to(memory, written);
    MUST(zeCommandListAppendWaitOnEvents(list, 1, &written));
    MUST(zeCommandListAppendEventReset(list, written));
    MUST(zeCommandListAppendMemoryCopy(list, to, memory, SIZE, NULL, 0, NULL));
    finish(list);
}

/* The reader is submitted before the writer, and let go by the host when the writer is done. */
static void host_signal(void)
{
    void *const memory = device_new(&a, SIZE);
    ze_event_handle_t go = event_new(&a);
    ze_command_list_handle_t list = list_new(&a, 1);
    MUST(zeCommandListAppendMemoryCopy(list, to, memory, SIZE, NULL, 1, &go));
    MUST(zeCommandListClose(list));
    MUST(run(reader, list, NULL));
    write_to(memory, NULL);
    MUST(zeCommandQueueSynchronize(writer, UINT64_MAX));
    MUST(zeEventHostSignal(go));
    MUST(zeCommandQueueSynchronize(reader, UINT64_MAX));
}

static void synchronous(void)
{
    const ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                          .mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS};
    void *const memory = device_new(&a, SIZE);
    MUST(zeCommandQueueCreate(a.context, a.device, &desc, &writer));
    write_to(memory, NULL);
    ze_command_list_handle_t list = list_new(&a, 1);
    MUST(zeCommandListAppendMemoryCopy(list, to, memory, SIZE, NULL, 0, NULL));
    MUST(zeCommandListClose(list));
    MUST(run(reader, list, NULL));
    MUST(zeCommandQueueSynchronize(reader, UINT64_MAX));
}

static void counter(void)
{
    void *const memory = device_new(&a, SIZE);
    ze_event_handle_t written = counter_event_new(&a);
    ze_command_list_handle_t first = immediate_new(&a, IN_ORDER), second = immediate_new(&a, IN_ORDER);
    MUST(zeCommandListAppendMemoryCopy(first, memory, from, SIZE, written, 0, NULL));
    ze_event_handle_t done = counter_event_new(&a);
    MUST(zeCommandListAppendMemoryCopy(second, to, memory, SIZE, done, 1, &written));
    MUST(zeEventHostSynchronize(done, UINT64_MAX));
}

static const struct mode {
    const char *name;
    void (*run)(void);
} modes[] = {{"start", start},
             {"barrier-waits", barrier_waits},
             {"wait", wait_on_events},
             {"host-signal", host_signal},
             {"synchronous", synchronous},
             {"counter", counter}};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (argc < 2) {
            puts(modes[i].name);
        } else if (strcmp(argv[1], modes[i].name) == 0) {
            a = app_open();
            from = host_new(&a, SIZE);
            to = host_new(&a, SIZE);
            memset(from, 1, SIZE);
            memset(to, 0, SIZE);
            writer = queue_new(&a, 0, 0);
            reader = queue_new(&a, 1, 0);
            modes[i].run();
            return verdict(memcmp(from, to, SIZE) != 0, argv[1]);
        }
    }
    return argc < 2 ? GOOD : CANNOT;
}

/* SPDX-License-Identifier: MIT */
/*
 * hostwrites MODE [broken]: the host writes where commands have written, or reads it back, behind waits that speak of them in a
 * roundabout way. Each mode is right in every order; `broken` leaves out one edge. Without a mode they are listed.
 */
#include "common.h"

enum { SIZE = 8192, PART = 3000, MANY = 300, PIECE = 64 };

static app a;
static bool broken;
static ze_command_list_handle_t one, other; /* immediate, in no order */

static void copy_on(ze_command_list_handle_t list, void *dst, const void *src, size_t size, ze_event_handle_t signal, ze_event_handle_t wait)
{
    MUST(zeCommandListAppendMemoryCopy(list, dst, src, size, signal, wait != NULL, wait != NULL ? &wait : NULL));
}

static void copy(void *dst, const void *src, size_t size)
{
    const ze_event_handle_t done = event_new(&a);
    copy_on(one, dst, src, size, done, NULL);
    MUST(zeEventHostSynchronize(done, UINT64_MAX));
}

/* Device memory that holds the byte. */
static void *device_filled(int byte)
{
    void *const memory = device_new(&a, SIZE), *const host = host_new(&a, SIZE);
    memset(host, byte, SIZE);
    copy(memory, host, SIZE);
    return memory;
}

static unsigned char *host_filled(int byte)
{
    unsigned char *const memory = host_new(&a, SIZE);
    memset(memory, byte, SIZE);
    return memory;
}

/* What the device sees in host memory. */
static const unsigned char *device_sees(const void *memory)
{
    void *const there = device_new(&a, SIZE);
    unsigned char *const back = host_new(&a, SIZE);
    copy(there, memory, SIZE);
    copy(back, there, SIZE);
    return back;
}

static bool holds(const unsigned char *memory, size_t from, size_t to, int byte)
{
    for (size_t i = from; i < to; i++)
        if (memory[i] != byte)
            return false;
    return true;
}

/* The host waits for a copy that has waited for the one whose output it overwrites. */
static bool transitive(void)
{
    void *const five = device_filled(5), *const there = device_new(&a, SIZE);
    unsigned char *const memory = host_filled(1), *const source = host_filled(2);
    const ze_event_handle_t written = event_new(&a), done = event_new(&a);
    copy_on(one, memory, five, SIZE, written, NULL);
    copy_on(other, there, source, SIZE, done, broken ? NULL : written);
    MUST(zeEventHostSynchronize(done, UINT64_MAX));
    memset(memory, 9, SIZE);
    MUST(zeEventHostSynchronize(written, UINT64_MAX));
    return holds(device_sees(memory), 0, SIZE, 9);
}

/* Of a buffer that is read back the host has overwritten a part since, and a command the rest. */
static bool partly(void)
{
    void *const five = device_filled(5), *const seven = device_filled(7), *const there = device_new(&a, SIZE);
    unsigned char *const memory = host_filled(1), *const source = host_filled(2);
    const ze_event_handle_t written = event_new(&a), done = event_new(&a), rest = event_new(&a);
    copy_on(one, memory, five, SIZE, written, NULL);
    copy_on(other, there, source, SIZE, done, written);
    MUST(zeEventHostSynchronize(done, UINT64_MAX));
    memset(memory, 9, PART);
    const ze_event_handle_t ready = event_new(&a);
    copy_on(one, there, seven, SIZE, ready, done);
    copy_on(other, memory + PART, there, SIZE - PART, rest, broken ? NULL : ready);
    MUST(zeEventHostSynchronize(rest, UINT64_MAX));
    MUST(zeEventHostSynchronize(written, UINT64_MAX));
    const unsigned char *const seen = device_sees(memory);
    return holds(seen, 0, PART, 9) && holds(seen, PART, SIZE, 7);
}

/* A command reads what the host has written in part, and a command the rest, before anybody has waited for that. */
static bool input(void)
{
    void *const seven = device_filled(7), *const there = device_filled(3), *const next = device_new(&a, SIZE);
    unsigned char *const memory = host_filled(1), *const back = host_new(&a, SIZE);
    const ze_event_handle_t ready = event_new(&a), rest = event_new(&a), read = event_new(&a);
    copy(next, memory, SIZE);
    copy_on(one, there, seven, SIZE, ready, NULL);
    copy_on(other, memory + PART, there, SIZE - PART, rest, broken ? NULL : ready);
    memset(memory, 9, PART);
    copy_on(one, next, memory, SIZE, read, rest);
    MUST(zeEventHostSynchronize(read, UINT64_MAX));
    copy(back, next, SIZE);
    return holds(back, 0, PART, 9) && holds(back, PART, SIZE, 7);
}

/* One wait for more outputs than are kept apart; some of them are written over. */
static bool many(void)
{
    unsigned char *const from = device_new(&a, (size_t)MANY * PIECE), *const to = host_new(&a, (size_t)MANY * PIECE);
    void *const six = device_filled(6), *const seven = device_filled(7);
    const ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    const ze_command_list_handle_t list = list_new(&a, 0);
    memset(to, 1, (size_t)MANY * PIECE);
    for (int done = 0, n; done < MANY * PIECE; done += n) {
        n = MANY * PIECE - done < SIZE ? MANY * PIECE - done : SIZE;
        copy(from + done, six, (size_t)n);
    }
    const ze_event_handle_t changed = event_new(&a);
    copy_on(list, from + (MANY - 1) * PIECE, seven, PIECE, changed, NULL);
    for (int i = 0; i < MANY; i++)
        copy_on(list, to + i * PIECE, from + i * PIECE, PIECE, NULL, i == MANY - 1 && !broken ? changed : NULL);
    MUST(zeCommandListClose(list));
    MUST(run(queue, list, NULL));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    bool good = holds(to, 0, (MANY - 1) * PIECE, 6) && holds(to, (MANY - 1) * PIECE, MANY * PIECE, 7);
    memset(to + PIECE, 9, PART);
    const unsigned char *const seen = device_sees(to);
    good &= holds(seen, 0, PIECE, 6) && holds(seen, PIECE, PIECE + PART, 9) && holds(seen, PIECE + PART, SIZE, 6);
    return good;
}

/* A copy of a regular list says by its event that it is over; the list is not. */
static bool regular(void)
{
    void *const five = device_filled(5), *const there = device_new(&a, SIZE), *const last = device_new(&a, SIZE);
    unsigned char *const memory = host_filled(1), *const source = host_filled(2);
    const ze_event_handle_t written = event_new(&a), gate = event_new(&a);
    const ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    const ze_command_list_handle_t list = list_new(&a, 0);
    copy_on(list, there, five, SIZE, NULL, NULL);
    if (!broken)
        MUST(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    copy_on(list, memory, there, SIZE, written, NULL);
    copy_on(list, last, source, SIZE, NULL, gate);
    MUST(zeCommandListClose(list));
    MUST(run(queue, list, NULL));
    MUST(zeEventHostSynchronize(written, UINT64_MAX));
    memset(memory, 9, SIZE);
    MUST(zeEventHostSignal(gate));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    return holds(device_sees(memory), 0, SIZE, 9);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        bool (*run)(void);
    } modes[] = {{"transitive", transitive}, {"partly", partly}, {"input", input}, {"many", many}, {"regular", regular}};
    const size_t n = sizeof(modes) / sizeof(modes[0]);
    for (size_t i = 0; argc < 2 && i < n; i++)
        printf("%s\n", modes[i].name);
    if (argc < 2)
        return GOOD;
    broken = wanted(argc, argv, "broken");
    for (size_t i = 0; i < n; i++) {
        if (!wanted(argc, argv, modes[i].name))
            continue;
        a = app_open();
        one = immediate_new(&a, 0);
        other = immediate_new(&a, 0);
        return verdict(!modes[i].run(), modes[i].name);
    }
    return CANNOT;
}

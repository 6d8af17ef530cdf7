/* SPDX-License-Identifier: MIT */
/*
 * The commands that every engine has: jumps, waits, stores, registers and their arithmetic. A command that is not known hangs the
 * engine, loudly: skipping it could make a wrong run look right.
 */
#include "fakegpu.h"

#include <sched.h>
#include <stdio.h>

enum { COMMAND_WORDS = 64 };
enum { REGISTER_TIME = 0x358, REGISTER_CONTEXT_TIME = 0x3a8, REGISTER_PREDICATE_RESULT = 0x3bc, REGISTER_GENERAL = 0x600 };

/* --- registers: each engine names its own by an address of which the lower 12 bits tell them apart --- */

static uint32_t *register_of(struct fake_queue *q, uint32_t address)
{
    return &q->registers[(address & 0xfff) / 4];
}

static uint32_t register_value(struct fake_queue *q, uint32_t address)
{
    const uint32_t offset = address & 0xffc;
    if (offset == REGISTER_TIME || offset == REGISTER_CONTEXT_TIME)
        return (uint32_t)fake_ticks();
    if (offset == REGISTER_TIME + 4 || offset == REGISTER_CONTEXT_TIME + 4)
        return (uint32_t)(fake_ticks() >> 32);
    return *register_of(q, address);
}

static uint64_t general(struct fake_queue *q, unsigned i)
{
    return *register_of(q, REGISTER_GENERAL + 8 * i) | (uint64_t)*register_of(q, REGISTER_GENERAL + 8 * i + 4) << 32;
}

static void set_general(struct fake_queue *q, unsigned i, uint64_t value)
{
    *register_of(q, REGISTER_GENERAL + 8 * i) = (uint32_t)value;
    *register_of(q, REGISTER_GENERAL + 8 * i + 4) = (uint32_t)(value >> 32);
}

static bool load_immediate(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count)
{
    (void)batch;
    for (unsigned i = 1; i + 1 < count; i += 2)
        *register_of(q, words[i]) = words[i + 1];
    return true;
}

static bool load_memory(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count)
{
    (void)batch, (void)count;
    return fake_read(q, fake_word64(words + 2) & ~3ull, register_of(q, words[1]), 4);
}

static bool load_register(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count)
{
    (void)batch, (void)count;
    *register_of(q, words[2]) = register_value(q, words[1]);
    return true;
}

static bool store_register(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count)
{
    (void)batch, (void)count;
    const uint32_t value = register_value(q, words[1]);
    return fake_write(q, fake_word64(words + 2) & ~3ull, &value, 4);
}

/* --- arithmetic --- */

struct math {
    uint64_t a, b, result;
    bool zero, carry;
};

enum { MATH_A = 0x20, MATH_B = 0x21, MATH_RESULT = 0x31, MATH_ZERO = 0x32, MATH_CARRY = 0x33 };

static uint64_t math_source(struct fake_queue *q, const struct math *m, unsigned operand)
{
    switch (operand) {
    case MATH_A:
        return m->a;
    case MATH_B:
        return m->b;
    case MATH_RESULT:
        return m->result;
    case MATH_ZERO:
        return m->zero ? UINT64_MAX : 0;
    case MATH_CARRY:
        return m->carry ? UINT64_MAX : 0;
    default:
        return operand < 16 ? general(q, operand) : 0;
    }
}

static void math_set(struct fake_queue *q, struct math *m, unsigned operand, uint64_t value)
{
    if (operand == MATH_A)
        m->a = value;
    else if (operand == MATH_B)
        m->b = value;
    else if (operand < 16)
        set_general(q, operand, value);
}

static bool math_calculate(struct math *m, unsigned operation)
{
    const uint64_t a = m->a, b = m->b;
    switch (operation) {
    case 0x100:
        m->result = a + b;
        m->carry = m->result < a;
        break;
    case 0x101:
        m->result = a - b;
        m->carry = a < b;
        break;
    case 0x102:
        m->result = a & b;
        break;
    case 0x103:
        m->result = a | b;
        break;
    case 0x104:
        m->result = a ^ b;
        break;
    case 0x105:
        m->result = b < 64 ? a << b : 0;
        break;
    case 0x106:
        m->result = b < 64 ? a >> b : 0;
        break;
    case 0x107:
        m->result = (uint64_t)((int64_t)a >> (b < 63 ? b : 63));
        break;
    default:
        return false;
    }
    m->zero = m->result == 0;
    return true;
}

static bool math(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count)
{
    (void)batch;
    struct math m = {0};
    for (unsigned i = 1; i < count; i++) {
        const unsigned operation = words[i] >> 20, to = words[i] >> 10 & 0x3ff, from = words[i] & 0x3ff;
        const uint64_t source = math_source(q, &m, from);
        uint64_t value;
        switch (operation) {
        case 0x000: /* nothing, and two fences */
        case 0x001:
        case 0x002:
            break;
        case 0x080: /* load, store; inverted with the bit 0x400 */
        case 0x180:
            math_set(q, &m, to, source);
            break;
        case 0x480:
        case 0x580:
            math_set(q, &m, to, ~source);
            break;
        case 0x081:
        case 0x481:
            math_set(q, &m, to, operation == 0x081 ? 0 : UINT64_MAX);
            break;
        case 0x082: /* through a pointer */
            if (!fake_read(q, source, &value, 8))
                return false;
            math_set(q, &m, to, value);
            break;
        case 0x181:
            if (!fake_write(q, math_source(q, &m, to), &source, 8))
                return false;
            break;
        default:
            if (!math_calculate(&m, operation)) {
                fake_unknown("MI_MATH knows no operation 0x%03x", operation);
                return fake_hang(q);
            }
        }
    }
    return true;
}

static bool atomic(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count)
{
    (void)batch;
    const unsigned operation = words[0] >> 8 & 0x1f;
    const size_t size = words[0] & 1 << 13 ? 8 : 4;
    const uint64_t address = fake_word64(words + 1) & ~3ull;
    const uint64_t first = count > 5 ? words[3] | (uint64_t)words[5] << 32 : count > 3 ? words[3] : 0;
    const uint64_t second = count > 6 ? words[4] | (uint64_t)words[6] << 32 : count > 4 ? words[4] : 0;
    uint64_t value = 0;
    if (!fake_read(q, address, &value, size))
        return false;
    switch (operation) {
    case 0x04:
        value = first;
        break;
    case 0x05:
        value++;
        break;
    case 0x06:
        value--;
        break;
    case 0x07:
        value += first;
        break;
    case 0x0e:
        value = value == first ? second : value;
        break;
    default:
        fake_unknown("MI_ATOMIC knows no operation 0x%02x", operation);
        return fake_hang(q);
    }
    return fake_write(q, address, &value, size);
}

/* --- memory --- */

bool fake_post_sync(struct fake_queue *q, unsigned operation, uint64_t address, uint64_t value)
{
    const uint64_t now = fake_ticks();
    return operation == 1 ? fake_write(q, address, &value, 8) : operation == 3 ? fake_write(q, address, &now, 8) : true;
}

static bool flush(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count)
{
    (void)batch;
    return fake_post_sync(q, words[0] >> 14 & 3, fake_word64(words + 1) & ~7ull, count > 4 ? fake_word64(words + 3) : words[3]);
}

static bool store_immediate(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count)
{
    (void)batch;
    return fake_write(q, fake_word64(words + 1) & ~3ull, words + 3, words[0] & 1 << 21 && count > 4 ? 8 : 4);
}

static bool copy_word(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count)
{
    (void)batch, (void)count;
    return fake_copy(q, fake_word64(words + 1), fake_word64(words + 3), 4);
}

/* --- flow --- */

static bool compares(unsigned operation, uint32_t value, uint32_t with)
{
    switch (operation) {
    case 0:
        return value > with;
    case 1:
        return value >= with;
    case 2:
        return value < with;
    case 3:
        return value <= with;
    case 4:
        return value == with;
    default:
        return value != with;
    }
}

static bool semaphore_wait(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count)
{
    (void)batch, (void)count;
    const unsigned operation = words[0] >> 12 & 7;
    const bool polls_register = words[0] & 1 << 16;
    for (unsigned polls = 0;; polls++) {
        uint32_t value = 0;
        if (polls_register)
            value = register_value(q, words[2]);
        else if (!fake_read(q, fake_word64(words + 2) & ~3ull, &value, 4))
            return false;
        if (compares(operation, value, words[1]))
            return true;
        if (fake_queue_ends(q))
            return false;
        /* a ring that waits for the next submit polls for long */
        if (polls < 10)
            sched_yield();
        else
            fake_queue_sleep(q, polls < 400 ? 20000 : 200000);
    }
}

static bool set_predicate(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count)
{
    (void)batch, (void)count;
    q->predicate = words[0] & 0xf;
    return true;
}

static bool batch_start(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count)
{
    enum { PREDICATED = 1 << 15, INDIRECT = 1 << 18, CALL = 1 << 22 };
    (void)count;
    if (words[0] & PREDICATED) {
        const bool result = *register_of(q, REGISTER_PREDICATE_RESULT) & 1;
        if (q->predicate == 15 || (q->predicate == 1 && !result) || (q->predicate == 2 && result))
            return true;
        fake_queue_sleep(q, 5000); /* what jumps back so is a scheduler that polls */
    }
    if (words[0] & CALL) {
        if (batch->depth == FAKE_NESTING) {
            fake_unknown("batches nest deeper than %d", FAKE_NESTING);
            return fake_hang(q);
        }
        batch->callers[batch->depth++] = batch->next;
    }
    batch->next = (words[0] & INDIRECT ? general(q, 0) : fake_word64(words + 1)) & ~3ull;
    return true;
}

static bool batch_end(struct fake_queue *q, struct fake_batch *batch, const uint32_t *words, unsigned count)
{
    (void)q, (void)words, (void)count;
    if (batch->depth)
        batch->next = batch->callers[--batch->depth];
    else
        batch->ended = true;
    return true;
}

#define MI(operation, name, length, run) {0xff800000, (uint32_t)(operation) << 23, "MI_" name, LENGTH_##length, run}
static const struct fake_command common_commands[] = {
    MI(0x00, "NOOP", ONE, NULL),
    MI(0x01, "SET_PREDICATE", ONE, set_predicate),
    MI(0x02, "USER_INTERRUPT", ONE, NULL),
    MI(0x05, "ARB_CHECK", ONE, NULL),
    MI(0x08, "ARB_ON_OFF", ONE, NULL),
    MI(0x09, "MEM_FENCE", ONE, NULL), /* what is written is seen at once */
    MI(0x0a, "BATCH_BUFFER_END", ONE, batch_end),
    MI(0x1a, "MATH", 8_BITS, math),
    MI(0x1c, "SEMAPHORE_WAIT", 8_BITS, semaphore_wait),
    MI(0x20, "STORE_DATA_IMM", 10_BITS, store_immediate),
    MI(0x22, "LOAD_REGISTER_IMM", 8_BITS, load_immediate),
    MI(0x24, "STORE_REGISTER_MEM", 8_BITS, store_register),
    MI(0x26, "FLUSH_DW", 6_BITS, flush),
    MI(0x29, "LOAD_REGISTER_MEM", 8_BITS, load_memory),
    MI(0x2a, "LOAD_REGISTER_REG", 8_BITS, load_register),
    MI(0x2e, "COPY_MEM_MEM", 8_BITS, copy_word),
    MI(0x2f, "ATOMIC", 8_BITS, atomic),
    MI(0x31, "BATCH_BUFFER_START", THREE, batch_start),
    {0xffff0000, 0x61090000, "STATE_SYSTEM_MEM_FENCE_ADDRESS", LENGTH_8_BITS, NULL},
    {0},
};

/* --- the interpreter --- */

static const struct fake_command *find_in(const struct fake_command *commands, uint32_t head)
{
    while (commands->name && (head & commands->mask) != commands->value)
        commands++;
    return commands->name ? commands : NULL;
}

static const struct fake_command *find(const struct fake_queue *q, uint32_t head)
{
    const struct fake_command *const own = q->engine_class == XE_ENGINE_COPY ? fake_copy_commands : fake_compute_commands;
    const struct fake_command *const common = find_in(common_commands, head);
    return common ? common : find_in(own, head);
}

static unsigned length_of(const struct fake_command *command, uint32_t head)
{
    switch (command->length) {
    case LENGTH_ONE:
        return 1;
    case LENGTH_THREE:
        return 3;
    case LENGTH_6_BITS:
        return (head & 0x3f) + 2;
    case LENGTH_8_BITS:
        return (head & 0xff) + 2;
    default:
        return (head & 0x3ff) + 2;
    }
}

static void log_command(const struct fake_queue *q, uint64_t at, const char *name, const uint32_t *words, unsigned count)
{
    char text[COMMAND_WORDS * 9 + 1] = "";
    for (unsigned i = 0, n = 0; i < count; i++)
        n += (unsigned)snprintf(text + n, sizeof(text) - n, " %08x", words[i]);
    fake_say(LOG_COMMAND, "queue %u at 0x%012llx: %s%s", q->id, (unsigned long long)at, name, text);
}

static bool step(struct fake_queue *q, struct fake_batch *batch)
{
    uint32_t words[COMMAND_WORDS] = {0};
    if (!fake_read(q, batch->at, words, 4))
        return false;
    const struct fake_command *const command = find(q, words[0]);
    const unsigned count = command ? length_of(command, words[0]) : 1;
    if (!command || count > COMMAND_WORDS) {
        fake_unknown("command 0x%08x at 0x%llx of the %s engine is not known", words[0], (unsigned long long)batch->at,
                     fake_class_name(q->engine_class));
        return fake_hang(q);
    }
    if (count > 1 && !fake_read(q, batch->at, words, 4 * count))
        return false;
    if (fake_logged(LOG_COMMAND) && words[0] != 0)
        log_command(q, batch->at, command->name, words, count);
    batch->next = batch->at + 4 * count;
    if (command->run && !command->run(q, batch, words, count))
        return false;
    batch->at = batch->next;
    return true;
}

bool fake_run_batch(struct fake_queue *q, uint64_t address)
{
    struct fake_batch batch = {.at = address};
    while (!batch.ended)
        if (fake_queue_ends(q) || !step(q, &batch))
            return false;
    return true;
}

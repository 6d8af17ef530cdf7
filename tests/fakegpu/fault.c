/* SPDX-License-Identifier: MIT */
/*
 * What xe does for an address space without a scratch page: an access to what is not bound resets the engine, and the queue
 * whose work it was is banned. Its fences are never written, the next EXEC on it is refused.
 */
#include "fakegpu.h"

static void ban(struct fake_queue *q)
{
    q->banned = true;
}

bool fake_page_fault(struct fake_queue *q, uint64_t address, const char *access)
{
    const bool scratch = fake_vm_has_scratch(q->vm);
    fake_say(LOG_KERNEL, "page fault at 0x%llx, %s, on queue %u of the %s engine: %s", (unsigned long long)address, access, q->id,
             fake_class_name(q->engine_class), scratch ? "the scratch page takes it" : "the queue is banned");
    if (!scratch)
        ban(q);
    return scratch;
}

bool fake_hang(struct fake_queue *q)
{
    fake_say(LOG_KERNEL, "queue %u of the %s engine hangs and is banned", q->id, fake_class_name(q->engine_class));
    ban(q);
    return false;
}

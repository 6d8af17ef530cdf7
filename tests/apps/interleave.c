/* SPDX-License-Identifier: MIT */
/* Twelve fills on three in-order immediate lists, which share four words and nothing that orders them: for those who count orders. */
#include "common.h"

int main(void)
{
    /* which word each list's commands write, in order */
    static const unsigned words[3][4] = {{0, 1, 2, 3}, {1, 0, 4, 5}, {2, 6, 0, 7}};
    app a = app_open();
    uint32_t *const memory = host_new(&a, 4096);
    ze_command_list_handle_t lists[3];
    memset(memory, 0, 4096);
    for (unsigned i = 0; i < 3; i++)
        lists[i] = immediate_new(&a, IN_ORDER);
    for (unsigned k = 0; k < 4; k++)
        for (unsigned i = 0; i < 3; i++) {
            const uint32_t value = 1 + i * 4 + k;
            MUST(zeCommandListAppendMemoryFill(lists[i], memory + words[i][k], &value, 4, 4, NULL, 0, NULL));
        }
    for (unsigned i = 0; i < 3; i++)
        MUST(zeCommandListAppendBarrier(lists[i], NULL, 0, NULL));
    ze_event_handle_t done[3];
    for (unsigned i = 0; i < 3; i++) {
        done[i] = event_new(&a);
        MUST(zeCommandListAppendSignalEvent(lists[i], done[i]));
    }
    for (unsigned i = 0; i < 3; i++)
        MUST(zeEventHostSynchronize(done[i], UINT64_MAX));
    printf("%u %u %u\n", memory[0], memory[1], memory[2]);
    return GOOD;
}

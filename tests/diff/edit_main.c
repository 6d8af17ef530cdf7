/* SPDX-License-Identifier: MIT */
/* trace_edit IN OUT SEED EDITS: prints what the edits cost. */
#include <stdio.h>
#include <stdlib.h>

#include "edit.h"

int main(int argc, char **argv)
{
    zt_error error = {0};
    uint64_t cost;
    if (argc != 5)
        return 2;
    if (!edit_trace(argv[1], argv[2], strtoull(argv[3], NULL, 0), (unsigned)atoi(argv[4]), &cost, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    printf("%llu\n", (unsigned long long)cost);
    return 0;
}

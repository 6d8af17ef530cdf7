/* SPDX-License-Identifier: MIT */
/* The mixed sequence from a program that is linked with the loader. */
#define ZE(name) name
#include "sequence.h"

int main(int argc, char **argv)
{
    (void)argv;
    const int status = sequence_run();
    sequence_report(argc > 1);
    return status;
}

/* SPDX-License-Identifier: MIT */
/* What 'zetrace doctor' finds out, and how it is told. */
#ifndef ZT_DOCTOR_H
#define ZT_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#define DOCTOR_NODES 64u

typedef struct doctor_facts { /* lines of the probe, "WORD TEXT" */
    char **lines;
    size_t n;
} doctor_facts;

typedef struct doctor_capture {
    unsigned made, seen; /* calls of a recorded probe, and those in its trace */
    int status;
    char init[32];       /* what zeInit gave, "0x0" */
    char why[256];       /* why it could not be recorded, "" */
} doctor_capture;

typedef struct doctor_node { /* /dev/dri/renderD128 */
    char path[256], kernel_driver[64];
    int error;               /* errno of opening it, 0 */
} doctor_node;

typedef struct doctor {
    const char *driver;    /* as asked for */
    char driver_path[4096], probe[4096];
    doctor_facts facts;    /* of the bare probe */
    int ended_by;          /* signal that ended it, 0 */
    doctor_capture as_layer, as_driver;
    doctor_node nodes[DOCTOR_NODES];
    size_t n_nodes;
} doctor;

bool doctor_add(doctor_facts *facts, const char *text);
/* @return the text behind that word in the next line from *from on that begins with it, or NULL; *from is then behind it. */
const char *doctor_fact(const doctor_facts *facts, const char *word, size_t *from);
/* Prints. @return how many things stand in the way. */
unsigned doctor_report(const doctor *d, bool json);

#endif

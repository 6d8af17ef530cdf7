/* SPDX-License-Identifier: MIT */
/* Which habits a recorded driver is taken to have: by library, variables and device. */
#include <stdio.h>
#include <string.h>

#include "driver_edges.h"

static int failures;

static void expect(const char *what, const zt_session *s, uint32_t device, unsigned wanted)
{
    const unsigned habits = zo_driver_habits(s, device);
    char text[2][256];
    zo_habit_names(habits, text[0], sizeof(text[0]));
    zo_habit_names(wanted, text[1], sizeof(text[1]));
    if (habits != wanted) {
        printf("%s: %s; wanted %s\n", what, text[0], text[1]);
        failures++;
    }
}

static zt_session session(zt_library *libraries, uint32_t n, zt_pair *variable)
{
    zt_session s = {0};
    s.libraries = libraries;
    s.n_libraries = n;
    s.environment = variable;
    s.n_environment = variable != NULL;
    return s;
}

int main(void)
{
    zt_library soft[] = {{.path = "/usr/lib/libze_loader.so.1"}, {.path = "/opt/zetrace/libze_soft.so.1.0"}};
    zt_library intel[] = {{.path = "/usr/lib/libze_intel_gpu.so.1.3"}, {.path = "/usr/lib/libze_soft.so.1"}};
    zt_library other[] = {{.path = "libze_other.so"}};
    zt_pair block = {"ZE_SOFT_FREE", "block"}, fault = {"ZE_SOFT_FREE", "fault"}, keep = {"ZE_SOFT_DESTROY", "keep"},
            keys = {"NEOReadDebugKeys", "1"};
    const unsigned always = ZO_H_QUEUE_KEEPS | ZO_H_EVENT_KEEPS | ZO_H_IMMEDIATE_WAITS | ZO_H_SUBMIT_RESIDENT;
    zt_session s = session(soft, 2, NULL);
    expect("libze_soft", &s, 0, ZO_H_SUBMIT_RESIDENT);
    s = session(soft, 2, &fault);
    expect("a knob of another value", &s, 0, ZO_H_SUBMIT_RESIDENT);
    s = session(soft, 2, &block);
    expect("a free that waits", &s, 0, ZO_H_SUBMIT_RESIDENT | ZO_H_FREE_WAITS);
    s = session(soft, 2, &keep);
    expect("objects that may go", &s, 0, ZO_H_SUBMIT_RESIDENT | ZO_H_LIST_KEEPS | ZO_H_QUEUE_KEEPS | ZO_H_EVENT_KEEPS);
    s = session(intel, 1, NULL);
    expect("Intel, no device seen", &s, 0, always);
    expect("Data Center GPU Max", &s, 0x0bd5, always | ZO_H_FREE_WAITS);
    expect("a client device", &s, 0xe20b, always);
    expect("several devices", &s, UINT32_MAX, always);
    s = session(intel, 1, &keys);
    expect("keys that are not known", &s, 0x0bd5, 0);
    s = session(intel, 2, &block);
    expect("two drivers: what both do", &s, 0x0bd5, ZO_H_SUBMIT_RESIDENT | ZO_H_FREE_WAITS);
    s = session(other, 1, NULL);
    expect("a driver without a table", &s, 0x0bd5, 0);
    return failures != 0;
}

/* SPDX-License-Identifier: MIT */
/* crasher: the driver dies of SIGSEGV inside a call, writing to a page that cannot be written. */
#include "common.h"

#include <sys/mman.h>

int main(void)
{
    app a = app_open();
    ze_device_properties_t *const p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return CANNOT;
    p->stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
    mprotect(p, 4096, PROT_READ);
    zeDeviceGetProperties(a.device, p);
    return CANNOT;
}

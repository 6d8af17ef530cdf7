/* SPDX-License-Identifier: MIT */
#include "fakegpu.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

static int tell_version(struct drm_version *version)
{
    static const char name[] = "xe";
    const size_t room = version->name ? version->name_len : 0, length = sizeof(name) - 1;
    memcpy(version->name ? version->name : (char[1]){0}, name, room < length ? room : length);
    version->major = 1;
    version->minor = 1;
    version->name_len = length;
    version->date_len = version->desc_len = 0;
    return 0;
}

static int bind(const struct xe_vm_bind *bind)
{
    const struct xe_vm_bind_op *const ops =
        bind->num_binds == 1 ? &bind->bind : (const struct xe_vm_bind_op *)(uintptr_t)bind->vector_of_binds;
    if (fake_vm_bind(bind->vm_id, ops, bind->num_binds) != 0)
        return -1;
    const struct xe_sync *const syncs = (const struct xe_sync *)(uintptr_t)bind->syncs;
    for (uint32_t i = 0; i < bind->num_syncs; i++)
        if (syncs[i].type == XE_SYNC_USER_FENCE && (syncs[i].flags & XE_SYNC_SIGNAL))
            __atomic_store_n((uint64_t *)(uintptr_t)syncs[i].addr, syncs[i].timeline_value, __ATOMIC_RELEASE);
        else
            fake_unknown("VM_BIND with a sync of type %u, flags 0x%x is not implemented", syncs[i].type, syncs[i].flags);
    return 0;
}

static int handle(unsigned number, void *argument)
{
    switch (number) {
    case DRM_NR_VERSION:
        return tell_version(argument);
    case DRM_NR_GEM_CLOSE:
        return fake_object_close(((struct drm_gem_close *)argument)->handle);
    case DRM_NR_XE + XE_DEVICE_QUERY:
        return fake_query(argument);
    case DRM_NR_XE + XE_GEM_CREATE:
        return fake_object_create(argument);
    case DRM_NR_XE + XE_GEM_MMAP_OFFSET:
        return fake_object_offset(argument);
    case DRM_NR_XE + XE_VM_CREATE:
        return fake_vm_create(argument);
    case DRM_NR_XE + XE_VM_DESTROY:
        return fake_vm_destroy(((struct xe_vm_destroy *)argument)->vm_id);
    case DRM_NR_XE + XE_VM_BIND:
        return bind(argument);
    case DRM_NR_XE + XE_EXEC_QUEUE_CREATE:
        return fake_queue_create(argument);
    case DRM_NR_XE + XE_EXEC_QUEUE_DESTROY:
        return fake_queue_destroy(((struct xe_exec_queue_destroy *)argument)->exec_queue_id);
    case DRM_NR_XE + XE_EXEC_QUEUE_GET_PROPERTY:
        return fake_queue_property(argument);
    case DRM_NR_XE + XE_EXEC_QUEUE_SET_PROPERTY:
        return 0; /* priorities: every queue has an engine of its own */
    case DRM_NR_XE + XE_EXEC:
        return fake_exec(argument);
    case DRM_NR_XE + XE_WAIT_USER_FENCE:
        return fake_wait_user_fence(argument);
    default:
        fake_unknown("ioctl 0x%x of xe is not known", number);
        errno = EINVAL;
        return -1;
    }
}

int fake_ioctl(unsigned long request, void *argument)
{
    const int result = handle(_IOC_NR(request), argument), error = errno;
    fake_say(LOG_IOCTL, "ioctl 0x%lx: %s", _IOC_NR(request), result ? strerror(error) : "done");
    errno = error;
    return result;
}

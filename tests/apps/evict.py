#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The evict program without a C compiler: ctypes on the loader, opened by its absolute path as many runtimes do."""
import ctypes
import glob
import sys


def loader_path():
    for pattern in ("/usr/lib/*/libze_loader.so.1", "/usr/lib*/libze_loader.so.1"):
        for path in glob.glob(pattern):
            return path
    raise SystemExit(2)


NAMES = {1: "ZE_RESULT_NOT_READY", 0x70000001: "ZE_RESULT_ERROR_DEVICE_LOST",
         0x70000003: "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", 0x78000001: "ZE_RESULT_ERROR_UNINITIALIZED",
         0x78000003: "ZE_RESULT_ERROR_UNSUPPORTED_FEATURE", 0x78000004: "ZE_RESULT_ERROR_INVALID_ARGUMENT",
         0x7ffffffe: "ZE_RESULT_ERROR_UNKNOWN"}
ze = ctypes.CDLL(loader_path(), mode=ctypes.RTLD_LOCAL)
P, U32, U64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
failed = False


class Desc(ctypes.Structure):
    """Head of every descriptor, with room for what follows; all else is 0."""
    _fields_ = [("stype", U32), ("pNext", P), ("rest", U32 * 8)]


def call(name, *args, must=True):
    global failed
    function = getattr(ze, name)
    function.restype = U32
    result = function(*args)
    if result:
        print(f"{name} = {NAMES.get(result, hex(result))}")
        if must:
            sys.exit(2)
        failed = True


def create(name, *args):
    handle = P()
    call(name, *args, ctypes.byref(handle))
    return handle


def desc(stype):
    return ctypes.byref(Desc(stype))


CONTEXT, QUEUE, LIST, DEVICE_MEM = 0x0D, 0x0E, 0x0F, 0x15
call("zeInit", U32(1))
n, driver, device = U32(1), P(), P()
call("zeDriverGet", ctypes.byref(n), ctypes.byref(driver))
n = U32(1)
call("zeDeviceGet", driver, ctypes.byref(n), ctypes.byref(device))
context = create("zeContextCreate", driver, desc(CONTEXT))
size = ctypes.c_size_t(4096)
A, B = (create("zeMemAllocDevice", context, desc(DEVICE_MEM), size, ctypes.c_size_t(64), device) for _ in range(2))
queue = create("zeCommandQueueCreate", context, device, desc(QUEUE))


def new_list():
    return create("zeCommandListCreate", context, device, desc(LIST))


def execute(commands):
    call("zeCommandQueueExecuteCommandLists", queue, U32(1), ctypes.byref(commands), P(), must=False)


copy = new_list()
call("zeCommandListAppendMemoryCopy", copy, B, A, size, P(), U32(0), P())
call("zeCommandListClose", copy)
execute(copy)
if "good" in sys.argv:
    call("zeCommandQueueSynchronize", queue, U64(2**64 - 1), must=False)
call("zeContextEvictMemory", context, device, B, size, must=False)
call("zeMemFree", context, B, must=False)
for _ in range(10):
    empty = new_list()
    call("zeCommandListClose", empty)
    execute(empty)
call("zeCommandQueueSynchronize", queue, U64(2**64 - 1), must=False)
print("evict:", "the bug shows" if failed else "all is well")
sys.exit(1 if failed else 0)

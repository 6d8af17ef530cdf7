#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A ctypes client that counts its own calls. client_ctypes.py [--count]"""
import collections
import ctypes
import glob
import sys

path = (glob.glob("/usr/lib/*/libze_loader.so.1") or glob.glob("/usr/lib*/libze_loader.so.1"))[0]
ze = ctypes.CDLL(path)
P, U32, U64, SIZE = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t
counts = collections.Counter()


class Desc(ctypes.Structure):
    _fields_ = [("stype", U32), ("pNext", P), ("rest", U32 * 8)]


def call(name, *args):
    function = getattr(ze, name)
    function.restype = U32
    counts[name] += 1
    result = function(*args)
    if result:
        raise SystemExit(f"{name} = {result:#x}")


def create(name, *args):
    handle = P()
    call(name, *args, ctypes.byref(handle))
    return handle


call("zeInit", U32(0))
n, driver, device = U32(1), P(), P()
call("zeDriverGet", ctypes.byref(n), ctypes.byref(driver))
n = U32(1)
call("zeDeviceGet", driver, ctypes.byref(n), ctypes.byref(device))
context = create("zeContextCreate", driver, ctypes.byref(Desc(0x0D)))
a, b = (create("zeMemAllocHost", context, ctypes.byref(Desc(0x16)), SIZE(4096), SIZE(64)) for _ in range(2))
ctypes.memset(a, 5, 4096)
queue = create("zeCommandQueueCreate", context, device, ctypes.byref(Desc(0x0E)))
commands = create("zeCommandListCreate", context, device, ctypes.byref(Desc(0x0F)))
for i in range(100):
    call("zeCommandListAppendMemoryCopy", commands, b, a, SIZE(4096), P(), U32(0), P())
call("zeCommandListClose", commands)
call("zeCommandQueueExecuteCommandLists", queue, U32(1), ctypes.byref(commands), P())
call("zeCommandQueueSynchronize", queue, U64(2**64 - 1))
assert ctypes.string_at(b, 4096) == b"\5" * 4096
call("zeCommandListDestroy", commands)
call("zeCommandQueueDestroy", queue)
call("zeMemFree", context, a)
call("zeMemFree", context, b)
call("zeContextDestroy", context)
print(f"calls={sum(counts.values())}")
if len(sys.argv) > 1:
    for name, count in counts.items():
        print(name, count)

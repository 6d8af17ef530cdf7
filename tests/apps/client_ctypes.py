#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The mixed sequence of sequence.h by ctypes, counting its own calls. client_ctypes.py [--count]"""
import collections
import ctypes
import glob
import sys

path = (glob.glob("/usr/lib/*/libze_loader.so.1") or glob.glob("/usr/lib*/libze_loader.so.1"))[0]
ze = ctypes.CDLL(path)
P, U32, U64, SIZE = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t
FOREVER, NULL = U64(2**64 - 1), P()
counts = collections.Counter()


class Desc(ctypes.Structure):
    """Head of every descriptor and property structure, with room for the largest."""
    _fields_ = [("stype", U32), ("pNext", P), ("rest", U32 * 256)]


class Region(ctypes.Structure):
    _fields_ = [(name, U32) for name in ("x", "y", "z", "width", "height", "depth")]


class ModuleDesc(ctypes.Structure):
    _fields_ = [("stype", U32), ("pNext", P), ("format", U32), ("size", SIZE), ("input", P), ("flags", ctypes.c_char_p),
                ("constants", P)]


def result_of(name, *args):
    function = getattr(ze, name)
    function.restype = U32
    counts[name] += 1
    return function(*args)


def call(name, *args):
    result = result_of(name, *args)
    if result:
        print(f"{name} = {result:#x}")
        sys.exit(2)


def create(name, *args):
    handle = P()
    call(name, *args, ctypes.byref(handle))
    return handle


def desc(stype, *rest):
    d = Desc(stype)
    d.rest[:len(rest)] = rest
    return ctypes.byref(d)


def counted(name, *head, item=P):
    """The two calls that first ask for the number, then for the elements."""
    n = U32(0)
    call(name, *head, ctypes.byref(n), NULL)
    items = (item * n.value)()
    call(name, *head, ctypes.byref(n), items)
    return items


def on_driver(driver):
    call("zeDriverGetApiVersion", driver, ctypes.byref(U32()))
    call("zeDriverGetProperties", driver, desc(0x1))
    counted("zeDriverGetExtensionProperties", driver, item=ctypes.c_char * 260)
    device = P(counted("zeDeviceGet", driver)[0])
    call("zeDeviceGetProperties", device, desc(0x3))
    call("zeDeviceGetComputeProperties", device, desc(0x4))
    context = create("zeContextCreate", driver, desc(0x0D))
    size = SIZE(65536)
    d = create("zeMemAllocDevice", context, desc(0x15), size, SIZE(64), device)
    h = create("zeMemAllocHost", context, desc(0x16), size, SIZE(64))
    s = create("zeMemAllocShared", context, desc(0x15), desc(0x16), size, SIZE(64), device)
    call("zeMemGetAllocProperties", context, P(d.value + 100), desc(0x17), ctypes.byref(P()))
    call("zeMemGetAddressRange", context, P(h.value + 5), ctypes.byref(P()), ctypes.byref(SIZE()))
    call("zeContextMakeMemoryResident", context, device, d, size)
    queue = create("zeCommandQueueCreate", context, device, desc(0x0E))
    fence = create("zeFenceCreate", queue, desc(0x12))
    pool = create("zeEventPoolCreate", context, desc(0x10, 1, 4), U32(1), ctypes.byref(device))
    events = (P * 4)(*(create("zeEventCreate", pool, desc(0x11, i, 4)).value for i in range(4)))
    commands = create("zeCommandListCreate", context, device, desc(0x0F))
    immediate = create("zeCommandListCreateImmediate", context, device, desc(0x0E))

    pageable = ctypes.create_string_buffer(bytes(i * 7 & 255 for i in range(4096)), 4096)
    pattern = U32(0x01020304)
    call("zeCommandListAppendMemoryFill", commands, d, ctypes.byref(pattern), SIZE(4), size, P(events[0]), U32(0), NULL)
    call("zeCommandListAppendMemoryCopy", commands, d, pageable, SIZE(4096), P(events[1]), U32(1), events)
    call("zeCommandListAppendBarrier", commands, NULL, U32(2), events)
    region = Region(width=64, height=8, depth=1)
    where = ctypes.byref(region)
    call("zeCommandListAppendMemoryCopyRegion", commands, s, where, U32(64), U32(0), d, where, U32(128), U32(0), NULL, U32(0), NULL)
    call("zeCommandListAppendBarrier", commands, NULL, U32(0), NULL)
    call("zeCommandListAppendMemoryCopy", commands, h, d, size, P(events[2]), U32(0), NULL)
    call("zeCommandListClose", commands)
    call("zeCommandQueueExecuteCommandLists", queue, U32(1), ctypes.byref(commands), fence)
    call("zeFenceHostSynchronize", fence, FOREVER)
    call("zeCommandQueueSynchronize", queue, FOREVER)
    call("zeEventQueryStatus", P(events[2]))
    if ctypes.string_at(h, 65536) != pageable.raw + bytes(pattern) * (61440 // 4):
        sys.exit("the copies did not arrive")
    call("zeFenceReset", fence)
    call("zeCommandListAppendMemoryCopy", immediate, s, h, SIZE(4096), P(events[3]), U32(0), NULL)
    call("zeEventHostSynchronize", P(events[3]), FOREVER)
    if ctypes.string_at(s, 4096) != pageable.raw:
        sys.exit("the immediate copy did not arrive")

    garbage = ctypes.create_string_buffer(b"\x03\x02\x23\x07", 20)
    module = ModuleDesc(0x1B, None, 0, 20, ctypes.cast(garbage, P), b"-O2", None)
    if result_of("zeModuleCreate", context, device, ctypes.byref(module), ctypes.byref(P()), NULL) == 0:
        print("garbage was taken for a module")
    call("zeContextEvictMemory", context, device, d, size)
    for event in events:
        call("zeEventDestroy", P(event))
    call("zeEventPoolDestroy", pool)
    call("zeFenceDestroy", fence)
    call("zeCommandListDestroy", immediate)
    call("zeCommandListDestroy", commands)
    call("zeCommandQueueDestroy", queue)
    for memory in (s, h, d):
        call("zeMemFree", context, memory)
    call("zeContextDestroy", context)


call("zeInit", U32(0))
for handle in counted("zeDriverGet"):
    on_driver(P(handle))
print(f"calls={sum(counts.values())}")
if len(sys.argv) > 1:
    for function, count in counts.items():
        print(function, count)

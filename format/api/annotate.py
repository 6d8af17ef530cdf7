# SPDX-License-Identifier: MIT
"""What each parameter and function is: rules over the headers' facts, then the hand-written notes.

A line of notes/*.notes is `TARGET WORD...`. TARGET is FUNCTION, FUNCTION.PARAMETER or STRUCT.MEMBER. Words:
  for parameters and members: address opaque string value one pnext on-error optional  blob=EXPR array=EXPR  inner=string|one|address|blob:EXPR
                              access=r|w|rw extent=EXPR  dir=in|out|inout  role=ROLE  note=WORDS_WITH_UNDERSCORES
  for functions: kind=KIND  immediate  callback  os  barrier
EXPR: 12  count  count*12  *pCount  *pSize*4  @pCount (the function's)  desc->member  sizes[]  strlen  lookup
      region(pRegion,pitch,slicePitch)
"""
import glob
import os
import re

from gen import HERE

SHAPES = ["value", "one", "array", "blob", "string", "pnext", "address", "opaque"]
KINDS = ["other", "init", "get", "create", "destroy", "alloc", "free", "append", "close", "reset", "execute", "sync", "query",
         "host_signal", "host_reset", "resident", "evict", "set", "ext_lookup", "map", "unmap"]
ROLES = ["none", "self", "create", "get", "destroy", "alloc", "free", "context", "device", "queue", "list", "lists", "fence",
         "event", "kernel", "module", "signal", "waits", "timeout", "ptr", "size", "count", "desc", "ext_name",
         "ext_address", "device_time"]
KIND_RULES = [  # (pattern of the name, kind); the first that matches
    (r"^ze(s)?Init(Drivers)?$", "init"),
    (r"GetExtensionFunctionAddress$", "ext_lookup"),
    (r"CommandListAppend", "append"),
    (r"ExecuteCommandLists$|ImmediateAppendCommandLists", "execute"),
    (r"Synchronize$", "sync"),
    (r"(Event|Fence)QueryStatus$", "query"),
    (r"EventHostSignal$", "host_signal"),
    (r"EventHostReset$|FenceReset$", "host_reset"),
    (r"CommandListClose$", "close"),
    (r"CommandListReset$", "reset"),
    (r"Make(Memory|Image)Resident$", "resident"),
    (r"Evict(Memory|Image)$", "evict"),
    (r"^zeMemAlloc|zeMemOpenIpcHandle$|VirtualMemReserve$", "alloc"),
    (r"^zeMemFree|zeMemCloseIpcHandle$|VirtualMemFree$", "free"),
    (r"VirtualMemMap$", "map"),
    (r"VirtualMemUnmap$", "unmap"),
    (r"Destroy|StreamerClose$|EventPoolCloseIpcHandle$|EventCounterBasedCloseIpcHandle$|ReleaseExternalSemaphore|DebugDetach$",
     "destroy"),
    (r"Create|Open|Instantiate|DebugAttach$|ImportExternalSemaphore", "create"),
    (r"Get|Query|Enum|Can|Is[A-Z]|Validate|Check", "get"),
    (r"Set|Reset|Reserve", "set"),
]
ROLE_BY_NAME = {"hContext": "context", "hDevice": "device", "hCommandQueue": "queue", "hCommandList": "list",
                "phCommandLists": "lists", "hFence": "fence", "hEvent": "event", "hKernel": "kernel", "hModule": "module",
                "hSignalEvent": "signal", "phWaitEvents": "waits", "timeout": "timeout", "size": "size", "desc": "desc",
                "hCommandListImmediate": "list"}


class Note:
    """What a field became. `why` lists the rules and notes that made it so."""

    def __init__(self):
        self.shape, self.inner, self.dir, self.role = "value", "value", 0, "none"
        self.count = self.inner_count = None
        self.access, self.optional, self.note, self.why = 0, False, None, []


class Annotations:
    def __init__(self, model):
        self.model, self.fields, self.funcs = model, {}, {}
        self.notes = self.read_notes()
        for record in model.records.values():
            for f in record.fields:
                self.fields[f] = self.field(f"{record.name}.{f.name}", f, record.fields, None)
        for func in model.funcs.values():
            self.funcs[func] = self.func(func)
        unused = [t for t, (words, used) in self.notes.items() if not used]
        if unused:
            raise SystemExit(f"gen.py: notes name what the headers do not have: {', '.join(sorted(unused))}")

    def read_notes(self):
        out = {}
        for path in sorted(glob.glob(os.path.join(HERE, "notes", "*.notes"))):
            with open(path, encoding="utf-8") as f:
                for line in f:
                    words = line.split("#")[0].split()
                    if words:
                        entry = out.setdefault(words[0], [[], False])
                        entry[0] += words[1:]
        return out

    def noted(self, target):
        entry = self.notes.get(target)
        if entry:
            entry[1] = True
            return entry[0]
        return []

    def func(self, func):
        kind = next((k for pattern, k in KIND_RULES if re.search(pattern, func.name)), "other")
        flags = set()
        if func.one_thread:
            flags.add("ONE_THREAD")
        if re.search(r"Ex[pt]\d?$", func.name) or func.since >= (1, 5):
            flags.add("EXTENSION")
        if any(p.base in self.model.callbacks for p in func.params):
            flags.add("CALLBACK")
        for word in self.noted(func.name):
            if word.startswith("kind="):
                kind = word[5:]
            else:
                flags.add({"immediate": "IMMEDIATE", "callback": "CALLBACK", "os": "OS_RESOURCE", "barrier": "BARRIER"}[word])
        for p in func.params:
            self.fields[p] = self.field(f"{func.name}.{p.name}", p, func.params, (func, kind))
        return kind, flags

    def field(self, target, f, siblings, where):
        n, base = Note(), self.model.resolve(f.base)
        n.dir = (1 if f.tag("in]") or f.tag("in,") else 0) | (2 if f.tag("out]") or f.tag("in,out]") else 0)
        n.dir = n.dir or 3
        n.optional = f.tag("optional")
        if f.stars and not f.array:
            self.pointer_rules(f, base, n)
        if where:
            self.role_rules(f, base, n, *where)
        for word in self.noted(target):
            self.apply(word, n)
            n.why.append(f"note {word}")
        return n

    def pointer_rules(self, f, base, n):
        if f.name == "pNext":
            n.shape = "pnext"
        elif f.range and not (base == "void" and f.stars == 1):
            n.shape, n.count = "array", f.range
            if f.stars > 1:
                n.inner = "string" if base == "char" else "one"
        elif f.range:
            n.shape, n.count = "blob", f.range
        elif base == "char" and f.stars == 1 and n.dir == 1:
            n.shape = "string"
        elif base == "char" and f.stars == 2:
            n.shape, n.inner = "one", "string"
        elif base == "void" and f.stars == 1:
            n.shape = "opaque"
        elif base == "void" and f.stars == 2:
            n.shape, n.inner = "one", "address"
        elif base in self.model.opaque:
            n.shape = "opaque"
        else:
            n.shape = "one"
        n.why.append(f"rule {n.shape}" + (f" count={n.count}" if n.count else ""))

    def role_rules(self, f, base, n, func, kind):
        is_handle = base in self.model.handles
        first = func.params[0] is f
        if is_handle and f.stars and n.dir & 2:
            n.role = "create" if kind == "create" else "get"
        elif kind == "destroy" and is_handle and not f.stars and (f.tag("release") or (first and not any(p.tag("release") for p in func.params))):
            n.role = "destroy"
        elif kind == "alloc" and n.inner == "address" and n.dir & 2:
            n.role = "alloc"
        elif kind == "free" and f.tag("release"):
            n.role = "free"
        elif f.name in ROLE_BY_NAME:
            n.role = ROLE_BY_NAME[f.name]
        elif re.match(r"p\w*Count$", f.name) and f.stars == 1 and n.dir == 3:
            n.role = "count"
        elif first and is_handle:
            n.role = "self"
        elif kind == "ext_lookup":
            n.role = {"name": "ext_name", "ppFunctionAddress": "ext_address"}.get(f.name, "none")
        if n.role != "none":
            n.why.append(f"rule role={n.role}")

    @staticmethod
    def apply(word, n):
        key, _, value = word.partition("=")
        if key in ("address", "opaque", "string", "value", "one", "pnext"):
            n.shape, n.count = key, None
            if key == "address":
                n.inner = "value"
        elif key in ("blob", "array"):
            n.shape, n.count = key, value
        elif key == "inner":
            n.inner, _, count = value.partition(":")
            n.inner_count = count or None
        elif key == "access":
            n.access = {"r": 1, "w": 2, "rw": 3}[value]
        elif key == "extent":
            n.count = value
        elif key == "dir":
            n.dir = {"in": 1, "out": 2, "inout": 3}[value]
        elif key == "role":
            if value not in ROLES:
                raise SystemExit(f"gen.py: unknown role in note '{word}'")
            n.role = value
        elif key == "optional":
            n.optional = True
        elif key == "on-error":
            n.dir |= 4
        elif key == "note":
            n.note = value.replace("_", " ")
        else:
            raise SystemExit(f"gen.py: unknown word in a note: '{word}'")


def explain(model, name):
    ann = Annotations(model)
    if name not in model.funcs:
        raise SystemExit(f"gen.py: no function '{name}' in the table")
    func = model.funcs[name]
    kind, flags = ann.funcs[func]
    print(f"{name}: kind={kind} flags={','.join(sorted(flags)) or '-'} since={func.since[0]}.{func.since[1]} "
          f"slot={func.table}/{func.slot}")
    for p in func.params:
        n = ann.fields[p]
        print(f"  {p.ctype} {p.name}{p.array}: {n.shape}" + (f"({n.count})" if n.count else "")
              + (f" inner={n.inner}" if n.inner != "value" else "") + f" dir={n.dir} role={n.role}"
              + (f" access={n.access}" if n.access else "") + f"   <- {' '.join(p.tags)}; {'; '.join(n.why)}")

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns the API table (*.api, notes/*.notes) into C.

    gen.py EMITTER OUTPUT_DIR [ARG...]     EMITTER: decl, table, driver, check, capture, replay
    gen.py --explain FUNCTION              what each parameter became, and why

This file reads the table into a Model; each emitter is a module emit_NAME.py with emit(model, output_dir, args).
"""
import importlib
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NAMESPACES = ["ze", "zet", "zes", "zer"]
SCALARS = {"char": 1, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "uint32_t": 4, "int": 4, "unsigned int": 4,
           "float": 4, "int64_t": 8, "uint64_t": 8, "double": 8, "size_t": 8, "uintptr_t": 8, "void": 1, "pid_t": 4}


class Field:
    """A parameter or member as the header has it."""

    def __init__(self, ctype, name, array, tags):
        self.ctype, self.name, self.array, self.tags = ctype.replace("~", " "), name, array, tags
        self.stars = self.ctype.count("*")
        self.base = re.sub(r"\bconst\b|\bstruct\b|\*", "", self.ctype).strip()
        self.array_len = 0
        self.offset = self.size = 0

    def tag(self, word):
        return any(t.startswith("[" + word) for t in self.tags)

    @property
    def range(self):
        """'numWaitEvents' or '*pCount' of a [range(0, ...)] tag."""
        for t in self.tags:
            m = re.match(r"\[range\(\s*[01]\s*,\s*`?([^)`]+?)`?\s*\)\]", t)
            if m:
                return m.group(1).strip()
        return None


class Record:
    def __init__(self, kind, name, ns, stype):
        self.kind, self.name, self.ns, self.stype = kind, name, ns, stype
        self.fields, self.size, self.align = [], 0, 1


class Func:
    def __init__(self, name, ns, since, table, slot, returns, one_thread):
        self.name, self.ns, self.since, self.table, self.slot = name, ns, since, table, slot
        self.returns, self.one_thread, self.gate = returns, one_thread, since
        self.params, self.checks, self.results = [], [], []


class Model:
    def __init__(self, folder=HERE):
        self.consts, self.handles, self.typedefs, self.enums = {}, {}, {}, {}
        self.opaque, self.callbacks, self.records, self.funcs, self.tables = [], {}, {}, {}, {}
        self.structs_of_stype = {}  # enum constant -> struct name
        self.order = []             # ("enum", name) etc. in header order, per namespace
        self.spec, self.ns_of = None, {}
        for ns in NAMESPACES:
            self.read(os.path.join(folder, ns + ".api"), ns)
        for record in self.records.values():
            self.lay_out(record)

    def read(self, path, ns):
        current = None
        with open(path, encoding="utf-8") as f:
            for line in f:
                line = line.rstrip("\n")
                if not line or line.startswith("#"):
                    continue
                inside = line.startswith("  ")
                words = line.split()
                if inside:
                    self.read_inside(current, words, line)
                else:
                    current = self.read_item(words, line, ns)

    def read_item(self, words, line, ns):
        what, rest = words[0], words[1:]
        if what == "spec":
            self.spec = tuple(int(x) for x in rest[0].split("."))
            return None
        name = rest[0]
        self.ns_of[name] = ns
        self.order.append((what, name))
        if what == "const":
            self.consts[name] = line.split(" ", 2)[2]
        elif what == "handle":
            self.handles[name] = rest[1]
        elif what == "typedef":
            self.typedefs[name] = rest[1]
        elif what == "opaque":
            self.opaque.append(name)
        elif what == "enum":
            self.enums[name] = []
            return ("enum", self.enums[name])
        elif what == "callback":
            self.callbacks[name] = []
            return ("callback", self.callbacks[name])
        elif what in ("struct", "union"):
            stype = rest[1].split("=")[1] if len(rest) > 1 else None
            self.records[name] = Record(what, name, ns, stype)
            return ("record", self.records[name])
        elif what == "func":
            opts = dict(w.split("=") for w in rest[1:] if "=" in w)
            table, slot = opts["table"].split("/")
            self.funcs[name] = Func(name, ns, tuple(int(x) for x in opts["since"].split(".")), table, int(slot),
                                    opts["returns"], "one-thread" in rest)
            if "gate" in opts:
                self.funcs[name].gate = tuple(int(x) for x in opts["gate"].split("."))
            return ("func", self.funcs[name])
        elif what == "table":
            self.tables[name] = (rest[1], "mandatory" in rest, [])
            return ("table", self.tables[name][2])
        else:
            raise SystemExit(f"gen.py: unknown line '{line}'")
        return None

    def read_inside(self, current, words, line):
        kind, target = current
        what = words[0]
        if kind == "enum":
            target.append((words[1], int(words[2], 0)))
            if len(words) > 3:
                self.structs_of_stype[words[1]] = words[3]
        elif kind == "callback":
            target.append((words[1].replace("~", " "), words[2]))
        elif kind == "table":
            target.append((words[1], words[2]))
        elif what in ("field", "param"):
            m = re.match(r"(\w+)((?:\[.*\])?)$", words[2])
            tags = re.findall(r"\[(?:[^\[\]]|\[[^\]]*\])*\]", line.split(words[2], 1)[1])
            field = Field(words[1], m.group(1), m.group(2), tags)
            (target.fields if kind == "record" else target.params).append(field)
        elif what == "check":
            target.checks.append((words[1], line.strip().split(" ", 2)[2]))
        elif what == "result":
            target.results.append(words[1])

    def resolve(self, name):
        """Follows typedefs of one type to another."""
        while name in self.typedefs:
            name = self.typedefs[name]
        return name

    def size_align(self, base):
        base = self.resolve(base)
        if base in SCALARS:
            return SCALARS[base], SCALARS[base]
        if base in self.enums:
            return 4, 4
        if base in self.handles or base in self.callbacks:
            return 8, 8
        if base in self.records:
            record = self.records[base]
            if not record.size:
                self.lay_out(record)
            return record.size, record.align
        raise SystemExit(f"gen.py: size of '{base}' is not known")

    def constant(self, text):
        return int(self.consts[text], 0) if text in self.consts else int(text, 0)

    def lay_out(self, record):
        if record.size:
            return
        offset = end = 0
        for f in record.fields:
            size, align = (8, 8) if f.stars else self.size_align(f.base)
            if f.array:
                f.array_len = 1
                for n in re.findall(r"\[(\w+)\]", f.array):
                    f.array_len *= self.constant(n)
                size *= f.array_len
            f.offset = 0 if record.kind == "union" else (offset + align - 1) // align * align
            f.size = size
            offset = f.offset + size
            end = max(end, offset)
            record.align = max(record.align, align)
        record.size = (end + record.align - 1) // record.align * record.align

    def param_size(self, param):
        return 8 if param.stars else self.size_align(param.base)[0]

    def words(self, func):
        """Offsets in 8-byte words of each parameter, and their total."""
        at, out = 0, []
        for p in func.params:
            out.append(at)
            at += (self.param_size(p) + 7) // 8
        return out, at

    def sorted_funcs(self):
        """All functions; a function's id is its place here."""
        return [f for ns in NAMESPACES for f in self.funcs.values() if f.ns == ns]


def signature(func):
    """C parameter list as in the headers."""
    return ", ".join(f"{p.ctype} {p.name}{p.array}" for p in func.params) or "void"


def write(output_dir, name, lines):
    """Writes a generated file only when it changed, so that nothing is rebuilt for nothing."""
    text = "\n".join(lines) + "\n"
    path = os.path.join(output_dir, name)
    os.makedirs(output_dir, exist_ok=True)
    try:
        with open(path, encoding="utf-8") as f:
            if f.read() == text:
                os.utime(path)
                return
    except FileNotFoundError:
        pass
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def main():
    sys.path.insert(0, HERE)
    if len(sys.argv) == 3 and sys.argv[1] == "--explain":
        importlib.import_module("annotate").explain(Model(), sys.argv[2])
        return
    if len(sys.argv) < 3 or not os.path.exists(os.path.join(HERE, f"emit_{sys.argv[1]}.py")):
        raise SystemExit(__doc__)
    importlib.import_module("emit_" + sys.argv[1]).emit(Model(), sys.argv[2], sys.argv[3:])


if __name__ == "__main__":
    main()

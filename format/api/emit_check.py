# SPDX-License-Identifier: MIT
"""check_table.c and check_installed.c: _Static_asserts of sizes, offsets, enum values and table slots as gen.py computes them.

    gen.py check OUTPUT_DIR INCLUDE_DIR      INCLUDE_DIR holds the installed level_zero/ze_api.h, ...

check_table.c holds for l0_api.h. check_installed.c holds for the installed headers, as far as they go. A struct that has
fewer members there (the specification appended some since) keeps the offsets of those it has; zt_check_differs names it, and
zt_check_unknown what the installed headers have and the table does not (headers newer than the table are no reason not to build).
"""
import os
import re

from gen import NAMESPACES, write


def claim(out, test, what):
    out.append(f'_Static_assert({test}, "{what}");')


def record_claims(out, record, members, differs):
    """Claims about those members that the headers at hand have."""
    name, ours = record.name, [f.name for f in record.fields]
    for f in record.fields:
        if f.name in members:
            claim(out, f"offsetof({name}, {f.name}) == {f.offset}", f"{name}.{f.name} lies at {f.offset}")
            claim(out, f"sizeof((({name} *)0)->{f.name}) == {f.size}", f"{name}.{f.name} has {f.size} bytes")
    fewer, more = set(ours) - set(members), set(members) - set(ours)
    if not fewer or not more:
        claim(out, f"sizeof({name}) {'<=' if fewer else '>=' if more else '=='} {record.size}", f"{name} has {record.size} bytes")
    if fewer or more:
        differs.append(name)


def enum_claims(out, values):
    for value, number in values:
        claim(out, f"(unsigned){value} == {number:#x}u", f"{value} is {number:#x}")


def param_claims(model, out, func):
    for p in func.params:
        ctype = p.ctype if not p.array else p.ctype + "*"
        claim(out, f"sizeof({ctype}) == {model.param_size(p)}", f"{func.name}: {p.name}")


class Installed:
    """What the headers of a folder name: members by struct, enumerators, slots by table."""

    def __init__(self, folder):
        self.members, self.words, self.slots, self.headers = {}, set(), {}, []
        for ns in NAMESPACES:
            for kind in ("api", "ddi"):
                path = os.path.join(folder, "level_zero", f"{ns}_{kind}.h")
                if os.path.exists(path):
                    self.headers.append(f"level_zero/{ns}_{kind}.h")
                    with open(path, encoding="utf-8") as f:
                        self.read(f.read())

    def read(self, text):
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
        for m in re.finditer(r"typedef (?:struct|union) _\w+\s*\{(.*?)\} (\w+);", text, re.S):
            names = re.findall(r"(\w+)\s*(?:\[[^;]*\])?;", m.group(1))
            if re.search(r"^z\w+?_\w+_dditable_t$", m.group(2)):
                self.slots[m.group(2)] = names
            elif "_dditable_" not in m.group(2):  # not the tables of tables
                self.members[m.group(2)] = names
        for m in re.finditer(r"typedef enum _\w+\s*\{(.*?)\} \w+;", text, re.S):
            self.words |= set(re.findall(r"\bZ\w+", m.group(1)))
        self.words |= set(re.findall(r"#define (Z\w+)", text))


def emit(model, output_dir, args):
    out = ["/* Written by gen.py. */", "#include \"l0_api.h\"", "#include <stddef.h>"]
    for record in model.records.values():
        record_claims(out, record, [f.name for f in record.fields], [])
    for func in model.funcs.values():
        param_claims(model, out, func)
    for name, (_, _, slots) in model.tables.items():
        claim(out, f"sizeof({name}) == {8 * len(slots)}", f"{name} has {len(slots)} slots")
    write(output_dir, "check_table.c", out)

    here, out = Installed(args[0]), ["/* Written by gen.py. */", "#include <stddef.h>"]
    out += [f"#include <{h}>" for h in here.headers]
    differs, counts = [], {"struct": 0, "enumerator": 0, "constant": 0, "slot": 0}
    for name, record in model.records.items():
        if name in here.members:
            counts["struct"] += 1
            record_claims(out, record, here.members[name], differs)
    moving = re.compile(r"_VERSION_CURRENT$")  # follows the newest version by definition
    for values in model.enums.values():
        known = [(n, v) for n, v in values if n in here.words and not moving.search(n)]
        counts["enumerator"] += len(known)
        enum_claims(out, known)
    for name, text in model.consts.items():
        if name in here.words and re.fullmatch(r"\d+|0x[0-9a-fA-F]+", text):
            counts["constant"] += 1
            claim(out, f"{name} == {text}", f"{name} is {text}")
    for name, (_, _, slots) in model.tables.items():
        for index, (slot, function) in enumerate(slots):
            if slot in here.slots.get(name, []):
                counts["slot"] += 1
                claim(out, f"offsetof({name}, {slot}) == {8 * index}", f"{function} stands in slot {index} of {name}")
    unknown = [n for n in here.members if n not in model.records and not re.search(r"_(params|callbacks)_t$", n)]
    unknown += [f"{t}.{s}" for t, names in here.slots.items() for s in names
                if s not in [x for x, _ in model.tables.get(t, (0, 0, []))[2]]]
    for name, items in (("differs", differs), ("unknown", unknown)):
        out.append(f"const char *const zt_check_{name}[] = {{" + "".join(f'"{i}", ' for i in items) + "NULL};")
    out.append("/* structs, enumerators, constants, table slots compared */")
    out.append(f"const unsigned zt_check_counts[] = {{{', '.join(str(n) for n in counts.values())}}};")
    write(output_dir, "check_installed.c", out)

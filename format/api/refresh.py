#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rewrites ze.api, zet.api, zes.api and zer.api from a folder with the public Level Zero headers.

    refresh.py INCLUDE_DIR        INCLUDE_DIR holds ze_api.h, ze_ddi.h, zet_api.h, ...

The files hold facts of the headers only; what the headers do not say stands in notes/*.notes. since.tsv says which header
first had a function; functions it does not know get the version of the headers and are added to it.
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NAMESPACES = ["ze", "zet", "zes", "zer"]
# Tables of the oldest supported loader (1.8.12) whose absence from a driver or layer makes initialisation fail.
MANDATORY = {
    "ze": "Global Driver Device Context CommandQueue CommandList Event EventPool Fence Image Kernel Mem Module "
          "ModuleBuildLog PhysicalMem Sampler VirtualMem",
    "zet": "Device Context CommandList Kernel Module Debug Metric MetricGroup MetricQuery MetricQueryPool MetricStreamer "
           "TracerExp",
    "zes": "Device Driver Diagnostics Engine FabricPort Fan Firmware Frequency Led Memory PerformanceFactor Power Psu Ras "
           "Scheduler Standby Temperature",
    "zer": "",
}
ONE_THREAD = re.compile(r"(must|may) (\*\*)?not(\*\*)? (call this function|be called) from simultaneous threads")
TAG = re.compile(r"\[[^\[\]]*(?:\[[^\]]*\][^\[\]]*)*\]")


def squeeze(text):
    return re.sub(r"\s+", " ", text).strip()


def leading_tags(comment):
    """The [in] [optional] [range(0, n)] tags a comment opens with."""
    tags, rest = [], comment.strip()
    while True:
        m = TAG.match(rest)
        if not m:
            return tags
        tags.append(squeeze(m.group(0)))
        rest = rest[m.end():].lstrip()


def split_declarator(text):
    """'const void* pNext' -> ('const void*', 'pNext', '')"""
    text = squeeze(text)
    m = re.match(r"^(.*?[\s\*])([A-Za-z_]\w*)\s*((?:\[[^\]]*\])*)$", text)
    if not m:
        raise SystemExit(f"refresh.py: cannot read the declaration '{text}'")
    ctype = re.sub(r"\s*\*", "*", m.group(1).strip())
    return ctype, m.group(2), m.group(3)


def members(lines, i, closing, separator):
    """Reads 'decl; ///< comment' lines up to `closing`. Returns ([(decl, comment)], next line, closing line)."""
    out, decl, comment = [], "", []
    while True:
        line = lines[i]
        code, _, note = line.partition("///<")
        code = code.split("//")[0]
        if "///<" not in line and re.match(closing, line.strip()):
            if decl.strip():
                out.append((squeeze(decl).rstrip(separator), squeeze(" ".join(comment))))
            return out, i, line
        if code.strip() and code.strip() not in "{":
            if decl.strip() and (decl.rstrip().endswith(separator)):
                out.append((squeeze(decl).rstrip(separator), squeeze(" ".join(comment))))
                decl, comment = "", []
            decl += " " + code.strip()
        if note:
            comment.append(note.strip())
        i += 1


def conditions(doc):
    """@returns codes, and the conditions written below each of them."""
    out, code, inside = [], None, False
    for line in doc:
        if "@returns" in line:
            inside = True
            continue
        if not inside:
            continue
        m = re.match(r"^///\s+- ::(Z\w+)", line)
        if m:
            code = m.group(1)
            out.append((code, None))
            continue
        m = re.match(r"^///\s+\+ (.*)$", line)
        if m and code:
            text = m.group(1).strip()
            if text.startswith("`") and text.endswith("`"):
                out.append((code, squeeze(text.strip("`"))))
    return out


class Header:
    def __init__(self, ns, folder):
        self.ns, self.items, self.version = ns, [], None
        with open(os.path.join(folder, ns + "_api.h"), encoding="utf-8") as f:
            text = f.read()
        m = re.search(r"@version v(\d+)\.(\d+)-", text)
        self.version = f"{m.group(1)}.{m.group(2)}"
        self.parse(text.split("\n"))
        self.tables = self.parse_ddi(os.path.join(folder, ns + "_ddi.h"))

    def parse(self, lines):
        doc, i = [], 0
        while i < len(lines):
            line = lines[i]
            s = line.strip()
            if s.startswith("///") and not s.startswith("///<"):
                if s.startswith("//////"):
                    doc = []
                else:
                    doc.append(s)
                i += 1
                continue
            m = re.match(r"#define (Z\w+)\s+(.+?)\s*$", s)
            if m and not re.search(r"_H$|APICALL|APIEXPORT|DLLEXPORT|CALLBACK_CONV", m.group(1)):
                value = m.group(2).split("///<")[0].strip()
                self.items.append(("const", m.group(1), value))
            m = re.match(r"typedef struct (_\w+) \*(\w+);", s)
            if m:
                self.items.append(("handle", m.group(2), m.group(1)))
            m = re.match(r"typedef (\w+) (\w+);", s)
            if m and m.group(1) not in ("struct",):
                self.items.append(("typedef", m.group(2), m.group(1)))
            m = re.match(r"typedef enum (_\w+)", s)
            if m:
                i = self.parse_enum(lines, i + 1)
            m = re.match(r"typedef (struct|union) (_\w+)$", s)
            if m:
                i = self.parse_record(lines, i + 1, m.group(1), doc)
            m = re.match(r"typedef void \((?:\w+ )?\*(\w+)\)\($", s)
            if m and not m.group(1).endswith("Cb_t"):
                args, i, _ = members(lines, i + 1, r"^\);", ",")
                self.items.append(("callback", m.group(1), [split_declarator(d) for d, _ in args]))
            m = re.match(r"Z\w+_APIEXPORT (\w+) Z\w+_APICALL$", s)
            if m:
                name = re.match(r"(\w+)\($", lines[i + 1].strip()).group(1)
                params, i, _ = members(lines, i + 2, r"^\);", ",")
                self.items.append(("func", name, m.group(1), params, list(doc)))
            if s and not s.startswith("///"):
                doc = []
            i += 1

    def parse_enum(self, lines, i):
        values, current = [], -1
        while not re.match(r"^\} (\w+);", lines[i].strip()):
            code = lines[i].split("///<")[0].split("//")[0].strip().rstrip(",")
            m = re.match(r"^(Z\w+)\s*(?:=\s*(.+))?$", code)
            if m:
                values.append((m.group(1), m.group(2)))
            i += 1
        name = re.match(r"^\} (\w+);", lines[i].strip()).group(1)
        self.items.append(("enum", name, values))
        return i

    def parse_record(self, lines, i, what, doc):
        body, i, closing = members(lines, i, r"^\} \w+;", ";")
        name = re.match(r"^\} (\w+);", closing.strip()).group(1)
        # tables of tracing callbacks and their argument records are no part of what a call passes
        if re.search(r"_params_t$", name) and all("*" in d and not c for d, c in body):
            return i
        if re.search(r"callbacks_t$", name):
            if name == "ze_callbacks_t":
                self.items.append(("opaque", name))
            return i
        self.items.append((what, name, body))
        return i

    def parse_ddi(self, path):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        getters = {m.group(2): m.group(1)
                   for m in re.finditer(r"^(z\w+ProcAddrTable)\(\n[^\n]*\n\s+(\w+)\* pDdiTable", text, re.M)}
        tables = []
        for m in re.finditer(r"typedef struct _(\w+_dditable_t)\n\{(.*?)\n\} \1;", text, re.S):
            slots = re.findall(r"^\s+\w+_pfn(\w+)_t\s+(pfn\w+);", m.group(2), re.M)
            if slots:
                tables.append((m.group(1), getters[m.group(1)], slots))
        return tables


def evaluate(values, known):
    """Numbers for (name, expression) pairs of an enum."""
    out, following = [], 0
    for name, text in values:
        if text is None:
            number = following
        else:
            expr = re.sub(r"Z\w+_MAKE_VERSION\(\s*(\w+)\s*,\s*(\w+)\s*\)", r"((\1 << 16) | \2)", text)
            expr = re.sub(r"Z\w+_BIT\(\s*(\w+)\s*\)", r"(1 << \1)", expr)
            expr = re.sub(r"\bZ\w+\b", lambda m: str(known[m.group(0)]), expr)
            if not re.fullmatch(r"[\s0-9a-fA-Fx()<>|+\-~]+", expr):
                raise SystemExit(f"refresh.py: cannot evaluate {name} = {text}")
            number = eval(expr, {"__builtins__": {}})  # digits and operators only, checked above
        number &= 0xffffffff
        known[name] = number
        following = number + 1
        out.append((name, number))
    return out


def struct_of_stype(headers, known):
    """stype constant -> struct, by the enum comment '///< ::ze_x_t' that every value carries."""
    out = {}
    for h in headers:
        with open(os.path.join(sys.argv[1], h.ns + "_api.h"), encoding="utf-8") as f:
            for m in re.finditer(r"^\s+(Z\w+_STRUCTURE_TYPE_\w+) = \S+\s*///< ::(\w+)", f.read(), re.M):
                out[m.group(1)] = m.group(2)
    return out


def load_since():
    """since and gate of each function that since.tsv lists."""
    since, gates = {}, {}
    with open(os.path.join(HERE, "since.tsv"), encoding="utf-8") as f:
        for line in f:
            if "\t" in line and not line.startswith("#"):
                name, since[name], *gate = line.rstrip("\n").split("\t")
                gates.update({name: gate[0]} if gate else {})
    return since, gates


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    headers = [Header(ns, sys.argv[1]) for ns in NAMESPACES]
    (since, gates), known = load_since(), {}
    for h in headers:
        for item in h.items:
            if item[0] == "const" and re.fullmatch(r"\d+|0x[0-9a-fA-F]+", item[2]):
                known[item[1]] = int(item[2], 0)
    structs = struct_of_stype(headers, known)
    alias = {item[1]: item[2] for h in headers for item in h.items if item[0] == "typedef"}
    structs = {constant: alias.get(struct, struct) for constant, struct in structs.items()}
    stype_of = {}
    for constant, struct in structs.items():
        stype_of.setdefault(struct, constant)
    for h in headers:
        write(h, since, gates, known, stype_of, structs)
    with open(os.path.join(HERE, "since.tsv"), "w", encoding="utf-8") as f:
        f.write("# function\tspec version of the first header that has it\tgate: first version asked for that surely has its slot,\n"
                "# if not the same (a later loader of the same version added it)\n")
        for name in sorted(since):
            f.write(f"{name}\t{since[name]}" + (f"\t{gates[name]}" if name in gates else "") + "\n")


def write(h, since, gates, known, stype_of, structs):
    slot_of = {}
    for table, getter, slots in h.tables:
        for n, (function, field) in enumerate(slots):
            slot_of[h.ns + function] = (table, n)
    out = [f"# Level Zero, namespace {h.ns}: what the public headers say. Written by refresh.py; do not edit.",
           f"spec {h.version}", ""]
    for item in h.items:
        what, name = item[0], item[1]
        if what == "const":
            if re.search(r"MAKE_VERSION|MAJOR_VERSION|MINOR_VERSION|Z\w*_BIT", name):
                continue
            out.append(f"const {name} {item[2]}")
        elif what in ("handle", "typedef"):
            out.append(f"{what} {name} {item[2]}")
        elif what == "opaque":
            out.append(f"opaque {name}")
        elif what == "enum":
            out.append(f"enum {name}")
            for value, number in evaluate(item[2], known):
                extra = f" {structs[value]}" if value in structs else ""
                out.append(f"  value {value} {number:#x}{extra}")
        elif what in ("struct", "union"):
            has_stype = any(re.match(r"z\w+_structure_type_t stype$", squeeze(d)) for d, _ in item[2])
            mark = f" stype={stype_of.get(name, 'none')}" if has_stype else ""
            out.append(f"{what} {name}{mark}")
            for decl, comment in item[2]:
                ctype, field, array = split_declarator(decl)
                out.append(squeeze(f"  field {ctype.replace(' ', '~')} {field}{array} {' '.join(leading_tags(comment))}"))
                out[-1] = "  " + out[-1]
        elif what == "callback":
            out.append(f"callback {name}")
            out += [f"  arg {t.replace(' ', '~')} {n}" for t, n, _ in item[2]]
        elif what == "func":
            _, _, returns, params, doc = item
            version = since.setdefault(name, h.version)
            table, slot = slot_of[name]
            text = " ".join(d.lstrip("/").strip() for d in doc)
            one = " one-thread" if ONE_THREAD.search(text) else ""
            gate = f" gate={gates[name]}" if name in gates else ""
            out.append(f"func {name} since={version}{gate} table={table}/{slot} returns={returns}{one}")
            for decl, comment in params:
                if decl == "void":
                    continue
                ctype, field, array = split_declarator(decl)
                tags = " ".join(leading_tags(comment))
                out.append("  " + squeeze(f"param {ctype.replace(' ', '~')} {field}{array} {tags}"))
            for code, condition in conditions(doc):
                out.append(f"  {'check' if condition else 'result'} {code}" + (f" {condition}" if condition else ""))
    for table, getter, slots in h.tables:
        kind = re.sub(r"^z(e|et|es|er)Get|ProcAddrTable$", "", getter)
        mandatory = " mandatory" if kind in MANDATORY[h.ns].split() else ""
        out.append(f"table {table} {getter}{mandatory}")
        out += [f"  slot {field} {h.ns}{function}" for function, field in slots]
    with open(os.path.join(HERE, h.ns + ".api"), "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()

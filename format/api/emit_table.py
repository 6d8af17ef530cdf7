# SPDX-License-Identifier: MIT
"""api_table.c: the table as the arrays that format/api.h declares, with the hand annotations worked in."""
import re

from annotate import KINDS, ROLES, SHAPES, Annotations
from gen import NAMESPACES, SCALARS, write

CLASS_OF_SCALAR = {"char": "CHAR", "int8_t": "INT", "int16_t": "INT", "int32_t": "INT", "int": "INT", "int64_t": "INT",
                   "float": "FLOAT", "double": "FLOAT", "void": "VOID"}
# The object names people read; others are the handle's name without prefix and suffix.
OBJECT_NAMES = {"command_queue": "queue", "command_list": "list", "physical_mem": "physical"}


class Types:
    def __init__(self, model):
        self.model, self.names = model, ["void", "void*"]
        for what, name in model.order:
            if what in ("enum", "struct", "union", "handle", "callback"):
                self.names.append(name)
        self.names += [n for n, target in model.typedefs.items()
                       if model.resolve(n) not in model.records or target in SCALARS]
        self.names += model.opaque
        self.names += [s for s in SCALARS if s != "void"]
        self.names = sorted(set(self.names))
        self.index = {n: i for i, n in enumerate(self.names)}

    def of(self, base):
        if base not in self.index:
            base = self.model.resolve(base)
        return self.index[base]


def number(text):
    return re.fullmatch(r"\d+", text) is not None


class Exprs:
    def __init__(self, model):
        self.model = model

    def c(self, text, siblings, func_params):
        """C initialiser of a zt_expr. `siblings`: names of the fields beside; `func_params`: of the only function."""
        if not text:
            return "{0}"
        op, a, b, c = self.parse(text, siblings, func_params)
        return f"{{ZT_X_{op}, {a}, {b}, {c}}}"

    def parse(self, text, siblings, func_params):
        names = [f.name for f in siblings]

        def at(name):
            if name not in names:
                raise SystemExit(f"gen.py: '{text}' names '{name}', which is not beside it")
            return names.index(name)

        if number(text):
            return "CONST", int(text), 0, 0
        if text == "strlen":
            return "STRLEN", 0, 0, 0
        if text == "lookup":
            return "LOOKUP", 0, 0, 0
        m = re.fullmatch(r"region\((\w+),(\w+),(\w+)\)", text)
        if m:
            return "REGION", at(m.group(1)), at(m.group(2)), at(m.group(3))
        m = re.fullmatch(r"(\w+)\[\]", text)
        if m:
            return "ELEMENT", at(m.group(1)), 0, 0
        m = re.fullmatch(r"@(\w+)", text)
        if m:  # resolved by name at run time: the functions that take the struct agree on it
            index = {p.name: i for f in self.model.funcs.values() if f.name == "zeEventQueryKernelTimestampsExt"
                     for i, p in enumerate(f.params)}[m.group(1)]
            return "FUNC_DEREF", index, 0, 0
        m = re.fullmatch(r"(\w+)->(\w+)", text)
        if m:
            parent = siblings[at(m.group(1))]
            members = [f.name for f in self.model.records[parent.base].fields]
            return "PATH", at(m.group(1)), members.index(m.group(2)), 0
        m = re.fullmatch(r"(\*?)(\w+)(?:\*(\d+))?", text)
        if m:
            return ("DEREF" if m.group(1) else "FIELD"), at(m.group(2)), int(m.group(3) or 0), 0
        raise SystemExit(f"gen.py: cannot read the count '{text}'")


def quoted(text):
    return "NULL" if text is None else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def field_line(model, types, exprs, f, n, offset, size, siblings):
    type_name = "void*" if f.base == "void" and (f.stars == 2 or n.shape in ("address", "opaque", "pnext")) else f.base
    if n.shape == "blob":
        type_name = "void"
    inner = "opaque" if n.inner == "opaque" else n.inner
    return (f'{{"{f.name}", {quoted(f.ctype)}, {types.of(type_name)}, {n.dir}, ZT_{n.shape.upper()}, '
            f'ZT_{inner.upper()}, ZT_R_{n.role.upper()}, {int(n.optional)}, {n.access}, {offset}, {size}, {f.array_len}, '
            f'{exprs.c(n.count, siblings, None)}, {exprs.c(n.inner_count, siblings, None)}, {quoted(n.note)}}}')


def object_name(name):
    word = re.sub(r"^z(e|et|es|er)_|_handle_t$", "", name)
    return OBJECT_NAMES.get(word, word)


def type_line(model, types, name):
    base = model.resolve(name)
    ns = NAMESPACES.index(model.ns_of.get(name, "ze"))
    cls, size, align, stype, fields, values, counts, obj, alias = "UINT", 0, 1, -1, "NULL", "NULL", (0, 0), "NULL", name
    if name == "void*":
        cls, size, align = "POINTER", 8, 8
    elif name in model.enums or base in model.enums:
        cls, size, align, values, counts = "ENUM", 4, 4, f"v_{base}", (0, len(model.enums[base]))
    elif base in model.handles:
        cls, size, align, alias, obj = "HANDLE", 8, 8, base, quoted(object_name(base))
    elif base in model.opaque:
        cls, size = "VOID", 1
    elif base in model.callbacks:
        cls, size, align = "FUNCTION", 8, 8
    elif base in model.records:
        record = model.records[base]
        cls, size, align = record.kind.upper(), record.size, record.align
        fields, counts = f"f_{base}", (len(record.fields), 0)
        if record.stype:
            stype = next((v for e in model.enums.values() for n, v in e if n == record.stype), -1)
    else:
        size = align = SCALARS[base]
        cls = CLASS_OF_SCALAR.get(base, "UINT")
        singular = re.sub(r"_flags_t$", "_flag_t", name)
        if name == "ze_bool_t":
            cls = "BOOL"
        elif name != singular and singular in model.enums:
            cls, values, counts = "FLAGS", f"v_{singular}", (0, len(model.enums[singular]))
    return (f'{{"{name}", ZT_{cls}, {ns}, {align}, {size}, {stype}, {fields}, {values}, {counts[0]}, {counts[1]}, {obj}, '
            f'{types.index[alias]}, 0x0100}}')


def emit(model, output_dir, _args):
    ann, types, exprs = Annotations(model), Types(model), Exprs(model)
    funcs = model.sorted_funcs()
    tables = list(model.tables)
    out = ["/* Written by gen.py. */", '#include "api.h"']
    for name, values in model.enums.items():
        out.append(f"static const zt_enum_value v_{name}[] = {{"
                   + ", ".join(f'{{"{n}", {v:#x}u}}' for n, v in values) + "};")
    for name, record in model.records.items():
        lines = [field_line(model, types, exprs, f, ann.fields[f], f.offset, f.size, record.fields) for f in record.fields]
        out.append(f"static const zt_field f_{name}[] = {{\n    " + ",\n    ".join(lines) + "};")
    out.append("const zt_type zt_types[] = {\n    " + ",\n    ".join(type_line(model, types, n) for n in types.names) + "};")
    out.append(f"const unsigned zt_n_types = {len(types.names)};")
    for f in funcs:
        offsets, _ = model.words(f)
        lines = [field_line(model, types, exprs, p, ann.fields[p], at, model.param_size(p), f.params)
                 for p, at in zip(f.params, offsets)]
        out.append(f"static const zt_field p_{f.name}[] = {{\n    " + ",\n    ".join(lines or ["{0}"]) + "};")
    lines = []
    for f in funcs:
        kind, flags = ann.funcs[f]
        flag_text = " | ".join(f"ZT_F_{x}" for x in sorted(flags)) or "0"
        lines.append(f'{{"{f.name}", {NAMESPACES.index(f.ns)}, ZT_K_{kind.upper()}, {len(f.params)}, {model.words(f)[1]}, '
                     f'{flag_text}, {f.since[0] << 8 | f.since[1]:#x}, {tables.index(f.table)}, {f.slot}, '
                     f'{types.of(f.returns)}, p_{f.name}}}')
    out.append("const zt_func zt_funcs[] = {\n    " + ",\n    ".join(lines) + "};")
    out.append(f"const unsigned zt_n_funcs = {len(funcs)};")
    out.append("const zt_ddi zt_tables[] = {\n    " + ",\n    ".join(
        f'{{"{t}", "{model.tables[t][0]}", {len(model.tables[t][2])}, {int(model.tables[t][1])}}}' for t in tables) + "};")
    out.append(f"const unsigned zt_n_tables = {len(tables)};")
    out.append(f"const uint32_t zt_api_version = {model.spec[0] << 16 | model.spec[1]:#x};")
    emit_lookups(model, types, funcs, out)
    write(output_dir, "api_table.c", out)
    write(output_dir, "api_ids.h", ["/* Written by gen.py: ids of functions, indices into zt_funcs. */",
                                    "#ifndef ZT_API_IDS_H", "#define ZT_API_IDS_H", "enum zt_func_id {"]
          + [f"    ZT_FUNC_{f.name} = {i}," for i, f in enumerate(funcs)] + [f"    ZT_FUNC_COUNT = {len(funcs)}", "};", "#endif"])


def chained(model, types, constant):
    """Type index of the struct that an stype constant means; None if it can not hang on a chain: some link to other structs."""
    record = model.records.get(model.resolve(model.structs_of_stype.get(constant, "")))
    return types.index[record.name] if record is not None and record.stype is not None else None


def emit_lookups(model, types, funcs, out):
    order = sorted(range(len(funcs)), key=lambda i: funcs[i].name)
    out.append('#include "lookup.h"')
    out.append("const uint16_t zt__funcs_by_name[] = {" + ", ".join(map(str, order)) + "};")
    by_ns = {ns: [] for ns in NAMESPACES}
    for name, values in model.enums.items():
        m = re.fullmatch(r"(z\w+)_structure_type_t", name)
        if m:
            by_ns[m.group(1)] += [(v, chained(model, types, n)) for n, v in values]
    # ze structs may hang on zet, zes and zer chains; where values overlap, the function's own namespace wins
    for ns in NAMESPACES:
        own = dict(by_ns["ze"])
        own.update(dict(by_ns[ns]))
        own = {v: t for v, t in own.items() if t is not None}
        out.append(f"static const zt__stype s_{ns}[] = {{" + ", ".join(f"{{{v:#x}u, {t}}}" for v, t in sorted(own.items())) + "};")
    out.append("const zt__stype *const zt__stypes[] = {" + ", ".join(f"s_{ns}" for ns in NAMESPACES) + "};")
    out.append("const unsigned zt__n_stypes[] = {" + ", ".join(f"sizeof(s_{ns}) / sizeof(s_{ns}[0])" for ns in NAMESPACES) + "};")

# SPDX-License-Identifier: MIT
"""driver_entry.c/.h: the entry points of the software driver.

Each entry makes the checks that the header's @returns list spells out, then calls soft_NAME; the weak default of that says
ZE_RESULT_ERROR_UNSUPPORTED_FEATURE. The getters fill a table no further than the caller's version of the API surely goes.
"""
import re

from gen import signature, write

ORDER = ["ZE_RESULT_ERROR_INVALID_NULL_HANDLE", "ZE_RESULT_ERROR_INVALID_NULL_POINTER"]
NULL_PARAM = re.compile(r"^nullptr == (\w+)$")


def condition(func, text):
    """The C text of a header's condition, or None if it says more than the parameters can tell."""
    params = {p.name: p for p in func.params}
    text = text.replace("nullptr", "NULL").replace("::", "").strip()
    if not re.fullmatch(r"[\w\s<>=!&|()%*\-+.]+", text):
        return None
    for name in re.findall(r"(?<![\w.>])([a-z_]\w*)", text):
        if name not in params:
            return None
    m = re.fullmatch(r"(Z\w+) < (\w+)", text)
    if m and params[m.group(2)].stars:
        return None  # the header compares a pointer with an enumerator
    return text


def checks(model, func):
    out, seen = [], set()
    ranked = sorted(func.checks, key=lambda c: ORDER.index(c[0]) if c[0] in ORDER else len(ORDER))
    checked_null = set()
    for code, text in ranked:
        m = NULL_PARAM.match(text)
        param = next((p for p in func.params if m and p.name == m.group(1)), None)
        c = condition(func, text)
        if c is None or (code, c) in seen or (param is not None and param.tag("optional")):
            continue
        if m:
            checked_null.add(m.group(1))
        seen.add((code, c))
        # a condition that looks into a struct or array is only safe behind the null test of its pointer
        for name in re.findall(r"(\w+)->|\*(\w+)", c):
            name = name[0] or name[1]
            if name not in checked_null:
                c = f"{name} != NULL && ({c})"
        for name in re.findall(r"%\s*(\w+)", c):
            c = f"{name} == 0 || {c}"  # a rest of a division by nothing
        out.append(f"    if ({c})\n        return {code};")
    return out


def emit(model, output_dir, _args):
    funcs = model.sorted_funcs()
    head = ["/* Written by gen.py. */", "#ifndef SOFT_DRIVER_ENTRY_H", "#define SOFT_DRIVER_ENTRY_H", '#include "l0_api.h"']
    head += [f"{f.returns} soft_{f.name}({signature(f)});" for f in funcs]
    head += ["/* The driver's own entry of that name, or NULL. */", "void *soft_entry_find(const char *name);",
             "/* Names of all entries in alphabetical order. */",
             "extern const char *const soft_entry_names[];", "extern const unsigned soft_n_entries;",
             "/* Whether the function is more than the default that says UNSUPPORTED_FEATURE. */",
             "int soft_entry_implemented(const char *name);", "#endif"]
    write(output_dir, "driver_entry.h", head)

    out = ["/* Written by gen.py. */", '#include "driver_entry.h"', "#include <string.h>",
           '#pragma GCC diagnostic ignored "-Wunused-parameter"', '#pragma GCC diagnostic ignored "-Wshadow"',
           '#pragma GCC diagnostic ignored "-Wtype-limits"', '#pragma GCC diagnostic ignored "-Wsign-compare"',
           '#pragma GCC diagnostic ignored "-Wmissing-prototypes"']
    for f in funcs:
        value = "ZE_RESULT_ERROR_UNSUPPORTED_FEATURE" if f.returns == "ze_result_t" else "0"
        out += [f"static {f.returns} default_{f.name}({signature(f)})", "{", f"    return {value};", "}",
                f'__attribute__((weak, alias("default_{f.name}"))) {f.returns} soft_{f.name}({signature(f)});']
        call = ", ".join(p.name for p in f.params)
        tests = checks(model, f) if f.returns == "ze_result_t" else []
        out += [f"static {f.returns} entry_{f.name}({signature(f)})", "{", *tests, f"    return soft_{f.name}({call});", "}"]
    for name, (getter, _mandatory, slots) in model.tables.items():
        out += [f"ZE_DLLEXPORT ze_result_t ZE_APICALL {getter}(ze_api_version_t version, {name} *t)", "{",
                "    if (t == NULL)", "        return ZE_RESULT_ERROR_INVALID_NULL_POINTER;",
                "    if (ZE_MAJOR_VERSION(version) != 1)", "        return ZE_RESULT_ERROR_UNSUPPORTED_VERSION;"]
        gate = (1, 0)
        for slot, function in slots:
            gate = max(gate, model.funcs[function].gate)  # behind a slot that was put in later, the older ones have moved
            test = "" if gate <= (1, 0) else f"if (version >= ZE_MAKE_VERSION({gate[0]}, {gate[1]}))\n        "
            out.append(f"    {test}t->{slot} = entry_{function};")
        out += ["    return ZE_RESULT_SUCCESS;", "}"]
    names = sorted(f.name for f in funcs)
    out.append("const char *const soft_entry_names[] = {" + ", ".join(f'"{n}"' for n in names) + "};")
    out.append(f"const unsigned soft_n_entries = {len(names)};")
    out.append("static const struct { void *entry, *soft, *none; } entries[] = {")
    out += [f"    {{(void *)entry_{n}, (void *)soft_{n}, (void *)default_{n}}}," for n in names]
    out += ["};", "static int entry_index(const char *name)", "{", "    unsigned low = 0, high = soft_n_entries;",
            "    while (low < high) {", "        unsigned mid = (low + high) / 2;",
            "        int order = strcmp(name, soft_entry_names[mid]);", "        if (order == 0)", "            return (int)mid;",
            "        if (order < 0)", "            high = mid;", "        else", "            low = mid + 1;", "    }",
            "    return -1;", "}", "void *soft_entry_find(const char *name)", "{", "    int i = entry_index(name);",
            "    return i < 0 ? NULL : entries[i].entry;", "}", "int soft_entry_implemented(const char *name)", "{",
            "    int i = entry_index(name);", "    return i >= 0 && entries[i].soft != entries[i].none;", "}"]
    write(output_dir, "driver_entry.c", out)

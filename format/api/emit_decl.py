# SPDX-License-Identifier: MIT
"""l0_api.h: declares the whole API, whatever the installed headers know of it."""
from gen import signature, write

GUARDS = ["_ZE_API_H", "_ZE_DDI_H", "_ZET_API_H", "_ZET_DDI_H", "_ZES_API_H", "_ZES_DDI_H", "_ZER_API_H", "_ZER_DDI_H",
          "_ZE_DDI_COMMON_H"]


def emit(model, output_dir, _args):
    out = ["/* SPDX-License-Identifier: MIT */",
           f"/* Level Zero {model.spec[0]}.{model.spec[1]}, declared from format/api by gen.py. */",
           "#ifndef ZT_L0_API_H", "#define ZT_L0_API_H", "#include <stddef.h>", "#include <stdint.h>",
           "/* The installed headers may know less; including them after this one changes nothing. */"]
    for guard in GUARDS:
        out += [f"#ifdef {guard}", f'#error "include l0_api.h before or instead of the level_zero headers"', "#endif",
                f"#define {guard}"]
    out += ["#ifdef __cplusplus", 'extern "C" {', "#endif",
            "#define ZE_MAKE_VERSION(_major, _minor) ((_major << 16) | (_minor & 0x0000ffff))",
            "#define ZE_MAJOR_VERSION(_ver) (_ver >> 16)", "#define ZE_MINOR_VERSION(_ver) (_ver & 0x0000ffff)",
            "#define ZE_BIT(_i) (1 << _i)", "#define ZE_APICALL", "#define ZE_CALLBACK_CONV",
            '#define ZE_APIEXPORT __attribute__((visibility("default")))',
            '#define ZE_DLLEXPORT __attribute__((visibility("default")))']
    for prefix in ("ZET", "ZES", "ZER"):
        out += [f"#define {prefix}_APICALL", f"#define {prefix}_APIEXPORT ZE_APIEXPORT",
                f"#define {prefix}_DLLEXPORT ZE_DLLEXPORT"]
    for what, name in model.order:
        if what == "const":
            out.append(f"#define {name} {model.consts[name]}")
    for name in model.handles:
        out.append(f"typedef struct {model.handles[name]} *{name};")
    for name in model.opaque:
        out.append(f"typedef struct _{name} {name};")
    for name, record in model.records.items():
        out.append(f"typedef {record.kind} _{name} {name};")
    for what, name in model.order:
        if what == "enum":
            out.append(f"typedef enum _{name} {{")
            out += [f"    {value} = {number:#x}," for value, number in model.enums[name]]
            out.append(f"}} {name};")
    for what, name in model.order:
        if what == "typedef":
            out.append(f"typedef {model.typedefs[name]} {name};")
        elif what == "callback":
            args = ", ".join(f"{t} {n}" for t, n in model.callbacks[name])
            out.append(f"typedef void (ZE_CALLBACK_CONV *{name})({args});")
        elif what in ("struct", "union"):
            record = model.records[name]
            out.append(f"{record.kind} _{name} {{")
            out += [f"    {f.ctype} {f.name}{f.array};" for f in record.fields]
            out.append("};")
    for func in model.sorted_funcs():
        out.append(f"ZE_APIEXPORT {func.returns} ZE_APICALL {func.name}({signature(func)});")
        out.append(f"typedef {func.returns} (ZE_APICALL *{pfn(func)})({signature(func)});")
    for name, (getter, _mandatory, slots) in model.tables.items():
        out.append(f"typedef struct _{name} {{")
        out += [f"    {pfn(model.funcs[function])} {slot};" for slot, function in slots]
        out.append(f"}} {name};")
        out.append(f"ZE_DLLEXPORT ze_result_t ZE_APICALL {getter}(ze_api_version_t version, {name} *pDdiTable);")
        out.append(f"typedef ze_result_t (ZE_APICALL *{pfn_name(getter)})(ze_api_version_t, {name} *);")
    out += ["#ifdef __cplusplus", "}", "#endif", "#endif"]
    write(output_dir, "l0_api.h", out)


def pfn_name(name):
    ns = name[:3] if name[:3] in ("zet", "zes", "zer") else "ze"
    return f"{ns}_pfn{name[len(ns):]}_t"


def pfn(func):
    return f"{func.ns}_pfn{func.name[len(func.ns):]}_t"

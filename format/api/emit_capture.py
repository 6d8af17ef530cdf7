# SPDX-License-Identifier: MIT
"""capture_wrappers.c: one recording wrapper per function, the layer's getters, and what the layer asks of the table.

A wrapper is straight-line where all that an argument leads to has a fixed, small size; the same function with an argument that
has to be followed goes through zt_walk. Which of both is decided at run time by tests for NULL and zero.
"""
import re

from annotate import Annotations
from gen import NAMESPACES, signature, write

FLAT = ("value", "address", "opaque")


class Params:
    """Sorts a function's parameters into those copied in place and those that need the walk."""

    def __init__(self, model, ann, func):
        self.model, self.ann, self.func = model, ann, func
        self.ins, self.outs, self.complex, self.counts = [], [], [], []
        self.always_complex = False
        names = {p.name: p for p in func.params}
        for p in func.params:
            n = ann.fields[p]
            if n.shape in FLAT:
                continue
            if n.shape == "one" and n.dir & 3 == 3 and self.is_integer(p):
                self.counts.append(p)
            count = names.get(n.count) if n.shape == "array" and n.count else None
            if n.shape == "one" and self.is_flat(p, n):
                if n.dir & 1:
                    self.ins.append((p, None))
                if n.dir & 2:
                    self.outs.append((p, n.role == "count" or bool(n.dir & 4)))
            elif count is not None and not count.stars and n.dir & 3 == 1 and self.is_flat(p, n):
                self.ins.append((p, count))
                self.complex.append(f"({p.name} != NULL && {count.name} > ZC_INLINE_WAITS)")
            elif count is not None and not count.stars:
                self.complex.append(f"({p.name} != NULL && {count.name} != 0)")
            else:
                self.complex.append(f"{p.name} != NULL")
                self.always_complex |= not n.optional and n.shape != "pnext"

    def is_integer(self, p):
        base = self.model.resolve(p.base)
        return p.stars == 1 and re.fullmatch(r"u?int\d+_t|size_t", base) is not None

    def element_size(self, p):
        return 8 if p.stars > 1 else self.model.size_align(p.base)[0]

    def is_flat(self, p, n):
        if n.inner not in FLAT or self.model.resolve(p.base) in ("void", "char") and p.stars == 1:
            return False
        if p.stars > 1:
            return True
        return p.base not in self.model.opaque and self.flat_type(self.model.resolve(p.base))

    def flat_type(self, base):
        record = self.model.records.get(base)
        if record is None:
            return True
        if record.stype:
            return False
        for f in record.fields:
            if self.ann.fields[f].shape not in FLAT or (not f.stars and not self.flat_type(self.model.resolve(f.base))):
                return False
        return record.size <= 256


def word(model, p):
    base = model.resolve(p.base)
    if p.stars or base in model.handles or base in model.callbacks:
        return f"(uint64_t)(uintptr_t){p.name}"
    if base in ("double", "float"):
        return f"zc_bits_{base}({p.name})"
    size = model.size_align(base)[0]
    return f"(uint64_t)(uint{size * 8}_t){p.name}"


def store_words(model, func):
    """Statements that put the arguments into w[]."""
    out = []
    for p, at in zip(func.params, model.words(func)[0]):
        if not p.stars and model.resolve(p.base) in model.records:
            size = model.size_align(p.base)[0]
            if size % 8:
                out.append(f"w[{at + size // 8}] = 0;")
            out.append(f"memcpy(&w[{at}], &{p.name}, sizeof({p.name}));")
        else:
            out.append(f"w[{at}] = {word(model, p)};")
    return out


def watched(model, ann, func):
    """The run-time test under which contents depend on the call, or None: by kinds and roles."""
    kind, flags = ann.funcs[func]
    roles = {ann.fields[p].role: p for p in func.params}
    types = {model.resolve(p.base) for p in func.params if not p.stars}
    if kind == "append":
        # several kernels, and arguments that come with the launch, are for the general path
        kernels = [p for p in func.params if ann.fields[p].role == "kernel" or p.base == "ze_kernel_handle_t"]
        if any(p.stars for p in kernels) or kernels and any(p.stars > 1 for p in func.params if p.base == "void"):
            return "zc_memory"
        addresses = [f"(uint64_t)(uintptr_t){p.name}" for p in func.params
                     if ann.fields[p].shape == "address" and ann.fields[p].access]
        listed = roles.get("list")
        if listed is None:
            return None
        array = f"(const uint64_t[]){{{', '.join(addresses) or '0'}}}"
        plain = "".join(f"zc_kernel_plain((uint64_t)(uintptr_t){p.name}) && " for p in kernels)
        if plain:
            return f"zc_memory && !({plain}zc_contents_quick(t, (uint64_t)(uintptr_t){listed.name}, {array}, {len(addresses)}))"
        return f"zc_memory && !zc_contents_quick(t, (uint64_t)(uintptr_t){listed.name}, {array}, {len(addresses)})"
    if kind in ("sync", "query"):
        return "zc_memory && atomic_load_explicit(&zc_in_flight, memory_order_relaxed)"
    if kind in ("host_signal", "host_reset"):
        return "zc_memory && atomic_load_explicit(&zc_in_flight, memory_order_relaxed)"
    if kind in ("execute", "reset"):
        return "zc_memory && atomic_load_explicit(&zc_lists, memory_order_relaxed)"
    if kind in ("alloc", "free"):
        return "zc_memory"
    if kind in ("create", "destroy") and any(model.resolve(p.base) in ("ze_command_list_handle_t", "ze_kernel_handle_t")
                                             for p in func.params):
        return "zc_memory"
    if kind == "set" and "ze_kernel_handle_t" in types and func.params[0].base == "ze_kernel_handle_t":
        return "zc_memory"
    return None


def usm_kind(func, kind):
    if kind != "alloc":
        return "NONE"
    types = {p.base for p in func.params}
    device, host = "ze_device_mem_alloc_desc_t" in types, "ze_host_mem_alloc_desc_t" in types
    return "SHARED" if device and host else "HOST" if host else "DEVICE"


def emit_func(model, ann, index, func, out):
    kind, _flags = ann.funcs[func]
    p, n_words = Params(model, ann, func), model.words(func)[1]
    args = ", ".join(x.name for x in func.params)
    pfn = f"{func.ns}_pfn{func.name[len(func.ns):]}_t"
    test = watched(model, ann, func)
    ok = "r == 0 && " if func.returns == "ze_result_t" else ""
    result = "(uint64_t)(uint32_t)r" if func.returns == "ze_result_t" else \
        "(uint64_t)(uintptr_t)r" if model.resolve(func.returns) in model.handles else "(uint64_t)r"
    stores = store_words(model, func)
    conditions = p.complex + ([f"({test})"] if test else [])
    general = bool(conditions) or p.always_complex
    sep = ", " if args else ""
    sig = signature(func) if func.params else ""
    if general:
        out += [f"static __attribute__((noinline)) {func.returns} g_{func.name}(zc_thread *t, zc_fn fn, uint32_t zc_f{sep}{sig})",
                "{", f"    uint64_t w[{max(n_words, 1)}];", *("    " + s for s in stores),
                f"    zc_call call = {{.thread = t, .func = {index}, .flags = zc_f}};"]
        for c in p.counts[:4]:
            out += [f"    if ({c.name} != NULL) {{",
                    f"        call.before[call.n_before].addr = (uintptr_t){c.name};",
                    f"        call.before[call.n_before++].value = (uint64_t)*{c.name};", "    }"]
        out += ["    if (!zc_enter_walk(&call, w))", f"        return (({pfn})fn)({args});",
                f"    const {func.returns} r = (({pfn})fn)({args});",
                f"    zc_leave_walk(&call, zc_ticks_leave(), {result});"]
        if kind == "ext_lookup":
            name = next(x.name for x in func.params if ann.fields[x].role == "ext_name")
            address = next(x.name for x in func.params if ann.fields[x].role == "ext_address")
            out += ["    if (r == 0)", f"        zc_wrap_extension({name}, {address});"]
        out += ["    return r;", "}"]
    out += [f"static {func.returns} ZE_APICALL w_{func.name}({signature(func)})", "{",
            f"    zc_fn fn = atomic_load_explicit(&zc_next[{index}], memory_order_relaxed);", "    uint32_t zc_f = 0;",
            "    zc_thread *t = zc_self.thread;", "    if (zc_unlikely(zc_self.variant))",
            "        fn = zc_take_variant(&zc_f, __builtin_return_address(0));",
            "    if (zc_unlikely(t == NULL) && (t = zc_thread_start()) == NULL)", f"        return (({pfn})fn)({args});"]
    if p.always_complex:
        out += [f"    return g_{func.name}(t, fn, zc_f{sep}{args});", "}"]
        return
    if general:
        out += [f"    if (zc_unlikely({' || '.join(conditions)}))", f"        return g_{func.name}(t, fn, zc_f{sep}{args});"]
    sizes = [f"({x.name} != NULL" + (f" && {c.name} != 0" if c else "") + ") * zc_put_size(" +
             (f"(uint32_t){c.name} * " if c else "") + f"{p.element_size(x)}u)" for x, c in p.ins]
    reserve = sum(24 + (p.element_size(x) + 7) // 8 * 8 for x, _ in p.outs)
    out += [f"    zc_slot *const slot = zc_open(t, {index}, {n_words}, {' + '.join(sizes) or '0'}, {reserve}, zc_f);",
            "    if (zc_unlikely(slot == NULL))", f"        return (({pfn})fn)({args});",
            "    const uint64_t seq = t->seq;"]
    if n_words:
        out += ["    uint64_t *w = (uint64_t *)(slot + 1);", *("    " + s for s in stores)]
    if p.ins:
        out.append(f"    char *in = zc_words_end(slot, {n_words});")
        for x, c in p.ins:
            size = f"(uint32_t){c.name} * {p.element_size(x)}u" if c else f"{p.element_size(x)}u"
            out += [f"    if ({x.name} != NULL" + (f" && {c.name} != 0" if c else "") + ")",
                    f"        in = zc_put(in, {x.name}, {size});"]
        out.append("    (void)in;")
    out += ["    zc_publish(t, slot);", f"    const {func.returns} r = (({pfn})fn)({args});",
            "    const uint64_t now = zc_ticks_leave();", "    if (zc_in_place(t, slot)) {"]
    if p.outs:
        out += ["        char *const behind = zc_behind(t), *to = behind;"]
        for x, always in p.outs:
            out += [f"        if ({'' if always else ok}{x.name} != NULL)",
                    f"            to = zc_put(to, {x.name}, {p.element_size(x)}u);"]
        out.append(f"        zc_done(t, slot, now, {result}, (uint32_t)(to - behind));")
    else:
        out.append(f"        zc_done(t, slot, now, {result}, 0);")
    out += ["    } else {", f"        uint64_t late[{max(n_words, 1)}] = {{0}};"]
    if n_words:
        out += ["        w = late;", *("        " + s for s in stores)]
    out += [f"        zc_leave_late(t, {index}, seq, late, now, {result});", "    }"]
    if kind == "ext_lookup":
        raise SystemExit("gen.py: an extension lookup must go through the general path")
    out += ["    return r;", "}"]


def emit(model, output_dir, _args):
    ann, funcs = Annotations(model), model.sorted_funcs()
    ids = {f.name: i for i, f in enumerate(funcs)}
    out = ["/* Written by gen.py. */", '#include "l0_api.h"', '#include "layer.h"',
           '#pragma GCC diagnostic ignored "-Wshadow"', '#pragma GCC diagnostic ignored "-Wunused-variable"',
           '#pragma GCC diagnostic ignored "-Wcast-function-type"', '#pragma GCC diagnostic ignored "-Wnonnull-compare"']
    for scalar in ("double", "float"):
        out += [f"static inline uint64_t zc_bits_{scalar}({scalar} x)", "{", "    uint64_t bits = 0;",
                "    memcpy(&bits, &x, sizeof(x));", "    return bits;", "}"]
    for i, f in enumerate(funcs):
        emit_func(model, ann, i, f, out)
    out += [f"const zc_fn zc_wrappers[] = {{", *(f"    (zc_fn)w_{f.name}," for f in funcs), "};"]
    out += ["const uint8_t zc_usm[] = {" + ", ".join(f"ZC_USM_{usm_kind(f, ann.funcs[f][0])}" for f in funcs) + "};"]
    out += ["const uint8_t zc_watched[] = {" + ", ".join(str(int(watched(model, ann, f) is not None)) for f in funcs) + "};"]
    for i, (name, (getter, _mandatory, slots)) in enumerate(model.tables.items()):
        out += [f"static const uint16_t slots_{i}[] = {{" + ", ".join(str(ids[f]) for _, f in slots) + "};",
                f"ZE_DLLEXPORT ze_result_t ZE_APICALL {getter}(ze_api_version_t version, {name} *table)", "{",
                f"    return (ze_result_t)zc_fill_table({i}, (uint32_t)version, (void **)table, __builtin_return_address(0));",
                "}"]
    out.append("const uint16_t *const zc_table_slots[] = {" + ", ".join(f"slots_{i}" for i in range(len(model.tables))) + "};")
    write(output_dir, "capture_wrappers.c", out)

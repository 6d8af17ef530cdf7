# SPDX-License-Identifier: MIT
"""replay_thunks.c: one function per API function that turns 8-byte words into the real C call."""
from gen import write


def argument(model, p, at):
    base = model.resolve(p.base)
    word = f"w[{at}]"
    if p.stars or p.array or base in model.handles or base in model.callbacks:
        return f"({p.ctype if not p.array else 'void *'})(uintptr_t){word}"
    if base in ("float", "double") or base in model.records:
        return f"*(const {p.base} *)&{word}"
    return f"({p.base}){word}"


def emit(model, output_dir, _args):
    out = ["/* Written by gen.py. */", '#include "l0_api.h"', '#include "replay_thunks.h"',
           '#pragma GCC diagnostic ignored "-Wunused-parameter"']
    funcs = model.sorted_funcs()
    for f in funcs:
        words, _ = model.words(f)
        types = ", ".join(p.ctype + (" *" if p.array else "") for p in f.params) or "void"
        values = ", ".join(argument(model, p, at) for p, at in zip(f.params, words))
        # ze_result_t comes back as unsigned 32 bits, so that a recorded and a replayed result compare as numbers
        cast = "(int64_t)(uintptr_t)" if f.returns in model.handles else "(int64_t)(uint32_t)"
        out += [f"static int64_t call_{f.name}(void *fn, const uint64_t *w)", "{",
                f"    return {cast}(({f.returns}(*)({types}))fn)({values});", "}"]
    out.append("const zr_thunk zr_thunks[] = {")
    out += [f"    call_{f.name}," for f in funcs]
    out.append("};")
    write(output_dir, "replay_thunks.c", out)

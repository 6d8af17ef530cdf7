#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""embed.py RUNTIME INCLUDE OUT: the runtime of exported programs as a string, and the names that the installed headers have."""
import glob
import os
import re
import sys


def main():
    runtime, include, out = sys.argv[1:4]
    names = set()
    for path in sorted(glob.glob(os.path.join(include, "level_zero", "ze*_api.h"))):
        with open(path, encoding="utf-8") as f:
            text = re.sub(r"/\*.*?\*/|//[^\n]*", "", f.read(), flags=re.S)
        names.update(re.findall(r"\bze[a-z]?[A-Z_]\w*|\bZE[A-Z]?_\w+", text))
    with open(runtime, encoding="utf-8") as f:
        lines = f.read().split("\n\n", 1)[1].splitlines()
    with open(out, "w", encoding="utf-8") as f:
        f.write("/* Made by embed.py. */\n#include \"internal.h\"\n\nconst char *const zx_runtime[] = {\n")
        for line in lines:
            f.write('    "%s",\n' % line.replace("\\", "\\\\").replace('"', '\\"'))
        f.write("    NULL};\n\nconst char *const zx_names[] = {\n")
        for name in sorted(names):
            f.write('    "%s",\n' % name)
        f.write("};\nconst size_t zx_n_names = sizeof(zx_names) / sizeof(zx_names[0]);\n")


if __name__ == "__main__":
    main()

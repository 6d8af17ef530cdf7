# SPDX-License-Identifier: MIT
"""whois: from an address to the allocation that held it and the calls that touched it."""
import json
import re
import unittest

import harness
from harness import app, zetrace

PROGRAM = """
import sys
source = open(sys.argv.pop(1), encoding="utf-8").read()
exec(source.replace("queue = ", "print(hex(A.value), hex(B.value))\\nqueue = ", 1))
"""


class Whois(harness.Case):
    def setUp(self):
        super().setUp()
        r = self.record("/usr/bin/python3", "-c", PROGRAM, app("evict.py"), options=["--schedule=lazy"], status=1)
        self.a, self.b = (int(x, 16) for x in re.search(r"(0x\w+) (0x\w+)", r.stdout).groups())

    def whois(self, address, *options, status=0):
        r = zetrace("whois", *options, "t.zetrace", hex(address) if isinstance(address, int) else address)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return r.stdout.splitlines()

    def functions(self, lines):
        return [re.search(r"  (ze\w+)\(", line).group(1) for line in lines]

    def test_freed(self):
        lines = self.whois(self.b + 16)
        made, freed = ([c for c in self.dump() if c["function"] == f][-1]["call"] for f in ("zeMemAllocDevice", "zeMemFree"))
        self.assertEqual(lines[0], f"mem#2+16: 4096 bytes at {self.b:#x}, made by #{made} zeMemAllocDevice, freed by #{freed}")
        self.assertEqual(self.functions(lines[1:]), ["zeMemAllocDevice", "zeCommandListAppendMemoryCopy", "zeCommandQueueExecuteCommandLists",
                                                     "zeContextEvictMemory", "zeMemFree"])
        shown = zetrace("dump", "t.zetrace").stdout.splitlines()
        for line in lines[1:]:
            self.assertIn(line, shown)

    def test_live(self):
        lines = self.whois(self.a)
        self.assertRegex(lines[0], r"^mem#1\+0: 4096 bytes .* live at the end$")
        self.assertEqual(self.functions(lines[1:]), ["zeMemAllocDevice", "zeCommandListAppendMemoryCopy", "zeCommandQueueExecuteCommandLists"])

    def test_last(self):
        self.assertEqual(self.functions(self.whois(self.b, "--last=2")[1:]), ["zeContextEvictMemory", "zeMemFree"])

    def test_nowhere(self):
        lines = self.whois(self.b + 4096 + 8, status=1)
        self.assertRegex(lines[0], rf"^{self.b + 4104:#x} lies in no allocation of this trace; mem#\d, 4096 bytes at .* before it$")
        self.whois(8, status=1)

    def test_as_a_kernel_log_prints_it(self):
        r = zetrace("whois", "t.zetrace", f"{self.b & (1 << 48) - 1 | 0xffff << 48:016x}")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("is taken as", r.stderr)
        self.assertIn("mem#2+0", r.stdout)
        self.assertEqual(self.whois(f"{self.b:x}"), self.whois(self.b))

    def test_json(self):
        [line] = self.whois(self.b + 16, "--json")
        found = json.loads(line)
        [allocation] = found["allocations"]
        self.assertEqual((allocation["object"], allocation["offset"], allocation["size"]), ("mem#2", 16, 4096))
        self.assertEqual(found["calls"][-1]["function"], "zeMemFree")
        self.assertEqual(allocation["freed"], found["calls"][-1]["call"])
        self.assertEqual(found["calls"], [c for c in self.dump() if c["call"] in [f["call"] for f in found["calls"]]])
        [line] = self.whois(8, "--json", status=1)
        self.assertEqual(json.loads(line), {"address": "0x8", "allocations": [], "calls": []})

    def test_ranges(self):
        """Commands count by what they reach, not by where they begin."""
        program = PROGRAM.replace("exec(source", "exec(source.replace('copy, B, A, size', 'copy, B, A, ctypes.c_size_t(64)')")
        r = self.record("/usr/bin/python3", "-c", program, app("evict.py"), options=["--schedule=lazy"], status=1)
        b = int(re.search(r"0x\w+ (0x\w+)", r.stdout).group(1), 16)
        command = "zeCommandListAppendMemoryCopy"
        self.assertIn(command, self.functions(self.whois(b + 63)[1:]))
        self.assertNotIn(command, self.functions(self.whois(b + 64)[1:]))
        self.assertNotIn("zeCommandQueueExecuteCommandLists", self.functions(self.whois(b + 64)[1:]))
        self.assertIn("zeMemFree", self.functions(self.whois(b + 64)[1:]))
        self.assertIn(command, self.functions(self.whois(b)[1:]))

    def test_backtraces_are_shown(self):
        r = self.record("/usr/bin/python3", "-c", PROGRAM, app("evict.py"), options=["--schedule=lazy", "--backtrace=zeMemFree"], status=1)
        b = re.search(r"0x\w+ (0x\w+)", r.stdout).group(1)
        self.assertTrue(any(line.startswith("    at ") for line in self.whois(b)))

    def test_usage(self):
        self.assertSentence(zetrace("whois", "t.zetrace"), 2, "an address")
        self.assertSentence(zetrace("whois", "t.zetrace", "frob"), 2, "frob")
        self.assertSentence(zetrace("whois", "--last=0", "t.zetrace", "0x1"), 2, "--last")
        self.assertSentence(zetrace("whois", "missing", "0x1"), 2, "missing")
        with open("foreign", "wb") as f:
            f.write(bytes(300))
        self.assertSentence(zetrace("whois", "foreign", "0x1"), 3, "not a zetrace trace")


if __name__ == "__main__":
    unittest.main(verbosity=2)

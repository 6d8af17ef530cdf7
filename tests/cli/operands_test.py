# SPDX-License-Identifier: MIT
"""What every command makes of a trace without calls, of one that is not there, and of an output that is its input."""
import json
import os
import unittest

import chunks
import harness
from harness import BUILD, app, run, zetrace

READERS = {"check": [], "explore": [], "isolate": [], "graph": [], "export": [], "replay": [], "dump": [], "trim": ["-o", "s.zetrace", "--needs=#1"],
           "whois": ["0x1000"]}


class NoCalls(harness.Case):
    def setUp(self):
        super().setUp()
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        with open("t.zetrace", "rb") as f:
            self.whole = f.read()

    def write(self, data):
        with open("cut.zetrace", "wb") as f:
            f.write(data)
        return "cut.zetrace"

    def damaged(self, trace):
        for command, options in READERS.items():
            with self.subTest(command):
                r = zetrace(command, trace, *options) if command in ("trim", "whois") else zetrace(command, *options, trace)
                self.assertSentence(r, 3, trace)
                self.assertEqual(r.stdout, "")
                if command != "dump":
                    self.assertIn("no call was found", r.stderr)

    def chunk(self, kind):
        """Where the header of the first chunk of a kind begins."""
        at = self.whole.index(b"ZTCK") - 8
        while self.whole[at + 12] != kind:
            at = self.whole.index(b"ZTCK", at + 12) - 8
        return at

    def test_cut_before_its_first_call(self):
        self.damaged(self.write(self.whole[:self.chunk(3) + 100]))

    def test_damage_that_only_reading_shows(self):
        data = bytearray(self.whole)
        for c in chunks.chunks(data):  # a slow recorder ends one early
            if c.kind == chunks.CALLS:
                data[c.after - 1] ^= 1  # of its checksum
        self.damaged(self.write(data))

    def test_recording_that_was_not_finished(self):
        trace = self.write(self.whole[:self.chunk(3)])
        for command in ("check", "explore", "isolate", "graph", "replay"):
            self.assertSentence(zetrace(command, trace), 3, "not finished", "no call was found")

    def test_a_whole_trace_without_calls(self):
        r = run(os.path.join(BUILD, "bin", "order", "craft"), "t.zetrace", "empty.zetrace", "1-9999")
        self.assertEqual(r.returncode, 0, r.stderr)
        for command in ("check", "explore", "isolate", "graph", "replay"):
            with self.subTest(command):
                r = zetrace(command, "empty.zetrace")
                self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
                self.assertIn("zetrace: empty.zetrace: the trace is whole, and has no calls\n", r.stderr)
        self.assertEqual(json.loads(zetrace("check", "--json", "empty.zetrace").stdout)["findings"], [])
        self.assertEqual(json.loads(zetrace("isolate", "--json", "empty.zetrace").stdout)["verdict"], "none-found")
        self.assertEqual(json.loads(zetrace("explore", "--json", "empty.zetrace").stdout)["failing"], 0)

    def test_no_such_file(self):
        for command, options in READERS.items():
            r = zetrace(command, "nope", *options) if command in ("trim", "whois") else zetrace(command, *options, "nope")
            self.assertSentence(r, 2, "nope: there is no such file", "record")


WRITERS = {"trim": ["--needs=#1"], "export": [], "isolate": []}


class Output(harness.Case):
    def setUp(self):
        super().setUp()
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        with open("t.zetrace", "rb") as f:
            self.before = f.read()

    def refused(self, out, *words, trace="t.zetrace", force=("-f",)):
        for command, options in WRITERS.items():
            with self.subTest(command, out=out):
                self.assertSentence(zetrace(command, *force, "-o", out, *options, trace), 2, *words)
                with open(trace, "rb") as f:
                    self.assertEqual(f.read(), self.before)

    def test_the_trace_itself(self):
        os.symlink("t.zetrace", "symbolic.zetrace")
        os.link("t.zetrace", "hard.zetrace")
        for out in ("t.zetrace", "./t.zetrace", "symbolic.zetrace", "hard.zetrace"):
            self.refused(out, out, "the trace t.zetrace itself")
        self.refused("t.zetrace", "the trace hard.zetrace itself", trace="hard.zetrace")
        self.assertEqual(sorted(os.listdir(".")), ["hard.zetrace", "symbolic.zetrace", "t.zetrace"])

    def test_what_is_in_the_way_while_it_is_written(self):
        os.rename("t.zetrace", "u.zetrace.partial")
        self.refused("u.zetrace", "u.zetrace.partial", "the trace itself", trace="u.zetrace.partial")
        self.assertEqual(os.listdir("."), ["u.zetrace.partial"])

    def test_file_beside_an_exported_program(self):
        os.rename("t.zetrace", "t.c.bin")
        self.assertSentence(zetrace("export", "-f", "-o", "t.c", "t.c.bin"), 2, "the trace t.c.bin itself")
        self.assertEqual(os.listdir("."), ["t.c.bin"])

    def test_what_exists(self):
        with open("mine", "w") as f:
            f.write("mine")
        self.refused("mine", "mine exists and is not overwritten", "-f", force=())
        self.assertSentence(zetrace("record", "-o", "mine", "--", app("evict")), 125, "mine exists and is not overwritten", "-f")
        with open("mine") as f:
            self.assertEqual(f.read(), "mine")

    def test_the_recorded_program(self):
        os.symlink(app("evict"), "evict")
        r = zetrace("record", "-f", "-o", "evict", "--driver=soft", "--", "./evict")
        self.assertSentence(r, 125, "the program itself")
        self.assertTrue(os.path.islink("evict"))


if __name__ == "__main__":
    unittest.main()

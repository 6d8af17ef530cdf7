# SPDX-License-Identifier: MIT
"""What every command makes of a trace without calls, of one that is not there, and of an output that is its input."""
import json
import os
import sys
import unittest

import chunks
import harness
from harness import BUILD, app, run, zetrace

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import format_reader  # noqa: E402

READERS = {"check": [], "explore": [], "isolate": [], "graph": [], "export": [], "replay": [], "dump": [], "trim": ["-o", "s.zetrace", "--needs=#1"],
           "whois": ["0x1000"], "leaks": []}


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
        for command in ("repair", "repack"):
            self.assertSentence(zetrace(command, "-o", "new.zetrace", "nope"), 2, "nope: there is no such file")


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

    def test_what_is_no_file(self):
        """A new file would take the place of a device, and root may do that."""
        os.mkfifo("pipe")
        os.mkdir("folder")
        os.symlink("pipe", "to_pipe")
        os.symlink("/proc/self/fd/1", "like_stdout")
        names = {name: os.lstat(name).st_mode for name in ("pipe", "folder", "to_pipe", "like_stdout")}
        zetrace("export", "--format=json", "-o", "t.json", "t.zetrace")
        commands = {**{c: [*o, "t.zetrace"] for c, o in WRITERS.items()}, "repack": ["t.zetrace"], "repair": ["t.zetrace"], "import": ["t.json"],
                    "record": ["--driver=soft", "--", app("evict")]}
        for name in names:
            for command, operands in commands.items():
                with self.subTest(command, out=name):
                    r = zetrace(command, "-f", "-o", name, *operands)
                    self.assertSentence(r, 125 if command == "record" else 2, name, "is no regular file", "another name")
        r = zetrace("export", "--format=json", "-f", "-o", "pipe", "t.zetrace")
        self.assertSentence(r, 2, "is no regular file")
        self.assertEqual({name: os.lstat(name).st_mode for name in names}, names)
        self.assertEqual([n for n in os.listdir(".") if "partial" in n], [])

    def test_the_recorded_program(self):
        os.symlink(app("evict"), "evict")
        r = zetrace("record", "-f", "-o", "evict", "--driver=soft", "--", "./evict")
        self.assertSentence(r, 125, "the program itself")
        self.assertTrue(os.path.islink("evict"))


class Mistyped(harness.Case):
    def test_commands(self):
        for word, meant in (("dif", "diff"), ("repla", "replay"), ("recrod", "record")):
            self.assertSentence(zetrace(word, "t.zetrace"), 2, f"there is no command '{word}' ('{meant}'?)")
        for word in ("xyz", "frobnicate", "a" * 5000, "\x1b[2J"):
            r = zetrace(word)
            self.assertEqual(r.returncode, 2, r.stderr)
            self.assertNotIn("'?)", r.stderr)
            self.assertNotIn("\x1b", r.stderr)

    def test_functions_to_ignore(self):
        self.record(app("evict"), options=["--schedule=eager"])
        self.assertSentence(zetrace("diff", "--ignore=argz", "t.zetrace", "t.zetrace"), 2, "no function matches 'argz'")
        for word in ("args", "zeMem*", "*Destroy", "zeNewerThanThis"):
            self.assertEqual(zetrace("diff", "--ignore=" + word, "t.zetrace", "t.zetrace").returncode, 0)

    def test_numbers_of_operands(self):
        self.assertSentence(zetrace("diff", "a"), 2, "was given 1 operand;")
        self.assertSentence(zetrace("whois", "a"), 2, "was given 1 operand;")
        self.assertSentence(zetrace("trim", "-o", "x", "a", "b", "c"), 2, "was given 3 operands;")


class Names(harness.Case):
    """A stranger's trace has escape sequences wherever it has text: none reaches a terminal."""

    EVIL = "\x1b[31m\n\x07\x9b1m"

    def forge(self, change):
        """All text that the test's trace has of the recorded program, changed."""
        data, pb = chunks.read("t.zetrace"), format_reader.schema()
        parts = chunks.chunks(data)
        for c in parts:
            packet = c.packet(pb)
            change(packet)
            c.put(packet.SerializeToString())
        chunks.write("evil.zetrace", chunks.join(data[:chunks.FILE_HEADER], parts))

    def silent(self, **commands):
        for command, options in {**READERS, "info": [], "verify": [], **commands}.items():
            for json_too in [[], ["--json"]] if command in ("info", "dump", "check", "isolate", "replay") else [[]]:
                with self.subTest(command, json=json_too):
                    first = options if command not in ("trim", "whois") else []
                    r = zetrace(command, *first, *json_too, "evil.zetrace", *(options if command in ("trim", "whois") else []))
                    self.assertGreaterEqual(r.returncode, 0)
                    said = [c for c in r.stdout + r.stderr if c < " " and c not in "\n\t" or "\x7f" <= c < "\xa0"]
                    self.assertEqual(said, [])
        self.assertNotIn("\n\n", zetrace("info", "evil.zetrace").stdout)

    def test_of_the_session(self):
        def change(packet):
            s = packet.session
            if packet.WhichOneof("kind") != "session":
                return
            for name in ("version", "program", "hostname", "rank", "order", "attach", "memory"):
                setattr(s, name, getattr(s, name) + self.EVIL)
            s.argv.append(self.EVIL)
            for pair in [*s.settings, *s.environment]:
                pair.name, pair.value = pair.name + (self.EVIL if pair in s.settings else ""), pair.value + self.EVIL
            for library in s.libraries:
                library.path += self.EVIL
                library.build_id += self.EVIL

        for schedule in ("lazy", "seed:7"):
            self.record(app("evict_good"), options=["--schedule=" + schedule])
            self.forge(change)
            self.silent()

    def test_of_the_table(self):
        def change(packet):
            for function in packet.api.functions:
                for parameter in function.params:
                    parameter.name += self.EVIL
                if function.name == "zeMemFree":
                    function.name += self.EVIL
            for kind in packet.api.types:
                for value in kind.values:
                    value.name += self.EVIL

        self.record(app("evict_good"), options=["--schedule=eager"])
        self.forge(change)
        self.silent()


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT
"""dump: which calls it shows, and what it says when there are none."""
import re
import unittest

import harness
from harness import app, zetrace


class Filters(harness.Case):
    def setUp(self):
        super().setUp()
        self.record(app("evict"), options=["--schedule=lazy", "--backtrace=*"], status=1)
        self.calls = self.dump()
        self.numbers = [c["call"] for c in self.calls]

    def shown(self, *options):
        r = zetrace("dump", *options, "t.zetrace")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        return [int(n) for n in re.findall(r"^#(\d+)  ", r.stdout, re.M)]

    def none(self, *options, words):
        """Nothing on stdout, one sentence on stderr."""
        for more in ([], ["--json"]):
            r = zetrace("dump", *options, *more, "t.zetrace")
            self.assertEqual(r.stdout, "")
            self.assertSentence(r, 0, "t.zetrace", *words)

    def of(self, *functions):
        return [c["call"] for c in self.calls if c["function"] in functions]

    def test_sets(self):
        last = self.numbers[-1]
        for text, wanted in (("4", [4]), ("#4", [4]), ("3..5", [3, 4, 5]), ("3-5", [3, 4, 5]), ("#3..#5", [3, 4, 5]), ("..2", [1, 2]),
                             (f"{last - 1}..", [last - 1, last]), ("0-10/2", [2, 4, 6, 8, 10]), ("1-10/3", [1, 4, 7, 10]),
                             ("9,2,4..5", [2, 4, 5, 9]), ("2-9,4", [2, 3, 4, 5, 6, 7, 8, 9]), ("*", self.numbers),
                             ("/evict", self.of("zeContextEvictMemory")), ("1-14/submit", self.of("zeCommandQueueExecuteCommandLists")[:1]),
                             ("/submit", self.of("zeCommandQueueExecuteCommandLists")), ("/wait", self.of("zeCommandQueueSynchronize")),
                             ("/free,1", [1] + self.of("zeMemFree")), ("13-30/submit/5", [13, 18])):
            with self.subTest(text):
                self.assertEqual(self.shown(f"--calls={text}"), wanted)
        self.assertEqual(self.shown("--calls=3", "--calls=5"), [3, 5])

    def test_wide_sets_and_narrow_ones_inside(self):
        self.assertEqual(self.shown("--calls=1-40/20,2-3,5,30"), [1, 2, 3, 5, 21, 30])

    def test_what_was_printed_is_a_set(self):
        printed = zetrace("dump", "--function=zeMem*", "t.zetrace").stdout
        self.assertIn("\n    at main", printed)
        with open("calls", "w", encoding="utf-8") as f:
            f.write("# a remark\n\n" + printed + "1,2 and so on\n")
        self.assertEqual(self.shown("--calls=@calls"), [1, 2] + self.of("zeMemAllocDevice", "zeMemFree"))

    def test_no_sets(self):
        with open("bad", "w", encoding="utf-8") as f:
            f.write("4\nfour\n")
        with open("long", "w", encoding="utf-8") as f:
            f.write("4" * 70000 + "\n")
        for text, words in (("5..3", ["5..3"]), ("", ["''"]), ("..", [".."]), ("4,", ["''"]), ("x", ["'x'"]), ("0", ["'0'"]), ("-5", ["-5"]),
                            ("1-5/0", ["step"]), ("1-5/2/3", ["step"]), ("1-5/nope", ["submit", "nope"]), ("@gone", ["gone", "No such file"]),
                            ("@bad", ["four", "line 2 of bad"]), ("@long", ["too long"]), ("1-99999999999999999999", ["numbers"])):
            for command in (["dump"], ["graph"], ["trim", "-o", "o.zetrace"]):
                with self.subTest(text, command=command[0]):
                    self.assertSentence(zetrace(*command, f"--calls={text}", "t.zetrace"), 2, command[0], "--calls", *words)

    def test_submits_of_immediate_lists(self):
        self.record(app("o5_immediate_not_inorder"), options=["--schedule=eager"])
        self.calls = self.dump()
        immediate = [c["call"] for c in self.calls if c["function"].startswith("zeCommandListAppend")]
        self.assertTrue(immediate)
        self.assertEqual(self.shown("--calls=/submit"), immediate)

    def test_objects(self):
        for name in ("mem#1", "queue#1", "list#1", "context#1", "device#1"):
            found = self.shown(f"--object={name}")
            self.assertEqual(found, [c["call"] for c in self.calls if re.search(rf'"{name}[+"]', str(c).replace("'", '"'))], name)
            self.assertTrue(found)
        self.assertNotIn(self.of("zeCommandListCreate")[9], self.shown("--object=list#1")) # which is list#10

    def test_together(self):
        self.assertEqual(self.shown("--object=mem#2", "--function=zeMem*", "--thread=1"), self.shown("--calls=8,15"))
        self.none("--object=mem#2", "--function=zeInit", words=["no call", "all of these"])

    def test_what_is_not_there_is_named(self):
        self.none("--object=mem#99", words=["mem#99", "mem#2"])
        self.none("--object=image#1", words=["image#1", "nor any other image"])
        self.none("--thread=99", words=["thread 99", "T1"])
        self.none("--function=nope*", words=["nope*", "no function of Level Zero is"])
        self.none("--function=zeImage*", words=["zeImage*"])
        self.none("--pending", words=["every call of it returned"])
        self.none("--calls=900..", words=["900..", f"#{self.numbers[-1]}"])
        self.record(app("evict"), "good", options=["--schedule=eager"])
        self.none("--failed", words=["no call of it failed"])

    def test_one_of_two_is_not_there(self):
        r = zetrace("dump", "--function=zeInit", "--function=zeFoo", "--calls=1,900", "t.zetrace")
        self.assertEqual((r.returncode, len(r.stdout.splitlines()) > 0), (0, True))
        self.assertIn("zeFoo", r.stderr)
        self.assertIn("900", r.stderr)

    def test_no_objects(self):
        for text in ("mem", "mem#", "mem#0", "mem#x", "foo#1", "#1", "mem##1", ""):
            with self.subTest(text):
                self.assertSentence(zetrace("dump", f"--object={text}", "t.zetrace"), 2, "--object", "mem#2", f"'{text}'")

    def test_graph(self):
        r = zetrace("graph", "--format=json", "--calls=/submit", "t.zetrace")
        submits = self.of("zeCommandQueueExecuteCommandLists")
        self.assertEqual(r.returncode, 0)
        self.assertLessEqual(set(re.findall(r'"id":"(\d+)"', r.stdout)), set(map(str, submits)))
        r = zetrace("graph", "--format=json", "--calls=900", "t.zetrace")
        self.assertEqual((r.returncode, r.stdout), (0, '{"nodes":[],"edges":[],"conflicts":[]}\n'))
        self.assertIn("900", r.stderr)

    def test_trim(self):
        self.assertEqual(zetrace("trim", "t.zetrace", "-o", "s.zetrace", "--calls=/append,18").returncode, 0)
        kept = [c["call"] for c in self.dump("s.zetrace")]
        self.assertLessEqual({11, 18}, set(kept))
        self.assertSentence(zetrace("trim", "-f", "t.zetrace", "-o", "s.zetrace", "--calls=1,900"), 2, "'900'")


if __name__ == "__main__":
    unittest.main()

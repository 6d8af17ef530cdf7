# SPDX-License-Identifier: MIT
"""leaks: what was created and never destroyed; what went with its parent; destroys that failed."""
import json
import os
import signal
import unittest

import harness
from harness import app, zetrace


class Leaks(harness.Case):
    def leaky(self, *arguments, options=("--backtrace=*",), status=0):
        self.record(app("leaky"), *arguments, options=options)
        r = zetrace("leaks", "--json", "t.zetrace")
        self.assertEqual((r.returncode, r.stderr), (status, ""))
        return json.loads(r.stdout)

    def number(self, function, k=0):
        return [c["call"] for c in self.dump("t.zetrace", f"--function={function}")][k]

    def test_none(self):
        self.assertEqual(self.leaky("fixed"), {"objects": 0, "bytes": 0, "leaks": [], "with_parent": []})
        r = zetrace("leaks", "--all", "t.zetrace")
        self.assertEqual((r.returncode, r.stdout), (0, "t.zetrace: everything that was created was destroyed\n"))

    def test_some(self):
        found = self.leaky(status=0)
        self.assertEqual(found["leaks"], [], "its contexts were destroyed")
        groups = {g["kind"]: g for g in found["with_parent"] if g["kind"] != "mem"}
        self.assertEqual(set(groups), {"list", "event_pool", "event", "queue", "fence"})
        self.assertEqual((groups["list"]["count"], len(groups["list"]["calls"])), (11, 11))
        self.assertEqual(groups["list"]["objects"][0], "list#2")
        self.assertRegex(groups["list"]["backtrace"][0], r"^list_new common.h:\d+")
        self.assertEqual({(g["parent"], g["ended"]) for g in groups.values()},
                         {("context#1", self.number("zeContextDestroy", 1)), ("context#2", self.number("zeContextDestroy"))})
        self.assertEqual(groups["fence"]["parent"], "context#2", "by its queue")
        self.assertEqual(groups["event"]["parent"], "context#1", "by its pool")
        text = zetrace("leaks", "t.zetrace")
        self.assertEqual(text.returncode, 0)
        self.assertEqual(zetrace("leaks", "--all", "t.zetrace").returncode, 1)
        self.assertIn("or ended with its parent", text.stdout)
        self.assertIn("and 3 more, with context#1 in #", text.stdout)

    def test_refused(self):
        memory = {g["objects"][0]: g for g in self.leaky()["with_parent"] if g["kind"] == "mem"}
        self.assertEqual({name: (g["bytes"], g.get("refused")) for name, g in memory.items()},
                         {"mem#2": (8192, self.number("zeMemFree", 1)), "mem#3": (100, None)})
        self.assertIn("was to destroy it, and failed", zetrace("leaks", "t.zetrace").stdout)

    def test_refused_and_destroyed_after_all(self):
        kinds = [g["kind"] for g in self.leaky("parents")["with_parent"]]
        self.assertEqual(sorted(kinds), ["fence", "mem", "queue"])

    def test_leaks_by_place(self):
        self.record(app("evict"), options=["--schedule=lazy", "--backtrace=*"], status=1)
        r = zetrace("leaks", "--json", "t.zetrace")
        self.assertEqual((r.returncode, r.stderr), (1, ""))
        found = json.loads(r.stdout)
        self.assertEqual([g["count"] for g in found["leaks"] if g["kind"] == "list"], [1, 10])
        self.assertEqual((found["objects"], found["bytes"], found["with_parent"]), (15, 4096, []))
        text = zetrace("leaks", "t.zetrace").stdout
        self.assertIn("10 list, zeCommandListCreate: #16 #19", text)
        self.assertRegex(text, r"\n      at list_new common.h:\d+, inlined into main evict.c:\d+\n")
        self.assertNotIn("libc_start", text)
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        found = json.loads(zetrace("leaks", "--json", "t.zetrace").stdout)
        self.assertEqual([g["count"] for g in found["leaks"] if g["kind"] == "list"], [11], "without a backtrace there is one place")

    def test_clients_are_tidy(self):
        self.record(app("client_linked"))
        self.assertEqual(zetrace("leaks", "t.zetrace").returncode, 0)

    def test_a_program_that_was_killed(self):
        r = zetrace("record", "-q", "-f", "-o", "t.zetrace", "--driver=soft", "--", app("crasher"))
        self.assertEqual(r.returncode, 128 + signal.SIGSEGV)
        r = zetrace("leaks", "t.zetrace")
        self.assertIn("signal 11", r.stderr)
        self.assertEqual(r.returncode, 1)

    def test_damaged(self):
        self.leaky()
        with open("t.zetrace", "rb") as f:
            whole = f.read()
        for size in range(0, len(whole), len(whole) // 40):
            with open("d.zetrace", "wb") as f:
                f.write(whole[:size])
            self.assertIn(zetrace("leaks", "d.zetrace").returncode, (0, 1, 3), size)
        self.assertSentence(zetrace("leaks", "gone.zetrace"), 2, "gone.zetrace")
        self.assertSentence(zetrace("leaks"), 2, "one trace")
        self.assertTrue(os.path.exists("t.zetrace"))


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT
"""diff: recordings of one program are the same whatever varies; what is different is named.   diff_test.py [--all]"""
import json
import os
import re
import subprocess
import sys
import unittest

import harness
from harness import APPS, BUILD, LOADER, app, run, zetrace

ALL = "--all" in sys.argv
EDIT = os.path.join(BUILD, "bin", "trace_edit")
COPY, EXECUTE, SYNC = "zeCommandListAppendMemoryCopy", "zeCommandQueueExecuteCommandLists", "zeCommandQueueSynchronize"

# Programs that make the same calls each time. Not: spinner, which goes on until it is killed; noze, which makes none; crasher, which dies
# in the driver.
PROGRAMS = [("evict", "good"), ("evict",), ("interleave",), ("o1_evict_in_flight",), ("o2_host_staging_lifetime",), ("o3_event_rerecord",),
            ("o4_resubmit_stale_event",), ("o5_immediate_not_inorder",), ("o6_destroy_order",), ("o7_wait_never_submitted",),
            ("o8_short_timeout_ignored",), ("client_linked",), ("client_dlsym", LOADER), ("client_static", LOADER), ("client_tables", LOADER),
            ("client_ctypes.py",), ("two_drivers",), ("threads", "4", "500"), ("token", "200"), ("nested",), ("extension",), ("forker", "2"),
            ("execer",), ("hostmem",), ("hostmem", "shared"), ("mixed", "50"), ("exitpath",), ("odd",), ("s1_two_threads_one_list",),
            ("s2_one_pool_two_threads",), ("s3_fork_after_init",), ("s6_close_and_submit_twice",), ("s7_reset_counter_event",),
            ("s9_no_events_between_lists",), ("s10_free_before_submit",), ("s11_copy_past_end",), ("s12_fence_reset_in_flight",),
            ("s13_pool_before_events",), ("s14_query_ignored",)]
FEW = {"evict", "client_ctypes.py", "threads", "token", "nested", "two_drivers", "hostmem", "mixed", "s2_one_pool_two_threads"}


def modes(program):
    r = run(app(program))
    return re.findall(r"^ *([a-z0-9-]+)\b", r.stdout + r.stderr, re.M) or (r.stdout + r.stderr).split()


def diff(*args, **kwargs):
    return zetrace("diff", *args, **kwargs)


class Diff(harness.Case):
    def compare(self, a, b, *options, status=1):
        r = diff("--json", *options, a, b)
        self.assertEqual(r.returncode, status, r.stdout[:2000] + r.stderr)
        return json.loads(r.stdout)

    def programs(self):
        if not ALL:
            return [p for p in PROGRAMS if p[0] in FEW]
        with_modes = [(p, mode) for p in ("r_mistakes", "r_edges", "bait", "hostwrites") for mode in modes(p)]
        return PROGRAMS + with_modes


class Same(Diff):
    def test_recordings_of_one_program(self):
        for program in self.programs():
            for schedule in ("eager", "lazy") if ALL else ("eager",):
                for i in range(21 if ALL else 3):
                    out = "a.zetrace" if i == 0 else "b.zetrace"
                    zetrace("record", "-q", "-f", "-o", out, "--driver=soft", f"--schedule={schedule}", "--", app(program[0]), *program[1:])
                    if i == 0:
                        continue
                    r = diff("a.zetrace", "b.zetrace")
                    self.assertEqual((r.returncode, r.stdout), (0, ""), f"{program} on {schedule}: {r.stdout[:3000]}{r.stderr}")

    def test_without_randomisation_and_with(self):
        self.record(app("mixed"), 20, out="a.zetrace")
        r = run("setarch", "-R", harness.ZETRACE, "record", "-q", "-o", "b.zetrace", "--driver=soft", "--", app("mixed"), 20)
        if r.returncode != 0:
            self.skipTest("randomisation of addresses can't be turned off here")
        self.assertEqual(diff("a.zetrace", "b.zetrace").returncode, 0)

    def test_itself(self):
        self.record(app("client_linked"))
        found = self.compare("t.zetrace", "t.zetrace", "--by=order", status=0)
        self.assertTrue(found["same"])
        self.assertEqual(found["equal"], found["calls"][0])
        with open("t.zetrace", "rb") as f:
            r = subprocess.run([harness.ZETRACE, "diff", "-", "t.zetrace"], stdin=f, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((r.returncode, r.stdout), (0, b""))


class Evict(Diff):
    def setUp(self):
        super().setUp()
        self.record(app("evict"), "good", out="good.zetrace", options=["--schedule=eager"])
        self.record(app("evict"), out="bad.zetrace", options=["--schedule=lazy"], status=1)

    def test_names_the_missing_wait(self):
        found = self.compare("good.zetrace", "bad.zetrace")
        self.assertEqual((found["first"]["op"], found["first"]["function"], found["first"]["b"]), ("removed", SYNC, None))
        changed = [r for r in found["results"] if r["function"] == EXECUTE]
        self.assertEqual([(r["was"], r["is"]) for r in changed], [("ZE_RESULT_SUCCESS", "ZE_RESULT_ERROR_UNKNOWN")])
        r = diff("good.zetrace", "bad.zetrace")
        lines = r.stdout.splitlines()
        self.assertIn(f"they part at    #14 of good.zetrace: {SYNC}", r.stdout)
        self.assertTrue(next(line for line in lines if line.startswith("- ")).startswith(f"- #14  T1  {SYNC}"), r.stdout)
        self.assertIn("      result: ZE_RESULT_SUCCESS -> ZE_RESULT_ERROR_UNKNOWN", lines)

    def test_one_program_on_two_schedules(self):
        self.record(app("evict"), out="eager.zetrace", options=["--schedule=eager"])
        found = self.compare("eager.zetrace", "bad.zetrace")
        self.assertEqual(found["only_a"] + found["only_b"], 0)
        self.assertEqual({r["is"] for r in found["results"]}, {"ZE_RESULT_ERROR_UNKNOWN", "ZE_RESULT_ERROR_DEVICE_LOST"})
        self.compare("eager.zetrace", "bad.zetrace", "--ignore=results", status=0)
        self.compare("eager.zetrace", "bad.zetrace", f"--ignore={EXECUTE},*Synchronize", status=0)

    def test_brief_and_context(self):
        r = diff("-q", "good.zetrace", "bad.zetrace")
        self.assertEqual((r.returncode, r.stdout, r.stderr), (1, "good.zetrace and bad.zetrace differ\n", ""))
        few, more = (diff("-U", n, "good.zetrace", "bad.zetrace").stdout for n in (0, 5))
        self.assertFalse([line for line in few.splitlines() if line.startswith("  #")])
        self.assertIn("@@ -14,1 +13,0 @@ T1 T1", few)
        self.assertLess(len(few), len(more))


class Edits(Diff):
    def test_script_makes_one_of_the_other(self):
        self.record(app("mixed"), 60, out="a.zetrace")
        a = self.dump("a.zetrace")
        for seed in range(0, 200 if ALL else 12):
            edits = 1 + seed % 9
            r = run(EDIT, "a.zetrace", "b.zetrace", seed, edits)
            self.assertEqual(r.returncode, 0, r.stderr)
            b = self.dump("b.zetrace")
            found = self.compare("a.zetrace", "b.zetrace", status=1 if int(r.stdout) else 0)
            [section] = found["script"]
            made, at, cost = [], 0, 0
            for op, i, j, n in section["steps"]:
                self.assertEqual((i, j), (at, len(made)))
                if op != "added":
                    at += n
                if op == "equal":
                    made += [c["function"] for c in a[i:i + n]]
                    self.assertEqual([(c["function"], c["result"]) for c in a[i:i + n]], [(c["function"], c["result"]) for c in b[j:j + n]])
                elif op != "removed":
                    made += [c["function"] for c in b[j:j + n]]
                cost += {"equal": 0, "changed": 2}.get(op, 1) * n
            self.assertEqual((at, made), (len(a), [c["function"] for c in b]))
            if seed % 2 == 0:  # no object is missing later on
                self.assertLessEqual(cost, 1.1 * int(r.stdout) + 1, f"seed {seed}: {r.stdout}")
            for d in found["differences"]:
                if d["op"] == "changed":
                    self.assertTrue(d["details"], d)


class Contents(Diff):
    def details(self, *options):
        r = diff("--json", *options, "a.zetrace", "b.zetrace")
        return [d for x in json.loads(r.stdout)["differences"] for d in x.get("details", []) if d["what"].startswith("contents of")]

    def test_memory(self):
        zetrace("record", "-q", "-o", "a.zetrace", "--driver=soft", "--schedule=eager", "--", app("hostwrites"), "partly")
        zetrace("record", "-q", "-o", "b.zetrace", "--driver=soft", "--schedule=lazy", "--", app("hostwrites"), "partly", "broken")
        found, _ = self.details()  # each of two waits has read it back
        self.assertRegex(found["what"], r"^contents of mem#6\+0, 5192 of 8192 bytes differ$")
        self.assertEqual((found["a"], found["b"]), ("[3000] 0x07", "[3000] 0x02"))
        found, _ = self.details("--as=u16")
        self.assertEqual((found["a"], found["b"]), ("[1500] 1799", "[1500] 514"))
        self.assertIn("2596 of 4096 u16 differ", found["what"])
        self.assertEqual(len(self.details("--as=u8", "--tolerance=0.5")), 2)
        self.assertEqual(self.details("--as=u8", "--tolerance=0.9"), [])
        self.assertEqual(self.details("--ignore=memory"), [])

    def test_times_in_memory_are_left_out(self):
        for name in "a", "b":
            self.record(app("r_mistakes"), "timestamps-too-early", out=f"{name}.zetrace", options=["--schedule=eager"])
        self.compare("a.zetrace", "b.zetrace", status=0)


class Order(Diff):
    """Each thread does the same; among the threads the calls lie otherwise."""

    def traces(self, what):
        r = run(os.path.join(BUILD, "bin", "trace_interleaved"), what, "a.zetrace", "b.zetrace", env={"TEST_SOFT": harness.DRIVER})
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_threads_by_themselves(self):
        for what in "harmless", "submits":
            self.traces(what)
            r = diff("a.zetrace", "b.zetrace")
            self.assertEqual((r.returncode, r.stdout), (0, ""))
            self.assertIn("--by=order", r.stderr)
            self.assertTrue(self.compare("a.zetrace", "b.zetrace", status=0)["interleaved"])

    def test_threads_go_by_what_they_do(self):
        """Both workers make the same calls: only the objects, which a third thread has made for them, tell which is which."""
        self.traces("numbers")
        found = self.compare("a.zetrace", "b.zetrace", status=0)
        self.assertEqual([s["threads"] for s in found["script"]], [[1, 1], [2, 3], [3, 2]])
        self.assertTrue(found["same_by_thread"])

    def test_order_only(self):
        for what, changed in ("harmless", False), ("submits", True):
            self.traces(what)
            found = self.compare("a.zetrace", "b.zetrace", "--by=order")
            self.assertEqual((found["order_only"], found["edges_changed"]), (True, changed), what)
            self.compare("a.zetrace", "b.zetrace", "--by=order", "--ignore=order", status=0)
            text = diff("--by=order", "a.zetrace", "b.zetrace").stdout
            self.assertRegex(text, r"command #27@1 is over before call #26 begins in every order of b\.zetrace, not of a\.zetrace" if changed
                             else "what must come before what is the same too")

    def test_more_than_order(self):
        self.record(app("threads"), 3, 40, out="a.zetrace")
        self.record(app("threads"), 3, 41, out="b.zetrace")
        found = self.compare("a.zetrace", "b.zetrace", "--by=order")
        self.assertFalse(found["order_only"])
        self.assertIsNone(found["edges_changed"])


class Replay(Diff):
    def test_is_the_same(self):
        for program in (("evict", "good"), ("evict",), ("hostmem",), ("threads", 3, 100), ("bait", "polled"), ("o8_short_timeout_ignored",)):
            zetrace("record", "-q", "-f", "-o", "t.zetrace", "--driver=soft", "--schedule=lazy", "--", app(program[0]), *program[1:])
            r = diff("--replay", "t.zetrace")
            self.assertEqual((r.returncode, r.stdout), (0, ""), f"{program}: {r.stdout}{r.stderr}")

    def test_a_program_that_is_not(self):
        self.record(app("nested"))  # calls in a signal handler, within another call, are not made again
        r = diff("--replay", "t.zetrace", env={"TMPDIR": os.getcwd()})
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("+++ its replay", r.stdout)
        self.assertEqual([f for f in os.listdir(".") if f != "t.zetrace"], [])
        self.assertTrue(self.compare("--replay", "t.zetrace")["only_a"])

    def test_sentences(self):
        self.record(app("evict_good"))
        self.assertSentence(diff("--replay", "t.zetrace", "t.zetrace"), 2, "one trace", "2 operands")
        self.assertSentence(diff("--replay", "-"), 2, "one trace")
        self.assertSentence(diff("--replay", "t.zetrace", env={"TMPDIR": "/nowhere"}), 2, "/nowhere")


class BadInput(Diff):
    def test_sentences(self):
        self.record(app("evict_good"))
        self.assertSentence(diff("t.zetrace"), 2, "two traces", "1 operand;")
        self.assertSentence(diff("t.zetrace", "missing.zetrace"), 2, "missing.zetrace")
        self.assertSentence(diff("-", "-"), 2, "standard input")
        self.assertSentence(diff("--by=both", "t.zetrace", "t.zetrace"), 2, "both")
        self.assertSentence(diff("--ignore=,", "t.zetrace", "t.zetrace"), 2, "empty")
        self.assertSentence(diff("--as=f33", "t.zetrace", "t.zetrace"), 2, "f33")
        self.assertSentence(diff("--tolerance=4ulp", "t.zetrace", "t.zetrace"), 2, "--as")
        self.assertSentence(diff("--tolerance=-1", "--as=f32", "t.zetrace", "t.zetrace"), 2, "-1")
        self.assertSentence(diff("-U", "x", "t.zetrace", "t.zetrace"), 2, "'x'")
        with open("foreign", "wb") as f:
            f.write(b"no trace" * 20)
        open("empty", "wb").close()
        self.assertSentence(diff("foreign", "t.zetrace"), 2, "not a zetrace trace")
        self.assertSentence(diff("t.zetrace", "empty"), 2, "empty")
        with open("t.zetrace", "rb") as f:
            data = bytearray(f.read())
        data[16] = 9
        with open("newer", "wb") as f:
            f.write(data)
        self.assertSentence(diff("t.zetrace", "newer"), 0, "format 9")  # what can be made out is the same

    def test_cut(self):
        self.record(app("mixed"), 2000)
        with open("t.zetrace", "rb") as f:
            data = f.read()
        with open("cut.zetrace", "wb") as f:
            f.write(data[:len(data) * 2 // 3])
        r = diff("--json", "--brief", "t.zetrace", "cut.zetrace")
        found = json.loads(r.stdout)
        self.assertEqual((r.returncode, found["only_b"], found["changed"]), (1, 0, 0), r.stdout)
        self.assertGreater(found["only_a"], 0)
        self.assertSentence(r, 1, "cut.zetrace")


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=[a for a in sys.argv if a != "--all"])

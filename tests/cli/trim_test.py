# SPDX-License-Identifier: MIT
"""trim: a smaller trace that replays by itself, under the numbers of the larger one; the smallest that still fails."""
import glob
import json
import os
import re
import unittest

import harness
from harness import app, zetrace

COPY, EXECUTE, EVICT, FREE = ("zeCommandListAppendMemoryCopy", "zeCommandQueueExecuteCommandLists", "zeContextEvictMemory", "zeMemFree")
CRAFT = os.path.join(harness.BUILD, "bin", "order", "craft")
KERNELS = os.path.join(harness.BUILD, "lib", "tests", "libze_soft_kernels.so")
ARGUMENTS = {**harness.LOADER_CLIENTS, "mixed": ["200"]}
NEED_ALL = {"o2_host_staging_lifetime", "o4_resubmit_stale_event"}  # their last copy hangs on every call
LEFT_OUT = {"spinner", "two_drivers", "crasher", "forker", "execer", "threads", "token", "noze"}  # no copies, or no end
PROGRAMS = ["o1_evict_in_flight", "o2_host_staging_lifetime", "o3_event_rerecord", "o4_resubmit_stale_event", "o5_immediate_not_inorder",
            "o6_destroy_order", "s9_no_events_between_lists", "s12_fence_reset_in_flight", "hostmem", "evict"]


class Trim(harness.Case):
    def trim(self, *options, status=0, trace="t.zetrace", out="s.zetrace"):
        r = zetrace("trim", "-f", trace, "-o", out, *options)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return r

    def evict(self, *arguments, schedule="lazy", status=1, options=()):
        self.record(app("evict"), *arguments, options=[f"--schedule={schedule}", *options], status=status)
        self.calls = self.dump()
        self.failed = next((c["call"] for c in self.calls if c["result"] == "ZE_RESULT_ERROR_UNKNOWN"), None)

    def number(self, function, calls=None):
        return next(c["call"] for c in calls or self.calls if c["function"] == function)

    def kept(self, trace="s.zetrace"):
        return {c["call"]: c["function"] for c in self.dump(trace)}

    def replays(self, trace="s.zetrace"):
        r = zetrace("replay", "--json", trace)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        return json.loads(r.stdout)


class Keeping(Trim):
    def test_numbers_and_calls_stay(self):
        self.evict()
        self.trim(f"--needs=#{self.failed}")
        whole = {c["call"]: c for c in self.calls}
        for c in self.dump("s.zetrace"):
            mine = whole[c["call"]]
            for field in ("function", "result", "thread", "time_ns", "duration_ns"):
                self.assertEqual(c.get(field), mine.get(field))
        self.assertEqual(self.replays()["failure"]["call"], self.failed)
        self.assertLess(os.path.getsize("s.zetrace"), os.path.getsize("t.zetrace"))

    def test_needs_of_a_command(self):
        self.evict("good", schedule="eager", status=0)
        self.trim(f"--needs=#{self.number(COPY)}")
        kept = self.kept()
        self.assertEqual([f for f in kept.values() if f in (EXECUTE, COPY, "zeCommandQueueSynchronize", "zeCommandListClose")],
                         [COPY, "zeCommandListClose", EXECUTE, "zeCommandQueueSynchronize"])
        self.assertEqual(list(kept.values()).count("zeMemAllocDevice"), 2)
        self.assertNotIn("zeEventPoolCreate", kept.values())
        self.assertNotIn(EVICT, kept.values())

    def test_an_innocent_call_brings_what_may_be_to_blame(self):
        self.evict()
        self.trim(f"--calls={self.failed}")
        self.assertLessEqual({COPY, EVICT, FREE}, set(self.kept().values()))

    def test_calls_of_a_range(self):
        self.evict("good", schedule="eager", status=0)
        first = self.number(EXECUTE)
        self.trim(f"--calls={first}..{first + 2}")
        kept = self.kept()
        self.assertEqual([n for n in kept if n >= first], [first, first + 1, first + 2])
        self.assertIn(COPY, kept.values())

    def test_object(self):
        self.evict("good", schedule="eager", status=0)
        self.trim("--object=mem#1")
        kept = self.kept()
        self.assertEqual(list(kept.values()).count(EXECUTE), 1)
        self.assertIn("zeCommandQueueSynchronize", kept.values())
        self.trim("--object=mem#2")
        self.assertLessEqual({EVICT, FREE}, set(self.kept().values()))

    def test_without_data(self):
        """A chain of copies, each from what the one before wrote."""
        self.record(app("mixed"), "200", options=["--schedule=eager"])
        last = [c["call"] for c in self.dump() if c["function"] == COPY][-1]
        self.trim(f"--needs=#{last}")
        self.assertGreater(len(self.kept()), 500)
        self.trim(f"--needs=#{last}", "--no-data")
        self.assertLess(len(self.kept()), 60)
        self.assertIn(COPY, self.kept().values())

    def test_of_a_trimmed_one(self):
        self.evict()
        self.trim(f"--needs=#{self.failed}")
        self.trim(f"--needs=#{self.number(COPY)}", trace="s.zetrace", out="u.zetrace")
        self.assertLess(set(self.kept("u.zetrace")), set(self.kept()))
        self.assertEqual(zetrace("check", "-h").returncode, 0)
        for command in ("info", "check", "replay", "graph"):
            self.assertIn(zetrace(command, "u.zetrace").returncode, (0, 1), command)

    def test_other_tools_say_the_same(self):
        self.evict(options=["--backtrace=*"])
        self.trim(f"--needs=#{self.failed}")
        whole, part = (json.loads(zetrace("isolate", "--json", t).stdout) for t in ("t.zetrace", "s.zetrace"))
        for field in ("verdict", "early", "late", "shows_at"):
            self.assertEqual(whole[field], part[field])
        self.assertIn("at main evict.c:", zetrace("dump", "s.zetrace").stdout)
        self.assertEqual(self.info("s.zetrace")["calls"], len(self.kept()))
        self.assertTrue(self.info("s.zetrace")["complete"])

    def test_contents_go_along(self):
        """What a host buffer held at a call that is left out is there for the one that is kept."""
        self.record(app("hostmem"))
        for c in self.dump():
            if c["function"] in (EXECUTE, "zeCommandQueueSynchronize", COPY):
                with self.subTest(c["call"]):
                    self.trim(f"--needs=#{c['call']}")

    def test_every_call_of_many_programs(self):
        for program in PROGRAMS:
            for arguments in ([], ["fixed"]):
                r = zetrace("record", "-q", "-f", "-o", "t.zetrace", "--driver=soft", "--schedule=eager", "--", app(program), *arguments)
                self.assertIn(r.returncode, (0, 1), r.stderr)
                numbers = [c["call"] for c in self.dump()]
                for n in numbers[::7]:
                    with self.subTest(program, arguments=arguments, needs=n):
                        self.trim(f"--needs=#{n}")
                with self.subTest(program, arguments=arguments):
                    self.trim(f"--calls={numbers[len(numbers) // 2]}..")
                    self.trim("--calls=1..")
                    self.assertEqual(list(self.kept()), numbers)


    def test_lists_that_wait_for_each_other(self):
        """Several queues, whose lists each wait for a part of another."""
        self.record(os.path.join(harness.BUILD, "bin", "order", "random"), "1", "missing-wait", "intact", options=["--schedule=eager"])
        for n in [c["call"] for c in self.dump()][::100]:
            with self.subTest(n):
                self.trim(f"--needs=#{n}")

    def test_last_copy_of_every_program(self):
        """Whatever came before: the copy replays by itself, as it was, from fewer calls."""
        copied = set()
        for name in sorted(os.listdir(harness.APPS)):
            if name in LEFT_OUT or not os.access(app(name), os.X_OK) or name.endswith(".py"):
                continue
            for arguments in (["fixed"], []) if name in PROGRAMS else (ARGUMENTS.get(name, []),):
                for old in glob.glob("t.zetrace*"):
                    os.unlink(old)
                r = zetrace("record", "-q", "-f", "-o", "t.zetrace", "--driver=soft", "--schedule=eager", "--", app(name), *arguments)
                if r.returncode not in (0, 1) or not os.path.exists("t.zetrace"):
                    continue
                calls = self.dump()
                copies = [c["call"] for c in calls if c["function"] == COPY and c["result"] == "ZE_RESULT_SUCCESS"]
                if not copies:
                    continue
                copied.add(name)
                with self.subTest(name, arguments=arguments):
                    self.trim(f"--needs=#{copies[-1]}")
                    kept = self.kept()
                    self.assertIn(copies[-1], kept)
                    self.assertTrue(len(kept) < len(calls) or name in NEED_ALL, "nothing was left out")
                    self.assertLess(os.path.getsize("s.zetrace"), os.path.getsize("t.zetrace"))
                    if r.returncode == 0:  # where the bug shows, a fault may be left whose calls are not: trim has looked
                        self.replays()
        self.assertLessEqual({"o1_evict_in_flight", "o4_resubmit_stale_event", "s9_no_events_between_lists", "hostmem", "evict", "mixed", "client_linked",
                              "client_static"}, copied)

    def test_queue(self):
        self.record(app("o4_resubmit_stale_event"), "fixed", options=["--schedule=eager"])
        self.calls = self.dump()
        self.trim("--queue=queue#1")
        submits = [c for c in self.dump("s.zetrace") if c["function"] == EXECUTE]
        mine = [c["call"] for c in self.calls if c["function"] == EXECUTE and c["args"]["hCommandQueue"] == "queue#1"]
        self.assertLessEqual(set(mine), {c["call"] for c in submits})
        self.assertEqual([c["call"] for c in self.calls if c["function"] == "zeCommandQueueSynchronize" and c["args"]["hCommandQueue"] == "queue#1"],
                         [n for n, f in self.kept().items() if f == "zeCommandQueueSynchronize" and n in
                          {c["call"] for c in self.calls if c["args"].get("hCommandQueue") == "queue#1"}])
        self.record(app("interleave"), options=["--schedule=eager"])
        self.calls = self.dump()
        self.trim("--queue=list#2")
        fills = [c["args"]["hCommandList"] for c in self.calls if c["call"] in self.kept() and c["function"] == "zeCommandListAppendMemoryFill"]
        self.assertEqual((fills.count("list#2"), len(fills) < 12), (4, True))

    def test_an_object_whose_calls_are_kept_already(self):
        self.evict("good", schedule="eager", status=0)
        self.trim("--calls=1..", "--object=mem#1", "--queue=queue#1")

    @unittest.skipUnless(os.path.exists(KERNELS), "no driver with kernels")
    def test_kernel(self):
        r = zetrace("record", "-q", "-f", "-o", "t.zetrace", f"--driver={KERNELS}", "--", app("k_baits"), "argument-changed")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("hKernel=kernel#1(work)", zetrace("dump", "t.zetrace").stdout)
        self.trim("--kernel=w*k", f"--driver={KERNELS}")
        launches = [f for f in self.kept().values() if f == "zeCommandListAppendLaunchKernel"]
        self.assertEqual(launches, [c["function"] for c in self.dump() if c["function"] == "zeCommandListAppendLaunchKernel"])
        self.assertIn("zeKernelSetArgumentValue", self.kept().values())
        self.assertIn("zeModuleCreate", self.kept().values())

    def test_names_its_parent(self):
        self.evict()
        self.trim(f"--needs=#{self.failed}")
        whole, part = self.info(), self.info("s.zetrace")
        self.assertRegex(whole["uuid"], r"^[0-9a-f]{32}$")
        self.assertEqual((whole["parent_uuid"], part["parent_uuid"]), (None, whole["uuid"]))
        self.assertNotEqual(part["uuid"], whole["uuid"])


class Minimise(Trim):
    def test_not_one_call_less(self):
        """Each of the calls that are left, taken out of the file: it does not fail as recorded any more."""
        for program, schedule in (("evict", "lazy"), ("s10_free_before_submit", "eager")):
            r = zetrace("record", "-q", "-f", "-o", "t.zetrace", "--driver=soft", f"--schedule={schedule}", "--", app(program))
            self.assertIn(r.returncode, (0, 1), r.stderr)
            self.trim("--minimise")
            failure = self.replays()["failure"]
            kept = list(self.kept())
            self.assertIsNotNone(failure)
            calls = self.dump("s.zetrace")
            given = {c["call"]: re.findall(r"\w+#\d+", json.dumps(c.get("out", {}))) for c in calls}
            for n in kept:
                if n <= 2:
                    continue  # zeInit, which stays
                if any(re.search(rf"\b{o}\b", json.dumps(c["args"])) for o in given[n] for c in calls):
                    continue  # with it goes what has its object; minimising once more tries that
                with self.subTest(program, without=n):
                    r = harness.run(CRAFT, "s.zetrace", "u.zetrace", f"{n}-{n}")
                    self.assertEqual(r.returncode, 0, r.stderr)
                    r = zetrace("replay", "--json", "--timeout=1s", "u.zetrace")
                    self.assertFalse(r.returncode == 0 and json.loads(r.stdout)["failure"] == failure, r.stdout)
            self.trim("--minimise", trace="s.zetrace", out="v.zetrace")
            self.assertEqual(list(self.kept("v.zetrace")), kept)

    def test_evict(self):
        self.evict()
        r = self.trim("--minimise")
        kept = self.kept()
        self.assertEqual([f for f in kept.values() if f in (COPY, EXECUTE, "zeCommandQueueSynchronize")], [COPY, EXECUTE, EXECUTE])
        self.assertEqual(len({EVICT, FREE} & set(kept.values())), 1)
        self.assertNotIn("zeEventPoolCreate", kept.values())
        self.assertEqual(self.replays()["failure"]["call"], self.failed)
        self.assertRegex(r.stdout, r"^s.zetrace: \d+ of \d+ calls, after \d+ replays\n")
        self.assertEqual(sorted(glob.glob("*")), ["s.zetrace", "t.zetrace"])
        self.assertEqual(os.stat("s.zetrace").st_mode & 0o777, 0o600)

    def test_within_what_is_asked_for(self):
        self.evict()
        self.trim("--minimise", f"--needs=#{self.failed}")
        self.assertLess(len(self.kept()), 18)

    def test_budget(self):
        self.evict()
        r = self.trim("--minimise", "--budget=3")
        self.assertIn("after 3 replays; it was ended early", r.stdout)
        self.assertEqual(self.replays()["failure"]["call"], self.failed)

    def test_of_a_good_run(self):
        self.evict("good", schedule="eager", status=0)
        self.assertSentence(zetrace("trim", "--minimise", "-o", "s.zetrace", "t.zetrace"), 2, "no call of it failed")
        self.assertFalse(os.path.exists("s.zetrace"))


class Usage(Trim):
    def test_mistakes(self):
        self.evict()
        for options, word in (([], "-o OUT"), (["-o", "s.zetrace"], "--calls"), (["-o", "s.zetrace", "--needs=#9999"], "no call #9999"),
                              (["-o", "s.zetrace", "--calls=9999.."], "9999"), (["-o", "s.zetrace", "--object=mem#77"], "mem#77"),
                              (["-o", "s.zetrace", "--queue=queue#7"], "queue#7"), (["-o", "s.zetrace", "--queue=mem#1"], "--queue wants a queue"),
                              (["-o", "s.zetrace", "--kernel=saxpy"], "name matches 'saxpy'"),
                              (["-o", "s.zetrace", "--needs=x"], "--needs"), (["-o", "t.zetrace", "--calls=1..2"], "the trace t.zetrace itself"),
                              (["-o", "s.zetrace", "--calls=1", "--budget=0"], "--budget"), (["more", "-o", "s.zetrace", "--calls=1"], "2 operands")):
            with self.subTest(options):
                self.assertSentence(zetrace("trim", "t.zetrace", *options), 2, word)
                self.assertFalse(os.path.exists("s.zetrace"))
        with open("foreign", "w", encoding="utf-8") as f:
            f.write("not a trace\n" * 10)
        self.assertSentence(zetrace("trim", "foreign", "-o", "s.zetrace", "--calls=1"), 3, "not a zetrace trace")
        self.assertSentence(zetrace("trim", "t.zetrace", "-o", "no/s.zetrace", "--calls=1.."), 125, "no/s.zetrace")

    def test_no_verify(self):
        self.evict()
        r = self.trim("--no-verify", f"--needs=#{self.failed}")
        self.assertEqual(len(r.stdout.splitlines()), 1)
        self.assertEqual(self.trim("-q", f"--needs=#{self.failed}").stdout, "")

    def test_damaged(self):
        """Cut anywhere: what can be read is trimmed, or one sentence says why not."""
        self.evict()
        with open("t.zetrace", "rb") as f:
            whole = f.read()
        for n in range(41, len(whole), len(whole) // 60):
            with open("cut.zetrace", "wb") as f:
                f.write(whole[:n])
            r = zetrace("trim", "-f", "--no-verify", "cut.zetrace", "-o", "s.zetrace", "--calls=1..")
            self.assertIn(r.returncode, (0, 3, 2), r.stderr)
            self.assertTrue(r.stderr.startswith("zetrace: "), r.stderr)


if __name__ == "__main__":
    unittest.main()

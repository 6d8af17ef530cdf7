# SPDX-License-Identifier: MIT
"""replay --inject and --order: cures, breaks, and what can't be had."""
import itertools
import json
import random
import sys
import unittest

import harness
from harness import app, zetrace

SCHEDULES = ["async", "eager", "lazy", "seed:3"]
EVERY_SCHEDULE = ["async", "eager", "lazy", *(f"seed:{n}" for n in range(1, 6))]
KNOBS = {"ZE_SOFT_ENGINES": ("independent", "shared", "intel"), "ZE_SOFT_APPEND": ("return", "block"), "ZE_SOFT_FREE": ("fault", "block", "reuse"),
         "ZE_SOFT_FAULT": ("ban", "abort", "scratch"), "ZE_SOFT_ERRORS": ("submit", "sync")}
HUNDRED = "--hundred" in sys.argv


class Inject(harness.Case):
    def replay(self, *options):
        r = zetrace("replay", "--json", *options, "t.zetrace")
        self.assertIn(r.returncode, (0, 1), r.stdout + r.stderr)
        return json.loads(r.stdout)

    def refused(self, *options):
        r = zetrace("replay", *options, "t.zetrace")
        self.assertEqual(r.returncode, 2, r.stdout + r.stderr)
        self.assertEqual(r.stdout, "")
        self.assertEqual(len(r.stderr.splitlines()), 1, r.stderr)
        return r.stderr

    def evict(self, schedule, status):
        self.record(app("evict"), options=["-f", f"--schedule={schedule}"], status=status)
        calls = {}
        for c in self.dump():
            calls.setdefault(c["function"], c["call"])
        self.copy, self.submit, self.taken = (calls[f] for f in ("zeCommandListAppendMemoryCopy", "zeCommandQueueExecuteCommandLists", "zeContextEvictMemory"))
        self.last = max(c["call"] for c in self.dump())

    def test_sync_cures(self):
        self.evict("lazy", 1)
        for schedule in SCHEDULES:
            for point in ("sync@before:zeContextEvictMemory", f"sync(#{self.copy})@before:#{self.taken}", f"sync(queue#1)@after:#{self.submit}"):
                r = self.replay(f"--schedule={schedule}", f"--inject={point}")
                self.assertEqual((r["first_mismatch"]["replayed"], r["injected"]), ("ZE_RESULT_SUCCESS", 1), (schedule, point))

    def test_delays(self):
        self.evict("eager", 0)
        self.assertTrue(self.replay("--inject=delay@zeMemFree:1ms", "--inject=delay@#1:0.5us")["same"])
        r = self.replay(f"--inject=delay(device)@#{self.submit}:1s")
        self.assertEqual((r["first_mismatch"]["function"], r["first_mismatch"]["replayed"], r["injected"]),
                         ("zeCommandQueueSynchronize", "ZE_RESULT_ERROR_DEVICE_LOST", 1))
        r = self.replay(f"--inject=delay(device)@#{self.submit}:1s", f"--inject=sync(queue#1)@before:#{self.taken}")
        self.assertEqual((r["same"], r["injected"]), (True, 2))
        self.assertIn("gives the device work", self.refused("--inject=delay(device)@zeMemFree:1ms"))
        self.refused(f"--inject=delay(device)@#{self.submit}:1s", f"--inject=gate@#{self.copy}..#{self.taken}")

    def test_a_sync_that_cannot_end(self):
        self.record(app("o4_resubmit_stale_event"), options=["-f", "--schedule=eager"], status=1)
        submits = [c["call"] for c in self.dump() if c["function"] == "zeCommandQueueExecuteCommandLists"]
        signal = [c["call"] for c in self.dump() if c["function"] == "zeEventHostSignal" and c["call"] > submits[2]][0]
        self.assertRegex(self.itself(f"sync@after:#{submits[2]}"), rf"waits for #{signal}, which comes behind the wait$")

    def test_every_call_is_a_point(self):
        self.record(app("mixed"), options=["-f", "--schedule=eager"])
        r = self.replay("--inject=delay@*:0ns", "--inject=sync@before:zeInit")
        self.assertTrue(r["same"], r)
        self.assertGreaterEqual(r["injected"], r["calls"])

    def test_gate_breaks(self):
        self.evict("eager", 0)
        for schedule in SCHEDULES:
            for gated in (self.copy, self.submit):
                r = self.replay(f"--schedule={schedule}", f"--inject=gate@#{gated}..#{self.taken}")
                self.assertEqual(r["first_mismatch"]["replayed"], "ZE_RESULT_ERROR_UNKNOWN", schedule)

    def cure_and_break(self, schedule, knobs):
        """On that driver, a wait before the evict cures, and a gate behind it breaks."""
        where = (schedule, knobs)
        r = zetrace("record", "-q", "-f", "-o", "t.zetrace", "--driver=soft", f"--schedule={schedule}", "--", app("evict"), env=knobs)
        crashed = r.returncode not in (0, 1)
        calls = {}
        for c in self.dump():
            calls.setdefault(c["function"], c["call"])
        cure = "--inject=sync@before:zeContextEvictMemory"
        r = self.replay(cure)
        failed = [c for c in self.dump() if c["result"] not in ("ZE_RESULT_SUCCESS", None)]
        # what failed in the recording does not here; what did not is the same
        if failed:
            self.assertEqual((r["first_mismatch"]["replayed"], r["failure"]), ("ZE_RESULT_SUCCESS", None), where)
        else:  # or it was the end of the program, and is not the end of the replay
            self.assertTrue(r["same"], (where, r))
            self.assertTrue(not crashed or r["message"] == "", (where, r))
        if "zeContextEvictMemory" not in calls:
            return
        submit, taken = calls["zeCommandQueueExecuteCommandLists"], calls["zeContextEvictMemory"]
        r = self.replay(f"--inject=gate@#{submit}..#{taken}")
        if knobs["ZE_SOFT_FAULT"] == "scratch":
            self.assertIsNone(r["failure"], where)  # nothing tells
        else:
            told = r["failure"]["result"] if r["failure"] else r["first_mismatch"]["replayed"] if r["first_mismatch"] else None
            self.assertRegex(str(told), "^ZE_RESULT_ERROR_|did not return", (where, r))

    def test_every_driver(self):
        """Each value of each knob and each schedule; `inject_test.py --hundred` tries a hundred combinations of them."""
        every = [(s, dict(zip(KNOBS, k))) for s in EVERY_SCHEDULE for k in itertools.product(*KNOBS.values())]
        if HUNDRED:
            rounds = random.Random(7).sample(every, 100)
        else:
            rounds = [(EVERY_SCHEDULE[i], {knob: values[(i + n) % len(values)] for n, (knob, values) in enumerate(KNOBS.items())})
                      for i in range(len(EVERY_SCHEDULE))]
        for schedule, knobs in rounds:
            self.cure_and_break(schedule, knobs)

    def test_again_and_again(self):
        """100 of 100 with --hundred."""
        self.evict("lazy", 1)
        for schedule in EVERY_SCHEDULE:
            for _ in range(100 if HUNDRED else 2):
                cured = self.replay(f"--schedule={schedule}", "--inject=sync@before:zeContextEvictMemory")
                broken = self.replay(f"--schedule={schedule}", f"--inject=gate@#{self.submit}..#{self.taken}")
                self.assertEqual((cured["failure"], cured["first_mismatch"]["replayed"]), (None, "ZE_RESULT_SUCCESS"), schedule)
                self.assertEqual(broken["failure"]["result"], "ZE_RESULT_ERROR_UNKNOWN", schedule)

    def test_orders(self):
        self.evict("eager", 0)
        for order in ("recorded", "queue:1"):
            self.assertTrue(self.replay(f"--order={order}")["same"], order)
        self.assertFalse(self.replay("--order=latest")["same"])
        with open("order.txt", "w", encoding="utf-8") as f:
            f.write(f"#{self.taken}\n#{self.copy}@1\n")
        self.replay("--order=file:order.txt")

    def waits_recorded(self, kind, **knobs):
        self.record(app("waits"), kind, options=["--schedule=async"], env=knobs)

    def waits(self, kind, **knobs):
        """Records a program of tests/replay/waits.c. Its calls by function, in order."""
        self.waits_recorded(kind, **knobs)
        calls = {}
        for c in self.dump():
            calls.setdefault(c["function"], []).append(c["call"])
        self.calls = calls
        self.copy = calls["zeCommandListAppendMemoryCopy"][0]
        self.looks = calls["zeMemGetAddressRange"]

    def itself(self, *points):
        """The points are refused; every call of the chain is named. Returns what is said behind the colon."""
        said = self.refused(*(f"--inject={p}" for p in points))
        self.assertRegex(said, r" would wait for itself: #\d+(@\d+)? .*#\d+")
        return said.split(" would wait for itself: ")[1].strip()

    def had(self, *points):
        self.assertTrue(self.replay(*(f"--inject={p}" for p in points))["same"], points)

    def test_gate_before_waits(self):
        for kind, wait in (("event", "zeEventHostSynchronize"), ("fence", "zeFenceHostSynchronize"), ("queue", "zeCommandQueueSynchronize")):
            self.waits(kind)
            [wait] = self.calls[wait]
            self.had(f"gate@#{self.copy}..#{self.looks[0]}")
            self.assertEqual(self.itself(f"gate@#{self.copy}..#{wait}"), f"#{wait} waits for #{self.copy}")
            self.assertEqual(self.itself(f"gate@#{self.copy}..#{self.looks[1]}"), f"#{self.looks[1]} comes behind #{wait}, which waits for #{self.copy}")

    def test_gate_and_synchronous_queue(self):
        self.waits("synchronous")
        [submit] = self.calls["zeCommandQueueExecuteCommandLists"]
        self.itself(f"gate@#{self.copy}..#{submit}")
        self.assertEqual(self.itself(f"gate@#{self.copy}..#{self.looks[0]}"), f"#{self.looks[0]} comes behind #{submit}, which waits for #{self.copy}")

    def test_gate_and_free(self):
        self.waits("free", ZE_SOFT_FREE="block")
        [free] = self.calls["zeMemFree"]
        self.assertEqual(self.itself(f"gate@#{self.copy}..#{self.looks[2]}"), f"#{self.looks[2]} comes behind #{free}, which waits for #{self.copy}")
        self.had(f"gate@#{self.copy}..#{self.looks[1]}")

    def test_gate_and_one_engine(self):
        self.waits("engines", ZE_SOFT_ENGINES="shared")
        [wait], [second, first] = self.calls["zeEventHostSynchronize"], self.calls["zeCommandListAppendMemoryCopy"]
        self.assertEqual(self.itself(f"gate@#{first}..#{wait}"), f"#{wait} waits for #{second}, which stands on one engine behind #{first}")
        self.had(f"gate@#{first}..#{self.calls['zeCommandQueueExecuteCommandLists'][1]}")
        self.waits("engines")
        self.had(f"gate@#{first}..#{wait}")

    def test_gate_and_blocking_append(self):
        self.waits("append", ZE_SOFT_APPEND="block")
        self.assertEqual(self.itself(f"gate@#{self.copy}..#{self.looks[0]}"),
                         f"#{self.looks[0]} comes behind #{self.copy}, which does not return before #{self.copy}")
        self.waits("append")
        self.had(f"gate@#{self.copy}..#{self.looks[0]}")

    def test_gate_and_order_of_a_list(self):
        self.waits("inorder")
        second, [wait] = self.calls["zeCommandListAppendMemoryCopy"][1], self.calls["zeEventHostSynchronize"]
        self.assertEqual(self.itself(f"gate@#{self.copy}..#{wait}"), f"#{wait} waits for #{second}, which waits for #{self.copy}")
        self.waits("append")
        self.had(f"gate@#{self.copy}..#{wait}")

    def test_sync_before_its_submit(self):
        self.waits("event")
        [submit] = self.calls["zeCommandQueueExecuteCommandLists"]
        self.assertEqual(self.itself(f"sync(#{self.copy})@before:#{submit}"),
                         f"#{self.copy} is submitted by #{submit}, which comes behind the wait")
        self.assertEqual(self.itself(f"sync(#{submit})@after:#{self.copy}"), f"#{submit} comes behind the wait, which is at #{self.copy}")
        [wait] = self.calls["zeEventHostSynchronize"]
        event = next(c["args"]["hEvent"] for c in self.dump() if c["call"] == wait)
        said = self.refused(f"--inject=sync({event})@before:#{submit}")
        self.assertIn(f"is signalled by what #{submit} does, which comes behind #{submit}", said)
        self.had(f"sync(#{self.copy})@after:#{submit}", f"sync({event})@before:#{self.looks[0]}")

    def test_sync_before_what_lets_go(self):
        self.waits("gated")
        [signal], waiting = self.calls["zeEventHostSignal"], self.calls["zeCommandListAppendWaitOnEvents"][0]
        for point in (f"sync@before:#{signal}", f"sync(queue#1)@after:#{self.looks[0]}", f"sync(#{self.copy})@before:#{self.looks[0]}"):
            self.assertRegex(self.itself(point), rf"#{waiting} waits for #{signal}, which comes behind the wait$")
        self.had(f"sync@after:#{signal}")

    def test_gate_and_sync(self):
        """Where gates are closed, a wait is an edge like any other."""
        self.waits("queue")
        [submit], look = self.calls["zeCommandQueueExecuteCommandLists"], self.looks[0]
        self.had(f"gate@#{self.copy}..#{look}", f"sync@after:#{look}")
        self.assertIn(f"#{self.copy} is to come behind #{look}", self.itself(f"gate@#{self.copy}..#{look}", f"sync@before:#{look}"))
        self.itself(f"gate@#{self.copy}..#{look}", f"sync@after:#{submit}")
        self.evict("eager", 0)
        r = self.replay("--order=latest", "--inject=sync@before:zeContextEvictMemory")
        self.assertTrue(r["same"], r)

    def test_gates_that_wait_for_each_other(self):
        self.waits("engines")
        [wait] = self.calls["zeEventHostSynchronize"]
        first, second = self.calls["zeCommandListAppendMemoryCopy"]
        self.itself(f"gate@#{first}..#{wait}", f"gate@#{second}..#{wait}")

    def test_holds(self):
        self.waits("threads")
        theirs, mine = self.looks
        [wait], submit = self.calls["zeEventHostSynchronize"], self.calls["zeCommandQueueExecuteCommandLists"][0]
        [sync] = self.calls["zeCommandQueueSynchronize"]
        self.had(f"hold@#{wait}..#{sync}")  # the other thread's wait behind this one's
        self.had(f"hold@#{theirs}..#{mine}")
        self.assertEqual(self.itself(f"hold@#{wait}..#{sync}", f"hold@#{sync}..#{theirs}"),
                         f"#{theirs} comes behind #{wait}, which is to come behind #{sync}")
        self.itself(f"hold@#{submit}..#{wait}")
        self.itself(f"hold@#{submit}..#{mine}")

    def test_what_waits_for_itself(self):
        self.evict("eager", 0)
        for point in (f"gate@#{self.copy}..#{self.last}", f"gate@#{self.submit}..#{self.last}", f"hold@#{self.submit}..#{self.taken}"):
            self.itself(point)
        self.record(app("o1_evict_in_flight"), options=["-f", "--schedule=eager"], status=1)
        calls = {}
        for c in self.dump():
            calls.setdefault(c["function"], c["call"])
        self.itself(f"hold@#{calls['zeContextEvictMemory']}..#{calls['zeEventHostSignal']}")

    def test_serialized_lines(self):
        """What --serialize waits for counts in a line, too."""
        self.evict("eager", 0)
        self.assertFalse(self.replay("--order=latest")["same"])
        for how in ("none", "submit", "list", "command"):
            self.assertEqual(self.replay("--order=latest", f"--serialize={how}")["same"], how != "none", how)
        self.waits("inorder")
        said = self.refused(f"--inject=gate@#{self.copy}..#{self.looks[0]}", "--serialize=submit")
        self.assertIn(f"#{self.copy} is to come behind #{self.looks[0]}", said)
        self.waits("gated")
        said = self.refused("--order=latest", "--serialize=submit")
        self.assertIn(f"waits for #{self.calls['zeEventHostSignal'][0]}", said)
        self.record(app("mixed"), 20, options=["-f", "--schedule=eager"])
        for how in ("submit", "list", "command"):
            self.assertTrue(self.replay("--order=seed:7", f"--serialize={how}")["same"], how)

    def test_order_files(self):
        self.evict("eager", 0)
        for text, at, said in ((f"#{self.copy}\n\nnonsense\n", 3, "not 'nonsense'"), (f"#{self.copy}\n#99999\n", 2, "has no #99999"),
                               (f"#{self.copy}@7", 1, f"has no #{self.copy}@7"), (f"#{self.copy} #{self.taken}", 1, "not '#"), ("12x", 1, "not '12x'"),
                               (f"#{self.copy}@0", 1, "not '#"), ("#" + "1" * 300, 1, "not '#"), ("\n\n", 0, "no line")):
            with open("order.txt", "w", encoding="utf-8") as f:
                f.write(text)
            answer = self.refused("--order=file:order.txt")
            self.assertIn(f"order.txt:{at}: " if at else "order.txt", answer)
            self.assertIn(said, answer)

    def test_a_synchronous_submit_that_failed(self):
        """It had submitted its commands all the same."""
        self.waits_recorded("lost")
        self.assertEqual({c["result"] for c in self.dump() if c["function"] == "zeCommandQueueExecuteCommandLists"}, {"ZE_RESULT_ERROR_DEVICE_LOST"})
        self.assertIn(" 1 execution ", zetrace("check", "--statistics", "t.zetrace").stderr)

    def test_an_object_that_is_not_there(self):
        """A wait for what is made later, or gone, would wait for nothing and say that it had."""
        self.record(app("o6_destroy_order"), "fixed", options=["--schedule=eager"])
        calls = {c["function"]: c["call"] for c in self.dump()}
        made, gone = calls["zeCommandQueueCreate"], calls["zeCommandQueueDestroy"]
        for point in (f"before:#{made}", "before:zeInit", f"after:#{made - 1}", f"after:#{gone}"):
            self.assertIn(f"sync(queue#1)@{point} can't be had: queue#1 is made by #{made} and gone with #{gone}",
                          self.refused(f"--inject=sync(queue#1)@{point}"))
        for point in (f"after:#{made}", f"before:#{gone}"):
            self.had(f"sync(queue#1)@{point}")
        self.evict("eager", 0)
        made = next(c["call"] for c in self.dump() if c["function"] == "zeCommandQueueCreate")
        self.assertEqual(self.replay("--inject=sync(queue#1)@before:*")["injected"], self.last - made)

    def test_a_later_execution(self):
        self.record(app("o4_resubmit_stale_event"), options=["--schedule=eager"], status=1)
        submits = [c["call"] for c in self.dump() if c["function"] == "zeCommandQueueExecuteCommandLists"]
        copy, sync = (next(c["call"] for c in self.dump() if c["function"] == f) for f in ("zeCommandListAppendMemoryCopy", "zeCommandQueueSynchronize"))
        signal = [c["call"] for c in self.dump() if c["function"] == "zeEventHostSignal"][1]
        self.had(f"sync(#{copy})@before:#{sync}")
        self.had(f"sync(#{copy}@2)@after:#{signal}")
        self.assertEqual(self.itself(f"sync(#{copy}@2)@before:#{sync}"), f"#{copy} is submitted by #{submits[2]}, which comes behind the wait")
        self.assertIn(f"#{copy} has 2 executions, not 3", self.refused(f"--inject=sync(#{copy}@3)@before:#{sync}"))
        self.assertIn(f"#{copy} has 2 executions, not 3", self.refused(f"--inject=gate@#{copy}@3..#{signal}"))

    def test_usage(self):
        self.evict("eager", 0)
        for point in ("sync@before:nothing", "sync@here:#1", "sync(queue#7)@before:#1", "gate@#1", "gate@#1..#2", "hold@1..2", "delay@#1:soon", "delay@#1",
                      "stop@#1", "sync", "gate@#99999..#1", "zeMemFree[9]"):
            self.refused(f"--inject={point}")
        for point, said in (("gate@#{copy}@2..#{taken}", "#{copy} has 1 execution, not 2"), ("gate@#{copy}@4294967297..#{taken}", "wants two calls"),
                            ("gate@#{copy}@0..#{taken}", "wants two calls"), ("gate@#{submit}@2..#{taken}", "gate@#{submit}@2..#{taken}: #{submit} is to be an append"),
                            ("gate@#{taken}..#{last}", "#{taken} is to be an append or a submit"), ("gate@#{copy}..#99999", "no call #99999"),
                            ("hold@#{copy}@2..#{taken}", "wants two calls"), ("hold@#99999..#1", "no call #99999"),
                            ("sync(#{copy}@2)@before:#{taken}", "#{copy} has 1 execution, not 2"), ("sync(#{copy}@x)@before:#{taken}", "#12@2"),
                            ("sync(#{taken})@before:#{last}", "#{taken} zeContextEvictMemory gives the device nothing to do"),
                            ("sync(#99999)@before:#1", "no call #99999"), ("sync(context#1)@before:#{taken}", "can wait for a queue, an immediate list or an event"),
                            ("sync(list#1)@before:#{taken}", "not for 'list#1'")):
            numbers = {"copy": self.copy, "taken": self.taken, "submit": self.submit, "last": self.last}
            self.assertIn(said.format(**numbers), self.refused("--inject=" + point.format(**numbers)))
        self.assertEqual(zetrace("replay", *["--inject=sync@before:#1"] * 65, "t.zetrace").returncode, 2)
        for order in ("queue:9", "queue:0", "seed:x", "file:none", "never"):
            self.refused(f"--order={order}")


if __name__ == "__main__":
    unittest.main(argv=[a for a in sys.argv if a != "--hundred"])

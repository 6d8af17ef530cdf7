# SPDX-License-Identifier: MIT
"""replay --inject and --order: cures, breaks, and what can't be had."""
import json
import unittest

import harness
from harness import app, zetrace

SCHEDULES = ["async", "eager", "lazy", "seed:3"]


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
        r = self.replay("--timeout=200ms", f"--inject=sync@after:#{submits[2]}")
        self.assertFalse(r["same"])
        self.assertIn(f"injected at call #{submits[2]} zeCommandQueueExecuteCommandLists did not end: the device waits for the host", r["message"])

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

    def test_orders(self):
        self.evict("eager", 0)
        for order in ("recorded", "queue:1"):
            self.assertTrue(self.replay(f"--order={order}")["same"], order)
        self.assertFalse(self.replay("--order=latest")["same"])
        with open("order.txt", "w", encoding="utf-8") as f:
            f.write(f"#{self.taken}\n#{self.copy}@1\n")
        self.replay("--order=file:order.txt")

    def test_what_waits_for_itself(self):
        self.evict("eager", 0)
        self.assertIn("would wait for itself", self.refused(f"--inject=gate@#{self.copy}..#{self.last}"))
        self.assertIn("would wait for itself", self.refused(f"--inject=gate@#{self.submit}..#{self.last}"))
        self.assertIn("would wait for itself", self.refused(f"--inject=hold@#{self.submit}..#{self.taken}"))
        self.record(app("o1_evict_in_flight"), options=["-f", "--schedule=eager"], status=1)
        calls = {}
        for c in self.dump():
            calls.setdefault(c["function"], c["call"])
        self.refused(f"--inject=hold@#{calls['zeContextEvictMemory']}..#{calls['zeEventHostSignal']}")

    def test_usage(self):
        self.evict("eager", 0)
        for point in ("sync@before:nothing", "sync@here:#1", "sync(queue#7)@before:#1", "gate@#1", "gate@#1..#2", "hold@1..2", "delay@#1:soon", "delay@#1",
                      "stop@#1", "sync", "gate@#99999..#1", "zeMemFree[9]"):
            self.refused(f"--inject={point}")
        self.assertEqual(zetrace("replay", *["--inject=sync@before:#1"] * 65, "t.zetrace").returncode, 2)
        for order in ("queue:9", "queue:0", "seed:x", "file:none", "never"):
            self.refused(f"--order={order}")


if __name__ == "__main__":
    unittest.main()

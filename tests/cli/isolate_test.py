# SPDX-License-Identifier: MIT
"""isolate: the right pair from a failing and from a passing run, host-order where the program forces it, silence on correct twins."""
import json
import unittest

import harness
from harness import app, zetrace

FORCED = {  # program -> (rule, function that must move)
    "o1_evict_in_flight": ("A1", "zeContextEvictMemory"),
    "o2_host_staging_lifetime": ("C1", "zeEventHostSignal"),
    "o3_event_rerecord": ("D1", "zeEventHostReset"),
    "o4_resubmit_stale_event": ("D2", "zeCommandQueueExecuteCommandLists"),
    "o7_wait_never_submitted": ("F1", "zeEventHostSynchronize"),
    "o8_short_timeout_ignored": ("A2", "zeMemFree"),
}
TWINS = list(FORCED) + ["o5_immediate_not_inorder", "o6_destroy_order", "evict"]


class Isolate(harness.Case):
    def isolate(self, *options, status, trace="t.zetrace"):
        r = zetrace("isolate", "--json", *options, trace)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return json.loads(r.stdout)

    def evict(self, schedule, status, *options):
        self.record(app("evict"), options=[f"--schedule={schedule}", *options], status=status)
        calls = {c["function"]: c["call"] for c in reversed(self.dump())}
        answer = self.isolate(status=1)
        self.assertEqual(answer["verdict"], "order")
        self.assertEqual(answer["early"]["call"], calls["zeContextEvictMemory"])
        self.assertEqual(answer["late"]["call"], calls["zeCommandListAppendMemoryCopy"])
        self.assertEqual((answer["fails"], answer["passes"], answer["repair"]["verified"]), ([3, 3], [3, 3], [3, 3]))
        self.assertEqual(answer["object"], "mem#2")
        return answer

    def test_evict_failed(self):
        answer = self.evict("lazy", 1)
        self.assertEqual(answer["recording"], "bad")
        self.assertEqual(answer["shows_at"], [c["call"] for c in self.dump() if c.get("result") == "ZE_RESULT_ERROR_UNKNOWN"][0])

    def test_evict_passed(self):
        self.assertEqual(self.evict("eager", 0)["recording"], "good")

    def test_overlapping_copies_of_a_run_that_passed(self):
        self.record(app("o5_immediate_not_inorder"), options=["--schedule=eager"])
        copies = [c["call"] for c in self.dump() if c["function"] == "zeCommandListAppendMemoryCopy"]
        answer = self.isolate(status=1)
        self.assertEqual((answer["verdict"], answer["early"]["call"], answer["late"]["call"]), ("order", copies[1], copies[0]))

    def test_forced(self):
        for program, (rule, function) in FORCED.items():
            with self.subTest(program):
                self.record(app(program), options=["-f", "--schedule=async"], status=1)
                answer = self.isolate(status=1)
                self.assertEqual((answer["verdict"], answer["early"]["function"]), ("host-order", function))
                self.assertTrue(answer["text"].startswith(rule + ":"), answer["text"])

    def test_twins_are_silent(self):
        for program in TWINS:
            with self.subTest(program):
                self.record(app(program), "fixed", options=["-f", "--schedule=eager"])
                self.assertEqual(self.isolate(status=0)["verdict"], "none-found")

    def test_where_in_the_program(self):
        self.record(app("evict"), options=["--schedule=lazy", "--backtrace=*"], status=1)
        r = zetrace("isolate", "t.zetrace")
        self.assertEqual(r.returncode, 1)
        self.assertEqual(r.stdout.count("at main evict.c:"), 2, r.stdout)
        self.assertIn("that call is innocent", r.stdout)

    def test_budget(self):
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        self.assertEqual(self.isolate("--budget=3", status=4)["verdict"], "budget")

    def test_usage(self):
        for options in (["--budget=0"], ["--confirm=x"], ["--timeout=soon"], ["--recording=ugly"], ["--nonsense"]):
            r = zetrace("isolate", *options, "t.zetrace")
            self.assertEqual(r.returncode, 2, options)
            self.assertEqual(len(r.stderr.splitlines()), 1, r.stderr)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT
"""Every kind of client is recorded whole, counted against the client's own count."""
import glob
import os
import shutil
import unittest

import harness
from harness import LOADER, LOADER_CLIENTS, app


class Clients(harness.Case):
    def check(self, name, *args, env=None, options=()):
        r = self.record(app(name), *args, "--count" if name.endswith(".py") else "count", env=env, options=options)
        total, by_name = harness.counts_of(r.stdout)
        info = self.info()
        self.assertEqual(info["calls"] - info["internal_calls"], total)
        functions = dict(info["functions"])
        functions["zeInit"] -= info["internal_calls"]
        self.assertEqual(functions, by_name)
        self.assertEqual(info["dropped"], 0)
        self.assertTrue(info["complete"])
        return info

    def test_each_kind(self):
        for name, args in LOADER_CLIENTS.items():
            with self.subTest(name):
                self.check(name, *args)

    def test_loader_tracing_layer_on(self):
        for name, args in LOADER_CLIENTS.items():
            with self.subTest(name):
                self.check(name, *args, env={"ZE_ENABLE_TRACING_LAYER": "1"})

    def test_two_drivers(self):
        copy = os.path.abspath("libze_soft_copy.so.1")
        shutil.copy(harness.DRIVER, copy)
        for name, args in {**LOADER_CLIENTS, "two_drivers": []}.items():
            with self.subTest(name):
                count = [] if name == "two_drivers" else ["count"]
                r = harness.zetrace("record", "-f", "-o", "t.zetrace", "--", app(name), *args, *count,
                                    env={"ZE_ENABLE_ALT_DRIVERS": f"{harness.DRIVER},{copy}"})
                self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
                total, by_name = harness.counts_of(r.stdout)
                info = self.info()
                self.assertEqual(info["calls"] - info["internal_calls"], total)
                self.assertEqual(by_name["zeContextCreate"], 2)
                self.assertEqual(info["functions"]["zeContextCreate"], 2)

    def test_functions_got_by_name(self):
        for schedule in ("eager", "lazy"):
            r = self.record(app("extension"), options=["--schedule=" + schedule])
            info = self.info()
            self.assertEqual(info["calls"] - info["internal_calls"], harness.counts_of(r.stdout)[0])
            self.assertEqual(info["functions"]["zeCommandListHostSynchronize"], 10)
            self.assertEqual(info["functions"]["zeCommandListGetOrdinal"], 1)
            replayed = harness.zetrace("replay", "t.zetrace")
            self.assertEqual(replayed.returncode, 0, replayed.stdout + replayed.stderr)

    def test_attach_driver(self):
        for name, args in LOADER_CLIENTS.items():
            with self.subTest(name):
                self.check(name, *args, options=["--attach=driver"])
        self.record(app("evict"), options=["--attach=driver", "--schedule=lazy"], status=1)
        self.assertEqual(harness.zetrace("replay", "t.zetrace").returncode, 0)

    def test_validation_layer_asked_for_by_the_user(self):
        r = harness.zetrace("record", "-f", "-o", "t.zetrace", "--driver=soft", "--", app("client_linked"), "count",
                            env={"ZE_ENABLE_VALIDATION_LAYER": "1", "ZE_ENABLE_PARAMETER_VALIDATION": "1"})
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        info = self.info()
        self.assertEqual(info["calls"] - info["internal_calls"], harness.counts_of(r.stdout)[0])

    def test_threads(self):
        r = self.record(app("threads"), 8, 100000)
        total, _ = harness.counts_of(r.stdout)
        info = self.info()
        self.assertEqual(info["calls"] - info["internal_calls"], total)
        self.assertEqual(info["threads"], 9)
        self.assertEqual(info["dropped"], 0)

    def test_calls_inside_calls(self):
        r = self.record(app("nested"))
        total, _ = harness.counts_of(r.stdout)
        info = self.info()
        self.assertEqual(info["calls"] - info["internal_calls"], total)
        self.assertEqual(info["dropped"], 0)
        self.assertEqual(info["never_returned"], [])
        calls = self.dump()
        first, second = (c for c in calls if c["function"] == "zeEventHostSynchronize")

        def within(outer):
            end = outer["time_ns"] + outer["duration_ns"]
            return [c for c in calls if c["call"] > outer["call"] and c["time_ns"] + c["duration_ns"] < end]

        self.assertEqual(sum(c["thread"] != first["thread"] for c in within(first) if c["function"] == "zeMemGetAddressRange"), 1000)
        self.assertEqual(sum(c["thread"] == second["thread"] for c in within(second) if c["function"] == "zeDriverGetApiVersion"), 3)

    def test_fork_gives_a_trace_each(self):
        r = self.record(app("forker"), 3, out="f.%p.zetrace")
        for line in r.stdout.splitlines():
            pid, calls = line.split(" calls=")
            info = self.info(f"f.{pid}.zetrace")
            self.assertEqual(info["calls"] - info["internal_calls"], int(calls), line)
        self.assertEqual(len(glob.glob("f.*.zetrace")), 4)

    def test_second_process_gets_a_number(self):
        for _ in range(5):
            self.record(app("execer"))
            self.assertEqual(sorted(glob.glob("t*.zetrace")), ["t.2.zetrace", "t.zetrace"])
            for name in ("t.zetrace", "t.2.zetrace"):
                info = self.info(name)
                self.assertEqual(info["calls"] - info["internal_calls"], 7)

    def test_exit_path(self):
        r = self.record(app("exitpath"))
        info = self.info()
        self.assertEqual(info["calls"] - info["internal_calls"], harness.counts_of(r.stdout)[0])

    def test_odd_programs_go_on_and_every_call_is_told_of(self):
        for mode in ("signals", "starved", "no-descriptors", "file-size", "small-stack", "huge"):
            for options in ([], ["--attach=driver"], ["--ring=64Ki", "--memory=full"]):
                with self.subTest(mode, options=options):
                    r = self.record(app("odd"), mode, options=options)
                    info = self.info()
                    self.assertEqual(info["calls"] - info["internal_calls"] + info["dropped"], harness.counts_of(r.stdout)[0])
                    if mode in ("starved", "no-descriptors", "file-size"):
                        self.assertGreater(info["dropped"], 0)
                    if mode == "signals":
                        # what a handler's call left in the midst of another would show in the outputs
                        replay = harness.zetrace("replay", "t.zetrace")
                        self.assertEqual(replay.returncode, 0, replay.stdout + replay.stderr)

    def test_ring_that_makes_no_sense_holds_nobody_up(self):
        self.record(app("odd"), "two-writers", options=["--ring=64Ki"], timeout=60)

    def test_call_that_never_returns(self):
        self.record(app("crasher"), status=128 + 11)
        info = self.info()
        self.assertEqual(len(info["never_returned"]), 1)
        self.assertEqual(info["signal"], 11)
        r = harness.zetrace("dump", "--pending", "t.zetrace")
        self.assertEqual(len(r.stdout.splitlines()), 1)
        self.assertIn("zeDeviceGetProperties", r.stdout)
        self.assertIn("(never returned)", r.stdout)

    def test_order_of_a_token(self):
        turns = 1000000
        r = self.record(app("token"), turns)
        base = int(r.stdout.split("base=")[1].split()[0], 16)
        self.assertEqual(self.info()["dropped"], 0)
        # raw words, by the independent reader: a million lines of JSON would only test patience
        reader = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "format_reader.py")
        out = harness.run("/usr/bin/python3", reader, "--words", "zeMemGetAddressRange", "1", "t.zetrace", timeout=300,
                          env={"ZETRACE_PROTO_DIR": os.path.dirname(os.path.dirname(reader)) + "/format"})
        self.assertEqual(out.returncode, 0, out.stderr)
        seen = [int(line) - base for line in out.stdout.split()]
        self.assertEqual(len(seen), turns)
        wrong = sum(1 for i, turn in enumerate(seen) if turn != i)
        self.assertEqual(wrong, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)

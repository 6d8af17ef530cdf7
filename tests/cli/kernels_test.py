# SPDX-License-Identifier: MIT
"""check, isolate and explore on launches, recorded on a driver whose kernels run nothing: each rule fires, and its twin is silent."""
import json
import os
import unittest

import harness
from harness import BUILD, app, run, zetrace

DRIVER = os.path.join(BUILD, "lib", "tests", "libze_soft_kernels.so")
MISTAKES = {  # all that is found: rule, class, severity
    "argument-freed": ("A2", "spec", "error"),
    "argument-evicted": ("A1", "spec", "error"),
    "member-freed": ("A2", "spec", "error"),
    "indirect-freed": ("A3", "possible", "warning"),
    "indirect-evicted": ("A3", "possible", "warning"),
    "pointed-to-freed": ("A3", "spec", "error"),
    "pointer-out-of-reach": ("A3", "possible", "warning"),
    "freed-before-submit": ("A2", "spec", "error"),
    "stale-argument": ("A7", "possible", "warning"),
    "evicted-before-submit": ("A5", "hidden", "warning"),
    "one-of-several-freed": ("A2", "spec", "error"),
    "kernel-in-flight": ("B3", "spec", "error"),
    "module-in-flight": ("B3", "spec", "error"),
    "module-before-kernel": ("B3", "spec", "error"),
    "kernel-before-submit": ("B3", "spec", "error"),
    "argument-too-late": ("C4", "spec", "error"),
    "launches-unordered": ("E2", "possible", "warning"),
    "copy-unordered": ("E2", "possible", "warning"),
    "queues-unordered": ("E1", "possible", "warning"),
}


class Kernels(harness.Case):
    def launch(self, name, *arguments, schedule="eager", options=(), env=None):
        r = zetrace("record", "-q", "-f", "-o", "t.zetrace", "--driver=" + DRIVER, *options, "--", app(name), *arguments,
                    env={"ZE_SOFT_SCHEDULE": schedule, **(env or {})})
        self.assertIn(r.returncode, (0, 1), r.stdout + r.stderr)

    def findings(self, *options):
        r = zetrace("check", "--json", *options, "t.zetrace")
        self.assertIn(r.returncode, (0, 1), r.stderr)
        found = json.loads(r.stdout)
        self.assertEqual(set(found["doubt"].values()), {0})
        return found["findings"]

    def kinds(self, *options):
        return [(f["rule"], f["class"], f["severity"]) for f in self.findings(*options)]

    def call(self, function, place=-1):
        return [c["call"] for c in self.dump() if c["function"] == function][place]


class Rules(Kernels):
    def test_every_program_is_here(self):
        self.assertEqual(set(run(app("k_mistakes")).stdout.split()), set(MISTAKES))

    def test_mistakes(self):
        for mode, kind in MISTAKES.items():
            for schedule in ("eager", "lazy"):
                with self.subTest(mode, schedule=schedule):
                    self.launch("k_mistakes", mode, schedule=schedule)
                    self.assertEqual(self.kinds(), [kind])

    def test_repaired_twins(self):
        for mode in MISTAKES:
            with self.subTest(mode):
                self.launch("k_mistakes", mode, "fixed", schedule="lazy")
                self.assertEqual(self.findings(), [])

    def test_baits(self):
        for mode in run(app("k_baits")).stdout.split():
            for schedule in ("eager", "lazy"):
                with self.subTest(mode, schedule=schedule):
                    self.launch("k_baits", mode, schedule=schedule)
                    self.assertEqual(self.findings(), [])

    def test_what_is_named(self):
        self.launch("k_mistakes", "argument-evicted")
        f, = self.findings()
        self.assertEqual((f["functions"], f["object"], f["range"]), (["zeContextEvictMemory", "zeCommandListAppendLaunchKernel"], "mem#1", [0, 4096]))
        self.launch("k_mistakes", "module-in-flight")
        f, = self.findings()
        self.assertEqual(f["object"], "module#1")
        self.assertIn(self.call("zeCommandListAppendLaunchKernel"), f["calls"])
        self.launch("k_mistakes", "argument-too-late")
        f, = self.findings()
        self.assertEqual(f["calls"], [self.call("zeKernelSetArgumentValue"), self.call("zeCommandListAppendLaunchKernel")])

    def test_a_pointer_makes_it_certain(self):
        """It must have been seen: without contents it is but possible."""
        self.launch("k_mistakes", "pointed-to-freed")
        self.assertIn("mem#1 holds one", self.findings()[0]["what"])
        self.launch("k_mistakes", "pointed-to-freed", options=["--memory=none"])
        self.assertEqual(self.kinds(), [("A3", "possible", "warning")])

    def test_a_free_that_waits_hides_it(self):
        self.launch("k_mistakes", "pointed-to-freed", env={"ZE_SOFT_FREE": "block"})
        self.assertEqual(self.kinds(), [("A3", "hidden", "warning")])
        self.assertEqual(self.findings("--level=vendor"), [])


    def test_bounds(self):
        """Launches that are forgotten are counted."""
        self.launch("k_mistakes", "launches-unordered")
        r = zetrace("check", "--json", "--limit=1", "t.zetrace")
        self.assertGreater(json.loads(r.stdout)["doubt"]["accesses"], 0)


class Orders(Kernels):
    def isolate(self):
        r = zetrace("isolate", "--json", "--driver=" + DRIVER, "t.zetrace")
        self.assertIn(r.returncode, (0, 1), r.stderr)
        return json.loads(r.stdout)

    def test_replay(self):
        for mode in ("argument-evicted", "pointed-to-freed", "one-of-several-freed", "copy-unordered"):
            with self.subTest(mode):
                self.launch("k_mistakes", mode, schedule="lazy")
                r = zetrace("replay", "--driver=" + DRIVER, "t.zetrace")
                self.assertEqual(r.returncode, 0, r.stdout + r.stderr)

    def test_isolate_host_call(self):
        self.launch("k_mistakes", "argument-evicted", schedule="lazy")
        a = self.isolate()
        self.assertEqual((a["verdict"], a["early"]["function"], a["late"]["function"]),
                         ("host-order", "zeContextEvictMemory", "zeCommandListAppendLaunchKernel"))

    def test_isolate_commands(self):
        """From a run that went well: the copy must not come before the launch."""
        self.launch("k_mistakes", "copy-unordered")
        a = self.isolate()
        self.assertEqual((a["verdict"], a["early"]["function"], a["late"]["function"]),
                         ("order", "zeCommandListAppendMemoryCopy", "zeCommandListAppendLaunchKernel"))

    def test_explore(self):
        self.launch("k_mistakes", "copy-unordered")
        r = zetrace("explore", "--json", "--driver=" + DRIVER, "t.zetrace")
        self.assertEqual(r.returncode, 1, r.stderr)
        found = json.loads(r.stdout)
        self.assertEqual((found["pairs"], found["orders"], found["failing"]), (1, 2, 1))


if __name__ == "__main__":
    unittest.main(verbosity=2)

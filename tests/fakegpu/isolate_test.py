# SPDX-License-Identifier: MIT
"""The culprit is isolated by replays on Intel's driver, of what was recorded there and elsewhere; what is exported shows it without zetrace."""
import json
import subprocess
import unittest

import intel
from intel import harness


class Isolate(intel.Case):
    def assertIsolated(self, trace, driver, *options):
        r = self.zetrace("isolate", "--json", "--jobs=6", "--driver=" + driver, *options, trace, status=1)
        found = json.loads(r.stdout)
        self.assertEqual(found["verdict"], "order", found)
        self.assertEqual(found["early"]["function"], "zeContextEvictMemory")
        self.assertEqual(found["late"]["function"], "zeCommandListAppendMemoryCopy")
        self.assertEqual((found["fails"], found["passes"], found["repair"]["verified"]), ([3, 3], [3, 3], [3, 3]))
        return found

    def record_on_soft(self, *program, schedule, status):
        self.zetrace("record", "-f", "-o", "soft.zetrace", "--driver=soft", "--schedule=" + schedule, "--", *program, status=status)

    def test_recorded_there(self):
        self.record_on_intel(harness.app("evict"), "brief", status=1)
        self.assertIn("libze_intel_gpu", self.assertIsolated("t.zetrace", intel.DRIVER)["driver"])
        self.assertIn("libze_soft", self.assertIsolated("t.zetrace", "soft")["driver"])

    def test_repaired_twin_there(self):
        self.record_on_intel(harness.app("evict"), "fixed", status=0)
        r = self.zetrace("isolate", "--json", "--jobs=6", "--driver=" + intel.DRIVER, "t.zetrace")
        self.assertEqual(json.loads(r.stdout)["verdict"], "none-found")

    def test_recorded_where_it_passes(self):
        self.record_on_soft(harness.app("evict"), "brief", schedule="eager", status=0)
        self.assertIn("libze_intel_gpu", self.assertIsolated("soft.zetrace", intel.DRIVER)["driver"])

    def test_passes_there_recorded(self):
        """So late is the evict that the copy is over: nothing fails, and libze_soft finds what could."""
        r = self.record_on_intel(harness.app("evict"), "brief", "later", status=0, env=intel.environment(delay=0, **intel.NO_DIRECT_SUBMISSION))
        self.assertNotIn("fault", r.stderr)
        self.assertIn("libze_soft", self.assertIsolated("t.zetrace", "soft")["driver"])

    def test_exported(self):
        self.record_on_intel(harness.app("evict"), "brief", status=1)
        self.zetrace("export", "--driver=" + intel.DRIVER, "-o", "evict.c", "t.zetrace")
        subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "evict.c", "-o", "evict", "-lze_loader"], check=True)
        subprocess.run(["patchelf", "--set-interpreter", intel.FAKE + "/sid/ld-linux-x86-64.so.2", "--force-rpath", "--set-rpath",
                        intel.FAKE + "/sid", "evict"], check=True)
        env = {**intel.environment(**intel.NO_DIRECT_SUBMISSION), "ZE_ENABLE_ALT_DRIVERS": intel.DRIVER}
        for mode, status, said in (("bad", 1, "ZE_RESULT_ERROR_UNKNOWN, expected ZE_RESULT_SUCCESS"), ("good", 0, "all as it should be")):
            for _ in range(3):
                r = self.assertKnown(harness.run("./evict", mode, env=env))
                self.assertEqual(r.returncode, status, r.stdout + r.stderr)
                self.assertIn(said, r.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)

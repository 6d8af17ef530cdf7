# SPDX-License-Identifier: MIT
"""Where Intel's driver cannot be had it is said why, and what needs it is skipped, not passed."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SUITES = [name for name in sorted(os.listdir(HERE)) if name.endswith("_test.py") and name != os.path.basename(__file__)]


class Absent(unittest.TestCase):
    def setUp(self):
        self.build = tempfile.mkdtemp(prefix="zetrace-absent.")
        self.addCleanup(shutil.rmtree, self.build)

    def run_it(self, *args, **env):
        return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, env={**os.environ, **env})

    def test_no_registry(self):
        r = self.run_it(os.path.join(HERE, "fetch"), self.build, "http://127.0.0.1:9/debian")
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("fakegpu: the list of sid's packages cannot be had", r.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.build, "fakegpu", "sid")))
        self.assertEqual([f for f in os.listdir(os.path.join(self.build, "fakegpu")) if f.startswith("work")], [])

    def test_another_machine(self):
        folder = os.path.join(self.build, "bin")
        os.mkdir(folder)
        with open(os.path.join(folder, "dpkg"), "w", opener=lambda path, flags: os.open(path, flags, 0o755)) as f:
            f.write("#!/bin/sh\necho arm64\n")
        r = self.run_it(os.path.join(HERE, "fetch"), self.build, "http://127.0.0.1:9/debian", PATH=folder + ":" + os.environ["PATH"])
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("amd64 alone", r.stderr)

    def test_suites_are_skipped(self):
        self.assertGreater(len(SUITES), 5)
        for suite in SUITES:
            with self.subTest(suite):
                r = self.run_it(sys.executable, "-B", os.path.join(HERE, suite), ZETRACE_BUILD=self.build)
                self.assertEqual(r.returncode, 77, r.stdout + r.stderr)
                self.assertIn("'tools/dev fakegpu' fetches it", r.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)

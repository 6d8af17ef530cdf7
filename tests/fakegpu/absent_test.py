# SPDX-License-Identifier: MIT
"""Where Intel's driver cannot be had it is said why, and what needs it is skipped, not passed."""
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SUITES = [name for name in sorted(os.listdir(HERE)) if name.endswith("_test.py") and name != os.path.basename(__file__)]

# A registry whose newest of each package has the version 9; a package is a file with its name and version in it.
APT_CACHE = """
case $* in *" $MISSING") exit 0 ;; esac
for package; do :; done
echo "Version: 9"
echo "SHA256: $(printf '%s=9' "$package" | sha256sum | cut -d' ' -f1)"
"""
APT_GET = """
case $* in *update*) exit 0 ;; esac
for package; do :; done
case $package in $WRONG=*) package=other ;; esac
printf '%s' "$package" >some_amd64.deb
"""
DPKG_DEB = """
mkdir -p "$3/usr/lib/x86_64-linux-gnu"
: >"$3/usr/lib/x86_64-linux-gnu/libze_intel_gpu.so.1"
"""


def locked():
    with open(os.path.join(HERE, "packages.lock")) as f:
        return [line.split() for line in f if not line.startswith("#")]


class Absent(unittest.TestCase):
    def setUp(self):
        self.build = tempfile.mkdtemp(prefix="zetrace-absent.")
        self.addCleanup(shutil.rmtree, self.build)

    def commands(self, **bodies):
        """A PATH on which these commands come first."""
        folder = os.path.join(self.build, "bin")
        os.makedirs(folder)
        for name, body in bodies.items():
            with open(os.path.join(folder, name.replace("_", "-")), "w", opener=lambda path, flags: os.open(path, flags, 0o755)) as f:
                f.write("#!/bin/sh\n" + body)
        return folder + ":" + os.environ["PATH"]

    def fetch(self, **env):
        path = self.commands(dpkg="echo amd64\n", apt_cache=APT_CACHE, apt_get=APT_GET, dpkg_deb=DPKG_DEB)
        return self.run_it(os.path.join(HERE, "fetch"), self.build, "http://127.0.0.1:9/debian", PATH=path,
                           **{"MISSING": "none", "WRONG": "none", **env})

    def run_it(self, *args, **env):
        return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, env={**os.environ, **env})

    def test_no_registry(self):
        r = self.run_it(os.path.join(HERE, "fetch"), self.build, "http://127.0.0.1:9/debian")
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("fakegpu: the list of sid's packages cannot be had", r.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.build, "fakegpu", "sid")))
        self.assertEqual([f for f in os.listdir(os.path.join(self.build, "fakegpu")) if f.startswith("work")], [])

    def test_another_machine(self):
        r = self.run_it(os.path.join(HERE, "fetch"), self.build, "http://127.0.0.1:9/debian",
                        PATH=self.commands(dpkg="echo arm64\n"))
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("amd64 alone", r.stderr)

    def test_sid_has_moved_on(self):
        for again in range(2):
            r = self.fetch() if not again else self.run_it(os.path.join(HERE, "fetch"), self.build, "http://127.0.0.1:9/debian")
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertIn("sid has moved on from packages.lock", r.stderr)
            for package, version, _ in locked():
                self.assertIn(f"{package} 9", r.stderr)
                self.assertNotIn(f"{package} {version}", r.stderr)
        with open(os.path.join(self.build, "fakegpu", "sid", "versions")) as f:
            self.assertEqual([line.split() for line in f],
                             [[p, "9", hashlib.sha256(f"{p}=9".encode()).hexdigest()] for p, _, _ in locked()])

    def test_package_is_missing(self):
        package = locked()[2][0]
        r = self.fetch(MISSING=package)
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn(f"sid has no package {package}", r.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.build, "fakegpu", "sid")))

    def test_another_package_is_served(self):
        package = locked()[1][0]
        r = self.fetch(WRONG=package)
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn(f"the package {package} 9", r.stderr)
        self.assertIn("checksum differs", r.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.build, "fakegpu", "sid")))

    def test_suites_are_skipped(self):
        self.assertGreater(len(SUITES), 5)
        for suite in SUITES:
            with self.subTest(suite):
                r = self.run_it(sys.executable, "-B", os.path.join(HERE, suite), ZETRACE_BUILD=self.build)
                self.assertEqual(r.returncode, 77, r.stdout + r.stderr)
                self.assertIn("'tools/dev fakegpu' fetches it", r.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)

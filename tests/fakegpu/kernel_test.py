# SPDX-License-Identifier: MIT
"""Kernels of a program's own: compiled by Intel's compiler, launched by its driver, done in C on the fake device."""
import os
import shutil
import subprocess
import sys
import unittest

import intel


class Kernel(intel.Case):
    def setUp(self):
        super().setUp()
        subprocess.run(["spirv-as", "--target-env", "spv1.0", "-o", "scale.spv", os.path.join(intel.HERE, "scale.spvasm")], check=True)

    def test_registered(self):
        for device in ("max1550", "b580"):
            with self.subTest(device):
                r = self.assertKnown(intel.run("scale", "scale.spv", env=intel.environment(device, delay=1)))
                self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
                self.assertEqual(r.stdout, "scale: all is well\n")

    def test_unknown_kernels_are_told_of(self):
        r = intel.run("scale", "scale.spv", "unregistered")
        self.assertEqual(r.returncode, 1, r.stdout + r.stderr)
        self.assertIn("DEVICE_LOST", r.stdout)
        self.assertIn("has no body: fakegpu_register gives it one", r.stderr)


if __name__ == "__main__":
    if not shutil.which("spirv-as"):
        print("spirv-as, of the package spirv-tools, is not there: 'tools/dev fakegpu' installs it", file=sys.stderr)
        sys.exit(77)
    unittest.main(verbosity=2)

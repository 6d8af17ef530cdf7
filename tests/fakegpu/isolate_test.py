# SPDX-License-Identifier: MIT
"""The culprit is isolated by replays on Intel's driver alone."""
import json
import unittest

import intel
from intel import harness


class Isolate(intel.Case):
    def test_isolated(self):
        self.record_on_intel(harness.app("evict"), "brief", status=1)
        r = self.zetrace("isolate", "--json", "--jobs=6", "--driver=" + intel.DRIVER, "t.zetrace", status=1)
        found = json.loads(r.stdout)
        self.assertEqual(found["verdict"], "order")
        self.assertEqual(found["early"]["function"], "zeContextEvictMemory")
        self.assertEqual(found["late"]["function"], "zeCommandListAppendMemoryCopy")
        self.assertEqual((found["fails"], found["passes"], found["repair"]["verified"]), ([3, 3], [3, 3], [3, 3]))
        self.assertIn("libze_intel_gpu", found["driver"])


if __name__ == "__main__":
    unittest.main(verbosity=2)

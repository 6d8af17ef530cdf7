# SPDX-License-Identifier: MIT
"""What Intel's driver did is recorded, and replayed on it and on libze_soft."""
import concurrent.futures
import unittest

import intel
from intel import harness


def results(calls):
    return [(c["function"], c["result"]) for c in calls]


class Trace(intel.Case):
    def setUp(self):
        super().setUp()
        self.record_on_intel(harness.app("evict"), "brief", status=1)

    def test_replayed_ten_times(self):
        # a failing Execute waits a second inside the driver: all at once
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            for r in pool.map(lambda _: self.zetrace("replay", "t.zetrace"), range(10)):
                self.assertIn("the recorded driver", r.stderr)
                self.assertTrue(r.stdout.startswith("same: "), r.stdout)
                self.assertIn("the recorded failure came back", r.stdout)

    def test_replayed_on_libze_soft(self):
        r = self.zetrace("replay", "--driver=soft", "--schedule=lazy", "t.zetrace")
        self.assertTrue(r.stdout.startswith("same: "), r.stdout)
        self.zetrace("replay", "--driver=soft", "--schedule=eager", "t.zetrace", status=1)
        r = harness.zetrace("record", "-f", "-o", "soft.zetrace", "--driver=soft", "--schedule=lazy", "--", harness.app("evict"), "brief")
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertEqual(results(self.dump("t.zetrace")), results(self.dump("soft.zetrace")))


if __name__ == "__main__":
    unittest.main(verbosity=2)

# SPDX-License-Identifier: MIT
"""Intel's own driver runs on the fake device, and a buffer evicted in flight fails as it does on hardware."""
import unittest

import intel
from intel import environment, NO_DIRECT_SUBMISSION

UNKNOWN = "zeCommandQueueExecuteCommandLists(queue, 1, &empty, NULL) = ZE_RESULT_ERROR_UNKNOWN"
LOST = "zeCommandQueueSynchronize(queue, UINT64_MAX) = ZE_RESULT_ERROR_DEVICE_LOST"


class Driver(intel.Case):
    def test_copies_and_fills(self):
        for device in ("max1550", "b580"):
            for engine in ("compute", "copy"):
                for keys in ({}, NO_DIRECT_SUBMISSION):
                    with self.subTest(device, engine=engine, keys=keys):
                        r = self.assertKnown(intel.run("data", engine, env=environment(device, delay=1, **keys)))
                        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
                        self.assertIn("data: all is well", r.stdout)

    def test_evict_in_flight(self):
        r = self.assertKnown(intel.run("evict", "brief", env=environment(**NO_DIRECT_SUBMISSION)))
        self.assertEqual(r.returncode, 1, r.stdout + r.stderr)
        self.assertEqual(r.stdout.splitlines(), [UNKNOWN, LOST, "evict: the bug shows"])
        self.assertEqual(r.stderr.count("page fault"), 1, r.stderr)
        self.assertIn("the queue is banned", r.stderr)

    def test_evict_in_flight_with_direct_submission(self):
        r = self.assertKnown(intel.run("evict", "brief"))
        self.assertEqual(r.returncode, 1, r.stdout + r.stderr)
        self.assertIn(LOST, r.stdout)
        self.assertEqual(r.stderr.count("page fault"), 1, r.stderr)

    def test_evict_in_flight_of_memory_that_is_not_pooled(self):
        for keys, status in (({}, 0), ({"EnableDeviceUsmAllocationPool": "0", "ExperimentalEnableDeviceAllocationCache": "0"}, 1)):
            r = self.assertKnown(intel.run("evict", "brief", env=environment("b580", **NO_DIRECT_SUBMISSION, **keys)))
            self.assertEqual(r.returncode, status, r.stdout + r.stderr)

    def test_evict_after_a_wait(self):
        for device in ("max1550", "b580"):
            for keys in ({}, NO_DIRECT_SUBMISSION):
                r = self.assertKnown(intel.run("evict_good", env=environment(device, **keys)))
                self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
                self.assertEqual(r.stderr, "")


if __name__ == "__main__":
    unittest.main(verbosity=2)

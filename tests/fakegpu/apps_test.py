# SPDX-License-Identifier: MIT
"""The programs with an ordering bug, and their repaired twins, on Intel's driver: what docs/FAKEGPU.md says of each."""
import concurrent.futures
import json
import unittest

import intel
from intel import harness

# program: whether its bug shows, what check says of it
APPS = {"o1_evict_in_flight": (1, {"A1", "E1"}), "o2_host_staging_lifetime": (1, {"C1"}), "o3_event_rerecord": (1, {"D1"}),
        "o4_resubmit_stale_event": (1, {"D2"}), "o5_immediate_not_inorder": (1, {"E2"}), "o6_destroy_order": (0, {"B1q", "B2"}),
        "o7_wait_never_submitted": (1, {"E4", "F1"}), "o8_short_timeout_ignored": (1, {"G2", "A2"})}


class Apps(intel.Case):
    def tried(self, name, argument):
        trace = f"{name}{argument}.zetrace"
        env = intel.environment(**intel.NO_DIRECT_SUBMISSION)
        r = self.assertKnown(harness.zetrace("record", "-f", "-o", trace, "--driver=" + intel.DRIVER, "--", harness.app(name),
                                             *argument.split(), env=env))
        check = harness.zetrace("check", "--json", trace, env=env)
        return r.returncode, {finding["rule"] for finding in json.loads(check.stdout)["findings"]}

    def test_all(self):
        cases = [(name, argument) for name in APPS for argument in ("", "fixed")]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for (name, argument), found in zip(cases, pool.map(lambda case: self.tried(*case), cases)):
                with self.subTest(name, argument=argument):
                    self.assertEqual(found, (0, set()) if argument else APPS[name])


if __name__ == "__main__":
    unittest.main(verbosity=2)

# SPDX-License-Identifier: MIT
"""zetrace replay: memory that the host may have written over before it was read back."""
import json
import os
import unittest

import harness
from harness import BUILD, app, zetrace

RANDOM = os.path.join(BUILD, "bin", "order", "random")


class Readback(harness.Case):
    def replay(self, status, *options):
        r = zetrace("replay", "--json", *options, "t.zetrace")
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return json.loads(r.stdout)

    def test_what_the_host_wrote_over_a_commands_output_is_no_difference(self):
        host_bytes = 0
        for seed in range(1, 13):
            with self.subTest(seed=seed):
                self.record(RANDOM, seed, "missing-wait", "intact", options=["--schedule=eager"])
                report = self.replay(0)
                self.assertTrue(report["same"])
                self.assertGreater(report["compared_bytes"], 0)
                host_bytes += report["host_bytes"]
        self.assertGreater(host_bytes, 0)

    def test_it_is_told(self):
        self.record(RANDOM, 4, "missing-wait", "intact", options=["--schedule=eager"])
        n = self.replay(0)["host_bytes"]
        self.assertGreater(n, 0)
        text = zetrace("replay", "t.zetrace").stdout
        self.assertIn("same: ", text)
        self.assertIn(f"{n} bytes differ where the host may have written", text)

    def test_what_a_command_left_otherwise_differs(self):
        for seed in range(1, 5):
            with self.subTest(seed=seed):
                self.record(RANDOM, seed, "missing-wait", "--script=order", options=["--schedule=eager"])
                report = self.replay(1, "--schedule=script:order")
                self.assertEqual(report["first_mismatch"]["what"], "memory")

    def test_nothing_is_given_up_where_the_host_was_told_in_time(self):
        self.record(app("s9_no_events_between_lists"), options=["--schedule=eager"])
        report = self.replay(1, "--schedule=lazy")
        self.assertEqual((report["first_mismatch"]["what"], report["host_bytes"]), ("memory", 0))


if __name__ == "__main__":
    unittest.main()

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


class CopiedByTheAppend(harness.Case):
    def test_host_memory_written_over_behind_the_submit(self):
        for arguments in (["fixed"], ["ungated", "fixed"]):
            self.record(app("o2_host_staging_lifetime"), *arguments, options=["--schedule=async"], env={"ZE_SOFT_HOSTPTR": "append"})
            for options in ([], ["--order=latest"], ["--inject=sync@before:zeCommandListClose"]):
                with self.subTest(arguments, options=options):
                    r = zetrace("replay", *options, "t.zetrace")
                    self.assertEqual(r.returncode, 0, r.stdout + r.stderr)


class Range(harness.Case):
    def test_from_and_to(self):
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        last = self.info()["calls"]
        for options, said in (([f"--from=#{last + 1}"], f"no call #{last + 1}; its last is #{last}"), ([f"--to=#{last + 1}"], f"no call #{last + 1}"),
                              (["--from=#20", "--to=#10"], "--from=#20 comes behind --to=#10")):
            self.assertSentence(zetrace("replay", *options, "t.zetrace"), 2, said)
        for options in (["--from=#1"], [f"--from=#{last}"], ["--to=#1"], [f"--to=#{last}"], ["--from=#20", "--to=#20"]):
            self.assertEqual(zetrace("replay", *options, "t.zetrace").returncode, 0, options)

    def test_a_gap(self):
        """Numbers that a cut trace has none of still bound a range, if there is a call in it."""
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        self.assertEqual(zetrace("trim", "-q", "-o", "cut.zetrace", "--needs=#11", "t.zetrace").returncode, 0)
        numbers = [c["call"] for c in self.dump("cut.zetrace")]
        gap = next(n for n in range(numbers[0], numbers[-1]) if n not in numbers)
        self.assertEqual(zetrace("replay", f"--from=#{gap}", "cut.zetrace").returncode, 0)
        self.assertSentence(zetrace("replay", f"--from=#{gap}", f"--to=#{gap}", "cut.zetrace"), 2, f"no call from #{gap} to #{gap}")


if __name__ == "__main__":
    unittest.main()

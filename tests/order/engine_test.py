# SPDX-License-Identifier: MIT
"""isolate names the edge that a random program lacks, within its replays, and says nothing of correct programs; nor does check."""
import unittest

import engine
from random_test import CLASSES, harness

# two of each class; what isolate is known to miss is counted by the benchmark, not hidden here: see docs/isolate.md
SEEDS = {klass: (1, 2) for klass in CLASSES} | {"host-write": (2, 3)}
TWINS = 12


class Engine(harness.Case):
    def test_the_missing_edge_is_named_within_the_replays(self):
        programs = [(klass, seed) for klass in CLASSES for seed in SEEDS[klass]]
        for program, answer in engine.each(engine.bug, programs, "isolate"):
            with self.subTest(program):
                self.assertIsNotNone(answer, "the recording is not what the program says it is")
                self.assertTrue(answer.right, answer)
                self.assertTrue(answer.within, answer)
                self.assertEqual(answer.strange, 0, answer)

    def test_correct_programs_are_left_alone(self):
        for program, report in engine.each(engine.twin, engine.twins_of(TWINS), "twins"):
            with self.subTest(program):
                self.assertIsNone(report)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT
"""What the host wrote and read back, where commands write too: isolate keeps quiet about a correct program, and sees the missing edge."""
import json
import unittest

import harness
from harness import app, run, zetrace

# mode -> (copies, in the order they are appended, of the pair, early first; what the early one is if no copy; where it shows)
BROKEN = {
    "transitive": ((None, 1), "zeEventHostSynchronize", "zeEventHostSynchronize"),
    "partly": ((5, 4), None, "zeEventHostSynchronize"),
    "input": ((4, 3), None, "zeEventHostSynchronize"),
    "many": ((-3, 5), None, "zeCommandQueueSynchronize"),
    "regular": ((2, 1), None, "zeEventHostSynchronize"),
}


class HostWrites(harness.Case):
    def isolate(self, mode, *options):
        self.record(app("hostwrites"), mode, *options, options=["--schedule=eager"])
        r = zetrace("isolate", "--json", "t.zetrace")
        self.assertIn(r.returncode, (0, 1), r.stdout + r.stderr)
        return json.loads(r.stdout)

    def test_all_modes_are_here(self):
        self.assertEqual(run(app("hostwrites")).stdout.split(), list(BROKEN))

    def test_correct_programs_are_left_alone(self):
        for mode in BROKEN:
            with self.subTest(mode):
                answer = self.isolate(mode)
                self.assertEqual(answer["verdict"], "none-found", answer)
                r = zetrace("check", "t.zetrace")
                self.assertEqual(r.returncode, 0, r.stdout)

    def test_the_missing_edge_is_named(self):
        for mode, ((early, late), function, shows_in) in BROKEN.items():
            with self.subTest(mode):
                answer = self.isolate(mode, "broken")
                calls = {c["call"]: c["function"] for c in self.dump()}
                copies = [n for n, name in calls.items() if name == "zeCommandListAppendMemoryCopy"]
                self.assertEqual((answer["verdict"], answer["late"]["call"]), ("order", copies[late]), answer)
                if early is not None:
                    self.assertEqual(answer["early"]["call"], copies[early], answer)
                else:
                    self.assertEqual(answer["early"]["function"], function, answer)
                self.assertEqual(calls[answer["shows_at"]], shows_in, answer)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT
"""Each kind of edge is needed: without it a correct program is accused. The list of mutations is EDGES."""
import unittest

import harness
from harness import app, zetrace

# kind -> correct programs that depend on it
EDGES = {
    "program": ["o5_immediate_not_inorder fixed"],
    "submit": ["o5_immediate_not_inorder fixed"],
    "in-order": ["o5_immediate_not_inorder fixed2"],
    "barrier": ["o5_immediate_not_inorder fixed"],
    "event": ["o4_resubmit_stale_event fixed", "client_linked"],
    "fence": ["o6_destroy_order fixed"],
    "sync": ["evict good", "o1_evict_in_flight fixed", "o2_host_staging_lifetime fixed"],
    "event-sync": ["o5_immediate_not_inorder fixed", "client_linked"],
    "free": ["o1_evict_in_flight fixed2"],
    "start": ["r_edges start"],
    "barrier-waits": ["r_edges barrier-waits"],
    "wait": ["r_edges wait", "bait two-queues"],
    "host-signal": ["r_edges host-signal"],
    "synchronous": ["r_edges synchronous"],
    "counter": ["r_edges counter", "bait in-order"],
}


class Edges(harness.Case):
    def test_each_is_needed(self):
        for kind, programs in EDGES.items():
            for program in programs:
                with self.subTest(kind=kind, program=program):
                    name, *arguments = program.split()
                    self.record(app(name), *arguments, options=["-f", "--schedule=eager"])
                    self.assertEqual(zetrace("check", "-q", "t.zetrace").returncode, 0)
                    self.assertEqual(zetrace("check", "-q", f"--without={kind}", "t.zetrace").returncode, 1)

    def test_usage(self):
        self.record(app("evict"), "good")
        for kinds in ("nothing", "", "sync,x"):
            self.assertEqual(zetrace("check", f"--without={kinds}", "t.zetrace").returncode, 2, kinds)


if __name__ == "__main__":
    unittest.main()

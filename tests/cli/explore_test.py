# SPDX-License-Identifier: MIT
"""explore: every distinct order once, against an enumeration of all interleavings."""
import json
import os
import unittest

import harness
from harness import app, run, zetrace

WORDS = [[0, 1, 2, 3], [1, 0, 4, 5], [2, 6, 0, 7]]  # as in tests/apps/interleave.c


def brute_force():
    """Distinct ways in which conflicting pairs can lie, over all interleavings of three lines of four."""
    commands = [(i, k) for i in range(3) for k in range(4)]
    pairs = [(a, b) for a in commands for b in commands if a < b and a[0] != b[0] and WORDS[a[0]][a[1]] == WORDS[b[0]][b[1]]]
    found, place = set(), {}

    def go(heads):
        if sum(heads) == 12:
            found.add(tuple(place[a] < place[b] for a, b in pairs))
            return
        for i in range(3):
            if heads[i] < 4:
                place[(i, heads[i])] = sum(heads)
                go(heads[:i] + (heads[i] + 1,) + heads[i + 1:])

    go((0, 0, 0))
    return len(pairs), len(found)


MANY = """
#include "common.h"
int main(int argc, char **argv)
{
    app a = app_open();
    char *const memory = device_new(&a, 4096);
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    ze_command_list_handle_t list = list_new(&a, 0);
    for (int i = 0; i < atoi(argv[argc - 1]); i++)
        MUST(zeCommandListAppendMemoryCopy(list, memory, memory + 2048, 8, NULL, 0, NULL));
    MUST(zeCommandListClose(list));
    MUST(run(queue, list, NULL));
    MUST(zeCommandQueueSynchronize(queue, UINT64_MAX));
    return 0;
}
"""


class Explore(harness.Case):
    def explore(self, *options, status):
        r = zetrace("explore", "--json", *options, "t.zetrace")
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return json.loads(r.stdout)

    def test_every_order_once(self):
        self.record(app("interleave"), options=["--schedule=eager"])
        answer = self.explore("--count", status=0)
        self.assertEqual((answer["pairs"], answer["orders"], answer["complete"]), (*brute_force(), True))

    def test_counting_says_nothing_of_failing(self):
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        said = zetrace("explore", "--count", "t.zetrace")
        self.assertRegex(said.stdout, r"^\d+ orders counted, none run, ")
        self.assertNotIn("fail", said.stdout)
        self.assertFalse({"failing", "blamed", "unexplained"} & self.explore("--count", status=0).keys())
        self.assertIn("; 2 fail", zetrace("explore", "t.zetrace").stdout)

    def test_one_is_one(self):
        self.record(app("evict"), "good")
        self.assertRegex(zetrace("explore", "t.zetrace").stdout, r"(?m)^1 order run, which is all of them, each once, of 0 pairs that nothing orders; 0 fail$")
        self.record(app("evict"), options=["--schedule=eager"])
        said = zetrace("replay", "--inject=sync@before:#14", "t.zetrace").stdout
        self.assertIn("\n1 call was injected\n", said)
        said = zetrace("replay", "--inject=sync@before:#14", "--order=recorded", "t.zetrace").stdout
        self.assertIn(" were injected, gates and marks of commands among them\n1 call was not made: the loader's own, or never returned\n", said)

    def test_orders_that_fail(self):
        self.record(app("interleave"), options=["--schedule=eager"])
        answer = self.explore(status=1)
        self.assertEqual(answer["orders"], brute_force()[1])
        self.assertGreater(answer["failing"], 0)
        self.assertLess(answer["failing"], answer["orders"])

    def test_evict(self):
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        answer = self.explore(status=1)
        calls = {c["function"]: c["call"] for c in reversed(self.dump())}
        self.assertEqual([(b["early"]["call"], b["late"]["call"]) for b in answer["blamed"]],
                         [(calls["zeContextEvictMemory"], calls["zeCommandListAppendMemoryCopy"])])
        self.record(app("evict"), "good", options=["-f"])
        self.assertEqual(self.explore(status=0)["orders"], 1)

    def test_budget(self):
        self.record(app("interleave"), options=["--schedule=eager"])
        self.assertFalse(self.explore("--count", "--budget=3", status=4)["complete"])

    def test_usage(self):
        for option in ("--budget=0", "--recording=so", "--timeout=x", "--what"):
            self.assertEqual(zetrace("explore", option, "t.zetrace").returncode, 2)

    def test_no_pair_is_blamed_for_what_fails_anyway(self):
        self.record(app("o1_evict_in_flight"), options=["--schedule=async"], status=1)
        answer = self.explore(status=1)
        self.assertEqual((answer["failing"], answer["unexplained"], answer["earliest_fails"], answer["blamed"]),
                         (answer["orders"], answer["orders"], True, []))
        self.assertIn("the earliest order fails as well", zetrace("explore", "t.zetrace").stdout)

    def test_a_write_of_the_host(self):
        self.record(app("o2_host_staging_lifetime"), "ungated", options=["--schedule=eager"])
        answer = self.explore(status=1)
        calls = {c["call"]: c["function"] for c in self.dump()}
        self.assertEqual([(calls[b["early"]["call"]], calls[b["late"]["call"]], b["early"]["execution"]) for b in answer["blamed"]],
                         [("zeCommandQueueSynchronize", "zeCommandListAppendMemoryCopy", 0)])

    def test_too_much_for_it(self):
        """More than anybody waits for is refused at once, and not after the machine's memory is gone; what one call submits takes its time."""
        with open("many.c", "w", encoding="utf-8") as f:
            f.write(MANY)
        apps = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "apps")
        r = run("cc", "-w", f"-I{apps}", "many.c", "-o", "many", "-lze_loader")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.record("./many", 100, options=["--schedule=eager"])
        self.assertSentence(zetrace("explore", "--count", "t.zetrace"), 125, "t.zetrace", "too many commands, or pairs", "zetrace trim")
        self.record("./many", 8200, options=["--schedule=eager"])
        r = zetrace("replay", "--order=latest", "t.zetrace")
        self.assertEqual(r.returncode, 125, r.stdout + r.stderr)
        self.assertIn("8192 in flight at once", r.stderr)
        self.assertSentence(zetrace("isolate", "t.zetrace"), 125, "8192 in flight at once")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT
"""Random programs with one ordering edge left out: the twins are correct in every order, the bugs are real, and some run shows some.

    random_test.py                           what ctest runs
    random_test.py --twins [SEEDS]           intact programs give the same contents on async, eager, lazy and seed:1..20
    random_test.py --rates [SEEDS] [RUNS]    how often a bug shows when the program is run again and again
"""
import collections
import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import harness  # noqa: E402

RANDOM = os.path.join(harness.BUILD, "bin", "order", "random")
CLASSES = ("missing-wait", "wrong-event", "no-reset", "early-reset", "host-write", "free-in-use", "evict-in-use", "list-reused",
           "no-barrier", "copy-compute", "two-contexts", "two-queues")
GOOD, BAD, NONE = 0, 1, 2
HANG_MS = 300      # a buggy program may wait for ever: none of its waits takes long if it ends
PATIENCE_MS = 30000
Removed = collections.namedtuple("Removed", "klass first second object pairs eager executions")
Outcome = collections.namedtuple("Outcome", "status said expected removed also")


def parse(line):
    """A `removed:` or `also:` line."""
    f = dict(word.split("=", 1) for word in line.split()[1:])
    return Removed(f["class"], f["first"], f["second"], f["object"], int(f["pairs"]), f["eager"] == "good",
                   tuple(int(n) for n in f["executions"].split(",")))


def arguments(seed, klass, intact, *options):
    return [str(seed), klass, *(["intact"] if intact else []), f"--patience={PATIENCE_MS if intact else HANG_MS}", *options]


def outcome(result):
    lines = result.stderr.splitlines()
    removed = [parse(line) for line in lines if line.startswith("removed: ")]
    also = [parse(line) for line in lines if line.startswith("also: ")]
    expected = re.search(r"^expected: ([0-9a-f]+)", result.stderr, re.M)
    return Outcome(result.returncode, result.stdout.strip(), expected and "hash " + expected[1], removed[0] if removed else None, also)


def run(seed, klass, schedule, intact=False, *options):
    return outcome(harness.run(RANDOM, *arguments(seed, klass, intact, *options),
                               env={"ZE_ENABLE_ALT_DRIVERS": harness.DRIVER, "ZE_SOFT_SCHEDULE": schedule}))


def good(o):
    if o.status not in (GOOD, BAD) or o.removed is None:
        raise AssertionError(f"no verdict: {o}")
    return o.status == GOOD and o.said == o.expected


def record(seed, klass, intact=False, schedule="eager", out=None):
    """Records the program. @return (path of its trace, what the program said and what was left out of it)."""
    out = out or f"{klass}.{seed}{'.intact' if intact else ''}.zetrace"
    r = harness.zetrace("record", "-f", "-o", out, "--driver=soft", f"--schedule={schedule}", "--", RANDOM,
                        *arguments(seed, klass, intact))
    return out, outcome(r)


def calls_of(trace):
    """The recorded calls by the names that a `removed:` line uses: {'append:3': 41, 'host:zeMemFree:1': 57, ...}."""
    names, appends, counts = {}, 0, collections.Counter()
    r = harness.zetrace("dump", "--json", trace)
    for line in r.stdout.splitlines():
        call = harness.json.loads(line)
        function = call["function"]
        counts[function] += 1
        names[f"host:{function}:{counts[function]}"] = names[f"write-before:{function}:{counts[function]}"] = call["call"]
        if function.startswith("zeCommandListAppend"):
            appends += 1
            names[f"append:{appends}"] = call["call"]
    return names


def judge(trace, removed):
    """What the order engine has to find in the trace: the calls of the pair that was left without an order. With `zetrace check` and
    `zetrace isolate` called here, an answer is right if it names both."""
    names = calls_of(trace)
    return names.get(removed.first), names.get(removed.second)


class Random(harness.Case):
    def test_twins_end_alike_in_every_order(self):
        for seed in range(1, 9):
            klass = CLASSES[seed % len(CLASSES)]
            for schedule in ("async", "eager", "lazy", "seed:1", "seed:2", "seed:3"):
                with self.subTest(seed=seed, klass=klass, schedule=schedule):
                    o = run(seed, klass, schedule, True)
                    self.assertTrue(good(o), o)

    def test_each_bug_has_its_class_and_eager_hides_it(self):
        for klass in CLASSES:
            for seed in (1, 2):
                with self.subTest(seed=seed, klass=klass):
                    o = run(seed, klass, "eager")
                    self.assertEqual(o.removed.klass, klass)
                    self.assertEqual(good(o), o.removed.eager, o)

    def test_a_bug_shows_in_the_order_that_its_program_names(self):
        for klass in CLASSES:
            for seed in (1, 2):
                with self.subTest(seed=seed, klass=klass):
                    o = run(seed, klass, "script:order", False, "--script=order")
                    self.assertFalse(good(o), o)

    def test_same_seed_same_program(self):
        one, other = (run(7, "missing-wait", "eager", False, "--queues=4", "--commands=80") for _ in range(2))
        self.assertEqual(one, other)

    def test_a_trace_has_the_calls_of_the_pair(self):
        for klass in ("missing-wait", "early-reset", "host-write", "free-in-use", "list-reused"):
            with self.subTest(klass):
                trace, o = record(3, klass)
                self.assertNotIn(None, judge(trace, o.removed), o)
                self.assertTrue(good(o), o)

    def test_usage(self):
        self.assertEqual(harness.run(RANDOM, "1", "no-such-class").returncode, NONE)


def twins(seeds):
    bad = runs = 0
    for seed in range(1, seeds + 1):
        klass = CLASSES[seed % len(CLASSES)]
        for schedule in ["async", "eager", "lazy", *(f"seed:{n}" for n in range(1, 21))]:
            o = run(seed, klass, schedule, True)
            runs += 1
            if not good(o):
                bad += 1
                print("differs:", seed, klass, schedule, o)
    print(f"{seeds} programs, {runs} runs, {bad} differ")
    return bad > 0


def schedules_of(runs):
    return ["async", "lazy", *(f"seed:{n}" for n in range(1, runs + 1))][:runs]


def shown(seed, klass, schedules):
    """@return the schedules on which the bug shows."""
    return [s for s in schedules if not good(run(seed, klass, s))]


def rates(seeds, runs):
    schedules = schedules_of(runs)
    print(f"{seeds} programs a class, {len(schedules)} runs each: how many show the bug, and how often")
    print(f"{'class':14} {'programs':>8} {'shown':>6} {'of runs':>8} {'async':>6} {'lazy':>6} {'eager hides':>12} {'named order':>12}")
    for klass in CLASSES:
        made = seen = hits = hides = forced = 0
        at = collections.Counter()
        for seed in range(1, seeds + 1):
            eager = run(seed, klass, "eager")
            if eager.status == NONE:
                continue
            made += 1
            hides += good(eager)
            with tempfile.NamedTemporaryFile() as order:
                forced += not good(run(seed, klass, f"script:{order.name}", False, f"--script={order.name}"))
            found = shown(seed, klass, schedules)
            at.update(found)
            hits += len(found)
            seen += bool(found)
        print(f"{klass:14} {made:8} {seen:6} {100 * hits / max(1, made * len(schedules)):7.1f}% {at['async']:6} {at['lazy']:6} "
              f"{hides:12} {forced:12}", flush=True)
    return 0


if __name__ == "__main__":
    numbers = [int(a) for a in sys.argv[2:]]
    if sys.argv[1:2] == ["--twins"]:
        sys.exit(twins(*numbers or [50]))
    if sys.argv[1:2] == ["--rates"]:
        sys.exit(rates(*(numbers + [10, 60][len(numbers):])))
    unittest.main()

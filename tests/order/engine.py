# SPDX-License-Identifier: MIT
"""check and isolate on random programs with one edge left out, and on their intact twins.

    engine.py bugs SEEDS [CLASS]...     of each class SEEDS programs: does isolate name the pair, in how many replays
    engine.py twins SEEDS               intact programs: nothing from isolate, no error from check
"""
import collections
import json
import math
import sys
import tempfile
import os

import random_test
from random_test import harness

CONFIRM = 3
Answer = collections.namedtuple("Answer", "right verdict replays within named wanted check text")


def budget(lines, inversions):
    """Replays that an answer may take: docs/isolate.md."""
    return 3 + (2 * lines + 1) + math.ceil(math.log2(max(2, inversions))) + 3 * CONFIRM


def pair_of(names, removed):
    return names.get(removed.first), names.get(removed.second)


def check(trace):
    r = harness.zetrace("check", "--json", trace)
    if r.returncode not in (0, 1):
        raise AssertionError(r.stderr)
    return json.loads(r.stdout)


def isolate(trace, *options):
    r = harness.zetrace("isolate", "--json", f"--confirm={CONFIRM}", *options, trace, timeout=600)
    if r.returncode not in (0, 1, 4):
        raise AssertionError(r.stderr)
    return json.loads(r.stdout)


def judge(trace, o, *options):
    """Whether isolate names a pair that the program left without an order, and check one of them in an error."""
    names = random_test.calls_of(trace)
    wanted = [set(pair_of(names, r)) for r in (o.removed, *o.also)]
    a = isolate(trace, *options)
    named = {a["early"]["call"], a["late"]["call"]}
    errors = [f for f in check(trace)["findings"] if f["severity"] == "error"]
    seen = any(w <= set(f["calls"]) for w in wanted for f in errors)
    right = a["verdict"] in ("order", "host-order") and named in wanted
    replays = a["found_after"] if right else a["replays"]
    return Answer(right, a["verdict"], replays, replays <= budget(a["carriers"], a["inversions"]), sorted(named),
                  [sorted(w, key=str) for w in wanted], seen, a["text"])


def bugs(seeds, classes, first=1):
    print(f"{'class':14} {'programs':>8} {'right':>6} {'within':>7} {'check':>6} {'replays: median':>16} {'max':>4}")
    total = good = 0
    for klass in classes:
        answers = []
        for seed in range(first, first + seeds):
            trace, o = random_test.record(seed, klass)
            if o.removed is None:
                continue
            a = judge(trace, o)
            answers.append(a)
            if not a.right or not a.within or not a.check:
                print(f"  {klass} {seed}: {a}", flush=True)
            os.unlink(trace)
        replays = sorted(a.replays for a in answers) or [0]
        right = sum(a.right for a in answers)
        total += len(answers)
        good += sum(a.right and a.within for a in answers)
        print(f"{klass:14} {len(answers):8} {right:6} {sum(a.right and a.within for a in answers):7} {sum(a.check for a in answers):6} "
              f"{replays[len(replays) // 2]:16} {replays[-1]:4}", flush=True)
    print(f"{good} of {total} right within their replays ({100 * good / max(1, total):.1f} %)")
    return good < 0.95 * total


def twins(seeds, first=1):
    said = 0
    for seed in range(first, first + seeds):
        klass = random_test.CLASSES[seed % len(random_test.CLASSES)]
        trace, o = random_test.record(seed, klass, intact=True)
        a = isolate(trace)
        errors = [f for f in check(trace)["findings"] if f["severity"] == "error"]
        if a["verdict"] != "none-found" or errors:
            said += 1
            print(f"  {klass} {seed}: {a['verdict']} {a['early']} {a['late']} {a['text']} {errors[:1]}", flush=True)
        os.unlink(trace)
    print(f"{seeds} intact programs, {said} with a report")
    return said > 0


if __name__ == "__main__":
    what, seeds, *rest = sys.argv[1:] or ["", "0"]
    with tempfile.TemporaryDirectory(prefix="zetrace-engine.") as folder:
        os.chdir(folder)
        if what == "bugs":
            sys.exit(bugs(int(seeds), rest or random_test.CLASSES))
        if what == "twins":
            sys.exit(twins(int(seeds)))
    sys.exit(__doc__)

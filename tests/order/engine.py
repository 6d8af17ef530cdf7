# SPDX-License-Identifier: MIT
"""check and isolate on random programs with one edge left out, and on their intact twins.

    engine.py bugs SEEDS [CLASS]...     of each class SEEDS programs: does isolate name the pair, in how many replays
    engine.py twins SEEDS               intact programs: nothing from isolate, no error from check
    engine.py bench SEEDS TWINS RUNS    both, beside running the program RUNS times and hoping
"""
import collections
import concurrent.futures
import json
import os
import sys
import tempfile

import random_test
from random_test import harness

CONFIRM = 3
JOBS = 2
GOAL = 95  # percent of the bugs
Answer = collections.namedtuple("Answer", "right verdict replays within named wanted check text in_all strange")  # strange: further pairs


def budget(lines):
    """Replays that an answer may take: docs/isolate.md."""
    return 4 + (2 * lines + 1) + 3 * CONFIRM


def pair_of(names, removed):
    return names.get(removed.first), names.get(removed.second)


def check(trace):
    r = harness.zetrace("check", "--json", trace)
    if r.returncode not in (0, 1):
        raise AssertionError(r.stderr)
    return json.loads(r.stdout)


def errors_of(trace):
    return [f for f in check(trace)["findings"] if f["severity"] == "error"]


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
    seen = any(w <= set(f["calls"]) for w in wanted for f in errors_of(trace))
    right = a["verdict"] in ("order", "host-order") and named in wanted
    replays = a["found_after"] if right else a["replays"]
    return Answer(right, a["verdict"], replays, replays <= budget(a["carriers"]), sorted(named),
                  [sorted(w, key=str) for w in wanted], seen, a["text"], a["replays"],
                  sum({m["early"]["call"], m["late"]["call"]} not in wanted for m in a["more"]))


def bug(program):
    """@return what isolate and check say of a recording of the program, None if that did not go as the program says."""
    klass, seed = program
    trace, o = random_test.record(seed, klass)
    answer = judge(trace, o) if o.removed is not None and random_test.good(o) == o.removed.eager else None
    os.unlink(trace)
    return answer


def twin(program):
    """@return what isolate or check reports of a correct program, None if nothing."""
    klass, seed = program
    trace, o = random_test.record(seed, klass, intact=True)
    if not random_test.good(o):
        return f"not correct: {o}"
    a, errors = isolate(trace), errors_of(trace)
    os.unlink(trace)
    return None if a["verdict"] == "none-found" and not errors else f"{a['verdict']} {a['early']} {a['late']} {a['text']} {errors[:1]}"


def each(work, programs, what):
    """(program, what `work` returns of it) in the order of `programs`, JOBS at a time. Progress goes to a terminal."""
    def progress(text):
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for i, (program, result) in enumerate(zip(programs, pool.map(work, programs))):
            progress("")
            yield program, result
            progress(f"{what}: {i + 1} of {len(programs)}, {program[0]}")
    progress("")


def twins_of(n, first=1):
    classes = random_test.CLASSES
    return [(classes[seed % len(classes)], seed) for seed in range(first, first + n)]


def shows_in(program, runs):
    schedules = random_test.schedules_of(runs)
    return len(random_test.shown(program[1], program[0], schedules)) / len(schedules)


def row_of(klass, answers):
    replays, in_all = sorted(a.replays for a in answers) or [0], sorted(a.in_all for a in answers) or [0]
    return (f"{klass:14} {len(answers):8} {sum(a.right for a in answers):6} {sum(a.right and a.within for a in answers):7} "
            f"{sum(a.check for a in answers):6} {replays[len(replays) // 2]:16} {replays[-1]:4} {in_all[len(in_all) // 2]:7}")


def bugs(seeds, classes, runs=0, first=1):
    """Prints a row for each class. @return (all answers, in how many programs one of `runs` runs showed the bug)."""
    print(f"{'class':14} {'programs':>8} {'right':>6} {'within':>7} {'check':>6} {'replays: median':>16} {'max':>4} {'in all':>7}"
          + (f"   {runs} runs show {'rate':>6}" if runs else ""), flush=True)
    everything, everywhere = [], []
    for klass in classes:
        answers, rates = [], []
        programs = [(klass, seed) for seed in range(first, first + seeds)]
        for (_, seed), a in each(bug, programs, "isolate"):
            if a is None:
                print(f"  {klass} {seed}: the recording is not what the program says it is", flush=True)
                continue
            answers.append(a)
            if not a.right or not a.within or a.strange:
                print(f"  {klass} {seed}: {a}", flush=True)
        if runs:
            rates = [rate for _, rate in each(lambda p: shows_in(p, runs), programs, "running again")]
        print(row_of(klass, answers) + (f"   {sum(r > 0 for r in rates):12} {100 * sum(rates) / max(1, len(rates)):5.1f}%" if runs else ""),
              flush=True)
        everything += answers
        everywhere += rates
    print(row_of("all", everything) + (f"   {sum(r > 0 for r in everywhere):12} {100 * sum(everywhere) / max(1, len(everywhere)):5.1f}%"
                                       if runs else ""), flush=True)
    return everything, sum(r > 0 for r in everywhere)


def twins(n):
    """@return how many intact programs something is said about."""
    said = 0
    for (klass, seed), report in each(twin, twins_of(n), "twins"):
        if report is not None:
            said += 1
            print(f"  {klass} {seed}: {report}", flush=True)
    return said


def share(answers):
    return 100 * sum(a.right and a.within for a in answers) / max(1, len(answers))


def bench(seeds, n_twins, runs):
    def goal(text, met):  # a few programs say nothing of a percentage
        return f"   goal {text}: {'met' if met else 'MISSED'}" if seeds > 5 else ""

    print(f"\nisolate: random programs with one edge left out, each recorded once, where it went well if it could; {runs} runs: the same\n"
          "program on the schedules async, lazy and seed:N, and the share of runs in which it goes wrong; in all: median of the replays\n"
          "that also say that no further pair is there")
    answers, shown = bugs(seeds, random_test.CLASSES, runs)
    said = twins(n_twins)
    print(f"right and within their replays: {share(answers):.1f} %{goal(f'>= {GOAL} %', share(answers) >= GOAL)}\n"
          f"further pairs that the programs do order: {sum(a.strange for a in answers)}{goal('0', not any(a.strange for a in answers))}\n"
          f"reports on {n_twins} correct programs: {said}{goal('0', said == 0)}\n"
          f"bugs found: {sum(a.right for a in answers)} of {len(answers)} by isolate, {sum(a.check for a in answers)} named by check, "
          f"{shown} show in {runs} runs{goal('more than these', sum(a.right for a in answers) > shown)}", flush=True)


def main(what="", *rest):
    numbers = [int(a) for a in rest if a.isdigit()]
    with tempfile.TemporaryDirectory(prefix="zetrace-engine.") as folder:
        os.chdir(folder)
        try:
            if what == "bugs" and len(numbers) == 1:
                answers, _ = bugs(numbers[0], rest[1:] or random_test.CLASSES)
                print(f"{share(answers):.1f} % right within their replays")
                return share(answers) < GOAL
            if what == "twins" and len(numbers) == 1:
                said = twins(numbers[0])
                print(f"{numbers[0]} intact programs, {said} with a report")
                return said > 0
            if what == "bench" and len(numbers) == 3:
                return bench(*numbers)
        finally:
            os.chdir("/")
    return __doc__


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

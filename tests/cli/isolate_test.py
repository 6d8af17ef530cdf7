# SPDX-License-Identifier: MIT
"""isolate on the known programs: the right pair from a failing and from a passing run, host-order where the program forces it, silence on
correct ones; its repairs cure, its pairs break. --all: every schedule and kind of fault."""
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

import harness
from harness import app, run, zetrace

ALL = "--all" in sys.argv
COPY, EXECUTE, EVICT = "zeCommandListAppendMemoryCopy", "zeCommandQueueExecuteCommandLists", "zeContextEvictMemory"
WAIT, BARRIER = "zeCommandListAppendWaitOnEvents", "zeCommandListAppendBarrier"

# FUNCTION[k]@n: the n-th execution of what its k-th call appended; a host call without @n.
RACES = {  # program -> the pairs: too early, what must be over by then
    "evict": [(EVICT, COPY + "@1")],
    "o1_evict_in_flight ungated": [(EVICT, COPY + "@1")],
    "o2_host_staging_lifetime ungated": [("zeCommandQueueSynchronize", COPY + "@1")],  # where the host's write was seen
    "o3_event_rerecord ungated": [("zeEventHostReset", BARRIER + "@1")],
    "o4_resubmit_stale_event ungated": [(COPY + "[2]@2", COPY + "@2")],
    "o5_immediate_not_inorder": [(COPY + "[2]@1", COPY + "@1")],
    "o6_destroy_order ungated": [("zeCommandQueueDestroy", COPY + "@1")],
    "o8_short_timeout_ignored ungated": [("zeMemFree", COPY + "@1")],
    "s9_no_events_between_lists": [(COPY + "[2]@1", COPY + "@1"), (COPY + "[3]@1", COPY + "[2]@1")],
    "s14_query_ignored ungated": [(COPY + "[2]@1", COPY + "@1")],
}
# Where the bug is not to have heeded NOT_READY, a run that saw SUCCESS is a right one. These schedules show it.
UNHEEDED = {"o8_short_timeout_ignored ungated": "seed:4", "s14_query_ignored ungated": "seed:2"}
FORCED = {  # program -> the rule that explains it, the call that must move, what it must move behind
    "o1_evict_in_flight": ("A1", EVICT, COPY + "@1"),
    "o2_host_staging_lifetime": ("C1", "zeEventHostSignal", COPY + "@1"),
    "o3_event_rerecord": ("D1", "zeEventHostReset", BARRIER + "@1"),
    "o4_resubmit_stale_event": ("D2", EXECUTE + "[4]", COPY + "@2"),
    "o6_destroy_order": ("B1q", "zeCommandQueueDestroy", WAIT + "@1"),
    "o7_wait_never_submitted": ("F1", "zeEventHostSynchronize", COPY),
    "o8_short_timeout_ignored": ("A2", "zeMemFree", COPY + "@1"),
    "s6_close_and_submit_twice": ("B1", EXECUTE + "[2]", BARRIER + "[2]@1"),
    "s7_reset_counter_event": ("D3", "zeEventHostReset", None),
    "s10_free_before_submit": ("A2", EXECUTE, "zeMemFree"),
    "s11_copy_past_end": ("A7", COPY, None),
    "s12_fence_reset_in_flight": ("B2", "zeFenceReset", WAIT + "@1"),
    "s13_pool_before_events": ("B4", "zeEventPoolDestroy", None),
    "s14_query_ignored": ("G2", "zeEventQueryStatus", EXECUTE + "[2]"),
}
UNSEEN = ["s1_two_threads_one_list", "s2_one_pool_two_threads"]  # the order of host calls is as recorded
TWINS = [p + " fixed" for p in [*RACES, *FORCED, *UNSEEN]]
TWINS += [p + " fixed2" for p in ("o1_evict_in_flight", "o1_evict_in_flight ungated", "o5_immediate_not_inorder")]
SLOW = ["o5_immediate_not_inorder", "o6_destroy_order ungated"]  # much memory, long waits: without --all tried less often
KNOBS = [{"ZE_SOFT_FAULT": fault, "ZE_SOFT_ERRORS": errors} for fault in ("ban", "abort", "scratch") for errors in ("submit", "sync")]


def baits():
    return [f"{name} {mode}" for name in ("bait", "r_edges") for mode in run(app(name)).stdout.split()]


def variants(schedules, knobs=KNOBS[:1]):
    return [(s, k) for s in (("eager", "lazy", "async") if ALL else schedules) for k in (KNOBS if ALL else knobs)]


class Isolate(harness.Case):
    def isolate(self, *options, status, trace="t.zetrace"):
        r = zetrace("isolate", "--json", *options, trace)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return json.loads(r.stdout)

    def point(self, selector, calls):
        function, k, execution = re.fullmatch(r"(\w+)(?:\[(\d+)\])?(?:@(\d+))?", selector).groups()
        call = [c["call"] for c in calls if c["function"] == function][int(k or 1) - 1]
        return {"call": call, "execution": int(execution or 0), "function": function}

    def of_each(self, jobs, test):
        """Records and isolates each (program, schedule, knobs), some at a time; `test` gets the program, its calls, and the answer."""
        def one(job):
            (program, schedule, knobs), trace = job, f"{jobs.index(job)}.zetrace"
            name, *arguments = program.split()
            recorded = zetrace("record", "-q", "-f", "-o", trace, "--driver=soft", "--schedule=" + schedule, "--", app(name), *arguments, env=knobs)
            answer = zetrace("isolate", "--json", "--jobs=3", trace, timeout=300)
            return recorded, answer, self.dump(trace)

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            for (program, schedule, knobs), (recorded, r, calls) in zip(jobs, pool.map(one, jobs)):
                with self.subTest(program, schedule=schedule, **knobs):
                    self.assertIn(recorded.returncode, (0, 1, 134), recorded.stderr)
                    self.assertIn(r.returncode, (0, 1, 4), r.stderr)
                    answer = json.loads(r.stdout)
                    self.assertEqual(r.returncode, {"order": 1, "host-order": 1, "none-found": 0}.get(answer["verdict"], 4))
                    test(program, calls, answer)

    def a_race(self, program, calls, answer):
        if program in UNHEEDED and "ZE_RESULT_NOT_READY" not in [c.get("result") for c in calls]:
            self.assertEqual(answer["verdict"], "none-found")
            return
        self.assertEqual(answer["verdict"], "order", answer["text"])
        found = [answer, *answer["more"]]
        self.assertEqual([(f["early"], f["late"]) for f in found],
                         [tuple(self.point(s, calls) for s in pair) for pair in RACES[program]])
        for f in found:
            self.assertEqual((f["fails"], f["passes"], f["repair"]["verified"]), ([3, 3], [3, 3], [3, 3]))

    def forced(self, program, calls, answer):
        rule, early, late = FORCED[program]
        self.assertEqual(answer["verdict"], "host-order", answer["text"])
        self.assertTrue(answer["text"].startswith(rule + ":"), answer["text"])
        self.assertEqual(answer["early"], self.point(early, calls))
        if late is not None:
            self.assertEqual(answer["late"], self.point(late, calls))
        self.assertNotEqual(answer["repair"]["text"], "")

    def silent(self, _program, _calls, answer):
        self.assertEqual(answer["verdict"], "none-found", answer["text"])


class Programs(Isolate):
    def test_races(self):
        self.of_each([(p, *v) for p in RACES for v in variants(["eager"] if p in SLOW else ["eager", "lazy"])], self.a_race)

    def test_not_heeded(self):
        self.of_each([(p, s, k) for p, s in UNHEEDED.items() for k in (KNOBS if ALL else KNOBS[:1])], self.a_race)

    def test_kinds_of_fault(self):
        """Whether the fault was told, late, by an abort or not at all."""
        self.of_each([(p, *v) for p in ("evict", "o1_evict_in_flight ungated")[:2 if ALL else 1] for v in variants(["lazy", "async"], KNOBS)], self.a_race)

    def test_forced(self):
        self.of_each([(p, *v) for p in FORCED for v in variants(["async"])], self.forced)

    def test_a_free_that_waits(self):
        """The driver makes up for the bug, or waits for what another thread is still to allow."""
        block = {"ZE_SOFT_FREE": "block"}
        self.of_each([("o8_short_timeout_ignored", "async", block)], self.forced)
        self.of_each([("o8_short_timeout_ignored fixed", "async", block), ("o1_evict_in_flight fixed2", "async", block)], self.silent)

    def test_host_memory_copied_by_the_append(self):
        """What such a driver hides is found all the same."""
        copied = {"ZE_SOFT_HOSTPTR": "append", "ZE_SOFT_RESIDENCY": "64k"}
        for schedule in ("async", "seed:3"):
            self.of_each([("o2_host_staging_lifetime ungated", schedule, copied)], self.a_race)
            self.of_each([(f"o2_host_staging_lifetime{gate} fixed", schedule, copied) for gate in ("", " ungated")], self.silent)

    def test_unseen(self):
        self.of_each([(p, *v) for p in UNSEEN for v in variants(["eager"])], self.silent)

    def test_twins_are_silent(self):
        self.of_each([(p, *v) for p in TWINS for v in variants(["lazy"])], self.silent)

    def test_baits_are_silent(self):
        modes = baits()
        self.assertGreaterEqual(len(modes), 18)
        self.of_each([(p, *v) for p in modes for v in variants(["eager"])], self.silent)

    def test_every_program_is_here(self):
        programs = {name for name in os.listdir(harness.APPS) if re.match(r"[os]\d+_", name)} - {"s3_fork_after_init"}  # two processes
        self.assertEqual(programs, {p.split()[0] for p in [*RACES, *FORCED, *UNSEEN]} - {"evict"})


POLL = """#include "common.h"
int main(void)
{
    app a = app_open();
    void *const A = device_new(&a, 4096), *const B = device_new(&a, 4096), *const C = device_new(&a, 4096);
    ze_command_queue_handle_t queue = queue_new(&a, 0, 0);
    ze_command_list_handle_t copies = list_new(&a, 0);
    ze_event_handle_t done = event_new(&a);
    MUST(zeCommandListAppendMemoryCopy(copies, C, A, 4096, done, 0, NULL));
    MUST(zeCommandListAppendMemoryCopy(copies, B, A, 4096, NULL, 0, NULL));
    MUST(zeCommandListClose(copies));
    MUST(zeCommandQueueExecuteCommandLists(queue, 1, &copies, NULL));
    if (zeEventQueryStatus(done) != ZE_RESULT_NOT_READY)
        return 2;
    MUST(zeContextEvictMemory(a.context, a.device, B, 4096));
    return zeCommandQueueSynchronize(queue, UINT64_MAX) != ZE_RESULT_SUCCESS;
}
"""


class Evict(Isolate):
    def evict(self, schedule, status, *options):
        self.record(app("evict"), options=[f"--schedule={schedule}", *options], status=status)
        answer = self.isolate(status=1)
        self.a_race("evict", self.dump(), answer)
        self.assertEqual(answer["object"], "mem#2")
        return answer

    def test_failed(self):
        answer = self.evict("lazy", 1)
        self.assertEqual(answer["recording"], "bad")
        self.assertEqual(answer["shows_at"], [c["call"] for c in self.dump() if c.get("result") == "ZE_RESULT_ERROR_UNKNOWN"][0])

    def test_passed(self):
        self.assertEqual(self.evict("eager", 0)["recording"], "good")

    def test_where_in_the_program(self):
        self.record(app("evict"), options=["--schedule=lazy", "--backtrace=*"], status=1)
        r = zetrace("isolate", "t.zetrace")
        self.assertEqual(r.returncode, 1)
        self.assertEqual(r.stdout.count("at main evict.c:"), 2, r.stdout)
        self.assertIn("that call is innocent", r.stdout)

    def test_the_readme_shows_this_very_output(self):
        self.record(app("evict"), options=["--schedule=lazy", "--backtrace=*"], status=1, out="bad.zetrace")
        said = [re.sub(r" on /.*libze_soft", " on .../libze_soft", line) for line in zetrace("isolate", "bad.zetrace").stdout.splitlines()]
        with open(os.path.join(os.path.dirname(__file__), "..", "..", "README.md"), encoding="utf-8") as f:
            readme = f.read().split("$ zetrace isolate bad.zetrace\n")[1].split("\n\nCall #18")[0]
        shown = [re.sub(r" on /.*libze_soft", " on .../libze_soft", line[4:]) for line in readme.splitlines()]
        self.assertEqual(said, shown)

    def test_budget(self):
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        whole = self.isolate(status=1)
        for budget in range(1, whole["replays"] + 1):
            known = budget >= whole["found_after"]
            answer = self.isolate(f"--budget={budget}", status=1 if known else 4)
            self.assertEqual(answer["verdict"], "order" if known else "budget")
            self.assertLessEqual(answer["replays"], budget)
            if budget == whole["found_after"] - 1:
                self.assertIn("#14 before #11 seems to make the difference", answer["text"])
        for jobs in (2, 5):
            self.assertLessEqual(self.isolate("--budget=6", f"--jobs={jobs}", status=4)["replays"], 6)

    def test_beyond_a_poll(self):
        """A poll that said NOT_READY says SUCCESS in the orders that are tried: the program might have gone another way."""
        with open("poll.c", "w", encoding="ascii") as f:
            f.write(POLL)
        built = run("cc", "-I" + os.path.join(os.path.dirname(harness.__file__), "..", "apps"), "poll.c", "-o", "poll", "-lze_loader")
        self.assertEqual(built.returncode, 0, built.stderr)
        with open("in-waits", "w", encoding="ascii") as f:
            f.write("# commands end in waits, and a query is none\n")
        self.record("./poll", options=["--schedule=script:in-waits"], status=1)
        poll, = [c for c in self.dump() if c["function"] == "zeEventQueryStatus"]
        self.assertEqual(poll["result"], "ZE_RESULT_NOT_READY")
        self.assertEqual(self.isolate(status=1)["beyond"], poll["call"])
        self.assertIn(f"beyond        #{poll['call']}, which was NOT_READY", zetrace("isolate", "t.zetrace").stdout)
        self.assertIsNone(json.loads(zetrace("replay", "--json", "--schedule=eager", "--to=#%d" % poll["call"], "t.zetrace").stdout)["failure"])

    def test_usage(self):
        for options in (["--budget=0"], ["--confirm=x"], ["--timeout=soon"], ["--recording=ugly"], ["--nonsense"]):
            r = zetrace("isolate", *options, "t.zetrace")
            self.assertEqual(r.returncode, 2, options)
            self.assertEqual(len(r.stderr.splitlines()), 1, r.stderr)


class Repairs(Isolate):
    """What the answer says is tried by hand, with 'replay'."""

    def replay(self, *options):
        r = zetrace("replay", "--json", "--timeout=2s", *options, "t.zetrace")
        self.assertIn(r.returncode, (0, 1), r.stdout + r.stderr)
        return json.loads(r.stdout)

    def found(self, program, schedule, status):
        name, *arguments = program.split()
        self.record(app(name), *arguments, options=["--schedule=" + schedule], status=status)
        answer = self.isolate("--jobs=3", status=1)
        return [answer, *answer["more"]]

    def command(self, point):
        return f"#{point['call']}" + (f"@{point['execution']}" if point["execution"] > 1 else "")

    def breaking(self, found):
        """Options with which the early one comes first."""
        early, late = found["early"], found["late"]
        if early["execution"] == 0:
            return ["--schedule=eager", f"--inject=gate@{self.command(late)}..#{early['call']}"]
        submit = found["repair"]["inject"].split("@before:")[1]
        if submit == f"#{early['call']}":  # commands of immediate lists have no submits that a file could put in front of both
            return ["--order=latest"]
        appends = [c for c in self.dump() if c["function"].startswith("zeCommandListAppend") and c["call"] <= early["call"]]
        together = [c["call"] for c in appends if c["args"]["hCommandList"] == appends[-1]["args"]["hCommandList"]]  # what stands before it, too
        with open("order", "w", encoding="ascii") as f:
            f.write("\n".join([submit, *(f"#{n}@{early['execution']}" for n in together), f"#{late['call']}@{late['execution']}"]))
        return ["--order=file:order"]

    def test_of_good_runs(self):
        """With the wait the run is well where it failed without, and with the pair turned round it fails where it was well."""
        for program in RACES:
            if program in UNHEEDED or (program in SLOW and not ALL):
                continue
            with self.subTest(program):
                found = self.found(program, "eager", 0)
                injections = ["--inject=" + f["repair"]["inject"] for f in found]
                if program != "o5_immediate_not_inorder":  # lazy keeps the order of one engine
                    self.assertFalse(self.replay("--schedule=lazy")["same"])
                for schedule in ("eager", "lazy", "async"):
                    r = self.replay("--schedule=" + schedule, *injections)
                    self.assertTrue(r["same"], (schedule, r))
                    self.assertEqual(r["injected"], len(found))
                for f in found:
                    if not f["early_is_write"]:  # a gate holds a command behind a call, not behind a write of the program
                        r = self.replay(*self.breaking(f))
                        self.assertFalse(r["same"], r)

    def test_of_bad_runs(self):
        """The recorded failure does not come back with the wait, and does with the pair as it was."""
        for program in ("evict", "o1_evict_in_flight ungated", "o6_destroy_order ungated"):
            with self.subTest(program):
                f, = self.found(program, "lazy", 1)
                self.assertIsNotNone(self.replay()["failure"])
                for schedule in ("lazy", "async"):
                    r = self.replay("--schedule=" + schedule, "--inject=" + f["repair"]["inject"])
                    self.assertEqual((r["failure"], r["first_mismatch"]["replayed"]), (None, "ZE_RESULT_SUCCESS"))
                r = self.replay(*self.breaking(f))
                self.assertTrue(r["same"] or r["first_mismatch"]["replayed"] != "ZE_RESULT_SUCCESS", r)

    def test_is_printed(self):
        """The line 'try it' is one that the shell takes."""
        name = "it's a $(trace).zetrace"
        self.record(app("evict"), options=["--schedule=lazy"], status=1, out=name)
        r = zetrace("isolate", name)
        command, = re.findall(r"^  try it +zetrace (replay .*)$", r.stdout, re.MULTILINE)
        tried = run("/bin/sh", "-c", f"'{harness.ZETRACE}' {command}")
        self.assertEqual(tried.returncode, 1, tried.stderr)
        self.assertIn("recorded ZE_RESULT_ERROR_UNKNOWN, replayed ZE_RESULT_SUCCESS", tried.stdout)


class Incomplete(Isolate):
    """What there is of a trace is looked at, and what is missing is told on stderr."""

    def start(self, *program, options=(), until):
        """Records until the program has made a file. @return the recorder, and the program's process id."""
        env = {k: v for k, v in os.environ.items() if k not in ("ZE_ENABLE_ALT_DRIVERS", "ZE_SOFT_SCHEDULE", "LD_PRELOAD")}
        recorder = subprocess.Popen([harness.ZETRACE, "record", "-q", "-f", "-o", "t.zetrace", "--driver=soft", *options, "--", *program], env=env,
                                    stdout=subprocess.DEVNULL)
        while not until():
            self.assertIsNone(recorder.poll())
            time.sleep(0.01)
        with open(f"/proc/{recorder.pid}/task/{recorder.pid}/children", encoding="ascii") as f:
            return recorder, int(f.read().split()[0])

    def told(self, trace):
        """@return the answer, or None; and what was said on stderr."""
        r = zetrace("isolate", "--json", trace, timeout=120)
        self.assertIn(r.returncode, (0, 1, 3, 4, 125), r.stderr)
        for line in r.stderr.splitlines():
            self.assertTrue(line.startswith("zetrace: " + trace), line)
        self.assertEqual(r.stdout == "", r.returncode in (3, 125))
        return json.loads(r.stdout) if r.stdout else None, r.stderr

    def damaged(self, change, step):
        """Isolates the trace of a failing run with each change(whole, place). @return the verdicts."""
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        pair = [self.point(s, self.dump()) for s in RACES["evict"][0]]
        with open("t.zetrace", "rb") as f:
            whole = f.read()
        verdicts = set()
        for place in range(0, len(whole) - 1, max(1, len(whole) // step)):
            with open("d.zetrace", "wb") as f:
                f.write(change(whole, place))
            answer, said = self.told("d.zetrace")
            verdicts.add(answer and answer["verdict"])
            if said == "" or (answer and answer["verdict"] == "order"):  # the ids and the index are not needed
                self.assertEqual([answer["early"], answer["late"]], pair)
        return verdicts

    def test_cut(self):
        verdicts = self.damaged(lambda whole, place: whole[:place], 600 if ALL else 40)
        self.assertIn("order", verdicts)
        self.assertGreater(len(verdicts), 1)

    def test_flipped(self):
        verdicts = self.damaged(lambda whole, place: whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1:], 600 if ALL else 40)
        self.assertIn("order", verdicts)
        self.assertGreater(len(verdicts), 1)

    def test_a_recorder_that_was_killed(self):
        body = "import sys, time\ntry: exec(open(sys.argv.pop(1)).read())\nexcept SystemExit: pass\ntime.sleep(600)"
        for schedule, taken_for in (("lazy", "bad"), ("eager", "good")):
            with self.subTest(schedule):
                zetrace("record", "-q", "-f", "-o", "t.zetrace", "--driver=soft", "--schedule=" + schedule, "--", "/usr/bin/python3", app("evict.py"))
                calls = len(self.dump())

                def all_written():
                    return os.path.exists("t.zetrace.partial") and zetrace("dump", "t.zetrace.partial").stdout.count("\n") >= calls

                recorder, program = self.start("/usr/bin/python3", "-c", body, app("evict.py"), options=["--schedule=" + schedule], until=all_written)
                recorder.kill()
                recorder.wait()
                os.kill(program, signal.SIGKILL)
                answer, said = self.told("t.zetrace.partial")
                self.assertIn("not finished", said)
                self.a_race("evict", self.dump("t.zetrace.partial"), answer)
                self.assertEqual(answer["recording"], taken_for)
                self.assertNotIn("status 0", zetrace("isolate", "t.zetrace.partial").stdout)
                os.unlink("t.zetrace.partial")

    def test_dropped_calls(self):
        recorder, program = self.start(app("spinner"), "places", "1", options=["--lossy", "--ring=64Ki"],
                                       until=lambda: os.path.exists("places") and os.path.getsize("places") == 4096)
        recorder.send_signal(signal.SIGSTOP)
        with open("places", "rb") as f:  # a slot of the ring is more than a byte
            while int.from_bytes(os.pread(f.fileno(), 8, 8), "little") < 1 << 17:
                time.sleep(0.01)
        recorder.send_signal(signal.SIGCONT)
        os.kill(program, signal.SIGKILL)
        recorder.wait()
        dropped = self.info()["dropped"]
        self.assertGreater(dropped, 0)
        answer, said = self.told("t.zetrace")
        self.assertIn(f"{dropped} calls were dropped", said)
        self.assertNotIn(answer["verdict"], ("order", "host-order"))

    def test_a_driver_that_crashes(self):
        self.record(app("crasher"), options=["--schedule=eager"], status=139)
        self.assertEqual(self.isolate(status=4)["verdict"], "not-order")

    def test_trials_that_hang(self):
        """That is an outcome: the wait for a fence whose signal is lost does not end within the time given."""
        self.record(app("o6_destroy_order"), "ungated", options=["--schedule=eager"])
        answer = self.isolate("--timeout=200ms", "--confirm=2", status=1)
        self.assertEqual((answer["verdict"], answer["fails"], answer["passes"]), ("order", [2, 2], [2, 2]))

    def test_an_append_that_never_returned(self):
        """It was held by a gate that nobody opened; in a trial it is not made, or would end it."""
        r = zetrace("record", "-q", "-f", "-o", "t.zetrace", "--driver=soft", "--schedule=lazy", "--", "/usr/bin/timeout", "-s", "KILL", "1", app("hostmem"),
                    env={"ZE_SOFT_APPEND": "block"})
        self.assertEqual(r.returncode, 137, r.stderr)
        self.assertEqual(self.dump()[-1]["function"], COPY)
        self.assertNotIn(self.told("t.zetrace")[0]["verdict"], ("order", "unfaithful", "unstable"))


if __name__ == "__main__":
    unittest.main(argv=[a for a in sys.argv if a != "--all"])

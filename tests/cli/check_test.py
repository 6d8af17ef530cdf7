# SPDX-License-Identifier: MIT
"""check: what a trace alone shows to be unordered, in runs that failed and in runs that went well. --all: on more schedules."""
import concurrent.futures
import json
import os
import sys
import unittest

import harness
from harness import BUILD, app, run, zetrace

PROGRAMS = {  # the rules that must be among the findings, and those that may be besides
    "evict": ("A1 A2", ""),
    "o1_evict_in_flight": ("A1", "E1"),
    "o1_evict_in_flight ungated": ("A1", "E1"),
    "o2_host_staging_lifetime": ("C1", ""),
    "o2_host_staging_lifetime ungated": ("C1", ""),
    "o3_event_rerecord": ("D1", ""),
    "o3_event_rerecord ungated": ("D1", ""),
    "o4_resubmit_stale_event": ("D2", "E1"),
    "o4_resubmit_stale_event ungated": ("D2", "E1"),
    "o5_immediate_not_inorder": ("E2", ""),
    "o6_destroy_order": ("B1q B2", "B6"),
    "o6_destroy_order ungated": ("B1q B2", "B6"),
    "o7_wait_never_submitted": ("F1 E4", ""),
    "o8_short_timeout_ignored": ("G2 A2", "C1"),
    "o8_short_timeout_ignored ungated": ("", "G2 A2"),  # what was done by then was seen to be done
    "s1_two_threads_one_list": ("H", ""),
    "s2_one_pool_two_threads": ("H", ""),
    "s6_close_and_submit_twice": ("B1", ""),
    "s7_reset_counter_event": ("D3", ""),
    "s9_no_events_between_lists": ("E1", ""),
    "s10_free_before_submit": ("A2", ""),
    "s11_copy_past_end": ("A7", ""),
    "s12_fence_reset_in_flight": ("B2", ""),
    "s13_pool_before_events": ("B4", ""),
    "s14_query_ignored": ("G2", ""),
    "s14_query_ignored ungated": ("", "G2 E1"),
    "r_mistakes needless-evict": ("A1'", ""),
    "r_mistakes evicted-operand": ("A5", ""),
    "r_mistakes contexts-mixed": ("B5", ""),
    "r_mistakes memory-of-another-context": ("B5", ""),
    "r_mistakes context-with-children": ("B5", ""),
    "r_mistakes context-in-flight": ("B5", ""),
    "r_mistakes wrong-stype": ("C3", ""),
    "r_mistakes garbage-pnext": ("C3", ""),
    "r_mistakes second-signal": ("D1b", ""),
    "r_mistakes timestamps-too-early": ("D5", ""),
    "r_mistakes timestamps-of-none": ("D5", ""),
    "r_mistakes proxy-completion": ("A2", ""),
    "r_mistakes barrier-with-waits": ("E2", ""),
    "r_mistakes wait-for-no-event": ("E2", ""),
    "r_mistakes circle": ("F2", ""),
    "r_mistakes wait-after-fault": ("A1", "F1 F5"),
    "r_mistakes failed-create": ("G3", ""),
    "r_mistakes failed-submit": ("G3 B1", ""),
    "r_mistakes list-of-two-threads": ("H", ""),
    "r_mistakes two-ways-to-drivers": ("J", ""),
}
HARMLESS = {"A1'"}  # notes: an evict right before the free of the same memory
TWINS = {p + " fixed": HARMLESS for p in PROGRAMS}
TWINS |= {p + " fixed2": set() for p in ("o1_evict_in_flight", "o1_evict_in_flight ungated", "o5_immediate_not_inorder")}
TWINS |= {p: {"H"} for p in ("s1_two_threads_one_list fixed", "s2_one_pool_two_threads fixed")}  # locks are not in a trace
VARIANTS = [("eager", {}), ("lazy", {})]
KNOBS = [{"ZE_SOFT_FAULT": fault, "ZE_SOFT_ERRORS": errors} for fault in ("ban", "abort", "scratch") for errors in ("submit", "sync")]
MORE_VARIANTS = [(schedule, knobs) for schedule in ("eager", "lazy", "async") for knobs in KNOBS]
ALL = "--all" in sys.argv
FIELDS = {"rule": str, "class": str, "severity": str, "calls": list, "executions": list, "functions": list, "object": str, "range": list,
          "forced": bool, "what": str, "missing": str, "repair": str}


class Check(harness.Case):
    def run_and_record(self, *program, options=()):
        """Whether the bug shows in the run is of no interest here."""
        r = zetrace("record", "-q", "-f", "-o", "t.zetrace", "--driver=soft", *options, "--", *program)
        self.assertIn(r.returncode, (0, 1), r.stdout + r.stderr)

    def check(self, *options, status, trace="t.zetrace"):
        r = zetrace("check", *options, trace)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return r.stdout

    def found(self, *options, status):
        return json.loads(self.check("--json", *options, status=status))

    def rules(self, *options, status):
        return {f["rule"] for f in self.found(*options, status=status)["findings"]}

    def nothing_found(self):
        """Needless calls may be told of."""
        found = self.found("--fail-on=warning", status=0)["findings"]
        self.assertLessEqual({f["rule"] for f in found}, HARMLESS)

    def evict(self, schedule="lazy", *options):
        self.run_and_record(app("evict"), options=[f"--schedule={schedule}", *options])


class Programs(Check):
    def test_evict(self):
        """The same findings whether it failed (lazy) or not (eager)."""
        answers = []
        for schedule in ("lazy", "eager"):
            self.evict(schedule)
            found = self.found(status=1)
            first = found["findings"][0]
            self.assertEqual((first["rule"], first["class"], first["severity"], first["object"]), ("A1", "spec", "error", "mem#2"))
            self.assertEqual(first["functions"], ["zeContextEvictMemory", "zeCommandListAppendMemoryCopy"])
            answers.append([(f["rule"], f["functions"]) for f in found["findings"]])
            self.assertEqual(bool(found["consequences"]), schedule == "lazy")
        self.assertEqual(*answers)

    def test_evict_from_python(self):
        self.run_and_record(app("evict.py"), options=["--schedule=lazy"])
        self.assertEqual(self.found(status=1)["findings"][0]["rule"], "A1")

    def of_each(self, programs, test):
        """Records and checks each program on each variant, four at a time; `test` gets name, findings."""
        jobs = [(p, *v) for p in programs for v in VARIANTS + (MORE_VARIANTS if ALL else [])]

        def one(job):
            (program, schedule, knobs), trace = job, f"{jobs.index(job)}.zetrace"
            name, *arguments = program.split()
            r = zetrace("record", "-q", "-f", "-o", trace, "--driver=soft", "--schedule=" + schedule, "--", app(name), *arguments, env=knobs)
            return r.returncode, zetrace("check", "--json", trace)

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for (program, schedule, knobs), (status, r) in zip(jobs, pool.map(one, jobs)):
                with self.subTest(program, schedule=schedule, **knobs):
                    self.assertIn(status, (0, 1, 134), r.stderr)
                    self.assertIn(r.returncode, (0, 1), r.stderr)
                    test(program, json.loads(r.stdout)["findings"])

    def test_programs(self):
        def test(program, findings):
            wanted, allowed = (set(rules.split()) for rules in PROGRAMS[program])
            rules = {f["rule"] for f in findings}
            self.assertLessEqual(wanted, rules)
            self.assertLessEqual(rules, wanted | allowed)
        self.of_each(PROGRAMS, test)

    def test_host_memory(self):
        """Changed before the gate opens and after an immediate append, but allowed between append and execute."""
        for memory in ("pageable", "host", "shared"):
            with self.subTest(memory):
                self.run_and_record(app("hostmem"), memory)
                self.assertEqual([(f["rule"], f["object"].split("#")[0]) for f in self.found(status=1)["findings"]],
                                 [("C1", "host memory" if memory == "pageable" else "mem")] * 2)

    def test_repaired_twins(self):
        self.of_each(TWINS, lambda program, findings: self.assertLessEqual({f["rule"] for f in findings}, TWINS[program]))

    def test_baits(self):
        modes = [f"{name} {mode}" for name in ("bait", "r_edges") for mode in run(app(name)).stdout.split()]
        self.assertGreaterEqual(len(modes), 18)
        allowed = {"bait cv-free": {("A2", "possible")}, "bait evict-unused": {("A1'", "spec")}}
        self.of_each(modes, lambda mode, findings: self.assertLessEqual({(f["rule"], f["class"]) for f in findings}, allowed.get(mode, set())))

    def test_every_mistake_is_here(self):
        self.assertEqual({"r_mistakes " + mode for mode in run(app("r_mistakes")).stdout.split()},
                         {p for p in PROGRAMS if p.startswith("r_mistakes")})

    def test_programs_without_a_bug(self):
        for program in (["evict_good"], ["client_linked"], ["threads", 2, 200], ["token", 50], ["nested"]):
            with self.subTest(program[0]):
                self.run_and_record(app(program[0]), *program[1:], options=["--schedule=eager"])
                self.nothing_found()


# What evict.py sets up, then a mistake of one's own. Results do not matter: the driver may refuse it or not.
SET_UP = "import sys\nexec(open(sys.argv.pop(1), encoding='utf-8').read().split('copy = new_list()')[0])\n"
SET_UP += """
EVENT_POOL, EVENT = 0x10, 0x11
def try_(name, *args):
    call(name, *args, must=False)
def pool(flags=1):
    d = Desc(EVENT_POOL); d.rest[0] = flags; d.rest[1] = 4
    return create("zeEventPoolCreate", context, ctypes.byref(d), U32(0), P())
def copy_to(commands, to, source, n=4096):
    try_("zeCommandListAppendMemoryCopy", commands, to, source, ctypes.c_size_t(n), P(), U32(0), P())
def sync():
    try_("zeCommandQueueSynchronize", queue, U64(2**64 - 1))
L = new_list()
"""
MISTAKES = {
    "freed twice": ("A6", "call('zeMemFree', context, A); try_('zeMemFree', context, A)"),
    "freed inside": ("A6", "try_('zeMemFree', context, P(A.value + 64))"),
    "beyond the end": ("A7", "copy_to(L, B, P(A.value + 64))"),
    "into freed memory": ("A7", "call('zeMemFree', context, A); copy_to(L, B, A)"),
    "freed between append and execute": ("A2", "copy_to(L, B, A); call('zeCommandListClose', L); call('zeMemFree', context, A); execute(L)"),
    "append to a closed list": ("B1", "call('zeCommandListClose', L); copy_to(L, B, A)"),
    "closed twice": ("B1", "call('zeCommandListClose', L); try_('zeCommandListClose', L)"),
    "open list executed": ("B1", "copy_to(L, B, A); execute(L); sync()"),
    "reset in flight": ("B1", "copy_to(L, B, A); call('zeCommandListClose', L); execute(L); try_('zeCommandListReset', L); sync()"),
    "executed again in flight": ("B1 E2", "copy_to(L, B, A); call('zeCommandListClose', L); execute(L); execute(L); sync()"),
    "pool before its events": ("B4", "p = pool(); e = create('zeEventCreate', p, desc(EVENT)); try_('zeEventPoolDestroy', p)"),
    "event destroyed in flight": ("B4", "p = pool(); e = create('zeEventCreate', p, desc(EVENT));"
                                        "try_('zeCommandListAppendSignalEvent', L, e); call('zeCommandListClose', L); execute(L);"
                                        "try_('zeEventDestroy', e); sync()"),
    "used after its destruction": ("B6", "call('zeCommandListDestroy', L); try_('zeCommandListClose', L)"),
    "unordered lists": ("E1", "M = new_list(); copy_to(L, B, A); copy_to(M, B, A); call('zeCommandListClose', L); call('zeCommandListClose', M);"
                              "execute(L); execute(M); sync()"),
    "no signal": ("F1", "p = pool(); e = create('zeEventCreate', p, desc(EVENT)); try_('zeEventHostSynchronize', e, U64(1000000))"),
}


class Mistakes(Check):
    def test_mistakes(self):
        for what, (rule, body) in MISTAKES.items():
            with self.subTest(what):
                self.run_and_record("/usr/bin/python3", "-c", SET_UP + body, app("evict.py"), options=["--schedule=eager"])
                self.assertEqual(self.rules("--fail-on=note", status=1), set(rule.split()))

    def test_the_same_done_right(self):
        body = ("p = pool(); e = create('zeEventCreate', p, desc(EVENT)); M = new_list(); copy_to(L, B, A);"
                "try_('zeCommandListAppendSignalEvent', L, e); call('zeCommandListClose', L); copy_to(M, B, A); call('zeCommandListClose', M);"
                "execute(L); sync(); execute(M); sync(); call('zeCommandListReset', L); copy_to(L, A, B, 64); call('zeCommandListClose', L); execute(L);"
                "sync(); call('zeEventHostSynchronize', e, U64(2**64 - 1)); call('zeEventDestroy', e); call('zeEventPoolDestroy', p);"
                "call('zeCommandListDestroy', L); call('zeMemFree', context, A); call('zeMemFree', context, B)")
        self.run_and_record("/usr/bin/python3", "-c", SET_UP + body, app("evict.py"), options=["--schedule=eager"])
        self.assertEqual(self.check("--fail-on=note", status=0), "nothing found\n")


class Output(Check):
    def test_json(self):
        self.evict()
        found = self.found(status=1)
        self.assertEqual(set(found), {"findings", "consequences", "doubt"})
        self.assertEqual(found["doubt"], dict.fromkeys(("accesses", "uses", "conflicts", "findings", "searches"), 0))
        calls = {c["call"]: c for c in self.dump()}
        for f in found["findings"]:
            self.assertEqual({name: type(value) for name, value in f.items()}, FIELDS)
            self.assertEqual(len(f["calls"]), len(f["functions"]))
            self.assertEqual(len(f["calls"]), len(f["executions"]))
            self.assertEqual(f["functions"], [calls[n]["function"] for n in f["calls"]])
        self.assertEqual(found["findings"][0]["range"], [0, 4096])
        for c in found["consequences"]:
            self.assertEqual(set(c), {"call", "of", "cause"})
            self.assertRegex(c["cause"], "^ZE_RESULT_ERROR_(UNKNOWN|DEVICE_LOST)")
            self.assertEqual(c["of"], 0)
            self.assertNotEqual(calls[c["call"]]["result"], "ZE_RESULT_SUCCESS")

    def test_text(self):
        self.evict()
        found = self.found(status=1)
        early, user = found["findings"][0]["calls"]
        lines = self.check("--rules=A1", status=1).splitlines()
        self.assertEqual(lines[0], f"#{early}: error: A1: {found['findings'][0]['what']} [spec]")
        self.assertRegex(lines[1], rf"^    #{early} .*zeContextEvictMemory\(")
        self.assertRegex(lines[2], rf"^    #{user} .*zeCommandListAppendMemoryCopy\(")
        self.assertEqual(lines[3], f"  on mem#2 bytes 0..4096; missing: end of #{user} before #{early}")
        self.assertTrue(lines[4].startswith("  repair: "), lines[4])
        self.assertRegex(lines[5], rf"^#{found['consequences'][0]['call']} zeCommandQueueExecuteCommandLists, #\d+.* \.\.\. and \d+ more "
                                   rf"fail because of #{early}$")
        self.assertRegex(lines[6], "^  ZE_RESULT_ERROR_UNKNOWN from a submit: ")
        self.assertEqual(lines[7:], ["1 error, 0 warnings, 0 notes"])

    def test_backtraces_are_short(self):
        self.evict("lazy", "--backtrace=*")
        lines = self.check("--rules=A1", status=1).splitlines()
        self.assertEqual(len(lines), 10)
        self.assertRegex(lines[2], r"^        at main evict\.c:\d+$")
        self.run_and_record(app("evict.py"), options=["--schedule=lazy", "--backtrace=*"])
        for line in self.check("--rules=A1", status=1).splitlines():
            self.assertLessEqual(line.count(", from "), 2)

    def test_rules(self):
        self.evict()
        for rules, wanted in (("A1", {"A1"}), ("A2", {"A2"}), ("A", {"A1", "A2"}), ("D,A2,F1", {"A2"})):
            self.assertEqual(self.rules("--rules=" + rules, status=1), wanted)
        found = self.found("--rules=B,C,D,E", status=0)
        self.assertEqual((found["findings"], found["consequences"]), ([], []))
        self.assertEqual(self.check("--rules=B", status=0), "nothing found\n")
        # places among the findings that are shown
        self.assertEqual({c["of"] for c in self.found("--rules=A1", status=1)["consequences"]}, {0})
        self.assertEqual(self.found("--rules=A2", status=1)["consequences"], [])

    def test_fail_on(self):
        self.run_and_record(app("o7_wait_never_submitted"))
        self.assertEqual(self.rules("--rules=E4", status=0), {"E4"})
        self.assertEqual(self.rules("--rules=E4", "--fail-on=error", status=0), {"E4"})
        for level in ("warning", "note"):
            self.assertEqual(self.rules("--rules=E4", "--fail-on=" + level, status=1), {"E4"})

    def test_quiet_and_levels(self):
        self.evict()
        self.assertEqual(self.check("-q", status=1), "")
        self.assertEqual(self.check("-q", "--rules=B", status=0), "")
        for level in ("spec", "vendor"):
            self.assertIn("A1", self.rules("--level=" + level, status=1))

    def test_doubt(self):
        """What is left out is counted and told; no bound, no doubt."""
        for program, limit, kinds in (("s1_two_threads_one_list", 100, {"accesses"}), ("../order/random 1 missing-wait intact --queues=8 --commands=400", 5, {"searches"}),
                                      ("evict", 1, {"conflicts"}), ("o7_wait_never_submitted", 1, {"findings"}),
                                      ("o4_resubmit_stale_event", 1, {"uses"})):
            with self.subTest(program):
                name, *arguments = program.split()
                self.run_and_record(app(name), *arguments, options=["--schedule=eager"])
                r = zetrace("check", "--json", f"--limit={limit}", "t.zetrace")
                doubt = json.loads(r.stdout)["doubt"]
                self.assertLessEqual(kinds, {kind for kind, n in doubt.items() if n > 0}, doubt)
                text = zetrace("check", f"--limit={limit}", "t.zetrace").stdout
                self.assertEqual(text.count("in doubt: "), sum(n > 0 for n in doubt.values()))
                self.assertEqual(sum(json.loads(zetrace("check", "--json", "t.zetrace").stdout)["doubt"].values()), 0)
        self.assertSentence(zetrace("check", "--limit=0", "t.zetrace"), 2, "--limit")

    def test_statistics(self):
        self.evict()
        r = zetrace("check", "--statistics", "t.zetrace")
        self.assertRegex(r.stderr, r"\d+ commands?, \d+ executions? on \d+ carriers?")


class Wording(Check):
    """What a finding says beside its rule."""

    def finding(self, mode, rule):
        self.run_and_record(app("r_mistakes"), mode, options=["--schedule=eager"])
        return self.found("--rules=" + rule, "--fail-on=warning", status=1)["findings"][0]

    def test_proxy_completion(self):
        f = self.finding("proxy-completion", "A2")
        self.assertRegex(f["what"], rf"#\d+ has waited for event#1, which says that #\d+ is done, and nothing of #{f['calls'][1]} \(proxy completion\)")

    def test_what_orders_nothing(self):
        self.assertRegex(self.finding("barrier-with-waits", "E2")["what"], "the barrier #\\d+ has wait events, and waits for nothing else")
        self.assertRegex(self.finding("wait-for-no-event", "E2")["what"], "#\\d+ waits for no event, and orders nothing")

    def test_waits_after_a_fault(self):
        """Both why the wait hoped in vain, and what had told of it."""
        f = self.finding("wait-after-fault", "F5")
        calls = {c["call"]: c for c in self.dump()}
        self.assertEqual(calls[f["calls"][1]]["result"], "ZE_RESULT_ERROR_DEVICE_LOST")
        self.assertIn("never executed", self.finding("wait-after-fault", "F1")["what"])

    def test_circle(self):
        f = self.finding("circle", "F2")
        self.assertEqual(f["functions"], ["zeCommandListAppendWaitOnEvents", "zeCommandListAppendSignalEvent"] * 2)


class Crafted(Check):
    """Traces with other times than were recorded, for what no program shows for certain."""

    def craft(self, *changes):
        r = run(os.path.join(BUILD, "bin", "order", "craft"), "t.zetrace", "t.zetrace.new", *changes)
        self.assertEqual(r.returncode, 0, r.stderr)
        os.replace("t.zetrace.new", "t.zetrace")

    def test_a_list_in_two_threads(self):
        self.run_and_record(app("s1_two_threads_one_list"), "fixed", options=["--schedule=eager"])
        self.assertEqual({(f["rule"], f["class"], f["severity"]) for f in self.found(status=0)["findings"]}, {("H", "possible", "warning")})
        appends = [c for c in self.dump() if c["function"] == "zeCommandListAppendMemoryCopy"]
        one, two = next((a, b) for a, b in zip(appends, appends[1:]) if a["thread"] != b["thread"])
        self.craft(f"{one['call']}>{two['call']}")
        errors = [f for f in self.found(status=1)["findings"] if f["severity"] == "error"]
        self.assertEqual([(f["rule"], f["class"], f["calls"]) for f in errors], [("H", "spec", [two["call"], one["call"]])])

    def test_a_blocking_free_that_does_not_wait(self):
        self.run_and_record(app("o1_evict_in_flight"), "fixed2", options=["--schedule=eager"])
        calls = {c["function"]: c["call"] for c in self.dump()}
        self.nothing_found()
        self.craft(f"{calls['zeMemFreeExt']}<{calls['zeEventHostSignal']}")
        f, = self.found("--rules=A", status=1)["findings"]  # what the free was to order is not ordered either: E1
        self.assertEqual((f["rule"], f["class"], f["severity"], f["calls"][0]), ("A4", "driver", "error", calls["zeMemFreeExt"]))

    def test_a_deferred_free_that_is_not_deferred(self):
        body = ("p = pool(); gate = create('zeEventCreate', p, desc(EVENT));"
                "call('zeCommandListAppendWaitOnEvents', L, U32(1), ctypes.byref(gate)); copy_to(L, B, A); call('zeCommandListClose', L); execute(L);"
                "d = Desc(0x1000a); d.rest[0] = 2; call('zeMemFreeExt', context, ctypes.byref(d), B);"
                "create('zeMemAllocDevice', context, desc(DEVICE_MEM), size, ctypes.c_size_t(64), device); call('zeEventHostSignal', gate); sync()")
        self.run_and_record("/usr/bin/python3", "-c", SET_UP + body, app("evict.py"), options=["--schedule=eager"])
        self.nothing_found()
        calls = {c["function"]: c["call"] for c in self.dump()}
        self.craft(f"{calls['zeMemAllocDevice']}={calls['zeMemFreeExt']}")
        self.assertEqual([(f["rule"], f["class"], f["calls"][0]) for f in self.found(status=1)["findings"]],
                         [("A4", "driver", calls["zeMemAllocDevice"])])


class Processes(Check):
    def test_child_of_fork(self):
        """A child makes a trace of its own."""
        for twin, wanted in ((), {"J"}), (("fixed",), set()):
            with self.subTest(twin):
                r = zetrace("record", "-q", "-f", "-o", "t%p.zetrace", "--driver=soft", "--", app("s3_fork_after_init"), *twin)
                self.assertIn(r.returncode, (0, 1), r.stderr)
                traces = [name for name in os.listdir(".") if name.endswith(".zetrace")]
                self.assertEqual(len(traces), 2)
                rules = set()
                for trace in traces:
                    found = json.loads(zetrace("check", "--json", trace).stdout)["findings"]
                    rules |= {f["rule"] for f in found}
                    os.remove(trace)
                self.assertEqual(rules, wanted)


class Levels(Check):
    """What a driver's habits hide is told as hidden, and not at all with --level=vendor; what they do not hide stays."""

    def test_hidden(self):
        for knob, program, rule in (("ZE_SOFT_FREE=block", "evict", "A2"), ("ZE_SOFT_DESTROY=keep", "o6_destroy_order", "B1q"),
                                    ("ZE_SOFT_HOSTPTR=append", "o2_host_staging_lifetime", "C1")):
            with self.subTest(knob):
                name, value = knob.split("=")
                r = zetrace("record", "-q", "-f", "-o", "t.zetrace", "--driver=soft", "--schedule=lazy", "--", app(program), env={name: value})
                self.assertIn(r.returncode, (0, 1), r.stderr)
                finding = self.found("--rules=" + rule, status=0)["findings"][0]
                self.assertEqual((finding["class"], finding["severity"]), ("hidden", "warning"))
                self.assertIn("legal on this driver", finding["what"])
                self.assertEqual(self.found("--level=vendor", "--rules=" + rule, status=0)["findings"], [])

    def test_residency(self):
        """Drivers make resident what a submit names."""
        self.run_and_record(app("r_mistakes"), "evicted-operand")
        self.assertEqual([(f["rule"], f["class"]) for f in self.found(status=0)["findings"]], [("A5", "hidden")])
        self.assertEqual(self.found("--level=vendor", "--fail-on=note", status=0)["findings"], [])

    def test_not_hidden(self):
        self.evict()
        first = self.found(status=1)["findings"]
        self.assertEqual({f["class"] for f in first}, {"spec"})
        self.assertEqual(self.found("--level=vendor", status=1)["findings"], first)


class Traces(Check):
    def test_cut(self):
        """A damaged trace is judged as far as it goes; a cut one never crashes."""
        self.evict()
        with open("t.zetrace", "rb") as f:
            whole = f.read()
        seen = set()
        for part in range(1, 24):
            with open("cut.zetrace", "wb") as f:
                f.write(whole[:len(whole) * part // 24])
            r = zetrace("check", "--json", "cut.zetrace")
            self.assertIn(r.returncode, (0, 1, 3), r.stderr)
            self.assertTrue(r.stderr.startswith("zetrace: "), r.stderr)
            seen.add(r.returncode)
            if r.returncode != 3:
                self.assertEqual(r.returncode == 1, bool(json.loads(r.stdout)["findings"]))
        self.assertIn(3, seen)

    def test_flipped(self):
        """What a broken chunk held is lost; the rest is judged."""
        self.evict()
        with open("t.zetrace", "rb") as f:
            whole = f.read()
        for place in range(0, len(whole), max(1, len(whole) // 40)):
            with open("bad.zetrace", "wb") as f:
                f.write(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1:])
            self.assertIn(zetrace("check", "bad.zetrace").returncode, (0, 1, 3), place)

    def test_unfinished(self):
        """A program that died: the trace ends with a call that never returned."""
        r = zetrace("record", "-q", "-f", "-o", "t.zetrace", "--driver=soft", "--schedule=eager", "--", app("crasher"))
        self.assertEqual(r.returncode, 139, r.stderr)
        self.check(status=0)

    def test_usage(self):
        self.evict("eager")
        self.assertSentence(zetrace("check"), 2, "trace")
        self.assertSentence(zetrace("check", "missing"), 2, "missing")
        self.assertSentence(zetrace("check", "--rules=a-1", "t.zetrace"), 2, "--rules", "a-1")
        self.assertSentence(zetrace("check", "--level=frob", "t.zetrace"), 2, "--level")
        self.assertSentence(zetrace("check", "--fail-on=frob", "t.zetrace"), 2, "--fail-on")
        self.assertSentence(zetrace("check", "--frob", "t.zetrace"), 2, "--frob")
        with open("foreign", "wb") as f:
            f.write(bytes(300))
        self.assertSentence(zetrace("check", "foreign"), 3, "not a zetrace trace")


if __name__ == "__main__":
    unittest.main(argv=[a for a in sys.argv if a != "--all"], verbosity=2)

# SPDX-License-Identifier: MIT
"""check: what a trace alone shows to be unordered, in runs that failed and in runs that went well."""
import json
import unittest

import harness
from harness import app, zetrace

PROGRAMS = {  # the rules that must be among the findings, and the only ones that may be
    "o1_evict_in_flight": ({"A1"}, set()),
    "o2_host_staging_lifetime": ({"C1"}, set()),
    "o3_event_rerecord": ({"D1"}, set()),
    "o4_resubmit_stale_event": ({"D2"}, {"E1"}),
    "o5_immediate_not_inorder": ({"E2"}, set()),
    "o6_destroy_order": ({"B1q", "B2"}, {"B6"}),
    "o7_wait_never_submitted": ({"F1", "E4"}, set()),
    "o8_short_timeout_ignored": ({"G2", "A2"}, {"C1"}),
}
NEEDLESS = {"A1'"}  # notes: an evict right before the free of the same memory
TWINS = [(name, "fixed") for name in PROGRAMS] + [("o1_evict_in_flight", "fixed2"), ("o5_immediate_not_inorder", "fixed2"), ("evict", "good")]
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
        self.assertLessEqual({f["rule"] for f in found}, NEEDLESS)

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

    def test_programs(self):
        for name, (wanted, allowed) in PROGRAMS.items():
            for schedule in ("eager", "lazy"):
                with self.subTest(name, schedule=schedule):
                    self.run_and_record(app(name), options=[f"--schedule={schedule}"])
                    rules = self.rules(status=1)
                    self.assertLessEqual(wanted, rules)
                    self.assertLessEqual(rules, wanted | allowed)

    def test_host_memory(self):
        """Changed before the gate opens and after an immediate append, but allowed between append and execute."""
        for memory in ("pageable", "host", "shared"):
            with self.subTest(memory):
                self.run_and_record(app("hostmem"), memory)
                self.assertEqual([(f["rule"], f["object"].split("#")[0]) for f in self.found(status=1)["findings"]],
                                 [("C1", "host memory" if memory == "pageable" else "mem")] * 2)

    def test_repaired_twins(self):
        for name, twin in TWINS:
            for schedule in ("eager", "lazy"):
                with self.subTest(name, twin=twin, schedule=schedule):
                    self.run_and_record(app(name), twin, options=[f"--schedule={schedule}"])
                    self.nothing_found()

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
        self.assertEqual(set(found), {"findings", "consequences"})
        calls = {c["call"]: c for c in self.dump()}
        for f in found["findings"]:
            self.assertEqual({name: type(value) for name, value in f.items()}, FIELDS)
            self.assertEqual(len(f["calls"]), len(f["functions"]))
            self.assertEqual(len(f["calls"]), len(f["executions"]))
            self.assertEqual(f["functions"], [calls[n]["function"] for n in f["calls"]])
        self.assertEqual(found["findings"][0]["range"], [0, 4096])
        for c in found["consequences"]:
            self.assertEqual(set(c), {"call", "of"})
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
        self.assertEqual(lines[6:], ["1 error, 0 warnings, 0 notes"])

    def test_backtraces_are_short(self):
        self.evict("lazy", "--backtrace=*")
        lines = self.check("--rules=A1", status=1).splitlines()
        self.assertEqual(len(lines), 9)
        self.assertRegex(lines[2], r"^        at main evict\.c:\d+$")
        self.run_and_record(app("evict.py"), options=["--schedule=lazy", "--backtrace=*"])
        for line in self.check("--rules=A1", status=1).splitlines():
            self.assertLessEqual(line.count(", from "), 2)

    def test_rules(self):
        self.evict()
        for rules, wanted in (("A1", {"A1"}), ("A2", {"A2"}), ("A", {"A1", "A2"}), ("D,A2,F1", {"A2"})):
            self.assertEqual(self.rules("--rules=" + rules, status=1), wanted)
        self.assertEqual(self.found("--rules=B,C,D,E", status=0), {"findings": [], "consequences": []})
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

    def test_statistics(self):
        self.evict()
        r = zetrace("check", "--statistics", "t.zetrace")
        self.assertRegex(r.stderr, r"\d+ commands, \d+ executions on \d+ carriers")


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
    unittest.main(verbosity=2)

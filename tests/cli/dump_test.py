# SPDX-License-Identifier: MIT
"""dump: which calls it shows, and what it says when there are none."""
import json
import re
import unittest

import harness
from harness import app, zetrace


class Filters(harness.Case):
    def setUp(self):
        super().setUp()
        self.record(app("evict"), options=["--schedule=lazy", "--backtrace=*"], status=1)
        self.calls = self.dump()
        self.numbers = [c["call"] for c in self.calls]

    def shown(self, *options):
        r = zetrace("dump", *options, "t.zetrace")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        return [int(n) for n in re.findall(r"^#(\d+)  ", r.stdout, re.M)]

    def none(self, *options, words):
        """Nothing on stdout, one sentence on stderr."""
        for more in ([], ["--json"]):
            r = zetrace("dump", *options, *more, "t.zetrace")
            self.assertEqual(r.stdout, "")
            self.assertSentence(r, 0, "t.zetrace", *words)

    def of(self, *functions):
        return [c["call"] for c in self.calls if c["function"] in functions]

    def test_sets(self):
        last = self.numbers[-1]
        for text, wanted in (("4", [4]), ("#4", [4]), ("3..5", [3, 4, 5]), ("3-5", [3, 4, 5]), ("#3..#5", [3, 4, 5]), ("..2", [1, 2]),
                             (f"{last - 1}..", [last - 1, last]), ("0-10/2", [2, 4, 6, 8, 10]), ("1-10/3", [1, 4, 7, 10]),
                             ("9,2,4..5", [2, 4, 5, 9]), ("2-9,4", [2, 3, 4, 5, 6, 7, 8, 9]), ("*", self.numbers),
                             ("/evict", self.of("zeContextEvictMemory")), ("1-14/submit", self.of("zeCommandQueueExecuteCommandLists")[:1]),
                             ("/submit", self.of("zeCommandQueueExecuteCommandLists")), ("/wait", self.of("zeCommandQueueSynchronize")),
                             ("/free,1", [1] + self.of("zeMemFree")), ("13-30/submit/5", [13, 18])):
            with self.subTest(text):
                self.assertEqual(self.shown(f"--calls={text}"), wanted)
        self.assertEqual(self.shown("--calls=3", "--calls=5"), [3, 5])

    def test_wide_sets_and_narrow_ones_inside(self):
        self.assertEqual(self.shown("--calls=1-40/20,2-3,5,30"), [1, 2, 3, 5, 21, 30])

    def test_what_was_printed_is_a_set(self):
        printed = zetrace("dump", "--function=zeMem*", "t.zetrace").stdout
        self.assertIn("\n    at main", printed)
        with open("calls", "w", encoding="utf-8") as f:
            f.write("# a remark\n\n" + printed + "1,2 and so on\n")
        self.assertEqual(self.shown("--calls=@calls"), [1, 2] + self.of("zeMemAllocDevice", "zeMemFree"))

    def test_no_sets(self):
        with open("bad", "w", encoding="utf-8") as f:
            f.write("4\nfour\n")
        with open("long", "w", encoding="utf-8") as f:
            f.write("4" * 70000 + "\n")
        for text, words in (("5..3", ["5..3"]), ("", ["''"]), ("..", [".."]), ("4,", ["''"]), ("x", ["'x'"]), ("0", ["'0'"]), ("-5", ["-5"]),
                            ("1-5/0", ["step"]), ("1-5/2/3", ["step"]), ("1-5/nope", ["submit", "nope"]), ("@gone", ["gone", "No such file"]),
                            ("@bad", ["four", "line 2 of bad"]), ("@long", ["too long"]), ("1-99999999999999999999", ["numbers"])):
            for command in (["dump"], ["graph"], ["trim", "-o", "o.zetrace"]):
                with self.subTest(text, command=command[0]):
                    self.assertSentence(zetrace(*command, f"--calls={text}", "t.zetrace"), 2, command[0], "--calls", *words)

    def test_submits_of_immediate_lists(self):
        self.record(app("o5_immediate_not_inorder"), options=["--schedule=eager"])
        self.calls = self.dump()
        immediate = [c["call"] for c in self.calls if c["function"].startswith("zeCommandListAppend")]
        self.assertTrue(immediate)
        self.assertEqual(self.shown("--calls=/submit"), immediate)

    def test_objects(self):
        for name in ("mem#1", "queue#1", "list#1", "context#1", "device#1"):
            found = self.shown(f"--object={name}")
            self.assertEqual(found, [c["call"] for c in self.calls if re.search(rf'"{name}[+"]', str(c).replace("'", '"'))], name)
            self.assertTrue(found)
        self.assertNotIn(self.of("zeCommandListCreate")[9], self.shown("--object=list#1")) # which is list#10

    def test_together(self):
        self.assertEqual(self.shown("--object=mem#2", "--function=zeMem*", "--thread=1"), self.shown("--calls=8,15"))
        self.none("--object=mem#2", "--function=zeInit", words=["no call", "all of these"])

    def test_what_is_not_there_is_named(self):
        self.none("--object=mem#99", words=["mem#99", "mem#2"])
        self.none("--object=image#1", words=["image#1", "nor any other image"])
        self.none("--thread=99", words=["thread 99", "T1"])
        self.none("--function=nope*", words=["nope*", "no function of Level Zero is"])
        self.none("--function=zeImage*", words=["zeImage*"])
        self.none("--pending", words=["every call of it returned"])
        self.none("--calls=900..", words=["900..", f"#{self.numbers[-1]}"])
        self.record(app("evict"), "good", options=["--schedule=eager"])
        self.none("--failed", words=["no call of it failed"])

    def test_one_of_two_is_not_there(self):
        r = zetrace("dump", "--function=zeInit", "--function=zeFoo", "--calls=1,900", "t.zetrace")
        self.assertEqual((r.returncode, len(r.stdout.splitlines()) > 0), (0, True))
        self.assertIn("zeFoo", r.stderr)
        self.assertIn("900", r.stderr)

    def test_no_objects(self):
        for text in ("mem", "mem#", "mem#0", "mem#x", "foo#1", "#1", "mem##1", ""):
            with self.subTest(text):
                self.assertSentence(zetrace("dump", f"--object={text}", "t.zetrace"), 2, "--object", "mem#2", f"'{text}'")

    def test_graph(self):
        r = zetrace("graph", "--format=json", "--calls=/submit", "t.zetrace")
        submits = self.of("zeCommandQueueExecuteCommandLists")
        self.assertEqual(r.returncode, 0)
        self.assertLessEqual(set(re.findall(r'"id":"(\d+)"', r.stdout)), set(map(str, submits)))
        r = zetrace("graph", "--format=json", "--calls=900", "t.zetrace")
        self.assertEqual((r.returncode, r.stdout), (0, '{"nodes":[],"edges":[],"conflicts":[]}\n'))
        self.assertIn("900", r.stderr)

    def test_trim(self):
        self.assertEqual(zetrace("trim", "t.zetrace", "-o", "s.zetrace", "--calls=/append,18").returncode, 0)
        kept = [c["call"] for c in self.dump("s.zetrace")]
        self.assertLessEqual({11, 18}, set(kept))
        self.assertSentence(zetrace("trim", "-f", "t.zetrace", "-o", "s.zetrace", "--calls=1,900"), 2, "'900'")


class State(harness.Case):
    def made(self, *program, schedule="eager", status=0):
        self.record(*program, options=[f"--schedule={schedule}"], status=status)
        self.calls = self.dump()

    def number(self, function, k=0):
        return [c["call"] for c in self.calls if c["function"] == function][k]

    def state(self, number):
        r = zetrace("dump", f"--state=#{number}", "--json", "t.zetrace")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        state = json.loads(r.stdout)
        self.assertEqual(state["call"], number)
        return state

    def signals(self, number):
        return {s["object"]: (s["state"], s["by"] and (s["by"]["call"], s["by"]["execution"])) for s in self.state(number)["signals"]}

    def flying(self, number):
        return [(c["call"], c["execution"], c["held"]) for c in self.state(number)["in_flight"]]

    def test_evict(self):
        self.made(app("evict"), schedule="lazy", status=1)
        copy, execute, evict, free = (self.number(f) for f in ("zeCommandListAppendMemoryCopy", "zeCommandQueueExecuteCommandLists",
                                                               "zeContextEvictMemory", "zeMemFree"))
        self.assertEqual(self.flying(execute - 1), [])
        self.assertEqual(self.state(evict)["in_flight"],
                         [{"call": copy, "execution": 1, "function": "zeCommandListAppendMemoryCopy", "submit": execute, "list": "list#1",
                           "on": "queue#1", "held": False}])
        memory = {a["object"]: a for a in self.state(evict)["allocations"]}
        self.assertEqual((memory["mem#1"]["residency"], memory["mem#1"]["size"], memory["mem#1"]["by"]), (None, 4096, "zeMemAllocDevice"))
        self.assertEqual((memory["mem#2"]["residency"], memory["mem#2"]["residency_call"]), ("evicted", evict))
        self.assertEqual([a["object"] for a in self.state(free)["allocations"]], ["mem#1"])
        self.assertEqual(self.state(free - 1)["allocations"][1]["object"], "mem#2")
        self.assertIn("context#1", [o["object"] for o in self.state(free)["objects"]])
        self.assertEqual(len(self.flying(self.calls[-1]["call"])), 1) # whose end nobody has been told of

    def test_lists(self):
        self.made(app("evict"), "good")
        copy, create, close = (self.number(f) for f in ("zeCommandListAppendMemoryCopy", "zeCommandListCreate", "zeCommandListClose"))
        for number, wanted in ((create - 1, None), (create, ("open", [])), (copy, ("open", [copy])), (close, ("closed", [copy]))):
            found = [(x["state"], x["commands"]) for x in self.state(number)["lists"] if x["object"] == "list#1"]
            self.assertEqual(found, [wanted] if wanted else [], number)
        self.assertEqual(self.flying(self.number("zeCommandQueueSynchronize")), [])

    def test_list_reset(self):
        self.made(app("mixed"), "30")
        reset = self.number("zeCommandListReset", -1)
        before, after = ({x["object"]: x for x in self.state(n)["lists"]} for n in (reset - 1, reset))
        name = next(c for c in self.calls if c["call"] == reset)["args"]["hCommandList"]
        self.assertTrue(before[name]["commands"])
        self.assertEqual((before[name]["state"], after[name]["state"], after[name]["commands"]), ("closed", "open", []))

    def test_residency(self):
        self.made("/usr/bin/python3", app("client_ctypes.py"))
        resident, evict = self.number("zeContextMakeMemoryResident"), self.number("zeContextEvictMemory")
        for number, wanted in ((resident - 1, None), (resident, "resident"), (evict, "evicted")):
            self.assertIn(wanted, [a["residency"] for a in self.state(number)["allocations"]], number)

    def test_events(self):
        """Lists that wait for one another, executed twice: the second time before the host opens the gate."""
        self.made(app("o4_resubmit_stale_event"), "fixed")
        wait, copy = self.number("zeCommandListAppendWaitOnEvents"), self.number("zeCommandListAppendMemoryCopy")
        device_reset, host_signal = self.number("zeCommandListAppendEventReset"), self.number("zeEventHostSignal")
        execute = [self.number("zeCommandQueueExecuteCommandLists", k) for k in range(4)]
        self.assertEqual(self.signals(host_signal - 1), {"event#1": ("reset", None), "event#2": ("reset", None)})
        self.assertEqual(self.signals(host_signal)["event#2"], ("signalled", (host_signal, 0)))
        self.assertEqual(self.signals(execute[0])["event#1"], ("pending", (copy, 1)))
        self.assertEqual(self.flying(execute[0]), [(wait, 1, False), (copy, 1, False)])
        self.assertEqual(self.signals(execute[1])["event#1"], ("pending", (device_reset, 1)))
        reset = self.number("zeEventHostReset")
        self.assertEqual((self.flying(reset), self.signals(reset)), ([], {"event#1": ("reset", (device_reset, 1)), "event#2": ("reset", (reset, 0))}))
        self.assertEqual(self.flying(execute[2]), [(wait, 2, True), (copy, 2, True)])
        text = zetrace("dump", f"--state={execute[2]}", "t.zetrace").stdout
        self.assertRegex(text, rf"#{copy} .*zeCommandListAppendMemoryCopy\(.*\n      execution 2, submitted by #{execute[2]} on queue#1, held back")
        self.assertRegex(text, rf"event#1 +pending: to be signalled by #{copy}@2, from #\d+ zeEventCreate")

    def test_a_wait_for_one_queue_tells_what_went_before_it_on_another(self):
        self.made(app("o4_resubmit_stale_event"), "fixed")
        second = [c["call"] for c in self.calls if c["function"] == "zeCommandQueueSynchronize"][2]
        self.assertEqual(next(c for c in self.calls if c["call"] == second)["args"]["hCommandQueue"], "queue#2")
        self.assertEqual(self.flying(second), [])

    def test_fences(self):
        self.made(app("s12_fence_reset_in_flight"), "fixed")
        first, second = (self.number("zeCommandQueueExecuteCommandLists", k) for k in range(2))
        wait, reset = self.number("zeFenceHostSynchronize"), self.number("zeFenceReset")
        for number, wanted in ((first - 1, ("reset", None)), (first, ("pending", (first, 0))), (wait, ("signalled", (first, 0))),
                               (reset, ("reset", None)), (second, ("pending", (second, 0)))):
            self.assertEqual(self.signals(number)["fence#1"], wanted, number)

    def test_immediate_lists(self):
        self.made(app("interleave"))
        wait = self.number("zeEventHostSynchronize")
        fills = [c["call"] for c in self.calls if c["function"] == "zeCommandListAppendMemoryFill"]
        self.assertLessEqual(set(fills), {call for call, _, _ in self.flying(wait - 1)})
        self.assertEqual({c["call"] for c in self.calls if c["call"] in {n for n, _, _ in self.flying(wait)} and
                          c["args"]["hCommandList"] == "list#1"}, set())
        self.assertEqual({x["state"] for x in self.state(wait)["lists"]}, {"immediate"})

    def test_calls_under_way(self):
        self.made(app("threads"), "4", "200")
        last = max(self.calls, key=lambda c: c["time_ns"])
        for c in self.calls[::50]:
            state, end = self.state(c["call"]), c["time_ns"] + c["duration_ns"]
            for n in state["open_calls"]:
                other = self.calls[n - 1]
                self.assertLessEqual(other["time_ns"], end)
                self.assertGreaterEqual(other["time_ns"] + other["duration_ns"], end)
        self.assertEqual(self.state(last["call"])["call"], last["call"])

    def test_usage(self):
        self.made(app("evict_good"))
        self.assertSentence(zetrace("dump", "--state=x", "t.zetrace"), 2, "--state", "'x'")
        self.assertSentence(zetrace("dump", "--state=900", "t.zetrace"), 2, "#900", f"#{self.calls[-1]['call']}")
        self.assertSentence(zetrace("dump", "--state=9", "--failed", "t.zetrace"), 2, "--state", "--json")


if __name__ == "__main__":
    unittest.main()

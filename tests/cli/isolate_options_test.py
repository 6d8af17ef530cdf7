# SPDX-License-Identifier: MIT
"""isolate's options: other conditions, trials side by side or elsewhere, the small trace, further pairs."""
import json
import os
import unittest

import harness
from harness import app, zetrace


class Options(harness.Case):
    def isolate(self, *options, trace="t.zetrace", status=1):
        r = zetrace("isolate", "--json", *options, trace)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return json.loads(r.stdout)

    def evict(self):
        self.record(app("evict"), options=["--schedule=lazy"], status=1)

    def pair(self, answer):
        return answer["verdict"], answer["early"]["function"], answer["late"]["function"]

    RIGHT = ("order", "zeContextEvictMemory", "zeCommandListAppendMemoryCopy")

    def test_delays(self):
        """In real time: the pair, by more than chance, and the wait that mends it."""
        self.record(app("evict"), options=["--schedule=eager"])
        answer = self.isolate("--timing=5")
        self.assertEqual(self.pair(answer), self.RIGHT)
        self.assertEqual((answer["fails"], answer["passes"], answer["repair"]["verified"]), ([5, 5], [5, 5], [5, 5]))
        self.assertIn("p = 0.0079", answer["text"])
        self.assertGreaterEqual(answer["replays"], 25)  # twice five with either late, five with the wait; more if a millisecond is not enough
        self.isolate("--timing=2", status=0)  # 2 of 2 against 0 of 2 may be chance
        self.assertEqual(self.isolate("--timing=5", "--budget=7", status=4)["replays"], 7)
        self.record(app("evict"), "good", options=["-f", "--schedule=eager"])
        self.isolate("--timing=5", status=0)
        r = zetrace("isolate", "--timing=5", "-o", "small.zetrace", "t.zetrace")
        self.assertEqual(r.returncode, 2)
        self.assertIn("leave out -o", r.stderr)

    def test_result_as_condition(self):
        self.evict()
        self.assertEqual(self.pair(self.isolate("--fail-if=result:zeCommandQueueExecute*=*ERROR_UNKNOWN")), self.RIGHT)
        self.isolate("--fail-if=result:zeCommandQueueExecute*=*ERROR_DEVICE_LOST", status=0)

    def test_memory_as_condition(self):
        self.record(app("s9_no_events_between_lists"), options=["--schedule=eager"])
        self.assertEqual(self.isolate("--fail-if=memory")["verdict"], "order")
        self.isolate("--fail-if=result:ze*=ZE_RESULT_ERROR_*", status=0)

    def test_the_last_condition_counts(self):
        self.record(app("s9_no_events_between_lists"), options=["--schedule=eager"])
        self.assertEqual(self.isolate("--fail-if=result:ze*=ZE_RESULT_ERROR_*", "--fail-if=memory")["verdict"], "order")

    def test_command_as_condition(self):
        self.record(app("s9_no_events_between_lists"), options=["--schedule=eager"])
        fails = "grep -q '\"same\":false' \"$ZETRACE_REPORT\" && exit 1; exit 0"
        self.assertEqual(self.isolate("--fail-if=exit:" + fails)["verdict"], "order")
        self.isolate("--fail-if=exit:true", status=0)
        self.assertSentence(zetrace("isolate", "--fail-if=exit:exit 125", "t.zetrace"), 125, "t.zetrace: ", "--fail-if", "125", "can't tell")

    def test_bad_conditions(self):
        self.evict()
        for condition in ("", "result:", "result:zeInit", "result:=X", "exit:", "else"):
            r = zetrace("isolate", f"--fail-if={condition}", "t.zetrace")
            self.assertSentence(r, 2, "--fail-if", "wants")
        for result in ("ZE_RESULT_ERROR_UNKOWN", "FOO", "*_UNKOWN", "0"):
            self.assertSentence(zetrace("isolate", f"--fail-if=result:zeMemFree={result}", "t.zetrace"), 2, "wants a result that there is", result)
        for function in ("zeFoo", "zeImageCreate", "ZEMEMFREE"):
            r = zetrace("isolate", f"--fail-if=result:{function}=ZE_RESULT_ERROR_UNKNOWN", "t.zetrace")
            self.assertSentence(r, 2, function, "t.zetrace has no call of such a function")
        for condition in ("zeMem*=*_UNKNOWN", "zeMemFree=0x7ff*"):
            self.isolate("--fail-if=result:" + condition, status=0)

    def test_tolerance(self):
        self.record(app("s9_no_events_between_lists"), options=["--schedule=eager"])
        self.assertEqual(self.isolate("--tolerance=f32:1e-6")["verdict"], "order")
        self.isolate("--tolerance=f32:2", status=0)
        for text in ("f16:1", "f32:", "f32:x", "f32:-1", "1e-5"):
            self.assertSentence(zetrace("isolate", f"--tolerance={text}", "t.zetrace"), 2, "f32:EPS")

    def test_side_by_side_gives_the_same_answer(self):
        self.evict()
        self.assertEqual(self.pair(self.isolate("--jobs=4")), self.pair(self.isolate()))

    def test_launcher(self):
        self.evict()
        with open("launch", "w") as f:
            f.write("#!/bin/sh\necho x >> launched\nexec \"$@\"\n")
        os.chmod("launch", 0o755)
        self.assertEqual(self.pair(self.isolate("--launcher=./launch")), self.RIGHT)
        with open("launched") as f:
            self.assertGreater(len(f.readlines()), 8)
        self.assertEqual([n for n in os.listdir(".") if ".trial." in n], [])
        for jobs in ("--jobs=1", "--jobs=2"):
            self.assertSentence(zetrace("isolate", jobs, "--launcher=false", "t.zetrace"), 125, "--launcher='false' gave no report", "status 1")
        r = zetrace("isolate", "--launcher=/nope/run", "t.zetrace")
        self.assertEqual((r.returncode, r.stderr.count("not found")), (125, 1), r.stderr)
        self.assertIn("zetrace: t.zetrace: --launcher='/nope/run' gave no report, but status 127", r.stderr)
        with open("junk", "w") as f:
            f.write("no line")
        self.assertSentence(zetrace("isolate", "--trial=junk", "t.zetrace"), 2, "junk", "--launcher")

    def test_a_good_recording_that_failed(self):
        self.evict()
        r = zetrace("isolate", "--recording=good", "t.zetrace")
        self.assertRegex(r.stderr, r"^zetrace: t.zetrace: #\d+ zeCommandQueueExecuteCommandLists gave ZE_RESULT_ERROR_UNKNOWN, but it is taken for a good")
        self.assertEqual(zetrace("isolate", "t.zetrace").stderr, "")

    def test_cut_without_what_failed(self):
        """How the program ended says nothing of the calls that are left."""
        self.evict()
        calls = {c["function"]: c["call"] for c in reversed(self.dump())}
        for function, verdict in (("zeCommandListAppendMemoryCopy", "none-found"), ("zeContextEvictMemory", "order")):
            r = zetrace("trim", "-f", "-q", "-o", "cut.zetrace", f"--needs=#{calls['zeCommandListAppendMemoryCopy']},#{calls[function]}", "t.zetrace")
            self.assertEqual(r.returncode, 0, r.stderr)
            status = 1 if verdict == "order" else 0
            answer = self.isolate(trace="cut.zetrace", status=status)
            self.assertEqual((answer["verdict"], answer["recording"]), (verdict, "good"))
            said = zetrace("isolate", "cut.zetrace")
            self.assertIn("taken for a good one: it was cut from a bad one without the calls that failed.", said.stdout)
            self.assertEqual(said.stderr, "")
            r = zetrace("explore", "cut.zetrace")
            self.assertEqual(r.returncode, status, r.stdout)
            self.assertIn("it was cut from a bad one", r.stdout)
        zetrace("trim", "-f", "-q", "-o", "again.zetrace", "--calls=1..", "cut.zetrace")
        self.assertEqual(self.isolate(trace="again.zetrace")["recording"], "good")
        zetrace("trim", "-f", "-q", "-o", "cut.zetrace", "--calls=1..", "t.zetrace")
        self.assertEqual(self.isolate(trace="cut.zetrace")["recording"], "bad")

    def test_small_trace_still_shows_it(self):
        self.evict()
        answer = self.isolate("-o", "small.zetrace")
        small = self.isolate(trace="small.zetrace")
        self.assertEqual((self.pair(small), small["early"]["call"], small["late"]["call"]),
                         (self.pair(answer), answer["early"]["call"], answer["late"]["call"]))
        self.assertLess(self.info("small.zetrace")["calls"], self.info()["calls"])
        self.assertEqual(os.stat("small.zetrace").st_mode & 0o777, 0o600)
        self.assertSentence(zetrace("isolate", "-o", "small.zetrace", "t.zetrace"), 2, "small.zetrace", "-f")

    def test_further_pairs(self):
        self.record(app("s9_no_events_between_lists"), options=["--schedule=eager"])
        answer = self.isolate()
        pairs = {(p["early"]["call"], p["late"]["call"]) for p in [answer, *answer["more"]]}
        self.assertEqual(len(pairs), 2, answer)
        for p in answer["more"]:
            self.assertEqual((p["fails"], p["passes"], p["repair"]["verified"]), ([3, 3], [3, 3], [3, 3]))


if __name__ == "__main__":
    unittest.main()

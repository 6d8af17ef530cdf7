# SPDX-License-Identifier: MIT
"""export: the C program compiles without a warning, fails in the bad order and passes in the good one. --twenty: 20 runs of each, with figures."""
import concurrent.futures
import os
import shutil
import stat
import sys
import unittest

import harness
from harness import BUILD, DRIVER, app, run, zetrace

RUNS = 3
FIGURES = []
SCHEDULES = ("async", "lazy")
CC = ["cc", "-Wall", "-Wextra", "-Werror"]

# program, its argument, the schedule it is recorded with, its status, what the bad order shows
BIG = """
#include "common.h"
int main(void)
{
    const size_t size = 16384;
    unsigned x = 1;
    app a = app_open();
    unsigned char *const from = host_new(&a, size), *const back = host_new(&a, size);
    void *const D = device_new(&a, size);
    for (size_t i = 0; i < size; i++)
        from[i] = (unsigned char)((x = x * 1103515245 + 12345) >> 16);
    ze_event_handle_t counter = counter_event_new(&a), done = event_new(&a);
    ze_command_list_handle_t first = immediate_new(&a, IN_ORDER), second = immediate_new(&a, IN_ORDER);
    MUST(zeCommandListAppendMemoryCopy(first, D, from, size, counter, 0, NULL));
    MUST(zeCommandListAppendMemoryCopy(second, back, D, size, done, 0, NULL));
    MUST(zeEventHostSynchronize(done, UINT64_MAX));
    return 0;
}
"""
CASES = [
    ("evict", None, "lazy", 1, "zeCommandQueueExecuteCommandLists: ZE_RESULT_ERROR_UNKNOWN"),
    ("evict", None, "eager", 0, "zeCommandQueueExecuteCommandLists: ZE_RESULT_ERROR_UNKNOWN"),
    ("o1_evict_in_flight", None, "async", 1, "ZE_RESULT_ERROR_UNKNOWN"),
    ("o1_evict_in_flight", "ungated", "lazy", 1, "ZE_RESULT_ERROR_UNKNOWN"),
    ("o2_host_staging_lifetime", None, "async", 1, "holds what the failing run read"),
    ("o2_host_staging_lifetime", "ungated", "lazy", 1, "holds what the failing run read"),
    ("o3_event_rerecord", None, "async", 1, "zeEventHostSynchronize: ZE_RESULT_NOT_READY"),
    ("o3_event_rerecord", "ungated", "lazy", 1, "zeCommandListAppendBarrier does not end"),
    ("o4_resubmit_stale_event", None, "async", 1, "holds what the failing run read"),
    ("o4_resubmit_stale_event", "ungated", "lazy", 1, "holds what the failing run read"),
    ("o5_immediate_not_inorder", None, "eager", 0, "bytes differ"),
    ("o5_immediate_not_inorder", None, "async", None, "mem_3"),
    ("o6_destroy_order", None, "async", 1, "zeFenceHostSynchronize: ZE_RESULT_ERROR_DEVICE_LOST"),
    ("o6_destroy_order", "ungated", "lazy", 1, "zeFenceHostSynchronize: ZE_RESULT_ERROR_DEVICE_LOST"),
    ("o7_wait_never_submitted", None, "async", 1, "zeEventHostSynchronize: ZE_RESULT_NOT_READY"),
    ("o8_short_timeout_ignored", None, "async", 1, "ZE_RESULT_ERROR_DEVICE_LOST"),
    ("s9_no_events_between_lists", None, "lazy", 1, "holds what the failing run read"),
    ("s10_free_before_submit", None, "async", 1, "zeCommandQueueSynchronize: ZE_RESULT_ERROR_DEVICE_LOST"),
    ("s12_fence_reset_in_flight", None, "async", 1, "zeFenceHostSynchronize: ZE_RESULT_NOT_READY"),
]


class Export(harness.Case):
    def export(self, *options, trace="t.zetrace", out="t.c", status=0):
        r = zetrace("export", "-f", "-o", out, *options, trace)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return r

    def compile(self, source="t.c", *flags):
        r = run(*CC, *flags, source, "-o", "t", "-lze_loader")
        self.assertEqual((r.returncode, r.stderr), (0, ""))

    def program(self, mode, schedule, *more):
        return run("./t", mode, *more, env={"ZE_ENABLE_ALT_DRIVERS": DRIVER, "ZE_SOFT_SCHEDULE": schedule})

    def shows(self, name, words):
        for schedule in SCHEDULES:
            counts = []
            for mode, status in (("bad", 1), ("good", 0)):
                with concurrent.futures.ThreadPoolExecutor(4) as pool:  # most of them wait most of the time
                    results = list(pool.map(lambda _, m=mode: self.program(m, schedule), range(RUNS)))
                counts.append(sum(r.returncode == status for r in results))
                for r in results:
                    self.assertEqual(r.returncode, status, f"{name} {mode} on {schedule}: {r.stdout}{r.stderr}")
                    if mode == "bad":
                        self.assertIn(words, r.stdout)
            FIGURES.append(f"{name:40} {schedule:6} bad {counts[0]} of {RUNS}, good {counts[1]} of {RUNS}")

    def record_any(self, *program, options, status):
        r = zetrace("record", "-f", "-o", "t.zetrace", "--driver=soft", *options, "--", *program)
        self.assertIn(r.returncode, (0, 1) if status is None else (status,), r.stdout + r.stderr)

    def test_each(self):
        for program, argument, schedule, status, words in CASES:
            with self.subTest(program, argument=argument, schedule=schedule):
                arguments = [argument] if argument else []
                self.record_any(app(program), *arguments, options=[f"--schedule={schedule}"], status=status)
                self.export()
                self.assertLess(os.path.getsize("t.c"), 200_000)  # what the host wrote, a page at a time, stands in long stretches
                self.compile()
                self.shows(" ".join([program, *arguments, schedule]), words)

    def test_side_file_and_newer_structs(self):
        with open("big.c", "w", encoding="utf-8") as f:
            f.write(BIG)
        apps = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "apps")
        r = run("cc", "-w", f"-I{apps}", "big.c", "-o", "big", "-lze_loader")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.record("./big", options=["--schedule=eager"])
        self.assertSentence(zetrace("export", "t.zetrace"), 125, "give -o")
        self.export()
        self.assertEqual(stat.S_IMODE(os.stat("t.c.bin").st_mode), 0o600)
        with open("t.c", encoding="utf-8") as f:
            self.assertIn("newer_ze_event_pool_counter_based_exp_desc_t", f.read())
        self.compile()
        self.shows("a side file", "bytes differ")
        os.rename("t.c.bin", "elsewhere")
        self.assertEqual(self.program("good", "async").returncode, 2)
        self.assertEqual(self.program("good", "async", "elsewhere").returncode, 0)

    def test_standards(self):
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        self.export()
        for standard in ("c99", "c11", "gnu17"):
            self.compile("t.c", f"-std={standard}", "-pedantic", "-O2")
        if shutil.which("clang"):
            r = run("clang", *CC[1:], "-pedantic", "-fsyntax-only", "t.c")
            self.assertEqual((r.returncode, r.stderr), (0, ""))

    def test_a_given_pair(self):
        self.record(app("evict"), options=["--schedule=eager"])
        calls = {c["function"]: c["call"] for c in reversed(self.dump())}
        evict, copy = calls["zeContextEvictMemory"], calls["zeCommandListAppendMemoryCopy"]
        self.export(f"--early=#{evict}", f"--late=#{copy}@1")
        self.compile()
        self.shows("evict, a given pair", "does not end")
        r = zetrace("export", f"--early=#{copy}", f"--late=#{evict}", "t.zetrace")
        self.assertSentence(r, 125, "does not make it fail")
        self.assertSentence(zetrace("export", "--early=#9999", f"--late=#{evict}", "t.zetrace"), 125, "no call #9999")

    def test_text(self):
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        text = zetrace("export", "t.zetrace").stdout
        self.assertIn("/* #14 zeContextEvictMemory, thread 1 */", text)
        self.assertIn("if (bad) {", text)
        self.assertNotIn("zeDeviceGetProperties", text)
        self.export()
        with open("t.c", encoding="utf-8") as f:
            self.assertEqual(f.read(), text)
        self.assertEqual(stat.S_IMODE(os.stat("t.c").st_mode), 0o600)

    def test_existing_files_are_kept(self):
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        with open("t.c", "w") as f:
            f.write("mine")
        self.assertSentence(zetrace("export", "-o", "t.c", "t.zetrace"), 2, "t.c", "-f")
        with open("t.c") as f:
            self.assertEqual(f.read(), "mine")

    def test_nothing_to_show(self):
        self.record(app("evict"), "good", options=["--schedule=eager"])
        self.assertSentence(zetrace("export", "t.zetrace"), 125, "nothing to show")

    def test_numbers_that_no_recording_gives(self):
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        r = run(os.path.join(BUILD, "bin", "order", "craft"), "t.zetrace", "strange.zetrace", f"10+{1 << 62}")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertSentence(zetrace("export", "strange.zetrace"), 125, "damaged", "#46116860184273879")

    def test_usage(self):
        for options in (["--early=#1"], ["--early=x", "--late=#1"], ["--timeout=soon"], ["--early=#1@0", "--late=#2"], ["--nonsense"]):
            r = zetrace("export", *options, "t.zetrace")
            self.assertEqual(r.returncode, 2, options)
            self.assertEqual(len(r.stderr.splitlines()), 1, r.stderr)
        self.assertSentence(zetrace("export", "--format=png", "t.zetrace"), 2, "png", "dot")
        self.assertSentence(zetrace("export", "--format=json", "--early=#1", "--late=#2", "t.zetrace"), 2, "--early", "json")

    def test_program_without_argument(self):
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        self.export()
        self.compile()
        self.assertEqual(run("./t").returncode, 2)
        self.assertEqual(run("./t", "ugly").returncode, 2)


if __name__ == "__main__":
    if "--twenty" in sys.argv:
        sys.argv.remove("--twenty")
        RUNS = 20
    unittest.main(exit=False) if RUNS > 3 else unittest.main()
    print("\n".join(FIGURES))

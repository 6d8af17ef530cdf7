#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Records the programs of tests/apps on libze_soft and replays them.   apps_test.py BIN [NAME...]"""
import ctypes
import json
import os
import subprocess
import sys
import tempfile

BIN = os.path.abspath(sys.argv[1])
ZETRACE = os.path.join(BIN, "zetrace")
failures = 0


def check(what, good, more=""):
    global failures
    print(("ok    " if good else "FAIL  ") + what + ("" if good else ": " + str(more)), flush=True)
    failures += not good


def loader():
    """The loader's path, for the programs that open it by absolute path."""
    ctypes.CDLL("libze_loader.so.1")
    with open("/proc/self/maps", encoding="ascii") as maps:
        return next(line.split()[-1] for line in maps if "libze_loader.so" in line)


def record(trace, schedule, program, *args):
    done = subprocess.run([ZETRACE, "record", "-f", "--driver=soft", "--schedule=" + schedule, "-o", trace, "--",
                           os.path.join(BIN, "apps", program), *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60,
                          check=False, text=True)
    return done.returncode, done.stderr


def replay(trace, *options):
    done = subprocess.run([ZETRACE, "replay", "--json", *options, trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                          check=False, text=True)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def same(name, schedule, program, *args):
    status, told = record("t.zetrace", schedule, program, *args)
    if not os.path.exists("t.zetrace"):
        check(f"{name} is recorded on {schedule}", False, f"status {status}: {told}")
        return
    for threads in ("recorded", "one"):
        status, report, told = replay("t.zetrace", "--threads=" + threads)
        check(f"{name} on {schedule}, threads {threads}: {report.get('calls')} calls, {report.get('compared_bytes')} bytes", status == 0 and report.get("same") is True,
              f"status {status}: {report} {told}")
        if program == "hostmem":
            check("its read-backs were compared", report.get("compared_bytes", 0) > 0, report)
    os.unlink("t.zetrace")


def evict():
    status, _ = record("bad.zetrace", "lazy", "evict")
    check("evict fails on lazy", status == 1, status)
    runs = [replay("bad.zetrace") for _ in range(100)]
    good = [r for r in runs if r[0] == 0 and r[1]["failure"]["function"] == "zeCommandQueueExecuteCommandLists"
            and r[1]["failure"]["result"] == "ZE_RESULT_ERROR_UNKNOWN"]
    check(f"evict replays the same {len(good)} of 100 times", len(good) == 100, [r for r in runs if r not in good][:1])
    failed = runs[0][1]["failure"]["call"]
    status, report, _ = replay("bad.zetrace", "--schedule=eager")
    first = report["first_mismatch"]
    check("evict differs on eager, at that call, with both results", status == 1 and first == {
        "call": failed, "function": "zeCommandQueueExecuteCommandLists", "what": "result", "recorded": "ZE_RESULT_ERROR_UNKNOWN",
        "replayed": "ZE_RESULT_SUCCESS", "detail": ""}, (status, report))
    text = subprocess.run([ZETRACE, "replay", "--schedule=eager", "bad.zetrace"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=False, text=True).stdout
    check("and says so in words", all(w in text for w in (f"#{failed} ", "zeCommandQueueExecuteCommandLists", "ZE_RESULT_ERROR_UNKNOWN",
                                                         "ZE_RESULT_SUCCESS")), text)


def twin():
    for schedule in ("lazy", "eager", "async", "seed:5"):
        record("good.zetrace", schedule, "evict_good")
        for other in ("lazy", "eager", "async", "seed:1", "seed:2"):
            status, report, told = replay("good.zetrace", "--schedule=" + other)
            check(f"evict's twin, recorded on {schedule}, replays on {other}", status == 0, (status, report, told))


def bad_input():
    for content, status, word in ((b"", 3, ""), (b"not a trace at all" * 50, 3, "")):
        with open("broken.zetrace", "wb") as f:
            f.write(content)
        done = subprocess.run([ZETRACE, "replay", "broken.zetrace"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True)
        check(f"a trace of {len(content)} foreign bytes gives {status} and a sentence", done.returncode == status and
              done.stderr.startswith("zetrace: ") and word in done.stderr, (done.returncode, done.stderr))
    for options in (["--threads=two"], ["--nonsense"], ["--timeout=soon"], ["--from=x"], []):
        done = subprocess.run([ZETRACE, "replay", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True)
        check(f"usage {options}: 2", done.returncode == 2, (done.returncode, done.stderr))
    record("ok.zetrace", "lazy", "evict_good")
    status, _, told = replay("ok.zetrace", "--driver=./missing.so")
    check("no driver: 125 and its name", status == 125 and "./missing.so" in told, (status, told))
    size = os.path.getsize("ok.zetrace")
    with open("ok.zetrace", "rb") as f, open("cut.zetrace", "wb") as g:
        g.write(f.read()[:size * 2 // 3])
    status, report, told = replay("cut.zetrace")
    check("a cut trace is replayed as far as it goes, or is damaged", (status == 0 and report["calls"] > 0) or status == 3, (status, told))


def main():
    wanted = sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for test in (evict, twin, bad_input):
            if not wanted or test.__name__ in wanted:
                test()
        path = loader()
        programs = [("hostmem",), ("mixed",), ("exitpath",), ("crasher",), ("threads",), ("client_linked",), ("client_dlsym", path),
                    ("client_tables", path), ("o1_evict_in_flight",), ("o2_host_staging_lifetime",), ("o3_event_rerecord",),
                    ("o4_resubmit_stale_event",), ("o6_destroy_order",), ("o7_wait_never_submitted",)]
        programs += [(name, "fixed") for name in ("o1_evict_in_flight", "o2_host_staging_lifetime", "o3_event_rerecord",
                                                  "o4_resubmit_stale_event", "o5_immediate_not_inorder", "o6_destroy_order",
                                                  "o7_wait_never_submitted")]
        for program, *args in programs:
            if not wanted or program in wanted:
                for schedule in ("lazy", "eager"):
                    same(program + ("" if args != ["fixed"] else " fixed"), schedule, program, *args)
    print(f"{failures} failures")
    return 1 if failures else 0


sys.exit(main())

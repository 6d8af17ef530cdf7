# SPDX-License-Identifier: MIT
"""zetrace record, info, dump and help: what they say, how they exit, what they do with bad input."""
import glob
import json
import os
import re
import shutil
import stat
import subprocess
import unittest

import harness
from harness import app, run, zetrace


class Record(harness.Case):
    def test_evict(self):
        r = self.record(app("evict"), options=["--schedule=lazy"], status=1, out="bad.zetrace")
        self.assertRegex(r.stderr, r"zetrace: \d+ calls, 1 thread, 1 process, \d+ bytes .*0 dropped: bad\.zetrace")
        self.assertEqual(stat.S_IMODE(os.stat("bad.zetrace").st_mode), 0o600)
        failed = zetrace("dump", "--failed", "bad.zetrace")
        self.assertEqual(failed.returncode, 0)
        first = failed.stdout.splitlines()[0]
        self.assertRegex(first, r"^#\d+  \d+\.\d{6}  T1  zeCommandQueueExecuteCommandLists\(.*\) = ZE_RESULT_ERROR_UNKNOWN <")
        evict = zetrace("dump", "--function=zeContextEvictMemory", "bad.zetrace").stdout
        self.assertIn("zeContextEvictMemory(hContext=context#1, hDevice=device#1, ptr=mem#2+0, size=4096) = ZE_RESULT_SUCCESS", evict)
        self.assertLess(int(evict.split()[0][1:]), int(first.split()[0][1:]))
        self.assertEqual(self.info("bad.zetrace")["exit_status"], 1)

    def test_evict_from_python(self):
        self.record(app("evict.py"), options=["--schedule=lazy"], status=1)
        self.assertIn("ZE_RESULT_ERROR_UNKNOWN", self.info()["results"])

    def test_exit_status(self):
        self.record("/bin/sh", "-c", f"{app('evict_good')}; exit 7", status=7)
        self.record("/bin/sh", "-c", f"{app('evict_good')}; kill -9 $$", status=137)
        self.assertSentence(zetrace("record", "--", "./no-such-program"), 127, "not found")
        with open("plain", "w") as f:
            f.write("no program\n")
        self.assertSentence(zetrace("record", "--", "./plain"), 126, "cannot be run")

    def test_no_program(self):
        self.assertSentence(zetrace("record"), 125, "wants a program")
        self.assertSentence(zetrace("record", "--frobnicate", "--", "true"), 125, "--frobnicate")
        self.assertSentence(zetrace("record", "--memory=some", "--", "true"), 125, "none|inputs|full", "some")
        self.assertSentence(zetrace("record", "--ring=3", "--", "true"), 125, "--ring")
        self.assertSentence(zetrace("record", "--level=77", "--", "true"), 125, "--level")
        self.assertSentence(zetrace("record", "--driver=./nothing.so", "--", "true"), 125, "./nothing.so")
        self.assertSentence(zetrace("record", "-o", "%q.zetrace", "--", "true"), 125, "%q")
        self.assertSentence(zetrace("record", "-o"), 125, "wants a value")

    def test_no_call(self):
        r = zetrace("record", "-o", "t.zetrace", "--", app("noze"))
        self.assertSentence(r, 0, "no Level Zero call was seen", "zetrace doctor")
        r = zetrace("record", "-o", "t.zetrace", "--driver=soft", "--", app("noze"))
        self.assertSentence(r, 0, "no Level Zero call was seen")
        self.assertNotIn("found no driver", r.stderr)

    @unittest.skipIf(glob.glob("/dev/dri/renderD*") + glob.glob("/dev/accel/accel*"), "there is a device here")
    def test_where_no_driver_is(self):
        r = zetrace("record", "-o", "t.zetrace", "--", app("evict"))
        self.assertEqual(r.returncode, 2, r.stdout + r.stderr)
        self.assertIn("found no driver, for there is no GPU here: --driver=soft gives it one for the CPU", r.stderr)
        self.assertEqual(len(r.stderr.splitlines()), 1, r.stderr)
        r = zetrace("record", "-o", "t.zetrace", "--", app("evict"), env={"ZE_ENABLE_ALT_DRIVERS": "/nope.so"})
        self.assertNotIn("found no driver", r.stderr)
        self.assertFalse(os.path.exists("t.zetrace"))

    def test_no_driver(self):
        r = zetrace("record", "-o", "t.zetrace", "--", app("evict"), env={"ZE_ENABLE_ALT_DRIVERS": "/nowhere/libnone.so"})
        self.assertSentence(r, 2, "no Level Zero call was seen")

    def test_existing_file(self):
        with open("t.zetrace", "w") as f:
            f.write("precious")
        r = zetrace("record", "-o", "t.zetrace", "--driver=soft", "--", app("evict_good"))
        self.assertSentence(r, 125, "t.zetrace", "exists", "-f")
        with open("t.zetrace") as f:
            self.assertEqual(f.read(), "precious")
        self.record(app("evict_good"))
        self.assertTrue(self.info()["complete"])

    def test_folder_that_is_not_there(self):
        self.assertSentence(zetrace("record", "-o", "nowhere/t.zetrace", "--", "true"), 125, "nowhere")

    @unittest.skipIf(os.geteuid() == 0 and not shutil.which("setpriv"), "root may write everywhere")
    def test_unwritable_folder(self):
        os.mkdir("locked")
        os.chmod("locked", 0o555)
        os.chmod(".", 0o755)
        command = [harness.ZETRACE, "record", "-o", "locked/t.zetrace", "--driver=soft", "--", app("evict_good")]
        if os.geteuid() == 0:
            command = ["setpriv", "--reuid=65534", "--clear-groups", *command]
        self.assertSentence(run(*command), 125, "locked")

    def test_full_disk(self):
        os.mkdir("small")
        if os.geteuid() != 0 or run("mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", "small").returncode != 0:
            self.skipTest("no small file system can be mounted here")
        try:
            self.fill_disk()
        finally:
            run("umount", os.path.abspath("small"))

    def fill_disk(self):
        r = zetrace("record", "-o", "small/t.zetrace", "--driver=soft", "--", app("mixed"), 20000)
        self.assertEqual(r.returncode, 125, r.stderr)
        self.assertIn("calls=", r.stdout)  # the program went on unharmed
        told = [line for line in r.stderr.splitlines() if "No space left" in line]
        self.assertEqual(len(told), 1, r.stderr)
        left = zetrace("info", "--json", "small/t.zetrace.partial")
        self.assertEqual(left.returncode, 0, left.stderr)
        self.assertGreater(json.loads(left.stdout)["calls"], 0)

    def test_names(self):
        os.mkdir("out")
        self.record(app("evict_good"), out="out/%n-%h-%r.zetrace", env={"SLURM_PROCID": "3"})
        name = os.listdir("out")[0]
        self.assertTrue(name.startswith("evict_good-") and name.endswith("-3.zetrace"), name)
        zetrace("record", "--driver=soft", "--", app("evict_good"))
        self.assertTrue(os.path.exists("evict_good.zetrace"))

    def test_name_that_is_too_long(self):
        self.assertSentence(zetrace("record", "-o", "x" * 300, "--driver=soft", "--", app("evict_good")), 125, "too long")

    def test_ignored_signals_stay_ignored(self):
        r = self.record("/bin/sh", "-c", f"trap '' HUP; exec {harness.ZETRACE} record -q -f -o u.zetrace --driver=soft -- "
                        f"/bin/sh -c 'kill -HUP $$; {app('evict_good')}'")
        self.assertIn("all is well", r.stdout)

    def test_pid_namespace(self):
        if os.geteuid() != 0 or run("unshare", "-pf", "true").returncode != 0:
            self.skipTest("no pid namespace can be made here")
        self.record("unshare", "-pf", app("evict"), options=["--schedule=lazy"], status=1, timeout=30)
        self.assertEqual(self.info()["results"]["ZE_RESULT_ERROR_DEVICE_LOST"], 1)
        self.assertIn("libze_loader", " ".join(library["path"] for library in self.info()["libraries"]))

    def test_environment_by_allow_list(self):
        self.record(app("evict_good"), env={"SECRET_TOKEN": "hush", "SYCL_CACHE": "1", "MY_VAR": "kept"}, options=["--env=MY_*"])
        kept = self.info()["environment"]
        self.assertNotIn("SECRET_TOKEN", kept)
        self.assertEqual(kept["SYCL_CACHE"], "1")
        self.assertEqual(kept["MY_VAR"], "kept")
        with open("t.zetrace", "rb") as f:
            data = subprocess.run(["zstd", "-dcq"], input=f.read(), stdout=subprocess.PIPE, check=True).stdout
        self.assertNotIn(b"hush", data)

    def test_errno_and_output_are_the_programs(self):
        plain = run(app("evict_good"), env={"ZE_ENABLE_ALT_DRIVERS": harness.DRIVER})
        recorded = zetrace("record", "-q", "-o", "t.zetrace", "--driver=soft", "--", app("evict_good"))
        self.assertEqual(plain.stdout, recorded.stdout)
        self.assertEqual(recorded.stderr, "")


class Repeat(harness.Case):
    """--repeat with a program that fails at its third run."""
    PROGRAM = ("/bin/sh", "-c", f"n=$(cat n 2>/dev/null || echo 1); echo $((n + 1)) >n; [ $n = 3 ] && exec {app('evict')}; exec {app('evict_good')}")

    def repeat(self, runs, *options, out="t.zetrace", status=0):
        r = zetrace("record", "-o", out, "--driver=soft", "--schedule=lazy", f"--repeat={runs}", *options, "--", *self.PROGRAM)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return r

    def traces(self):
        return sorted(name for name in os.listdir(".") if "zetrace" in name)

    def runs_made(self):
        with open("n", encoding="ascii") as f:
            return int(f.read()) - 1

    def test_until_it_fails(self):
        r = self.repeat(20, status=1)
        self.assertEqual(self.runs_made(), 3)
        self.assertEqual(self.traces(), ["t.good.zetrace", "t.zetrace"])
        self.assertEqual([self.info(name)["exit_status"] for name in self.traces()], [0, 1])
        self.assertRegex(r.stderr.splitlines()[-1], r"^zetrace: run 3 of 20 failed with status 1; the good run before it: t\.good\.zetrace$")
        self.assertRegex(r.stderr.splitlines()[-2], r"dropped: t\.zetrace$")

    def test_none_fails(self):
        r = self.repeat(2)
        self.assertEqual(self.traces(), ["t.good.zetrace"])
        self.assertEqual(r.stderr.splitlines()[-1], "zetrace: 2 runs, none failed")
        self.assertIn("dropped: t.good.zetrace", r.stderr)

    def test_signal_counts_as_failure(self):
        r = zetrace("record", "-o", "t.zetrace", "--driver=soft", "--repeat=3", "--", app("crasher"))
        self.assertEqual(r.returncode, 139, r.stderr)
        self.assertEqual(self.traces(), ["t.zetrace"])
        self.assertIn("run 1 of 3 failed with status 139", r.stderr)

    def test_keep_all(self):
        r = self.repeat(4, "--keep=all")
        self.assertEqual(self.traces(), [f"t.{i}.zetrace" for i in (1, 2, 3, 4)])
        self.assertEqual([self.info(name)["exit_status"] for name in self.traces()], [0, 0, 1, 0])
        self.assertIn("4 runs, 1 failed, run 3 first", r.stderr)

    def test_numbers_in_the_name(self):
        self.repeat(9, out="%i.zetrace", status=1)
        self.assertEqual(self.traces(), ["2.zetrace", "3.zetrace"])
        self.assertEqual(self.info("2.zetrace")["exit_status"], 0)

    def test_foreign_files_stay(self):
        with open("t.good.zetrace", "w", encoding="ascii") as f:
            f.write("precious")
        self.repeat(5, status=1)
        self.assertEqual(self.traces(), ["t.good.2.zetrace", "t.good.zetrace", "t.zetrace"])
        with open("t.good.zetrace", encoding="ascii") as f:
            self.assertEqual(f.read(), "precious")

    def test_several_processes(self):
        program = ("/bin/sh", "-c", f"n=$(cat n 2>/dev/null || echo 1); echo $((n + 1)) >n; {app('evict_good')}; {app('evict_good')}; [ $n != 2 ]")
        r = zetrace("record", "-o", "t.zetrace", "--driver=soft", "--repeat=9", "--", *program)
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertEqual(self.traces(), ["t.2.good.zetrace", "t.2.zetrace", "t.good.zetrace", "t.zetrace"])

    def test_usage(self):
        self.assertSentence(zetrace("record", "--repeat=0", "--", "true"), 125, "--repeat", "'0'")
        self.assertSentence(zetrace("record", "--keep=all", "--", "true"), 125, "--keep", "--repeat")
        self.assertSentence(zetrace("record", "--repeat=2", "--keep=some", "--", "true"), 125, "failing|all")
        self.assertSentence(zetrace("record", "--repeat=9", "--", "./no-such-program"), 127, "not found")


class Look(harness.Case):
    def setUp(self):
        super().setUp()
        self.record(app("client_linked"))

    def test_info(self):
        info = self.info()
        for key in ("calls", "threads", "bytes", "dropped", "never_returned", "complete", "functions", "results"):
            self.assertIn(key, info)
        self.assertEqual(sum(info["functions"].values()), info["calls"])
        text = zetrace("info", "t.zetrace").stdout
        for word in ("client_linked", "libze_soft", "libze_loader", "completeness whole", "dropped calls", "unknown pNext"):
            self.assertIn(word, text)

    def test_dump_lines(self):
        lines = zetrace("dump", "t.zetrace").stdout.splitlines()
        for line in lines:
            self.assertRegex(line, r"^#\d+  \d+\.\d{6}  T\d+  ze\w+\(.*\) = \w+.*<[\d.]+(ns|us|ms|s)>( \(by the loader\))?$")
        text = "\n".join(lines)
        self.assertIn("flags=ZE_EVENT_POOL_FLAG_HOST_VISIBLE", text)
        self.assertIn('pBuildFlags="-O2"', text)
        self.assertRegex(text, r"zeCommandListAppendMemoryFill\(hCommandList=list#1, ptr=mem#1\+0, pattern=\"04030201\", pattern_size=4")
        self.assertRegex(text, r"phWaitEvents=\[event#1\]")
        self.assertRegex(text, r"zeMemGetAllocProperties\(.*ptr=mem#1\+100.*-> .*\.type=ZE_MEMORY_TYPE_DEVICE")

    def test_dump_filters(self):
        everything = self.dump()
        self.assertEqual([c["call"] for c in everything], list(range(1, len(everything) + 1)))
        self.assertEqual([c["call"] for c in self.dump("t.zetrace", "--calls=3..5")], [3, 4, 5])
        self.assertEqual([c["call"] for c in self.dump("t.zetrace", "--calls=#4")], [4])
        self.assertEqual([c["call"] for c in self.dump("t.zetrace", "--calls=..2")], [1, 2])
        self.assertTrue(all("Fence" in c["function"] for c in self.dump("t.zetrace", "--function=zeFence*")))
        self.assertEqual(self.dump("t.zetrace", "--thread=2"), [])
        self.assertEqual([c["function"] for c in self.dump("t.zetrace", "--failed")], ["zeModuleCreate"])
        named = self.dump("t.zetrace", "--object=mem#1")
        self.assertIn("zeMemAllocDevice", [c["function"] for c in named])
        self.assertIn("zeMemFree", [c["function"] for c in named])
        self.assertNotIn("zeInit", [c["function"] for c in named])

    def test_dump_json_fields(self):
        for call in self.dump():
            for key in ("call", "time_ns", "thread", "function", "args", "result", "duration_ns"):
                self.assertIn(key, call)

    def test_bad_traces(self):
        for command in ("info", "dump", "replay"):
            with self.subTest(command):
                open("empty", "w").close()
                self.assertSentence(zetrace(command, "empty"), 3, "empty")
                with open("foreign", "wb") as f:
                    f.write(b"\x7fELF" + bytes(200))
                self.assertSentence(zetrace(command, "foreign"), 3, "not a zetrace trace")
                self.assertSentence(zetrace(command, "missing"), 2, "missing", "no such file")
                self.assertSentence(zetrace(command), 2, "wants one trace")
                self.assertSentence(zetrace(command, "--bogus", "t.zetrace"), 2, "--bogus")
                with open("t.zetrace", "rb") as f:
                    data = bytearray(f.read())
                data[16] = 9  # container major version
                with open("newer", "wb") as f:
                    f.write(data)
                r = zetrace(command, "newer")  # what can be made out is read
                self.assertEqual(r.returncode, 0, r.stderr)
                self.assertRegex(r.stderr, "format 9.*newer zetrace")
                with open("newer", "wb") as f:
                    f.write(data[:40] + b"what a later version puts there")
                self.assertSentence(zetrace(command, "newer"), 3, "format 9", "newer zetrace")

    def test_replay_that_lacks_something(self):
        r = zetrace("replay", "--driver=/nowhere/x.so", "t.zetrace")
        self.assertEqual(r.returncode, 125)
        self.assertIn("/nowhere/x.so cannot be read", r.stderr)
        r = zetrace("replay", "--device=7", "t.zetrace")
        self.assertEqual(r.returncode, 125)
        self.assertIn("device 7 was asked for", r.stderr)
        self.assertSentence(zetrace("replay", "--from=0", "t.zetrace"), 2, "--from")
        self.assertSentence(zetrace("replay", "--threads=some", "t.zetrace"), 2, "recorded|one")

    def test_cut_trace(self):
        with open("t.zetrace", "rb") as f:
            data = f.read()
        with open("cut", "wb") as f:
            f.write(data[:len(data) - 200])
        r = zetrace("dump", "cut")
        self.assertEqual(r.returncode, 0)
        self.assertEqual(len(r.stderr.splitlines()), 1, r.stderr)
        self.assertGreater(len(r.stdout.splitlines()), 10)

    def test_streams(self):
        with open("t.zetrace", "rb") as f:
            r = subprocess.run([harness.ZETRACE, "dump", "-"], stdin=f, stdout=subprocess.PIPE, text=True)
        self.assertEqual(r.stdout, zetrace("dump", "t.zetrace").stdout)
        r = subprocess.run(f"{harness.ZETRACE} dump t.zetrace | head -n 1", shell=True, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
        self.assertEqual(r.stderr, "")
        self.assertEqual(len(r.stdout.splitlines()), 1)
        with open("/dev/full", "w") as full:
            r = subprocess.run([harness.ZETRACE, "dump", "t.zetrace"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertNotEqual(r.returncode, 0)
        self.assertIn("No space left", r.stderr)

    def test_help(self):
        self.assertEqual(zetrace().returncode, 2)
        listing = zetrace("help").stdout
        for name in ("record", "info", "dump", "replay", "help"):
            self.assertRegex(listing, rf"(?m)^  {name} ")
            text = zetrace("help", name).stdout
            self.assertIn(f"Usage: zetrace {name}", text)
            self.assertEqual(text, zetrace(name, "--help").stdout)
        self.assertRegex(zetrace("--version").stdout, r"^zetrace \d+\.\d+")
        self.assertSentence(zetrace("frob"), 2, "frob")

    def test_zstd_accepts_it(self):
        shutil.copy("t.zetrace", "t.zst")
        self.assertEqual(run("zstd", "-t", "t.zst").returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)

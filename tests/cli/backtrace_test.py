# SPDX-License-Identifier: MIT
"""record --backtrace: function, file and line of calls, whatever the program is made of."""
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import harness
from harness import app, zetrace

SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "apps")
EVICT = "zeContextEvictMemory"


def line_of(source, text):
    """'evict.c:28': the only line of a test program that holds the text."""
    with open(os.path.join(SOURCES, source), encoding="utf-8") as f:
        found = [n for n, line in enumerate(f, 1) if text in line]
    assert len(found) == 1, (source, text, found)
    return f"{source}:{found[0]}"


class Backtrace(harness.Case):
    def compile(self, source, out, *options):
        compiler = shutil.which("cc") or shutil.which("gcc")
        if not compiler:
            self.skipTest("there is no C compiler")
        r = harness.run(compiler, "-std=c11", "-D_GNU_SOURCE", "-O2", "-fomit-frame-pointer", *options, "-o", out,
                        os.path.join(SOURCES, source), "-lze_loader", "-lpthread")
        self.assertEqual(r.returncode, 0, r.stderr)

    def frames(self, *program, function=EVICT, status=1, options=("--schedule=lazy",), **kwargs):
        """Backtraces of the function's calls."""
        self.record(*program, options=[f"--backtrace={function}", *options], status=status, **kwargs)
        return [call["backtrace"] for call in self.dump("t.zetrace", f"--function={function}")]

    def test_position_independent(self):
        [frames] = self.frames(app("evict"))
        self.assertEqual(frames[0], "main " + line_of("evict.c", EVICT))
        self.assertTrue(frames[-1].startswith("_start"), frames)
        text = zetrace("dump", f"--function={EVICT}", "t.zetrace").stdout
        self.assertIn("<", text.splitlines()[0])
        self.assertEqual(text.splitlines()[1], "    at main " + line_of("evict.c", EVICT))
        self.assertNotIn("backtrace", [c for c in self.dump() if c["function"] == "zeMemFree"][0])
        self.assertTrue(all(len(c["backtrace"]) <= 32 for c in self.dump() if "backtrace" in c))

    def test_at_a_fixed_address(self):
        self.compile("evict.c", "fixed", "-no-pie", "-fno-pie", "-g")
        self.assertEqual(self.frames("./fixed")[0][0], "main " + line_of("evict.c", EVICT))

    def test_inlined(self):
        self.compile("evict.c", "inlined", "-g")
        frames = self.frames("./inlined", function="zeMemAllocDevice")
        self.assertEqual(len(frames), 2)
        shown = " ".join(frames[0])
        self.assertRegex(shown, r"device_new common\.h:\d+")
        self.assertIn("main " + line_of("evict.c", "device_new"), shown)

    def test_shared_library(self):
        self.compile("evict.c", "libevict.so", "-shared", "-fPIC", "-g")
        python = ["/usr/bin/python3", "-c", "import ctypes, sys; l = ctypes.CDLL('./libevict.so'); sys.exit(l.main(0, None))"]
        [frames] = self.frames(*python)
        self.assertEqual(frames[0], "main " + line_of("evict.c", EVICT))
        self.assertTrue(any("ffi" in frame for frame in frames), frames)

    def test_from_python(self):
        [frames] = self.frames(app("evict.py"))
        self.assertTrue(any("ffi" in frame for frame in frames), frames)
        self.assertFalse(any("libze_loader" in frame or "libzetrace" in frame for frame in frames), frames)

    def test_threads(self):
        frames = self.frames(app("threads"), 3, 50, function="zeMemGetAddressRange", status=0, options=())
        self.assertEqual(len(frames), 150)
        for each in frames:
            self.assertTrue(each[0].startswith("work threads.c:"), each)
        self.assertEqual(self.info()["dropped"], 0)

    def test_driver_attach(self):
        self.assertEqual(self.frames(app("evict"), options=["--schedule=lazy", "--attach=driver"])[0][0],
                         "main " + line_of("evict.c", EVICT))

    def test_without_debug_information(self):
        self.compile("evict.c", "plain", "-g0")
        self.assertRegex(self.frames("./plain")[0][0], r"^main\+0x[0-9a-f]+$")
        self.assertEqual(harness.run("strip", "plain").returncode, 0)
        self.assertRegex(self.frames("./plain")[0][0], r"^plain\+0x[0-9a-f]+$")

    def test_program_is_gone_when_names_are_looked_up(self):
        """The file that ran counts, not what its name means afterwards; a call that never returned has its place, too."""
        shutil.copy(app("crasher"), "gone")
        frames = self.frames("/bin/sh", "-c", "./gone; s=$?; rm gone; exit $s", function="zeDeviceGetProperties", status=139, options=())
        self.assertEqual(frames[0][0], "main " + line_of("crasher.c", "zeDeviceGetProperties(a.device"))

    def test_killed(self):
        recorder = subprocess.Popen([harness.ZETRACE, "record", "-q", "-o", "k.zetrace", "--driver=soft", "--backtrace=zeMemGet*", "--",
                                     app("spinner"), "places"])
        try:
            for _ in range(1000):
                if os.path.exists("k.zetrace.partial") and os.path.getsize("k.zetrace.partial") > 20000:
                    break
                time.sleep(0.01)
            children = f"/proc/{recorder.pid}/task/{recorder.pid}/children"
            with open(children, encoding="ascii") as f:
                spinner = int(f.read().split()[0])
            # as it is while it is being written: no names yet, but the libraries are known
            unfinished = self.dump("k.zetrace.partial", "--function=zeMemGet*")
            self.assertRegex(unfinished[0]["backtrace"][0], r"^spinner\+0x[0-9a-f]+$")
            os.kill(spinner, signal.SIGKILL)
            recorder.wait(60)
        finally:
            recorder.kill()
            recorder.wait()
        named = self.dump("k.zetrace", "--calls=..500")
        self.assertTrue(named[-1]["backtrace"][0].startswith("work spinner.c:"), named[-1])

    def test_several_globs(self):
        self.record(app("evict"), options=["--schedule=lazy", "--backtrace=zeMemFree,zeInit*", "--backtrace=zeCommandListClose"], status=1)
        have = {call["function"] for call in self.dump() if "backtrace" in call}
        self.assertEqual(have, {"zeMemFree", "zeInit", "zeCommandListClose"})
        self.assertIn("zeMemFree", self.info()["settings"]["backtrace"])

    def test_everything(self):
        """All calls of a client, with arguments that have to be followed and without; they are the same calls."""
        self.record(app("client_linked"))
        plain = [(c["function"], c["result"]) for c in self.dump()]
        self.record(app("client_linked"), options=["--backtrace=*"])
        calls = self.dump()
        self.assertEqual([(c["function"], c["result"]) for c in calls], plain)
        self.assertTrue(all(c["backtrace"] for c in calls))
        self.assertEqual(zetrace("replay", "t.zetrace").returncode, 0)

    def test_small_ring(self):
        self.record(app("threads"), 2, 20000, options=["--backtrace=*", "--ring=64Ki"])
        self.assertEqual(self.info()["dropped"], 0)

    def test_nothing_matches(self):
        self.assertSentence(zetrace("record", "--backtrace=zeFrob*", "--", "true"), 125, "--backtrace=zeFrob*", "no Level Zero function")
        r = self.record(app("evict_good"), options=["--backtrace=zeFence*"])
        self.assertRegex(r.stderr, re.compile(r"^zetrace: no call of a function that --backtrace=zeFence\* names was seen$", re.M))

    def test_off_by_default(self):
        self.record(app("evict_good"), env={"ZETRACE_BACKTRACE": "*"})
        self.assertFalse(any("backtrace" in call for call in self.dump()))


if __name__ == "__main__":
    unittest.main(verbosity=2)

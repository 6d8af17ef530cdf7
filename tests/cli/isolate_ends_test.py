# SPDX-License-Identifier: MIT
"""However isolate is ended: no process of its own goes on, and no file of its own stays behind."""
import glob
import os
import signal
import subprocess
import time
import unittest

import harness
from harness import ZETRACE, app, zetrace

HANGS = "sleep 1000 & touch begun; sleep 1000; true"


class Ends(harness.Case):
    def setUp(self):
        super().setUp()
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        os.mkdir("tmp")
        self.env = {**os.environ, "TMPDIR": os.path.abspath("tmp"), "ENDS_MARK": os.getcwd()}
        with open("launch", "w") as f:
            f.write("#!/bin/sh\n[ -e hang ] && { touch begun; exec sleep 1000; }\nexec \"$@\"\n")
        os.chmod("launch", 0o755)

    def left(self):
        """Processes that were begun by a run of this test."""
        mark, found = b"ENDS_MARK=" + os.getcwd().encode() + b"\0", []
        for path in glob.glob("/proc/[0-9]*/environ"):
            try:
                with open(path, "rb") as f:
                    if mark in f.read():
                        found.append(path.split("/")[2])
            except OSError:
                pass
        return found

    def nothing_is_left(self):
        end = time.monotonic() + 20
        while self.left() and time.monotonic() < end:
            time.sleep(0.02)
        left = self.left()
        for pid in left:
            os.kill(int(pid), signal.SIGKILL)
        self.assertEqual(left, [])
        self.assertEqual(os.listdir("tmp"), [])
        self.assertEqual([n for n in os.listdir(".") if n.startswith(("t.zetrace.", "small."))], [])

    def end(self, sig, *options):
        """Sends it when something of the trial's is there that never ends."""
        if os.path.exists("begun"):
            os.unlink("begun")
        p = subprocess.Popen([ZETRACE, "isolate", *options, "t.zetrace"], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             start_new_session=True)
        while not os.path.exists("begun") and p.poll() is None:
            time.sleep(0.01)
        p.send_signal(sig)
        p.communicate(timeout=30)
        self.assertEqual(p.returncode, -sig)

    def test_by_a_signal(self):
        begun = os.path.join(os.getcwd(), "begun")
        with open("hang", "w"):
            pass
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            for options in (["--fail-if=exit:" + HANGS.replace("begun", begun)], ["--launcher=./launch"], ["--launcher=./launch", "--jobs=3"]):
                with self.subTest(sig.name, options=options):
                    self.end(sig, *options)
                    self.nothing_is_left()

    def test_in_the_midst_of_a_replay(self):
        for sig in (signal.SIGTERM, signal.SIGKILL):
            for options in ([], ["--jobs=4"]):
                with self.subTest(sig.name, options=options):
                    p = subprocess.Popen([ZETRACE, "isolate", *options, "t.zetrace"], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    while len(self.left()) < 2 and p.poll() is None:
                        pass
                    p.send_signal(sig)
                    p.communicate(timeout=30)
                    self.nothing_is_left()

    def test_what_the_command_left_behind(self):
        r = zetrace("isolate", "--fail-if=exit:sleep 1000 & true", "t.zetrace", env=self.env)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.nothing_is_left()

    def test_a_command_that_ends_its_parent(self):
        r = zetrace("isolate", "--fail-if=exit:kill -9 $PPID; sleep 1000", "t.zetrace", env=self.env)
        self.assertSentence(r, 125, "the command of --fail-if")
        self.nothing_is_left()

    def test_a_command_that_reads_and_writes_much(self):
        r = zetrace("isolate", "--fail-if=exit:cat; head -c 300000 /dev/zero | tr '\\0' x; exit 0", "t.zetrace", env=self.env, input="x" * 100000)
        self.assertEqual(r.returncode, 0, r.stderr[-300:])
        self.assertNotIn("xx", r.stdout)

    def test_small_trace_through_a_launcher(self):
        r = zetrace("isolate", "--launcher=./launch", "-o", "small", "t.zetrace", env=self.env)
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("still show it", r.stderr)
        self.assertLess(self.info("small")["calls"], self.info()["calls"])
        self.nothing_is_left()


if __name__ == "__main__":
    unittest.main()

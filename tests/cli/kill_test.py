# SPDX-License-Identifier: MIT
"""SIGKILL of the program, SIGKILL and SIGSTOP of the recorder, rings that nobody empties."""
import glob
import json
import os
import random
import signal
import struct
import subprocess
import time
import unittest

import harness
from harness import APPS, ZETRACE, app


def environment():
    env = dict(os.environ)
    for name in ("ZE_ENABLE_ALT_DRIVERS", "LD_PRELOAD", "ZE_ENABLE_VALIDATION_LAYER"):
        env.pop(name, None)
    return env


def child_of(pid):
    for _ in range(400):
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as f:
                children = f.read().split()
            if children:
                return int(children[0])
        except OSError:
            pass
        time.sleep(0.005)
    raise AssertionError("the program was not started")


def places(path, threads):
    """(begun, returned) of each spinner thread, and the base address."""
    with open(path, "rb") as f:
        data = f.read()
    return [struct.unpack_from("<QQ", data, 64 * i) for i in range(threads)], struct.unpack_from("<Q", data, 64 * 32)[0]


class Kill(harness.Case):
    def start(self, threads=1, *options):
        if os.path.exists("places"):
            os.unlink("places")
        process = subprocess.Popen([ZETRACE, "record", "-f", "-o", "k.zetrace", "--driver=soft", *options, "--", app("spinner"),
                                    "places", str(threads)], env=environment(), stderr=subprocess.PIPE, text=True)
        spinner = child_of(process.pid)
        for _ in range(2000):
            if os.path.exists("places") and os.path.getsize("places") == 4096 and places("places", threads)[1] != 0:
                return process, spinner
            time.sleep(0.002)
        process.kill()
        raise AssertionError("the spinner does not spin")

    def test_kill_the_program_100_times(self):
        random.seed(1)
        for round_ in range(100):
            threads = 1 + round_ % 3
            process, spinner = self.start(threads)
            time.sleep(random.random() * 0.02)
            os.kill(spinner, signal.SIGKILL)
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 128 + 9, err)
            truth, base = places("places", threads)
            reader = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "format_reader.py")
            out = harness.run("/usr/bin/python3", reader, "--words", "zeMemGetAddressRange", "1", "--state", "k.zetrace",
                              env={"ZETRACE_PROTO_DIR": os.path.dirname(os.path.dirname(reader)) + "/format"})
            self.assertEqual(out.returncode, 0, out.stderr)
            numbers = [[] for _ in range(threads)]
            returned = [0] * threads
            for line in out.stdout.splitlines():
                word, state = line.split()
                offset = int(word) - base
                numbers[offset >> 24].append(offset & 0xffffff)
                returned[offset >> 24] += state == "returned"
            for thread, (begun, done) in enumerate(truth):
                with self.subTest(round=round_, thread=thread):
                    seen = numbers[thread]
                    self.assertEqual(seen, [i & 0xffffff for i in range(1, len(seen) + 1)], "missing or doubled")
                    self.assertGreaterEqual(returned[thread], done, "a call that had returned is missing")
                    self.assertLessEqual(len(seen), begun)
                    self.assertLessEqual(len(seen) - returned[thread], 1, "more in flight than one call a thread")

    def test_kill_the_recorder(self):
        process, spinner = self.start()
        time.sleep(0.7)
        process.kill()
        process.wait()
        before = places("places", 1)[0][0][1]
        time.sleep(3.5)  # a full ring with nobody behind it must not hold the program up for good
        after = places("places", 1)[0][0][1]
        time.sleep(0.2)
        later = places("places", 1)[0][0][1]
        self.assertTrue(os.path.exists(f"/proc/{spinner}"))
        os.kill(spinner, signal.SIGKILL)
        self.assertGreater(after, before)
        self.assertGreater(later, after, "the program stands still")
        self.assertEqual(glob.glob("k.zetrace"), [])
        r = harness.zetrace("info", "--json", "k.zetrace.partial")
        self.assertEqual(r.returncode, 0, r.stderr)
        info = json.loads(r.stdout)
        self.assertGreater(info["calls"], 10)
        self.assertFalse(info["complete"])
        self.assertIn("not finished", r.stderr)

    def test_stop_the_recorder(self):
        process, spinner = self.start()
        time.sleep(0.1)
        process.send_signal(signal.SIGSTOP)
        time.sleep(3.5)
        first = places("places", 1)[0][0][1]
        time.sleep(0.3)
        second = places("places", 1)[0][0][1]
        self.assertGreater(second, first, "the program waits for a recorder that is stopped")
        process.send_signal(signal.SIGCONT)
        time.sleep(0.3)
        os.kill(spinner, signal.SIGKILL)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + 9, err)
        info = self.info("k.zetrace")
        self.assertGreater(info["dropped"], 0)
        self.assertGreaterEqual(info["calls"] + info["dropped"], places("places", 1)[0][0][1])

    def test_lossy_never_waits(self):
        process, spinner = self.start(1, "--lossy", "--ring=64Ki")
        time.sleep(0.1)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        first = places("places", 1)[0][0][1]
        time.sleep(0.3)
        second = places("places", 1)[0][0][1]
        process.send_signal(signal.SIGCONT)
        os.kill(spinner, signal.SIGKILL)
        process.communicate(timeout=60)
        self.assertGreater(second, first + 1000)
        self.assertGreater(self.info("k.zetrace")["dropped"], 0)

    def test_interrupt_reaches_the_program_only(self):
        process, spinner = self.start()
        time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 128 + 15, err)
        self.assertTrue(self.info("k.zetrace")["complete"])
        self.assertEqual(self.info("k.zetrace")["signal"], 15)


if __name__ == "__main__":
    unittest.main(verbosity=2)

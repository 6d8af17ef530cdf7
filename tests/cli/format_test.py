# SPDX-License-Identifier: MIT
"""The format is what docs/FORMAT.md says: an independent reader lists the same calls as dump."""
import os
import unittest

import harness
from harness import LOADER_CLIENTS, app

READER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "format_reader.py")


class Format(harness.Case):
    def compare(self, trace="t.zetrace"):
        r = harness.run("/usr/bin/python3", "-B", READER, trace)
        self.assertEqual(r.returncode, 0, r.stderr)
        mine = [line.split()[:4] for line in r.stdout.splitlines()]
        theirs = self.dump(trace)
        self.assertEqual(len(mine), len(theirs))
        results = {"ZE_RESULT_SUCCESS": 0, "ZE_RESULT_NOT_READY": 1, "ZE_RESULT_ERROR_UNKNOWN": 0x7ffffffe,
                   "ZE_RESULT_ERROR_DEVICE_LOST": 0x70000001, "ZE_RESULT_ERROR_UNSUPPORTED_FEATURE": 0x78000003}
        for (number, thread, function, result), call in zip(mine, theirs):
            self.assertEqual((number, thread, function), (f"#{call['call']}", f"T{call['thread']}", call["function"]))
            if result == "pending":
                self.assertIsNone(call["result"])
            else:
                self.assertEqual(int(result, 16), results[call["result"]], call)

    def test_clients(self):
        for name, args in LOADER_CLIENTS.items():
            with self.subTest(name):
                self.record(app(name), *args)
                self.compare()

    def test_failures_and_threads(self):
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        self.compare()
        self.record(app("threads"), 3, 5000)
        self.compare()
        self.record(app("crasher"), status=139)
        self.compare()
        self.record(app("o8_short_timeout_ignored"), status=1)  # calls that last, and one that overlaps them
        self.compare()

    def test_length(self):
        with open(READER, encoding="utf-8") as f:
            self.assertLessEqual(len(f.readlines()), 150)


if __name__ == "__main__":
    unittest.main(verbosity=2)

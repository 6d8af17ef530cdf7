# SPDX-License-Identifier: MIT
"""Traces of every state of the format (tests/golden) are read, checked and replayed as they were when they were added.

    golden_test.py --accept     writes the expectations again
"""
import glob
import json
import os
import shutil
import sys
import unittest

import harness
from harness import zetrace

GOLDEN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden")
TRACES = sorted(glob.glob(os.path.join(GOLDEN, "*", "*.zetrace")))


def answer(path):
    """What is said of a trace, but for what depends on the day or the machine."""
    v = json.loads(zetrace("verify", "--json", path).stdout)
    said = {"verify": {k: v[k] for k in ("whole", "format", "calls", "chunks", "threads", "blobs", "never_returned", "findings")}}
    r = zetrace("check", "--json", path)
    said["check"] = {"status": r.returncode, "findings": [{k: f[k] for k in ("rule", "severity", "calls")} for f in json.loads(r.stdout)["findings"]]}
    r = zetrace("replay", "--json", "--driver=soft", path)
    report = json.loads(r.stdout) if r.stdout else {}
    said["replay"] = {"status": r.returncode, **{k: report.get(k) for k in ("same", "calls", "mismatches", "failure")}}
    info = json.loads(zetrace("info", "--json", path).stdout)
    said["info"] = {k: info[k] for k in ("functions", "results", "settings", "program", "contents", "content_bytes", "complete")}
    return said


def expectations(path):
    """File name -> text."""
    base = path[:-len(".zetrace")]
    return {base + ".txt": zetrace("dump", path).stdout, base + ".jsonl": zetrace("dump", "--json", path).stdout,
            base + ".said.json": json.dumps(answer(path), indent=1, sort_keys=True) + "\n"}


class Golden(unittest.TestCase):
    maxDiff = 4000

    def test_read_as_ever(self):
        self.assertTrue(TRACES)
        for path in TRACES:
            for name, text in expectations(path).items():
                with self.subTest(os.path.relpath(name, GOLDEN)):
                    with open(name, encoding="utf-8") as f:
                        self.assertEqual(text, f.read())

    def test_written_again(self):
        """Nothing of them is lost on the way through repair, repack and JSON."""
        for path in TRACES:
            with self.subTest(os.path.relpath(path, GOLDEN)), harness.tempfile.TemporaryDirectory() as folder:
                copy, repaired, packed = (os.path.join(folder, n) for n in ("in", "repaired", "packed"))
                shutil.copy(path, copy)
                self.assertEqual(zetrace("repair", copy, "-o", repaired).returncode, 0)
                self.assertEqual(zetrace("repack", copy, "-o", packed).returncode, 0)
                with open(copy, "rb") as a, open(repaired, "rb") as b:
                    self.assertEqual(a.read(), b.read())
                self.assertEqual(zetrace("dump", "--json", packed).stdout, zetrace("dump", "--json", path).stdout)
                self.assertEqual(zetrace("export", "--format=json", packed).stdout, zetrace("export", "--format=json", path).stdout)

    def test_nothing_of_the_machine(self):
        for path in TRACES:
            info = json.loads(zetrace("info", "--json", path).stdout)
            self.assertIn(info["host"], ("host", ""))
            for library in info["libraries"]:
                self.assertRegex(library["path"], "^/(usr|lib|build)/")


def accept():
    for path in TRACES:
        for name, text in expectations(path).items():
            with open(name, "w", encoding="utf-8") as f:
                f.write(text)


if __name__ == "__main__":
    if "--accept" in sys.argv:
        accept()
    else:
        unittest.main(verbosity=2)

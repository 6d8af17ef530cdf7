# SPDX-License-Identifier: MIT
"""verify tells what of a trace is whole; repair keeps what is readable and says what is not."""
import json
import os
import shutil
import subprocess
import unittest

import chunks as ck
import harness
from harness import app, zetrace


class Verify(harness.Case):
    def setUp(self):
        super().setUp()
        self.record(app("mixed"), "2000", options=["--schedule=eager"])
        self.data = ck.read("t.zetrace")
        self.chunks = ck.chunks(self.data)
        self.of_calls = [c for c in self.chunks if c.kind == ck.CALLS]

    def verify(self, path="hit.zetrace", status=1):
        r = zetrace("verify", "--json", path)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return json.loads(r.stdout)

    def hit(self, at, path="hit.zetrace"):
        data = bytearray(self.data)
        data[at] ^= 0x10
        ck.write(path, data)

    def repair(self, path="hit.zetrace", out="r.zetrace", status=0):
        r = zetrace("repair", "-f", "--json", path, "-o", out)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return json.loads(r.stdout) if status == 0 else None


class Whole(Verify):
    def test_whole(self):
        v = self.verify("t.zetrace", 0)
        self.assertTrue(v["whole"])
        self.assertEqual((v["calls"], v["chunks"], v["calls_lost"]), (self.info()["calls"], len(self.chunks), 0))
        self.assertEqual(zetrace("verify", "-q", "t.zetrace").stdout, "")
        self.assertRegex(zetrace("verify", "t.zetrace").stdout, r"^t.zetrace: whole: \d+ calls ")

    def test_every_program(self):
        for name, arguments, options in (("evict", [], ["--backtrace=*"]), ("hostmem", [], []), ("threads", ["3", "3000"], []),
                                         ("crasher", [], []), ("forker", [], []), ("o8_short_timeout_ignored", [], [])):
            with self.subTest(name):
                zetrace("record", "-q", "-f", "-o", f"{name}.zetrace", "--driver=soft", *options, "--", app(name), *arguments)
                self.assertTrue(self.verify(f"{name}.zetrace", 0)["whole"])
                self.repair(f"{name}.zetrace")
                self.assertEqual(ck.read("r.zetrace"), ck.read(f"{name}.zetrace"))
        zetrace("trim", "-q", "--no-verify", "o8_short_timeout_ignored.zetrace", "-o", "s.zetrace", "--needs=#9")
        self.assertTrue(self.verify("s.zetrace", 0)["whole"])

    def test_standard_input(self):
        r = subprocess.run([harness.ZETRACE, "verify", "-"], input=self.data, stdout=subprocess.PIPE)
        self.assertEqual((r.returncode, r.stdout[:9]), (0, b"-: whole:"))
        r = subprocess.run([harness.ZETRACE, "repair", "-", "-o", "-"], input=self.data, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((r.returncode, r.stdout), (0, self.data))


class Damaged(Verify):
    def test_a_chunk_of_calls(self):
        c = self.of_calls[1]
        for at in (c.offset + 20, c.offset + 90):  # header, contents
            with self.subTest(at - c.offset):
                self.hit(at)
                v = self.verify()
                self.assertEqual((v["state"], v["calls_lost"]), ("damaged", c.calls))
                [f] = v["findings"]
                self.assertEqual((f["calls"], f["chunk"], f["offset"]), ([c.first, c.first + c.span], c.sequence, c.offset))
                low, high = f["time_ns"]
                self.assertTrue(low <= c.begin < c.end <= high <= self.of_calls[2].begin)
                done = self.repair()
                self.assertEqual(done["calls_lost"], c.calls)
                after = self.verify("r.zetrace")
                self.assertEqual((after["state"], after["calls"], after["calls_lost"], after["damaged_chunks"]),
                                 ("incomplete", v["calls"], c.calls, 0))
                kept = [d["call"] for d in self.dump("r.zetrace")]
                self.assertEqual(kept, [n for n in range(1, self.info()["calls"] + 1) if not c.first <= n <= c.first + c.span])
                self.assertFalse(self.info("r.zetrace")["complete"])
                self.assertEqual(self.info("r.zetrace")["calls_lost"], c.calls)

    def test_the_last_chunk_of_calls(self):
        c = self.of_calls[-1]
        self.hit(c.offset + 20)
        self.assertEqual(self.verify()["calls_lost"], c.calls)
        self.assertEqual(self.info("hit.zetrace")["calls_lost"], c.calls)

    def test_a_table_costs_no_calls(self):
        for at in (30, 80):
            self.hit([c for c in self.chunks if c.kind == ck.API][0].offset + at)
            v = self.verify()
            self.assertEqual((v["calls"], v["calls_lost"]), (self.info()["calls"], 0))
            self.assertEqual([d["function"] for d in self.dump("hit.zetrace")], [d["function"] for d in self.dump()])

    def test_header_and_index(self):
        """They hold nothing that could not be made again: what is repaired is what was hit."""
        for at in [*range(0, 18), *range(24, 40), *range(self.chunks[-1].after, len(self.data), 7)]:
            with self.subTest(at):
                self.hit(at)
                v = self.verify()
                self.assertEqual((v["calls"], v["calls_lost"], v["damaged"]), (self.info()["calls"], 0, True))
                self.assertTrue(self.repair()["whole"])
                self.assertEqual(ck.read("r.zetrace"), self.data)

    def test_cut(self):
        for cut in (self.chunks[-1].after, self.chunks[-1].offset, self.of_calls[-1].after - 1, self.of_calls[1].offset):
            with self.subTest(cut):
                ck.write("hit.zetrace", self.data[:cut])
                v = self.verify()
                self.assertEqual(v["calls"], sum(c.calls for c in self.of_calls if c.after <= cut))
                done = self.repair()
                self.assertEqual(done["calls"], v["calls"])
                self.assertEqual(done["whole"], cut == self.chunks[-1].after)
                self.assertEqual(self.verify("r.zetrace", 0 if done["whole"] else 1)["damaged_chunks"], 0)

    def test_missing_and_swapped_chunks(self):
        c, d = self.of_calls[1:3]
        ck.write("hit.zetrace", self.data[:c.offset] + self.data[c.after:])
        self.assertEqual((self.verify()["calls_lost"], self.verify()["missing_chunks"]), (c.calls, 1))
        ck.write("hit.zetrace", self.data[:c.offset] + self.data[d.offset:d.after] + self.data[c.offset:c.after] + self.data[d.after:])
        self.assertIn("out of order", json.dumps(self.verify()["findings"]))

    def test_a_blob(self):
        self.record(app("hostmem"), "1000000", out="b.zetrace")
        self.data = ck.read("b.zetrace")
        blobs = [c for c in ck.chunks(self.data) if c.kind == ck.BLOB]
        self.assertTrue(blobs)
        self.hit(blobs[0].offset + 90)
        v = self.verify()
        self.assertEqual((v["calls_lost"], v["blobs_lost"]), (0, 1))
        self.repair()
        self.assertEqual((self.verify("r.zetrace")["blobs_lost"], self.verify("r.zetrace")["damaged_chunks"]), (1, 0))

    def test_an_unfinished_recording(self):
        """Of a recording whose recorder was killed, under the name it has then; OUT may be the name it would have got."""
        ck.write("x.zetrace.partial", self.data[:self.of_calls[-1].after])
        self.assertEqual(self.verify("x.zetrace.partial")["state"], "not finished")
        self.repair("x.zetrace.partial", "x.zetrace")
        self.assertEqual(self.verify("x.zetrace")["state"], "not finished")
        self.assertEqual(ck.read("x.zetrace.partial"), self.data[:self.of_calls[-1].after])
        r = zetrace("repair", "x.zetrace.partial", "-o", "y.zetrace")
        self.assertIn("the recording was not finished", r.stdout)

    def test_newer(self):
        data = bytearray(self.data)
        data[18] = 7
        ck.write("hit.zetrace", data)
        v = self.verify("hit.zetrace", 0)
        self.assertTrue(v["newer"])
        self.assertEqual(v["format"], "1.7")
        self.repair()
        self.assertEqual(ck.read("r.zetrace"), bytes(data))
        self.assertIn("newer", zetrace("info", "hit.zetrace").stderr)
        parts = ck.chunks(self.data)
        more = ck.Chunk(self.data, parts[1].offset).put(b"a kind of later", kind=77)
        ck.write("hit.zetrace", ck.join(self.data[:40], parts[:2] + [more] + parts[2:]))
        self.assertEqual(self.verify("hit.zetrace", 0)["unknown_chunks"], 1)
        self.repair()
        self.assertEqual(ck.read("r.zetrace"), ck.read("hit.zetrace"))


class Usage(Verify):
    def test_mistakes(self):
        ck.write("foreign", b"\x7fELF" + bytes(300))
        ck.write("empty", b"")
        os.mkdir("folder")
        os.symlink("t.zetrace", "link.zetrace")
        os.link("t.zetrace", "other.zetrace")
        for path, status, word in (("foreign", 1, "not a zetrace trace"), ("empty", 1, "empty"), ("missing", 2, "No such file"),
                                   ("folder", 2, "folder")):
            with self.subTest(path):
                self.assertSentence(zetrace("verify", path), status, path, word)
                self.assertSentence(zetrace("repair", path, "-o", "r.zetrace"), 3 if status == 1 else 2, path)
                self.assertFalse(os.path.exists("r.zetrace"))
        self.assertSentence(zetrace("verify"), 2, "none")
        self.assertEqual(zetrace("verify", "t.zetrace", "foreign", "t.zetrace").returncode, 1)
        for command in ("repair", "repack"):
            for out in ("t.zetrace", "link.zetrace", "other.zetrace", "./t.zetrace"):
                with self.subTest(command, out=out):
                    self.assertSentence(zetrace(command, "-f", "t.zetrace", "-o", out), 2, "same file")
            self.assertSentence(zetrace(command, "t.zetrace"), 2, "-o OUT")
            self.assertSentence(zetrace(command, "-o", "r.zetrace"), 2, "one trace")
            self.assertSentence(zetrace(command, "t.zetrace", "foreign", "-o", "r.zetrace"), 2, "2 operands")
            self.assertSentence(zetrace(command, "t.zetrace", "-o", "no/r.zetrace"), 125, "no/r.zetrace")
            shutil.copy("t.zetrace", "r.zetrace")
            self.assertSentence(zetrace(command, "t.zetrace", "-o", "r.zetrace"), 2, "r.zetrace", "not overwritten")
            os.unlink("r.zetrace")
            self.assertEqual(zetrace(command, "-q", "t.zetrace", "-o", "r.zetrace").stdout, "")
            self.assertEqual(os.stat("r.zetrace").st_mode & 0o777, 0o600)
            os.unlink("r.zetrace")
        self.assertEqual(self.data, ck.read("t.zetrace"))
        self.assertEqual(sorted(os.listdir()), ["empty", "folder", "foreign", "link.zetrace", "other.zetrace", "t.zetrace"])


if __name__ == "__main__":
    unittest.main(verbosity=2)

# SPDX-License-Identifier: MIT
"""repack: equal packets give equal bytes; what is dropped is gone, everything else is as it was."""
import json
import os
import sys
import unittest

import chunks as ck
import harness
from harness import app, zetrace

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import format_reader  # noqa: E402

SECRET = "do_not_tell"


class Repack(harness.Case):
    def repack(self, *options, trace="t.zetrace", out="p.zetrace", status=0):
        r = zetrace("repack", "-f", "--json", *options, trace, "-o", out)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        self.assertEqual(zetrace("verify", out).returncode, status, zetrace("verify", out).stdout)
        return json.loads(r.stdout)

    def packets(self, path):
        return [c.raw() for c in ck.chunks(ck.read(path))]


class Equal(Repack):
    def test_level_changes_nothing_else(self):
        self.record(app("mixed"), "1000", options=["--backtrace=*"])
        whole = ck.read("t.zetrace")
        sizes = {}
        for level in (1, 9, 19):
            sizes[level] = self.repack(f"--level={level}")["bytes"]
            self.assertEqual(self.packets("p.zetrace"), self.packets("t.zetrace"))
            self.repack("--level=3", trace="p.zetrace", out="q.zetrace")
            self.assertEqual(ck.read("q.zetrace"), whole)
        self.assertLess(sizes[19], sizes[1])

    def test_every_kind_of_program(self):
        """Headers follow from the packets: the recorder's own are the same."""
        for name, arguments, options in (("evict", [], ["--backtrace=*"]), ("hostmem", [], []), ("threads", ["3", "5000"], []),
                                         ("crasher", [], []), ("o8_short_timeout_ignored", [], []), ("interleave", [], [])):
            with self.subTest(name):
                zetrace("record", "-q", "-f", "-o", "t.zetrace", "--driver=soft", *options, "--", app(name), *arguments)
                self.repack("--level=3")
                self.repack("--level=19", trace="p.zetrace", out="q.zetrace")
                self.repack("--level=3", trace="q.zetrace", out="r.zetrace")
                self.assertEqual(ck.read("p.zetrace"), ck.read("r.zetrace"))
                self.assertEqual(self.packets("p.zetrace"), self.packets("t.zetrace"))

    def test_what_wrote_the_headers_does_not_show(self):
        self.record(app("mixed"), "1000")
        parts = ck.chunks(ck.read("t.zetrace"))
        for c in parts:
            if c.kind == ck.CALLS:
                c.end += 12345
        ck.write("other.zetrace", ck.join(ck.read("t.zetrace")[:40], parts))
        self.repack()
        self.repack(trace="other.zetrace", out="q.zetrace")
        self.assertEqual(ck.read("p.zetrace"), ck.read("q.zetrace"))

    def test_fields_of_a_newer_version_stay(self):
        pb = format_reader.schema()
        self.record(app("hostmem"), options=["--env=ZT_*"], env={"ZT_SECRET": SECRET})
        header, parts = ck.read("t.zetrace")[:40], ck.chunks(ck.read("t.zetrace"))
        more = b"\xa0\x38\x05\xaa\x38\x02hi"  # fields 900, a varint, and 901, bytes
        for i, c in enumerate(parts):
            c.put(c.packet(pb).SerializeToString() + more)
            if c.kind == ck.SESSION:  # inside a message, in front of what is dropped
                packet = c.packet(pb)
                inner = more + packet.session.SerializeToString()
                outer = pb.Packet()
                outer.session.MergeFromString(inner)
                body = b"\x0a" + varint(len(inner)) + inner
                c.put(more + body + more)
            elif c.kind == ck.CALLS:
                inner = c.packet(pb).calls.SerializeToString() + more
                c.put(b"\x1a" + varint(len(inner)) + inner)
        parts.insert(2, ck.Chunk(ck.read("t.zetrace"), parts[1].offset).put(b"of later", kind=99))
        ck.write("new.zetrace", ck.join(header, parts))
        self.repack("--level=1", trace="new.zetrace")
        self.assertEqual(self.packets("p.zetrace"), [c.raw() for c in parts])
        self.repack("--drop=memory,modules,env", trace="new.zetrace")
        after = self.packets("p.zetrace")
        for before in parts:
            if before.kind in (ck.SESSION, ck.CALLS):
                [now] = [raw for raw, c in zip(after, ck.chunks(ck.read("p.zetrace"))) if c.kind == before.kind and c.first == before.first]
                self.assertEqual(now.count(more), before.raw().count(more))
        self.assertNotIn(SECRET.encode(), b"".join(after))


def varint(n):
    out = b""
    while n > 0x7f:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


class Drop(Repack):
    def test_environment(self):
        self.record(app("evict_good"), options=["--env=ZT_*"], env={"ZT_SECRET": SECRET})
        self.assertIn(SECRET, json.dumps(self.info()))
        self.repack("--drop=env")
        self.assertNotIn(SECRET.encode(), b"".join(self.packets("p.zetrace")))
        after = self.info("p.zetrace")
        self.assertEqual((after["environment"], after["settings"]["dropped"]), ({}, "env"))
        self.assertEqual(after["settings"]["driver"], "soft")
        self.assertEqual(self.dump("p.zetrace"), self.dump())

    def test_memory(self):
        self.record(app("hostmem"), "1000000")
        before = self.info()
        self.assertGreater(before["contents"], 0)
        done = self.repack("--drop=memory")
        self.assertEqual(self.info("p.zetrace")["contents"], 0)
        self.assertGreater(done["dropped_bytes"], 10000)
        self.assertFalse([c for c in ck.chunks(ck.read("p.zetrace")) if c.kind == ck.BLOB])
        strip = [[{k: v for k, v in d.items() if k != "contents"} for d in self.dump(t)] for t in ("t.zetrace", "p.zetrace")]
        self.assertEqual(*strip)
        self.assertEqual(zetrace("replay", "p.zetrace").returncode, 0)
        self.repack("--drop=env", trace="p.zetrace", out="q.zetrace")
        self.assertEqual(self.info("q.zetrace")["settings"]["dropped"], "memory,env")

    def test_modules(self):
        """A module's binary is gone, small ones that stand in the call and big ones that are blobs, given or asked for, late or not."""
        words = [b"a small module", b"a big module", b"a native binary", b"a late native binary"]
        harness.run(os.path.join(harness.BUILD, "bin", "files", "modules"), "t.zetrace")
        before = b"".join(self.packets("t.zetrace"))
        for word in words + [b"build options", b"kernel value"]:
            self.assertIn(word, before)
        self.repack("--drop=modules")
        after = b"".join(self.packets("p.zetrace"))
        self.assertEqual([w for w in words if w in after], [])
        for word in (b"build options", b"kernel value", b"a buffer"):
            self.assertIn(word, after)
        for a, b in zip(self.dump("p.zetrace"), self.dump()):
            for field in ("call", "function", "result", "time_ns", "duration_ns", "thread"):
                self.assertEqual(a[field], b[field])


class Unclean(Repack):
    """What holds who knows what is not given away: calls that cannot be told apart, a session that cannot be taken apart."""

    def setUp(self):
        super().setUp()
        self.pb = format_reader.schema()
        harness.run(os.path.join(harness.BUILD, "bin", "files", "modules"), "t.zetrace")
        self.parts = ck.chunks(ck.read("t.zetrace"))
        self.calls = [c for c in self.parts if c.kind == ck.CALLS]

    def dropped(self, drop):
        ck.write("u.zetrace", ck.join(ck.read("t.zetrace")[:40], self.parts))
        r = zetrace("repack", "-f", "--json", f"--drop={drop}", "u.zetrace", "-o", "p.zetrace")
        self.assertEqual(r.returncode, 1, r.stderr)
        return json.loads(r.stdout), b"".join(self.packets("p.zetrace"))

    def test_calls_without_their_table(self):
        self.parts = [c for c in self.parts if c.kind != ck.API]
        for drop, word in (("modules", b"a small module"), ("memory", b"a buffer")):
            done, after = self.dropped(drop)
            self.assertNotIn(word, after)
            self.assertEqual(done["chunks_left_out"], len(self.calls))
        self.assertEqual(zetrace("repack", "-f", "u.zetrace", "-o", "p.zetrace").returncode, 0, "nothing to hide, nothing to leave out")
        self.assertIn(b"a small module", b"".join(self.packets("p.zetrace")))

    def test_columns_of_unknown_functions(self):
        """One chunk has a module; in the next no function is known, and columns are shorter than they say."""
        self.assertGreater(len(self.calls), 1)
        packet = self.calls[-1].packet(self.pb)
        for i in range(len(packet.calls.functions)):
            packet.calls.functions[i] = 60000 + i
        for column in packet.calls.pieces:
            column.address.extend([0] * 100000)
            column.call[:] = [0]
            column.length[:] = []
            column.kind[:] = [0]
        self.calls[-1].put(packet.SerializeToString())
        done, _ = self.dropped("modules")
        self.assertEqual(done["chunks_left_out"], 1)

    def test_session(self):
        self.parts[0].put(self.parts[0].packet(self.pb).SerializeToString() + b"\x9b\x3f" + SECRET.encode() + b"\x9c\x3f")  # a group, of an older protobuf
        _, after = self.dropped("env")
        self.assertNotIn(SECRET.encode(), after)


class Damaged(Repack):
    def test_what_is_missing_stays_missing(self):
        self.record(app("mixed"), "2000")
        data = bytearray(ck.read("t.zetrace"))
        c = [c for c in ck.chunks(data) if c.kind == ck.CALLS][1]
        data[c.offset + 90] ^= 1
        ck.write("hit.zetrace", data)
        r = zetrace("repack", "hit.zetrace", "-o", "p.zetrace")
        self.assertEqual(r.returncode, 1)
        self.assertIn("checksum", r.stderr)
        v = json.loads(zetrace("verify", "--json", "p.zetrace").stdout)
        self.assertEqual((v["calls_lost"], v["missing_chunks"], v["damaged_chunks"]), (c.calls, 1, 0))

    def test_mistakes(self):
        self.record(app("evict_good"))
        for option, word in (("--level=0", "1 to 19"), ("--level=20", "1 to 19"), ("--level=x", "1 to 19"), ("--drop=mem", "memory, modules, env"),
                             ("--drop=", "memory, modules, env"), ("--drop=env,", "memory, modules, env")):
            self.assertSentence(zetrace("repack", option, "t.zetrace", "-o", "p.zetrace"), 2, word)
        self.assertFalse(os.path.exists("p.zetrace"))


if __name__ == "__main__":
    unittest.main(verbosity=2)

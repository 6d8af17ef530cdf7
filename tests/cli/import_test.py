# SPDX-License-Identifier: MIT
"""import: a trace that went through JSON is the same trace, byte for byte; what is no such JSON is refused with a sentence."""
import base64
import filecmp
import json
import os
import resource
import subprocess
import sys
import unittest

import harness
from harness import LOADER_CLIENTS, ZETRACE, app, zetrace

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import format_reader  # noqa: E402

PROGRAMS = [["evict"], ["evict_good"], ["mixed"], ["threads", 3, 3000], ["crasher"], ["nested"], ["odd"], ["hostmem"], ["hostwrites", "partly"], ["interleave"],
            ["o4_resubmit_stale_event"], ["o8_short_timeout_ignored"], ["extension"], ["two_drivers"]] + [[name, *args] for name, args in LOADER_CLIENTS.items()]


def lines_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read().splitlines()


def write(path, lines):
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))


def varint(n):
    out = b""
    while n > 0x7f:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


def text(data):
    return base64.b64encode(data).decode()


class Import(harness.Case):
    def made(self, *program, options=("--schedule=lazy",), **kwargs):
        if os.path.exists("t.zetrace"):
            os.remove("t.zetrace")  # a program that makes no call leaves none
        r = zetrace("record", "-q", "-o", "t.zetrace", "--driver=soft", *options, "--", *program, **kwargs)
        self.assertNotIn(r.returncode, (125, 126, 127), r.stderr)

    def exported(self, trace="t.zetrace", out="t.json"):
        r = zetrace("export", "--format=json", "-f", "-o", out, trace)
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "", ""))
        return lines_of(out)

    def imported(self, json_file="t.json", out="u.zetrace"):
        r = zetrace("import", "-f", json_file, "-o", out)
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "", ""))

    def assertRoundTrip(self, trace="t.zetrace"):
        first = self.exported(trace)
        self.imported()
        self.assertEqual(self.exported("u.zetrace", "u.json"), first)
        for name in (trace, "u.zetrace"):
            self.assertEqual(zetrace("repack", "-q", "-f", "--level=1", name, "-o", name + ".small").returncode, 0)
        self.assertTrue(filecmp.cmp(trace + ".small", "u.zetrace.small", shallow=False), "packets are other ones")
        self.assertTrue(filecmp.cmp(trace, "u.zetrace", shallow=False), "the file is another one")

    def refused(self, lines, *words, status=3):
        """One sentence, and nothing is left."""
        if lines is not None:
            write("bad.json", lines)
        r = zetrace("import", "bad.json", "-o", "bad.zetrace")
        self.assertSentence(r, status, *words)
        self.assertTrue(r.stderr.rstrip("\n").isprintable(), r.stderr)
        self.assertEqual([f for f in os.listdir(".") if f.startswith("bad.zetrace")], [])

    def test_every_program(self):
        for program in PROGRAMS:
            with self.subTest(program[0]):
                self.made(app(program[0]), *program[1:])
                self.assertRoundTrip()
        self.made(app("evict"), options=["--schedule=async", "--backtrace=*", "--memory=full"])
        self.assertRoundTrip()

    def test_protobufs_own_json(self):
        """Python's reader of protobuf's JSON makes the same bytes of each line."""
        from google.protobuf import json_format
        schema = format_reader.schema()
        self.made(app("mixed"))
        with open("t.zetrace", "rb") as f:
            stream = subprocess.run(["zstd", "-dcq"], stdin=f, stdout=subprocess.PIPE, check=True).stdout
        packets = list(format_reader.packets(stream, schema))
        lines = [json.loads(line) for line in self.exported()]
        self.assertEqual(len(lines), len(packets) + 2)
        self.assertEqual(lines[-1], {"packets": len(packets)})
        for line, packet in zip(lines[1:], packets):
            self.assertEqual(set(line), {"packet"})
            self.assertEqual(json_format.ParseDict(line["packet"], schema.Packet()), packet)

    def test_arguments_that_are_no_text(self):
        odd = [b"\xff\xfe", b"\x1b[31m\x07\xc2\x9b", "ü€𝄞\"\\\n".encode(), b"\xed\xa0\x80", b"\xc0\x80", b"x" * 1000]
        r = subprocess.run([ZETRACE.encode(), b"record", b"-q", b"-o", b"t.zetrace", b"--driver=soft", b"--", app("evict_good").encode(), *odd],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertRoundTrip()
        with open("t.json", "rb") as f:
            raw = f.read()
        self.assertEqual([c for c in raw if c < 0x20 and c != 10 or c == 0x7f], [])
        self.assertNotIn(b"\xc2\x9b", raw)
        argv = json.loads(raw.splitlines()[1])["packet"]["session"]["argv"][1:]
        self.assertEqual([base64.b64decode(a["@base64"]) if isinstance(a, dict) else a.encode() for a in argv], odd)

    def test_fields_of_a_newer_version(self):
        self.made(app("evict"))
        lines = [json.loads(line) for line in self.exported()]
        field = [text(varint(900 << 3)), text(varint(5)), text(varint(901 << 3 | 2)), text(b"\2hi")]
        calls = next(line["packet"]["calls"] for line in lines if "calls" in line.get("packet", {}))
        lines[1]["packet"]["session"]["@unknown"] = field
        lines[1]["packet"]["@unknown"] = field
        calls["@unknown"] = field
        calls["words"][0]["@unknown"] = field
        newer = varint(77 << 3 | 2) + b"\3new"
        header = {"kind": 77, "flags": 3, "first": str(2**64 - 1), "calls": 0, "late": 1, "begin": "5", "end": "6", "span": 7}
        lines.insert(2, {"packet": {"@unknown": [text(newer[:2]), text(newer[2:])]}, "header": header})
        # a packet whose bytes are not those that packing it gives: its varint is one byte longer than it has to be
        lines.insert(3, {"raw": text(b"\x2a\x03\x08\x81\x00")})
        lines[-1]["packets"] += 2
        write("new.json", lines)
        self.imported("new.json")
        self.assertEqual([json.loads(line) for line in self.exported("u.zetrace")], lines)
        os.rename("u.zetrace", "v.zetrace")
        self.assertRoundTrip("v.zetrace")
        with open("v.zetrace", "rb") as f:
            stream = subprocess.run(["zstd", "-dcq"], stdin=f, stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(stream.count(b"\xa0\x38\x05\xaa\x38\x02hi"), 4)
        self.assertIn(newer, stream)
        self.assertEqual(len(self.dump("v.zetrace")), len(self.dump()))

    def test_change(self):
        self.made(app("evict"))
        lines = [json.loads(line) for line in self.exported()]
        for line in lines:
            results = line.get("packet", {}).get("calls", {}).get("results", [])
            results[:] = [str(0x78000001) if r == str(0x7ffffffe) else r for r in results]
        write("t.json", lines)
        self.imported()
        changed = [(a["result"], b["result"]) for a, b in zip(self.dump(), self.dump("u.zetrace")) if a != b]
        self.assertEqual(set(changed), {("ZE_RESULT_ERROR_UNKNOWN", "ZE_RESULT_ERROR_UNINITIALIZED")})
        self.assertGreater(len(changed), 1)

    def test_other_layouts(self):
        """Pretty-printed, numbers for texts: JSON is JSON."""
        self.made(app("evict"))
        lines = [json.loads(line) for line in self.exported()]
        lines[1]["packet"]["session"]["pid"] = int(lines[1]["packet"]["session"]["pid"])
        with open("t.json", "w", encoding="utf-8") as f:
            f.write("\n \n".join(json.dumps(line, indent=3) for line in lines))
        self.imported()
        self.assertTrue(filecmp.cmp("t.zetrace", "u.zetrace", shallow=False))

    def test_standard_input_and_output(self):
        self.made(app("evict"))
        with open("t.zetrace", "rb") as f:
            exported = subprocess.run([ZETRACE, "export", "--format=json", "-"], stdin=f, stdout=subprocess.PIPE, check=True).stdout
        whole = subprocess.run([ZETRACE, "import", "-", "-o", "-"], input=exported, stdout=subprocess.PIPE, check=True).stdout
        with open("t.zetrace", "rb") as f:
            self.assertEqual(f.read(), whole)
        with open("/dev/full", "w", encoding="utf-8") as full:
            r = subprocess.run([ZETRACE, "export", "--format=json", "t.zetrace"], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(r.returncode, 1)

    def test_files(self):
        self.made(app("evict"))
        self.exported()
        self.assertEqual(os.stat("t.json").st_mode & 0o777, 0o600)
        self.imported()
        self.assertEqual(os.stat("u.zetrace").st_mode & 0o777, 0o600)
        self.assertSentence(zetrace("import", "t.json", "-o", "u.zetrace"), 2, "u.zetrace", "-f")
        self.assertSentence(zetrace("export", "--format=json", "-o", "t.json", "t.zetrace"), 2, "t.json", "-f")
        os.link("t.json", "hard")
        os.symlink("t.json", "soft")
        for name in ("t.json", "hard", "soft"):
            self.assertSentence(zetrace("import", "-f", "t.json", "-o", name), 2, "itself")
        os.symlink("t.zetrace", "link")
        for name in ("t.zetrace", "link"):
            self.assertSentence(zetrace("export", "--format=json", "-f", "-o", name, "t.zetrace"), 2, "itself")
        self.assertSentence(zetrace("import", "t.json", "-o", "no/u.zetrace"), 1, "no/u.zetrace")
        self.assertSentence(zetrace("import", "missing", "-o", "v"), 2, "missing")

    def test_usage(self):
        for arguments, word in ((["-o", "x"], "one file"), (["a", "b", "-o", "x"], "one file"), (["a"], "-o FILE"), (["--level=20", "a"], "--level"),
                                (["--frob"], "--frob")):
            self.assertSentence(zetrace("import", *arguments), 2, word)

    def test_damaged_trace(self):
        """What can be read goes into JSON, and what comes back is as much."""
        self.made(app("threads"), 2, 20000)
        with open("t.zetrace", "rb") as f:
            whole = f.read()
        with open("t.zetrace", "wb") as f:
            f.write(whole[:len(whole) // 2])
        r = zetrace("export", "--format=json", "-o", "t.json", "t.zetrace")
        self.assertSentence(r, 0, "t.zetrace")
        self.imported()
        kept = self.dump("u.zetrace")
        self.assertGreater(len(kept), 1000)
        self.assertEqual(kept, self.dump("t.zetrace"))

    def test_cut(self):
        self.made(app("evict"))
        lines = self.exported()
        for n in range(len(lines)):
            if n == 0:
                with open("bad.json", "w"):
                    pass
                self.refused(None, "empty")
            else:
                self.refused(lines[:n], "cut")
        whole = "\n".join(lines)
        for n in range(60, len(whole) - 1, len(whole) // 20):
            self.refused([whole[:n]], "cut" if n > 70 else "")
        self.refused(lines[:3] + lines[4:], "missing")
        self.refused(lines + lines[-1:], "behind")

    def test_foreign(self):
        self.made(app("evict"))
        for content in ("hello", "{}", "[]", "{\"a\":1}", "{\"packet\":{}}", "17", "\"x\"", "null", "\0\1\2", "\x1b[31m", "{\"zetrace_json\":}"):
            self.refused([content], "is no trace as JSON")
        self.refused(["{\"zetrace_json\":2,\"uuid\":\"AAAAAAAAAAAAAAAAAAAAAA==\"}"], "newer zetrace")
        self.refused(["{\"zetrace_json\":1}"], "uuid")
        os.rename("t.zetrace", "bad.json")
        self.refused(None, "is no trace as JSON")

    def test_hostile(self):
        self.made(app("evict"))
        lines = self.exported()
        big, deep = str(2**60), 100000

        def session(**fields):
            return lines[:1] + [{"packet": {"session": fields}}] + [{"packets": 1}]

        for bad, word in (({"pid": "9" * 30}, "64 bits"), ({"pid": str(2**63)}, "64 bits"), ({"start_wall_ns": "-1"}, "without a sign"),
                          ({"start_wall_ns": 1.5}, "whole number"), ({"start_wall_ns": "0x10"}, "whole number"), ({"pid": True}, "a number"),
                          ({"pid": None}, "null"), ({"pid": {}}, "an object"), ({"pid": [1]}, "a list"), ({"argv": "x"}, "a list"),
                          ({"argv": [[]]}, "a list"), ({"argv": [1]}, "a number"), ({"argv": [{"@base64": "A"}]}, "base64"), ({"argv": [{}]}, "empty"),
                          ({"uuid": "A*=="}, "base64"), ({"uuid": "AB=="}, "base64"), ({"uuid": "AAAA="}, "base64"), ({"program": "a\0b"}, "zero byte"),
                          ({"required_reader": big}, "32 bits"), ({"nothing": 1}, "no field"), ({"a\x1b[31m\nb" * 100: 1}, "no field"),
                          ({"@unknown": "AA=="}, "@unknown"), ({"@unknown": [1]}, "@unknown"), ({"libraries": [{"libraries": []}]}, "no field")):
            with self.subTest(bad):
                self.refused(session(**bad), word, "line 2")
        for packet, word in (({"calls": {"first": big, "functions": [0], "function": [0], "words": [{"delta": [big]}], "late": {}}}, "list"),
                             ({}, "header"), ({"calls": {"function": [0] * 8193}}, "calls"), ([], "packet"), ("x", "packet")):
            self.refused(lines[:1] + [{"packet": packet}], word, "line 2")
        self.refused(lines[:1] + [{"packets": big}], "missing")
        self.refused(lines[:1] + [{"packets": str(2**70)}], "packets")
        self.refused(lines[:1] + ['{"packet":{"session":{},"session":{}},"packet":{}}'], "twice")
        self.refused(lines[:1] + ['{"raw":"/w==","header":{"kind":256}}'], "kind")
        self.refused(lines[:1] + ['{"raw":"/w==","header":{"kind":2,"flags":256}}'], "flags")
        self.refused(lines[:1] + ['{"raw":"/w==","header":{"kind":2,"calls":"0x1"}}'], "calls")
        for key in ("raw", "packet", "header"):
            self.refused(lines[:1] + [f'{{"{key}":0}}'], key)
        self.refused(['{"zetrace_json":1,"minor":0,"flags":0,"uuid":0}'], "uuid")
        self.refused(lines[:1] + ['{"raw":"/w=="}'], "header")
        self.refused(lines[:1] + ['{"packet":' * deep], "packet")
        self.refused(lines[:1] + ["[" * deep], "list")
        self.refused(lines[:1] + ['{"packet":{"session":{"program":"\\ud800'], "cut")
        self.refused(lines[:1] + ['{"packet":{"session":{"program":"\xff\xfe"}}} x'], "")

    def test_columns_that_do_not_fit(self):
        """Each line is a packet, but the calls in it are none: it is told, and reading the result is safe."""
        self.made(app("evict"))
        lines = [json.loads(line) for line in self.exported()]
        chunk = next(line["packet"]["calls"] for line in lines if "pieces" in line.get("packet", {}).get("calls", {}))
        chunk["pieces"][0]["length"] = [str(2**60)]
        write("bad.json", lines)
        self.assertSentence(zetrace("import", "bad.json", "-o", "bad.zetrace"), 3, "bad.zetrace", "do not fit")
        self.assertIn(zetrace("dump", "bad.zetrace").returncode, (0, 3))

    def test_bounded_memory(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (900 << 20, 900 << 20))

        self.made(app("evict"))
        lines = self.exported()
        for start, block, word in (('{"packet":{"session":{"program":"', "x" * 1024, "MiB"), ('{"packet":{"calls":{"enter":[', "1111111111111111111," * 50, "MiB")):
            with self.subTest(start):
                p = subprocess.Popen([ZETRACE, "import", "-", "-o", "bad.zetrace"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limit)
                try:
                    p.stdin.write((lines[0] + "\n" + start).encode())
                    for _ in range(400):
                        p.stdin.write(block.encode() * 1024)
                except BrokenPipeError:
                    pass
                _, said = p.communicate()
                self.assertEqual(p.returncode, 3, said)
                self.assertIn(word, said.decode())
                self.assertEqual(said.count(b"\n"), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)

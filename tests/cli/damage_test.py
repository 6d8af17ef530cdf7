# SPDX-License-Identifier: MIT
"""Every command on damaged, hostile and newer traces: it ends by itself, with a status of its contract, and shows nothing that steers a terminal.

damage_test.py --all takes each byte instead of some (tests/files/every_byte_test.c does that for the libraries, which takes minutes, not hours).
"""
import json
import os
import random
import re
import resource
import struct
import subprocess
import sys
import unittest

import chunks as ck
import harness

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import format_reader  # noqa: E402

ALL = "--all" in sys.argv
GOLDEN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden", "1.0")
SMALL = ["--budget=4", "--timeout=1s"]
# command -> arguments, statuses of its contract
COMMANDS = [
    (["info", "T"], {0, 3}), (["info", "--json", "T"], {0, 3}), (["dump", "T"], {0, 3}), (["dump", "--json", "T"], {0, 3}),
    (["check", "T"], {0, 1, 3, 125}), (["graph", "T"], {0, 3, 125}), (["graph", "--format=json", "T"], {0, 3, 125}),
    (["whois", "T", "0x7f0000001000"], {0, 1, 3, 125}), (["trim", "-f", "--no-verify", "T", "-o", "out", "--calls=1.."], {0, 2, 3, 125}),
    (["export", "-f", "-o", "out.c", "T"], {0, 1, 3, 125}), (["export", "--format=json", "-f", "-o", "out.json", "T"], {0, 1, 3, 125}),
    (["replay", "--driver=soft", "--timeout=1s", "T"], {0, 1, 3, 125}), (["verify", "T"], {0, 1}), (["verify", "--json", "T"], {0, 1}),
    (["repair", "-f", "T", "-o", "out"], {0, 3, 125}), (["repack", "-f", "--drop=env", "T", "-o", "out"], {0, 1, 3, 125}),
    (["isolate", "--driver=soft", *SMALL, "T"], {0, 1, 3, 4, 125}), (["explore", *SMALL, "T"], {0, 1, 3, 4, 125}),
]
DRIVER = ("replay", "isolate", "explore", "export", "trim", "diff")
MORE = [(["export", "--format=chrome", "-f", "-o", "out.json", "T"], {0, 1, 3, 125}), (["export", "--format=perfetto", "-f", "-o", "out.pf", "T"], {0, 1, 3, 125}),
        (["diff", "T", "T"], {0, 1, 2, 3, 125}), (["leaks", "T"], {0, 1, 3, 125})]  # commands that a build may have
HOSTILE = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


def limited():  # for what loads no driver: that one reserves a window of addresses
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))


def varint(n):
    out = b""
    while n > 0x7f:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """A protobuf field: bytes, or a varint."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


class Every(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.pb = format_reader.schema()
        cls.commands = COMMANDS + [(c, s) for c, s in MORE if c[1].replace("--format=", "|") in harness.zetrace("help", c[0]).stdout or
                                   c[1] == "T" and harness.zetrace("help", c[0]).returncode == 0]

    def setUp(self):
        super().setUp()
        self.data = ck.read(os.path.join(GOLDEN, "evict.zetrace"))
        self.parts = ck.chunks(self.data)

    def each(self, path, commands=None, text=True):
        """Runs every command. Returns {first words: CompletedProcess}."""
        answers = {}
        for command, statuses in commands or self.commands:
            with self.subTest(" ".join(command)):
                args = [path if a == "T" else a for a in command]
                r = subprocess.run([harness.ZETRACE, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                                   preexec_fn=None if command[0] in DRIVER else limited)
                answers[" ".join(command[:2])] = r
                self.assertIn(r.returncode, statuses, r.stderr[-500:])
                self.assertEqual(HOSTILE.findall(r.stderr), [], r.stderr[-500:])
                if text:
                    self.assertEqual(HOSTILE.findall(r.stdout), [], r.stdout[-500:])
                if r.returncode not in (0, 1, 4):
                    self.assertIn(b"zetrace: ", r.stderr)
        return answers

    def index_of(self, kind, n=0):
        return [i for i, c in enumerate(self.parts) if c.kind == kind][n]

    def with_packet(self, kind, packet, n=-1, **fields):
        """The golden trace with another packet in one chunk."""
        i = self.index_of(kind, n)
        self.parts[i].put(packet, **fields)
        ck.write("T", ck.join(self.data[:40], self.parts))
        return "T"


class Sampled(Every):
    def test_flipped_and_cut(self):
        dice = random.Random(7)
        positions = range(len(self.data)) if ALL else sorted(dice.sample(range(len(self.data)), 3))
        for at in positions:
            hit = bytearray(self.data)
            hit[at] ^= 1 << at % 8
            for name, data in (("flipped", hit), ("cut", self.data[:at])):
                with self.subTest(name, at=at):
                    ck.write("T", data)
                    self.each("T")

    def test_empty_and_foreign(self):
        ck.write("empty", b"")
        ck.write("foreign", os.urandom(100) + b"\x1b]0;owned\x07" * 50)
        ck.write("header", self.data[:40])
        for name in ("empty", "foreign", "header"):
            for words, r in self.each(name).items():
                self.assertEqual(r.returncode, 1 if words.startswith("verify") else 2 if words.startswith("diff") else 3, words)
                self.assertEqual(len(r.stderr.splitlines()), 1, r.stderr)


class Newer(Every):
    def test_says_so_and_reads_what_it_can(self):
        data = bytearray(self.data)
        struct.pack_into("<HHI", data, 16, 1, 9, 4)  # minor version, flags
        ck.write("T", data)
        for words, r in self.each("T").items():
            if not words.startswith(("verify", "repair", "import")):
                self.assertIn(b"newer", r.stderr, words)
        self.assertEqual(len(self.dump("T")), 46)
        struct.pack_into("<HHI", data, 16, 2, 0, 0)  # major version
        ck.write("T", data)
        for words, r in self.each("T").items():
            if not words.startswith(("verify", "repair", "import")):
                self.assertIn(b"newer", r.stderr, words)
        self.assertEqual(len(self.dump("T")), 46)

    def test_a_reader_would_be_wrong(self):
        session = self.parts[0].packet(self.pb)
        session.session.required_reader = 9
        path = self.with_packet(ck.SESSION, session.SerializeToString())
        for words, r in self.each(path).items():
            self.assertEqual(r.returncode, 1 if words.startswith("verify") else 2 if words.startswith("diff") else 3, words)
            self.assertIn(b"newer zetrace", r.stderr)


class Hostile(Every):
    def test_counts(self):
        """Numbers of 2^60, and columns of a length that is not theirs."""
        packet = self.parts[self.index_of(ck.CALLS, -1)].packet(self.pb)
        for what in ("first", "words", "length", "content", "late", "thread", "gaps", "blob"):
            c = self.pb.Packet()
            c.CopyFrom(packet)
            calls = c.calls
            if what == "first":
                calls.first = 2**60
            elif what == "words":
                calls.words[0].word = 2**31
            elif what == "length":
                calls.pieces[0].length[:] = [2**60]
            elif what == "content":
                calls.contents.add(call=0, kind=1, flags=2, address=2**63, length=2**60, hash=bytes(16))
            elif what == "late":
                calls.late.extend([self.pb.Late(number=2**60, leave_ns=2**63, result=1)] * 3)
            elif what == "thread":
                calls.thread[:] = [2**32 - 1 - i for i in range(len(calls.thread))]
            elif what == "gaps":
                calls.gaps[:] = [2**32 - 1] * len(calls.function)
            elif what == "blob":
                calls.contents.add(call=0, kind=1, flags=4, address=0, length=2**60, hash=bytes(16))
            with self.subTest(what):
                self.parts = ck.chunks(self.data)
                self.each(self.with_packet(ck.CALLS, c.SerializeToString(), late=len(calls.late), first=calls.first if what == "first" else packet.calls.first))

    def test_chunk_headers(self):
        for fields in ({"raw_size": 2**32 - 1}, {"stored_size": 2**31}, {"calls": 2**31}, {"span": 2**32 - 1}, {"sequence": 2**64 - 1}, {"first": 2**64 - 1},
                       {"end": 2**64 - 1, "begin": 2**64 - 1}, {"late": 2**32 - 1}):
            with self.subTest(fields):
                self.parts = ck.chunks(self.data)
                c = self.parts[self.index_of(ck.CALLS, -1)]
                for name, value in fields.items():
                    setattr(c, name, value)
                ck.write("T", self.data[:40] + b"".join(p.bytes() for p in self.parts))
                self.each("T", [c for c in self.commands if c[0][0] in ("dump", "verify", "repair", "check", "replay", "repack", "info")])

    def test_packets_that_grow(self):
        """64 MiB of zeros in a few KiB, and messages that are larger in memory than on disk."""
        bombs = {"zeros": bytes(60 << 20), "messages": field(3, b"\x6a\x00" * (10 << 20)), "unknown": field(3, b"\x98\x3f\x01" * (8 << 20)),
                 "nested": b"\x0a\x00" * (20 << 20)}
        few = [c for c in self.commands if c[0] in (["dump", "T"], ["verify", "T"], ["repair", "-f", "T", "-o", "out"], ["check", "T"])]
        for name, packet in bombs.items():
            with self.subTest(name):
                self.parts = ck.chunks(self.data)
                self.each(self.with_packet(ck.CALLS, packet), few)
                self.assertLess(os.path.getsize("T"), 1 << 20)

    def test_a_blob_that_grows(self):
        """One that says it is of 2^60 bytes, and 8 GiB of zeros that really stand there."""
        call = self.parts[self.index_of(ck.CALLS, -1)].packet(self.pb)
        for total, parts in ((2**60, 1), (8 << 30, 8192)):
            with self.subTest(total):
                name = struct.pack("<QQ", 1, 2)
                blob = field(4, field(1, name) + field(2, total) + field(3, 0) + field(4, bytes(1 << 20)))
                one = ck.Chunk(self.data, self.parts[0].offset).put(blob, kind=ck.BLOB, first=1, begin=2, end=0, calls=0, late=0, span=0)
                call.calls.contents.add(call=0, kind=2, flags=4, address=0x7f0000000000, length=min(total, 2**40), hash=name)
                self.parts = ck.chunks(self.data)
                self.parts[self.index_of(ck.CALLS, -1)].put(call.SerializeToString())
                i = self.index_of(ck.CALLS, -1)
                data = self.data[:40] + b"".join(c.bytes() for c in self.parts[:i])
                if parts > 1:
                    for k in range(0, parts, 256):  # offsets that follow each other, every 256th told apart
                        one.put(field(4, field(1, name) + field(2, total) + field(3, k << 20) + field(4, bytes(1 << 20))), end=k << 20)
                        data += one.bytes()
                else:
                    data += one.bytes()
                ck.write("T", data + b"".join(c.bytes() for c in self.parts[i:]))
                self.each("T", [c for c in self.commands if c[0][0] in ("dump", "verify", "repair", "check", "replay", "trim", "repack")])

    def test_things_that_lead_to_themselves(self):
        """A chain of structs whose next is itself; calls that are their own LEAVE; an api table that names itself again and again."""
        packet = self.parts[self.index_of(ck.CALLS, -1)].packet(self.pb)
        for column in packet.calls.pieces:
            addresses, at = [], 0
            for delta in column.address:
                at = (at + delta) & (2**64 - 1)
                addresses.append(at)
            data, offset = bytearray(column.data), 0
            for k, address in enumerate(addresses):
                n = column.length[0 if len(column.length) == 1 else k]
                if n >= 16:
                    struct.pack_into("<Q", data, offset + 8, address)
                offset += n
            column.data = bytes(data)
        packet.calls.late.extend([self.pb.Late(number=n, leave_ns=5, result=0) for n in range(1, 47)] * 20)
        self.each(self.with_packet(ck.CALLS, packet.SerializeToString(), late=len(packet.calls.late)))
        self.parts = ck.chunks(self.data)
        api = self.parts[self.index_of(ck.API)].packet(self.pb)
        api.api.functions.extend(list(api.api.functions) * 2000)
        self.each(self.with_packet(ck.API, api.SerializeToString(), 0), [c for c in self.commands if c[0][0] in ("dump", "verify", "check")])

    def test_many_late_chunks(self):
        """Calls whose ends stand in two chunks by turns: none is read for each call."""
        pb = self.pb
        zeinit = self.parts[self.index_of(ck.API)].packet(pb).api.functions[0]
        n = 8000
        calls = pb.CallChunk(first=1, functions=[zeinit.id], function=[0] * n, thread=[1] * n, start_ns=1, enter=[1] * n, duration=[0] * n, results=[0],
                             result=[0] * n, flags=[1] * n)
        for word in range(zeinit.words):
            calls.words.add(function=0, word=word, delta=[0] * n)
        one = ck.Chunk(self.data, self.parts[0].offset)
        parts = [ck.Chunk(self.data, self.parts[0].offset), ck.Chunk(self.data, self.parts[self.index_of(ck.API)].offset),
                 one.put(field(3, calls.SerializeToString()), kind=ck.CALLS, first=1, calls=n, late=0, begin=1, end=n, span=n - 1)]
        for turn in (0, 1):
            late = pb.CallChunk(late=[pb.Late(number=k, leave_ns=k + 5, result=0) for k in range(1 + turn, n + 1, 2)])
            parts.append(ck.Chunk(self.data, self.parts[0].offset).put(field(3, late.SerializeToString() + b"\x98\x3f\x01" * 500000), kind=ck.CALLS, first=0,
                                                                       calls=0, late=n // 2, begin=0, end=0, span=0))
        ck.write("T", ck.join(self.data[:40], parts))
        self.each("T", [c for c in self.commands if c[0] in (["dump", "T"], ["verify", "T"], ["info", "T"])])

    def test_names_that_steer_a_terminal(self):
        """Escape sequences in everything that is a name or a text."""
        escape = "\x1b]0;owned\x07\x1b[2J\r\n\u009b31m"
        for c in self.parts:
            packet = c.packet(self.pb)
            for message in walk(packet):
                for f, value in message.ListFields():
                    if f.type != f.TYPE_STRING or (f.containing_type.name == "Function" and f.name == "name"):
                        continue
                    if f.label == f.LABEL_REPEATED:
                        value[:] = [v + escape for v in value]
                    elif message.DESCRIPTOR.name != "Pair" or f.name == "value":
                        setattr(message, f.name, value + escape)
            c.put(packet.SerializeToString())
        ck.write("T", ck.join(self.data[:40], self.parts))
        self.each("T")
        packet = self.parts[self.index_of(ck.CALLS, -1)].packet(self.pb)
        for c in self.parts:  # functions that nobody knows, under such names
            packet = c.packet(self.pb)
            if packet.WhichOneof("kind") == "api":
                for f in packet.api.functions:
                    f.name += escape
                c.put(packet.SerializeToString())
        ck.write("T", ck.join(self.data[:40], self.parts))
        answers = self.each("T")
        self.assertIn(b"owned", answers["dump T"].stdout)

    def test_texts_of_calls(self):
        """Strings that calls bring: names of kernels, build options, what a driver says of itself."""
        self.data = ck.read(os.path.join(GOLDEN, "modules.zetrace"))
        self.parts = ck.chunks(self.data)
        for c in self.parts:
            if c.kind == ck.CALLS:
                packet = c.packet(self.pb)
                for column in packet.calls.pieces:
                    column.data = column.data.replace(b"build options", b"!\x1b[2J\x07\xc2\x9b31m\r\n")  # as long as it was
                c.put(packet.SerializeToString())
        ck.write("T", ck.join(self.data[:40], self.parts))
        self.assertIn("[2J", self.each("T")["dump T"].stdout.decode())


def walk(message):
    """A message and all messages in it."""
    yield message
    for f, value in message.ListFields():
        if f.type == f.TYPE_MESSAGE:
            for one in value if f.label == f.LABEL_REPEATED else [value]:
                yield from walk(one)


if __name__ == "__main__":
    unittest.main(argv=[a for a in sys.argv if a != "--all"], verbosity=2)

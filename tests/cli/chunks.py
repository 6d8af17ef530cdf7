# SPDX-License-Identifier: MIT
"""A trace taken apart and put together by docs/FORMAT.md, for tests that damage or forge one."""
import ctypes
import ctypes.util
import struct
import subprocess

SESSION, API, CALLS, BLOB, LOST, ENDING, FRAMES = range(1, 8)
HEADER = struct.Struct("<II4sBBHQQIIQQIIII")
FILE_HEADER = 40
xxhash = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")


def xxh32(data):
    return xxhash.XXH32(bytes(data), ctypes.c_size_t(len(data)), 0) & 0xffffffff


class Chunk:
    """Header fields by name, stored bytes; `offset` is where it stood."""

    NAMES = ("skippable", "skip", "magic", "kind", "flags", "reserved", "sequence", "first", "calls", "late", "begin", "end",
             "raw_size", "stored_size", "span", "check")

    def __init__(self, data, offset):
        self.offset = offset
        for name, value in zip(self.NAMES, HEADER.unpack_from(data, offset)):
            setattr(self, name, value)
        self.stored = data[offset + HEADER.size:offset + HEADER.size + self.stored_size]
        self.after = offset + HEADER.size + self.stored_size

    def raw(self):
        return subprocess.run(["zstd", "-dcq"], input=self.stored, stdout=subprocess.PIPE, check=True).stdout

    def packet(self, pb):
        raw = self.raw()
        at = 0
        while raw[at] & 0x80:
            at += 1
        return pb.Packet.FromString(raw[at + 1:])

    def put(self, packet, **fields):
        """Replaces the packet (bytes) and header fields; the header fits afterwards."""
        length, varint = len(packet), b""
        while True:
            varint += bytes([length & 0x7f | (0x80 if length > 0x7f else 0)])
            length >>= 7
            if not length:
                break
        return self.put_raw(varint + packet, **fields)

    def put_raw(self, raw, **fields):
        with_size = ["zstd", "-cq", "--check", f"--stream-size={len(raw)}", "--no-progress"]
        self.stored = subprocess.run(with_size, input=raw, stdout=subprocess.PIPE, check=True).stdout
        self.raw_size, self.stored_size = len(raw), len(self.stored)
        for name, value in fields.items():
            setattr(self, name, value)
        return self

    def bytes(self):
        head = HEADER.pack(*(getattr(self, name) for name in self.NAMES))[:-4]
        return head + struct.pack("<I", xxh32(head)) + self.stored


def chunks(data):
    """All chunks up to the index, or to the end of a file that has none."""
    found, at = [], FILE_HEADER
    while at + HEADER.size <= len(data) and data[at + 8:at + 12] == b"ZTCK":
        found.append(Chunk(data, at))
        at = found[-1].after
    return found


def index(parts):
    """The index for chunks that stand behind a file header one after the other."""
    at, entries = FILE_HEADER, b""
    for c in parts:
        entries += struct.pack("<QQQII", at, c.first, c.begin, c.calls, c.kind)
        at += HEADER.size + len(c.stored)
    head = struct.pack("<II4sI", 0x184D2A50, 8 + len(entries) + 16, b"ZTIX", len(parts))
    return head + entries + struct.pack("<QI4s", at, xxh32(entries), b"ZTND")


def join(header, parts):
    """A finished trace of these chunks, numbered anew."""
    for i, c in enumerate(parts):
        c.sequence = i
    return header + b"".join(c.bytes() for c in parts) + index(parts)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A reader of traces written from docs/FORMAT.md alone: lists the calls.

    format_reader.py TRACE                               #N T<thread> FUNCTION RESULT WORD...
    format_reader.py --words FUNCTION K [--state] TRACE  word K of each call of FUNCTION, with --state returned or pending behind it

The module for zetrace.proto is made by protoc from ZETRACE_PROTO_DIR (default: ../format beside this script).
"""
import itertools
import os
import subprocess
import sys
import tempfile

MASK = 2**64 - 1
DESCRIPTION = os.environ.get("ZETRACE_PROTO_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "format"))


def schema():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["protoc", f"--python_out={folder}", f"--proto_path={DESCRIPTION}", "zetrace.proto"], check=True)
        sys.path.insert(0, folder)
        import zetrace_pb2
        sys.path.pop(0)
    return zetrace_pb2


def packets(data, pb):
    """The stream that zstd gives: each packet behind its length as a varint."""
    at = 0
    while at < len(data):
        length = shift = 0
        while True:
            byte = data[at]
            at += 1
            length |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                break
        yield pb.Packet.FromString(data[at:at + length])
        at += length


def read(path, pb):
    """Yields call chunks with names of functions, and the LEAVEs that came late, by number."""
    names, chunks, late = {}, [], {}
    with open(path, "rb") as f:
        data = subprocess.run(["zstd", "-dcq"], stdin=f, stdout=subprocess.PIPE, check=True).stdout
    for packet in packets(data, pb):
        kind = packet.WhichOneof("kind")
        if kind == "api":
            names.update((function.id, function.name) for function in packet.api.functions)
        elif kind == "calls":
            chunks.append(packet.calls)
            late.update((leave.number, leave.result) for leave in packet.calls.late)
    return names, chunks, late


def numbers(chunk):
    """Call numbers: consecutive from `first` but for gaps."""
    steps = [1 + gap for gap in chunk.gaps] if chunk.gaps else [1] * len(chunk.function)
    return list(itertools.accumulate(steps, initial=chunk.first - 1))[1:]


def columns(chunk):
    """{(function, word): [values]}: deltas to the value before, modulo 2^64."""
    return {(c.function, c.word): [v & MASK for v in itertools.accumulate(c.delta)] for c in chunk.words}


def outcome(chunk, i, number, late):
    if not (chunk.flags and chunk.flags[i] & 1):
        return chunk.results[chunk.result[i]]
    return late.get(number)


def list_calls(names, chunks, late, out):
    for chunk in chunks:
        words, used = columns(chunk), [0] * len(chunk.functions)
        width = [sum(1 for f, _ in words if f == i) for i in range(len(chunk.functions))]
        for i, number in enumerate(numbers(chunk)):
            function = chunk.function[i]
            result = outcome(chunk, i, number, late)
            values = " ".join(f"{words[function, w][used[function]]:#x}" for w in range(width[function]))
            used[function] += 1
            shown = "pending" if result is None else f"{result:#x}"
            out.write(f"#{number} T{chunk.thread[i]} {names[chunk.functions[function]]} {shown} {values}".rstrip() + "\n")


def list_words(names, chunks, late, wanted, word, state, out):
    for chunk in chunks:
        slots = [i for i, ident in enumerate(chunk.functions) if names[ident] == wanted]
        if not slots:
            continue
        values = columns(chunk)[slots[0], word]
        if not state:
            out.write("\n".join(map(str, values)) + "\n")
            continue
        mine = [i for i, function in enumerate(chunk.function) if function == slots[0]]
        all_numbers = numbers(chunk)
        for value, i in zip(values, mine):
            pending = outcome(chunk, i, all_numbers[i], late) is None
            out.write(f"{value} {'pending' if pending else 'returned'}\n")


def main():
    args = sys.argv[1:]
    state = "--state" in args
    if state:
        args.remove("--state")
    names, chunks, late = (None, None, None) if not args else read(args[-1], schema())
    if len(args) == 1:
        list_calls(names, chunks, late, sys.stdout)
    elif len(args) == 4 and args[0] == "--words":
        list_words(names, chunks, late, args[1], int(args[2]), state, sys.stdout)
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: MIT
"""export as time lines and pictures: what is written is what the readers' published formats say, and no flow is torn."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import harness
from harness import ZETRACE, app, zetrace

# As in Perfetto's own protos/perfetto/trace: an independent copy of what convert/perfetto.proto has to agree with.
PERFETTO = """
syntax = "proto2";
package check;
message Trace { repeated TracePacket packet = 1; }
message TracePacket {
  optional uint64 timestamp = 8;
  optional TrackEvent track_event = 11;
  optional TrackDescriptor track_descriptor = 60;
  oneof optional_trusted_packet_sequence_id { uint32 trusted_packet_sequence_id = 10; }
}
message TrackDescriptor {
  optional uint64 uuid = 1;
  optional uint64 parent_uuid = 5;
  optional string name = 2;
  optional ProcessDescriptor process = 3;
}
message ProcessDescriptor { optional int32 pid = 1; repeated string cmdline = 2; optional string process_name = 6; }
message TrackEvent {
  enum Type { TYPE_UNSPECIFIED = 0; TYPE_SLICE_BEGIN = 1; TYPE_SLICE_END = 2; TYPE_INSTANT = 3; TYPE_COUNTER = 4; }
  repeated string categories = 22;
  oneof name_field { uint64 name_iid = 10; string name = 23; }
  optional Type type = 9;
  optional uint64 track_uuid = 11;
  repeated fixed64 flow_ids = 47;
  repeated fixed64 terminating_flow_ids = 48;
  repeated DebugAnnotation debug_annotations = 4;
}
message DebugAnnotation {
  oneof name_field { uint64 name_iid = 1; string name = 10; }
  oneof value { bool bool_value = 2; uint64 uint_value = 3; int64 int_value = 4; double double_value = 5; string string_value = 6; }
}
"""
# The Trace Event Format's fields of the phases that are used
FIELDS = {"M": {"name", "args"}, "B": {"ts", "name", "cat", "args"}, "E": {"ts", "args"}, "s": {"ts", "id", "cat", "name", "bp"},
                  "t": {"ts", "id", "cat", "name", "bp"}, "f": {"ts", "id", "cat", "name", "bp"}}


def perfetto_schema():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "check_perfetto.proto"), "w", encoding="utf-8") as f:
            f.write(PERFETTO)
        subprocess.run(["protoc", f"--python_out={folder}", f"--proto_path={folder}", "check_perfetto.proto"], check=True)
        sys.path.insert(0, folder)
        import check_perfetto_pb2
        sys.path.pop(0)
    return check_perfetto_pb2


class Slice:
    def __init__(self, track, name, begin, args):
        self.track, self.name, self.begin, self.end, self.args = track, name, begin, None, args


class Timelines(harness.Case):
    """Both formats come to the same: slices, and flows as the lists of the slices they pass."""

    def made(self, *program, options=("--schedule=lazy",)):
        r = zetrace("record", "-q", "-f", "-o", "t.zetrace", "--driver=soft", *options, "--", *program)
        self.assertNotIn(r.returncode, (125, 126, 127), r.stderr)

    def exported(self, form, trace="t.zetrace"):
        r = zetrace("export", f"--format={form}", "-f", "-o", "t.out", trace)
        self.assertEqual((r.returncode, r.stdout), (0, ""), r.stderr)
        self.said = r.stderr
        with open("t.out", "rb") as f:
            return f.read()

    def chrome(self, trace="t.zetrace"):
        data = json.loads(self.exported("chrome", trace))
        self.assertIsInstance(data["traceEvents"], list)
        self.assertIn(data["displayTimeUnit"], ("ms", "ns"))
        names, stacks, slices, flows, times = {}, {}, [], [], {}
        for e in data["traceEvents"]:
            self.assertIn(e["ph"], FIELDS)
            self.assertEqual(set(e), FIELDS[e["ph"]] | {"ph", "pid", "tid"}, e)
            self.assertTrue(isinstance(e["pid"], int) and isinstance(e["tid"], int))
            track = e["pid"], e["tid"]
            if e["ph"] == "M":
                self.assertIn(e["name"], ("process_name", "thread_name"))
                names[e["name"], track] = e["args"]["name"]
                continue
            self.assertIn(("thread_name", track), names)
            ns = round(e["ts"] * 1000)
            self.assertGreaterEqual(ns, times.get(track, 0), "a track goes back in time")
            times[track] = ns
            stack = stacks.setdefault(track, [])
            if e["ph"] == "B":
                stack.append(Slice(names["thread_name", track], e["name"], ns, dict(e["args"])))
                slices.append(stack[-1])
            elif e["ph"] == "E":
                stack[-1].end = ns
                stack.pop().args.update(e["args"])
            else:
                self.assertEqual((e["cat"], e["name"], e["bp"]), ("command", "command", "e"))
                flows.append((ns, len(flows), e["id"], e["ph"], stack[-1]))
        self.open = sum(map(len, stacks.values()))
        return slices, self.joined(sorted(flows, key=lambda f: f[:2]), "s", "f")

    def perfetto(self, trace="t.zetrace"):
        schema = perfetto_schema()
        data = schema.Trace.FromString(self.exported("perfetto", trace))
        self.write("check.proto", PERFETTO)
        with open("t.out", "rb") as f:
            text = subprocess.run(["protoc", "--decode=check.Trace", "--proto_path=.", "check.proto"], stdin=f, stdout=subprocess.PIPE, check=True).stdout.decode()
        self.assertEqual(re.findall(r"^\s*\d+[:{ ]", text, re.M), [], "fields that Perfetto does not know")
        tracks, stacks, slices, flows, times = {}, {}, [], [], {}
        for p in data.packet:
            self.assertEqual(p.trusted_packet_sequence_id, 1)
            if p.HasField("track_descriptor"):
                d = p.track_descriptor
                self.assertNotIn(d.uuid, tracks)
                self.assertTrue(not d.HasField("parent_uuid") or d.parent_uuid in tracks)
                tracks[d.uuid] = d.name
                continue
            e = p.track_event
            self.assertIn(e.track_uuid, tracks)
            self.assertGreaterEqual(p.timestamp, times.get(e.track_uuid, 0), "a track goes back in time")
            times[e.track_uuid] = p.timestamp
            stack = stacks.setdefault(e.track_uuid, [])
            args = {a.name: getattr(a, a.WhichOneof("value")) for a in e.debug_annotations}
            if e.type == e.TYPE_SLICE_BEGIN:
                stack.append(Slice(tracks[e.track_uuid], e.name, p.timestamp, args))
                slices.append(stack[-1])
            for ids, ends in ((e.flow_ids, False), (e.terminating_flow_ids, True)):
                flows += [(p.timestamp, len(flows) + i, n, ends, stack[-1]) for i, n in enumerate(ids)]
            if e.type == e.TYPE_SLICE_END:
                self.assertFalse(e.flow_ids or e.terminating_flow_ids)
                stack[-1].end = p.timestamp
                stack.pop().args.update(args)
        self.open = sum(map(len, stacks.values()))
        return slices, self.joined(sorted(flows, key=lambda f: f[:2]), None, True)

    @staticmethod
    def write(path, content):
        with open(path, "w", encoding="utf-8") as f:
            return f.write(content)

    def joined(self, steps, first, last):
        """By time: each flow has one beginning and one end, and nothing behind it."""
        flows = {}
        for _, _, flow, step, where in steps:
            flows.setdefault(flow, []).append((step, where))
        for flow, passed in flows.items():
            self.assertGreater(len(passed), 1, f"flow {flow} has one end only")
            self.assertEqual([i for i, (step, _) in enumerate(passed) if step == last], [len(passed) - 1])
            if first:
                self.assertEqual([i for i, (step, _) in enumerate(passed) if step == first], [0])
        return {flow: [where for _, where in passed] for flow, passed in flows.items()}

    def both(self, trace="t.zetrace"):
        chrome, perfetto = self.chrome(trace), self.perfetto(trace)
        for a, b in zip(chrome[0], perfetto[0]):
            self.assertEqual(vars(a), vars(b))
        self.assertEqual(len(chrome[0]), len(perfetto[0]))
        self.assertEqual({k: [vars(s) for s in v] for k, v in chrome[1].items()}, {k: [vars(s) for s in v] for k, v in perfetto[1].items()})
        return chrome

    def check(self, trace="t.zetrace"):
        """Calls as dump has them, a slice and a flow for each execution as graph has them, each flow through the calls that it names."""
        slices, flows = self.both(trace)
        host = [s for s in slices if s.track.startswith("thread ")]
        calls = self.dump(trace)
        self.assertEqual([(s.args["call"], s.name, s.track) for s in sorted(host, key=lambda s: s.args["call"])],
                         [(c["call"], c["function"], f"thread {c['thread']}") for c in calls])
        for s in host:
            self.assertIn(s.name + "(", s.args["line"])
        self.assertEqual(self.open, sum(c["result"] is None for c in calls))
        graph = json.loads(zetrace("graph", "--format=json", trace).stdout)
        executions = {(n["call"], n["execution"]) for n in graph["nodes"] if n["execution"]}
        device = [s for s in slices if not s.track.startswith("thread ")]
        self.assertEqual({(s.args["call"], s.args["execution"]) for s in device}, executions)
        self.assertEqual(len(device), len(flows))
        for passed in flows.values():
            command = next(s for s in passed if s in device)
            calls_passed = [s.args["call"] for s in passed if s is not command]
            wanted = [command.args["call"]] + [command.args["submit"]] * (command.args["submit"] != command.args["call"])
            self.assertEqual(calls_passed, wanted + [command.args[k] for k in ("over by",) if k in command.args])
            self.assertIs(passed[len(wanted)], command)
            submit = passed[len(wanted) - 1]
            self.assertGreaterEqual(command.begin, submit.begin)
            self.assertTrue(command.args["time"] == "recorded" or command.args["time"].startswith("order only"))
        return slices, flows

    def over(self, flows, execution):
        """Function of the call that a flow ends in, of the n-th execution of #N."""
        for passed in flows.values():
            for s in passed:
                if (s.args.get("call"), s.args.get("execution")) == execution:
                    return passed[-1].name
        return None

    def test_recorded_times(self):
        for schedule in ("eager", "lazy", "async"):
            with self.subTest(schedule):
                self.made(app("timestamps"), options=[f"--schedule={schedule}"])
                slices, flows = self.check()
                device = [s for s in slices if "time" in s.args]
                self.assertEqual([s.args["time"] for s in device], ["recorded"] * 2 + ["order only"] * 4)
                self.assertEqual({s.track for s in device}, {"queue#1, some in order only", "queue#2, order only", "list#4, order only"})
                self.assertIn("4 of 6 commands", self.said)
                ends = [self.over(flows, (s.args["call"], s.args["execution"])) for s in device]
                # the third is known to be over by what waited for it on the other queue; nobody waits for the last two
                self.assertEqual(ends, ["zeEventHostSynchronize"] * 4 + ["zeCommandListAppendMemoryCopy"] * 2)
                # as the device's own clock tells it: ticks of 52 ns
                stamps = [re.search(r"-> .*global={.kernelStart=(\d+), .kernelEnd=(\d+)}", s.args["line"]) for s in slices
                          if s.name == "zeEventQueryKernelTimestamp"]
                clock = next(s for s in slices if s.name == "zeDeviceGetGlobalTimestamps")
                ticks = int(re.search(r"-> .*deviceTimestamp=(\d+)", clock.args["line"]).group(1))
                for command, stamp in zip(device, stamps):
                    for at, tick in ((command.begin, stamp.group(1)), (command.end, stamp.group(2))):
                        self.assertAlmostEqual(at, (clock.begin + clock.end) / 2 + (int(tick) - ticks) * 52, delta=2000)

    def test_programs(self):
        for program in (["evict"], ["evict_good"], ["o4_resubmit_stale_event"], ["o5_immediate_not_inorder", "fixed2"], ["o6_destroy_order", "fixed"],
                        ["threads", 3, 100], ["nested"], ["crasher"], ["o8_short_timeout_ignored"], ["interleave"]):
            with self.subTest(program[0]):
                self.made(app(program[0]), *program[1:])
                self.check()
        self.made(app("evict"), "good", options=["--schedule=eager"])
        _, flows = self.check()
        self.assertEqual([s.name for s in flows[1]], ["zeCommandListAppendMemoryCopy", "zeCommandQueueExecuteCommandLists",
                                                      "zeCommandListAppendMemoryCopy", "zeCommandQueueSynchronize"])

    def test_dot(self):
        self.made(app("evict"))
        self.assertEqual(self.exported("dot").decode(), zetrace("graph", "t.zetrace").stdout)
        self.assertEqual(self.said, "")

    def test_text_of_a_stranger(self):
        self.made(app("evict"))
        lines = self.exported("json").decode().replace("zeContextEvictMemory", 'ze\\u001b[31m\\"\\u009b').splitlines()
        lines = [json.loads(line) for line in lines]
        lines[1]["packet"]["session"]["program"] = {"@base64": "/x9b"}
        self.write("t.json", "\n".join(map(json.dumps, lines)))
        self.assertEqual(zetrace("import", "t.json", "-o", "u.zetrace").returncode, 0)
        self.both("u.zetrace")
        raw = self.exported("chrome", "u.zetrace")
        self.assertEqual([c for c in raw if c < 0x20 and c != 10], [])
        self.assertIn("ze?[31m\"??", [s.name for s in self.chrome("u.zetrace")[0]])

    def test_damaged(self):
        self.made(app("evict"))
        with open("t.zetrace", "rb") as f:
            whole = f.read()
        for part in range(1, 10):
            with open("cut.zetrace", "wb") as f:
                f.write(whole[:len(whole) * part // 10])
            for form in ("chrome", "perfetto", "dot"):
                r = zetrace("export", f"--format={form}", "-f", "-o", "cut.out", "cut.zetrace")
                self.assertIn(r.returncode, (0, 3), r.stderr)
                self.assertTrue(r.stderr.startswith("zetrace: "), r.stderr)
        with open("cut.zetrace", "wb") as f:
            f.write(whole[:-100])
        self.both("cut.zetrace")
        self.assertIn("no chunk begins here", self.said)

    def test_files(self):
        self.made(app("evict"))
        with open("t.zetrace", "rb") as f:
            piped = subprocess.run([ZETRACE, "export", "--format=perfetto", "-o", "-", "-"], stdin=f, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   check=True).stdout
        self.assertEqual(piped, self.exported("perfetto"))
        self.assertEqual(os.stat("t.out").st_mode & 0o777, 0o600)
        for form in ("chrome", "perfetto", "dot"):
            self.assertSentence(zetrace("export", f"--format={form}", "-o", "t.out", "t.zetrace"), 2, "t.out", "-f")
            self.assertSentence(zetrace("export", f"--format={form}", "-f", "-o", "t.zetrace", "t.zetrace"), 2, "itself")
            self.assertSentence(zetrace("export", f"--format={form}", "--driver=soft", "t.zetrace"), 2, "--driver", form)
            self.assertSentence(zetrace("export", f"--format={form}", "-o", "no/t", "t.zetrace"), 1, "no/t")
        self.assertEqual(sorted(f for f in os.listdir(".") if "partial" in f), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)

# SPDX-License-Identifier: MIT
"""graph: the order of a trace as a picture and as JSON."""
import json
import re
import shutil
import subprocess
import unittest

import harness
from harness import app, zetrace

KINDS = {"program", "submit", "start", "in-order", "barrier", "barrier-waits", "wait", "event", "host-signal", "fence", "sync", "event-sync",
         "synchronous", "counter", "free"}
SHAPES = {"nodes": {"id", "call", "execution", "function", "object", "on", "over"}, "edges": {"from", "to", "kind"},
          "conflicts": {"a", "b", "kind", "object", "possible", "forced"}}


class Graph(harness.Case):
    def made(self, *program, options=("--schedule=eager",)):
        r = zetrace("record", "-q", "-f", "-o", "t.zetrace", "--driver=soft", *options, "--", *program)
        self.assertIn(r.returncode, (0, 1), r.stderr)
        return self.graph()

    def graph(self, *options, trace="t.zetrace"):
        r = zetrace("graph", "--format=json", *options, trace)
        self.assertEqual(r.returncode, 0, r.stderr)
        graph = json.loads(r.stdout)
        self.assertEqual(set(graph), set(SHAPES))
        for what, fields in SHAPES.items():
            for entry in graph[what]:
                self.assertEqual(set(entry) - {"result"}, fields)
        ids = {n["id"] for n in graph["nodes"]}
        self.assertEqual(len(ids), len(graph["nodes"]))
        for e in graph["edges"]:
            self.assertLessEqual({e["from"], e["to"]}, ids)
            self.assertIn(e["kind"], KINDS)
        for c in graph["conflicts"]:
            self.assertLessEqual({c["a"], c["b"]}, ids)
        self.assertNoCycle(graph)
        return graph

    def assertNoCycle(self, graph):
        behind = {n["id"]: [] for n in graph["nodes"]}
        before = dict.fromkeys(behind, 0)
        for e in graph["edges"]:
            behind[e["from"]].append(e["to"])
            before[e["to"]] += 1
        free = [n for n, count in before.items() if count == 0]
        for n in free:
            for other in behind[n]:
                before[other] -= 1
                if before[other] == 0:
                    free.append(other)
        self.assertEqual(len(free), len(behind), "edges go in a circle")

    def edges(self, graph):
        """(function, function, kind) of all edges."""
        names = {n["id"]: n["function"] for n in graph["nodes"]}
        return {(names[e["from"]], names[e["to"]], e["kind"]) for e in graph["edges"]}

    def test_evict(self):
        graph = self.made(app("evict"))
        names = {n["id"]: n["function"] for n in graph["nodes"]}
        conflicts = {(names[c["a"]], names[c["b"]], c["kind"], c["object"]) for c in graph["conflicts"]}
        self.assertEqual(conflicts, {("zeCommandListAppendMemoryCopy", "zeContextEvictMemory", "evict", "mem#2"),
                                     ("zeCommandListAppendMemoryCopy", "zeMemFree", "free", "mem#2")})
        self.assertIn(("zeCommandQueueExecuteCommandLists", "zeCommandListAppendMemoryCopy", "submit"), self.edges(graph))
        self.assertEqual({n["on"] for n in graph["nodes"]}, {"thread 1", "queue#1"})
        good = self.made(app("evict"), "good")
        self.assertEqual(good["conflicts"], [])
        self.assertIn(("zeCommandListAppendMemoryCopy", "zeCommandQueueSynchronize", "sync"), self.edges(good))

    def test_kinds(self):
        copy = "zeCommandListAppendMemoryCopy"
        edges = self.edges(self.made(app("o4_resubmit_stale_event"), "fixed"))
        for wanted in (("zeEventHostSignal", "zeCommandListAppendWaitOnEvents", "host-signal"), (copy, "zeCommandListAppendWaitOnEvents", "event"),
                       ("zeCommandListAppendWaitOnEvents", copy, "wait"), (copy, "zeCommandListAppendBarrier", "barrier")):
            self.assertIn(wanted, edges)
        self.assertIn((copy, copy, "start"), self.edges(self.made(app("o5_immediate_not_inorder"))))
        self.assertIn((copy, copy, "in-order"), self.edges(self.made(app("o5_immediate_not_inorder"), "fixed2")))
        edges = self.edges(self.made(app("o6_destroy_order"), "fixed"))
        self.assertTrue(any(to == "zeFenceHostSynchronize" and kind == "fence" for _, to, kind in edges), edges)

    def test_executions(self):
        """A list that runs twice: its commands stand there twice."""
        graph = self.made(app("o4_resubmit_stale_event"))
        executions = {}
        for n in graph["nodes"]:
            if n["execution"]:
                self.assertEqual(n["id"], f"{n['call']}@{n['execution']}")
                executions.setdefault(n["call"], []).append(n["execution"])
            else:
                self.assertEqual(n["id"], str(n["call"]))
        self.assertTrue(executions)
        self.assertTrue(all(e == [1, 2] for e in executions.values()), executions)

    def test_every_finding_is_drawn(self):
        for name in ("o1_evict_in_flight", "o3_event_rerecord", "o5_immediate_not_inorder", "o6_destroy_order", "client_linked"):
            with self.subTest(name):
                graph = self.made(app(name))
                drawn = {n["call"] for n in graph["nodes"]}
                found = json.loads(zetrace("check", "--json", "t.zetrace").stdout)["findings"]
                self.assertLessEqual({call for f in found for call in f["calls"][:2]}, drawn)

    def test_calls(self):
        whole = self.made(app("evict"))
        evict = next(n["call"] for n in whole["nodes"] if n["function"] == "zeContextEvictMemory")
        part = self.graph(f"--calls={evict - 1}..{evict}")
        self.assertEqual({n["function"] for n in part["nodes"]},
                         {"zeCommandQueueExecuteCommandLists", "zeContextEvictMemory", "zeCommandListAppendMemoryCopy"})
        self.assertEqual([c["kind"] for c in part["conflicts"]], ["evict"])
        self.assertEqual(self.graph("--calls=1000000.."), {"nodes": [], "edges": [], "conflicts": []})

    def test_dot(self):
        for program in (["evict"], ["o3_event_rerecord"], ["client_linked"], ["threads", 2, 50]):
            with self.subTest(program[0]):
                graph = self.made(app(program[0]), *program[1:])
                for part in ([], ["--calls=1..2"], ["--calls=1000000.."]):
                    dot = zetrace("graph", *part, "t.zetrace").stdout
                    self.assertEqual(dot, zetrace("graph", "--format=dot", *part, "t.zetrace").stdout)
                    self.assertDot(dot)
                dot = zetrace("graph", "t.zetrace").stdout
                self.assertEqual(set(re.findall(r'^    "([^"]+)" \[', dot, re.M)), {n["id"] for n in graph["nodes"]})
                self.assertEqual(len(re.findall(" -> ", dot)), len(graph["edges"]) + len(graph["conflicts"]))
                self.assertEqual(dot.count("dir=none, style=dashed, color=red,"), len(graph["conflicts"]))

    def assertDot(self, dot):
        self.assertTrue(dot.startswith("digraph trace {\n") and dot.endswith("}\n"), dot)
        self.assertEqual(dot.count("{"), dot.count("}"))
        self.assertEqual(dot.count('"') % 2, 0)
        if shutil.which("dot"):
            r = subprocess.run(["dot", "-Tdot"], input=dot, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual((r.returncode, r.stderr), (0, ""))

    def test_damaged(self):
        self.made(app("evict"))
        with open("t.zetrace", "rb") as f:
            whole = f.read()
        for part in range(1, 12):
            with open("cut.zetrace", "wb") as f:
                f.write(whole[:len(whole) * part // 12])
            r = zetrace("graph", "--format=json", "cut.zetrace")
            self.assertIn(r.returncode, (0, 3), r.stderr)
            if r.returncode == 0:
                json.loads(r.stdout)

    def test_usage(self):
        self.made(app("evict"))
        self.assertSentence(zetrace("graph"), 2, "trace")
        self.assertSentence(zetrace("graph", "--format=png", "t.zetrace"), 2, "--format")
        self.assertSentence(zetrace("graph", "--calls=9..frob", "t.zetrace"), 2, "--calls", "frob")
        self.assertSentence(zetrace("graph", "missing"), 2, "missing")


if __name__ == "__main__":
    unittest.main(verbosity=2)

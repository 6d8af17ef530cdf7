# SPDX-License-Identifier: MIT
"""Which memory the recorder looks at for a launch, when, and how much of it; recorded on a driver whose kernels copy 64 bytes."""
import os
import sys
import unittest

import harness
from harness import BUILD, app, run, zetrace

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import format_reader  # noqa: E402

DRIVER = os.path.join(BUILD, "lib", "tests", "libze_soft_kernels.so")
USM, READBACK = 2, 3
HASH_ONLY = 2
PAGE = 4096
BOTH = ("hash", "auto")


class Contents(harness.Case):
    def trace(self, mode, schedule="eager", written="hash", memory="inputs"):
        r = zetrace("record", "-q", "-f", "-o", "t.zetrace", "--driver=" + DRIVER, f"--memory={memory}", "--", app("k_contents"), mode,
                    env={"ZE_SOFT_SCHEDULE": schedule, "ZETRACE_WRITTEN": written})
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        self.assertTrue(self.info()["complete"])
        names, chunks, late = format_reader.read("t.zetrace", format_reader.schema())
        found = {}
        for chunk in chunks:
            numbers = format_reader.numbers(chunk)
            for c in chunk.contents:
                found.setdefault(numbers[c.call], []).append(c)
            for l in chunk.late:
                found.setdefault(l.number, []).extend(l.contents)
        calls = self.dump()
        self.of = lambda function: [c["call"] for c in calls if c["function"] == function]
        self.contents = found
        # shared from, shared to, host other: in the order of their allocation
        words = [c for c in calls if c["function"].startswith("zeMemAlloc")]
        self.assertGreaterEqual(len(words), 3)
        text = run(sys.executable, format_reader.__file__, "t.zetrace").stdout
        return calls, text

    def pages(self, call, kind=USM):
        """{address: length} of what was kept as bytes."""
        return {c.address: c.length for c in self.contents.get(call, []) if c.kind == kind and not c.flags & HASH_ONLY}

    def hashes(self, call):
        return {c.address: c.length for c in self.contents.get(call, []) if c.kind == READBACK and c.flags & HASH_ONLY}

    def launches(self):
        return self.of("zeCommandListAppendLaunchKernel")

    def bases(self):
        """Addresses of allocations of the first launch: no other has contents."""
        return sorted(self.pages(self.launches()[0]))

    def replays(self):
        for schedule in ("eager", "lazy", "seed:3"):
            r = zetrace("replay", "--driver=" + DRIVER, "t.zetrace", env={"ZE_SOFT_SCHEDULE": schedule})
            self.assertEqual(r.returncode, 0, schedule + "\n" + r.stdout + r.stderr)


class Reached(Contents):
    def test_every_mode_replays(self):
        for mode in run(app("k_contents")).stdout.split():
            for schedule in ("eager", "lazy", "async"):
                for written in BOTH:
                    with self.subTest(mode, schedule=schedule, written=written):
                        self.trace(mode, schedule, written)
                        if (mode, written) == ("two-halves", "hash"):
                            # a limit: without the kernel's help what the host wrote is taken for a launch's in flight
                            self.assertEqual(zetrace("replay", "--driver=" + DRIVER, "t.zetrace").returncode, 1)
                        else:
                            self.replays()

    def test_arguments_and_no_more(self):
        for written in BOTH:
            with self.subTest(written=written):
                self.trace("argument", written=written)
                first, second = self.launches()
                source, target = self.bases()
                self.assertEqual(sorted(self.pages(first).values()), [4 * PAGE, 4 * PAGE])
                mine = {source + 2 * PAGE: PAGE}
                # this device writes as the host does
                self.assertEqual(self.pages(second), mine if written == "hash" else {**mine, target: PAGE})

    def test_what_was_read_back(self):
        self.trace("argument")
        source, target = self.bases()
        first, second = self.of("zeEventHostSynchronize")
        self.assertEqual(self.hashes(first), {source: 4 * PAGE, target: 4 * PAGE})
        self.assertEqual(self.pages(first, READBACK), {target: PAGE})
        self.assertEqual(self.pages(second, READBACK), {})

    def test_flags(self):
        self.trace("indirect")
        first, second = self.launches()
        self.assertEqual(list(self.pages(first).values()), [4 * PAGE])
        self.assertEqual(self.pages(second), {})

    def test_member_of_a_structure(self):
        self.trace("member")
        self.assertEqual(list(self.pages(self.launches()[0]).values()), [4 * PAGE])

    def test_replaced_argument(self):
        self.trace("replaced")
        first, = self.launches()
        self.assertEqual(len(self.pages(first)), 2)
        self.assertNotIn(bytes([1]) * 64, [c.data[:64] for c in self.contents[first]])

    def test_what_the_device_wrote_is_not_the_hosts(self):
        """Recorded when the first launch is over before the second comes."""
        self.trace("chain")
        first, second = self.launches()
        self.assertEqual(len(self.pages(first)), 2)
        self.assertEqual(self.pages(second), {})

    def test_host_writes_of_a_regular_list(self):
        self.trace("regular")
        executes = self.of("zeCommandQueueExecuteCommandLists")
        self.assertEqual(len(self.pages(executes[0])), 2)
        self.assertEqual([list(self.pages(x).values()) for x in executes[1:]], [[PAGE], [PAGE]])
        self.assertEqual(self.launches() and self.contents.get(self.launches()[0]), None)

    def test_more_than_has_a_place(self):
        self.trace("many")
        self.assertEqual(sum(1 for length in self.pages(self.launches()[0]).values() if length == PAGE), 100)

    def test_more_stretches_than_fit_at_a_time(self):
        for written in BOTH:
            with self.subTest(written=written):
                self.trace("scattered", written=written)
                self.assertEqual(self.info()["dropped"], 0)
                self.assertEqual(len(self.pages(self.launches()[1])), 2048 + (written == "auto"))  # this device writes as the host does

    def test_writes_while_the_device_is_at_it(self):
        """Only a kernel that says which pages the host wrote can tell them from what a launch in flight wrote."""
        self.trace("two-halves", "lazy", "auto")
        part = 2 << 20
        both = min(a for a, n in self.pages(self.launches()[0]).items() if n > 4 * PAGE)
        for i, launch in enumerate(self.launches()[1:], 2):
            self.assertIn(both + (i % 2) * part, self.pages(launch))

    def test_nothing_without_contents(self):
        self.trace("argument", memory="none")
        self.assertEqual(self.contents, {})


if __name__ == "__main__":
    unittest.main()

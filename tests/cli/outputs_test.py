# SPDX-License-Identifier: MIT
"""What is left when an output can't be written to its end, and what becomes of standard descriptors that are closed."""
import os
import resource
import signal
import subprocess
import unittest

import harness
from harness import ZETRACE, app, zetrace


def small_disk(limit):
    """Every write beyond `limit` bytes of a file fails, as on a full disk."""
    def before_exec():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return before_exec


class Left(harness.Case):
    def setUp(self):
        super().setUp()
        self.record(app("data"), options=["--memory=full"])
        self.record(app("evict"), out="e.zetrace", options=["--schedule=lazy"], status=1)
        self.assertEqual(zetrace("export", "--format=json", "t.zetrace", "-o", "t.json").returncode, 0)
        with open("old", "w") as f:
            f.write("old")
        self.names = sorted(os.listdir("."))
        self.commands = {"repack": ["repack", "t.zetrace"], "repair": ["repair", "t.zetrace"], "import": ["import", "t.json"],
                         "trim": ["trim", "--no-verify", "--calls=1..", "t.zetrace"], "c": ["export", "--driver=soft", "e.zetrace"],
                         **{f: ["export", "--format=" + f, "t.zetrace"] for f in ("json", "chrome", "perfetto", "dot")}}

    def as_before(self):
        self.assertEqual(sorted(os.listdir(".")), self.names)
        with open("old") as f:
            self.assertEqual(f.read(), "old")

    def test_full_disk(self):
        """Nothing new is there, and what was to be overwritten is as it was."""
        for name, command in self.commands.items():
            if name == "c":
                continue  # libze_soft has a file of 1 TiB
            for out in (["-o", "new"], ["-f", "-o", "old"]):
                with self.subTest(name, out=out):
                    r = zetrace(*command, *out, preexec_fn=small_disk(2000))
                    self.assertIn(r.returncode, (1, 125), r.stderr)
                    self.assertRegex(r.stderr, "File too large|not all of it could be written")
                    self.as_before()

    def test_program_on_a_full_disk(self):
        os.mkdir("disk")
        inside = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=4k none disk && echo old >disk/old && shift $1 && "$@"; s=$?; ls disk; cat disk/*; exit $s', "sh"]
        if harness.run(*inside, "1", "true").stdout != "old\nold\n":
            self.skipTest("no disk can be mounted")
        for out in (["-o", "disk/new"], ["-f", "-o", "disk/old"]):
            r = harness.run(*inside, "1", ZETRACE, *self.commands["c"], *out)
            self.assertSentence(r, 1, out[-1], "room for it")
            self.assertEqual(r.stdout, "old\nold\n")

    def test_ended_in_the_middle(self):
        with open("t.json", "rb") as f:
            half = f.read(os.path.getsize("t.json") // 2)
        self.assertGreater(len(half), 1 << 18)  # more than a pipe holds: what comes back from the write was read
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number.name):
                p = subprocess.Popen([ZETRACE, "import", "-", "-f", "-o", "old"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
                p.stdin.write(half)
                p.stdin.flush()
                p.send_signal(number)
                p.stdin.close()
                p.stderr.close()
                self.assertEqual(p.wait(), -number)
                self.as_before()

    def test_written_over(self):
        for name, command in self.commands.items():
            with self.subTest(name):
                r = zetrace(*command, "-f", "-o", "old")
                self.assertEqual(r.returncode, 0, r.stderr)
                self.assertGreater(os.path.getsize("old"), 3)
                self.assertEqual(os.stat("old").st_mode & 0o777, 0o600)
                self.assertEqual(sorted(os.listdir(".")), self.names)


class Closed(harness.Case):
    def test_descriptors(self):
        """A file that is opened takes none of 0, 1 and 2: what is said does not get into it."""
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        self.assertEqual(zetrace("export", "--format=json", "t.zetrace", "-o", "t.json").returncode, 0)
        trace = os.path.abspath("t.zetrace")
        r = subprocess.run(["sh", "-c", f'exec "$0" repack -o new.zetrace "$1" <&- >&- 2>&-', ZETRACE, trace])
        self.assertEqual(r.returncode, 1)  # what it would have said could not be written
        self.assertEqual(zetrace("verify", "new.zetrace").returncode, 0)
        r = subprocess.run(["sh", "-c", 'exec "$0" import - -o new.json.zetrace <&-', ZETRACE], stderr=subprocess.PIPE, text=True)
        self.assertEqual(r.returncode, 1)
        self.assertIn("Bad file descriptor", r.stderr)
        r = subprocess.run(["sh", "-c", 'exec "$0" record -o p.zetrace -- sh -c "ls /proc/self/fd" <&-', ZETRACE], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
        self.assertIn("1\n2\n", r.stdout)
        self.assertEqual(self.opened_by_reader("t.zetrace"), [])

    def opened_by_reader(self, trace):
        """Of 0, 1, 2, what zetrace has a file of ours at, while it waits to be read from."""
        os.mkfifo("pipe")
        p = subprocess.Popen(["sh", "-c", 'exec "$0" import pipe -o x.zetrace <&- 2>&-', ZETRACE], stdout=subprocess.DEVNULL)
        with open("pipe", "wb") as f, open("t.json", "rb") as j:
            f.write(j.readline())
            f.flush()
            links = [os.readlink(f"/proc/{p.pid}/fd/{n}") for n in (0, 1, 2)]
            f.write(j.read())
        p.wait()
        return [link for link in links if link != "/dev/null"]


class Order(harness.Case):
    def test_options_behind_operands(self):
        self.record(app("evict"), options=["--schedule=lazy"], status=1)
        for before, behind in ((["info", "--json", "t.zetrace"], ["info", "t.zetrace", "--json"]),
                               (["dump", "--calls=1..3", "t.zetrace"], ["dump", "t.zetrace", "--calls", "1..3"]),
                               (["export", "--format=json", "t.zetrace"], ["export", "t.zetrace", "--format=json"]),
                               (["verify", "--json", "t.zetrace", "t.zetrace"], ["verify", "t.zetrace", "--json", "--", "t.zetrace"])):
            with self.subTest(behind):
                self.assertEqual(zetrace(*behind).stdout, zetrace(*before).stdout)
                self.assertEqual(zetrace(*behind).returncode, 0)
        os.rename("t.zetrace", "--json")
        self.assertIn("46 calls", zetrace("verify", "--", "--json").stdout)
        r = zetrace("record", "-o", "x.zetrace", "--driver=soft", "sh", "-c", "exit 7")
        self.assertEqual(r.returncode, 7)


if __name__ == "__main__":
    unittest.main(verbosity=2)

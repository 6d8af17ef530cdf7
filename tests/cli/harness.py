# SPDX-License-Identifier: MIT
"""What the command-line tests share: where things are, running zetrace, reading its answers."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

BUILD = os.environ.get("ZETRACE_BUILD") or sys.exit("ZETRACE_BUILD must name the build folder")
ZETRACE = os.path.join(BUILD, "bin", "zetrace")
APPS = os.path.join(BUILD, "bin", "apps")
DRIVER = os.path.join(BUILD, "lib", "zetrace", "libze_soft.so.1")
LOADER = next(p for d in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")
              for p in [os.path.join(d, "libze_loader.so.1")] if os.path.exists(p))
LOADER_CLIENTS = {"client_linked": [], "client_dlsym": [LOADER], "client_static": [LOADER],
                  "client_tables": [LOADER], "client_ctypes.py": []}


def app(name):
    return os.path.join(APPS, name)


def run(*args, timeout=120, env=None, **kwargs):
    """Runs a command. Returns CompletedProcess with text output."""
    full = dict(os.environ)
    for name in ("ZE_ENABLE_ALT_DRIVERS", "ZE_SOFT_SCHEDULE", "LD_PRELOAD", "ZE_ENABLE_VALIDATION_LAYER"):
        full.pop(name, None)
    full.update(env or {})
    return subprocess.run([str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, env=full,
                          text=True, errors="replace", **kwargs)


def zetrace(*args, **kwargs):
    return run(ZETRACE, *args, **kwargs)


class Case(unittest.TestCase):
    """A test with a folder of its own, into which it has changed."""

    def setUp(self):
        self._old = os.getcwd()
        self._folder = tempfile.TemporaryDirectory(prefix="zetrace-test.")
        os.chdir(self._folder.name)

    def tearDown(self):
        os.chdir(self._old)
        self._folder.cleanup()

    def record(self, *program, out="t.zetrace", options=(), status=0, **kwargs):
        r = zetrace("record", "-f", "-o", out, "--driver=soft", *options, "--", *program, **kwargs)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return r

    def info(self, trace="t.zetrace"):
        r = zetrace("info", "--json", trace)
        self.assertEqual(r.returncode, 0, r.stderr)
        return json.loads(r.stdout)

    def dump(self, trace="t.zetrace", *options, timeout=120):
        r = zetrace("dump", "--json", *options, trace, timeout=timeout)
        self.assertEqual(r.returncode, 0, r.stderr)
        return [json.loads(line) for line in r.stdout.splitlines()]

    def assertSentence(self, result, status, *words):
        """One clear sentence on stderr that holds the words, the right status, no crash."""
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        lines = [line for line in result.stderr.splitlines() if line]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertTrue(lines[0].startswith("zetrace: "), lines[0])
        for word in words:
            self.assertIn(word, lines[0])


def counts_of(output):
    """'NAME N' lines and calls=N of a client."""
    total, by_name = None, {}
    for line in output.splitlines():
        if line.startswith("calls="):
            total = int(line[6:])
        elif " " in line and line.startswith("ze"):
            name, n = line.split()
            by_name[name] = int(n)
    return total, by_name

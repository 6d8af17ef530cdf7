# SPDX-License-Identifier: MIT
"""An installed zetrace finds its own libraries; manual, completion, pkg-config and headers are where Debian expects them."""
import glob
import os
import re
import subprocess
import unittest

import harness
from harness import BUILD, app, run

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Install(harness.Case):
    def setUp(self):
        super().setUp()
        self.prefix = os.path.abspath("prefix")
        r = run("cmake", "--install", BUILD, "--prefix", self.prefix)
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_records_from_there(self):
        zetrace = os.path.join(self.prefix, "bin", "zetrace")
        r = run(zetrace, "record", "-o", "t.zetrace", "--driver=soft", "--schedule=lazy", "--", app("evict"))
        self.assertEqual(r.returncode, 1, r.stdout + r.stderr)
        info = run(zetrace, "info", "t.zetrace").stdout
        self.assertIn(self.prefix, info)
        self.assertNotIn(os.path.join(BUILD, "lib"), info)
        self.assertEqual(run(zetrace, "replay", "t.zetrace").returncode, 0)
        self.assertEqual(run(zetrace, "record", "-f", "-o", "t.zetrace", "--driver=soft", "--attach=driver", "--",
                             app("evict_good")).returncode, 0)

    def test_files(self):
        for pattern in ("share/man/man1/zetrace.1", "share/man/man1/zetrace-record.1", "share/bash-completion/completions/zetrace",
                        "lib/**/pkgconfig/zetrace.pc", "lib/**/zetrace/libze_soft.so.1", "include/zetrace/format.h",
                        "share/doc/zetrace/README.md"):
            self.assertTrue(glob.glob(os.path.join(self.prefix, pattern), recursive=True), pattern)
        for command in re.findall(r"(?m)^  (\w+) ", run(os.path.join(self.prefix, "bin", "zetrace"), "help").stdout):
            self.assertTrue(os.path.exists(os.path.join(self.prefix, f"share/man/man1/zetrace-{command}.1")), command)
        text = open(os.path.join(self.prefix, "share/man/man1/zetrace-record.1"), encoding="utf-8").read()
        self.assertIn("\\-\\-schedule", text)

    def test_completion(self):
        script = os.path.join(self.prefix, "share/bash-completion/completions/zetrace")
        r = subprocess.run(["bash", "-c", f"source {script}; COMP_WORDS=(zetrace record --dri); COMP_CWORD=2; compopt() {{ :; }}; "
                            "_zetrace; echo ${COMPREPLY[@]}"], stdout=subprocess.PIPE, text=True)
        self.assertIn("--driver=", r.stdout)

    def test_a_program_of_ones_own(self):
        with open("own.c", "w") as f:
            f.write('#include <format.h>\n#include <stdio.h>\nint main(int c, char **v) { zt_trace *t; zt_error e; const zt_call *k;\n'
                    'if (c < 2 || zt_trace_open(&t, v[1], &e) != ZT_OK) return 1;\n'
                    'while (zt_trace_next(t, &k) == ZT_OK) puts(k->func->name);\nzt_trace_close(t); return 0; }\n')
        pc = os.path.dirname(glob.glob(os.path.join(self.prefix, "lib/**/pkgconfig/zetrace.pc"), recursive=True)[0])
        flags = run("pkg-config", "--define-variable=prefix=" + self.prefix, "--cflags", "--libs", "--static", "zetrace",
                    env={"PKG_CONFIG_PATH": pc})
        self.assertEqual(flags.returncode, 0, flags.stderr)
        libdir = os.path.dirname(pc)
        build = run("cc", "own.c", "-o", "own", f"-I{self.prefix}/include/zetrace", f"-L{libdir}", *flags.stdout.split())
        self.assertEqual(build.returncode, 0, build.stderr)
        self.record(app("evict_good"))
        self.assertIn("zeInit", run("./own", "t.zetrace").stdout)


class Pages(harness.Case):
    def test_option_lists_are_the_tables(self):
        for command in ("record", "info", "dump", "replay", "whois", "check", "isolate", "explore", "graph", "export", "import", "trim", "diff", "leaks", "extract", "verify", "repair", "repack"):
            with self.subTest(command):
                with open(os.path.join(SOURCE, "docs", command + ".md"), encoding="utf-8") as f:
                    page = f.read()
                listed = re.search(r"<!-- options -->\n(.*?)<!-- end -->", page, re.S)
                self.assertIsNotNone(listed, "the page has no option list")
                self.assertEqual(listed.group(1), harness.zetrace("--generate", "options", command).stdout)


class Help(harness.Case):
    def test_is_of_one_kind_for_all(self):
        listed = re.findall(r"^  (\w+) +(\S.*)$", harness.zetrace("help").stdout, re.MULTILINE)
        self.assertGreater(len(listed), 10)
        for command, summary in listed:
            with self.subTest(command):
                self.assertEqual(summary[0], summary[0].lower())
                text = harness.zetrace(command, "--help").stdout
                self.assertEqual(text, harness.zetrace("help", command).stdout)
                self.assertIn(f"\n{summary[0].upper()}{summary[1:]}.\n", text)
                self.assertLessEqual(max(map(len, text.splitlines())), 100)
                self.assertNotRegex(text, r"(?m) $")

    def test_wrapping_loses_nothing(self):
        """Every word of the option table is in --help, in its order."""
        for command, _ in re.findall(r"^  (\w+) +(\S.*)$", harness.zetrace("help").stdout, re.MULTILINE):
            rows = re.findall(r"^\| `(?:-\w, )?(--[\w-]+).*?` \| (.*) \|$", harness.zetrace("--generate", "options", command).stdout, re.MULTILINE)
            words = " ".join(harness.zetrace(command, "--help").stdout.split())
            for name, text in rows:
                self.assertIn(" " + " ".join(text.replace("\\|", "|").split()), words, (command, name))


if __name__ == "__main__":
    unittest.main(verbosity=2)

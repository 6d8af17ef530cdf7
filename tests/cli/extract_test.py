# SPDX-License-Identifier: MIT
"""extract: modules as files, under names that no trace can choose; replay --replace puts one back."""
import json
import os
import shutil
import unittest

import harness
from harness import BUILD, app, zetrace

DRIVER = "--driver=" + os.path.join(BUILD, "lib", "tests", "libze_soft_modules.so")
MAGIC = b"\x03\x02\x23\x07"


def content(letter, size):
    return MAGIC + letter + bytes(size - 5)


class Modules(harness.Case):
    def setUp(self):
        super().setUp()
        r = zetrace("record", "-q", "-o", "t.zetrace", DRIVER, "--", app("modules"))
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        self.creates = [c["call"] for c in self.dump("t.zetrace", "--function=zeModuleCreate")]

    def extract(self, *options, trace="t.zetrace", status=0):
        r = zetrace("extract", trace, "-o", "out", *options)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        with open("out/manifest.json", encoding="utf-8") as f:
            return json.load(f)["modules"]

    def replay(self, *options, status=0):
        r = zetrace("replay", DRIVER, *options, "t.zetrace")
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return r


class Extract(Modules):
    def test_files_and_manifest(self):
        modules = self.extract()
        for m in modules:
            with open(os.path.join("out", m["file"]), "rb") as f:
                m["bytes"] = f.read()
            self.assertEqual(len(m["bytes"]), m["size"])
        first, second, big = content(b"A", 64), content(b"B", 100), content(b"C", 200000)
        c = self.creates
        made = [(m["call"], m["input"], m["bytes"], m.get("build_flags"), m.get("object")) for m in modules if m["kind"] == "module"]
        self.assertEqual(made[:5] + made[6:],
                         [(c[0], 1, first, "-O2 ../../\x1b[31m\"quoted\"", "module#1"), (c[1], 1, first, None, "module#2"),
                          (c[2], 1, first, "-one", "module#3"), (c[2], 2, second, "-two", "module#3"), (c[3], 1, big, "", "module#4"),
                          (c[5], 1, second, None, "module#5")])
        refused, natives = [m for m in modules if m["call"] == c[4]], [m for m in modules if m["kind"] == "native"]
        self.assertEqual([(m["format"], m["result"], m.get("object")) for m in refused],
                         [("ZE_MODULE_FORMAT_NATIVE", "ZE_RESULT_ERROR_MODULE_BUILD_FAILURE", None)])
        self.assertEqual([m["object"] for m in natives], ["module#3", "module#5"])
        self.assertEqual({m["bytes"][:4] for m in natives}, {b"\x7fELF"})
        self.assertEqual(refused[0]["bytes"], natives[0]["bytes"], "what it had got from the driver")
        self.assertEqual({m["format"] for m in modules if m["kind"] == "module" and m["call"] != c[4]}, {"ZE_MODULE_FORMAT_IL_SPIRV"})

    def test_names_are_numbers_and_the_folder_is_ours_alone(self):
        self.extract()
        c = self.creates
        self.assertEqual(sorted(os.listdir("out"))[:4],
                         ["manifest.json", f"module-{c[3]}.spv", f"module-{c[0]}.spv", f"module-{c[2]}-2.spv"])
        self.assertEqual(os.stat("out").st_mode & 0o777, 0o700)
        for name in os.listdir("out"):
            self.assertRegex(name, r"^(manifest\.json|(module|native)-\d+(-\d+)?\.(spv|elf|bin))$")
            self.assertEqual(os.stat(os.path.join("out", name)).st_mode & 0o777, 0o600)
        r = zetrace("extract", "--json", "-o", "other", "t.zetrace")
        self.assertEqual(json.loads(r.stdout)["modules"], self.extract("-f"))
        self.assertNotIn("\x1b", r.stdout)

    def test_nothing_is_overwritten_or_written_through_a_link(self):
        self.extract()
        self.assertSentence(zetrace("extract", "t.zetrace", "-o", "out"), 1, "module-", "-f overwrites")
        victim, name = "victim", os.path.join("out", f"module-{self.creates[0]}.spv")
        with open(victim, "w", encoding="utf-8") as f:
            f.write("mine")
        os.unlink(name)
        os.symlink(os.path.abspath(victim), name)
        self.assertEqual(zetrace("extract", "t.zetrace", "-o", "out").returncode, 1)
        self.extract("-f")
        self.assertFalse(os.path.islink(name))
        with open(victim, encoding="utf-8") as f:
            self.assertEqual(f.read(), "mine")

    def test_modules_that_were_taken_out(self):
        self.assertEqual(zetrace("repack", "t.zetrace", "-o", "d.zetrace", "--drop=modules").returncode, 0)
        modules = self.extract(trace="d.zetrace", status=1)
        self.assertIn(None, [m["file"] for m in modules])
        shutil.rmtree("out")
        self.assertSentence(zetrace("extract", "d.zetrace", "-o", "out"), 1, "not in it", "repack")

    def test_none(self):
        self.record(app("evict_good"), out="n.zetrace")
        self.assertEqual(self.extract(trace="n.zetrace"), [])

    def test_usage(self):
        self.assertSentence(zetrace("extract", "t.zetrace"), 2, "-o DIR")
        self.assertSentence(zetrace("extract", "-o", "out"), 2, "one trace")
        self.assertSentence(zetrace("extract", "t.zetrace", "-o", "t.zetrace"), 2, "folder", "t.zetrace")
        self.assertSentence(zetrace("extract", "gone", "-o", "out"), 2, "gone")
        self.assertFalse(os.path.exists("out"))


class Replace(Modules):
    def write(self, data):
        with open("mine.spv", "wb") as f:
            f.write(data)

    def test_the_same_bytes_are_the_same(self):
        self.write(content(b"A", 64))
        r = self.replay("--replace=1:mine.spv", f"--replace=#{self.creates[2]}.1:mine.spv")
        self.assertIn("2 modules were other than in the recording", r.stdout)
        self.assertIn(f"#{self.creates[0]} is given mine.spv, 64 bytes, in place of the 64", r.stderr)
        self.assertEqual(json.loads(self.replay("--json", "--replace=1:mine.spv").stdout)["replaced"], 1)
        self.assertEqual(json.loads(self.replay("--json").stdout)["replaced"], 0)

    def test_others_reach_the_driver(self):
        """Whose native binaries tell of what it was given."""
        self.write(content(b"Z", 300))
        natives = [c["call"] for c in self.dump("t.zetrace", "--function=zeModuleGetNativeBinary") if c["args"]["pModuleNativeBinary"]]
        c = self.creates
        for what, byte, call in ((f"#{c[2]}", 4, natives[0]), (f"#{c[2]}.2", 12, natives[0]), ("3", 4, natives[0]), ("module#5", 4, natives[1])):
            with self.subTest(what):
                r = self.replay(f"--replace={what}:mine.spv", status=1)
                self.assertRegex(r.stdout, rf"differs: #{call} zeModuleGetNativeBinary: output \(pModuleNativeBinary, byte {byte},")
        self.write(b"no SPIR-V")
        r = self.replay(f"--replace=#{c[3]}:mine.spv", status=1)
        self.assertIn(f"differs: #{c[3]} zeModuleCreate: result recorded ZE_RESULT_SUCCESS, replayed ZE_RESULT_ERROR_MODULE_BUILD_FAILURE", r.stdout)

    def test_extracted_ones_go_back(self):
        for m in json.loads(zetrace("extract", "--json", "-o", "out", "t.zetrace").stdout)["modules"]:
            if m["kind"] == "module":
                with self.subTest(m["call"], input=m["input"]):
                    self.replay(f"--replace=#{m['call']}.{m['input']}:out/{m['file']}")

    def test_usage(self):
        self.write(MAGIC)
        open("empty", "w").close()
        for text, words in (("nope", ["'nope'"]), ("x:mine.spv", ["x:mine.spv"]), ("1:", ["'1:'"]), ("0:mine.spv", ["module"]),
                            ("99:mine.spv", ["no module#99"]), ("#2:mine.spv", ["#2 is no call that makes a module"]), ("#9999:mine.spv", ["#9999"]),
                            (f"#{self.creates[0]}.2:mine.spv", ["1 binaries", "number 2"]), ("1:gone.spv", ["gone.spv", "No such file"]),
                            ("1:empty", ["empty"]), ("1:.", ["no file"]), ("#1.0:mine.spv", ["#1.0"])):
            with self.subTest(text):
                self.assertSentence(zetrace("replay", DRIVER, f"--replace={text}", "t.zetrace"), 2, "--replace", *words)

    def test_of_a_trace_without_them(self):
        """What its arguments led to is not there: nothing is read from where it was."""
        self.assertEqual(zetrace("repack", "t.zetrace", "-o", "d.zetrace", "--drop=modules").returncode, 0)
        self.write(content(b"Z", 300))
        self.assertSentence(zetrace("replay", DRIVER, "--replace=1:mine.spv", "d.zetrace"), 2, "can't be made")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT
"""doctor: what a program gets, whether capture sees it, and what stands in the way."""
import json
import os
import shutil
import unittest

import harness
from harness import BUILD, DRIVER, run, zetrace

LIBRARIES = os.path.join(BUILD, "lib", "zetrace")


class Doctor(harness.Case):
    def doctor(self, *options, status, env=None):
        r = zetrace("doctor", "--json", *options, env=env)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return json.loads(r.stdout)

    def test_well(self):
        found = self.doctor("--driver=soft", status=0)
        self.assertEqual((found["init"], found["problems"], found["well"]), ("ZE_RESULT_SUCCESS", [], True))
        device, = found["devices"]
        self.assertEqual((device["kind"], device["vendor"]), ("GPU", 0x8086))
        self.assertIn("libze_soft", device["name"])
        self.assertRegex(found["loader"], r"libze_loader\.so\.1")
        self.assertTrue(any("libze_soft" in path for path in found["libraries"]))
        for way in ("layer", "driver"):
            self.assertGreaterEqual(found["capture"][way]["made"], 6)
            self.assertEqual(found["capture"][way]["made"], found["capture"][way]["seen"])
        text = zetrace("doctor", "--driver=soft").stdout
        self.assertIn("All is well", text)
        self.assertNotIn("In the way", text)

    def test_a_driver_that_is_not_there(self):
        found = self.doctor(status=1, env={"ZE_ENABLE_ALT_DRIVERS": "/nowhere/libze_none.so.1"})
        self.assertEqual(found["devices"], [])
        self.assertIn("/nowhere/libze_none.so.1, which is not there", found["problems"][0])
        self.assertIn("--driver=soft", found["problems"][1])
        self.assertEqual(found["environment"]["ZE_ENABLE_ALT_DRIVERS"], "/nowhere/libze_none.so.1")

    def test_a_path(self):
        self.assertTrue(self.doctor("--driver=" + DRIVER, status=0)["well"])
        self.assertSentence(zetrace("doctor", "--driver=/nowhere/lib.so"), 2, "/nowhere/lib.so", "auto, soft or")

    def libraries(self, *sources):
        """A folder with the project's libraries, some of them others."""
        shutil.copytree(LIBRARIES, "libraries", symlinks=True)
        for name, source in sources:
            with open("source.c", "w", encoding="ascii") as f:
                f.write(source)
            if os.path.lexists("libraries/" + name):
                os.unlink("libraries/" + name)
            r = run("cc", *([] if "main" in source else ["-shared", "-fPIC"]), "source.c", "-o", "libraries/" + name)
            self.assertEqual(r.returncode, 0, r.stderr)
        return {"ZETRACE_LIBDIR": os.path.abspath("libraries")}

    def test_a_capture_that_sees_nothing(self):
        found = self.doctor("--driver=soft", status=1, env=self.libraries(("libzetrace-layer.so", "int nothing;\n")))
        self.assertEqual(found["capture"]["layer"]["seen"], 0)
        self.assertTrue(any("as a layer" in p for p in found["problems"]), found["problems"])
        self.assertFalse(found["well"])

    def test_a_driver_that_crashes(self):
        env = self.libraries(("crash.so", "#include <stdlib.h>\n__attribute__((constructor)) static void end(void) { abort(); }\n"))
        found = self.doctor("--driver=libraries/crash.so", status=1, env=env)
        self.assertIn("crashed: the loader or a driver does so in zeInit", found["problems"][0])

    def test_names_reach_no_terminal_raw(self):
        probe = ("#include <stdio.h>\nint main(int argc, char **argv) { (void)argc; freopen(argv[1], \"w\", stdout);\n"
                 "puts(\"loader \\x1b[31mred\\ninit 0x0\\ndevice 1 GPU 8086:1234 \\x1b]0;title\\a\\nend\"); return 0; }\n")
        r = zetrace("doctor", env=self.libraries(("zetrace-probe", probe)))
        self.assertIn("\\x1b[31mred", r.stdout)
        self.assertNotIn("\x1b", r.stdout)

    def test_no_room(self):
        self.assertSentence(zetrace("doctor", env={"TMPDIR": "/nowhere"}), 125, "/nowhere", "TMPDIR")
        self.assertSentence(zetrace("doctor", env={"ZETRACE_LIBDIR": "/nowhere"}), 125, "zetrace-probe", "ZETRACE_LIBDIR")
        self.assertSentence(zetrace("doctor", "trace"), 2, "no operand")


if __name__ == "__main__":
    unittest.main()

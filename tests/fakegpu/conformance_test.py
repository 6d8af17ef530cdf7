# SPDX-License-Identifier: MIT
"""
libze_soft judged by Intel's driver: the cases of conformance.c on both, the latter with and without direct submission. Where they differ docs/FAKEGPU.md
says why; a difference that is not there fails, and so does a line there that is none any more.
"""
import concurrent.futures
import os
import re
import subprocess
import unittest

import intel
from intel import harness

PAGE = os.path.join(intel.HERE, "..", "..", "docs", "FAKEGPU.md")
# as the data-center driver: what libze_soft does by default shows mistakes that this driver hides
AS_INTEL = {"ZE_SOFT_FREE": "block", "ZE_SOFT_DESTROY": "keep"}


def known():
    """{case: (Intel's, libze_soft's, libze_soft's with the knobs)} of the table in the page."""
    with open(PAGE) as f:
        text = f.read().split("<!-- differences -->")[1].split("<!-- end -->")[0]
    rows = re.findall(r"^\| `([\w-]+)` \| (.*?) \| (.*?) \| (.*?) \|$", text, re.M)
    return {case: (intels.strip("`"), softs.strip("`")) for case, intels, softs, _why in rows}


class Conformance(intel.Case):
    def answer(self, case, env):
        r = subprocess.run([harness.app("conformance"), case], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                           env={k: v for k, v in {**os.environ, **env}.items() if not (k == "LD_PRELOAD" and "LD_PRELOAD" not in env)})
        if r.returncode < 0:
            return "dies"
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        for word in ("is not known", "is not implemented", "knows no operation"):
            self.assertNotIn(word, r.stderr)
        return r.stdout.strip()[len(case) + 2:]

    def test_cases(self):
        cases = harness.run(harness.app("conformance")).stdout.split()
        self.assertGreater(len(cases), 40)
        direct = {**intel.environment(delay=5), "ZE_ENABLE_ALT_DRIVERS": intel.DRIVER}
        soft = {"ZE_ENABLE_ALT_DRIVERS": harness.DRIVER}
        sides = (direct, {**direct, **intel.NO_DIRECT_SUBMISSION}, soft, {**soft, **AS_INTEL})
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = {case: [pool.submit(self.answer, case, env) for env in sides] for case in cases}
            answers = {case: [f.result() for f in row] for case, row in answers.items()}
        table = known()
        for case, (with_direct, without, softs, alike) in answers.items():
            with self.subTest(case):
                self.assertEqual(with_direct, without, "direct submission makes a difference")
                if case in table:
                    self.assertEqual((without, softs), table[case])
                    self.assertNotEqual(without, softs, "is in the table of docs/FAKEGPU.md, and no difference any more")
                else:
                    self.assertEqual(softs, without)
                if case.endswith("-in-flight") and case != "immediate-destroyed-in-flight":
                    self.assertEqual(alike, without, "libze_soft, set as this driver")
        self.assertEqual(set(table) - set(answers), set())


if __name__ == "__main__":
    unittest.main(verbosity=2)

# SPDX-License-Identifier: MIT
"""
rates_test.py [RUNS]: a bug that shows now and then shows as often when it is recorded. RUNS runs each with and without zetrace, in turn,
each pair with the same drawn delays; Fisher's exact test on the two rates, which are printed. What the device did comes in the same orders.
"""
import concurrent.futures
import math
import re
import sys
import unittest

import intel
from intel import harness

RUNS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 40


def fisher(a, b, n):
    """p of two rates a/n and b/n, two-sided: all splits of the same total that are no likelier than this one."""
    total = a + b

    def weight(k):
        return math.comb(n, k) * math.comb(n, total - k) if 0 <= k <= n and 0 <= total - k <= n else 0
    here = weight(a)
    return sum(weight(k) for k in range(total + 1) if weight(k) <= here) / math.comb(2 * n, total)


class Fisher(unittest.TestCase):
    def test_known_values(self):
        self.assertAlmostEqual(fisher(1, 9, 10), 0.00109, 4)
        self.assertAlmostEqual(fisher(5, 5, 10), 1.0, 9)
        self.assertAlmostEqual(fisher(0, 4, 10), 0.08669, 4)


class Rates(intel.Case):
    def one(self, seed, recorded, delay):
        env = {**intel.environment(delay=delay, **intel.NO_DIRECT_SUBMISSION), "FAKEGPU_SEED": str(seed), "FAKEGPU_LOG": "job,kernel",
               "ZE_ENABLE_ALT_DRIVERS": intel.DRIVER}
        program = [harness.app("evict"), "brief", "late"]
        if recorded:
            r = harness.zetrace("record", "-q", "-f", "-o", f"{seed}.zetrace", "--driver=" + intel.DRIVER, "--", *program, env=env)
        else:
            r = harness.run(*program, env=env)
        self.assertKnown(r)
        self.assertIn(r.returncode, (0, 1), r.stdout + r.stderr)
        jobs = tuple(re.findall(r"queue (\d+ \(\w+\)): job 0x[0-9a-f]+ (\w+)", r.stderr))
        self.assertTrue(jobs, r.stderr)
        return r.returncode, jobs

    def delay_for_half(self, pool):
        """The evict comes 0.4 s after the submit; the device begins after a drawn delay and what it needs by itself, which depends on the machine."""
        low, high = 0, 1000
        for _ in range(6):
            delay = (low + high) // 2
            rate = sum(pool.map(lambda i: self.one(10000 + i, False, delay)[0], range(24))) / 24
            if 0.4 <= rate <= 0.6:
                break
            low, high = (delay, high) if rate < 0.5 else (low, delay)
        return delay

    def test_rates(self):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:  # a failing run sleeps a second inside the driver
            for _ in range(3):  # what else runs may have come to its end since the delay was chosen
                delay = self.delay_for_half(pool)
                seen = list(pool.map(lambda i: (i % 2, self.one(i // 2 + 1, i % 2, delay)), range(2 * RUNS)))
                failed = [sum(code for kind, (code, _) in seen if kind == k) for k in (0, 1)]
                if all(0.2 <= n / RUNS <= 0.8 for n in failed):
                    break
        p = fisher(failed[0], failed[1], RUNS)
        print(f"\nevict, delays of 0 to {2 * delay} ms, fails: {failed[0]} of {RUNS} alone, {failed[1]} of {RUNS} recorded; Fisher's exact test p = {p:.2f}", flush=True)
        for n in failed:
            self.assertTrue(0.2 <= n / RUNS <= 0.8, "the schedule does not bring it out now and then; the delay has to change")
        self.assertGreater(p, 0.05)
        for outcome in (0, 1):
            orders = [{jobs for kind, (code, jobs) in seen if kind == k and code == outcome} for k in (0, 1)]
            self.assertEqual(orders[0], orders[1], f"orders of device work, alone and recorded, of runs that end with {outcome}")


if __name__ == "__main__":
    unittest.main(verbosity=2)

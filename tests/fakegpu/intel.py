# SPDX-License-Identifier: MIT
"""What the tests on Intel's driver share: programs that run with it, on the fake device."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("ZETRACE_BUILD") or sys.exit("ZETRACE_BUILD must name the build folder")
FAKE = os.path.join(BUILD, "fakegpu")

made = subprocess.run([os.path.join(HERE, "programs"), BUILD])
if made.returncode:
    sys.exit(made.returncode)  # 77: skipped, the driver is not there; it has been said
os.environ["ZETRACE_BUILD"] = FAKE
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
import harness  # noqa: E402

DRIVER = os.path.join(FAKE, "sid", "libze_intel_gpu.so.1")
LOADER = os.path.join(FAKE, "sid", "libze_loader.so.1")
SHIM = os.path.join(BUILD, "lib", "zetrace", "fakegpu.so")
# an Execute is refused as soon as the queue is banned; with direct submission it may only write to a ring
NO_DIRECT_SUBMISSION = {"NEOReadDebugKeys": "1", "EnableDirectSubmission": "0"}


def environment(device="max1550", delay=20, **more):
    """Late enough (ms) for what follows a submit to come first."""
    return {"LD_PRELOAD": SHIM, "FAKEGPU_DEVICE": device, "FAKEGPU_DELAY": str(delay), "NEO_CACHE_PERSISTENT": "0", **more}


def run(program, *args, env=None, **kwargs):
    """Runs one of the programs of tests/apps on Intel's driver."""
    return harness.run(harness.app(program), *args, env={**(env or environment()), "ZE_ENABLE_ALT_DRIVERS": DRIVER}, **kwargs)


class Case(harness.Case):
    def assertKnown(self, result):
        """The driver emitted nothing that the fake does not know."""
        for word in ("is not known", "is not implemented", "knows no operation", "has no body"):
            self.assertNotIn(word, result.stderr)
        return result

    def zetrace(self, *args, status=0, env=None, **kwargs):
        r = self.assertKnown(harness.zetrace(*args, env=env or environment(**NO_DIRECT_SUBMISSION), **kwargs))
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return r

    def record_on_intel(self, *program, out="t.zetrace", status=0, options=(), env=None):
        return self.zetrace("record", "-f", "-o", out, "--driver=" + DRIVER, *options, "--", *program, status=status, env=env)

# SPDX-License-Identifier: MIT
"""Two loaders, Intel's driver and libze_soft and both: every call is recorded, counted against the client's own count."""
import os
import re
import subprocess
import unittest

import intel
from intel import harness

LOADERS = {"Debian 12's": "/usr/lib/x86_64-linux-gnu/libze_loader.so.1", "sid's": intel.LOADER}
DRIVERS = {"libze_soft": [harness.DRIVER], "Intel's": [intel.DRIVER], "both": [intel.DRIVER, harness.DRIVER]}
ALL = {os.path.realpath(path) for path in LOADERS.values()}
CLIENTS = ("client_linked", "client_dlsym", "client_static", "client_tables")


WAYS = {  # what a user may have set
    "tracing layer": {"ZE_ENABLE_TRACING_LAYER": "1"},
    "validation layer": {"ZE_ENABLE_VALIDATION_LAYER": "1", "ZE_ENABLE_PARAMETER_VALIDATION": "1"},
    "both layers": {"ZE_ENABLE_TRACING_LAYER": "1", "ZE_ENABLE_VALIDATION_LAYER": "1", "ZE_ENABLE_PARAMETER_VALIDATION": "1"},
    "intercept": {"ZE_ENABLE_LOADER_INTERCEPT": "1"},
    "library path": {"ZEL_LIBRARY_PATH": "LOADER'S FOLDER"},
    "no driver tables": {"ZE_ENABLE_LOADER_DRIVER_DDI_PATH": "0"},
}


class Loaders(intel.Case):
    def check(self, client, loader, drivers, options, way=None):
        env = intel.environment(delay=0, ZE_ENABLE_ALT_DRIVERS=",".join(drivers))
        folder = os.path.dirname(loader)
        env.update({k: folder if v == "LOADER'S FOLDER" else v for k, v in (way or {}).items()})
        if "ZE_ENABLE_TRACING_LAYER" in env:  # the loader's own, not that of sid, which these copies of the programs would find
            env["LD_PRELOAD"] += ":" + os.path.join(folder, "libze_tracing_layer.so.1")
        # a client that is linked takes what is loaded already
        if client == "client_linked":
            env["LD_PRELOAD"] += ":" + loader
        r = self.zetrace("record", "-f", "-o", "t.zetrace", *options, "--", harness.app(client),
                         *([] if client == "client_linked" else [loader]), "count", env=env)
        total, by_name = harness.counts_of(r.stdout)
        info = self.info()
        self.assertGreater(total, 20)
        functions = dict(info["functions"])
        functions["zeInit"] -= info["internal_calls"]
        if options and (len(drivers) > 1 or "ZE_ENABLE_LOADER_INTERCEPT" in env):
            # a loader that stands between asks the drivers itself, and stands above what records
            self.assertEqual({name: n for name, n in by_name.items() if functions.get(name, 0) < n}, {})
        else:
            self.assertEqual(info["calls"] - info["internal_calls"], total)
            self.assertEqual({name: n for name, n in functions.items() if n}, by_name)
        self.assertEqual((info["dropped"], info["complete"]), (0, True))
        self.assertEqual(by_name["zeContextCreate"], len(drivers))
        self.assertEqual({os.path.realpath(library["path"]) for library in info["libraries"]} & ALL,
                         {os.path.realpath(loader)})

    def test_all(self):
        for loader in LOADERS.values():
            self.assertTrue(os.path.exists(loader), loader)
        for client in CLIENTS:
            for loader in LOADERS:
                for drivers in DRIVERS:
                    for options in ([], ["--attach=driver"]):
                        with self.subTest(client, loader=loader, driver=drivers, options=options):
                            self.check(client, LOADERS[loader], DRIVERS[drivers], options)

    def test_every_function(self):
        """All that sid's loader exports of the API, each once."""
        r = subprocess.run(["nm", "-D", "--defined-only", intel.LOADER], stdout=subprocess.PIPE, text=True, check=True)
        exported = re.findall(r" T (ze[rst]?[A-Z]\w*)", r.stdout)
        names = [name for name in exported if not name.endswith("ProcAddrTable") and not name.startswith("zeLoader")]
        self.assertGreaterEqual(len(names), 478)
        first = ["zeInit", "zesInit"]
        for options in ([], ["--attach=driver"]):
            with self.subTest(options=options):
                r = self.zetrace("record", "-f", "-o", "t.zetrace", "--driver=" + harness.DRIVER, *options, "--", harness.app("every_export"),
                                 intel.LOADER, *first, *(name for name in names if name not in first), env={"LD_PRELOAD": ""})
                self.assertEqual(len(r.stdout.splitlines()), len(names))
                info = self.info()
                self.assertEqual({name: n for name, n in info["functions"].items() if n}, dict.fromkeys(names, 1))
                self.assertEqual((info["dropped"], info["complete"], info["internal_calls"]), (0, True, 0))

    def test_layers_and_paths(self):
        for way in WAYS:
            for loader in LOADERS:
                for drivers in DRIVERS:
                    for options in ([], ["--attach=driver"]):
                        with self.subTest(way, loader=loader, driver=drivers, options=options):
                            self.check("client_dlsym", LOADERS[loader], DRIVERS[drivers], options, WAYS[way])


if __name__ == "__main__":
    unittest.main(verbosity=2)

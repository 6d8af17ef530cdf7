# SPDX-License-Identifier: MIT
"""Two loaders, Intel's driver and libze_soft and both: every call is recorded, counted against the client's own count."""
import os
import unittest

import intel
from intel import harness

LOADERS = {"Debian 12's": "/usr/lib/x86_64-linux-gnu/libze_loader.so.1", "sid's": intel.LOADER}
DRIVERS = {"libze_soft": [harness.DRIVER], "Intel's": [intel.DRIVER], "both": [intel.DRIVER, harness.DRIVER]}
ALL = {os.path.realpath(path) for path in LOADERS.values()}
CLIENTS = ("client_linked", "client_dlsym", "client_static", "client_tables")


class Loaders(intel.Case):
    def check(self, client, loader, drivers, options):
        env = intel.environment(delay=0, ZE_ENABLE_ALT_DRIVERS=",".join(drivers))
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
        if options and len(drivers) > 1:
            # a loader with two drivers asks them itself, and stands above what records
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


if __name__ == "__main__":
    unittest.main(verbosity=2)

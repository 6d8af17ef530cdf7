# SPDX-License-Identifier: MIT
"""proxy_getters.c: the getters of the proxy driver, which stands between a loader and a driver where no layer can be used."""
from gen import write


def emit(model, output_dir, _args):
    out = ["/* Written by gen.py. */", '#include "l0_api.h"', '#include "proxy.h"']
    for name, (getter, mandatory, slots) in model.tables.items():
        out += [f"ZE_DLLEXPORT ze_result_t ZE_APICALL {getter}(ze_api_version_t version, {name} *table)", "{",
                f'    return (ze_result_t)zc_proxy_fill("{getter}", (uint32_t)version, table, sizeof(*table), '
                "__builtin_return_address(0));", "}"]
    write(output_dir, "proxy_getters.c", out)

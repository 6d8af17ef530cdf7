# SPDX-License-Identifier: MIT
"""make.py BUILD FOLDER: today's golden traces into a new folder, without the names of the machine they were made on."""
import os
import socket
import subprocess
import sys
import tempfile

PROGRAMS = {"evict": ["--schedule=lazy", "--backtrace=*"], "hostmem": ["--schedule=eager"]}


def main():
    build, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    zetrace = os.path.join(build, "bin", "zetrace")
    if os.path.exists(folder):
        sys.exit(f"tools/dev: {folder} is there already, and golden traces stay as they are; give the new state of the format another name")
    os.makedirs(folder)
    with tempfile.TemporaryDirectory() as work:
        def at(name):
            return os.path.join(work, name)
        for name, options in PROGRAMS.items():
            subprocess.run([zetrace, "record", "-q", "--driver=soft", *options, "-o", at(name), "--", os.path.join(build, "bin", "apps", name)],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=work)
        subprocess.run([os.path.join(build, "bin", "files", "modules"), at("modules")], check=True)
        for name in [*PROGRAMS, "modules"]:
            subprocess.run([zetrace, "export", "--format=json", "-o", at(name + ".json"), at(name)], check=True)
            with open(at(name + ".json"), encoding="utf-8") as f:
                text = f.read()
            for mine, neutral in ((build, "/build"), (work, "/work"), (f'"{socket.gethostname()}"', '"host"')):
                text = text.replace(mine, neutral)
            with open(at(name + ".json"), "w", encoding="utf-8") as f:
                f.write(text)
            subprocess.run([zetrace, "import", at(name + ".json"), "-o", os.path.join(folder, name + ".zetrace")], check=True)
            os.chmod(os.path.join(folder, name + ".zetrace"), 0o644)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Has gcc -fanalyzer look at each C file of a compile_commands.json."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

# What the sanitizers watch whenever it is run, and where this analyzer loses track of the tables.
WITHOUT = "/Tests/Fuzz/"
# Functions that nobody calls in this file are looked at too: the inline ones of the shims.
ANALYSIS = ["-O1", "-fkeep-inline-functions", "-fanalyzer", "-Werror", "-S", "-o", "/dev/null"]


def main():
    if len(sys.argv) != 2 or sys.argv[1] == "--help":
        print(f"Usage: analyze.py FILE\n\n{__doc__}")
        return 2
    failed = []
    left_out = 0
    for entry in json.loads(Path(sys.argv[1]).read_text()):
        if not entry["file"].endswith(".c"):
            continue
        if WITHOUT in entry["file"]:
            left_out += 1
            continue
        words = shlex.split(entry["command"])[1:]
        flags = [word for word in words if word.startswith(("-std", "-I", "-D", "-W"))]
        command = ["gcc", *flags, *ANALYSIS, entry["file"]]
        if subprocess.run(command, cwd=entry["directory"]).returncode != 0:
            failed.append(shlex.join(command))
    print(f"Without {left_out} files of {WITHOUT}: the sanitizers watch them", file=sys.stderr)
    for command in failed:
        print(f"has failed: {command}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs gcc -fanalyzer on each C file of a compile_commands.json."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

# The analyzer does not check the fuzz targets, because it reports false leaks for their tables, and
# because the sanitizers check the targets in every run anyway.
WITHOUT = "/Tests/Proof/Fuzz/"
# This option makes gcc keep unused inline functions, so that it also analyzes the inline functions
# of the shims.
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
        flags = [word for before, word in zip([""] + words, words)
                 if word.startswith(("-std", "-I", "-D", "-W", "-isystem")) or before == "-isystem"]
        command = ["gcc", *flags, *ANALYSIS, entry["file"]]
        if subprocess.run(command, cwd=entry["directory"]).returncode != 0:
            failed.append(shlex.join(command))
    print(f"Left out: {left_out} files of {WITHOUT}, which the sanitizers check", file=sys.stderr)
    for command in failed:
        print(f"failed: {command}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes how each C and C++ file of the project is compiled, for tools that read it: once each, as
CMake says, and those that it does not know of as plain C."""

import argparse
import json
import shlex
import sys
from pathlib import Path

FOLDERS = ["Sources", "Tests", "examples-c"]
# Not looked at, and why.
WITHOUT = {
    "Tests/Interop/java/bridge.c": "needs Java's headers",
    "Tests/Interop/cmake/leaks/ancient.c": "is C of 1990, and says so where it is taken for other",
}


def known(database):
    """CMake's entries. A file that is compiled for several programs has the first."""
    found = {}
    for entry in json.loads(Path(database).read_text()):
        found.setdefault(entry["file"], entry)
    return found


def plain(path, root):
    beside = sorted(folder for folder in path.parent.parent.iterdir() if folder.is_dir())
    folders = [root / "include", path.parent, path.parent / "include", *beside]
    flags = ["-std=gnu99", "-Wall", "-Wextra", *(f"-I{folder}" for folder in folders)]
    return {"directory": str(root), "file": str(path),
            "command": shlex.join(["gcc", *flags, "-c", str(path)])}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", help="CMake's compile_commands.json")
    parser.add_argument("--root", required=True, help="the project's folder")
    parser.add_argument("--output", required=True)
    given = parser.parse_args()
    root = Path(given.root)
    entries = known(given.database)
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.c")):
            place = str(path.relative_to(root))
            if place in WITHOUT:
                print(f"Without {place}: {WITHOUT[place]}", file=sys.stderr)
            else:
                entries.setdefault(str(path), plain(path, root))
    Path(given.output).write_text(json.dumps(list(entries.values()), indent=1))
    print(f"{len(entries)} files", file=sys.stderr)


if __name__ == "__main__":
    main()

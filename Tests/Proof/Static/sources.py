#!/usr/bin/env python3
"""Writes a compile_commands.json that contains each C and C++ file of the project once, either with
CMake's command or, if CMake does not compile the file, with a command for plain C."""

import argparse
import json
import shlex
import sys
from pathlib import Path

FOLDERS = ["Sources", "Tests", "examples-c"]
# The omitted files, each with the reason.
WITHOUT = {
    "Sources/Python/_core.c": "needs the headers of Python",
    "Tests/Proof/Coverage/end.c": "needs a header of gcc",
    "Tests/Processes/Local/Benchmark/clients.c": "needs the headers of ZeroMQ",
    "Tests/Processes/MQTT/Benchmark/clients.c": "needs the headers of libmosquitto",
    "Tests/Processes/MQTT/Faults/faults.c": "needs the headers of libmosquitto",
    "Tests/Processes/MQTT/Faults/requests.c": "needs the headers of libmosquitto",
    "Sources/Transports/MQTT/mqtt.c": "needs the headers of libmosquitto",
    "Sources/Transports/MQTT/session.c": "needs the headers of libmosquitto",
    "Sources/Transports/NATS/nats.c": "needs the headers of libnats",
    "Sources/Transports/NATS/session.c": "needs the headers of libnats",
    "Tests/Processes/NATS/Benchmark/clients.c": "needs the headers of libnats",
    "Tests/Processes/NATS/Faults/faults.c": "needs the headers of libnats",
    "Tests/Processes/NATS/Faults/requests.c": "needs the headers of libnats",
    "Tests/Processes/NATS/others.c": "needs the headers of libnats",
    "Tests/Behaviour/RealTime/calls.c": "needs what calls.py makes of the header",
    "Tests/Languages/Interop/loops/glib_loop.c": "needs the headers of GLib",
    "Tests/Languages/Interop/loops/libev_loop.c": "needs the headers of libev",
    "Tests/Languages/Interop/loops/libuv_loop.c": "needs the headers of libuv",
    "Tests/Languages/Interop/loops/sd_event_loop.c": "needs the headers of systemd",
    "Tests/Languages/Interop/java/bridge.c": "needs the headers of Java",
    "Sources/MulticastShims/windows/reports.c": "needs the headers of Windows",
    "Sources/MulticastShims/windows/shims.c": "needs the headers of Windows",
    "Sources/MulticastShims/windows/unwind.c": "needs the headers of Windows",
    "Tests/Behaviour/Windows/litmus.c": "needs the headers of Windows",
    "Tests/Behaviour/Windows/posix.c": "needs the headers of Windows",
    "Tests/Behaviour/Windows/system.c": "needs the headers of Windows",
    "Tests/Languages/Interop/cmake/leaks/ancient.c": "must be compiled as C90",
}


def known(database):
    """Returns CMake's entries. If a file belongs to several programs, returns only the file's first
    entry."""
    found = {}
    for entry in json.loads(Path(database).read_text()):
        if Path(entry["file"]).is_file():  # skips files that a build would generate
            found.setdefault(entry["file"], entry)
    return found


def plain(path, root):
    above = [folder for folder in path.parent.parents if folder != root and root in folder.parents]
    # The directories above the file come first. Files that the transports share include a header
    # that each transport defines differently. The directory Local comes last, because its version
    # of the header lacks some options.
    beside = sorted((folder for one in above for folder in one.iterdir() if folder.is_dir()),
                    key=lambda folder: (folder not in path.parents, folder.name == "Local", folder))
    folders = [root / "include", path.parent, path.parent / "include", *beside]
    # The POSIX shims are empty unless this macro is defined.
    system = ["-DMULTICAST_SYSTEM_POSIX"] if path.parent.name == "posix" else []
    flags = ["-std=gnu99", "-Wall", "-Wextra", "-Wno-unused-parameter", *system,
             *(f"-I{folder}" for folder in folders)]
    return {"directory": str(root), "file": str(path),
            "command": shlex.join(["gcc", *flags, "-c", str(path)])}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", help="the compile_commands.json of CMake")
    parser.add_argument("--root", required=True, help="the root of the project")
    parser.add_argument("--output", required=True)
    given = parser.parse_args()
    root = Path(given.root)
    entries = known(given.database)
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.c")):
            place = str(path.relative_to(root))
            if place in WITHOUT and str(path) not in entries:
                print(f"Left out: {place}: {WITHOUT[place]}", file=sys.stderr)
            else:
                entries.setdefault(str(path), plain(path, root))
    Path(given.output).write_text(json.dumps(list(entries.values()), indent=1))
    print(f"{len(entries)} files", file=sys.stderr)


if __name__ == "__main__":
    main()

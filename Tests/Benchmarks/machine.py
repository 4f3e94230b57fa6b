"""Describes what the figures depend on: the machine, the compilers and the versions of the peers.

The description contains no host name and no paths.
"""

import datetime
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

# The source of each peer's version: its Debian package or, on other systems, its pkg-config module.
PEERS = {
    "Boost.Signals2": ("libboost-dev", None),
    "libsigc++": ("libsigc++-2.0-dev", "sigc++-2.0"),
    "GLib": ("libglib2.0-dev", "gobject-2.0"),
    "Qt 5": ("qtbase5-dev", "Qt5Core"),
    "liburcu": ("liburcu-dev", "liburcu-memb"),
    "Google Benchmark": ("libbenchmark-dev", "benchmark"),
}

# Header-only peers, each with the CMake variable for the directory in which the peer was found.
CHECKOUTS = {
    "eventpp": "EVENTPP_DIRECTORY",
    "sigslot": "SIGSLOT_DIRECTORY",
    "nano-signal-slot": "NANO_SIGNAL_SLOT_DIRECTORY",
}


def describe(build):
    """Describes the machine, and the compilers with which a build directory was configured."""
    cache = (build / "CMakeCache.txt").read_text()
    return {
        **hardware(),
        "c++": first_line(field(cache, r"CMAKE_CXX_COMPILER:\w+=(.+)"), "--version"),
        "swift": first_line(field(cache, r"MULTICAST_SWIFTC:\w+=(.+)"), "--version"),
    }


def hardware():
    """Returns the current date, and a description of the machine and its kernel."""
    cpu = Path("/proc/cpuinfo").read_text()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "cpu": field(cpu, r"model name\s*:\s*(.+)") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "virtual": bool(re.search(r"^flags\s*:.*\bhypervisor\b", cpu, re.MULTILINE)),
        "kernel": f"{platform.system()} {platform.release()}",
    }


def peer_versions(build):
    """Returns a dictionary name -> version of the peers that are installed or found in a
    checkout."""
    versions = {name: version(*where) for name, where in PEERS.items()}
    cache = (build / "CMakeCache.txt").read_text()
    for name, variable in CHECKOUTS.items():
        directory = field(cache, rf"^{variable}:INTERNAL=(.+)")
        if directory:
            versions[name] = first_line(
                "git", "-C", directory, "describe", "--tags", "--always") or "of unknown version"
    return {name: found for name, found in versions.items() if found}


def version(package, module):
    debian = first_line("dpkg-query", "--show", "--showformat=${Version}", package)
    return debian or (module and first_line("pkg-config", "--modversion", module)) or ""


def field(text, pattern):
    found = re.search(pattern, text, re.MULTILINE)
    return found.group(1).strip() if found else ""


def first_line(*command):
    """Returns the first line that a command prints, or "" if the command is missing or fails."""
    if not shutil.which(command[0]):
        return ""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0].strip() if done.returncode == 0 else ""

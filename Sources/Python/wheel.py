#!/usr/bin/env python3
"""Makes the wheel: the package, its extension, the library and the README, as a zip file. The target
`wheel` of CMake calls it. The same input gives the same bytes. Needs nothing but Python."""

import argparse
import base64
import hashlib
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
METADATA = """\
Metadata-Version: 2.1
Name: multicast
Version: {version}
Summary: One-to-many delegation: observers, signals and slots, over libmulticast
License: MIT
Keywords: observer,signal,slot,event,delegate,multicast,asyncio
Classifier: Programming Language :: Python :: 3
Classifier: Operating System :: POSIX :: Linux
Classifier: Typing :: Typed
Requires-Python: >=3.9
Description-Content-Type: text/markdown

{readme}"""
WHEEL = """\
Wheel-Version: 1.0
Generator: libmulticast
Root-Is-Purelib: false
Tag: cp39-abi3-{platform}
"""


def contents(version, platform, library, extension):
    """Each file of the wheel: its name, and its bytes."""
    for path in sorted((HERE / "multicast").iterdir()):
        if path.suffix in (".py", ".pyi") or path.name == "py.typed":
            yield f"multicast/{path.name}", path.read_bytes()
    yield "multicast/_core.abi3.so", extension.read_bytes()
    yield "multicast/libmulticast.so.1", library.read_bytes()
    info = f"multicast-{version}.dist-info"
    readme = (HERE / "README.md").read_text()
    yield f"{info}/METADATA", METADATA.format(version=version, readme=readme).encode()
    yield f"{info}/WHEEL", WHEEL.format(platform=platform).encode()
    yield f"{info}/LICENSE", (HERE.parent.parent / "LICENSE").read_bytes()


def record(files, name):
    """What pip checks the files by: a line for each."""
    lines = []
    for path, data in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(data)}\n")
    return "".join([*lines, f"{name},,\n"]).encode()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", required=True, help="of the library")
    parser.add_argument("--platform", required=True, help="such as manylinux_2_17_x86_64")
    parser.add_argument("--library", required=True, type=Path, help="libmulticast.so, stripped")
    parser.add_argument("--extension", required=True, type=Path, help="_core.abi3.so, stripped")
    parser.add_argument("--output", required=True, type=Path, help="the directory of the wheel")
    options = parser.parse_args()
    files = list(contents(options.version, options.platform, options.library, options.extension))
    name = f"multicast-{options.version}.dist-info/RECORD"
    files.append((name, record(files, name)))
    wheel = options.output / f"multicast-{options.version}-cp39-abi3-{options.platform}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files:
            entry = zipfile.ZipInfo(path, date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in path else 0o644) << 16
            archive.writestr(entry, data)
    print(wheel)


if __name__ == "__main__":
    main()

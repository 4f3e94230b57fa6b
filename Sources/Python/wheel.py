#!/usr/bin/env python3
"""Builds the wheel, a zip file with the package, its extension, the library and the README. The
CMake target `wheel` calls this script. The same input always produces the same bytes. Needs only
Python."""

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
Tag: {tag}
"""


def line(path, data):
    """Returns the line of RECORD with which pip verifies a file."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path, help="libmulticast.so, stripped")
    parser.add_argument("extension", type=Path, help="_core.abi3.so, stripped")
    parser.add_argument("wheel", type=Path, help="the result: multicast-VERSION-TAG.whl")
    options = parser.parse_args()
    _, version, tag = options.wheel.stem.split("-", 2)
    info, readme = f"multicast-{version}.dist-info", (HERE / "README.md").read_text()
    files = {f"multicast/{path.name}": path.read_bytes()
             for path in sorted((HERE / "multicast").glob("*.[pt]y*"))}
    files["multicast/_core.abi3.so"] = options.extension.read_bytes()
    files["multicast/libmulticast.so.1"] = options.library.read_bytes()
    files[f"{info}/METADATA"] = METADATA.format(version=version, readme=readme).encode()
    files[f"{info}/WHEEL"] = WHEEL.format(tag=tag).encode()
    files[f"{info}/LICENSE"] = (HERE.parent.parent / "LICENSE").read_bytes()
    record = [line(*one) for one in files.items()]
    files[f"{info}/RECORD"] = "".join([*record, f"{info}/RECORD,,\n"]).encode()
    with zipfile.ZipFile(options.wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in path else 0o644) << 16
            archive.writestr(entry, data)
    print(options.wheel)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Runs the programs in Sources/Python/README.md, and compares their output with the output in that file."""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[3] / "Sources/Python/README.md"
ASYNCIO = "0\n1\n2\nstream: 0\nstream: 1\nstream: 2\n"


def main():
    text = README.read_text()
    programs = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    outputs = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) + [ASYNCIO]
    if len(programs) != 2 or len(outputs) != 2:
        sys.exit("Sources/Python/README.md has no longer two programs")
    for program, output in zip(programs, outputs):
        ran = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True,
                             text=True, timeout=60)
        if (ran.returncode, ran.stdout, ran.stderr) != (0, output, ""):
            sys.exit(f"expected:\n{output}\nprinted:\n{ran.stdout}{ran.stderr}")
    print("The programs of the README print what it says.")


if __name__ == "__main__":
    main()

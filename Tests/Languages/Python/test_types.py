"""Tests the types of the installed package. Runs mypy --strict on the package and on a program that
uses it."""

import re
import subprocess
import sys
from pathlib import Path

import multicast

PROGRAM = Path(__file__).with_name("typed.py")


def mypy(cache, *arguments):
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), *arguments],
        capture_output=True, text=True)
    return ran.stdout + ran.stderr


EXPECTED = {(number, match[1]) for number, line in enumerate(PROGRAM.read_text().splitlines(), 1)
            if (match := re.search(r"# error: ([a-z-]+)", line))}


def test_program_has_the_errors_that_it_names(tmp_path):
    output = mypy(tmp_path, str(PROGRAM))
    found = {(int(line), kind) for line, kind in
             re.findall(r"typed\.py:(\d+): error: .*\[([a-z-]+)\]", output)}
    assert found == EXPECTED and len(EXPECTED) == 10, output


def test_pyright_finds_the_same_errors():
    ran = subprocess.run([sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(PROGRAM)],
                         capture_output=True, text=True)
    found = {int(line) for line in re.findall(r"typed\.py:(\d+):\d+ - error", ran.stdout)}
    assert found == {line for line, _ in EXPECTED}, ran.stdout + ran.stderr


def test_package_is_strict(tmp_path):
    output = mypy(tmp_path, "-p", "multicast")
    assert output.startswith("Success"), output


def test_everything_public_has_a_comment():
    for name in multicast.__all__:
        public = getattr(multicast, name)
        assert public.__doc__, name
        for member, value in vars(public).items() if isinstance(public, type) else ():
            if not member.startswith("_") and callable(value):
                assert value.__doc__, f"{name}.{member}"

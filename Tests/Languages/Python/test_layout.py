"""Tests that the numbers in the module agree with the numbers in the header."""

import sys
from pathlib import Path

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import header  # noqa: E402

from multicast import Overflow, Reentry, Status, _multicast, version  # noqa: E402

KNOWN = header.read()


@pytest.mark.parametrize("kind, enum, prefix", [
    (Status, "multicast_status_code", "MULTICAST_"),
    (Overflow, "multicast_overflow_code", "MULTICAST_OVERFLOW_"),
    (Reentry, "multicast_reentry_code", "MULTICAST_REENTRY_")])
def test_enumerations_are_those_of_the_header(kind, enum, prefix):
    values = {one.name.replace("MULTICAST_ERROR_", prefix).replace(prefix, ""): int(one.value)
              for one in KNOWN.enums[enum].values}
    if kind is Overflow:
        assert values.pop("BLOCK") == 2  # the module does not have it: its invocations never wait for room
    assert {one.name: one.value for one in kind} == values


@pytest.mark.parametrize("name", ["ONCE", "LATEST", "NO_REPLAY"])
def test_flags_are_those_of_the_header(name):
    assert int(KNOWN.constants[f"MULTICAST_{name}"].value.rstrip("u"), 16) == getattr(_multicast, name)


def test_version_is_that_of_the_header():
    numbers = [KNOWN.constants[f"MULTICAST_VERSION_{part}"].value
               for part in ("MAJOR", "MINOR", "PATCH")]
    assert version() == ".".join(numbers)

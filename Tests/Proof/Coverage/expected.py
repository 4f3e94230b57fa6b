"""Reads `unreached`, the list of regions that the tests do not reach. The comment at its top
describes the format."""

from pathlib import Path


class Expectation:
    def __init__(self, place, function, text, how, reason, line):
        self.key = (place, function, text)
        self.how = how
        self.reason = reason
        self.line = line


class Malformed(Exception):
    pass


def read(path):
    """Returns the entries of the list, indexed by the keys of their regions."""
    found = {}
    how = reason = ""
    for number, line in enumerate(Path(path).read_text().splitlines(), start=1):
        where = f"{path}:{number}"
        if line.startswith("#") or not line.strip():
            continue
        if not line.startswith(" "):
            how, _, reason = line.partition(": ")
            if how not in ("never", "seldom") or not reason:
                raise Malformed(f"{where}: expected never: or seldom: with a reason")
            continue
        place, function, text = (line.strip().split(": ", 2) + ["", ""])[:3]
        if not reason or "»" not in text:
            raise Malformed(f"{where}: expected FILE: FUNCTION: a line with », below a reason")
        one = Expectation(place, function, text, how, reason, where)
        if one.key in found:
            raise Malformed(f"{where}: is listed twice")
        found[one.key] = one
    return found

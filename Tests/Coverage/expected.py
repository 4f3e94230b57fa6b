"""Reads `unreached`, the list of regions that the tests do not reach; its head has the format."""

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
    """Returns the expectations of the list, by the key of the region."""
    found = {}
    lines = []
    for number, line in enumerate(Path(path).read_text().split("\n") + [""], start=1):
        if line.startswith("#"):
            continue
        if line.strip():
            lines.append(line.strip())
            continue
        if lines:
            one = parse(lines, f"{path}:{number - len(lines)}")
            if one.key in found:
                raise Malformed(f"{one.line}: is listed twice")
            found[one.key] = one
            lines = []
    return found


def parse(lines, where):
    place, colon, function = lines[0].partition(": ")
    how, comma, reason = " ".join(lines[2:]).partition(": ")
    if not colon or not comma or how not in ("never", "seldom") or "»" not in lines[1]:
        raise Malformed(f"{where}: expected FILE: FUNCTION, a line with », and never: or seldom:"
                        " with the reason")
    return Expectation(place, function, lines[1], how, reason, where)

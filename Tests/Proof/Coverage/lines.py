#!/usr/bin/env python3
"""Compares the C lines that the tests do not reach, according to gcov, with the list of lines that
the tests are expected to miss. A line counts as reached if the tests reach all its parts, such as
both branches of an if written on one line."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import expected


class Line:
    def __init__(self, place, number, function, text):
        self.place = place  # the file, relative to the root
        self.number = number
        self.key = (place, function, "»" + text)
        self.is_executed = False
        self.is_whole = False  # whether all parts of the line were executed


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", help="the directory with the objects and their counts")
    parser.add_argument("--root", required=True, help="the root of the project")
    parser.add_argument("--under", nargs="+", required=True, help="directories that count")
    parser.add_argument("--expected", required=True, help="the list of expected lines")
    return parser.parse_args()


def read(counts, root, folders):
    """Returns the lines of the sources that were compiled with counters for gcov, in order."""
    objects = sorted(Path(counts).rglob("*.gcno"))
    if not objects:
        raise SystemExit(f"{counts}: no *.gcno")
    output = subprocess.run(["gcov", "--json-format", "--stdout", *map(str, objects)], check=True,
                            capture_output=True, text=True).stdout
    lines = {}
    for report in output.splitlines():
        for source in json.loads(report)["files"]:
            path = root / source["file"]
            if not any(path.is_relative_to(root / folder) for folder in folders):
                continue
            texts = path.read_text().split("\n")
            for one in source["lines"]:
                add(lines, str(path.relative_to(root)), one, texts)
    return [lines[key] for key in sorted(lines)]


def add(lines, place, one, texts):
    number = one["line_number"]
    found = lines.get((place, number))
    if found is None:
        text = texts[number - 1].strip()
        found = Line(place, number, one.get("function_name", ""), text)
        lines[place, number] = found
    found.is_executed |= one["count"] > 0
    found.is_whole |= one["count"] > 0 and not one["unexecuted_block"]


def table(lines):
    places = sorted({line.place for line in lines})
    print(f"{'lines':>11} {'reached':>8}")
    for place in places + [None]:
        some = [line for line in lines if place in (None, line.place)]
        whole = sum(line.is_whole for line in some)
        print(f"{whole:>5}/{len(some):<5} {100 * whole / len(some):7.2f}%  {place or 'all'}")


def complaints(lines, listed):
    """Yields a message for each difference between the found and the listed lines."""
    keys = {}
    for line in lines:
        keys.setdefault(line.key, []).append(line)
    for key, same in keys.items():
        for line in same:
            if not line.is_whole and key not in listed:
                what = "a part of this line" if line.is_executed else "this line"
                yield (f"{line.place}:{line.number}: no test reaches {what}, and it is not in the"
                       f" list:\n  {line.place}: {key[1]}: {key[2]}")
        one = listed.get(key)
        if one and one.how == "never" and all(line.is_whole for line in same):
            yield f"{one.line}: is reached: remove it from the list"
    for key, one in listed.items():
        if key not in keys:
            yield f"{one.line}: there is no such line: remove it from the list"


def main():
    given = arguments()
    listed = expected.read(given.expected)
    lines = read(given.counts, Path(given.root), given.under)
    if not lines:
        raise SystemExit(f"{given.counts}: no line of {given.root}")
    table(lines)
    missed = sum(not line.is_whole for line in lines)
    print(f"{missed} lines are not reached as a whole; {given.expected} says why.")
    wrong = list(complaints(lines, listed))
    for text in wrong:
        print(text, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except expected.Malformed as error:
        sys.exit(str(error))

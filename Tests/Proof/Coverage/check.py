#!/usr/bin/env python3
"""Compares the regions that the tests do not reach with the list of regions that the tests are
expected to miss."""

import argparse
import sys
from pathlib import Path

import expected
import regions

# Some counts are differences between two counters. If a process is killed after it has updated only
# one of the two, the difference is negative and shows up as a huge number.
IMPOSSIBLE = 1 << 62


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("export", help="the output of llvm-cov export")
    parser.add_argument("--root", required=True, help="the root of the project")
    parser.add_argument("--under", nargs="+", required=True, help="directories that count")
    parser.add_argument("--expected", required=True, help="the list of expected regions")
    parser.add_argument("--swift-demangle", required=True)
    parser.add_argument("--least", type=float, default=99, help="percent of regions (default: 99)")
    return parser.parse_args()


def table(found):
    places = sorted({region.place for region in found})
    print(f"{'functions':>11} {'regions':>11} {'reached':>8}")
    for place in places + [None]:
        of_place = [region for region in found if place in (None, region.place)]
        functions = [region for region in of_place if region.begins_function]
        print(f"{fraction(functions):>11} {fraction(of_place):>11} {percent(of_place):7.2f}%"
              f"  {place or 'all'}")


def fraction(some):
    return f"{sum(region.count > 0 for region in some)}/{len(some)}"


def percent(some):
    return 100 * sum(region.count > 0 for region in some) / len(some)


def complaints(found, listed, least):
    """Yields a message for each difference between the found and the listed regions."""
    keys = {}
    for region in found:
        keys.setdefault(region.key, []).append(region)
    for key, same in keys.items():
        one = listed.get(key)
        for region in same:
            if region.count == 0 and one is None:
                what = "function" if region.begins_function else "region"
                yield (f"{region.place}:{region.line}: no test reaches this {what}, and it is not"
                       f" in the list:\n  {region.place}: {region.function}: {region.text}")
        if one and one.how == "never" and all(0 < region.count < IMPOSSIBLE for region in same):
            yield f"{one.line}: is reached, {same[0].count} times: remove it from the list"
    for key, one in listed.items():
        if key not in keys:
            yield f"{one.line}: there is no such region: remove it from the list"
    # Whether a test reaches a `seldom` region depends on the timing of threads, so the percentage
    # does not include these regions.
    steady = [one for one in found if one.key not in listed or listed[one.key].how == "never"]
    if percent(steady) < least:
        yield (f"{percent(steady):.2f} % of the regions are reached, not counting the seldom ones:"
               f" {least:g} % are required")


def main():
    given = arguments()
    listed = expected.read(given.expected)
    found = regions.read(given.export, Path(given.root), given.under, given.swift_demangle)
    if not found:
        raise SystemExit(f"{given.export}: no region of {given.root}")
    table(found)
    missed = [region for region in found if region.count == 0]
    print(f"{len(missed)} regions are not reached; {given.expected} says why.")
    wrong = list(complaints(found, listed, given.least))
    for text in wrong:
        print(text, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except expected.Malformed as error:
        sys.exit(str(error))

#!/usr/bin/env python3
"""Makes a table and a plot from the output of libmulticast-local's benchmark."""

import argparse
import re
import statistics
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "Transports/Benchmark"))

import report

LINE = re.compile(
    r"^(?P<library>\S.*?) +there and back: median +(?P<median>[\d.]+) us, 99th +(?P<late>[\d.]+) us;"
    r" to 1: +(?P<rate>\d+) messages/s; to 4: +(?P<rate4>\d+) messages/s;"
    r" to 16: +(?P<rate16>\d+) messages/s; 1 MB: +(?P<large>[\d.]+) GB/s$", re.MULTILINE)
MEMCPY = re.compile(r"^memcpy +1 MB: +([\d.]+) GB/s$", re.MULTILINE)
OURS = "libmulticast-local"
HEAD = ["there and back", "99 % within", "to 1", "to 4", "to 16", "1 MB"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("printed", type=Path, help="what the benchmark has printed")
    parser.add_argument("plot", type=Path, help="where the plot goes")
    parser.add_argument("--packages", nargs="*", default=[], metavar="NAME=PACKAGE",
                        help="what to tell the versions of")
    parser.add_argument("--update-readme", type=Path, metavar="README",
                        help="write the table between the markers of this file")
    given = parser.parse_args()
    printed = given.printed.read_text()
    rounds, copies = read(printed), [float(each) for each in MEMCPY.findall(printed)]
    if not rounds or {len(each) for each in rounds.values()} != {len(copies)}:
        sys.exit("the benchmark has not printed what it should")
    text = f"{table(rounds, copies)}\n\n{report.conditions(rounds, given.packages)}"
    print(text)
    names = {library: library for _, library in rounds}
    report.COLORS.update(dict.fromkeys(names, report.COLORS[report.BARE]), **{OURS: "#0072b2"})
    report.draw(rounds, names, given.plot)
    if given.update_readme:
        report.update(given.update_readme, text, given.plot)


def read(text):
    """Returns a map from ("", library) to the figures of each round, in the order of the lines."""
    rounds = {}
    for found in LINE.finditer(text):
        figures = {name: float(value) for name, value in found.groupdict().items()
                   if name != "library"}
        rounds.setdefault(("", found["library"]), []).append(figures)
    return rounds


def cells(rounds, library):
    value = {name: report.middle(rounds, "", library, name) for name in rounds["", library][0]}
    return [f"{value['median']:.1f} µs", f"{value['late']:.0f} µs",
            *(f"{value[name]:,.0f}" for name in ("rate", "rate4", "rate16")),
            f"{value['large']:.3g} GB/s"]


def table(rounds, copies):
    lines = [f"| | {' | '.join(HEAD)} |", f"| ---{' | --:' * len(HEAD)} |"]
    lines += [f"| {library} | {' | '.join(cells(rounds, library))} |" for _, library in rounds]
    return "\n".join([*lines, f"| memcpy | {' | ' * 5}{statistics.median(copies):.3g} GB/s |"])


if __name__ == "__main__":
    main()

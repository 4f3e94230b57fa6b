#!/usr/bin/env python3
"""Makes a table and a plot from the output of the benchmark."""

import argparse
import os
import platform
import re
import statistics
import sys
import textwrap
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "Benchmarks"))

from matplotlib.ticker import FuncFormatter, MaxNLocator

import machine
import plots
from plots import pyplot

BEGIN, END = "<!-- benchmark -->", "<!-- /benchmark -->"
LINE = re.compile(
    r"^(?:(?P<kind>\S.*?) )?(?P<library>\S+) +there and back: median +(?P<median>[\d.]+) us,"
    r" 99th +(?P<late>[\d.]+) us; +(?P<rate>\d+) messages/s$", re.MULTILINE)
OURS, BARE = "ours", "bare"
RATIOS = ", and the ratios are medians of the ratios in each round"
COLORS = {BARE: "#000000"}
MARKERS = {BARE: "x"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("printed", type=Path, help="what the benchmark has printed")
    parser.add_argument("plot", type=Path, help="where the plot goes")
    parser.add_argument("--ours", required=True, help="the name of our library")
    parser.add_argument("--bare", required=True, help="the name of the library that it uses")
    parser.add_argument("--packages", nargs="*", default=[], metavar="NAME=PACKAGE",
                        help="what to tell the versions of")
    parser.add_argument("--update-readme", type=Path, metavar="README",
                        help="write the table between the markers of this file")
    given = parser.parse_args()
    names = {OURS: given.ours, BARE: given.bare}
    rounds = read(given.printed.read_text(), names)
    text = f"{table(rounds, names)}\n\n{conditions(rounds, given.packages, RATIOS)}"
    print(text)
    draw(rounds, names, given.plot)
    if given.update_readme:
        update(given.update_readme, text, given.plot)


def read(text, names):
    """Returns a map from (kind, OURS or BARE) to the figures of each round."""
    rounds = {}
    which = {name: key for key, name in names.items()}
    for found in LINE.finditer(text):
        figures = {name: float(found[name]) for name in ("median", "late", "rate")}
        kind, library = found["kind"] or "", which.get(found["library"])
        rounds.setdefault((kind, library), []).append(figures)
    wanted = {(kind, library) for kind, _ in rounds for library in names}
    if not rounds or set(rounds) != wanted or len({len(each) for each in rounds.values()}) != 1:
        sys.exit("the benchmark has not printed what it should")
    return rounds


def middle(rounds, kind, library, figure):
    return statistics.median(each[figure] for each in rounds[kind, library])


def ratio(rounds, kind, figure):
    """Returns the median of the rounds' ratios. The two libraries are compared within each round,
    because the machine is then about equally busy for both."""
    pairs = zip(rounds[kind, OURS], rounds[kind, BARE])
    return statistics.median(ours[figure] / bare[figure] for ours, bare in pairs)


def kinds(rounds):
    return sorted({kind for kind, _ in rounds})


# ---- Text ----------------------------------------------------------------------------------------


def table(rounds, names):
    lines = [f"| | {names[OURS]} | {names[BARE]} | ratio |", "| --- | --: | --: | --: |"]
    for figure, what, form in (("rate", "messages a second", "{:,.0f}"),
                               ("median", "there and back, median", "{:.0f} µs"),
                               ("late", "there and back, 99 % within", "{:.0f} µs")):
        for kind in kinds(rounds):
            ours, bare = (middle(rounds, kind, library, figure) for library in (OURS, BARE))
            # In a kind like "qos 0", the first word is the name of an option.
            row = re.sub(r"^(\w+) (.*)", r"`\1` \2: ", kind) + what
            lines.append(f"| {row} | {form.format(ours)} | {form.format(bare)} |"
                         f" {ratio(rounds, kind, figure):.2f} |")
    return "\n".join(lines)


def conditions(rounds, packages, and_of=""):
    cpu = Path("/proc/cpuinfo").read_text()
    name = machine.field(cpu, r"model name\s*:\s*(.+)") or platform.machine()
    virtual = re.search(r"^flags\s*:.*\bhypervisor\b", cpu, re.MULTILINE)
    cores = len(os.sched_getaffinity(0))
    pairs = (each.partition("=")[::2] for each in packages)
    versions = [(what, machine.version(package, None)) for what, package in pairs]
    versions = [f"{what} {version}" for what, version in versions if version]
    versions = " and ".join(filter(None, [", ".join(versions[:-1]), *versions[-1:]]))
    count = len(next(iter(rounds.values())))
    return textwrap.fill(
        f"The figures are medians of {count} rounds{and_of}. Measured on a"
        f" {'virtual ' if virtual else ''}machine with {cores} cores"
        f" ({name}, {platform.system()} {platform.release()})"
        f"{', with ' if versions else ''}{versions}.", 120)


def update(readme, text, plot):
    before, begin, rest = readme.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{readme.name} must have {BEGIN} and {END}")
    picture = f"![Messages a second, and time there and back]({plot.name})"
    readme.write_text(f"{before}{BEGIN}\n{text}\n\n{picture}\n{END}{after}")


# ---- Plot ----------------------------------------------------------------------------------------


def draw(rounds, names, path):
    plots.set_look()
    height = 2 + 0.7 * len(rounds)
    image, panels = pyplot.subplots(2, 1, figsize=(plots.WIDTH, height), layout="constrained")
    draw_panel(panels[0], rounds, names, "rate",
               "Messages of 64 bytes a second, from process to process", "higher is better")
    draw_panel(panels[1], rounds, names, "median",
               "One message there and one back: median, and 99 % within", "lower is better")
    plots.save(image, path)


def draw_panel(panel, rounds, names, figure, title, better):
    """Draws a row for each library, with a large mark at the median of the rounds, and a small mark
    for each round."""
    rows = [(kind, library) for kind in kinds(rounds) for library in names][::-1]
    scale, unit = (1000, "k") if figure == "rate" else (1, " µs")
    for row, (kind, library) in enumerate(rows):
        color, marker = COLORS.get(library, "#0072b2"), MARKERS.get(library, "o")
        values = [each[figure] / scale for each in rounds[kind, library]]
        panel.plot(values, [row] * len(values), ".", color=color, alpha=0.35, markersize=5)
        value = middle(rounds, kind, library, figure) / scale
        if figure == "median":
            end = middle(rounds, kind, library, "late")
            panel.plot([value, end], [row, row], color=color, alpha=0.5)
            panel.plot(end, row, "|", color=color, markersize=9)
        panel.plot(value, row, marker=marker, color=color, markersize=8)
        panel.annotate(f"{value:.0f}{unit}", (value, row), xytext=(0, 6),
                       textcoords="offset points", ha="center")
    panel.set_title(title, loc="left")
    panel.grid(True, axis="x", alpha=0.25)
    labels = [", ".join(filter(None, (kind, names[library]))) for kind, library in rows]
    panel.set_yticks(range(len(rows)), labels)
    panel.set_ylim(-0.5, len(rows) - 0.2)
    panel.set_xlim(left=0)
    panel.xaxis.set_major_locator(MaxNLocator(8))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.0f}{unit if x else ''}"))
    panel.set_xlabel(better)


if __name__ == "__main__":
    main()

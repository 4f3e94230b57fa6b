#!/usr/bin/env python3
"""Makes a table and a plot of what the benchmark has printed."""

import argparse
import os
import platform
import re
import statistics
import sys
import textwrap
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "Benchmarks"))

from matplotlib.ticker import FuncFormatter, MaxNLocator

import machine
import plots
from plots import pyplot

BEGIN, END = "<!-- benchmark -->", "<!-- /benchmark -->"
LINE = re.compile(
    r"qos (?P<qos>\d) (?P<library>\S+) +there and back: median +(?P<median>[\d.]+) us,"
    r" 99th +(?P<late>[\d.]+) us; +(?P<rate>\d+) messages/s")
OURS, BARE = "libmulticast-mqtt", "libmosquitto"
COLORS = {OURS: "#0072b2", BARE: "#000000"}
MARKERS = {OURS: "o", BARE: "x"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("printed", type=Path, help="what the benchmark has printed")
    parser.add_argument("plot", type=Path, help="where the plot goes")
    parser.add_argument("--update-readme", type=Path, metavar="README",
                        help="write the table between the markers of this file")
    given = parser.parse_args()
    rounds = read(given.printed.read_text())
    text = f"{table(rounds)}\n\n{conditions(rounds)}"
    print(text)
    draw(rounds, given.plot)
    if given.update_readme:
        update(given.update_readme, text, given.plot)


def read(text):
    """(qos, library) -> the rounds, each with its figures."""
    rounds = {}
    for found in LINE.finditer(text):
        figures = {name: float(found[name]) for name in ("median", "late", "rate")}
        rounds.setdefault((int(found["qos"]), found["library"]), []).append(figures)
    if not rounds or len({len(each) for each in rounds.values()}) != 1:
        sys.exit("the benchmark has not printed what it should")
    return rounds


def middle(rounds, qos, library, figure):
    return statistics.median(each[figure] for each in rounds[qos, library])


def ratio(rounds, qos, figure):
    """The two stand side by side in a round: the machine was as busy for one as for the other."""
    pairs = zip(rounds[qos, OURS], rounds[qos, BARE])
    return statistics.median(ours[figure] / bare[figure] for ours, bare in pairs)


def levels(rounds):
    return sorted({qos for qos, _ in rounds})


# ---- Text ----------------------------------------------------------------------------------------


def table(rounds):
    lines = ["| | libmulticast-mqtt | libmosquitto | ratio |", "| --- | --: | --: | --: |"]
    for figure, what, form in (("rate", "messages a second", "{:,.0f}"),
                               ("median", "there and back, median", "{:.0f} µs"),
                               ("late", "there and back, 99 % within", "{:.0f} µs")):
        for qos in levels(rounds):
            ours, bare = (middle(rounds, qos, library, figure) for library in (OURS, BARE))
            lines.append(f"| `qos` {qos}: {what} | {form.format(ours)} | {form.format(bare)} |"
                         f" {ratio(rounds, qos, figure):.2f} |")
    return "\n".join(lines)


def conditions(rounds):
    cpu = Path("/proc/cpuinfo").read_text()
    name = machine.field(cpu, r"model name\s*:\s*(.+)") or platform.machine()
    virtual = re.search(r"^flags\s*:.*\bhypervisor\b", cpu, re.MULTILINE)
    cores = len(os.sched_getaffinity(0))
    versions = " and ".join(
        f"{name} {version}" for name, version in (
            ("libmosquitto", machine.version("libmosquitto1", "libmosquitto")),
            ("mosquitto", machine.version("mosquitto", None))) if version)
    count = len(next(iter(rounds.values())))
    return textwrap.fill(
        f"Medians of {count} rounds, and of the ratios in a round. Measured on {name},"
        f" {'a virtual machine with ' if virtual else ''}{cores} cores,"
        f" {platform.system()} {platform.release()}, with {versions}.", 120)


def update(readme, text, plot):
    before, begin, rest = readme.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{readme.name} must have {BEGIN} and {END}")
    picture = f"![Messages a second, and time there and back]({plot.name})"
    readme.write_text(f"{before}{BEGIN}\n{text}\n\n{picture}\n{END}{after}")


# ---- Plot ----------------------------------------------------------------------------------------


def draw(rounds, path):
    plots.set_look()
    image, panels = pyplot.subplots(2, 1, figsize=(plots.WIDTH, 4.8), layout="constrained")
    draw_panel(panels[0], rounds, "rate", "Messages of 64 bytes a second, from process to process",
               "higher is better")
    draw_panel(panels[1], rounds, "median", "One message there and one back: median, and 99 % within",
               "lower is better")
    plots.save(image, path)


def draw_panel(panel, rounds, figure, title, better):
    """A row for each library: the median of its rounds, and small each round."""
    rows = [(qos, library) for qos in levels(rounds) for library in (OURS, BARE)][::-1]
    scale, unit = (1000, "k") if figure == "rate" else (1, " µs")
    for row, (qos, library) in enumerate(rows):
        color, marker = COLORS[library], MARKERS[library]
        values = [each[figure] / scale for each in rounds[qos, library]]
        panel.plot(values, [row] * len(values), ".", color=color, alpha=0.35, markersize=5)
        value = middle(rounds, qos, library, figure) / scale
        if figure == "median":
            end = middle(rounds, qos, library, "late")
            panel.plot([value, end], [row, row], color=color, alpha=0.5)
            panel.plot(end, row, "|", color=color, markersize=9)
        panel.plot(value, row, marker=marker, color=color, markersize=8)
        panel.annotate(f"{value:.0f}{unit}", (value, row), xytext=(0, 6),
                       textcoords="offset points", ha="center")
    panel.set_title(title, loc="left")
    panel.grid(True, axis="x", alpha=0.25)
    panel.set_yticks(range(len(rows)), [f"qos {qos}, {library}" for qos, library in rows])
    panel.set_ylim(-0.5, len(rows) - 0.2)
    panel.set_xlim(left=0)
    panel.xaxis.set_major_locator(MaxNLocator(8))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.0f}{unit if x else ''}"))
    panel.set_xlabel(better)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Makes tables, plots and the README's table from a results.json. Measures nothing."""

import argparse
import difflib
import json
import sys
from pathlib import Path

from figures import is_thread_safe, of_measure, text_of
from measures import COLUMNS, HEADLINE, MEASURES, PLOT
from tables import missing, row, tables

CHECKED_IN = Path(__file__).resolve().parent / "results"  # tables are generated on demand
BEGIN, END = "<!-- benchmarks -->", "<!-- /benchmarks -->"


def main():
    arguments = parse()
    results = json.loads((arguments.results / "results.json").read_text())
    if arguments.check_readme:
        check(arguments.check_readme, results, arguments.results)
        return
    output = arguments.output or arguments.results
    output.mkdir(parents=True, exist_ok=True)
    text = all_figures(results)
    if output.resolve() != CHECKED_IN:
        (output / "tables.md").write_text(text)
    print(text)
    import plots  # imported here, because checking the README must not require matplotlib

    plots.draw(results, output, None if arguments.plots else PLOT)
    if arguments.update_readme:
        readme = arguments.update_readme
        readme.write_text(updated(readme, results))


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="the directory of results.json")
    parser.add_argument("--output", type=Path, metavar="DIR",
                        help="where tables.md and the plots go (default: beside results.json)")
    parser.add_argument("--plots", action="store_true",
                        help="draw all plots, not only the one that the README shows")
    parser.add_argument("--update-readme", type=Path, metavar="README",
                        help="write the table between the markers of this file")
    parser.add_argument("--check-readme", type=Path, metavar="README",
                        help="only compare that table with results.json")
    return parser.parse_args()


def all_figures(results):
    return f"# All figures\n\n{conditions(results)}\n\n{tables(results)}\n"


# ---- README --------------------------------------------------------------------------------------


def check(readme, results, directory):
    """Fails if the README's table differs from the results, or the plot is missing."""
    there, expected = readme.read_text(), updated(readme, results)
    plot = directory / f"{PLOT}.svg"
    if not plot.is_file():
        print(f"{plot.name} is missing")
    if there != expected:
        sys.stdout.writelines(difflib.unified_diff(
            there.splitlines(True), expected.splitlines(True), readme.name,
            f"{readme.name}, made from results.json"))
    if there != expected or not plot.is_file():
        sys.exit("To make them from results.json again: Tests/Benchmarks/run --from-results")
    print("The README's table agrees with results.json.")


def updated(readme, results):
    """Returns the README's text with the table of these results."""
    if not results["run"]["complete"]:
        sys.exit("The README takes the results of a full run; these are of a quick or partial one.")
    text = readme.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        sys.exit(f"{readme.name} must have {BEGIN} and {END}, once each")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{headline(results)}\n{END}{after}"


def headline(results):
    lines = [row([""] + list(COLUMNS)), row(["---"] + ["--:"] * len(COLUMNS))]
    lines.append(row(["thread-safe"] + [safety(results, names) for names in COLUMNS.values()]))
    for text, key, parameter in HEADLINE:
        measure = next(measure for measure in MEASURES if measure.key == key)
        found = of_measure(results, measure)
        lines.append(row([text] + [
            figure(measure, found, names, parameter) for names in COLUMNS.values()]))
    lines += ["", f"{statistics(results)} {place(results)}"]
    return "\n".join(lines)


def safety(results, names):
    measured = {name for _, key, _ in HEADLINE for name in results["figures"].get(key, {})}
    if not measured.intersection(names):
        return "–"
    return "yes" if is_thread_safe(results, names[0]) else "no"


def figure(measure, found, names, parameter):
    """Returns the figure of the first of these contenders that was measured."""
    for name in names:
        if parameter in found.get(name, {}):
            return text_of(measure, found[name][parameter])
    return "–"


# ---- Conditions ----------------------------------------------------------------------------------


def conditions(results):
    machine = results["machine"]
    peers = ", ".join(f"{name} {version}" for name, version in results["peers"].items())
    added = "".join(f" Added on {date}: {name}." for name, date in results.get("added", {}).items())
    return (f"{statistics(results)} {place(results)}{added}\n\n"
            f"Versions: {machine['c++']}; {machine['swift']}; {peers}.\n\n{missing(results)}")


def statistics(results):
    count = results["run"]["rounds"] * results["run"]["repetitions"]
    repetitions = f"{count} repetition{'s' * (count > 1)}"
    return (f"The figures are the best of {repetitions} or, where several threads take part, the"
            f" median.")


def place(results):
    machine = results["machine"]
    kind = "virtual machine" if machine["virtual"] else "machine"
    return (f"Measured on {machine['date']} on a {kind} with {machine['cores']} cores"
            f" ({machine['cpu']}, {machine['kernel']}).")


if __name__ == "__main__":
    main()

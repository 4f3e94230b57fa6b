#!/usr/bin/env python3
"""Makes of a results.json what people read: tables, pictures, the README's part on speed."""

import argparse
import difflib
import json
import os
import sys
from pathlib import Path

from figures import is_thread_safe, of_measure, text_of
from measures import COLUMNS, HEADLINE, MEASURES, PICTURE
from tables import missing, row, tables

BEGIN, END = "<!-- benchmarks -->", "<!-- /benchmarks -->"


def main():
    arguments = parse()
    results = json.loads((arguments.results / "results.json").read_text())
    if arguments.check_readme:
        check(arguments.check_readme, results, arguments.results)
        return
    text = f"{conditions(results)}\n\n{tables(results)}\n"
    (arguments.results / "tables.md").write_text(f"# All figures\n\n{text}")
    print(text)
    import plots  # here, since a check of the README needs no matplotlib

    plots.draw(results, arguments.results)
    if arguments.update_readme:
        readme = arguments.update_readme
        readme.write_text(updated(readme, results, arguments.results))


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="the directory of results.json")
    parser.add_argument("--update-readme", type=Path, metavar="README",
                        help="write the headline between the markers of this file")
    parser.add_argument("--check-readme", type=Path, metavar="README",
                        help="only see whether that is what stands there")
    return parser.parse_args()


# ---- README --------------------------------------------------------------------------------------


def check(readme, results, directory):
    """Fails where a figure in the README is not that of the results."""
    there, expected = readme.read_text(), updated(readme, results, directory)
    if there != expected:
        sys.stdout.writelines(difflib.unified_diff(
            there.splitlines(True), expected.splitlines(True), "README", "made of results.json"))
        sys.exit(1)
    print("The README says what the results say.")


def updated(readme, results, directory):
    """The README with the headline of these results."""
    if not results["run"]["complete"]:
        sys.exit("The README takes the results of a full run; these are of a quick or partial one.")
    text = readme.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        sys.exit(f"{readme.name} has no {BEGIN} and {END}, one each")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    where = os.path.relpath(directory, readme.parent)
    return f"{before}{BEGIN}\n{headline(results, where)}\n{END}{after}"


def headline(results, where):
    lines = [row([""] + list(COLUMNS)), row(["---"] + ["--:"] * len(COLUMNS))]
    lines.append(row(["thread-safe"] + [safety(results, names) for names in COLUMNS.values()]))
    for text, key, parameter in HEADLINE:
        measure = next(measure for measure in MEASURES if measure.key == key)
        found = of_measure(results, measure)
        lines.append(row([text] + [
            figure(measure, found, names, parameter) for names in COLUMNS.values()]))
    lines += ["", f"{conditions(results)} {missing(results)}", "",
              f"![{PICTURE}]({where}/{PICTURE}.svg)"]
    return "\n".join(lines)


def safety(results, names):
    measured = {name for _, key, _ in HEADLINE for name in results["figures"].get(key, {})}
    if not measured.intersection(names):
        return "–"
    return "yes" if is_thread_safe(results, names[0]) else "no"


def figure(measure, found, names, parameter):
    """Of the contender that stands for a column: the first of its names that was measured."""
    for name in names:
        if parameter in found.get(name, {}):
            return text_of(measure, found[name][parameter])
    return "–"


def conditions(results):
    machine, run = results["machine"], results["run"]
    peers = ", ".join(f"{name} {version}" for name, version in results["peers"].items())
    kind = "a virtual machine of " if machine["virtual"] else ""
    count = run["rounds"] * run["repetitions"]
    repetitions = f"{count} repetition{'s' * (count > 1)}"
    return (f"The best of {repetitions}; of what threads do together, the median."
            f" Measured on {machine['date']} on {machine['cpu']}, {kind}{machine['cores']} cores,"
            f" {machine['kernel']}, {machine['c++']}, {machine['swift']}; {peers}.")


if __name__ == "__main__":
    main()

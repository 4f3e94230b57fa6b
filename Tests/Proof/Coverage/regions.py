"""Reads the regions of the library's sources from the output of `llvm-cov export`."""

import json
import subprocess
from pathlib import Path

CODE = 0  # the kind of region that contains code


class Region:
    """A region is a piece of code, such as a block, that is executed as a whole."""

    def __init__(self, place, line, column):
        self.place = place  # the file, relative to the root
        self.line = line
        self.column = column
        self.text = ""  # the line in which the region begins, with » where it begins
        self.function = ""
        self.begins_function = False
        self.count = 0

    @property
    def key(self):
        """Identifies the region. The key stays the same if lines are added above the region."""
        return (self.place, self.function, self.text)


def read(export, root, folders, swift_demangle):
    """Returns all regions of the files in the given directories of `root`, in order. If a generic
    or inline function has several instances, or a macro is used several times, each of its regions
    has the largest count of all instances or uses."""
    regions = {}
    sources = {}
    functions = json.loads(Path(export).read_text())["data"][0]["functions"]
    names = demangle({function["name"] for function in functions}, swift_demangle)
    for function in functions:
        first = function["regions"][0]
        for region in function["regions"]:
            line, column, last_line, last_column, count, file, _, kind = region
            path = Path(function["filenames"][file])
            if kind != CODE or not any(path.is_relative_to(root / folder) for folder in folders):
                continue
            if (line, column) == (last_line, last_column):
                continue  # a macro that expands to a single token
            place = str(path.relative_to(root))
            lines = sources.setdefault(place, path.read_text().split("\n"))
            found = regions.setdefault((place, line, column), Region(place, line, column))
            text = lines[line - 1]
            found.text = (text[: column - 1] + "»" + text[column - 1 :]).strip()
            found.count = max(found.count, count)
            found.begins_function |= region is first
            name = names[function["name"]]
            if not found.function or name < found.function:
                found.function = name
    return [regions[key] for key in sorted(regions)]


def demangle(mangled, swift_demangle):
    """Returns readable names for the symbols, without modules and template arguments."""
    names = {}
    for name in mangled:
        names[name] = name.split(":")[-1]
    swift = subprocess.run(
        [swift_demangle, "-compact", "-simplified"], input="\n".join(names.values()), text=True,
        capture_output=True, check=True)
    plain = subprocess.run(
        ["c++filt", "-p"], input=swift.stdout, text=True, capture_output=True, check=True)
    for name, readable in zip(names, plain.stdout.split("\n")):
        readable = readable.split(" in ")[-1].removeprefix("static ")
        names[name] = readable.split("<")[0] if "::" in readable else readable
    return names


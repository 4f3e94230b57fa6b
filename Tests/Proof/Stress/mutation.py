#!/usr/bin/env python3
"""Applies a mutation to a copy of the library's sources, or checks that every mutation can be
applied."""

import argparse
import difflib
import re
import shlex
import sys
from collections import Counter
from pathlib import Path

DETECTORS = ("stress", "address", "thread", "checks")
MARKER = re.compile(r"\s*//~ ([a-z0-9_]+(?: [a-z0-9_]+)*)$")
OPENING, CLOSING = "([{", ")]}"


class Wrong(Exception):
    """Raised if the list, a marker or an operation is wrong."""


# ---- The list ------------------------------------------------------------------------------------


class Mutation:
    """A mutation, read from a line of the list."""

    def __init__(self, line, number):
        columns = re.split(r"\s{2,}", line.strip(), maxsplit=3)
        if len(columns) < 3 or columns[1] not in DETECTORS:
            raise Wrong(f"mutations:{number}: expected NAME  DETECTOR  OPERATION  [WORDS]")
        self.name, self.detector, self.operation = columns[:3]
        self.words = columns[3] if len(columns) > 3 else ""
        if self.detector == "checks" and not self.words:
            raise Wrong(f"mutations:{number}: 'checks' needs WORDS")


def read_list(path):
    """Returns the mutations of the list, in order."""
    lines = enumerate(path.read_text().splitlines(), start=1)
    mutations = [Mutation(line, number) for number, line in lines if re.match(r"[^#\s]", line)]
    for (name, detector), count in Counter((m.name, m.detector) for m in mutations).items():
        if count > 1:
            raise Wrong(f"{name} {detector} is listed twice")
    for name in {m.name for m in mutations}:
        if len({m.operation for m in mutations if m.name == name}) > 1:
            raise Wrong(f"{name} has two operations")
    return mutations


# ---- Markers -------------------------------------------------------------------------------------


class Source:
    """The lines of a source file without the markers, and the line to which each marker refers."""

    def __init__(self, path):
        self.path = path
        self.lines = []
        self.numbers = []  # the number of each line in the file
        self.markers = []  # (name, index of the line)
        pending = []
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            marker = MARKER.search(line)
            if "//~" in line and not marker:
                raise Wrong(f"{path}:{number}: not a marker: {line.strip()}")
            code = line[: marker.start()] if marker else line
            names = marker[1].split() if marker else []
            if marker and not code.strip():
                pending += names  # the marker is for the next line
                continue
            if pending and (not code.strip() or code.lstrip().startswith("//")):
                raise Wrong(f"{path}:{number}: expected a statement below the marker")
            self.markers += [(name, len(self.lines)) for name in pending + names]
            pending = []
            self.lines.append(code)
            self.numbers.append(number)
        if pending:
            raise Wrong(f"{path}: no line below the marker")

    def place(self, line):
        return f"{self.path}:{self.numbers[line]}"


def read_sources(folder):
    return [Source(path) for path in sorted(folder.rglob("*.swift"))]


def find(sources, name):
    """Returns the source and the line of the only marker with the given name."""
    places = [(source, line) for source in sources for other, line in source.markers
              if other == name]
    if len(places) != 1:
        if not places:
            raise Wrong("no marker")
        raise Wrong("several markers: " + ", ".join(s.place(line) for s, line in places))
    return places[0]


# ---- Swift ---------------------------------------------------------------------------------------


def without_comment(line):
    """Returns a line of code without its trailing comment."""
    return re.sub(r"\s*//.*", "", line)


def depth_after(code, depth=0):
    """Returns how many brackets are open after the code if `depth` brackets are open before it."""
    return depth + sum(code.count(c) for c in OPENING) - sum(code.count(c) for c in CLOSING)


def end_of_statement(lines, first):
    """Returns the number of the line after the statement that begins at line `first`."""
    depth = 0
    for number in range(first, len(lines)):
        depth = depth_after(without_comment(lines[number]), depth)
        following = lines[number + 1].strip() if number + 1 < len(lines) else ""
        if depth < 0:
            return max(number, first + 1)  # this bracket closes an outer block
        if depth == 0 and not re.match(r"(\.|&&|\|\||[?:|&{]|else\b)", following):
            if not re.search(r"[=,]$", without_comment(lines[number])):
                return number + 1
    raise Wrong("the statement has no end")


def positions(text):
    """Yields each position in the text, together with the number of brackets that are open
    there."""
    depth = 0
    for position, character in enumerate(text):
        depth -= character in CLOSING
        yield position, depth
        depth += character in OPENING


def position_of(text, part, depth=0):
    """Returns the first position at which the text contains the part while `depth` brackets are
    open."""
    for position, open_brackets in positions(text):
        if open_brackets == depth and text.startswith(part, position):
            return position
    raise Wrong(f"no '{part.strip()}' in: {text.strip()}")


def condition(text):
    """Returns the beginning and the end of a statement's condition. This is the condition of an if,
    a guard, a while or a ternary operator, the returned value, or the text in the last braces."""
    keyword = re.match(r"\s*(if|while|guard|return) ", text)
    if keyword and keyword[1] == "return":
        return keyword.end(), len(text.rstrip())
    if keyword:
        rest = text.replace("\n", " ")
        return keyword.end(), position_of(rest, " else " if keyword[1] == "guard" else " {")
    first_line = text.split("\n")[0]
    if " ? " in first_line:
        end = text.index(" ? ")
        return text.rindex("(", 0, end) + 1, end
    if first_line.rstrip().endswith("}"):
        begin = text.rindex("{") + 1
        return begin + 1, text.index("}", begin) - 1
    return len(text) - len(text.lstrip()), len(text.rstrip())


def operand(text, begin, end, number):
    """Returns the beginning and the end of one operand of a condition. Operands are counted from
    1."""
    begins, ends, skip = [begin], [], 0
    for position, depth in positions(text[begin:end]):
        separator = re.match(r", *\n? *|\s*(&&|\|\|) ", text[begin + position : end])
        if depth == 0 and separator and position >= skip:
            skip = position + separator.end()
            ends.append(begin + position)
            begins.append(begin + skip)
    ends.append(end)
    if not 1 <= number <= len(begins):
        raise Wrong(f"the condition has {len(begins)} operands: {text[begin:end]}")
    return begins[number - 1], ends[number - 1]


# ---- Operations ----------------------------------------------------------------------------------


def substitute(lines, first, change):
    """Replaces the statement that begins at line `first` with the text that `change` returns for
    it."""
    end = end_of_statement(lines, first)
    return lines[:first] + change("\n".join(lines[first:end])).split("\n") + lines[end:]


def delete(lines, first, _):
    return lines[:first] + lines[end_of_statement(lines, first) :]


def twice(lines, first, _):
    return substitute(lines, first, lambda text: text + "\n" + text)


def swap_with_next(lines, first, _):
    middle = end_of_statement(lines, first)
    end = end_of_statement(lines, middle)
    return lines[:first] + lines[middle:end] + lines[first:middle] + lines[end:]


def set_condition(value):
    def change(lines, first, number):
        def set_value(text):
            begin, end = condition(text)
            if number:
                begin, end = operand(text, begin, end, int(number))
            return text[:begin] + value + text[end:]

        return substitute(lines, first, set_value)

    return change


def set_value(lines, first, value):
    def change(text):
        return text[: position_of(text.replace("\n", " "), " = ")] + " = " + value

    return substitute(lines, first, change)


def words(argument):
    """Returns the two words of an argument. A word may be in quotes."""
    parts = shlex.split(argument)
    if len(parts) != 2:
        raise Wrong(f"expected OLD NEW: {argument}")
    return parts


def replace(lines, first, argument):
    old, new = words(argument)

    def change(text):
        if text.count(old) != 1:
            raise Wrong(f"'{old}' is {text.count(old)} times in: {text.strip()}")
        return text.replace(old, new)

    return substitute(lines, first, change)


def insert(lines, first, code):
    indentation = re.match(r" *", lines[first])[0]
    return lines[:first] + [indentation + code] + lines[first:]


def hold(lines, first, lock):
    return insert(lines, first, f"Lock.{lock}.lock(); defer {{ Lock.{lock}.unlock() }}")


# The operations, each with a pattern that its argument must match.
OPERATIONS = {
    "delete": (delete, ""),
    "twice": (twice, ""),
    "swap-with-next": (swap_with_next, ""),
    "true": (set_condition("true"), r"\d*"),
    "false": (set_condition("false"), r"\d*"),
    "value": (set_value, ".+"),
    "replace": (replace, r"\S+ .+"),
    "insert": (insert, ".+"),
    "hold": (hold, r"\w+"),
}


def mutate(source, line, mutation):
    """Returns the text of the source after the mutation."""
    name, _, argument = mutation.operation.partition(" ")
    operation, form = OPERATIONS.get(name, (None, ""))
    if not operation or not re.fullmatch(form, argument):
        raise Wrong(f"there is no operation '{mutation.operation}'")
    lines = operation(source.lines, line, argument)
    if lines == source.lines:
        raise Wrong("the operation changes nothing")
    return "\n".join(lines) + "\n"


# ---- Commands ------------------------------------------------------------------------------------


def apply(mutations, sources, name):
    mutation = next(m for m in mutations if m.name == name)
    source, line = find(sources, name)
    source.path.write_text(mutate(source, line, mutation))


def show(mutations, sources, name):
    """Prints the change that a mutation makes."""
    mutation = next(m for m in mutations if m.name == name)
    source, line = find(sources, name)
    mutated = mutate(source, line, mutation).splitlines()
    print(f"{source.place(line)}: {name}")
    for text in list(difflib.unified_diff(source.lines, mutated, n=1, lineterm=""))[3:]:
        print(text)


def check(mutations, sources):
    """Returns a message for each mutation that cannot be applied."""
    wrong = []
    known = {mutation.name: mutation for mutation in mutations}
    for mutation in known.values():
        try:
            mutate(*find(sources, mutation.name), mutation)
        except Wrong as error:
            wrong.append(f"{mutation.name}: {error}")
    for source in sources:
        for name, line in source.markers:
            if name not in known:
                wrong.append(f"{source.place(line)}: {name} is not in the list of mutations")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("list", "check", "show", "apply"))
    parser.add_argument("sources", type=Path, help="the directory of the sources")
    parser.add_argument("name", nargs="?")
    given = parser.parse_args()
    mutations = read_list(Path(__file__).with_name("mutations"))
    if given.command == "list":
        for m in mutations:
            print(m.name, m.detector, m.words)
        return 0
    sources = read_sources(given.sources)
    if given.command == "apply":
        apply(mutations, sources, given.name)
        return 0
    if given.command == "show":
        show(mutations, sources, given.name)
        return 0
    wrong = check(mutations, sources)
    for text in wrong:
        print(text, file=sys.stderr)
    print(f"{len(mutations)} mutations, {len(wrong)} errors")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Wrong as error:
        sys.exit(str(error))

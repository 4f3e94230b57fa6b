#!/usr/bin/env python3
"""Parses include/multicast.h: its functions, structs, types and constants, with their comments.

Tests use this module, so that no test contains its own list of functions or constants. As a
program, it prints the names of one kind, one per line."""

import re
import sys
from collections import namedtuple
from functools import lru_cache
from pathlib import Path

PATH = Path(__file__).resolve().parent.parent / "include/multicast.h"

# A function, or a function type. `result` and the types of `parameters` are spelled as in the
# header.
Function = namedtuple(
    "Function", "name result parameters comment section is_exported must_be_used")
Parameter = namedtuple("Parameter", "type name")
# A struct. If a field is a function or an array, its type is the whole declaration.
Struct = namedtuple("Struct", "name fields comment section")
Field = namedtuple("Field", "type name comment")
Enum = namedtuple("Enum", "name values comment section")
Constant = namedtuple("Constant", "name value comment section")
Typedef = namedtuple("Typedef", "name type comment section")

LABELS = ["Ownership", "Threads", "Reentry", "Cost", "Real time"]


class Comment:
    """A comment block. A comment consists of a text, of parameter descriptions, and of texts that
    follow labels such as "Cost"."""

    def __init__(self, lines):
        self.text, self.parameters, self.result, self.since, self.labels = "", {}, "", "", {}
        kind = key = None
        for line in lines:
            line = line.strip()
            if match := re.match(r"@param (\w+) +(.*)", line):
                kind, key = "parameters", match[1]
                self.parameters[key] = match[2]
            elif match := re.match(r"@return (.*)", line):
                kind, self.result = "result", match[1]
            elif match := re.match(r"@since (.*)", line):
                kind, self.since = None, match[1]
            elif match := re.match(rf"({'|'.join(LABELS)}): +(.*)", line):
                kind, key = "labels", match[1]
                self.labels[key] = match[2]
            elif not line:
                kind = None
            elif kind == "result":
                self.result += " " + line
            elif kind:
                getattr(self, kind)[key] += " " + line
            else:
                self.text += (" " if self.text else "") + line


def _parameter(text):
    """Splits a parameter such as `void *context` into its type and its name."""
    text = " ".join(text.split())
    match = re.fullmatch(r"(.*?[ *])(\w+)", text)
    return Parameter(match[1].strip(), match[2])


def _parameters(text):
    return [] if text.strip() in ("", "void") else [_parameter(one) for one in text.split(",")]


def _field(text, comment):
    text = " ".join(text.split())
    if match := re.search(r"\(\*(\w+)\)", text):
        return Field(text, match[1], comment)
    if match := re.fullmatch(r"(\w+) (\w+)\[\d+\]", text):
        return Field(text, match[2], comment)
    return Field(*_parameter(text), comment)


class Header:
    """The whole header. The declarations are in the header's order and indexed by their names."""

    def __init__(self, path=PATH):
        self.functions, self.function_types, self.structs = {}, {}, {}
        self.enums, self.constants, self.typedefs = {}, {}, {}
        self._section = ""
        self._comment = []
        self.usual = {}  # the meaning of parameters that a comment does not mention
        lines = iter(Path(path).read_text().splitlines())
        for line in lines:
            if match := re.match(r" \* +- (`\w+`.*?): (.*?)[;.]$", line):
                self.usual.update((name, match[2][:1].upper() + match[2][1:])
                                  for name in re.findall(r"`(\w+)`", match[1]))
            if match := re.match(r"/\* -+ (\d+\. .*?) -+ \*/", line):
                self._section = match[1]
            elif line.startswith("///"):
                self._comment.append(line[3:])
                continue
            elif re.match(r"(MULTICAST_API|typedef|static inline|enum|struct|#define MULTI)", line):
                self._declaration(line, lines)
                self._comment = []
            elif not line.startswith("#"):
                self._comment = []

    def _declaration(self, line, lines):
        comment, section = Comment(self._comment), self._section
        if match := re.match(r"#define (MULTICAST_\w+) (.*[^\\])$", line):
            self.constants[match[1]] = Constant(match[1], match[2].strip(), comment, section)
            return
        if line.startswith("#define"):
            while line.endswith("\\"):
                line = next(lines)
            return
        if match := re.match(r"(?:typedef )?struct (\w+) \{", line):
            fields = self._fields(lines)
            self.structs[match[1]] = Struct(match[1], fields, comment, section)
            return
        if match := re.match(r"enum (\w+) \{", line):
            self.enums[match[1]] = Enum(match[1], self._values(lines), comment, section)
            return
        while not re.search(r"[;{]", line):
            line += " " + next(lines).strip()
        line = re.sub(r" *//.*", "", line)
        if match := re.fullmatch(r"typedef (.*?) ?\(\*(\w+)\)\((.*)\);", line):
            self.function_types[match[2]] = Function(
                match[2], match[1], _parameters(match[3]), comment, section, False, False)
        elif match := re.fullmatch(r"typedef (\w+) (\w+);", line):
            self.typedefs[match[2]] = Typedef(match[2], match[1], comment, section)
        elif match := re.match(r"(MULTICAST_API|static inline) (MULTICAST_NODISCARD )?"
                               r"([\w ]+?[ *]+)(\w+)\((.*?)\) ?[;{]", line):
            parameters = _parameters(match[5])
            self._complete(comment, parameters)
            self.functions[match[4]] = Function(
                match[4], match[3].strip(), parameters, comment, section,
                match[1] == "MULTICAST_API", match[2] is not None)
        elif not line.startswith("typedef struct"):
            raise SystemExit(f"{PATH.name}: not understood: {line}")

    def _complete(self, comment, parameters):
        """Adds the parts that a comment leaves out, according to the rules at the top of the
        header."""
        like = re.match(r" ?Like (multicast_\w+)\(\)", comment.text)
        other = self.functions[like[1]].comment if like else Comment([])
        cost = f"as {like[1]}()" if like else "O(1)"
        for name in (one.name for one in parameters):
            if name not in comment.parameters:
                comment.parameters[name] = other.parameters.get(name) or self.usual[name]
        comment.result = comment.result or other.result
        comment.labels = {**other.labels, "Cost": cost, **comment.labels}

    def _members(self, lines):
        """Yields each declaration before the closing brace, with its comment."""
        comment, text = [], ""
        for line in lines:
            if line.startswith("}"):
                return
            line, _, behind = line.strip().partition("///<")
            if line.startswith("///"):
                comment.append(line[3:])
                continue
            text += " " + line.strip()
            if behind:
                comment.append(behind)
            if re.search(r"[;,] *$", line) and text.count("(") == text.count(")") or behind:
                yield text.strip(" ;,"), Comment(comment)
                comment, text = [], ""
        raise SystemExit(f"{PATH.name} ends inside of a type")

    def _fields(self, lines):
        return [_field(text, comment) for text, comment in self._members(lines)]

    def _values(self, lines):
        values, rest = [], []
        for line in lines:
            rest.append(line)
            if line.startswith("}"):
                break
        for match in re.finditer(r"^  (MULTICAST_\w+) = (-?\d+)", "\n".join(rest), re.MULTILINE):
            values.append(Constant(match[1], match[2], None, self._section))
        return values

    # ---- Reading the comments --------------------------------------------------------------------

    def exported(self):
        return [one for one in self.functions.values() if one.is_exported]

    def handles(self):
        """Returns the names of the structs that contain nothing but an id."""
        return [one.name for one in self.structs.values() if [f.name for f in one.fields] == ["id"]]

    def receiver(self, function):
        """Returns the type of handle that the function operates on."""
        first = function.parameters[0].type if function.parameters else ""
        if first in self.handles():
            return first
        names = [one for one in self.handles() if function.name.startswith(one + "_")]
        return max(names, key=len)

    @lru_cache(maxsize=None)
    def statuses(self, name):
        """Returns the statuses that a function can return. If the function's comment refers to
        another function, as in "Same as multicast_add()", that function's statuses are included."""
        text = self.functions[name].comment.result
        found = set(re.findall(r"MULTICAST_(?:OK|PENDING|ERROR_\w+)\b", text))
        call = r"multicast_\w+\(\)"
        for names in re.findall(rf"\b(?:Same|the same reasons) as ({call}(?: and {call})?)", text):
            for other in re.findall(r"\w+(?=\(\))", names):
                found |= self.statuses(other)
        return frozenset(found)

    def takes_memory(self, name):
        text = self.functions[name].comment.result
        others = re.findall(r"\bthe same reasons as (multicast_\w+)\(\)", text)
        return ("MULTICAST_ERROR_OUT_OF_MEMORY" in self.statuses(name) or
                "out of memory" in text or any(self.takes_memory(other) for other in others))

    def parameter_text(self, function, name):
        """Returns the description of a parameter. If the description says "As in
        multicast_invoke()", that function's description follows."""
        text = function.comment.parameters[name]
        if match := re.match(r"As in (multicast_\w+)\(\)", text):
            other = self.functions[match[1]]
            if name in other.comment.parameters:
                return text + " " + self.parameter_text(other, name)
        return text

    def may_be_null(self, function, name):
        text = self.parameter_text(function, name)
        return "not NULL" not in text and "must not be NULL" not in text and "NULL" in text


def read(path=PATH):
    header = Header(path)
    if len(header.exported()) < 80 or len(header.structs) < 18 or len(header.enums) < 3:
        raise SystemExit(f"{path} was not understood")
    return header


KINDS = {
    "exported": lambda header: [one.name for one in header.exported()],
    "inline": lambda header: [one.name for one in header.functions.values() if not one.is_exported],
    "types": lambda header: [*header.structs, *header.typedefs, *header.function_types],
    "values": lambda header: list(header.enums),
}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in KINDS:
        sys.exit(f"Usage: Tests/header.py {'|'.join(KINDS)}")
    print("\n".join(KINDS[sys.argv[1]](read())))

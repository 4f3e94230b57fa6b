"""Checks that every non-relaxed memory ordering in the sources names the program in `programs` that
tests it. The name is in a comment at the end of the line, such as `// order: frame`, or `/* order:
tail */` in C. If there is no room on the line, the comment is on the line above."""

import re

ORDERING = re.compile(r"rdering: \.(acquiring|releasing|sequentiallyConsistent)|"
                      r"__ATOMIC_(ACQUIRE|RELEASE|ACQ_REL|SEQ_CST)")
OF_FENCES = {"second_removal", "reuse", "last_reader", "begin_fencing", "end_fencing"}
NAME = re.compile(r"(?://|/\*) order: (\w+)")


def orderings(root):
    """Yields the place, the line and the name of the program for each ordering."""
    sources = root / "Sources"
    for path in (*sorted((sources / "Multicast").rglob("*.swift")),
                 *sorted((sources / "Transports" / "Local").glob("*.c"))):
        above = ""
        for number, line in enumerate(path.read_text().split("\n"), start=1):
            if ORDERING.search(line.split("//")[0]):
                name = NAME.search(line) or NAME.search(above)
                yield f"{path.relative_to(root)}:{number}", line.strip(), name and name[1]
            if "//~" not in line.strip()[:3]:  # not the marker of a mutation
                above = line


def count(root):
    return sum(1 for _ in orderings(root))


def complaints(root, programs):
    unnamed = set(programs)
    for place, line, name in orderings(root):
        if not name:
            yield f"{place}: end the line with // order: and the name of a program:\n  {line}"
        elif name not in programs:
            yield f"{place}: there is no program {name} in Tests/Proof/Model/weak/programs"
        unnamed.discard(name)
    # No ordering in the sources names the programs in OF_FENCES, since those programs test fences
    # and the order of operations.
    for name in sorted(unnamed - OF_FENCES):
        yield f"Tests/Proof/Model/weak/programs: no ordering names the program {name}"

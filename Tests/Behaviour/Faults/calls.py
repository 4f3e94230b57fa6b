#!/usr/bin/env python3
"""Generates calls to the header's functions that functions.c does not call. The arguments are valid
and are derived from the parameter types. The checks are derived from the function's name and result
type."""

import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import header  # noqa: E402

HERE = Path(__file__).resolve().parent
BY_NAME = {
    "name": "known_name", "event": "1", "payload": "payload", "size": "sizeof payload",
    "timeout_ns": "MULTICAST_FOREVER", "status": "MULTICAST_PENDING", "handle": "w->m.id",
    "context": "w", "capacity": "1", "count": "1", "index": "0", "max": "0",
}
BY_TYPE = {
    "multicast": "w->m", "multicast_token": "w->token", "multicast_queue": "w->queue",
    "multicast_lifetime": "w->lifetime", "multicast_broadcaster": "w->broadcaster",
    "multicast_delegate": "delegate_of(w)", "const multicast_delegate *": "&delegate",
    "multicast_visitor": "count_visit", "multicast_enumerator": "count_registration",
    "multicast_writer": "count_line",
}
# The arguments for a removal. They refer to the delegate that removal_begin() has added.
REMOVED = {"multicast_delegate": "other_delegate_of(w)", "multicast_token": "r.token",
           "index": "(size_t)r.count"}


def argument(known, parameter, of_removal, lines):
    kind, name = parameter.type, parameter.name
    if of_removal and (kind in REMOVED or name in REMOVED):
        return REMOVED.get(kind) or REMOVED[name]
    if kind in BY_TYPE or name in BY_NAME:
        if kind == "const multicast_delegate *":
            lines.append("const multicast_delegate delegate = delegate_of(w);")
        return BY_TYPE.get(kind) or BY_NAME[name]
    struct = kind.removeprefix("const ").removesuffix("*").strip()
    short = struct.removeprefix("multicast_")
    if re.search(rf"\b{short}_of\(world \*w\)", (HERE / "functions.h").read_text()):
        return f"{short}_of(w)"
    if f"{struct}_default" in known.functions:
        lines.append(f"{struct} {name} = {struct}_default();")
        return f"&{name}"
    if struct in known.handles():
        lines.append(f"{struct} {name}[1] = {{{{77}}}};")
        return name
    if kind == "multicast_status *":
        lines.append(f"multicast_status {name} = MULTICAST_ERROR_STATE;")
        return f"&{name}"
    sys.exit(f"{Path(__file__).name} has no argument for `{kind}{name}`: add one, or a CALL")


def removal(call, lines):
    return ["removal r = removal_begin(w);", *lines, f"CHECK_OK({call});",
            "return removal_end(w, &r);"]


def ending(known, function, call, lines):
    kind, name = function.parameters[0].type, function.parameters[0].name
    short = kind.removeprefix("multicast_")
    call = call.replace(BY_TYPE[kind], name, 1)
    return [f"{kind} {name} = {short}_to_end(w);", *lines, "int releases = LOAD(w->releases);",
            f"CHECK_OK({call});", f"CHECK(!{kind}_is_valid({name}));",
            "CHECK_EQ(LOAD(w->releases), releases + 1);", "return 0;"]


def counting(call, lines):
    return [*lines, "int calls = LOAD(w->calls);", f"int64_t result = {call};",
            "if (result < 0) return result;", "CHECK(result > 0);",
            "CHECK_EQ(LOAD(w->calls) - calls, result);", "return 0;"]


def call_of(known, function):
    kinds = {one.type for one in function.parameters}
    names = {one.name for one in function.parameters}
    result, name = function.result, function.name
    is_created = result in known.handles() and function.must_be_used and "create" in name
    of_removal = "remove" in name and result == "multicast_status"
    lines = []
    arguments = [argument(known, one, of_removal, lines) for one in function.parameters]
    call = f"{name}({', '.join(arguments)})"
    if of_removal:
        lines = removal(call, lines)
    elif re.search(r"_(destroy|end)(_|$)", name) and result == "multicast_status":
        lines = ending(known, function, call, lines)
    elif result == "int64_t" and ("payload" in names or kinds & set(known.function_types)):
        lines = counting(call, lines)
    elif is_created:
        lines.append(f"return keep(w, {call}.id);")
    elif result == "multicast_status":
        lines.append(f"return {call};")
    elif result == "int64_t":
        lines += [f"int64_t result = {call};", "return result < 0 ? result : 0;"]
    elif result in known.handles():
        lines += [f"CHECK({call}.id != 0);", "return 0;"]
    else:  # a bool must be true, a pointer not NULL, a number not 0
        lines += [f"CHECK({call});", "return 0;"]
    memory, rounds = "TAKES_NONE", 20 if of_removal else 5
    if known.takes_memory(name):
        # A lookup that cannot allocate a thread record uses a lock, so the call may succeed.
        memory, rounds = "MAY_COPE" if "name" in names else "FAILS", 80 if is_created else 10
    head = f"CALL{'_FIRST' if is_created else ''}({name}, \"\", {memory}, {rounds})"
    return head + " {\n  " + "\n  ".join(lines) + "\n}\n"


def main():
    known = header.read()
    by_hand = re.findall(r"^CALL(?:_FIRST)?\((\w+)", (HERE / "functions.c").read_text(), re.MULTILINE)
    unknown = [name for name in by_hand if name not in known.functions]
    if unknown or len(by_hand) < 40:
        sys.exit(f"functions.c has calls of what is no function: {unknown}, or was not understood")
    calls = [call_of(known, one) for one in known.exported() if one.name not in by_hand]
    Path(sys.argv[1]).write_text(
        '/* Made by Tests/Behaviour/Faults/calls.py. */\n\n#include "functions.h"\n\n' + "\n".join(calls))


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] == "--help":
        sys.exit("Usage: Tests/Behaviour/Faults/calls.py OUTPUT.c")
    main()

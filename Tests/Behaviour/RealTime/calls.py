#!/usr/bin/env python3
"""Generates the rows that calls.c includes. There is one row for each function that the header
marks "Real time: yes" or "prepared", and one for a function that frees memory. calls.c prepares the
arguments."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import header  # noqa: E402

GIVES_BACK_MEMORY = "multicast_destroy"
BY_NAME = {"name": '"name"', "event": "1", "payload": "payload", "size": "sizeof payload",
           "context": "NULL", "out": "NULL", "capacity": "0", "max": "0", "status": "0", "index": "0"}
BY_TYPE = {"multicast": "target", "multicast_token": "token", "multicast_queue": "queue",
           "multicast_lifetime": "lifetime", "multicast_broadcaster": "broadcaster",
           "multicast_visitor": "visit"}


def row(known, function):
    """Returns a row with the name of the function and an expression that must be true."""
    arguments = []
    for one in function.parameters:
        if one.type not in BY_TYPE and one.name not in BY_NAME:
            sys.exit(f"{Path(__file__).name} has no argument for `{one.type} {one.name}`: add one")
        arguments.append(BY_TYPE.get(one.type) or BY_NAME[one.name])
    call = f"{function.name}({', '.join(arguments)})"
    if function.result in known.handles():
        call += ".id == 0"  # because no call is running
    elif function.name == "multicast_current_name":
        call += " == NULL"  # for the same reason
    elif function.result == "multicast_status":
        call += " == MULTICAST_OK"
    elif function.result == "int64_t":
        # Functions that return a count return more than 0, because the multicast has two delegates,
        # the name has an observer, and a call is waiting in the queue.
        call += " == 0" if "NULL" in arguments[:1] else " > 0"
    return f'ROW({function.name}, {call})'


def main():
    known = header.read()
    functions = [one for one in known.exported() if one.name == GIVES_BACK_MEMORY or
                 one.comment.labels.get("Real time", "").startswith(("yes", "prepared"))]
    Path(sys.argv[1]).write_text("".join(row(known, one) + "\n" for one in functions))


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] == "--help":
        sys.exit("Usage: Tests/Behaviour/RealTime/calls.py OUTPUT.inc")
    main()

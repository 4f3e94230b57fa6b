#!/usr/bin/env python3
"""Generates a call to each function that has a handle parameter. All arguments other than the
handle are valid."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import header  # noqa: E402

BY_NAME = {"name": '"name"', "prefix": '""', "timeout_ns": "MULTICAST_FOREVER",
           "payload": "NULL", "event": "0", "context": "NULL", "count": "1", "capacity": "1"}
BY_TYPE = {
    "multicast_delegate": "never_called", "const multicast_delegate *": "&never_called",
    "multicast_delegate *": "&handle_listed", "multicast_token *": "&handle_token", "size_t": "0",
    "const multicast_add_options *": "&handle_options", "multicast_status *": "&handle_status",
    "multicast_visitor": "never_visit", "multicast_enumerator": "never_enumerate",
    "multicast_writer": "never_write", "const multicast_watch *": "NULL",
    "const multicast_transport *": "NULL",
}
# Functions that accept 0 in place of a multicast.
WITHOUT = {"multicast_set_watch"}
HEAD = """\
/* Made by Tests/Behaviour/Interface/handles.py. */

#include "handles.h"

"""


def argument(parameter):
    kind, name = parameter.type, parameter.name
    if name in BY_NAME or kind in BY_TYPE:
        return BY_NAME.get(name) or BY_TYPE[kind]
    struct = kind.removeprefix("const ").removesuffix(" *")
    return f"&({struct}){{.struct_size = sizeof({struct})}}"


def call_of(known, function):
    """Returns a C expression that calls the function and whose value is its status."""
    arguments = [f"({function.parameters[0].type}){{id}}", *map(argument, function.parameters[1:])]
    call = f"{function.name}({', '.join(arguments)})"
    if function.result == "bool":
        return f"{call} ? MULTICAST_OK : MULTICAST_ERROR_INVALID_HANDLE"
    if function.result == "int":
        return f"{call} == -1 ? MULTICAST_ERROR_INVALID_HANDLE : MULTICAST_OK"
    if function.result == "const uint32_t *":
        return f"multicast_has_listeners({call}) ? MULTICAST_OK : MULTICAST_ERROR_INVALID_HANDLE"
    if function.result in known.handles():
        return f"{call}.id == 0 ? multicast_create_error() : MULTICAST_OK"
    return call


def main():
    known = header.read()
    text, rows = [HEAD], []
    for one in known.exported():
        if not one.parameters or one.parameters[0].type not in known.handles():
            continue
        text.append(f"static int64_t call_{one.name}(uint64_t id) {{\n"
                    f"  return {call_of(known, one)};\n}}\n")
        kind = one.parameters[0].type.removeprefix("multicast_").upper()
        adds = any(each.type == "const multicast_add_options *" for each in one.parameters)
        rows.append(f'    {{"{one.name}", OF_{kind}, {int(adds)}, {int(one.name in WITHOUT)}, '
                    f"call_{one.name}}},\n")
    text.append(f"const handle_call handle_calls[] = {{\n{''.join(rows)}}};\n"
                "const size_t handle_call_count = sizeof handle_calls / sizeof *handle_calls;\n")
    Path(sys.argv[1]).write_text("\n".join(text))


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] == "--help":
        sys.exit("Usage: Tests/Behaviour/Interface/handles.py OUTPUT.c")
    main()

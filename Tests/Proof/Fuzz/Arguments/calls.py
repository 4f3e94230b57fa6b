#!/usr/bin/env python3
"""Generates a call to each of the header's functions with arbitrary arguments. Each call must
return one of the statuses that the function's comment in the header names. The files
expectations*.c may contain two kinds of handwritten functions:

    void after_FUNCTION(...)   further expectations, given the arguments and the result
    void call_FUNCTION(void)   instead of the call"""

import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2]))
import header  # noqa: E402

HEAD = """\
/* Made by Tests/Proof/Fuzz/Arguments/calls.py. */

#include "callees.h"
#include "calls.h"
#include "expect.h"
#include "history.h"
#include "options.h"
#include "payloads.h"
#include "values.h"
"""
BY_NAME = {"event": "any_uint32()", "timeout_ns": "any_timeout()", "handle": "any_handle()",
           "name": "any_name(broadcaster)", "context": "any_context()"}
BY_TYPE = {
    "multicast": "{any_handle()}", "multicast_queue": "{any_handle()}",
    "multicast_lifetime": "{any_handle()}", "multicast_token": "any_token()",
    "multicast_broadcaster": "any_broadcaster()", "multicast_delegate": "any_delegate()",
    "const multicast_delegate *": "any_delegates(&count)",
    "multicast_visitor": "any_byte() < 16 ? NULL : callee_visit",
    "multicast_enumerator": "any_byte() < 16 ? NULL : callee_enumerate",
    "multicast_writer": "callee_write", "size_t": "any_size()", "int64_t": "any_number()",
    "const multicast_add_options *": "any_options()",
    "const multicast_create_options *": "any_create_options()",
    "const multicast_broadcaster_options *": "any_broadcaster_options()",
    "const multicast_invocation *": "any_invocation()",
    "const multicast_transport *": "any_transport()", "const multicast_watch *": "any_watch()",
}
# A transport may return any error status. In this target, it returns only this error.
MORE = {"multicast_broadcaster_notify": ["MULTICAST_ERROR_TIMEOUT"],
        "multicast_broadcaster_notify_with": ["MULTICAST_ERROR_TIMEOUT"]}
# In this target, the only request that the system can refuse is to start a thread. Only the
# handwritten call_multicast_queue_start expects this refusal.
LESS = {"MULTICAST_ERROR_SYSTEM"}
# The factors by which these functions are called more often than others.
OFTEN = {"multicast_create": 2, "multicast_create_with": 2, "multicast_add": 3,
         "multicast_invoke": 3, "multicast_invoke_with": 2, "multicast_queue_create": 2,
         "multicast_queue_run": 2, "multicast_broadcaster_register": 2,
         "multicast_broadcaster_notify": 2, "multicast_broadcaster_attach": 2}


def variable(known, function, parameter):
    """Returns the lines that declare an argument, in their order of evaluation."""
    kind, name = parameter.type, parameter.name
    names = {one.name for one in function.parameters}
    declared = f"{kind}{'' if kind.endswith('*') else ' '}{name}"
    if name == "payload":
        return ["const size_t size = any_byte() % 80;",
                "const void *payload = any_byte() < 16 ? NULL : any_bytes(size);"]
    if (name == "size" and "payload" in names) or name == "count":
        return []
    if name == "capacity":
        return ["const size_t capacity = any_room();"]
    if name == "context" and {one.type for one in function.parameters} & set(known.function_types):
        return ["void *context = (void *)&callee_functions;"]
    if kind == "const multicast_delegate *":
        return ["size_t count;", f"{declared} = any_delegates(&count);"]
    if name in BY_NAME or kind in BY_TYPE:
        return [f"{declared} = {BY_NAME.get(name) or BY_TYPE[kind]};"]
    struct = kind.removeprefix("const ").removesuffix("*").strip()
    if kind.startswith("const ") and struct in known.structs:
        return [f"{declared} = any_struct(sizeof *{name});"]
    if name == "out" and "capacity" in names:
        return [f"{declared} = any_byte() < 16 ? NULL : any_bytes(capacity * sizeof *{name});"]
    if name == "out" and struct in known.handles():
        return [f"{struct} written[FEW] = {{{{0}}}};",
                f"{declared} = any_byte() < 16 ? NULL : written;"]
    if name == "out" and struct in known.structs:
        return [f"{declared} = any_output(sizeof *{name});"]
    if name == "out" and kind == "multicast_status *":
        return ["multicast_status written = MULTICAST_ERROR_STATE;",
                f"{declared} = any_byte() < 32 ? NULL : &written;"]
    sys.exit(f"{Path(__file__).name} makes no argument for `{declared}`: say how, or write a call")


def call_of(known, function, after):
    name, result = function.name, function.result
    lines = []
    # The buffer `out` must be declared after its `capacity`.
    for one in sorted(function.parameters, key=lambda one: one.name == "out"):
        lines += variable(known, function, one)
    arguments = ", ".join(one.name for one in function.parameters)
    note = f'NOTE("{name}'
    if function.parameters and function.parameters[0].type in known.handles():
        note += f'(%llx)", (long long){function.parameters[0].name}.id'
    else:
        note += '()"'
    lines.append(note + ");")
    type_of_result = result + ("" if result.endswith("*") else " ")
    lines.append(f"const {type_of_result.removeprefix('const ')}result = {name}({arguments});")
    statuses = (known.statuses(name) - LESS) | set(MORE.get(name, []))
    allowed = ", ".join(sorted(statuses - {"MULTICAST_OK"}) + ["MULTICAST_OK"])
    if result in ("multicast_status", "int64_t"):
        kind = "STATUS" if result == "multicast_status" else "COUNT"
        lines.append(f"EXPECT_{kind}(result, {allowed});")
    elif result in known.handles():
        if "create" in name:
            lines.append("keep_handle(result.id);")
            lines.append("EXPECT((result.id != 0) == (multicast_create_error() == MULTICAST_OK), "
                         '"a creation without a reason");')
    elif "*" in result:
        lines.append('EXPECT(result != NULL && result[0] != 0, "no text");')
    if re.search(r"_(destroy|end)(_|$)", name):
        kind = function.parameters[0].type
        lines.append(f"EXPECT_EQ({kind}_is_valid({function.parameters[0].name}), "
                     "result == MULTICAST_ERROR_STATE);")
    elif "token_remove" in name:
        lines.append('EXPECT(!multicast_token_is_valid(token), "removed and live");')
    if any(one.name == "out" and one.type == "multicast_token *" for one in function.parameters):
        if "capacity" not in arguments:
            number = "count" if "count" in arguments else "1"
            lines += [f"for (size_t i = 0; out != NULL && i < {number} && i < FEW; ++i) {{",
                      "  EXPECT_EQ(out[i].id != 0, result == MULTICAST_OK);",
                      "  keep_handle(out[i].id);", "}"]
    if name in after:
        lines.append(f"after_{name}({', '.join(filter(None, [arguments, 'result']))});")
    else:
        lines.append("(void)result;")
    return f"static void call_{name}(void) {{\n  " + "\n  ".join(lines) + "\n}\n"


def main():
    known = header.read(sys.argv[2])
    by_hand = "".join(path.read_text() for path in sorted(HERE.glob("expectations*.c")))
    after = re.findall(r"^void after_(\w+)\(", by_hand, re.MULTILINE)
    instead = re.findall(r"^void call_(\w+)\(void\)", by_hand, re.MULTILINE)
    # Functions added in later versions come last, so that existing inputs keep their meaning.
    functions = sorted(known.exported(), key=lambda one: one.comment.since)
    text, calls = [HEAD], []
    for name in instead:
        text.append(f"void call_{name}(void);")
    for name in after:
        function = known.functions[name]
        types = ", ".join([*(one.type for one in function.parameters), function.result])
        text.append(f"void after_{name}({types} result);")
    for function in functions:
        if function.name not in instead:
            text.append(call_of(known, function, after))
        calls += ["call_" + function.name] * OFTEN.get(function.name, 1)
    calls += [f"call_{name}" for name in instead if name not in known.functions]
    rows = ",\n    ".join(calls)
    text.append(f"const any_call any_calls[] = {{\n    {rows}}};\n"
                "const int any_call_count = sizeof any_calls / sizeof any_calls[0];\n")
    Path(sys.argv[1]).write_text("\n".join(text))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("Usage: Tests/Proof/Fuzz/Arguments/calls.py OUTPUT.c HEADER.h")
    main()

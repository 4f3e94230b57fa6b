#!/usr/bin/env python3
"""Generates a C source that uses all initializers and inline functions of the header. It compiles
only if the layouts and constants match Tests/Languages/Interop/abi/multicast.abi.xml."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import header  # noqa: E402

ABI = Path(__file__).resolve().parents[2] / "Languages/Interop/abi/multicast.abi.xml"
HEAD = """\
/* Made by Tests/Behaviour/Interface/layout.py. */

#include <assert.h>
#include <stddef.h>

#include "multicast.h"

#if defined(__cplusplus)
#define STATIC_ASSERT(condition) static_assert(condition, #condition)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define STATIC_ASSERT(condition) _Static_assert(condition, #condition)
#else
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define STATIC_ASSERT(condition) typedef char JOIN(assertion_, __LINE__)[(condition) ? 1 : -1]
#endif
"""
TAIL = """
/* The preprocessor can compare versions. */
#if MULTICAST_VERSION < 0x10000
#error "MULTICAST_VERSION is that of version 1 at least"
#endif
"""


def layout(known):
    """Returns assertions about the layouts of all structs and the sizes of numeric types."""
    abi = ElementTree.parse(ABI).getroot()
    size = {one.get("id"): one.get("size-in-bits") for one in abi.iter() if one.get("size-in-bits")}
    base = {one.get("id"): one.get("type-id") for one in abi.iter("typedef-decl")}
    accepted = set()
    for struct in abi.iter("class-decl"):
        name = struct.get("name")
        accepted.add(name)
        yield f"sizeof({name}) == {int(struct.get('size-in-bits')) // 8}"
        for member in struct.iter("data-member"):
            accepted.add((name, member.find("var-decl").get("name")))
            yield (f"offsetof({name}, {member.find('var-decl').get('name')}) == "
                   f"{int(member.get('layout-offset-in-bits')) // 8}")
    for typedef in abi.iter("typedef-decl"):
        name, kind = typedef.get("name"), typedef.get("type-id")
        if name in known.typedefs:
            accepted.add(name)
            while kind in base:
                kind = base[kind]
            yield f"sizeof({name}) == {int(size[kind]) // 8}"
    # The numeric types are not enums, so that -fshort-enums does not change their size.
    for one in known.typedefs.values():
        yield f"({one.name})-1 " + ("== UINT32_MAX" if one.type == "uint32_t" else "< 0")
    declared = {*known.structs, *known.typedefs}
    declared |= {(one.name, field.name) for one in known.structs.values() for field in one.fields}
    if declared - accepted:
        sys.exit(f"Not accepted yet: {sorted(map(str, declared - accepted))}. To accept the ABI: "
                 "Tests/Languages/Interop/abi/run LIBRARY --accept")


def main():
    known = header.read()
    lines = [HEAD]
    lines += [f"STATIC_ASSERT({one});" for one in layout(known)]
    numbers = re.findall(r"^<!-- (\w+) = (\w+|-\d+) -->$", ABI.read_text(), re.MULTILINE)
    lines += [f"STATIC_ASSERT({name} == {number});" for name, number in numbers]
    if len(lines) < 150 or len(numbers) < 25:
        sys.exit(f"{ABI.name} was not understood")
    lines.append(TAIL)
    for function in known.functions.values():
        if function.is_exported:
            continue
        kind, name = function.result, function.name
        if kind in known.structs:
            lines += [f"extern {kind} layout_of_{kind};",
                      f"{kind} layout_of_{kind} = {kind.upper()}_INIT;"]
        parameters = ", ".join(f"{one.type} {one.name}" for one in function.parameters) or "void"
        arguments = ", ".join(one.name for one in function.parameters)
        lines += [f"{kind} layout_uses_{name}({parameters});",
                  f"{kind} layout_uses_{name}({parameters}) {{ return {name}({arguments}); }}"]
    lines += [f"extern {one} layout_of_{one};\n{one} layout_of_{one} = MULTICAST_NONE;"
              for one in known.handles()]
    Path(sys.argv[1]).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] == "--help":
        sys.exit("Usage: Tests/Behaviour/Interface/layout.py OUTPUT.c")
    main()

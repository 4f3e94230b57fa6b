"""The structs and functions of the module are those of the header."""

import ctypes
import re
import sys
from pathlib import Path

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import header  # noqa: E402

from multicast import Overflow, Status, _library, version  # noqa: E402

KNOWN = header.read()
NUMBERS = {
    "uint32_t": ctypes.c_uint32, "int32_t": ctypes.c_int32, "uint64_t": ctypes.c_uint64,
    "int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t, "bool": ctypes.c_bool,
    "int": ctypes.c_int, "void": None, "const char *": ctypes.c_char_p}


def of(kind):
    """The type of ctypes that a type of the header has here. Handles are integers."""
    if kind in NUMBERS:
        return NUMBERS[kind]
    if kind in KNOWN.handles():
        return ctypes.c_uint64
    if kind in KNOWN.typedefs:
        return of(KNOWN.typedefs[kind].type)
    if kind in _library.STRUCTS:
        return _library.STRUCTS[kind]
    if kind == "multicast_function":
        return _library.Function
    return None


def pointer_may_be(kind, chosen):
    """Any pointer may be declared as void *, and one to a struct or a handle as that."""
    if chosen is ctypes.c_void_p:
        return True
    target = of(re.sub(r"^const | *\*$", "", kind))
    return target is not None and chosen is ctypes.POINTER(target)


def function_is(declaration, chosen):
    """A field that is a function: `void (*release)(void *context)`."""
    if chosen is ctypes.c_void_p:
        return True
    result, parameters = re.fullmatch(r"(.*?)\(\*\w+\)\((.*)\)", declaration).groups()
    kinds = [ctypes.c_void_p if "*" in one else of(one.rsplit(" ", 1)[0])
             for one in (each.strip() for each in parameters.split(","))]
    return chosen._restype_ is of(result.strip()) and list(chosen._argtypes_) == kinds


@pytest.mark.parametrize("name", _library.STRUCTS)
def test_struct_has_the_fields_of_the_header(name):
    fields, ours = KNOWN.structs[name].fields, _library.STRUCTS[name]._fields_
    assert [one.name for one in fields] == [one[0] for one in ours]
    for field, (_, chosen) in zip(fields, ours):
        if "(*" in field.type:
            assert function_is(field.type, chosen), field.name
        elif of(field.type) is not None:
            assert chosen is of(field.type), field.name
        else:
            assert "*" in field.type and pointer_may_be(field.type, chosen), field.name


@pytest.mark.parametrize("name", _library.FUNCTIONS)
def test_function_has_the_prototype_of_the_header(name):
    result, parameters = _library.FUNCTIONS[name]
    declared = KNOWN.functions[name]
    assert result is of(declared.result)
    assert len(parameters) == len(declared.parameters)
    for chosen, parameter in zip(parameters, declared.parameters):
        kind = of(parameter.type)
        assert chosen is kind if kind is not None else pointer_may_be(parameter.type, chosen), \
            parameter.name


def test_callbacks_have_the_prototype_of_the_header():
    declared = KNOWN.function_types["multicast_function"]
    kinds = [ctypes.c_void_p if "*" in one.type else of(one.type) for one in declared.parameters]
    assert list(_library.Function._argtypes_) == kinds
    assert _library.Function._restype_ is None


def test_numbers_are_those_of_the_header():
    statuses = {one.name.replace("MULTICAST_ERROR_", "").replace("MULTICAST_", ""): int(one.value)
                for one in KNOWN.enums["multicast_status_code"].values}
    assert {one.name: one.value for one in Status} == statuses
    policies = {one.name.replace("MULTICAST_OVERFLOW_", ""): int(one.value)
                for one in KNOWN.enums["multicast_overflow_code"].values}
    assert {one.name: one.value for one in Overflow}.items() <= policies.items()
    for name in ("ONCE", "LATEST"):
        assert int(KNOWN.constants[f"MULTICAST_{name}"].value.rstrip("u"), 16) == \
            getattr(_library, name)


def test_version_is_that_of_the_header():
    numbers = [KNOWN.constants[f"MULTICAST_VERSION_{part}"].value
               for part in ("MAJOR", "MINOR", "PATCH")]
    assert version() == ".".join(numbers)

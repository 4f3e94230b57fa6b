"""The C library: its structs and functions, as include/multicast.h declares them.

Tests/Python/test_layout.py compares each name, type and order here with the header. A handle is
its 64-bit integer, as the header allows.
"""

import ctypes
import os
from ctypes import POINTER, Structure, c_bool, c_char_p, c_int, c_int32, c_int64, c_size_t
from ctypes import c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

Function = ctypes.CFUNCTYPE(None, c_void_p, c_uint32, c_void_p, c_size_t)
Release = ctypes.CFUNCTYPE(None, c_void_p)
ReleasePayload = ctypes.CFUNCTYPE(None, c_void_p, c_size_t)


class Delegate(Structure):
    _fields_ = [("function", Function), ("context", c_void_p)]


class AddOptions(Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("flags", c_uint32), ("priority", c_int32),
        ("reserved", c_uint32), ("events", c_uint64), ("lifetime", c_uint64), ("queue", c_uint64),
        ("release", Release), ("lock", c_void_p), ("unlock", c_void_p), ("label", c_char_p)]


class QueueOptions(Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("flags", c_uint32), ("capacity", c_size_t),
        ("overflow", c_uint32), ("reserved", c_uint32), ("thread_name", c_char_p),
        ("stack_size", c_size_t), ("wake", c_void_p), ("wake_context", c_void_p),
        ("payload_size", c_size_t), ("label", c_char_p)]


class QueueStats(Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("flags", c_uint32), ("pending", c_uint64),
        ("queued", c_uint64), ("delivered", c_uint64), ("refused", c_uint64),
        ("dropped", c_uint64), ("cancelled", c_uint64), ("coalesced", c_uint64),
        ("highest", c_uint64)]


class Invocation(Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("flags", c_uint32), ("event", c_uint32),
        ("reserved", c_uint32), ("payload", c_void_p), ("size", c_size_t), ("copy", c_void_p),
        ("release", ReleasePayload), ("timeout_ns", c_uint64)]


class CreateOptions(Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("reentry", c_uint32), ("label", c_char_p),
        ("replay", c_uint32), ("flags", c_uint32), ("context", c_void_p),
        ("listeners_changed", c_void_p),
        ("release", c_void_p), ("lock_context", c_void_p), ("unlock_context", c_void_p),
        ("release_context", c_void_p)]


# The struct that the header calls so, for the test.
STRUCTS: "dict[str, type[Structure]]" = {
    "multicast_delegate": Delegate,
    "multicast_add_options": AddOptions,
    "multicast_queue_options": QueueOptions,
    "multicast_queue_stats": QueueStats,
    "multicast_invocation": Invocation,
    "multicast_create_options": CreateOptions,
}
ONCE, LATEST = 0x1, 0x4
FOREVER = 2**64 - 1

# The result and the parameters of each function that this package calls.
FUNCTIONS: "dict[str, tuple[Any, list[Any]]]" = {
    "multicast_create_with": (c_uint64, [POINTER(CreateOptions)]),
    "multicast_destroy_within": (c_int32, [c_uint64, c_uint64]),
    "multicast_is_valid": (c_bool, [c_uint64]),
    "multicast_create_error": (c_int32, []),
    "multicast_add": (c_int32, [c_uint64, Delegate, POINTER(AddOptions), POINTER(c_uint64)]),
    "multicast_invoke_with": (c_int64, [c_uint64, POINTER(Invocation), c_void_p]),
    "multicast_token_remove_within": (c_int32, [c_uint64, c_uint64]),
    "multicast_token_pause": (c_int32, [c_uint64]),
    "multicast_token_resume": (c_int32, [c_uint64]),
    "multicast_lifetime_create": (c_uint64, []),
    "multicast_lifetime_end_within": (c_int32, [c_uint64, c_uint64]),
    "multicast_ended_within": (c_int32, [c_uint64, c_uint64]),
    "multicast_queue_create": (c_uint64, [POINTER(QueueOptions)]),
    "multicast_queue_destroy_within": (c_int32, [c_uint64, c_uint64]),
    "multicast_queue_run": (c_int64, [c_uint64, c_size_t]),
    "multicast_queue_clear": (c_int64, [c_uint64]),
    "multicast_queue_wait": (c_int64, [c_uint64, c_uint64]),
    "multicast_queue_fd": (c_int, [c_uint64]),
    "multicast_queue_get_stats": (c_int32, [c_uint64, POINTER(QueueStats)]),
    "multicast_broadcaster_create": (c_uint64, [c_void_p]),
    "multicast_broadcaster_destroy_within": (c_int32, [c_uint64, c_uint64]),
    "multicast_broadcaster_default": (c_uint64, []),
    "multicast_broadcaster_multicast": (c_uint64, [c_uint64, c_char_p]),
    "multicast_broadcaster_register": (
        c_int32, [c_uint64, c_char_p, Delegate, POINTER(AddOptions), POINTER(c_uint64)]),
    "multicast_broadcaster_notify_with": (
        c_int64, [c_uint64, c_char_p, POINTER(Invocation), c_void_p]),
    "multicast_version": (c_uint32, []),
    "multicast_status_name": (c_char_p, [c_int64]),
    "multicast_status_message": (c_char_p, [c_int64]),
}


def _load() -> ctypes.CDLL:
    """The library beside this file, or, for a program that has one, that of MULTICAST_LIBRARY."""
    beside = Path(__file__).with_name("libmulticast.so.1")
    library = ctypes.CDLL(os.environ.get("MULTICAST_LIBRARY") or str(beside))
    for name, (result, parameters) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    return library


lib = _load()


def version() -> str:
    """The version of the library that is loaded, such as "1.1.0"."""
    number = int(lib.multicast_version())
    return f"{number >> 16}.{number >> 8 & 255}.{number & 255}"


def keep_forever(callback: Any) -> Any:
    """A callback that C code may still call while the interpreter ends: it is never freed."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))
    return callback


def nanoseconds(timeout: "float | None") -> int:
    """A time limit in seconds, as the library takes it. None: no limit."""
    if timeout is None:
        return FOREVER
    return min(max(0, round(timeout * 1e9)), FOREVER)

"""Payloads on their way through the library.

Bytes go as bytes, so that C code can read them, and arrive as bytes. None goes as NULL. Any other
object stays here, under a number; what goes is a block of 16 bytes with a mark and that number.
"""

import ctypes
import itertools
import os
import struct
from typing import Any

from ._calls import Collector, local
from ._library import Invocation, ReleasePayload, keep_forever

_MARK = os.urandom(8)
_SIZE = 16
_numbers = itertools.count(1)
# The object, and the block, which the library reads until it releases it.
_objects: "dict[int, tuple[Any, Any]]" = {}


def _number(address: int) -> "int | None":
    block = ctypes.string_at(address, _SIZE)
    return int(struct.unpack_from("=Q", block, 8)[0]) if block.startswith(_MARK) else None


def _released(address: int, size: int) -> None:
    number = _number(address)
    if number is not None:
        _objects.pop(number, None)


release = keep_forever(ReleasePayload(_released))


def send(payload: Any, event: int, collector: Collector) -> "tuple[Invocation, Any]":
    """An invocation that carries the payload, and what has to live until it returns."""
    how = Invocation(struct_size=ctypes.sizeof(Invocation), event=event)
    if payload is None:
        return how, None
    if type(payload) is bytes:
        bytes_sent = ctypes.c_char_p(payload)
        how.payload = ctypes.cast(bytes_sent, ctypes.c_void_p)
        how.size = len(payload)
        return how, bytes_sent
    number = collector.number = next(_numbers)
    block = ctypes.create_string_buffer(_MARK + struct.pack("=Q", number), _SIZE)
    _objects[number] = payload, block
    how.payload = ctypes.addressof(block)
    how.size = _SIZE
    how.release = release
    return how, block


def receive(address: "int | None", size: int) -> Any:
    """What was sent: the object itself, or a copy of the bytes."""
    if address is None:
        return None
    if size == _SIZE:
        number = _number(address)
        if number is not None and number in _objects:
            return _objects[number][0]
    return ctypes.string_at(address, size)


def _forget_queued() -> None:
    """In the child of a fork: queued calls are the parent's, and so are their payloads.

    Those of this thread's invocations are in use.
    """
    used, collector = set(), local.collector
    while collector is not None:
        used.add(collector.number)
        collector = collector.outer
    for number in list(_objects):
        if number not in used:
            del _objects[number]


os.register_at_fork(after_in_child=_forget_queued)

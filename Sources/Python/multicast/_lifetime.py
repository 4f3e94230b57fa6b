"""Lifetimes, and a base class for objects that end explicitly or with their last reference."""

import time
from typing import NoReturn, TypeVar

from . import _core
from ._errors import Status, created, nanoseconds

O = TypeVar("O", bound="Owner")


def wait_ended(timeout: "float | None", *handles: int) -> bool:
    """Waits until the ended objects' calls have returned. Returns False if it cannot wait."""
    end = None if timeout is None else time.monotonic() + timeout
    return Status.PENDING.value not in [
        _core.wait(False, one, nanoseconds(None if end is None else end - time.monotonic()))
        for one in handles]


def cannot_copy(self: object, *_: object) -> NoReturn:
    """The __reduce__ of objects that cannot be copied."""
    raise TypeError(f"a {type(self).__name__} cannot be copied or pickled: make a new one")


class Owner:
    """Owns one of the library's objects."""

    _handle = 0
    __reduce__ = cannot_copy

    def _end(self) -> None:
        raise NotImplementedError

    def _finish(self, timeout: "float | None" = None) -> bool:
        self._end()
        return wait_ended(timeout, self._handle)

    def __enter__(self: O) -> O:
        return self

    def __exit__(self, *_: object) -> None:
        self._finish()

    def __del__(self) -> None:
        self._end()

    def __bool__(self) -> bool:
        return True


class Lifetime(Owner):
    """A group of registrations that are removed when it ends, or at the end of a `with` block."""

    def __init__(self) -> None:
        self._handle = created(_core.lifetime_create(0))

    @property
    def is_valid(self) -> bool:
        """True until the lifetime has ended."""
        return _core.lifetime_count(self._handle) >= 0

    def __len__(self) -> int:
        return max(0, _core.lifetime_count(self._handle))

    def end(self, timeout: "float | None" = None) -> bool:
        """Removes all registrations of the lifetime, and waits like Token.remove()."""
        return self._finish(timeout)

    def _end(self) -> None:
        _core.end_lifetime(self._handle)

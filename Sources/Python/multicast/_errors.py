"""The library's status codes, and the exceptions raised for them and for delegates' failures."""

import sys
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn, Sequence

from . import _core


class Status(Enum):
    """The library's result codes."""

    OK = 0
    PENDING = 1
    INVALID_HANDLE = -10
    INVALID_ARGUMENT = -20
    NOT_FOUND = -30
    OUT_OF_MEMORY = -40
    LIMIT = -50
    QUEUE_FULL = -60
    TIMEOUT = -70
    STATE = -80
    SYSTEM = -90


class MulticastError(RuntimeError):
    """The library has refused a call. INVALID_HANDLE: the object was destroyed or has ended."""

    def __init__(self, status: Status, text: "str | None" = None) -> None:
        if text is None and status is Status.INVALID_HANDLE:
            text = "it was destroyed or has ended"
        self.status, self._text = status, text or _core.status_message(status.value)
        super().__init__(self._text)

    def __reduce__(self) -> Any:
        return type(self), (self.status, self._text)


def fail(status: int) -> NoReturn:
    """Raises the exception for a negative status."""
    if status == Status.TIMEOUT.value:
        raise TimeoutError("removed, but a call still runs on another thread")
    if status == Status.OUT_OF_MEMORY.value:
        raise MemoryError(_core.status_message(status))
    raise MulticastError(Status(status))


def checked(result: int) -> int:
    """Returns the result, or raises an exception if it is a negative status."""
    return result if result >= 0 else fail(result)


def created(handle: int) -> int:
    """Returns the handle, or raises an exception if it is 0 because the creation failed."""
    return handle or fail(_core.create_error(0))


def nanoseconds(timeout: "float | None") -> int:
    """Converts a timeout in seconds to nanoseconds. None means no limit."""
    return 2**64 - 1 if timeout is None else min(max(0, round(timeout * 1e9)), 2**64 - 1)


if TYPE_CHECKING or sys.version_info >= (3, 11):
    class DelegateErrors(ExceptionGroup[Exception]):
        """The exceptions that the delegates of one invocation raised, in the order of the calls.

        All other delegates have been called. In Python 3.11 and newer, this is an ExceptionGroup.
        """

        def derive(self, excs: "Sequence[Any]") -> "Any":
            """Called by split() and subgroup()."""
            return DelegateErrors(self.message, excs)
else:
    class DelegateErrors(Exception):
        """The exceptions that the delegates of one invocation raised, in the order of the calls."""

        def __init__(self, message, exceptions):
            super().__init__(message, exceptions)
            self.message, self.exceptions = message, tuple(exceptions)

        def __str__(self):
            texts = "; ".join(f"{type(one).__name__}: {one}" for one in self.exceptions)
            return f"{self.message}: {texts}"


def group(errors: "list[Exception]") -> DelegateErrors:
    count = len(errors)
    text = "a delegate has failed" if count == 1 else f"{count} delegates have failed"
    return DelegateErrors(text, errors)

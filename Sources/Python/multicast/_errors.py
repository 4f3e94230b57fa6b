"""What can go wrong: statuses of the library, and exceptions of delegates."""

import sys
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Sequence

from ._library import lib


class Status(IntEnum):
    """The result codes of the library."""

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
    """The library has refused a call. `status` says why; INVALID_HANDLE: it was destroyed."""

    def __init__(self, status: int, text: "str | None" = None) -> None:
        if text is None and status == Status.INVALID_HANDLE:
            text = "it was destroyed or has ended"
        super().__init__(text or lib.multicast_status_message(status).decode())
        self.status: "Status | int" = status
        if status in Status._value2member_map_:
            self.status = Status(status)


def check(result: int) -> int:
    """The result, if it is no error; a negative status is raised."""
    if result >= 0:
        return result
    if result == Status.TIMEOUT:
        raise TimeoutError(lib.multicast_status_message(result).decode())
    if result == Status.OUT_OF_MEMORY:
        raise MemoryError(lib.multicast_status_message(result).decode())
    raise MulticastError(result)


def created(handle: int) -> int:
    """The handle, if something was created."""
    if handle == 0:
        check(lib.multicast_create_error())
        raise MulticastError(Status.INVALID_ARGUMENT)
    return handle


if TYPE_CHECKING or sys.version_info >= (3, 11):
    class DelegateErrors(ExceptionGroup[Exception]):
        """The exceptions of the delegates of one invocation, in the order of the calls.

        All other delegates were called. With Python 3.11 and newer it is an ExceptionGroup, which
        `except*` takes apart.
        """

        def derive(self, excs: "Sequence[Any]") -> "Any":
            """For split() and subgroup()."""
            return DelegateErrors(self.message, excs)
else:
    class DelegateErrors(Exception):
        """The exceptions of the delegates of one invocation, in the order of the calls."""

        def __init__(self, message, exceptions):
            super().__init__(message, exceptions)
            self.message, self.exceptions = message, tuple(exceptions)

        def __str__(self):
            texts = "; ".join(f"{type(one).__name__}: {one}" for one in self.exceptions)
            return f"{self.message}: {texts}"


def raise_all(errors: "list[Exception]") -> None:
    """Raises the exceptions of delegates as one."""
    count = len(errors)
    text = "a delegate has failed" if count == 1 else f"{count} delegates have failed"
    raise DelegateErrors(text, errors)

"""Registrations that end together."""

import weakref

from ._calls import IS_DIRECT, lock, wait_for, with_keys
from ._errors import Status, check, created
from ._library import lib, nanoseconds


class Lifetime:
    """Use one for each plug-in, window or session: its end removes all its registrations.

    As a context manager it ends with the block.
    """

    def __init__(self) -> None:
        self._handle: int = created(lib.multicast_lifetime_create())
        self._keys: "set[int]" = set()  # of its registrations, which their multicasts own
        self._finalizer = weakref.finalize(
            self, lib.multicast_lifetime_end_within, self._handle, 0)

    @property
    def is_valid(self) -> bool:
        """True until it is ended."""
        return self._finalizer.alive

    def __len__(self) -> int:
        return len(self._keys)

    def __bool__(self) -> bool:
        return True

    def end(self, timeout: "float | None" = None) -> bool:
        """Removes all its registrations from every multicast, and waits as Token.remove() does."""
        with lock:
            tokens = with_keys(self._keys)
            for token in tokens:
                token._end()
            self._finalizer.detach()
            limit = 0 if IS_DIRECT else nanoseconds(timeout)
            if IS_DIRECT:
                lib.multicast_lifetime_end_within(self._handle, limit)
        if IS_DIRECT:
            return wait_for(tokens, timeout)
        status = lib.multicast_lifetime_end_within(self._handle, limit)
        return status == Status.INVALID_HANDLE or check(status) == Status.OK

    def __enter__(self) -> "Lifetime":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

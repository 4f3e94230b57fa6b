"""Registrations that end together."""

from . import _core
from ._errors import cannot_copy, created, wait_ended


class Lifetime:
    """Use one for each plug-in, window or session: its end removes all its registrations.

    As a context manager it ends with the block.
    """

    def __init__(self) -> None:
        self._handle = created(_core.lifetime_create(0))

    @property
    def is_valid(self) -> bool:
        """True until it is ended."""
        return _core.lifetime_count(self._handle) >= 0

    def __len__(self) -> int:
        return max(0, _core.lifetime_count(self._handle))

    def __bool__(self) -> bool:
        return True

    def end(self, timeout: "float | None" = None) -> bool:
        """Removes all its registrations from every multicast, and waits as Token.remove() does."""
        _core.end_lifetime(self._handle)
        return wait_ended(self._handle, timeout)

    def __enter__(self) -> "Lifetime":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            _core.end_lifetime(self._handle)

    __reduce__ = cannot_copy

"""Tokens, which identify registrations."""

import weakref
from types import MethodType
from typing import Any, Callable, Optional

from . import _core
from ._lifetime import Lifetime, cannot_copy, wait_ended
from ._queue import Queue


class Token(_core.Held):
    """The registration of a callable in a multicast. As a context manager, it removes itself."""

    __slots__ = ("__weakref__",)

    queue: Optional[Queue]
    lifetime: Optional[Lifetime]

    @property
    def is_valid(self) -> bool:
        """True until the token is removed, its object is freed or, with `once`, its call begins."""
        return bool(_core.token_is_valid(self._id))

    @property
    def is_paused(self) -> bool:
        """Whether invocations skip the callable."""
        return _core.token_properties(self._id)[1]

    @property
    def priority(self) -> "int | None":
        """The priority; None if the registration has ended."""
        return _core.token_properties(self._id)[0]

    @property
    def label(self) -> "str | None":
        """The registration's name in reports, or None."""
        return _core.token_properties(self._id)[2]

    @property
    def function(self) -> "Callable[..., Any] | None":
        """The callable; None if the registration has ended or the object has been freed."""
        if self._target is None:
            return self._function  # type: ignore[no-any-return]
        target = self._target()
        if self._function is None or target is None:
            return target  # type: ignore[no-any-return]
        return MethodType(self._function, target)

    @property
    def sender(self) -> Any:
        """The only accepted sender; None if any sender is accepted, or if it has been freed."""
        return self._sender() if type(self._sender) is weakref.ref else self._sender

    def remove(self, timeout: "float | None" = None) -> bool:
        """Removes the registration and waits until no other thread is calling the delegate.

        Returns True once the registration has ended: no thread is calling the delegate, and none
        ever will. Returns False immediately if a call is running on this thread or a thread waiting
        for this one. Raises TimeoutError if a call is still running after `timeout` seconds; the
        registration has then been removed, and another remove() only waits.
        """
        return _core.end_token(self._id) == 0 or wait_ended(timeout, self._id)

    def remove_nowait(self) -> None:
        """Removes the registration. Calls on other threads may still be running."""
        _core.end_token(self._id)

    def pause(self) -> None:
        """Makes invocations skip the callable until resume(). Queued calls are still made."""
        _core.token_pause(self._id)

    def resume(self) -> None:
        """Ends a pause, so that the callable is called again, in its old position."""
        _core.token_resume(self._id)

    def __enter__(self) -> "Token":
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        state = "ended" if not self.is_valid else "paused" if self.is_paused else "valid"
        function = self.function
        return f"<multicast.Token {self.label or getattr(function, '__qualname__', function)}, {state}>"

    __reduce__ = cannot_copy


def current_token() -> "Token | None":
    """Returns the registration of this thread's innermost running call; None outside calls."""
    return _core.current_call()[0]  # type: ignore[no-any-return]


def current_event() -> "int | None":
    """Returns the event of this thread's innermost running call; None outside calls."""
    return _core.current_call()[1]

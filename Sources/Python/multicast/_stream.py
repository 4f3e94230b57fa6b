"""The payloads of invocations, for `async for`."""

import asyncio
import weakref
from collections import deque
from typing import Any, Callable, Generic, Optional, TypeVar

from ._lifetime import cannot_copy
from ._queue import Overflow
from ._token import Token

T = TypeVar("T")


class Stream(Generic[T]):
    """What a multicast is invoked with, one after the other; Multicast.listen() makes it.

    If `capacity` payloads wait, the oldest is dropped, or by `overflow` the new one is refused. It
    ends when it is closed or the multicast is destroyed. `dropped` counts what got lost.
    """

    def __init__(self, add: "Callable[..., Token]", capacity: int, overflow: Overflow) -> None:
        self.dropped = 0
        self._arrived: "deque[T]" = deque()
        self._capacity, self._overflow = capacity, overflow
        self._waiter: "Optional[tuple[asyncio.AbstractEventLoop, asyncio.Event]]" = None
        # A loop that is left by `break` drops the stream: then the registration ends.
        self.token = add(self._arrive)
        weak = weakref.ref(self)
        self.token.on_end = lambda: _wake(weak())

    def _arrive(self, payload: T) -> None:
        if len(self._arrived) >= self._capacity:
            self.dropped += 1
            if self._overflow is Overflow.REFUSE:
                return
            self._arrived.popleft()
        self._arrived.append(payload)
        _wake(self)

    def __aiter__(self) -> "Stream[T]":
        return self

    async def __anext__(self) -> T:
        while not self._arrived:
            if not self.token.is_valid:
                raise StopAsyncIteration
            if self._waiter is not None:
                raise RuntimeError("another task waits for this stream")
            self._waiter = asyncio.get_running_loop(), asyncio.Event()
            try:
                if not self._arrived and self.token.is_valid:  # it may have come before the waiter
                    await self._waiter[1].wait()
            finally:
                self._waiter = None
        return self._arrived.popleft()

    def close(self) -> None:
        """Ends it: removes the registration, and drops what waits."""
        self.token.remove_nowait()
        self._arrived.clear()

    async def __aenter__(self) -> "Stream[T]":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    __reduce__ = cannot_copy


def _wake(stream: "Optional[Stream[Any]]") -> None:
    if stream is not None and stream._waiter is not None:
        loop, event = stream._waiter
        try:
            loop.call_soon_threadsafe(event.set)
        except RuntimeError:
            pass  # the loop is closed

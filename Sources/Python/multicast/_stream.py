"""The payloads of invocations, for `async for`."""

import asyncio
import os
import weakref
from collections import deque
from typing import Any, Callable, Generic, Optional, TypeVar

from ._queue import Overflow, Queue
from ._token import Token

T = TypeVar("T")


class Stream(Generic[T]):
    """What a multicast is invoked with, one after the other; Multicast.listen() makes it.

    Payloads wait in a queue: if it is full, the oldest is dropped, or by `overflow` the new one is
    refused. It ends when it is closed or the multicast is destroyed.
    """

    def __init__(self, add: "Callable[..., Token]", capacity: int, overflow: "Overflow | None",
                 options: "dict[str, Any]") -> None:
        self._queue = Queue(capacity, Overflow.DROP_OLDEST if overflow is None else overflow)
        self._arrived: "deque[T]" = deque()
        self._add = add  # of the multicast, which stays as long
        self._waiter: "Optional[asyncio.Future[None]]" = None
        self.token = add(self._arrived.append, queue=self._queue, **options)
        weak = weakref.ref(self)
        self.token.on_end = lambda: _wake(weak)
        # A loop that is left by `break` drops the stream: then the registration ends.
        self._finalizer = weakref.finalize(self, self._queue._finalizer)

    @property
    def queue(self) -> Queue:
        """Where the payloads wait: for its statistics."""
        return self._queue

    def __aiter__(self) -> "Stream[T]":
        return self

    async def __anext__(self) -> T:
        while True:
            if self.token.is_live:
                self._queue.run(1)
            if self._arrived:
                return self._arrived.popleft()
            if not self.token.is_live:
                raise StopAsyncIteration
            await self._readable()

    async def _readable(self) -> None:
        """Waits until a payload has come, or the registration has ended."""
        if self._waiter is not None:
            raise RuntimeError("another task waits for this stream")
        loop = asyncio.get_running_loop()
        waiter: "asyncio.Future[None]" = loop.create_future()
        watched = os.dup(self._queue.fileno())
        loop.add_reader(watched, _set, waiter)
        self._waiter = waiter
        try:
            if self.token.is_live:  # otherwise its end may have come before the waiter
                await waiter
        finally:
            self._waiter = None
            loop.remove_reader(watched)
            os.close(watched)

    def close(self) -> None:
        """Ends it: removes the registration."""
        if self._finalizer.detach() is not None:
            self.token.remove_nowait()
            self._queue.destroy(0)

    async def __aenter__(self) -> "Stream[T]":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


def _set(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


def _wake(weak: "weakref.ref[Stream[Any]]") -> None:
    stream = weak()
    waiter = stream._waiter if stream is not None else None
    if waiter is not None:
        try:
            waiter.get_loop().call_soon_threadsafe(_set, waiter)
        except RuntimeError:
            pass  # the loop is closed

"""Queues, in which calls wait until a loop or a thread makes them; and streams of payloads."""

import asyncio
import os
import queue as queues
import threading
import weakref
from collections import deque
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Callable, Coroutine, Generic, Optional, TypeVar

from . import _core
from ._errors import MulticastError, Status, checked, created, nanoseconds
from ._lifetime import Owner, cannot_copy

T = TypeVar("T")
Schedule = Callable[[Callable[[], object]], object]
#: By their ids, which the library passes to on_wake().
_queues: "weakref.WeakValueDictionary[int, Queue]" = weakref.WeakValueDictionary()


class Overflow(Enum):
    """A full queue's treatment of a new call. No invocation waits for room: loops must go on."""

    REFUSE = 0
    DROP_OLDEST = 1


@dataclass(frozen=True)
class Statistics:
    """The calls of a queue since its creation."""

    pending: int
    queued: int
    delivered: int
    refused: int
    dropped: int
    cancelled: int
    coalesced: int
    highest: int


class Queue(Owner):
    """Calls run one at a time, in the order in which they were queued.

    By run(), on a loop after attach(), or on a thread of its own after start(). As a context manager
    it is destroyed with the block.
    """

    _worker: "Optional[_Worker]" = None

    def __init__(self, capacity: int = 1024, overflow: Overflow = Overflow.REFUSE) -> None:
        self._schedule: "Optional[Schedule]" = None
        self._loop: "Optional[asyncio.AbstractEventLoop]" = None
        self._tasks: "set[asyncio.Task[Any]]" = set()
        _queues[id(self)] = self
        self._handle = created(_core.queue_create(capacity, overflow.value, id(self)))

    def run(self, max: int = 0) -> int:
        """Makes queued calls on this thread, oldest first: `max`, or as many as wait now.

        Returns how many. Exceptions are raised as DelegateErrors after the last call.
        """
        return _core.queue_run(self._handle, max)

    def wait(self, timeout: "float | None" = None) -> int:
        """Waits until a call is queued. Returns how many are; 0: none after `timeout` seconds."""
        return _core.wait(True, self._handle, nanoseconds(timeout))

    def clear(self) -> int:
        """Drops the calls that wait. Returns how many."""
        return checked(_core.queue_clear(self._handle))

    def fileno(self) -> int:
        """A descriptor that is readable while calls wait: for select, poll, and loops of others.

        It is the queue's: only watch it, and not after destroy().
        """
        descriptor = _core.queue_fd(self._handle)
        if descriptor < 0:
            raise OSError("no descriptor: the queue is destroyed, or the system has none left")
        return descriptor

    def statistics(self) -> Statistics:
        """What became of its calls."""
        return Statistics(*_core.queue_stats(self._handle))

    def __len__(self) -> int:
        return self.statistics().pending

    # ---- A loop, or a thread ---------------------------------------------------------------------

    def attach(self, loop: "asyncio.AbstractEventLoop | Schedule | None" = None) -> "Queue":
        """Makes the calls on a loop, until detach(), destroy(), or the end of the loop.

        loop  A loop of asyncio, by default the running one; a coroutine that a delegate returns
              becomes a task of it, and exceptions go to its exception handler. Or the function of
              another loop that, from any thread, makes it call something soon, such as the
              run_sync_soon of a trio token.
        """
        if self._worker is not None or (self._schedule is not None
                                        and not (self._loop and self._loop.is_closed())):
            raise MulticastError(Status.STATE, "it has a loop or a thread already")
        if loop is None or isinstance(loop, asyncio.AbstractEventLoop):
            self._loop = loop or asyncio.get_running_loop()
            self._schedule = self._loop.call_soon_threadsafe
        else:
            self._loop, self._schedule = None, loop
        on_wake(id(self))  # calls may wait already
        return self

    def detach(self) -> None:
        """The loop makes no further calls. From any thread."""
        self._loop = self._schedule = None

    def start(self, name: "str | None" = None) -> "Queue":
        """Gives the queue a thread, which makes its calls as they come.

        Exceptions go to threading.excepthook. The thread ends with stop(), destroy(), or the
        program.
        """
        worker = _Worker(name)
        self.attach(worker.calls.put)
        self._worker = worker
        worker.thread.start()
        return self

    def stop(self, timeout: "float | None" = None) -> bool:
        """Ends the thread; queued calls stay queued. Waits for its running call.

        False: it ends when its call has returned; waiting for that was not possible.
        """
        worker = self._worker
        if worker is None:
            raise MulticastError(Status.STATE, "it has no thread")
        self._leave()
        return bool(worker.token.remove(timeout))

    # ---- The end ---------------------------------------------------------------------------------

    def destroy(self, timeout: "float | None" = None) -> bool:
        """Destroys it: removes its registrations and drops its calls. Waits as Token.remove()."""
        return self._finish(timeout)

    def _leave(self) -> None:
        self.detach()
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()

    def _end(self) -> None:
        self._leave()
        _core.end_queue(self._handle)


def _run(weak: "weakref.ref[Queue]", schedule: Schedule) -> None:
    """What a loop calls when calls have come."""
    queue = weak()
    if queue is None or queue._schedule != schedule:
        return  # collected, or it has another loop
    loop = queue._loop
    try:
        queue.run(queue._worker is not None)  # a thread makes one call: stop() waits for one
    except MulticastError as error:
        if error.status is not Status.INVALID_HANDLE:
            raise
    except Exception as error:
        if loop is None:
            raise
        loop.call_exception_handler(
            {"message": "a delegate of a queue has failed", "exception": error})


class _Worker:
    """The thread of a queue. It runs inside a call of a registration of its own: to remove that is
    to wait for the thread, by the rules of the library."""

    def __init__(self, name: "str | None") -> None:
        self.calls: "queues.SimpleQueue[Optional[Callable[[], object]]]" = queues.SimpleQueue()
        self._is_ending = False
        gate = _core.Core()
        gate._open("thread of a queue", 0, 0, None, None)
        self.token = gate._add(self._serve, None, None, None, 0, None, 0, 0, 0, 0, None)
        self.thread = threading.Thread(target=gate.invoke, name=name, daemon=True)

    def end(self) -> None:
        self._is_ending = True
        self.calls.put(None)

    def _serve(self) -> None:
        while not self._is_ending:
            make = self.calls.get()
            if make is None or self._is_ending:
                return
            try:
                make()
            except Exception as error:
                threading.excepthook(threading.ExceptHookArgs(
                    (type(error), error, error.__traceback__, self.thread)))


def on_wake(number: int) -> None:
    """Calls have come into a queue: the loop is to make them, without keeping the queue alive."""
    queue = _queues.get(number)
    if queue is not None and (schedule := queue._schedule) is not None:
        try:
            schedule(partial(_run, weakref.ref(queue), schedule))
        except RuntimeError:
            queue.detach()  # the loop is closed


def on_coroutine(queue: "Queue | None", coroutine: "Coroutine[Any, Any, Any]") -> None:
    """A delegate has returned a coroutine."""
    if queue is None or (loop := queue._loop) is None:
        coroutine.close()
        raise TypeError("an async delegate needs invoke_async(), or a queue on a loop of asyncio")
    task = loop.create_task(coroutine)
    queue._tasks.add(task)  # the loop itself holds tasks weakly
    task.add_done_callback(queue._tasks.discard)


def forget_loops() -> None:
    """In the child of a fork there are no loops and threads of the parent."""
    for queue in list(_queues.values()):
        queue.detach()
        queue._worker = None


os.register_at_fork(after_in_child=forget_loops)


class Stream(Generic[T]):
    """What a multicast is invoked with, one after the other; Multicast.listen() makes it.

    If `capacity` payloads wait, the oldest is dropped, or by `overflow` the new one is refused. It
    ends when it is closed or the multicast is destroyed. `dropped` counts what got lost.
    """

    def __init__(self, add: "Callable[..., Any]", capacity: int, overflow: Overflow) -> None:
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

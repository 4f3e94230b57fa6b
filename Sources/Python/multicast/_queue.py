"""Queues, whose calls wait until a loop or a thread makes them, and streams of payloads."""

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
#: All queues by their ids, which the library passes to on_wake().
_queues: "weakref.WeakValueDictionary[int, Queue]" = weakref.WeakValueDictionary()


class Overflow(Enum):
    """What a full queue does with a new call. Invocations do not block, so loops keep running."""

    REFUSE = 0
    DROP_OLDEST = 1


@dataclass(frozen=True)
class Statistics:
    """Counts of a queue's calls since it was created."""

    pending: int
    queued: int
    delivered: int
    refused: int
    dropped: int
    cancelled: int
    coalesced: int
    highest: int


class Queue(Owner):
    """A queue of calls, which are made one at a time, in the order in which they were queued.

    The calls are made by run(), on a loop after attach(), or on a separate thread after start(). As
    a context manager, the queue is destroyed at the end of the block.
    """

    _worker: "Optional[_Worker]" = None

    def __init__(self, capacity: int = 1024, overflow: Overflow = Overflow.REFUSE) -> None:
        self._schedule: "Optional[Schedule]" = None
        self._loop: "Optional[asyncio.AbstractEventLoop]" = None
        self._tasks: "set[asyncio.Task[Any]]" = set()
        _queues[id(self)] = self
        self._handle = created(_core.queue_create(capacity, overflow.value, id(self)))

    def run(self, max: int = 0) -> int:
        """Makes up to `max` queued calls on this thread, oldest first. 0 means all queued calls.

        Returns the number of calls. Exceptions are raised as DelegateErrors after the last call. An
        exception that would end an invocation ends the run; the other calls stay queued.
        """
        return _core.queue_run(self._handle, max)

    def wait(self, timeout: "float | None" = None) -> int:
        """Waits for a queued call. Returns the number of queued calls; 0 after a timeout."""
        return _core.wait(True, self._handle, nanoseconds(timeout))

    def clear(self) -> int:
        """Drops all queued calls, and returns their number."""
        return checked(_core.queue_clear(self._handle))

    def fileno(self) -> int:
        """A descriptor that is readable while calls are queued, for select, poll and other loops.

        The queue owns the descriptor. Do not read or close it, or use it after destroy().
        """
        descriptor = _core.queue_fd(self._handle)
        if descriptor < 0:
            raise OSError("no descriptor: the queue is destroyed, or the system has none left")
        return descriptor

    def statistics(self) -> Statistics:
        """Returns the number of calls with each outcome."""
        return Statistics(*_core.queue_stats(self._handle))

    def __len__(self) -> int:
        return self.statistics().pending

    # ---- A loop, or a thread ---------------------------------------------------------------------

    def attach(self, loop: "asyncio.AbstractEventLoop | Schedule | None" = None) -> "Queue":
        """Makes a loop run the calls until detach(), destroy() or the loop's end.

        loop  An asyncio loop; the running one by default. A coroutine returned by a delegate
              becomes a task of this loop, and exceptions go to its exception handler. For other
              kinds of loops, pass a function that any thread can call to make the loop call
              another function soon, such as a trio token's run_sync_soon.
        """
        if self._worker is not None or (self._schedule is not None
                                        and not (self._loop and self._loop.is_closed())):
            raise MulticastError(Status.STATE, "it has a loop or a thread already")
        if loop is None or isinstance(loop, asyncio.AbstractEventLoop):
            self._loop = loop or asyncio.get_running_loop()
            self._schedule = self._loop.call_soon_threadsafe
        else:
            self._loop, self._schedule = None, loop
        on_wake(id(self))  # calls may already be queued
        return self

    def detach(self) -> None:
        """Makes the loop run no further calls. May be called on any thread."""
        self._loop = self._schedule = None

    def start(self, name: "str | None" = None) -> "Queue":
        """Starts a thread that makes the calls as soon as they are queued.

        Uncaught exceptions go to threading.excepthook. The thread runs until stop(), destroy() or
        the interpreter's exit.
        """
        worker = _Worker(name)
        self.attach(worker.calls.put)
        self._worker = worker
        try:
            worker.thread.start()
        except BaseException:
            self._leave()
            raise
        return self

    def stop(self, timeout: "float | None" = None) -> bool:
        """Ends the thread, and waits for its running call. Queued calls stay queued.

        Returns False if it cannot wait. In that case, the thread ends when its call has returned.
        """
        worker = self._worker
        if worker is None:
            raise MulticastError(Status.STATE, "it has no thread")
        self._leave()
        return bool(worker.token.remove(timeout))

    # ---- The end ---------------------------------------------------------------------------------

    def destroy(self, timeout: "float | None" = None) -> bool:
        """Removes the queue's registrations and drops its calls. Waits like Token.remove()."""
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
    """Called by a loop when calls have been queued."""
    queue = weak()
    if queue is None or queue._schedule != schedule:
        return  # the queue was freed, or has another loop now
    loop = queue._loop
    try:
        queue.run(queue._worker is not None)  # a thread makes one call, so stop() waits for one
    except MulticastError as error:
        if error.status is not Status.INVALID_HANDLE:
            raise
    except Exception as error:
        if loop is None:
            raise
        loop.call_exception_handler(
            {"message": "a delegate of a queue has failed", "exception": error})


class _Worker:
    """A queue's thread. It runs inside a call to its own registration, so that removing the
    registration waits for the thread, unless that would cause a deadlock."""

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
            except BaseException as error:
                threading.excepthook(threading.ExceptHookArgs(
                    (type(error), error, error.__traceback__, self.thread)))


def on_wake(number: int) -> None:
    """Makes a queue's loop run new calls, without keeping the queue alive."""
    queue = _queues.get(number)
    if queue is not None and (schedule := queue._schedule) is not None:
        try:
            schedule(partial(_run, weakref.ref(queue), schedule))
        except RuntimeError:
            queue.detach()  # the loop has been closed


def on_coroutine(queue: "Queue | None", coroutine: "Coroutine[Any, Any, Any]") -> None:
    if queue is None or (loop := queue._loop) is None or loop.is_closed():
        coroutine.close()
        raise TypeError("an async delegate needs invoke_async(), or a queue on a loop of asyncio")
    task = loop.create_task(coroutine)
    queue._tasks.add(task)  # because the loop holds tasks weakly
    task.add_done_callback(queue._tasks.discard)


def forget_loops() -> None:
    """Detaches all queues in the child of a fork, which lacks the parent's loops and threads."""
    for queue in list(_queues.values()):
        queue._leave()  # if a delegate on the queue's thread has forked, that thread ends


os.register_at_fork(after_in_child=forget_loops)


class Stream(Generic[T]):
    """The payloads of a multicast's invocations, one by one. See Multicast.listen().

    When `capacity` payloads are waiting, `overflow` determines whether the oldest one is dropped or
    the new one is refused; `dropped` counts both cases. The stream ends when it is closed or the
    multicast is destroyed.
    """

    def __init__(self, add: "Callable[..., Any]", capacity: int, overflow: Overflow) -> None:
        self.dropped = 0
        self._arrived: "deque[T]" = deque(maxlen=capacity)  # drops the oldest payload by itself
        self._overflow = overflow
        self._waiter: "Optional[tuple[asyncio.AbstractEventLoop, asyncio.Event]]" = None
        # `break` in an `async for` frees the stream, which ends the registration.
        self.token = add(self._arrive)
        weak = weakref.ref(self)
        self.token.on_end = lambda: _wake(weak())

    def _arrive(self, payload: T) -> None:
        if len(self._arrived) == self._arrived.maxlen:
            self.dropped += 1
            if self._overflow is Overflow.REFUSE:
                return
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
                if not self._arrived and self.token.is_valid:  # a payload may have just arrived
                    await self._waiter[1].wait()
            finally:
                self._waiter = None
        return self._arrived.popleft()

    def close(self) -> None:
        """Ends the stream: removes the registration, and drops the waiting payloads."""
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
            pass  # the loop has been closed

"""A queue: calls wait in it until a loop or a thread makes them."""

import asyncio
import atexit
import ctypes
import os
import select
import threading
import weakref
from enum import IntEnum
from typing import Any, Coroutine, NamedTuple, Optional

from ._calls import IS_DIRECT, Collector, local, lock, wait_for, with_keys
from ._errors import MulticastError, Status, check, created
from ._library import QueueOptions, QueueStats, lib, nanoseconds

SLICE = 0.1  # seconds, after which a waiting thread looks for signals


class Overflow(IntEnum):
    """A full queue's treatment of a new call. No invocation waits for room: loops must go on."""

    REFUSE = 0
    DROP_OLDEST = 1


class Statistics(NamedTuple):
    """The calls of a queue since its creation."""

    pending: int
    queued: int
    delivered: int
    refused: int
    dropped: int
    cancelled: int
    coalesced: int
    highest: int


class Queue:
    """Calls run one at a time, in the order in which they were queued.

    By run(), on a loop of asyncio after attach(), or on a thread of its own after start(). As a
    context manager it is destroyed with the block.
    """

    def __init__(self, capacity: int = 1024, overflow: Overflow = Overflow.REFUSE) -> None:
        options = QueueOptions(struct_size=ctypes.sizeof(QueueOptions), capacity=capacity,
                               overflow=overflow)
        self._handle: int = created(lib.multicast_queue_create(ctypes.byref(options)))
        self._keys: "set[int]" = set()  # of its registrations, which their multicasts own
        self._loop: "Optional[asyncio.AbstractEventLoop]" = None
        self._watched = -1
        self._tasks: "set[asyncio.Task[Any]]" = set()
        self._worker: "Optional[_Worker]" = None
        self._finalizer = weakref.finalize(
            self, lib.multicast_queue_destroy_within, self._handle, 0)

    def run(self, max: int = 0) -> int:
        """Makes queued calls on this thread, oldest first: `max`, or as many as wait now.

        Returns how many. Exceptions are raised as DelegateErrors after the last call.
        """
        with Collector(None, None) as collector:
            count = lib.multicast_queue_run(self._handle, max)
        collector.finish()
        return check(count)

    def wait(self, timeout: "float | None" = None) -> int:
        """Waits until a call is queued. Returns how many are; 0: none after `timeout` seconds."""
        left = nanoseconds(timeout)
        while True:
            part = min(left, nanoseconds(SLICE))
            count: int = lib.multicast_queue_wait(self._handle, part)
            if count != Status.TIMEOUT:
                return check(count)
            if timeout is not None:
                left -= part
            if left == 0:
                return 0

    def clear(self) -> int:
        """Drops the calls that wait. Returns how many."""
        return check(lib.multicast_queue_clear(self._handle))

    def fileno(self) -> int:
        """A descriptor that is readable while calls wait: for select, poll, and loops of others.

        It is the queue's: only watch it, and not after destroy().
        """
        descriptor: int = lib.multicast_queue_fd(self._handle)
        if descriptor < 0:
            raise OSError("no descriptor: the queue is destroyed, or the system has none left")
        return descriptor

    def statistics(self) -> Statistics:
        """What became of its calls."""
        stats = QueueStats(struct_size=ctypes.sizeof(QueueStats))
        check(lib.multicast_queue_get_stats(self._handle, ctypes.byref(stats)))
        return Statistics(*(getattr(stats, name) for name in Statistics._fields))

    def __len__(self) -> int:
        return self.statistics().pending

    def __bool__(self) -> bool:
        return True

    # ---- A loop of asyncio -----------------------------------------------------------------------

    def attach(self, loop: "asyncio.AbstractEventLoop | None" = None) -> "Queue":
        """Makes the calls on a loop, which watches the descriptor. Call it on the loop's thread.

        A coroutine that a delegate returns becomes a task of the loop. Exceptions go to the loop's
        exception handler. Detach it, or destroy it, before the loop is closed.
        """
        if self._loop is not None or self._worker is not None:
            raise MulticastError(Status.STATE, "it has a loop or a thread already")
        self._loop = loop or asyncio.get_running_loop()
        # A descriptor of its own: the queue may be destroyed on another thread.
        self._watched = os.dup(self.fileno())
        self._loop.add_reader(self._watched, _run_on_loop, weakref.ref(self), self._loop)
        return self

    def detach(self) -> None:
        """The loop makes no further calls. From any thread."""
        with lock:
            loop, self._loop = self._loop, None
            watched, self._watched = self._watched, -1
        if loop is not None:
            _unwatch(loop, watched)

    def _schedule(self, coroutine: "Coroutine[Any, Any, Any]") -> None:
        loop = self._loop
        if loop is None:
            coroutine.close()
            raise TypeError("a coroutine needs a queue that is attached to a loop")
        task = loop.create_task(coroutine)
        self._tasks.add(task)  # the loop itself holds tasks weakly
        task.add_done_callback(self._tasks.discard)

    # ---- A thread --------------------------------------------------------------------------------

    def start(self, name: "str | None" = None) -> "Queue":
        """Gives the queue a thread, which makes its calls as they come.

        Exceptions go to threading.excepthook. The thread ends with stop(), destroy(), or the
        program.
        """
        with lock:
            if self._worker is not None or self._loop is not None:
                raise MulticastError(Status.STATE, "it has a loop or a thread already")
            self._worker = _Worker(self, name)
        self._worker.thread.start()
        return self

    def stop(self, timeout: "float | None" = None) -> bool:
        """Ends the thread; queued calls stay queued. Waits for its running call.

        False: it ends when its call has returned; waiting for that was not possible.
        """
        with lock:
            worker, self._worker = self._worker, None
        if worker is None:
            raise MulticastError(Status.STATE, "it has no thread")
        worker.end()
        return wait_for((worker,), timeout)

    # ---- The end ---------------------------------------------------------------------------------

    def destroy(self, timeout: "float | None" = None) -> bool:
        """Destroys it: removes its registrations and drops its calls. Waits as Token.remove()."""
        self.detach()
        with lock:
            worker, self._worker = self._worker, None
            tokens = with_keys(self._keys)
            for token in tokens:
                token._end()
            self._finalizer.detach()
            if IS_DIRECT:
                lib.multicast_queue_destroy_within(self._handle, 0)
        if worker is not None:
            worker.end()
        if IS_DIRECT:
            return wait_for({*tokens, worker}, timeout)
        status = lib.multicast_queue_destroy_within(self._handle, nanoseconds(timeout))
        return status == Status.INVALID_HANDLE or check(status) == Status.OK

    def __enter__(self) -> "Queue":
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()


def _run_on_loop(weak: "weakref.ref[Queue]", loop: "asyncio.AbstractEventLoop") -> None:
    queue = weak()
    if queue is None or queue._loop is not loop:
        return
    try:
        queue.run()
    except MulticastError:
        queue.detach()  # it was destroyed
    except Exception as error:
        loop.call_exception_handler(
            {"message": "a delegate of a queue has failed", "exception": error})


def _unwatch(loop: "asyncio.AbstractEventLoop", watched: int) -> None:
    def close() -> None:
        loop.remove_reader(watched)
        os.close(watched)

    try:
        is_here = asyncio.get_running_loop() is loop
    except RuntimeError:
        is_here = False
    if is_here or loop.is_closed():
        if not loop.is_closed():
            loop.remove_reader(watched)
        os.close(watched)
    else:
        loop.call_soon_threadsafe(close)


class _Worker:
    """A queue's thread. It is one of Python's own: it has to end before the interpreter does."""

    def __init__(self, queue: Queue, name: "str | None") -> None:
        self._queue, self._is_ending = queue, False
        self._wake = os.pipe()
        self.thread = threading.Thread(target=self._serve, name=name, daemon=True)
        atexit.register(self._end_and_join)

    def end(self) -> None:
        with lock:
            self._is_ending = True
        try:
            os.write(self._wake[1], b"x")
        except OSError:
            pass  # it has ended

    def _end_and_join(self) -> None:
        self.end()
        if self.thread.is_alive():
            self.thread.join(1)

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._queue.fileno(), select.POLLIN)
        poll.register(self._wake[0], select.POLLIN)
        try:
            while not self._is_ending:
                poll.poll()
                # One call at a time, so that stop() waits for one.
                with lock:
                    if self._is_ending:
                        break
                    local.calls.append([self, 0])
                try:
                    self._queue.run(1)
                except MulticastError as error:
                    if error.status == Status.INVALID_HANDLE:
                        return
                except Exception as failure:
                    threading.excepthook(threading.ExceptHookArgs(
                        (type(failure), failure, failure.__traceback__, self.thread)))
                finally:
                    local.calls.pop()
        finally:
            wake, self._wake = self._wake, (-1, -1)
            os.close(wake[0])
            os.close(wake[1])
            atexit.unregister(self._end_and_join)

"""Which thread is in a call of which registration, and waiting until none is.

Each thread has a list of its calls, which it alone changes; a thread that removes reads the lists
of the others. A thread that calls writes the registration into its list, then asks whether it is to
skip it. A thread that removes sets `skip`, then reads the lists. Under the interpreter's lock one
of the two happens first: either the first does not call, or the second sees the call. So an
invocation takes no lock, and removals, which are few, do the work.

Without the interpreter's lock (the free-threaded build) that order is not certain. There all calls
go through the library, and removals wait in it: IS_DIRECT.
"""

import os
import sysconfig
import threading
import time
import weakref
from threading import get_ident
from typing import Any, Callable, Collection, Iterable, Optional

from ._errors import raise_all

# MULTICAST_PYTHON_CALLS=library: as without the interpreter's lock. For tests and comparisons.
IS_DIRECT = (not sysconfig.get_config_var("Py_GIL_DISABLED")
             and os.environ.get("MULTICAST_PYTHON_CALLS") != "library")

# Every registration that the library has, a Token, by its key, which is the context of its delegate.
# The multicast owns them: a callable that refers to its own multicast is no leak. With it, the sets of
# keys that it is in.
registered: "dict[int, tuple[Callable[[], Any], list[set[int]]]]" = {}


def with_keys(keys: "Iterable[int]") -> "set[Any]":
    """The registrations with these keys."""
    found = [registered[key][0]() for key in list(keys) if key in registered]
    return {one for one in found if one is not None}


SHORTEST, LONGEST = 50e-6, 2e-3  # seconds between two looks at the calls of other threads


class Collector:
    """What the delegates that the library calls on this thread have returned and raised."""

    __slots__ = ("target", "results", "errors", "interruption", "number", "outer")

    def __init__(self, target: Any, results: "list[Any] | None") -> None:
        self.target, self.results = target, results
        self.errors: "list[Exception]" = []
        self.interruption: "BaseException | None" = None
        self.number: "int | None" = None  # of the payload
        self.outer: "Collector | None" = local.collector

    def __enter__(self) -> "Collector":
        local.collector = self
        return self

    def __exit__(self, *_: object) -> None:
        local.collector = self.outer

    def finish(self) -> None:
        """Raises what they have raised."""
        if self.interruption is not None:
            raise self.interruption
        if self.errors:
            raise_all(self.errors)


class _Thread:
    """A thread that has called something."""

    __slots__ = ("calls", "waits", "__weakref__")

    def __init__(self) -> None:
        # Each is a list of two: what is called, a Token mostly, and the event.
        self.calls: "list[list[Any]]" = []
        # What the thread waits for.
        self.waits: "Collection[Any]" = ()


_threads: "dict[int, weakref.ref[_Thread]]" = {}


def _all_threads() -> "list[_Thread]":
    return [one for one in [weak() for weak in list(_threads.values())] if one is not None]


class _Local(threading.local):
    def __init__(self) -> None:
        self.thread = _Thread()
        self.calls = self.thread.calls
        self.collector: Optional[Collector] = None
        for number, weak in list(_threads.items()):
            if weak() is None:
                _threads.pop(number, None)
        _threads[get_ident()] = weakref.ref(self.thread)


local = _Local()


def current_event() -> "int | None":
    """The event of the call that this thread is in, the innermost one; or None."""
    calls = local.calls
    return calls[-1][1] if calls else None


def running() -> "set[Any]":
    """All that some thread is calling."""
    return {call[0] for thread in _all_threads() for call in list(thread.calls)}


def _callers(threads: "list[_Thread]", tokens: "Collection[Any]") -> "set[_Thread]":
    return {one for one in threads if any(call[0] in tokens for call in list(one.calls))}


def wait_for(tokens: "Collection[Any]", timeout: "float | None") -> bool:
    """Waits until no other thread is in a call of these registrations, which skip new ones.

    False, at once: this thread is in a call of one, or a thread in such a call waits for this one.
    """
    me = local.thread
    outer = me.waits
    me.waits = tokens
    deadline = None if timeout is None else time.monotonic() + timeout
    pause = SHORTEST
    try:
        while True:
            threads = _all_threads()
            new = _callers(threads, tokens)
            if not new:
                return True
            # All that have to go on first: threads in the calls, and those that they wait for.
            found = set(new)
            while new:
                if me in found:
                    return False
                new = {other for one in new for other in _callers(threads, one.waits)} - found
                found |= new
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError("removed, but a call still runs on another thread")
            time.sleep(pause)
            pause = min(2 * pause, LONGEST)
    finally:
        me.waits = outer


def _forget_threads() -> None:
    """In the child of a fork: the other threads do not exist there."""
    _threads.clear()
    _threads[get_ident()] = weakref.ref(local.thread)


# One lock for changes, not for calls. It is held for a moment, and while no user's code runs. A
# finalizer may come back on the same thread. fork() waits for it: the child finds it free.
lock = threading.RLock()
os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
os.register_at_fork(after_in_child=_forget_threads)

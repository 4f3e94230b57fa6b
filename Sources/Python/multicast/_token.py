"""A registration, and the two functions of C by which the library calls and releases it."""

import atexit
import inspect
import itertools
import weakref
from collections import deque
from types import MethodType
from typing import Any, Callable, Iterable, Optional, Protocol

from ._calls import IS_DIRECT, local, registered, wait_for, with_keys
from ._errors import Status, check
from ._library import Function, Release, keep_forever, lib, nanoseconds
from ._lifetime import Lifetime
from ._payload import receive
from ._queue import Queue

_keys = itertools.count(1)


class NotCalled(Exception):
    """A delegate that is registered no more, or whose object is gone."""


class _Target(weakref.ref):  # type: ignore[type-arg]
    """A weak reference that knows its registration: when its object is gone, that is on a list."""

    __slots__ = ("token",)
    token: "Token"


def _call_target(target: "Callable[[Any], Any]", payload: Any) -> Any:
    return target(payload)


class Owner(Protocol):
    """What a registration needs of its multicast."""

    _handles: "list[int]"
    _dead: "deque[Any]"

    def _changed(self, token: "Token") -> None: ...


class Token:
    """One registration: a callable in a multicast. As a context manager it removes itself."""

    __slots__ = (
        "function", "target", "skip", "ended", "paused", "is_once", "events", "priority", "key",
        "handle", "owner", "queue", "lifetime", "label", "on_end", "_claims", "__weakref__")

    def __init__(self, owner: Owner, function: "Callable[..., Any]", *, priority: int,
                 events: int, once: bool, weak: "bool | None", queue: "Queue | None",
                 lifetime: "Lifetime | None", label: "str | None") -> None:
        if not callable(function):
            raise TypeError(f"not callable: {function!r}")
        if queue is None and inspect.iscoroutinefunction(function):
            raise TypeError("a coroutine function needs a queue that is attached to a loop")
        self.function: "Callable[..., Any]" = function
        self.target: "Optional[_Target]" = None
        is_method = isinstance(function, MethodType)
        if weak or (weak is None and is_method):
            try:
                target = function.__self__ if isinstance(function, MethodType) else function
                self.target = _Target(target, owner._dead.append)
            except TypeError:
                raise TypeError(f"{function!r} cannot be held weakly: give weak=False") from None
            self.target.token = self
            self.function = function.__func__ if isinstance(function, MethodType) else _call_target
        # Set before a thread looks for calls of it; `skip` also while it is paused.
        self.skip = self.ended = self.paused = False
        self.is_once, self.events, self.priority = once, events, priority
        self._claims = [True]
        self.owner = weakref.ref(owner)
        self.queue, self.lifetime, self.label = queue, lifetime, label
        self.on_end: "Optional[Callable[[], object]]" = None
        self.key, self.handle = next(_keys), 0
        homes = [one._keys for one in (queue, lifetime) if one is not None]
        for keys in homes:
            keys.add(self.key)
        # A multicast of C does not end with the object that stands for it.
        registered[self.key] = (weakref.ref(self) if owner._handles else lambda: self), homes

    # ---- What a user does ------------------------------------------------------------------------

    @property
    def is_valid(self) -> bool:
        """True until it is removed or its object is gone; with `once`, until its call begins."""
        return not self.ended and (self.target is None or self.target() is not None)

    def remove(self, timeout: "float | None" = None) -> bool:
        """Removes the registration and waits until no other thread is in a call of it.

        True: it has ended; no thread is in a call of it, and none ever will be. False, at once: a
        call runs on this thread, or on one that waits for this thread. TimeoutError: removed, but
        after `timeout` seconds a call still runs on another thread. To remove it again only waits.
        """
        self._end()
        limit = 0 if IS_DIRECT else nanoseconds(timeout)
        status = lib.multicast_token_remove_within(self.handle, limit)
        self._forget()
        if IS_DIRECT:
            return wait_for((self,), timeout)
        return status == Status.INVALID_HANDLE or check(status) == Status.OK

    def remove_nowait(self) -> None:
        """Removes the registration. Calls of it on other threads may go on."""
        self._end()
        lib.multicast_token_remove_within(self.handle, 0)
        self._forget()

    def pause(self) -> None:
        """Leaves it out of invocations until it is resumed. Its queued calls are made."""
        if not self.ended:
            check(lib.multicast_token_pause(self.handle))
            self.skip = self.paused = True

    def resume(self) -> None:
        """Ends a pause: it is called again, in its old position."""
        if not self.ended:
            check(lib.multicast_token_resume(self.handle))
            self.paused = False
            self.skip = self.ended

    def __enter__(self) -> "Token":
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        state = "ended" if not self.is_live else "paused" if self.paused else "live"
        function: Any = self.function
        if self.target is not None and function is _call_target:
            function = self.target()
        return f"<multicast.Token {self.label or function!r}, {state}>"

    # ---- What the other classes do ---------------------------------------------------------------

    def matches(self, function: "Callable[..., Any]") -> bool:
        """Whether it was added with an equal callable."""
        if self.target is None:
            return bool(self.function == function)
        target = self.target()
        if isinstance(function, MethodType):
            return target is function.__self__ and self.function is function.__func__
        return target is function

    def wants(self, event: int) -> bool:
        """Whether the event is one of its selection."""
        return not self.events or event >= 64 or bool(self.events >> event & 1)

    def call(self, payload: Any) -> Any:
        """Calls it, if its object is still there."""
        if self.target is None:
            return self.function(payload)
        target = self.target()
        if target is None:
            self.remove_nowait()
            raise NotCalled
        return self.function(target, payload)

    def call_once(self, payload: Any) -> Any:
        """Removes it as its call begins. Of several threads one calls it."""
        try:
            self._claims.pop()
        except IndexError:
            raise NotCalled from None
        # Not _end(): the call is wanted.
        lib.multicast_token_remove_within(self.handle, 0)
        self._forget()
        return self.call(payload)

    def _end(self) -> None:
        self.skip = self.ended = True

    def _forget(self) -> None:
        """After the library has removed it. Takes no lock: it also runs while a fork ends."""
        self._end()
        owner = self.owner()
        if owner is not None:
            owner._changed(self)
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end()


def mask(events: "Iterable[int] | int | None") -> int:
    """The bits of the events; 0: all."""
    if events is None:
        return 0
    bits = 0
    for event in (events,) if isinstance(events, int) else events:
        if not 0 <= event < 64:
            raise ValueError(f"an event of a selection is from 0 to 63: {event}")
        bits |= 1 << event
    if not bits:
        raise ValueError("no events; None means all")
    return bits


def current_token() -> "Token | None":
    """The registration that this thread is calling now, the innermost one; or None."""
    calls = local.calls
    return calls[-1][0] if calls else None


# ---- The functions of C --------------------------------------------------------------------------


def _call(key: int, event: int, address: "int | None", size: int) -> None:
    token = registered[key][0]() if key in registered else None
    if token is None:
        return
    calls, collector = local.calls, local.collector
    depth = len(calls)
    try:
        calls.append([token, event])
        if token.ended or (collector is not None and collector.interruption is not None):
            return
        result = token.call(receive(address, size))
        if token.queue is not None and inspect.iscoroutine(result):
            token.queue._schedule(result)
        elif collector is not None and collector.results is not None:
            if collector.target is token.owner():
                collector.results.append(result)
    except NotCalled:
        pass
    except BaseException as error:
        if collector is None:  # called by C: ctypes reports it
            raise
        if isinstance(error, Exception):
            collector.errors.append(error)
        else:
            collector.interruption = error
    finally:
        del calls[depth:]


def _released(key: int) -> None:
    get, homes = registered.pop(key, (None, []))
    for keys in homes:
        keys.discard(key)
    token = get() if get is not None else None
    if token is not None:
        token._forget()


call = keep_forever(Function(_call))
release = keep_forever(Release(_released))


def _remove_all() -> None:
    """At exit: multicasts of C stay, and must call Python no more."""
    for token in with_keys(registered):
        token.remove_nowait()


atexit.register(_remove_all)

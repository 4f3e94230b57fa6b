"""A multicast: an ordered set of callables that are invoked together."""

import ctypes
import weakref
from collections import deque
from typing import Any, Callable, Generic, Iterable, Optional, TypeVar

from ._calls import IS_DIRECT, Collector, local, lock, running, wait_for
from ._errors import MulticastError, Status, check, created, raise_all
from ._library import LATEST, ONCE, AddOptions, CreateOptions, Delegate, lib, nanoseconds
from ._lifetime import Lifetime
from ._payload import send
from ._queue import Overflow, Queue
from ._stream import Stream
from ._token import NotCalled, Token, call, mask, release

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Multicast(Generic[T]):
    """Callables that are invoked together, with one payload: any object.

    `Multicast[str]` is for payloads of type str. `label` names it in the library's reports. A
    `shared` multicast has a `handle`, for C code in the same process: each of its calls goes
    through the library. Others belong to Python alone, and are several times faster.
    """

    def __init__(self, label: "str | None" = None, *, shared: bool = False) -> None:
        handle = _create(label)
        self._setup(handle, label, shared, [handle])

    def _setup(self, handle: int, label: "str | None", shared: bool, own: "list[int]") -> None:
        self._handle, self._label, self.is_shared = handle, label, shared
        # Its own multicasts of C. The second is for the delegates with queues, if there are any and
        # the others are called by Python.
        self._handles = own
        self._queued: "Optional[int]" = None
        self._is_direct = IS_DIRECT and not shared
        self._is_destroyed = False
        self._keeps: Any = None
        self._tokens: "dict[int, Token]" = {}
        # The calls of each event, in order: registration, function, weak reference or None. A
        # change replaces the whole dictionary: the dictionary is the version.
        self._cache: "dict[int, tuple[Any, ...]]" = {}
        # Weak references whose objects are gone. A deque is filled without a lock and without code
        # of Python: objects go at any moment.
        self._dead: "deque[Any]" = deque()
        self._finalizer = weakref.finalize(self, _destroy, self._handles)

    @classmethod
    def from_handle(cls, handle: int) -> "Multicast[Any]":
        """A multicast that C code has made, and destroys. Its payloads are bytes or None."""
        self: "Multicast[Any]" = cls.__new__(cls)
        if not lib.multicast_is_valid(handle):
            raise MulticastError(Status.INVALID_HANDLE, f"not the handle of a multicast: {handle}")
        self._setup(handle, None, True, [])
        return self

    @property
    def handle(self) -> int:
        """The `id` of the multicast in C, if it is shared."""
        if not self.is_shared:
            raise AttributeError("only a shared multicast has a handle: Multicast(shared=True)")
        return self._handle

    # ---- Adding and removing ---------------------------------------------------------------------

    def add(self, function: "Callable[[T], object]", *, priority: int = 0,
            events: "Iterable[int] | int | None" = None, once: bool = False, unique: bool = False,
            latest: bool = False, weak: "bool | None" = None,
            lifetime: "Lifetime | None" = None, queue: "Queue | None" = None,
            label: "str | None" = None) -> Token:
        """Adds a callable, last among those of its priority.

        Bound methods are held weakly: they are removed when their object is gone. Other callables
        are held strongly. `weak` changes that.

        priority  Higher is called first.
        events    The events that it wants, 0 to 63 (default: all).
        once      It is called at most once.
        unique    Equal callables are removed first.
        latest    With a queue: only its newest call waits.
        lifetime  The end of it removes the registration.
        queue     Calls wait in it, until it is run.
        label     Names the registration in reports.
        """
        token = Token(self, function, priority=priority, events=mask(events), once=once, weak=weak,
                      queue=queue, lifetime=lifetime, label=label)
        options = AddOptions(
            struct_size=ctypes.sizeof(AddOptions), priority=priority, events=token.events,
            flags=(ONCE if once else 0) | (LATEST if latest else 0),
            lifetime=lifetime._handle if lifetime is not None else 0,
            queue=queue._handle if queue is not None else 0,
            release=release, label=label.encode() if label is not None else None)
        handle = ctypes.c_uint64()
        with lock:
            self._drop_dead()
            if unique:
                for other in self._find(function):
                    other.remove_nowait()
            # Before the library has it: a thread that destroys sees it.
            self._tokens[token.key] = token
            try:
                check(lib.multicast_add(self._home(queue), Delegate(call, token.key),
                                        ctypes.byref(options), ctypes.byref(handle)))
            except BaseException:
                token._forget()  # the library has released it, or does so
                raise
            token.handle = handle.value
            self._cache = {}
        return token

    def listener(self, **options: Any) -> "Callable[[F], F]":
        """A decorator that adds a function: `@door.listener(priority=10)`."""
        def add(function: F) -> F:
            self.add(function, **options)
            return function
        return add

    def remove(self, function: "Callable[[T], object]", timeout: "float | None" = None) -> bool:
        """Removes every registration of a callable, and waits as Token.remove() does.

        True: this multicast calls it on no thread. ValueError: it is not registered.
        """
        with lock:
            found = self._find(function)
            for token in found:
                token._end()
            for token in found:
                token.remove_nowait()
        # Also those that were removed before, without waiting.
        called = {one for one in running() if isinstance(one, Token) and one.owner() is self
                  and one.ended and one.matches(function)}
        if not found and not called:
            raise ValueError(f"not registered: {function!r}")
        return self._ended({*found, *called}, timeout)

    def clear(self, timeout: "float | None" = None) -> bool:
        """Removes all delegates, and waits as Token.remove() does. The multicast stays."""
        with lock:
            tokens = set(self._tokens.values())
            for token in tokens:
                token.remove_nowait()
        return self._ended(tokens, timeout)

    def destroy(self, timeout: "float | None" = None) -> bool:
        """Destroys it: running invocations call no further delegate. Waits as Token.remove() does.

        A multicast that nothing refers to is destroyed by itself.
        """
        if self._handle not in self._handles and not self._is_destroyed:
            raise ValueError("it belongs to a broadcaster or to C; clear() removes the delegates")
        return self._finish(timeout)

    def _finish(self, timeout: "float | None") -> bool:
        with lock:
            tokens = set(self._tokens.values())
            for token in tokens:
                token._end()
            self._is_destroyed = True
            self._cache = {}
            self._finalizer.detach()
            _destroy(self._handles)
        for token in tokens:
            token._forget()
        return self._ended(tokens, timeout)

    # ---- Asking ----------------------------------------------------------------------------------

    def tokens(self) -> "list[Token]":
        """The registrations, in the order of invocation."""
        self._drop_dead()
        return sorted(list(self._tokens.values()), key=lambda one: (-one.priority, one.key))

    def __len__(self) -> int:
        self._drop_dead()
        return len(self._tokens)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, function: object) -> bool:
        return callable(function) and bool(self._find(function))

    def __repr__(self) -> str:
        name = f" {self._label!r}" if self._label else ""
        count = sum(one.is_live for one in list(self._tokens.values()))
        return f"<multicast.Multicast{name} of {count}>"

    # ---- Invoking --------------------------------------------------------------------------------

    def invoke(self, payload: T = None, event: int = 0,  # type: ignore[assignment]
               results: "list[Any] | None" = None) -> int:
        """Calls every delegate with the payload, by priority, then by order of addition.

        Returns how many were called or queued. All are called; then, if some have raised, their
        exceptions are raised as DelegateErrors. Others than Exception end the invocation at once.

        event    Selects delegates that have `events`; current_event() tells them.
        results  Receives what they return, without those that have a queue.
        """
        cache = self._cache
        calls = cache.get(event)
        if calls is None:
            if not self._is_direct:
                return self._invoke_library(self._handle, payload, event, results)
            calls = self._make_calls(cache, event)
        missed = 0
        errors = None
        stack = local.calls
        depth = len(stack)
        mine: "list[Any]" = [None, event]
        try:
            stack.append(mine)
            for token, function, weak in calls:
                # order: first the entry, then `skip`; Token.remove() in the other order.
                mine[0] = token
                if token.skip:
                    missed += 1
                    continue
                try:
                    if weak is None:
                        result = function(payload)
                    else:
                        target = weak()
                        if target is None:
                            missed += 1
                            continue
                        result = function(target, payload)
                        target = None  # it may go while others are called
                    if results is not None:
                        results.append(result)
                except NotCalled:
                    missed += 1
                except Exception as error:
                    if errors is None:
                        errors = []
                    errors.append(error)
            stack.pop()
        except BaseException:
            del stack[depth:]
            raise
        count = len(calls) - missed
        if self._queued is not None and not self._is_destroyed:
            count += self._invoke_library(self._queued, payload, event, None)
        if self._dead:
            self._drop_dead()
        if errors is not None:
            raise_all(errors)
        return count

    def collect(self, payload: T = None, event: int = 0) -> "list[Any]":  # type: ignore[assignment]
        """Invokes, and returns what the delegates have returned, in order."""
        results: "list[Any]" = []
        self.invoke(payload, event, results)
        return results

    def _make_calls(self, cache: "dict[int, tuple[Any, ...]]", event: int) -> "tuple[Any, ...]":
        if self._is_destroyed:
            raise MulticastError(Status.INVALID_HANDLE)
        _check_event(event)
        calls = tuple(
            (one, one.call_once, None) if one.is_once else (one, one.function, one.target)
            for one in self.tokens() if one.queue is None and one.wants(event))
        if len(cache) < 100:
            cache[event] = calls
        return calls

    def _invoke_library(self, handle: int, payload: Any, event: int,
                        results: "list[Any] | None") -> int:
        _check_event(event)
        with Collector(self, results) as collector:
            how, _kept = send(payload, event, collector)
            count = self._invoke(handle, how)
        collector.finish()
        return check(count)

    def _invoke(self, handle: int, how: Any) -> int:
        return int(lib.multicast_invoke_with(handle, ctypes.byref(how), None))

    # ---- Streams ---------------------------------------------------------------------------------

    def listen(self, capacity: int = 1024, overflow: "Overflow | None" = None,
               **options: Any) -> "Stream[T]":
        """The payloads of the invocations from now on, for `async for`. Options are as in add()."""
        return Stream(self.add, capacity, overflow, options)

    # ---- Inside ----------------------------------------------------------------------------------

    def _home(self, queue: "Queue | None") -> int:
        """The multicast of C that a delegate is added to."""
        if queue is None or not self._is_direct:
            return self._handle
        if self._queued is None and not self._is_destroyed:
            self._queued = _create(self._label)
            self._handles.append(self._queued)
        return self._queued or self._handle

    def _find(self, function: "Callable[..., Any]") -> "list[Token]":
        return [one for one in list(self._tokens.values()) if one.matches(function)]

    def _changed(self, token: Token) -> None:
        """A registration has ended."""
        self._tokens.pop(token.key, None)
        self._cache = {}

    def _drop_dead(self) -> None:
        while self._dead:
            try:
                weak = self._dead.popleft()
            except IndexError:  # another thread was faster
                return
            weak.token.remove_nowait()

    def _ended(self, tokens: "set[Token]", timeout: "float | None") -> bool:
        """Waits for the calls of registrations that were removed."""
        if IS_DIRECT:
            return wait_for(tokens, timeout)
        results = [lib.multicast_ended_within(one.handle, nanoseconds(timeout)) for one in tokens]
        return all(check(one) == Status.OK for one in results)


def _check_event(event: int) -> None:
    if not 0 <= event < 2**32:
        raise ValueError(f"an event is from 0 to 2^32 - 1: {event}")


def _create(label: "str | None") -> int:
    options = CreateOptions(struct_size=ctypes.sizeof(CreateOptions),
                            label=label.encode() if label is not None else None)
    return created(lib.multicast_create_with(ctypes.byref(options)))


def _destroy(handles: "list[int]") -> None:
    while handles:
        lib.multicast_destroy_within(handles.pop(), 0)

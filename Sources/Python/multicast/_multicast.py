"""Multicasts, which are ordered sets of callables that are invoked together, and broadcasters."""

import asyncio
import sys
from contextlib import contextmanager
from enum import Enum
from types import CoroutineType, GenericAlias
from typing import (
    TYPE_CHECKING, Any, Callable, Coroutine, Iterable, Iterator, Optional, Sequence, TypeVar,
    overload)

from . import _core
from ._callable import check, matches, split
from ._errors import MulticastError, Status, checked, created, group
from ._lifetime import Lifetime, cannot_copy, wait_ended
from ._queue import Overflow, Queue, Stream
from ._token import Token

if TYPE_CHECKING:
    from typing import Generic, TypedDict

    from typing_extensions import TypeAlias, TypeVarTuple, Unpack

    Ts = TypeVarTuple("Ts")

    class Options(TypedDict, total=False):
        """The options of Multicast.add()."""

        priority: int
        events: "Iterable[int] | int | None"
        once: bool
        unique: bool
        latest: bool
        replay: bool
        weak: "bool | None"
        sender: object
        lifetime: "Lifetime | None"
        queue: "Queue | None"
        label: "str | None"

    AnyMulticast: TypeAlias = "Multicast[Unpack[tuple[Any, ...]]]"

    class Typed(Generic[Unpack[Ts]]):
        """A base class with any number of type arguments, even in older versions of Python."""
else:
    class Typed:
        __slots__ = ()
        __class_getitem__ = classmethod(GenericAlias)

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
ONCE, LATEST, NO_REPLAY = 1, 4, 8
FOREIGN, OWNED, NAMED = range(3)
NOT_COPIED = "_options", "on_add", "_instance"


class Reentry(Enum):
    """What happens if a multicast is invoked inside its own invocation, on the same thread."""

    RECURSE = 0
    REFUSE = 1
    DEFER = 2
    LATEST = 3


class Multicast(_core.Core, Typed["Unpack[Ts]"]):
    """An ordered set of callables that are invoked together, with any arguments.

    `Multicast[str]` takes one argument of type str, and `Multicast[()]` takes none. A delegate that
    takes fewer arguments receives only the first ones.

    label              The name of the multicast in the library's reports.
    arguments          The types of the arguments. add() refuses callables that need more arguments.
    reentry            What happens if the multicast is invoked inside its own invocation.
    replay             How many of the last invocations a new delegate receives.
    listeners_changed  Called with True when the first delegate has been added, and with False when
                       the last one has been removed. A bound method is held weakly.
    """

    #: Called with the new Token after each add, on the thread that adds.
    on_add: "Optional[Callable[[Token], object]]" = None

    def __init__(self, label: "str | None" = None, *, arguments: "Sequence[Any] | None" = None,
                 reentry: Reentry = Reentry.RECURSE, replay: int = 0,
                 listeners_changed: "Callable[[bool], object] | None" = None) -> None:
        hook = split(listeners_changed) if listeners_changed is not None else (None, None)
        self._options = label, arguments, reentry, replay
        self._open(label, reentry.value, replay, *hook)

    @classmethod
    def from_handle(cls, handle: int) -> "AnyMulticast":
        """Wraps a multicast that C code creates and destroys. Its payloads are bytes or None."""
        return cls._adopt(handle, None, FOREIGN)

    @classmethod
    def _adopt(cls, handle: int, name: "str | None", ownership: int) -> "AnyMulticast":
        if not _core.is_valid(handle):
            raise MulticastError(Status.INVALID_HANDLE, f"not the handle of a multicast: {handle}")
        self: Any = cls.__new__(cls)
        self._options = name, None, Reentry.RECURSE, 0
        self._handle, self._ownership, self._is_shared = handle, ownership, True
        _core.share(0)
        return self  # type: ignore[no-any-return]

    @property
    def handle(self) -> int:
        """The `id` of the multicast, for C code, which may add delegates and invoke it."""
        self._is_shared = True
        _core.share(0)
        return self._handle

    # ---- Adding and removing ---------------------------------------------------------------------

    @overload
    def add(self, function: "Callable[[Unpack[Ts]], object] | Callable[[], object]",
            **options: "Unpack[Options]") -> Token: ...
    @overload
    def add(self: "Multicast[A, Unpack[tuple[Any, ...]]]", function: "Callable[[A], object]",
            **options: "Unpack[Options]") -> Token: ...
    @overload
    def add(self: "Multicast[A, B, Unpack[tuple[Any, ...]]]", function: "Callable[[A, B], object]",
            **options: "Unpack[Options]") -> Token: ...

    def add(self, function: "Callable[..., object]", *,
            priority: int = 0, events: "Iterable[int] | int | None" = None, once: bool = False,
            unique: bool = False, latest: bool = False, replay: bool = True,
            weak: "bool | None" = None, sender: object = None, lifetime: "Lifetime | None" = None,
            queue: "Queue | None" = None, label: "str | None" = None) -> Token:
        """Adds a callable after all others with its priority.

        Bound methods and partials of bound methods are held weakly, and are removed when their
        object has been freed. Other callables are held strongly. `weak` overrides this.

        priority  Callables with a higher priority are called first.
        events    The events for which the callable is called, 0 to 63 (default: all).
        once      The callable is called at most once.
        unique    Equal callables are removed as soon as this one has been added.
        latest    With a queue, only the newest call to the callable stays queued.
        replay    If False, the callable does not receive the last invocations.
        sender    Only this sender's invocations call the callable. It is held weakly if possible.
                  A queue also holds the calls of other senders, and skips them when it is run.
        lifetime  The registration is removed when this lifetime ends.
        queue     The queue that makes the calls later.
        label     The name of the registration in reports.
        """
        if not callable(function):
            raise TypeError(f"not callable: {function!r}")
        if queue is not None and not isinstance(queue, Queue):
            raise TypeError(f"not a Queue: {queue!r}")
        if lifetime is not None and not isinstance(lifetime, Lifetime):
            raise TypeError(f"not a Lifetime: {lifetime!r}")
        if self._options[1] is not None:
            check(function, len(self._options[1]))
        held, target = split(function, weak)
        token: Token = self._add(
            held, target, sender, queue, 0 if queue is None else queue._handle, lifetime,
            0 if lifetime is None else lifetime._handle, priority, 0 if events is None
            else mask(events), once * ONCE | latest * LATEST | (not replay) * NO_REPLAY, label)
        if unique:
            # Keep the newest registration, which another thread may have added.
            *older, newest = sorted([*self._find(function), token], key=lambda one: one._number)
            for one in older:
                if one is not newest:
                    one.remove_nowait()
        if self.on_add is not None:
            self.on_add(token)
        return token

    def listener(self, **options: "Unpack[Options]") -> "Callable[[F], F]":
        """A decorator that adds a function: `@door.listener(priority=10)`."""
        def add(function: F) -> F:
            self.add(function, **options)
            return function
        return add

    def remove(self, function: "Callable[..., object]", timeout: "float | None" = None) -> bool:
        """Removes every registration of a callable. Waits and returns like Token.remove().

        Raises ValueError if the callable is not registered.
        """
        found = self._find(function)
        if not found:
            raise ValueError(f"not registered: {function!r}")
        return _end([one._id for one in found], timeout)

    def clear(self, timeout: "float | None" = None) -> bool:
        """Removes all delegates, and waits like Token.remove(). The multicast stays valid."""
        found = [*self._tokens(), *self._held()]
        checked(_core.clear(self._handle))
        return _end([one if isinstance(one, int) else one._id for one in found], timeout)

    def destroy(self, timeout: "float | None" = None) -> bool:
        """Destroys the multicast, and waits like Token.remove().

        Running invocations stop calling delegates. Unreferenced multicasts are also destroyed.
        """
        if self._ownership != OWNED:
            raise ValueError("it belongs to a broadcaster or to C; clear() removes the delegates")
        _core.end_multicast(self._handle)
        return wait_ended(timeout, self._handle)

    # ---- Asking ----------------------------------------------------------------------------------

    def tokens(self) -> "list[Token]":
        """Returns the registrations of Python delegates, in the order of invocation."""
        return [one for one in self._tokens() if isinstance(one, Token)]

    @property
    def has_listeners(self) -> bool:
        """False if an invocation would call no delegate."""
        return bool(_core.has_listeners(self._handle))

    def __len__(self) -> int:
        return max(0, _core.count(self._handle))

    def __bool__(self) -> bool:
        return True

    def __contains__(self, function: object) -> bool:
        return callable(function) and any(one.is_valid for one in self._find(function))

    def __repr__(self) -> str:
        name = f" {self._options[0]!r}" if self._options[0] else ""
        return f"<multicast.{type(self).__name__}{name} of {len(self)}>"

    def _find(self, function: "Callable[..., Any]") -> "list[Token]":
        """Returns an equal callable's registrations, even removed ones, in order of addition."""
        held, target = split(function, True)
        return [one for one in self._held() if matches(one, function, held, target)]

    # ---- Invoking --------------------------------------------------------------------------------

    if TYPE_CHECKING:
        def __call__(self, /, *args: "Unpack[Ts]", **kwargs: Any) -> int: ...
        def invoke(self, /, *args: "Unpack[Ts]", event: int = 0, sender: object = None,
                   **kwargs: Any) -> int: ...

    def _invoke_with(self, /, *args: Any, event: int = 0, sender: object = None,
                     **kwargs: Any) -> int:
        return self._run(args, kwargs, event, sender, None, False)

    def collect(self, /, *args: "Unpack[Ts]", event: int = 0, sender: object = None,
                **kwargs: Any) -> "list[Any]":
        """Invokes, and returns the results of all calls that are not queued, in order."""
        results: "list[Any]" = []
        self._run(args, kwargs, event, sender, results, False)
        return results

    async def invoke_async(self, /, *args: "Unpack[Ts]", event: int = 0, sender: object = None,
                           **kwargs: Any) -> "list[Any]":
        """Invokes, and concurrently awaits the coroutines that async delegates have returned.

        Works under asyncio, trio and anyio. Returns all results in the order of the calls. Raises
        the coroutines' exceptions as DelegateErrors when all coroutines have ended.
        """
        results: "list[Any]" = []
        try:
            self._run(args, kwargs, event, sender, results, True)
            return await _await_all(list(results))
        finally:
            for one in results:
                if type(one) is CoroutineType:
                    one.close()  # after a failure or a cancellation, it may not have begun

    @contextmanager
    def paused(self) -> "Iterator[None]":
        """Inside the block, invocations from Python call nothing and return 0. May be nested."""
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1

    def listen(self: "Multicast[T]", capacity: int = 1024, overflow: Overflow = Overflow.DROP_OLDEST,
               **options: "Unpack[Options]") -> "Stream[T]":
        """Returns a stream of all future payloads, for `async for`. See add() for the options."""
        return Stream(lambda *args: self.add(*args, **options), capacity, overflow)

    # ---- Copies ----------------------------------------------------------------------------------

    def __reduce__(self) -> Any:
        """A copied or unpickled multicast is a new multicast without delegates."""
        if self._ownership != OWNED:
            return cannot_copy(self)
        own = {name: value for name, value in vars(self).items() if name not in NOT_COPIED}
        return _remake, (type(self), *self._options), own


def _remake(kind: Any, label: "str | None", arguments: Any, reentry: Reentry, replay: int) -> Any:
    # The __init__ of a derived class may have other parameters, so do not call it.
    made = Multicast.__new__(kind)
    Multicast.__init__(made, label, arguments=arguments, reentry=reentry, replay=replay)
    return made


class Broadcaster:
    """A set of named multicasts. Observers register under a name, and are notified by name.

    A name is 1 to 255 bytes of UTF-8. Broadcaster.default() is shared with C code.
    """

    _default: "Optional[Broadcaster]" = None
    _handle, _ownership, _is_shared = 0, NAMED, False
    __reduce__ = cannot_copy

    def __init__(self) -> None:
        self._multicasts: "dict[str, AnyMulticast]" = {}
        self._handle = created(_core.broadcaster_create(0))

    @classmethod
    def default(cls) -> "Broadcaster":
        """Returns the process-wide broadcaster, which is never destroyed."""
        if Broadcaster._default is None:
            self = cls.__new__(cls)
            self._multicasts, self._is_shared, self._ownership = {}, True, FOREIGN
            self._handle = created(_core.broadcaster_default(0))
            Broadcaster._default = self
        return Broadcaster._default

    @property
    def handle(self) -> int:
        """The broadcaster's `id`, for C code. Reading it marks the broadcaster as shared with C."""
        self._is_shared = True
        for one in list(self._multicasts.values()):
            one._is_shared = True
        _core.share(0)
        return self._handle

    def __getitem__(self, name: str) -> "AnyMulticast":
        """The name's multicast, always the same object. In hot paths, look it up only once."""
        found = self._multicasts.get(name)
        if found is None:
            encoded = _encoded(name)
            handle = created(_core.broadcaster_multicast(self._handle, encoded))
            made: Any = Multicast._adopt(handle, name, self._ownership)
            made._broadcaster, made._name, made._is_shared = self._handle, encoded, self._is_shared
            made._keeps = self
            found = self._multicasts.setdefault(name, made)
            if found is not made:
                made._ownership = FOREIGN  # another thread's object owns the observers
        return found

    def names(self) -> "list[str]":
        """The names that have observers, except names that only C code has used."""
        return [name for name, one in list(self._multicasts.items()) if len(one)]

    def __iter__(self) -> "Iterator[str]":
        return iter(self.names())

    def register(self, name: str, observer: "Callable[..., object]",
                 **options: "Unpack[Options]") -> Token:
        """Adds an observer of a name; for the options, see Multicast.add()."""
        return self[name].add(observer, **options)

    def unregister(self, name: str, observer: "Callable[..., object]",
                   timeout: "float | None" = None) -> bool:
        """Removes an observer of a name, like Multicast.remove()."""
        return self[name].remove(observer, timeout)

    def clear(self, name: "str | None" = None, timeout: "float | None" = None) -> bool:
        """Removes all observers of a name, or of all names, like Multicast.clear()."""
        chosen = self.names() if name is None else [name]
        return all([self[one].clear(timeout) for one in chosen])

    def notify(self, name: str, /, *args: Any, event: int = 0, sender: object = None,
               **kwargs: Any) -> int:
        """Invokes the multicast of a name. Returns 0 if the name has never had an observer."""
        if name in self._multicasts or self._is_shared:
            return self[name].invoke(*args, event=event, sender=sender, **kwargs)
        _encoded(name)
        return 0

    def destroy(self, timeout: "float | None" = None) -> bool:
        """Destroys the broadcaster and its multicasts, each like Multicast.destroy()."""
        if self._ownership == FOREIGN:
            raise ValueError("the broadcaster of the process stays")
        self._end()
        return wait_ended(timeout, *(one._handle for one in list(self._multicasts.values())))

    def _end(self) -> None:
        if self._ownership == NAMED:
            _core.end_broadcaster(self._handle)

    __del__ = _end


def _encoded(name: str) -> bytes:
    encoded = name.encode()
    if not 1 <= len(encoded) <= 255 or b"\0" in encoded:
        raise ValueError(f"a name has 1 to 255 bytes, and no NUL: {name!r}")
    return encoded


def mask(events: "Iterable[int] | int") -> int:
    chosen = {events} if isinstance(events, int) else set(events)
    if not chosen or not all(0 <= event < 64 for event in chosen):
        raise ValueError(f"a delegate selects one or more events from 0 to 63, or None: {events!r}")
    return sum(1 << event for event in chosen)


def _end(ids: "list[int]", timeout: "float | None") -> bool:
    for one in ids:
        _core.end_token(one)
    return wait_ended(timeout, *ids)


async def _await_all(results: "list[Any]") -> "list[Any]":
    """Replaces each coroutine in the list with its result, or raises all exceptions as one."""
    failures: "dict[int, Exception]" = {}

    async def run(index: int, coroutine: "Coroutine[Any, Any, Any]") -> None:
        try:
            results[index] = await coroutine
        except Exception as error:
            failures[index] = error

    waiting = [run(*one) for one in enumerate(results) if type(one[1]) is CoroutineType]
    if not waiting:
        return results
    cancellations: "list[BaseException]" = []
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        # Without a running asyncio loop, only trio can be running this coroutine.
        async with sys.modules["trio"].open_nursery() as nursery:
            for one in waiting:
                nursery.start_soon(lambda one: one, one)
    else:
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        cancellations = [error for error in ended if error is not None]
    failed = group([failures[index] for index in sorted(failures)]) if failures else None
    if cancellations:
        raise cancellations[0] from failed  # a delegate has cancelled its own task
    if failed is not None:
        raise failed
    return results

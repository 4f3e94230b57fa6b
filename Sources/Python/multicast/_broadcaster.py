"""Multicasts by name."""

import ctypes
import weakref
from typing import Any, Callable

from ._calls import lock
from ._errors import created
from ._library import lib
from ._multicast import Multicast
from ._token import Token


class Broadcaster:
    """Observers register under a name, and are notified by that name.

    A name is 1 to 255 bytes of UTF-8. `shared` is as for a Multicast. Broadcaster.default() is that
    of the process, which C code uses, too.
    """

    def __init__(self, *, shared: bool = False) -> None:
        self._setup(created(lib.multicast_broadcaster_create(None)), shared)
        self._finalizer = weakref.finalize(
            self, lib.multicast_broadcaster_destroy_within, self._handle, 0)

    def _setup(self, handle: int, shared: bool) -> None:
        self._handle, self.is_shared = handle, shared
        self._multicasts: "dict[str, Multicast[Any]]" = {}

    @classmethod
    def default(cls) -> "Broadcaster":
        """The broadcaster of the process. It is never destroyed."""
        with lock:
            if not _default:
                self = cls.__new__(cls)
                self._setup(created(lib.multicast_broadcaster_default()), shared=True)
                _default.append(self)
            return _default[0]

    @property
    def handle(self) -> int:
        """The `id` of the broadcaster in C, if it is shared."""
        if not self.is_shared:
            raise AttributeError("only a shared broadcaster has a handle: Broadcaster(shared=True)")
        return self._handle

    def __getitem__(self, name: str) -> "Multicast[Any]":
        """The multicast of a name, the same each time. For hot paths: look it up once."""
        found = self._multicasts.get(name)
        return found if found is not None else self._look_up(name)

    def register(self, name: str, observer: "Callable[[Any], object]", **options: Any) -> Token:
        """Adds an observer of a name; options are those of Multicast.add()."""
        return self[name].add(observer, **options)

    def unregister(self, name: str, observer: "Callable[[Any], object]",
                   timeout: "float | None" = None) -> bool:
        """Removes an observer of a name, as Multicast.remove() does."""
        return self[name].remove(observer, timeout)

    def notify(self, name: str, payload: Any = None, event: int = 0) -> int:
        """Invokes the multicast of a name; 0 if nothing was ever registered under it."""
        found = self._multicasts.get(name)
        if found is not None:
            return found.invoke(payload, event)
        if not self.is_shared:
            _encoded(name)
            return 0
        return self._look_up(name).invoke(payload, event)

    def destroy(self) -> bool:
        """Destroys it and all its multicasts, each as Multicast.destroy() does."""
        if _default and self is _default[0]:
            raise ValueError("the broadcaster of the process stays")
        self._finalizer()
        return all([one._finish(None) for one in list(self._multicasts.values())])

    def _look_up(self, name: str) -> "Multicast[Any]":
        encoded = _encoded(name)
        with lock:
            if name not in self._multicasts:
                handle = created(lib.multicast_broadcaster_multicast(self._handle, encoded))
                made: "Multicast[Any]" = _Named.__new__(_Named)
                made._setup(handle, name, self.is_shared, [])
                made._keeps = self
                self._multicasts[name] = made
            return self._multicasts[name]


class _Named(Multicast[Any]):
    """A multicast of a broadcaster. If that is shared, it is notified, so that it is published."""

    def _invoke(self, handle: int, how: Any) -> int:
        if not self.is_shared:
            return super()._invoke(handle, how)
        name = (self._label or "").encode()
        return int(lib.multicast_broadcaster_notify_with(
            self._keeps._handle, name, ctypes.byref(how), None))


_default: "list[Broadcaster]" = []


def _encoded(name: str) -> bytes:
    encoded = name.encode()
    if not 1 <= len(encoded) <= 255 or b"\0" in encoded:
        raise ValueError(f"a name has 1 to 255 bytes, and no NUL: {name!r}")
    return encoded

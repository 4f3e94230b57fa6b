"""Multicasts by name."""

from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional

from . import _core
from ._errors import created
from ._lifetime import cannot_copy, wait_ended
from ._multicast import FOREIGN, NAMED, Multicast
from ._token import Token

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._multicast import Options

    AnyMulticast = Multicast[Unpack[tuple[Any, ...]]]


class Broadcaster:
    """Observers register under a name, and are notified by that name.

    A name is 1 to 255 bytes of UTF-8. Broadcaster.default() is that of the process, which C code
    uses, too.
    """

    _default: "Optional[Broadcaster]" = None
    _handle, _ownership, _is_shared = 0, NAMED, False
    __reduce__ = cannot_copy

    def __init__(self) -> None:
        self._multicasts: "dict[str, AnyMulticast]" = {}
        self._handle = created(_core.broadcaster_create(0))

    @classmethod
    def default(cls) -> "Broadcaster":
        """The broadcaster of the process. It is never destroyed."""
        if Broadcaster._default is None:
            self = cls.__new__(cls)
            self._multicasts, self._is_shared, self._ownership = {}, True, FOREIGN
            self._handle = created(_core.broadcaster_default(0))
            Broadcaster._default = self
        return Broadcaster._default

    @property
    def handle(self) -> int:
        """The `id` of the broadcaster for C code. Notifications are published from now on."""
        self._is_shared = True
        for one in list(self._multicasts.values()):
            one._is_shared = True
        return self._handle

    def __getitem__(self, name: str) -> "AnyMulticast":
        """The multicast of a name, the same each time. For hot paths: look it up once."""
        found = self._multicasts.get(name)
        if found is None:
            encoded = _encoded(name)
            handle = created(_core.broadcaster_multicast(self._handle, encoded))
            made: Any = Multicast._adopt(handle, name, self._ownership)
            made._broadcaster, made._name, made._is_shared = self._handle, encoded, self._is_shared
            made._keeps = self
            found = self._multicasts.setdefault(name, made)
            if found is not made:
                made._ownership = FOREIGN  # another thread was faster: the observers are not its own
        return found

    def names(self) -> "list[str]":
        """The names that have observers. Those that only C code has used are not known here."""
        return [name for name, one in list(self._multicasts.items()) if len(one)]

    def __iter__(self) -> "Iterator[str]":
        return iter(self.names())

    def register(self, name: str, observer: "Callable[..., object]",
                 **options: "Unpack[Options]") -> Token:
        """Adds an observer of a name; options are those of Multicast.add()."""
        return self[name].add(observer, **options)

    def unregister(self, name: str, observer: "Callable[..., object]",
                   timeout: "float | None" = None) -> bool:
        """Removes an observer of a name, as Multicast.remove() does."""
        return self[name].remove(observer, timeout)

    def clear(self, name: "str | None" = None, timeout: "float | None" = None) -> bool:
        """Removes all observers of a name, or of all names, as Multicast.clear() does."""
        chosen = self.names() if name is None else [name]
        return all([self[one].clear(timeout) for one in chosen])

    def notify(self, name: str, *args: Any, event: int = 0, sender: object = None,
               **kwargs: Any) -> int:
        """Invokes the multicast of a name; 0 if nothing was ever registered under it."""
        if name in self._multicasts or self._is_shared:
            return self[name].invoke(*args, event=event, sender=sender, **kwargs)
        _encoded(name)
        return 0

    def destroy(self, timeout: "float | None" = None) -> bool:
        """Destroys it and all its multicasts, each as Multicast.destroy() does."""
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

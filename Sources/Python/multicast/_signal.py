"""Signals of classes: a multicast for each instance."""

import weakref
from typing import TYPE_CHECKING, Any, Optional, TypeVar, overload

from ._multicast import Multicast, Typed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._multicast import Ts

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


class Bound(Multicast["Unpack[Ts]"]):
    """The multicast of one instance."""

    _instance: "Any" = staticmethod(lambda: None)

    @property
    def instance(self) -> Any:
        """The object that it is a signal of; None if that is gone."""
        return self._instance()


class Signal(Typed["Unpack[Ts]"]):
    """`class Model: changed = Signal(str, int)` gives each Model a Multicast[str, int].

    It is made at its first use, and refers to its object weakly. A copy of the object, or what comes
    out of its pickle, has a multicast of its own, without delegates. Callables that need more
    arguments than there are types are not added. `options` are those of Multicast.
    """

    @overload
    def __init__(self: "Signal[()]", **options: Any) -> None: ...
    @overload
    def __init__(self: "Signal[A]", a: "type[A]", /, **options: Any) -> None: ...
    @overload
    def __init__(self: "Signal[A, B]", a: "type[A]", b: "type[B]", /, **options: Any) -> None: ...
    @overload
    def __init__(self: "Signal[A, B, C]", a: "type[A]", b: "type[B]", c: "type[C]", /,
                 **options: Any) -> None: ...
    @overload
    def __init__(self: "Signal[A, B, C, D]", a: "type[A]", b: "type[B]", c: "type[C]",
                 d: "type[D]", /, **options: Any) -> None: ...

    def __init__(self, *types: Any, **options: Any) -> None:  # type: ignore[misc]
        self.types, self._options = types, options

    def __set_name__(self, owner: type, name: str) -> None:
        self.name, self._key = name, f"_signal_{name}"
        self._options.setdefault("label", f"{owner.__qualname__}.{name}")

    @overload
    def __get__(self, instance: None, owner: type) -> "Signal[Unpack[Ts]]": ...
    @overload
    def __get__(self, instance: object, owner: Optional[type] = None) -> "Bound[Unpack[Ts]]": ...

    def __get__(self, instance: Any, owner: Optional[type] = None) -> Any:
        if instance is None:
            return self
        found = self.made(instance)
        if found is None:
            found = Bound(arguments=self.types, **self._options)
            try:
                found._instance = weakref.ref(instance)
                object.__setattr__(instance, self._key, found)
            except (AttributeError, TypeError):
                raise TypeError(f"{type(instance).__name__} has __slots__: add {self._key!r} and "
                                "'__weakref__' to them") from None
        return found

    def made(self, instance: object) -> "Optional[Bound[Unpack[Ts]]]":
        """The multicast of an instance, if it was used already."""
        found = getattr(instance, self._key, None)  # in its dictionary, or in a slot
        return found if found is not None and found._instance() is instance else None

    def __set__(self, instance: object, value: object) -> None:
        raise AttributeError(f"{self.name} is a signal: add delegates to it")

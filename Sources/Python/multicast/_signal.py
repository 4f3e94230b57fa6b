"""Signals in classes, with a multicast for each instance, and signals of dataclass fields."""

import dataclasses
import weakref
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, overload

from ._callable import are_equal
from ._multicast import Multicast, Typed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._multicast import Ts

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
K = TypeVar("K", bound="type[Any]")


class Bound(Multicast["Unpack[Ts]"]):
    """The multicast of one instance."""

    _instance: "Any" = staticmethod(lambda: None)

    @property
    def instance(self) -> Any:
        """The object whose signal this is; None if the object has been freed."""
        return self._instance()


class _Home(weakref.ref[Any]):
    """A weak reference to an object, in which the object keeps a multicast as long as it lives.

    The attributes of a copied object refer to the original's home, or to None after pickling.
    """

    bound: "Optional[Bound[Unpack[tuple[Any, ...]]]]" = None

    def __reduce__(self) -> Any:
        return type(None), ()


class Signal(Typed["Unpack[Ts]"]):
    """`class Model: changed = Signal(str, int)` gives each Model a Multicast[str, int].

    The multicast is created on first use, and refers to its object weakly. Copied or unpickled
    objects have separate multicasts without delegates. add() refuses callables that need more
    arguments than there are types. `options` are Multicast's options.
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
    @overload
    def __init__(self: "Signal[Unpack[tuple[Any, ...]]]", *types: Any, **options: Any) -> None: ...

    def __init__(self, *types: Any, **options: Any) -> None:  # type: ignore[misc]
        self.types, self._options = types, options
        self._homes: "dict[int, _Home]" = {}

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
            made: "Bound[Unpack[Ts]]" = Bound(arguments=self.types, **self._options)
            try:
                made._instance = weakref.ref(instance)
                home = _Home(instance, lambda home: vars(home).clear())
                home.bound = made
                # If several threads use the signal for the first time simultaneously, setdefault()
                # gives all of them the same home. Later threads find it in the instance.
                home = self._homes.setdefault(id(instance), home)
                found = self.made(instance)
                if found is None:
                    found = home.bound
                    object.__setattr__(instance, self._key, home)
            except (AttributeError, TypeError):
                raise TypeError(f"{type(instance).__name__} has __slots__: add {self._key!r} and "
                                "'__weakref__' to them") from None
            finally:
                self._homes.pop(id(instance), None)
        return found

    def made(self, instance: object) -> "Optional[Bound[Unpack[Ts]]]":
        """The multicast of an instance, if it has been used; otherwise None."""
        home = getattr(instance, self._key, None)  # in its __dict__ or in a slot
        return home.bound if type(home) is _Home and home() is instance else None

    def __set__(self, instance: object, value: object) -> None:
        raise AttributeError(f"{self.name} is a signal: add delegates to it")


def evented(cls: K) -> K:
    """A decorator that gives a dataclass a Signal for each field, and one for all fields.

    An assignment to a field `x` invokes `x_changed(new, old)`, and then `changed("x", new, old)`.
    If the class itself defines such a Signal, as in `x_changed = Signal(int, int)`, it is used.
    Type checkers know only such Signals. Raises TypeError for frozen classes and non-dataclasses.

    Assigning an equal value is not a change. If the comparison raises an exception, or its result
    has no truth value, as with arrays, the values count as different. Values are not compared in
    __init__, or before the object's signals have been used. If there was no old value, `old` is
    dataclasses.MISSING. Copies have separate signals, as with Signal.
    """
    if "__dataclass_fields__" not in cls.__dict__:
        raise TypeError(f"{cls.__name__} is no dataclass: @dataclass comes below @evented")
    if cls.__dataclass_params__.frozen:
        raise TypeError(f"{cls.__name__} is frozen: its fields never change")
    members: "dict[str, Any]" = {"changed": Signal(str, object, object)}
    for field in dataclasses.fields(cls):
        kind: Any = field.type
        members[f"{field.name}_changed"] = Signal(kind, kind)
    slots = [f"_signal_{name}" for name in members]
    for name in list(members):
        if isinstance(getattr(cls, name, None), Signal):
            del members[name]  # the class defines or inherits this signal
        elif hasattr(cls, name) or name in cls.__dataclass_fields__:
            raise TypeError(f"{cls.__name__}.{name} is not a Signal, which evented() needs there")
    if not hasattr(cls, "_is_evented"):
        members.update(_is_evented=True, __setattr__=_telling(cls.__setattr__))
    if cls.__dictoffset__ == 0 or cls.__weakrefoffset__ == 0:
        # The object has no room for the signals, so create a derived class with slots for them.
        members["__slots__"] = slots if cls.__weakrefoffset__ else [*slots, "__weakref__"]
        for name in ("__module__", "__qualname__", "__doc__"):
            members[name] = getattr(cls, name)
        meta: Any = type(cls)
        made = meta(cls.__name__, (cls,), members)
        made.__parameters__ = getattr(cls, "__parameters__", ())  # for Box[int]
        return made  # type: ignore[no-any-return]
    for name, value in members.items():
        setattr(cls, name, value)
        if isinstance(value, Signal):
            value.__set_name__(cls, name)
    return cls


def _telling(assign: "Callable[..., None]") -> "Callable[[Any, str, Any], None]":
    def __setattr__(self: Any, name: str, value: Any) -> None:
        kind, one, every, old = type(self), None, None, dataclasses.MISSING
        signal = getattr(kind, f"{name}_changed", None) if name in kind.__dataclass_fields__ else None
        if isinstance(signal, Signal):
            one = signal.made(self)
            every = kind.changed.made(self) if isinstance(kind.changed, Signal) else None
        if one is not None or every is not None:
            old = getattr(self, name, dataclasses.MISSING)
            if are_equal(old, value):
                one = every = None
        assign(self, name, value)
        try:
            if one is not None:
                one(value, old)
        finally:
            if every is not None:
                every(name, value, old)

    return __setattr__

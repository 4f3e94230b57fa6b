"""Callables: what is held of them, and what they take."""

import inspect
from functools import partial
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, Callable, Optional


class Unbound:
    """A partial of a method, without the object of the method."""

    __slots__ = ("function", "args", "keywords")

    def __init__(self, of: "partial[Any]") -> None:
        method: Any = of.func
        self.function, self.args, self.keywords = method.__func__, of.args, of.keywords

    def __call__(self, target: Any, *args: Any, **kwargs: Any) -> Any:
        return self.function(target, *self.args, *args, **{**self.keywords, **kwargs})

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Unbound) and self.function is other.function
                and self.args == other.args and self.keywords == other.keywords)

    __hash__ = None  # type: ignore[assignment]


def split(function: Any, weak: "bool | None" = None) -> "tuple[Any, Any]":
    """What a registration holds: a callable, and what it holds weakly as the first argument.

    Without a callable, what is held weakly is called. Types are compared exactly: the proxy of a
    method, which a decorator may have made, is not a method, and is called as it is.
    """
    if weak is False:
        return function, None
    kind = type(function)
    if kind is MethodType:
        return function.__func__, function.__self__
    if kind is partial and type(function.func) is MethodType:
        return Unbound(function), function.func.__self__
    if not weak:
        return function, None
    if kind is BuiltinMethodType:
        owner = function.__self__
        return getattr(type(owner), function.__name__, None), owner
    return None, function


def matches(one: Any, function: "Callable[..., Any]", held: Any, target: Any) -> bool:
    """Whether a registration is that of a callable, which is `held` with a weak `target` if weak.

    Callables are compared if they are of the same type.
    """
    if one._target is not None:
        own = one._target()
        if one._function is None:
            return own is function
        if own is None or own is not target:
            return False
        function = held
    return type(one._function) is type(function) and are_equal(one._function, function)


def are_equal(one: Any, other: Any) -> bool:
    """What cannot be compared is not equal."""
    try:
        return one is other or bool(one == other)
    except Exception:
        return False


def accepts(function: "Callable[..., Any]", is_bound: bool) -> "tuple[int, Optional[frozenset[str]]]":
    """The most arguments that it takes, or -1; the keywords, or None for all.

    With `is_bound` the first argument is not counted: it is the object of a method.
    """
    if type(function) is FunctionType:
        code = function.__code__
        names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
        most = -1 if code.co_flags & inspect.CO_VARARGS else code.co_argcount - is_bound
        return most, None if code.co_flags & inspect.CO_VARKEYWORDS else frozenset(names)
    if isinstance(function, Unbound):
        most, known = accepts(function.function, True)
        return most if most < 0 else max(0, most - len(function.args)), known
    parameters = _parameters(function)
    if parameters is None:
        return -1, None
    kinds = [one.kind for one in parameters]
    most = sum(kind in (kind.POSITIONAL_ONLY, kind.POSITIONAL_OR_KEYWORD) for kind in kinds)
    return (-1 if inspect.Parameter.VAR_POSITIONAL in kinds else max(0, most - is_bound),
            None if inspect.Parameter.VAR_KEYWORD in kinds
            else frozenset(one.name for one in parameters))


def known(kwargs: "dict[str, Any]", names: "frozenset[str]") -> "dict[str, Any]":
    """Those of the keywords that a callable takes."""
    return {name: value for name, value in kwargs.items() if name in names}


def check(function: "Callable[..., Any]", count: int) -> None:
    """TypeError if it cannot be called with so many arguments, or fewer."""
    parameters = _parameters(function)
    needed = [one for one in parameters or () if one.default is one.empty
              and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    named = [one.name for one in needed if one.kind is one.KEYWORD_ONLY]
    if named:
        raise TypeError(f"{function!r} needs keywords that are not given: {', '.join(named)}")
    if len(needed) > count:
        raise TypeError(f"{function!r} needs {len(needed)} arguments, and gets {count}")


def _parameters(function: "Callable[..., Any]") -> "Optional[list[inspect.Parameter]]":
    if isinstance(function, type(len)):
        return None  # looking at these takes long, and C code says itself what is missing
    try:
        return list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        return None
